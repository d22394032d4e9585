"""Read-outs of all joints of a scene as arrays.

They refer to the solver's state, with strain and the velocities of affine bodies. A coordinate is the number on which
its limits, locks and drives act. A limit that the solver enforces is therefore also satisfied in the read-out. (The
velocity of a step contains the chord of the rotation. As the velocity of a rigid body it would displace points by h w^2
/ 2 times their distance towards the axis.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from abd.joint_list import JointList
from abd.joints.measures.custom_rows import group_custom_rows
from abd.joints.rows import forces
from abd.joints.rows.batches import PerJoint, batches
from abd.joints.rows.build import build_system
from abd.joints.rows.change import settings_of
from abd.joints.rows.forces import Applied
from abd.joints.rows.laws import Role
from abd.joints.rows.measured_rows import evaluate as row_values
from abd.joints.rows.rigid_rows import rotations_and_spins
from abd.joints.rows.rows import residual
from abd.joints.rows.system import JointMemory, JointSystem
from abd.joints.rows.table import COLUMNS, by_twists, of_joints, rates, values
from abd.joints.types import TYPES
from abd.model import WORLD, Model
from abd.rotations import skew
from cuda_kernels.shared import slots

HOLDING = (Role.CONSTRAINT, Role.GAP)
"""Roles of the rows of a joint's type."""
BILATERAL = (Role.CONSTRAINT, Role.LOCK)
UNILATERAL = (Role.GAP, Role.LOWER, Role.UPPER)
ACTING = tuple(role for role in Role if role not in BILATERAL + UNILATERAL)
"""Roles of bilateral rows, of unilateral rows, and of all others."""


class JointReader:
    """Reader of the joint coordinates of a model; c coordinates in total.

    Attributes:
        table: measures of the coordinates of all joints, joint by joint.
        names: (c,) their names; starts: (j + 1,) first coordinate of every joint.
        initial: (c,) values near which the angles of the initial state are counted.
    """

    def __init__(self, model: Model):
        joints = self.joints = JointList.of(model.joints)
        found = [(batch, one) for batch in batches(joints) for one in TYPES[batch.first.type].coordinates(batch.first)]
        each, custom = PerJoint(found), ()
        if any(one.function is not None for _, one in found):
            custom = group_custom_rows(each.column(lambda _, one: one, object).tolist(), each.joint.tolist())
        columns = {name: each.column(lambda _, one, name=name: getattr(one, name), *of) for name, of in COLUMNS.items()}
        self.table = of_joints(joints, joint=each.joint, custom=custom, **columns)
        self.names = each.column(lambda _, one: one.name, object).tolist()
        self.starts = np.searchsorted(each.joint, np.arange(len(joints) + 1))
        self.initial = each.column(lambda batch, one: settings_of(batch.first, one.name).initial, float)
        self.child = joints.column("child").astype(int)
        self.anchor = joints.column("child_frame")[:, :3, 3].copy()

    def coordinates(self, q: np.ndarray, last: np.ndarray | None = None) -> np.ndarray:
        """(c,) coordinates of a state q (n, 12); angles nearest to `last` (c,), by default to the initial values."""
        return values(self.table, q, self.initial if last is None else last)

    def rates(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """(c,) rates of the coordinates."""
        return rates(self.table, q, qd)

    def of(self, joint: int) -> slice:
        """Slice of the coordinates of a joint."""
        return slice(int(self.starts[joint]), int(self.starts[joint + 1]))


@dataclass(eq=False)
class Readings:
    """Read-outs of one state of j joints with c coordinates, computed on access.

    Attributes:
        q, qd: (n, 12); coordinates: (c,) of the state.
        memory, applied: joint memory and laws of the last step.
        factor: (R,) impulse of a row in the last step over the one by its law, other than 1 in impacts, or scalar.
        reactions: function that returns (j, 6) reactions of joints to impacts on the children, forces and torques about the
            centres of mass; None without impacts.
        mean: forces of the measured rows (R,) and of the linear rows (l, 3) over a frame of several substeps, else None.
    """

    reader: JointReader
    system: JointSystem
    q: np.ndarray
    qd: np.ndarray
    coordinates: np.ndarray
    memory: JointMemory
    applied: Applied
    factor: np.ndarray | float = 1.0
    reactions: Callable[[], np.ndarray] | None = None
    mean: tuple[np.ndarray, np.ndarray] | None = None

    @cached_property
    def rates(self) -> np.ndarray:
        """(c,) rates of the coordinates [m/s or rad/s]."""
        return self.reader.rates(self.q, self.qd)

    @cached_property
    def row_value(self) -> np.ndarray:
        """(R,) values of the measured rows."""
        return row_values(self.system.rows, self.memory.reference)[0]

    @cached_property
    def row_force(self) -> np.ndarray:
        """(R,) forces of the measured rows along their values [N or N m]."""
        return self.factor * forces.row_forces(self.applied, self.row_value) if self.mean is None else self.mean[0]

    @cached_property
    def linear_force(self) -> np.ndarray:
        """(l, 3) forces of the linear rows [N or N m]."""
        return forces.linear_forces(self.applied, self._linear_residual) if self.mean is None else self.mean[1]

    @cached_property
    def engaged(self) -> np.ndarray:
        """(R,) one-sided rows with a force in the last step: gaps and ends of ranges."""
        a = self.system.row_laws
        return np.isin(a.role, UNILATERAL) & (a.sign * self.row_force > 0.0)

    @cached_property
    def _linear_residual(self) -> np.ndarray:
        """(l, 3) residuals of the linear rows."""
        return residual(self.system.linear, self.q)

    @cached_property
    def _deviations(self) -> tuple[np.ndarray, np.ndarray]:
        """Sizes of the residuals of the linear rows (l,) and of the measured rows (R,)."""
        linear, a, x = self.system.linear, self.system.row_laws, self.row_value
        measured = np.where(a.role == Role.GAP, np.maximum(0.0, a.sign * (a.bound - x)), np.abs(x - a.target))
        F = self._linear_residual * linear.mask
        return np.sqrt(np.einsum("lk,lk->l", F, F)), measured

    @cached_property
    def residual(self) -> np.ndarray:
        """(j, 2) largest residual of the constraint rows that are lengths [m] and angles [rad]; of gaps, the violation."""
        out = np.zeros((len(self.reader.joints), 2))
        linear, a = self.system.linear, self.system.row_laws
        size, deviation = self._deviations
        np.maximum.at(out, (linear.joint, (~linear.is_point).astype(int)), size)
        holding = np.isin(a.role, HOLDING)
        np.maximum.at(out, (a.joint[holding], a.rotary[holding].astype(int)), deviation[holding])
        return out

    @cached_property
    def worst_residual(self) -> np.ndarray:
        """(2,) largest residual of all active joints and couplings [m], [rad]."""
        active = self.reader.joints.column("active").astype(bool)
        worst = np.where(active[:, None], self.residual, 0.0).max(axis=0, initial=0.0)
        a = self.system.row_laws
        coupled = (a.role == Role.COUPLING) & a.active
        np.maximum.at(worst, a.rotary[coupled].astype(int), self._deviations[1][coupled])
        return worst

    def wrenches(self, on: str = "child", roles: tuple[Role, ...] | None = None) -> np.ndarray:
        """(j, 6) force [N] and torque [N m] on the "child" or the "parent" at the joint's point, world axes.

        The joint's point is the origin of C on the strained child (`points`). Rows between two frames do not change
        when both bodies move as one, so that the parent's wrench is the negative of the child's. Rows along world axes
        act at each body's own point.

        Args:
            roles: rows that count; default: all.
        """
        out = np.zeros((len(self.reader.joints), 6))
        if roles is None or Role.CONSTRAINT in roles:
            np.add.at(out, self.system.linear.joint, self._linear_wrenches[on])
            if self.reactions is not None:
                each = self.reactions()
                each[:, 3:] -= np.cross(self.points - self.q[self.reader.child, :3], each[:, :3])
                out += each if on == "child" else -each
        if len(self.system.rows):
            joint, each = self._measured_wrenches
            role = self.system.row_laws.role[self.system.rows.term_row]
            chosen = slice(None) if roles is None else np.isin(role, roles)
            np.add.at(out, joint[chosen], each[chosen] if on == "child" else -each[chosen])
        return out

    @cached_property
    def _linear_wrenches(self) -> dict[str, np.ndarray]:
        """(l, 6) wrenches of the linear rows on the "child" and on the "parent" at the joints' points."""
        linear, q, out = self.system.linear, self.q, {}
        f = self.linear_force
        for on, body, Y, push in (("child", linear.child, linear.Yc, f), ("parent", linear.parent, linear.Yp, -f)):
            inner = (body != WORLD)[:, None]
            A = np.where(inner[:, :, None], q[body, 3:].reshape(-1, 3, 3), np.eye(3))
            lever = np.einsum("lij,lj->li", A, Y[:, 1:])
            # directions have torques only; forces on points act at the points
            lever += Y[:, :1] * (np.where(inner, q[body, :3], 0.0) - self.points[linear.joint])
            out[on] = np.concatenate([push * Y[:, :1], np.cross(lever, push)], axis=1)
        return out

    @cached_property
    def _measured_wrenches(self) -> tuple[np.ndarray, np.ndarray]:
        """Joints (T,) of the terms of the measured rows, and their wrenches (T, 6) on the children."""
        system = self.system
        _, gradient = system.linearize(self.q, self.memory.reference)[1][0]
        push = self.row_force[system.rows.term_row, None] * gradient
        joint = system.table.joint[system.rows.term_measure]
        return joint, self.at_joint(self.q, joint, push)

    @cached_property
    def points(self) -> np.ndarray:
        """(j, 3) reference points of the joint wrenches: the origins of C on the strained children."""
        body = self.reader.child
        return self.q[body, :3] + np.einsum("kij,kj->ki", self.q[body, 3:].reshape(-1, 3, 3), self.reader.anchor)

    def at_joint(self, q: np.ndarray, joint: np.ndarray, push: np.ndarray) -> np.ndarray:
        """(k, 6) wrenches at the joints' points from generalised forces (k, 12) on the children of joints (k,) in q (n,
        12).
        """
        wrench, body = by_twists(push, q, self.reader.child[joint]), self.reader.child[joint]
        arm = np.einsum("kij,kj->ki", q[body, 3:].reshape(-1, 3, 3), self.reader.anchor[joint])
        wrench[:, 3:] -= np.cross(arm, wrench[:, :3])
        return wrench

    @cached_property
    def wrench(self) -> np.ndarray:
        """(j, 6) total force [N] and torque [N m] on the child at its anchor, world axes.

        It includes constraint rows, limits, drives, springs, friction, rotors and couplings.
        """
        return self.wrenches()

    @cached_property
    def constraint_wrench(self) -> np.ndarray:
        """(j, 6) wrench of the rows of the joint's type only."""
        return self.wrenches(roles=HOLDING)

    @cached_property
    def energy(self) -> np.ndarray:
        """(j,) stored energy [J] of penalties, compliances, springs, limits and rotors; of couplings at their q0."""
        out = np.zeros(len(self.reader.joints))
        np.add.at(
            out, self.system.linear.joint, forces.linear_energies(self.system, self.applied, self._linear_residual)
        )
        each = forces.row_energies(self.system, self.applied, self.row_value, self.memory.history[slots.RATE])
        each -= forces.released_energies(
            self.system, self.applied, self.row_value, self.memory.history[slots.BARRIER_WIDTH]
        )
        np.add.at(out, self.system.row_laws.joint, each)
        return out


def initial_readings(model: Model, q: np.ndarray, qd: np.ndarray, time: float = 0.0) -> Readings:
    """Read-outs of an initial state q, qd (n, 12)."""
    reader, system = JointReader(model), build_system(model)
    system.follow_poses(q)
    memory = system.fresh_memory(q, qd)
    applied = forces.initial_laws(system, memory, model.settings, time)
    return Readings(reader, system, q, qd, reader.coordinates(q), memory, applied)


def rigid_motion(q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States and velocities (n, 12) of the closest rigid bodies: A becomes its rotation R, dA/dt becomes ``[w] R``."""
    R, w = rotations_and_spins(q, qd)
    parts = ((q, R), (qd, skew(w) @ R))
    return tuple(np.concatenate([one[:, :3], turned.reshape(-1, 9)], axis=1) for one, turned in parts)
