"""Totals of counts in 64 bits, and whether as much as that fits: offsets of 32 bits cannot tell when they overflow."""

import warp as wp

wp.set_module_options({"enable_backward": False, "max_unroll": 4})


@wp.kernel
def partial_totals(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    sizes: wp.array(dtype=wp.int32),
    which: wp.int32,
    parts: wp.int32,
    sums: wp.array(dtype=wp.int64),
):
    """Sum of every `parts`-th count, from part to part one further on, so that neighbouring threads read neighbouring
    counts; sizes[which] counts are there."""
    t = wp.tid() + first
    total = wp.int64(0)
    for k in range(t, sizes[which], parts):
        total = total + wp.int64(counts[k])
    sums[t] = total


@wp.kernel
def settle_total(
    first: wp.int32,
    sums: wp.array(dtype=wp.int64),
    parts: wp.int32,
    stage: wp.int32,
    room: wp.int32,
    totals: wp.array(dtype=wp.int64),
    counts: wp.array(dtype=wp.int32),
    which: wp.int32,
):
    """One thread: totals[stage] becomes the sum of all parts, where that is more than it was, and counts[which] the same if
    there is room for it, else 0, so that whatever is launched over it returns at once."""
    total = totals[stage]
    sum = wp.int64(0)
    for t in range(parts):
        sum = sum + sums[t]
    total = wp.max(total, sum)
    totals[stage] = total
    if total <= wp.int64(room):
        counts[which] = wp.int32(total)
    else:
        counts[which] = 0
