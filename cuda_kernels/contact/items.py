"""Items of body pairs: the primitives of one body near the other one, transformed to its rest frame.

A body pair (i, j) has as items the vertices of i against the targets of j, the vertices of j against those of i, and the edges of
i against those of j. An item is transformed to the other body's rest frame at both ends of the step. In between it deviates from
the chord by at most `grow` (bound on the second derivative over eight), so that a static tree per mesh serves all instances and
steps.
"""

import warp as wp

from cuda_kernels.contact.broad_phase import absolute, rounded_down, rounded_up
from cuda_kernels.contact.relative_frames import Frames
from cuda_kernels.contact.surfaces import EDGE_EDGE, TARGET_VERTEX, VERTEX_PLANE, VERTEX_TARGET, Surfaces
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)
LOADED_FOR = ("contact",)


@wp.struct
class Item:
    """One primitive in the other body's rest frame: kind, index, its swept box there, and the mesh of the tree to query."""

    kind: wp.int32
    a: wp.int32
    mesh: wp.int32
    lower: wp.vec3d
    upper: wp.vec3d
    alive: wp.int32


@wp.func
def carry(s: Surfaces, frames: Frames, i: wp.int32, j: wp.int32, pair: wp.int32, kind: wp.int32, a: wp.int32) -> Item:
    """Return primitive a of a body pair as an item, `alive` if its box overlaps the other mesh's box."""
    item = Item()
    item.kind = kind
    item.a = a
    item.alive = 1
    if kind == VERTEX_PLANE:
        return item
    mi = s.mesh[i]
    mj = s.mesh[j]
    e = 2 * pair
    mesh = mj
    x = wp.vec3d()
    z = wp.vec3d()
    if kind == VERTEX_TARGET:
        x = s.vertices[s.vertex_start[mi] + a]
        z = x
    elif kind == TARGET_VERTEX:
        e = 2 * pair + 1
        mesh = mi
        x = s.vertices[s.vertex_start[mj] + a]
        z = x
    else:
        edge = s.edges[s.edge_start[mi] + a]
        x = s.vertices[s.vertex_start[mi] + edge[0]]
        z = s.vertices[s.vertex_start[mi] + edge[1]]
    R0 = frames.R0[e]
    R1 = frames.R1[e]
    t0 = frames.t0[e]
    t1 = frames.t1[e]
    grow = frames.grow[e]
    g = wp.vec3d(grow, grow, grow)
    a0 = R0 * x + t0
    a1 = R1 * x + t1
    lo = wp.min(a0, a1)
    hi = wp.max(a0, a1)
    if kind == EDGE_EDGE:
        b0 = R0 * z + t0
        b1 = R1 * z + t1
        lo = wp.min(lo, wp.min(b0, b1))
        hi = wp.max(hi, wp.max(b0, b1))
    item.mesh = mesh
    item.lower = lo - g
    item.upper = hi + g
    l = s.lower[mesh]
    u = s.upper[mesh]
    for r in range(3):
        if item.lower[r] > u[r] or item.upper[r] < l[r]:
            item.alive = 0
    return item


@wp.func
def collect(
    s: Surfaces,
    frames: Frames,
    i: wp.int32,
    j: wp.int32,
    pair: wp.int32,
    kind: wp.int32,
    tree: wp.uint64,
    other: wp.int32,
    e: wp.int32,
    base: wp.int32,
    write: wp.int32,
    items: wp.array(dtype=wp.vec3i),
) -> wp.int32:
    """Collect items of one kind: primitives of a mesh whose `tree` overlaps the box of mesh `other` in frame e."""
    lo = s.lower[other]
    hi = s.upper[other]
    centre = wp.float64(0.5) * (lo + hi)
    half = wp.float64(0.5) * (hi - lo)
    c0 = frames.R0[e] * centre + frames.t0[e]
    c1 = frames.R1[e] * centre + frames.t1[e]
    h0 = absolute(frames.R0[e]) * half
    h1 = absolute(frames.R1[e]) * half
    g = frames.grow[e]
    grow = wp.vec3d(g, g, g)
    query = wp.bvh_query_aabb(
        tree, rounded_down(wp.min(c0 - h0, c1 - h1) - grow), rounded_up(wp.max(c0 + h0, c1 + h1) + grow)
    )
    found = wp.int32(0)
    a = wp.int32(0)
    while wp.bvh_query_next(query, a):
        if carry(s, frames, i, j, pair, kind, a).alive != 0:
            if write != 0:
                items[base + found] = wp.vec3i(pair, kind, a)
            found = found + 1
    return found


KINDS = 3
"""Kinds of items of two meshes: VERTEX_TARGET, TARGET_VERTEX and EDGE_EDGE, numbered from 0."""


@wp.kernel
def collect_items(
    first: wp.int32,
    extent: wp.int32,
    kinds: wp.int32,
    counts: wp.array(dtype=wp.int32),
    s: Surfaces,
    pairs: wp.array(dtype=wp.vec2i),
    kept: wp.array(dtype=wp.int32),
    frames: Frames,
    offset: wp.array(dtype=wp.int32),
    write: wp.int32,
    count: wp.array2d(dtype=wp.int32),
    items: wp.array(dtype=wp.vec3i),
):
    """Collect the items (pair, kind, index) of every searched body pair: count them by kind if ``write == 0``, else write them
    from the pair's offset on, if there is capacity for all counts[2] > 0 of them.

    A thread processes `kinds` kinds of one of `extent` pairs; threads with the same kinds are neighbours. Frame 2k maps i into
    j's rest space and 2k + 1 the reverse, so the box of j is mapped by 2k + 1 to find the primitives of i.
    """
    t = wp.tid() + first
    k = t % extent
    if k >= counts[0]:
        return
    begin = kinds * (t // extent)
    if kept[k] >= 0:
        for kind in range(begin, begin + kinds):
            count[k, kind] = 0
        return
    base = wp.int32(0)
    if write != 0:
        if counts[2] == 0:
            return
        base = offset[k]
        for earlier in range(begin):
            base = base + count[k, earlier]
    i = pairs[k][0]
    j = pairs[k][1]
    for kind in range(begin, begin + kinds):
        found = wp.int32(0)
        own = s.mesh[i]
        other = s.mesh[j]
        if other < 0:
            if kind == VERTEX_TARGET:
                found = s.vertex_start[own + 1] - s.vertex_start[own]
                if write != 0:
                    for a in range(found):
                        items[base + a] = wp.vec3i(k, VERTEX_PLANE, a)
        else:
            e = 2 * k + 1
            tree = s.vertex_bvh[own]
            if kind == EDGE_EDGE:
                tree = s.edge_bvh[own]
            if kind == TARGET_VERTEX:
                e = 2 * k
                own = s.mesh[j]
                other = s.mesh[i]
                tree = s.vertex_bvh[own]
            found = collect(s, frames, i, j, k, kind, tree, other, e, base, write, items)
        base = base + found
        if write == 0:
            count[k, kind] = found


@wp.kernel
def add_kinds(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    count: wp.array2d(dtype=wp.int32),
    sizes: wp.array(dtype=wp.int32),
):
    """Sum the items of every pair over all kinds."""
    k = wp.tid() + first
    if k >= counts[0]:
        return
    sizes[k] = 0
    for kind in range(KINDS):
        sizes[k] = sizes[k] + count[k, kind]
