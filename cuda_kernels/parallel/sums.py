"""Sums, minima and maxima in a fixed order: over segments, then over chunks, then over islands.

A *chunk* is a run of at most 256 bodies of one island; islands have runs of chunks. On CUDA a warp processes a chunk or an
island: each lane sums every 32nd value, then a butterfly combines the lanes in a fixed order.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import warp as wp

from cuda_kernels.bodies.affine import ONE, ZERO
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
    """Add differences as `segment_differences`, over the even entries (2k is item k) of every body's list."""
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


@wp.func
def smallest(values: wp.array(dtype=wp.float64), begin: wp.int32, end: wp.int32, start: wp.float64) -> wp.float64:
    """Return the smallest of values[begin .. end] and `start`."""
    m = start
    for k in range(begin, end):
        m = wp.min(m, values[k])
    return m


@wp.kernel
def segment_minima(
    first: wp.int32,
    segment: wp.array(dtype=wp.int32),
    group: wp.array(dtype=wp.int32),
    values: wp.array(dtype=wp.float64),
    out: wp.array(dtype=wp.float64),
):
    """Compute the smallest value, at most 1, of every body's items."""
    b = wp.tid() + first
    out[b] = smallest(values, segment[group[b]], segment[group[b + 1]], ONE)


@wp.kernel
def group_minima(
    first: wp.int32,
    segment: wp.array(dtype=wp.int32),
    values: wp.array(dtype=wp.float64),
    out: wp.array(dtype=wp.float64),
    start: wp.float64,
):
    """Compute the smallest value of every group of items, `start` without items."""
    k = wp.tid() + first
    out[k] = smallest(values, segment[k], segment[k + 1], start)


@wp.kernel
def dot_rows(
    first: wp.int32,
    a: wp.array2d(dtype=wp.float64),
    b: wp.array2d(dtype=wp.float64),
    out: wp.array(dtype=wp.float64),
):
    """Compute a . b of every row (n, 12)."""
    k = wp.tid() + first
    s = ZERO
    for r in range(12):
        s = s + a[k, r] * b[k, r]
    out[k] = s


SUM = 0
MIN = 1
MAX = 2


EXCHANGE = """
#if defined(__CUDA_ARCH__)
    return __shfl_xor_sync(0xffffffffu, v, distance);
#else
    return v;
#endif
"""

for _kind in (wp.float64, wp.int32, wp.int64):

    @wp.func_native(EXCHANGE)
    def from_lane(v: _kind, distance: wp.int32) -> _kind:
        """Return the value of the lane of the warp that differs by the bit `distance`; on the CPU a warp is one thread."""
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
def up_to_lane(v: wp.int64, lane: wp.int32, lanes: wp.int32) -> wp.int64:
    """Sum over the lanes of a warp up to this one; all of them must call this."""
    ...


@wp.func
def from_lane(v: wp.vec2d, distance: wp.int32) -> wp.vec2d:  # noqa: F811
    """The same for two numbers."""
    return wp.vec2d(from_lane(v[0], distance), from_lane(v[1], distance))


vec13 = wp.types.vector(length=13, dtype=wp.float64)
"""Numbers of an island that renumbering carries (`cuda_kernels.step.newton.gather_numbers`)."""


@wp.func
def from_lane(v: vec13, distance: wp.int32) -> vec13:  # noqa: F811
    """The same for thirteen numbers."""
    out = vec13()
    for k in range(13):
        out[k] = from_lane(v[k], distance)
    return out


@wp.func
def joined(a: Any, b: Any, operation: wp.int32):
    """Return the sum, minimum or maximum of two values."""
    if operation == SUM:
        return a + b
    if operation == MIN:
        return wp.min(a, b)
    return wp.max(a, b)


@wp.func
def over_lanes(v: Any, operation: wp.int32, lanes: wp.int32):
    """Reduce the values of `lanes` neighbouring threads, a power of two; all of them must call this."""
    distance = lanes / 2
    while distance > 0:
        v = joined(v, from_lane(v, distance), operation)
        distance = distance / 2
    return v


@wp.func
def initial_value(v: Any, operation: wp.int32, lane: wp.int32):
    """Return the initial value of a lane: `v`, the first value of all, must be summed only once."""
    if operation == SUM and lane > 0:
        return type(v)(0)
    return v


@wp.func
def over_span(
    values: wp.array(dtype=Any), begin: wp.int32, end: wp.int32, operation: wp.int32, lane: wp.int32, lanes: wp.int32
):
    """Reduce values[begin .. end] by `lanes` neighbouring threads; all of them must call this."""
    v = initial_value(values[begin], operation, lane)
    # the first lane has included the first value
    for k in range(begin + lane + lanes * wp.where(lane == 0, 1, 0), end, lanes):
        v = joined(v, values[k], operation)
    return over_lanes(v, operation, lanes)


def by_kind(*kinds: type) -> Callable[[Callable], dict[type, wp.Kernel]]:
    """Return a decorator that makes kernels of a function for arrays of some types, by type.

    These are kernels instead of overloads, because Warp's capture on the CPU identifies kernels by their keys and
    confuses overloads in one record.
    """

    def kernels(function: Callable) -> dict[type, wp.Kernel]:
        return {kind: kernel_of(function, kind) for kind in kinds}

    return kernels


def kernel_of(function: Callable, kind: type) -> wp.Kernel:
    """Return the kernel of a function whose arrays of any type have this type."""
    one = FunctionType(function.__code__, function.__globals__, function.__name__)
    one.__annotations__ = {
        name: wp.array(dtype=kind) if isinstance(hint, wp.array) and hint.dtype is Any else hint
        for name, hint in function.__annotations__.items()
    }
    one.__doc__, one.__module__ = function.__doc__, function.__module__
    return wp.Kernel(one, key=f"{function.__name__}_{kind.__name__}", module=wp.get_module(function.__module__))


@wp.struct
class Chunks:
    """Islands of bodies, divided into chunks.

    counts (2,): numbers of islands and of chunks; starts: first place of every chunk in `order`, the bodies by islands; island:
    of every body; island_starts: first chunk of every island; stored: chunks of every island with a result, 0 between launches.
    """

    counts: wp.array(dtype=wp.int32)
    starts: wp.array(dtype=wp.int32)
    order: wp.array(dtype=wp.int32)
    island: wp.array(dtype=wp.int32)
    island_starts: wp.array(dtype=wp.int32)
    stored: wp.array(dtype=wp.int32)


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    __threadfence();
    __syncwarp();
#endif
""")
def order_memory():
    """Make writes before visible to other threads, and theirs to reads after; all lanes of a warp must call this."""
    ...


@wp.func
def over_chunk(k: Chunks, c: wp.int32, values: wp.array(dtype=Any), operation: wp.int32, lane: wp.int32, lanes: wp.int32):
    """Reduce the values of the bodies of a chunk by `lanes` neighbouring threads; all of them must call this."""
    begin = k.starts[c]
    v = initial_value(values[k.order[begin]], operation, lane)
    # the first lane has included the first body
    for m in range(begin + lane + lanes * wp.where(lane == 0, 1, 0), k.starts[c + 1], lanes):
        v = joined(v, values[k.order[m]], operation)
    return over_lanes(v, operation, lanes)


@wp.func
def is_last(stored: wp.array(dtype=wp.int32), place: wp.int32, count: wp.int32, lane: wp.int32, lanes: wp.int32):
    """Count one of `count` results that the first lane has stored; return whether it is the last one.

    All results can then be read. stored[place] is 0 before the first and after the last result. All lanes must call this."""
    order_memory()
    number = wp.int32(0)
    if lane == 0:
        number = wp.atomic_add(stored, place, 1) + 1
        if number == count:
            stored[place] = 0
    last = over_lanes(number, MAX, lanes) == count
    order_memory()
    return last


@wp.func
def over_island(
    k: Chunks, c: wp.int32, own: wp.int32, v: Any, results: wp.array(dtype=Any), operation: wp.int32, lane: wp.int32,
    lanes: wp.int32,
):  # fmt: skip
    """Store the result `v` of a chunk of the island `own`; return whether all of the island are stored, and their reduction.

    The lanes of the chunk that is stored last reduce the results in the order of the chunks."""
    begin = k.island_starts[own]
    end = k.island_starts[own + 1]
    ends = True
    if end - begin > 1:
        if lane == 0:
            results[c] = v
        ends = is_last(k.stored, own, end - begin, lane, lanes)
        if ends:
            v = over_span(results, begin, end, operation, lane, lanes)
    return ends, v


@by_kind(wp.float64, vec13)
def island_reduce(
    first: wp.int32,
    workers: wp.int32,
    lanes: wp.int32,
    k: Chunks,
    values: wp.array(dtype=Any),
    results: wp.array(dtype=Any),
    operation: wp.int32,
    out: wp.array(dtype=Any),
):
    """Reduce the bodies of every island to their sum, minimum or maximum; `results` (chunks,) is scratch memory.

    A worker has `lanes` threads and processes every `workers`-th chunk. On the CPU one thread must run all.
    """
    t = wp.tid() + first
    lane = t % lanes
    c = t / lanes
    while c < k.counts[1]:
        own = k.island[k.order[k.starts[c]]]
        v = over_chunk(k, c, values, operation, lane, lanes)
        ends, whole = over_island(k, c, own, v, results, operation, lane, lanes)
        if ends and lane == 0:
            out[own] = whole
        c = c + workers


@wp.kernel
def span_reduce(
    first: wp.int32,
    spans: wp.int32,
    length: wp.int32,
    lanes: wp.int32,
    counts: wp.array(dtype=wp.int32),
    values: wp.array(dtype=wp.float64),
    results: wp.array(dtype=wp.float64),
    stored: wp.array(dtype=wp.int32),
    operation: wp.int32,
    out: wp.array(dtype=wp.float64),
):
    """Reduce counts[0] values to their sum, minimum or maximum, out[0], first every `length` of them, by `lanes` threads each.

    `results` (spans,) is scratch memory; `stored` (1,) is 0. On the CPU one thread must run all."""
    t = wp.tid() + first
    lane = t % lanes
    s = t / lanes
    count = counts[0]
    begin = s * length
    if begin < count:
        v = over_span(values, begin, wp.min(begin + length, count), operation, lane, lanes)
        if lane == 0:
            results[s] = v
    if is_last(stored, 0, spans, lane, lanes):
        v = over_span(results, 0, (count + length - 1) / length, operation, lane, lanes)
        if lane == 0:
            out[0] = v
