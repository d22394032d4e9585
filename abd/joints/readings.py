"""Read-outs of all joints of a scene at once: what `rows` and `coordinates` define for one joint, in whole arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.joints.rows import compile_rows, residual
from abd.model import WORLD, Model
from abd.potentials.arap import polar


@dataclass(frozen=True)
class Readings:
    """One state's read-outs; j joints, h of them hinges.

    Attributes:
        residual: (j, 2) largest violation of the point rows [m] and of the direction rows [rad].
        wrench: (j, 6) force [N] and torque [N m] on the child at its anchor, world axes.
        angle, rate: (h,) of the hinges, in the order of `JointReader.hinges` [rad], [rad/s].
    """

    residual: np.ndarray
    wrench: np.ndarray
    angle: np.ndarray
    rate: np.ndarray


class JointReader:
    """Prepared for the joints of one model.

    Attributes:
        hinges: (h,) indices of the joints that have a coordinate.
    """

    def __init__(self, model: Model):
        self.joints = model.joints
        self.rows = compile_rows(model.joints)
        self.hinges = np.array([k for k, joint in enumerate(model.joints) if joint.type == "hinge"], dtype=int)
        self.child = np.array([joint.child for joint in model.joints], dtype=int)
        self.anchor = np.array([np.append(1.0, joint.child_frame[:3, 3]) for joint in model.joints]).reshape(-1, 4)
        chosen = [model.joints[k] for k in self.hinges]
        self.hinge_parent = np.array([joint.parent for joint in chosen], dtype=int)
        self.parent_triad = np.array([joint.parent_frame[:3, :3] for joint in chosen]).reshape(-1, 3, 3)
        self.child_triad = np.array([joint.child_frame[:3, :3] for joint in chosen]).reshape(-1, 3, 3)

    def read(self, q: np.ndarray, qd: np.ndarray, ch2: float, last: np.ndarray | None = None) -> Readings:
        """Read-outs of a state q (n, 12) with velocity qd (n, 12); `ch2` is c h^2 of the step [s^2].

        Angles lie in (-pi, pi], or, over any number of turns, nearest to the angles `last` (h,) of the step before.
        """
        count, rows = len(self.joints), self.rows
        out, wrench = np.zeros((count, 2)), np.zeros((count, 6))
        if count:
            F = residual(rows, q)
            size = np.linalg.norm(F, axis=1)
            for column, mine in enumerate((rows.is_point, ~rows.is_point)):
                np.maximum.at(out[:, column], rows.joint[mine], size[mine])
            Q = np.concatenate([q[:, :3, None], q[:, 3:].reshape(-1, 3, 3)], axis=2)
            force = -(rows.K / ch2)[:, None] * F
            # A point row pulls at its point; a direction row turns: its arm is the direction itself.
            arm = np.einsum("mrc,mc->mr", Q[rows.child], rows.Yc)
            anchor = np.einsum("jrc,jc->jr", Q[self.child], self.anchor)
            arm[rows.is_point] -= anchor[rows.joint[rows.is_point]]
            np.add.at(wrench[:, :3], rows.joint[rows.is_point], force[rows.is_point])
            np.add.at(wrench[:, 3:], rows.joint, np.cross(arm, force))
        angle, rate = self._hinge_coordinates(q, qd)
        if last is not None:
            angle += 2.0 * np.pi * np.round((last - angle) / (2.0 * np.pi))
        return Readings(out, wrench, angle, rate)

    def _hinge_coordinates(self, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        child, parent = self.child[self.hinges], self.hinge_parent
        world = parent == WORLD
        D, C = self.parent_triad.copy(), polar(_affine(q[child])) @ self.child_triad
        D[~world] = polar(_affine(q[parent[~world]])) @ D[~world]
        R = D.transpose(0, 2, 1) @ C
        angle = np.arctan2(R[:, 1, 0] - R[:, 0, 1], R[:, 0, 0] + R[:, 1, 1])
        relative = _angular_velocities(q[child], qd[child])
        relative[~world] -= _angular_velocities(q[parent[~world]], qd[parent[~world]])
        return angle, np.einsum("hi,hi->h", relative, D[:, :, 2])


def _affine(q: np.ndarray) -> np.ndarray:
    """(k, 3, 3) of states (k, 12)."""
    return q[:, 3:].reshape(-1, 3, 3)


def _angular_velocities(q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """(k, 3) axial vectors of the skew parts of ``dA/dt A^-1`` [rad/s]."""
    W = _affine(qd) @ np.linalg.inv(_affine(q))
    return 0.5 * np.stack([W[:, 2, 1] - W[:, 1, 2], W[:, 0, 2] - W[:, 2, 0], W[:, 1, 0] - W[:, 0, 1]], axis=1)
