"""Anchors of sticking contacts; device version of ``abd/potentials/sticking.py``."""

import warp as wp

from cuda_kernels.bodies.affine import ZERO
from cuda_kernels.options import OPTIONS
from cuda_kernels.shared import contact as shared

wp.set_module_options(OPTIONS)

STEEP = wp.constant(wp.float64(shared.STEEP))


@wp.struct
class Anchors:
    """Contacts of the last step, count (1,) of them, by ascending keys ``i n + j`` of n bodies: kind, point on body i in rest
    coordinates [m], stretch of the spring over eps."""

    count: wp.array(dtype=wp.int32)
    key: wp.array(dtype=wp.int64)
    kind: wp.array(dtype=wp.int32)
    point: wp.array(dtype=wp.vec3d)
    share: wp.array(dtype=wp.vec3d)


@wp.func
def tangential(share: wp.vec3d, n: wp.vec3d) -> wp.vec3d:
    """Project a stretch on the plane of the normal n, with the same size unless it is too steep."""
    flat = share - wp.dot(share, n) * n
    size = wp.length(share)
    flat_size = wp.length(flat)
    if flat_size > STEEP * size:
        return (size / flat_size) * flat
    return flat


@wp.func
def anchored(a: Anchors, begin: wp.int32, key: wp.int64, kind: wp.int32, point: wp.vec3d, n: wp.vec3d) -> wp.vec3d:
    """Return the stretch of the nearest contact of the same kind and bodies, whose contacts begin with `begin`, in the plane of
    the normal n; 0 without one."""
    count = a.count[0]
    nearest = wp.int32(-1)
    least = wp.float64(0.0)
    k = begin
    while k < count:
        if a.key[k] != key:
            break
        r = a.point[k] - point
        d = wp.dot(r, r)
        if a.kind[k] == kind:
            if nearest < 0 or d < least:
                nearest = k
                least = d
        k = k + 1
    if nearest < 0:
        return wp.vec3d(ZERO, ZERO, ZERO)
    return tangential(a.share[nearest], n)
