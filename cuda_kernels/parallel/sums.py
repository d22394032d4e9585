"""Sums, minima and maxima in a fixed order: over segments, then over chunks, then over islands.

A *chunk* is a run of at most 256 bodies of one island; islands own runs of chunks. On CUDA a warp shares a chunk, or an
island: its lanes take every 32nd value each, then join by a butterfly, always in the same order.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import warp as wp

from cuda_kernels.bodies.affine import ZERO
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)


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


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __shfl_xor_sync(0xffffffffu, v, distance);
#else
    return v;
#endif
""")
def from_lane(v: wp.float64, distance: wp.int32) -> wp.float64:
    """The value of the thread of a warp whose lane differs by the bit `distance`; on the processor a warp is one thread."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __shfl_xor_sync(0xffffffffu, v, distance);
#else
    return v;
#endif
""")
def from_lane(v: wp.int32, distance: wp.int32) -> wp.int32:  # noqa: F811
    """The same for integers."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __shfl_xor_sync(0xffffffffu, v, distance);
#else
    return v;
#endif
""")
def from_lane(v: wp.int64, distance: wp.int32) -> wp.int64:  # noqa: F811
    """The same for integers of 64 bits."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    for (int distance = 1; distance < lanes; distance *= 2) {
        const auto below = __shfl_up_sync(0xffffffffu, v, distance);
        if (lane >= distance)
            v += below;
    }
#endif
    return v;
""")
def up_to_lane(v: wp.int32, lane: wp.int32, lanes: wp.int32) -> wp.int32:
    """Sum over the lanes of a warp up to this one; all of them have to call."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    for (int distance = 1; distance < lanes; distance *= 2) {
        const auto below = __shfl_up_sync(0xffffffffu, v, distance);
        if (lane >= distance)
            v += below;
    }
#endif
    return v;
""")
def up_to_lane(v: wp.int64, lane: wp.int32, lanes: wp.int32) -> wp.int64:  # noqa: F811
    """The same for integers of 64 bits."""
    ...


@wp.func
def joined(a: Any, b: Any, operation: wp.int32):
    """Sum, smaller or larger one of two values."""
    if operation == SUM:
        return a + b
    if operation == MIN:
        return wp.min(a, b)
    return wp.max(a, b)


@wp.func
def over_lanes(v: Any, operation: wp.int32, lanes: wp.int32):
    """The values of `lanes` neighbouring threads, a power of two, taken together; all of them have to call."""
    distance = lanes / 2
    while distance > 0:
        v = joined(v, from_lane(v, distance), operation)
        distance = distance / 2
    return v


@wp.func
def opening(v: Any, operation: wp.int32, lane: wp.int32):
    """What a lane starts from, `v` being the first value of all: other lanes do not add it once more."""
    if operation == SUM and lane > 0:
        return type(v)(0)
    return v


def by_kind(function: Callable) -> dict[type, wp.Kernel]:
    """Kernels of a function whose `values` and `out` are of float64 and of int32, by the type.

    Two kernels, and not one with two overloads: Warp's capture on the processor tells kernels by their keys, and would take
    one overload for the other where a record has both.
    """
    kernels = {}
    for kind in (wp.float64, wp.int32):
        one = FunctionType(function.__code__, function.__globals__, function.__name__)
        arrays = dict.fromkeys(("values", "out"), wp.array(dtype=kind))
        one.__annotations__ = function.__annotations__ | arrays
        one.__doc__, one.__module__ = function.__doc__, function.__module__
        kernels[kind] = wp.Kernel(
            one, key=f"{function.__name__}_{kind.__name__}", module=wp.get_module(function.__module__)
        )
    return kernels


@by_kind
def chunk_reduce(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    workers: wp.int32,
    lanes: wp.int32,
    starts: wp.array(dtype=wp.int32),
    order: wp.array(dtype=wp.int32),
    values: wp.array(dtype=Any),
    operation: wp.int32,
    out: wp.array(dtype=Any),
):
    """Sum, minimum or maximum over the bodies order[starts[c] .. starts[c + 1]] of counts[1] chunks.

    A worker has `lanes` threads and takes every `workers`-th chunk.
    """
    t = wp.tid() + first
    lane = t % lanes
    c = t / lanes
    while c < counts[1]:
        begin = starts[c]
        v = opening(values[order[begin]], operation, lane)
        # the first lane has begun with the first body
        for k in range(begin + lane + lanes * wp.where(lane == 0, 1, 0), starts[c + 1], lanes):
            v = joined(v, values[order[k]], operation)
        v = over_lanes(v, operation, lanes)
        if lane == 0:
            out[c] = v
        c = c + workers


@by_kind
def island_reduce(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    workers: wp.int32,
    lanes: wp.int32,
    starts: wp.array(dtype=wp.int32),
    values: wp.array(dtype=Any),
    operation: wp.int32,
    out: wp.array(dtype=Any),
):
    """The same over the chunks starts[i] .. starts[i + 1] of counts[0] islands."""
    t = wp.tid() + first
    lane = t % lanes
    i = t / lanes
    while i < counts[0]:
        begin = starts[i]
        v = opening(values[begin], operation, lane)
        for k in range(begin + lane + lanes * wp.where(lane == 0, 1, 0), starts[i + 1], lanes):
            v = joined(v, values[k], operation)
        v = over_lanes(v, operation, lanes)
        if lane == 0:
            out[i] = v
        i = i + workers


@by_kind
def span_reduce(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    unit: wp.int32,
    length: wp.int32,
    lanes: wp.int32,
    values: wp.array(dtype=Any),
    operation: wp.int32,
    out: wp.array(dtype=Any),
):
    """The same over every `length` of the values, of which there is one for every `unit` islands of counts[0]."""
    t = wp.tid() + first
    lane = t % lanes
    s = t / lanes
    begin = s * length
    end = wp.min(begin + length, (counts[0] + unit - 1) / unit)
    if begin >= end:
        return
    v = opening(values[begin], operation, lane)
    for k in range(begin + lane + lanes * wp.where(lane == 0, 1, 0), end, lanes):
        v = joined(v, values[k], operation)
    v = over_lanes(v, operation, lanes)
    if lane == 0:
        out[s] = v
