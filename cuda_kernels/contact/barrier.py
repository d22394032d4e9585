"""Scalar barriers as functions of the squared distance; mirrors ``abd/potentials/barrier.py``."""

import warp as wp

from cuda_kernels.bodies.affine import ONE, TWO, ZERO
from cuda_kernels.options import OPTIONS
from cuda_kernels.shared import contact as shared

wp.set_module_options(OPTIONS)

LOG = 0
LOG_SQ = 1
CUBIC = 2
CORE = wp.constant(wp.float64(shared.CORE))


@wp.func
def barrier(kind: wp.int32, D: wp.float64, d_hat: wp.float64, xi: wp.float64) -> wp.vec3d:
    """Return (b, db/dD, d2b/dD2) at squared distance D for activation d_hat beyond the separation xi.

    log: -(x - h)^2 ln(x/h); log_sq: (x - h)^2 ln(x/h)^2, with x = D - xi^2, h = d_hat^2 + 2 d_hat xi;
    cubic: -(2 / (3 d_hat)) (sqrt(D) - xi - d_hat)^3; the core c (h - x)^3 / x, for cubic over (d_hat + 2 xi)^2, is added.
    An unknown kind gives NaN.
    """
    x = D - xi * xi
    h = d_hat * d_hat + TWO * d_hat * xi
    if x >= h:
        return wp.vec3d(ZERO, ZERO, ZERO)
    y = x - h
    r = y / x
    scale = CORE
    out = wp.vec3d(wp.float64(wp.nan))
    if kind == CUBIC:
        d = wp.sqrt(D)
        z = d - xi - d_hat
        c = -TWO / (wp.float64(3.0) * d_hat)
        f1 = wp.float64(3.0) * c * z * z
        f2 = wp.float64(6.0) * c * z
        inverse = wp.float64(0.5) / d
        out = wp.vec3d(c * z * z * z, f1 * inverse, (f2 - f1 / d) * inverse * inverse)
        scale = CORE / ((d_hat + TWO * xi) * (d_hat + TWO * xi))
    elif kind == LOG:
        ln = wp.log(x / h)
        out = wp.vec3d(-y * y * ln, -TWO * y * ln - y * r, -TWO * ln - wp.float64(4.0) * r + r * r)
    elif kind == LOG_SQ:
        ln = wp.log(x / h)
        out = wp.vec3d(
            y * y * ln * ln,
            TWO * y * ln * ln + TWO * y * r * ln,
            TWO * ln * ln + wp.float64(8.0) * r * ln + TWO * r * r * (ONE - ln),
        )
    three = wp.float64(3.0)
    return out + scale * wp.vec3d(-y * y * r, y * r * (r - three), TWO * r * (three * (r - ONE) - r * r))
