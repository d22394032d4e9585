"""Kinds of measures, laws of joint rows, and their constants; the slots of laws are in `cuda_kernels.shared.slots`."""

from enum import IntEnum


class MeasureKind(IntEnum):
    """Kinds of functions of two frames (`abd.joints.measures.measures`)."""

    AFFINE = 0
    ANGLE = 1
    ELEVATION = 2
    NORM = 3
    LENGTH = 4
    SURFACE_DOT = 5
    SURFACE_ROLL = 6
    SURFACE_TILT = 7
    ROTATION = 8
    CUSTOM = 9
    CUSTOM_ANGLE = 10


TURNING = MeasureKind.ANGLE, MeasureKind.SURFACE_ROLL, MeasureKind.SURFACE_TILT, MeasureKind.CUSTOM_ANGLE
"""Kinds whose values count turns."""
SPECIAL = MeasureKind.SURFACE_DOT, MeasureKind.SURFACE_ROLL, MeasureKind.SURFACE_TILT, MeasureKind.ROTATION
"""Kinds that are no function of three functionals (`cuda_kernels.joints.special_measures`)."""


class Law(IntEnum):
    """Laws of rows (`abd.joints.rows.laws`)."""

    OFF = 0
    QUADRATIC = 1
    SATURATED = 2
    BARRIER = 3
    ONE_SIDED = 4
    CUBIC = 5
    FRICTION = 6
    LINEAR = 7
    SINE = 8
    GIVEN = 9


TINY_TANGENT = 1e-3
"""Squared tangent below which a series replaces angle / sine."""
SHIFT = 1e-12
"""Offset of the axial vector of a rotation, which defines an axis for the identity [-]."""
FORBIDDEN = 1e60
"""Energy of a barrier with a negative gap: finite, and larger than any other energy."""
NEAR = 1e-6
"""Displacement over eps below which the secant of friction is the tangent."""
REACH = 2.0
"""Largest change of an angle per step [rad] that a drive without a gain requests; targets many turns away take several steps."""
SMALLEST_WIDTH = 1e-3
"""Smallest width of a barrier after an impact, relative to the distance of its row."""
