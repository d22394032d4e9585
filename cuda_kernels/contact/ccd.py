"""Conservative advancement on arcs; mirrors ``abd/contact/ccd.py``, which says why the proofs hold.

Over [t, t + tau] every point leaves its tangent by at most ``bend tau^2 / 2``. Of several proofs how far a candidate may
advance the longest counts. *Speed*: the distance falls at most by the relative speed of the two primitives after
removing the mean velocity of their points. *Plane*: the plane across the closest points, fixed to the second body, has
all points of the first primitive ahead of it. *Points*: two points alone stay apart along the line between them.
*Lines*: those of two edges keep their distance.
"""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, TWO, ZERO, Path, arc, arc_and_rate
from cuda_kernels.bodies.opaque import opaque
from cuda_kernels.contact.pair_law import activation
from cuda_kernels.contact.surfaces import (
    EDGE_EDGE,
    TARGET_VERTEX,
    VERTEX_PLANE,
    VERTEX_TARGET,
    Primitives,
    Surfaces,
    corners,
    points,
    primitives,
    proximity,
    proximity_at,
    separation,
)
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)

MAX_ADVANCES = wp.constant(wp.int32(256))
MANY = wp.constant(wp.int32(4096))
"""Advances on a path: tight gaps and turning bodies take hundreds, and few candidates need them."""
ANY_GAP = wp.constant(wp.float64(1.0e300))
"""No bound on the gap that a march leaves [m]."""
STRAINED = wp.constant(wp.float64(0.75))
"""Strain along the path beyond which the second body is no frame to prove anything in."""
ROUNDING = wp.constant(wp.float64(16.0 * 2.220446049250313e-16))
NEVER = wp.constant(wp.float64(1.0e100))
"""Bend of such a frame [m]."""
ENOUGH = wp.constant(wp.float64(0.2))
"""Share of the initial gap at which the march ends."""
LEFT = wp.constant(wp.float64(0.19))
"""Share of the current gap that an advance leaves; below `ENOUGH`, so that rounding does not decide on one more."""
WITHIN = wp.constant(wp.float64(0.9))
"""Gap at which a march of Newton's steps ends, in activations, if that is less: a contact that stops bodies acts there."""
BEYOND = wp.constant(wp.float64(1.0 + 1.0e-6))
"""How far beyond an impact that was found others march: no rounding near their end decides which one is first."""


@wp.func
def relative_speed(kind: wp.int32, v: Primitives) -> wp.float64:
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
def advance_within(capacity: wp.float64, speed: wp.float64, bend: wp.float64) -> wp.float64:
    """Largest tau with ``speed tau + bend tau^2 / 2 <= capacity``; capacity > 0, speed of any sign."""
    root = wp.sqrt(speed * speed + TWO * bend * capacity)
    if speed > ZERO:
        return TWO * capacity / (speed + root)
    if bend > ZERO:
        return (root - speed) / bend
    return wp.float64(1.0e300)


@wp.func
def clear(capacity: wp.float64, speed: wp.float64, bend: wp.float64) -> wp.float64:
    """How long one pair of points stays apart; not at all where they are not apart now."""
    if capacity <= ZERO:
        return ZERO
    return advance_within(capacity, speed, bend)


@wp.struct
class Frame:
    """What the march knows of the rest frame of the second body, along the whole of the path.

    `bend` bounds the second derivative there of the first primitive's points, `stretch` how fast distances there and in
    the world drift apart, per unit alpha.
    """

    bend: wp.float64
    stretch: wp.float64


@wp.func
def frame_of(path: Path, i: wp.int32, j: wp.int32, radius: wp.float64) -> Frame:
    """The frame of body j for points of body i that are `radius` or less from the origin of j at alpha = 0.

    It holds for the whole path, so that a march does not depend on how far it may go.
    """
    out = Frame()
    S = path.strain[j]
    W = wp.length(path.w[j])
    if S > STRAINED:
        out.bend = NEVER
        return out
    out.stretch = S / (ONE - S)
    spin = W + out.stretch
    travel = wp.length(path.dp[i] - path.dp[j]) + path.reach[i]
    far = radius + travel
    out.bend = path.bend[i]
    if spin > ZERO:
        out.bend += (W * W + TWO * W * out.stretch) * far + TWO * spin * (travel + spin * far)
    out.bend *= ONE + out.stretch
    return out


@wp.func
def seen(x: wp.vec3d, v: wp.vec3d, p: wp.vec3d, dp: wp.vec3d, spin: wp.mat33d) -> wp.vec3d:
    """Velocity of a point as a body sees it, whose points move by ``dp + spin (x - p)``."""
    return v - dp - spin * (x - p)


@wp.func
def plane_advance(
    n: wp.vec3d, floor: wp.float64, x: Primitives, u0: wp.vec3d, u1: wp.vec3d, edges: bool, frame: Frame
) -> wp.float64:
    """Proof by the plane with unit normal n, fixed to the second body, of which all first points stay ahead."""
    drift = floor * frame.stretch
    ahead = wp.min(wp.dot(n, x.x0 - x.x2), wp.dot(n, x.x0 - x.x3))
    if edges:
        other = wp.min(wp.dot(n, x.x1 - x.x2), wp.dot(n, x.x1 - x.x3))
        tau = clear(ahead - floor, drift - wp.dot(n, u0), frame.bend)
        return wp.min(tau, clear(other - floor, drift - wp.dot(n, u1), frame.bend))
    ahead = wp.min(ahead, wp.dot(n, x.x0 - x.x1))
    return clear(ahead - floor, drift - wp.dot(n, u0), frame.bend)


@wp.func
def lines_advance(
    floor: wp.float64,
    x: Primitives,
    u0: wp.vec3d,
    u1: wp.vec3d,
    r: wp.vec3d,
    along: wp.float64,
    left: wp.float64,
    frame: Frame,
) -> wp.float64:
    """Proof by the lines of two edges: ``f = r . (e x c)`` over ``|e x c|`` is their distance.

    c is the first edge, e the second, which rests, and r leads from a point of e to the point of c at the share `along`.
    Over tau <= `left` both expressions leave their tangents by what the bend of the ends of c allows. Allowances for
    rounding: f is the difference of large terms where the edges are long or almost parallel.
    """
    e = x.x3 - x.x2
    c = x.x1 - x.x0
    du = u1 - u0
    m = wp.cross(e, c)
    er = wp.cross(e, r)
    turned = wp.cross(e, du)
    f = wp.dot(r, m)
    rate = wp.dot(u0 + along * du, m) - wp.dot(du, er)
    curve = wp.dot(u0, turned)
    if f < ZERO:
        f = -f
        rate = -rate
        curve = -curve
    across = wp.length(m)
    grows = wp.length(turned)
    length = wp.length(e)
    arm = wp.length(c) + wp.length(r)
    s = frame.bend
    arms = TWO * wp.length(er) + across
    speeds = wp.length(wp.cross(e, u0)) + wp.length(wp.cross(e, u1))
    error = s * (arms + left * speeds) + HALF * length * s * s * left * left
    growth = TWO * floor * (length * s * (ONE + left * frame.stretch) + frame.stretch * grows)
    far = wp.max(wp.max(wp.length(x.x0), wp.length(x.x1)), wp.max(wp.length(x.x2), wp.length(x.x3)))
    noise = ROUNDING * (far + length + wp.length(c)) * length * arm
    noise_rate = ROUNDING * length * (wp.length(u0) + wp.length(u1)) * arm
    speed = floor * (grows + frame.stretch * across) - rate + noise_rate
    return clear(f - floor * across - noise, speed, error + growth + wp.max(ZERO, -TWO * curve))


@wp.func
def is_far(approach: wp.float64, known: wp.float64, end: wp.float64) -> bool:
    """Whether the motion of the whole bodies proves a candidate safe up to `end`: most need no march."""
    return approach < ZERO or (known > ZERO and approach * end <= (ONE - LEFT) * known)


@wp.func
def barely_moves(
    s: Surfaces, path: Path, i: wp.int32, j: wp.int32, c: wp.vec4i, known: wp.float64, end: wp.float64
) -> bool:
    """Whether the speeds at alpha = 0 of a candidate's points prove it safe up to `end`; `known` as `march` has it."""
    if known <= ZERO:
        return False
    kind = c[1]
    prim = primitives(s, i, j, kind, c[2], c[3])
    speeds = corners(kind, prim, path.dp[i], path.rate[i], path.dp[j], path.rate[j])
    bend = path.bend[i] + path.bend[j]
    return advance_within((ONE - LEFT) * known, relative_speed(kind, speeds), bend) >= end


@wp.func
def standing(path: Path, b: wp.int32, t: wp.float64, moved: bool):
    """Position, affine map and its rate of a body at t; where it has not `moved`, those that the path begins with."""
    if moved:
        A, rate = arc_and_rate(path, b, t)
        return path.p[b] + t * path.dp[b], A, rate
    return path.p[b], path.A[b], path.rate[b]


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
    approach: wp.float64,
    least: wp.float64,
    cap: wp.int32,
) -> wp.float64:
    """Largest proven-safe alpha, up to `end`, of a candidate of bodies i, j that is not far.

    `known` is its gap at alpha = 0 or a lower bound of it [m], `approach` bounds how much closer its bodies come [m], all
    along the path; it is negative where they stay as they are.

    Each advance keeps about a fifth of the gap it starts from; the march ends when a fifth of the initial gap is left, and
    no more than `least` [m], or at its cap of advances, with the alpha proven so far.
    """
    if barely_moves(s, path, i, j, c, known, end):
        return end
    kind = c[1]
    # the vertex, or the first edge, is of body f, the target or the second edge of body g
    f = i
    g = j
    if kind == TARGET_VERTEX:
        kind = VERTEX_TARGET
        f = j
        g = i
    edges = kind == EDGE_EDGE
    by_bodies = (ONE - LEFT) * known / approach
    at = points(s, i, j, c[1], c[2], c[3])
    frame = Frame()
    if kind != VERTEX_PLANE:
        radius = wp.length(path.p[f] + path.A[f] * s.vertices[at[0]] - path.p[g])
        if edges:
            radius = wp.max(radius, wp.length(path.p[f] + path.A[f] * s.vertices[at[1]] - path.p[g]))
        frame = frame_of(path, f, g, radius)
    stop = least
    t = wp.float64(0.0)
    marching = wp.bool(True)
    advances = wp.int32(0)
    # what an advance needs is found where it needs it, and let go: two poses, their rates and the points do not fit into
    # registers
    while marching:
        f = opaque(f)
        g = opaque(g)
        x = Primitives()
        v = Primitives()
        u0 = wp.vec3d()
        u1 = wp.vec3d()
        p, A, rate = standing(path, f, t, advances > 0)
        X = s.vertices[opaque(at[0])]
        x.x0 = p + A * X
        v.x0 = path.dp[f] + rate * X
        if edges:
            X = s.vertices[opaque(at[1])]
            x.x1 = p + A * X
            v.x1 = path.dp[f] + rate * X
        speed = wp.length(v.x0)
        if kind != VERTEX_PLANE:
            p, A, rate = standing(path, g, t, advances > 0)
            if not edges:
                X = s.vertices[opaque(at[1])]
                x.x1 = p + A * X
                v.x1 = path.dp[g] + rate * X
            X = s.vertices[opaque(at[2])]
            x.x2 = p + A * X
            v.x2 = path.dp[g] + rate * X
            X = s.vertices[opaque(at[3])]
            x.x3 = p + A * X
            v.x3 = path.dp[g] + rate * X
            speed = relative_speed(kind, v)
            spin = rate * wp.inverse(A)
            u0 = seen(x.x0, v.x0, p, path.dp[g], spin)
            u1 = seen(x.x1, v.x1, p, path.dp[g], spin)
        near = proximity_at(kind, Primitives(), x, s.plane[j])
        distance = wp.length(near.r)
        xi = separation(s, f, g, minimum)
        gap = near.side * distance - xi
        if advances == 0:
            stop = wp.min(ENOUGH * gap, stop)
            marching = gap > ZERO
        elif gap <= stop or advances >= cap:
            marching = False
        if marching:
            capacity = (ONE - LEFT) * gap
            bend = path.bend[f] + path.bend[g]
            tau = advance_within(capacity, speed, bend)
            if t + tau < end:
                n = near.r / distance
                if kind == VERTEX_PLANE:
                    tau = wp.max(tau, advance_within(capacity, -wp.dot(n, v.x0), bend))
                else:
                    if (
                        s.vertices[opaque(at[1])] == s.vertices[opaque(at[2])]
                        and s.vertices[opaque(at[2])] == s.vertices[opaque(at[3])]
                    ):
                        tau = wp.max(tau, advance_within(capacity, wp.dot(n, v.x1 - v.x0), bend))
                    floor = xi + LEFT * gap
                    tau = wp.max(tau, plane_advance(n, floor, x, u0, u1, edges, frame))
                    if edges and t + tau < end:
                        A = path.A[f]
                        p = path.p[f]
                        if advances > 0:
                            A = arc(path, f, t)
                            p = p + t * path.dp[f]
                        X = (ONE - near.share) * s.vertices[opaque(at[0])] + near.share * s.vertices[opaque(at[1])]
                        c0 = x.x1 - x.x0
                        along = wp.dot(p + A * X - x.x0, c0) / wp.dot(c0, c0)
                        tau = wp.max(tau, lines_advance(floor, x, u0, u1, near.r, along, ONE - t, frame))
            if not (tau > ZERO):
                marching = False
            elif t + tau >= end:
                t = end
                marching = False
            else:
                t = t + tau
                advances = advances + 1
    if by_bodies > t:
        t = wp.min(by_bodies, end)
    return t


@wp.func
def tell(alpha: wp.float64, island: wp.int32, first_found: wp.array(dtype=wp.float64)):
    """Let others know of an impact in an island: they march no further than `BEYOND` it.

    Only the smallest alpha of an island means anything. `first_found` (islands,), the limits at first, is the smallest
    that some thread has found so far. It is a hint that threads write without waiting for each other; a thread that reads
    an old one marches further than necessary. The smallest alpha has the same bits in any order, as a march that stops
    before its end does not depend on where that is.
    """
    if alpha < first_found[island]:
        first_found[island] = alpha


@wp.func
def gap_on_path(known: wp.float64, activation: wp.float64, closer: wp.float64, back: wp.int32) -> wp.float64:
    """Gap at the beginning of a path, or a lower bound of it [m], as `proven_fraction` has it."""
    gap = known * activation
    if back == 0:
        gap = wp.max(gap - closer, ZERO)
    return gap


@wp.func
def proven_fraction(
    s: Surfaces,
    path: Path,
    pair: wp.vec2i,
    c: wp.vec4i,
    minimum: wp.float64,
    closer: wp.float64,
    known: wp.float64,
    back: wp.int32,
    again: wp.int32,
) -> wp.float64:
    """How far the path of a candidate is proven free, 1 where it is free as a whole.

    `closer` bounds how much closer its bodies come, `known` is its gap at the end of the step, in activations, or a lower
    bound of it: where the path leads `back` that is the one at its beginning. A gap may shrink to a fifth, or to the
    activation if that is smaller; where the march goes `again`, after it did not come to the end, to a fifth of its value
    at the other end if that is smaller still, in more advances.
    """
    i = pair[0]
    j = pair[1]
    least = activation(s.between, i, j)
    floor = ANY_GAP
    if back == 0:
        floor = least
    cap = MAX_ADVANCES
    if again != 0:
        prim = primitives(s, i, j, c[1], c[2], c[3])
        end = proximity(
            c[1], prim,
            path.p[i] + path.dp[i], arc(path, i, ONE), path.p[j] + path.dp[j], arc(path, j, ONE), s.plane[j],
        )  # fmt: skip
        floor = wp.min(floor, ENOUGH * wp.max(end.side * wp.length(end.r) - separation(s, i, j, minimum), ZERO))
        cap = MANY
    gap = gap_on_path(known, least, closer, back)
    return march(s, path, i, j, c, minimum, ONE, gap, closer, floor, cap)
