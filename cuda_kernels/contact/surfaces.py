"""Rest-space surfaces shared by all instances of a mesh, and the proximity of one candidate.

A mesh's *targets* are its triangles, then its codimensional edges as degenerate triangles (a, b, b), then its isolated
points as (a, a, a). A candidate is ``(pair, kind, a, b)``:

    kind 0  vertex a of body i, target b of body j
    kind 1  vertex a of body j, target b of body i
    kind 2  edge a of body i, edge b of body j
    kind 3  vertex a of body i, half-space j
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, ZERO
from cuda_kernels.contact.distance import PARALLEL, edge_edge, point_triangle
from cuda_kernels.contact.pair_law import PairLaw
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)

VERTEX_TARGET = 0
TARGET_VERTEX = 1
EDGE_EDGE = 2
VERTEX_PLANE = 3

CORNERS = 0
EDGE_OF_I = 1
EDGE_OF_J = 2
EDGES = 3
FACE_OF_I = 4


@wp.struct
class Topology:
    """Neighbours of edges and vertices of the meshes: arrays of ``abd.contact.topology.Topology``; `local` is 1 for the contact
    set of local minima, 0 for all pairs."""

    local: wp.int32
    vertex_weight: wp.array(dtype=wp.float64)
    vertex_share: wp.array(dtype=wp.float64)
    edge_weight: wp.array(dtype=wp.float64)
    edge_faced: wp.array(dtype=wp.int32)
    owned: wp.array(dtype=wp.int32)
    sides: wp.array(dtype=wp.vec3i)
    corners: wp.array(dtype=wp.vec3i)
    side_extra: wp.array(dtype=wp.int32)
    vertex_extra: wp.array(dtype=wp.vec2i)
    dimension: wp.array(dtype=wp.int32)


@wp.struct
class Surfaces:
    """Meshes of all bodies, and the pair law; offsets `*_start` (meshes + 1,) index the concatenated arrays.
    `least` is the smallest dimension of targets that are tested against a vertex (abd/contact/surfaces.py)."""

    mesh: wp.array(dtype=wp.int32)
    vertex_start: wp.array(dtype=wp.int32)
    target_start: wp.array(dtype=wp.int32)
    edge_start: wp.array(dtype=wp.int32)
    vertices: wp.array(dtype=wp.vec3d)
    least: wp.array(dtype=wp.int32)
    targets: wp.array(dtype=wp.vec3i)
    edges: wp.array(dtype=wp.vec2i)
    target_bvh: wp.array(dtype=wp.uint64)
    edge_bvh: wp.array(dtype=wp.uint64)
    vertex_bvh: wp.array(dtype=wp.uint64)
    lower: wp.array(dtype=wp.vec3d)
    upper: wp.array(dtype=wp.vec3d)
    plane: wp.array(dtype=wp.vec4d)
    radius: wp.array(dtype=wp.float64)
    material: wp.array(dtype=wp.int32)
    topology: Topology
    between: PairLaw


@wp.struct
class CandidateList:
    """Candidates `items`, grouped by their pairs of bodies: `segment` (pairs + 1,) is the first one of every pair.

    counts (2,): numbers of pairs and of candidates; the arrays may have a larger capacity."""

    counts: wp.array(dtype=wp.int32)
    pairs: wp.array(dtype=wp.vec2i)
    segment: wp.array(dtype=wp.int32)
    items: wp.array(dtype=wp.vec4i)


@wp.struct
class Primitives:
    """Points of a candidate at rest, in the world, or their velocities: a vertex and three corners of a target, or the ends of
    two edges."""

    x0: wp.vec3d
    x1: wp.vec3d
    x2: wp.vec3d
    x3: wp.vec3d


@wp.struct
class Proximity:
    """Closest points of a candidate: rest positions on both bodies and r = x_i - x_j in the world [m].

    `side` is -1 below the surface of a half-space, 1 otherwise. `feature` is the location of the closest points: two vertices
    (0), a vertex and an edge of i (1) or of j (2), two edges (3), a vertex and a face of i (4) or of j (5). E0, E1 are the rest
    vectors of that edge, of both edges (i, j), or of two edges of the face. `parameter` is that on an edge of i, `weights` are
    those of the corners of a target.
    """

    Xi: wp.vec3d
    Xj: wp.vec3d
    r: wp.vec3d
    side: wp.float64
    feature: wp.int32
    E0: wp.vec3d
    E1: wp.vec3d
    parameter: wp.float64
    weights: wp.vec3d


@wp.func
def points(s: Surfaces, i: wp.int32, j: wp.int32, kind: wp.int32, a: wp.int32, b: wp.int32):
    """Return four vertices of a candidate in the array of all meshes: kinds 0 and 3 vertex, target; kind 1 the same with bodies
    exchanged; kind 2 edges. A half-space has none."""
    mi = s.mesh[i]
    mj = s.mesh[j]
    if kind == VERTEX_PLANE:
        v = s.vertex_start[mi] + a
        return v, v, v, v
    vi = s.vertex_start[mi]
    vj = s.vertex_start[mj]
    if kind == EDGE_EDGE:
        ea = s.edges[s.edge_start[mi] + a]
        eb = s.edges[s.edge_start[mj] + b]
        return vi + ea[0], vi + ea[1], vj + eb[0], vj + eb[1]
    if kind == TARGET_VERTEX:
        t = s.targets[s.target_start[mi] + b]
        return vj + a, vi + t[0], vi + t[1], vi + t[2]
    t = s.targets[s.target_start[mj] + b]
    return vi + a, vj + t[0], vj + t[1], vj + t[2]


@wp.func
def primitives(s: Surfaces, i: wp.int32, j: wp.int32, kind: wp.int32, a: wp.int32, b: wp.int32) -> Primitives:
    """Return rest points of a candidate, in the order of `points`."""
    p0, p1, p2, p3 = points(s, i, j, kind, a, b)
    out = Primitives()
    out.x0 = s.vertices[p0]
    out.x1 = s.vertices[p1]
    out.x2 = s.vertices[p2]
    out.x3 = s.vertices[p3]
    return out


@wp.func
def corners(kind: wp.int32, c: Primitives, pi: wp.vec3d, Ai: wp.mat33d, pj: wp.vec3d, Aj: wp.mat33d) -> Primitives:
    """Return world positions of the points (or velocities, from rates) at the given poses."""
    out = Primitives()
    if kind == VERTEX_PLANE:
        out.x0 = pi + Ai * c.x0
        return out
    if kind == EDGE_EDGE:
        out.x0 = pi + Ai * c.x0
        out.x1 = pi + Ai * c.x1
        out.x2 = pj + Aj * c.x2
        out.x3 = pj + Aj * c.x3
        return out
    if kind == TARGET_VERTEX:
        out.x0 = pj + Aj * c.x0
        out.x1 = pi + Ai * c.x1
        out.x2 = pi + Ai * c.x2
        out.x3 = pi + Ai * c.x3
        return out
    out.x0 = pi + Ai * c.x0
    out.x1 = pj + Aj * c.x1
    out.x2 = pj + Aj * c.x2
    out.x3 = pj + Aj * c.x3
    return out


@wp.func
def proximity(
    kind: wp.int32, c: Primitives, pi: wp.vec3d, Ai: wp.mat33d, pj: wp.vec3d, Aj: wp.mat33d, plane: wp.vec4d
) -> Proximity:
    """Return closest points of the candidate with rest points c at the given poses of its two bodies."""
    return proximity_at(kind, c, corners(kind, c, pi, Ai, pj, Aj), plane)


@wp.func
def proximity_at(kind: wp.int32, c: Primitives, x: Primitives, plane: wp.vec4d) -> Proximity:
    """Return closest points of the candidate with rest points c and world points x."""
    out = Proximity()
    out.side = ONE
    out.feature = CORNERS
    if kind == VERTEX_PLANE:
        n = wp.vec3d(plane[0], plane[1], plane[2])
        height = wp.dot(n, x.x0) - plane[3]
        if height < ZERO:
            out.side = -ONE
        out.Xi = c.x0
        out.r = height * n
        return out
    if kind == EDGE_EDGE:
        st = edge_edge(x.x0, x.x1, x.x2, x.x3)
        out.parameter = st[0]
        # exact at the ends: candidates with the same two closest vertices have the same closest points
        out.Xi = (ONE - st[0]) * c.x0 + st[0] * c.x1
        out.Xj = (ONE - st[1]) * c.x2 + st[1] * c.x3
        r = (x.x0 - x.x2) + st[0] * (x.x1 - x.x0) - st[1] * (x.x3 - x.x2)
        out.E0 = c.x1 - c.x0
        out.E1 = c.x3 - c.x2
        inside_i = st[0] > ZERO and st[0] < ONE
        inside_j = st[1] > ZERO and st[1] < ONE
        if inside_i and not inside_j:
            out.feature = EDGE_OF_I
        if inside_j and not inside_i:
            out.feature = EDGE_OF_J
            out.E0 = out.E1
        if inside_i and inside_j:
            out.feature = EDGES
            # inside both edges the distance is that of their lines, without the rounding of the parameters
            n = wp.cross(x.x1 - x.x0, x.x3 - x.x2)
            if wp.dot(n, n) > PARALLEL * wp.dot(x.x1 - x.x0, x.x1 - x.x0) * wp.dot(x.x3 - x.x2, x.x3 - x.x2):
                n = wp.normalize(n)
                r = wp.dot(n, r) * n
        out.r = r
        return out
    w = point_triangle(x.x0, x.x1, x.x2, x.x3)
    out.weights = w
    Xt = w[0] * c.x1 + w[1] * c.x2 + w[2] * c.x3
    r = (x.x0 - x.x1) - w[1] * (x.x2 - x.x1) - w[2] * (x.x3 - x.x1)
    on_target = wp.int32(0)
    if kind == VERTEX_TARGET:
        on_target = 1
    if w[0] > ZERO and w[1] > ZERO:
        out.feature = EDGE_OF_I + on_target
        out.E0 = c.x2 - c.x1
    if w[0] > ZERO and w[2] > ZERO:
        out.feature = EDGE_OF_I + on_target
        out.E0 = c.x3 - c.x1
    if w[1] > ZERO and w[2] > ZERO:
        out.feature = EDGE_OF_I + on_target
        out.E0 = c.x3 - c.x2
    if w[0] > ZERO and w[1] > ZERO and w[2] > ZERO:
        out.feature = FACE_OF_I + on_target
        out.E0 = c.x2 - c.x1
        out.E1 = c.x3 - c.x1
        # inside the face the distance is that to its plane, without the rounding of the weights
        n = wp.normalize(wp.cross(x.x2 - x.x1, x.x3 - x.x1))
        r = wp.dot(n, r) * n
    if kind == TARGET_VERTEX:
        out.Xi = Xt
        out.Xj = c.x0
        out.r = -r
    else:
        out.Xi = c.x0
        out.Xj = Xt
        out.r = r
    return out


@wp.func
def separation(s: Surfaces, i: wp.int32, j: wp.int32, minimum: wp.float64) -> wp.float64:
    """Return the distance [m] at which a pair touches: radii and minimum separation."""
    return s.radius[i] + s.radius[j] + minimum
