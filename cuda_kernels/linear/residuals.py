"""When conjugate gradients stop, island by island (`abd.backends.linear.conjugate_gradients`)."""

import warp as wp

from cuda_kernels.bodies.affine import ZERO
from cuda_kernels.options import OPTIONS
from cuda_kernels.step.control import (
    LINEAR,
    NO_CONVERGENCE,
    NO_CURVATURE,
    NOT_FINITE_GRADIENT,
    PASSED,
    RUNNING,
    Control,
    fail,
)

wp.set_module_options(OPTIONS)


@wp.kernel
def begin_residuals(
    first: wp.int32,
    c: Control,
    start: wp.array(dtype=wp.float64),
    goal: wp.array(dtype=wp.float64),
    tolerance: wp.int32,
):
    """Goals of conjugate gradients that begin, r . M^-1 r of every island; `tolerance` is one of the numbers."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    goal[w] = c.at[tolerance] * c.at[tolerance] * start[w]
    if c.converged[w] == 0:
        if not wp.isfinite(start[w]):
            fail(c, NOT_FINITE_GRADIENT)
        elif start[w] > goal[w]:
            c.flags[RUNNING] = 1


@wp.kernel
def resume_residuals(
    first: wp.int32,
    c: Control,
    start: wp.array(dtype=wp.float64),
    left: wp.array(dtype=wp.float64),
    goal: wp.array(dtype=wp.float64),
    tolerance: wp.int32,
):
    """Further goals of conjugate gradients that go on."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    goal[w] = c.at[tolerance] * c.at[tolerance] * start[w]
    if c.converged[w] == 0 and left[w] > goal[w]:
        c.flags[RUNNING] = 1


@wp.kernel
def count_product(first: wp.int32, c: Control, counts: wp.int32):
    """An iteration of conjugate gradients begins, which counts as one of the Newton iteration or not; one item."""
    c.flags[RUNNING] = 0
    c.flags[PASSED] = c.flags[PASSED] + 1
    c.flags[LINEAR] = c.flags[LINEAR] + counts


@wp.kernel
def judge_residuals(
    first: wp.int32,
    c: Control,
    left: wp.array(dtype=wp.float64),
    fresh: wp.array(dtype=wp.float64),
    curvature: wp.array(dtype=wp.float64),
    goal: wp.array(dtype=wp.float64),
    doubt_every: wp.int32,
    most: wp.int32,
):
    """Whether an island's conjugate gradients go on; left = fresh."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    left[w] = fresh[w]
    if c.converged[w] != 0 or fresh[w] <= goal[w]:
        return
    if not wp.isfinite(fresh[w]):
        fail(c, NOT_FINITE_GRADIENT)
    elif c.flags[PASSED] % doubt_every == 0 and not (curvature[w] > ZERO):
        fail(c, NO_CURVATURE)
    elif c.flags[PASSED] >= most:
        fail(c, NO_CONVERGENCE)
    else:
        c.flags[RUNNING] = 1
