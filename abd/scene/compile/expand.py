"""The bodies of a scene one by one: repeated ones copied."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from abd.names import CopyNames
from abd.scene.schema.schema import BodySpec, RepeatSpec


def copy_names(name: str, repeat: RepeatSpec | None) -> Sequence[str]:
    """Names of the bodies that a body of this name stands for."""
    return [name] if repeat is None else CopyNames(name, repeat.count)


def copies(body: BodySpec) -> list[BodySpec]:
    """The bodies that one body stands for, in the order of their grid index, z fastest.

    A copy is named ``name_i_j_k`` and stands ``(i, j, k) * step`` [m] beyond the body's position; its other fields are those of
    the original, which is not modified. No returned body has `repeat`.
    """
    if body.repeat is None:
        return [body]
    names = copy_names(body.name, body.repeat)
    return [copy_of(body, name, position) for name, position in zip(names, copy_positions(body).tolist(), strict=True)]


def copy_of(body: BodySpec, name: str, position: Sequence[float]) -> BodySpec:
    """One copy of a repeated body."""
    return body.model_copy(update={"name": name, "position": tuple(position), "repeat": None})


def copy_positions(body: BodySpec) -> np.ndarray:
    """(k, 3) positions [m] of the copies of a repeated body."""
    return np.array(body.position) + grid(body.repeat.count) * np.array(body.repeat.step)


def grid(count: tuple[int, int, int]) -> np.ndarray:
    """(k, 3) places on a grid, z fastest."""
    return np.stack(np.unravel_index(np.arange(int(np.prod(count))), count), axis=1)
