"""Measures on an ellipsoid and of a rotation: functions of M and r too long to differentiate by hand.

Derivatives are computed by forward-mode differentiation: a dual number is (value, derivative along a direction of the
features), a `wp.vec2d`; a `DualVector` has three of them. Mirrors `SPECIAL_FUNCTIONS` of ``abd/joints/measures/measures.py``.
"""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, ZERO
from cuda_kernels.options import OPTIONS
from cuda_kernels.shared import joints as shared
from cuda_kernels.shared.joints import MeasureKind

wp.set_module_options(OPTIONS)

SHIFT = wp.constant(wp.float64(shared.SHIFT))
TINY_TANGENT = wp.constant(wp.float64(shared.TINY_TANGENT))


@wp.struct
class DualVector:
    """Three dual numbers: their values and their derivatives."""

    value: wp.vec3d
    slope: wp.vec3d


@wp.func
def dual_vector(x: wp.vec2d, y: wp.vec2d, z: wp.vec2d) -> DualVector:
    out = DualVector()
    out.value = wp.vec3d(x[0], y[0], z[0])
    out.slope = wp.vec3d(x[1], y[1], z[1])
    return out


@wp.func
def times(a: wp.vec2d, b: wp.vec2d) -> wp.vec2d:
    return wp.vec2d(a[0] * b[0], a[1] * b[0] + a[0] * b[1])


@wp.func
def over(a: wp.vec2d, b: wp.vec2d) -> wp.vec2d:
    quotient = a[0] / b[0]
    return wp.vec2d(quotient, (a[1] - quotient * b[1]) / b[0])


@wp.func
def root(a: wp.vec2d) -> wp.vec2d:
    value = wp.sqrt(a[0])
    return wp.vec2d(value, HALF * a[1] / value)


@wp.func
def angle(y: wp.vec2d, x: wp.vec2d) -> wp.vec2d:
    """Return atan2 of dual numbers."""
    return wp.vec2d(wp.atan2(y[0], x[0]), (x[0] * y[1] - y[0] * x[1]) / (x[0] * x[0] + y[0] * y[0]))


@wp.func
def inner(a: DualVector, b: DualVector) -> wp.vec2d:
    """Return ``a . b``."""
    return wp.vec2d(wp.dot(a.value, b.value), wp.dot(a.slope, b.value) + wp.dot(a.value, b.slope))


@wp.func
def outer(a: DualVector, b: DualVector) -> DualVector:
    """Return ``a x b``."""
    out = DualVector()
    out.value = wp.cross(a.value, b.value)
    out.slope = wp.cross(a.slope, b.value) + wp.cross(a.value, b.slope)
    return out


@wp.func
def unit(a: DualVector) -> DualVector:
    """Return ``a / |a|``."""
    size = wp.length(a.value)
    out = DualVector()
    out.value = a.value / size
    out.slope = (a.slope - wp.dot(out.value, a.slope) * out.value) / size
    return out


@wp.func
def scaled(a: DualVector, weights: wp.vec3d) -> DualVector:
    """Return the products of the elements with constants."""
    out = DualVector()
    out.value = wp.cw_mul(a.value, weights)
    out.slope = wp.cw_mul(a.slope, weights)
    return out


@wp.func
def turned(M: wp.mat33d, dM: wp.mat33d, v: wp.vec3d) -> DualVector:
    """Return ``M v`` for a constant v."""
    out = DualVector()
    out.value = M * v
    out.slope = dM * v
    return out


@wp.func
def surface_normal(axes: wp.vec3d, stretch: wp.vec3d, r: DualVector) -> DualVector:
    """Return the z axis at the point r of an ellipsoid."""
    ones = wp.vec3d(ONE, ONE, ONE)
    return unit(scaled(r, wp.cw_div(wp.cw_div(ones, axes), stretch)))


@wp.func
def surface_parallel(axes: wp.vec3d, stretch: wp.vec3d, r: DualVector) -> DualVector:
    """Return the x axis at the point r of an ellipsoid, along the parallel."""
    a = wp.vec2d(r.value[0], r.slope[0]) / axes[0]
    b = wp.vec2d(r.value[1], r.slope[1]) / axes[1]
    c = wp.vec2d(r.value[2], r.slope[2]) / axes[2]
    flat = root(times(b, b) + times(c, c))
    size = root(times(a, a) + times(flat, flat))
    sine = over(a, size)
    x = over(flat, size)
    y = times(over(b, flat), sine)
    z = times(over(c, flat), sine)
    return unit(scaled(dual_vector(x, y, z), wp.cw_mul(stretch, wp.vec3d(ONE, -ONE, -ONE))))


@wp.func
def rotation_excess(largest: wp.vec3d, M: wp.mat33d, dM: wp.mat33d) -> wp.vec2d:
    """Return ``|m o u| - theta`` for the largest rotations m about x, y and z; at M = 1 u is (1, 1, 1)/sqrt 3."""
    axial = DualVector()
    axial.value = HALF * wp.vec3d(M[2, 1] - M[1, 2], M[0, 2] - M[2, 0], M[1, 0] - M[0, 1])
    axial.value += wp.vec3d(SHIFT, SHIFT, SHIFT)
    axial.slope = HALF * wp.vec3d(dM[2, 1] - dM[1, 2], dM[0, 2] - dM[2, 0], dM[1, 0] - dM[0, 1])
    sine = root(inner(axial, axial))
    cosine = HALF * wp.vec2d(wp.trace(M) - ONE, wp.trace(dM))
    u = DualVector()
    u.value = axial.value / sine[0]
    u.slope = (axial.slope - sine[1] * u.value) / sine[0]
    reach = scaled(u, largest)
    return root(inner(reach, reach)) - angle(sine, cosine)


@wp.func
def rotation_component(w: wp.vec3d, M: wp.mat33d, dM: wp.mat33d) -> wp.vec2d:
    """Return ``w . u theta``, u and theta the axis and angle of M; near 0 by the series of atan in the tangent."""
    axial = DualVector()
    axial.value = HALF * wp.vec3d(M[2, 1] - M[1, 2], M[0, 2] - M[2, 0], M[1, 0] - M[0, 1])
    axial.slope = HALF * wp.vec3d(dM[2, 1] - dM[1, 2], dM[0, 2] - dM[2, 0], dM[1, 0] - dM[0, 1])
    cosine = HALF * wp.vec2d(wp.trace(M) - ONE, wp.trace(dM))
    square = inner(axial, axial)
    along = wp.vec2d(wp.dot(w, axial.value), wp.dot(w, axial.slope))
    if cosine[0] > ZERO and square[0] < TINY_TANGENT * cosine[0] * cosine[0]:
        tangent = over(square, times(cosine, cosine))
        one = wp.vec2d(ONE, ZERO)
        last = wp.float64(0.2) * one - tangent / wp.float64(7.0)
        last = one / wp.float64(3.0) - times(tangent, last)
        return times(along, over(one - times(tangent, last), cosine))
    sine = root(square + wp.vec2d(SHIFT * SHIFT, ZERO))
    return times(along, over(angle(sine, cosine), sine))


@wp.func
def special_function(
    kind: wp.int32,
    numbers: wp.array2d(dtype=wp.float64),
    e: wp.int32,
    M: wp.mat33d,
    r: wp.vec3d,
    dM: wp.mat33d,
    dr: wp.vec3d,
) -> wp.vec2d:
    """Return f of measure e and its derivative along (dM, dr)."""
    axes = wp.vec3d(numbers[e, 0], numbers[e, 1], numbers[e, 2])
    if kind == MeasureKind.ROTATION:
        w = wp.vec3d(numbers[e, 3], numbers[e, 4], numbers[e, 5])
        if wp.length_sq(w) > ZERO:
            return rotation_component(w, M, dM)
        return rotation_excess(axes, M, dM)
    stretch = axes
    if numbers[e, 3] == ONE:
        stretch = wp.vec3d(ONE, ONE, ONE)
    point = DualVector()
    point.value = r
    point.slope = dr
    z = surface_normal(axes, stretch, point)
    if kind == MeasureKind.SURFACE_DOT:
        return inner(z, turned(M, dM, wp.vec3d(numbers[e, 4], numbers[e, 5], numbers[e, 6])))
    c = wp.cos(numbers[e, 7])
    s = wp.sin(numbers[e, 7])
    if kind == MeasureKind.SURFACE_TILT:
        across = turned(M, dM, wp.vec3d(-s, c, ZERO))
        return angle(inner(z, across), inner(z, turned(M, dM, wp.vec3d(ZERO, ZERO, ONE))))
    x = surface_parallel(axes, stretch, point)
    y = unit(outer(z, x))
    ahead = turned(M, dM, wp.vec3d(c, s, ZERO))
    return angle(inner(y, ahead), inner(x, ahead)) - wp.vec2d(numbers[e, 7], ZERO)
