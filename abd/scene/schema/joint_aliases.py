"""Keys of joints as other programs name them, where they mean the same; each is read as ours, and the log says so."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

_log = logging.getLogger(__name__)

ALIASES: dict[str, str] = {
    # Exudyn: ObjectJointSpherical, ObjectJointGeneric and their visualisation
    "constrainedAxes": "constrained",
    "activeConnector": "active",
    "jointRadius": "joint_radius",
    "axisRadius": "shaft_radius",
    # ArtiSynth: joints and their render properties
    "shaftLength": "shaft_length",
    "shaftRadius": "shaft_radius",
    "axisLength": "axis_length",
    "drawFrameC": "draw_frame_c",
    "drawFrameD": "draw_frame_d",
    "planeSize": "plane_size",
    "slotWidth": "slot_width",
    "slotDepth": "slot_depth",
    "slotRange": "slot_range",
    "drawEllipsoid": "draw_ellipsoid",
    "faceColor": "color",
    "maxTilt": "max_tilt_deg",
    "maxRotation": "max_rotation_deg",
    "linearCompliance": "linear_compliance",
    "rotaryCompliance": "rotary_compliance",
    "enabled": "active",
    "bodyA": "child",
    "bodyB": "parent",
    # libuipc: AffineBodySphericalJoint
    "l_position": "parent_anchor",
    "r_position": "child_anchor",
    # RigidBodyDynamics.jl
    "predecessor": "parent",
    "successor": "child",
}
"""Key of another program -> ours. ArtiSynth has angles of named properties in degrees."""
DRAWN = ("OFF", "LINE", "ARROW")


def with_own_keys(joint: Mapping[str, Any]) -> dict[str, Any]:
    """The table of a joint with our keys and values in the place of others'.

    Where both are given, the other one stays, and is told as an unknown key. A colour of -1, or whose first number is, Exudyn's
    default, is left out; ArtiSynth's OFF, LINE and ARROW, and flags of 1 and 0, are ours.
    """
    out = {}
    for key, value in joint.items():
        own = ALIASES.get(key, key)
        if own != key and (own in joint or own in out):
            own = key
        elif own != key:
            _log.info("joint '%s': %s is read as %s", joint.get("name", ""), key, own)
        out[own] = value
    for key in ("draw_frame_c", "draw_frame_d"):
        if out.get(key) in DRAWN:
            out[key] = out[key].lower()
    for key in ("active", "show", "draw_ellipsoid"):
        if type(out.get(key)) is int and out[key] in (0, 1):
            out[key] = bool(out[key])
    color = out.get("color")
    first = color[0] if isinstance(color, (list, tuple)) and len(color) in (3, 4) else color
    if isinstance(first, (int, float)) and first == -1:
        del out["color"]
    return out
