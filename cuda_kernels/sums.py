"""Sums, minima and maxima in a fixed order: over segments, then over chunks, then over islands.

A *chunk* is a run of at most 256 bodies of one island; islands own runs of chunks.
"""

import warp as wp

from cuda_kernels.affine import ZERO

wp.set_module_options({"enable_backward": False, "max_unroll": 4})


@wp.kernel
def segment_differences(
    first: wp.int32,
    segment: wp.array(dtype=wp.int32),
    group: wp.array(dtype=wp.int32),
    trial: wp.array(dtype=wp.float64),
    base: wp.array(dtype=wp.float64),
    difference: wp.array(dtype=wp.float64),
    size: wp.array(dtype=wp.float64),
):
    """Add to every body sum(trial - base) and sum(|trial| + |base|) over its items segment[group[b]] .. segment[group[b+1]]."""
    b = wp.tid() + first
    d = ZERO
    a = ZERO
    for k in range(segment[group[b]], segment[group[b + 1]]):
        d = d + (trial[k] - base[k])
        a = a + wp.abs(trial[k]) + wp.abs(base[k])
    difference[b] = difference[b] + d
    size[b] = size[b] + a


@wp.kernel
def listed_differences(
    first: wp.int32,
    starts: wp.array(dtype=wp.int32),
    entries: wp.array(dtype=wp.int32),
    trial: wp.array(dtype=wp.float64),
    base: wp.array(dtype=wp.float64),
    difference: wp.array(dtype=wp.float64),
    size: wp.array(dtype=wp.float64),
):
    """As `segment_differences`, over the even entries (2k stands for item k) of every body's list."""
    b = wp.tid() + first
    d = ZERO
    a = ZERO
    for e in range(starts[b], starts[b + 1]):
        if entries[e] % 2 == 0:
            k = entries[e] // 2
            d = d + (trial[k] - base[k])
            a = a + wp.abs(trial[k]) + wp.abs(base[k])
    difference[b] = difference[b] + d
    size[b] = size[b] + a


@wp.kernel
def body_differences(
    first: wp.int32,
    trial: wp.array(dtype=wp.float64),
    base: wp.array(dtype=wp.float64),
    difference: wp.array(dtype=wp.float64),
    size: wp.array(dtype=wp.float64),
):
    """Start the sums of every body with its own energies."""
    b = wp.tid() + first
    difference[b] = trial[b] - base[b]
    size[b] = wp.abs(trial[b]) + wp.abs(base[b])


@wp.kernel
def segment_minima(
    first: wp.int32,
    segment: wp.array(dtype=wp.int32),
    group: wp.array(dtype=wp.int32),
    values: wp.array(dtype=wp.float64),
    out: wp.array(dtype=wp.float64),
    start: wp.float64,
):
    """Smallest value of every body's items, `start` where it has none."""
    b = wp.tid() + first
    m = start
    for k in range(segment[group[b]], segment[group[b + 1]]):
        m = wp.min(m, values[k])
    out[b] = m


@wp.kernel
def dot_rows(
    first: wp.int32,
    a: wp.array2d(dtype=wp.float64),
    b: wp.array2d(dtype=wp.float64),
    out: wp.array(dtype=wp.float64),
):
    """a . b of every row (n, 12)."""
    k = wp.tid() + first
    s = ZERO
    for r in range(12):
        s = s + a[k, r] * b[k, r]
    out[k] = s


SUM = 0
MIN = 1
MAX = 2


@wp.kernel
def chunk_reduce(
    first: wp.int32,
    starts: wp.array(dtype=wp.int32),
    order: wp.array(dtype=wp.int32),
    values: wp.array(dtype=wp.float64),
    operation: wp.int32,
    out: wp.array(dtype=wp.float64),
):
    """Sum, minimum or maximum over the bodies order[starts[c] .. starts[c + 1]] of every chunk."""
    c = wp.tid() + first
    v = ZERO
    if operation != SUM:
        v = values[order[starts[c]]]
    for k in range(starts[c], starts[c + 1]):
        x = values[order[k]]
        if operation == SUM:
            v = v + x
        elif operation == MIN:
            v = wp.min(v, x)
        else:
            v = wp.max(v, x)
    out[c] = v


@wp.kernel
def island_reduce(
    first: wp.int32,
    starts: wp.array(dtype=wp.int32),
    values: wp.array(dtype=wp.float64),
    operation: wp.int32,
    out: wp.array(dtype=wp.float64),
):
    """The same over the chunks starts[i] .. starts[i + 1] of every island."""
    i = wp.tid() + first
    v = ZERO
    if operation != SUM:
        v = values[starts[i]]
    for k in range(starts[i], starts[i + 1]):
        if operation == SUM:
            v = v + values[k]
        elif operation == MIN:
            v = wp.min(v, values[k])
        else:
            v = wp.max(v, values[k])
    out[i] = v
