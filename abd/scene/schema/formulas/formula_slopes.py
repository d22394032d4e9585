"""Derivatives of formulas, exact: every part of a formula becomes its value and its derivatives (forward differentiation)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from abd.scene.schema.formulas.formula import FUNCTIONS, FormulaError, Function, parsed, place_of


def parse_gradient(text: str, variables: Sequence[str]) -> Callable[[Sequence[float]], np.ndarray]:
    """The derivatives (k,) of a formula by its k variables, as a function of their values.

    Where a formula has a corner (abs, min, max), they are those of the side that the formula takes there; steps have none.
    The function raises `FormulaError` where the formula has no finite value or slope.
    """
    evaluate = parsed(text, variables, Slopes)

    def gradient(values: Sequence[float]) -> np.ndarray:
        try:
            _, slopes = evaluate(values)
        except (ArithmeticError, ValueError) as error:
            raise FormulaError(f"'{text}' has no slope at {place_of(values, variables)}: {error}") from error
        out = np.zeros(len(variables))
        for place, slope in slopes.items():
            out[place] = slope
        if not np.isfinite(out).all():
            raise FormulaError(f"the slope of '{text}' is not finite at {place_of(values, variables)}")
        return out

    return gradient


class Slopes:
    """Pairs of a value and its derivatives, those of the variables in it by their places."""

    @staticmethod
    def constant(value: float) -> Function:
        """A number."""
        return lambda values: (value, {})

    @staticmethod
    def variable(place: int | None) -> Function:
        """One of several values."""
        return lambda values: (float(values[place]), {place: 1.0})

    @staticmethod
    def negative(of: Function) -> Function:
        """Its negative."""
        return _chained(lambda a: -a, lambda a: (-1.0,), of)

    @staticmethod
    def binary(operator: str, left: Function, right: Function) -> Function:
        """One of + - * / ** of two."""
        if operator == "**":
            return _power(left, right)
        return _chained(*_BINARY[operator], left, right)

    @staticmethod
    def call(name: str, arguments: Sequence[Function]) -> Function:
        """One of the functions of formulas."""
        return _chained(FUNCTIONS[name][0], _PARTIALS[name], *arguments)


def _chained(function: Callable[..., float], partials: Callable[..., Sequence[float]], *parts: Function) -> Function:
    """A function of parts, by its partial derivatives at their values."""

    def pair(values: Sequence[float]) -> tuple[float, dict[int, float]]:
        inner = [part(values) for part in parts]
        at = [value for value, _ in inner]
        slopes: dict[int, float] = {}
        # a function is asked for its slopes only where its arguments change
        if any(slope != 0.0 for _, own in inner for slope in own.values()):
            for partial, (_, own) in zip(partials(*at), inner, strict=True):
                for place, slope in own.items():
                    slopes[place] = slopes.get(place, 0.0) + partial * slope
        return float(function(*at)), slopes

    return pair


def _power(left: Function, right: Function) -> Function:
    """``a ** b``; where b is a number, a may be negative or 0."""

    def pair(values: Sequence[float]) -> tuple[float, dict[int, float]]:
        (a, of_a), (b, of_b) = left(values), right(values)
        value = math.pow(a, b)
        by_a = b * math.pow(a, b - 1.0) if of_a and b != 0.0 else 0.0
        slopes = {place: by_a * slope for place, slope in of_a.items()}
        if of_b:
            by_b = value * math.log(a) if value != 0.0 else 0.0
            for place, slope in of_b.items():
                slopes[place] = slopes.get(place, 0.0) + by_b * slope
        return value, slopes

    return pair


def _of_best(choose: Callable[..., float]) -> Callable[..., Sequence[float]]:
    """Of min and max: 1 for the first argument that it takes."""

    def partials(*at: float) -> Sequence[float]:
        best = at.index(choose(at))
        return [float(k == best) for k in range(len(at))]

    return partials


def _smoothstep(a: float, b: float, x: float) -> Sequence[float]:
    s = (x - a) / (b - a)
    if not 0.0 < s < 1.0:
        return 0.0, 0.0, 0.0
    rise = 6.0 * s * (1.0 - s) / (b - a)
    return rise * (s - 1.0), -rise * s, rise


_BINARY: dict[str, tuple[Callable[..., float], Callable[..., Sequence[float]]]] = {
    "+": (lambda a, b: a + b, lambda a, b: (1.0, 1.0)),
    "-": (lambda a, b: a - b, lambda a, b: (1.0, -1.0)),
    "*": (lambda a, b: a * b, lambda a, b: (b, a)),
    "/": (lambda a, b: a / b, lambda a, b: (1.0 / b, -a / b**2)),
}
_PARTIALS: dict[str, Callable[..., Sequence[float]]] = {
    "sin": lambda x: (math.cos(x),),
    "cos": lambda x: (-math.sin(x),),
    "tan": lambda x: (1.0 + math.tan(x) ** 2,),
    "exp": lambda x: (math.exp(x),),
    "log": lambda x: (1.0 / x,),
    "sqrt": lambda x: (0.5 / math.sqrt(x),),
    "abs": lambda x: (math.copysign(1.0, x),),
    "min": _of_best(min),
    "max": _of_best(max),
    "step": lambda x: (0.0,),
    "smoothstep": _smoothstep,
}
