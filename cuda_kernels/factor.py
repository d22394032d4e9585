"""Cholesky factor A = U^T U of a sparse symmetric matrix of 12x12 blocks, and solves with it.

Rows of U stand in the order of elimination, position j belongs to `Pattern.body[j]`. Row j holds the slots
``starts[j] .. starts[j + 1]``: its diagonal block, with the reciprocals of its pivots on the diagonal and its upper
triangle mirrored below, then the blocks right of it by growing column. The rows k < j with a block in column j are its
*updates*, ``ups[j] .. ups[j + 1]``, by growing k.

Every block gathers ``A_ji - sum_k U_kj^T U_ki`` over k in that order, whether one item works through a range of rows
(`factor_ranges`) or one item per slot does a level of independent rows (`gather_slots`, `factor_pivots`,
`divide_slots`), so the order of the rows alone decides the values. Rows of bodies that are done stay as they are; no row
of another island depends on them.
"""

import warp as wp

from cuda_kernels.affine import ONE, ZERO
from cuda_kernels.vector12 import vec12

wp.set_module_options({"enable_backward": False, "max_unroll": 4})


@wp.struct
class Pattern:
    """Where the blocks of U are: N rows, K slots.

    body (N,); starts (N + 1,); row, column (K,) positions; ups (N + 1,), up_row and up_slot (K - N,): row k and the
    slot of U_kj; ranges (t + 1,) of rows.
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
def forward_row(p: Pattern, f: Factor, j: wp.int32, v: vec12, x: wp.array(dtype=vec12)):
    """x of row j = U_jj^-T (v - sum_k U_kj^T x_k)."""
    for e in range(p.ups[j], p.ups[j + 1]):
        other = p.body[p.up_row[e]]
        if f.done[other] == 0:
            y = x[other]
            for m in range(12):
                v = v - y[m] * f.rows[p.up_slot[e], m]
    out = vec12()
    slot = p.starts[j]
    for r in range(12):
        row = f.rows[slot, r]
        out[r] = v[r] * row[r]
        v = v - out[r] * row
    x[p.body[j]] = out


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
def factor_row(p: Pattern, a: Sources, f: Factor, j: wp.int32):
    """Row j of U from the rows before it."""
    begin = p.starts[j]
    end = p.starts[j + 1]
    for s in range(begin, end):
        load_slot(p, a, f, s)
    for e in range(p.ups[j], p.ups[j + 1]):
        k = p.up_row[e]
        if f.done[p.body[k]] == 0:
            left = p.up_slot[e]
            target = begin
            for right in range(left, p.starts[k + 1]):
                while p.column[target] < p.column[right]:
                    target = target + 1
                subtract_product(f, left, right, target)
    pivot_row(f, j, begin)
    for s in range(begin + 1, end):
        divide_slot(f, begin, s)


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


@wp.kernel
def factor_ranges(first: wp.int32, p: Pattern, a: Sources, f: Factor):
    """Rows of one range, one after another."""
    t = wp.tid() + first
    for j in range(p.ranges[t], p.ranges[t + 1]):
        if f.done[p.body[j]] == 0:
            factor_row(p, a, f, j)


@wp.kernel
def factor_and_forward_ranges(
    first: wp.int32,
    p: Pattern,
    a: Sources,
    f: Factor,
    scale: wp.float64,
    rhs: wp.array(dtype=vec12),
    x: wp.array(dtype=vec12),
):
    """The same, with x = U^-T (scale rhs) of its bodies while the blocks are near."""
    t = wp.tid() + first
    for j in range(p.ranges[t], p.ranges[t + 1]):
        if f.done[p.body[j]] == 0:
            factor_row(p, a, f, j)
            forward_row(p, f, j, scale * rhs[p.body[j]], x)


@wp.kernel
def forward_ranges(
    first: wp.int32,
    p: Pattern,
    f: Factor,
    scale: wp.float64,
    rhs: wp.array(dtype=vec12),
    x: wp.array(dtype=vec12),
):
    """x = U^-T (scale rhs) of one range of rows."""
    t = wp.tid() + first
    for j in range(p.ranges[t], p.ranges[t + 1]):
        if f.done[p.body[j]] == 0:
            forward_row(p, f, j, scale * rhs[p.body[j]], x)


@wp.kernel
def backward_ranges(
    first: wp.int32,
    p: Pattern,
    f: Factor,
    rhs: wp.array(dtype=vec12),
    x: wp.array(dtype=vec12),
    dots: wp.array(dtype=wp.float64),
):
    """x = U^-1 x of one range of rows, and rhs . x of its bodies."""
    t = wp.tid() + first
    begin = p.ranges[t]
    end = p.ranges[t + 1]
    for q in range(end - begin):
        j = end - 1 - q
        if f.done[p.body[j]] == 0:
            finish_row(p, f, j, rhs, x, dots)


@wp.kernel
def gather_slots(first: wp.int32, p: Pattern, a: Sources, f: Factor):
    """A_ji - sum_k U_kj^T U_ki of one slot of a level."""
    s = wp.tid() + first
    j = p.row[s]
    i = p.column[s]
    if f.done[p.body[j]] != 0:
        return
    load_slot(p, a, f, s)
    e = p.ups[j]
    g = p.ups[i]
    while e < p.ups[j + 1] and g < p.ups[i + 1]:
        k = p.up_row[e]
        m = p.up_row[g]
        if k == m:
            if f.done[p.body[k]] == 0:
                subtract_product(f, p.up_slot[e], p.up_slot[g], s)
            e = e + 1
            g = g + 1
        elif k < m:
            e = e + 1
        else:
            g = g + 1


@wp.kernel
def factor_pivots(first: wp.int32, p: Pattern, f: Factor):
    """Diagonal block of one row of a level."""
    j = wp.tid() + first
    if f.done[p.body[j]] == 0:
        pivot_row(f, j, p.starts[j])


@wp.kernel
def divide_slots(first: wp.int32, p: Pattern, f: Factor):
    """The other blocks of the rows of a level, one slot each."""
    s = wp.tid() + first
    j = p.row[s]
    if p.column[s] > j and f.done[p.body[j]] == 0:
        divide_slot(f, p.starts[j], s)


@wp.kernel
def forward_rows(
    first: wp.int32,
    p: Pattern,
    f: Factor,
    scale: wp.float64,
    rhs: wp.array(dtype=vec12),
    x: wp.array(dtype=vec12),
):
    """Forward part of one row of a level."""
    j = wp.tid() + first
    if f.done[p.body[j]] == 0:
        forward_row(p, f, j, scale * rhs[p.body[j]], x)


@wp.kernel
def backward_rows(
    first: wp.int32,
    p: Pattern,
    f: Factor,
    rhs: wp.array(dtype=vec12),
    x: wp.array(dtype=vec12),
    dots: wp.array(dtype=wp.float64),
):
    """Backward part of one row of a level."""
    j = wp.tid() + first
    if f.done[p.body[j]] == 0:
        finish_row(p, f, j, rhs, x, dots)


@wp.kernel
def find_slots(
    first: wp.int32,
    p: Pattern,
    place: wp.array(dtype=wp.int32),
    row: wp.array(dtype=wp.int32),
    column: wp.array(dtype=wp.int32),
    found: wp.array(dtype=wp.int32),
    missed: wp.array(dtype=wp.int32),
):
    """Entry of one pair's block at its slot in `found` (K,); missed[0] = 1 where the pattern has none.

    Pairs with a body that has no place (-1) do not count.
    """
    k = wp.tid() + first
    i = place[row[k]]
    j = place[column[k]]
    if i < 0 or j < 0:
        return
    entry = 2 * k
    above = i
    right = j
    if j < i:
        entry = entry + 1
        above = j
        right = i
    lo = p.starts[above]
    hi = p.starts[above + 1]
    while lo < hi:
        mid = (lo + hi) // 2
        if p.column[mid] < right:
            lo = mid + 1
        else:
            hi = mid
    if lo < p.starts[above + 1] and p.column[lo] == right:
        found[lo] = entry
    else:
        missed[0] = 1


@wp.kernel
def invert_pivots(
    first: wp.int32, p: Pattern, f: Factor, room: wp.array2d(dtype=vec12), inverse: wp.array2d(dtype=vec12)
):
    """U_jj^-1 U_jj^-T of one row, at its body's place in inverse (n, 12); room (n, 12)."""
    j = wp.tid() + first
    b = p.body[j]
    if f.done[b] != 0:
        return
    slot = p.starts[j]
    for r in range(12):
        v = vec12()
        v[r] = ONE
        for m in range(r):
            v = v - f.entries[slot, m, r] * room[b, m]
        room[b, r] = f.entries[slot, r, r] * v
    for r in range(12):
        v = vec12()
        for m in range(r, 12):
            v = v + room[b, m][r] * room[b, m]
        inverse[b, r] = v
