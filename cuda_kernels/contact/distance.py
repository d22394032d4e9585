"""Closest points and squared distances of primitive pairs, as in ``abd/potentials/distance.py``.

Each function returns barycentric weights. The distance follows from the weighted points; by the envelope theorem its gradient is
that at fixed weights. Degenerate triangles (a, b, b) and (a, a, a) are codimensional edges and points.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, TINY, ZERO
from cuda_kernels.options import OPTIONS
from cuda_kernels.shared import contact as shared

wp.set_module_options(OPTIONS)

PARALLEL = wp.constant(wp.float64(shared.PARALLEL))
TIE = wp.constant(wp.float64(shared.TIE))


@wp.func
def edge_parameter(p: wp.vec3d, a: wp.vec3d, b: wp.vec3d) -> wp.float64:
    """Return the parameter in [0, 1] of the point of segment ab closest to p."""
    e = b - a
    length2 = wp.dot(e, e)
    if length2 <= TINY:
        return ZERO
    return wp.clamp(wp.dot(p - a, e) / length2, ZERO, ONE)


@wp.func
def edge_distance2(p: wp.vec3d, a: wp.vec3d, b: wp.vec3d) -> wp.float64:
    r = (p - a) - edge_parameter(p, a, b) * (b - a)
    return wp.dot(r, r)


@wp.func
def reciprocal(length2: wp.float64) -> wp.float64:
    """Return 1 / length2, 0 for a point."""
    if length2 <= TINY:
        return ZERO
    return ONE / length2


@wp.func
def point_triangle(p: wp.vec3d, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d) -> wp.vec3d:
    """Return the weights (3,) of the point of triangle abc closest to p (Ericson, Real-Time Collision Detection, 5.1.5), within
    a `TIE`."""
    ab = b - a
    ac = c - a
    n = wp.cross(ab, ac)
    if wp.dot(n, n) <= PARALLEL * wp.dot(ab, ab) * wp.dot(ac, ac):
        t = edge_parameter(p, a, b)
        return wp.vec3d(ONE - t, t, ZERO)
    ap = p - a
    bp = p - b
    cp = p - c
    d1 = wp.dot(ab, ap)
    d2 = wp.dot(ac, ap)
    d3 = wp.dot(ab, bp)
    d4 = wp.dot(ac, bp)
    d5 = wp.dot(ab, cp)
    d6 = wp.dot(ac, cp)
    va = d3 * d6 - d5 * d4
    vb = d5 * d2 - d1 * d6
    vc = d1 * d4 - d3 * d2
    total = va + vb + vc
    if wp.min(va, wp.min(vb, vc)) > -TIE * total:
        s = ONE / total
        return wp.vec3d(wp.max(va * s, TINY), wp.max(vb * s, TINY), wp.max(vc * s, TINY))
    if d1 <= ZERO and d2 <= ZERO:
        return wp.vec3d(ONE, ZERO, ZERO)
    if d3 >= ZERO and d4 <= d3:
        return wp.vec3d(ZERO, ONE, ZERO)
    if d6 >= ZERO and d5 <= d6:
        return wp.vec3d(ZERO, ZERO, ONE)
    if vc <= ZERO and d1 >= ZERO and d3 <= ZERO:
        t = d1 / (d1 - d3)
        return wp.vec3d(ONE - t, t, ZERO)
    if vb <= ZERO and d2 >= ZERO and d6 <= ZERO:
        t = d2 / (d2 - d6)
        return wp.vec3d(ONE - t, ZERO, t)
    t = (d4 - d3) / ((d4 - d3) + (d5 - d6))
    return wp.vec3d(ZERO, ONE - t, t)


@wp.func
def edge_edge(a0: wp.vec3d, a1: wp.vec3d, b0: wp.vec3d, b1: wp.vec3d) -> wp.vec2d:
    """Return parameters (s, t) of the closest points ``a0 + s (a1 - a0)``, ``b0 + t (b1 - b0)``.

    The squared distance is convex: two end points are closest if it decreases towards neither interior. Else the closest points
    are interior if the lines are not parallel and both parameters are strictly inside; otherwise they give the smallest of the
    four point-edge distances, in the order a0, a1, b0, b1.
    """
    u = a1 - a0
    v = b1 - b0
    w = a0 - b0
    uu = wp.dot(u, u)
    uv = wp.dot(u, v)
    vv = wp.dot(v, v)
    uw = wp.dot(u, w)
    vw = wp.dot(v, w)
    if uw >= ZERO and vw <= ZERO:
        return wp.vec2d(ZERO, ZERO)
    if uw + uu <= ZERO and vw + uv <= ZERO:
        return wp.vec2d(ONE, ZERO)
    if uw - uv >= ZERO and vw - vv >= ZERO:
        return wp.vec2d(ZERO, ONE)
    if uw + uu - uv <= ZERO and vw + uv - vv >= ZERO:
        return wp.vec2d(ONE, ONE)
    n = wp.cross(u, v)
    det = wp.dot(n, n)
    if det > PARALLEL * uu * vv:
        # triple products lose only 1 / sin of the angle
        s = wp.dot(wp.cross(v, w), n) / det
        t = wp.dot(wp.cross(u, w), n) / det
        if s > ZERO and s < ONE and t > ZERO and t < ONE:
            return wp.vec2d(s, t)
    per_u = reciprocal(uu)
    per_v = reciprocal(vv)
    best = wp.vec2d(ZERO, wp.clamp(vw * per_v, ZERO, ONE))
    r = w - best[1] * v
    shortest = wp.dot(r, r)
    t1 = wp.clamp((vw + uv) * per_v, ZERO, ONE)
    r = w + u - t1 * v
    if wp.dot(r, r) < shortest:
        shortest = wp.dot(r, r)
        best = wp.vec2d(ONE, t1)
    s0 = wp.clamp(-uw * per_u, ZERO, ONE)
    r = w + s0 * u
    if wp.dot(r, r) < shortest:
        shortest = wp.dot(r, r)
        best = wp.vec2d(s0, ZERO)
    s1 = wp.clamp((uv - uw) * per_u, ZERO, ONE)
    r = w + s1 * u - v
    if wp.dot(r, r) < shortest:
        best = wp.vec2d(s1, ONE)
    return best
