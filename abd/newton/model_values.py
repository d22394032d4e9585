"""What a scene takes from a Newton model one by one: names, transforms, and the error of what it cannot take."""

from __future__ import annotations

import numpy as np

from abd.errors import AbdError
from abd.rotations import pose, quaternion_matrix


class ModelError(AbdError):
    """A Newton model with something that this solver has not."""

    exit_status = 2


def transform_matrix(values: np.ndarray) -> np.ndarray:
    """(4, 4) of Newton's transform: position, then quaternion x, y, z, w."""
    x, y, z, w = np.asarray(values[3:7], dtype=float)
    return pose(quaternion_matrix(np.array([w, x, y, z])), np.asarray(values[:3], dtype=float))


def unique_names(names: list[str]) -> list[str]:
    """Names that our scenes allow, each once."""
    taken, out = {"world"}, []
    for name in names:
        plain = name.replace("/", ".").strip() or "body"
        new, k = plain, 1
        while new in taken or new == ".":
            new, k = f"{plain}#{k}", k + 1
        taken.add(new)
        out.append(new)
    return out
