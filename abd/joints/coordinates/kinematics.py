"""Kinematics of one joint and bounds of its coordinates, following RigidBodyDynamics.jl.

Twists (v; w) and wrenches (f; t) are those of the child's frame C relative to the parent's frame D. Their components
are in C, or in D if ``frame="parent"``; wrenches act on the child. Velocities v and configurations q are those of
`abd.joints.coordinates.configurations`. RigidBodyDynamics.jl calls D ``frame_before``, C ``frame_after`` and orders (w;
v).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from abd.joint_model import CoordinateSettings, Joint
from abd.joints.coordinates.configurations import configuration_space, is_ball
from abd.joints.coordinates.spaces import Analytic, Reversed, Space
from abd.joints.rows.change import settings_of
from abd.joints.types import TYPES
from abd.model import WORLD
from abd.rotations import adjoint, pose


class JointKinematics:
    """Kinematic functions of one joint.

    Attributes:
        joint: the joint.
        space: its configuration space.
        num_positions, num_velocities, num_constraints: sizes of q, v and the constraint wrench.
        is_floating: whether the joint has no constraint.
        has_fixed_subspaces: whether S and T, in axes of C, do not depend on the configuration.
    """

    def __init__(self, joint: Joint, form: str | None = None, space: Space | None = None):
        """`form` selects one of the joint's configuration spaces (`abd.joints.coordinates.configurations`)."""
        self.joint = joint
        self.space = space = space or configuration_space(joint, form)
        self.num_positions, self.num_velocities = space.num_positions, space.num_velocities
        self.num_constraints = 6 - space.num_velocities
        self.is_floating, self.has_fixed_subspaces = self.num_constraints == 0, space.fixed

    def reversed(self) -> JointKinematics:
        """The joint with C and D, and so "child" and "parent", exchanged; q and v are unchanged."""
        return JointKinematics(self.joint, space=Reversed(self.space))

    def joint_transform(self, q: np.ndarray) -> np.ndarray:
        """T_CD (4, 4): coordinates in C to coordinates in D."""
        return self.space.transform(q)

    def motion_subspace(self, q: np.ndarray, frame: str = "child") -> np.ndarray:
        """S (6, nv), ``twist = S v``."""
        return self._moved(self.space.subspace(q), q, frame)

    def constraint_wrench_subspace(self, q: np.ndarray, frame: str = "child") -> np.ndarray:
        """T (6, 6 - nv) with orthonormal columns and ``T^T S = 0``: constraint wrenches are ``T lambda``.

        The largest entry of each column is positive. T keeps its size if S loses rank (gimbal lock).
        """
        S = self.motion_subspace(q, frame)
        T = np.linalg.qr(S, mode="complete")[0][:, S.shape[1] :]
        largest = np.take_along_axis(T, np.abs(T).argmax(axis=0)[None, :], axis=0) if T.size else np.ones((1, 0))
        return T * np.sign(largest)

    def joint_twist(self, q: np.ndarray, v: np.ndarray, frame: str = "child") -> np.ndarray:
        """(6,) twist of C relative to D."""
        return self.motion_subspace(q, frame) @ v

    def bias_acceleration(self, q: np.ndarray, v: np.ndarray, frame: str = "child") -> np.ndarray:
        """``dS/dt v`` (6,): the rate of the twist's components for dv/dt = 0."""
        return self._moved(self.space.bias(q, v), q, frame)

    def joint_spatial_acceleration(
        self, q: np.ndarray, v: np.ndarray, rate: np.ndarray, frame: str = "child"
    ) -> np.ndarray:
        """(6,) rate of the twist's components, ``S dv/dt + dS/dt v``, for dv/dt = `rate`."""
        return self.motion_subspace(q, frame) @ rate + self.bias_acceleration(q, v, frame)

    def joint_torque(self, q: np.ndarray, wrench: np.ndarray, frame: str = "child") -> np.ndarray:
        """Generalised forces ``S^T wrench`` (nv,) of a wrench (6,) on the child, about the origin of the frame."""
        return self.motion_subspace(q, frame).T @ wrench

    def _moved(self, twists: np.ndarray, q: np.ndarray, frame: str) -> np.ndarray:
        if frame not in ("child", "parent"):
            raise ValueError(f'frame is {frame!r}, and must be "child" or "parent"')
        return twists if frame == "child" else adjoint(self.space.transform(q)) @ twists

    def configuration_derivative_to_velocity_jacobian(self, q: np.ndarray) -> np.ndarray:
        """J (nv, nq), ``v = J dq/dt``."""
        return self.space.to_velocity(q)

    def velocity_to_configuration_derivative_jacobian(self, q: np.ndarray) -> np.ndarray:
        """J (nq, nv), ``dq/dt = J v``."""
        return self.space.to_rate(q)

    def configuration_derivative_to_velocity(self, q: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """v (nv,) for a rate dq/dt (nq,)."""
        return self.space.to_velocity(q) @ rate

    def velocity_to_configuration_derivative(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """dq/dt (nq,) for v (nv,)."""
        return self.space.to_rate(q) @ v

    def configuration_derivative_to_velocity_adjoint(self, q: np.ndarray, force: np.ndarray) -> np.ndarray:
        """f_q (nq,) for f_v (nv,) with the same power, ``f_q . dq/dt = f_v . v``."""
        return self.space.to_velocity(q).T @ force

    def local_coordinates(self, q0: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Exponential coordinates phi (nv,) of q about q0, zero only at q0, and their rate (nv,) at velocity v.

        They are differences of coordinates, rotation vectors of balls (with Bortz' equation), or logarithms of free
        bodies.
        """
        return self.space.local(q0, q, v)

    def global_coordinates(self, q0: np.ndarray, phi: np.ndarray) -> np.ndarray:
        """q (nq,) with local coordinates phi (nv,) about q0."""
        return self.space.from_local(q0, phi)

    def zero_configuration(self) -> np.ndarray:
        """(nq,) configuration of the zero pose: T_CD = 1, or (0, 0, C) on an ellipsoid."""
        return self.space.zero()

    def random_configuration(self, rng: np.random.Generator) -> np.ndarray:
        """(nq,) random configuration with the distribution of RigidBodyDynamics.jl, if it has the type."""
        return self.space.random(rng)

    def normalise_configuration(self, q: np.ndarray) -> np.ndarray:
        """(nq,) with quaternions and (sin, cos) of length 1."""
        return self.space.normalised(q)

    def is_configuration_normalised(self, q: np.ndarray, tolerance: float = 1e-12) -> bool:
        return float(np.linalg.norm(self.space.normalised(q) - q)) <= tolerance

    def principal_value(self, q: np.ndarray) -> np.ndarray:
        """(nq,) with the same transform: w >= 0, Rodrigues parameters of length <= 1, angles in (-pi, pi]."""
        return self.space.principal(q)

    def configuration_at(self, transform: np.ndarray, last: np.ndarray | None = None) -> np.ndarray:
        """q (nq,) of an admissible T_CD (4, 4); angles nearest to those of `last` if given."""
        return self.space.at(transform, last)

    def velocity_of(self, q: np.ndarray, twist: np.ndarray) -> np.ndarray:
        """v (nv,) whose twist is nearest to a given twist (6,) in axes of C."""
        return np.linalg.lstsq(self.space.subspace(q), twist, rcond=None)[0]


HALF_TURNS = tuple(
    np.diag(signs) for signs in ((1.0, 1.0, 1.0), (1.0, -1.0, -1.0), (-1.0, 1.0, -1.0), (-1.0, -1.0, 1.0))
)


def flip_direction(joint: Joint) -> Joint:
    """The same joint with parent and child exchanged and the axis reversed, so that coordinates keep their values.

    With F a half turn that negates every motion X, the new frames are ``D' = C F`` and ``C' = D F``, and
    ``T'(q) = F^-1 T(q)^-1 F = T(q)``. Ranges, limits and drives of the coordinates are unchanged. A ball has no
    motions: its rotation is inverted.

    Raises:
        ValueError: the parent is the world, or the motions do not commute. The inverse is then not of the same type
            (`JointKinematics.reversed` works for all types).
    """
    if joint.parent == WORLD:
        raise ValueError(f"joint {joint.name!r} has the world as parent, which cannot be a child")
    space = configuration_space(joint)
    twists = TYPES[joint.type].motions(joint) or []
    turns = [F for F in HALF_TURNS if all(np.allclose(np.kron(np.eye(2), F) @ X, -X) for X in twists)]
    if isinstance(space, Analytic) or (twists and not (space.fixed and turns)):
        raise ValueError(f"the inverse of joint {joint.name!r} is not a joint of type {joint.type}")
    F = pose(turns[0], np.zeros(3))
    return replace(
        joint,
        parent=joint.child,
        child=joint.parent,
        parent_frame=joint.child_frame @ F,
        child_frame=joint.parent_frame @ F,
    )


def angular_first(spatial: np.ndarray) -> np.ndarray:
    """Convert twists or wrenches (6, ...) to the order (w; v) or (t; f) of RigidBodyDynamics.jl, and back."""
    return np.concatenate([spatial[3:], spatial[:3]])


@dataclass(frozen=True)
class Bounds:
    """Closed interval of a quantity, unbounded by default; bounds with equal ends are equal.

    Raises:
        ValueError: the lower end exceeds the upper one, or an end is NaN.
    """

    lower: float = -np.inf
    upper: float = np.inf

    def __post_init__(self):
        if not self.lower <= self.upper:
            raise ValueError(f"lower bound ({self.lower}) must not exceed upper bound ({self.upper})")

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __neg__(self) -> Bounds:
        return Bounds(-self.upper, -self.lower)

    def clamp(self, value: float) -> float:
        """Nearest value within the bounds."""
        return min(max(value, self.lower), self.upper)

    def intersect(self, other: Bounds) -> Bounds:
        """Intersection; raises `ValueError` if it is empty."""
        return Bounds(max(self.lower, other.lower), min(self.upper, other.upper))


def position_bounds(joint: Joint) -> dict[str, Bounds]:
    """Ranges of the coordinates of a joint [m or rad], by name in order; the solver's limits enforce them.

    A ball has no coordinates: its positions are w, x, y and z of its quaternion, without bounds.
    """
    return _bounds(joint, ("w", "x", "y", "z"), lambda c: (c.lower, c.upper))


def velocity_bounds(joint: Joint) -> dict[str, Bounds]:
    """Ranges of the rates of the coordinates [m/s or rad/s]; a run reports where they are exceeded.

    For a ball, ranges of its angular velocity in axes of C.
    """
    return _bounds(joint, ("wx", "wy", "wz"), lambda c: (-c.velocity_limit, c.velocity_limit))


def effort_bounds(joint: Joint) -> dict[str, Bounds]:
    """Ranges of the efforts of drives [N or N m]: the smaller limit of the coordinate and the drive.

    For a ball, ranges of torques about the axes of C.
    """

    def largest(c: CoordinateSettings) -> float:
        return min(c.effort_limit, c.drive.effort if c.drive else np.inf)

    return _bounds(joint, ("tx", "ty", "tz"), lambda c: (-largest(c), largest(c)))


def _bounds(joint: Joint, of_ball: tuple[str, ...], ends: Callable[[CoordinateSettings], tuple]) -> dict[str, Bounds]:
    """Bounds from the settings of every coordinate; unbounded, by the names `of_ball`, for balls."""
    if is_ball(joint):
        return {name: Bounds() for name in of_ball}
    names = [measure.name for measure in TYPES[joint.type].coordinates(joint)]
    return {name: Bounds(*ends(settings_of(joint, name))) for name in names}
