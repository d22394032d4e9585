"""What of a candidate list still serves, from iterate to iterate and when it is renewed within a step.

A body pair searched with a margin keeps all its candidates complete until its two bodies may have come closer by that
margin on the paths since, whatever other bodies do: bodies that move together use up nothing.
"""

import warp as wp

from cuda_kernels.bodies.affine import TWO, ZERO, Path, approach

wp.set_module_options({"enable_backward": False, "max_unroll": 4})


@wp.func
def used(path: Path, island: wp.array(dtype=wp.int32), alpha: wp.array(dtype=wp.float64), pair: wp.vec2i) -> wp.float64:
    """Margin [m] that a pair may use up on a path, followed up to alpha of its island."""
    return alpha[island[pair[0]]] * approach(path, pair[0], pair[1])


@wp.kernel
def begin_slack(
    first: wp.int32, margin: wp.float64, slack: wp.array(dtype=wp.float64), searched: wp.array(dtype=wp.int32)
):
    """One thread: a path was searched with a margin [m]."""
    slack[0] = margin
    searched[0] = 1


@wp.kernel
def test_slack(
    first: wp.int32,
    reach: wp.array(dtype=wp.float64),
    slack: wp.array(dtype=wp.float64),
    covered: wp.array(dtype=wp.int32),
    searched: wp.array(dtype=wp.int32),
):
    """One thread: whether the list of pairs covers a path along which no vertex moves further than `reach` [m]."""
    covered[0] = 0
    searched[0] = 1
    if slack[0] >= TWO * reach[0]:
        covered[0] = 1
        searched[0] = 0


@wp.kernel
def test_margins(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    pairs: wp.array(dtype=wp.vec2i),
    path: Path,
    island: wp.array(dtype=wp.int32),
    limit: wp.array(dtype=wp.float64),
    left: wp.array(dtype=wp.float64),
    covered: wp.array(dtype=wp.int32),
    searched: wp.array(dtype=wp.int32),
):
    """Uncover a path, followed up to the limits of the islands, that leaves a pair less than no margin.

    All threads that write, write the same. A path that is not covered has to be searched before it is followed.
    """
    k = wp.tid() + first
    if k >= counts[0] or covered[0] == 0:
        return
    if not (left[k] - used(path, island, limit, pairs[k]) >= ZERO):
        covered[0] = 0
        searched[0] = 1


@wp.kernel
def spend_margins(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    pairs: wp.array(dtype=wp.vec2i),
    path: Path,
    reach: wp.array(dtype=wp.float64),
    island: wp.array(dtype=wp.int32),
    alpha: wp.array(dtype=wp.float64),
    searched: wp.array(dtype=wp.int32),
    kept: wp.array(dtype=wp.int32),
    slack: wp.array(dtype=wp.float64),
    left: wp.array(dtype=wp.float64),
):
    """Take from the slack, and from every pair's margin, what was used up on a path along which no vertex moved further
    than `reach` [m]; if it is the one that was searched, only pairs that are kept lose something."""
    k = wp.tid() + first
    if k == 0 and searched[0] == 0:
        slack[0] = slack[0] - TWO * reach[0]
    if k >= counts[0]:
        return
    if searched[0] == 0 or kept[k] >= 0:
        left[k] = left[k] - used(path, island, alpha, pairs[k])


@wp.struct
class OldList:
    """The list before a renewal: `pair_count` pairs and `count` candidates, none where they do not serve; `number` of
    every pair in the new list, -1 where its candidates are not kept."""

    pair_count: wp.int32
    count: wp.int32
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
    if k == old.pair_count - 1:
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
    margin: wp.float64,
    lasting: wp.float64,
    kept: wp.array(dtype=wp.int32),
    left: wp.array(dtype=wp.float64),
):
    """Number of every pair in the old list where its margin lasts for so many such paths, -1 where it is searched anew, with
    a full margin."""
    k = wp.tid() + first
    if k >= counts[0]:
        return
    kept[k] = -1
    left[k] = margin
    if old.pair_count == 0:
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
        if old.pairs[lo][1] == pairs[k][1] and old.left[lo] >= lasting * used(path, island, limit, pairs[k]):
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
    """Old candidates of the pairs that are kept, under the pair's new number; nothing where there is no room,
    counts[1] = 0. A thread per `batch` candidates, because a pair has one or thousands."""
    t = wp.tid() + first
    if counts[1] == 0:
        return
    pair = wp.int32(-1)
    k = wp.int32(-1)
    shift = wp.int32(0)
    for m in range(batch * t, wp.min(batch * (t + 1), old.count)):
        c = old.items[m]
        if c[0] != pair:
            pair = c[0]
            k = old.number[pair]
            if k >= 0:
                shift = segment[k] - old.segment[pair]
        if k >= 0:
            candidates[m + shift] = wp.vec4i(k, c[1], c[2], c[3])
