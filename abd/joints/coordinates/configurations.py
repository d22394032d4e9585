"""Configuration space of each joint, the spaces of rotations, and poses: at coordinates, and nearest to a given one.

The joint's type and the requested `form` determine the space; the first form is the default:

    form          types            positions                       velocities
    coordinates   with motions     its coordinates                 their rates
    sincos        hinge            (sin theta, cos theta)          dtheta/dt
    planar        planar           x, y, theta                     (R(-theta) (dx/dt, dy/dt), dtheta/dt)
    quaternion    spherical, pin   (w, x, y, z)                    angular velocity in axes of C
                  free             position, (w, x, y, z)          twist (v; w) in axes of C
    mrp           spherical, free  modified Rodrigues parameters   the same

Names and random distributions are those of RigidBodyDynamics.jl. Its floating joints order velocities (w; v) and
positions with the orientation first; here the linear part is first in both. Its planar joint is the form "planar" here;
the velocities of the form "coordinates" are the plain rates.
"""

from __future__ import annotations

import numpy as np

from abd.joint_model import Joint
from abd.joints.coordinates.spaces import Analytic, Coordinates, Planar, Space
from abd.joints.joint_type import BALL
from abd.joints.measures.motions import turned
from abd.joints.rows.table import twist_gradient, value_at
from abd.joints.types import TYPES
from abd.rotations import (
    exp,
    inverse,
    log,
    log_rate,
    mrp,
    mrp_matrix,
    mrp_rate,
    polar,
    pose,
    quaternion,
    quaternion_matrix,
    quaternion_rate,
)

ITERATIONS = 30
CONVERGED = 1e-14
"""Step [m or rad] below which a projection has converged."""


class SinCos(Space):
    """Angle about z, represented by its sine and cosine."""

    num_positions, num_velocities = 2, 1
    commuting = True

    def transform(self, q: np.ndarray) -> np.ndarray:
        s, c = q / np.linalg.norm(q)
        return pose(np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), np.zeros(3))

    def subspace(self, q: np.ndarray) -> np.ndarray:
        return np.eye(6)[:, 5:]

    def to_velocity(self, q: np.ndarray) -> np.ndarray:
        return np.array([[q[1], -q[0]]]) / (q @ q)

    def to_rate(self, q: np.ndarray) -> np.ndarray:
        return np.array([[q[1]], [-q[0]]])

    def at(self, T: np.ndarray, last: np.ndarray | None = None) -> np.ndarray:
        return self.normalised(np.array([T[1, 0] - T[0, 1], T[0, 0] + T[1, 1]]))

    def zero(self) -> np.ndarray:
        return np.array([0.0, 1.0])

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return self.normalised(rng.standard_normal(2))

    def normalised(self, q: np.ndarray) -> np.ndarray:
        return q / np.linalg.norm(q)

    def local(self, q0: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The angle from q0 to q in (-pi, pi]."""
        return np.array([np.arctan2(q[0] * q0[1] - q[1] * q0[0], q @ q0)]), np.array(v)

    def from_local(self, q0: np.ndarray, phi: np.ndarray) -> np.ndarray:
        s, c = np.sin(phi[0]), np.cos(phi[0])
        return np.array([q0[0] * c + q0[1] * s, q0[1] * c - q0[0] * s])


class Rigid(Space):
    """Ball joint or free body: S consists of the last three columns of the unit matrix, or of all six.

    Local coordinates are the rotation vector, or the twist, from q0 to q in axes of C at q0.
    """

    def __init__(self, form: str, moves: bool):
        self.start = 3 if moves else 0
        self.columns = slice(0 if moves else 3, 6)
        self.quaternion = form == "quaternion"
        self.num_positions = self.start + (4 if self.quaternion else 3)
        self.num_velocities = self.start + 3

    def transform(self, q: np.ndarray) -> np.ndarray:
        R = (quaternion_matrix if self.quaternion else mrp_matrix)(q[self.start :])
        return pose(R, q[: self.start] if self.start else np.zeros(3))

    def subspace(self, q: np.ndarray) -> np.ndarray:
        return np.eye(6)[:, self.columns]

    def to_rate(self, q: np.ndarray) -> np.ndarray:
        turn = q[self.start :]
        return self._blocks(self.transform(q)[:3, :3], quaternion_rate(turn) if self.quaternion else mrp_rate(turn))

    def to_velocity(self, q: np.ndarray) -> np.ndarray:
        turn = q[self.start :]
        if self.quaternion:
            back = 4.0 / (turn @ turn) * quaternion_rate(turn).T
        else:
            back = 16.0 / (1.0 + turn @ turn) ** 2 * mrp_rate(turn).T
        return self._blocks(self.transform(q)[:3, :3].T, back)

    def _blocks(self, R: np.ndarray, turn: np.ndarray) -> np.ndarray:
        out = np.zeros((self.start + turn.shape[0], self.start + turn.shape[1]))
        out[: self.start, : self.start] = R[: self.start, : self.start]
        out[self.start :, self.start :] = turn
        return out

    def at(self, T: np.ndarray, last: np.ndarray | None = None) -> np.ndarray:
        turn = (quaternion if self.quaternion else mrp)(T[:3, :3])
        return np.concatenate([T[: self.start, 3], turn])

    def zero(self) -> np.ndarray:
        return self.at(np.eye(4))

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Uniform rotation, position uniform in [-1/2, 1/2]^3 m."""
        four = rng.standard_normal(4)
        return self.at(pose(quaternion_matrix(four), rng.random(3) - 0.5))

    def normalised(self, q: np.ndarray) -> np.ndarray:
        if not self.quaternion:
            return q
        return np.concatenate([q[: self.start], q[self.start :] / np.linalg.norm(q[self.start :])])

    def principal(self, q: np.ndarray) -> np.ndarray:
        """w >= 0, or parameters of length at most 1: the shorter rotation."""
        turn = q[self.start :]
        if self.quaternion:
            turn = -turn if turn[0] < 0.0 else turn
        elif turn @ turn > 1.0:
            turn = -turn / (turn @ turn)
        return np.concatenate([q[: self.start], turn])

    def local(self, q0: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        twist = log(inverse(self.transform(q0)) @ self.transform(q))
        rate = log_rate(twist)[self.columns, self.columns] @ v
        return twist[self.columns], rate

    def from_local(self, q0: np.ndarray, phi: np.ndarray) -> np.ndarray:
        twist = np.zeros(6)
        twist[self.columns] = phi
        return self.at(self.transform(q0) @ exp(twist))


def is_ball(joint: Joint) -> bool:
    """Return whether a joint has the configuration of a ball."""
    return forms(joint) == BALL


def forms(joint: Joint) -> tuple[str, ...]:
    """Forms of the configuration of a joint, the default first; empty if its type has no configuration space."""
    kind = TYPES[joint.type]
    if kind.FORMS == BALL:  # with a free translation it has no configuration space
        return () if len(joint.parameters.get("constrained", "xyz")) < 3 else BALL
    return () if transform(joint, np.zeros(len(kind.coordinates(joint)))) is None else kind.FORMS


def configuration_space(joint: Joint, form: str | None = None) -> Space:
    """Configuration space of a joint.

    Raises:
        ValueError: the type of the joint has no configuration space of this form.
    """
    known = forms(joint)
    if not known or (form is not None and form not in known):
        have = f"it has {', '.join(known)}" if known else f"a joint of type {joint.type} has none"
        raise ValueError(f"joint {joint.name!r} has no configuration of form {form or 'coordinates'!r}: {have}")
    form = form or known[0]
    if form in ("quaternion", "mrp"):
        return Rigid(form, not is_ball(joint))
    if form == "sincos":
        return SinCos()
    kind = TYPES[joint.type]
    motions, measures = kind.motions(joint), kind.coordinates(joint)
    if motions is None:
        return Analytic(lambda values: kind.transform(joint, values), measures)
    return (Planar if form == "planar" else Coordinates)(motions, measures)


def transform(joint: Joint, values: np.ndarray) -> np.ndarray | None:
    """T_CD (4, 4) at coordinate values (k,) [m or rad]; None for types whose coordinates do not determine the pose."""
    return TYPES[joint.type].transform(joint, values)


def project(joint: Joint, T: np.ndarray) -> np.ndarray:
    """T_GD (4, 4): the admissible pose nearest to T_CD (4, 4); the rotation of T_CD may be strained.

    The distance is minimised first, then the rotation. The pose comes from the type's function ``project`` or from the
    coordinates of T_CD, if these describe the pose. Otherwise iterations with the shortest motions, rotations about the
    origin of C, close the linearised constraints. Free motions are then unchanged: a spherical joint keeps its
    rotation, a rod its direction. Gaps are not closed.
    """
    kind = TYPES[joint.type]
    T = T.copy()
    T[:3, :3] = polar(T[None, :3, :3])[0]
    admissible = kind.project(joint, T)
    if admissible is None:
        admissible = transform(joint, value_at(kind.coordinates(joint), T))
    if admissible is not None:
        return admissible
    for _ in range(ITERATIONS):
        measures = kind.constraints_at(joint, T)
        if not measures:
            break
        step = -np.linalg.pinv(twist_gradient(measures, T)) @ value_at(measures, T)
        T[:3, 3] += step[:3]
        T[:3, :3] = turned(step[3:]) @ T[:3, :3]
        if np.abs(step).max() < CONVERGED:
            break
    return T
