"""Solves with a Cholesky factor of 12x12 blocks, by levels of independent rows (`factor_levels`).

Twelve times its lanes compute the sum of a row, then twelve threads solve the triangle of its diagonal block. The forward solve
is x_j = U_jj^-T (scale rhs_j - sum_k U_kj^T x_k), the `backward` one x_j = U_jj^-1 (x_j - sum_i U_ji x_i), the last level first.
"""

import warp as wp

from cuda_kernels.bodies.affine import ZERO
from cuda_kernels.linear.factor_levels import PIVOT_LANES, Levels, level_at, over_group, side_by_side, wait_for_group
from cuda_kernels.linear.factor_rows import Factor, Pattern
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)
LOADED_FOR = ("cuda",)


@wp.kernel
def sum_row(
    first: wp.int32,
    threads: wp.int32,
    ahead: wp.int32,
    backward: wp.int32,
    l: Levels,
    p: Pattern,
    f: Factor,
    scale: wp.float64,
    rhs: wp.array2d(dtype=wp.float64),
    x: wp.array2d(dtype=wp.float64),
):
    """Compute the sums of the rows j of a level in place of x_j, each number by its lanes."""
    t = wp.tid() + first
    level = level_at(l, ahead, backward)
    if level < 0:
        return
    begin = l.rows[level]
    lanes = wp.where(backward != 0, l.rights[level], l.ups[level])
    width = side_by_side(lanes)
    q = t
    while q < 12 * (l.rows[level + 1] - begin) * width:
        j = begin + q / width / 12
        r = (q / width) % 12
        b = p.body[j]
        if f.done[b] == 0:
            v = ZERO
            if q % width == 0:
                if backward != 0:
                    v = x[b, r]
                else:
                    v = scale * rhs[b, r]
            for lane in range(q % width, lanes, width):
                if backward != 0:
                    for s in range(p.starts[j] + 1 + lane, p.starts[j + 1], lanes):
                        other = p.body[p.column[s]]
                        for m in range(12):
                            v = v - f.entries[s, r, m] * x[other, m]
                else:
                    for e in range(p.ups[j] + lane, p.ups[j + 1], lanes):
                        other = p.body[p.up_row[e]]
                        if f.done[other] == 0:
                            slot = p.up_slot[e]
                            for m in range(12):
                                v = v - x[other, m] * f.entries[slot, m, r]
            v = over_group(v, width)
            if q % width == 0:
                x[b, r] = v
        q = q + threads


@wp.kernel
def solve_row(
    first: wp.int32,
    threads: wp.int32,
    ahead: wp.int32,
    backward: wp.int32,
    l: Levels,
    p: Pattern,
    f: Factor,
    rhs: wp.array2d(dtype=wp.float64),
    x: wp.array2d(dtype=wp.float64),
    dots: wp.array(dtype=wp.float64),
):
    """Solve with the diagonal blocks of a level, each number by a thread; if `backward`, compute dots = rhs . x of the bodies."""
    t = wp.tid() + first
    level = level_at(l, ahead, backward)
    if level < 0:
        return
    begin = l.rows[level]
    width = side_by_side(PIVOT_LANES)
    q = t
    while q < (l.rows[level + 1] - begin) * width:
        j = begin + q / width
        lane = q % width
        b = p.body[j]
        slot = p.starts[j]
        if f.done[b] == 0:
            for k in range(11):
                r = wp.where(backward != 0, 11 - k, k)
                for c in range(lane, 12, width):
                    if c != r and (c < r) == (backward != 0):
                        x[b, c] = x[b, c] - x[b, r] * f.entries[slot, r, r] * f.entries[slot, r, c]
                wait_for_group(width)
            for c in range(lane, 12, width):
                x[b, c] = x[b, c] * f.entries[slot, c, c]
            wait_for_group(width)
            if backward != 0 and lane == 0:
                s = ZERO
                for m in range(12):
                    s = s + rhs[b, m] * x[b, m]
                dots[b] = s
        q = q + threads
