"""Combination of the barriers of a candidate's parts (`cuda_kernels.contact.parts`) for contact at local minima of distance.

``abd/contact/minima.py`` has the formulas. In the contact set "ipc" a candidate has one part, itself.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, ZERO, Pose
from cuda_kernels.contact.barrier import barrier
from cuda_kernels.contact.distance import TIE, edge_distance2, edge_parameter, point_triangle
from cuda_kernels.contact.parts import PARTS, code_of, with_code, zero_of
from cuda_kernels.contact.surfaces import (
    EDGE_EDGE,
    FACE_OF_I,
    TARGET_VERTEX,
    VERTEX_PLANE,
    VERTEX_TARGET,
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
"""Derivatives of a candidate's combination by the barriers of its parts, 0 without a part, and the combination."""


@wp.struct
class Combination:
    """Codes of the nonzero parts of a candidate, and the combination of their barriers."""

    parts: wp.int64
    value: wp.float64


@wp.func
def pattern(s: Surfaces, start: wp.int32, target: wp.int32, x: wp.vec3d, p: wp.vec3d, A: wp.mat33d) -> wp.int32:
    """Return `pattern_of` the point of a target closest to x. Vertices begin at `start`."""
    t = s.targets[target]
    w = point_triangle(
        x, p + A * s.vertices[start + t[0]], p + A * s.vertices[start + t[1]], p + A * s.vertices[start + t[2]]
    )
    return pattern_of(s, target, w)


@wp.func
def pattern_of(s: Surfaces, target: wp.int32, w: wp.vec3d) -> wp.int32:
    """Return bits of the corners of a target with a positive weight w; all of them on an owned side within a `TIE`."""
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
    if owned_count == 1:
        return 7
    return bits


@wp.func
def has_neighbour(s: Surfaces, u: wp.int32, v: wp.int32) -> bool:
    """Return whether vertex v is tested against a triangle or edge around u; those of the largest dimension come first."""
    begin = s.topology.ring_start[u]
    if begin == s.topology.ring_start[u + 1]:
        return False
    t = s.targets[s.topology.ring_target[begin]]
    if t[1] != t[2]:
        return True
    return t[0] != t[1] and s.least[v] <= 1


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
def of_edges(
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
    """Return coefficients of two edges with the proximity `near`."""
    out = Coefficients()
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
    near: Proximity,
) -> Combination:
    """Return the combination of an active candidate (pair, kind, a, b) of bodies i, j with the proximity `near`."""
    out = Combination()
    if s.topology.local == 0 or c[1] == VERTEX_PLANE:
        out.parts = wp.int64(1)
        out.value = barrier(barrier_kind, wp.dot(near.r, near.r), d_hat, xi)[0]
        return out
    if c[1] == EDGE_EDGE:
        counts = of_edges(s, barrier_kind, d_hat, xi, pose, i, j, c, prim, near)
        out.value = counts[TOTAL]
        for k in range(5):
            if counts[k] != ZERO:
                out.parts = with_code(out.parts, k, 1)
        return out
    v = i
    o = j
    if c[1] == TARGET_VERTEX:
        v = j
        o = i
    source = s.vertex_start[s.mesh[v]] + c[2]
    weight = s.topology.vertex_weight[source]
    if weight == ZERO:
        return out
    # wires are targets of points and of ends of wires only
    wires = s.least[source] <= 1
    p = pose.p[o]
    A = pose.A[o]
    world = corners(VERTEX_TARGET, prim, pose.p[v], pose.A[v], p, A)
    x = world.x0
    points = wp.matrix_from_rows(world.x1, world.x2, world.x3)
    start = s.vertex_start[s.mesh[o]]
    target = s.target_start[s.mesh[o]] + c[3]
    own = s.targets[target]
    owned = s.topology.owned[target]
    # bits of the interior: of a wire its two ends; a point has corners only
    inside = wp.int32(7)
    if own[1] == own[2]:
        inside = 3
        if own[0] == own[1]:
            inside = 8
    reach = (d_hat + xi) * (d_hat + xi)
    own_pattern = pattern_of(s, target, near.weights)
    for k in range(PARTS):
        # only triangles whose closest point has three positive weights have the pattern of their interior
        is_present = inside == 3 or near.feature >= FACE_OF_I
        if k > 0:
            is_present = ((owned >> (k - 1)) & 1) != 0
        if not is_present:
            continue
        # the ends of a side, or twice the same corner
        head = points[(k + 2) % 3]
        tail = points[wp.where(k <= 3, k, k + 2) % 3]
        D = wp.dot(near.r, near.r)
        if k > 0:
            D = edge_distance2(x, head, tail)
        if D >= reach:
            continue
        count = wp.int32(0)
        if k == 0:
            if own_pattern == inside:
                count = wp.int32(1)
        elif k <= 3:
            side = s.topology.sides[target][k - 1]
            t = edge_parameter(x, head, tail)
            if s.topology.side_ends[side][0] != s.topology.corners[target][k - 1]:
                t = edge_parameter(x, tail, head)
            begin = s.topology.side_start[side]
            end = s.topology.side_start[side + 1]
            if t > TIE and t < ONE - TIE:
                count = begin - end + 1
            # in a tie, the closest point of a triangle may be on the side, and that of the side at its end
            for m in range(begin, end):
                other = s.topology.side_target[m]
                found = own_pattern
                if other != target:
                    found = pattern(s, start, other, x, p, A)
                if found == s.topology.side_pattern[m]:
                    count = count + 1
        else:
            u = s.topology.corners[target][k - 4]
            count = wp.int32(1)
            for m in range(s.topology.ring_start[u], s.topology.ring_start[u + 1]):
                other = s.topology.ring_target[m]
                triangle = s.targets[other][1] != s.targets[other][2]
                if triangle or wires:
                    found = own_pattern
                    if other != target:
                        found = pattern(s, start, other, x, p, A)
                    if found != s.topology.ring_pattern[m]:
                        count = count - 1
            for m in range(s.topology.spoke_start[u], s.topology.spoke_start[u + 1]):
                # from the lower to the higher vertex, as for the side itself
                w = s.topology.spoke_end[m]
                far = p + A * s.vertices[w]
                is_beyond = edge_parameter(x, head, far) > TIE
                if u > w:
                    is_beyond = edge_parameter(x, far, head) < ONE - TIE
                if is_beyond:
                    count = count + s.topology.spoke_extra[m]
        value = vertex_coefficient(s, source, target, k, count)
        if value != ZERO:
            out.value = out.value + value * barrier(barrier_kind, D, d_hat, xi)[0]
            out.parts = with_code(out.parts, k, count + zero_of(k))
    return out


@wp.func
def coefficients(
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
    parts: wp.int64,
) -> Coefficients:
    """Return coefficients of an active candidate of bodies i, j with the proximity `near` and known `parts` at this pose; those
    of a vertex without their combination."""
    if c[1] == EDGE_EDGE and s.topology.local != 0:
        return of_edges(s, barrier_kind, d_hat, xi, pose, i, j, c, prim, near)
    out = Coefficients()
    if s.topology.local == 0 or c[1] == VERTEX_PLANE:
        out[0] = ONE
        out[TOTAL] = barrier(barrier_kind, wp.dot(near.r, near.r), d_hat, xi)[0]
        return out
    v = wp.where(c[1] == TARGET_VERTEX, j, i)
    o = wp.where(c[1] == TARGET_VERTEX, i, j)
    source = s.vertex_start[s.mesh[v]] + c[2]
    target = s.target_start[s.mesh[o]] + c[3]
    for k in range(PARTS):
        code = code_of(parts, k)
        if code != 0:
            out[k] = vertex_coefficient(s, source, target, k, code - zero_of(k))
    return out
