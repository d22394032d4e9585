"""The figure of scenes/ragdoll.toml flies into a wall: no limit is passed, nothing intersects, no joint opens.

Every angle is read here from the poses of the bodies by formulas of scipy, with nothing of `abd.joints`.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import abd
from abd.api.simulation import Simulation
from abd.io.run import Status, run
from abd.io.trajectory import Trajectory
from abd.scene.compile.compile import compile_scene
from abd.scene.importers.formats import scenes_directory

STEPS = 130
ANGLES = {
    "gimbal": (("roll", "pitch", "yaw"), lambda R: R.as_euler("ZYX")),
    # R = Rz(roll) Ry(pitch) leaves y of C in the x-y plane of D, and z of D in the x-z plane of C.
    "universal": (("roll", "pitch"), lambda R: R.as_euler("ZYX")[:, :2]),
    "hinge": (("theta",), lambda R: R.as_euler("ZYX")[:, :1]),
    "spherical": ((), lambda R: np.zeros((len(R), 0))),
}
"""Names of coordinates by type, and their values (T, k) [rad] of relative rotations."""


@dataclass
class Flight:
    """A run: nearest rotations of all bodies and world points of body points over time."""

    trajectory: Trajectory
    status: Status
    joints: list

    def __post_init__(self):
        self.names = self.trajectory.names
        self.X = self.trajectory.series("/bodies/transform")

    def rotation(self, body: str) -> Rotation:
        """(T,) rotations nearest to the body's matrices."""
        U, _, Vt = np.linalg.svd(self.X[:, self.names.index(body), :3, :3])
        return Rotation.from_matrix(U @ Vt)

    def point(self, body: str, start: tuple[float, float, float]) -> np.ndarray:
        """(T, 3) path [m] of the body's point that is at `start` in the world at t = 0."""
        X = self.X[:, self.names.index(body)]
        return (X @ np.linalg.solve(X[0], [*start, 1.0]))[:, :3]

    def turned(self, joint) -> Rotation:
        """(T,) R_CD of a joint: C against D. Both start along the axis and x axis of the scene file, C turned by the
        initial values, which only hinges have here."""
        D = frame(joint)
        start = Rotation.from_euler("z", joint.initial or np.radians(joint.initial_deg or 0.0))
        parent, child = self.rotation(joint.parent), self.rotation(joint.child)
        C = child[0].inv() * D * start
        return (parent * (parent[0].inv() * D)).inv() * (child * C)


def frame(joint) -> Rotation:
    """Axes of a joint at t = 0: z its axis, x as near to its x axis as z allows."""
    z = np.array(joint.axis) / np.linalg.norm(joint.axis)
    guess = np.array(joint.x_axis if joint.x_axis is not None else np.roll(z, 1))
    x = guess - z * (guess @ z)
    x /= np.linalg.norm(x)
    return Rotation.from_matrix(np.stack([x, np.cross(z, x), z], axis=1))


def ranges(joint) -> dict[str, tuple[float, float]]:
    """Ranges [rad] by coordinate."""
    own = {"theta": joint.range_deg} if joint.type == "hinge" else {}
    given = own | {name: one.range_deg for name, one in joint.coordinate.items()}
    return {name: tuple(np.radians(pair)) for name, pair in given.items()}


@pytest.fixture(scope="module")
def flight(tmp_path_factory):
    scene = abd.load(scenes_directory() / "ragdoll.toml")
    folder = tmp_path_factory.mktemp("runs") / "ragdoll"
    status = run(scene, compile_scene(scene), folder, device="cpu", steps=STEPS, simulate=Simulation).status
    with Trajectory(folder) as trajectory:
        yield Flight(trajectory, status, scene.spec.joint)


def test_every_step_converges_and_the_wall_is_hit(flight):
    assert flight.status is Status.DONE
    assert flight.trajectory.series("/solver/converged").all()
    pelvis = flight.names.index("pelvis")
    velocity = flight.trajectory.series("/bodies/velocity")[:, pelvis, 0, 3]
    assert velocity[0] > 5.0
    assert velocity.min() < 0.5, "the wall has stopped it"


def test_no_range_is_exceeded(flight):
    nearest = {}
    for joint in flight.joints:
        names, read = ANGLES[joint.type]
        limits = ranges(joint)
        assert set(limits) == set(names), joint.name
        for name, values in zip(names, read(flight.turned(joint)).T):
            lower, upper = limits[name]
            gap = np.minimum(values - lower, upper - values).min()
            assert gap > 0.0, f"{joint.name}.{name}: {np.degrees(values.min())} to {np.degrees(values.max())}"
            nearest[joint.name, name] = gap
    assert len(nearest) == 3 * 3 + 4 + 4 * 2
    assert sum(gap < np.radians(1.0) for gap in nearest.values()) >= 5, "limits have been needed"


def test_no_tilt_and_no_rotation_is_too_large(flight):
    balls = [joint for joint in flight.joints if joint.type == "spherical"]
    assert len(balls) == 3
    for joint in balls:
        R = flight.turned(joint)
        tilt = np.arccos(np.clip(R.as_matrix()[:, 2, 2], -1.0, 1.0))
        assert tilt.max() < np.radians(joint.max_tilt_deg), joint.name
        assert tilt.max() > np.radians(5.0), f"{joint.name} has moved"
        vector = R.as_rotvec()
        angle = np.linalg.norm(vector, axis=1)
        direction = vector[1:] / angle[1:, None]
        largest = np.linalg.norm(np.radians(joint.max_rotation_deg) * direction, axis=1)
        assert (angle[1:] < largest).all(), joint.name


def test_exact_joints_stay_closed(flight):
    for joint in flight.joints:
        anchor, F = np.array(joint.anchor), frame(joint).as_matrix()
        # A hinge is two points of its axis, half a metre to both sides.
        points = [anchor + side * F[:, 2] for side in (-0.5, 0.5)] if joint.type == "hinge" else [anchor]
        for point in points:
            gap = flight.point(joint.child, point) - flight.point(joint.parent, point)
            assert np.abs(gap).max() < 1e-9, joint.name
        if joint.type == "universal":
            z, y = (
                flight.point(body, anchor + axis) - flight.point(body, anchor)
                for body, axis in ((joint.parent, F[:, 2]), (joint.child, F[:, 1]))
            )
            assert np.abs(np.sum(z * y, axis=1)).max() < 1e-8, joint.name
