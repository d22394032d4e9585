"""Hinge whose angle counts clockwise about z_D: ArtiSynth's former RevoluteJoint.

coordinates  theta                                                                   T_CD = Rz(-theta)
"""

from __future__ import annotations

from dataclasses import replace

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure
from abd.joints.pieces.axes import turn
from abd.joints.pieces.motions import Motion, Z, rotation
from abd.joints.types import hinge
from abd.model import Joint

UID = hinge.UID


def rows(joint: Joint) -> list[Row]:
    """Those of a hinge [m]."""
    return hinge.rows(joint)


def measured(joint: Joint) -> list[Measure]:
    """No row in addition to the linear ones."""
    return []


def constraints(joint: Joint) -> list[Measure]:
    """Those of a hinge [m, rad]."""
    return hinge.constraints(joint)


def coordinates(joint: Joint) -> list[Measure]:
    """theta [rad]."""
    return [replace(turn("theta"), scale=-1.0)]


def motions(joint: Joint) -> list[Motion]:
    """Rz(-theta)."""
    return [rotation("theta", -Z)]
