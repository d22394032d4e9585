"""Slips of bodies that turn, along arcs; twin of ``abd/potentials/arc_slip.py``."""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, ZERO, Pose, axial, identity3, rotation
from cuda_kernels.bodies.free_motion import nearest_turn
from cuda_kernels.bodies.matrices import polar
from cuda_kernels.friction.lagging import Lagged
from cuda_kernels.friction.rolling import RUB

wp.set_module_options({"enable_backward": False, "max_unroll": 4})
LOADED_FOR = ("friction",)

SLOW = wp.constant(wp.float64(1.0e-5))
OVER = wp.constant(wp.float64(1.0e-9))


@wp.struct
class Turning:
    """How a body goes through the step: by dp [m] and the rotation vector w, R = exp [w]; from the map A at which contacts were
    frozen on by the rotation `to_end`; begin is the map where the step begins."""

    A: wp.mat33d
    begin: wp.mat33d
    to_end: wp.mat33d
    R: wp.mat33d
    w: wp.vec3d
    dp: wp.vec3d


@wp.func
def turning(b: wp.int32, pose: Pose, begin: Pose, end: Pose, turn: wp.array(dtype=wp.vec3d)) -> Turning:
    """Of body b."""
    out = Turning()
    out.A = pose.A[b]
    out.begin = begin.A[b]
    out.dp = end.p[b] - begin.p[b]
    out.to_end = polar(end.A[b] * wp.inverse(out.A))
    out.w = nearest_turn(end.A[b] * wp.inverse(out.begin), turn[b])
    out.R = rotation(out.w)
    return out


@wp.func
def flat(u: wp.vec3d, n: wp.vec3d) -> wp.vec3d:
    """In the tangent plane."""
    return u - wp.dot(u, n) * n


@wp.func
def rolled(t: Turning, arm: wp.vec3d, X: wp.vec3d) -> wp.vec3d:
    """What the arc of an arm that stays is longer than the chord of X, which comes there [m]."""
    return wp.cross(t.w, arm) - (t.R - identity3()) * (t.begin * X)


@wp.func
def spun(t: Turning, arm: wp.vec3d, n: wp.vec3d) -> wp.vec3d:
    """What the arc of an arm in the tangent plane is longer about n than its chord [m]."""
    s = wp.dot(t.w, n)
    return (s - wp.sin(s)) * wp.cross(n, arm) - (ONE - wp.cos(s)) * arm


@wp.func
def about(t: Turning, n: wp.vec3d) -> wp.vec2d:
    """Cosine and sine of what is left of the turn about n."""
    by = wp.vec2d(HALF * (wp.trace(t.to_end) - wp.dot(n, t.to_end * n)), wp.dot(axial(t.to_end), n))
    size = wp.length(by)
    if size > OVER:
        return by / size
    return wp.vec2d(ONE, ZERO)


@wp.func
def turned(by: wp.vec2d, arm: wp.vec3d, n: wp.vec3d) -> wp.vec3d:
    """An arm in the tangent plane, turned about n."""
    return by[0] * arm + by[1] * wp.cross(n, arm)


@wp.func
def came(t: Turning, arm: wp.vec3d) -> wp.vec3d:
    """Chord on which the end of an arm has come, if the body went through the last step as it goes through this one [m]."""
    return t.dp + arm - wp.transpose(t.R) * arm


@wp.func
def goes(t: Turning, arm: wp.vec3d) -> wp.vec3d:
    """Displacement by the velocity at the end of an arm [m]."""
    return t.dp + wp.cross(t.w, arm)


@wp.func
def rho(s: wp.float64) -> wp.float64:
    """What the arc of an arm about its own centre is longer than its chord, of the chord."""
    half = HALF * s
    along = ZERO
    if half > wp.float64(1.0e-4):
        along = half / wp.tan(half) - ONE
    return wp.sqrt(along * along + half * half)


@wp.kernel
def follow_arcs(
    first: wp.int32,
    l: Lagged,
    pose: Pose,
    begin: Pose,
    end: Pose,
    turn: wp.array(dtype=wp.vec3d),
    radius: wp.array(dtype=wp.float64),
):
    """Lengthen the slips of the frozen contacts, and move points on faces to where vertices go; they were frozen at
    `pose`."""
    e = wp.tid() + first
    if e >= l.counts[1]:
        return
    i = l.pair[e][0]
    j = l.pair[e][1]
    if wp.max(wp.length(turn[i]), wp.length(turn[j])) < SLOW:
        return
    n = l.n[e]
    Y_i = l.Y_i[e]
    Y_j = l.Y_j[e]
    X_i = wp.vec3d(Y_i[1], Y_i[2], Y_i[3])
    X_j = wp.vec3d(Y_j[1], Y_j[2], Y_j[3])
    a = turning(i, pose, begin, end, turn)
    b = turning(j, pose, begin, end, turn)
    if l.kind[e] != RUB:
        out = rolled(a, a.to_end * (a.A * X_i), X_i) - rolled(b, b.to_end * (b.A * X_j), X_j)
        l.arc[e] = flat(out, n)
        return
    inverse_i = wp.inverse(a.A)
    inverse_j = wp.inverse(b.A)
    arm_i = -radius[i] * n
    round_i = inverse_i * (wp.transpose(a.to_end) * arm_i)
    out = rolled(a, arm_i, round_i)
    X_i = X_i - round_i
    now_i = a.A * X_i
    chord = came(a, now_i)
    tangent = goes(a, now_i)
    now_i = flat(now_i, n)
    by_i = about(a, n)
    arm_i = turned(by_i, now_i, n)
    moved_i = wp.vec3d()
    moved_j = wp.vec3d()
    carried = wp.vec3d()
    if Y_j[0] != ZERO:
        arm_j = radius[j] * n
        round_j = inverse_j * (wp.transpose(b.to_end) * arm_j)
        out = out - rolled(b, arm_j, round_j)
        X_j = X_j - round_j
        now_j = b.A * X_j
        chord = chord - came(b, now_j)
        tangent = tangent - goes(b, now_j)
        now_j = flat(now_j, n)
        by_j = about(b, n)
        arm_j = turned(by_j, now_j, n)
        back = wp.vec2d(ONE, -ONE)
        if l.face[e] == j:
            arm_j = now_j + arm_i - now_i
            moved_j = inverse_j * (turned(wp.cw_mul(back, by_j), arm_j, n) - now_j)
        elif l.face[e] == i:
            arm_i = now_i + arm_j - now_j
            moved_i = inverse_i * (turned(wp.cw_mul(back, by_i), arm_i, n) - now_i)
        carried = -spun(b, arm_j, n)
    carried = carried + spun(a, arm_i, n)
    size = wp.length(carried)
    if size > ZERO:
        fast = wp.max(wp.abs(wp.dot(a.w, n)), wp.abs(wp.dot(b.w, n)))
        parted = wp.min(wp.length(flat(chord, n)), wp.length(flat(tangent, n)))
        part = wp.min(ONE, rho(fast) * parted / size)
        moved_i = part * moved_i
        moved_j = part * moved_j
        out = out + part * carried
        l.Y_i[e] = Y_i + wp.vec4d(ZERO, moved_i[0], moved_i[1], moved_i[2])
        l.Y_j[e] = Y_j + wp.vec4d(ZERO, moved_j[0], moved_j[1], moved_j[2])
    l.arc[e] = flat(out, n)
