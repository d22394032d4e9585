"""Spins of bodies that nothing in a mechanism turns stay what they are (`abd.joints.closure.own_spins`)."""

from __future__ import annotations

import numpy as np
import pytest
from on_device import NAME

import abd

pytestmark = pytest.mark.device


def on_a_spring(device: str = NAME, beside: float = 0.0) -> abd.Simulation:
    """A body on one spring from its centre, or from beside it, to the world, 0.5 rad of its vibration per step."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01})
    motion = {"position": (1.0, 0, 0), "velocity": (0.3, 0.2, 0)}
    scene.add_body("body", proxy=True, mass=2.0, inertia=(0.02, 0.03, 0.04), **motion)
    ends = {"parent_anchor": (0, 0, 0), "child_anchor": (0, beside, 0)}
    scene.add_spring("spring", abd.WORLD, "body", stiffness=2.0 * 50.0**2, rest_length=0.9, **ends)
    return abd.Simulation(scene, device=device)


def slider_crank(device: str = NAME) -> abd.Simulation:
    """A spatial one whose rod hangs between two balls on its axis, and spins."""
    scene = abd.Scene(gravity=(0, 0, -9.81), solver={"dt": 0.005})
    keys, exact = {"proxy": True, "mass": 1.0}, {"enforcement": "exact"}
    scene.add_body("crank", inertia=(0.02,) * 3, position=(0.2, 0, 0), **keys)
    scene.add_body("rod", inertia=(0.001, 0.05, 0.05), position=(0.8, 0, 0), angular_velocity=(3.0, 0, 0), **keys)
    scene.add_body("slide", inertia=(0.01,) * 3, position=(1.2, 0, 0), **keys)
    scene.add_hinge("pivot", abd.WORLD, "crank", anchor=(0, 0, 0), axis=(0, 1, 0.2), **exact)
    scene.add_joint("spherical", "ball", "crank", "rod", anchor=(0.4, 0, 0), **exact)
    scene.add_joint("spherical", "end", "rod", "slide", anchor=(1.2, 0, 0), **exact)
    scene.add_joint("slider", "rail", abd.WORLD, "slide", anchor=(1.2, 0, 0), axis=(1, 0, 0), **exact)
    return abd.Simulation(scene, device=device)


def test_a_body_on_one_spring_at_its_centre_does_not_begin_to_spin():
    simulation = on_a_spring()
    energies = []
    for _ in range(1000):
        report = simulation.step()
        energies.append(report.energy["kinetic"] + report.energy["joint"])
        assert np.abs(simulation.bodies["body"].angular_velocity).max() < 1e-12
    assert np.abs(np.array(energies) / energies[0] - 1.0).max() < 1e-6


def test_a_rod_between_two_balls_keeps_its_spin_and_the_mechanism_its_energy():
    simulation = slider_crank()
    rod, start = simulation.bodies["rod"], None
    for _ in range(1000):
        report = simulation.step()
        energy = sum(report.energy[name] for name in ("kinetic", "gravity", "elastic", "joint"))
        start = energy if start is None else start
        assert rod.angular_velocity @ rod.rotation[:, 0] == pytest.approx(3.0, rel=2e-6)
    assert energy == pytest.approx(start, abs=1e-9)


@pytest.mark.parametrize("make", [on_a_spring, slider_crank])
def test_the_definition_and_the_kernels_agree(make):
    first, other = make("numpy"), make()
    for _ in range(30):
        first.step()
        other.step()
    np.testing.assert_allclose(first.stepper.qd, other.stepper.qd, atol=1e-9 * np.abs(first.stepper.qd).max())
