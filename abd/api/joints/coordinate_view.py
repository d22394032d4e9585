"""`CoordinateView`: one coordinate of one joint of a running simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from abd.joints.rows.change import settings_of
from abd.joints.rows.laws import Role
from abd.model import CoordinateSettings

if TYPE_CHECKING:
    from abd.api.joints.joint_view import JointView
    from abd.joints.closure.assembly import Assembly


class CoordinateView:
    """A coordinate; metres or radians, angles over any number of turns, N or N m.

    Attributes:
        joint: the joint it belongs to; index: among the joint's coordinates; name: its name.
    """

    def __init__(self, joint: JointView, index: int, name: str):
        self.joint, self.index, self.name = joint, index, name
        self._simulation, self._control = joint.simulation, joint.simulation.control

    # value --------------------------------------------------------------------------------------------------------

    @property
    def value(self) -> float:
        """Present value."""
        return float(self.joint.coordinates[self.index])

    @property
    def value_deg(self) -> float:
        """Present value, an angle in degrees."""
        return float(self._out_of_radians(self.value))

    @property
    def speed(self) -> float:
        """Rate [m/s or rad/s]."""
        return float(self.joint.rates[self.index])

    @property
    def motion_type(self) -> str:
        """ "linear" or "rotary"."""
        return "rotary" if self._simulation.reader.table.rotary[self._place] else "linear"

    @property
    def settings(self) -> CoordinateSettings:
        """Its settings."""
        return settings_of(self.joint.joint, self.name)

    def set(self, value: float) -> Assembly:
        """Move it there outside of a step; see `JointView.set_coordinate`."""
        return self.joint.set_coordinate(self.name, value)

    def set_deg(self, value: float) -> Assembly:
        """`set` with an angle in degrees."""
        return self.set(self._in_radians(value))

    # range --------------------------------------------------------------------------------------------------------

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest value; infinite where there is no limit."""
        return self.settings.lower, self.settings.upper

    @property
    def range_deg(self) -> tuple[float, float]:
        """The same of an angle in degrees."""
        return tuple(float(self._out_of_radians(one)) for one in self.range)

    def set_range(self, lower: float | None = None, upper: float | None = None) -> None:
        """Limit it from the next step on; None, or an infinite number, is no end.

        A range that leaves out the present value pushes it back: compliant and cubic ends at once, by their stiffness;
        barriers move from where it is to where they belong, by half of their gap with every step.

        Raises:
            ValueError: lower is not below upper.
        """
        low, high = -np.inf if lower is None else float(lower), np.inf if upper is None else float(upper)
        if not low < high:
            raise ValueError(f"range of '{self.name}': {low:g} is not below {high:g}")
        self._control.set_range(self.joint.index, self.name, low, high)

    def set_range_deg(self, lower: float | None = None, upper: float | None = None) -> None:
        """`set_range` with the ends of an angle in degrees."""
        self.set_range(*(None if one is None else self._in_radians(one) for one in (lower, upper)))

    @property
    def limit(self) -> str:
        """What the ends of its range are: "barrier", "compliant" or "cubic"."""
        return self.settings.limit

    @property
    def limit_compliance(self) -> float:
        """Of compliant ends [m/N or rad/(N m)]; 0 for others."""
        return self.settings.limit_compliance if self.limit == "compliant" else 0.0

    @property
    def limit_damping(self) -> float:
        """On the way into an end [N s/m or N m s/rad]."""
        return self.settings.limit_damping

    @property
    def limit_restitution(self) -> float:
        """Share of the speed that its ends give back to what strikes them; 0 where they are no barriers."""
        return self.settings.limit_restitution if self.limit == "barrier" else 0.0

    def set_limit(
        self, compliance: float | None = None, damping: float | None = None, restitution: float | None = None
    ) -> None:
        """Make the ends of its range yield, or hold again, or give back, from the next step on.

        Args:
            compliance: [m/N or rad/(N m)]; 0 makes them barriers.
            damping: of the motion into an end [N s/m or N m s/rad]; negative: that fraction of critical damping.
            restitution: fraction of the speed that barriers return. None keeps the present value.

        Raises:
            ValueError: a negative compliance, a negative damping without a compliance, or a restitution above 1 or of ends
                that are no barriers.
        """
        changes = {}
        if restitution is not None:
            barriers = self.limit == "barrier" if compliance is None else compliance == 0.0
            if not 0.0 <= restitution <= 1.0 or (restitution > 0.0 and not barriers):
                what = "must be in [0, 1]" if barriers else "is for barriers: set compliance=0"
                raise ValueError(f"limit_restitution of '{self.name}' is {restitution!r}, and {what}")
            changes["limit_restitution"] = float(restitution)
        for key, value in (("limit_compliance", compliance), ("limit_damping", damping)):
            if value is not None:
                changes[key] = self._limit_value(key, value, compliance)
        if compliance is not None:
            changes["limit"] = "compliant" if compliance > 0.0 else "barrier"
        self._replace(**changes)
        if compliance is not None:
            self._control.set_range(self.joint.index, self.name, *self.range)

    def _limit_value(self, key: str, value: float, compliance: float | None) -> float:
        """A compliance or a damping of the range's ends; a negative damping is a fraction of critical damping."""
        compliance = self.settings.limit_compliance if compliance is None else compliance
        if not np.isfinite(value) or (value < 0.0 and (key == "limit_compliance" or not compliance > 0.0)):
            fix = "" if key == "limit_compliance" else "; a negative one, a fraction of critical damping, needs a compliance"
            raise ValueError(f"{key} of '{self.name}' is {value!r}, and must be a finite number, not negative{fix}")
        if value >= 0.0:
            return float(value)
        return -value * 2.0 * float(np.sqrt(self._control.reduced_mass(self.joint.index, self.name) / compliance))

    def clip_to_range(self, value: float) -> float:
        """The value nearest to `value` in the range."""
        return float(np.clip(value, *self.range))

    @property
    def range_violation(self) -> float:
        """Distance of the value from the range, 0 within it."""
        return abs(self.value - self.clip_to_range(self.value))

    @property
    def limit_force(self) -> float:
        """What the range's ends do on the coordinate, positive towards larger values."""
        return self._force(Role.LOWER, Role.UPPER)

    @property
    def limit_engagement(self) -> int:
        """+1 where the lower end pushes, -1 where the upper one does, 0 otherwise.

        A barrier pushes within its distance, other ends where they are violated.
        """
        rows = self._rows(Role.LOWER, Role.UPPER)
        rows = rows[self._simulation.joint_readings().engaged[rows]]
        return int(np.sign(self.limit_force)) if len(rows) else 0

    # locks --------------------------------------------------------------------------------------------------------

    @property
    def locked(self) -> bool:
        """Whether it is held."""
        return self.settings.locked

    @property
    def lock_value(self) -> float | None:
        """Where it is held; None where it is not."""
        settings = self.settings
        if not settings.locked:
            return None
        return settings.initial if settings.lock_value is None else settings.lock_value

    def lock(self, value: float | None = None) -> None:
        """Hold it from the next step on, where it is or at a value near to that."""
        self._replace(locked=True, lock_value=self.value if value is None else float(value))

    def unlock(self) -> None:
        """Let it go."""
        self._replace(locked=False, lock_value=None)

    @property
    def lock_force(self) -> float:
        """What the lock did on it in the last step, a brake without a limited effort too; positive towards larger values."""
        return self._force(Role.LOCK)

    # forces -------------------------------------------------------------------------------------------------------

    def set_target(self, target: float | Callable[[float], float]) -> None:
        """Target of its position or pd drive, effort of its force drive: a number, or a function of time [s].

        Without any of these it gets a position drive, as stiff as its joint, in the place of another drive.
        """
        self._control.set_target(self.joint.index, self.name, target)

    def set_rate(self, rate: float | Callable[[float], float]) -> None:
        """Speed of its velocity drive, or of the target of a position or pd drive: a number, or a function of time [s].

        Without any of these it gets a velocity drive, as stiff as its joint, in the place of another drive.
        """
        self._control.set_rate(self.joint.index, self.name, rate)

    def apply_force(self, force: float) -> None:
        """Push it with a constant effort from the next step on, in addition to its drive; the parent is pushed the other way."""
        self._control.apply_force(self.joint.index, self.name, force)

    @property
    def drive_force(self) -> float:
        """What its drive, and `apply_force`, did on it in the last step."""
        return self._force(Role.DRIVE, Role.FORCE, Role.APPLIED)

    @property
    def friction_force(self) -> float:
        """What friction, or a brake with a limited effort, did on it in the last step."""
        return self._force(Role.FRICTION)

    @property
    def wrench(self) -> tuple[np.ndarray, np.ndarray]:
        """Force and torque on the child at the joint's point, world axes, per unit of effort along the coordinate."""
        both = self.joint.unit_wrenches(self._simulation.reader.table, np.array([self._place]))[0]
        return both[:3], both[3:]

    # parts --------------------------------------------------------------------------------------------------------

    @property
    def _place(self) -> int:
        return self._simulation.reader.of(self.joint.index).start + self.index

    def _in_radians(self, value: float) -> float:
        return float(np.radians(value)) if self.motion_type == "rotary" else float(value)

    def _out_of_radians(self, value: float) -> float:
        return float(np.degrees(value)) if self.motion_type == "rotary" else float(value)

    def _rows(self, *roles: Role) -> np.ndarray:
        """Rows that act on it in some roles."""
        a = self._simulation.backend.system.row_laws
        found = np.flatnonzero((a.joint == self.joint.index) & np.isin(a.role, roles) & (a.coupling < 0))
        return np.array([row for row in found if a.name[row] == self.name], dtype=int)

    def _force(self, *roles: Role) -> float:
        return float(self._simulation.joint_readings().row_force[self._rows(*roles)].sum())

    def _replace(self, **values) -> None:
        self._control.replace_settings(self.joint.index, replace(self.settings, **values))
