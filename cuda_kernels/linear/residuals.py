"""Numbers of conjugate gradients per island, and their stopping tests (`abd.backends.linear.conjugate_gradients`)."""

import warp as wp

from cuda_kernels.bodies.affine import ZERO
from cuda_kernels.options import OPTIONS
from cuda_kernels.parallel.sums import SUM, Chunks, over_chunk, over_island
from cuda_kernels.step.control import (
    LINEAR,
    NO_CONVERGENCE,
    NO_CURVATURE,
    NOT_FINITE_GRADIENT,
    RUNNING,
    Control,
    fail,
)

wp.set_module_options(OPTIONS)


@wp.struct
class Islands:
    """Conjugate gradients of every island: whether they run, and their iterations; r . z at the start, and r . z and p . q of
    the last iteration; a and b of `krylov`, a = 0 where they do not run."""

    running: wp.array(dtype=wp.int32)
    iterations: wp.array(dtype=wp.int32)
    start: wp.array(dtype=wp.float64)
    rho: wp.array(dtype=wp.float64)
    curvature: wp.array(dtype=wp.float64)
    a: wp.array(dtype=wp.float64)
    b: wp.array(dtype=wp.float64)


@wp.kernel
def run_islands(first: wp.int32, c: Control, k: Islands, is_new: wp.int32):
    """Start a solve (`is_new` = 1), or continue the last one, in the islands that have not converged; count them in `RUNNING`."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    if is_new != 0:
        k.iterations[w] = 0
    k.a[w] = ZERO
    k.running[w] = 0
    if c.converged[w] == 0:
        k.running[w] = 1
        wp.atomic_add(c.flags, RUNNING, 1)


@wp.kernel
def judge_residuals(
    first: wp.int32,
    workers: wp.int32,
    lanes: wp.int32,
    chunks: Chunks,
    products: wp.array(dtype=wp.vec2d),
    results: wp.array(dtype=wp.vec2d),
    c: Control,
    k: Islands,
    tolerance: wp.int32,
    most: wp.int32,
    is_counted: wp.int32,
):
    """Sum r . z and z . H z over the bodies of every island; compute its a and b, or end its iterations.

    workers, lanes, results: see `sums.island_reduce`; tolerance: index of the control numbers; most: largest number of
    iterations; is_counted: 1 to report them.
    """
    t = wp.tid() + first
    lane = t % lanes
    chunk = t / lanes
    while chunk < chunks.counts[1]:
        w = chunks.island[chunks.order[chunks.starts[chunk]]]
        part = over_chunk(chunks, chunk, products, SUM, lane, lanes)
        ends, v = over_island(chunks, chunk, w, part, results, SUM, lane, lanes)
        if ends and lane == 0 and k.running[w] != 0:
            rho = v[0]
            if k.iterations[w] == 0:
                k.start[w] = rho
            b = ZERO
            curvature = v[1]
            if k.iterations[w] > 0:
                b = rho / k.rho[w]
                curvature = curvature - b * b * k.curvature[w]
            a = ZERO
            if not wp.isfinite(rho):
                fail(c, NOT_FINITE_GRADIENT)
            elif rho > c.at[tolerance] * c.at[tolerance] * k.start[w]:
                if not (curvature > ZERO):
                    fail(c, NO_CURVATURE)
                elif k.iterations[w] >= most:
                    fail(c, NO_CONVERGENCE)
                else:
                    a = rho / curvature
            k.a[w] = a
            if a != ZERO:
                k.iterations[w] = k.iterations[w] + 1
                k.rho[w] = rho
                k.curvature[w] = curvature
                k.b[w] = b
            else:
                k.running[w] = 0
                wp.atomic_sub(c.flags, RUNNING, 1)
                if is_counted != 0:
                    wp.atomic_max(c.flags, LINEAR, k.iterations[w])
        chunk = chunk + workers
