"""Keys that exist twice, in radians and with ``_deg`` in degrees; and functions of time from numbers and formulas."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from abd.scene.schema.fields import Spec
from abd.scene.schema.formula import Function, formula_of_time

DEGREES = "_deg"


@cache
def keys_with_degrees(model: type[Spec]) -> tuple[str, ...]:
    """Keys of a table that may be given in degrees, by a key of their own."""
    return tuple(key for key in model.model_fields if f"{key}{DEGREES}" in model.model_fields)


def in_radians(spec: Spec, key: str) -> Any:
    """The value of a key, from degrees where its key in degrees is given: a number, a tuple of them, or None."""
    degrees = getattr(spec, f"{key}{DEGREES}", None)
    if degrees is None:
        return getattr(spec, key)
    return tuple(map(math.radians, degrees)) if isinstance(degrees, tuple) else math.radians(degrees)


@dataclass(frozen=True)
class TimeFunction:
    """``unit`` times a number or a formula of t [s]; equal ones compare equal, and the text says all there is to them.

    Attributes:
        source: the number or formula; unit: factor into SI, pi/180 for degrees.
    """

    source: float | str
    unit: float = 1.0
    _formula: Function | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.source, str):
            object.__setattr__(self, "_formula", formula_of_time(self.source))

    def __call__(self, t: float) -> float:
        return self.unit * (self.source if self._formula is None else self._formula(float(t)))


def time_function(spec: Spec, key: str) -> TimeFunction | None:
    """The function of a key, from degrees where its key in degrees is given; None where neither is."""
    degrees = getattr(spec, f"{key}{DEGREES}")
    if degrees is not None:
        return TimeFunction(degrees, math.pi / 180.0)
    value = getattr(spec, key)
    return None if value is None else TimeFunction(value)
