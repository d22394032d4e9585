"""Friction of contacts so stiff that forces vary within Newton's tolerance."""

import numpy as np
import pytest
from on_device import follow

import abd

SPEED, MU, G, DT = 2.0, 0.8, 9.81, 0.01
BOX = (0.1, 0.1, 0.05)
STOPS = SPEED**2 / (2.0 * MU * G) - 0.5 * SPEED * DT
"""Separation of a box that friction stops [m], by steps of implicit Euler."""


def slide(gap: float, device: str, **solver) -> tuple[float, np.ndarray]:
    """How far a box slides that is set down at a gap [m], and the ground's force on it over its weight in every step."""
    scene = abd.Scene(solver={"dt": DT, **solver})
    scene.add_material("default", mu=MU)
    scene.add_body("ground", half_space={})
    scene.add_body("box", box=BOX, position=(0.0, 0.0, 0.5 * BOX[2] + gap), velocity=(SPEED, 0.0, 0.0))
    simulation = abd.Simulation(scene, device=device)
    box = simulation.bodies["box"]
    forces = follow(simulation, round(1.1 * SPEED / (MU * G) / DT), lambda _: box.contact_force[2] / (1000.0 * np.prod(BOX) * G))
    return float(box.position[0]), np.array(forces)


@pytest.mark.parametrize("d_hat", [1e-5, 1e-7])
def test_sliding_distance_does_not_depend_on_contact_stiffness(d_hat, device):
    way, forces = slide(1.2 * d_hat, device, d_hat=d_hat)
    assert way == pytest.approx(STOPS, rel=0.02)
    np.testing.assert_allclose(forces[1:], 1.0, rtol=0.05)


@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_sliding_distance_does_not_depend_on_the_initial_gap(device):
    way, forces = slide(0.0, device)
    assert way == pytest.approx(STOPS, rel=0.02)
    np.testing.assert_allclose(forces, 1.0, rtol=0.05)
