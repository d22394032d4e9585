"""Slots of matrix blocks in the Cholesky factor, and inverse of a diagonal factor, in the storage of `factor_rows`."""

import warp as wp

from cuda_kernels.bodies.affine import ONE, vec12
from cuda_kernels.linear.factor_rows import Factor, Pattern
from cuda_kernels.options import OPTIONS
from cuda_kernels.parallel.chunks import lower_bound

wp.set_module_options(OPTIONS)


@wp.kernel
def find_slots(
    first: wp.int32,
    p: Pattern,
    place: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    row: wp.array(dtype=wp.int32),
    column: wp.array(dtype=wp.int32),
    found: wp.array(dtype=wp.int32),
):
    """Find the slot of one pair's block and write its entry to `found` (K,).

    There are count[0] pairs; those with a body without a place (-1) are skipped.
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
    lo = lower_bound(p.column, p.starts[above], p.starts[above + 1], right)
    if lo < p.starts[above + 1] and p.column[lo] == right:
        found[lo] = entry


@wp.kernel
def invert_pivots(
    first: wp.int32, p: Pattern, f: Factor, capacity: wp.array2d(dtype=vec12), inverse: wp.array2d(dtype=vec12)
):
    """Compute U_jj^-1 U_jj^-T of one row, in its body's place of inverse (n, 12); capacity (n, 12) is scratch."""
    j = wp.tid() + first
    b = p.body[j]
    if f.done[b] != 0:
        return
    slot = p.starts[j]
    for r in range(12):
        v = vec12()
        v[r] = ONE
        for m in range(r):
            v = v - f.entries[slot, m, r] * capacity[b, m]
        capacity[b, r] = f.entries[slot, r, r] * v
    for r in range(12):
        v = vec12()
        for m in range(r, 12):
            v = v + capacity[b, m][r] * capacity[b, m]
        inverse[b, r] = v
