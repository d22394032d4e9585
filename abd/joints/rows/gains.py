"""By how much the energy of joint rows grew in a step, where their forces have a potential.

Springs and penalties have one; in `Mode.FRESH` steps the work that their end would do against penalties counts instead
(`abd.potentials.conservation`). What light dampers of theirs take, ``c (dx)^2 / h``, counts as if they held it; exact rows do
no work, nor does what does not act. Drives, other damping, friction, rotors, forces, users' laws, and rows whose target moves
have no potential: theirs is infinite. Limits that push are none of a smooth step's (`abd.potentials.integrators`) and count as 0.
"""

from __future__ import annotations

import numpy as np

from abd.joints.rows import laws, slots
from abd.joints.rows.forces import SPRINGS
from abd.joints.rows.laws import LIMITS, Law
from abd.joints.rows.rows import Rows, residual
from abd.joints.rows.system import JointSystem

FAR = 1e3
"""Residual over the tolerance of an exact row at the beginning of a step from which on it is not held, but moved."""


def linear_gains(rows: Rows, before: np.ndarray, after: np.ndarray, fresh: np.ndarray, ch2: np.ndarray) -> np.ndarray:
    """(l,) [J] in a step of c h^2 (l,) [s^2] between states (n, 12), a `Mode.FRESH` one for rows (l,) bool."""
    old, new = residual(rows, before), residual(rows, after)
    mean = np.where(fresh[:, None], new, 0.5 * (new + old))
    return np.where(rows.exact, 0.0, np.sum(rows.K * (new - old) * mean, axis=1) / ch2)


def row_gains(
    system: JointSystem, law: np.ndarray, p: np.ndarray, before: np.ndarray, after: np.ndarray, fresh: np.ndarray,
    light: np.ndarray, time: np.ndarray, ch2: np.ndarray, h: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """(R,) [J], infinite where there is no potential.

    Args:
        law: (R,), p: (R, 8) of the step of h (R,) [s], c h^2 (R,) [s^2], to `time` (R,) [s]; before, after: (R,) values of the
            rows; fresh: (R,) bool, in a `Mode.FRESH` step; light: (R,) bool, `abd.joints.rows.springs`.
    """
    a = system.row_laws
    moved = (a.rate != 0.0) & (a.damping > 0.0)
    for functions, constant in ((a.target_of, a.target), (a.rate_of, a.rate)):
        for row, function in functions.items():
            moved[row] |= function(float(time[row])) != constant[row]
    smooth = np.isin(law, (Law.QUADRATIC, Law.SINE))
    held = a.exact & smooth & ~a.follows & (np.abs(before - p[:, slots.TARGET]) <= FAR * a.tolerance)
    spring = np.isin(a.role, SPRINGS) & smooth & ~a.exact & ~a.follows & ((a.damping == 0.0) | light)
    way, mean = after - before, 0.5 * (after + before) - a.target
    grown_of = way * (a.mass_stiffness / ch2 * np.where(fresh, after - a.target, mean) + a.stiffness * mean)
    nothing = (law == Law.OFF) | np.isin(law, LIMITS) | (p[:, slots.STRENGTH] == 0.0) & (law != Law.GIVEN)
    energy, slope, _ = laws.evaluate(law, p, after)
    grown = np.where(fresh, slope * way, energy - laws.evaluate(law, p, before)[0]) / ch2
    grown = np.where(fresh, grown - 0.5 * a.stiffness * way**2, grown)
    grown = np.where(spring & (law == Law.QUADRATIC), grown_of + a.damping * way**2 / h, grown)
    return np.where(nothing | held & ~moved, 0.0, np.where(spring & ~moved, grown, np.inf))
