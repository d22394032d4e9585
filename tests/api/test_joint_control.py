"""Joints of a running simulation: locks, ranges, drives, forces, switching, breaking, placing, and their checkpoints."""

import gc
import logging

import numpy as np
import pytest
import warp as wp
from common_scenes import hinged_bars, on_ground
from on_device import NAME

import abd
from abd.api.simulation import Simulation
from abd.errors import SceneError

pytestmark = pytest.mark.device



def pendulum(links: int = 1, device: str = NAME, enforcement: str = "exact", **keys) -> Simulation:
    return Simulation(hinged_bars(links, enforcement, {"tolerance": 1e-6, "integrator": "bdf1"}, **keys), device)


def test_unchanged_rows_keep_their_history_when_rows_are_added():
    quiet, locked = pendulum(2), pendulum(2)
    for sim in (quiet, locked):
        for name in ("hinge0", "hinge1"):
            sim.joints[name].coordinate().lock(0.0)
        sim.run(steps=3)
    locked.joints["hinge1"].coordinate().apply_force(0.0)
    before = locked.joints["hinge0"].wrench()
    assert (np.array(before) == np.array(quiet.joints["hinge0"].wrench())).all()
    reports = [sim.run(steps=1) for sim in (quiet, locked)]
    assert np.abs(quiet.stepper.q - locked.stepper.q).max() < 1e-9
    assert reports[1].newton_iterations <= reports[0].newton_iterations + 1


def test_changes_of_joints_do_not_accumulate_tables():
    """Of addresses, which are the only arrays of this type."""
    sim = pendulum(3)
    theta, counts = sim.joints["hinge1"].coordinate(), []
    for k in range(12):
        theta.set_range(-2.0 - 1e-4 * k, 2.0)
        sim.step()
        gc.collect()
        counts.append(sum(isinstance(one, wp.array) and one.dtype is wp.uint64 for one in gc.get_objects()))
    assert counts[-1] == counts[5]


def test_full_turns_are_counted_across_changes():
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.02})
    scene.add_body("wheel", box=(0.4, 0.4, 0.1), mass=1.0)
    drive = {"theta": {"drive": {"mode": "velocity", "target": 20.0}}}
    scene.add_hinge("axle", "world", "wheel", anchor=(0, 0, 0), axis=(0, 0, 1), enforcement="exact", coordinate=drive)
    sim = abd.run(scene, steps=20, device="numpy")
    theta = sim.joints["axle"].coordinate()
    angle = theta.value
    assert angle == pytest.approx(8.0, abs=1e-3)
    theta.set_rate(0.0)
    theta.lock()
    sim.run(steps=2)
    assert theta.lock_value == angle and abs(theta.value - angle) < 1e-6


@pytest.mark.parametrize("device", ["numpy", NAME])
def test_targets_and_forces(device):
    sim = pendulum(1, device)
    theta = sim.joints["hinge0"].coordinate()
    theta.set_target(0.0)
    sim.run(steps=2)
    assert abs(theta.value) < 1e-7 and theta.drive_force == pytest.approx(-9.81 * 0.5, rel=1e-4)
    theta.set_target(lambda t: t - 0.02)
    sim.run(steps=10)
    assert theta.value == pytest.approx(0.1, abs=1e-6)
    theta.set_rate(-0.5)
    value = theta.value
    sim.run(steps=1)
    assert abs(theta.value - value - 0.01) < 1e-4  # the target function still says where
    sim = pendulum(1, device)
    theta = sim.joints["hinge0"].coordinate()
    for force in (0.0, -9.81 * 0.5):
        theta.apply_force(force)
    sim.run(steps=5)
    assert abs(theta.value) < 1e-3 and theta.drive_force == -9.81 * 0.5


@pytest.mark.parametrize(
    ("device", "enforcement"), [("numpy", "exact"), (NAME, "exact"), (NAME, "penalty"), (NAME, "compliant")]
)
def test_joint_can_be_deactivated_and_reactivated(device, enforcement):
    sim = pendulum(1, device, enforcement)
    joint = sim.joints["hinge0"]
    sim.run(steps=2)
    joint.active = False
    speed = sim.stepper.qd[0, 2]
    sim.run(steps=5)
    assert not joint.active and (joint.wrench()[0] == 0).all()
    assert sim.stepper.qd[0, 2] - speed == pytest.approx(-9.81 * 0.05, rel=1e-3)
    assert joint.residual[0] > 1e-3 and sim.run(steps=1).max_joint_residual == (0.0, 0.0)
    joint.active = True
    report = sim.run(steps=20)
    assert report.max_joint_residual[0] < 1e-3 and np.linalg.norm(joint.wrench()[0]) > 1.0


def test_a_joint_breaks_once(caplog):
    with caplog.at_level(logging.WARNING, logger="abd"):
        sim = pendulum(2, break_force=15.0)
        reports = [sim.step() for _ in range(40)]
    broken = [report for report in reports if report.broken]
    assert len(broken) == 1 and broken[0].broken == ("hinge0",)
    joint = sim.joints["hinge0"]
    assert not joint.active and joint.broken_at == broken[0].time and sim.joints["hinge1"].active
    lines = [record.getMessage() for record in caplog.records if "breaks" in record.getMessage()]
    assert len(lines) == 1 and "hinge0" in lines[0] and f"t = {broken[0].time:.6g}" in lines[0]
    fall = sim.model.bodies.mass @ sim.stepper.qd[:, 2]
    sim.run(steps=1)
    assert sim.model.bodies.mass @ sim.stepper.qd[:, 2] - fall == pytest.approx(-2 * 9.81 * 0.01, rel=1e-6)


@pytest.mark.parametrize(("key", "value", "given"), [("target", float("nan"), "nan"), ("rate", "fast", "'fast'")])
def test_functions_without_a_value_are_refused(key, value, given):
    sim = pendulum()
    with pytest.raises(ValueError, match=f"the {key} of 'theta' at t = .* must be a finite number .*not {given}"):
        getattr(sim.joints["hinge0"].theta, f"set_{key}")(lambda t: value)
        sim.step()


@pytest.mark.parametrize("steps", [1, 2])
def test_forces_of_a_step_do_not_depend_on_joints_that_change_after_it(steps):
    """A joint that breaks or is released changes no reading of others; an impact on the floor and on a limit is in that step."""
    sims = []
    for strength in ({"break_force": 10.0}, {}, {}):
        scene = on_ground(0.4, dt=0.01)
        scene.add_body("box", box=(0.2, 0.2, 0.1), position=(20, 0, 0.15), velocity=(1, 0, -3), angular_velocity=(1, 2, 0))
        scene.add_body("bar", box=(1, 0.1, 0.1), position=(30.5, 0, 3), angular_velocity=(0, 4, 0), velocity=(0, 0, -2))
        limit = {"coordinate": {"theta": {"range_deg": (-90, 1), "limit_restitution": 0.5}}}
        hinge = {"anchor": (30, 0, 3), "axis": (0, 1, 0), "enforcement": "exact"}
        scene.add_joint("hinge", "pivot", abd.WORLD, "bar", **hinge, **limit)
        scene.add_body("bob", box=(0.1, 0.1, 0.1), position=(-5, 0, 3), force=(0, 0, -50.0))
        scene.add_joint("fixed", "weld", abd.WORLD, "bob", anchor=(-5, 0, 3), enforcement="exact", **strength)
        sims.append(abd.Simulation(scene, device=NAME))
    for sim in sims:
        before = sim.bodies["box"].center_velocity
        sim.run(steps=steps)
    sims[2].joints["weld"].active = False
    assert not sims[0].joints["weld"].active
    loads = [[*sim.joints["pivot"].wrench()[0], *sim.bodies["box"].contact_force] for sim in sims]
    assert loads[0] == pytest.approx(loads[1], abs=1e-9) and loads[2] == pytest.approx(loads[1], abs=1e-9)
    if steps == 1:
        gained = sims[1].bodies["box"].center_velocity - before + (0, 0, 0.0981)
        assert loads[0][3:] == pytest.approx(sims[1].bodies["box"].mass * gained / 0.01, rel=1e-3)


def test_velocity_limit_is_reported_once(caplog):
    with caplog.at_level(logging.WARNING, logger="abd"):
        sim = pendulum(coordinate={"theta": {"velocity_limit": 1.0}})
        sim.run(steps=20)
    assert [record.getMessage()[:12] for record in caplog.records] == ["hinge0.theta"]


def test_setting_a_coordinate_moves_the_attached_bodies():
    sim = pendulum(2)
    sim.run(steps=3)
    speed = sim.stepper.qd[:, :3].copy()
    result = sim.joints["hinge0"].set_coordinate("theta", -1.0)
    assert result.converged and sim.joints["hinge0"].coordinate().value == pytest.approx(-1.0, abs=1e-12)
    assert sim.joints["hinge1"].residual[0] < 1e-12 and (sim.stepper.qd[:, :3] == speed).all()
    sim.joints["hinge0"].coordinate().set_deg(-45.0)
    assert sim.joints["hinge0"].coordinates[0] == pytest.approx(-np.pi / 4, abs=1e-12)
    sim.joints["hinge0"].coordinate().set(-1.0 + 4 * np.pi)
    assert sim.joints["hinge0"].coordinates[0] == pytest.approx(-1.0 + 4 * np.pi, abs=1e-9)
    assert sim.run(steps=2).max_joint_residual[0] < 1e-9
    assert sim.joints["hinge0"].coordinates[0] == pytest.approx(-1.0 + 4 * np.pi, abs=0.2)


def test_setting_a_coordinate_refuses_intersections():
    scene = abd.Scene()
    scene.add_body("floor", box=(4, 4, 0.2), kind="static", position=(0, 0, -1))
    scene.add_body("bar", box=(1, 0.1, 0.1), mass=1.0, position=(0.5, 0, 0))
    scene.add_hinge("hinge", "world", "bar", anchor=(0, 0, 0), axis=(0, 1, 0))
    sim = Simulation(scene, "numpy")
    before = sim.stepper.q.copy()
    with pytest.raises(SceneError, match="floor"):
        sim.joints["hinge"].set_coordinate("theta", np.pi / 2)
    assert (sim.stepper.q == before).all()


def empty(gravity=(0.0, -9.81, 0.0), **solver):
    return abd.Scene(gravity=gravity, solver={"dt": 0.01, "integrator": "generalized_alpha", **solver})


def link(scene, name, mass, position, **keys):
    scene.add_body(name, proxy=True, mass=mass, inertia=(0.1 * mass,) * 3, position=position, kappa=1e9, **keys)


def hang(scene, parent, name, mass, x, **keys):
    """A link that can swing about z on an exact hinge half a metre to its left."""
    link(scene, name, mass, (x + 0.5, 0, 0))
    scene.add_hinge(f"on {name}", parent, name, anchor=(x, 0, 0), axis=(0, 0, 1), enforcement="exact", **keys)


@pytest.mark.parametrize("off", [0, 1])
def test_coupling_is_inactive_with_an_inactive_joint(off):
    scene = empty()
    for k in range(2):
        hang(scene, abd.WORLD, f"arm{k}", 1.0, 3.0 * k, active=k != off)
    scene.add_coupling("gear", "on arm0.theta", [{"coordinate": "on arm1.theta", "factor": -1.0}], enforcement="exact")
    simulation = abd.run(scene, steps=5, device="numpy")
    assert simulation.couplings["gear"].force == 0.0
    simulation.joints[f"on arm{off}"].active = True
    assert simulation.backend.system.row_laws.active.all()


@pytest.mark.parametrize("integrator", ["bdf1", "generalized_alpha"])
def test_damping_of_limits_is_in_newton_seconds_per_metre(integrator):
    scene = empty(gravity=(0.0, 0.0, 0.0), integrator=integrator)
    link(scene, "block", 1e6, (0, 0, 0), velocity=(1.0, 0, 0))
    ends = {"range": (-np.inf, 0.001), "limit": "compliant", "limit_compliance": 1e9, "limit_damping": 100.0}
    scene.add_slider("slide", abd.WORLD, "block", anchor=(0, 0, 0), axis=(1, 0, 0), enforcement="exact", coordinate={"z": ends})
    simulation = abd.run(scene, steps=6, device="numpy")
    z = simulation.joints["slide"].coordinate()
    assert z.limit_force == pytest.approx(-100.0 * z.speed, rel=1e-5)


def test_inactive_exact_joint_can_be_open():
    scene = empty()
    link(scene, "arm", 1.0, (0.5, 0, 0))
    ends = {"parent_anchor": (0, 0, 0), "child_anchor": (-0.3, 0, 0), "axis": (0, 0, 1)}
    scene.add_hinge("off", abd.WORLD, "arm", **ends, enforcement="exact", active=False)
    assert not any("closed" in note or "moved" in note for note in scene.compile().notes)


def test_profile_read_outs_use_the_segment_of_the_last_step():
    """This holds after a checkpoint and after a change of another joint, which compiles the rows again."""

    def on_a_slope():
        scene = empty(gravity=(0.0, 0.0, -9.81))
        link(scene, "block", 1.0, (2, 0, 1), fix=["rx", "ry", "rz"])
        origin = {"position": (0, 0, 0)}
        profile = {"segments": [(-1, 0), (0, 0), (1, 0.5), (3, 1.5)], "enforcement": "exact"}
        keys = {"parent_frame": origin, "child_frame": origin, **profile}
        scene.add_joint("segmented_planar_connector", "slope", abd.WORLD, "block", **keys)
        hang(scene, abd.WORLD, "arm", 1.0, 0.0)
        return abd.Simulation(scene, device="numpy")

    simulation, again = on_a_slope(), on_a_slope()
    np.testing.assert_allclose(again.joints["slope"].residual, 0.0, atol=1e-12)
    simulation.run(steps=5)
    force = simulation.joints["slope"].wrench()[0]
    np.testing.assert_allclose(force, np.array([-0.4, 0.0, 0.8]) * 9.81, atol=1e-3)
    again.restore(simulation.checkpoint())
    np.testing.assert_array_equal(again.joints["slope"].wrench()[0], force)
    simulation.joints["on arm"].coordinate().lock()
    np.testing.assert_allclose(simulation.joints["slope"].wrench()[0], force, rtol=1e-9)
    assert simulation.joints["slope"].residual[0] < 1e-8
