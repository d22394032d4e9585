"""Reduction of elements to one 12x12 block per body pair and its two diagonal partners, in a fixed order.

Entry (r, a) of a body's 3x4 gradient sits at q index ``r`` for a = 0 and ``3 + 3 r + a - 1`` for a > 0.
"""

import warp as wp

from cuda_kernels.affine import ZERO
from cuda_kernels.contact import Elements

wp.set_module_options({"enable_backward": False, "max_unroll": 4})


@wp.func
def q_index(r: wp.int32, a: wp.int32) -> wp.int32:
    if a == 0:
        return r
    return 2 + 3 * r + a


@wp.kernel
def mark_pairs(
    first: wp.int32,
    segment: wp.array(dtype=wp.int32),
    offset: wp.array(dtype=wp.int32),
    active: wp.array(dtype=wp.int32),
):
    """1 for pairs that own at least one element: segments index candidates, `offset` their elements."""
    k = wp.tid() + first
    active[k] = wp.where(offset[segment[k + 1]] > offset[segment[k]], 1, 0)


@wp.kernel
def keep_pairs(
    first: wp.int32,
    pairs: wp.array(dtype=wp.vec2i),
    segment: wp.array(dtype=wp.int32),
    offset: wp.array(dtype=wp.int32),
    slot: wp.array(dtype=wp.int32),
    row: wp.array(dtype=wp.int32),
    column: wp.array(dtype=wp.int32),
    begin: wp.array(dtype=wp.int32),
    end: wp.array(dtype=wp.int32),
):
    """Active pairs side by side, with the range of their elements; `slot` is the exclusive sum of the marks."""
    k = wp.tid() + first
    b = offset[segment[k]]
    e = offset[segment[k + 1]]
    if e > b:
        n = slot[k]
        row[n] = pairs[k][0]
        column[n] = pairs[k][1]
        begin[n] = b
        end[n] = e


@wp.kernel
def reduce_pairs(
    first: wp.int32,
    elements: Elements,
    begin: wp.array(dtype=wp.int32),
    end: wp.array(dtype=wp.int32),
    gradient_i: wp.array2d(dtype=wp.float64),
    gradient_j: wp.array2d(dtype=wp.float64),
    block_ii: wp.array3d(dtype=wp.float64),
    block_ij: wp.array3d(dtype=wp.float64),
    block_jj: wp.array3d(dtype=wp.float64),
):
    """Sums over the elements of a pair; thread (pair, a, b) owns the 3x3 sub-blocks at columns a, b of the 3x4 states."""
    t = wp.tid() + first
    k = t // 16
    a = (t // 4) % 4
    b = t % 4
    Hii = wp.mat33d()
    Hij = wp.mat33d()
    Hjj = wp.mat33d()
    gi = wp.vec3d()
    gj = wp.vec3d()
    for e in range(begin[k], end[k]):
        Yi = elements.Y_i[e]
        Yj = elements.Y_j[e]
        if b == 0:
            gi = gi + Yi[a] * elements.f_i[e]
            gj = gj + Yj[a] * elements.f_j[e]
        Hij = Hij + (Yi[a] * Yj[b]) * elements.K_ij[e]
        if b <= a:
            Hii = Hii + (Yi[a] * Yi[b]) * elements.K_ii[e]
            Hjj = Hjj + (Yj[a] * Yj[b]) * elements.K_jj[e]
    for r in range(3):
        i = q_index(r, a)
        if b == 0:
            gradient_i[k, i] = gi[r]
            gradient_j[k, i] = gj[r]
        for c in range(3):
            j = q_index(c, b)
            block_ij[k, i, j] = Hij[r, c]
            if b <= a:
                block_ii[k, i, j] = Hii[r, c]
                block_jj[k, i, j] = Hjj[r, c]
                if b < a:
                    block_ii[k, j, i] = Hii[r, c]
                    block_jj[k, j, i] = Hjj[r, c]


@wp.kernel
def incidence_keys(
    first: wp.int32,
    row: wp.array(dtype=wp.int32),
    column: wp.array(dtype=wp.int32),
    pairs: wp.int32,
    keys: wp.array(dtype=wp.int32),
    entries: wp.array(dtype=wp.int32),
):
    """Two entries per pair, keyed by body: entry 2k for its row body, 2k + 1 for its column body."""
    k = wp.tid() + first
    keys[k] = row[k]
    keys[pairs + k] = column[k]
    entries[k] = 2 * k
    entries[pairs + k] = 2 * k + 1


@wp.kernel
def incidence_starts(
    first: wp.int32, keys: wp.array(dtype=wp.int32), count: wp.int32, starts: wp.array(dtype=wp.int32)
):
    """First entry of every body (n + 1,) in the sorted keys."""
    b = wp.tid() + first
    lo = wp.int32(0)
    hi = count
    while lo < hi:
        mid = (lo + hi) // 2
        if keys[mid] < b:
            lo = mid + 1
        else:
            hi = mid
    starts[b] = lo


@wp.kernel
def gather_bodies(
    first: wp.int32,
    starts: wp.array(dtype=wp.int32),
    entries: wp.array(dtype=wp.int32),
    gradient_i: wp.array2d(dtype=wp.float64),
    gradient_j: wp.array2d(dtype=wp.float64),
    block_ii: wp.array3d(dtype=wp.float64),
    block_jj: wp.array3d(dtype=wp.float64),
    gradient: wp.array2d(dtype=wp.float64),
    diagonal: wp.array3d(dtype=wp.float64),
):
    """Add the pairs' shares to every body's gradient row and diagonal block, in the order of its entries."""
    t = wp.tid() + first
    b = t // 12
    r = t % 12
    g = ZERO
    for e in range(starts[b], starts[b + 1]):
        k = entries[e] // 2
        if entries[e] % 2 == 0:
            g = g + gradient_i[k, r]
            for c in range(12):
                diagonal[b, r, c] = diagonal[b, r, c] + block_ii[k, r, c]
        else:
            g = g + gradient_j[k, r]
            for c in range(12):
                diagonal[b, r, c] = diagonal[b, r, c] + block_jj[k, r, c]
    gradient[b, r] = gradient[b, r] + g
