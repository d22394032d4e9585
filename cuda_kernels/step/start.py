"""Decisions at the start of a step (`abd.backends.recorded.start`)."""

import warp as wp

from cuda_kernels.bodies.affine import ONE, ZERO
from cuda_kernels.options import OPTIONS
from cuda_kernels.shared import step as shared
from cuda_kernels.step.control import PENDING, Control

wp.set_module_options(OPTIONS)

ROUNDING = wp.constant(wp.float64(shared.ROUNDING))


@wp.kernel
def judge_falls(first: wp.int32, c: Control):
    """Set `small` if an island's energy at the trial is no higher than at q_n; set `PENDING` if any is higher."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    decreases = c.change[w] <= ROUNDING * c.size[w]
    c.small[w] = wp.where(decreases, ONE, ZERO)
    if not decreases:
        c.flags[PENDING] = 1


@wp.kernel
def hold_rising(first: wp.int32, c: Control):
    """Keep islands at q_n if their energy rises."""
    w = wp.tid() + first
    if w < c.counts[0] and c.small[w] == ZERO:
        c.alpha[w] = ZERO
