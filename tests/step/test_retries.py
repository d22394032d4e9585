"""A failed frame leaves the state unchanged to the last bit; retries by substeps."""

import numpy as np
import pytest
from checkpoints import assert_goes_on, assert_same
from common_scenes import on_ground
from on_device import NAME

import abd
from abd.backends.recorded import search
from abd.errors import StepFailure
from abd.step.newton import Minimisation

pytestmark = pytest.mark.device

DT = 0.01


def workshop() -> abd.Simulation:
    """A sliding box, an exact hinge with a drive, a limit and friction, and a joint whose measures follow the pose."""
    scene = on_ground(0.3, dt=DT, d_hat=2e-3, retries=2, sleep_speed=1e-3)
    scene.add_body("box", box=(0.1,) * 3, position=(3, 0, 0.051), velocity=(0.5, 0, 0))
    scene.add_body("arm", box=(0.4, 0.1, 0.1), position=(0.2, 0, 1))
    scene.add_body("hand", box=(0.4, 0.1, 0.1), position=(0.6, 0, 1))
    drive = {"mode": "pd", "target": "0.2*sin(5*t)", "stiffness": 50.0, "damping": 2.0, "effort": 4.0}
    shoulder = {"theta": {"range": (-1.0, 1.0), "friction": 0.1, "drive": drive}}
    scene.add_hinge("shoulder", abd.WORLD, "arm", anchor=(0, 0, 1), axis=(0, 1, 0), enforcement="exact", coordinate=shoulder)
    profile = [(-1.0, 0.0), (0.001, 0.0), (1.0, 1.0)]
    keys = {"anchor": (0.4, 0, 1), "axis": (0, 1, 0), "enforcement": "exact", "segments": profile}
    scene.add_joint("segmented_planar_connector", "cam", "arm", "hand", **keys)
    return scene


@pytest.fixture(params=[NAME, "numpy"])
def pair(request) -> tuple[abd.Simulation, abd.Simulation]:
    pair = tuple(abd.Simulation(workshop(), device=request.param) for _ in range(2))
    for _ in range(3):
        for one in pair:
            one.step()
    return pair


@pytest.mark.parametrize(("after", "jump"), [(0, False), (1, True), (2, True)], ids=["all", "a quarter", "a half"])
def test_failed_frame_does_not_change_the_state(pair, after, jump, monkeypatch):
    """After a jump of gravity the arm returns to generalized alpha, with velocities that fit its joint."""
    failing, other = pair
    for one in pair if jump else ():
        one.gravity = (0.0, 0.0, -5.0)
        one.step()
    before = failing.frame
    solve, good = Minimisation.solve, []

    def refuse(self):
        failure = solve(self)
        if self.h > 0.3 * DT or len(good) == after:
            return StepFailure("not_converged", "on purpose")
        good.append(self.h)
        return failure

    with monkeypatch.context() as patch:
        patch.setattr(Minimisation, "solve", refuse)
        with pytest.raises(StepFailure):
            failing.step()
    assert len(good) == after and failing.frame == other.frame == before
    assert_same(failing, other)
    np.testing.assert_array_equal(failing.joint_readings().wrench, other.joint_readings().wrench)
    for _ in range(2):
        one, two = failing.step(), other.step()
        assert one.energy == two.energy
    assert_same(failing, other)


def test_substeps_complete_a_frame(pair, monkeypatch):
    """Two halves replace a frame that fails: work adds up, and the report is that of the end."""
    halved, _ = pair
    solve = Minimisation.solve

    def refuse(self):
        return StepFailure("not_converged", "on purpose") if self.h > 0.6 * DT else solve(self)

    monkeypatch.setattr(Minimisation, "solve", refuse)
    time = halved.time
    report = halved.step()
    assert report.substeps == 2 and halved.time == pytest.approx(time + DT, rel=1e-12)
    assert report.energy["joint"] == pytest.approx(halved.joint_readings().energy.sum(), rel=1e-9)
    assert report.max_joint_residual == pytest.approx(halved.joint_readings().worst_residual, rel=1e-6)


@pytest.mark.parametrize("device", [NAME, "numpy"])
def test_shorter_substep_follows_a_step_that_no_fraction_keeps_within_limits(device, monkeypatch):
    """Implicit Euler moves a falling body by g h^2, beyond its range, but by 3/4 of that in two halves."""
    monkeypatch.setattr(search, "LIMIT_CUTS", 1)
    scene = abd.Scene(solver={"dt": 0.1, "integrator": "bdf1"})
    scene.add_body("weight", box=(0.1,) * 3)
    fall = 9.81 * 0.1**2
    keys = {"anchor": (0, 0, 0), "axis": (0, 0, 1), "coordinate": {"z": {"range": (-0.95 * fall, 1.0)}}}
    scene.add_joint("slider", "rail", abd.WORLD, "weight", **keys)
    simulation = abd.Simulation(scene, device=device)
    report = simulation.step()
    assert report.rejections == {"limit_step": 1} and report.substeps == 2
    assert simulation.bodies["weight"].position[2] == pytest.approx(-0.75 * fall, rel=1e-3)


def two_places() -> abd.Simulation:
    """A box that would pass a plate within a step, and far from it a double pendulum, a body that flies and one that slides."""
    scene = on_ground(dt=DT)
    tilted = {"axis": (0, 1, 0), "degrees": 10}
    scene.add_body("plate", box=(0.02, 1.0, 1.0), position=(0, 0, 2), kind="static", axis_angle=tilted)
    moves = {"velocity": (60, 0, 0), "angular_velocity": (30, 50, 10)}
    scene.add_body("thrown", box=(0.2,) * 3, position=(-0.8, 0.05, 2), **moves)
    exact = {"axis": (0, 1, 0), "enforcement": "exact"}
    scene.add_body("arm", box=(0.4, 0.05, 0.05), position=(50.2, 0, 3))
    scene.add_body("hand", box=(0.4, 0.05, 0.05), position=(50.6, 0, 3))
    friction = {"theta": {"friction": 0.1, "range": (-2.0, 2.0)}}
    scene.add_hinge("shoulder", abd.WORLD, "arm", anchor=(50, 0, 3), coordinate=friction, **exact)
    scene.add_hinge("elbow", "arm", "hand", anchor=(50.4, 0, 3), **exact)
    scene.add_body("flying", box=(0.1, 0.2, 0.3), position=(55, 0, 4), angular_velocity=(3, 5, 2))
    scene.add_body("slider", box=(0.2,) * 3, position=(60, 0, 0.1), velocity=(2, 0, 0))
    return abd.Simulation(scene, device=NAME)


def test_run_with_retries_resumes_bitwise():
    first, second = two_places(), two_places()
    assert any(first.step().rejected_paths for _ in range(10))
    assert_goes_on(first, second)
