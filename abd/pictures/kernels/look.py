"""What items look like, and which way their surfaces face."""

from __future__ import annotations

import warp as wp

wp.set_module_options({"enable_backward": False, "max_unroll": 4})


@wp.struct
class Things:
    """What items look like.

    face: of a triangle, into `local` and `normals` (three each); body: of an item, into `maps`; tint: of an item, into
    `colors`; planes with axes and origin of their grids, heights as in `clear`.
    """

    local: wp.array(dtype=wp.vec3)
    normals: wp.array(dtype=wp.vec3)
    face: wp.array(dtype=int)
    body: wp.array(dtype=int)
    turn: wp.array(dtype=wp.mat33)
    shift: wp.array(dtype=wp.vec3)
    turn_normals: wp.array(dtype=wp.mat33)
    rods: wp.array(dtype=wp.vec3)
    tint: wp.array(dtype=int)
    colors: wp.array(dtype=wp.vec3)
    planes: wp.array(dtype=wp.vec4)
    plane_colors: wp.array(dtype=wp.vec3)
    grid_u: wp.array(dtype=wp.vec3)
    grid_v: wp.array(dtype=wp.vec3)
    grid_origin: wp.array(dtype=wp.vec3)
    cell: float
    fade: float
    sky_high: wp.vec3
    sky_low: wp.vec3
    triangles: int


@wp.func
def sky(things: Things, d: wp.vec3):
    height = wp.clamp(2.2 * d[2] / wp.length(d), 0.0, 1.0)
    return things.sky_low + (things.sky_high - things.sky_low) * height


@wp.func
def normal_of(things: Things, g: int, p: wp.vec3):
    """Unit normal of an item at a point, on its surface; not yet turned to the eye."""
    if g >= things.triangles:
        r = g - things.triangles
        a = things.rods[2 * r]
        ba = things.rods[2 * r + 1] - a
        s = float(0.0)
        if wp.dot(ba, ba) > 0.0:
            s = wp.clamp(wp.dot(p - a, ba) / wp.dot(ba, ba), 0.0, 1.0)
        return wp.normalize(p - a - ba * s)
    f = things.face[g]
    body = things.body[g]
    A = things.turn[body]
    a = A * things.local[3 * f] + things.shift[body]
    e1 = A * things.local[3 * f + 1] + things.shift[body] - a
    e2 = A * things.local[3 * f + 2] + things.shift[body] - a
    x = p - a
    d11 = wp.dot(e1, e1)
    d12 = wp.dot(e1, e2)
    d22 = wp.dot(e2, e2)
    det = d11 * d22 - d12 * d12
    v = float(0.0)
    w = float(0.0)
    if det > 0.0:
        v = wp.clamp((d22 * wp.dot(x, e1) - d12 * wp.dot(x, e2)) / det, 0.0, 1.0)
        w = wp.clamp((d11 * wp.dot(x, e2) - d12 * wp.dot(x, e1)) / det, 0.0, 1.0 - v)
    n = things.normals[3 * f] * (1.0 - v - w) + things.normals[3 * f + 1] * v + things.normals[3 * f + 2] * w
    n = things.turn_normals[body] * n
    if wp.dot(n, n) == 0.0:
        n = wp.cross(e1, e2)
    return wp.normalize(n)
