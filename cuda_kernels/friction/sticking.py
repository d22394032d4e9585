"""What contacts that stick remember; device version of ``abd/potentials/sticking.py``."""

import warp as wp

from cuda_kernels.bodies.affine import ZERO
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)

STEEP = wp.constant(wp.float64(0.5))
"""Part of a share that the new tangent plane must contain for the share to keep its size."""


@wp.struct
class Anchors:
    """Contacts of the last step, count (1,) of them, in the order of their keys ``i n + j`` of n bodies: kind, point on the body
    i in rest coordinates [m], share of eps by which the spring is stretched."""

    count: wp.array(dtype=wp.int32)
    key: wp.array(dtype=wp.int64)
    kind: wp.array(dtype=wp.int32)
    point: wp.array(dtype=wp.vec3d)
    share: wp.array(dtype=wp.vec3d)


@wp.func
def tangential(share: wp.vec3d, n: wp.vec3d) -> wp.vec3d:
    """A share in the plane of the normal n, of the same size unless it is too steep."""
    flat = share - wp.dot(share, n) * n
    size = wp.length(share)
    left = wp.length(flat)
    if left > STEEP * size:
        return (size / left) * flat
    return flat


@wp.func
def anchored(a: Anchors, key: wp.int64, kind: wp.int32, point: wp.vec3d, n: wp.vec3d) -> wp.vec3d:
    """Share of the nearest contact of the same kind and two bodies, in the plane of the normal n; 0 without one."""
    count = a.count[0]
    lo = wp.int32(0)
    hi = count
    while lo < hi:
        mid = (lo + hi) // 2
        if a.key[mid] < key:
            lo = mid + 1
        else:
            hi = mid
    nearest = wp.int32(-1)
    least = wp.float64(0.0)
    k = lo
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
