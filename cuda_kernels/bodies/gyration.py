"""Generalized alpha on bodies that spin: twin of ``abd/potentials/gyration.py``, which says what it is."""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, TWO, ZERO

wp.set_module_options({"enable_backward": False, "max_unroll": 4})

FURTHEST = wp.constant(wp.float64(1.5))


@wp.func
def shares(turn: wp.float64, root: wp.float64) -> wp.vec3d:
    """D1, and the real and the imaginary part of Dn."""
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
