"""Rows and columns of the blocks of a Cholesky factor, each by a thread of its own: threads side by side read and write
what lies side by side.
"""

import warp as wp

from cuda_kernels.bodies.vector12 import vec12
from cuda_kernels.linear.couplings import BLOCKS, ENDLESS
from cuda_kernels.linear.factor_rows import Factor, Pattern, Sources

wp.set_module_options({"enable_backward": False, "max_unroll": 4})
LOADED_FOR = ("cuda",)


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
        for c in range(a.number):
            blocks = wp.array(ptr=a.addresses[c, BLOCKS], shape=(ENDLESS, 12), dtype=vec12)
            v = with_source(v, blocks, a.slot[c * a.stride + slot], r)
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
def divide_in_column(f: Factor, pivot: wp.int32, slot: wp.int32, column: wp.int32):
    """One column of U_jj^-T A_ji in place."""
    for r in range(12):
        v = f.entries[slot, r, column]
        for m in range(r):
            v = v - f.entries[pivot, m, r] * f.entries[slot, m, column]
        f.entries[slot, r, column] = f.entries[pivot, r, r] * v
