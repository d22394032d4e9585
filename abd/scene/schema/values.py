"""Validators of values of scene files: numbers, vectors, matrices, formulas, axes and colours.

Each function is a pydantic validator that runs before the type check. Booleans, strings of digits, NaN and infinities
are not numbers here.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from pydantic_core import PydanticCustomError

from abd.scene.schema.formula import FormulaError, NamedFormula

BOUNDS = {
    # copies of a body by `repeat`
    "COPIES": 1_000_000,
    # elements of copies by <replicate> and <composite>
    "REPLICAS": 20_000,
    # parts of a dotted key of TOML
    "KEY_PARTS": 100,
    # memory of the arrays of an NPZ file [bytes]
    "NPZ_BYTES": 256 << 20,
}
"""Limits for files; an environment variable, such as ABD_MOST_COPIES=2000000, changes a limit."""


def most(name: str) -> int:
    """Return a limit of `BOUNDS`, or its environment variable."""
    try:
        return int(os.environ[f"ABD_MOST_{name}"])
    except (KeyError, ValueError):
        return BOUNDS[name]


def remedy(name: str) -> str:
    """Return the remedy for an exceeded limit."""
    return f"reduce it, or raise the limit with the environment variable ABD_MOST_{name}"


AXIS_NAMES = ("x", "y", "z", "rx", "ry", "rz")

LARGEST = 1e50
"""Largest absolute value of a number in a file, so that products of a few numbers stay finite."""


def is_number(value: Any) -> bool:
    """Return whether a value is an integer or float of at most `LARGEST`, NumPy's included, and not a boolean."""
    if isinstance(value, bool):
        return False
    try:
        return hasattr(value, "__float__") and abs(float(value)) <= LARGEST
    except (TypeError, OverflowError):
        return False


def number_value(value: Any) -> Any:
    """Validate a finite number and return it as a float."""
    if isinstance(value, str):
        raise PydanticCustomError("number", "should be a number, without quotes")
    if not is_number(value):
        raise PydanticCustomError("number", f"should be a finite number{_bound(value)}")
    return float(value)


def _bound(value: Any) -> str:
    """Return " of at most `LARGEST`" if a value has a larger finite number, otherwise an empty string."""
    large = isinstance(value, (int, float)) and LARGEST < abs(value) < math.inf
    inner = value if isinstance(value, list | tuple) else ()
    return f" of at most {LARGEST:g}" if large or any(map(_bound, inner)) else ""


def numbers_value(wanted: str, *shapes: tuple[int | None, ...], kind: type = float, largest: float = LARGEST):
    """Return a validator of numbers with one of these shapes, as nested tuples, or as a number for the shape ().

    Args:
        wanted: description of the value, for messages.
        shapes: lengths, None for any except 0.
        kind: `float` or `int`; largest: bound on their sizes.
    """
    kinds = "iu" if kind is int else "iuf"
    known = {shape for shape in shapes if None not in shape}
    open_shapes = [shape for shape in shapes if None in shape]

    def validate(value: Any) -> Any:
        try:
            array = np.asarray(value)
        except ValueError:  # rows of different lengths
            array = np.zeros(0)
        shape = array.shape
        fits = shape in known or any(
            len(shape) == len(one) and all(n == m or (m is None and n > 0) for n, m in zip(shape, one)) for one in open_shapes
        )
        if not fits or array.dtype.kind not in kinds or not all(-largest <= x <= largest for x in array.ravel().tolist()):
            raise PydanticCustomError("numbers", f"should be {wanted}{_bound(value)}")
        found = array.astype(kind, copy=False).tolist()
        return tuple(found) if array.ndim == 1 else _as_tuples(found)

    return validate


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


vector_value = numbers_value("three numbers", (3,))
_grid_value = numbers_value("three integers", (3,), kind=int)


def _checked(
    validate: Callable[[Any], Any], is_sound: Callable[[Any], bool], message: str, remedy: str = ""
) -> Callable[[Any], Any]:
    """Return a validator with a condition on the validated value."""

    def check(value: Any) -> Any:
        found = validate(value)
        if not is_sound(found):
            raise PydanticCustomError("value", message, {"remedy": remedy})
        return found

    return check


ZERO = "should be other than zero"
direction_value = _checked(vector_value, lambda v: np.linalg.norm(v) > 0.0, ZERO, "give a direction, such as [0, 0, 1]")
quaternion_value = _checked(
    numbers_value("four numbers", (4,)), lambda q: math.hypot(*q) >= 1e-6, ZERO, "the identity is [1, 0, 0, 0]"
)
scale_value = _checked(
    numbers_value("a number or three numbers", (), (3,)),
    lambda factors: np.all(factors),
    "should be one or three factors other than 0",
    "a negative factor mirrors",
)
POINTS = "a list of at least two points of two numbers"
points_value = _checked(numbers_value(POINTS, (None, 2)), lambda points: len(points) > 1, f"should be {POINTS}")
COLOR = "three or four numbers from 0 to 1, a CSS name or '#rrggbb'"
_rgba_value = _checked(
    numbers_value(COLOR, (3,), (4,)), lambda color: min(color) >= 0.0 and max(color) <= 1.0, f"should be {COLOR}"
)


def names_value(value: Any) -> Any:
    """Validate two names."""
    if not isinstance(value, list | tuple) or len(value) != 2 or not all(isinstance(item, str) for item in value):
        raise PydanticCustomError("names", "should be two names")
    return tuple(value)


def grid_value(value: Any) -> Any:
    """Validate the numbers of copies along three axes."""
    count = _grid_value(value)
    if min(count) < 1 or math.prod(count) > most("COPIES"):
        limit = f"with a product of at most {most('COPIES')} (ABD_MOST_COPIES)"
        raise PydanticCustomError("grid", f"should be three integers of at least 1, {limit}")
    return count


def formula_value(value: Any) -> Any:
    """Validate a number or a formula of t."""
    if not isinstance(value, str):
        if not is_number(value):
            raise PydanticCustomError("formula", "should be a finite number or a formula of t in quotes")
        return float(value)
    try:
        NamedFormula(value, ("t",))((0.0,))
    except FormulaError as error:
        text = {"error": error.located, "remedy": error.remedy}
        raise PydanticCustomError("formula", "should be a valid formula of t: {error}", text) from None
    return value


def axes_value(value: Any) -> Any:
    """Validate axes: names, or true and false (1 and 0) for all six or three; return names in the order x .. rz."""
    items = list(value) if isinstance(value, list | tuple | np.ndarray) else None
    if items is not None and len(items) in (3, 6) and all(item in (0, 1) for item in items):
        items = [name for name, is_held in zip(AXIS_NAMES, items) if is_held]
    if items is None or not all(item in AXIS_NAMES for item in items):
        raise PydanticCustomError(
            "axes", "should be some of 'x', 'y', 'z', 'rx', 'ry', 'rz', or true or false (1 or 0) for each of them"
        )
    return tuple(name for name in AXIS_NAMES if name in items)


def color_value(value: Any) -> Any:
    """Validate a colour: red, green, blue and opacity from 0 to 1, a CSS name or '#rrggbb'."""
    if isinstance(value, str):
        from matplotlib.colors import to_rgba

        try:
            return tuple(float(item) for item in to_rgba(value))
        except ValueError:
            raise PydanticCustomError("color", "should be a CSS colour name or have the form '#rrggbb'") from None
    return _rgba_value(value)
