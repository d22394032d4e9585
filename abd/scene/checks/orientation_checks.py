"""What must hold in the notations of a rotation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from abd.scene.schema.fields import ROTATION_KEYS, Orientation
from abd.scene.schema.findings import Finding, shown
from abd.scene.schema.suggestions import enumerated

ROTATION_TOLERANCE = 1e-4
"""Largest departure of R R^T from 1 of a matrix that counts as a rotation: the digits of a text file."""


def rotation_keys(spec: Orientation) -> list[str]:
    """The notations that are given."""
    return [key for key in ROTATION_KEYS if getattr(spec, key) is not None]


def check_orientation(spec: Orientation) -> Iterator[Finding]:
    """Findings with paths relative to the table that holds the rotation."""
    given = rotation_keys(spec)
    if len(given) > 1:
        message = f"{enumerated(given, 'and')} are given, but a rotation has one notation"
        yield Finding((given[1],), message, remedy="keep one of them")
    if spec.quaternion is not None and np.linalg.norm(spec.quaternion) < 1e-6:
        yield Finding(("quaternion",), "is zero", spec.quaternion, "no rotation is [1, 0, 0, 0]")
    if spec.axis_angle is not None and not np.linalg.norm(spec.axis_angle.axis):
        yield Finding(("axis_angle", "axis"), "is zero", spec.axis_angle.axis, "give a direction, such as [0, 0, 1]")
    if spec.matrix is not None:
        matrix = np.array(spec.matrix)
        departure = np.abs(matrix @ matrix.T - np.eye(3)).max()
        if departure > ROTATION_TOLERANCE:
            message = f"is not a rotation: R R^T differs from the identity by {departure:.2g}"
            yield Finding(("matrix",), message, spec.matrix, "rows of unit length at right angles; a size is `scale`")
        elif np.linalg.det(matrix) < 0:
            yield Finding(("matrix",), "is a reflection (determinant -1)", spec.matrix, "mirror the mesh file instead")
    if spec.euler is not None:
        yield from _check_euler(spec.euler.order, spec.euler.degrees)


def _check_euler(order: str, degrees: tuple[float, ...]) -> Iterator[Finding]:
    if len(degrees) != len(order):
        message = f"has {len(degrees)} angles, but the order {shown(order)} has {len(order)} axes"
        yield Finding(("euler", "degrees"), message, degrees, "give one angle per letter of order")
    if any(a == b for a, b in pairwise(order)):
        remedy = "add the two angles, or choose an order such as 'xyz' or 'zxz'"
        yield Finding(("euler", "order"), f"{shown(order)} turns twice about the same axis in a row", order, remedy)
