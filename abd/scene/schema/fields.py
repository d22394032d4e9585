"""Elements of the tables of a scene file: types of values, fields with their meaning, rotations, angles in degrees, and common
rules of keys."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from abd.errors import SceneError
from abd.scene.schema.attributes import unknown_attribute
from abd.scene.schema.findings import Finding, as_problem, enumerated, schema_findings, unknown_key
from abd.scene.schema.formula import NamedFormula
from abd.scene.schema.values import (
    color_value,
    direction_value,
    formula_value,
    number_value,
    numbers_value,
    quaternion_value,
    scale_value,
    vector_value,
)

Number = Annotated[float, BeforeValidator(number_value)]
PositiveNumber = Annotated[float, Field(gt=0), BeforeValidator(number_value)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Vector = Annotated[tuple[float, float, float], BeforeValidator(vector_value)]
Direction = Annotated[tuple[float, float, float], BeforeValidator(direction_value)]
Quaternion = Annotated[tuple[float, float, float, float], BeforeValidator(quaternion_value)]
Extents = Annotated[tuple[Positive, Positive, Positive], BeforeValidator(vector_value)]
Formula = Annotated[float | str, BeforeValidator(formula_value)]
Matrix = Annotated[tuple[Vector, Vector, Vector], BeforeValidator(numbers_value("three rows of three numbers", (3, 3)))]
Inertia = Annotated[
    Vector | tuple[Vector, Vector, Vector],
    BeforeValidator(numbers_value("[Ixx, Iyy, Izz] or three rows of three numbers", (3,), (3, 3))),
]
Scale = Annotated[float | Vector, BeforeValidator(scale_value)]
Pair = Annotated[tuple[int, int], BeforeValidator(numbers_value("two integers", (2,), kind=int))]
Triple = Annotated[tuple[int, int, int], BeforeValidator(numbers_value("three integers", (3,), kind=int))]
Color = Annotated[Vector | tuple[float, float, float, float], BeforeValidator(color_value)]
AxisName = Literal["x", "y", "z", "rx", "ry", "rz"]
ROTATION_KEYS = ("quaternion", "matrix", "axis_angle", "euler")
"""How a rotation is given, one of them."""

LARGEST_INTEGER = 2**31 - 1
"""Largest number of a group: arrays have 32 bits."""
ATOMS = frozenset((float, int, bool, str, tuple, type(None)))
"""Types of values that cannot change."""


def entry(default: Any, description: str, *, unit: str = "", **constraints: Any) -> Any:
    """Return a field of the schema: default (``...`` if it must be given), meaning, unit and pydantic constraints."""
    return Field(default, description=description, json_schema_extra={"unit": unit} if unit else None, **constraints)


class Spec(BaseModel):
    """Base of all tables: unknown keys are errors, and assigned values are checked like given ones."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    @classmethod
    def fields_in_order(cls) -> dict[str, FieldInfo]:
        """Return the fields by key in the order of writing: inherited ones last, so that a body begins with its name."""
        own = [key for key in cls.model_fields if key in cls.__annotations__]
        return {key: cls.model_fields[key] for key in dict.fromkeys([*own, *cls.model_fields])}

    def content(self, *without: str) -> Hashable:
        """Return the content of the table without some keys: equal for equal tables."""
        return tuple(
            [value if type(value) in ATOMS else _hashable(value) for key, value in self.__dict__.items() if key not in without]
        )

    def independent(self, **changes: Any) -> Self:
        """Return a copy with other, unchecked values of some keys, which shares no list and no table with this one."""
        own = {key: _independent(value) for key, value in self.__dict__.items() if type(value) not in ATOMS}
        return self.model_copy(update={**own, **changes})

    if not TYPE_CHECKING:

        def __getattr__(self, key: str) -> Any:
            """Suggest another key for an unknown one."""
            try:
                return super().__getattr__(key)
            except AttributeError:
                raise unknown_attribute(self, key) from None

    def __setattr__(self, key: str, value: Any) -> None:
        """Set a field; `SceneError` if the schema does not allow it."""
        if key not in type(self).model_fields:
            raise SceneError([as_problem(unknown_key((key,), type(self), value), {})])
        try:
            super().__setattr__(key, value)
        except ValidationError as error:
            findings = schema_findings(error, type(self), {key: value})
            raise SceneError([as_problem(finding, {}) for finding in findings]) from None


def _hashable(value: Any) -> Hashable:
    if isinstance(value, Spec):
        return value.content()
    if isinstance(value, list):
        return tuple([_hashable(one) for one in value])
    if isinstance(value, dict):
        return tuple([(key, _hashable(one)) for key, one in value.items()])
    return value


def _independent(value: Any) -> Any:
    if isinstance(value, Spec):
        return value.independent()
    if isinstance(value, list):
        return [_independent(one) for one in value]
    if isinstance(value, dict):
        return {key: _independent(one) for key, one in value.items()}
    return value


class AxisAngle(Spec):
    """Rotation by an angle about an axis."""

    axis: Direction = entry(..., "axis; its length does not matter")
    degrees: Number = entry(..., "angle, counter-clockwise about the axis", unit="deg")


class Euler(Spec):
    """Rotation by three successive angles, in the notation of scipy."""

    order: Annotated[str, Field(pattern=r"^([xyz]{1,3}|[XYZ]{1,3})$")] = entry(
        "xyz", "axes in the order of turning: lower case about the fixed world axes, upper case about the moving axes"
    )
    degrees: tuple[Number, ...] = entry(..., "one angle per letter of order", unit="deg")


class Orientation(Spec):
    """A rotation in one of four notations; none of them means no rotation."""

    quaternion: Quaternion | None = entry(None, "(w, x, y, z); normalised when read")
    matrix: Matrix | None = entry(None, "rotation matrix, three rows")
    axis_angle: AxisAngle | None = entry(None, "axis and angle in degrees")
    euler: Euler | None = entry(None, "Euler angles in degrees")

    @property
    def is_turned(self) -> bool:
        """Whether a rotation is given."""
        return bool(given(self, ROTATION_KEYS))


DEGREES = "_deg"


@cache
def keys_with_degrees(model: type[Spec]) -> tuple[str, ...]:
    """Return the keys of a table that may be given in degrees, by a separate key."""
    return tuple(key for key in model.model_fields if f"{key}{DEGREES}" in model.model_fields)


def in_radians(spec: Spec, key: str) -> Any:
    """Return the value of a key, converted from its key in degrees if that is given: a number, a tuple of numbers, or None."""
    degrees = getattr(spec, f"{key}{DEGREES}", None)
    if degrees is None:
        return getattr(spec, key)
    return tuple(map(math.radians, degrees)) if isinstance(degrees, tuple) else math.radians(degrees)


def given_key(table: Spec, key: str) -> str:
    """Return the key in degrees if that is given, else the key."""
    return f"{key}{DEGREES}" if getattr(table, f"{key}{DEGREES}", None) is not None else key


def given(table: Spec, keys: Iterable[str]) -> list[str]:
    """Return the keys whose value is not the default."""
    values, fields = table.__dict__, type(table).model_fields
    return [key for key in keys if values[key] != fields[key].default]


def fields_set(table: Spec) -> dict[str, Any]:
    """Return the values that are set or differ from their defaults, by key: a default that is set counts too."""
    fields, found = type(table).model_fields, table.model_fields_set
    return {key: value for key, value in table.__dict__.items() if key in found or value != fields[key].default}


def at_most_one(table: Spec, keys: Iterable[str], reason: str = "", remedy: str = "keep one of them") -> Iterator[Finding]:
    """Yield a finding if more than one of the keys is given; `reason`: the rule, such as "a body has one surface"."""
    found = given(table, keys)
    if len(found) > 1:
        message = f"{enumerated(found, 'and')} are given, but {reason}" if reason else f"{found[0]} is given as well"
        yield Finding((found[1],), message, getattr(table, found[1]), remedy)


def without_effect(table: Spec, keys: Iterable[str], where: str, remedy: str = "remove it") -> Iterator[Finding]:
    """Yield a finding for every given key without effect; `where` names the case, such as "on a half-space"."""
    for key in given(table, keys):
        yield Finding((key,), f"has no effect {where}", getattr(table, key), remedy)


def one_unit(table: Spec, keys: Iterable[str] | None = None) -> Iterator[Finding]:
    """Yield findings about angles that are given in radians and in degrees; keys: checked keys, by default all."""
    for key in keys_with_degrees(type(table)) if keys is None else keys:
        yield from at_most_one(table, (key, f"{key}{DEGREES}"))


@dataclass(frozen=True)
class TimeFunction:
    """``unit`` times a number or a formula of t [s]; equal ones compare equal, since the text determines them.

    Attributes:
        source: the number or formula; unit: factor into SI, pi/180 for degrees; key: location in the scene for errors.
    """

    source: float | str
    unit: float = 1.0
    key: str = field(default="", compare=False)
    _formula: NamedFormula | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.source, str):
            object.__setattr__(self, "_formula", NamedFormula(self.source, ("t",), self.key))

    def __call__(self, t: float) -> float:
        return self.unit * (self.source if self._formula is None else self._formula((t,)))


def time_function(spec: Spec, key: str, place: str) -> TimeFunction | None:
    """Return the function of a key of the table at `place`, or of its key in degrees; None without both."""
    degrees = getattr(spec, f"{key}{DEGREES}")
    if degrees is not None:
        return TimeFunction(degrees, math.pi / 180.0, f"{place}.{key}{DEGREES}")
    value = getattr(spec, key)
    return None if value is None else TimeFunction(value, key=f"{place}.{key}")
