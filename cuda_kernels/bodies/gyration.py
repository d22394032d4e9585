"""Generalized alpha for spinning bodies: device version of ``abd/potentials/gyration.py`` (definitions there)."""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, TWO, ZERO
from cuda_kernels.options import OPTIONS
from cuda_kernels.shared import bodies as shared

wp.set_module_options(OPTIONS)

FURTHEST = wp.constant(wp.float64(shared.FURTHEST))
THIN = wp.constant(wp.float64(shared.THIN))


@wp.func
def displacement_factors(turn: wp.float64, root: wp.float64) -> wp.vec3d:
    """Return D1, and the real and the imaginary part of Dn (`abd.potentials.gyration.displacement_factors`)."""
    y = HALF * wp.min(turn, FURTHEST)
    sine = wp.sin(y)
    cosine = wp.cos(y)
    size = ONE
    if y > ZERO:
        size = sine / y
    R = cosine + wp.sqrt(wp.max(root * root - sine * sine, ZERO))
    new = size / ((ONE + root) * R)
    late = (wp.float64(3.0) * root - ONE) / (TWO * (ONE + root))
    real = late * size * cosine + root * new * (ONE - R * cosine)
    imaginary = late * size * sine - root * new * R * sine
    return wp.vec3d(new, real, imaginary)


@wp.func
def thin_axis(moment: wp.vec3d) -> wp.int32:
    """Return the body axis about which a body is `THIN`; -1 without one."""
    J = wp.vec3d(moment[1] + moment[2], moment[0] + moment[2], moment[0] + moment[1])
    k = wp.int32(0)
    if J[1] < J[k]:
        k = wp.int32(1)
    if J[2] < J[k]:
        k = wp.int32(2)
    if J[k] < THIN * wp.min(J[(k + 1) % 3], J[(k + 2) % 3]):
        return k
    return wp.int32(-1)


@wp.func
def own_axis(A: wp.mat33d, k: wp.int32) -> wp.vec3d:
    """Return the unit vector along body axis k; zero for -1."""
    if k < 0:
        return wp.vec3d()
    return wp.normalize(wp.vec3d(A[0, k], A[1, k], A[2, k]))


@wp.func
def carried(v: wp.vec3d, now: wp.vec3d, new: wp.vec3d) -> wp.vec3d:
    """Return a vector whose component along a thin axis is rotated with the body, from `now` to `new`."""
    return v + wp.dot(v, now - new) * new


@wp.func
def twisting(A: wp.mat33d, k: wp.int32, w: wp.vec3d) -> wp.float64:
    """Return the product of the angular velocities about the other two body axes."""
    return wp.dot(own_axis(A, (k + 1) % 3), w) * wp.dot(own_axis(A, (k + 2) % 3), w)
