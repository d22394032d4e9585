"""Properties of joint types in scenes: required and optional keys; names are those of `abd.joints`.

A type that is not in `TRAITS` needs an anchor, may have an axis, and has no parameters.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticCustomError

from abd.joints.types import ALIASES, TYPES
from abd.scene.schema.findings import enumerated


@dataclass(frozen=True)
class Traits:
    """Requirements of a joint type in a scene.

    Attributes:
        axis: "needed", "optional", or "none": its orientation has no effect.
        points: "together": one world anchor may define both points; "apart": each body has its own point.
        needs: required parameters; instead: parameters that replace the required ones; takes: optional parameters.
    """

    axis: str = "optional"
    points: str = "together"
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """All parameters of the type, without their keys in degrees."""
        return (*self.needs, *self.takes, *self.instead)


ALONG = Traits(axis="needed")
LAWS = ("force_formula", "force_function")
"""Keys of force functions: of `VALUES` of a coordinate, or, for springs, of `LENGTHS`."""
VALUES = ("q", "t", "rate")
"""Arguments of a force along a coordinate."""
LENGTHS = ("length", "gap", "t", "speed")
"""Arguments of the force of a spring."""
TRAITS = {
    "hinge": ALONG,
    "slider": ALONG,
    "prismatic": ALONG,
    "cylindrical": ALONG,
    "slotted_hinge": ALONG,
    "planar": ALONG,
    "planar_translation": ALONG,
    "legacy_revolute": ALONG,
    "screw": Traits(axis="needed", needs=("lead",)),
    "universal": Traits(takes=("axes", "skew")),
    "skewed_universal": Traits(needs=("skew",), takes=("axes",)),
    "gimbal": Traits(takes=("axes",)),
    "spherical": Traits(
        takes=(
            *("max_tilt", "max_rotation", "limit_compliance", "limit_damping", "constrained", "frame"),
            *("rotary_stiffness", "rotary_damping", "rotary_friction", "rotary_armature"),
        )
    ),
    "ellipsoid": Traits(needs=("radii",), takes=("alpha", "open_sim")),
    "ellipsoid3": Traits(needs=("radii",), takes=("open_sim",)),
    "planar_connector": Traits(axis="needed", takes=("unilateral",)),
    "segmented_planar_connector": Traits(axis="needed", needs=("segments",), takes=("unilateral",)),
    "distance": Traits(axis="none", points="apart", needs=("distance",)),
    "rope": Traits(axis="none", points="apart", needs=("distance",)),
    "spring": Traits(axis="none", points="apart", needs=("stiffness",), instead=LAWS, takes=("damping", "rest_length")),
    "general": Traits(needs=("constrained",), takes=("frame",)),
    "bushing": Traits(needs=("stiffness",), takes=("damping", "rest")),
    "fixed": Traits(axis="none"),
    "pin": Traits(axis="none"),
    "damper": Traits(takes=("linear_damping", "rotary_damping")),
}


EXAMPLES = {
    "skew": 0.3,
    "radii": (1.0, 2.0, 3.0),
    "segments": ((-1.0, 0.0), (1.0, 0.0)),
    "distance": 2.5,
    "lead": 0.01,
    "constrained": (),
    "stiffness": 10.0,
}
"""Needed parameters with values for which the documentation lists rows and coordinates."""


def type_of(name: str) -> str:
    """Return the name of a type from its name or alias."""
    return ALIASES.get(name, name)


def traits(name: str) -> Traits:
    """Return the requirements of a type by name or alias; an alias may have different ones."""
    return TRAITS.get(name, TRAITS.get(type_of(name), Traits()))


def types_with(parameter: str) -> list[str]:
    """Return the names of the types with a parameter, in the order of `abd.joints.types.TYPES`."""
    return [name for name in TYPES if parameter in traits(name).parameters]


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
