"""Scalar barriers as functions of the squared distance; mirrors ``abd/potentials/barrier.py``."""

import warp as wp

from cuda_kernels.bodies.affine import ONE, TWO, ZERO
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)

LOG = 0
LOG_SQ = 1
CUBIC = 2


@wp.func
def barrier(kind: wp.int32, D: wp.float64, d_hat: wp.float64, xi: wp.float64) -> wp.vec3d:
    """Return (b, db/dD, d2b/dD2) at squared distance D for activation d_hat beyond the separation xi.

    log: -(x - h)^2 ln(x/h); log_sq: (x - h)^2 ln(x/h)^2, with x = D - xi^2, h = d_hat^2 + 2 d_hat xi;
    cubic: -(2 / (3 d_hat)) (sqrt(D) - xi - d_hat)^3. An unknown kind gives NaN.
    """
    if kind == CUBIC:
        d = wp.sqrt(D)
        y = d - xi - d_hat
        if y >= ZERO:
            return wp.vec3d(ZERO, ZERO, ZERO)
        c = -TWO / (wp.float64(3.0) * d_hat)
        f1 = wp.float64(3.0) * c * y * y
        f2 = wp.float64(6.0) * c * y
        inverse = wp.float64(0.5) / d
        return wp.vec3d(c * y * y * y, f1 * inverse, (f2 - f1 / d) * inverse * inverse)
    x = D - xi * xi
    h = d_hat * d_hat + TWO * d_hat * xi
    if x >= h:
        return wp.vec3d(ZERO, ZERO, ZERO)
    y = x - h
    ln = wp.log(x / h)
    r = y / x
    if kind == LOG:
        return wp.vec3d(-y * y * ln, -TWO * y * ln - y * r, -TWO * ln - wp.float64(4.0) * r + r * r)
    if kind == LOG_SQ:
        return wp.vec3d(
            y * y * ln * ln,
            TWO * y * ln * ln + TWO * y * r * ln,
            TWO * ln * ln + wp.float64(8.0) * r * ln + TWO * r * r * (ONE - ln),
        )
    return wp.vec3d(wp.float64(wp.nan))
