"""Off-diagonal blocks of a symmetric matrix of 12x12 blocks, for pairs of bodies.

Every energy that couples bodies stores its blocks in its own arrays, a `Coupling`. Kernels that need the whole matrix get the
addresses of any number of them, without copies.
"""

import warp as wp

from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)

STARTS, ENTRIES, COLUMN, BLOCKS, MERGED, PARTS = (wp.constant(k) for k in range(6))
"""Columns of a table of addresses: arrays of a `Coupling`; flags (k,) of blocks merged into another coupling, or 0; products (k,)
of the transposed blocks."""
COLUMNS = 6
UNBOUNDED = wp.constant(1 << 30)
"""Length of an array from an address."""


@wp.struct
class Coupling:
    """Off-diagonal blocks (k, 12, 12) between row and column bodies, with the sorted entries of every body.

    Entry 2k is block k, the other body is column[k]; 2k + 1 is its transpose, the other body is row[k]. count[0] blocks are
    valid; the arrays may have a larger capacity.
    """

    count: wp.array(dtype=wp.int32)
    starts: wp.array(dtype=wp.int32)
    entries: wp.array(dtype=wp.int32)
    row: wp.array(dtype=wp.int32)
    column: wp.array(dtype=wp.int32)
    blocks: wp.array3d(dtype=wp.float64)
