"""Parameters of a sweep: values, sampled ranges, and the points of all combinations."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from abd.errors import UsageError
from abd.scene.files.overrides import value_of
from abd.scene.schema.tables import plain

METHODS = ("lhs", "sobol")
"""Samplings of ranges: Latin hypercube, Sobol sequence (scrambled)."""


class SweepError(UsageError):
    """Invalid parameters or an unsuitable folder of a sweep."""


@dataclass(frozen=True)
class Range:
    """Range of numbers that a sweep samples."""

    low: float
    high: float


Values = Sequence[Any] | Range


def read_parameters(texts: Iterable[str]) -> dict[str, Values]:
    """Read parameters of the command line: ``key=a:b:n`` (n equidistant numbers, integers if all of them are and a and b are
    written as such), ``key=a:b`` (a range to sample) or ``key=v1,v2``; `SweepError` for other texts or a repeated key."""
    parameters: dict[str, Values] = {}
    for text in texts:
        key, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not key or not values:
            raise SweepError(f"--grid {text!r} is invalid: use key=a:b:n, key=a:b with --sample, or key=v1,v2")
        if key in parameters:
            raise SweepError(f"--grid {key} is given twice; give all values in one --grid")
        parameters[key] = _values(text, values)
    return parameters


def _values(text: str, values: str) -> Values:
    bounds = values.split(":")
    if len(bounds) == 1:
        listed = value_of(f"[{values}]")  # commas within brackets or quotes separate no values
        return tuple(listed if isinstance(listed, list) else (value_of(one.strip()) for one in values.split(",")))
    try:
        low, high = float(bounds[0]), float(bounds[1])
        count = int(bounds[2]) if len(bounds) == 3 else 0
    except ValueError:
        low = high = math.nan
    if len(bounds) > 3 or not (math.isfinite(low) and math.isfinite(high)) or (len(bounds) == 3 and count < 1):
        raise SweepError(f"--grid {text!r} is invalid: a:b:n needs two numbers and a number of values, such as 0.1:0.9:9")
    if len(bounds) == 2:
        return Range(low, high)
    numbers = np.linspace(low, high, count)
    integers = all(isinstance(value_of(bound.strip()), int) for bound in bounds) and (numbers % 1 == 0.0).all()
    return tuple((numbers.astype(int) if integers else numbers).tolist())


def points(
    parameters: Mapping[str, Values], sample: int | None = None, method: str = "lhs", seed: int = 0, repeat: int = 1
) -> list[dict[str, Any]]:
    """Return all combinations of the values with all sampled points of the ranges, `repeat` times.

    Args:
        sample: number of points of the ranges; method: one of `METHODS`; seed: of the sample.
        repeat: number of runs of each point; above 1, points have the key ``repeat`` = 0, 1, ...

    Raises:
        SweepError: no parameter, a range without `sample`, `sample` without a range, or a number below 1.
    """
    ranges = {key: one for key, one in parameters.items() if isinstance(one, Range)}
    lists = {key: plain(list(one)) for key, one in parameters.items() if key not in ranges}
    if not parameters or any(not values for values in lists.values()):
        raise SweepError("a sweep needs parameters with values, such as solver.dt = [0.01, 0.005]")
    if repeat < 1 or (sample is not None and sample < 1):
        raise SweepError(f"sample and repeat must be at least 1, not {sample} and {repeat}")
    if bool(ranges) != (sample is not None):
        raise SweepError(
            f"{next(iter(ranges))} is a range: give the number of samples (--sample N), or values (a:b:n)"
            if ranges else "a sample needs a range, such as material.default.mu=0.1:0.9"
        )  # fmt: skip
    sampled = _sample(ranges, sample, method, seed) if ranges else [{}]
    grid = [dict(zip(lists, values)) for values in product(*lists.values())]
    combined = [{key: (one | other)[key] for key in parameters} for one in grid for other in sampled]
    return [point | ({"repeat": k} if repeat > 1 else {}) for point in combined for k in range(repeat)]


def _sample(ranges: Mapping[str, Range], count: int, method: str, seed: int) -> list[dict[str, float]]:
    from scipy.stats import qmc

    if method not in METHODS:
        raise SweepError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    engine = {"lhs": qmc.LatinHypercube, "sobol": qmc.Sobol}[method](d=len(ranges), rng=np.random.default_rng(seed))
    low, high = ([getattr(one, bound) for one in ranges.values()] for bound in ("low", "high"))
    # a Sobol sequence is balanced after a power of two of points
    found = engine.random(count) if method == "lhs" else engine.random_base2(max(count - 1, 0).bit_length())[:count]
    return [dict(zip(ranges, row)) for row in (low + found * (np.array(high) - low)).tolist()]


def as_override(key: str, value: Any) -> str:
    """Return the override ``key=value`` of a scene (`abd.scene.files.overrides`)."""
    return f"{key}={value if isinstance(value, str) else json.dumps(value)}"
