"""What mechanisms remember before their first step (`abd.step.beginning`)."""

from __future__ import annotations

import numpy as np
import pytest
from on_device import NAME

import abd
from abd.backends.progress import Progress
from abd.errors import StepFailure

pytestmark = pytest.mark.device

H = 0.005
KEYS = {"proxy": True, "mass": 1.0, "inertia": (0.01, 0.02, 0.03), "angular_velocity": (3, 40, 5)}


def pendulum(device: str = NAME, damping: float = 0.0, **solver) -> abd.Simulation:
    """A body that spins on a ball, with a spring or a damper to the world."""
    scene = abd.Scene(gravity=(0, 0, -9.81), solver={"dt": H, **solver})
    scene.add_body("bob", position=(0.3, 0, 0), velocity=(0, 1.5, -12), **KEYS)
    scene.add_joint("spherical", "ball", abd.WORLD, "bob", anchor=(0, 0, 0), enforcement="exact")
    ends = {"parent_anchor": (0, 0, 1), "child_anchor": (0, 0, 0)}
    scene.add_spring("spring", abd.WORLD, "bob", stiffness=100, damping=damping, rest_length=1.0, **ends)
    return abd.Simulation(scene, device=device)


def begun(simulation: abd.Simulation) -> np.ndarray:
    simulation.stepper.beginning.prepare(H, Progress())
    return simulation.stepper.modes.remembers


def test_the_state_is_left_as_it_was():
    simulation = pendulum()
    before = simulation.stepper.state()
    assert begun(simulation).tolist() == [2]
    after = simulation.stepper.state()
    np.testing.assert_array_equal(after.q, before.q)
    assert 0.0 < np.abs(after.qd - before.qd).max() < 0.05 * np.abs(before.qd).max()
    for name in before.extra:
        if name not in ("forces", "remembers", "owed"):
            np.testing.assert_array_equal(after.extra[name], before.extra[name])
    assert (after.time, after.step, after.previous_h, simulation.stepper.work.external) == (0.0, 0, 0.0, 0.0)
    begun(simulation)  # after a step that failed
    np.testing.assert_array_equal(simulation.stepper.qd, after.qd)


def test_forces_at_the_start_are_those_of_statics_and_spin():
    """A pendulum that starts level from rest: half of its weight, for a body without inertia about itself a quarter."""
    scene = abd.Scene(gravity=(0, 0, -9.81), solver={"dt": H})
    scene.add_body("rod", proxy=True, mass=1.0, inertia=(1e-4, 1 / 12, 1 / 12), position=(0.5, 0, 0))
    scene.add_hinge("hinge", abd.WORLD, "rod", anchor=(0, 0, 0), axis=(0, 1, 0), enforcement="exact")
    simulation = abd.Simulation(scene, device=NAME)
    begun(simulation)
    force, mean = simulation.stepper.backend.states.read_forces()[0, [2, 8]]
    assert force == pytest.approx(-9.81 + 0.25 * 9.81, rel=2e-3) and mean == pytest.approx(force, rel=2e-3)


@pytest.mark.parametrize("why", ["damping", "bdf1", "drive", "fixed axis", "touching"])
def test_what_cannot_run_backward_begins_anew(why):
    if why == "damping":
        simulation = pendulum(damping=1.0)
    elif why == "bdf1":
        simulation = pendulum(integrator="bdf1")
    else:
        scene = abd.Scene(gravity=(0, 0, -9.81), solver={"dt": H})
        scene.add_body("bob", position=(0.3, 0, 0), box=(0.1,) * 3, fix=["y"] if why == "fixed axis" else None)
        drive = {"coordinate": {"theta": {"drive": {"mode": "velocity", "target": 1.0}}}} if why == "drive" else {}
        scene.add_hinge("ball", abd.WORLD, "bob", anchor=(0, 0, 0), axis=(0, 1, 0), enforcement="exact", **drive)
        if why == "touching":
            scene.add_body("table", box=(1, 1, 0.1), position=(0.3, 0, -0.10005), kind="static")
        simulation = abd.Simulation(scene, device=NAME)
    assert begun(simulation)[0] == 0


def test_a_checkpoint_before_the_first_step_goes_on_alike():
    one, other = pendulum(), pendulum()
    other.restore(one.checkpoint())
    for simulation in (one, other):
        simulation.run(steps=3)
    np.testing.assert_array_equal(one.stepper.qd, other.stepper.qd)


def test_the_definition_and_the_kernels_begin_alike():
    found = []
    for device in ("numpy", NAME):
        simulation = pendulum(device, tolerance=1e-6)
        begun(simulation)
        found.append((simulation.stepper.qd, simulation.stepper.backend.states.read_forces()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6 * np.abs(one).max())


def test_a_mechanism_that_cannot_be_tried_keeps_nothing_from_others():
    """In Newton iterations that are enough for the slow one of two, it begins as if it were alone."""

    def scene(speed: float) -> abd.Scene:
        scene = abd.Scene(gravity=(0, 0, -9.81), solver={"dt": 0.02, "max_newton": 3})
        keys = KEYS | {"angular_velocity": (0, 0, 0)}
        scene.add_body("bob", position=(0.3, 0, 0), velocity=(0, 0, speed), **keys)
        scene.add_joint("spherical", "ball", abd.WORLD, "bob", anchor=(0, 0, 0), enforcement="exact")
        return scene

    alone, fast = (abd.Simulation(scene(speed), device=NAME) for speed in (-0.3, -7.0))
    slow, quick = alone.stepper.qd[0].copy(), fast.stepper.qd[0].copy()
    both = abd.Simulation(scene(-0.3).replicate(2), device=NAME)
    both.set_velocities(np.stack([slow, quick]))
    assert begun(fast).tolist() == [0] and begun(alone).tolist() == [2]
    assert begun(both).tolist() == [2, 0]
    np.testing.assert_array_equal(both.stepper.qd[0], alone.stepper.qd[0])


def test_a_first_step_that_fails_leaves_the_state_as_it_was(monkeypatch):
    simulation = pendulum()
    before = simulation.stepper.state()

    def failing(h, progress):
        raise StepFailure("blocked", "for this test")

    monkeypatch.setattr(simulation.stepper.substeps, "take", failing)
    with pytest.raises(StepFailure, match="for this test"):
        simulation.step()
    after = simulation.stepper.state()
    np.testing.assert_array_equal(after.qd, before.qd)
    for name, values in before.extra.items():
        np.testing.assert_array_equal(after.extra[name], values, err_msg=name)
