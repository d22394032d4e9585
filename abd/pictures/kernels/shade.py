"""The light that every pixel sends to the eye."""

from __future__ import annotations

import warp as wp

from abd.pictures.kernels.cover import SKY
from abd.pictures.kernels.eye import Eye, ray
from abd.pictures.kernels.look import Things, normal_of, sky
from abd.pictures.kernels.sun import Light, lit

wp.set_module_options({"enable_backward": False, "max_unroll": 4})

BRIGHTEST = wp.constant(2.0)
"""Linear light up to which tones are told apart."""


@wp.func
def line_share(at: float, width: float, blur: float):
    """Share of an interval of length `blur` about `at` that lines of `width` about whole numbers cover."""
    b = wp.max(blur, 1.0e-6)
    lo = at - 0.5 * b + 0.5 * width
    hi = at + 0.5 * b + 0.5 * width
    first = wp.floor(lo) * width + wp.min(lo - wp.floor(lo), width)
    last = wp.floor(hi) * width + wp.min(hi - wp.floor(hi), width)
    return wp.clamp((last - first) / b, 0.0, 1.0)


@wp.func
def shaded(
    eye: Eye,
    light: Light,
    things: Things,
    shadow: wp.array2d(dtype=float),
    open_sky: float,
    x: float,
    y: float,
    g: int,
    w: float,
):
    """Linear light that one sample sends to the eye."""
    d = ray(eye, x, y)
    if g == SKY:
        return sky(things, d)
    t = 1.0 / w
    p = d * t
    color = wp.vec3(0.0, 0.0, 0.0)
    n = wp.vec3(0.0, 0.0, 1.0)
    gloss = float(0.0)
    haze = float(0.0)
    if g < SKY:
        k = -2 - g
        plane = things.planes[k]
        n = wp.vec3(plane[0], plane[1], plane[2])
        color = things.plane_colors[k]
        at = p - things.grid_origin[k]
        # what one pixel covers along both directions of the grid
        across = t * 1.6 / eye.scale
        lean = wp.max(-wp.dot(n, d) / wp.length(d), 1.0e-3)
        u = wp.dot(at, things.grid_u[k]) / things.cell
        v = wp.dot(at, things.grid_v[k]) / things.cell
        flat = d - n * wp.dot(n, d)
        size = wp.length(flat)
        du = across / things.cell
        dv = across / things.cell
        if size > 0.0:
            flat = flat / size
            du = du * (1.0 + wp.abs(wp.dot(flat, things.grid_u[k])) * (1.0 / lean - 1.0))
            dv = dv * (1.0 + wp.abs(wp.dot(flat, things.grid_v[k])) * (1.0 / lean - 1.0))
        fine = wp.max(line_share(u, 0.016, du), line_share(v, 0.016, dv))
        bold = wp.max(line_share(0.2 * u, 0.006, 0.2 * du), line_share(0.2 * v, 0.006, 0.2 * dv))
        color = color * (1.0 - 0.16 * fine - 0.22 * bold)
        far = t * wp.length(d) / things.fade
        haze = 1.0 - wp.exp(-far * far)
    else:
        n = normal_of(things, g, p)
        if wp.dot(n, d) > 0.0:
            n = -n
        color = things.colors[things.tint[g]]
        gloss = 1.0
    facing = wp.dot(n, light.sun)
    direct = float(0.0)
    if facing > 0.0:
        # every place turns the taps by another angle, which makes bands to grain, and grain is averaged
        turn = 6.2831853 * (52.9829189 * (0.06711056 * wp.floor(x) + 0.00583715 * wp.floor(y)))
        direct = facing * lit(light, shadow, p, n, turn)
    from_sky = (0.5 + 0.5 * n[2]) * open_sky
    bounced = (0.5 - 0.5 * n[2]) * open_sky
    sun_color = wp.vec3(1.0, 0.96, 0.88) * (0.74 * direct)
    sky_color = wp.vec3(0.86, 0.93, 1.0) * (0.46 * from_sky) + wp.vec3(1.0, 0.97, 0.93) * (0.26 * bounced + 0.06)
    out = wp.cw_mul(color, sun_color + sky_color)
    if gloss > 0.0 and direct > 0.0:
        half = wp.normalize(light.sun - wp.normalize(d))
        # its 40th power
        shine = wp.max(wp.dot(n, half), 0.0)
        shine = shine * shine
        shine = shine * shine
        shine = shine * shine
        shine = shine * (shine * shine) * (shine * shine)
        out += wp.vec3(1.0, 0.98, 0.95) * (0.12 * shine * direct)
    if haze > 0.0:
        flat = wp.vec3(d[0], d[1], wp.max(d[2], 0.0))
        out = out * (1.0 - haze) + sky(things, flat) * haze
    return out


@wp.func
def encoded(tone: wp.array(dtype=wp.uint8), value: float):
    """sRGB of linear light by its table, which goes to `BRIGHTEST`."""
    last = tone.shape[0] - 1
    return tone[int(wp.clamp(value * (float(last) / BRIGHTEST) + 0.5, 0.0, float(last)))]


@wp.kernel
def shade(
    eye: Eye,
    light: Light,
    things: Things,
    shadow: wp.array2d(dtype=float),
    near: wp.array2d(dtype=float),
    item: wp.array2d(dtype=int),
    samples: int,
    step: int,
    share: wp.array2d(dtype=float),
    tone: wp.array(dtype=wp.uint8),
    pixels: wp.array3d(dtype=wp.uint8),
):
    """One row of pixels, each the mean of samples x samples; an item is shaded once where all of them show it."""
    row = wp.tid()
    count = samples * samples
    for column in range(pixels.shape[1]):
        y0 = row * samples
        x0 = column * samples
        g0 = item[y0, x0]
        same = bool(True)
        w_mean = float(0.0)
        for k in range(count):
            if item[y0 + k // samples, x0 + k % samples] != g0:
                same = False
            w_mean += near[y0 + k // samples, x0 + k % samples]
        open_sky = share[wp.min(y0 // step, share.shape[0] - 1), wp.min(x0 // step, share.shape[1] - 1)]
        total = wp.vec3(0.0, 0.0, 0.0)
        if same:
            middle = 0.5 * float(samples)
            total = shaded(
                eye, light, things, shadow, open_sky, float(x0) + middle, float(y0) + middle, g0, w_mean / float(count)
            )
        else:
            for k in range(count):
                y = y0 + k // samples
                x = x0 + k % samples
                total += shaded(
                    eye, light, things, shadow, open_sky, float(x) + 0.5, float(y) + 0.5, item[y, x], near[y, x]
                ) / float(count)
        pixels[row, column, 0] = encoded(tone, total[0])
        pixels[row, column, 1] = encoded(tone, total[1])
        pixels[row, column, 2] = encoded(tone, total[2])
