"""Exclusive sums of integer counts: sums of chunks, sums over the chunks, then sums inside every chunk.

Sums have 64 bits, so that a total beyond the 32 bits of offsets is detected. The number of counts is on the device; chunks beyond
it have the sum 0. On CUDA a warp processes a chunk, the last one also the sums of all chunks; its lanes read neighbouring values.
"""

import warp as wp

from cuda_kernels.options import OPTIONS
from cuda_kernels.parallel.sums import SUM, is_last, over_lanes, up_to_lane

wp.set_module_options(OPTIONS)


@wp.kernel
def scan_chunks(
    first: wp.int32,
    chunks: wp.int32,
    lanes: wp.int32,
    counts: wp.array(dtype=wp.int32),
    sizes: wp.array(dtype=wp.int32),
    which: wp.int32,
    length: wp.int32,
    sums: wp.array(dtype=wp.int64),
    stored: wp.array(dtype=wp.int32),
    offsets: wp.array(dtype=wp.int32),
    whole: wp.array(dtype=wp.int64),
):
    """Set sums[c] to the sum of the counts before chunk c, and offsets[sizes[which]] and whole[0] to the total.

    Each of `chunks` chunks of `length` counts is summed by `lanes` lanes; those of the last one scan the sums. There are
    sizes[which] counts; `stored` (1,) is 0. On the CPU one thread must run all."""
    t = wp.tid() + first
    lane = t % lanes
    own = t / lanes
    count = sizes[which]
    s = wp.int64(0)
    for k in range(own * length + lane, wp.min((own + 1) * length, count), lanes):
        s = s + wp.int64(counts[k])
    s = over_lanes(s, SUM, lanes)
    if lane == 0:
        sums[own] = s
    if not is_last(stored, 0, chunks, lane, lanes):
        return
    total = wp.int64(0)
    used = (count + length - 1) // length
    begin = wp.int32(0)
    while begin < used:
        c = begin + lane
        s = wp.int64(0)
        if c < used:
            s = sums[c]
        before = total + up_to_lane(s, lane, lanes) - s
        if c < used:
            sums[c] = before
        total = total + over_lanes(s, SUM, lanes)
        begin = begin + lanes
    if lane == 0:
        offsets[count] = wp.int32(total)
        whole[0] = total


@wp.kernel
def offset_chunks(
    first: wp.int32,
    lanes: wp.int32,
    counts: wp.array(dtype=wp.int32),
    sizes: wp.array(dtype=wp.int32),
    which: wp.int32,
    length: wp.int32,
    sums: wp.array(dtype=wp.int64),
    offsets: wp.array(dtype=wp.int32),
):
    """Compute exclusive sums inside every chunk, from those over the chunks before it."""
    t = wp.tid() + first
    lane = t % lanes
    c = t / lanes
    begin = c * length
    end = wp.min(begin + length, sizes[which])
    if begin >= end:
        return
    total = sums[c]
    while begin < end:
        k = begin + lane
        s = wp.int64(0)
        if k < end:
            s = wp.int64(counts[k])
        before = total + up_to_lane(s, lane, lanes) - s
        if k < end:
            offsets[k] = wp.int32(before)
        total = total + over_lanes(s, SUM, lanes)
        begin = begin + lanes


@wp.kernel
def settle_total(
    first: wp.int32,
    whole: wp.array(dtype=wp.int64),
    kind: wp.int32,
    capacity: wp.int32,
    totals: wp.array(dtype=wp.int64),
    found: wp.array(dtype=wp.int32),
):
    """Set totals[kind] to the larger of itself and the total of a scan; one item.

    found[kind] is the same if it is within the capacity, else 0, so that launches over it return at once."""
    total = wp.max(whole[0], totals[kind])
    totals[kind] = total
    found[kind] = 0
    if total <= wp.int64(capacity):
        found[kind] = wp.int32(total)
