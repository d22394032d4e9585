"""Laws of rows: energy psi(x), slope and a curvature that is never negative. Mirrors ``abd/joints/rows/laws.py``."""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, TINY, TWO, ZERO
from cuda_kernels.friction.coulomb import f0
from cuda_kernels.options import OPTIONS
from cuda_kernels.shared import joints as shared
from cuda_kernels.shared import slots
from cuda_kernels.shared.joints import Law

wp.set_module_options(OPTIONS)

FOUR = wp.constant(wp.float64(4.0))
FORBIDDEN = wp.constant(wp.float64(shared.FORBIDDEN))
NEAR = wp.constant(wp.float64(shared.NEAR))

Parameters = wp.types.vector(length=8, dtype=wp.float64)


@wp.func
def is_limit(law: wp.int32) -> wp.bool:
    """Return whether a law is that of a range limit or of a gap."""
    return law == Law.BARRIER or law == Law.ONE_SIDED or law == Law.CUBIC


@wp.func
def saturated(p: Parameters, e: wp.float64) -> wp.vec3d:
    """Return a parabola with a limited slope, at e = x - a."""
    K = p[slots.STRENGTH]
    T = p[slots.EFFORT]
    size = wp.abs(e)
    if K * size <= T:
        return wp.vec3d(HALF * K * e * e, K * e, K)
    return wp.vec3d(T * size - HALF * T * T / K, T * wp.sign(e), T / wp.max(size, TINY))


@wp.func
def approach_damping(p: Parameters, g: wp.float64, edge: wp.float64) -> wp.vec3d:
    """Return the damping of the approach below ``min(edge, g_n)``."""
    D = p[slots.DAMPING]
    depth = wp.min(edge, p[slots.LAST_GAP]) - g
    if depth <= ZERO:
        return wp.vec3d()
    return wp.vec3d(HALF * D * depth * depth, -D * depth, D)


@wp.func
def barrier(p: Parameters, g: wp.float64) -> wp.vec3d:
    """Return the barrier of a gap, with its damping."""
    G = p[slots.WIDTH]
    out = approach_damping(p, g, G)
    s = g / G
    if g <= ZERO:
        out[0] = FORBIDDEN
    elif s < ONE:
        log = wp.log(s)
        fall = s - ONE
        ratio = fall / s
        out = out - p[slots.STRENGTH] * wp.vec3d(
            G * G * fall * fall * log,
            G * fall * (TWO * log + ratio),
            TWO * log + FOUR * ratio - ratio * ratio,
        )
    return wp.vec3d(out[0], p[slots.SIGN] * out[1], out[2])


@wp.func
def one_sided(p: Parameters, g: wp.float64) -> wp.vec3d:
    """Return the parabola of a violated gap, with its damping."""
    out = approach_damping(p, g, ZERO)
    if g < ZERO:
        out = out + p[slots.STRENGTH] * wp.vec3d(HALF * g * g, g, ONE)
    return wp.vec3d(out[0], p[slots.SIGN] * out[1], out[2])


@wp.func
def force(y: wp.float64) -> wp.float64:
    """Return the fraction of the largest friction force at a displacement over eps."""
    size = wp.min(wp.abs(y), ONE)
    return wp.sign(y) * size * (TWO - size)


@wp.func
def secant(y: wp.float64, aim: wp.float64) -> wp.float64:
    """Return the slope of `force` from y to `aim`; the tangent if both are equal."""
    distance = aim - y
    if wp.abs(distance) < NEAR:
        return TWO * wp.max(ZERO, ONE - wp.abs(y))
    return (force(aim) - force(y)) / distance


@wp.func
def friction_law(p: Parameters, u: wp.float64) -> wp.vec3d:
    """Return Coulomb's friction over a displacement, smoothed below eps, with the curvature of the secant to its expected end."""
    eps = p[slots.SMOOTHING]
    bound = secant(u / eps, (p[slots.AIM] - p[slots.CENTRE]) / eps) / eps
    return p[slots.STRENGTH] * wp.vec3d(f0(wp.abs(u), eps), force(u / eps), bound)


@wp.func
def aimed(p: Parameters, x: wp.float64, ahead: wp.float64, curvature: wp.float64) -> wp.float64:
    """Return the expected end value of a friction row by a model of this curvature at x, whose minimum is at `ahead`."""
    T = p[slots.STRENGTH]
    a = p[slots.CENTRE]
    eps = p[slots.SMOOTHING]
    y = (x - a) / eps
    force_fraction = force(y)
    if T > ZERO:
        force_fraction = force_fraction + curvature * (ahead - x) / T
    size = wp.abs(force_fraction)
    if size < ONE:
        return a + eps * wp.sign(force_fraction) * (ONE - wp.sqrt(ONE - size))
    return a + eps * wp.sign(force_fraction) * wp.max(ONE, (ahead - a) / eps * wp.sign(force_fraction))


@wp.func
def bend(law: wp.int32, p: Parameters, x: wp.float64, bound: wp.float64) -> wp.float64:
    """Return the second derivative of a law, given its upper bound `bound` (`abd.joints.rows.laws.evaluate`)."""
    if law == Law.SATURATED and p[slots.STRENGTH] * wp.abs(x - p[slots.CENTRE]) > p[slots.EFFORT]:
        return ZERO
    return bound


@wp.func
def evaluate(law: wp.int32, p: Parameters, x: wp.float64) -> wp.vec3d:
    """Return psi, its slope and its curvature at a row's value."""
    strength = p[slots.STRENGTH]
    e = x - p[slots.CENTRE]
    g = p[slots.SIGN] * e
    if law == Law.QUADRATIC:
        return wp.vec3d(HALF * strength * e * e, strength * e, strength)
    if law == Law.SATURATED:
        return saturated(p, e)
    if law == Law.BARRIER:
        return barrier(p, g)
    if law == Law.ONE_SIDED:
        return one_sided(p, g)
    if law == Law.CUBIC:
        v = wp.max(ZERO, -g)
        return strength * wp.vec3d(v * v * v, -wp.float64(3.0) * p[slots.SIGN] * v * v, wp.float64(6.0) * v)
    if law == Law.FRICTION:
        return friction_law(p, e)
    if law == Law.GIVEN:
        d = x - p[slots.HERE]
        slope = p[slots.SLOPE]
        curvature = p[slots.CURVATURE]
        return wp.vec3d(p[slots.ENERGY] + slope * d + HALF * curvature * d * d, slope + curvature * d, curvature)
    if law == Law.LINEAR:
        return wp.vec3d(-strength * x, -strength, ZERO)
    if law == Law.SINE:
        s = wp.sin(e)
        return strength * wp.vec3d(HALF * s * s, HALF * wp.sin(TWO * e), wp.max(ZERO, wp.cos(TWO * e)))
    return wp.vec3d()
