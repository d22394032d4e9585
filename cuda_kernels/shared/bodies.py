"""Kinds of bodies; modes, weights and columns of integration (`abd.potentials.integrators`); free motion."""

from enum import IntEnum


class Kind(IntEnum):
    """Kind of motion of a body."""

    DYNAMIC = 0
    KINEMATIC = 1
    STATIC = 2


class Turning(IntEnum):
    """Rotational freedom of a body."""

    FREE = 0
    AXIS = 1
    HELD = 2


class Mode(IntEnum):
    """Integration mode of a body in a step. Contacts act only in the first."""

    DISSIPATIVE = 0
    FRESH = 1
    SECOND = 2
    SMOOTH = 3


class Motion(IntEnum):
    """Columns of `abd.potentials.integrators.Scheme.motion`; a column for f (`_F`) is followed by that for a."""

    STEP = 0  # h
    SCALE = 1  # s_b
    KICK_F = 2  # impulse of q*
    STIFFNESS = 4  # 1 / (c_b h^2)
    A_NEW = 5  # coefficients of a: of the new force F, of f and a
    A_F = 6
    M_NEW = 8  # coefficients of the momenta: of F, of f and a
    M_F = 9
    LEAD_F = 11  # start of Newton's method: displacement per mass from q*, by f and a
    LEAD_LOAD = 13  # by the external force
    ROOT = 14  # spectral radius of spinning bodies (`abd.potentials.gyration`), -1 without history
    TURN = 15  # rotation [rad] up to which it damps joint forces


COLUMNS = Motion.TURN + 1
"""Number of columns of `abd.potentials.integrators.Scheme.motion`."""

REST_NOW, REST_BEFORE, RATE_NEW, PER_H, RATE_OLD, REST_RATE = range(6)
"""Names of the weights of joint rows (`abd.potentials.integrators`)."""
WEIGHTS = 6
"""Number of these weights."""
PERSISTENT = 2.0
"""Growth of the force on a body per step beyond which it is attributed to an impact [-]."""

SUBSTEP = 0.2
"""Largest rotation [rad] per composition of free motion: the weighted geometric mean of both parts in its error term."""
MOST_SUBSTEPS = 1000
"""Largest number of compositions in a step."""
FLAT = 1e-9
"""Fraction of the largest moment of inertia below which a moment counts as zero, such as that of a thin rod about its axis."""

FURTHEST = 1.5
"""Rotation [rad] beyond which the coefficients of spinning bodies are constant."""
THIN = 0.5
"""Fraction of the next larger moment of inertia below which the least moment belongs to a thin axis."""
