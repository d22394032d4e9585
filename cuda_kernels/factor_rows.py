"""Rows of the Cholesky factor A = U^T U of a sparse symmetric matrix of 12x12 blocks: what is done to one of them.

Rows of U stand in the order of elimination, position j belongs to `Pattern.body[j]`. Row j holds the slots
``starts[j] .. starts[j + 1]``: its diagonal block, with the reciprocals of its pivots on the diagonal and its upper
triangle mirrored below, then the blocks right of it by growing column. Where rows stand in levels, the rows k < j with
a block in column j are the *updates* of row j, ``ups[j] .. ups[j + 1]``, by growing k; otherwise these lists are empty,
and `factor_panels` has its own.
"""

import warp as wp

from cuda_kernels.affine import ONE, ZERO
from cuda_kernels.vector12 import vec12

wp.set_module_options({"enable_backward": False, "max_unroll": 4})


@wp.struct
class Pattern:
    """Where the blocks of U are: N rows, K slots.

    body (N,); starts (N + 1,); row, column (K,) positions; ups (N + 1,), up_row and up_slot (K - N,): row k and the
    slot of U_kj; ranges (t + 1,) of panels.
    """

    body: wp.array(dtype=wp.int32)
    starts: wp.array(dtype=wp.int32)
    row: wp.array(dtype=wp.int32)
    column: wp.array(dtype=wp.int32)
    ups: wp.array(dtype=wp.int32)
    up_row: wp.array(dtype=wp.int32)
    up_slot: wp.array(dtype=wp.int32)
    ranges: wp.array(dtype=wp.int32)


@wp.struct
class Sources:
    """Where A is: diagonal blocks of the bodies, and blocks of three couplings (joints, contacts, friction).

    slot_a, slot_b, slot_c (K,): entry of every slot, 2 k for block k as it is, 2 k + 1 for its transpose, -1 for none.
    """

    diagonal: wp.array2d(dtype=vec12)
    a: wp.array2d(dtype=vec12)
    b: wp.array2d(dtype=vec12)
    c: wp.array2d(dtype=vec12)
    slot_a: wp.array(dtype=wp.int32)
    slot_b: wp.array(dtype=wp.int32)
    slot_c: wp.array(dtype=wp.int32)


@wp.struct
class Factor:
    """Blocks of U, (K, 12) rows and the same memory as (K, 12, 12) numbers; failed (N,) 1 where a pivot is not
    positive, any_failed (1,) whether there is one; done (n,) bodies to pass over."""

    rows: wp.array2d(dtype=vec12)
    entries: wp.array3d(dtype=wp.float64)
    failed: wp.array(dtype=wp.int32)
    any_failed: wp.array(dtype=wp.int32)
    done: wp.array(dtype=wp.int32)


@wp.func
def add_source(f: Factor, slot: wp.int32, blocks: wp.array2d(dtype=vec12), entry: wp.int32):
    """Add a coupling's block to a slot."""
    k = entry // 2
    if entry % 2 == 0:
        for r in range(12):
            f.rows[slot, r] = f.rows[slot, r] + blocks[k, r]
    else:
        for m in range(12):
            v = blocks[k, m]
            for r in range(12):
                f.entries[slot, r, m] = f.entries[slot, r, m] + v[r]


@wp.func
def load_slot(p: Pattern, a: Sources, f: Factor, slot: wp.int32):
    """U_ji = A_ji."""
    j = p.row[slot]
    if p.column[slot] == j:
        for r in range(12):
            f.rows[slot, r] = a.diagonal[p.body[j], r]
        return
    for r in range(12):
        f.rows[slot, r] = vec12()
    if a.slot_a[slot] >= 0:
        add_source(f, slot, a.a, a.slot_a[slot])
    if a.slot_b[slot] >= 0:
        add_source(f, slot, a.b, a.slot_b[slot])
    if a.slot_c[slot] >= 0:
        add_source(f, slot, a.c, a.slot_c[slot])


@wp.func
def subtract_product(f: Factor, left: wp.int32, right: wp.int32, target: wp.int32):
    """U_target -= U_left^T U_right."""
    for i in range(12):
        c = f.rows[target, i]
        for m in range(12):
            c = c - f.entries[left, m, i] * f.rows[right, m]
        f.rows[target, i] = c


@wp.func
def factor_pivot(f: Factor, slot: wp.int32) -> wp.int32:
    """Factor of a diagonal block in place; 1 if a pivot was not positive, which the largest entry then replaces."""
    bad = wp.int32(0)
    largest = ZERO
    for r in range(12):
        largest = wp.max(largest, wp.abs(f.entries[slot, r, r]))
    if not largest > ZERO:
        largest = ONE
    # rows are scaled at the end: square roots would lengthen the chain of operations from one pivot to the next
    inverse = vec12()
    for r in range(12):
        pivot = f.entries[slot, r, r]
        if not pivot > ZERO:
            bad = wp.int32(1)
            pivot = largest
        reciprocal = ONE / pivot
        inverse[r] = reciprocal
        row = f.rows[slot, r]
        for i in range(r + 1, 12):
            f.rows[slot, i] = f.rows[slot, i] - (reciprocal * f.entries[slot, r, i]) * row
    for r in range(12):
        scale = wp.sqrt(inverse[r])
        f.rows[slot, r] = scale * f.rows[slot, r]
        f.entries[slot, r, r] = scale
    for r in range(1, 12):
        for m in range(r):
            f.entries[slot, r, m] = f.entries[slot, m, r]
    return bad


@wp.func
def pivot_row(f: Factor, j: wp.int32, slot: wp.int32):
    """Factor of the diagonal block of row j, and whether it failed."""
    bad = factor_pivot(f, slot)
    f.failed[j] = bad
    if bad != 0:
        f.any_failed[0] = 1


@wp.func
def divide_slot(f: Factor, pivot: wp.int32, slot: wp.int32):
    """U_ji = U_jj^-T A_ji in place."""
    for r in range(12):
        v = f.rows[slot, r]
        for m in range(r):
            v = v - f.entries[pivot, m, r] * f.rows[slot, m]
        f.rows[slot, r] = f.entries[pivot, r, r] * v


@wp.func
def solve_transposed(f: Factor, slot: wp.int32, v: vec12) -> vec12:
    """U_jj^-T v."""
    out = vec12()
    for r in range(12):
        row = f.rows[slot, r]
        out[r] = v[r] * row[r]
        v = v - out[r] * row
    return out


@wp.func
def forward_row(p: Pattern, f: Factor, j: wp.int32, v: vec12, x: wp.array(dtype=vec12)):
    """x of row j = U_jj^-T (v - sum_k U_kj^T x_k)."""
    for e in range(p.ups[j], p.ups[j + 1]):
        other = p.body[p.up_row[e]]
        if f.done[other] == 0:
            y = x[other]
            for m in range(12):
                v = v - y[m] * f.rows[p.up_slot[e], m]
    x[p.body[j]] = solve_transposed(f, p.starts[j], v)


@wp.func
def backward_row(p: Pattern, f: Factor, j: wp.int32, x: wp.array(dtype=vec12)):
    """x of row j = U_jj^-1 (x_j - sum_i U_ji x_i)."""
    v = x[p.body[j]]
    slot = p.starts[j]
    for s in range(slot + 1, p.starts[j + 1]):
        y = x[p.body[p.column[s]]]
        for r in range(12):
            v[r] = v[r] - wp.dot(f.rows[s, r], y)
    out = vec12()
    for q in range(12):
        r = 11 - q
        row = f.rows[slot, r]
        out[r] = v[r] * row[r]
        v = v - out[r] * row
    x[p.body[j]] = out


@wp.func
def finish_row(
    p: Pattern,
    f: Factor,
    j: wp.int32,
    rhs: wp.array(dtype=vec12),
    x: wp.array(dtype=vec12),
    dots: wp.array(dtype=wp.float64),
):
    """Backward part of row j, and its body's rhs . x."""
    backward_row(p, f, j, x)
    b = p.body[j]
    dots[b] = wp.dot(rhs[b], x[b])
