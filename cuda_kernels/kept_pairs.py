"""What of a candidate list still serves when it is renewed within a step.

A body pair searched with a margin keeps all its candidates complete until its two bodies may have come closer by that
margin on the paths since, whatever other bodies do: bodies that move together use up nothing.
"""

import warp as wp

from cuda_kernels.affine import Path, approach

wp.set_module_options({"enable_backward": False, "max_unroll": 4})

GROUP = 256
"""Pairs whose smallest margin one thread finds."""


@wp.kernel
def least_margins(
    first: wp.int32,
    pairs: wp.array(dtype=wp.vec2i),
    count: wp.int32,
    path: Path,
    island: wp.array(dtype=wp.int32),
    limit: wp.array(dtype=wp.float64),
    left: wp.array(dtype=wp.float64),
    least: wp.array(dtype=wp.float64),
):
    """The smallest margin [m] in every group of pairs that a path would leave, followed up to the limits of the islands."""
    t = wp.tid() + first
    smallest = wp.float64(1.0e300)
    for k in range(GROUP * t, wp.min(GROUP * (t + 1), count)):
        smallest = wp.min(smallest, left[k] - used(path, island, limit, pairs[k]))
    least[t] = smallest


@wp.func
def used(path: Path, island: wp.array(dtype=wp.int32), alpha: wp.array(dtype=wp.float64), pair: wp.vec2i) -> wp.float64:
    """Margin [m] that a pair may use up on a path, followed up to alpha of its island."""
    return alpha[island[pair[0]]] * approach(path, pair[0], pair[1])


@wp.kernel
def spend_margins(
    first: wp.int32,
    pairs: wp.array(dtype=wp.vec2i),
    path: Path,
    island: wp.array(dtype=wp.int32),
    alpha: wp.array(dtype=wp.float64),
    searched: wp.int32,
    kept: wp.array(dtype=wp.int32),
    left: wp.array(dtype=wp.float64),
):
    """Take from every pair's margin what it used up on a path; if `searched` is 1, pairs that are not kept were searched
    along it and lose nothing."""
    k = wp.tid() + first
    if searched == 0 or kept[k] >= 0:
        left[k] = left[k] - used(path, island, alpha, pairs[k])


@wp.kernel
def match_pairs(
    first: wp.int32,
    pairs: wp.array(dtype=wp.vec2i),
    path: Path,
    island: wp.array(dtype=wp.int32),
    limit: wp.array(dtype=wp.float64),
    old_pairs: wp.array(dtype=wp.vec2i),
    old_group: wp.array(dtype=wp.int32),
    old_left: wp.array(dtype=wp.float64),
    old_count: wp.int32,
    margin: wp.float64,
    kept: wp.array(dtype=wp.int32),
    left: wp.array(dtype=wp.float64),
):
    """Number of every pair in the old list where its margin lasts for a path, -1 where it is searched anew, with a full
    margin."""
    k = wp.tid() + first
    kept[k] = -1
    left[k] = margin
    if old_count == 0:
        return
    lo = old_group[pairs[k][0]]
    end = old_group[pairs[k][0] + 1]
    hi = end
    while lo < hi:
        mid = (lo + hi) // 2
        if old_pairs[mid][1] < pairs[k][1]:
            lo = mid + 1
        else:
            hi = mid
    if lo < end:
        if old_pairs[lo][1] == pairs[k][1] and old_left[lo] >= used(path, island, limit, pairs[k]):
            kept[k] = lo
            left[k] = old_left[lo]


@wp.kernel
def pair_sizes(
    first: wp.int32,
    kept: wp.array(dtype=wp.int32),
    old_segment: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.int32),
    offset: wp.array(dtype=wp.int32),
    size: wp.array(dtype=wp.int32),
):
    """Candidates of every pair: those it had, or those that its items (from `start`) found."""
    k = wp.tid() + first
    if kept[k] >= 0:
        size[k] = old_segment[kept[k] + 1] - old_segment[kept[k]]
    else:
        size[k] = offset[start[k + 1]] - offset[start[k]]


@wp.kernel
def copy_kept(
    first: wp.int32,
    kept: wp.array(dtype=wp.int32),
    old_segment: wp.array(dtype=wp.int32),
    old_candidates: wp.array(dtype=wp.vec4i),
    segment: wp.array(dtype=wp.int32),
    candidates: wp.array(dtype=wp.vec4i),
):
    """Candidates of the pairs that are kept, under the pair's new number."""
    k = wp.tid() + first
    if kept[k] >= 0:
        old = old_segment[kept[k]]
        for m in range(segment[k + 1] - segment[k]):
            c = old_candidates[old + m]
            candidates[segment[k] + m] = wp.vec4i(k, c[1], c[2], c[3])
