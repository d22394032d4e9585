"""Joint types by name: one class per type; types that only constrain axes are rows of a table (`axis_types`).

A torsional spring is not a type. On the coordinate of a joint it is a setting of that coordinate. Between two bodies
without a joint it is a `bushing` with one stiffness. Gears and racks are couplings of coordinates.
"""

from __future__ import annotations

from abd.joints.joint_type import JointType
from abd.joints.types.axis_types import AXIS_TYPES, Prismatic, Screw
from abd.joints.types.bushing import Bushing
from abd.joints.types.distance import Distance, Rope
from abd.joints.types.ellipsoid import Ellipsoid, Ellipsoid3
from abd.joints.types.general import General
from abd.joints.types.gimbal import Gimbal, SphericalRpy
from abd.joints.types.hinge import Hinge, LegacyRevolute
from abd.joints.types.planar_connector import PlanarConnector, SegmentedPlanarConnector
from abd.joints.types.spherical import Spherical
from abd.joints.types.spring import Damper, Spring
from abd.joints.types.universal import FixedAxis, RollPitch, SkewedUniversal, Universal

TYPES: dict[str, JointType] = {
    "spherical": Spherical(),
    "fixed": AXIS_TYPES["fixed"],
    "hinge": Hinge(),
    "pin": AXIS_TYPES["pin"],
    "slider": AXIS_TYPES["slider"],
    "prismatic": Prismatic(),
    "cylindrical": AXIS_TYPES["cylindrical"],
    "slotted_hinge": AXIS_TYPES["slotted_hinge"],
    "universal": Universal(),
    "skewed_universal": SkewedUniversal(),
    "gimbal": Gimbal(),
    "planar": AXIS_TYPES["planar"],
    "planar_translation": AXIS_TYPES["planar_translation"],
    "ellipsoid": Ellipsoid(),
    "ellipsoid3": Ellipsoid3(),
    "free": AXIS_TYPES["free"],
    "fixed_axis": FixedAxis(),
    "planar_connector": PlanarConnector(),
    "segmented_planar_connector": SegmentedPlanarConnector(),
    "distance": Distance(),
    "rope": Rope(),
    "screw": Screw(),
    "general": General(),
    "bushing": Bushing(),
    "spring": Spring(),
    "damper": Damper(),
    "legacy_revolute": LegacyRevolute(),
    "roll_pitch": RollPitch(),
    "spherical_rpy": SphericalRpy(),
}
"""Joint type by name."""

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
"""Alias of a type -> its name in `TYPES`."""
