"""Changes of joints in a running simulation: changed joints, transfer of memory, and serialisable changes.

The joint system of a running simulation is always `build_system` of its present joints. A change replaces joints in the
model; rows that persist retain their memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np

from abd.errors import AbdError
from abd.joint_list import JointList
from abd.joint_model import CoordinateSettings, Drive, Joint
from abd.joints.rows.build import default_distance, yielding
from abd.joints.rows.forces import Applied
from abd.joints.rows.laws import Law
from abd.joints.rows.placement import body_pose, rigid_pose
from abd.joints.rows.sizes import critical_damping, per_row, reduced_masses
from abd.joints.rows.system import JointMemory, JointSystem
from abd.joints.rows.table import MeasureTable
from abd.model import WORLD, Kind, Model
from abd.rotations import inverse
from cuda_kernels.shared import slots

CHANGEABLE = ("active", "enforcement", "compliance", "damping", "parent_frame", "child_frame", "coordinates")
"""Fields of a joint that can change in a running simulation."""
NUMBERS = ("compliance", "damping", "parent_frame", "child_frame")


class JointChangeError(AbdError):
    """Invalid change of a joint, or a change that a checkpoint cannot store."""


@dataclass(frozen=True)
class Constant:
    """Constant function of time."""

    value: float

    def __call__(self, time: float) -> float:
        return self.value


def as_function(value: float | Callable[[float], float]) -> Callable[[float], float]:
    """A number as a constant function of time; functions are returned unchanged."""
    return value if callable(value) else Constant(float(value))


def settings_of(joint: Joint, coordinate: str) -> CoordinateSettings:
    """Settings of a coordinate, or the defaults."""
    return next((one for one in joint.coordinates if one.name == coordinate), CoordinateSettings(coordinate))


def with_settings(joint: Joint, settings: CoordinateSettings) -> Joint:
    """The joint with the settings of one coordinate replaced or added."""
    by_name = {one.name: one for one in joint.coordinates}
    return replace(joint, coordinates=tuple({**by_name, settings.name: settings}.values()))


# changed joints ---------------------------------------------------------------------------------------------------------


def with_frames(joint: Joint, q: np.ndarray, T_CW: np.ndarray | None, T_DW: np.ndarray | None) -> Joint:
    """The joint with frames C and D at world poses (4, 4) on bodies in rigid states q (n, 12); None keeps a frame.

    Raises:
        ValueError: a pose is not a rigid transform.
    """
    changes = {}
    for key, body, pose in (("child_frame", joint.child, T_CW), ("parent_frame", joint.parent, T_DW)):
        if pose is not None:
            changes[key] = inverse(body_pose(q, body)) @ rigid_pose(pose)
    return replace(joint, **changes)


def softened(joint: Joint, compliance=None, damping=None) -> Joint:
    """The joint with compliant enforcement and new compliances and dampings of the rows of `yielding`.

    Args:
        compliance, damping: [m/N, rad/(N m)], [N s/m, N m s/rad]; a number for all rows or a list for the first rows.
            Other rows keep their values.

    Raises:
        ValueError: too many numbers, negative numbers, or a joint without such rows.
    """
    count = len(yielding(joint))
    if not count:
        raise ValueError(f"joint '{joint.name}' has no constraint rows for a compliance")
    given = {"compliance": compliance, "damping": damping}
    rows = {key: _row_values(key, getattr(joint, key), value, count) for key, value in given.items()}
    return replace(joint, enforcement="compliant", **rows)


def _row_values(key: str, present: tuple[float, ...], given, count: int) -> tuple[float, ...]:
    """(count,) values of rows: a number for all rows or a list for the first rows; other rows keep their values."""
    out = per_row(present, count)
    if given is not None:
        values = np.asarray(given, dtype=float)
        if values.ndim > 1 or values.size > count or not (np.isfinite(values) & (values >= 0.0)).all():
            raise ValueError(f"{key} is {given!r}, and must be a nonnegative number or at most {count} numbers")
        out[: count if values.ndim == 0 else values.size] = values
    return tuple(out.tolist())


def critically_damped(joint: Joint, model: Model, q: np.ndarray, zeta: float, among: np.ndarray | None = None) -> Joint:
    """The compliant joint with damping ``2 zeta sqrt(m / c)`` of every row with a compliance c.

    m is the reduced mass (`abd.joints.rows.sizes`) in states q (n, 12).

    Args:
        among: (k,) bool, the rows to change; default: all.

    Raises:
        ValueError: the joint is not compliant, or zeta is negative.
    """
    if joint.enforcement != "compliant":
        raise ValueError(f"joint '{joint.name}' must be compliant for a damping ratio")
    if not (np.isfinite(zeta) and zeta >= 0.0):
        raise ValueError(f"zeta is {zeta!r}, and must be finite and nonnegative")
    rows = yielding(joint)
    mass = reduced_masses(joint, rows, q, moving_ends(joint, model))
    damping = critical_damping(mass, per_row(joint.compliance, len(rows)), zeta)
    if among is not None:
        damping = np.where(among, damping, per_row(joint.damping, len(rows)))
    return replace(joint, damping=tuple(damping.tolist()))


def moving_ends(joint: Joint, model: Model) -> dict[int, tuple[float, np.ndarray]]:
    """Masses and moments of the dynamic bodies of a joint, for `reduced_masses`."""
    bodies = model.bodies
    ends = [end for end in (joint.parent, joint.child) if end != WORLD and bodies.kind[end] == Kind.DYNAMIC]
    return {end: (float(bodies.mass[end]), bodies.moment[end]) for end in ends}


def with_approaching_barriers(
    s: CoordinateSettings, model: Model, joint: Joint, value: float, rotary: bool
) -> CoordinateSettings:
    """The settings with barriers moved towards the ends of the range, as far as the coordinate's value permits.

    The gap to the new bound is half of the last gap, and at most half of the zone. The barrier therefore pushes the
    coordinate back and is never crossed.
    """
    if s.limit != "barrier":
        return replace(s, lower_end=None, upper_end=None)
    zone = s.limit_distance or default_distance(model, joint, rotary, s.upper - s.lower)
    ends = {}
    for key, bound, sign in (("lower", s.lower, 1.0), ("upper", s.upper, -1.0)):
        last = getattr(s, f"{key}_end")
        gap = 2.0 * zone if last is None else sign * (value - last)
        outside = sign * (value - bound) <= 0.0
        ends[f"{key}_end"] = value - sign * 0.5 * min(gap, zone) if outside else None
    return replace(s, **ends)


# memory ---------------------------------------------------------------------------------------------------------------


def transfer_memory(
    old: JointSystem,
    memory: JointMemory,
    applied: Applied,
    new: JointSystem,
    coordinates: tuple[MeasureTable, np.ndarray],
    states: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> tuple[JointMemory, Applied]:
    """Memory and last laws of a new joint system from those of the old one.

    The history of a row whose frames have moved on their bodies is that of the bodies' last two states in the new frames.

    Args:
        coordinates: measures of coordinates with their present values (c,), near which angles of new measures are
            counted.
        states: q, qd (n, 12), and those of the step before.
    """
    near = _references([coordinates, (old.table, memory.reference)], new)
    q, qd, before_q, before_qd = states
    new.follow_poses(before_q)
    counted = replace(new, initial=near)
    fresh, before = counted.fresh_memory(q, qd), counted.fresh_memory(before_q, before_qd)
    fresh.history[slots.BEFORE], fresh.history[slots.RATE_BEFORE] = before.history[slots.VALUE], before.history[slots.RATE]
    rows, linear = _matching_rows(old, new), _matching_linear_rows(old, new)
    at, source = rows
    width, returns = fresh.history[slots.BARRIER_WIDTH].copy(), new.row_laws.follows & (new.row_laws.law == Law.BARRIER)
    same = _have_same_frames(old, source, new, at)
    fresh.history[:, at[same]] = memory.history[:, source[same]]
    fresh.history[slots.BARRIER_WIDTH, returns] = width[returns]  # a barrier that takes a value back pushes in every step
    of_rows, of_linear = (partial(_moved, match, len(one)) for match, one in ((rows, new.rows), (linear, new.linear)))
    fresh = replace(fresh, multiplier=of_rows(memory.multiplier), linear=of_linear(memory.linear))
    laws = of_rows(applied.law), of_rows(applied.p), of_linear(applied.stiffness), of_linear(applied.shift)
    return fresh, Applied(*laws, of_rows(applied.ch2, 1.0), of_linear(applied.linear_ch2, 1.0))


def transfer_forces(
    old: JointSystem, mean: tuple[np.ndarray, np.ndarray, np.ndarray], new: JointSystem, joints: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forces of measured rows (R,) and linear rows (l, 3), and reactions (j, 6), of a new joint system with `joints` joints from
    those of the old one; 0 for new rows."""
    matches = _matching_rows(old, new), _matching_linear_rows(old, new), (slice(len(mean[2])), slice(None))
    return tuple(map(_moved, matches, (len(new.rows), len(new.linear), joints), mean))


def _moved(match: tuple, count: int, values: np.ndarray, default: float = 0.0) -> np.ndarray:
    """(count, ...) values of the old system at their places in the new one; `match` has places in both (`_matches`)."""
    at, source = match
    out = np.full((count, *values.shape[1:]), default, dtype=values.dtype)
    out[at] = values[source]
    return out


def recount_memory(
    system: JointSystem, coordinates: tuple[MeasureTable, np.ndarray], q: np.ndarray, qd: np.ndarray
) -> JointMemory:
    """Memory of an initial state q, qd (n, 12), with angles counted from `coordinates` as in `transfer_memory`."""
    return replace(system, initial=_references([coordinates], system)).fresh_memory(q, qd)


def _have_same_frames(old: JointSystem, source: np.ndarray, new: JointSystem, at: np.ndarray) -> np.ndarray:
    """(k,) bool: the joints of rows `at` of the new system have the frames that they had for rows `source` of the old one."""
    found = []
    for system, rows in ((old, source), (new, at)):
        table, starts, measures = system.table, system.rows.starts, system.rows.term_measure
        axes = [one.reshape(-1, 9) for one in (table.parent_axes, table.child_axes)]
        frames = np.concatenate([table.parent_point, table.child_point, *axes], axis=1)
        found.append([frames[measures[starts[row] : starts[row + 1]]].tobytes() for row in rows])
    return np.array([one == other for one, other in zip(*found, strict=True)], dtype=bool)


def _references(known: list[tuple[MeasureTable, np.ndarray]], new: JointSystem) -> np.ndarray:
    """(m,) values near which the angles of new measures are counted; later entries of `known` take precedence."""
    found = {}
    for table, values in known:
        found.update(zip(_measure_keys(table), values, strict=True))
    return np.array([found.get(key, start) for key, start in zip(_measure_keys(new.table), new.initial, strict=True)])


def _measure_keys(table: MeasureTable) -> list[tuple]:
    return [
        (int(table.joint[m]), int(table.kind[m]), table.numbers[m].tobytes(), table.scale[m], table.offset[m])
        for m in range(len(table))
    ]


def _matching_rows(old: JointSystem, new: JointSystem) -> tuple[np.ndarray, np.ndarray]:
    return _matches(*([*zip(a.coupling, a.joint, a.role, a.name)] for a in (old.row_laws, new.row_laws)))


def _matching_linear_rows(old: JointSystem, new: JointSystem) -> tuple[np.ndarray, np.ndarray]:
    return _matches(old.linear.joint.tolist(), new.linear.joint.tolist())


def _matches(old: list, new: list) -> tuple[np.ndarray, np.ndarray]:
    """Indices in `new` of keys that are also in `old`, and their indices there; equal keys match in their order."""
    place = {key: k for k, key in enumerate(_occurrences(old))}
    found = [(k, place[key]) for k, key in enumerate(_occurrences(new)) if key in place]
    pairs = np.array(found, dtype=int).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _occurrences(keys: list) -> Iterator[tuple]:
    """Keys with the number of preceding equal keys."""
    seen: Counter = Counter()
    for key in keys:
        yield key, seen[key]
        seen[key] += 1


# changes as plain values ------------------------------------------------------------------------------------------


def described(start: JointList, now: JointList) -> dict:
    """Differences between a list of joints and a changed copy, as nested dictionaries of numbers and strings.

    Raises:
        JointChangeError: a drive follows a function that was set in the running simulation.
    """
    out = {}
    for k in now.changed_since(start):
        first, joint = start[k], now[k]
        given = changes_of(first, joint)
        if given:
            given["coordinates"] = {one.name: _plain_settings(first, joint, one) for one in joint.coordinates}
            out[joint.name] = given
    return out


def changes_of(first: Joint, joint: Joint) -> dict:
    """Changeable fields in which a joint differs from `first`; numbers as arrays."""
    out = {}
    for name in CHANGEABLE:
        one, other = getattr(first, name), getattr(joint, name)
        numbers = name in NUMBERS
        if not np.array_equal(one, other) if numbers else one != other:
            out[name] = np.array(other, dtype=float) if numbers else other
    return out


def changed(start: JointList, changes: dict) -> JointList:
    """The joints with the changes of `described` applied."""
    out, names = start.copy(), start.names
    for name, change in changes.items():
        k = names.find(name)
        out[k] = _apply_changes(start[k], change)
    return out


def _plain_settings(first: Joint, joint: Joint, settings: CoordinateSettings) -> dict:
    values = {entry.name: getattr(settings, entry.name) for entry in fields(settings) if entry.name not in ("drive", "law")}
    drive, original = settings.drive, settings_of(first, settings.name).drive
    if drive is None:
        return values
    plain = {entry.name: getattr(drive, entry.name) for entry in fields(drive)}
    for name in ("target", "rate"):
        function = plain[name]
        if isinstance(function, Constant):
            plain[name] = function.value
        elif function is not None and function is getattr(original, name, None):
            plain[name] = "as in the scene"
        elif function is not None:
            raise JointChangeError(
                f"the {name} of coordinate '{settings.name}' of joint '{joint.name}' is a function set in the running "
                "simulation, which a checkpoint cannot store; define it in the scene, or use numbers"
            )
    return {**values, "drive": plain}


def _apply_changes(joint: Joint, change: dict) -> Joint:
    given = []
    others = {name: value for name, value in change.items() if name != "coordinates"}
    for name in others.keys() & {"compliance", "damping"}:
        others[name] = tuple(others[name].tolist())
    for name, values in change["coordinates"].items():
        drive = values.get("drive")
        if drive is not None:
            original = settings_of(joint, name).drive
            drive = Drive(**{key: _function(key, value, original) for key, value in drive.items()})
        given.append(CoordinateSettings(**{**values, "drive": drive, "law": settings_of(joint, name).law}))
    return replace(joint, coordinates=tuple(given), **others)


def _function(key: str, value, original: Drive | None):
    if key not in ("target", "rate") or value is None:
        return value
    return getattr(original, key) if isinstance(value, str) else Constant(value)
