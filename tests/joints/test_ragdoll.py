"""The figure of scenes/ragdoll.toml flies into a wall: no limit is passed and no joint opens.

Every angle is read here from the poses of the bodies by formulas of scipy, with nothing of `abd.joints`.
"""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import abd

STEPS = 130
ANGLES = {"gimbal": ("roll", "pitch", "yaw"), "universal": ("roll", "pitch"), "hinge": ("theta",), "spherical": ()}
"""Names of coordinates by type, which are the first of the angles of Rz Ry Rx."""


@pytest.fixture(scope="module")
def flight():
    """The joints of the scene, and poses (T, 4, 4) by body."""
    simulation = abd.Simulation("ragdoll", device="cpu")
    poses, speeds = [], []
    for _ in range(STEPS):
        poses.append({name: body.transform.copy() for name, body in simulation.bodies.items()})
        speeds.append(simulation.bodies["pelvis"].linear_velocity[0])
        assert simulation.step().converged
    assert speeds[0] > 5.0 and min(speeds) < 0.5, "the wall stops it"
    return simulation.scene.spec.joint, {name: np.array([pose[name] for pose in poses]) for name in poses[0]} | {
        "world": np.broadcast_to(np.eye(4), (STEPS, 4, 4))
    }


def frame(joint) -> Rotation:
    """Axes of a joint at the start: z its axis, x as near to its x axis as z allows."""
    guess = joint.x_axis if joint.x_axis is not None else np.roll(joint.axis, 1)
    return Rotation.align_vectors([joint.axis, guess], [[0, 0, 1], [1, 0, 0]], weights=[np.inf, 1.0])[0]


def turned(joint, poses) -> Rotation:
    """(T,) rotations of the child against the parent, in axes of the joint; only hinges start turned here."""
    start = Rotation.from_euler("z", joint.initial or np.radians(joint.initial_deg or 0.0))
    parent, child = (Rotation.from_matrix(poses[body][:, :3, :3]) for body in (joint.parent, joint.child))
    D = frame(joint)
    return (parent * parent[0].inv() * D).inv() * (child * child[0].inv() * D * start)


def path(joint, poses, point) -> np.ndarray:
    """(2, T, 3) paths [m] of the points of parent and child that are at a point of the world at the start."""
    X = np.array([poses[body] for body in (joint.parent, joint.child)])
    return (X @ np.linalg.solve(X[:, 0], [*point, 1.0])[:, None, :, None])[..., :3, 0]


def test_no_range_is_exceeded(flight):
    joints, poses = flight
    nearest = []
    for joint in joints:
        given = {name: one.range_deg for name, one in joint.coordinate.items()}
        given |= {"theta": joint.range_deg} if joint.type == "hinge" else {}
        assert set(given) == set(ANGLES[joint.type]), joint.name
        for name, values in zip(ANGLES[joint.type], turned(joint, poses).as_euler("ZYX", degrees=True).T):
            lower, upper = given[name]
            nearest.append(np.minimum(values - lower, upper - values).min())
            assert nearest[-1] > 0.0, f"{joint.name}.{name}: {values.min()} to {values.max()}"
    assert len(nearest) == 3 * 3 + 4 + 4 * 2
    assert sum(gap < 1.0 for gap in nearest) >= 5, "limits have been needed"


def test_no_tilt_and_no_rotation_is_too_large(flight):
    joints, poses = flight
    balls = [joint for joint in joints if joint.type == "spherical"]
    assert len(balls) == 3
    for joint in balls:
        R = turned(joint, poses)
        tilt = np.degrees(np.arccos(np.clip(R.as_matrix()[:, 2, 2], -1.0, 1.0)))
        assert 5.0 < tilt.max() < joint.max_tilt_deg, joint.name
        vector = R.as_rotvec(degrees=True)[1:]
        angle = np.linalg.norm(vector, axis=1)
        largest = np.linalg.norm(np.array(joint.max_rotation_deg) * vector / angle[:, None], axis=1)
        assert (angle < largest).all(), joint.name


def test_exact_joints_stay_closed(flight):
    joints, poses = flight
    for joint in joints:
        F = frame(joint).as_matrix()
        # a hinge is two points of its axis, half a metre to both sides
        sides = (-0.5, 0.5) if joint.type == "hinge" else (0.0,)
        for point in [np.add(joint.anchor, side * F[:, 2]) for side in sides]:
            assert np.abs(np.diff(path(joint, poses, point), axis=0)).max() < 1e-9, joint.name
        if joint.type == "universal":
            at, z, y = (path(joint, poses, np.add(joint.anchor, axis)) for axis in (np.zeros(3), F[:, 2], F[:, 1]))
            assert np.abs(np.sum((z - at)[0] * (y - at)[1], axis=1)).max() < 1e-8, joint.name
