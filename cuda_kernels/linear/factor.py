"""Cholesky factor of a sparse symmetric matrix of 12x12 blocks, and solves with it, level by level of independent rows;
stored as `factor_rows` says.

One item does one slot or row of a level, or one row or column of a slot's block. Every block gathers
``A_ji - sum_k U_kj^T U_ki`` by growing k: the order of the rows alone decides the values. Rows of bodies that are done
stay as they are; no row of another island depends on them.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE
from cuda_kernels.bodies.vector12 import vec12
from cuda_kernels.linear.factor_parts import divide_in_column, gather_row
from cuda_kernels.linear.factor_rows import (
    Factor,
    Pattern,
    Sources,
    divide_slot,
    finish_row,
    forward_row,
    load_slot,
    pivot_row,
    subtract_product,
)

wp.set_module_options({"enable_backward": False, "max_unroll": 4})


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
def gather_rows(first: wp.int32, p: Pattern, a: Sources, f: Factor):
    """The same of one of the twelve rows of a slot's block each."""
    q = wp.tid() + first
    slot = q // 12
    if f.done[p.body[p.row[slot]]] == 0:
        gather_row(p, a, f, slot, q % 12)


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
def divide_columns(first: wp.int32, p: Pattern, f: Factor):
    """The same, one of the twelve columns of a slot's block each."""
    q = wp.tid() + first
    slot = q // 12
    j = p.row[slot]
    if p.column[slot] > j and f.done[p.body[j]] == 0:
        divide_in_column(f, p.starts[j], slot, q % 12)


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
    count: wp.array(dtype=wp.int32),
    row: wp.array(dtype=wp.int32),
    column: wp.array(dtype=wp.int32),
    found: wp.array(dtype=wp.int32),
    missed: wp.array(dtype=wp.int32),
):
    """Entry of one pair's block at its slot in `found` (K,); missed[0] = 1 where the pattern has none.

    There are count[0] pairs; those with a body that has no place (-1) do not count.
    """
    k = wp.tid() + first
    if k >= count[0]:
        return
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
