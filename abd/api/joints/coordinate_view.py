"""`CoordinateView`: one coordinate of one joint of a running simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from abd.api.joints.joint_forces import JointForces
from abd.api.views import finite
from abd.joint_model import CoordinateSettings
from abd.joints.closure.assembly import Assembly
from abd.joints.rows.change import moving_ends, settings_of
from abd.joints.rows.laws import Role
from abd.joints.rows.sizes import reduced_masses
from abd.joints.types import TYPES
from abd.scene.schema.attributes import KnownAttributes
from abd.scene.schema.joint_schema import DriveSpec


class CoordinateView(KnownAttributes):
    """One coordinate in metres or radians; angles are counted over any number of turns, efforts are in N or N m.

    Attributes:
        joint: joint of the coordinate; index: index in the joint; name: name of the coordinate.
    """

    __slots__ = ("_control", "_simulation", "index", "joint", "name")
    RELATED = ("coordinate.settings", CoordinateSettings), ("coordinate.settings.drive", DriveSpec)

    def __init__(self, joint: JointForces, index: int, name: str):
        self.joint, self.index, self.name = joint, index, name
        self._simulation, self._control = joint.simulation, joint.simulation.control

    # value --------------------------------------------------------------------------------------------------------

    @property
    def value(self) -> float:
        """Current value."""
        return float(self._simulation.coordinates[self._place])

    @property
    def value_deg(self) -> float:
        """Current value; angles in degrees."""
        return float(self._out_of_radians(self.value))

    @property
    def speed(self) -> float:
        """Rate [m/s or rad/s]."""
        return float(self._simulation.joint_readings().rates[self._place])

    @property
    def motion_type(self) -> str:
        """ "linear" or "rotary"."""
        return "rotary" if self._simulation.reader.table.rotary[self._place] else "linear"

    @property
    def settings(self) -> CoordinateSettings:
        """Settings of the coordinate."""
        settings = settings_of(self.joint.joint, self.name)
        if settings.force is None:
            return settings
        return replace(settings, force=float(self._control.efforts.constant[self._place]))

    def set(self, value: float) -> Assembly:
        """Move the coordinate to a value between steps (`JointView.set_coordinate`); `Simulation.set_velocities` sets speeds."""
        return self._simulation.set_coordinates({(self.joint.index, self.name): value})

    def set_deg(self, value: float) -> Assembly:
        """Call `set` with an angle in degrees."""
        return self.set(self._in_radians(value))

    # range --------------------------------------------------------------------------------------------------------

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest value; infinite without a limit."""
        return self.settings.lower, self.settings.upper

    @property
    def range_deg(self) -> tuple[float, float]:
        """`range` with angles in degrees."""
        return tuple(float(self._out_of_radians(one)) for one in self.range)

    def set_range(self, lower: float | None = None, upper: float | None = None) -> None:
        """Set the range from the next step on; None or an infinite number removes a limit.

        If the current value is outside, compliant and cubic limits push it back by their stiffness. Barriers start at the
        current value and move towards their limit by half of the gap in every step.

        Raises:
            ValueError: lower is not below upper.
        """
        low, high = -np.inf if lower is None else float(lower), np.inf if upper is None else float(upper)
        if not low < high:
            raise ValueError(f"range of '{self.name}': the lower bound {low:g} must be below the upper bound {high:g}")
        self._control.set_range(self.joint.index, self.name, low, high)

    def set_range_deg(self, lower: float | None = None, upper: float | None = None) -> None:
        """Call `set_range` with angles in degrees."""
        self.set_range(*(None if one is None else self._in_radians(one) for one in (lower, upper)))

    @property
    def limit(self) -> str:
        """Kind of the range limits: "barrier", "compliant" or "cubic"."""
        return self.settings.limit

    @property
    def limit_compliance(self) -> float:
        """Compliance of compliant limits [m/N or rad/(N m)]; 0 for other limits."""
        return self.settings.limit_compliance if self.limit == "compliant" else 0.0

    @property
    def limit_damping(self) -> float:
        """Damping of the motion into a limit [N s/m or N m s/rad]."""
        return self.settings.limit_damping

    @property
    def limit_restitution(self) -> float:
        """Ratio of the speeds after and before an impact on a barrier limit [-]; 0 for other limits."""
        return self.settings.limit_restitution if self.limit == "barrier" else 0.0

    def set_limit(
        self, compliance: float | None = None, damping: float | None = None, restitution: float | None = None
    ) -> None:
        """Set the properties of the range limits from the next step on; None keeps a value.

        Args:
            compliance: [m/N or rad/(N m)]; 0 selects barriers.
            damping: damping of the motion into a limit [N s/m or N m s/rad]; a negative value is a fraction of critical damping.
            restitution: ratio of the speeds after and before an impact on a barrier [-].

        Raises:
            ValueError: a negative compliance, a negative damping without a compliance, a restitution outside [0, 1], or a
                restitution for limits that are not barriers.
        """
        settings, changes = self.settings, {}
        if compliance is not None:
            self._require_not_negative("limit_compliance", compliance)
            changes |= {"limit_compliance": float(compliance), "limit": "compliant" if compliance > 0.0 else "barrier"}
        if restitution is not None:
            barriers = changes.get("limit", self.limit) == "barrier"
            if not 0.0 <= restitution <= 1.0 or (restitution > 0.0 and not barriers):
                rule = "must be in [0, 1]" if barriers else "needs barriers (compliance=0)"
                raise ValueError(f"limit_restitution of '{self.name}' {rule}, not {restitution!r}")
            changes["limit_restitution"] = float(restitution)
        if damping is not None:
            compliance_now = changes.get("limit_compliance", settings.limit_compliance)
            if damping < 0.0 and compliance_now > 0.0:
                damping = -damping * 2.0 * float(np.sqrt(self.reduced_mass() / compliance_now))
            self._require_not_negative(
                "limit_damping", damping, "; a fraction of critical damping (negative) needs a compliance"
            )
            changes["limit_damping"] = float(damping)
        self._replace(**changes)
        if compliance is not None:
            self._control.set_range(self.joint.index, self.name, *self.range)

    def _require_not_negative(self, key: str, value: float, fix: str = "") -> None:
        if not (np.isfinite(value) and value >= 0.0):
            raise ValueError(f"{key} of '{self.name}' must be finite and not negative, not {value!r}{fix}")

    def reduced_mass(self) -> float:
        """Return the current reduced mass of the coordinate [kg or kg m^2] (`abd.joints.rows.sizes`)."""
        joint, sim = self.joint.joint, self._simulation
        measures = [one for one in TYPES[joint.type].coordinates(joint) if one.name == self.name]
        return float(reduced_masses(joint, measures, sim.stepper.q, moving_ends(joint, sim.model))[0])

    def clip_to_range(self, value: float) -> float:
        """Return the value in the range nearest to `value`."""
        return float(np.clip(value, *self.range))

    @property
    def range_violation(self) -> float:
        """Distance of the value from the range; 0 inside."""
        return abs(self.value - self.clip_to_range(self.value))

    @property
    def limit_force(self) -> float:
        """Effort of the range limits on the coordinate, positive towards larger values."""
        return self._force(Role.LOWER, Role.UPPER)

    @property
    def limit_engagement(self) -> int:
        """+1 if the lower limit is engaged, -1 for the upper limit, 0 for none.

        A barrier is engaged within its activation distance, another limit where it is violated.
        """
        return self.joint.engagement.get(self.name, 0)

    # locks --------------------------------------------------------------------------------------------------------

    @property
    def locked(self) -> bool:
        """Whether the coordinate is locked."""
        return self.settings.locked

    @property
    def lock_value(self) -> float | None:
        """Locked value; None for an unlocked coordinate."""
        settings = self.settings
        if not settings.locked:
            return None
        return settings.initial if settings.lock_value is None else settings.lock_value

    def lock(self, value: float | None = None) -> None:
        """Lock the coordinate from the next step on, at its current value or at a value near it.

        Raises:
            ValueError: the value is not a finite number.
        """
        given = self.value if value is None else float(finite(value, (), f"the locked value of '{self.name}'"))
        self._replace(locked=True, lock_value=given)

    def unlock(self) -> None:
        """Unlock the coordinate from the next step on."""
        self._replace(locked=False, lock_value=None)

    @property
    def lock_force(self) -> float:
        """Effort of the lock, or of a brake with unlimited effort, in the last step; positive towards larger values."""
        return self._force(Role.LOCK)

    # forces -------------------------------------------------------------------------------------------------------

    def set_target(self, target: float | Callable[[float], float]) -> None:
        """Set the target of a position or pd drive, or the effort of a force drive: a number, or a function of time [s].

        Any other coordinate gets a position drive of the joint's stiffness, which replaces another drive.
        """
        self._control.set_function(self.joint.index, self.name, "target", target)

    def set_rate(self, rate: float | Callable[[float], float]) -> None:
        """Set the speed of a velocity drive, or of the target of a position or pd drive: a number, or a function of time [s].

        Any other coordinate gets a velocity drive of the joint's stiffness, which replaces another drive. It holds the speed
        against all forces; `Simulation.set_velocities` changes velocities once.
        """
        self._control.set_function(self.joint.index, self.name, "rate", rate)

    def apply_force(self, force: float, steps: int | None = None) -> None:
        """Apply an effort from the next step on, in addition to the drive; the parent gets the reaction.

        Args:
            steps: number of steps, in addition to other efforts; None until the effort is set again without `steps`.

        Raises:
            ValueError: the effort is not a finite number, or `steps` is not positive.
        """
        self._control.efforts.apply(self.joint.index, self.name, force, steps)

    @property
    def drive_force(self) -> float:
        """Effort of the drive and of `apply_force` in the last step."""
        return self._force(Role.DRIVE, Role.FORCE, Role.APPLIED)

    @property
    def friction_force(self) -> float:
        """Effort of friction, or of a brake with limited effort, in the last step."""
        return self._force(Role.FRICTION, Role.BRAKE)

    @property
    def wrench(self) -> tuple[np.ndarray, np.ndarray]:
        """Force and torque on the child at the joint's point, world axes, per unit effort of the coordinate."""
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

    def _force(self, *roles: Role) -> float:
        rows = self._control.rows(self.joint.index, *roles, coordinate=self.name)
        return float(self._simulation.joint_readings().row_force[rows].sum())

    def _replace(self, **values) -> None:
        self._control.replace_settings(self.joint.index, replace(self.settings, **values))
