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
"""Bounds on what files may ask for; a variable of the environment, such as ABD_MOST_COPIES=2000000, raises one."""


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
        raise PydanticCustomError("number", f"should be a finite number{_bound(value)}")
    return float(value)


def _numbers(value: Any, length: int | None = None, infinite: bool = False) -> tuple[float, ...] | None:
    """So many numbers (None: any but none), which may be infinite; None for anything else."""
    items = sequence(value)
    if not items or (length is not None and len(items) != length):
        return None
    sound = all(is_number(item) or (infinite and isinstance(item, float) and math.isinf(item)) for item in items)
    return tuple(float(item) for item in items) if sound else None


def _rows(value: Any, length: int, least: int, most: float = math.inf) -> tuple[tuple[float, ...], ...] | None:
    """Rows of so many numbers; None for anything else."""
    rows = [_numbers(row, length) for row in sequence(value) or ()]
    return tuple(rows) if least <= len(rows) <= most and None not in rows else None


def _bound(value: Any) -> str:
    """ " of at most `LARGEST`" where a value has a finite number beyond it."""
    large = isinstance(value, (int, float)) and LARGEST < abs(value) < math.inf
    return f" of at most {LARGEST:g}" if large or any(map(_bound, sequence(value) or ())) else ""


def _validator(kind: str, read: Callable[[Any], Any], wanted: str) -> Callable[[Any], Any]:
    """Validator of what `read` makes of a value, which should be `wanted` where it makes None."""

    def validate(value: Any) -> Any:
        found = read(value)
        if found is None:
            raise PydanticCustomError(kind, f"should be {wanted}{_bound(value)}")
        return found

    return validate


def vector_value(length: int) -> Callable[[Any], Any]:
    """Validator of `length` finite numbers."""
    return _validator("vector", lambda value: _numbers(value, length), f"{COUNTED[length]} numbers")


def points_value(length: int) -> Callable[[Any], Any]:
    """Validator of a list of points of `length` numbers each, two of them at least."""
    wanted = f"a list of at least two points of {COUNTED[length]} numbers"
    return _validator("points", lambda value: _rows(value, length, 2), wanted)


def counts_value(length: int) -> Callable[[Any], Any]:
    """Validator of `length` integers."""

    def read(value: Any) -> tuple[int, ...] | None:
        items = sequence(value)
        sound = items is not None and len(items) == length and all(map(is_integer, items))
        return tuple(map(int, items)) if sound else None

    return _validator("integers", read, f"{COUNTED[length]} integers")


def _two_names(value: Any) -> tuple[str, str] | None:
    items = sequence(value)
    sound = items is not None and len(items) == 2 and all(isinstance(item, str) for item in items)
    return tuple(items) if sound else None


def _number_or_list(value: Any) -> float | tuple[float, ...] | None:
    return float(value) if is_number(value) else _numbers(value)


def _has_rows(value: Any) -> bool:
    items = sequence(value)
    return bool(items) and sequence(items[0]) is not None


names_value = _validator("names", _two_names, "two names")
matrix_value = _validator("matrix", lambda value: _rows(value, 3, 3, 3), "three rows of three numbers")
range_value = _validator(
    "range",
    lambda value: _numbers(value, 2, infinite=True),
    "two numbers [lower, upper], -inf or inf where there is no end",
)
numbers_value = _validator("numbers", _number_or_list, "a number or a list of numbers")
_six_rows = _validator(
    "gains", lambda value: _rows(value, 6, 6, 6), "a number, a list of numbers or six rows of six numbers"
)
_principal_values = _validator(
    "inertia", lambda value: _numbers(value, 3), "[Ixx, Iyy, Izz] or three rows of three numbers"
)
_factors = _validator(
    "scale", lambda value: float(value) if is_number(value) else _numbers(value, 3), "a number or three numbers"
)


def gains_value(value: Any) -> Any:
    """A number, a list of them, or six rows of six."""
    return _six_rows(value) if _has_rows(value) else numbers_value(value)


def inertia_value(value: Any) -> Any:
    """Three principal values or a 3x3 matrix."""
    return matrix_value(value) if _has_rows(value) else _principal_values(value)


def scale_value(value: Any) -> Any:
    """A number or three of them, none of them 0; a negative one mirrors."""
    factors = _factors(value)
    if 0 in (factors if isinstance(factors, tuple) else (factors,)):
        raise PydanticCustomError("scale", "should be greater than 0, or less to mirror")
    return factors


def grid_value(value: Any) -> Any:
    """Numbers of copies along three axes."""
    count = counts_value(3)(value)
    if min(count) < 1 or math.prod(count) > most("COPIES"):
        limit = f"ABD_MOST_COPIES = {most('COPIES')} copies at most"
        raise PydanticCustomError("grid", f"should be three integers of at least 1, {limit}")
    return count


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


def formula_value(value: Any) -> Any:
    """A number, or a formula of t that can be read."""
    if not isinstance(value, str):
        if not is_number(value):
            raise PydanticCustomError("formula", "should be a finite number or a formula of t in quotes")
        return float(value)
    try:
        formula_of_time(value)(0.0)
    except FormulaError as error:
        text = {"error": error.located, "remedy": error.remedy}
        raise PydanticCustomError("formula", "should be a formula of t that can be read: {error}", text) from error
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
