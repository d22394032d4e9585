"""How much of the sky neighbours leave open."""

from __future__ import annotations

import warp as wp

from abd.pictures.kernels.cover import SKY
from abd.pictures.kernels.eye import Eye, ray
from abd.pictures.kernels.look import Things, normal_of

wp.set_module_options({"enable_backward": False, "max_unroll": 4})

COSINE = wp.constant(-0.7373688)
SINE = wp.constant(0.6754904)


@wp.kernel
def occlude(
    eye: Eye,
    things: Things,
    near: wp.array2d(dtype=float),
    item: wp.array2d(dtype=int),
    step: int,
    reach: float,
    share: wp.array2d(dtype=float),
):
    """One row of the coarse picture: the share of the sky that is open at every `step`-th sample.

    Ground-truth-like sums are not needed: points within `reach` [m] that rise above the tangent plane darken by the sine
    of their height (Bavoil and Sainz 2008, angle-based ambient occlusion in its simplest form).
    """
    row = wp.tid()
    y = row * step + step // 2
    for column in range(share.shape[1]):
        x = column * step + step // 2
        value = float(1.0)
        if y < eye.height and x < eye.width:
            g = item[y, x]
            w = near[y, x]
            if g != SKY:
                d = ray(eye, float(x) + 0.5, float(y) + 0.5)
                p = d / w
                n = wp.vec3(0.0, 0.0, 1.0)
                if g < SKY:
                    plane = things.planes[-2 - g]
                    n = wp.vec3(plane[0], plane[1], plane[2])
                else:
                    n = normal_of(things, g, p)
                    if wp.dot(n, d) > 0.0:
                        n = -n
                disc = wp.min(reach * eye.scale * w, 0.16 * float(eye.height))
                if disc > 1.5:
                    hidden = float(0.0)
                    # the same angle for 4 x 4 neighbours in turn: averaging over them removes the pattern
                    turn = 0.3926991 * float((column & 3) + 4 * (row & 3))
                    c = wp.cos(turn)
                    s = wp.sin(turn)
                    for k in range(12):
                        r = disc * (float(k) + 0.6) / 12.0
                        sx = x + int(r * c)
                        sy = y + int(r * s)
                        # on by the golden angle
                        next = c * COSINE - s * SINE
                        s = s * COSINE + c * SINE
                        c = next
                        if sx >= 0 and sy >= 0 and sx < eye.width and sy < eye.height:
                            if item[sy, sx] != SKY:
                                q = ray(eye, float(sx) + 0.5, float(sy) + 0.5) / near[sy, sx] - p
                                length = wp.length(q)
                                if length > 0.0 and length < 1.5 * reach:
                                    rise = wp.dot(q, n) / length - 0.12
                                    fall = wp.max(1.0 - length / (1.5 * reach), 0.0)
                                    hidden += wp.max(rise, 0.0) * fall
                    value = wp.max(1.0 - 1.5 * hidden / 12.0 * 2.0, 0.15)
        share[row, column] = value


@wp.kernel
def smooth(
    near: wp.array2d(dtype=float),
    step: int,
    share: wp.array2d(dtype=float),
    out: wp.array2d(dtype=float),
):
    """One row: mean over 4 x 4 neighbours of about the same depth."""
    row = wp.tid()
    for column in range(share.shape[1]):
        y = wp.min(row * step + step // 2, near.shape[0] - 1)
        x = wp.min(column * step + step // 2, near.shape[1] - 1)
        w = near[y, x]
        total = float(0.0)
        weight = float(0.0)
        for k in range(16):
            r = wp.clamp(row + k // 4 - 2, 0, share.shape[0] - 1)
            c = wp.clamp(column + k % 4 - 2, 0, share.shape[1] - 1)
            other = near[
                wp.min(r * step + step // 2, near.shape[0] - 1), wp.min(c * step + step // 2, near.shape[1] - 1)
            ]
            if wp.abs(other - w) <= 0.03 * wp.abs(w):
                total += share[r, c]
                weight += 1.0
        value = float(1.0)
        if weight > 0.0:
            value = total / weight
        out[row, column] = value
