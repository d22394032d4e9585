"""Laws of rows: energy psi(x), slope and a curvature that is never negative. Mirrors ``abd/joints/rows/laws.py``."""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, TINY, TWO, ZERO

wp.set_module_options({"enable_backward": False, "max_unroll": 4})

OFF = wp.constant(0)
QUADRATIC = wp.constant(1)
SATURATED = wp.constant(2)
BARRIER = wp.constant(3)
ONE_SIDED = wp.constant(4)
CUBIC = wp.constant(5)
FRICTION = wp.constant(6)
LINEAR = wp.constant(7)
SINE = wp.constant(8)
GIVEN = wp.constant(9)
THREE = wp.constant(wp.float64(3.0))
FOUR = wp.constant(wp.float64(4.0))
FORBIDDEN = wp.constant(wp.float64(1.0e60))
NEAR = wp.constant(wp.float64(1.0e-6))

Parameters = wp.types.vector(length=8, dtype=wp.float64)


@wp.func
def saturated(p: Parameters, e: wp.float64) -> wp.vec3d:
    """A parabola whose slope is capped, at e = x - a."""
    size = wp.abs(e)
    if p[0] * size <= p[3]:
        return wp.vec3d(HALF * p[0] * e * e, p[0] * e, p[0])
    return wp.vec3d(p[3] * size - HALF * p[3] * p[3] / p[0], p[3] * wp.sign(e), p[3] / wp.max(size, TINY))


@wp.func
def entering(p: Parameters, g: wp.float64, edge: wp.float64) -> wp.vec3d:
    """Damping of what enters below ``min(edge, g_n)``."""
    depth = wp.min(edge, p[5]) - g
    if depth <= ZERO:
        return wp.vec3d()
    return wp.vec3d(HALF * p[4] * depth * depth, -p[4] * depth, p[4])


@wp.func
def push(kappa: wp.float64, width: wp.float64, gap: wp.float64) -> wp.float64:
    """Size of a barrier's slope at a gap > 0."""
    s = gap / width
    if s >= ONE or s <= ZERO:
        return ZERO
    return kappa * width * (s - ONE) * (TWO * wp.log(s) + (s - ONE) / s)


@wp.func
def hold(y: wp.float64) -> wp.float64:
    """Share of the largest force that holds a gap which has opened by y over eps."""
    return wp.clamp(y, ZERO, ONE)


@wp.func
def secant_of_hold(y: wp.float64, aim: wp.float64) -> wp.float64:
    """Slope of `hold` from y to `aim`, between its edges its own."""
    if y > ZERO and y < ONE:
        return ONE
    way = aim - y
    if not wp.abs(way) >= NEAR:
        return ZERO
    return (hold(aim) - hold(y)) / way


@wp.func
def leaving(p: Parameters, g: wp.float64) -> wp.vec3d:
    """What holds a gap that opens."""
    if p[6] <= ZERO:
        return wp.vec3d()
    T = push(p[0], p[3], p[5])
    y = (g - p[5]) / p[6]
    opened = wp.max(y, ZERO)
    energy = opened - HALF
    if opened < ONE:
        energy = HALF * opened * opened
    return T * wp.vec3d(p[6] * energy, hold(y), secant_of_hold(y, (p[7] - p[5]) / p[6]) / p[6])


@wp.func
def caught(p: Parameters, x: wp.float64, ahead: wp.float64) -> wp.float64:
    """Gap at which a barrier is expected to end, by the model of what holds it at x, which leads to `ahead`."""
    if p[6] <= ZERO:
        return p[2] * (ahead - p[1])
    y = (p[2] * (x - p[1]) - p[5]) / p[6]
    end = (p[2] * (ahead - p[1]) - p[5]) / p[6]
    before = (p[7] - p[5]) / p[6]
    share = hold(y) + secant_of_hold(y, before) * (end - y)
    between = share > ZERO and share < ONE
    past = (share <= ZERO and end > ZERO) or (share >= ONE and end < ONE)
    fall = hold(before) - share
    way = end - y
    aim = share
    over = end
    if past:
        aim = HALF * (hold(share) + hold(end))
    if (past or (between and (end < ZERO or end > ONE))) and fall * way > ZERO:
        K = fall / way
        aim = (share + K * end) / (ONE + K)
        over = end + (share - hold(aim)) / K
    if aim >= ONE:
        aim = wp.max(ONE, over)
    elif aim <= ZERO:
        aim = wp.min(ZERO, over)
    return p[5] + p[6] * aim


@wp.func
def barrier(p: Parameters, g: wp.float64) -> wp.vec3d:
    """Barrier of a gap, its damping, and what holds it back."""
    out = entering(p, g, p[3]) + leaving(p, g)
    s = g / p[3]
    if g <= ZERO:
        out[0] = FORBIDDEN
    elif s < ONE:
        log = wp.log(s)
        fall = s - ONE
        ratio = fall / s
        out = out - p[0] * wp.vec3d(
            p[3] * p[3] * fall * fall * log,
            p[3] * fall * (TWO * log + ratio),
            TWO * log + FOUR * ratio - ratio * ratio,
        )
    return wp.vec3d(out[0], p[2] * out[1], out[2])


@wp.func
def one_sided(p: Parameters, g: wp.float64) -> wp.vec3d:
    """Parabola of a violated gap, and its damping."""
    out = entering(p, g, ZERO)
    if g < ZERO:
        out = out + p[0] * wp.vec3d(HALF * g * g, g, ONE)
    return wp.vec3d(out[0], p[2] * out[1], out[2])


@wp.func
def force(y: wp.float64) -> wp.float64:
    """Share of the largest force of friction at a displacement over eps."""
    size = wp.min(wp.abs(y), ONE)
    return wp.sign(y) * size * (TWO - size)


@wp.func
def secant(y: wp.float64, aim: wp.float64) -> wp.float64:
    """Slope of `force` from y to `aim`, its own where both are one."""
    way = aim - y
    if wp.abs(way) < NEAR:
        return TWO * wp.max(ZERO, ONE - wp.abs(y))
    return (force(aim) - force(y)) / way


@wp.func
def rubbing(p: Parameters, u: wp.float64) -> wp.vec3d:
    """Coulomb's friction over a displacement, smoothed below eps, with the curvature of the secant to its expected end."""
    y = wp.abs(u)
    energy = y
    if y < p[3]:
        energy = y * y * (p[3] - y / THREE) / (p[3] * p[3]) + p[3] / THREE
    return p[0] * wp.vec3d(energy, force(u / p[3]), secant(u / p[3], (p[4] - p[1]) / p[3]) / p[3])


@wp.func
def aimed(p: Parameters, x: wp.float64, ahead: wp.float64, curvature: wp.float64) -> wp.float64:
    """Value at which a row of friction is expected to end, by a model of this curvature at x that leads to `ahead`."""
    y = (x - p[1]) / p[3]
    share = force(y)
    if p[0] > ZERO:
        share = share + curvature * (ahead - x) / p[0]
    size = wp.abs(share)
    if size < ONE:
        return p[1] + p[3] * wp.sign(share) * (ONE - wp.sqrt(ONE - size))
    return p[1] + p[3] * wp.sign(share) * wp.max(ONE, (ahead - p[1]) / p[3] * wp.sign(share))


@wp.func
def bend(law: wp.int32, p: Parameters, x: wp.float64, bound: wp.float64) -> wp.float64:
    """The own curvature of a law whose `bound` may be more (`abd.joints.rows.laws.evaluate`)."""
    if law == SATURATED and p[0] * wp.abs(x - p[1]) > p[3]:
        return ZERO
    return bound


@wp.func
def evaluate(law: wp.int32, p: Parameters, x: wp.float64) -> wp.vec3d:
    """psi, its slope and its curvature at a row's value."""
    e = x - p[1]
    g = p[2] * e
    if law == QUADRATIC:
        return wp.vec3d(HALF * p[0] * e * e, p[0] * e, p[0])
    if law == SATURATED:
        return saturated(p, e)
    if law == BARRIER:
        return barrier(p, g)
    if law == ONE_SIDED:
        return one_sided(p, g)
    if law == CUBIC:
        v = wp.max(ZERO, -g)
        return p[0] * wp.vec3d(v * v * v, -THREE * p[2] * v * v, wp.float64(6.0) * v)
    if law == FRICTION:
        return rubbing(p, e)
    if law == GIVEN:
        d = x - p[0]
        return wp.vec3d(p[1] + p[2] * d + HALF * p[3] * d * d, p[2] + p[3] * d, p[3])
    if law == LINEAR:
        return wp.vec3d(-p[0] * x, -p[0], ZERO)
    if law == SINE:
        s = wp.sin(e)
        return p[0] * wp.vec3d(HALF * s * s, HALF * wp.sin(TWO * e), wp.max(ZERO, wp.cos(TWO * e)))
    return wp.vec3d()
