"""Exclusive sums of counts with their total in 64 bits: offsets of 32 bits cannot tell when they overflow.

Cut into chunks as in `scans`, whose `offset_chunks` is the last of the three launches.
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
    """Sum of every chunk of `length` counts, by so many lanes each; sizes[which] counts are there."""
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
    """One warp: what is before every chunk, and behind the last one.

    totals[kind] becomes the sum of all chunks, where that is more than it was, and found[kind] the same if there is capacity
    for it, else 0, so that whatever is launched over it returns at once; offsets say nothing then.
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
