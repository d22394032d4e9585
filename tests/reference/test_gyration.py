"""Generalized alpha on bodies that spin in joints (`abd.potentials.gyration`)."""

import mechanisms
import numpy as np
import pytest
from mechanisms import energies
from on_device import NAME

import abd
from abd.potentials import gyration
from abd.potentials.integrators import Mode, scheme
from abd.rotations import axial

pytestmark = pytest.mark.device


def eigenvalues(turn: float, radius: float, ratio: float, mode: Mode = Mode.SMOOTH) -> np.ndarray:
    """Of a step of a top of moment 1 on its tip, of mass `ratio` at 1, h = 1: axis, momentum, velocity, memory."""
    row = scheme("generalized_alpha", 1.0, 1.0, radius).motion[mode]
    (new,), (old,) = gyration.displacement_factors(np.array([turn]), np.array([radius]))
    (fresh, last, mean), (gain, *gains) = row[5:8], row[8:11]
    columns = []
    for axis, L, v, f, a in np.eye(5, dtype=complex):
        remembered = last * f + mean * a
        free = np.exp(1j * turn) * axis + (1.0 - np.exp(1j * turn)) / turn * L
        turned = free - (new * remembered + old * a)  # a force F exerts the torque -i F, and torques T turn by -i T
        moved = axis + v + (new * remembered + (0.5 - new) * a) / ratio
        F = (turned - moved) / (new * fresh * (1.0 + 1.0 / ratio))
        total = gain * F + gains[0] * f + gains[1] * a
        columns.append([turned - new * fresh * F, L - 1j * total, v + total / ratio, F, fresh * F + remembered])
    return np.linalg.eigvals(np.array(columns).T)


@pytest.mark.parametrize("radius", [0.7, 0.8, 0.9, 1.0])
@pytest.mark.parametrize("ratio", [0.1, 1.0, 10.0])
def test_a_spinning_top_has_the_eigenvalues_of_generalized_alpha(radius, ratio):
    for turn in (0.01, 0.2, 0.5, 0.8):
        found = np.sort(np.abs(eigenvalues(turn, radius, ratio)))
        assert found[-1] < 1.0 + 4e-3 * turn**4 + 1e-9
        np.testing.assert_allclose(found[:3], radius, atol=0.05)


@pytest.mark.parametrize("radius", [0.8, 0.9])
def test_a_top_in_coarse_steps_keeps_its_energy(radius):
    """It rotates by 0.48 rad per step."""
    simulation = abd.Simulation(mechanisms.top(8e-3, spectral_radius=radius), device=NAME)
    energy = energies(simulation, 1000)
    assert abs(energy[-1] - energy[0]) < 1e-4 * 0.5 * 0.02 * 150.0**2


def test_a_rod_on_two_balls_keeps_the_spin_about_itself():
    """No force changes the spin of the rod of a spatial slider-crank about its axis, at steps of 10 ms."""
    simulation = abd.Simulation(mechanisms.slider_crank(0.01), device=NAME)
    rod, spins = simulation.model.bodies.names.index("rod"), []
    thin = gyration.thin_axis(simulation.model.bodies.moment)[rod]
    for _ in range(100):
        simulation.step()
        A, rate = (one[rod, 3:].reshape(3, 3) for one in (simulation.stepper.q, simulation.stepper.qd))
        spins.append(A[:, thin] @ axial((rate @ np.linalg.inv(A))[None])[0])
    np.testing.assert_allclose(spins, spins[0], atol=2.5e-3)


def test_the_definition_and_the_kernels_agree():
    states = []
    for device in ("numpy", NAME):
        simulation = abd.Simulation(mechanisms.slider_crank(0.01), device=device)
        simulation.run(steps=12)
        states.append((simulation.stepper.q, simulation.stepper.qd))
    np.testing.assert_allclose(states[0][0], states[1][0], atol=1e-9)
    np.testing.assert_allclose(states[0][1], states[1][1], atol=1e-6)
