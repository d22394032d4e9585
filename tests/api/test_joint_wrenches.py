"""Joint wrenches of all types equal the changes of momentum of both bodies, for every enforcement and mask."""

import numpy as np
import pytest
from on_device import follow

import abd
from abd.api.simulation import Simulation
from abd.joints.types import TYPES

REACH = np.array([0.9, 0.3, 0.1])
ANCHOR = np.array([0.45, 0.2, -0.1])
AXIS = np.array([2.0, -1.0, 2.0]) / 3.0
LOAD, COUPLE = np.array([12.0, -7.0, 5.0]), np.array([0.4, 0.7, -0.5])
KEYS = {
    "distance": {"distance": 0.9},
    "rope": {"distance": 0.88},
    "spring": {"stiffness": 100.0},
    "bushing": {"stiffness": 1000.0},
    "ellipsoid": {"radii": (0.6, 0.4, 0.5)},
    "ellipsoid3": {"radii": (0.6, 0.4, 0.5)},
    "general": {"constrained": ("x", "z", "ry")},
    "screw": {"lead": 0.05},
    "damper": {"linear_damping": 20.0, "rotary_damping": 1.0},
    "skewed_universal": {"skew": 0.3},
    "segmented_planar_connector": {"segments": ((-2.0, 0.0), (2.0, 0.0))},
}


def frames(kind: str, place: np.ndarray) -> dict:
    if kind in ("distance", "rope", "spring"):  # between two points that differ
        return {"parent_anchor": (0.1, 0.05, 0.0), "child_anchor": (0.0, 0.1, 0.0)}
    if kind.startswith("ellipsoid"):
        return {"parent_anchor": (0.2, 0.1, -0.3), "child_anchor": (-0.7, -0.2, -0.0)}
    plain = kind in ("spherical", "pin", "fixed")
    return {"anchor": tuple(place + ANCHOR)} | ({} if plain else {"axis": tuple(AXIS)})


def scene_of(joints: dict[str, tuple[str, dict]], enforcement: str) -> abd.Scene:
    """Pairs of blocks, three metres from the next ones: the parent turns, the child is pulled, a joint is between them."""
    scene = abd.Scene(solver={"integrator": "bdf1", "dt": 0.005, "tolerance": 1e-10, "joint_tolerance": 1e-11})
    turning = {"velocity": (0.3, -0.2, 0.1), "angular_velocity": (1.0, -2.0, 1.5)}
    for k, (name, (kind, keys)) in enumerate(joints.items()):
        place = 3.0 * np.array([k % 6, k // 6, 0])
        scene.add_body(f"{name}_base", box=(0.4, 0.3, 0.2), mass=2.0, position=place, **turning)
        scene.add_body(
            f"{name}_tip", box=(0.3, 0.2, 0.4), mass=3.0, position=place + REACH, force=LOAD, torque=COUPLE
        )  # fmt: skip
        soft = {"compliance": 1e-5, "damping": 20.0} if enforcement == "compliant" else {}
        soft = {} if "stiffness" in KEYS.get(kind, {}) else soft
        placed = {**frames(kind, place), **KEYS.get(kind, {}), **soft, **keys}
        scene.add_joint(kind, name, f"{name}_base", f"{name}_tip", enforcement=enforcement, **placed)
    return scene


def pair(kind: str, enforcement: str, integrator: str = "bdf1", **keys) -> Simulation:
    """One of them, less exactly; the joint's name is "joint"."""
    scene = scene_of({"joint": (kind, keys)}, enforcement)
    scene.solver.tolerance, scene.solver.joint_tolerance, scene.solver.integrator = 1e-7, 1e-9, integrator
    return Simulation(scene, "cpu")


def loads(sim: Simulation, steps: int = 3) -> np.ndarray:
    """(n, 2, 3) force, and torque about the centre of mass, that parents and children felt from joints in the last step."""
    bodies, h = sim.model.bodies, sim.model.settings.dt

    def momenta() -> np.ndarray:
        q, qd = sim.stepper.q, sim.stepper.qd
        columns, rates = (one[:, 3:].reshape(-1, 3, 3).transpose(0, 2, 1) for one in (q, qd))
        spin = np.cross(columns, bodies.moment[:, :, None] * rates).sum(axis=1)
        return np.stack([bodies.mass[:, None] * qd[:, :3], spin], axis=1)

    for _ in range(steps):
        before = momenta()
        sim.step()
    change = (momenta() - before) / h
    change[:, 0] -= bodies.mass[:, None] * sim.model.settings.gravity
    change[1::2] -= np.stack([LOAD, COUPLE])
    return change


def check(sim: Simulation, share: float = 1e-7) -> None:
    """The joints' wrenches on both sides are what changed the momenta, to a share of the loads."""
    felt, names = loads(sim), list(sim.joints)
    told = [sim.joints[name].wrench(on=side, point="center") for name in names for side in ("parent", "child")]
    off = np.abs(np.array(told) - felt).max(axis=(1, 2)).reshape(-1, 2)
    wrong = {name: both for name, both in zip(names, off.tolist(), strict=True) if max(both) > share * np.linalg.norm(LOAD)}
    assert not wrong


@pytest.mark.parametrize("enforcement", ["penalty", "exact", "compliant"])
def test_reported_wrench_acts_on_both_bodies(enforcement):
    # Newton's method converges slowly near the minimum of these
    slow = [kind for kind in TYPES if "ellipsoid" in kind and enforcement == "penalty"]
    scene = scene_of({kind: (kind, {}) for kind in TYPES if kind not in slow}, enforcement)
    sim, other = Simulation(scene, "cpu"), Simulation(scene, "cpu")
    check(sim)
    other.restore(sim.checkpoint())
    for one in (sim, other):
        one.step()
    assert (sim.stepper.q == other.stepper.q).all(), "a checkpoint continues bit for bit"
    for joint in sim.joints.values():
        assert np.isfinite(joint.rates).all() and len(joint.rates) == len(joint.coordinate_names)
        assert len(joint.multipliers) == joint.num_bilateral + joint.num_unilateral
    for kind in slow:
        check(pair(kind, enforcement), 1e-4)


MASKS = [
    ("spherical", {"constrained": ("x", "z")}),
    ("spherical", {"constrained": ("y",)}),
    ("spherical", {"constrained": ("x", "z"), "frame": "parent"}),
    ("general", {"constrained": ("x", "z", "rx", "ry"), "frame": "world"}),
    ("general", {"constrained": ("y", "rz"), "frame": "world"}),
    ("general", {"constrained": ("x", "y", "z", "rx"), "frame": "world"}),
]


@pytest.mark.parametrize("enforcement", ["penalty", "exact"])
def test_joints_with_world_axes_have_all_read_outs(enforcement):
    """Multipliers are components of the force along constrained axes; free axes do not count as an error."""
    sim = Simulation(scene_of({f"mask{k}": one for k, one in enumerate(MASKS)}, enforcement), "cpu")
    check(sim)
    sim.run(steps=2)
    for joint, (_, keys) in zip(sim.joints.values(), MASKS, strict=True):
        held, force = keys["constrained"], joint.wrench()[0]
        assert joint.num_bilateral == len(joint.multipliers) == len(held)
        assert tuple(one.name for one in joint.rows) == held
        assert [one.motion_type for one in joint.rows] == ["rotary" if name[0] == "r" else "linear" for name in held]
        assert np.allclose([one.force for one in joint.rows], joint.multipliers)
        assert max(abs(one.value) for one in joint.rows) < 1e-5
        if keys.get("frame", "world") == "world":
            lengths = [name for name in held if len(name) == 1]
            along = [force["xyz".index(name)] for name in lengths]
            assert np.allclose(joint.multipliers[: len(lengths)], along, rtol=1e-6, atol=1e-6)
            free = [k for k, name in enumerate("xyz") if name not in held]
            assert (np.abs(joint.displacement[free]) > 1e-4).all() and np.abs(force[free]).max(initial=0.0) < 1e-9
            D = joint.T_DW[:3, :3]
            assert np.abs((D @ (joint.T_CD - joint.T_GD)[:3, 3])[free]).max(initial=0.0) < 1e-6
        assert np.abs(joint.error_twist).max() < (1e-5 if enforcement == "penalty" else 1e-7)


def test_the_relative_velocity_is_that_of_the_markers():
    """The velocity v_m1 - v_m0 is the rate of the displacement, zero along constrained axes."""
    sim = pair("spherical", "exact", "generalized_alpha", constrained=("x", "z"))
    displacements = follow(sim, 8, lambda _: sim.joints["joint"].displacement)
    joint = sim.joints["joint"]
    velocity = joint.relative_velocity
    last, before, first = displacements[:-4:-1]
    assert np.abs(velocity[[0, 2]]).max() < 1e-4
    assert np.allclose(velocity[:3], (3 * last - 4 * before + first) / (2 * sim.model.settings.dt), atol=2e-4)
    assert np.abs(velocity[1]) > 0.1 and np.abs(joint.velocity).max() > 0.1
    assert np.allclose(joint.position + joint.displacement, sim.joint_readings().points[0], atol=1e-14)
    turning = [sim.bodies[f"joint_{name}"].angular_velocity for name in ("base", "tip")]
    assert np.allclose(velocity[3:], turning[1] - turning[0], atol=1e-9)


def test_bilateral_and_unilateral_wrenches_are_separate():
    """Both parts and the remainder add up in all frames, for a hinge at its limit, locked or not."""
    drive = {"mode": "force", "target": 0.1}
    sim = pair("hinge", "penalty", coordinate={"theta": {"range": [-0.002, 1.0], "drive": drive}})
    sim.run(steps=6)
    joint, axis = sim.joints["joint"], sim.joints["joint"].T_DW[:3, 2]
    theta = joint.coordinate()
    assert theta.limit_force != 0.0
    for on in ("child", "parent"):
        sign = 1.0 if on == "child" else -1.0
        for frame in ("world", "C", "D", "child", "parent"):
            for point in ("joint", "D", "center"):
                parts = [joint.wrench(on, frame, point, part) for part in ("bilateral", "unilateral", "acting")]
                assert np.allclose(np.sum(parts, axis=0), joint.wrench(on, frame, point), rtol=1e-12, atol=1e-12)
        force, torque = joint.wrench(on, part="unilateral")
        assert np.abs(force).max() < 1e-9 and np.allclose(torque, sign * theta.limit_force * axis, rtol=1e-4, atol=1e-6)
        assert np.allclose(joint.wrench(on, "D", part="unilateral")[1], [0, 0, sign * theta.limit_force], rtol=1e-4, atol=1e-4)
        driven = joint.wrench(on, "C", part="acting")[1]
        assert theta.drive_force == 0.1 and np.allclose(driven, [0, 0, sign * 0.1], atol=1e-5)
    assert abs(joint.wrench(part="bilateral")[1] @ axis) < 1e-3
    theta.lock()
    sim.step()
    assert joint.wrench(part="bilateral")[1] @ axis == pytest.approx(theta.lock_force, rel=2e-3, abs=1e-3)
