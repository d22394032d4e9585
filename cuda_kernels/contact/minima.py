"""Combination of the barriers of a candidate's parts (`cuda_kernels.contact.parts`) for contact at local minima of distance.

``abd/contact/minima.py`` has the formulas. In the contact set "ipc" a candidate has one part, itself.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, ZERO, Pose
from cuda_kernels.contact.barrier import barrier
from cuda_kernels.contact.distance import TIE, edge_distance2
from cuda_kernels.contact.parts import PARTS, code_of, with_code, zero_of
from cuda_kernels.contact.surfaces import (
    EDGE_EDGE,
    TARGET_VERTEX,
    VERTEX_PLANE,
    CandidateList,
    Primitives,
    Proximity,
    Surfaces,
    corners,
)
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)

TOTAL = PARTS
"""Index of the combination in `Coefficients`."""
Coefficients = wp.types.vector(length=8, dtype=wp.float64)
"""Derivatives of the combination of two edges by the barriers of its parts, 0 without a part, and the combination."""


INACTIVE = wp.constant(-1)
INSIDE = wp.constant(0)
"""Closest feature of a target: none, or its interior; the numbers of others are `side_number` and `corner_number`."""


@wp.struct
class Combination:
    """Codes of the nonzero parts of a candidate, the combination of their barriers, and the features with the closest points: of
    its target, `INACTIVE` without sides and corners, and of each side that the target owns, else 0."""

    parts: wp.int64
    value: wp.float64
    closest: wp.vec4i


@wp.func
def side_number(side: wp.int32) -> wp.int32:
    return 1 + 2 * side


@wp.func
def corner_number(vertex: wp.int32) -> wp.int32:
    return 2 + 2 * vertex


@wp.func
def closest_feature(s: Surfaces, target: wp.int32, w: wp.vec3d) -> wp.int32:
    """Return the number of the feature of a target with the closest point of weights w, by its positive weights; a point within a
    `TIE` over an owned side is inside."""
    bits = wp.int32(0)
    owned_count = wp.int32(0)
    owned = s.topology.owned[target]
    for k in range(3):
        if w[k] > TIE:
            bits = bits + (1 << k)
        elif w[k] > ZERO and ((owned >> ((k + 1) % 3)) & 1) != 0:
            owned_count = owned_count + 1
        else:
            owned_count = -3
    if bits == 7 or owned_count == 1:
        return INSIDE
    if bits == 1 or bits == 2 or bits == 4:
        return corner_number(s.topology.corners[target][bits // 2])
    # the sides with the corners 0 1, 1 2 and 2 0; a wire has none
    side = s.topology.sides[target][wp.where(bits == 3, 0, wp.where(bits == 6, 1, 2))]
    return wp.where(side < 0, INSIDE, side_number(side))


@wp.func
def closest_on_side(s: Surfaces, target: wp.int32, k: wp.int32, x: wp.vec3d, head: wp.vec3d, tail: wp.vec3d) -> wp.int32:
    """Return the number of the feature of an owned side k that is closest to x, 0 of another one."""
    if ((s.topology.owned[target] >> k) & 1) == 0:
        return 0
    e = tail - head
    along = wp.dot(x - head, e)
    length2 = wp.dot(e, e)
    if not along > TIE * length2:
        return corner_number(s.topology.corners[target][k])
    if not along < (ONE - TIE) * length2:
        return corner_number(s.topology.corners[target][(k + 1) % 3])
    return side_number(s.topology.sides[target][k])


@wp.func
def has_neighbour(s: Surfaces, u: wp.int32, v: wp.int32) -> bool:
    """Return whether vertex v is tested against a triangle or edge around u."""
    return s.topology.dimension[u] >= wp.max(s.least[v], 1)


@wp.func
def vertex_coefficient(s: Surfaces, source: wp.int32, target: wp.int32, k: wp.int32, count: wp.int32) -> wp.float64:
    """Return the coefficient of part k of vertex `source` against a target, which counts `count` features."""
    weight = s.topology.vertex_weight[source]
    value = weight * wp.float64(count)
    if k > 3:
        # two corners with each other as targets
        u = s.topology.corners[target][k - 4]
        if has_neighbour(s, u, source) and has_neighbour(s, source, u):
            value = value - wp.float64(0.5) * wp.min(weight, s.topology.vertex_weight[u])
    return value


@wp.func
def edge_coefficients(
    s: Surfaces,
    barrier_kind: wp.int32,
    d_hat: wp.float64,
    xi: wp.float64,
    pose: Pose,
    i: wp.int32,
    j: wp.int32,
    c: wp.vec4i,
    prim: Primitives,
    near: Proximity,
) -> Coefficients:
    """Return coefficients of two edges with the proximity `near`, and their combination."""
    out = Coefficients()
    if s.topology.local == 0:
        out[0] = ONE
        out[TOTAL] = barrier(barrier_kind, wp.dot(near.r, near.r), d_hat, xi)[0]
        return out
    a = s.edge_start[s.mesh[i]] + c[2]
    b = s.edge_start[s.mesh[j]] + c[3]
    weight = s.topology.edge_weight[a] * s.topology.edge_weight[b]
    if weight == ZERO:
        return out
    share = wp.vec4d()
    ends_at = wp.vec4i()
    ends_a = s.edges[a]
    ends_b = s.edges[b]
    for k in range(4):
        vertex = s.vertex_start[s.mesh[i]] + ends_a[0]
        faced = s.topology.edge_faced[b]
        is_at_end = near.Xi == prim.x0
        if k == 1:
            vertex = s.vertex_start[s.mesh[i]] + ends_a[1]
            is_at_end = near.Xi == prim.x1
        if k >= 2:
            vertex = s.vertex_start[s.mesh[j]] + ends_b[k - 2]
            faced = s.topology.edge_faced[a]
            is_at_end = near.Xj == prim.x2
            if k == 3:
                is_at_end = near.Xj == prim.x3
        share[k] = ONE
        if faced == 0:
            share[k] = ONE - s.topology.vertex_share[vertex]
        if is_at_end:
            # the vertex at this end has the contact instead
            if share[k] == ONE:
                return out
            ends_at[k] = 1
    pair = barrier(barrier_kind, wp.dot(near.r, near.r), d_hat, xi)[0]
    if pair <= ZERO:
        return out
    world = corners(EDGE_EDGE, prim, pose.p[i], pose.A[i], pose.p[j], pose.A[j])
    whole = ONE
    ratio = wp.vec4d()
    for k in range(4):
        # the barrier of an end at the closest point equals the pair's
        if ends_at[k] == 1:
            ratio[k] = ONE
        elif share[k] > ZERO:
            D = ZERO
            if k == 0:
                D = edge_distance2(world.x0, world.x2, world.x3)
            if k == 1:
                D = edge_distance2(world.x1, world.x2, world.x3)
            if k == 2:
                D = edge_distance2(world.x2, world.x0, world.x1)
            if k == 3:
                D = edge_distance2(world.x3, world.x0, world.x1)
            if D < (d_hat + xi) * (d_hat + xi):
                ratio[k] = wp.min(barrier(barrier_kind, D, d_hat, xi)[0] / pair, ONE)
        whole = whole * (ONE - share[k] * ratio[k])
    out[0] = weight * whole
    for k in range(4):
        if ends_at[k] == 0 and ratio[k] > ZERO:
            others = weight * share[k]
            for l in range(4):
                if l != k:
                    others = others * (ONE - share[l] * ratio[l])
            out[k + 1] = -others
            out[0] = out[0] + others * ratio[k]
    out[TOTAL] = weight * pair * whole
    return out


@wp.func
def combine(
    s: Surfaces,
    barrier_kind: wp.int32,
    d_hat: wp.float64,
    xi: wp.float64,
    pose: Pose,
    i: wp.int32,
    j: wp.int32,
    c: wp.vec4i,
    prim: Primitives,
    world: Primitives,
    near: Proximity,
) -> Combination:
    """Return the combination of an active candidate (pair, kind, a, b) of bodies i, j with the proximity `near`; of a vertex and
    a target, that of the interior only (`combine_features`)."""
    out = Combination()
    out.closest[0] = INACTIVE
    if c[1] == EDGE_EDGE:
        counts = edge_coefficients(s, barrier_kind, d_hat, xi, pose, i, j, c, prim, near)
        out.value = counts[TOTAL]
        for k in range(5):
            if counts[k] != ZERO:
                out.parts = with_code(out.parts, k, 1)
        return out
    weight = ONE
    if s.topology.local != 0 and c[1] != VERTEX_PLANE:
        v = wp.where(c[1] == TARGET_VERTEX, j, i)
        o = wp.where(c[1] == TARGET_VERTEX, i, j)
        weight = s.topology.vertex_weight[s.vertex_start[s.mesh[v]] + c[2]]
        if weight == ZERO:
            return out
        target = s.target_start[s.mesh[o]] + c[3]
        out.closest = wp.vec4i(
            closest_feature(s, target, near.weights),
            closest_on_side(s, target, 0, world.x0, world.x1, world.x2),
            closest_on_side(s, target, 1, world.x0, world.x2, world.x3),
            closest_on_side(s, target, 2, world.x0, world.x3, world.x1),
        )
        if out.closest[0] != INSIDE:
            return out
    out.parts = wp.int64(1)
    out.value = weight * barrier(barrier_kind, wp.dot(near.r, near.r), d_hat, xi)[0]
    return out


@wp.func
def combine_features(
    s: Surfaces,
    barrier_kind: wp.int32,
    d_hat: wp.float64,
    xi: wp.float64,
    pose: Pose,
    listed: CandidateList,
    o: wp.int32,
    source: wp.int32,
    x: wp.vec3d,
    e: wp.int32,
    begin: wp.int32,
    end: wp.int32,
    closest: wp.array(dtype=wp.vec4i),
) -> Combination:
    """Return the combination of the sides and corners that the target of candidate e owns, of body o, for the vertex `source` at
    x, which has the candidates from `begin` to `end`.

    These contain all targets and sides that have a feature within the activation as `closest`."""
    out = Combination()
    first = s.target_start[s.mesh[o]]
    start = s.vertex_start[s.mesh[o]]
    target = first + listed.items[e][3]
    own = s.targets[target]
    reach = (d_hat + xi) * (d_hat + xi)
    owned = s.topology.owned[target]
    for k in range(1, PARTS):
        if ((owned >> (k - 1)) & 1) == 0:
            continue
        count = wp.int32(0)
        D = reach
        if k <= 3:
            side = s.topology.sides[target][k - 1]
            for m in range(begin, end):
                if closest[m][0] == side_number(side):
                    count = count + 1
            if closest[e][k] == side_number(side):
                count = count - s.topology.side_extra[side]
            if count != 0:
                head = pose.p[o] + pose.A[o] * s.vertices[start + own[k - 1]]
                tail = pose.p[o] + pose.A[o] * s.vertices[start + own[k % 3]]
                D = edge_distance2(x, head, tail)
        else:
            corner = pose.p[o] + pose.A[o] * s.vertices[start + own[k - 4]]
            D = wp.dot(x - corner, x - corner)
            if D < reach:
                u = s.topology.corners[target][k - 4]
                # wires are targets of points and of ends of wires only
                count = s.topology.vertex_extra[u][wp.where(s.least[source] <= 1, 1, 0)]
                for m in range(begin, end):
                    numbers = closest[m]
                    if numbers[0] == corner_number(u):
                        count = count + 1
                    for l in range(3):
                        if numbers[l + 1] == corner_number(u):
                            count = count - s.topology.side_extra[s.topology.sides[first + listed.items[m][3]][l]]
        if D < reach:
            value = vertex_coefficient(s, source, target, k, count)
            if value != ZERO:
                out.value = out.value + value * barrier(barrier_kind, D, d_hat, xi)[0]
                out.parts = with_code(out.parts, k, count + zero_of(k))
    return out


@wp.func
def coefficient(s: Surfaces, i: wp.int32, j: wp.int32, c: wp.vec4i, parts: wp.int64, k: wp.int32) -> wp.float64:
    """Return the coefficient of part k of an active candidate of bodies i, j other than two edges, with known `parts`."""
    if s.topology.local == 0 or c[1] == VERTEX_PLANE:
        return ONE
    v = wp.where(c[1] == TARGET_VERTEX, j, i)
    o = wp.where(c[1] == TARGET_VERTEX, i, j)
    source = s.vertex_start[s.mesh[v]] + c[2]
    return vertex_coefficient(s, source, s.target_start[s.mesh[o]] + c[3], k, code_of(parts, k) - zero_of(k))
