"""What a family of benchmark scenes is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import abd

Scenes = Mapping[str, Callable[[], abd.Scene]]

STEPS = 20
QUICK_STEPS = 8


@dataclass(frozen=True)
class Family:
    """Scenes of one kind in several sizes.

    Attributes:
        name: of the family; `unit` says what its size counts.
        build: size -> builders of scenes by variant; all variants of a size advance in turn, in one process.
        sizes, quick: of a full run, and of one that takes a minute.
        steps: size -> timed steps of a full run.
        ratios: title -> (variant, variants): the time of the one over the sum of the others'.
    """

    name: str
    unit: str
    build: Callable[[float], Scenes]
    sizes: tuple[float, ...]
    quick: tuple[float, ...]
    steps: Callable[[float], int] = field(default=lambda size: STEPS)
    ratios: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)


def alone(build: Callable[[float], abd.Scene]) -> Callable[[float], Scenes]:
    """Of a family whose sizes have one scene each."""
    return lambda size: {"": partial(build, size)}
