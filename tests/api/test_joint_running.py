"""Read-outs and changes of joints in a running simulation, which checkpoints keep."""

import numpy as np
import pytest
from on_device import NAME, follow

import abd
from abd.api.simulation import Simulation
from abd.joints.custom.custom import RowFlags
from abd.joints.rows.build import build_system
from abd.joints.rows.laws import Law

pytestmark = pytest.mark.device


def arm(device: str = NAME, enforcement: str = "exact", second: str = "cylindrical", **keys) -> Simulation:
    """A bar on a hinge about y, and a second one at its end."""
    scene = abd.Scene(solver={"dt": 0.01, "tolerance": 1e-7, "integrator": "bdf1"})
    scene.add_body("upper", box=(1, 0.1, 0.1), mass=1.0, position=(0.5, 0, 0))
    scene.add_body("lower", box=(0.1, 0.1, 0.6), mass=0.5, position=(1, 0, -0.3))
    scene.add_hinge("shoulder", "world", "upper", anchor=(0, 0, 0), axis=(0, 1, 0), enforcement=enforcement, **keys)
    axis = {} if second == "fixed" else {"axis": (0, 1, 0)}
    scene.add_joint(second, "elbow", "upper", "lower", anchor=(1, 0, 0), enforcement="exact", **axis)
    return Simulation(scene, device)


def test_bodies_of_a_joint():
    sim = arm()
    elbow, shoulder = sim.joints["elbow"], sim.joints["shoulder"]
    assert (elbow.parent, elbow.child, shoulder.parent) == ("upper", "lower", "world")
    assert elbow.other_body("upper") == "lower" and shoulder.other_body("upper") == "world"
    assert elbow.connects("upper") and elbow.connects("lower", "upper") and not shoulder.connects("lower")


def test_all_coordinates_at_once():
    sim = arm()
    elbow = sim.joints["elbow"]
    assert elbow.coordinate_names == ("z", "theta") and elbow.theta is elbow.coordinate("theta") and "theta" in dir(elbow)
    elbow.coordinates = (0.2, -0.5)
    assert np.allclose(elbow.coordinates, (0.2, -0.5), atol=1e-12)
    elbow.coordinates_deg = (0.1, 90.0)
    assert np.allclose(elbow.coordinates, (0.1, np.pi / 2), atol=1e-12)
    assert np.allclose(elbow.coordinates_deg, (0.1, 90.0), atol=1e-10)
    assert elbow.set_coordinates([0.0, 0.25]).converged
    sim.set_coordinates({("elbow", "theta"): 0.5, ("shoulder", 0): -0.3})
    assert elbow.coordinate("theta").value == pytest.approx(0.5, abs=1e-12)
    assert sim.joints["shoulder"].coordinate().value == pytest.approx(-0.3, abs=1e-12)
    elbow.coordinates[0] = 7.0
    assert abs(elbow.coordinates[0]) < 1e-9, "what is read is a copy"


def test_frames_are_read_and_set(caplog):
    """Both frames of the elbow are moved along the bar and turned; frames that are set apart are pulled together."""
    sim = arm(second="hinge")
    sim.run(steps=3)
    elbow, before = sim.joints["elbow"], sim.stepper.q.copy()
    assert np.allclose(np.linalg.inv(elbow.T_DW) @ elbow.T_CW, elbow.T_CD, atol=1e-12)
    assert np.abs(elbow.position - elbow.T_DW[:3, 3]).max() < 1e-5
    moved = elbow.T_DW
    moved[:3, 3] -= 0.2 * moved[:3, 0]
    elbow.set_frames(T_CW=moved, T_DW=moved)
    assert (sim.stepper.q == before).all()
    assert np.allclose(elbow.T_CW, moved, atol=1e-9) and np.allclose(elbow.T_DW, moved, atol=1e-9)
    assert np.abs(elbow.coordinates).max() < 1e-9 and elbow.residual[0] < 1e-4
    sim.run(steps=5)
    assert elbow.residual[0] < 1e-8
    sim = arm(enforcement="exact", second="hinge")
    elbow = sim.joints["elbow"]
    apart = elbow.T_CW
    apart[:3, 3] += (0, 0, 0.05)
    elbow.T_CW = apart
    assert "has new frames and is open by 0.05 m" in caplog.text
    assert np.allclose(elbow.displacement, (0, 0, 0.05), atol=1e-9)
    sim.run(steps=2)
    assert np.abs(elbow.displacement).max() < 1e-7


@pytest.mark.parametrize("dt", [0.01, 0.0005])
@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("fixed", {"enforcement": "compliant", "compliance": 1e-2, "damping": 50.0}),
        ("hinge", {"enforcement": "compliant", "compliance": 1e-2, "damping": 50.0}),
        ("hinge", {"coordinate": {"theta": {"damping": 50.0}}}),
        ("hinge", {"coordinate": {"theta": {"drive": {"mode": "pd", "stiffness": 10.0, "damping": 50.0}}}}),
        ("cylindrical", {"coordinate": {"z": {"friction": 5.0}, "theta": {"damping": 50.0}}}),
        ("bushing", {"stiffness": 100.0, "damping": 50.0}),
    ],
)
def test_new_joint_frames_exert_no_force(kind, keys, dt):
    apart = {"position": (0, 0, 0.01), "axis_angle": {"axis": (0, 0, 1), "degrees": 2}}
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt})
    scene.add_body("cube", box=(0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0))
    frames = {"parent_frame": apart, "child_frame": {"position": (0, 0, 0)}, "active": False}
    scene.add_joint(kind, "j", abd.WORLD, "cube", **frames, **keys)
    sim = abd.Simulation(scene, device=NAME)
    joint = sim.joints["j"]
    sim.run(steps=3)
    joint.T_DW = joint.T_CW
    joint.active = True
    sim.run(steps=1)
    assert np.abs(joint.wrench()).max() < 1e-6


@pytest.mark.parametrize("device", [pytest.param("numpy", marks=pytest.mark.slow), NAME])
def test_compliance_and_damping_while_running(device):
    """A hinge that becomes soft sinks by compliance times load; rows beyond the end of a list do not change."""
    sim = arm(device, enforcement="penalty", second="fixed")
    shoulder = sim.joints["shoulder"]
    sim.run(steps=1)
    assert shoulder.enforcement == "penalty" and (shoulder.compliance == 0.0).all() and len(shoulder.compliance) == 5
    shoulder.coordinate().lock(0.0)
    shoulder.compliance, shoulder.damping = 1e-4, 200.0
    assert shoulder.enforcement == "compliant" and (shoulder.compliance == 1e-4).all()
    shoulder.compliance = (2e-4, 3e-4)
    assert shoulder.compliance.tolist() == [2e-4, 3e-4, 1e-4, 1e-4, 1e-4]
    assert shoulder.linear_compliance is None and shoulder.rotary_compliance == 1e-4
    shoulder.rotary_compliance = 0.0
    shoulder.linear_compliance = 1e-4
    assert shoulder.damping == pytest.approx([2 * np.sqrt(1.0 / 1e-4)] * 3 + [0.0] * 2), "critical, as in a scene"
    assert shoulder.compliance.tolist() == [1e-4] * 3 + [0.0] * 2 and shoulder.linear_compliance == 1e-4
    shoulder.damp_critically(0.7)
    assert shoulder.damping == pytest.approx([1.4 * np.sqrt(1.0 / 1e-4)] * 3 + [0.0] * 2), "by its ratio"
    shoulder.damp_critically()
    sim.run(steps=40)
    assert shoulder.displacement[2] == pytest.approx(-1.5 * 9.81 * 1e-4, rel=2e-2)


def test_limits_can_change_between_barrier_and_compliant():
    sim = arm()
    theta = sim.joints["shoulder"].coordinate()
    theta.set_range_deg(-30.0, 10.0)
    assert theta.range == pytest.approx((np.radians(-30), np.radians(10))) and theta.range_deg == pytest.approx((-30, 10))
    assert theta.limit == "barrier" and theta.limit_compliance == 0.0
    theta.set_limit(compliance=1e-3, damping=5.0)
    assert (theta.limit, theta.limit_compliance, theta.limit_damping) == ("compliant", 1e-3, 5.0)
    sim.run(steps=90)
    over = theta.value - np.radians(10)
    assert over > 0.0 and theta.limit_force == pytest.approx(-over / 1e-3, rel=0.3)
    theta.set_limit(damping=-0.5)
    about_y = (1.0 + 0.01) / 12.0 + 0.25
    assert theta.limit_damping == pytest.approx(np.sqrt(about_y / 1e-3), rel=1e-3), "half of critical damping"
    theta.set_limit(compliance=0.0)
    assert theta.limit == "barrier"
    with pytest.raises(ValueError, match="needs a compliance"):
        theta.set_limit(damping=-1.0)
    sim.run(steps=30)
    assert theta.value < np.radians(10)
    theta.set_range(None, None)
    assert theta.range == (-np.inf, np.inf) and sim.joints["shoulder"].num_unilateral == 0


@pytest.mark.parametrize("device", [pytest.param("numpy", marks=pytest.mark.slow), NAME])
def test_range_without_the_present_value_moves_it_inside(device):
    """A coordinate outside its new range moves inside against the weight, never farther out."""
    sim = arm(device, second="fixed")
    theta = sim.joints["shoulder"].coordinate()
    sim.run(steps=15)
    value = theta.value
    assert value > 0.1
    theta.set_range(-1.0, value - 0.03)
    assert theta.range[1] == value - 0.03 and theta.range_violation == pytest.approx(0.03)
    sim.run(steps=1)
    assert theta.limit_engagement == -1 and theta.limit_force < 0.0
    sim.run(steps=2)
    values = follow(sim, 14, lambda _: theta.value)
    assert max(values) < value + 0.02 and values[-1] < theta.range[1] and max(values[12:]) < theta.range[1] + 1e-12
    assert theta.settings.upper_end is None


@pytest.mark.parametrize(("returning", "other"), [("shoulder", "elbow"), ("elbow", "shoulder")])
def test_setting_a_coordinate_moves_no_other_into_its_range(returning, other):
    sim = arm(second="hinge")
    sim.joints[returning].theta.set(0.8)
    sim.joints[returning].theta.set_range(-0.2, 0.2)
    sim.joints[other].theta.set(0.3)
    assert sim.coordinates.tolist() == pytest.approx([0.8, 0.3] if returning == "shoulder" else [0.3, 0.8], abs=1e-9)
    sim.joints[returning].theta.set(0.7)
    assert sim.joints[returning].theta.value == pytest.approx(0.2, abs=1e-5), "a request ends in the range"


def test_rows_by_name_with_locks_and_ranges():
    """A locked hinge carries the moment of the weights, and after its release the limit does."""
    sim = arm(second="fixed")
    shoulder = sim.joints["shoulder"]
    theta = shoulder.coordinate()
    theta.lock(0.0)
    sim.run(steps=2)
    moment = 9.81 * (1.0 * 0.5 + 0.5 * 1.0)
    assert shoulder.num_bilateral == 6 and shoulder.num_unilateral == 0 and shoulder.num_constraints == 6
    assert theta.lock_force == pytest.approx(-moment, rel=1e-4)
    lock = shoulder.row("theta.lock")
    assert lock.force == theta.lock_force and lock.motion_type == "rotary" and abs(lock.value) < 1e-7
    assert lock.flags == RowFlags.BILATERAL | RowFlags.ROTARY | RowFlags.LOCKED
    assert [one.name for one in shoulder.rows] == ["x", "y", "z", "rx", "ry", "theta.lock"]
    assert [one.motion_type for one in shoulder.rows] == ["linear"] * 3 + ["rotary"] * 3
    assert len(shoulder.multipliers) == 5 and shoulder.wrench()[1][1] == pytest.approx(theta.lock_force, rel=1e-6)
    assert shoulder.bilateral_forces[-1] == theta.lock_force and len(shoulder.unilateral_forces) == 0
    force = shoulder.wrench(frame="D")[0]
    assert np.allclose([shoulder.row(name).force for name in "xyz"], force, rtol=1e-6, atol=1e-6)
    theta.unlock()
    assert theta.range == (-np.inf, np.inf) and theta.limit_force == theta.limit_engagement == 0
    theta.set_range(-0.5, 0.05)
    assert theta.clip_to_range(0.7) == 0.05 and theta.range_violation == 0.0
    assert max(follow(sim, 60, lambda _: theta.value)) < 0.05
    upper, lower = shoulder.row("theta.upper"), shoulder.row("theta.lower")
    assert upper.flags == RowFlags.ROTARY | RowFlags.LIMIT and upper.engaged == -1 and lower.engaged == 0
    assert upper.force == theta.limit_force == pytest.approx(-moment, rel=2e-2) and lower.force == 0.0
    assert upper.value == pytest.approx(0.05 - theta.value) and upper.value > 0.0
    assert lower.value == pytest.approx(theta.value + 0.5)
    assert shoulder.unilateral_forces.tolist() == [0.0, theta.limit_force]
    assert shoulder.num_unilateral == shoulder.num_engaged == 1 and shoulder.engagement == {"theta": -1}


def test_the_twist_of_the_admissible_frame():
    """G of a hinge rotates about its axis only, whatever the motion of C relative to it."""
    sim = arm(enforcement="compliant", second="hinge", compliance=1e-4)
    joint = sim.joints["shoulder"]
    sim.run(steps=5)
    before = joint.T_GD
    sim.run(steps=1)
    rate = joint.velocity_GD
    assert np.abs(rate[[0, 1, 2, 3, 4]]).max() < 1e-7
    assert rate[5] == pytest.approx(joint.rates[0], rel=1e-4)
    turn = before[:3, :3].T @ joint.T_GD[:3, :3]
    assert rate[5] == pytest.approx(np.arctan2(turn[1, 0], turn[0, 0]) / 0.01, rel=2e-2)


@pytest.mark.parametrize(
    ("solver", "expected"),
    [
        ({}, [0.01, 0.01, 0.002, 0.002, 0.03, 0.03]),
        ({"d_hat": 1e-3}, [0.01, 0.01, 1e-3, 1e-3, 0.03, 0.03]),
        ({"limit_angle": 0.02, "limit_distance": 0.05}, [0.02, 0.02, 0.05, 0.05, 0.03, 0.03]),
    ],
)
def test_distances_of_limits_are_inherited_from_the_scene(solver, expected):
    scene = abd.Scene(solver=solver)
    for k, name in enumerate("ab"):
        scene.add_body(name, box=(1, 0.1, 0.1), position=(0, k, 0))
    scene.add_hinge("h", "world", "a", anchor=(0, 0, 0), axis=(0, 1, 0), range=(-2, 2))
    own = {"z": {"range": (-2, 2), "limit_distance": 0.03}}
    scene.add_slider("short", "world", "b", anchor=(0, 1, 0), axis=(0, 1, 0), range=(-2, 2), length=0.2)
    scene.add_slider("s", "world", "b", anchor=(0, 1, 0), axis=(0, 1, 0), coordinate=own)
    laws = build_system(scene.compile()).row_laws
    assert laws.distance[laws.law == Law.BARRIER].tolist() == expected
