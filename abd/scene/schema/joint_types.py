"""Names of joint types in scenes, and names of other programs for keys of joints."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pydantic_core import PydanticCustomError

from abd.joints.joint_type import JointType
from abd.joints.types import ALIASES, TYPES
from abd.scene.schema.findings import enumerated

VALUES = ("q", "t", "rate")
"""Arguments of a force along a coordinate."""
LENGTHS = ("length", "gap", "t", "speed")
"""Arguments of the force of a spring."""


def type_of(name: str) -> str:
    """Return the name of a type from its name or alias."""
    return ALIASES.get(name, name)


def type_named(name: str) -> JointType:
    """Return a type by name or alias."""
    return TYPES[type_of(name)]


def types_with(key: str) -> list[str]:
    """Return the names of the types with a key, in the order of `abd.joints.types.TYPES`."""
    return [name for name in TYPES if key in TYPES[name].keys]


def type_value(value: Any) -> Any:
    """Validate the name of a type: one of `abd.joints.types.TYPES`, or of their `ALIASES`."""
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "should be a text in quotes")
    if value not in TYPES and value not in ALIASES:
        expected = {"expected": enumerated([*TYPES, *ALIASES])}
        raise PydanticCustomError("joint_type", "should be {expected}", expected)
    return value


_log = logging.getLogger(__name__)

OTHER_KEYS: dict[str, str] = {
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
    """Return the table of a joint with keys and values of other programs replaced.

    If both keys are given, the other one remains and is reported as unknown. A colour that begins with -1 (default of Exudyn) is
    omitted. OFF, LINE and ARROW of ArtiSynth and flags of 1 and 0 are converted.
    """
    out = {}
    for key, value in joint.items():
        own = OTHER_KEYS.get(key, key)
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
