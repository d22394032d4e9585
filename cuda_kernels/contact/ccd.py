"""Conservative advancement on arcs; ``abd/contact/ccd.py`` has the same functions and the reasons for the proofs.

Over [t, t + tau] every point deviates from its tangent by at most ``bend tau^2 / 2``. Several proofs bound the advance of a
candidate; the longest one counts. *Speed*: the distance decreases at most by the relative speed of the two primitives after
removing the mean velocity of their points. *Plane*: all points of the first primitive are ahead of the plane across the closest
points, fixed to the second body. *Points*: two points are separated along the line between them. *Lines*: the lines of two edges
keep a distance.
"""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, TWO, ZERO, Path, arc, arc_and_rate
from cuda_kernels.contact.pair_law import activation
from cuda_kernels.contact.surfaces import (
    EDGE_EDGE,
    TARGET_VERTEX,
    VERTEX_PLANE,
    VERTEX_TARGET,
    CandidateList,
    Primitives,
    Surfaces,
    corners,
    points,
    primitives,
    proximity,
    proximity_at,
    separation,
)
from cuda_kernels.options import OPTIONS, opaque
from cuda_kernels.shared import contact as shared
from cuda_kernels.shared.contact import MAX_REPEATED_ADVANCES

wp.set_module_options(OPTIONS)

MAX_ADVANCES = wp.constant(wp.int32(256))
ANY_GAP = wp.constant(wp.float64(1.0e300))
"""No bound on the remaining gap of a march [m]."""
STRAINED = wp.constant(wp.float64(shared.STRAINED))
CANCELLATION = wp.constant(wp.float64(shared.CANCELLATION))
UNBOUNDED_BEND = wp.constant(wp.float64(shared.UNBOUNDED_BEND))
FINAL_FRACTION = wp.constant(wp.float64(shared.FINAL_FRACTION))
REMAINING_FRACTION = wp.constant(wp.float64(shared.REMAINING_FRACTION))
WITHIN = wp.constant(wp.float64(shared.WITHIN))
IMPACT_MARGIN = wp.constant(wp.float64(1.0 + 1.0e-6))
"""Factor on an impact that bounds other marches: rounding near their end must not affect the smallest one."""


@wp.struct
class Query:
    """Candidates on a path; minimum separation [m].

    `approach` bounds the approach of the bodies of every pair on the whole path [m], negative for bodies at rest; `known` are the
    candidates' gaps [activations], or lower bounds of them, at the start of the path or at the end of the step."""

    listed: CandidateList
    minimum: wp.float64
    approach: wp.array(dtype=wp.float64)
    known: wp.array(dtype=wp.float64)


@wp.struct
class Limits:
    """Ends of the paths: island (n,) of every body and limits (islands,); `first_found` (islands,) of `publish_impact`. If
    `proven`, the limits are safe for pairs that are `kept` (not -1)."""

    island: wp.array(dtype=wp.int32)
    limit: wp.array(dtype=wp.float64)
    kept: wp.array(dtype=wp.int32)
    proven: wp.int32
    first_found: wp.array(dtype=wp.float64)


@wp.func
def relative_speed(kind: wp.int32, v: Primitives) -> wp.float64:
    """Return the largest speeds of both primitives' points, summed, without their mean velocity [m per unit alpha]."""
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
    """Return the largest tau with ``speed tau + bend tau^2 / 2 <= capacity``; capacity > 0, speed of any sign."""
    root = wp.sqrt(speed * speed + TWO * bend * capacity)
    if speed > ZERO:
        return TWO * capacity / (speed + root)
    if bend > ZERO:
        return (root - speed) / bend
    return wp.float64(1.0e300)


@wp.func
def separated_time(capacity: wp.float64, speed: wp.float64, bend: wp.float64) -> wp.float64:
    """Return the time in which a pair of points stays separated, 0 if it is not separated now."""
    if capacity <= ZERO:
        return ZERO
    return advance_within(capacity, speed, bend)


@wp.struct
class Frame:
    """Bounds in the rest frame of the second body, for the whole path.

    `bend` bounds the second derivative of the first primitive's points in it, `stretch` the rate of change of the ratio of
    distances in the frame and in the world, per unit alpha.
    """

    bend: wp.float64
    stretch: wp.float64


@wp.func
def frame_of(path: Path, i: wp.int32, j: wp.int32, radius: wp.float64) -> Frame:
    """Return the frame of body j for points of body i within `radius` of the origin of j at alpha = 0.

    It is valid for the whole path, so that a march does not depend on its limit.
    """
    out = Frame()
    S = path.strain[j]
    W = wp.length(path.w[j])
    if S > STRAINED:
        out.bend = UNBOUNDED_BEND
        return out
    out.stretch = S / (ONE - S)
    spin = W + out.stretch
    travel = wp.length(path.dp[i] - path.dp[j]) + path.affine_speed[i]
    distance_bound = radius + travel
    out.bend = path.bend[i]
    if spin > ZERO:
        out.bend += (W * W + TWO * W * out.stretch) * distance_bound + TWO * spin * (travel + spin * distance_bound)
    out.bend *= ONE + out.stretch
    return out


@wp.func
def relative_velocity(x: wp.vec3d, v: wp.vec3d, p: wp.vec3d, dp: wp.vec3d, spin: wp.mat33d) -> wp.vec3d:
    """Return the velocity of a point relative to a body whose points move by ``dp + spin (x - p)``."""
    return v - dp - spin * (x - p)


@wp.func
def plane_advance(
    n: wp.vec3d, floor: wp.float64, x: Primitives, u0: wp.vec3d, u1: wp.vec3d, edges: bool, frame: Frame
) -> wp.float64:
    """Return the advance by the plane with unit normal n, fixed to the second body, with all first points ahead of it."""
    drift = floor * frame.stretch
    ahead = wp.min(wp.dot(n, x.x0 - x.x2), wp.dot(n, x.x0 - x.x3))
    if edges:
        other = wp.min(wp.dot(n, x.x1 - x.x2), wp.dot(n, x.x1 - x.x3))
        tau = separated_time(ahead - floor, drift - wp.dot(n, u0), frame.bend)
        return wp.min(tau, separated_time(other - floor, drift - wp.dot(n, u1), frame.bend))
    ahead = wp.min(ahead, wp.dot(n, x.x0 - x.x1))
    return separated_time(ahead - floor, drift - wp.dot(n, u0), frame.bend)


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
    """Return the advance by the lines of two edges: ``f = r . (e x c)`` over ``|e x c|`` is their distance.

    c is the first edge, e the second, at rest, and r is the vector from a point of e to the point of c at parameter `along`.
    Over tau <= `left` both expressions deviate from their tangents by bounds from the bend of the ends of c. The bounds allow for
    rounding: f is a difference of large terms for long or almost parallel edges.
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
    distance_bound = wp.max(wp.max(wp.length(x.x0), wp.length(x.x1)), wp.max(wp.length(x.x2), wp.length(x.x3)))
    noise = CANCELLATION * (distance_bound + length + wp.length(c)) * length * arm
    noise_rate = CANCELLATION * length * (wp.length(u0) + wp.length(u1)) * arm
    speed = floor * (grows + frame.stretch * across) - rate + noise_rate
    return separated_time(f - floor * across - noise, speed, error + growth + wp.max(ZERO, -TWO * curve))


@wp.func
def is_far(approach: wp.float64, known: wp.float64, end: wp.float64) -> bool:
    """Return whether the motion of the bodies proves a candidate safe up to `end`: most candidates need no march."""
    return approach < ZERO or (known > ZERO and approach * end <= (ONE - REMAINING_FRACTION) * known)


@wp.func
def barely_moves(
    s: Surfaces, path: Path, i: wp.int32, j: wp.int32, c: wp.vec4i, known: wp.float64, end: wp.float64
) -> bool:
    """Return whether the speeds of a candidate's points at alpha = 0 prove it safe up to `end`; `known` as in `march`."""
    if known <= ZERO:
        return False
    kind = c[1]
    prim = primitives(s, i, j, kind, c[2], c[3])
    speeds = corners(kind, prim, path.dp[i], path.rate[i], path.dp[j], path.rate[j])
    bend = path.bend[i] + path.bend[j]
    return advance_within((ONE - REMAINING_FRACTION) * known, relative_speed(kind, speeds), bend) >= end


@wp.func
def pose_at(path: Path, b: wp.int32, t: wp.float64, moved: bool):
    """Return position, affine map and its rate of a body at t, those at the start of the path if it has not `moved`."""
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
    """Return the largest proven-safe alpha, up to `end`, of a candidate of bodies i, j that is not far.

    `known` is its gap at alpha = 0 or a lower bound of it [m]; `approach` bounds the approach of its bodies on the path [m],
    negative for bodies that do not move.

    Each advance keeps about a fifth of the gap before it. The march ends when a fifth of the initial gap is left, at most `least`
    [m], or after `cap` advances, with the alpha proven so far.
    """
    if barely_moves(s, path, i, j, c, known, end):
        return end
    kind = c[1]
    # the vertex, or the first edge, belongs to body f, the target or the second edge to body g
    f = i
    g = j
    if kind == TARGET_VERTEX:
        kind = VERTEX_TARGET
        f = j
        g = i
    edges = kind == EDGE_EDGE
    by_bodies = (ONE - REMAINING_FRACTION) * known / approach
    p0, p1, p2, p3 = points(s, i, j, c[1], c[2], c[3])
    frame = Frame()
    if kind != VERTEX_PLANE:
        radius = wp.length(path.p[f] + path.A[f] * s.vertices[p0] - path.p[g])
        if edges:
            radius = wp.max(radius, wp.length(path.p[f] + path.A[f] * s.vertices[p1] - path.p[g]))
        frame = frame_of(path, f, g, radius)
    final_gap = least
    t = wp.float64(0.0)
    continues = wp.bool(True)
    advances = wp.int32(0)
    # values are loaded where an advance needs them: two poses, their rates and the points exceed the registers
    while continues:
        f = opaque(f)
        g = opaque(g)
        x = Primitives()
        v = Primitives()
        u0 = wp.vec3d()
        u1 = wp.vec3d()
        p, A, rate = pose_at(path, f, t, advances > 0)
        X = s.vertices[opaque(p0)]
        x.x0 = p + A * X
        v.x0 = path.dp[f] + rate * X
        if edges:
            X = s.vertices[opaque(p1)]
            x.x1 = p + A * X
            v.x1 = path.dp[f] + rate * X
        speed = wp.length(v.x0)
        if kind != VERTEX_PLANE:
            p, A, rate = pose_at(path, g, t, advances > 0)
            if not edges:
                X = s.vertices[opaque(p1)]
                x.x1 = p + A * X
                v.x1 = path.dp[g] + rate * X
            X = s.vertices[opaque(p2)]
            x.x2 = p + A * X
            v.x2 = path.dp[g] + rate * X
            X = s.vertices[opaque(p3)]
            x.x3 = p + A * X
            v.x3 = path.dp[g] + rate * X
            speed = relative_speed(kind, v)
            spin = rate * wp.inverse(A)
            u0 = relative_velocity(x.x0, v.x0, p, path.dp[g], spin)
            u1 = relative_velocity(x.x1, v.x1, p, path.dp[g], spin)
        near = proximity_at(kind, Primitives(), x, s.plane[j])
        distance = wp.length(near.r)
        xi = separation(s, f, g, minimum)
        gap = near.side * distance - xi
        if advances == 0:
            final_gap = wp.min(FINAL_FRACTION * gap, final_gap)
            continues = gap > ZERO
        elif gap <= final_gap or advances >= cap:
            continues = False
        if continues:
            capacity = (ONE - REMAINING_FRACTION) * gap
            bend = path.bend[f] + path.bend[g]
            tau = advance_within(capacity, speed, bend)
            if t + tau < end:
                n = near.r / distance
                if kind == VERTEX_PLANE:
                    tau = wp.max(tau, advance_within(capacity, -wp.dot(n, v.x0), bend))
                else:
                    if (
                        s.vertices[opaque(p1)] == s.vertices[opaque(p2)]
                        and s.vertices[opaque(p2)] == s.vertices[opaque(p3)]
                    ):
                        tau = wp.max(tau, advance_within(capacity, wp.dot(n, v.x1 - v.x0), bend))
                    floor = xi + REMAINING_FRACTION * gap
                    tau = wp.max(tau, plane_advance(n, floor, x, u0, u1, edges, frame))
                    if edges and t + tau < end:
                        A = path.A[f]
                        p = path.p[f]
                        if advances > 0:
                            A = arc(path, f, t)
                            p = p + t * path.dp[f]
                        X = (ONE - near.parameter) * s.vertices[opaque(p0)] + near.parameter * s.vertices[opaque(p1)]
                        c0 = x.x1 - x.x0
                        along = wp.dot(p + A * X - x.x0, c0) / wp.dot(c0, c0)
                        tau = wp.max(tau, lines_advance(floor, x, u0, u1, near.r, along, ONE - t, frame))
            if not (tau > ZERO):
                continues = False
            elif t + tau >= end:
                t = end
                continues = False
            else:
                t = t + tau
                advances = advances + 1
    if by_bodies > t:
        t = wp.min(by_bodies, end)
    return t


@wp.func
def publish_impact(alpha: wp.float64, island: wp.int32, first_found: wp.array(dtype=wp.float64)):
    """Publish an impact of an island: other candidates march no further than `IMPACT_MARGIN` times it.

    Only the smallest alpha of an island is used. `first_found` (islands,), initially the limits, is the smallest one found so
    far. Threads write this hint without synchronisation; a stale value only lengthens a march. The smallest alpha has the same
    bits in any order, because a march that stops before its end does not depend on the end.
    """
    if alpha < first_found[island]:
        first_found[island] = alpha


@wp.func
def gap_on_path(known: wp.float64, activation: wp.float64, closer: wp.float64, back: wp.int32) -> wp.float64:
    """Return the gap at the start of a path, or a lower bound of it [m]; arguments as in `proven_fraction`."""
    gap = known * activation
    if back == 0:
        gap = wp.max(gap - closer, ZERO)
    return gap


@wp.func
def proven_fraction(
    s: Surfaces, path: Path, pair: wp.vec2i, c: wp.vec4i, minimum: wp.float64, closer: wp.float64, known: wp.float64,
    back: wp.int32, again: wp.int32,
) -> wp.float64:  # fmt: skip
    """Return the fraction of a candidate's path that is proven free.

    `closer` bounds the approach of its bodies; `known` is its gap at the end of the step [activations], or a lower bound of it,
    which is at the start of a `back` path. A gap may shrink to a fifth, or to the activation if that is smaller. A repeated march
    (`again`) may shrink it to a fifth of its value at the other end if that is smaller still, in more advances.
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
        floor = wp.min(floor, FINAL_FRACTION * wp.max(end.side * wp.length(end.r) - separation(s, i, j, minimum), ZERO))
        cap = MAX_REPEATED_ADVANCES
    gap = gap_on_path(known, least, closer, back)
    return march(s, path, i, j, c, minimum, ONE, gap, closer, floor, cap)
