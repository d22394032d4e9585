"""The sun, and how much of it a point sees."""

from __future__ import annotations

import warp as wp

from abd.pictures.kernels.eye import Eye

wp.set_module_options({"enable_backward": False, "max_unroll": 4})


@wp.struct
class Light:
    """The sun: direction towards it, its lens and where that stands, size of a texel [m] of its map, over how many of them
    shadows fade, and points evenly over a unit disc."""

    sun: wp.vec3
    eye: Eye
    origin: wp.vec3
    texel: float
    blur: float
    taps: wp.array(dtype=wp.vec2)


@wp.func
def lit(light: Light, shadow: wp.array2d(dtype=float), p: wp.vec3, n: wp.vec3, turn: float):
    """Share of the sun's disc that a point with unit normal n sees, by taps about its place in the shadow map."""
    at = p + n * (2.0 * light.texel) - light.origin
    u = light.eye.column + light.eye.scale * wp.dot(at, light.eye.right)
    v = light.eye.row - light.eye.scale * wp.dot(at, light.eye.up)
    w = -wp.dot(at, light.eye.forward)
    # on the way across the disc the surface itself rises towards the sun by its slope
    slope = wp.sqrt(wp.max(1.0 - wp.dot(n, light.sun) * wp.dot(n, light.sun), 0.0)) / wp.max(wp.dot(n, light.sun), 0.1)
    total = float(0.0)
    bound = w + light.texel * (0.5 + 0.7 * light.blur * wp.min(slope, 3.0))
    c = light.blur * wp.cos(turn)
    s = light.blur * wp.sin(turn)
    count = light.taps.shape[0]
    for k in range(count):
        tap = light.taps[k]
        x = int(u + c * tap[0] - s * tap[1])
        y = int(v + s * tap[0] + c * tap[1])
        if x >= 0 and y >= 0 and x < light.eye.width and y < light.eye.height:
            if shadow[y, x] > bound:
                total += 1.0
    return 1.0 - total / float(count)
