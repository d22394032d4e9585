"""Candidate primitive pairs of body pairs, found in the rest space of one of the two bodies.

Every item of a body pair (`items`) queries the tree of the other mesh; primitives within the largest activation are candidates.
"""

import warp as wp

from cuda_kernels.bodies.affine import ZERO, Path
from cuda_kernels.contact.broad_phase import rounded_down, rounded_up
from cuda_kernels.contact.ccd import relative_speed
from cuda_kernels.contact.items import Item, carry
from cuda_kernels.contact.pair_law import regular
from cuda_kernels.contact.relative_frames import Frames
from cuda_kernels.contact.surfaces import (
    EDGE_EDGE,
    TARGET_VERTEX,
    VERTEX_PLANE,
    Surfaces,
    corners,
    primitives,
    proximity,
    separation,
)
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)
LOADED_FOR = ("contact",)

SLOTS = 16
"""Stored candidates per item: the number of edges around the ends of an edge."""


@wp.func
def is_paired(s: Surfaces, swapped: wp.int32, mv: wp.int32, a: wp.int32, mesh: wp.int32, b: wp.int32) -> bool:
    """Return whether primitives are paired: codimensional edges with points and ends of such edges, points once, from body i."""
    t = s.targets[s.target_start[mesh] + b]
    if t[1] != t[2]:
        return True
    least = s.least[s.vertex_start[mv] + a]
    if t[0] != t[1]:
        return least <= 1
    return least == 0 and swapped == 0


@wp.func
def near_enough(
    s: Surfaces,
    path: Path,
    i: wp.int32,
    j: wp.int32,
    kind: wp.int32,
    a: wp.int32,
    b: wp.int32,
    slack: wp.float64,
    minimum: wp.float64,
) -> bool:
    """Return whether a candidate can come within the largest activation and `slack` [m], beyond its separation, in the step."""
    prim = primitives(s, i, j, kind, a, b)
    near = proximity(kind, prim, path.p[i], path.A[i], path.p[j], path.A[j], s.plane[j])
    gap = wp.length(near.r) - separation(s, i, j, minimum) - regular(s.between, i, j) - slack
    if gap <= ZERO:
        return True
    v = corners(kind, prim, path.dp[i], path.rate[i], path.dp[j], path.rate[j])
    return gap <= relative_speed(kind, v) + wp.float64(0.5) * (path.bend[i] + path.bend[j])


@wp.func
def visit(
    s: Surfaces,
    path: Path,
    i: wp.int32,
    j: wp.int32,
    pair: wp.int32,
    item: Item,
    slack: wp.float64,
    minimum: wp.float64,
    base: wp.int32,
    capacity: wp.int32,
    out: wp.array(dtype=wp.vec4i),
) -> wp.int32:
    """Write the candidates of one item in the order of the tree, up to `capacity`; return their number."""
    found = wp.int32(0)
    if item.kind == VERTEX_PLANE:
        if near_enough(s, path, i, j, item.kind, item.a, 0, slack, minimum):
            if capacity > 0:
                out[base] = wp.vec4i(pair, item.kind, item.a, 0)
            found = 1
        return found
    tree = s.target_bvh[item.mesh]
    if item.kind == EDGE_EDGE:
        tree = s.edge_bvh[item.mesh]
    query = wp.bvh_query_aabb(tree, rounded_down(item.lower), rounded_up(item.upper))
    b = wp.int32(0)
    swapped = wp.int32(0)
    mv = s.mesh[i]
    if item.kind == TARGET_VERTEX:
        swapped = 1
        mv = s.mesh[j]
    while wp.bvh_query_next(query, b):
        is_candidate = bool(True)
        if item.kind != EDGE_EDGE:
            is_candidate = is_paired(s, swapped, mv, item.a, item.mesh, b)
        if is_candidate:
            if near_enough(s, path, i, j, item.kind, item.a, b, slack, minimum):
                if found < capacity:
                    out[base + found] = wp.vec4i(pair, item.kind, item.a, b)
                found = found + 1
    return found


@wp.kernel
def find_candidates(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    s: Surfaces,
    path: Path,
    pairs: wp.array(dtype=wp.vec2i),
    frames: Frames,
    items: wp.array(dtype=wp.vec3i),
    world: wp.array(dtype=wp.int32),
    margin: wp.array(dtype=wp.float64),
    minimum: wp.float64,
    slots: wp.array(dtype=wp.vec4i),
    count: wp.array(dtype=wp.int32),
):
    """Find the candidates of every item: the first `SLOTS` in its slots, and their number; there are counts[2] items."""
    t = wp.tid() + first
    if t >= counts[2]:
        return
    k = items[t][0]
    i = pairs[k][0]
    j = pairs[k][1]
    item = carry(s, frames, i, j, k, items[t][1], items[t][2])
    count[t] = visit(s, path, i, j, k, item, margin[world[i]], minimum, SLOTS * t, SLOTS, slots)


@wp.kernel
def gather_candidates(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    s: Surfaces,
    path: Path,
    pairs: wp.array(dtype=wp.vec2i),
    frames: Frames,
    items: wp.array(dtype=wp.vec3i),
    world: wp.array(dtype=wp.int32),
    margin: wp.array(dtype=wp.float64),
    minimum: wp.float64,
    slots: wp.array(dtype=wp.vec4i),
    start: wp.array(dtype=wp.int32),
    offset: wp.array(dtype=wp.int32),
    segment: wp.array(dtype=wp.int32),
    candidates: wp.array(dtype=wp.vec4i),
):
    """Write the candidates of every item after those of its pair's earlier items in the pair's segment.

    Items with more than `SLOTS` candidates are searched again. `start` is the first item of every pair, `offset` the exclusive
    sum of the items' candidates. Nothing is written without capacity, counts[1] = 0."""
    t = wp.tid() + first
    if t >= counts[2] or counts[1] == 0:
        return
    n = offset[t + 1] - offset[t]
    k = items[t][0]
    base = segment[k] + offset[t] - offset[start[k]]
    if n <= SLOTS:
        for m in range(n):
            candidates[base + m] = slots[SLOTS * t + m]
    else:
        i = pairs[k][0]
        j = pairs[k][1]
        item = carry(s, frames, i, j, k, items[t][1], items[t][2])
        visit(s, path, i, j, k, item, margin[world[i]], minimum, base, n, candidates)
