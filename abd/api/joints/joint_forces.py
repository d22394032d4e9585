"""Wrenches of a joint on its bodies, and forces of its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.api.joints.joint_frames import JointFrames
from abd.api.views import finite
from abd.joints.coordinates.readings import ACTING, BILATERAL, UNILATERAL
from abd.joints.custom.custom import RowFlags
from abd.joints.measures.combined import Combined
from abd.joints.rows.laws import Role
from abd.joints.rows.placement import body_pose
from abd.joints.rows.table import MeasureTable, linearize, tabulate, values
from abd.joints.types import TYPES
from abd.model import WORLD
from cuda_kernels.shared import slots

FRAMES = ("world", "C", "D", "child", "parent", "joint")
PARTS = {"all": None, "bilateral": BILATERAL, "unilateral": UNILATERAL, "acting": ACTING}


@dataclass(frozen=True)
class JointRow:
    """One row of a joint: a constraint, a gap, a range limit or a lock of a coordinate.

    Attributes:
        name: name of the constraint or gap; "theta.lower", "theta.upper" and "theta.lock" of a coordinate theta.
        flags: BILATERAL for equality rows, LINEAR or ROTARY, LIMIT for range limits, LOCKED for locks.
        value: residual of a bilateral row; distance of a unilateral row, negative where violated [m or rad].
        force: multiplier, positive towards larger values [N or N m].
        engaged: +1 for bilateral rows; for unilateral rows 0 without force in the last step, -1 at an upper limit, else +1.
        speed: rate of the distance of a unilateral row, negative while it closes; None for bilateral rows.
    """

    name: str
    flags: RowFlags
    value: float
    force: float
    engaged: int
    speed: float | None = None

    @property
    def motion_type(self) -> str:
        """ "linear" or "rotary"."""
        return "rotary" if RowFlags.ROTARY in self.flags else "linear"


class JointForces(JointFrames):
    """Forces of one joint in the last step; base of `JointView`."""

    __slots__ = ()

    # wrenches -----------------------------------------------------------------------------------------------------

    def wrench(
        self, on: str = "child", frame: str = "world", point: str | np.ndarray = "joint", part: str = "all"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return force [N] and torque [N m] of the joint on one of its bodies.

        Args:
            on: "child" or "parent". About one point, both wrenches are opposite. Exceptions are joints that fix some world
                axes and leave others free: they act on each body at its own marker.
            frame: axes: "world", "C" or "D" ("joint" is D), or the mesh frame of the "child" or "parent".
            point: reference point of the torque: "joint" or "C" is the origin of C; "D" is the origin of D; "center" is the
                centre of mass of the body (the origin for the world); or a point (3,) of the world [m].
            part: "all"; "bilateral": constraint rows and locks; "unilateral": gaps and range limits; "acting": drives,
                springs, friction, rotors and couplings.

        Raises:
            ValueError: the body, frame, point or part is unknown, or a point is not three finite numbers.
        """
        if on not in ("child", "parent"):
            raise ValueError(f'on must be "child" or "parent", not {on!r}')
        if part not in PARTS:
            raise ValueError(f"part must be one of {', '.join(PARTS)}, not {part!r}")
        both = self.simulation.joint_readings().wrenches(on, PARTS[part])[self.index]
        force, torque = both[:3], both[3:] - np.cross(self._point(point, on) - self._joint_point, both[:3])
        axes = self._axes(frame)
        return axes.T @ force, axes.T @ torque

    def exudyn_force(self) -> tuple[np.ndarray, np.ndarray]:
        """Return force and torque in Exudyn's convention: on the parent at marker m0, world axes."""
        return self.wrench(on="parent", point="D")

    def adams_rforce(self) -> tuple[np.ndarray, np.ndarray]:
        """Return force and torque in the convention of ADAMS: on the parent (ground) at the joint's point, world axes."""
        return self.wrench(on="parent")

    # rows ---------------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> tuple[JointRow, ...]:
        """Constraints of the joint type, gaps, then locks and range limits by coordinate."""
        measured = self._measured_rows(Role.GAP) + self._measured_rows(Role.LOCK, Role.LOWER, Role.UPPER)
        return (*self._constraint_rows(), *measured)

    def row(self, name: str) -> JointRow:
        """Return a row by name.

        Raises:
            KeyError: the row is unknown.
        """
        found = {one.name: one for one in self.rows}
        if name not in found:
            raise KeyError(f"joint '{self.joint.name}' has no row '{name}'; it has {list(found)}")
        return found[name]

    @property
    def multipliers(self) -> np.ndarray:
        """(k,) multipliers [N or N m] of the constraint rows of the type, its combined constraints and its gaps, in this order.

        They solve ``wrench = sum_k lambda_k G_k^T`` by least squares, with the constraint gradients G_k of the rigid bodies.
        Dependent rows get the solution of minimum norm. `rows` has the multipliers by name, including locks and range limits.
        """
        gaps = self._rows_of(Role.GAP)
        return np.concatenate([self._bilateral_forces(), self.simulation.joint_readings().row_force[gaps]])

    @property
    def bilateral_forces(self) -> np.ndarray:
        """(k,) `JointRow.force` of the bilateral rows, including locks."""
        return np.array([one.force for one in self.rows if RowFlags.BILATERAL in one.flags])

    @property
    def unilateral_forces(self) -> np.ndarray:
        """(k,) `JointRow.force` of the unilateral rows, including range limits."""
        return np.array([one.force for one in self.rows if RowFlags.BILATERAL not in one.flags])

    def unit_wrenches(self, table: MeasureTable, chosen: np.ndarray) -> np.ndarray:
        """Return wrenches (k, 6) of unit forces along measures of a table, on the child at the joint's point, world axes."""
        sim, rigid = self.simulation, self._rigid[0]
        _, child, _ = linearize(table, rigid)
        return sim.joint_readings().at_joint(rigid, np.full(len(chosen), self.index), child[chosen])

    # counts -------------------------------------------------------------------------------------------------------

    @property
    def num_constraints(self) -> int:
        """Sum of `num_bilateral` and `num_unilateral`."""
        return self.num_bilateral + self.num_unilateral

    @property
    def num_bilateral(self) -> int:
        """Number of constraint rows of the type plus number of locked coordinates."""
        return len(self._bilateral) + len(self._rows_of(Role.LOCK))

    @property
    def num_unilateral(self) -> int:
        """Number of gaps plus number of coordinates with a range."""
        return len(self.engagement)

    @property
    def num_engaged(self) -> int:
        """Number of gaps and ranges with a force in the last step."""
        return sum(one != 0 for one in self.engagement.values())

    @property
    def engagement(self) -> dict[str, int]:
        """Engagement of gaps and ranges in the last step by name: +1 gap or lower limit, -1 upper limit, 0 none."""
        out = {one.name: one.engaged for one in self._measured_rows(Role.GAP)}
        for one in self._measured_rows(Role.LOWER, Role.UPPER):
            name = one.name.rpartition(".")[0]
            out[name] = one.engaged or out.get(name, 0)
        return out

    @property
    def gaps(self) -> dict[str, JointRow]:
        """Gaps by name: limits of rotations, ropes, unilateral planes and constraints."""
        return {one.name: one for one in self._measured_rows(Role.GAP)}

    # parts --------------------------------------------------------------------------------------------------------

    @property
    def _row_laws(self):
        return self.simulation.backend.system.row_laws

    def _rows_of(self, *roles: Role) -> np.ndarray:
        """Return the measured rows of the joint with given roles."""
        return self.simulation.control.rows(self.index, *roles)

    @property
    def _bilateral(self) -> list[Combined]:
        """Constraint rows of the joint type as sums of measures."""
        joint = self._with_present_parent
        kind = TYPES[joint.type]
        held = [one for one in kind.constraints_at(joint, self.T_CD) if not one.unilateral]
        rows = [Combined(one.name, one.rotary, (one,), (1.0,)) for one in held]
        return rows + [one for one in kind.combined(joint) if one.holds]

    def _bilateral_forces(self) -> np.ndarray:
        """Return the multipliers (k,) of the constraint rows of the type."""
        rows = self._bilateral
        if not rows:
            return np.zeros(0)
        measures = [(0, one) for row in rows for one in row.measures]
        weights = np.concatenate([row.weights for row in rows])[:, None]
        starts = np.cumsum([0, *(len(row.measures) for row in rows[:-1])])
        table = tabulate([self._with_present_parent], measures)
        columns = np.add.reduceat(weights * self.unit_wrenches(table, np.arange(len(measures))), starts).T
        held = self.simulation.joint_readings().wrenches(roles=(Role.CONSTRAINT,))[self.index]
        return np.linalg.lstsq(columns, held, rcond=1e-12)[0]

    def _constraint_rows(self) -> list[JointRow]:
        out = []
        for row, force in zip(self._bilateral, self._bilateral_forces(), strict=True):
            table = tabulate([self.joint], [(0, one) for one in row.measures])
            value = float(np.dot(row.weights, values(table, self.simulation.stepper.q))) - row.rest
            flags = RowFlags.BILATERAL | (RowFlags.ROTARY if row.rotary else RowFlags.LINEAR)
            out.append(JointRow(row.name, flags, value, float(force), 1))
        return out

    def _measured_rows(self, *roles: Role) -> list[JointRow]:
        """Return gaps, locks and range limits, those with given roles."""
        a, read, out = self._row_laws, self.simulation.joint_readings(), []
        rate = self.simulation.stepper.memory.history[slots.RATE]
        for row in self._rows_of(*roles):
            kind = RowFlags.ROTARY if a.rotary[row] else RowFlags.LINEAR
            name, x, force = a.name[row], float(read.row_value[row]), float(read.row_force[row])
            if a.role[row] == Role.LOCK:
                flags, held = RowFlags.BILATERAL | RowFlags.LOCKED | kind, x if a.follows[row] else float(a.target[row])
                out.append(JointRow(f"{name}.lock", flags, x - held, force, 1))
                continue
            sign, engaged = int(a.sign[row]), int(read.engaged[row])
            if a.role[row] != Role.GAP:
                name, kind = f"{name}.{'lower' if a.role[row] == Role.LOWER else 'upper'}", RowFlags.LIMIT | kind
                engaged *= sign
            out.append(JointRow(name, kind, sign * float(x - a.bound[row]), force, engaged, sign * float(rate[row])))
        return out

    @property
    def _joint_point(self) -> np.ndarray:
        return self.simulation.joint_readings().points[self.index]

    def _axes(self, frame: str) -> np.ndarray:
        """Return the axes (3, 3) of a frame as columns."""
        if frame not in FRAMES:
            raise ValueError(f"frame must be one of {', '.join(FRAMES)}, not {frame!r}")
        if frame == "world":
            return np.eye(3)
        if frame in ("D", "joint"):
            return self.T_DW[:3, :3]
        if frame == "C":
            return self.T_CW[:3, :3]
        body = self.joint.child if frame == "child" else self.joint.parent
        if body == WORLD:
            return np.eye(3)
        return (body_pose(self._rigid[0], body) @ self.simulation.model.bodies.body_frame[body])[:3, :3]

    def _point(self, point: str | np.ndarray, on: str) -> np.ndarray:
        """Return a point (3,) of the world."""
        if not isinstance(point, str):
            return finite(point, (3,), "the reference point of a wrench")
        if point in ("joint", "C"):
            return self._joint_point
        if point == "D":
            return self.position
        if point != "center":
            raise ValueError(f'point must be "joint", "C", "D", "center" or a point (3,), not {point!r}')
        body = self.joint.child if on == "child" else self.joint.parent
        return np.zeros(3) if body == WORLD else self.simulation.stepper.q[body, :3]
