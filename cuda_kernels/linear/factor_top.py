"""The last levels of rows of the Cholesky factor, and the solves with them, in one launch.

Levels near the root hold few blocks: a launch costs more than what it does. One block of threads works through all of
them instead, with a barrier where the next step reads what this one wrote. On the processor one item does everything,
and a barrier is nothing. Every number is computed by one thread, by the same operations however many there are.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, ZERO
from cuda_kernels.bodies.vector12 import vec12
from cuda_kernels.linear.factor_parts import divide_in_column, gather_row
from cuda_kernels.linear.factor_rows import (
    Factor,
    Pattern,
    Sources,
    finish_row,
    forward_row,
)

wp.set_module_options({"enable_backward": False, "max_unroll": 4})
LOADED_FOR = ("cuda",)


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    __syncthreads();
#endif
""")
def barrier():
    """Wait for all threads of the block; all of them have to call."""
    ...


@wp.func
def positive(pivot: wp.float64) -> wp.float64:
    """The pivot, or one in the place of a pivot that is not positive."""
    if pivot > ZERO:
        return pivot
    return ONE


@wp.func
def eliminate_row(f: Factor, slot: wp.int32, r: wp.int32, i: wp.int32):
    """Step r of the elimination within a diagonal block, for its row i > r."""
    factor = f.entries[slot, r, i] / positive(f.entries[slot, r, r])
    f.rows[slot, i] = f.rows[slot, i] - factor * f.rows[slot, r]


@wp.func
def scale_row(f: Factor, j: wp.int32, slot: wp.int32, r: wp.int32):
    """Divide row r of an eliminated diagonal block by the root of its pivot, whose reciprocal takes its place."""
    pivot = f.entries[slot, r, r]
    usable = positive(pivot)
    if pivot != usable:
        f.failed[j] = 1
        f.any_failed[0] = 1
    scale = wp.sqrt(ONE / usable)
    row = scale * f.rows[slot, r]
    row[r] = scale
    f.rows[slot, r] = row


@wp.func
def factor_level(p: Pattern, a: Sources, f: Factor, begin: wp.int32, end: wp.int32, lane: wp.int32, lanes: wp.int32):
    """Rows begin .. end - 1 of U, by all threads of a block."""
    first = p.starts[begin]
    slots = p.starts[end] - first
    for q in range(lane, 12 * slots, lanes):
        slot = first + q // 12
        j = p.row[slot]
        if f.done[p.body[j]] == 0:
            gather_row(p, a, f, slot, q % 12)
            if slot == p.starts[j] and q % 12 == 0:
                f.failed[j] = 0
    barrier()
    for r in range(11):
        for q in range(lane, 12 * (end - begin), lanes):
            j = begin + q // 12
            if q % 12 > r and f.done[p.body[j]] == 0:
                eliminate_row(f, p.starts[j], r, q % 12)
        barrier()
    for q in range(lane, 12 * (end - begin), lanes):
        j = begin + q // 12
        if f.done[p.body[j]] == 0:
            scale_row(f, j, p.starts[j], q % 12)
    barrier()
    for q in range(lane, 12 * (end - begin), lanes):
        j = begin + q // 12
        if f.done[p.body[j]] == 0:
            for m in range(q % 12):
                f.entries[p.starts[j], q % 12, m] = f.entries[p.starts[j], m, q % 12]
    for q in range(lane, 12 * slots, lanes):
        slot = first + q // 12
        j = p.row[slot]
        if slot > p.starts[j] and f.done[p.body[j]] == 0:
            divide_in_column(f, p.starts[j], slot, q % 12)
    barrier()


@wp.kernel
def work_on_top(
    first: wp.int32,
    lanes: wp.int32,
    levels: wp.array(dtype=wp.int32),
    factoring: wp.int32,
    solving: wp.int32,
    p: Pattern,
    a: Sources,
    f: Factor,
    scale: wp.float64,
    rhs: wp.array(dtype=vec12),
    x: wp.array(dtype=vec12),
    dots: wp.array(dtype=wp.float64),
):
    """Factor the levels that begin with rows `levels` (m + 1,), solve with them, or both, by one block of `lanes`
    threads; the solution goes forward and backward, and what lies below follows."""
    lane = wp.tid() + first
    count = levels.shape[0] - 1
    if factoring != 0:
        for level in range(count):
            factor_level(p, a, f, levels[level], levels[level + 1], lane, lanes)
    if solving != 0:
        for level in range(count):
            for j in range(levels[level] + lane, levels[level + 1], lanes):
                if f.done[p.body[j]] == 0:
                    forward_row(p, f, j, scale * rhs[p.body[j]], x)
            barrier()
        for q in range(count):
            level = count - 1 - q
            for j in range(levels[level] + lane, levels[level + 1], lanes):
                if f.done[p.body[j]] == 0:
                    finish_row(p, f, j, rhs, x, dots)
            barrier()
