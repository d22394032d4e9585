"""Smoothed Coulomb friction, and the coefficients of sliding, rolling and spinning resistance.

Device version of `f0` and `f1_over_y` of ``abd/potentials/friction.py``, and of ``abd/potentials/rolling.py``.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, TWO, ZERO
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)

THREE = wp.constant(wp.float64(3.0))


@wp.func
def f0(y: wp.float64, eps: wp.float64) -> wp.float64:
    """Return the smoothed |y| of a stretch y >= 0 that is static below eps."""
    if y < eps:
        return y * y * (eps - y / THREE) / (eps * eps) + eps / THREE
    return y


@wp.func
def f1_over_y(y: wp.float64, eps: wp.float64) -> wp.float64:
    """Return ``f0'/y``, finite at 0."""
    if y < eps:
        return (TWO - y / eps) / eps
    return ONE / y


@wp.struct
class Resistances:
    """By pairs of materials: mu [-], rolling and spinning [m]; arm: (n,) lengths of the bodies' arms [m], infinite for bodies
    that forces do not move."""

    mu: wp.array2d(dtype=wp.float64)
    rolling: wp.array2d(dtype=wp.float64)
    spinning: wp.array2d(dtype=wp.float64)
    arm: wp.array(dtype=wp.float64)


@wp.func
def ratios(r: Resistances, a: wp.int32, b: wp.int32, length: wp.float64) -> wp.vec3d:
    """Return loads of SLIDE, ROLL and SPIN over the normal force, for materials a, b and arms of a length [m]."""
    return wp.vec3d(r.mu[a, b], r.rolling[a, b] / length, r.spinning[a, b] / length)


@wp.func
def is_resisted(ratio: wp.float64) -> bool:
    """Return whether a contact with this ratio of load to normal force is lagged."""
    return ratio > ZERO


@wp.func
def tangent(n: wp.vec3d) -> wp.vec3d:
    """Return a unit vector normal to n, from the axis with the largest angle to n."""
    x = wp.abs(n[0])
    y = wp.abs(n[1])
    z = wp.abs(n[2])
    axis = wp.vec3d(ONE, ZERO, ZERO)
    if y < x and y <= z:
        axis = wp.vec3d(ZERO, ONE, ZERO)
    elif z < x and z < y:
        axis = wp.vec3d(ZERO, ZERO, ONE)
    return wp.normalize(wp.cross(n, axis))
