"""Closest rotation, principal axes and positive part of 3x3 matrices."""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, TWO, ZERO
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)

SWEEPS = wp.constant(wp.int32(8))
"""Number of sweeps of rotations after which a 3x3 matrix is diagonal to rounding; usually four suffice."""


@wp.func
def polar(A: wp.mat33d) -> wp.mat33d:
    """Rotation closest to A, by Newton's iteration R <- (R + R^-T)/2; A is near a rotation."""
    R = A
    for _i in range(8):
        R = HALF * (R + wp.transpose(wp.inverse(R)))
    return R


@wp.func
def jacobi(p: wp.float64, q: wp.float64, off: wp.float64) -> wp.vec3d:
    """(cos, sin, tan) of the rotation that makes ``[p off; off q]`` diagonal (Golub and Van Loan, 8.5)."""
    if off == ZERO:
        return wp.vec3d(ONE, ZERO, ZERO)
    tau = (q - p) / (TWO * off)
    t = wp.where(tau < ZERO, -ONE, ONE) / (wp.abs(tau) + wp.sqrt(ONE + tau * tau))
    c = ONE / wp.sqrt(ONE + t * t)
    return wp.vec3d(c, t * c, t)


@wp.func
def eigen(E: wp.mat33d):
    """Eigenvalues (no order) and, as columns, eigenvectors of a symmetric matrix, by Jacobi's cyclic rotations."""
    d = wp.vec3d(E[0, 0], E[1, 1], E[2, 2])
    xy = E[0, 1]
    xz = E[0, 2]
    yz = E[1, 2]
    u = wp.vec3d(ONE, ZERO, ZERO)
    v = wp.vec3d(ZERO, ONE, ZERO)
    w = wp.vec3d(ZERO, ZERO, ONE)
    small = wp.float64(1.0e-32) * wp.ddot(E, E)
    for _sweep in range(SWEEPS):
        if xy * xy + xz * xz + yz * yz <= small:
            break
        r = jacobi(d[0], d[1], xy)
        d = d + r[2] * xy * wp.vec3d(-ONE, ONE, ZERO)
        side = xz
        xz = r[0] * side - r[1] * yz
        yz = r[1] * side + r[0] * yz
        xy = ZERO
        axis = u
        u = r[0] * axis - r[1] * v
        v = r[1] * axis + r[0] * v
        r = jacobi(d[0], d[2], xz)
        d = d + r[2] * xz * wp.vec3d(-ONE, ZERO, ONE)
        side = xy
        xy = r[0] * side - r[1] * yz
        yz = r[1] * side + r[0] * yz
        xz = ZERO
        axis = u
        u = r[0] * axis - r[1] * w
        w = r[1] * axis + r[0] * w
        r = jacobi(d[1], d[2], yz)
        d = d + r[2] * yz * wp.vec3d(ZERO, -ONE, ONE)
        side = xy
        xy = r[0] * side - r[1] * xz
        xz = r[1] * side + r[0] * xz
        yz = ZERO
        axis = v
        v = r[0] * axis - r[1] * w
        w = r[1] * axis + r[0] * w
    return d, wp.mat33d(u[0], v[0], w[0], u[1], v[1], w[1], u[2], v[2], w[2])


@wp.func
def positive_part(E: wp.mat33d) -> wp.mat33d:
    """Symmetric positive semi-definite part of a symmetric matrix."""
    d, V = eigen(E)
    u = wp.vec3d(V[0, 0], V[1, 0], V[2, 0])
    v = wp.vec3d(V[0, 1], V[1, 1], V[2, 1])
    w = wp.vec3d(V[0, 2], V[1, 2], V[2, 2])
    out = wp.max(d[0], ZERO) * wp.outer(u, u) + wp.max(d[1], ZERO) * wp.outer(v, v)
    return out + wp.max(d[2], ZERO) * wp.outer(w, w)
