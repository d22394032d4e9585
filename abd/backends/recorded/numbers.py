"""Decisions of recorded iterations (`cuda_kernels.step.control`): their arrays, initial values and failures."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.linear.linear import CORRECTION, NOT_POSITIVE
from abd.joints.rows.system import LIMIT_CUTS
from cuda_kernels.shared.step import LOOSEST
from cuda_kernels.step import control

FAILURES = {
    control.NOT_POSITIVE: NOT_POSITIVE,
    control.NOT_FINITE: ("not_finite", "the Newton direction is not finite"),
    control.NOT_FINITE_GRADIENT: ("not_finite", "the gradient is not finite, or conjugate gradients broke down"),
    control.NO_CONVERGENCE: (
        "linear_solver", "conjugate gradients did not reach their tolerance; use solver.linear_solver = 'direct'",
    ),
    control.NO_CURVATURE: ("not_positive_definite", "conjugate gradients found no positive curvature"),
    control.NO_CUT: ("limit_step", f"no step satisfies the joint limits after {LIMIT_CUTS} reductions"),
}  # fmt: skip


def new_control(device, capacity: int, counts: wp.array) -> control.Control:
    """Return the arrays of decisions with a capacity of islands, whose present number is in `counts` (2,)."""
    c = control.Control()
    for name, kind in control.Control.vars.items():
        setattr(c, name, device.zeros(capacity, kind.type.dtype))
    c.counts = counts
    c.at, c.flags = device.zeros(control.NUMBERS, wp.float64), device.zeros(control.FLAGS, wp.int32)
    return c


def numbers(tolerance: float, friction_tolerance: float, h: float, tightest: float) -> np.ndarray:
    """Return `cuda_kernels.step.control.Control.at` at the start of a minimisation.

    tolerance, friction_tolerance: Newton's, without and with friction [m/s]; h: step [s]; tightest: of exact linear solves."""
    out = np.zeros(control.NUMBERS)
    out[control.TOLERANCE], out[control.FRICTION_TOLERANCE], out[control.H] = tolerance, friction_tolerance, h
    out[control.TIGHTEST], out[control.FORCING] = tightest, max(LOOSEST, tightest)
    out[control.CORRECTION] = min(tightest, CORRECTION)
    return out


def flags_of(c: control.Control, *names: str) -> dict[str, wp.array]:
    """Return flags by name, as arrays (1,) for branches of records."""
    return {name: c.flags[getattr(control, name) : getattr(control, name) + 1] for name in names}
