"""Slips of rotating bodies along arcs; device version of ``abd/potentials/arc_slip.py``."""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, ZERO, Pose, axial, identity3, rotation
from cuda_kernels.bodies.free_motion import nearest_turn
from cuda_kernels.bodies.matrices import polar
from cuda_kernels.friction.lagging import Lagged
from cuda_kernels.options import OPTIONS, opaque
from cuda_kernels.shared import contact as shared
from cuda_kernels.shared.contact import SLIDE

wp.set_module_options(OPTIONS)
LOADED_FOR = ("friction",)

SLOW = wp.constant(wp.float64(shared.SLOW))
OVER = wp.constant(wp.float64(shared.OVER))


@wp.struct
class Turning:
    """Motion of a body in the step: displacement dp [m] and rotation vector w, R = exp [w]; rotation `to_end` from the map A at
    the lagging to the end; begin: map at the start of the step."""

    A: wp.mat33d
    begin: wp.mat33d
    to_end: wp.mat33d
    R: wp.mat33d
    w: wp.vec3d
    dp: wp.vec3d


@wp.func
def turning(b: wp.int32, pose: Pose, begin: Pose, end: Pose, turn: wp.array(dtype=wp.vec3d)) -> Turning:
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
    """Return the tangential part."""
    return u - wp.dot(u, n) * n


@wp.func
def rolling_excess(t: Turning, arm: wp.vec3d, X: wp.vec3d) -> wp.vec3d:
    """Return the excess of the arc of a constant arm over the chord of X, which ends there [m]."""
    return wp.cross(t.w, arm) - (t.R - identity3()) * (t.begin * X)


@wp.func
def spinning_excess(s: wp.float64, arm: wp.vec3d, n: wp.vec3d) -> wp.vec3d:
    """Return the excess of the arc of a tangential arm, rotated by s [rad] about n, over its chord [m]."""
    return (s - wp.sin(s)) * wp.cross(n, arm) - (ONE - wp.cos(s)) * arm


@wp.func
def about(t: Turning, n: wp.vec3d) -> wp.vec2d:
    """Return cosine and sine of the remaining rotation about n."""
    by = wp.vec2d(HALF * (wp.trace(t.to_end) - wp.dot(n, t.to_end * n)), wp.dot(axial(t.to_end), n))
    size = wp.length(by)
    if size > OVER:
        return by / size
    return wp.vec2d(ONE, ZERO)


@wp.func
def turned(by: wp.vec2d, arm: wp.vec3d, n: wp.vec3d) -> wp.vec3d:
    """Return a tangential arm rotated about n."""
    return by[0] * arm + by[1] * wp.cross(n, arm)


@wp.func
def last_chord(t: Turning, arm: wp.vec3d) -> wp.vec3d:
    """Return the last chord of the end of an arm, if the body moved in the last step as in this one [m]."""
    return t.dp + arm - wp.transpose(t.R) * arm


@wp.func
def end_tangent(t: Turning, arm: wp.vec3d) -> wp.vec3d:
    """Return the displacement by the velocity at the end of an arm [m]."""
    return t.dp + wp.cross(t.w, arm)


@wp.func
def rho(s: wp.float64) -> wp.float64:
    """Return the excess of the arc of an arm about its own centre over its chord, relative to the chord."""
    half = HALF * s
    along = ZERO
    if half > wp.float64(1.0e-4):
        along = half / wp.tan(half) - ONE
    return wp.sqrt(along * along + half * half)


@wp.struct
class Side:
    """One body's part of a contact: the tangential end of its arm, `by` the rotation there, its last chord and its tangent [m],
    `longer` the excess of the arm's arc at the surface [m], `s` the rotation about n."""

    now: wp.vec3d
    chord: wp.vec3d
    tangent: wp.vec3d
    longer: wp.vec3d
    by: wp.vec2d
    s: wp.float64


@wp.func
def side(
    b: wp.int32,
    pose: Pose,
    begin: Pose,
    end: Pose,
    turn: wp.array(dtype=wp.vec3d),
    X: wp.vec3d,
    arm: wp.vec3d,
    n: wp.vec3d,
) -> Side:
    """Return the part of body b, whose point X is below the surface by `arm`."""
    t = turning(b, pose, begin, end, turn)
    out = Side()
    out.s = wp.dot(t.w, n)
    out.by = about(t, n)
    beneath = wp.inverse(t.A) * (wp.transpose(t.to_end) * arm)
    out.longer = rolling_excess(t, arm, beneath)
    now = t.A * (X - beneath)
    out.chord = last_chord(t, now)
    out.tangent = end_tangent(t, now)
    out.now = flat(now, n)
    return out


@wp.func
def arm_excess(
    b: wp.int32, pose: Pose, begin: Pose, end: Pose, turn: wp.array(dtype=wp.vec3d), X: wp.vec3d
) -> wp.vec3d:
    """Return the excess of the arc of X of body b, or of an arm that resists rotation, over its chord [m]."""
    t = turning(b, pose, begin, end, turn)
    return rolling_excess(t, t.to_end * (t.A * X), X)


@wp.kernel(grid_stride=False, cuda_max_registers=200)
def follow_arcs(
    first: wp.int32,
    l: Lagged,
    pose: Pose,
    begin: Pose,
    end: Pose,
    turn: wp.array(dtype=wp.vec3d),
    radius: wp.array(dtype=wp.float64),
):
    """Add arc excess to the slips of the lagged contacts, and move points on faces with the vertices; they were lagged at
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
    X_i = wp.vec3d(Y_i[1], Y_i[2], Y_i[3])
    if l.kind[e] != SLIDE:
        longer = arm_excess(i, pose, begin, end, turn, X_i)
        # reloading is necessary: the data of both bodies would exceed the registers
        Y_j = l.Y_j[opaque(e)]
        l.arc[e] = flat(longer - arm_excess(j, pose, begin, end, turn, wp.vec3d(Y_j[1], Y_j[2], Y_j[3])), n)
        return
    a = side(i, pose, begin, end, turn, X_i, -radius[i] * n, n)
    e = opaque(e)
    j = opaque(j)
    n = l.n[e]
    Y_j = l.Y_j[e]
    out = a.longer
    chord = a.chord
    tangent = a.tangent
    arm_i = turned(a.by, a.now, n)
    moved_i = wp.vec3d()
    moved_j = wp.vec3d()
    b = side(j, pose, begin, end, turn, wp.vec3d(Y_j[1], Y_j[2], Y_j[3]), radius[j] * n, n)
    out = out - b.longer
    chord = chord - b.chord
    tangent = tangent - b.tangent
    arm_j = turned(b.by, b.now, n)
    back = wp.vec2d(ONE, -ONE)
    if l.face[e] == j:
        arm_j = b.now + arm_i - a.now
        moved_j = wp.inverse(pose.A[j]) * (turned(wp.cw_mul(back, b.by), arm_j, n) - b.now)
    elif l.face[e] == i:
        arm_i = a.now + arm_j - b.now
        moved_i = wp.inverse(pose.A[i]) * (turned(wp.cw_mul(back, a.by), arm_i, n) - a.now)
    carried = spinning_excess(a.s, arm_i, n) - spinning_excess(b.s, arm_j, n)
    size = wp.length(carried)
    if size > ZERO:
        fast = wp.max(wp.abs(a.s), wp.abs(b.s))
        parted = wp.min(wp.length(flat(chord, n)), wp.length(flat(tangent, n)))
        part = wp.min(ONE, rho(fast) * parted / size)
        moved_i = part * moved_i
        moved_j = part * moved_j
        out = out + part * carried
        l.Y_i[e] = l.Y_i[e] + wp.vec4d(ZERO, moved_i[0], moved_i[1], moved_i[2])
        l.Y_j[e] = Y_j + wp.vec4d(ZERO, moved_j[0], moved_j[1], moved_j[2])
    l.arc[e] = flat(out, n)
