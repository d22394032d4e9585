"""What a joint does to its bodies: wrenches on either one, and the force of every row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.api.joints.joint_frames import JointFrames
from abd.joints.coordinates.readings import ACTING, BILATERAL, UNILATERAL
from abd.joints.custom.custom import RowFlags
from abd.joints.measures.combined import Combined
from abd.joints.rows.laws import Role
from abd.joints.rows.placement import body_pose
from abd.joints.rows.table import MeasureTable, linearize, tabulate, values
from abd.joints.types import TYPES
from abd.model import WORLD

FRAMES = ("world", "C", "D", "child", "parent", "joint")
PARTS = {"all": None, "bilateral": BILATERAL, "unilateral": UNILATERAL, "acting": ACTING}


@dataclass(frozen=True)
class JointRow:
    """One row that holds a joint: a constraint, a gap, an end of a coordinate's range, or its lock.

    Attributes:
        name: of the constraint or gap; "theta.lower", "theta.upper" and "theta.lock" of a coordinate theta.
        flags: BILATERAL or not, LINEAR or ROTARY, LIMIT of ends, LOCKED of locks.
        value: residual of what holds both ways, distance of what holds one way, negative where it is overrun [m or rad].
        force: with which it pushes its value up [N or N m]: a multiplier.
        engaged: +1 or -1 where a row that holds one way pushed in the last step, -1 at an upper end; +1 of all others.
    """

    name: str
    flags: RowFlags
    value: float
    force: float
    engaged: int

    @property
    def motion_type(self) -> str:
        """ "linear" or "rotary"."""
        return "rotary" if RowFlags.ROTARY in self.flags else "linear"


@dataclass(frozen=True)
class Gap:
    """A one-sided constraint: its distance [m or rad], negative where it is overrun, the rate of that, which is negative while
    it closes, the force with which it pushes [N or N m], and whether it did in the last step (0 or 1)."""

    value: float
    speed: float
    force: float
    engaged: int


class JointForces(JointFrames):
    """Forces of one joint in the last step; base of `JointView`."""

    # wrenches -----------------------------------------------------------------------------------------------------

    def wrench(
        self, on: str = "child", frame: str = "world", point: str | np.ndarray = "joint", part: str = "all"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Force [N] and torque [N m] of what the joint does to one of its bodies.

        Args:
            on: "child", or "parent". At one point they are opposite, but for joints that hold some axes of the world
                while they are open along others: these pull each body at its own marker.
            frame: axes: "world", those of "C" or "D" ("joint" is D), or the mesh frame of the "child" or "parent".
            point: about which the torque is: "joint" or "C", the origin of C; "D", the origin of D; the "center" of
                mass of the body it acts on (the origin for the world), or a point (3,) of the world [m].
            part: "all"; "bilateral": constraint rows and locks; "unilateral": gaps and ends of ranges; "acting": drives,
                springs, friction, rotors and couplings.

        Raises:
            ValueError: an unknown body, frame, point or part.
        """
        if on not in ("child", "parent"):
            raise ValueError(f'on is {on!r}; "child" and "parent" are known')
        if part not in PARTS:
            raise ValueError(f"part is {part!r}; {', '.join(PARTS)} are known")
        both = self.simulation.joint_readings().wrenches(on, PARTS[part])[self.index]
        force, torque = both[:3], both[3:] - np.cross(self._point(point, on) - self._joint_point, both[:3])
        axes = self._axes(frame)
        return axes.T @ force, axes.T @ torque

    def exudyn_force(self) -> tuple[np.ndarray, np.ndarray]:
        """Force and torque as Exudyn's joints tell them: on the parent at marker m0, world axes."""
        return self.wrench(on="parent", point="D")

    def adams_rforce(self) -> tuple[np.ndarray, np.ndarray]:
        """Force and torque as ADAMS' tables tell them: on the parent (ground), at the joint's point, world axes."""
        return self.wrench(on="parent")

    # rows ---------------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> tuple[JointRow, ...]:
        """All that holds the joint: constraints of its type, gaps, then locks and ends of ranges by coordinate."""
        return (*self._constraint_rows(), *self._one_sided(Role.GAP), *self._of_coordinates())

    def row(self, name: str) -> JointRow:
        """One of `rows` by its name.

        Raises:
            KeyError: there is no such row.
        """
        found = {one.name: one for one in self.rows}
        if name not in found:
            raise KeyError(f"joint '{self.joint.name}' has no row '{name}'; it has {list(found)}")
        return found[name]

    @property
    def multipliers(self) -> np.ndarray:
        """(k,) force [N or N m] with which every row of the type's `constraints` pushes, in their order, then every
        constraint among its `combined` rows, then every gap; `rows` has them by name, with locks and ends of ranges.

        The wrench of the constraint rows is resolved into those of unit forces along the gradients of the constraints
        of the rigid bodies, by least squares: ``wrench = sum_k lambda_k G_k^T``. With rows that depend on one another
        the smallest solution is taken.
        """
        gaps = self._rows_of(Role.GAP)
        return np.concatenate([self._bilateral_forces(), self.simulation.joint_readings().row_force[gaps]])

    @property
    def bilateral_forces(self) -> np.ndarray:
        """(k,) `JointRow.force` of the rows that hold both ways, locks included."""
        return np.array([one.force for one in self.rows if RowFlags.BILATERAL in one.flags])

    @property
    def unilateral_forces(self) -> np.ndarray:
        """(k,) `JointRow.force` of the rows that hold one way, ends of ranges included."""
        return np.array([one.force for one in self.rows if RowFlags.BILATERAL not in one.flags])

    def unit_wrenches(self, table: MeasureTable, chosen: np.ndarray) -> np.ndarray:
        """(k, 6) wrenches on the child at the joint's point, world axes, of unit forces along measures of a table."""
        sim, rigid = self.simulation, self._rigid[0]
        _, child, _ = linearize(table, rigid)
        return sim.joint_readings().at_joint(rigid, np.full(len(chosen), self.index), child[chosen])

    # counts -------------------------------------------------------------------------------------------------------

    @property
    def num_constraints(self) -> int:
        """Number of its rows, `num_bilateral` and `num_unilateral` together."""
        return self.num_bilateral + self.num_unilateral

    @property
    def num_bilateral(self) -> int:
        """Number of constraint rows of its type, and of coordinates that are locked."""
        return len(self._bilateral) + len(self._rows_of(Role.LOCK))

    @property
    def num_unilateral(self) -> int:
        """Number of its gaps that must not close, and of coordinates with a range."""
        ranged = {self._acting.name[row] for row in self._rows_of(Role.LOWER, Role.UPPER)}
        return len(self._rows_of(Role.GAP)) + len(ranged)

    @property
    def num_engaged(self) -> int:
        """Those of them that pushed in the last step."""
        return sum(one != 0 for one in self.engagement.values())

    @property
    def engagement(self) -> dict[str, int]:
        """Whether its gaps and ranges pushed in the last step, by name: +1 where a gap or a lower end did, -1 where an
        upper end did, 0 where none did."""
        a, read = self._acting, self.simulation.joint_readings()
        gaps = {a.name[row]: int(read.engaged[row]) for row in self._rows_of(Role.GAP)}
        ends = self._rows_of(Role.LOWER, Role.UPPER)
        ranges = {a.name[row]: 0 for row in ends}
        for row in ends[read.engaged[ends]]:
            ranges[a.name[row]] = int(np.sign(read.row_force[row]))
        return gaps | ranges

    @property
    def gaps(self) -> dict[str, Gap]:
        """Its gaps by name: limits of rotations, ropes, unilateral planes and constraints."""
        readings, memory = self.simulation.joint_readings(), self.simulation.stepper.memory
        name, x, f = self._acting.name, readings.row_value, readings.row_force
        return {
            name[row]: Gap(float(x[row]), float(memory.history[2, row]), float(f[row]), int(readings.engaged[row]))
            for row in self._rows_of(Role.GAP)
        }

    # parts --------------------------------------------------------------------------------------------------------

    @property
    def _acting(self):
        return self.simulation.backend.system.row_laws

    def _rows_of(self, *roles: Role) -> np.ndarray:
        """Measured rows of the joint in some roles."""
        a = self._acting
        return np.flatnonzero((a.joint == self.index) & np.isin(a.role, roles) & (a.coupling < 0))

    @property
    def _bilateral(self) -> list[Combined]:
        """Every constraint row of its type as a sum of measures."""
        joint = self._placed
        module = TYPES[joint.type]
        combined = module.combined(joint) if hasattr(module, "combined") else []
        if getattr(module, "FOLLOWS_POSE", False):
            held = [one for one in module.at_pose(joint, self.T_CD) if not one.unilateral]
        else:
            held = [one for one in module.constraints(joint) if not one.unilateral]
        rows = [Combined(one.name, one.rotary, (one,), (1.0,)) for one in held]
        return rows + [one for one in combined if one.holds]

    def _bilateral_forces(self) -> np.ndarray:
        """(k,) multipliers of the constraint rows of the type."""
        rows = self._bilateral
        if not rows:
            return np.zeros(0)
        measures = [(0, one) for row in rows for one in row.measures]
        weights = np.concatenate([row.weights for row in rows])[:, None]
        starts = np.cumsum([0, *(len(row.measures) for row in rows[:-1])])
        table = tabulate([self._placed], measures)
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

    def _of_coordinates(self) -> list[JointRow]:
        """Locks and ends of ranges, coordinate by coordinate."""
        a, read = self._acting, self.simulation.joint_readings()
        out = []
        for row in self._rows_of(Role.LOCK, Role.LOWER, Role.UPPER):
            kind = RowFlags.ROTARY if a.rotary[row] else RowFlags.LINEAR
            x, force, name = read.row_value[row], float(read.row_force[row]), a.name[row]
            if a.role[row] == Role.LOCK:
                held = a.target[row] if not a.follows[row] else x
                flags = RowFlags.BILATERAL | RowFlags.LOCKED | kind
                out.append(JointRow(f"{name}.lock", flags, float(x - held), force, 1))
                continue
            end = "lower" if a.role[row] == Role.LOWER else "upper"
            gap, engaged = float(a.sign[row] * (x - a.bound[row])), int(read.engaged[row])
            out.append(JointRow(f"{name}.{end}", RowFlags.LIMIT | kind, gap, force, int(a.sign[row]) * engaged))
        return out

    def _one_sided(self, role: Role) -> list[JointRow]:
        a, read = self._acting, self.simulation.joint_readings()
        return [
            JointRow(
                a.name[row],
                RowFlags.ROTARY if a.rotary[row] else RowFlags.LINEAR,
                float(a.sign[row] * (read.row_value[row] - a.bound[row])),
                float(read.row_force[row]),
                int(read.engaged[row]),
            )
            for row in self._rows_of(role)
        ]

    @property
    def _joint_point(self) -> np.ndarray:
        return self.simulation.joint_readings().points[self.index]

    def _axes(self, frame: str) -> np.ndarray:
        """(3, 3) axes of a frame as columns."""
        if frame not in FRAMES:
            raise ValueError(f"frame is {frame!r}; {', '.join(FRAMES)} are known")
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
        """(3,) point of the world."""
        if not isinstance(point, str):
            return np.asarray(point, dtype=float)
        if point in ("joint", "C"):
            return self._joint_point
        if point == "D":
            return self.position
        if point != "center":
            raise ValueError(f'point is {point!r}; "joint", "C", "D", "center" and points (3,) are known')
        body = self.joint.child if on == "child" else self.joint.parent
        return np.zeros(3) if body == WORLD else self.simulation.stepper.q[body, :3]
