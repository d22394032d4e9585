"""Rows of the Cholesky factor A = U^T U of a sparse symmetric matrix of 12x12 blocks: storage and operations on one row.

Rows of U are in the order of elimination; position j belongs to `Pattern.body[j]`. Row j has the slots
``starts[j] .. starts[j + 1]``: its diagonal block, with the reciprocals of its pivots on the diagonal and its upper triangle
mirrored below, then the blocks right of it by ascending column. For rows in levels, the rows k < j with a block in column j are
the *updates* of row j, ``ups[j] .. ups[j + 1]``, by ascending k; otherwise they are empty, and `factor_panels` has its own.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, ZERO, vec12
from cuda_kernels.linear.couplings import BLOCKS, UNBOUNDED
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)


@wp.struct
class Pattern:
    """Positions of the blocks of U: N rows, K slots.

    body (N,); starts (N + 1,); row, column (K,) positions; ups (N + 1,), up_row and up_slot (K - N,): row k and the
    slot of U_kj; ranges (t + 1,) of panels, those of one panel in levels last.
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
    """Blocks of A: diagonal blocks of the bodies, and blocks of couplings by their addresses (`couplings`).

    slot (number * stride,): entry of every slot by coupling, 2 k for block k, 2 k + 1 for its transpose, -1 for none.
    """

    diagonal: wp.array2d(dtype=vec12)
    addresses: wp.array2d(dtype=wp.uint64)
    slot: wp.array(dtype=wp.int32)
    number: wp.int32
    stride: wp.int32


@wp.struct
class Factor:
    """Blocks of U, (K, 12) rows and the same memory as (K, 12, 12) numbers; failed (N,) 1 for pivots that are not positive,
    any_failed (1,) 1 if there is one; done (n,) 1 for bodies to skip."""

    rows: wp.array2d(dtype=vec12)
    entries: wp.array3d(dtype=wp.float64)
    failed: wp.array(dtype=wp.int32)
    any_failed: wp.array(dtype=wp.int32)
    done: wp.array(dtype=wp.int32)


@wp.func
def add_source(f: Factor, slot: wp.int32, blocks: wp.array2d(dtype=vec12), entry: wp.int32):
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
    j = p.row[slot]
    if p.column[slot] == j:
        for r in range(12):
            f.rows[slot, r] = a.diagonal[p.body[j], r]
        return
    for r in range(12):
        f.rows[slot, r] = vec12()
    for c in range(a.number):
        entry = a.slot[c * a.stride + slot]
        if entry >= 0:
            add_source(f, slot, wp.array(ptr=a.addresses[c, BLOCKS], shape=(UNBOUNDED, 12), dtype=vec12), entry)


@wp.func
def mirror(f: Factor, slot: wp.int32):
    """Copy the upper triangle of a block below its diagonal, four rows at a time."""
    for h in range(3):
        i = 4 * h
        a = f.rows[slot, i]
        b = f.rows[slot, i + 1]
        c = f.rows[slot, i + 2]
        f.entries[slot, i + 1, i] = a[i + 1]
        f.entries[slot, i + 2, i] = a[i + 2]
        f.entries[slot, i + 2, i + 1] = b[i + 2]
        f.entries[slot, i + 3, i] = a[i + 3]
        f.entries[slot, i + 3, i + 1] = b[i + 3]
        f.entries[slot, i + 3, i + 2] = c[i + 3]
        if h < 2:
            d = f.rows[slot, i + 3]
            for r in range(4):
                f.entries[slot, i + 4 + r, i] = a[i + 4 + r]
                f.entries[slot, i + 4 + r, i + 1] = b[i + 4 + r]
                f.entries[slot, i + 4 + r, i + 2] = c[i + 4 + r]
                f.entries[slot, i + 4 + r, i + 3] = d[i + 4 + r]
            if h == 0:
                for r in range(4):
                    f.entries[slot, 8 + r, 0] = a[8 + r]
                    f.entries[slot, 8 + r, 1] = b[8 + r]
                    f.entries[slot, 8 + r, 2] = c[8 + r]
                    f.entries[slot, 8 + r, 3] = d[8 + r]


@wp.func
def usable(pivot: wp.float64, largest: wp.float64) -> wp.float64:
    """Return the pivot if it is positive, else its replacement."""
    if pivot > ZERO:
        return pivot
    return largest


@wp.func
def factor_pivot(f: Factor, slot: wp.int32) -> wp.int32:
    """Factor a diagonal block in place; return 1 if a pivot was not positive and was replaced by the largest entry.

    Four rows at a time stay in registers. They are scaled at the end, because square roots would lengthen the chain of dependent
    operations between pivots.
    """
    bad = wp.int32(0)
    largest = ZERO
    for r in range(12):
        largest = wp.max(largest, wp.abs(f.entries[slot, r, r]))
    if not largest > ZERO:
        largest = ONE
    for h in range(3):
        i = 4 * h
        a = f.rows[slot, i]
        b = f.rows[slot, i + 1]
        c = f.rows[slot, i + 2]
        d = f.rows[slot, i + 3]
        for m in range(i):
            row = f.rows[slot, m]
            a = a - row[i] * row
            b = b - row[i + 1] * row
            c = c - row[i + 2] * row
            d = d - row[i + 3] * row
        pivot = usable(a[i], largest)
        if pivot != a[i]:
            bad = wp.int32(1)
        over_a = ONE / pivot
        b = b - (over_a * a[i + 1]) * a
        c = c - (over_a * a[i + 2]) * a
        d = d - (over_a * a[i + 3]) * a
        pivot = usable(b[i + 1], largest)
        if pivot != b[i + 1]:
            bad = wp.int32(1)
        over_b = ONE / pivot
        c = c - (over_b * b[i + 2]) * b
        d = d - (over_b * b[i + 3]) * b
        pivot = usable(c[i + 2], largest)
        if pivot != c[i + 2]:
            bad = wp.int32(1)
        over_c = ONE / pivot
        d = d - (over_c * c[i + 3]) * c
        pivot = usable(d[i + 3], largest)
        if pivot != d[i + 3]:
            bad = wp.int32(1)
        over_a = wp.sqrt(over_a)
        over_b = wp.sqrt(over_b)
        over_c = wp.sqrt(over_c)
        over_d = wp.sqrt(ONE / pivot)
        a = over_a * a
        b = over_b * b
        c = over_c * c
        d = over_d * d
        a[i] = over_a
        b[i + 1] = over_b
        c[i + 2] = over_c
        d[i + 3] = over_d
        f.rows[slot, i] = a
        f.rows[slot, i + 1] = b
        f.rows[slot, i + 2] = c
        f.rows[slot, i + 3] = d
    mirror(f, slot)
    return bad


@wp.func
def pivot_row(f: Factor, j: wp.int32, slot: wp.int32):
    """Factor the diagonal block of row j, and record whether it failed."""
    bad = factor_pivot(f, slot)
    f.failed[j] = bad
    if bad != 0:
        f.any_failed[0] = 1


@wp.func
def divide_slot(f: Factor, pivot: wp.int32, slot: wp.int32):
    """Compute U_ji = U_jj^-T A_ji in place, four rows at a time."""
    for h in range(3):
        i = 4 * h
        a = f.rows[slot, i]
        b = f.rows[slot, i + 1]
        c = f.rows[slot, i + 2]
        d = f.rows[slot, i + 3]
        for m in range(i):
            row = f.rows[slot, m]
            a = a - f.entries[pivot, m, i] * row
            b = b - f.entries[pivot, m, i + 1] * row
            c = c - f.entries[pivot, m, i + 2] * row
            d = d - f.entries[pivot, m, i + 3] * row
        a = f.entries[pivot, i, i] * a
        b = f.entries[pivot, i + 1, i + 1] * (b - f.entries[pivot, i, i + 1] * a)
        c = c - f.entries[pivot, i, i + 2] * a
        c = f.entries[pivot, i + 2, i + 2] * (c - f.entries[pivot, i + 1, i + 2] * b)
        d = d - f.entries[pivot, i, i + 3] * a
        d = d - f.entries[pivot, i + 1, i + 3] * b
        d = f.entries[pivot, i + 3, i + 3] * (d - f.entries[pivot, i + 2, i + 3] * c)
        f.rows[slot, i] = a
        f.rows[slot, i + 1] = b
        f.rows[slot, i + 2] = c
        f.rows[slot, i + 3] = d


@wp.func
def solve_transposed(f: Factor, slot: wp.int32, v: vec12) -> vec12:
    out = vec12()
    for r in range(12):
        row = f.rows[slot, r]
        out[r] = v[r] * row[r]
        v = v - out[r] * row
    return out


@wp.func
def finish_row(
    p: Pattern, f: Factor, j: wp.int32, rhs: wp.array(dtype=vec12), x: wp.array(dtype=vec12), dots: wp.array(dtype=wp.float64)
):
    """Compute x of row j = U_jj^-1 (x_j - sum_i U_ji x_i), and rhs . x of its body."""
    b = p.body[j]
    v = x[b]
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
    x[b] = out
    dots[b] = wp.dot(rhs[b], out)
