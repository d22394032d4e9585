"""Where a joint is: its bodies, both frames, how far it is open, and the motion of one frame against the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abd.joints.coordinates.readings import rigid_motion
from abd.joints.coordinates.transform import project
from abd.joints.rows.placement import body_pose, on_present_parent, present_transform
from abd.model import WORLD, Joint
from abd.rotations import axial, exp, inverse, log

if TYPE_CHECKING:
    from abd.api.simulation import Simulation

WORLD_NAME = "world"
RATE_STEP = 1e-6
"""Motion [m, rad] over which the rate of G is taken by differences."""


class JointFrames:
    """Frames C on the child and D on the parent of one joint; base of `JointView`.

    `T_CW`, `T_DW`, `T_CD` and what follows from them are poses of the rigid bodies closest to the strained ones. The
    markers, at which the joint pulls, are the origins of D and C as the affine maps of their bodies carry them; so are
    `position`, `velocity`, `displacement` and `relative_velocity`.
    """

    simulation: Simulation
    index: int

    @property
    def joint(self) -> Joint:
        """Its present definition."""
        return self.simulation.control.joint(self.index)

    # bodies -------------------------------------------------------------------------------------------------------

    @property
    def parent(self) -> str:
        """Name of the body that carries D; "world" for the world."""
        return self._body_name(self.joint.parent)

    @property
    def child(self) -> str:
        """Name of the body that carries C."""
        return self._body_name(self.joint.child)

    def other_body(self, body: str) -> str:
        """Name of the body at the other end.

        Raises:
            ValueError: the joint is not on that body.
        """
        ends = [self.parent, self.child]
        if body not in ends:
            raise ValueError(f"joint '{self.joint.name}' is between '{ends[0]}' and '{ends[1]}', not on {body!r}")
        return ends[1 - ends.index(body)]

    def connects(self, *bodies: str) -> bool:
        """Whether it is on all of these bodies (or "world")."""
        return set(bodies) <= {self.parent, self.child}

    def _body_name(self, body: int) -> str:
        return WORLD_NAME if body == WORLD else self.simulation.model.bodies.names[body]

    # frames -------------------------------------------------------------------------------------------------------

    @property
    def T_CW(self) -> np.ndarray:
        """(4, 4) pose of C in the world. Set, it seats C anew on the child, whose pose stays; see `set_frames`."""
        return body_pose(self._rigid[0], self.joint.child) @ self.joint.child_frame

    @T_CW.setter
    def T_CW(self, pose: np.ndarray) -> None:
        self.set_frames(T_CW=pose)

    @property
    def T_DW(self) -> np.ndarray:
        """(4, 4) pose of D in the world. Set, it seats D anew on the parent, whose pose stays; see `set_frames`."""
        return body_pose(self._rigid[0], self.joint.parent) @ self.joint.parent_frame

    @T_DW.setter
    def T_DW(self, pose: np.ndarray) -> None:
        self.set_frames(T_DW=pose)

    def set_frames(self, T_CW: np.ndarray | None = None, T_DW: np.ndarray | None = None) -> None:
        """Seat C, D or both anew on their bodies, which stay where they are; coordinates follow from the new frames.

        A joint that is open then closes in the next step, an exact one at once, which is logged.

        Args:
            T_CW, T_DW: (4, 4) poses in the world [m].

        Raises:
            ValueError: a pose is not a rotation and a translation.
        """
        self.simulation.control.seat(self.index, T_CW, T_DW)

    @property
    def T_CD(self) -> np.ndarray:
        """(4, 4) coordinates in C to coordinates in D."""
        return present_transform(self.joint, self._rigid[0])

    @property
    def T_GD(self) -> np.ndarray:
        """(4, 4) transform nearest to `T_CD` that the joint admits."""
        return project(self._placed, self.T_CD)

    @property
    def error_twist(self) -> np.ndarray:
        """(6,) twist (v; w) of ``T_GD^-1 T_CD``: how far C is from where the joint admits it [m], [rad]."""
        return log(inverse(self.T_GD) @ self.T_CD)

    @property
    def velocity_GD(self) -> np.ndarray:
        """(6,) twist (v; w) of G, the admissible frame nearest to C, against D, in axes of G [m/s], [rad/s].

        The derivative of the projection along the motion of C, by central differences.
        """
        joint, T, speed = self._placed, self.T_CD, self._rigid_twist_CD
        size = np.abs(speed).max()
        if size == 0.0:
            return np.zeros(6)
        step = RATE_STEP / size
        ahead, behind = (project(joint, T @ exp(sign * step * speed)) for sign in (1.0, -1.0))
        return log(inverse(behind) @ ahead) / (2.0 * step)

    # markers ------------------------------------------------------------------------------------------------------

    @property
    def position(self) -> np.ndarray:
        """(3,) origin of D in the world [m]: Exudyn's marker m0."""
        return self._marker(self.joint.parent, self.joint.parent_frame)[0]

    @property
    def velocity(self) -> np.ndarray:
        """(3,) of that point of the parent [m/s]."""
        return self._marker(self.joint.parent, self.joint.parent_frame)[1]

    @property
    def displacement(self) -> np.ndarray:
        """(3,) from the origin of D to that of C, world axes [m]."""
        return self._marker(self.joint.child, self.joint.child_frame)[0] - self.position

    @property
    def relative_velocity(self) -> np.ndarray:
        """(6,) velocity of the origin of C less that of D's, which is the rate of `displacement`, and angular velocity
        of the child less that of the parent; world axes [m/s], [rad/s]."""
        joint = self.joint
        linear = self._marker(joint.child, joint.child_frame)[1] - self.velocity
        return np.concatenate([linear, self._turning(joint.child) - self._turning(joint.parent)])

    # parts --------------------------------------------------------------------------------------------------------

    @property
    def _rigid(self) -> tuple[np.ndarray, np.ndarray]:
        return rigid_motion(self.simulation.stepper.q, self.simulation.stepper.qd)

    @property
    def _placed(self) -> Joint:
        """The joint with the parent's present frame in the place of the parent."""
        return on_present_parent(self.joint, self._rigid[0])

    @property
    def _rigid_twist_CD(self) -> np.ndarray:
        """(6,) twist of C against D in axes of C, of the rigid bodies."""
        q, qd = self._rigid
        joint, C = self.joint, self.T_CW
        linear, angular = np.zeros(3), np.zeros(3)
        for body, sign in ((joint.child, 1.0), (joint.parent, -1.0)):
            if body != WORLD:
                w = self._turning(body)
                linear += sign * (qd[body, :3] + np.cross(w, C[:3, 3] - q[body, :3]))
                angular += sign * w
        return np.concatenate([C[:3, :3].T @ linear, C[:3, :3].T @ angular])

    def _marker(self, body: int, frame: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position and velocity (3,) of a frame's origin on its strained body."""
        if body == WORLD:
            return frame[:3, 3].copy(), np.zeros(3)
        q, qd = self.simulation.stepper.q[body], self.simulation.stepper.qd[body]
        return tuple(one[:3] + one[3:].reshape(3, 3) @ frame[:3, 3] for one in (q, qd))

    def _turning(self, body: int) -> np.ndarray:
        """(3,) angular velocity of a body [rad/s]."""
        if body == WORLD:
            return np.zeros(3)
        q, qd = self.simulation.stepper.q[body], self.simulation.stepper.qd[body]
        return axial(qd[3:].reshape(3, 3) @ np.linalg.inv(q[3:].reshape(3, 3)))
