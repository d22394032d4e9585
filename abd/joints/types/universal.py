"""Universal joint, also skewed: C turns about an axis of D (roll) and about an axis of its own (pitch).

Parameters: ``axes`` "zy" (default), roll about z and pitch about y', or "xy", roll about x and pitch about y'; ``skew``
[rad] turns the pitch axis towards the roll axis, so that the two are at ``pi/2 - skew``: it is ``a = (0, cos, sin)`` for
"zy", ``(sin, cos, 0)`` for "xy", in C and in the frame that the roll has reached (ArtiSynth's SkewedUniversalJoint).

    rows         one point row; ``(a_C . e_D - sin skew) / cos skew``, e the roll axis
    constraints  x y z and rx ("zy") or rz ("xy")
    coordinates  roll, pitch                                                             T_CD = R(e, roll) R(a, pitch)

Both angles are read from the images of a and e, so that no pitch locks them.
"""

from __future__ import annotations

import numpy as np

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure, MeasureKind, functional, measure
from abd.joints.measures.parameters import wrong
from abd.joints.pieces.axes import angle, displacement
from abd.joints.pieces.blocks import point
from abd.joints.pieces.motions import Motion, X, Z, rotation
from abd.model import Joint
from abd.rotations import least_turn

UID = 0
STEEPEST = 1e-6
"""Least cosine of the skew; at zero the two axes are one."""


def rows(joint: Joint) -> list[Row]:
    """One point row [m]."""
    return [point(joint)]


def measured(joint: Joint) -> list[Measure]:
    """The angle [rad] between the axes beyond ``pi/2 - skew``."""
    return [_between(joint)]


def constraints(joint: Joint) -> list[Measure]:
    """x, y, z [m] in D and the angle between the axes [rad]."""
    return [displacement("x"), displacement("y"), displacement("z"), _between(joint)]


def coordinates(joint: Joint) -> list[Measure]:
    """roll, pitch [rad]."""
    axis, skew, order = _pitch_axis(joint)
    if order == "zy":
        roll = functional(M=np.outer((-1.0, 0.0, 0.0), axis)), functional(M=np.outer((0.0, 1.0, 0.0), axis))
        sine, cosine = _entry(2, 0, -1.0), _entry(2, 2, 1.0, skew)
    else:
        roll = functional(M=np.outer((0.0, 0.0, 1.0), axis)), functional(M=np.outer((0.0, 1.0, 0.0), axis))
        sine, cosine = _entry(0, 2, 1.0), _entry(0, 0, 1.0, skew)
    return [angle("roll", *roll), angle("pitch", sine, cosine)]


def motions(joint: Joint) -> list[Motion]:
    """Roll about z or x, then pitch."""
    axis, _, order = _pitch_axis(joint)
    return [rotation("roll", Z if order == "zy" else X), rotation("pitch", axis)]


def project(joint: Joint, T: np.ndarray) -> np.ndarray:
    """T_GD (4, 4): the anchors coincide, and the least rotation brings the pitch axis to its angle with the roll axis."""
    axis, skew, order = _pitch_axis(joint)
    roll, pitch = Z if order == "zy" else X, T[:3, :3] @ axis
    across = pitch - (pitch @ roll) * roll
    G = np.eye(4)
    G[:3, :3] = least_turn(pitch, np.sin(skew) * roll + np.cos(skew) * across / np.linalg.norm(across)) @ T[:3, :3]
    return G


def _entry(i: int, j: int, weight: float, skew: float | None = None) -> np.ndarray:
    """``weight M_ij``, or with a skew ``(M_ij - sin^2) / cos``, cos times the cosine of the pitch."""
    M = np.zeros((3, 3))
    M[i, j] = weight if skew is None else weight / np.cos(skew)
    return functional(M=M, constant=0.0 if skew is None else -(np.sin(skew) ** 2) / np.cos(skew))


def _between(joint: Joint) -> Measure:
    axis, skew, order = _pitch_axis(joint)
    c, s = np.cos(skew), np.sin(skew)
    # Signs such that a small rotation of C about x ("zy") or z ("xy") counts as it does in other types.
    name, weight, roll_axis = ("rx", 1.0, Z) if order == "zy" else ("rz", -1.0, X)
    value = functional(M=weight / c * np.outer(roll_axis, axis), constant=-weight * s / c)
    return measure(name, True, MeasureKind.AFFINE, value)


def _pitch_axis(joint: Joint) -> tuple[np.ndarray, float, str]:
    """Pitch axis (3,) in C, skew [rad], order of the axes."""
    order, skew = str(joint.parameters.get("axes", "zy")), float(joint.parameters.get("skew", 0.0))
    if order not in ("zy", "xy"):
        raise wrong(joint, "axes", "must be 'zy' or 'xy'")
    c, s = np.cos(skew), np.sin(skew)
    if abs(c) < STEEPEST:
        raise wrong(joint, "skew", "makes the two axes one", "keep it below a right angle")
    return np.array((0.0, c, s) if order == "zy" else (s, c, 0.0)), skew, order
