"""Changes of a running simulation are in its checkpoints and copies, survive recompiling, and end with a reset."""

import copy
import functools
import pickle

import numpy as np
import pytest
from checkpoints import assert_same
from common_scenes import on_ground
from on_device import NAME

import abd
from abd.io.checkpoint import from_bytes, to_bytes
from abd.joints.rows.change import JointChangeError


def workshop() -> abd.Scene:
    """Sliding boxes on each other, an arm with a soft elbow, a chain of copies, and a plate that is moved."""
    scene = on_ground(0.4)
    for name, z in (("low", 0.101), ("high", 0.302)):
        scene.add_body(name, box=(0.2, 0.2, 0.2), position=(0, 0, z), velocity=(0.5, 0, 0))
    scene.add_body("plate", box=(0.1, 1, 1), kind="kinematic", motion={"velocity": (0, 0, 0)}, position=(-5, 0, 1))
    scene.add_body("upper", box=(1, 0.1, 0.1), mass=1.0, position=(5.5, 0, 2))
    scene.add_body("lower", box=(0.1, 0.1, 0.6), mass=0.5, position=(6, 0, 1.7))
    scene.add_hinge("shoulder", "world", "upper", anchor=(5, 0, 2), axis=(0, 1, 0), enforcement="exact")
    soft = {"enforcement": "compliant", "compliance": 1e-6, "damping": 10.0}
    scene.add_hinge("elbow", "upper", "lower", anchor=(6, 0, 2), axis=(0, 1, 0), **soft)
    scene.add_body("link", box=(0.8, 0.1, 0.1), position=(9, 0, 3), repeat={"count": (3, 1, 1), "step": (1, 0, 0)})
    hinge = {"anchor": (9.5, 0, 3), "axis": (0, 1, 0), "repeat": {"count": (2, 1, 1)}, "break_force": 1e9}
    scene.add_hinge("hinge", "link_0_0_0", "link_1_0_0", **hinge)
    return scene


def shoulder(sim):
    return sim.joints["shoulder"].theta


def move_frames(sim):
    moved = sim.joints["shoulder"].T_DW
    moved[:3, 3] += 0.2 * moved[:3, 0]
    sim.joints["shoulder"].set_frames(T_CW=moved, T_DW=moved)


def move_spring(sim):
    sim.bodies["low"].spring_to((0.3, 0, 1), 50.0, 2.0, at=(0.1, 0, 0)).point = (0, 0.3, 1)


CHANGES = {
    "nothing": lambda sim: None,
    "force": lambda sim: sim.bodies["low"].apply_force((0, 0, 3), at=(0, 0.1, 0)),
    "force of some steps": lambda sim: sim.bodies["low"].apply_force((0, 0, 3), steps=6),
    "torque": lambda sim: sim.bodies["lower"].apply_torque((0, 1, 0)),
    "effort": lambda sim: shoulder(sim).apply_force(5.0),
    "effort of some steps": lambda sim: shoulder(sim).apply_force(5.0, steps=6),
    "target": lambda sim: shoulder(sim).set_target(0.3),
    "lock": lambda sim: shoulder(sim).lock(),
    "soft range": lambda sim: (shoulder(sim).set_range(-1.0, 0.05), shoulder(sim).set_limit(compliance=1e-3, damping=5.0)),
    "range without the present value": lambda sim: shoulder(sim).set_range(-2.0, -0.03),
    "frames": move_frames,
    "compliance": lambda sim: setattr(sim.joints["elbow"], "compliance", (2e-4, 3e-4)),
    "exact joint that becomes soft": lambda sim: setattr(sim.joints["shoulder"], "linear_compliance", 1e-5),
    "inactive joint": lambda sim: setattr(sim.joints["elbow"], "active", False),
    "inactive copy": lambda sim: setattr(sim.joints["hinge_1_0_0"], "active", False),
    "disabled body": lambda sim: setattr(sim.bodies["lower"], "enabled", False),
    "disabled pair": lambda sim: setattr(sim.pair("low", "high"), "enabled", False),
    "gravity": lambda sim: setattr(sim, "gravity", (0, 0, -2.0)),
    "friction": lambda sim: setattr(sim.materials["default"], "mu", 0.9),
    "spring": move_spring,
    "removed spring": lambda sim: sim.bodies["low"].spring_to((0.3, 0, 1), 5.0).remove(),
    "spring on a disabled body": lambda sim: (move_spring(sim), setattr(sim.bodies["low"], "enabled", False)),
    "move": lambda sim: sim.bodies["plate"].move_to(position=(-5, 0.05, 1), duration=0.1),
    "pose": lambda sim: setattr(sim.bodies["high"], "position", (0, 0, 0.4)),
    "velocity": lambda sim: setattr(sim.bodies["upper"], "angular_velocity", (0, 2, 0)),
}


ON_NUMPY = [pytest.param("lock", "numpy", marks=pytest.mark.slow)]
"""Those that are also tested with the definitions, which take several times as long."""


@functools.cache
def fresh(device: str) -> abd.Simulation:
    """Return an unchanged simulation after three steps."""
    return abd.run(workshop(), steps=3, device=device)


CASES = [pytest.param(name, NAME, marks=pytest.mark.device) for name in CHANGES]


@pytest.mark.parametrize(("name", "device"), [*CASES, *ON_NUMPY])
def test_changes_continue_bit_for_bit_and_end_with_a_reset(name, device):
    sim, other = (abd.Simulation(workshop(), device=device) for _ in range(2))
    angle = sim.add_sensor("angle", "coordinate", ("shoulder", "theta"))
    sim.run(steps=2)
    CHANGES[name](sim)
    sim.run(steps=2)
    other.restore(from_bytes(to_bytes(sim.checkpoint())))
    copies = other, copy.deepcopy(sim)
    recompiled, before = sim.recompiled(), sim.stepper.q.copy()
    for one in (*copies, recompiled):
        one.run(steps=4)
    np.testing.assert_array_equal(sim.stepper.q, before, err_msg="a copy does not affect the original")
    sim.run(steps=4)
    for one in copies:
        assert_same(sim, one)
        for key, joint in sim.joints.items():
            np.testing.assert_array_equal(joint.wrench(), one.joints[key].wrench(), err_msg=key)
    np.testing.assert_allclose(recompiled.stepper.q, sim.stepper.q, atol=1e-6)
    sim.reset()
    assert len(angle.time) == 1 and sim.time == 0.0
    sim.run(steps=3)
    assert_same(sim, fresh(device))


def test_functions_of_time_are_not_in_checkpoints():
    sim = abd.Simulation(workshop(), device="numpy")
    shoulder(sim).set_target(np.sin)
    with pytest.raises(JointChangeError, match="'theta' of joint 'shoulder'"):
        sim.checkpoint()


MOTIONS = (
    {"velocity": (0.0, 0.0, 0.1), "until": 0.03},
    {"keyframes": [{"time": 0.0}, {"time": 1.0, "position": (0.0, 0.0, 1.0)}], "after": "continue"},
    {"formulas": {"z": "0.1*sin(t)"}},
)


@pytest.mark.parametrize("motion", [None, *MOTIONS], ids=("none", "velocity", "keyframes", "formulas"))
def test_a_pickled_simulation_continues(motion):
    scene = abd.load("pendulum")
    if motion is not None:
        scene.add_body("lift", kind="kinematic", box=(1.0, 1.0, 0.1), position=(0.0, 0.0, -3.0), motion=motion)
    sim = abd.Simulation(scene, device=NAME)
    sim.run(steps=3)
    other = pickle.loads(pickle.dumps(sim))
    for one in (sim, other):
        one.run(steps=3)
    assert_same(sim, other)


def pendulum(worlds: int = 1) -> abd.Scene:
    """A ball far from a pendulum on an exact hinge; both are free of contact."""
    scene = abd.Scene(solver={"dt": 0.01})
    scene.add_body("ball", sphere={"radius": 0.1}, position=(50, 0, 0), velocity=(1, 0, 0))
    scene.add_body("bar", box=(1, 0.1, 0.1), position=(0.5, 0, 0))
    scene.add_hinge("pivot", abd.WORLD, "bar", anchor=(0, 0, 0), axis=(0, 1, 0), enforcement="exact")
    return scene.replicate(worlds) if worlds > 1 else scene


@pytest.mark.parametrize("worlds", [1, 2])
@pytest.mark.parametrize("change", ["linear_velocity", "position"])
def test_a_changed_body_does_not_disturb_others(change, worlds):
    scene = pendulum(worlds)
    one, other = abd.Simulation(scene, device=NAME), abd.Simulation(scene, device=NAME)
    ball = one.model.bodies.names.index("ball" if worlds == 1 else "w0_ball")
    others = np.arange(len(one.bodies)) != ball
    for k in range(20):
        if k % 3 == 1:
            setattr(one.bodies[one.model.bodies.names[ball]], change, (1.0 + k, 40.0, 0.0))
        one.step(), other.step()
    q, expected = one.state.q.numpy(), other.state.q.numpy()
    assert np.array_equal(q[others], expected[others]) and not np.array_equal(q[ball], expected[ball])


def test_velocities_that_do_not_change_do_not_restart_the_integrator():
    one, other = (abd.Simulation(pendulum(), device=NAME) for _ in range(2))
    for _ in range(10):
        one.set_velocities(one.state.qd.numpy())
        one.step(), other.step()
    assert np.array_equal(one.state.q.numpy(), other.state.q.numpy())


def test_a_restored_run_has_the_tolerances_of_the_uninterrupted_one():
    """The tolerances of joints do not depend on gravity and loads at the time when the rows were built."""
    def run():
        return abd.Simulation(pendulum(), device=NAME)

    one, other = run(), run()
    one.gravity = (0, 0, -0.02)
    one.bodies["bar"].apply_force((0, 0, 3.0))
    one.run(steps=2)
    one.joints["pivot"].theta.set_range(-3, 3)
    one.run(steps=2)
    other.restore(one.checkpoint())
    one.run(steps=20), other.run(steps=20)
    assert np.array_equal(one.state.q.numpy(), other.state.q.numpy())


def test_an_exact_joint_opened_by_a_given_pose_is_reported(caplog):
    sim = abd.Simulation(pendulum(), device=NAME)
    sim.bodies["bar"].position = (0.5, 0.0, 0.2)
    sim.bodies["bar"].position = (0.5, 0.0, 0.1)
    sim.step()
    sim.step()
    found = [record.message for record in caplog.records if "is open by" in record.message]
    assert len(found) == 1 and "exact joint 'pivot' is open by 0.1 m, 0 rad: the next step closes it" in found[0]
