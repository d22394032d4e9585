"""Which of the listed body pairs are active, their runs of candidates, and every body's entries, without the host.

Pairs that there is no capacity for are left out; how many there are in all is known afterwards.
"""

import warp as wp

from cuda_kernels.contact.blocks import Runs
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)
LOADED_FOR = ("contact",)


@wp.func
def any_below(values: wp.array(dtype=wp.float64), begin: wp.int32, end: wp.int32, within: wp.float64) -> bool:
    """Whether one of values[begin .. end] lies below `within`."""
    for e in range(begin, end):
        if values[e] < within:
            return True
    return False


@wp.kernel
def count_runs(
    first: wp.int32,
    pairs: wp.array(dtype=wp.vec2i),
    listed: wp.array(dtype=wp.int32),
    done: wp.array(dtype=wp.int32),
    segment: wp.array(dtype=wp.int32),
    values: wp.array(dtype=wp.float64),
    within: wp.float64,
    run: wp.int32,
    active: wp.array(dtype=wp.int32),
    further: wp.array(dtype=wp.int32),
):
    """Per listed pair: 1 if a candidate's value lies below `within` and a body is not done, and its runs after the first,
    of at most `run` candidates."""
    k = wp.tid() + first
    if k >= listed[0]:
        return
    further[k] = 0
    active[k] = 0
    if done[pairs[k][0]] != 0 and done[pairs[k][1]] != 0:
        return
    begin = segment[k]
    end = segment[k + 1]
    if any_below(values, begin, end, within):
        active[k] = 1
        further[k] = (end - begin - 1) // run


@wp.kernel
def tally(
    first: wp.int32,
    listed: wp.array(dtype=wp.int32),
    slot: wp.array(dtype=wp.int32),
    behind: wp.array(dtype=wp.int32),
    needed: wp.array(dtype=wp.int32),
):
    """One thread: needed = [active pairs, runs], from the totals of `slot` and `behind`."""
    n = listed[0]
    needed[0] = slot[n]
    needed[1] = slot[n] + behind[n]


@wp.kernel
def clamp(
    first: wp.int32,
    needed: wp.array(dtype=wp.int32),
    pair_capacity: wp.int32,
    run_capacity: wp.int32,
    counts: wp.array(dtype=wp.int32),
):
    """One thread: counts = [pairs, runs] that there is capacity for; the capacity for runs is no smaller than that for pairs."""
    counts[0] = wp.min(needed[0], pair_capacity)
    counts[1] = wp.min(counts[0] + needed[1] - needed[0], run_capacity)


@wp.kernel
def list_runs(
    first: wp.int32,
    pairs: wp.array(dtype=wp.vec2i),
    listed: wp.array(dtype=wp.int32),
    segment: wp.array(dtype=wp.int32),
    slot: wp.array(dtype=wp.int32),
    behind: wp.array(dtype=wp.int32),
    counts: wp.array(dtype=wp.int32),
    run: wp.int32,
    row: wp.array(dtype=wp.int32),
    column: wp.array(dtype=wp.int32),
    runs: Runs,
    rest: wp.array(dtype=wp.int32),
):
    """The active pairs side by side with their runs of at most `run` candidates, as many as counts = [pairs, runs] says.

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
    b = segment[k]
    end = segment[k + 1]
    runs.pair[n] = k
    runs.begin[n] = b
    runs.end[n] = wp.min(b + run, end)
    last = counts[1] - counts[0]
    next = wp.min(behind[k], last)
    stop = wp.min(behind[k + 1], last)
    rest[n] = next
    rest[n + 1] = stop
    for m in range(next, stop):
        b = b + run
        runs.pair[counts[0] + m] = k
        runs.begin[counts[0] + m] = b
        runs.end[counts[0] + m] = wp.min(b + run, end)


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
    """Counts[0] pairs keyed by their column body; behind all n bodies where that is fixed."""
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
    """First place of every body (n + 1,) in counts[0] sorted keys."""
    b = wp.tid() + first
    lo = wp.int32(0)
    hi = counts[0]
    while lo < hi:
        mid = (lo + hi) // 2
        if keys[mid] < b:
            lo = mid + 1
        else:
            hi = mid
    starts[b] = lo


@wp.struct
class Ends:
    """The listed pairs of every body: those group[b] .. group[b + 1] in whose row it is, and, of bodies that are not fixed,
    those order[starts[b]] .. order[starts[b + 1]] in whose column."""

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
    """Active pairs of every body."""
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
    """Entries of every body, from starts[b] on: 2n for the pairs n in whose row it is, then 2n + 1 for those in whose
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
