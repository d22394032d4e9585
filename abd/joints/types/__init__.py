"""Joints: one file per type with the functions of `JointType`, listed in `TYPES`.

A torsional spring is no type: on the coordinate of a joint it is a setting of that coordinate, between bodies that are
not joined it is a `bushing` with one stiffness. Gears and racks are couplings of coordinates.
"""

from __future__ import annotations

from abd.joints.joint_type import JointType
from abd.joints.types import (
    bushing,
    cylindrical,
    damper,
    distance,
    ellipsoid,
    ellipsoid3,
    fixed,
    fixed_axis,
    free,
    general,
    gimbal,
    hinge,
    legacy_revolute,
    pin,
    planar,
    planar_connector,
    planar_translation,
    prismatic,
    roll_pitch,
    rope,
    screw,
    segmented_planar_connector,
    slider,
    slotted_hinge,
    spherical,
    spherical_rpy,
    spring,
    universal,
)

TYPES: dict[str, JointType] = {
    "spherical": spherical,
    "fixed": fixed,
    "hinge": hinge,
    "pin": pin,
    "slider": slider,
    "prismatic": prismatic,
    "cylindrical": cylindrical,
    "slotted_hinge": slotted_hinge,
    "universal": universal,
    "skewed_universal": universal,
    "gimbal": gimbal,
    "planar": planar,
    "planar_translation": planar_translation,
    "ellipsoid": ellipsoid,
    "ellipsoid3": ellipsoid3,
    "free": free,
    "fixed_axis": fixed_axis,
    "planar_connector": planar_connector,
    "segmented_planar_connector": segmented_planar_connector,
    "distance": distance,
    "rope": rope,
    "screw": screw,
    "general": general,
    "bushing": bushing,
    "spring": spring,
    "damper": damper,
    "legacy_revolute": legacy_revolute,
    "roll_pitch": roll_pitch,
    "spherical_rpy": spherical_rpy,
}
"""Joint type -> module; a new joint is one file and one line here."""

ALIASES: dict[str, str] = {
    "ball": "spherical",
    "solid": "fixed",
    "weld": "fixed",
    "revolute": "hinge",
    "floating": "free",
    "rod": "distance",
    "generic": "general",
    "six_axis": "general",
}
"""Other name of a type -> its own."""
