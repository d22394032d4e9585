"""Scatter of blocks into one dense symmetric matrix, for systems small enough for it."""

import warp as wp

wp.set_module_options({"enable_backward": False, "max_unroll": 4})


@wp.kernel
def scatter_diagonal(
    first: wp.int32,
    slot: wp.array(dtype=wp.int32),
    diagonal: wp.array3d(dtype=wp.float64),
    H: wp.array2d(dtype=wp.float64),
):
    """Write the diagonal blocks of the bodies that have a slot."""
    t = wp.tid() + first
    b = t // 12
    r = t % 12
    if slot[b] >= 0:
        for c in range(12):
            H[12 * slot[b] + r, 12 * slot[b] + c] = diagonal[b, r, c]


@wp.kernel
def scatter_pairs(
    first: wp.int32,
    slot: wp.array(dtype=wp.int32),
    row: wp.array(dtype=wp.int32),
    column: wp.array(dtype=wp.int32),
    blocks: wp.array3d(dtype=wp.float64),
    H: wp.array2d(dtype=wp.float64),
):
    """Add the blocks of distinct pairs to both triangles."""
    t = wp.tid() + first
    k = t // 12
    r = t % 12
    i = slot[row[k]]
    j = slot[column[k]]
    if i >= 0 and j >= 0:
        for c in range(12):
            H[12 * i + r, 12 * j + c] = H[12 * i + r, 12 * j + c] + blocks[k, r, c]
            H[12 * j + c, 12 * i + r] = H[12 * j + c, 12 * i + r] + blocks[k, r, c]
