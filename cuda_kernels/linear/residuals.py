"""Stopping tests of conjugate gradients per island (`abd.backends.linear.conjugate_gradients`)."""

import warp as wp

from cuda_kernels.bodies.affine import ZERO
from cuda_kernels.options import OPTIONS
from cuda_kernels.step.control import (
    LINEAR,
    NO_CONVERGENCE,
    NO_CURVATURE,
    NOT_FINITE_GRADIENT,
    RUNNING,
    SOLVE_ITERATIONS,
    Control,
    fail,
)

wp.set_module_options(OPTIONS)


@wp.kernel
def begin_residuals(
    first: wp.int32,
    c: Control,
    start: wp.array(dtype=wp.float64),
    target: wp.array(dtype=wp.float64),
    tolerance: wp.int32,
):
    """Set the targets of a solve, r . M^-1 r of every island; `tolerance` is an index of the control numbers."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    target[w] = c.at[tolerance] * c.at[tolerance] * start[w]
    if c.converged[w] == 0:
        if not wp.isfinite(start[w]):
            fail(c, NOT_FINITE_GRADIENT)
        elif start[w] > target[w]:
            c.flags[RUNNING] = 1


@wp.kernel
def resume_residuals(
    first: wp.int32,
    c: Control,
    start: wp.array(dtype=wp.float64),
    previous: wp.array(dtype=wp.float64),
    target: wp.array(dtype=wp.float64),
    tolerance: wp.int32,
):
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    target[w] = c.at[tolerance] * c.at[tolerance] * start[w]
    if c.converged[w] == 0 and previous[w] > target[w]:
        c.flags[RUNNING] = 1


@wp.kernel
def count_product(first: wp.int32, c: Control, counts: wp.int32):
    """Start an iteration of conjugate gradients; `counts`: 1 to count it in the Newton iteration; one item."""
    c.flags[RUNNING] = 0
    c.flags[SOLVE_ITERATIONS] = c.flags[SOLVE_ITERATIONS] + 1
    c.flags[LINEAR] = c.flags[LINEAR] + counts


@wp.kernel
def judge_residuals(
    first: wp.int32,
    c: Control,
    previous: wp.array(dtype=wp.float64),
    current: wp.array(dtype=wp.float64),
    curvature: wp.array(dtype=wp.float64),
    target: wp.array(dtype=wp.float64),
    most: wp.int32,
):
    """Decide whether an island's conjugate gradients continue; set left = fresh."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    previous[w] = current[w]
    if c.converged[w] != 0 or current[w] <= target[w]:
        return
    if not wp.isfinite(current[w]):
        fail(c, NOT_FINITE_GRADIENT)
    elif not (curvature[w] > ZERO):
        fail(c, NO_CURVATURE)
    elif c.flags[SOLVE_ITERATIONS] >= most:
        fail(c, NO_CONVERGENCE)
    else:
        c.flags[RUNNING] = 1
