"""What of a candidate list still serves, from iterate to iterate and when it is renewed within a step.

A body pair searched with a margin keeps all its candidates complete until its two bodies may have come closer by that
margin on the paths since, whatever other bodies do: bodies that move together use up nothing.
"""

import warp as wp

from cuda_kernels.bodies.affine import TWO, ZERO, Path, approach
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)


@wp.func
def used(path: Path, island: wp.array(dtype=wp.int32), alpha: wp.array(dtype=wp.float64), pair: wp.vec2i) -> wp.float64:
    """Margin [m] that a pair may use up on a path, followed up to alpha of its island."""
    return alpha[island[pair[0]]] * approach(path, pair[0], pair[1])


@wp.kernel
def begin_slack(
    first: wp.int32, margin: wp.float64, slack: wp.array(dtype=wp.float64), searched: wp.array(dtype=wp.int32)
):
    """A path was searched with a margin [m], in all worlds (w,)."""
    w = wp.tid() + first
    slack[w] = margin
    searched[w] = 1


@wp.kernel
def world_motions(
    first: wp.int32,
    world: wp.array(dtype=wp.int32),
    held: wp.array(dtype=wp.int32),
    island: wp.array(dtype=wp.int32),
    motion: wp.array(dtype=wp.float64),
    out: wp.array(dtype=wp.float64),
):
    """Largest motion [m] of the islands (islands,) of every world (w,), which are those of its bodies that are not held."""
    b = wp.tid() + first
    if held[b] == 0:
        m = motion[island[b]]
        # largest of all in any order; asking first spares most of the atomics
        if not (m <= out[world[b]]):
            wp.atomic_max(out, world[b], m)


@wp.kernel
def set_margins(
    first: wp.int32,
    motion: wp.array(dtype=wp.float64),
    over: wp.float64,
    least: wp.float64,
    most: wp.float64,
    margin: wp.array(dtype=wp.float64),
):
    """Margins [m] of the worlds (w,) from their motions, so many times them."""
    w = wp.tid() + first
    margin[w] = wp.min(wp.max(least, over * motion[w]), most)


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
    """How far the boxes of the bodies of every world (w,) grow for a list with a margin [m]; of those that are searched, which
    have their margin then."""
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
    """Which worlds (w,) the list of pairs does not cover (`lacks`) on a path along which no vertex moves further than `motion`
    [m]; `covered`, which is 1 before where there are several, says whether there are none."""
    w = wp.tid() + first
    lacking = wp.where(slack[w] >= TWO * motion[w], 0, 1)
    lacks[w] = lacking
    searched[w] = lacking
    if slack.shape[0] == 1:
        covered[0] = 1 - lacking
    elif lacking != 0:
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
    left: wp.array(dtype=wp.float64),
    covered: wp.array(dtype=wp.int32),
    searched: wp.array(dtype=wp.int32),
    lacks: wp.array(dtype=wp.int32),
):
    """Uncover a path, followed up to the limits of the islands, that leaves a pair less than no margin.

    All threads that write, write the same. A path that is not covered has to be searched before it is followed.
    """
    k = wp.tid() + first
    if k >= counts[0]:
        return
    w = world[pairs[k][0]]
    if lacks[w] != 0:
        return
    if not (left[k] - used(path, island, limit, pairs[k]) >= ZERO):
        covered[0] = 0
        searched[w] = 1
        lacks[w] = 1


@wp.kernel
def spend_margins(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    pairs: wp.array(dtype=wp.vec2i),
    world: wp.array(dtype=wp.int32),
    path: Path,
    motion: wp.array(dtype=wp.float64),
    island: wp.array(dtype=wp.int32),
    alpha: wp.array(dtype=wp.float64),
    searched: wp.array(dtype=wp.int32),
    kept: wp.array(dtype=wp.int32),
    slack: wp.array(dtype=wp.float64),
    left: wp.array(dtype=wp.float64),
):
    """Take from the slack of every world (w,), and from every pair's margin, what was used up on a path along which no vertex
    moved further than `motion` [m]; where it is the one that was searched, only pairs that are kept lose something."""
    k = wp.tid() + first
    if k < slack.shape[0]:
        if searched[k] == 0:
            slack[k] = slack[k] - TWO * motion[k]
    if k >= counts[0]:
        return
    if searched[world[pairs[k][0]]] == 0 or kept[k] >= 0:
        left[k] = left[k] - used(path, island, alpha, pairs[k])


@wp.struct
class OldList:
    """The list before a renewal: counts = [pairs, candidates], none where they do not serve; `number` of every pair in the
    new list, -1 where its candidates are not kept."""

    counts: wp.array(dtype=wp.int32)
    pairs: wp.array(dtype=wp.vec2i)
    group: wp.array(dtype=wp.int32)
    left: wp.array(dtype=wp.float64)
    segment: wp.array(dtype=wp.int32)
    number: wp.array(dtype=wp.int32)
    items: wp.array(dtype=wp.vec4i)


@wp.kernel
def set_aside(
    first: wp.int32,
    pairs: wp.array(dtype=wp.vec2i),
    left: wp.array(dtype=wp.float64),
    segment: wp.array(dtype=wp.int32),
    old: OldList,
):
    """Copy what the list knows of every pair."""
    k = wp.tid() + first
    old.pairs[k] = pairs[k]
    old.left[k] = left[k]
    old.segment[k] = segment[k]
    # twice the same, but for the last one
    old.segment[k + 1] = segment[k + 1]
    old.number[k] = -1


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
    left: wp.array(dtype=wp.float64),
):
    """Number of every pair in the old list where its margin lasts for so many such paths, or its world lacks nothing, -1 where
    it is searched anew, with a full margin."""
    k = wp.tid() + first
    if k >= counts[0]:
        return
    kept[k] = -1
    w = world[pairs[k][0]]
    left[k] = margin[w]
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
            if lacks[w] == 0 or old.left[lo] >= reserve * used(path, island, limit, pairs[k]):
                kept[k] = lo
                left[k] = old.left[lo]
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
    """Candidates of every pair: those it had, or those that its items (from `start`) found; counts[2] items were there."""
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
    """Old candidates of the pairs that are kept, under the pair's new number; nothing where there is no capacity,
    counts[1] = 0. A thread per `batch` candidates, because a pair has one or thousands."""
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
