"""Rotation, order and impacts of the integrators; bodies that spin in joints."""

import mechanisms
import numpy as np
import pytest
import reference_cases as cases
from mechanisms import energies
from on_device import NAME
from scipy.spatial.transform import Rotation

import abd
from abd.backends.warp import on_warp as small_scenes
from abd.potentials import free_motion, gyration
from abd.potentials.integrators import Mode, scheme
from abd.rotations import axial

pytestmark = pytest.mark.device


@pytest.mark.parametrize(("spin", "error"), [(150.0, 1e-5), (1500.0, 1e-4)])
def test_a_fast_top_keeps_its_spin_and_precesses(spin, error):
    """At 0.15 and 1.5 rad per step it follows Euler's equations for 50 ms."""
    simulation = abd.Simulation(mechanisms.top(1e-3, spin), device=NAME)
    newton = [simulation.step().newton_iterations for _ in range(50)]
    axis, height, about_axis, about_tip = mechanisms.rotation_about((0, 1, 0), 0.5)[:, 2], 0.5, 0.02, 0.05 + 0.5**2

    def rate(t, y):
        """Of the axis and of the angular momentum about the tip."""
        u, L = y[:3], y[3:]
        w = (L - (L @ u) * u) / about_tip
        return np.concatenate([np.cross(w, u), np.cross(height * u, (0, 0, -mechanisms.G))])

    known = cases.solution(rate, np.concatenate([axis, about_axis * spin * axis]), [0.05])[-1]
    view = simulation.bodies["top"]
    assert np.abs(view.position - height * known[:3]).max() < error
    assert view.angular_velocity @ view.transform[:3, 2] == pytest.approx(spin, rel=1e-5)
    assert spin > 1000.0 or np.mean(newton) <= 3.0


@pytest.mark.parametrize("small", [0, 64])
def test_rounding_of_stiff_bodies_does_not_damp_small_steps(small, monkeypatch):
    """Steps in which the elastic energy changes by rounding only are not shortened."""
    monkeypatch.setattr(small_scenes, "SMALL", small)
    simulation = abd.Simulation(cases.four_bar(0.005 / 16, integrator="generalized_alpha"), device=NAME)
    reports = [simulation.step() for _ in range(250)]
    assert sum(r.line_search_trials for r in reports) == sum(r.newton_iterations for r in reports) <= 260
    energies = [sum(r.energy[name] for name in ("kinetic", "gravity", "elastic", "joint")) for r in reports]
    assert np.ptp(energies) < 5e-11


def test_free_body_keeps_its_spin_during_other_collisions():
    """At 0.5 rad per step it is bitwise equal to a run without other bodies."""

    def wheel(*, others: bool) -> list[np.ndarray]:
        scene = abd.Scene(solver={"dt": 0.01})
        scene.add_body("wheel", box=(0.2, 0.2, 0.1), position=(0, 0, 5), angular_velocity=(0, 0, 50.0))
        if others:
            scene.add_body("floor", half_space={})
            scene.add_body("box", box=(0.1, 0.1, 0.1), position=(2, 0, 0.06), velocity=(0, 0, -2.0))
            scene.add_body("upper", box=(0.1, 0.1, 0.1), position=(2.03, 0, 0.19), velocity=(0, 0, -3.0))
        simulation = abd.Simulation(scene, device=NAME)
        reports = [simulation.step() for _ in range(12)]
        assert not others or max(report.contacts for report in reports) > 4
        view = simulation.bodies["wheel"]
        return [view.transform, view.velocity, view.angular_velocity]

    found = wheel(others=True)
    for value, alone in zip(found, wheel(others=False)):
        np.testing.assert_array_equal(value, alone)
    np.testing.assert_allclose(found[2], (0.0, 0.0, 50.0), atol=1e-11)


def test_the_weights_of_generalized_alpha_keep_constant_forces_exact():
    for h, mode in ((0.01, Mode.SMOOTH), (0.005, Mode.SECOND)):
        k = scheme("generalized_alpha", h).motion[mode]
        assert h * (k[2] + k[3]) + 1.0 / k[4] == pytest.approx(0.5 * h * h, rel=1e-12)
        assert k[5:8].sum() == pytest.approx(1.0, rel=1e-12) and k[8:11].sum() == pytest.approx(h, rel=1e-12)


@pytest.mark.parametrize("moment", [(1.0, 2.0, 3.0), (1e-6, 1.0, 1.2), (1.0, 1.0, 1.0), (0.0, 0.0, 1.0)])
def test_free_motion_keeps_the_energy(moment):
    """Momenta are exact by definition in 100 steps of 5 rad."""
    A, s = np.eye(3)[None], np.array([moment])
    spin = 5.0 * np.array([0.6, 0.48, 0.64])
    L = np.einsum("nij,j->ni", free_motion.inertia(A, s), spin)
    energy = [float(L[0] @ free_motion.spin(free_motion.inertia(A, s), L)[0])]
    for _ in range(100):
        A = free_motion.free_rotation(free_motion.inertia(A, s), L, 1.0) @ A
        energy.append(float(L[0] @ free_motion.spin(free_motion.inertia(A, s), L)[0]))
    np.testing.assert_allclose(energy, energy[0], rtol=1e-6)
    np.testing.assert_allclose(A[0] @ A[0].T, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("J", [0.01, 1 / 12])
@pytest.mark.parametrize("turn", [0.2, 0.3, 0.45])
@pytest.mark.parametrize("radius", [0.8, 0.95])
def test_a_crank_that_turns_far_in_a_step_gains_no_energy(J, turn, radius):
    """At 0.3 rad per step a spectral radius of 0.8 would multiply its energy; the first step reduces it."""
    energies = mechanisms.energies(abd.Simulation(mechanisms.whirling(turn, J, spectral_radius=radius), device=NAME), 300)
    change = energies / (0.5 * (J + 0.25) * (100.0 * turn) ** 2) - 1.0
    assert change.max() < 0.0 and change.min() > {0.2: -0.07, 0.3: -0.15, 0.45: -0.5}[turn]
    assert np.ptp(change[-20:]) < 3e-2


def chain(kind: str, seed: int, dt: float) -> abd.Simulation:
    """Three thin bars in random directions on joints of random axes."""
    random = np.random.default_rng(seed)
    scene, parent, anchor = abd.Scene(solver={"dt": dt}), abd.WORLD, np.zeros(3)
    for name in ("b0", "b1", "b2"):
        along = random.normal(size=3)
        along /= np.linalg.norm(along)
        R, _ = Rotation.align_vectors([along], [(0, 0, 1)])
        center = tuple(anchor + 0.25 * along)
        scene.add_body(name, box=(0.05, 0.08, 0.4), position=center, quaternion=tuple(R.as_quat(scalar_first=True)))
        axis = tuple(random.normal(size=3))
        scene.add_joint(kind, f"on {name}", parent, name, anchor=tuple(anchor), axis=axis, enforcement="exact")
        parent, anchor = name, anchor + 0.5 * along
    scene.add_contact_filter("b0", "b1", "b2")
    return abd.Simulation(scene, device=NAME)


@pytest.mark.parametrize(("kind", "seed"), [("hinge", 2), ("universal", 0), ("universal", 5), ("universal", 7)])
def test_chains_whose_bars_whirl_gain_no_energy(kind, seed):
    """The bars turn by up to 1 rad per step about their thin axes, which also turns the moments of their joints."""
    energies = mechanisms.energies(chain(kind, seed, 0.01), 400)
    assert energies.max() < energies[0] + 0.01 * np.ptp(energies)


def eigenvalues(turn: float, radius: float, ratio: float, mode: Mode = Mode.SMOOTH) -> np.ndarray:
    """Of a step of a top of moment 1 on its tip, of mass `ratio` at 1, h = 1: axis, momentum, velocity, memory."""
    row = scheme("generalized_alpha", 1.0, radius).motion[mode]
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
