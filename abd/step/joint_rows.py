"""Joint rows in a step: their laws at its start, and verdicts on jumps, limits and turns."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from abd.by_bodies import PerBody, of_body
from abd.errors import StepFailure
from abd.joint_list import JointList
from abd.joints.closure.redundancy import open_by
from abd.joints.coordinates.readings import JointReader, Readings
from abd.joints.rows.change import Constant
from abd.joints.rows.laws import Law, Role
from abd.joints.rows.system import TURN, JointMemory
from abd.joints.rows.table import rates
from abd.model import WORLD, Model
from abd.potentials.integrators import longest
from abd.step.host_copies import HostCopies
from abd.step.integrators import Articulations
from cuda_kernels.shared import slots

_log = logging.getLogger(__name__)
T = TypeVar("T", float, np.ndarray)

SPEED_JUMP, EVEN_PARTS = 0.1, (0.15, 0.85)
"""Relative change of a drive's speed that counts as a jump; it does not count if the fraction of the change in the second half of
the substep is between the two bounds of `EVEN_PARTS`."""
JUMP_OF_SPEED = 2.0
"""Ratio of a change of speed to the change in the last step that counts as a jump, for speeds that are set in every step."""
SMALLEST_MOTION = 1e-9
"""Motion of a drive in a substep that counts as rounding [m or rad]."""
UNFIT = 1e-3
"""Motion along a constraint in a step, relative to that of its bodies, above which a state does not fit the joints. Generalized
alpha leaves less at 0.1 rad per step."""
OPEN = 1e-6
"""Residual of a coupling at the start above which a warning is logged [m or rad]."""


class JointRows:
    """The joint rows of one scene."""

    def __init__(self, model: Model, articulations: Articulations, copies: HostCopies):
        self.model, self.articulations, self.copies, self.backend = model, articulations, copies, copies.backend
        self.reset()

    def reset(self) -> None:
        """Start a run, which logs each kind of warning once."""
        self._turn_warned = False

    def begin(self, ch2: PerBody, time: PerBody) -> StepFailure | None:
        """Set the laws of all joint rows in a substep; return the verdict on a range that was left.

        ch2: c h^2 [s^2]; time: end of the substep [s]; scalars or (n,)."""
        row = self.backend.rows.begin_joints(ch2, time, self.model.settings.eps_v)
        if row is None:
            return None
        laws, x = self.backend.system.row_laws, float(self.backend.rows.joint_memory().history[slots.VALUE, row])
        side, unit, bound = "below" if laws.sign[row] > 0.0 else "above", "rad" if laws.rotary[row] else "m", laws.bound[row]
        name = f"joint '{self.model.joints[laws.joint[row]].name}', {laws.name[row]}"
        message = f"{name} = {x:.6g} {unit} is {side} its limit {bound:.6g} {unit}; start within the range, or widen it"
        return StepFailure("limits", message)

    def open_couplings(self, memory: JointMemory) -> np.ndarray:
        """Return (n,) bool, bodies of couplings that a state with this memory violates and the first step closes.

        Compliant couplings are not included."""
        system, laws = self.backend.system, self.backend.system.row_laws
        out, rows = np.zeros(len(self.model.bodies) + 1, dtype=bool), system.rows  # the last entry is the world
        coupled = laws.active & (laws.role == Role.COUPLING) & (laws.law == Law.QUADRATIC)
        if not coupled.any():
            return out[:-1]
        open_by = np.abs(memory.history[slots.VALUE] - laws.target)
        coupled[[*laws.target_of]] = False
        coupled &= ~np.isin(laws.coupling, [k for k, one in enumerate(self.model.couplings) if one.enforcement == "compliant"])
        for row in np.flatnonzero(coupled & (open_by > OPEN)):
            measures = rows.term_measure[rows.starts[row] : rows.starts[row + 1]]
            out[system.table.parent[measures]] = out[system.table.child[measures]] = True
            _log.warning(
                "coupling '%s' has a residual of %.3g %s at the start, which the first step closes; start in a state without it",
                laws.name[row], open_by[row], "rad" if laws.rotary[row] else "m",
            )  # fmt: skip
        return out[:-1]

    def violated_rows(self, qd: np.ndarray, memory: JointMemory, chosen: np.ndarray) -> np.ndarray:
        """Return (n,) bool, bodies whose velocities qd (n, 12) violate chosen rows (R,) bool, with the rates in `memory`."""
        out, rows = np.zeros(len(qd) + 1, dtype=bool), np.flatnonzero(chosen)  # the last entry is the world
        ends = np.stack(self.backend.system.row_bodies)[:, rows]
        speed = np.append(np.abs(qd).max(axis=1), 0.0)[ends].max(axis=0, initial=self.model.settings.eps_v)
        out[ends[:, np.abs(memory.history[slots.RATE, rows]) > UNFIT * speed]] = True
        return out[:-1]

    def jumping_drives(self, time: PerBody, h: PerBody, previous_h: PerBody) -> list[int]:
        """Return bodies of position and velocity drives whose speed jumps in a substep of h [s] from `time` [s].

        previous_h: length of the substep before [s], 0 at the start; all scalars or (n,)."""
        bodies: list[int] = []
        for row, function, is_velocity, begin, length, last_length in self._stiff_drives(time, h, previous_h):
            if last_length > 0.0 and isinstance(function, Constant):
                continue
            actual = None if last_length > 0.0 else tuple(self.copies.memory.history[[slots.VALUE, slots.RATE], row])
            if speed_jumps(function, is_velocity, begin, length, last_length, actual):
                bodies += (int(ends[row]) for ends in self.backend.system.row_bodies)
        return [body for body in bodies if body != WORLD]

    def _stiff_drives(self, time: PerBody, h: PerBody, previous_h: PerBody) -> Iterator[tuple]:
        """Yield position and velocity drives: row, function of time [s], whether it is a velocity, and its three times [s]."""
        system, laws = self.backend.system, self.backend.system.row_laws
        for row in system.stiff_drives:
            is_velocity = bool(laws.follows[row])
            times = (of_body(one, int(system.row_bodies[1][row])) for one in (time, h, previous_h))
            yield row, (laws.rate_of if is_velocity else laws.target_of)[row], is_velocity, *times

    def drive_rates(self, time: PerBody, h: PerBody, previous_h: PerBody) -> dict[tuple[int, str], float]:
        """Return speeds [m/s or rad/s] at `time` [s] of coordinates with drives without effort limit, by joint and name.

        Users may set constants from step to step (`_speed_at_start`). previous_h, h: lengths of the last substep and of the next
        one [s]; all scalars or (n,)."""
        laws, out = self.backend.system.row_laws, {}
        for row, function, is_velocity, begin, length, last_length in self._stiff_drives(time, h, previous_h):
            if laws.law[row] != Law.QUADRATIC:
                continue
            if isinstance(function, Constant):
                rate = self._speed_at_start(row, function(begin), is_velocity, length, last_length)
            elif is_velocity:
                rate = function(begin)
            else:
                rate = (function(begin + length) - function(begin - length)) / (2.0 * length)
            out[int(laws.joint[row]), laws.name[row]] = float(rate)
        return out

    def _speed_at_start(self, row: int, value: float, is_velocity: bool, h: float, previous_h: float) -> float:
        """Return the speed of a drive to a constant, which may have been set before the substep of h [s], at its start.

        Unless the speed jumps, it is that at the end of the last substep: of a position drive the mean of the two substeps."""
        applied, history = self.copies.applied, self.copies.memory.history
        x, last, before, earlier = history[[slots.VALUE, slots.BEFORE, slots.RATE, slots.RATE_BEFORE], row]
        reached = applied.p[row, slots.TARGET] if applied.law[row] == Law.QUADRATIC else x
        mean = value if is_velocity else (value - reached) / h
        if previous_h == 0.0 or jumps(before, mean, abs(before - earlier)):
            return mean
        return before if is_velocity else 0.5 * (mean + (x - last) / previous_h)

    def load_friction(self) -> None:
        """Set joint friction that is proportional to the constraint forces of the last step."""
        joints, copies = self.backend.system, self.copies
        if not joints.loads:
            return
        reader = JointReader(self.model)
        q, qd = copies.present
        carried = Readings(reader, joints, q, qd, reader.coordinates(q), copies.memory, copies.applied).constraint_wrench
        joints.load(np.linalg.norm(carried[:, :3], axis=1))
        self.backend.rows.take_efforts()

    def turns_ahead(self, time: PerBody, h: PerBody, fastest: float, excluded: np.ndarray) -> StepFailure | None:
        """Return the verdict on a substep of h [s] from `time` [s], scalars or (n,), in which angles would turn too far.

        fastest: bound of the speeds [1/s]; excluded: (n,) bool, bodies without a verdict."""
        joints = self.backend.system
        if not joints.counts_turns:
            return None
        is_driven = np.abs(joints.requested_turns(time, h)) > TURN
        turned = np.zeros(len(excluded) + 1, dtype=bool)  # the last entry is the world
        for bodies in joints.row_bodies:
            turned[bodies[is_driven]] = True
        if 2.0 * longest(h) * fastest > TURN:
            table = joints.table
            fast = np.broadcast_to(h, len(excluded))[table.child] * np.abs(rates(table, *self.copies.present)) > TURN
            fast &= table.counts_turns
            turned[table.child[fast]] = turned[table.parent[fast]] = True
        return self._turn_verdict(turned[:-1], excluded)

    def turned(self, excluded: np.ndarray) -> StepFailure | None:
        """Return the verdict on an iterate in which angles of joint rows have turned too far."""
        if not self.backend.system.counts_turns:
            return None
        return self._turn_verdict(self.backend.rows.turned(TURN), excluded)

    def _turn_verdict(self, turned: np.ndarray, excluded: np.ndarray) -> StepFailure | None:
        """Return the failure of bodies (n,) bool that turn too far about a joint."""
        turned = turned & ~excluded
        if not turned.any():
            return None
        body = self.model.bodies.names[int(np.flatnonzero(turned)[0])]
        message = f"'{body}' turns by more than {TURN:g} rad about a joint in a step"
        if not self._turn_warned:
            self._turn_warned = True
            _log.warning("%s, so that the frame is divided into substeps; a smaller solver.dt avoids this", message)
        return StepFailure("turn", message, concerned=self.articulations.containing(turned))

    def most_open(self) -> str:
        """Return the name of the exact joint with the largest residual at the iterate."""
        joints = JointList.of(self.model.joints)
        exact = (joints.column("enforcement") == "exact") & joints.column("active")
        residual = open_by(self.model, self.backend.states.read_positions()).max(axis=1)
        return joints[int(np.where(exact, residual, -1.0).argmax())].name


def jumps(before: T, after: T, usual: float) -> bool:
    """Return whether a change of speed or effort is a jump, where `usual` is the change in the substep before."""
    size = np.linalg.norm
    return bool(size(after - before) > max(SPEED_JUMP * max(size(before), size(after)), JUMP_OF_SPEED * usual))


def speed_jumps(
    function: Callable[[float], T], is_velocity: bool, begin: float, h: float, previous_h: float,
    actual: tuple[T, T] | None = None, usual: float = 0.0,
) -> bool:  # fmt: skip
    """Return whether the speed of a drive, or the velocity of a prescribed body, jumps in a substep of h [s] from `begin` [s].

    A smooth speed changes evenly: 0.4 to 0.5 of the change is in the second half of the substep, 2/3 at the start of a change.

    Args:
        function: of time [s], a velocity or a position; previous_h: length of the substep before [s].
        actual: position and speed before, if they may differ from those of the function, as in the first substep.
        usual: change of the speed in the substep before; below `JUMP_OF_SPEED` times it, it is no jump.
    """
    start, end, error = function(begin), function(begin + h), 0.0
    if actual is not None:
        value, first = actual
        error = 0.0 if is_velocity else (start - value) / h
    else:
        first = start if is_velocity else (start - function(begin - previous_h)) / previous_h
    mean = end if is_velocity else (end - start) / h + error
    if not jumps(first, mean, usual):
        return False
    half = function(begin + 0.5 * h)
    middle, last = (half, end) if is_velocity else (2.0 * ((half - start) / h + error), 2.0 * (end - half) / h)
    size = np.linalg.norm
    whole, change = size(last - first), max(size(last - first), size(middle - first))
    return bool(change * h > SMALLEST_MOTION and not EVEN_PARTS[0] * whole < size(last - middle) < EVEN_PARTS[1] * whole)
