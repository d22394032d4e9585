"""The last levels of rows of the Cholesky factor, and the solves with them, in one launch.

Levels near the root hold few blocks: a launch costs more than what it does. One block of threads works through all of
them instead, with a barrier where the next step reads what this one wrote. On the processor one item does everything,
and a barrier is nothing. Every number is computed by one thread, by the same operations however many there are.
"""

import warp as wp

from cuda_kernels.affine import ONE, ZERO
from cuda_kernels.factor_rows import Factor, Pattern, Sources, finish_row, forward_row
from cuda_kernels.vector12 import vec12

wp.set_module_options({"enable_backward": False, "max_unroll": 4})


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    __syncthreads();
#endif
""")
def barrier():
    """Wait for all threads of the block; all of them have to call."""
    ...


@wp.func
def with_source(row: vec12, blocks: wp.array2d(dtype=vec12), entry: wp.int32, r: wp.int32) -> vec12:
    """Add row r of a coupling's block, if there is one."""
    if entry >= 0:
        k = entry // 2
        if entry % 2 == 0:
            row = row + blocks[k, r]
        else:
            for m in range(12):
                v = blocks[k, m]
                row[m] = row[m] + v[r]
    return row


@wp.func
def gather_row(p: Pattern, a: Sources, f: Factor, slot: wp.int32, r: wp.int32):
    """Row r of A_ji - sum_k U_kj^T U_ki."""
    j = p.row[slot]
    i = p.column[slot]
    v = vec12()
    if i == j:
        v = a.diagonal[p.body[j], r]
    else:
        v = with_source(v, a.a, a.slot_a[slot], r)
        v = with_source(v, a.b, a.slot_b[slot], r)
        v = with_source(v, a.c, a.slot_c[slot], r)
    e = p.ups[j]
    g = p.ups[i]
    while e < p.ups[j + 1] and g < p.ups[i + 1]:
        k = p.up_row[e]
        other = p.up_row[g]
        if k == other:
            if f.done[p.body[k]] == 0:
                left = p.up_slot[e]
                right = p.up_slot[g]
                for m in range(12):
                    v = v - f.entries[left, m, r] * f.rows[right, m]
            e = e + 1
            g = g + 1
        elif k < other:
            e = e + 1
        else:
            g = g + 1
    f.rows[slot, r] = v


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
def divide_in_column(f: Factor, pivot: wp.int32, slot: wp.int32, column: wp.int32):
    """One column of U_jj^-T A_ji in place."""
    for r in range(12):
        v = f.entries[slot, r, column]
        for m in range(r):
            v = v - f.entries[pivot, m, r] * f.entries[slot, m, column]
        f.entries[slot, r, column] = f.entries[pivot, r, r] * v


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
