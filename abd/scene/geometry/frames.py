"""Body frames: principal axes chosen without arbitrariness."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np

from abd.rotations import least_turn

_TIE = 1e-10
"""Relative difference below which two principal moments count as equal."""
_ROUNDING = 1e-15
"""Part of the trace of S below which an entry counts as rounding."""


def principal_frame(second_moment: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Right-handed principal axes of S, chosen without arbitrariness.

    Of all frames of principal axes the one is taken that turns the mesh axes least (largest trace; the first in a
    fixed order where several turn them equally). Where moments are equal the mesh axes are therefore kept: for an
    isotropic S, and for one that is diagonal already, the result is exactly the identity.

    Returns:
        axes (3, 3), whose columns are the principal axes in mesh coordinates, and moments (3,) >= 0 [kg m^2] with
        ``axes^T S axes = diag(moments)``.
    """
    diagonal = np.maximum(np.diag(second_moment), 0.0)
    rounding = _ROUNDING * diagonal.sum()
    coupling = np.abs(second_moment - np.diag(np.diag(second_moment)))
    if (coupling <= _TIE * np.sqrt(np.outer(diagonal, diagonal)) + rounding).all():
        return np.eye(3), diagonal

    values, vectors = np.linalg.eigh(second_moment)
    tie = np.diff(values) <= _TIE * np.abs(values[1:]) + rounding
    if tie.any():
        axes = _least_rotation_with_axis(vectors[:, 2] if tie[0] else vectors[:, 0])
    else:
        axes = max(_right_handed_orders(vectors), key=lambda frame: round(np.trace(frame), 9))
    return axes, np.maximum(np.einsum("ik,ij,jk->k", axes, second_moment, axes), 0.0)


def _right_handed_orders(vectors: np.ndarray) -> list[np.ndarray]:
    """The 24 right-handed frames made of three orthonormal columns, in a fixed order."""
    frames = []
    for order in permutations(range(3)):
        for signs in product((1.0, -1.0), repeat=3):
            frame = vectors[:, order] * np.array(signs)
            if np.linalg.det(frame) > 0.0:
                frames.append(frame)
    return frames


def _least_rotation_with_axis(axis: np.ndarray) -> np.ndarray:
    """The smallest rotation that brings one of the mesh axes onto +-`axis` (a unit vector)."""
    k = int(np.argmax(np.round(np.abs(axis), 9)))
    return least_turn(np.eye(3)[k], axis if axis[k] > 0.0 else -axis)


def triad(axis: np.ndarray) -> np.ndarray:
    """(3, 3) orthonormal frame (n, b, t) as columns with t along the unit vector `axis`: z turned onto it, least."""
    return least_turn(np.array([0.0, 0.0, 1.0]), axis)
