"""User-defined joint types: the functions of `JointType` derived from the rows of one function."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from enum import IntFlag

import numpy as np

from abd.errors import Problem, SceneError
from abd.joint_model import Joint
from abd.joints.custom.numpy_rows import Projection, sample_poses
from abd.joints.joint_type import JointType, parameter_error
from abd.joints.measures.custom_rows import FIRST, LENGTH, ROW
from abd.joints.measures.measures import NUMBERS, Measure, MeasureKind, RowFunction
from abd.joints.rows.table import twist_gradient
from abd.model import WORLD
from abd.rotations import pose

MOST_PARAMETERS = NUMBERS - FIRST
WRENCH_TOLERANCE = 1e-6
"""Tolerance between the wrench of a limit and the gradient of its coordinate, relative to its size plus one."""


class RowFlags(IntFlag):
    """Kind of a row; the values are those of ArtiSynth's RigidBodyCoupling.

    A row without BILATERAL is a gap that must not become negative. A gap that is a length is enforced one-sidedly like
    a rope. A gap that is an angle is enforced by a barrier. (A coordinate with a range is enforced by a barrier also if
    it is a length.) A gap of a wrench is enforced one-sidedly, by a penalty in exact joints too. LINEAR rows are in
    metres, ROTARY rows in radians; COUPLED rows, which are both, count as metres. CONSTANT has no effect. LIMIT and
    LOCKED are settings of coordinates and not valid for rows.
    """

    BILATERAL = 0x01
    LINEAR = 0x02
    ROTARY = 0x04
    COUPLED = 0x06
    CONSTANT = 0x08
    LIMIT = 0x10
    LOCKED = 0x100


class CustomType(JointType):
    """Joint type whose rows are those of one function: first constraints and gaps, then coordinates.

    It has `transform(joint, values)` and `project(joint, T)` only if the user provides them.

    Args:
        function: the rows, in the order of `rows` and of the coordinates with flags.
        rows: name -> flags of the constraints and gaps.
        own: coordinate name -> measure, or flags of a row of the function.
        parameters: name -> default value.
        transform: values (k,), p (np,) -> T_CD (4, 4); project: T_CD (k, 4, 4), p (k, np) -> T_GD (k, 4, 4).
        ranges: coordinate -> default range (lower, upper).
        limits: coordinate -> row that enforces its range; that row is not a gap by itself.
        may_close: gaps that may be 0 without force.

    Raises:
        SceneError: invalid flags or parameters.
    """

    def __init__(
        self,
        function: RowFunction,
        rows: Mapping[str, RowFlags],
        own: Mapping[str, Measure | RowFlags],
        parameters: Mapping[str, float],
        transform: Callable[[np.ndarray, np.ndarray], np.ndarray] | None,
        project: Callable[[np.ndarray, np.ndarray], np.ndarray] | None,
        ranges: Mapping[str, tuple[float, float]] | None,
        limits: Mapping[str, str] | None,
        may_close: Collection[str],
    ):
        self.function, self.own = function, dict(own)
        self.RANGES, self.limits, self.may_close = dict(ranges or {}), dict(limits or {}), set(may_close)
        self.flags = dict(rows)
        self.PARAMETERS = dict(parameters)
        self.__doc__ = f"Defined by the user: {function.name}."
        if transform is not None:
            self.transform = lambda joint, values: np.asarray(transform(values, self.numbers(joint)))
        if project is not None:
            self.project = lambda joint, T: np.asarray(project(T[None], self.numbers(joint)[None]))[0]

    def numbers(self, joint: Joint) -> np.ndarray:
        """(np,) parameters of a joint, in the order of their declaration.

        Raises:
            SceneError: the type has no such parameter, or its value is not a finite number.
        """
        for key, value in joint.parameters.items():
            if key not in self.PARAMETERS:
                has = f"it has {', '.join(self.PARAMETERS)}" if self.PARAMETERS else "it has none"
                raise parameter_error(joint, key, f"a {joint.type} joint has no such parameter", has)
            if not np.isscalar(value) or not np.isfinite(float(value)):
                raise parameter_error(joint, key, "should be a finite number")
        return np.array([joint.parameters.get(key, default) for key, default in self.PARAMETERS.items()], dtype=float)

    def measured(self, joint: Joint) -> list[Measure]:
        """All rows of the function except coordinates and rows that enforce their ranges."""
        keeps = set(self.limits.values())
        return [
            self._row(joint, k, name, flags) for k, (name, flags) in enumerate(self.flags.items()) if name not in keeps
        ]

    def coordinates(self, joint: Joint) -> list[Measure]:
        """The coordinates, in the order of their declaration; rotary ones count turns."""
        found, row = [], len(self.flags)
        for name, one in self.own.items():
            if isinstance(one, Measure):
                found.append(replace(one, name=name))
                continue
            kind = MeasureKind.CUSTOM_ANGLE if _is_rotary(one) else MeasureKind.CUSTOM
            found.append(replace(self._row(joint, row, name, one | RowFlags.BILATERAL), kind=kind))
            row += 1
        return found

    def _row(self, joint: Joint, row: int, name: str, flags: RowFlags) -> Measure:
        numbers = np.zeros(NUMBERS)
        own = self.numbers(joint)
        numbers[ROW], numbers[LENGTH], numbers[FIRST : FIRST + len(own)] = row, joint.length, own
        is_gap = RowFlags.BILATERAL not in flags
        return Measure(
            name, _is_rotary(flags), MeasureKind.CUSTOM, numbers, unilateral=is_gap, function=self.function,
            may_close=is_gap and name in self.may_close,
        )  # fmt: skip


def check_declaration(
    name: str,
    rows: Mapping[str, RowFlags],
    own: Mapping[str, Measure | RowFlags],
    parameters: Mapping[str, float],
    ranges: Mapping[str, tuple[float, float]],
    limits: Mapping[str, str],
) -> None:
    """Check the rows, coordinates and parameters of a user-defined type.

    Raises:
        SceneError: with all problems found.
    """
    found = []

    def report(text: str, value: object = None, remedy: str = "") -> None:
        found.append(Problem(f"joint type {name!r}{text}", value=value, remedy=remedy))

    known = f"its coordinates are {', '.join(own)}" if own else "it has no coordinates"
    for key in [*ranges, *limits]:
        if key not in own:
            report(f": there is no coordinate {key!r}", key, known)
    for key, ends in ranges.items():
        if len(ends) != 2 or not ends[0] < ends[1]:
            report(f", range of {key!r}: should be (lower, upper)", ends)
    for key, row in limits.items():
        if row not in rows:
            report(f", limit of {key!r}: there is no row {row!r}", row)
        elif RowFlags.BILATERAL in rows[row]:
            report(f": row {row!r} keeps the range of {key!r}, and is held both ways", remedy="leave BILATERAL out of its flags")
    for row, flags in [*rows.items(), *own.items()]:
        if isinstance(flags, Measure):
            continue
        if not flags & RowFlags.COUPLED:
            report(f", row {row!r}: is neither LINEAR nor ROTARY", flags)
        if flags & (RowFlags.LIMIT | RowFlags.LOCKED):
            remedy = "leave it out: ranges and locks are settings of coordinates"
            report(f", row {row!r}: LIMIT and LOCKED say nothing here", remedy=remedy)
    if not rows and not own:
        report(" has neither rows nor coordinates")
    if len(parameters) > MOST_PARAMETERS:
        report(f" has more than {MOST_PARAMETERS} parameters", len(parameters))
    for key, value in parameters.items():
        if not np.isscalar(value) or not np.isfinite(float(value)):
            report(f": the default of {key} should be a finite number", value)
    if found:
        raise SceneError(found)


def check_duality(kind: CustomType, wrenches: Projection, names: list[str]) -> None:
    """Check that the wrench N of each limit belongs to its coordinate: ``N . v`` must be the coordinate's rate.

    Args:
        wrenches: T_GD (k, 4, 4), p (k, np) -> (k, rows, 6) of the rows `names`.

    Raises:
        SceneError: they differ.
    """
    joint = Joint("", kind.function.name, 0, WORLD, 0, np.eye(4), np.eye(4))
    M, r = sample_poses()
    p = kind.numbers(joint)
    for coordinate, row in kind.limits.items():
        if row not in names:
            continue
        (measure,) = [one for one in kind.coordinates(joint) if one.name == coordinate]
        for T in pose(M, r):
            G = kind.project(joint, T)
            to_C = np.kron(np.eye(2), G[:3, :3])
            rate = (twist_gradient([measure], G) @ to_C)[0]
            given = np.asarray(wrenches(G[None], p[None]))[0, names.index(row)]
            if np.isfinite(rate).all() and np.abs(given - rate).max() > WRENCH_TOLERANCE * (1.0 + np.abs(rate).max()):
                shown = [", ".join(f"{value:.4g}" for value in one) for one in (given, rate)]
                message = (
                    f"joint type {kind.function.name!r}: the wrench of {row!r} is ({shown[0]}), but {coordinate!r}"
                )
                remedy = "give the wrench whose power is the coordinate's rate, force and moment in axes of C"
                raise SceneError.of(f"{message} changes with ({shown[1]})", remedy=remedy)


def _is_rotary(flags: RowFlags) -> bool:
    return RowFlags.LINEAR not in flags
