"""Fixed joint, solid (uid 25): anchors and triads coincide.

``F = c_j - c_i ; t_j - t_i ; n_j - n_i ; b_j - b_i``, ``E = K/2 sum |F_k|^2``; the direction rows carry an implied
length of 1 m, as the uid defines them.

    constraints  x y z rx ry rz
    coordinates  none                                                                    T_CD = 1
"""

from __future__ import annotations

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure
from abd.joints.pieces.axes import displacement, small_rotation
from abd.joints.pieces.blocks import directions, point
from abd.joints.pieces.motions import Motion
from abd.model import Joint

UID = 25


def rows(joint: Joint) -> list[Row]:
    """One point row [m] and the three direction rows t, n, b [-]."""
    return [point(joint), *directions(joint, "zxy")]


def measured(joint: Joint) -> list[Measure]:
    """No row beside the linear ones."""
    return []


def constraints(joint: Joint) -> list[Measure]:
    """x, y, z [m], rx, ry, rz [rad] in the axes of D."""
    return [displacement(name) for name in "xyz"] + [small_rotation(name) for name in ("rx", "ry", "rz")]


def coordinates(joint: Joint) -> list[Measure]:
    """None."""
    return []


def motions(joint: Joint) -> list[Motion]:
    """No motion."""
    return []
