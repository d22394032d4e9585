"""Constraints along and about the axes of frames that many joint types share.

Linear rows of coincident points and directions are constant 4-vectors (`abd.joints.rows.rows`); measures are along and about the
axes of D.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from abd.joint_model import Joint
from abd.joints.measures.measures import FEATURES, Measure, MeasureKind, along, entry, functional, measure

NAMES = "xyz"
SAME = np.eye(3)
"""M of frames with the same axes."""


def displacement(name: str) -> Measure:
    """r_k [m]: displacement of C along axis x, y or z of D."""
    return measure(name, False, MeasureKind.AFFINE, along(NAMES.index(name[-1])))


def small_rotation(name: str, R: np.ndarray = SAME) -> Measure:
    """rx, ry or rz [rad]: component of the axial vector of ``R^T M``, a small rotation about an axis of C since M was R."""
    i, j = _others(name[-1])
    M = np.zeros((3, 3))
    M[:, i], M[:, j] = 0.5 * R[:, j], -0.5 * R[:, i]
    return measure(name, True, MeasureKind.AFFINE, functional(M=M))


def turn(name: str, axis: str = "z") -> Measure:
    """Angle of C about an axis of D [rad]: atan2 of the sine (M_ji - M_ij)/2 and the cosine (M_ii + M_jj)/2."""
    i, j = _others(axis)
    sine, cosine = np.zeros((3, 3)), np.zeros((3, 3))
    sine[j, i], sine[i, j] = 0.5, -0.5
    cosine[i, i] = cosine[j, j] = 0.5
    return angle(name, functional(M=sine), functional(M=cosine))


def _others(axis: str) -> tuple[int, int]:
    """The two axes that follow axis x, y or z cyclically."""
    k = NAMES.index(axis)
    return (k + 1) % 3, (k + 2) % 3


def dot(name: str, i: int, j: int, weight: float = 1.0) -> Measure:
    """``weight M_ij`` [rad]: cosine between axis i of D and axis j of C, the deviation from a right angle if small."""
    return measure(name, True, MeasureKind.AFFINE, entry(i, j, weight))


def angle(name: str, sine: np.ndarray, cosine: np.ndarray) -> Measure:
    """atan2 of two functionals [rad]."""
    return measure(name, True, MeasureKind.ANGLE, sine, cosine)


def of_inverse(measures: list[Measure]) -> list[Measure]:
    """The measures of rotations with D and C exchanged: functions of ``M^T``."""
    order = np.arange(FEATURES)
    order[:9] = order[:9].reshape(3, 3).T.ravel()
    return [replace(one, numbers=one.numbers.reshape(3, FEATURES)[:, order].ravel()) for one in measures]


def zyx_angles() -> list[Measure]:
    """roll, pitch, yaw [rad] of ``M = Rz(roll) Ry(pitch) Rx(yaw)``; pitch within a quarter turn."""
    return [
        angle("roll", entry(1, 0), entry(0, 0)),
        measure("pitch", True, MeasureKind.ELEVATION, entry(2, 0, -1.0), entry(0, 0), entry(1, 0)),
        angle("yaw", entry(2, 1), entry(2, 2)),
    ]


def xyz_angles(names: tuple[str, str, str] = ("rx", "ry", "rz")) -> list[Measure]:
    """Tait-Bryan angles [rad] of ``M = Rx(names[0]) Ry(names[1]) Rz(names[2])``; the second within a quarter turn."""
    return [
        angle(names[0], entry(1, 2, -1.0), entry(2, 2)),
        measure(names[1], True, MeasureKind.ELEVATION, entry(0, 2), entry(0, 0), entry(0, 1)),
        angle(names[2], entry(0, 1, -1.0), entry(0, 0)),
    ]


@dataclass(frozen=True)
class Row:
    """4-vectors (4,) of one residual, or (k, 4) for k joints.

    `is_point` distinguishes points [m] from unit directions; `mask` selects the world components.
    """

    parent: np.ndarray
    child: np.ndarray
    is_point: bool
    mask: tuple[float, float, float] = (1.0, 1.0, 1.0)


def point(joint: Joint, shift: float | np.ndarray = 0.0) -> Row:
    """Row of coincident frame origins, ``c_j - c_i`` [m], or of points that are shifted along z [m]."""
    frames = joint.parent_frame, joint.child_frame
    return Row(*(_with(1.0, F[..., :3, 3] + shift * F[..., :3, 2]) for F in frames), is_point=True)


def directions(joint: Joint, axes: str) -> list[Row]:
    """Rows of coincident axes among x, y and z, ``e_j - e_i`` [-], in the given order.

    The energy of an axis is largest, and has zero gradient, where both axes are opposite.
    """
    frames = joint.parent_frame, joint.child_frame
    return [Row(*(_with(0.0, F[..., :3, "xyz".index(axis)]) for F in frames), is_point=False) for axis in axes]


def _with(first: float, vector: np.ndarray) -> np.ndarray:
    """(..., 4): a number followed by vectors (..., 3)."""
    out = np.full((*vector.shape[:-1], 4), first)
    out[..., 1:] = vector
    return out
