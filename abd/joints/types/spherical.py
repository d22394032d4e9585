"""Spherical joint."""

from __future__ import annotations

import numpy as np

from abd.joint_model import Joint
from abd.joints.joint_type import BALL
from abd.joints.measures.combined import ROTARY_KEYS, Combined, rotary_laws
from abd.joints.measures.measures import Measure, MeasureKind, entry, measure
from abd.joints.types.general import HeldTranslations


class Spherical(HeldTranslations):
    """Spherical joint, ball (uid 26): the anchors coincide. ``F = c_j - c_i``, ``E = K/2 |F|^2``.

    A load f displaces them by ``c h^2 f / K``.

        constraints  x y z
        coordinates  none; R_CD is free

    Parameters, all optional:

        max_tilt            largest angle between z_C and z_D [rad]
        max_rotation        (3,) [rad]; bounds a rotation theta about u by ``theta <= |max_rotation o u|``, o elementwise
        constrained         which of x, y, z are constrained (Exudyn's constrainedAxes)
        frame               axes of `constrained`: "world" (default) or "parent"
        limit_compliance, limit_damping  of both limits [rad/(N m), N m s/rad]; the limits are barriers by default
        rotary_stiffness, rotary_damping, rotary_friction, rotary_armature  (`abd.joints.measures.combined`)
    """

    SYMBOL = MARKER = "ball"
    UID, FORMS, FRAME = 26, BALL, "world"
    OPTIONAL = ("max_tilt", "max_rotation", "limit_compliance", "limit_damping", "constrained", "frame", *ROTARY_KEYS)

    def measured(self, joint: Joint) -> list[Measure]:
        """Displacements held in axes of D, and the gaps ``max_tilt - tilt`` and ``|max_rotation o u| - theta``."""
        found = super().measured(joint)
        if "max_tilt" in joint.parameters:
            # The elevation of z_C above the x-y plane of D is a right angle less the tilt.
            offset = float(joint.parameters["max_tilt"]) - 0.5 * np.pi
            parts = (entry(2, 2), entry(0, 2), entry(1, 2))
            found.append(measure("tilt", True, MeasureKind.ELEVATION, *parts, offset=offset, unilateral=True))
        if "max_rotation" in joint.parameters:
            largest = np.asarray(joint.parameters["max_rotation"], dtype=float)
            found.append(measure("rotation", True, MeasureKind.ROTATION, largest, unilateral=True))
        return found

    def combined(self, joint: Joint) -> list[Combined]:
        """Laws of the rotation (`abd.joints.measures.combined`)."""
        return rotary_laws(joint)
