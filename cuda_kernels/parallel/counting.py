"""Exclusive sums of counts with a 64-bit total, which detects overflow of the 32-bit offsets.

The chunks are those of `scans`, whose `offset_chunks` is the last of the three launches.
"""

import warp as wp

from cuda_kernels.options import OPTIONS
from cuda_kernels.parallel.sums import SUM, over_lanes, up_to_lane

wp.set_module_options(OPTIONS)


@wp.kernel
def chunk_totals(
    first: wp.int32,
    lanes: wp.int32,
    counts: wp.array(dtype=wp.int32),
    sizes: wp.array(dtype=wp.int32),
    which: wp.int32,
    length: wp.int32,
    sums: wp.array(dtype=wp.int64),
):
    """Sum every chunk of `length` counts, by `lanes` lanes each; there are sizes[which] counts."""
    t = wp.tid() + first
    lane = t % lanes
    c = t / lanes
    total = wp.int64(0)
    for k in range(c * length + lane, wp.min((c + 1) * length, sizes[which]), lanes):
        total = total + wp.int64(counts[k])
    total = over_lanes(total, SUM, lanes)
    if lane == 0:
        sums[c] = total


@wp.kernel
def settle_total(
    first: wp.int32,
    lanes: wp.int32,
    sizes: wp.array(dtype=wp.int32),
    which: wp.int32,
    length: wp.int32,
    sums: wp.array(dtype=wp.int64),
    kind: wp.int32,
    capacity: wp.int32,
    before: wp.array(dtype=wp.int32),
    offsets: wp.array(dtype=wp.int32),
    totals: wp.array(dtype=wp.int64),
    found: wp.array(dtype=wp.int32),
):
    """Compute the sums before every chunk, and after the last one; one warp.

    totals[kind] becomes the larger of itself and the sum of all chunks. found[kind] is the same if it is within the capacity,
    else 0, so that launches over it return at once; the offsets are then invalid.
    """
    lane = wp.tid() + first
    total = wp.int64(0)
    count = sizes[which]
    chunks = (count + length - 1) // length
    begin = wp.int32(0)
    while begin < chunks:
        c = begin + lane
        s = wp.int64(0)
        if c < chunks:
            s = sums[c]
        upto = up_to_lane(s, lane, lanes)
        if c < chunks:
            before[c] = wp.int32(total + upto - s)
        total = total + over_lanes(s, SUM, lanes)
        begin = begin + lanes
    if lane == 0:
        offsets[count] = wp.int32(total)
        total = wp.max(total, totals[kind])
        totals[kind] = total
        found[kind] = 0
        if total <= wp.int64(capacity):
            found[kind] = wp.int32(total)
