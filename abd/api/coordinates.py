"""Coordinates of all joints of a simulation, readings of its joints and contacts, and efforts on coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from abd.api.contact_view import Contacts
from abd.api.loads import checked_steps, jumps
from abd.api.views import finite
from abd.backends.protocol import Backend
from abd.joints.coordinates.readings import JointReader, Readings
from abd.joints.rows.change import settings_of, with_settings
from abd.joints.rows.laws import Role, RowLaws
from abd.model import WORLD, Model
from abd.potentials.integrators import longest
from abd.step.step import Stepper

SLOW_TURN = 1.0
"""Largest sum of |dA/dt|_F h for which no angle between two bodies changes by half a turn."""


class Coordinates:
    """Coordinates of all joints; angles are counted over any number of turns.

    Attributes:
        reader: reader of the current joints.
    """

    def __init__(self, model: Model, backend: Backend, stepper: Stepper):
        self.model, self.backend, self.stepper = model, backend, stepper
        stepper.after_substep = self._count
        self.watch()

    def watch(self, kept: np.ndarray | tuple = ()) -> None:
        """Read the current joints; angles of the first coordinates continue near the values `kept` (k,)."""
        self.reader = JointReader(self.model)
        self._turns = self.backend.rows.watch_turns(self.reader.table)
        self._counts = bool(self.reader.table.counts_turns.any())
        near = self.reader.initial.copy()
        count = min(len(kept), len(near))
        near[:count] = kept[:count]
        self.values = self.reader.coordinates(self.stepper.q, near)

    @property
    def values(self) -> np.ndarray:
        """(c,) values of the coordinates [m or rad]."""
        if self._values is None:
            self._values = self.reader.coordinates(self.stepper.q, self._turns.near())
        return self._values

    @values.setter
    def values(self, values: np.ndarray) -> None:
        self._values: np.ndarray | None = values
        self._turned = 0.0
        self._turns.set(values)
        self.forget_readings()

    def after_step(self) -> None:
        """Discard the values of the previous frame."""
        self._values = None
        self.forget_readings()

    def _count(self) -> None:
        """Count turns after a substep, as soon as the rotations since the last count may exceed `SLOW_TURN`."""
        if not self._counts:
            return
        turn = longest(self.stepper.previous_h) * self.stepper.statistics.fastest
        self._turned += turn
        if self._turned >= SLOW_TURN:
            self._turns.count(None if turn < SLOW_TURN else self._rotations())
            self._turned = 0.0

    def _rotations(self) -> np.ndarray:
        """Return changes (c,) of the angles in the last substep by their mean rates, 0 for excluded bodies."""
        stepper, reader = self.stepper, self.reader
        table = reader.table
        ends = np.where(table.child == WORLD, table.parent, table.child)
        turning, h = table.counts_turns & ~stepper.excluded[ends], np.broadcast_to(stepper.previous_h, len(stepper.q))[ends]
        rates = [reader.rates(*state) for state in ((stepper.previous_q, stepper.previous_qd), (stepper.q, stepper.qd))]
        return np.where(turning, 0.5 * h * (rates[0] + rates[1]), 0.0)

    def place(self, joint: int, name: str) -> int:
        """Return the index of a coordinate, by its joint and name, among the coordinates of all joints."""
        span = self.reader.of(joint)
        return span.start + self.reader.names[span].index(name)

    def readings(self) -> Readings:
        """Return coordinates, rates, residuals, wrenches and energies of all joints in the current state, as arrays."""
        if self._readings is None:
            s = self.stepper
            self._readings = Readings(
                self.reader, s.joints, s.q, s.qd, self.values, s.memory, s.applied, **s.forces.of_joints()
            )
        return self._readings

    def contacts(self) -> Contacts:
        """Return contact points and their forces in the current state."""
        if self._contacts is None:
            self._contacts = Contacts(self.model, self.stepper.q, *self.stepper.forces.contacts())
        return self._contacts

    def forget_readings(self) -> None:
        """Discard the cached readings of joints and contacts."""
        self._readings: Readings | None = None
        self._contacts: Contacts | None = None


@dataclass
class _Applied:
    """An effort [N or N m] on the coordinate with index `place` in the next `left` steps."""

    place: int
    force: float
    left: int


class Efforts:
    """Efforts on the c coordinates of the scene's joints, in addition to drives.

    A coordinate gets a row of the joint system with its first effort.

    Args:
        rebuild: rebuilds the joint system after a change of the model's joints.

    Attributes:
        start: (c,) constant efforts of the scene [N or N m].
    """

    def __init__(
        self, model: Model, backend: Backend, stepper: Stepper, coordinates: Coordinates, rebuild: Callable[[list[int]], None]
    ):
        self._model, self._backend, self._stepper, self._coordinates = model, backend, stepper, coordinates
        self._rebuild, self._found = rebuild, (None, None)  # joint system and its rows
        rows, places = self._rows()
        self.start = np.zeros(len(coordinates.reader.names))
        self.start[places] = backend.system.row_laws.target[rows]
        self._constant = self._last = self.start  # sums in the last step
        self._applied: list[_Applied] = []
        self._current = backend.system  # joint system whose rows have these efforts, None after a change

    @property
    def constant(self) -> np.ndarray:
        """(c,) efforts until they are set again [N or N m], a copy; can be set."""
        return self._constant.copy()

    @constant.setter
    def constant(self, efforts: np.ndarray) -> None:
        self.set_constant(efforts, efforts != 0.0)

    def set_constant(self, efforts: np.ndarray, with_row: np.ndarray) -> None:
        """Set the constant efforts (c,) from the next step on; coordinates of the mask `with_row` (c,) get rows."""
        self._add_rows(with_row)
        self._constant, self._current = efforts, None

    def apply(self, joint: int, name: str, force: float, steps: int | None) -> None:
        """Set the constant effort on a coordinate for `steps` None, else add an effort in the next `steps` steps."""
        given, place = float(finite(force, (), f"the effort on '{name}'")), self._coordinates.place(joint, name)
        if checked_steps(steps) is None:
            constant = self.constant
            constant[place] = given
            self.set_constant(constant, (constant != 0.0) | (np.arange(len(constant)) == place))
        else:
            self._applied.append(_Applied(place, given, steps))
            self._current = None

    def remove(self, places: np.ndarray) -> None:
        """Remove all efforts on the coordinates `places` (k,)."""
        constant = self.constant
        constant[places] = 0.0
        self.constant = constant
        self._applied = [one for one in self._applied if one.place not in places]

    def before_step(self) -> None:
        """Set the rows to the sums of all efforts in this step; the integrator restarts for bodies whose effort jumps."""
        if self._current is self._backend.system:
            return
        total, table = self.constant, self._coordinates.reader.table
        for one in self._applied:
            total[one.place] += one.force
        self._add_rows(total != 0.0)
        (rows, places), system = self._rows(), self._backend.system
        system.row_laws.target[rows] = total[places]
        system.row_laws.revision += 1
        ends, last = np.stack([table.child, table.parent])[:, : len(total)], self._last
        changed, jumping = (ends[:, mask].ravel() for mask in (total != last, jumps(last[:, None], total[:, None])))
        self._stepper.sleep.disturb(changed[changed != WORLD])
        if len(jumping):
            self._stepper.modes.jump(jumping[jumping != WORLD])
        self._last, self._current = total, None if self._applied else system

    def after_step(self) -> None:
        """Remove expired efforts."""
        for one in self._applied:
            one.left -= 1
        self._applied = [one for one in self._applied if one.left]

    def saved(self) -> dict:
        """Return the constant and the applied efforts, and the sums of the last step, for a checkpoint."""
        names, reader = self._model.joints.names, self._coordinates.reader
        keys = [f"{names[int(reader.table.joint[one.place])]}\n{reader.names[one.place]}" for one in self._applied]
        return {
            "coordinate": np.array(keys, dtype=str),
            "force": np.array([one.force for one in self._applied]),
            "left": np.array([one.left for one in self._applied], dtype=np.int64),
            "constant": self.constant,
            "last": self._last.copy(),
        }

    def restore(self, saved: dict) -> None:
        """Restore the efforts of a checkpoint."""
        keys = [key.split("\n") for key in saved["coordinate"].tolist()]
        self._applied = [
            _Applied(self._coordinates.place(self._model.joints.names.index(joint), name), float(force), int(left))
            for (joint, name), force, left in zip(keys, saved["force"], saved["left"], strict=True)
        ]
        self._constant, self._last = (finite(saved[key], self.start.shape, f"{key} efforts") for key in ("constant", "last"))
        self._current = None

    def _add_rows(self, wanted: np.ndarray) -> None:
        """Give rows to the coordinates of a mask (c,)."""
        missing, reader, joints = wanted.copy(), self._coordinates.reader, self._model.joints
        missing[self._rows()[1]] = False
        for place in np.flatnonzero(missing).tolist():
            k = int(reader.table.joint[place])
            joints[k] = with_settings(joints[k], replace(settings_of(joints[k], reader.names[place]), force=0.0))
        if missing.any():
            self._rebuild([])

    def _rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows (k,) of efforts in the present joint system and the indices (k,) of their coordinates."""
        system = self._backend.system
        if self._found[0] is not system:
            a = system.row_laws
            rows = np.flatnonzero((a.role == Role.APPLIED) & (a.coupling < 0))
            self._found = system, (rows, places_of_rows(self._coordinates.reader, a)[rows])
        return self._found[1]


def places_of_rows(reader: JointReader, row_laws: RowLaws) -> np.ndarray:
    """Return the index (R,) of the coordinate of every measured row among those of a reader, -1 for other rows."""
    place = {key: k for k, key in enumerate(zip(reader.table.joint.tolist(), reader.names, strict=True))}
    return np.array([place.get(key, -1) for key in zip(row_laws.joint.tolist(), row_laws.name, strict=True)], dtype=int)
