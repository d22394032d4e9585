"""Affine bodies: state, the arc a step follows, and small matrix functions.

A body is ``x = p + A X``. A step follows ``A(alpha) = exp(alpha W) (1 + alpha S) A0``, ``p(alpha) = p0 + alpha dp``
(an arc); a straight step is the arc with ``W = 0`` and ``S = dA A0^-1``.
"""

import warp as wp

from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)

ZERO = wp.constant(wp.float64(0.0))
HALF = wp.constant(wp.float64(0.5))
ONE = wp.constant(wp.float64(1.0))
TWO = wp.constant(wp.float64(2.0))
TINY = wp.constant(wp.float64(1.0e-300))

vec12 = wp.types.vector(12, wp.float64)
"""A row of a 12x12 block, whose sums compilers turn into vector instructions: a block array (k, 12, 12) of float64 is used as
(k, 12) rows, body values (n, 12) as (n,)."""


@wp.struct
class Pose:
    """States of all bodies: p (n,) [m], A (n,) row-major affine maps."""

    p: wp.array(dtype=wp.vec3d)
    A: wp.array(dtype=wp.mat33d)


@wp.struct
class Path:
    """Arcs of all bodies, from `origin` (alpha = 0).

    dp [m], w the axial vector of W [rad], S; `rate` is dA/dalpha at alpha = 0; over [0, 1] `bend` bounds the second
    derivative of every vertex [m], `affine_speed` the first derivative of its affine part A(alpha) X [m]; `strain` bounds |S|.
    """

    p: wp.array(dtype=wp.vec3d)
    A: wp.array(dtype=wp.mat33d)
    dp: wp.array(dtype=wp.vec3d)
    w: wp.array(dtype=wp.vec3d)
    S: wp.array(dtype=wp.mat33d)
    rate: wp.array(dtype=wp.mat33d)
    bend: wp.array(dtype=wp.float64)
    affine_speed: wp.array(dtype=wp.float64)
    strain: wp.array(dtype=wp.float64)


@wp.func
def skew(w: wp.vec3d) -> wp.mat33d:
    """Matrix of ``w x``."""
    return wp.mat33d(ZERO, -w[2], w[1], w[2], ZERO, -w[0], -w[1], w[0], ZERO)


@wp.func
def axial(m: wp.mat33d) -> wp.vec3d:
    """Axial vector of the skew part of m."""
    return HALF * wp.vec3d(m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1])


@wp.func
def identity3() -> wp.mat33d:
    return wp.mat33d(ONE, ZERO, ZERO, ZERO, ONE, ZERO, ZERO, ZERO, ONE)


# not inlined: sine and cosine are long, and a call does not use the registers of the caller
@wp.func(inline=False)
def rotation(w: wp.vec3d) -> wp.mat33d:
    """exp([w]), Rodrigues' formula with series near zero."""
    t2 = wp.dot(w, w)
    s = ONE - t2 / wp.float64(6.0) * (ONE - t2 / wp.float64(20.0))
    c = HALF - t2 / wp.float64(24.0) * (ONE - t2 / wp.float64(30.0))
    if t2 > wp.float64(1.0e-6):
        t = wp.sqrt(t2)
        s = wp.sin(t) / t
        c = (ONE - wp.cos(t)) / t2
    k = skew(w)
    return identity3() + s * k + c * (k * k)


@wp.func
def triple(q: wp.array2d(dtype=wp.float64), b: wp.int32, k: wp.int32) -> wp.vec3d:
    """Entries k to k + 2 of a row (n, 12)."""
    return wp.vec3d(q[b, k], q[b, k + 1], q[b, k + 2])


@wp.func
def map_of(q: wp.array2d(dtype=wp.float64), b: wp.int32) -> wp.mat33d:
    """Affine part of a row of states, rates or directions (n, 12)."""
    A = wp.mat33d()
    for r in range(3):
        for c in range(3):
            A[r, c] = q[b, 3 + 3 * r + c]
    return A


@wp.func
def set_row(q: wp.array2d(dtype=wp.float64), b: wp.int32, p: wp.vec3d, A: wp.mat33d):
    """Set a row (n, 12) to (p, rows of A)."""
    for r in range(3):
        q[b, r] = p[r]
        for c in range(3):
            q[b, 3 + 3 * r + c] = A[r, c]


@wp.func
def spectral_bound(m: wp.mat33d) -> wp.float64:
    """Upper bound of the largest singular value: sqrt of the largest row sum of |m m^T|, tight near rotations."""
    g = m * wp.transpose(m)
    a = wp.abs(g[0, 0]) + wp.abs(g[0, 1]) + wp.abs(g[0, 2])
    b = wp.abs(g[1, 0]) + wp.abs(g[1, 1]) + wp.abs(g[1, 2])
    c = wp.abs(g[2, 0]) + wp.abs(g[2, 1]) + wp.abs(g[2, 2])
    return wp.sqrt(wp.max(a, wp.max(b, c)))


@wp.func
def farthest(lower: wp.vec3d, upper: wp.vec3d) -> wp.float64:
    """Largest distance of a box's corners from the origin."""
    return wp.length(wp.max(wp.abs(lower), wp.abs(upper)))


@wp.func
def arc_and_rate(path: Path, body: wp.int32, alpha: wp.float64):
    """A(alpha) and dA/dalpha of a body on its arc, by one rotation."""
    w = path.w[body]
    turns = wp.dot(w, w) > ZERO
    # first, as sine and cosine need capacity of their own
    R = wp.mat33d()
    if turns:
        R = rotation(alpha * w)
    A = path.A[body]
    rate = path.S[body] * A
    A = A + alpha * rate
    if turns:
        A = R * A
        rate = skew(w) * A + R * rate
    return A, rate


@wp.func
def arc(path: Path, body: wp.int32, alpha: wp.float64) -> wp.mat33d:
    """A(alpha) of a body on its arc."""
    A, _rate = arc_and_rate(path, body, alpha)
    return A


@wp.func
def approach(path: Path, i: wp.int32, j: wp.int32) -> wp.float64:
    """Return a bound of the approach of two bodies on their whole arcs [m]."""
    return wp.length(path.dp[i] - path.dp[j]) + path.affine_speed[i] + path.affine_speed[j]


@wp.kernel
def advance(
    first: wp.int32,
    path: Path,
    island: wp.array(dtype=wp.int32),
    done: wp.array(dtype=wp.int32),
    alpha: wp.array(dtype=wp.float64),
    pose: Pose,
):
    """Set pose = path(alpha of the body's island) for bodies that are not done."""
    b = wp.tid() + first
    if done[b] != 0:
        return
    a = alpha[island[b]]
    pose.p[b] = path.p[b] + a * path.dp[b]
    pose.A[b] = arc(path, b, a)
