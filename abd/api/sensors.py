"""Sensors record quantities of a running simulation over time::

    what                 of                                  columns
    "coordinate"         (joint, coordinate) or joint        value [m or rad]
    "rate"               as above                            [m/s or rad/s]
    "coordinate_force"   (joint, coordinate)                 drive, limits, friction [N or N m]
    "wrench"             joint                               force and torque on the child, world axes, joint's point
    "force"              joint                               force and torque on the parent at the origin of D (Exudyn)
    "residual"           joint                               [m], [rad]
    "multipliers"        joint                               one per constraint row
    "displacement"       joint                               origin of D to that of C, world axes [m]
    "relative_velocity"  joint                               twist (v; w), world axes
    "position"           body, or (body, point)              point of the mesh frame, by default the origin [m]
                         joint                               origin of D [m]
    "velocity"           as above                            [m/s]
    "rotation"           body                                rotation matrix of the mesh frame, row by row
    "angular_velocity"   body                                world axes [rad/s]
    "contact_force"      body, or (body, other body)         force of all contacts, or of contacts with the other [N]
    "contact_wrench"     as above                            force, and torque about the centre of mass [N, N m]
    "touches"            as above                            number of contact points
    a function           -                                   result of f(simulation), a number or an array

A joint without a coordinate selects its first coordinate. A recorded run writes the values of sensors that exist at its
start to ``/sensors/<name>`` at every frame of the trajectory (`abd.io.run`).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from abd.api.simulation_base import SimulationBase
from abd.api.views import XYZ, ByName, table_of

if TYPE_CHECKING:
    import pandas

Observed = str | tuple[Any, ...] | None
"""Name of the observed joint or body, or a tuple of it and a coordinate, a point or another body."""
_TWIST = ("vx", "vy", "vz", "wx", "wy", "wz")
_WRENCH = ("fx", "fy", "fz", "tx", "ty", "tz")


class Sensor:
    """Record of one quantity over time.

    Attributes:
        name: name of the sensor; definition: its arguments in `Simulation.add_sensor`; columns: (k,) names of its values.
        every: number of steps between records.
    """

    __slots__ = ("_read", "_simulation", "_times", "_values", "columns", "definition", "every", "name")

    def __init__(
        self,
        simulation: SimulationBase,
        definition: tuple,
        read: Callable[[], np.ndarray],
        columns: tuple[str, ...],
        every: int,
    ):
        name = definition[0]
        if not isinstance(every, Integral) or every < 1:
            raise ValueError(f"sensor '{name}': every must be a positive number of steps, not {every!r}")
        self._simulation, self._read = simulation, read
        self.name, self.definition, self.every = name, definition, int(every)
        self._times: list[float] = []
        self._values: list[np.ndarray] = []
        self.record()
        self.columns = columns or tuple(f"v{k}" for k in range(len(self._values[0])))

    @property
    def time(self) -> np.ndarray:
        """(T,) times of the records [s]."""
        return np.array(self._times)

    @property
    def values(self) -> np.ndarray:
        """(T, k) recorded values."""
        return np.array(self._values)

    def after_step(self) -> None:
        """Record at every `every`-th step."""
        if self._simulation.frame % self.every == 0:
            self.record()

    def record(self) -> None:
        """Record the current values."""
        self._times.append(self._simulation.time)
        self._values.append(self.present())

    def present(self) -> np.ndarray:
        """Return the current values (k,) without recording them."""
        return np.array(self._read(), dtype=float).ravel()

    def restart(self) -> None:
        """Delete all records and record the current state."""
        self._times.clear()
        self._values.clear()
        self.record()

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table with one row per record, indexed by time [s], and one column per value.

        Raises:
            MissingLibrary: pandas is not installed.
        """
        values = self.values
        return table_of({name: values[:, k] for k, name in enumerate(self.columns)}, self.time, "time")

    def write_csv(self, path: str | Path) -> None:
        """Write a header line, then one line per record with time and values in full precision."""
        table, names = np.column_stack([self.time, self.values]), ",".join(["time", *self.columns])
        np.savetxt(path, table, fmt="%s", delimiter=",", header=names, comments="", encoding="utf-8")


def sensor(simulation: SimulationBase, name: str, what: str | Callable, of: Observed, every: int) -> Sensor:
    """Create a sensor and its first record; see `Simulation.add_sensor`."""
    if callable(what):
        return Sensor(simulation, (name, what, of), lambda: what(simulation), (), every)
    if what not in _QUANTITIES:
        raise ValueError(f"sensor '{name}': unknown quantity {what!r}; it must be {', '.join(_QUANTITIES)}, or a function")
    kind, read, columns = _QUANTITIES[what]
    observed = _observed(simulation, kind, of)
    columns = (observed[0].name,) if kind == "coordinate" else columns
    return Sensor(simulation, (name, what, of), lambda: read(*observed), columns, every)


def _observed(simulation: SimulationBase, kind: str, of: Observed) -> tuple:
    """Return the arguments for the function of a quantity."""
    bodies, joints = simulation.bodies, simulation.joints
    first, second = of if isinstance(of, tuple) else (of, None)
    if kind == "joint":
        return (_named(joints, of, "joint"),)
    if kind == "coordinate":
        view, which = _named(joints, first, "joint"), 0 if second is None else second
        if not view.coordinate_names or (isinstance(which, str) and which not in view.coordinate_names):
            raise ValueError(f"joint '{first}' has no coordinate {which!r}; it has {list(view.coordinate_names)}")
        return (view.coordinate(which),)
    if kind == "point" and second is None and first not in bodies and first in joints:
        return joints[first], None
    body = _named(bodies, first, "body")
    if kind == "body":
        return (body,)
    if kind == "point":
        return body, np.append(np.zeros(3) if second is None else np.asarray(second, dtype=float), 1.0)
    names = [body.name] if second is None else [body.name, _named(bodies, second, "body").name]
    return lambda: simulation.contacts(*names), body.index


def _named(views: ByName, name: object, kind: str):
    if name not in views:
        raise ValueError(f"the scene has no {kind} {name!r} for this sensor")
    return views[name]


_QUANTITIES: dict[str, tuple[str, Callable[..., Any], tuple[str, ...]]] = {
    "coordinate": ("coordinate", lambda one: [one.value], ()),
    "rate": ("coordinate", lambda one: [one.speed], ()),
    "coordinate_force": ("coordinate", lambda one: [one.drive_force + one.limit_force + one.friction_force], ()),
    "wrench": ("joint", lambda joint: np.concatenate(joint.wrench()), _WRENCH),
    "force": ("joint", lambda joint: np.concatenate(joint.exudyn_force()), _WRENCH),
    "residual": ("joint", lambda joint: joint.residual, ("length", "angle")),
    "multipliers": ("joint", lambda joint: joint.multipliers, ()),
    "displacement": ("joint", lambda joint: joint.displacement, XYZ),
    "relative_velocity": ("joint", lambda joint: joint.relative_velocity, _TWIST),
    "position": ("point", lambda view, at: view.position if at is None else (view.transform @ at)[:3], XYZ),
    "velocity": ("point", lambda view, at: view.velocity if at is None else (view.velocity @ at)[:3], XYZ),
    "rotation": ("body", lambda body: body.rotation, tuple(f"r{i}{j}" for i in range(3) for j in range(3))),
    "angular_velocity": ("body", lambda body: body.angular_velocity, XYZ),
    "contact_force": ("contact", lambda contacts, body: contacts().on_bodies[body, :3], XYZ),
    "contact_wrench": ("contact", lambda contacts, body: contacts().on_bodies[body], _WRENCH),
    "touches": ("contact", lambda contacts, _: [len(contacts())], ("points",)),
}
"""Kind of the observed object, function of it, and names of the columns by quantity."""
