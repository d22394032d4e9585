"""Exclusive sums of integer counts, cut into chunks: sums of the chunks, one thread over those, then inside every chunk.

The number of counts is looked up on the device; chunks beyond it return at once.
"""

import warp as wp

wp.set_module_options({"enable_backward": False, "max_unroll": 4})


@wp.kernel
def sum_chunks(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    sizes: wp.array(dtype=wp.int32),
    which: wp.int32,
    length: wp.int32,
    sums: wp.array(dtype=wp.int32),
):
    """Sum of every chunk of `length` counts; sizes[which] counts are there."""
    c = wp.tid() + first
    s = wp.int32(0)
    for k in range(c * length, wp.min((c + 1) * length, sizes[which])):
        s = s + counts[k]
    sums[c] = s


@wp.kernel
def scan_chunks(
    first: wp.int32,
    sizes: wp.array(dtype=wp.int32),
    which: wp.int32,
    length: wp.int32,
    sums: wp.array(dtype=wp.int32),
    offsets: wp.array(dtype=wp.int32),
):
    """One thread: sums[c] becomes the sum over the chunks before c; the total goes to offsets[sizes[which]]."""
    total = wp.int32(0)
    count = sizes[which]
    for c in range((count + length - 1) // length):
        s = sums[c]
        sums[c] = total
        total = total + s
    offsets[count] = total


@wp.kernel
def offset_chunks(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    sizes: wp.array(dtype=wp.int32),
    which: wp.int32,
    length: wp.int32,
    sums: wp.array(dtype=wp.int32),
    offsets: wp.array(dtype=wp.int32),
):
    """Exclusive sums inside every chunk, from those over the chunks before it."""
    c = wp.tid() + first
    begin = c * length
    end = wp.min(begin + length, sizes[which])
    if begin >= end:
        return
    s = sums[c]
    for k in range(begin, end):
        offsets[k] = s
        s = s + counts[k]
