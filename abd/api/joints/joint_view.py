"""`JointView`: one joint of a running simulation, read in any frame and about any point, and switched on and off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abd.api.joints.coordinate_view import CoordinateView
from abd.api.joints.joint_forces import JointForces
from abd.joints.rows.build import yielding

if TYPE_CHECKING:
    from abd.api.simulation import Simulation
    from abd.joints.closure.assembly import Assembly


class JointView(JointForces):
    """A joint between a parent (frame D) and a child (frame C); "the joint's point" is the origin of C."""

    def __init__(self, simulation: Simulation, index: int):
        self.simulation, self.index = simulation, index
        reader = simulation.reader
        self._slice = reader.of(index)
        names = reader.names[self._slice]
        self._coordinates = {name: CoordinateView(self, k, name) for k, name in enumerate(names)}

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
        """Values of its coordinates [m or rad], angles over any number of turns: the numbers that limits act on.

        Set, all of them at once, it moves the bodies outside of a step; see `set_coordinates`.
        """
        return self.simulation.coordinates[self._slice].copy()

    @coordinates.setter
    def coordinates(self, values) -> None:
        result = self.set_coordinates(values)
        if not result.converged:
            raise ValueError(f"joint '{self.name}' cannot have the coordinates {np.asarray(values).tolist()}: nothing moved")

    @property
    def coordinates_deg(self) -> np.ndarray:
        """The same with angles in degrees; it can be set too."""
        return np.array([one.value_deg for one in self._coordinates.values()])

    @coordinates_deg.setter
    def coordinates_deg(self, values) -> None:
        given = self._all(values)
        self.coordinates = [one._in_radians(value) for one, value in zip(self._coordinates.values(), given, strict=True)]

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

    def set_coordinates(self, values) -> Assembly:
        """Move all coordinates to values (k,) [m or rad] outside of a step; as `set_coordinate`.

        Raises:
            ValueError: another number of values. SceneError: bodies would intersect; nothing was moved.
        """
        given = self._all(values)
        return self.simulation.control.place(
            {(self.index, name): value for name, value in zip(self.coordinate_names, given, strict=True)}
        )

    def _all(self, values) -> list[float]:
        given = np.asarray(values, dtype=float).ravel()
        if len(given) != len(self.coordinate_names):
            names = ", ".join(self.coordinate_names) or "none"
            raise ValueError(f"joint '{self.name}' has the coordinates {names}; {len(given)} values are given")
        return given.tolist()

    # yielding -----------------------------------------------------------------------------------------------------

    @property
    def enforcement(self) -> str:
        """ "penalty", "exact" or "compliant"."""
        return self.joint.enforcement

    @property
    def compliance(self) -> np.ndarray:
        """(k,) of its constraint rows, then of gaps that are lengths [m/N or rad/(N m)]; 0 where they hold exactly, or by a
        penalty. Set, a number counts for all rows, a list for the first ones; the others stay. The joint is compliant then.
        """
        return self._yield_of("compliance")

    @compliance.setter
    def compliance(self, values) -> None:
        self.simulation.control.soften(self.index, compliance=values)

    @property
    def damping(self) -> np.ndarray:
        """(k,) of the same rows [N s/m or N m s/rad]; it acts where a row has a compliance, and is set likewise."""
        return self._yield_of("damping")

    @damping.setter
    def damping(self, values) -> None:
        self.simulation.control.soften(self.index, damping=values)

    @property
    def linear_compliance(self) -> float | None:
        """Of its rows that are lengths; None where they differ, or without any. Set, it brings critical damping along."""
        return self._uniform(rotary=False)

    @linear_compliance.setter
    def linear_compliance(self, value: float) -> None:
        self._set_uniform(False, value)

    @property
    def rotary_compliance(self) -> float | None:
        """Of its rows that are angles; None where they differ, or without any. Set, it brings critical damping along."""
        return self._uniform(rotary=True)

    @rotary_compliance.setter
    def rotary_compliance(self, value: float) -> None:
        self._set_uniform(True, value)

    def damp_critically(self, zeta: float = 1.0) -> None:
        """Damp every row that has a compliance by the ratio zeta, ``2 zeta sqrt(m / compliance)``, with the reduced mass of the
        two bodies, of angles the reduced inertia about the row's axis through the joint's point.

        Raises:
            ValueError: the joint is not compliant, or zeta is negative.
        """
        self.simulation.control.damp_critically(self.index, zeta)

    def _yield_of(self, key: str) -> np.ndarray:
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
        self.simulation.control.damp_critically(self.index, 1.0, is_kind)

    def __getattr__(self, name: str) -> CoordinateView:
        """A coordinate by its name: ``joint.theta`` is ``joint.coordinate("theta")``."""
        coordinates = self.__dict__.get("_coordinates", {})
        if name not in coordinates:
            raise AttributeError(f"a joint view has no attribute '{name}', and this joint no such coordinate")
        return coordinates[name]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._coordinates})

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
