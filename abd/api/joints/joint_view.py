"""`JointView` and `CouplingView`: one joint, and one coupling of coordinates, of a running simulation."""

from __future__ import annotations

import numpy as np

from abd.api.joints.coordinate_view import CoordinateView
from abd.api.joints.joint_forces import JointForces
from abd.api.state_changes import StateChanges
from abd.joint_model import Coupling
from abd.joints.closure.assembly import Assembly
from abd.joints.rows.build import yielding
from abd.joints.rows.change import critically_damped, softened
from abd.scene.schema.attributes import KnownAttributes
from abd.scene.schema.joint_schema import CouplingSpec, JointSpec


class JointView(JointForces):
    """A joint between a parent (frame D) and a child (frame C); "the joint's point" is the origin of C."""

    __slots__ = ("_coordinates", "_slice", "index", "simulation")
    RELATED = ("joint.coordinate(name)", CoordinateView), ("scene.joint(name)", JointSpec)

    def __init__(self, simulation: StateChanges, index: int):
        self.simulation, self.index = simulation, index
        reader = simulation.reader
        self._slice = reader.of(index)
        names = reader.names[self._slice]
        self._coordinates = {name: CoordinateView(self, k, name) for k, name in enumerate(names)}

    # coordinates --------------------------------------------------------------------------------------------------

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the coordinates, in the order of `coordinates` and `rates`."""
        return tuple(self._coordinates)

    @property
    def coordinates(self) -> np.ndarray:
        """(k,) values of the coordinates [m or rad]; angles are counted over any number of turns, as limits count them.

        Setting all values moves the bodies between steps; see `set_coordinates`.
        """
        return self.simulation.coordinates[self._slice].copy()

    @coordinates.setter
    def coordinates(self, values) -> None:
        result = self.set_coordinates(values)
        if not result.converged:
            raise ValueError(f"joint '{self.name}' cannot reach the coordinates {np.asarray(values).tolist()}; no body is moved")

    @property
    def coordinates_deg(self) -> np.ndarray:
        """`coordinates` with angles in degrees; can be set."""
        return np.array([one.value_deg for one in self._coordinates.values()])

    @coordinates_deg.setter
    def coordinates_deg(self, values) -> None:
        given = self._all(values)
        self.coordinates = [one._in_radians(value) for one, value in zip(self._coordinates.values(), given, strict=True)]

    @property
    def rates(self) -> np.ndarray:
        """(k,) rates of the coordinates [m/s or rad/s]."""
        return self.simulation.joint_readings().rates[self._slice]

    def coordinate(self, which: str | int = 0) -> CoordinateView:
        """Return a coordinate by name or index.

        Raises:
            KeyError: the name is unknown.
        """
        if isinstance(which, str):
            if which not in self._coordinates:
                raise KeyError(f"joint '{self.name}' has no coordinate '{which}'; it has {list(self._coordinates)}")
            return self._coordinates[which]
        return self.coordinate(self.coordinate_names[which])

    def set_coordinate(self, name: str, value: float) -> Assembly:
        """Move a coordinate to a value [m or rad] between steps.

        The freer side of the joint moves with its subtree, and loops are closed. If `converged` of the result is False, no
        body is moved. Bodies keep their linear and angular velocities.

        Raises:
            SceneError: bodies would intersect; no body is moved.
        """
        return self.simulation.set_coordinates({(self.index, self.coordinate(name).name): value})

    def set_coordinates(self, values) -> Assembly:
        """Move all coordinates to values (k,) [m or rad] between steps; see `set_coordinate`.

        Raises:
            ValueError: the number of values is wrong. SceneError: bodies would intersect; no body is moved.
        """
        given = self._all(values)
        return self.simulation.set_coordinates(
            {(self.index, name): value for name, value in zip(self.coordinate_names, given, strict=True)}
        )

    def _all(self, values) -> list[float]:
        given = np.asarray(values, dtype=float).ravel()
        if len(given) != len(self.coordinate_names):
            names = ", ".join(self.coordinate_names) or "none"
            raise ValueError(f"joint '{self.name}' has the coordinates {names}, and cannot take {len(given)} values")
        return given.tolist()

    # compliance ---------------------------------------------------------------------------------------------------

    @property
    def enforcement(self) -> str:
        """ "penalty", "exact" or "compliant"."""
        return self.joint.enforcement

    @property
    def compliance(self) -> np.ndarray:
        """(k,) compliances of the constraint rows, then of the linear gaps [m/N or rad/(N m)]; 0 for exact and penalty rows.

        Setting it makes the joint compliant. A number applies to all rows, a list to the first rows; the others stay.
        """
        return self._of_rows("compliance")

    @compliance.setter
    def compliance(self, values) -> None:
        self.simulation.control.replace_joint(self.index, softened(self.joint, compliance=values))

    @property
    def damping(self) -> np.ndarray:
        """(k,) dampings of the rows of `compliance` [N s/m or N m s/rad]; can be set like it.

        A damping acts on rows with a compliance.
        """
        return self._of_rows("damping")

    @damping.setter
    def damping(self, values) -> None:
        self.simulation.control.replace_joint(self.index, softened(self.joint, damping=values))

    @property
    def linear_compliance(self) -> float | None:
        """Compliance of all linear rows [m/N]; None without a common value. Setting it adds critical damping."""
        return self._uniform(rotary=False)

    @linear_compliance.setter
    def linear_compliance(self, value: float) -> None:
        self._set_uniform(False, value)

    @property
    def rotary_compliance(self) -> float | None:
        """Compliance of all rotary rows [rad/(N m)]; None without a common value. Setting it adds critical damping."""
        return self._uniform(rotary=True)

    @rotary_compliance.setter
    def rotary_compliance(self, value: float) -> None:
        self._set_uniform(True, value)

    def damp_critically(self, zeta: float = 1.0) -> None:
        """Set the damping of every compliant row to ``2 zeta sqrt(m / compliance)``.

        m is the reduced mass of both bodies; for angles, the reduced inertia about the row's axis through the joint's point.

        Raises:
            ValueError: the joint is not compliant, or zeta is negative.
        """
        self._damp(zeta)

    def _damp(self, zeta: float, among: np.ndarray | None = None) -> None:
        damped = critically_damped(self.joint, self.simulation.model, self.simulation.stepper.q, zeta, among)
        self.simulation.control.replace_joint(self.index, damped)

    def _of_rows(self, key: str) -> np.ndarray:
        out, given = np.zeros(len(yielding(self.joint))), getattr(self.joint, key)
        if self.enforcement == "compliant":
            out[: len(given)] = given[: len(out)]
        return out

    def _uniform(self, rotary: bool) -> float | None:
        of_kind = self.compliance[[one.rotary == rotary for one in yielding(self.joint)]]
        return float(of_kind[0]) if len(of_kind) and (of_kind == of_kind[0]).all() else None

    def _set_uniform(self, rotary: bool, value: float) -> None:
        is_kind = np.array([one.rotary == rotary for one in yielding(self.joint)], dtype=bool)
        self.compliance = np.where(is_kind, value, self.compliance)
        self._damp(1.0, is_kind)

    def __getattr__(self, name: str) -> CoordinateView:
        """Return a coordinate by name: ``joint.theta`` is ``joint.coordinate("theta")``."""
        if name.startswith("_") or name not in self._coordinates:
            return super().__getattr__(name)
        return self._coordinates[name]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._coordinates})

    # activation ---------------------------------------------------------------------------------------------------

    @property
    def active(self) -> bool:
        """Whether the joint acts; can be set between steps. Readings of an inactive joint continue."""
        return self.joint.active

    @active.setter
    def active(self, value: bool) -> None:
        self.simulation._switches.set_joint(self.index, bool(value))

    @property
    def broken_at(self) -> float | None:
        """Time at which the joint broke [s]; None for an intact joint."""
        return self.simulation.control.broken.get(self.name)

    # forces -------------------------------------------------------------------------------------------------------

    @property
    def residual(self) -> tuple[float, float]:
        """Largest residual of linear rows [m], and of rows of angles or directions [rad]."""
        point, turn = self.simulation.joint_readings().residual[self.index]
        return float(point), float(turn)

    @property
    def energy(self) -> float:
        """Energy stored in the joint [J]."""
        return float(self.simulation.joint_readings().energy[self.index])


class CouplingView(KnownAttributes):
    """A coupling ``q0 = scale (f_1(q_1) + f_2(q_2) + ...)``, or ``q0 = scale f(q_1, q_2, ...)``."""

    __slots__ = ("index", "simulation")
    RELATED = (("scene.coupling(name)", CouplingSpec),)

    def __init__(self, simulation: StateChanges, index: int):
        self.simulation, self.index = simulation, index

    @property
    def coupling(self) -> Coupling:
        """Definition of the coupling."""
        return self.simulation.model.couplings[self.index]

    @property
    def name(self) -> str:
        """Name of the coupling."""
        return self.coupling.name

    @property
    def residual(self) -> float:
        """Difference of q0 and the right-hand side [m or rad]."""
        return float(self.simulation.joint_readings().row_value[self._row])

    @property
    def force(self) -> float:
        """Effort on q0 [N or N m]; the effort on coordinate k is ``-scale f_k'(q_k)`` times this effort."""
        return float(self.simulation.joint_readings().row_force[self._row])

    @property
    def active(self) -> bool:
        """Whether the coupling acts; can be set from the next step on, which closes its residual."""
        return self.coupling.active

    @active.setter
    def active(self, active: bool) -> None:
        self.simulation.control.set_coupling_active(self.index, bool(active))

    @property
    def _row(self) -> int:
        return int(np.flatnonzero(self.simulation.backend.system.row_laws.coupling == self.index)[0])
