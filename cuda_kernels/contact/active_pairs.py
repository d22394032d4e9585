"""Active pairs among the listed body pairs, their runs of items, and the entries of every body, formed on the device.

Pairs beyond the capacity are dropped; their total number is reported.
"""

import warp as wp

from cuda_kernels.contact.blocks import Runs
from cuda_kernels.contact.parts import bits_of, count_bits
from cuda_kernels.options import OPTIONS
from cuda_kernels.parallel.chunks import lower_bound

wp.set_module_options(OPTIONS)
LOADED_FOR = ("contact",)


@wp.struct
class Items:
    """Active parts of items (s,) by the places of runs: item, and part of it."""

    item: wp.array(dtype=wp.int32)
    part: wp.array(dtype=wp.int32)


@wp.func
def parts_of(parts: wp.array(dtype=wp.int64), e: wp.int32, active: bool) -> wp.int32:
    """Return the bits of an item's nonzero parts; a single part without an array."""
    if not active:
        return 0
    if parts.shape[0] == 0:
        return 1
    return bits_of(parts[e])


@wp.kernel
def count_runs(
    first: wp.int32,
    pairs: wp.array(dtype=wp.vec2i),
    listed: wp.array(dtype=wp.int32),
    done: wp.array(dtype=wp.int32),
    segment: wp.array(dtype=wp.int32),
    values: wp.array(dtype=wp.float64),
    within: wp.float64,
    parts: wp.array(dtype=wp.int64),
    run: wp.int32,
    active: wp.array(dtype=wp.int32),
    further: wp.array(dtype=wp.int32),
):
    """Mark listed pairs with an item value below `within`, its part nonzero, and a body that is not done; count their runs after
    the first, of at most `run` parts of such items."""
    k = wp.tid() + first
    if k >= listed[0]:
        return
    further[k] = 0
    active[k] = 0
    if done[pairs[k][0]] != 0 and done[pairs[k][1]] != 0:
        return
    count = wp.int32(0)
    for e in range(segment[k], segment[k + 1]):
        count = count + count_bits(parts_of(parts, e, values[e] < within))
    if count > 0:
        active[k] = 1
        further[k] = (count - 1) // run


@wp.kernel
def tally(
    first: wp.int32,
    listed: wp.array(dtype=wp.int32),
    slot: wp.array(dtype=wp.int32),
    behind: wp.array(dtype=wp.int32),
    pair_capacity: wp.int32,
    run_capacity: wp.int32,
    needed: wp.array(dtype=wp.int32),
    counts: wp.array(dtype=wp.int32),
):
    """Set needed = [active pairs, runs] from the totals of `slot` and `behind`, and counts = [pairs, runs] within the capacities,
    that for runs being no smaller than that for pairs; one thread."""
    n = listed[0]
    needed[0] = slot[n]
    needed[1] = slot[n] + behind[n]
    counts[0] = wp.min(needed[0], pair_capacity)
    counts[1] = wp.min(counts[0] + needed[1] - needed[0], run_capacity)


@wp.kernel
def list_runs(
    first: wp.int32,
    pairs: wp.array(dtype=wp.vec2i),
    listed: wp.array(dtype=wp.int32),
    segment: wp.array(dtype=wp.int32),
    values: wp.array(dtype=wp.float64),
    within: wp.float64,
    parts: wp.array(dtype=wp.int64),
    slot: wp.array(dtype=wp.int32),
    behind: wp.array(dtype=wp.int32),
    counts: wp.array(dtype=wp.int32),
    run: wp.int32,
    row: wp.array(dtype=wp.int32),
    column: wp.array(dtype=wp.int32),
    rest: wp.array(dtype=wp.int32),
    runs: Runs,
    items: Items,
):
    """List the active pairs, as many as counts = [pairs, runs], and the parts of their active items in the places of their runs,
    `run` places each.

    `slot` and `behind` are exclusive sums over the listed pairs of `count_runs`; `rest` (pairs + 1,) is `behind` of the
    active pairs.
    """
    k = wp.tid() + first
    if k >= listed[0]:
        return
    n = slot[k]
    if slot[k + 1] == n or n >= counts[0]:
        return
    row[n] = pairs[k][0]
    column[n] = pairs[k][1]
    further = wp.min(behind[k], counts[1] - counts[0])
    stop = wp.min(behind[k + 1], counts[1] - counts[0])
    rest[n] = further
    rest[n + 1] = stop
    t = n
    place = t * run
    runs.pair[t] = k
    runs.begin[t] = place
    for e in range(segment[k], segment[k + 1]):
        bits = parts_of(parts, e, values[e] < within)
        m = wp.int32(0)
        while bits != 0:
            if (bits & 1) != 0:
                if place == (t + 1) * run and further < stop:
                    runs.end[t] = place
                    t = counts[0] + further
                    further = further + 1
                    place = t * run
                    runs.pair[t] = k
                    runs.begin[t] = place
                # beyond the capacity the last ones are dropped
                if place < (t + 1) * run:
                    items.item[place] = e
                    items.part[place] = m
                    place = place + 1
            bits = bits >> 1
            m = m + 1
    runs.end[t] = place


@wp.kernel
def key_columns(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    pairs: wp.array(dtype=wp.vec2i),
    fixed: wp.array(dtype=wp.int32),
    n: wp.int32,
    keys: wp.array(dtype=wp.int32),
    order: wp.array(dtype=wp.int32),
):
    """Set the keys of counts[0] pairs to their column bodies, n for fixed ones, which sorts these last."""
    k = wp.tid() + first
    if k >= counts[0]:
        return
    j = pairs[k][1]
    keys[k] = wp.where(fixed[j] != 0, n, j)
    order[k] = k


@wp.kernel
def key_starts(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    keys: wp.array(dtype=wp.int32),
    starts: wp.array(dtype=wp.int32),
):
    """Find the first place of every body (n + 1,) in counts[0] sorted keys."""
    b = wp.tid() + first
    starts[b] = lower_bound(keys, 0, counts[0], b)


@wp.struct
class Ends:
    """The listed pairs of every body: group[b] .. group[b + 1] with it as row, and, for bodies that are not fixed,
    order[starts[b]] .. order[starts[b + 1]] with it as column."""

    group: wp.array(dtype=wp.int32)
    starts: wp.array(dtype=wp.int32)
    order: wp.array(dtype=wp.int32)


@wp.kernel
def count_entries(
    first: wp.int32,
    ends: Ends,
    slot: wp.array(dtype=wp.int32),
    counts: wp.array(dtype=wp.int32),
    entries: wp.array(dtype=wp.int32),
):
    b = wp.tid() + first
    capacity = counts[0]
    count = wp.min(slot[ends.group[b + 1]], capacity) - wp.min(slot[ends.group[b]], capacity)
    for e in range(ends.starts[b], ends.starts[b + 1]):
        k = ends.order[e]
        if slot[k + 1] > slot[k] and slot[k] < capacity:
            count = count + 1
    entries[b] = count


@wp.kernel
def list_entries(
    first: wp.int32,
    ends: Ends,
    slot: wp.array(dtype=wp.int32),
    counts: wp.array(dtype=wp.int32),
    starts: wp.array(dtype=wp.int32),
    entries: wp.array(dtype=wp.int32),
):
    """List the entries of every body from starts[b] on: 2n for pairs n with it as row, then 2n + 1 for those with it as
    column."""
    b = wp.tid() + first
    capacity = counts[0]
    e = starts[b]
    for n in range(wp.min(slot[ends.group[b]], capacity), wp.min(slot[ends.group[b + 1]], capacity)):
        entries[e] = 2 * n
        e = e + 1
    for m in range(ends.starts[b], ends.starts[b + 1]):
        k = ends.order[m]
        if slot[k + 1] > slot[k] and slot[k] < capacity:
            entries[e] = 2 * slot[k] + 1
            e = e + 1
