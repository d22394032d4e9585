"""Joints: a file per type with the functions of `JointType`, but for those that only hold axes (`axis_types`) and
ArtiSynth's former ones (`legacy_types`), which are rows of tables; all are listed in `TYPES`.

A torsional spring is no type: on the coordinate of a joint it is a setting of that coordinate, between bodies that are
not joined it is a `bushing` with one stiffness. Gears and racks are couplings of coordinates.
"""

from __future__ import annotations

from abd.joints.joint_type import JointType
from abd.joints.types import (
    bushing,
    damper,
    distance,
    ellipsoid,
    ellipsoid3,
    fixed_axis,
    general,
    gimbal,
    hinge,
    planar_connector,
    prismatic,
    rope,
    screw,
    segmented_planar_connector,
    spherical,
    spring,
    universal,
)
from abd.joints.types.axis_types import AXIS_TYPES
from abd.joints.types.legacy_types import LEGACY_TYPES

TYPES: dict[str, JointType] = {
    "spherical": spherical,
    "fixed": AXIS_TYPES["fixed"],
    "hinge": hinge,
    "pin": AXIS_TYPES["pin"],
    "slider": AXIS_TYPES["slider"],
    "prismatic": prismatic,
    "cylindrical": AXIS_TYPES["cylindrical"],
    "slotted_hinge": AXIS_TYPES["slotted_hinge"],
    "universal": universal,
    "skewed_universal": universal,
    "gimbal": gimbal,
    "planar": AXIS_TYPES["planar"],
    "planar_translation": AXIS_TYPES["planar_translation"],
    "ellipsoid": ellipsoid,
    "ellipsoid3": ellipsoid3,
    "free": AXIS_TYPES["free"],
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
    "legacy_revolute": LEGACY_TYPES["legacy_revolute"],
    "roll_pitch": LEGACY_TYPES["roll_pitch"],
    "spherical_rpy": LEGACY_TYPES["spherical_rpy"],
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
