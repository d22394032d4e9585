"""Measures along and about the axes of frame D that many joint types share."""

from __future__ import annotations

import numpy as np

from abd.joints.measures.measures import Measure, MeasureKind, along, entry, functional, measure

NAMES = "xyz"


def displacement(name: str) -> Measure:
    """r_k [m]: displacement of C along axis x, y or z of D."""
    return measure(name, False, MeasureKind.AFFINE, along(NAMES.index(name[-1])))


def tilt(name: str) -> Measure:
    """rx = -M_12 or ry = M_02 [rad]: small-angle tilt of z_C about x or y of D."""
    weight = {"rx": entry(1, 2, -1.0), "ry": entry(0, 2)}[name]
    return measure(name, True, MeasureKind.AFFINE, weight)


def small_rotation(name: str) -> Measure:
    """rx, ry or rz [rad]: component of the axial vector of M, a small rotation about an axis of D."""
    k = NAMES.index(name[-1])
    i, j = (k + 1) % 3, (k + 2) % 3
    M = np.zeros((3, 3))
    M[j, i], M[i, j] = 0.5, -0.5
    return measure(name, True, MeasureKind.AFFINE, functional(M=M))


def turn(name: str, axis: str = "z") -> Measure:
    """Angle of C about an axis of D [rad]: atan2 of the sine (M_ji - M_ij)/2 and the cosine (M_ii + M_jj)/2."""
    k = NAMES.index(axis)
    i, j = (k + 1) % 3, (k + 2) % 3
    sine, cosine = np.zeros((3, 3)), np.zeros((3, 3))
    sine[j, i], sine[i, j] = 0.5, -0.5
    cosine[i, i] = cosine[j, j] = 0.5
    return measure(name, True, MeasureKind.ANGLE, functional(M=sine), functional(M=cosine))


def dot(name: str, i: int, j: int, weight: float = 1.0) -> Measure:
    """``weight M_ij`` [rad]: cosine between axis i of D and axis j of C, the deviation from a right angle if small."""
    return measure(name, True, MeasureKind.AFFINE, entry(i, j, weight))


def angle(name: str, sine: np.ndarray, cosine: np.ndarray) -> Measure:
    """atan2 of two functionals [rad]."""
    return measure(name, True, MeasureKind.ANGLE, sine, cosine)


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
