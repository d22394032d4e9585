"""Exclusive sums of integer counts: sums of chunks, sums over the chunks, then sums inside every chunk.

Sums have 64 bits, so that a total beyond the 32 bits of offsets is detected. The number of counts is on the device; chunks beyond
it return at once. On CUDA a warp processes a chunk, and another one the sums of all chunks; its lanes read neighbouring values.
"""

import warp as wp

from cuda_kernels.options import OPTIONS
from cuda_kernels.parallel.sums import SUM, over_lanes, up_to_lane

wp.set_module_options(OPTIONS)


@wp.kernel
def sum_chunks(
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
    s = wp.int64(0)
    for k in range(c * length + lane, wp.min((c + 1) * length, sizes[which]), lanes):
        s = s + wp.int64(counts[k])
    s = over_lanes(s, SUM, lanes)
    if lane == 0:
        sums[c] = s


@wp.kernel
def scan_chunks(
    first: wp.int32,
    lanes: wp.int32,
    sizes: wp.array(dtype=wp.int32),
    which: wp.int32,
    length: wp.int32,
    sums: wp.array(dtype=wp.int64),
    offsets: wp.array(dtype=wp.int32),
    whole: wp.array(dtype=wp.int64),
):
    """Set sums[c] to the sum over the chunks before c, and offsets[sizes[which]] and whole[0] to the total; one warp."""
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
        before = total + up_to_lane(s, lane, lanes) - s
        if c < chunks:
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
