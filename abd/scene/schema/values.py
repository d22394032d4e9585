"""Values of a scene file as the schema wants them: numbers, vectors and matrices, with plain words where they are not.

Each function is a pydantic validator that runs before the type check. Booleans, strings of digits, NaN and infinities
are not numbers here.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

from pydantic_core import PydanticCustomError

from abd.scene.schema.formula import FormulaError, formula_of_time

BOUNDS = {
    # copies that `repeat` makes of a body
    "COPIES": 1_000_000,
    # elements of copies that <replicate> and <composite> make
    "REPLICAS": 20_000,
    # parts of a dotted key of TOML
    "KEY_PARTS": 100,
    # memory of the arrays of an NPZ file [bytes]
    "NPZ_BYTES": 256 << 20,
}


def most(name: str) -> int:
    """The largest number of a kind."""
    try:
        return int(os.environ[f"ABD_MOST_{name}"])
    except (KeyError, ValueError):
        return BOUNDS[name]


def remedy(name: str) -> str:
    """How it is raised."""
    return f"ask for less, or raise the bound: ABD_MOST_{name}=N in the environment"


AXIS_NAMES = ("x", "y", "z", "rx", "ry", "rz")
COUNTED = {2: "two", 3: "three", 4: "four", 6: "six"}


LARGEST = 1e50
"""Largest size of a number of a file: products of a few stay finite."""


def is_number(value: Any) -> bool:
    """True for ints and floats of at most `LARGEST`, numpy's included; False for booleans."""
    if isinstance(value, bool):
        return False
    try:
        return hasattr(value, "__float__") and abs(float(value)) <= LARGEST
    except (TypeError, OverflowError):
        return False


def number_value(value: Any) -> Any:
    """A finite number, as a float."""
    if isinstance(value, str):
        raise PydanticCustomError("number", "should be a number, without quotes")
    if not is_number(value):
        raise PydanticCustomError("number", "should be a finite number")
    return float(value)


def vector_value(length: int) -> Callable[[Any], Any]:
    """Validator of `length` finite numbers."""

    def validate(value: Any) -> Any:
        items = sequence(value)
        if items is None or len(items) != length or not all(is_number(item) for item in items):
            raise PydanticCustomError("vector", f"should be {COUNTED[length]} numbers")
        return tuple(float(item) for item in items)

    return validate


def matrix_value(value: Any) -> Any:
    """Three rows of three finite numbers."""
    rows = sequence(value)
    columns = None if rows is None else [sequence(row) for row in rows]
    if (
        columns is None
        or len(columns) != 3
        or not all(row is not None and len(row) == 3 and all(map(is_number, row)) for row in columns)
    ):
        raise PydanticCustomError("matrix", "should be three rows of three numbers")
    return tuple(tuple(float(item) for item in row) for row in columns)


def inertia_value(value: Any) -> Any:
    """Three principal values or a 3x3 matrix."""
    items = sequence(value)
    if items is not None and items and sequence(items[0]) is not None:
        return matrix_value(value)
    if items is None or len(items) != 3 or not all(is_number(item) for item in items):
        raise PydanticCustomError("inertia", "should be [Ixx, Iyy, Izz] or three rows of three numbers")
    return tuple(float(item) for item in items)


def scale_value(value: Any) -> Any:
    """A number or three of them, none of them 0; a negative one mirrors."""
    if is_number(value):
        items = [value]
    else:
        items = sequence(value)
        if items is None or len(items) != 3 or not all(is_number(item) for item in items):
            raise PydanticCustomError("scale", "should be a number or three numbers")
    if 0 in items:
        raise PydanticCustomError("scale", "should be greater than 0, or less to mirror")
    return float(value) if is_number(value) else tuple(float(item) for item in items)


def counts_value(length: int) -> Callable[[Any], Any]:
    """Validator of `length` integers."""

    def validate(value: Any) -> Any:
        items = sequence(value)
        if items is None or len(items) != length or not all(is_integer(item) for item in items):
            raise PydanticCustomError("integers", f"should be {COUNTED[length]} integers")
        return tuple(int(item) for item in items)

    return validate


def grid_value(value: Any) -> Any:
    """Numbers of copies along three axes."""
    count = counts_value(3)(value)
    if min(count) < 1 or math.prod(count) > most("COPIES"):
        limit = f"ABD_MOST_COPIES = {most('COPIES')} copies at most"
        raise PydanticCustomError("grid", f"should be three integers of at least 1, {limit}")
    return count


def names_value(value: Any) -> Any:
    """Two names."""
    items = sequence(value)
    if items is None or len(items) != 2 or not all(isinstance(item, str) for item in items):
        raise PydanticCustomError("names", "should be two names")
    return tuple(items)


def is_integer(value: Any) -> bool:
    """True for ints, numpy's included; False for booleans and floats."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


def sequence(value: Any) -> list | None:
    """The items of a list, tuple or array; None for anything else."""
    if isinstance(value, (list, tuple)):
        return list(value)
    if hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0:
        return list(value)
    return None


def range_value(value: Any) -> Any:
    """Two numbers, of which either may be infinite."""
    items = sequence(value)
    if items is None or len(items) != 2 or not all(is_number(item) or _is_infinite(item) for item in items):
        raise PydanticCustomError("range", "should be two numbers [lower, upper], -inf or inf where there is no end")
    return tuple(float(item) for item in items)


def numbers_value(value: Any) -> Any:
    """A number, or a list of them: one per row of a joint."""
    if is_number(value):
        return float(value)
    items = sequence(value)
    if not items or not all(is_number(item) for item in items):
        raise PydanticCustomError("numbers", "should be a number or a list of numbers")
    return tuple(float(item) for item in items)


def gains_value(value: Any) -> Any:
    """A number, a list of them, or six rows of six."""
    rows = sequence(value)
    if not rows or sequence(rows[0]) is None:
        return numbers_value(value)
    columns = [sequence(row) for row in rows]
    if len(columns) != 6 or not all(row is not None and len(row) == 6 and all(map(is_number, row)) for row in columns):
        raise PydanticCustomError("gains", "should be a number, a list of numbers or six rows of six numbers")
    return tuple(tuple(float(item) for item in row) for row in columns)


def points_value(length: int) -> Callable[[Any], Any]:
    """Validator of a list of points of `length` numbers each, two of them at least."""

    def validate(value: Any) -> Any:
        rows = sequence(value)
        points = None if rows is None else [sequence(row) for row in rows]
        if (
            points is None
            or len(points) < 2
            or not all(point is not None and len(point) == length and all(map(is_number, point)) for point in points)
        ):
            raise PydanticCustomError("points", f"should be a list of at least two points of {COUNTED[length]} numbers")
        return tuple(tuple(float(item) for item in point) for point in points)

    return validate


def formula_value(value: Any) -> Any:
    """A number, or a formula of t that can be read."""
    if not isinstance(value, str):
        if not is_number(value):
            raise PydanticCustomError("formula", "should be a finite number or a formula of t in quotes")
        return float(value)
    try:
        formula_of_time(value)(0.0)
    except FormulaError as error:
        place = f" (column {error.column})" if error.column else ""
        remedy = f"; {error.remedy}" if error.remedy else ""
        raise PydanticCustomError(
            "formula", "should be a formula of t that can be read: {error}", {"error": f"{error}{place}{remedy}"}
        ) from error
    return value


def axes_value(value: Any) -> Any:
    """Names of axes, in the order x, y, z, rx, ry, rz, from such names, or from true and false, or 1 and 0, for all six (or
    three)."""
    items = sequence(value)
    if items is not None and len(items) in (3, 6) and all(item in (0, 1) for item in items):
        items = [name for name, is_held in zip(AXIS_NAMES, items) if is_held]
    if items is None or not all(item in AXIS_NAMES for item in items):
        raise PydanticCustomError(
            "axes", "should be some of 'x', 'y', 'z', 'rx', 'ry', 'rz', or true or false (1 or 0) for each of them"
        )
    return tuple(name for name in AXIS_NAMES if name in items)


def color_value(value: Any) -> Any:
    """Three or four numbers from 0 to 1: red, green, blue and opacity; a name of CSS or '#rrggbb' stands for four."""
    if isinstance(value, str):
        from matplotlib.colors import to_rgba

        try:
            return tuple(float(item) for item in to_rgba(value))
        except ValueError as error:
            raise PydanticCustomError("color", "should be the name of a CSS color or of the form '#rrggbb'") from error
    items = sequence(value)
    if items is None or len(items) not in (3, 4) or not all(is_number(x) and 0.0 <= x <= 1.0 for x in items):
        raise PydanticCustomError("color", "should be three or four numbers from 0 to 1, or a name or '#rrggbb'")
    return tuple(float(item) for item in items)


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)
