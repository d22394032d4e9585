"""Reuse of a candidate list between iterates, and when it is renewed within a step.

The candidates of a pair are complete until its two bodies may have approached each other by the margin of the last search.
Bodies that move together use no margin.
"""

import warp as wp

from cuda_kernels.bodies.affine import TWO, ZERO, Path, approach
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)


@wp.func
def used(path: Path, island: wp.array(dtype=wp.int32), alpha: wp.array(dtype=wp.float64), pair: wp.vec2i) -> wp.float64:
    """Return the margin [m] that a pair may use on a path up to alpha of its island."""
    return alpha[island[pair[0]]] * approach(path, pair[0], pair[1])


@wp.kernel
def world_motions(
    first: wp.int32,
    world: wp.array(dtype=wp.int32),
    held: wp.array(dtype=wp.int32),
    island: wp.array(dtype=wp.int32),
    motion: wp.array(dtype=wp.float64),
    out: wp.array(dtype=wp.float64),
):
    """Compute the largest motion [m] of the islands (islands,) of every world (w,), by its bodies that are not held."""
    b = wp.tid() + first
    if held[b] == 0:
        m = motion[island[b]]
        # the maximum does not depend on the order; the comparison avoids most of the atomics
        if not (m <= out[world[b]]):
            wp.atomic_max(out, world[b], m)


@wp.kernel
def set_margins(
    first: wp.int32,
    motion: wp.array(dtype=wp.float64),
    over: wp.float64,
    least: wp.array(dtype=wp.float64),
    most: wp.array(dtype=wp.float64),
    margin: wp.array(dtype=wp.float64),
):
    """Set the margins [m] of the worlds (w,) to `over` times their motions, within bounds (w,)."""
    w = wp.tid() + first
    margin[w] = wp.min(wp.max(least[w], over * motion[w]), most[w])


@wp.kernel
def grow(
    first: wp.int32,
    margin: wp.array(dtype=wp.float64),
    minimum: wp.float64,
    lacks: wp.array(dtype=wp.int32),
    grown: wp.array(dtype=wp.float64),
    slack: wp.array(dtype=wp.float64),
    searched: wp.array(dtype=wp.int32),
):
    """Set the enlargement of the boxes of the bodies of every world (w,) for a list with a margin [m]; reset the slack of
    searched worlds."""
    w = wp.tid() + first
    grown[w] = wp.float64(0.5) * (margin[w] + minimum) * wp.float64(1.0001)
    if lacks[w] != 0:
        slack[w] = margin[w]
        searched[w] = 1


@wp.kernel
def test_slack(
    first: wp.int32,
    motion: wp.array(dtype=wp.float64),
    slack: wp.array(dtype=wp.float64),
    covered: wp.array(dtype=wp.int32),
    searched: wp.array(dtype=wp.int32),
    lacks: wp.array(dtype=wp.int32),
):
    """Mark worlds (w,) whose list does not cover (`lacks`) a path with a largest motion of a vertex `motion` [m], and clear
    `covered`, initially 1, if there is one. Worlds with a negative motion keep the path that their list covers."""
    w = wp.tid() + first
    if motion[w] < ZERO:
        lacks[w] = 0
        return
    is_uncovered = wp.where(slack[w] >= TWO * motion[w], 0, 1)
    lacks[w] = is_uncovered
    searched[w] = is_uncovered
    if is_uncovered != 0:
        covered[0] = 0


@wp.kernel
def test_margins(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    pairs: wp.array(dtype=wp.vec2i),
    world: wp.array(dtype=wp.int32),
    path: Path,
    island: wp.array(dtype=wp.int32),
    limit: wp.array(dtype=wp.float64),
    motion: wp.array(dtype=wp.float64),
    remaining: wp.array(dtype=wp.float64),
    covered: wp.array(dtype=wp.int32),
    searched: wp.array(dtype=wp.int32),
    lacks: wp.array(dtype=wp.int32),
):
    """Clear `covered` for a path, up to the limits of the islands, that exceeds the margin of a pair; motion: as in `test_slack`.

    All writing threads write the same value. A path that is not covered must be searched before it is followed.
    """
    k = wp.tid() + first
    if k >= counts[0]:
        return
    w = world[pairs[k][0]]
    if lacks[w] != 0 or motion[w] < ZERO:
        return
    if not (remaining[k] - used(path, island, limit, pairs[k]) >= ZERO):
        covered[0] = 0
        searched[w] = 1
        lacks[w] = 1


@wp.kernel
def subtract_motion(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    pairs: wp.array(dtype=wp.vec2i),
    world: wp.array(dtype=wp.int32),
    path: Path,
    motion: wp.array(dtype=wp.float64),
    island: wp.array(dtype=wp.int32),
    alpha: wp.array(dtype=wp.float64),
    searched: wp.array(dtype=wp.int32),
    lacks: wp.array(dtype=wp.int32),
    kept: wp.array(dtype=wp.int32),
    slack: wp.array(dtype=wp.float64),
    remaining: wp.array(dtype=wp.float64),
):
    """Subtract the motion on a path from the slack of every world (w,), and from every pair's margin; motion: largest of a vertex
    [m].

    On the path that was searched, only the pairs that the search has kept from the old list lose margin, and none in worlds that
    keep their path (`test_slack`)."""
    k = wp.tid() + first
    if k < slack.shape[0]:
        if searched[k] == 0:
            slack[k] = slack[k] - TWO * motion[k]
    if k >= counts[0]:
        return
    w = world[pairs[k][0]]
    if searched[w] == 0 or (lacks[w] != 0 and kept[k] >= 0):
        remaining[k] = remaining[k] - used(path, island, alpha, pairs[k])


@wp.struct
class OldList:
    """The list before a renewal: counts = [pairs, candidates], 0 if they are not reusable; `number` of every pair in the new
    list, -1 if its candidates are not kept."""

    counts: wp.array(dtype=wp.int32)
    pairs: wp.array(dtype=wp.vec2i)
    group: wp.array(dtype=wp.int32)
    remaining: wp.array(dtype=wp.float64)
    segment: wp.array(dtype=wp.int32)
    number: wp.array(dtype=wp.int32)
    items: wp.array(dtype=wp.vec4i)


@wp.kernel
def match_pairs(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    pairs: wp.array(dtype=wp.vec2i),
    path: Path,
    island: wp.array(dtype=wp.int32),
    limit: wp.array(dtype=wp.float64),
    old: OldList,
    world: wp.array(dtype=wp.int32),
    lacks: wp.array(dtype=wp.int32),
    margin: wp.array(dtype=wp.float64),
    reserve: wp.float64,
    kept: wp.array(dtype=wp.int32),
    remaining: wp.array(dtype=wp.float64),
):
    """Find the index of every pair in the old list, if its margin suffices for `reserve` such paths or the list of its world is
    complete; else -1 for a new search with a full margin."""
    k = wp.tid() + first
    if k >= counts[0]:
        return
    kept[k] = -1
    w = world[pairs[k][0]]
    remaining[k] = margin[w]
    if old.counts[0] == 0:
        return
    lo = old.group[pairs[k][0]]
    end = old.group[pairs[k][0] + 1]
    hi = end
    while lo < hi:
        mid = (lo + hi) // 2
        if old.pairs[mid][1] < pairs[k][1]:
            lo = mid + 1
        else:
            hi = mid
    if lo < end:
        if old.pairs[lo][1] == pairs[k][1]:
            if lacks[w] == 0 or old.remaining[lo] >= reserve * used(path, island, limit, pairs[k]):
                kept[k] = lo
                remaining[k] = old.remaining[lo]
                old.number[lo] = k


@wp.kernel
def pair_sizes(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    kept: wp.array(dtype=wp.int32),
    old: OldList,
    start: wp.array(dtype=wp.int32),
    offset: wp.array(dtype=wp.int32),
    size: wp.array(dtype=wp.int32),
):
    """Count the candidates of every pair: old ones, or those that its items (from `start`) found; there are counts[2] items."""
    k = wp.tid() + first
    if k >= counts[0]:
        return
    size[k] = 0
    if kept[k] >= 0:
        size[k] = old.segment[kept[k] + 1] - old.segment[kept[k]]
    elif counts[2] > 0:
        size[k] = offset[start[k + 1]] - offset[start[k]]


@wp.kernel
def copy_kept(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    old: OldList,
    batch: wp.int32,
    segment: wp.array(dtype=wp.int32),
    candidates: wp.array(dtype=wp.vec4i),
):
    """Copy old candidates of the kept pairs with the pair's new index, unless there is no capacity, counts[1] = 0.

    One thread per `batch` candidates, because a pair has one or thousands."""
    t = wp.tid() + first
    if counts[1] == 0:
        return
    pair = wp.int32(-1)
    k = wp.int32(-1)
    shift = wp.int32(0)
    for m in range(batch * t, wp.min(batch * (t + 1), old.counts[1])):
        c = old.items[m]
        if c[0] != pair:
            pair = c[0]
            k = old.number[pair]
            if k >= 0:
                shift = segment[k] - old.segment[pair]
        if k >= 0:
            candidates[m + shift] = wp.vec4i(k, c[1], c[2], c[3])
