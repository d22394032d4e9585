"""Damper: forces against the velocity of C in D, without any stiffness (ArtiSynth's frame, rotary and inertial damping).

    combined     power ``linear_damping |v|^2 + rotary_damping |w|^2``, and ``sum_k direction_damping_k |d e_k/dt|^2``

v is the velocity of the point of C in D [m/s], w the angular velocity [rad/s], e_k the axes of C seen from D. The axes of C
bring w along, ``sum_k |d e_k/dt|^2 = 2 |w|^2``, which is how both dampings act: on entries of ``M = D^T C``. Parameters, all
optional: ``linear_damping`` [N s/m], ``rotary_damping`` [N m s], ``direction_damping`` (3,) [kg m^2/s].
"""

from __future__ import annotations

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure
from abd.joints.pieces.axes import displacement
from abd.joints.pieces.combined import Combined
from abd.joints.pieces.motions import Motion
from abd.joints.pieces.turning import entries
from abd.model import Joint

UID = 0


def rows(joint: Joint) -> list[Row]:
    """None."""
    return []


def measured(joint: Joint) -> list[Measure]:
    """None."""
    return []


def combined(joint: Joint) -> list[Combined]:
    """Dampers along x, y, z, and of the nine entries of M."""
    linear, rotary = (float(joint.parameters.get(f"{key}_damping", 0.0)) for key in ("linear", "rotary"))
    each = [0.5 * rotary + float(one) for one in joint.parameters.get("direction_damping", (0.0, 0.0, 0.0))]
    found = [Combined(name, False, (displacement(name),), (1.0,), 0.0, linear) for name in "xyz" if linear > 0.0]
    return found + entries(tuple(each))


def constraints(joint: Joint) -> list[Measure]:
    """None."""
    return []


def coordinates(joint: Joint) -> list[Measure]:
    """None."""
    return []


def motions(joint: Joint) -> list[Motion] | None:
    """None: no coordinates describe the motion."""
    return None
