"""`JointView`: one joint of a running simulation, read in any frame and about any point, and switched on and off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from abd.coordinate_view import CoordinateView
from abd.joints import TYPES
from abd.joints.measures import Measure
from abd.joints.placement import body_pose, present_transform
from abd.joints.readings import rigid_motion
from abd.joints.rotations import axial, inverse, log
from abd.joints.system import Role
from abd.joints.table import MeasureTable, linearize, tabulate
from abd.model import WORLD, Joint

if TYPE_CHECKING:
    from abd.joints.assembly import Assembly
    from abd.simulation import Simulation

_FRAMES = ("world", "child", "parent", "joint")


@dataclass(frozen=True)
class Gap:
    """A one-sided constraint: its distance [m or rad], negative where it is overrun, the rate of that, which is negative while
    it closes, the force with which it pushes [N or N m], and whether it did in the last step (0 or 1)."""

    value: float
    speed: float
    force: float
    engaged: int


class JointView:
    """A joint between a parent (frame D) and a child (frame C).

    Frames and velocities are those of the rigid bodies closest to the strained ones. "The joint's point" is the origin
    of C.
    """

    def __init__(self, simulation: Simulation, index: int):
        self.simulation, self.index = simulation, index
        reader = simulation.reader
        self._slice = reader.of(index)
        names = reader.names[self._slice]
        self._coordinates = {name: CoordinateView(self, k, name) for k, name in enumerate(names)}

    @property
    def joint(self) -> Joint:
        """Its present definition."""
        return self.simulation.model.joints[self.index]

    @property
    def name(self) -> str:
        """Its name."""
        return self.joint.name

    # coordinates --------------------------------------------------------------------------------------------------

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of its coordinates, in the order of `coordinates` and `rates`."""
        return tuple(self._coordinates)

    @property
    def coordinates(self) -> np.ndarray:
        """Values of its coordinates [m or rad], angles over any number of turns."""
        return self.simulation.coordinates[self._slice]

    @property
    def rates(self) -> np.ndarray:
        """Their rates [m/s or rad/s]."""
        return self.simulation.joint_readings().rates[self._slice]

    def coordinate(self, which: str | int = 0) -> CoordinateView:
        """One of its coordinates, by name or index.

        Raises:
            KeyError: there is no such coordinate.
        """
        if isinstance(which, str):
            if which not in self._coordinates:
                raise KeyError(f"joint '{self.name}' has no coordinate '{which}'; it has {list(self._coordinates)}")
            return self._coordinates[which]
        return self.coordinate(self.coordinate_names[which])

    def set_coordinate(self, name: str, value: float) -> Assembly:
        """Move a coordinate to a value [m or rad] outside of a step.

        The freer side moves with all that hangs on it; loops are closed. The result tells how the request fared, and
        nothing moves where its `converged` is False. Bodies keep their linear and angular velocities.

        Raises:
            SceneError: bodies would intersect; nothing was moved.
        """
        return self.simulation.control.place({(self.index, self.coordinate(name).name): value})

    # switch -------------------------------------------------------------------------------------------------------

    @property
    def active(self) -> bool:
        """Whether it acts; read-outs go on when it does not. It can be set while the simulation runs."""
        return self.joint.active

    @active.setter
    def active(self, value: bool) -> None:
        self.simulation.control.set_active(self.index, bool(value))

    @property
    def broken_at(self) -> float | None:
        """Time at which it broke [s]; None for a joint that did not."""
        return self.simulation.control.broken.get(self.name)

    # forces -------------------------------------------------------------------------------------------------------

    @property
    def residual(self) -> tuple[float, float]:
        """Largest residual of its rows that are lengths [m], and of those that are angles or directions [rad]."""
        point, turn = self.simulation.joint_readings().residual[self.index]
        return float(point), float(turn)

    @property
    def energy(self) -> float:
        """Energy stored in it [J]."""
        return float(self.simulation.joint_readings().energy[self.index])

    def wrench(
        self, on: str = "child", frame: str = "world", point: str | np.ndarray = "joint"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Force [N] and torque [N m] of all that the joint does: constraints, limits, drives, springs, friction.

        Args:
            on: "child", or "parent", which gets the negative.
            frame: axes: "world", the mesh frame of the "child" or of the "parent", or "joint" for those of D.
            point: about which the torque is: the "joint"'s, the "center" of mass of the body it acts on (the origin
                for the world), or a point (3,) of the world [m].

        Raises:
            ValueError: an unknown body, frame or point.
        """
        if on not in ("child", "parent"):
            raise ValueError(f'on is {on!r}; "child" and "parent" are known')
        sign = 1.0 if on == "child" else -1.0
        both = sign * self.simulation.joint_readings().wrench[self.index]
        force, torque = both[:3], both[3:] - np.cross(self._point(point, on) - self._origins[1], both[:3])
        axes = self._axes(frame)
        return axes.T @ force, axes.T @ torque

    def exudyn_force(self) -> tuple[np.ndarray, np.ndarray]:
        """Force and torque as Exudyn's spherical joint tells them: on the parent (marker m0), world axes."""
        return self.wrench(on="parent")

    def adams_rforce(self) -> tuple[np.ndarray, np.ndarray]:
        """Force and torque as ADAMS' tables tell them: on the parent (ground), at the joint's point, world axes."""
        return self.wrench(on="parent")

    @property
    def multipliers(self) -> np.ndarray:
        """(k,) force [N or N m] with which every row of the type's `constraints` pushes, in their order, then every
        constraint among its `combined` rows, then every gap.

        The wrench of the joint's own rows is resolved into those of unit forces along the gradients of the constraints
        of the rigid bodies, by least squares: ``wrench = sum_k lambda_k G_k^T``. Limits, drives, springs and friction
        are not in it. With rows that depend on one another the smallest solution is taken.
        """
        rows = [*self._bilateral, *(((one,), (1.0,)) for one in self._measured if one.unilateral)]
        if not rows:
            return np.zeros(0)
        measures = [(self.index, one) for parts, _ in rows for one in parts]
        table = tabulate(self.simulation.model.joints, measures)
        weights = np.concatenate([factors for _, factors in rows])[:, None]
        starts = np.cumsum([0, *(len(parts) for parts, _ in rows[:-1])])
        columns = np.add.reduceat(weights * self.unit_wrenches(table, np.arange(len(measures))), starts).T
        return np.linalg.lstsq(columns, self.simulation.joint_readings().constraint_wrench[self.index], rcond=1e-12)[0]

    @property
    def _bilateral(self) -> list[tuple[tuple[Measure, ...], tuple[float, ...]]]:
        """Measures and their weights of every constraint row of its type."""
        module, joint = TYPES[self.joint.type], self.joint
        combined = module.combined(joint) if hasattr(module, "combined") else []
        follows = getattr(module, "FOLLOWS_POSE", False)
        held = [one for one in self._measured if not one.unilateral] if follows else module.constraints(joint)
        return [((one,), (1.0,)) for one in held] + [
            (one.measures, one.weights) for one in combined if one.stiffness is None
        ]

    @property
    def _measured(self) -> list[Measure]:
        """Measured rows of its type, those that follow the pose for the present one."""
        module = TYPES[self.joint.type]
        if getattr(module, "FOLLOWS_POSE", False):
            return module.at_pose(self.joint, self.T_CD)
        return module.measured(self.joint)

    def unit_wrenches(self, table: MeasureTable, chosen: np.ndarray) -> np.ndarray:
        """(k, 6) wrenches on the child at the joint's point, world axes, of unit forces along measures of a table."""
        sim = self.simulation
        rigid, _ = rigid_motion(sim.stepper.q, sim.stepper.qd)
        _, child, _ = linearize(table, rigid)
        return sim.joint_readings().at_joint(rigid, table.joint[chosen], child[chosen])

    # counts -------------------------------------------------------------------------------------------------------

    @property
    def num_bilateral(self) -> int:
        """Number of constraint rows of its type."""
        return len(self._bilateral)

    @property
    def num_unilateral(self) -> int:
        """Number of its gaps that must not close, and of coordinates with a range."""
        ranges = sum(bool(np.isfinite(one.range).any()) for one in self._coordinates.values())
        return len(self._gaps) + ranges

    @property
    def num_engaged(self) -> int:
        """Those of them that pushed in the last step."""
        gaps = self.simulation.joint_readings().engaged[self._gaps]
        return int(gaps.sum()) + sum(one.limit_engagement != 0 for one in self._coordinates.values())

    @property
    def engagement(self) -> dict[str, int]:
        """Whether its gaps and ranges pushed in the last step, by name: +1 where a gap or a lower end did, -1 where an
        upper end did, 0 where none did."""
        a, pushing = self.simulation.backend.system.acting, self.simulation.joint_readings().engaged
        gaps = {a.name[row]: int(pushing[row]) for row in self._gaps}
        ranged = (one for one in self._coordinates.values() if np.isfinite(one.range).any())
        return gaps | {one.name: one.limit_engagement for one in ranged}

    @property
    def gaps(self) -> dict[str, Gap]:
        """Its gaps by name: limits of rotations, ropes, unilateral planes and constraints."""
        readings, memory = self.simulation.joint_readings(), self.simulation.stepper.memory
        name, x, f = self.simulation.backend.system.acting.name, readings.row_value, readings.row_force
        return {
            name[row]: Gap(float(x[row]), float(memory.history[2, row]), float(f[row]), int(readings.engaged[row]))
            for row in self._gaps
        }

    @property
    def _gaps(self) -> np.ndarray:
        a = self.simulation.backend.system.acting
        return np.flatnonzero((a.joint == self.index) & (a.role == Role.GAP))

    # frames -------------------------------------------------------------------------------------------------------

    @property
    def T_CD(self) -> np.ndarray:
        """(4, 4) coordinates in C to coordinates in D."""
        return present_transform(self.joint, self._rigid[0])

    @property
    def T_GD(self) -> np.ndarray:
        """(4, 4) transform nearest to `T_CD` that the joint admits."""
        from abd.joints.transform import project

        return project(self.joint, self.T_CD)

    @property
    def error_twist(self) -> np.ndarray:
        """(6,) twist (v; w) of ``T_GD^-1 T_CD``: how far C is from where the joint admits it [m], [rad]."""
        return log(inverse(self.T_GD) @ self.T_CD)

    @property
    def displacement(self) -> np.ndarray:
        """(3,) from the origin of D to that of C, world axes [m]."""
        parent, child = self._origins
        return child - parent

    @property
    def relative_velocity(self) -> np.ndarray:
        """(6,) twist (v; w) of the child against the parent at the joint's point, world axes [m/s], [rad/s]."""
        return self._twist(self.joint.child) - self._twist(self.joint.parent)

    @property
    def _rigid(self) -> tuple[np.ndarray, np.ndarray]:
        return rigid_motion(self.simulation.stepper.q, self.simulation.stepper.qd)

    @property
    def _origins(self) -> tuple[np.ndarray, np.ndarray]:
        """Origins of D and C in the world."""
        q, joint = self._rigid[0], self.joint
        ends = ((joint.parent, joint.parent_frame), (joint.child, joint.child_frame))
        parent, child = (body_pose(q, body) @ frame[:, 3] for body, frame in ends)
        return parent[:3], child[:3]

    def _twist(self, body: int) -> np.ndarray:
        """(6,) of a body at the joint's point: velocity of its material there, angular velocity."""
        if body == WORLD:
            return np.zeros(6)
        q, qd = self.simulation.stepper.q[body], self.simulation.stepper.qd[body]
        W = qd[3:].reshape(3, 3) @ np.linalg.inv(q[3:].reshape(3, 3))
        return np.concatenate([qd[:3] + W @ (self._origins[1] - q[:3]), axial(W)])

    def _axes(self, frame: str) -> np.ndarray:
        """(3, 3) axes of a frame as columns."""
        if frame not in _FRAMES:
            raise ValueError(f"frame is {frame!r}; {', '.join(_FRAMES)} are known")
        if frame == "world":
            return np.eye(3)
        joint, q = self.joint, self._rigid[0]
        if frame == "joint":
            return (body_pose(q, joint.parent) @ joint.parent_frame)[:3, :3]
        body = joint.child if frame == "child" else joint.parent
        if body == WORLD:
            return np.eye(3)
        return (body_pose(q, body) @ self.simulation.model.bodies.body_frame[body])[:3, :3]

    def _point(self, point: str | np.ndarray, on: str) -> np.ndarray:
        """(3,) point of the world."""
        if not isinstance(point, str):
            return np.asarray(point, dtype=float)
        if point == "joint":
            return self._origins[1]
        if point != "center":
            raise ValueError(f'point is {point!r}; "joint", "center" and points (3,) are known')
        body = self.joint.child if on == "child" else self.joint.parent
        return np.zeros(3) if body == WORLD else self.simulation.stepper.q[body, :3]
