"""Free motion of rigid bodies over a step: device version of ``abd/potentials/free_motion.py`` (definitions there)."""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, TWO, ZERO, axial, identity3, rotation
from cuda_kernels.bodies.matrices import eigen
from cuda_kernels.options import OPTIONS
from cuda_kernels.shared import bodies as shared

wp.set_module_options(OPTIONS)

SUBSTEP = wp.constant(wp.float64(shared.SUBSTEP))
MOST_SUBSTEPS = wp.constant(wp.float64(shared.MOST_SUBSTEPS))
FLAT = wp.constant(wp.float64(shared.FLAT))
FULL_TURN = wp.constant(wp.float64(6.283185307179586))


@wp.struct
class Principal:
    """Moments of inertia J, the smallest first, and their axes as columns of the rotation V."""

    J: wp.vec3d
    V: wp.mat33d


@wp.func
def moments_about(A: wp.mat33d, moment: wp.vec3d) -> wp.mat33d:
    """I = tr(S) 1 - S, S = A diag(s) A^T [kg m^2]."""
    S = A * wp.diag(moment) * wp.transpose(A)
    return wp.trace(S) * identity3() - S


@wp.func
def principal(I: wp.mat33d) -> Principal:
    """Principal axes of I."""
    d, V = eigen(I)
    a = wp.int32(0)
    b = wp.int32(1)
    c = wp.int32(2)
    if d[b] < d[a]:
        a = wp.int32(1)
        b = wp.int32(0)
    if d[c] < d[a]:
        c = b
        b = a
        a = wp.int32(2)
    elif d[c] < d[b]:
        c = b
        b = wp.int32(2)
    out = Principal()
    out.J = wp.vec3d(d[a], d[b], d[c])
    u = wp.vec3d(V[0, a], V[1, a], V[2, a])
    v = wp.vec3d(V[0, b], V[1, b], V[2, b])
    w = wp.cross(u, v)
    out.V = wp.mat33d(u[0], v[0], w[0], u[1], v[1], w[1], u[2], v[2], w[2])
    return out


@wp.func
def spin(body: Principal, L: wp.vec3d) -> wp.vec3d:
    """Angular velocity I^-1 L; zero about axes without inertia."""
    m = wp.transpose(body.V) * L
    for k in range(3):
        if body.J[k] > FLAT * body.J[2]:
            m[k] = m[k] / body.J[k]
        else:
            m[k] = ZERO
    return body.V * m


@wp.func
def stage(k: wp.int32) -> wp.float64:
    """Weights of Yoshida's seven stages."""
    i = wp.min(k, 6 - k)
    if i == 0:
        return wp.float64(0.784513610477560)
    if i == 1:
        return wp.float64(0.235573213359357)
    if i == 2:
        return wp.float64(-1.17767998417887)
    return wp.float64(1.315186320683906)


@wp.func
def free_rotation(body: Principal, L: wp.vec3d, h: wp.float64) -> wp.mat33d:
    """Rotation Q of the free motion over h with momentum L in world axes."""
    middle = body.J[1]
    if middle <= ZERO:
        return identity3()
    inverse = ONE / middle
    m = wp.transpose(body.V) * L
    first = ZERO
    if body.J[0] > FLAT * body.J[2]:
        first = ONE / body.J[0] - inverse
    last = ONE / body.J[2] - inverse
    mixed = wp.sqrt(wp.abs(first * last)) * wp.length(m)
    largest = wp.max(mixed, wp.max(wp.abs(first * m[0]), wp.abs(last * m[2])))
    angle = wp.abs(h) * wp.pow(mixed * mixed * wp.pow(largest, wp.float64(5.0)), ONE / wp.float64(7.0))
    count = wp.int32(wp.ceil(wp.clamp(angle / SUBSTEP, ONE, MOST_SUBSTEPS)))
    t = h / wp.float64(count)
    R = identity3()
    for _substep in range(count):
        for k in range(7):
            half = HALF * stage(k) * t * first
            R, m = turn_first(R, m, half)
            R, m = turn_last(R, m, stage(k) * t * last)
            R, m = turn_first(R, m, half)
    return rotation(h * inverse * L) * body.V * R * wp.transpose(body.V)


@wp.func
def turn_first(R: wp.mat33d, m: wp.vec3d, fraction: wp.float64):
    """Rotate a body about its first body axis by ``fraction m[0]``; its momentum m is constant in the world."""
    angle = fraction * m[0]
    c = wp.cos(angle)
    s = wp.sin(angle)
    for r in range(3):
        y = R[r, 1]
        z = R[r, 2]
        R[r, 1] = c * y + s * z
        R[r, 2] = c * z - s * y
    return R, wp.vec3d(m[0], c * m[1] + s * m[2], c * m[2] - s * m[1])


@wp.func
def turn_last(R: wp.mat33d, m: wp.vec3d, fraction: wp.float64):
    """Rotate a body likewise about its third axis."""
    angle = fraction * m[2]
    c = wp.cos(angle)
    s = wp.sin(angle)
    for r in range(3):
        x = R[r, 0]
        y = R[r, 1]
        R[r, 0] = c * x + s * y
        R[r, 1] = c * y - s * x
    return R, wp.vec3d(c * m[0] + s * m[1], c * m[1] - s * m[0], m[2])


@wp.func
def torque_of(force: wp.mat33d, A: wp.mat33d) -> wp.vec3d:
    """Torque in world axes of a generalised force on A: twice the axial vector of ``F A^T``."""
    return TWO * axial(force * wp.transpose(A))


@wp.func
def nearest_turn(R: wp.mat33d, w: wp.vec3d) -> wp.vec3d:
    """Return the rotation vector of R closest to w."""
    v = axial(R)
    sine = wp.length(v)
    cosine = HALF * (wp.trace(R) - ONE)
    angle = wp.atan2(sine, cosine)
    if sine < wp.float64(1.0e-9):
        return wp.where(wp.length(w) < ONE, v, w)
    shown = v / sine
    full = FULL_TURN * wp.round((wp.dot(w, shown) - angle) / FULL_TURN)
    return (angle + full) * shown
