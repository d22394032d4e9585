"""Bodies, frames, error twist and relative motion of a joint."""

from __future__ import annotations

import numpy as np

from abd.api.state_changes import StateChanges
from abd.energies import spin
from abd.joint_model import Joint
from abd.joints.coordinates.configurations import project
from abd.joints.coordinates.readings import rigid_motion
from abd.joints.rows.placement import body_pose, on_present_parent, present_transform
from abd.model import WORLD, affine_matrices
from abd.rotations import inverse, log
from abd.scene.schema.attributes import KnownAttributes

RATE_STEP = 1e-6
"""Motion [m, rad] of the central difference for the rate of G."""


class JointFrames(KnownAttributes):
    """Frames C on the child and D on the parent of one joint; base of `JointView`.

    `T_CW`, `T_DW`, `T_CD` and derived quantities use the rigid bodies closest to the strained ones. The joint acts on markers:
    the origins of D and C moved by the affine maps of their bodies. `position`, `velocity`, `displacement` and
    `relative_velocity` use these markers.
    """

    __slots__ = ()
    simulation: StateChanges
    index: int

    @property
    def joint(self) -> Joint:
        """Current definition of the joint."""
        return self.simulation.model.joints[self.index]

    @property
    def name(self) -> str:
        """Name of the joint."""
        return self.joint.name

    # bodies -------------------------------------------------------------------------------------------------------

    @property
    def parent(self) -> str:
        """Name of the body with frame D; "world" for the world."""
        return self.simulation.model.bodies.name(self.joint.parent)

    @property
    def child(self) -> str:
        """Name of the body with frame C."""
        return self.simulation.model.bodies.name(self.joint.child)

    def other_body(self, body: str) -> str:
        """Return the name of the other body.

        Raises:
            ValueError: the joint does not connect `body`.
        """
        ends = [self.parent, self.child]
        if body not in ends:
            raise ValueError(f"joint '{self.joint.name}' connects '{ends[0]}' and '{ends[1]}', not {body!r}")
        return ends[1 - ends.index(body)]

    def connects(self, *bodies: str) -> bool:
        """Return whether the joint connects all of these bodies (or "world")."""
        return set(bodies) <= {self.parent, self.child}

    # frames -------------------------------------------------------------------------------------------------------

    @property
    def T_CW(self) -> np.ndarray:
        """(4, 4) pose of C in the world; setting it moves C on the child (`set_frames`)."""
        return body_pose(self._rigid[0], self.joint.child) @ self.joint.child_frame

    @T_CW.setter
    def T_CW(self, pose: np.ndarray) -> None:
        self.set_frames(T_CW=pose)

    @property
    def T_DW(self) -> np.ndarray:
        """(4, 4) pose of D in the world; setting it moves D on the parent (`set_frames`)."""
        return body_pose(self._rigid[0], self.joint.parent) @ self.joint.parent_frame

    @T_DW.setter
    def T_DW(self, pose: np.ndarray) -> None:
        self.set_frames(T_DW=pose)

    def set_frames(self, T_CW: np.ndarray | None = None, T_DW: np.ndarray | None = None) -> None:
        """Move C, D or both on their bodies; the bodies do not move, and coordinates follow from the new frames.

        The next steps close an open joint; an exact joint closes within one step, and a warning is logged.

        Args:
            T_CW, T_DW: (4, 4) poses in the world [m].

        Raises:
            ValueError: a pose is not a rotation and a translation.
        """
        self.simulation.control.set_frames(self.index, T_CW, T_DW)

    @property
    def T_CD(self) -> np.ndarray:
        """(4, 4) transform from C to D."""
        return present_transform(self.joint, self._rigid[0])

    @property
    def T_GD(self) -> np.ndarray:
        """(4, 4) admissible transform nearest to `T_CD`."""
        return self._admissible(self._rigid[0])

    @property
    def error_twist(self) -> np.ndarray:
        """(6,) twist (v; w) of ``T_GD^-1 T_CD``, the error of the joint [m], [rad]."""
        return log(inverse(self.T_GD) @ self.T_CD)

    @property
    def velocity_GD(self) -> np.ndarray:
        """(6,) twist (v; w) of G, the admissible frame nearest to C, relative to D, in axes of G [m/s], [rad/s].

        It is the derivative of the projection along the motion of the rigid bodies, by central differences.
        """
        q, qd = self._rigid
        size = np.abs(qd[[body for body in (self.joint.parent, self.joint.child) if body != WORLD]]).max()
        if size == 0.0:
            return np.zeros(6)
        step = RATE_STEP / size
        ahead, behind = (self._admissible(q + sign * step * qd) for sign in (1.0, -1.0))
        return log(inverse(behind) @ ahead) / (2.0 * step)

    # markers ------------------------------------------------------------------------------------------------------

    @property
    def position(self) -> np.ndarray:
        """(3,) origin of D in the world [m] (Exudyn's marker m0)."""
        return self._markers[0][0]

    @property
    def velocity(self) -> np.ndarray:
        """(3,) velocity of the origin of D [m/s]."""
        return self._markers[0][1]

    @property
    def displacement(self) -> np.ndarray:
        """(3,) vector from the origin of D to the origin of C, world axes [m]."""
        return self._markers[1][0] - self._markers[0][0]

    @property
    def relative_velocity(self) -> np.ndarray:
        """(6,) rate of `displacement` and angular velocity of the child relative to the parent, world axes [m/s], [rad/s]."""
        return (self._markers[1][1:] - self._markers[0][1:]).ravel()

    # parts --------------------------------------------------------------------------------------------------------

    @property
    def _rigid(self) -> tuple[np.ndarray, np.ndarray]:
        return rigid_motion(self.simulation.stepper.q, self.simulation.stepper.qd)

    @property
    def _with_present_parent(self) -> Joint:
        """The joint relative to the parent's current pose."""
        return on_present_parent(self.joint, self._rigid[0])

    def _admissible(self, q: np.ndarray) -> np.ndarray:
        """Return the admissible transform (4, 4) nearest to that from C to D in the rigid states q (n, 12)."""
        return project(on_present_parent(self.joint, q), present_transform(self.joint, q))

    @property
    def _markers(self) -> np.ndarray:
        """(2, 3, 3) position, velocity and angular velocity of the origins of D and C on their strained bodies."""
        joint, out = self.joint, np.zeros((2, 3, 3))
        for one, body, frame in zip(out, (joint.parent, joint.child), (joint.parent_frame, joint.child_frame), strict=True):
            point = np.append(frame[:3, 3], 1.0)
            if body == WORLD:
                one[0] = point[:3]
                continue
            q, qd = self.simulation.stepper.q[[body]], self.simulation.stepper.qd[[body]]
            one[:] = (affine_matrices(q)[0] @ point)[:3], affine_matrices(qd)[0, :3] @ point, spin(q, qd)[0]
        return out
