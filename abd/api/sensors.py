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

import csv
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from abd.api.pandas_tables import table_of
from abd.joints.coordinates.readings import rigid_motion

if TYPE_CHECKING:
    import pandas

    from abd.api.joints.coordinate_view import CoordinateView
    from abd.api.simulation import Simulation

Observed = str | tuple[Any, ...] | None
"""Name of the observed joint or body, or a tuple of it and a coordinate, a point or another body."""
_XYZ = ("x", "y", "z")
_TWIST = ("vx", "vy", "vz", "wx", "wy", "wz")


class Sensor:
    """Record of one quantity over time.

    Attributes:
        name: name of the sensor; columns: (k,) names of its values.
        every: number of steps between records.
    """

    def __init__(
        self,
        simulation: Simulation,
        name: str,
        read: Callable[[], np.ndarray],
        columns: tuple[str, ...],
        every: int,
    ):
        if every < 1:
            raise ValueError(f"sensor '{name}': every must be a positive number of steps, not {every}")
        self._simulation, self._read = simulation, read
        self.name, self.every = name, int(every)
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

    def begin_anew(self) -> None:
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
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["time", *self.columns])
            for time, values in zip(self._times, self._values, strict=True):
                writer.writerow([repr(float(one)) for one in (time, *values)])


def sensor(simulation: Simulation, name: str, what: str | Callable, of, every: int) -> Sensor:
    """Create a sensor and its first record.

    Raises:
        ValueError: the quantity, joint, coordinate or body is unknown.
    """
    if callable(what):
        return Sensor(simulation, name, lambda: what(simulation), (), every)
    if what in _OF_MARKER and isinstance(of, str) and of not in simulation.bodies and of in simulation.joints:
        (read, columns), joint = _OF_MARKER[what], simulation.joints[of]
        return Sensor(simulation, name, lambda: read(joint), columns, every)
    if what in _OF_JOINT:
        read, columns = _OF_JOINT[what]
        joint = _named(simulation.joints, of, "joint")
        return Sensor(simulation, name, lambda: read(joint), columns, every)
    if what in _OF_COORDINATE:
        coordinate = _coordinate(simulation, of)
        return Sensor(simulation, name, lambda: _OF_COORDINATE[what](coordinate), (coordinate.name,), every)
    if what in _OF_CONTACT:
        body, other = of if isinstance(of, tuple) else (of, None)
        names = [_named(simulation.bodies, one, "body").name for one in (body, other) if one is not None]
        view, (read, columns) = simulation.bodies[names[0]], _OF_CONTACT[what]
        return Sensor(simulation, name, lambda: read(simulation.contacts(*names), view.index), columns, every)
    if what in _OF_BODY:
        body, point = of if isinstance(of, tuple) else (of, np.zeros(3))
        view, at = _named(simulation.bodies, body, "body"), np.append(np.asarray(point, dtype=float), 1.0)
        read, columns = _OF_BODY[what]
        return Sensor(simulation, name, lambda: read(simulation, view, at), columns, every)
    known = ", ".join([*_OF_COORDINATE, *_OF_JOINT, *_OF_BODY, *_OF_CONTACT])
    raise ValueError(f"sensor '{name}': unknown quantity {what!r}; it must be {known}, or a function")


def _named(views: dict, name, kind: str):
    if name not in views:
        raise ValueError(f"the scene has no {kind} {name!r} for this sensor")
    return views[name]


def _coordinate(simulation: Simulation, of) -> CoordinateView:
    joint, which = of if isinstance(of, tuple) else (of, 0)
    view = _named(simulation.joints, joint, "joint")
    if not view.coordinate_names or (isinstance(which, str) and which not in view.coordinate_names):
        raise ValueError(f"joint '{joint}' has no coordinate {which!r}; it has {list(view.coordinate_names)}")
    return view.coordinate(which)


def _rotation(simulation: Simulation, body, _) -> np.ndarray:
    rigid, _ = rigid_motion(simulation.stepper.q, simulation.stepper.qd)
    return rigid[body.index, 3:].reshape(3, 3) @ simulation.model.bodies.body_frame[body.index, :3, :3]


def _angular_velocity(simulation: Simulation, body, _) -> np.ndarray:
    rigid, speed = rigid_motion(simulation.stepper.q, simulation.stepper.qd)
    W = speed[body.index, 3:].reshape(3, 3) @ rigid[body.index, 3:].reshape(3, 3).T
    return np.array([W[2, 1], W[0, 2], W[1, 0]])


_OF_COORDINATE = {
    "coordinate": lambda one: [one.value],
    "rate": lambda one: [one.speed],
    "coordinate_force": lambda one: [one.drive_force + one.limit_force + one.friction_force],
}
_OF_JOINT = {
    "wrench": (lambda joint: np.concatenate(joint.wrench()), ("fx", "fy", "fz", "tx", "ty", "tz")),
    "force": (lambda joint: np.concatenate(joint.exudyn_force()), ("fx", "fy", "fz", "tx", "ty", "tz")),
    "residual": (lambda joint: joint.residual, ("length", "angle")),
    "multipliers": (lambda joint: joint.multipliers, ()),
    "displacement": (lambda joint: joint.displacement, _XYZ),
    "relative_velocity": (lambda joint: joint.relative_velocity, _TWIST),
}
_OF_MARKER = {
    "position": (lambda joint: joint.position, _XYZ),
    "velocity": (lambda joint: joint.velocity, _XYZ),
}
_OF_CONTACT = {
    "contact_force": (lambda contacts, body: contacts.on(body)[:3], _XYZ),
    "contact_wrench": (lambda contacts, body: contacts.on(body), ("fx", "fy", "fz", "tx", "ty", "tz")),
    "touches": (lambda contacts, _: [len(contacts)], ("points",)),
}
_OF_BODY = {
    "position": (lambda _, body, at: (body.transform @ at)[:3], _XYZ),
    "velocity": (lambda _, body, at: (body.velocity @ at)[:3], _XYZ),
    "rotation": (_rotation, tuple(f"r{i}{j}" for i in range(3) for j in range(3))),
    "angular_velocity": (_angular_velocity, _XYZ),
}
