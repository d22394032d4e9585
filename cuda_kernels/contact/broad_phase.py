"""Body pairs with overlapping swept boxes: one box per body, a tree over them, and the filters of the scene."""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, ZERO, Path, arc
from cuda_kernels.contact.kept_pairs import OldList
from cuda_kernels.contact.surfaces import Surfaces
from cuda_kernels.options import OPTIONS
from cuda_kernels.parallel.chunks import lower_bound

wp.set_module_options(OPTIONS)
LOADED_FOR = ("contact",)


@wp.struct
class Filters:
    """Conditions for two bodies to collide: `filtered` has sorted keys min * n + max of joined pairs; worlds are numbered from 0.

    `planes` lists the half-spaces by their worlds, those of body b's from near_planes[b][0] to near_planes[b][1]. excluded: (n,)
    1 for excluded bodies, which are in no pair.
    """

    kind: wp.array(dtype=wp.int32)
    group: wp.array(dtype=wp.int32)
    world: wp.array(dtype=wp.int32)
    excluded: wp.array(dtype=wp.int32)
    material: wp.array(dtype=wp.int32)
    enabled: wp.array2d(dtype=wp.int32)
    filtered: wp.array(dtype=wp.int64)
    planes: wp.array(dtype=wp.int32)
    near_planes: wp.array(dtype=wp.vec2i)
    filtered_count: wp.int32
    bodies: wp.int32


@wp.func
def absolute(m: wp.mat33d) -> wp.mat33d:
    return wp.mat33d(
        wp.abs(m[0, 0]), wp.abs(m[0, 1]), wp.abs(m[0, 2]),
        wp.abs(m[1, 0]), wp.abs(m[1, 1]), wp.abs(m[1, 2]),
        wp.abs(m[2, 0]), wp.abs(m[2, 1]), wp.abs(m[2, 2]),
    )  # fmt: skip


@wp.func
def rounded_down(v: wp.vec3d) -> wp.vec3:
    """Round to single precision, outwards for a lower corner."""
    s = wp.float64(2.0e-7)
    return wp.vec3(
        wp.float32(v[0] - s * wp.abs(v[0])), wp.float32(v[1] - s * wp.abs(v[1])), wp.float32(v[2] - s * wp.abs(v[2]))
    )


@wp.func
def rounded_up(v: wp.vec3d) -> wp.vec3:
    """Round to single precision, outwards for an upper corner."""
    return -rounded_down(-v)


@wp.func
def half_reach(s: Surfaces, b: wp.int32) -> wp.float64:
    """Return a body's part [m] of the reach of any of its pairs (`cuda_kernels.contact.pair_law`), slightly enlarged."""
    return wp.float64(0.50005) * s.between.d_hat[b]


@wp.kernel
def swept_boxes(
    first: wp.int32,
    s: Surfaces,
    path: Path,
    world: wp.array(dtype=wp.int32),
    grown: wp.array(dtype=wp.float64),
    lower: wp.array(dtype=wp.vec3),
    upper: wp.array(dtype=wp.vec3),
):
    """Compute boxes of all bodies over alpha in [0, 1], enlarged by `grown` [m] of their world (w,), half reach, radius and the
    deviation of the arc from its chord."""
    b = wp.tid() + first
    m = s.mesh[b]
    if m < 0:
        # an inverted box overlaps nothing, and does not affect the bounds of the tree
        lower[b] = wp.vec3(3.0e37, 3.0e37, 3.0e37)
        upper[b] = wp.vec3(-3.0e37, -3.0e37, -3.0e37)
        return
    centre = HALF * (s.lower[m] + s.upper[m])
    half = HALF * (s.upper[m] - s.lower[m])
    A0 = path.A[b]
    A1 = arc(path, b, ONE)
    x0 = path.p[b] + A0 * centre
    x1 = path.p[b] + path.dp[b] + A1 * centre
    h0 = absolute(A0) * half
    h1 = absolute(A1) * half
    grow = grown[world[b]] + half_reach(s, b) + s.radius[b] + path.bend[b] / wp.float64(8.0)
    g = wp.vec3d(grow, grow, grow)
    lower[b] = rounded_down(wp.min(x0 - h0, x1 - h1) - g)
    upper[b] = rounded_up(wp.max(x0 + h0, x1 + h1) + g)


@wp.func
def may_touch(f: Filters, b: wp.int32, c: wp.int32) -> bool:
    """Return whether the scene allows bodies b and c to collide."""
    if f.kind[b] != 0 and f.kind[c] != 0:
        return False
    if f.world[b] != f.world[c]:
        return False
    if f.excluded[b] != 0 or f.excluded[c] != 0:
        return False
    if f.group[b] >= 0 and f.group[b] == f.group[c]:
        return False
    if f.enabled[f.material[b], f.material[c]] == 0:
        return False
    key = wp.int64(wp.min(b, c)) * wp.int64(f.bodies) + wp.int64(wp.max(b, c))
    lo = lower_bound(f.filtered, 0, f.filtered_count, key)
    if lo < f.filtered_count:
        if f.filtered[lo] == key:
            return False
    return True


@wp.func
def emits(f: Filters, b: wp.int32, c: wp.int32) -> bool:
    """Return whether body b emits the pair: the dynamic body does, of two dynamic bodies the one with the smaller index."""
    if f.kind[c] != 0:
        return True
    return f.kind[b] == 0 and b < c


@wp.func
def is_near_plane(lower: wp.vec3, upper: wp.vec3, plane: wp.vec4d, grown: wp.float64) -> bool:
    """Return whether a box is closer than `grown` to the surface of a half-space."""
    lowest = -plane[3] - grown
    for r in range(3):
        if plane[r] > ZERO:
            lowest = lowest + plane[r] * wp.float64(lower[r])
        else:
            lowest = lowest + plane[r] * wp.float64(upper[r])
    return lowest <= ZERO


MAX_PARTNERS = wp.constant(wp.int32(12))
"""Partners of a body that are stored between counting and writing."""


@wp.kernel
def sample_places(
    first: wp.int32,
    stride: wp.int32,
    lower: wp.array(dtype=wp.vec3),
    upper: wp.array(dtype=wp.vec3),
    out: wp.array(dtype=wp.vec3),
):
    """Compute the centre of the box of every `stride`-th body, NaN for an inverted box."""
    k = wp.tid() + first
    b = k * stride
    out[k] = wp.float32(0.5) * (lower[b] + upper[b])
    if lower[b][0] > upper[b][0]:
        out[k] = wp.vec3(wp.nan, wp.nan, wp.nan)


@wp.func
def clamped(v: wp.vec3, bounds: wp.array(dtype=wp.vec3)) -> wp.vec3:
    """Return the nearest point between the corners `bounds` (2,)."""
    return wp.max(bounds[0], wp.min(v, bounds[1]))


@wp.kernel
def clamp_boxes(
    first: wp.int32,
    lower: wp.array(dtype=wp.vec3),
    upper: wp.array(dtype=wp.vec3),
    bounds: wp.array(dtype=wp.vec3),
    clamped_lower: wp.array(dtype=wp.vec3),
    clamped_upper: wp.array(dtype=wp.vec3),
):
    """Clamp boxes to the bounds of a tree, by whose cells its leaves are sorted; clamped boxes still overlap."""
    b = wp.tid() + first
    clamped_lower[b] = clamped(lower[b], bounds)
    clamped_upper[b] = clamped(upper[b], bounds)


@wp.func
def overlap(lower: wp.array(dtype=wp.vec3), upper: wp.array(dtype=wp.vec3), b: wp.int32, c: wp.int32) -> bool:
    is_separate = bool(False)
    for r in range(3):
        is_separate = is_separate or lower[b][r] > upper[c][r] or lower[c][r] > upper[b][r]
    return not is_separate


@wp.kernel
def find_roots(first: wp.int32, tree: wp.uint64, group: wp.array(dtype=wp.int32), root: wp.array(dtype=wp.int32)):
    """Find the tree node with the group of each body b below it; valid until the tree is rebuilt."""
    b = wp.tid() + first
    root[b] = wp.bvh_get_group_root(tree, group[b])


@wp.kernel
def emit_pairs(
    first: wp.int32,
    tree: wp.uint64,
    root: wp.array(dtype=wp.int32),
    bounds: wp.array(dtype=wp.vec3),
    f: Filters,
    s: Surfaces,
    lower: wp.array(dtype=wp.vec3),
    upper: wp.array(dtype=wp.vec3),
    grown: wp.array(dtype=wp.float64),
    old: OldList,
    lacks: wp.array(dtype=wp.int32),
    offset: wp.array(dtype=wp.int32),
    write: wp.int32,
    count: wp.array(dtype=wp.int32),
    partners: wp.array2d(dtype=wp.int32),
    found_pairs: wp.array(dtype=wp.int32),
    pairs: wp.array(dtype=wp.vec2i),
):
    """Emit the pairs of each body: count them if ``write == 0``, else write them from its offset on in any order, if there is
    capacity for all found_pairs[0] > 0 of them.

    The search of body b starts at node root[b] of the tree, or at the root of the tree if that is -1. Boxes of the tree are
    clamped to its `bounds` (2,), so that more of them overlap; found boxes are compared unclamped. Counting stores up to
    `MAX_PARTNERS` `partners` per body; bodies with more search the tree again. A half-space has no box: its enlargement,
    `grown` [m] in the body's world (w,), is added here. In worlds whose `old` list is complete, bodies keep their pairs.
    """
    b = wp.tid() + first
    found = wp.int32(0)
    if write != 0:
        if found_pairs[0] == 0:
            return
    w = f.world[b]
    if lacks[w] == 0:
        begin = old.group[b]
        found = old.group[b + 1] - begin
        if write == 0:
            count[b] = found
        else:
            for k in range(found):
                pairs[offset[b] + k] = old.pairs[begin + k]
        return
    if write != 0 and count[b] <= MAX_PARTNERS:
        for k in range(count[b]):
            pairs[offset[b] + k] = wp.vec2i(b, partners[b, k])
        return
    if s.mesh[b] >= 0 and f.kind[b] == 0:
        lo = lower[b]
        hi = upper[b]
        query = wp.bvh_query_aabb(tree, clamped(lo, bounds), clamped(hi, bounds), root[b])
        c = wp.int32(0)
        while wp.bvh_query_next(query, c):
            if c != b:
                if emits(f, b, c) and overlap(lower, upper, b, c):
                    if may_touch(f, b, c):
                        if write != 0:
                            pairs[offset[b] + found] = wp.vec2i(b, c)
                        elif found < MAX_PARTNERS:
                            partners[b, found] = c
                        found = found + 1
        for k in range(f.near_planes[b][0], f.near_planes[b][1]):
            c2 = f.planes[k]
            if may_touch(f, b, c2):
                if is_near_plane(lo, hi, s.plane[c2], grown[w] + half_reach(s, c2)):
                    if write != 0:
                        pairs[offset[b] + found] = wp.vec2i(b, c2)
                    elif found < MAX_PARTNERS:
                        partners[b, found] = c2
                    found = found + 1
    if write == 0:
        count[b] = found


@wp.kernel
def order_pairs(
    first: wp.int32,
    found_pairs: wp.array(dtype=wp.int32),
    offset: wp.array(dtype=wp.int32),
    unordered: wp.array(dtype=wp.vec2i),
    pairs: wp.array(dtype=wp.vec2i),
):
    """Order the pairs of each body by the other one: the place of a pair is the number of smaller partners.

    One thread per pair balances the load of large bodies."""
    k = wp.tid() + first
    if k >= found_pairs[0]:
        return
    pair = unordered[k]
    begin = offset[pair[0]]
    smaller = wp.int32(0)
    for m in range(begin, offset[pair[0] + 1]):
        if unordered[m][1] < pair[1]:
            smaller = smaller + 1
    pairs[begin + smaller] = pair
