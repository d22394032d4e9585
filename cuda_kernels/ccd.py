"""Conservative advancement on arcs; mirrors ``abd/contact/ccd.py``.

Over [t, t + tau] every point leaves its tangent by at most ``bend tau^2 / 2``. Two proofs bound how far a candidate may
advance, and the longer one counts. *Speed*: the distance falls at most by the relative speed of the two primitives
after removing the mean velocity of their points. *Normal*: the plane across the closest points keeps the primitives
apart as long as every point of one stays ahead of every point of the other along it; sliding passes in one advance.
"""

import warp as wp

from cuda_kernels.affine import ONE, TWO, ZERO, Path, arc_and_rate
from cuda_kernels.surfaces import (
    EDGE_EDGE,
    TARGET_VERTEX,
    VERTEX_PLANE,
    Primitives,
    Surfaces,
    primitives,
    proximity,
    separation,
)

wp.set_module_options({"enable_backward": False, "max_unroll": 4})

MAX_ADVANCES = wp.constant(wp.int32(256))
ENOUGH = wp.constant(wp.float64(0.1))
"""Share of the initial gap at which the march ends."""
LEFT = wp.constant(wp.float64(0.099))
"""Share of the current gap that an advance leaves; below `ENOUGH`, so that rounding does not decide on one more."""


@wp.struct
class Corners:
    """Positions or velocities of a candidate's points: the vertex and the target's corners, or the ends of two edges."""

    x0: wp.vec3d
    x1: wp.vec3d
    x2: wp.vec3d
    x3: wp.vec3d


@wp.func
def corners(kind: wp.int32, c: Primitives, pi: wp.vec3d, Ai: wp.mat33d, pj: wp.vec3d, Aj: wp.mat33d) -> Corners:
    """World positions of the points (or velocities, from rates) at the given poses."""
    out = Corners()
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
def relative_speed(kind: wp.int32, v: Corners) -> wp.float64:
    """Largest speed of one primitive's points plus the other's, after removing their mean velocity [m per unit alpha]."""
    if kind == VERTEX_PLANE:
        return wp.length(v.x0)
    mean = wp.float64(0.25) * (v.x0 + v.x1 + v.x2 + v.x3)
    a = wp.length_sq(v.x0 - mean)
    b = wp.length_sq(v.x1 - mean)
    c = wp.length_sq(v.x2 - mean)
    d = wp.length_sq(v.x3 - mean)
    if kind == EDGE_EDGE:
        return wp.sqrt(wp.max(a, b)) + wp.sqrt(wp.max(c, d))
    return wp.sqrt(a) + wp.sqrt(wp.max(b, wp.max(c, d)))


@wp.func
def advance_within(room: wp.float64, speed: wp.float64, bend: wp.float64) -> wp.float64:
    """Largest tau with ``speed tau + bend tau^2 / 2 <= room``; room > 0, speed of any sign."""
    root = speed + wp.sqrt(speed * speed + TWO * bend * room)
    if root <= ZERO:
        return wp.float64(1.0e300)
    return TWO * room / root


@wp.func
def normal_advance(
    kind: wp.int32, n: wp.vec3d, room: wp.float64, x: Corners, v: Corners, bend: wp.float64, floor: wp.float64
) -> wp.float64:
    """The proof along the unit normal n (from the second primitive to the first); `floor` is the distance to keep."""
    if kind == VERTEX_PLANE:
        return advance_within(room, -wp.dot(n, v.x0), bend)
    a0 = wp.dot(n, x.x0)
    u0 = wp.dot(n, v.x0)
    tau = wp.float64(1.0e300)
    if kind == EDGE_EDGE:
        a1 = wp.dot(n, x.x1)
        u1 = wp.dot(n, v.x1)
        b2 = wp.dot(n, x.x2) + floor
        w2 = wp.dot(n, v.x2)
        b3 = wp.dot(n, x.x3) + floor
        w3 = wp.dot(n, v.x3)
        tau = wp.min(tau, wp.min(clear(a0 - b2, w2 - u0, bend), clear(a0 - b3, w3 - u0, bend)))
        tau = wp.min(tau, wp.min(clear(a1 - b2, w2 - u1, bend), clear(a1 - b3, w3 - u1, bend)))
        return tau
    tau = wp.min(tau, clear(a0 - wp.dot(n, x.x1) - floor, wp.dot(n, v.x1) - u0, bend))
    tau = wp.min(tau, clear(a0 - wp.dot(n, x.x2) - floor, wp.dot(n, v.x2) - u0, bend))
    tau = wp.min(tau, clear(a0 - wp.dot(n, x.x3) - floor, wp.dot(n, v.x3) - u0, bend))
    return tau


@wp.func
def clear(room: wp.float64, speed: wp.float64, bend: wp.float64) -> wp.float64:
    """How long one pair of points stays apart; not at all where they are not apart now."""
    if room <= ZERO:
        return ZERO
    return advance_within(room, speed, bend)


@wp.func
def march(
    s: Surfaces,
    path: Path,
    i: wp.int32,
    j: wp.int32,
    c: wp.vec4i,
    minimum: wp.float64,
    end: wp.float64,
    known: wp.float64,
) -> wp.float64:
    """Largest proven-safe alpha of a candidate of bodies i, j, up to `end`; `known` is its gap at alpha = 0 or a lower
    bound of it [m].

    Each advance keeps about a tenth of the gap it starts from; the march ends when a tenth of the initial gap is left, or at
    its cap of advances, with the alpha proven so far.
    """
    kind = c[1]
    prim = primitives(s, i, j, kind, c[2], c[3])
    bend = path.bend[i] + path.bend[j]
    v = corners(kind, prim, path.dp[i], path.rate[i], path.dp[j], path.rate[j])
    if known > ZERO and advance_within((ONE - LEFT) * known, relative_speed(kind, v), bend) >= end:
        return end
    xi = separation(s, i, j, minimum)
    near = proximity(kind, prim, path.p[i], path.A[i], path.p[j], path.A[j], s.plane[j])
    distance = wp.length(near.r)
    gap = near.side * distance - xi
    stop = ENOUGH * gap
    pi = path.p[i]
    Ai = path.A[i]
    rate_i = path.rate[i]
    pj = path.p[j]
    Aj = path.A[j]
    rate_j = path.rate[j]
    t = wp.float64(0.0)
    marching = gap > ZERO
    advances = wp.int32(0)
    while marching:
        if advances > 0:
            v = corners(kind, prim, path.dp[i], rate_i, path.dp[j], rate_j)
        room = (ONE - LEFT) * gap
        tau = advance_within(room, relative_speed(kind, v), bend)
        if t + tau < end:
            n = near.r / distance
            if kind == TARGET_VERTEX:
                n = -n
            x = corners(kind, prim, pi, Ai, pj, Aj)
            tau = wp.max(tau, normal_advance(kind, n, room, x, v, bend, xi + LEFT * gap))
        if not (tau > ZERO):
            marching = False
        elif t + tau >= end:
            t = end
            marching = False
        else:
            t = t + tau
            pi = path.p[i] + t * path.dp[i]
            pj = path.p[j] + t * path.dp[j]
            Ai, rate_i = arc_and_rate(path, i, t)
            Aj, rate_j = arc_and_rate(path, j, t)
            near = proximity(kind, prim, pi, Ai, pj, Aj, s.plane[j])
            distance = wp.length(near.r)
            gap = near.side * distance - xi
            advances = advances + 1
            if gap <= stop or advances >= MAX_ADVANCES:
                marching = False
    return t


@wp.kernel
def times_of_impact(
    first: wp.int32,
    s: Surfaces,
    path: Path,
    pairs: wp.array(dtype=wp.vec2i),
    candidates: wp.array(dtype=wp.vec4i),
    listed: wp.array(dtype=wp.int32),
    batch: wp.int32,
    minimum: wp.float64,
    island: wp.array(dtype=wp.int32),
    limit: wp.array(dtype=wp.float64),
    approach: wp.array(dtype=wp.float64),
    known: wp.array(dtype=wp.float64),
    toi: wp.array(dtype=wp.float64),
):
    """Proven-safe alphas of a batch of candidates, up to the limit of their islands; `approach` bounds how much closer
    the bodies of every pair come, `known` are the candidates' gaps at alpha = 0, or lower bounds of them;
    listed = [pairs, candidates]."""
    t = wp.tid() + first
    for k in range(batch * t, wp.min(batch * (t + 1), listed[1])):
        c = candidates[k]
        i = pairs[c[0]][0]
        end = limit[island[i]]
        if known[k] <= approach[c[0]] * end:
            end = march(s, path, i, pairs[c[0]][1], c, minimum, end, known[k])
        toi[k] = end
