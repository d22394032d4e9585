"""What conservative mechanisms keep where they change while they run (`abd.joints.closure.symmetries.mechanisms`)."""

from __future__ import annotations

import numpy as np
import pytest
from on_device import NAME

import abd
from abd.energies import momenta
from abd.joints.closure.symmetries import symmetries

pytestmark = pytest.mark.device

PARTS = ("kinetic", "gravity", "elastic", "joint")
KEYS = {"proxy": True, "mass": 1.0, "inertia": (0.01,) * 3}


def energies(simulation, steps: int) -> np.ndarray:
    reports = [simulation.step() for _ in range(steps)]
    return np.array([sum(report.energy[name] for name in PARTS) for report in reports])


def pendulum(gravity, device: str = NAME) -> abd.Simulation:
    """Two bodies on ball joints, that go round."""
    scene = abd.Scene(gravity=gravity, solver={"dt": 0.01})
    scene.add_body("upper", position=(0.5, 0, -0.5), velocity=(0, 0.5, 0), angular_velocity=(0, 0, 1), **KEYS)
    scene.add_body("lower", position=(1, 0, -1), velocity=(0, 1, 0), angular_velocity=(0, 0, 1), **KEYS)
    scene.add_joint("spherical", "shoulder", abd.WORLD, "upper", anchor=(0, 0, 0), enforcement="exact")
    scene.add_joint("spherical", "elbow", "upper", "lower", anchor=(0.7, 0, -0.7), enforcement="exact")
    return abd.Simulation(scene, device=device)


@pytest.mark.parametrize(("device", "steps"), [(NAME, 100), ("numpy", 5)])
@pytest.mark.parametrize("before", [(0, 0, -9.81), (0, 0, 0)])
def test_gravity_that_turns_keeps_momenta_about_itself(before, device, steps):
    """As in a scene that had it from the start."""
    turned, given = pendulum(before, device), pendulum((3, 0, -9.81), device)
    turned.gravity = (3, 0, -9.81)
    change = energies(turned, steps)[-1] - energies(given, steps)[-1]
    assert abs(change) < 1e-6
    np.testing.assert_allclose(turned.stepper.q, given.stepper.q, atol=1e-6)


def geared(enforcement: str = "exact", device: str = NAME) -> abd.Simulation:
    """A pendulum that turns a wheel, each on a hinge of its own."""
    scene = abd.Scene(gravity=(0, 0, -9.81), solver={"dt": 0.01})
    scene.add_body("arm", position=(0.5, 0, 0), **KEYS)
    scene.add_body("wheel", position=(3, 0, 0), **{**KEYS, "inertia": (1,) * 3})
    for name, x in (("arm", 0), ("wheel", 3)):
        scene.add_hinge(f"{name}'s", abd.WORLD, name, anchor=(x, 0, 0), axis=(0, 1, 0), enforcement="exact")
    scene.add_coupling("gear", "wheel's.theta", [{"coordinate": "arm's.theta", "factor": -1}], enforcement=enforcement)
    return abd.Simulation(scene, device=device)


@pytest.mark.parametrize("enforcement", ["exact", "penalty"])
def test_a_gear_hands_energy_on(enforcement):
    simulation = geared(enforcement)
    assert np.ptp(energies(simulation, 56)) < 1e-6
    (swung,) = simulation.joints["arm's"].coordinates
    (rate,) = simulation.joints["wheel's"].rates
    assert abs(rate) == pytest.approx(np.sqrt(2 * 9.81 * 0.5 * np.sin(swung) / (0.25 + 0.01 + 1)), rel=1e-3)


@pytest.mark.parametrize("device", [NAME, "numpy"])
def test_a_gear_whose_one_side_begins_anew_gives_nothing_back_in_that_step(device):
    simulation = geared(device=device)
    simulation.run(steps=3)
    simulation.stepper.modes.jump([0])
    assert simulation.stepper.modes.remembers[0] != simulation.stepper.modes.remembers[1]
    simulation.step()
    assert not simulation.backend.states.read_owed().any()


def test_gravity_that_changes_is_the_one_that_is_read_and_kept():
    """In the next step, and in steps that are recorded later."""
    simulation = geared()
    simulation.run(steps=10)
    simulation.gravity = (1, 0, -5)
    m, found = simulation.model.bodies.mass, []
    for _ in range(40):
        report = simulation.step()
        assert report.energy["gravity"] == pytest.approx(-m @ simulation.stepper.q[:, :3] @ [1, 0, -5], abs=1e-12)
        found.append(sum(report.energy[name] for name in PARTS))
    assert np.ptp(found[2:]) < 1e-6


def test_a_body_that_is_let_go_falls_freely():
    scene = abd.Scene(gravity=(0, 0, -9.81), solver={"dt": 0.01})
    scene.add_body("arm", position=(0.3, 0, 0), velocity=(0, 0, -3), angular_velocity=(0, 10, 0), **KEYS)
    scene.add_body("load", position=(0.6, 0, 0), velocity=(0, 0, -6), angular_velocity=(0, 10, 0), **KEYS)
    scene.add_hinge("pivot", abd.WORLD, "arm", anchor=(0, 0, 0), axis=(0, 1, 0), enforcement="exact")
    scene.add_hinge("hook", "arm", "load", anchor=(0.3, 0, 0), axis=(0, 1, 0), enforcement="exact")
    simulation = abd.Simulation(scene, device=NAME)
    simulation.run(steps=10)
    simulation.joints["hook"].active = False
    v = simulation.bodies["load"].linear_velocity
    simulation.run(steps=100)
    np.testing.assert_allclose(simulation.bodies["load"].linear_velocity, v + np.array([0, 0, -9.81]), atol=1e-9)


def test_a_joint_that_is_seated_elsewhere_keeps_momenta_there():
    scene = abd.Scene(gravity=(0, 0, -9.81), solver={"dt": 0.01})
    scene.add_body("arm", position=(0.5, 0, 0), velocity=(0, 0.5, 0), angular_velocity=(0, 0, 1), **KEYS)
    scene.add_body("end", position=(1, 0, 0), velocity=(0, 1, 0), angular_velocity=(0, 0, 1), **KEYS)
    scene.add_hinge("pivot", abd.WORLD, "arm", anchor=(0, 0, 0), axis=(0, 0, 1), enforcement="exact")
    scene.add_hinge("elbow", "arm", "end", anchor=(0.7, 0, 0), axis=(0, 0, 1), enforcement="exact")
    simulation = abd.Simulation(scene, device=NAME)
    simulation.run(steps=100)
    place = simulation.bodies["arm"].transform @ np.array([[1, 0, 0, -0.2], [0, 1, 0, 0.1], [0, 0, 1, 0], [0, 0, 0, 1]])
    simulation.joints["pivot"].set_frames(place, place)
    assert symmetries(simulation.model, simulation.backend.system).count.tolist() == [0]

    def spin() -> float:
        """About the new axis."""
        P, L = momenta(simulation.model, simulation.stepper.q, simulation.stepper.qd)
        return (L - np.cross(place[:3, 3], P))[2]

    simulation.run(steps=50)
    before = spin()
    assert np.ptp(energies(simulation, 200)) < 1e-9
    assert spin() == pytest.approx(before, rel=1e-4)
