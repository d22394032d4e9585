"""Light from every pixel to the eye: sunlight with shadows, and sky light with ambient occlusion."""

from __future__ import annotations

import warp as wp

from abd.backends.device.compiling import OPTIONS
from abd.pictures.kernels.cover import SKY, Eye, Samples, ray

wp.set_module_options(OPTIONS)

BRIGHTEST = wp.constant(2.0)
"""Upper end of the table of tones in linear light."""
GOLDEN_COSINE = wp.constant(-0.7373688)
GOLDEN_SINE = wp.constant(0.6754904)


@wp.struct
class Things:
    """Appearance of items; positions are relative to the eye.

    corners, normals: (triangles, 3); rods: (rods, 2); colors: of items, linear.
    planes: (h, 4) normal, point, first axis of the grid, linear colour; cell: size of the grid's cells [m].
    fade: distance [m] at which planes fade into the sky.
    """

    corners: wp.array2d(dtype=wp.vec3)
    normals: wp.array2d(dtype=wp.vec3)
    rods: wp.array2d(dtype=wp.vec3)
    colors: wp.array(dtype=wp.vec3)
    planes: wp.array2d(dtype=wp.vec3)
    cell: float
    fade: float
    sky_high: wp.vec3
    sky_low: wp.vec3


@wp.struct
class Light:
    """The sun: direction, lens and its origin, shadow map, texel size [m], blur radius [texels], taps over a unit disc."""

    sun: wp.vec3
    eye: Eye
    origin: wp.vec3
    shadow: wp.array2d(dtype=float)
    texel: float
    blur: float
    taps: wp.array(dtype=wp.vec2)


@wp.func
def sky(things: Things, d: wp.vec3):
    height = wp.clamp(2.2 * d[2] / wp.length(d), 0.0, 1.0)
    return things.sky_low + (things.sky_high - things.sky_low) * height


@wp.func
def normal_of(things: Things, g: int, p: wp.vec3, d: wp.vec3):
    """Unit normal of an item, or of a plane, at a point, on the side of the incoming ray d."""
    n = wp.vec3(0.0, 0.0, 1.0)
    r = g - things.corners.shape[0]
    if g < SKY:
        return things.planes[SKY - 1 - g, 0]
    if r >= 0:
        a = things.rods[r, 0]
        ba = things.rods[r, 1] - a
        n = p - a
        if wp.dot(ba, ba) > 0.0:
            n = n - ba * wp.clamp(wp.dot(n, ba) / wp.dot(ba, ba), 0.0, 1.0)
    else:
        a = things.corners[g, 0]
        e1 = things.corners[g, 1] - a
        e2 = things.corners[g, 2] - a
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
        n = things.normals[g, 0] * (1.0 - v - w) + things.normals[g, 1] * v + things.normals[g, 2] * w
        if wp.dot(n, n) == 0.0:
            n = wp.cross(e1, e2)
    if wp.dot(n, d) > 0.0:
        n = -n
    return wp.normalize(n)


@wp.kernel
def occlude(eye: Eye, things: Things, samples: Samples, step: int, reach: float, open_sky: wp.array2d(dtype=float)):
    """One row of the coarse picture: the visible fraction of the sky at every `step`-th sample.

    Points within `reach` [m] above the tangent plane occlude by the sine of their elevation (Bavoil and Sainz 2008)."""
    row = wp.tid()
    y = row * step + step // 2
    for column in range(open_sky.shape[1]):
        x = column * step + step // 2
        open_sky[row, column] = 1.0
        if y < eye.height and x < eye.width:
            g = samples.item[y, x]
            w = samples.near[y, x]
            disc = wp.min(reach * eye.scale * w, 0.16 * float(eye.height))
            if g != SKY and disc > 1.5:
                d = ray(eye, float(x) + 0.5, float(y) + 0.5)
                p = d / w
                n = normal_of(things, g, p, d)
                hidden = float(0.0)
                # 4 x 4 neighbours have different angles; `smooth` averages over them
                turn = 0.3926991 * float((column & 3) + 4 * (row & 3))
                c = wp.cos(turn)
                s = wp.sin(turn)
                for k in range(12):
                    r = disc * (float(k) + 0.6) / 12.0
                    sx = x + int(r * c)
                    sy = y + int(r * s)
                    # advance by the golden angle
                    next = c * GOLDEN_COSINE - s * GOLDEN_SINE
                    s = s * GOLDEN_COSINE + c * GOLDEN_SINE
                    c = next
                    if sx >= 0 and sy >= 0 and sx < eye.width and sy < eye.height:
                        if samples.item[sy, sx] != SKY:
                            q = ray(eye, float(sx) + 0.5, float(sy) + 0.5) / samples.near[sy, sx] - p
                            length = wp.length(q)
                            if length > 0.0 and length < 1.5 * reach:
                                rise = wp.dot(q, n) / length - 0.12
                                hidden += wp.max(rise, 0.0) * (1.0 - length / (1.5 * reach))
                open_sky[row, column] = wp.max(1.0 - 0.25 * hidden, 0.15)


@wp.kernel
def smooth(samples: Samples, step: int, open_sky: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
    """One row: mean over 4 x 4 neighbours of similar depth."""
    row = wp.tid()
    last_y = samples.near.shape[0] - 1
    last_x = samples.near.shape[1] - 1
    for column in range(open_sky.shape[1]):
        w = samples.near[wp.min(row * step + step // 2, last_y), wp.min(column * step + step // 2, last_x)]
        total = float(0.0)
        weight = float(0.0)
        for k in range(16):
            r = wp.clamp(row + k // 4 - 2, 0, open_sky.shape[0] - 1)
            c = wp.clamp(column + k % 4 - 2, 0, open_sky.shape[1] - 1)
            other = samples.near[wp.min(r * step + step // 2, last_y), wp.min(c * step + step // 2, last_x)]
            if wp.abs(other - w) <= 0.03 * wp.abs(w):
                total += open_sky[r, c]
                weight += 1.0
        out[row, column] = total / weight


@wp.func
def sun_fraction(light: Light, p: wp.vec3, n: wp.vec3, turn: float):
    """Visible fraction of the sun's disc at a point with unit normal n, by taps around its position in the shadow map."""
    at = p + n * (2.0 * light.texel) - light.origin
    u = light.eye.column + light.eye.scale * wp.dot(at, light.eye.right)
    v = light.eye.row - light.eye.scale * wp.dot(at, light.eye.up)
    facing = wp.dot(n, light.sun)
    # slope of the surface towards the sun across the disc
    slope = wp.sqrt(wp.max(1.0 - facing * facing, 0.0)) / wp.max(facing, 0.1)
    bound = light.texel * (0.5 + 0.7 * light.blur * wp.min(slope, 3.0)) - wp.dot(at, light.eye.forward)
    c = light.blur * wp.cos(turn)
    s = light.blur * wp.sin(turn)
    total = float(0.0)
    count = light.taps.shape[0]
    for k in range(count):
        tap = light.taps[k]
        x = int(u + c * tap[0] - s * tap[1])
        y = int(v + s * tap[0] + c * tap[1])
        if x >= 0 and y >= 0 and x < light.eye.width and y < light.eye.height:
            if light.shadow[y, x] > bound:
                total += 1.0
    return 1.0 - total / float(count)


@wp.func
def line_fraction(at: float, width: float, blur: float):
    """Fraction of an interval of length `blur` about `at` that lines of `width` at integers cover."""
    b = wp.max(blur, 1.0e-6)
    lo = at - 0.5 * b + 0.5 * width
    hi = at + 0.5 * b + 0.5 * width
    first = wp.floor(lo) * width + wp.min(lo - wp.floor(lo), width)
    last = wp.floor(hi) * width + wp.min(hi - wp.floor(hi), width)
    return wp.clamp((last - first) / b, 0.0, 1.0)


@wp.func
def grid_lines(eye: Eye, things: Things, k: int, p: wp.vec3, d: wp.vec3, axis: wp.vec3):
    """Fractions of a sample that fine and bold grid lines of a plane perpendicular to an axis cover."""
    n = things.planes[k, 0]
    at = wp.dot(p - things.planes[k, 1], axis) / things.cell
    # width of a pixel along the axis
    blur = wp.dot(p, eye.forward) * 1.6 / eye.scale / things.cell
    flat = d - n * wp.dot(n, d)
    size = wp.length(flat)
    if size > 0.0:
        lean = wp.max(-wp.dot(n, d) / wp.length(d), 1.0e-3)
        blur = blur * (1.0 + wp.abs(wp.dot(flat, axis)) / size * (1.0 / lean - 1.0))
    return wp.vec2(line_fraction(at, 0.016, blur), line_fraction(0.2 * at, 0.006, 0.2 * blur))


@wp.func
def light_of_sample(eye: Eye, light: Light, things: Things, open_sky: float, x: float, y: float, g: int, w: float):
    """Linear light from one sample to the eye."""
    d = ray(eye, x, y)
    if g == SKY:
        return sky(things, d)
    p = d / w
    n = normal_of(things, g, p, d)
    color = wp.vec3(0.0, 0.0, 0.0)
    if g < SKY:
        k = SKY - 1 - g
        u = things.planes[k, 2]
        along_u = grid_lines(eye, things, k, p, d, u)
        along_v = grid_lines(eye, things, k, p, d, wp.cross(n, u))
        lines = 0.16 * wp.max(along_u[0], along_v[0]) + 0.22 * wp.max(along_u[1], along_v[1])
        color = things.planes[k, 3] * (1.0 - lines)
    else:
        color = things.colors[g]
    direct = float(0.0)
    facing = wp.dot(n, light.sun)
    if facing > 0.0:
        # the angle of the taps varies per sample, which turns banding into noise
        turn = 6.2831853 * (52.9829189 * (0.06711056 * wp.floor(x) + 0.00583715 * wp.floor(y)))
        direct = facing * sun_fraction(light, p, n, turn)
    from_sky = (0.5 + 0.5 * n[2]) * open_sky
    bounced = (0.5 - 0.5 * n[2]) * open_sky
    sun_color = wp.vec3(1.0, 0.96, 0.88) * (0.74 * direct)
    sky_color = wp.vec3(0.86, 0.93, 1.0) * (0.46 * from_sky) + wp.vec3(1.0, 0.97, 0.93) * (0.26 * bounced + 0.06)
    out = wp.cw_mul(color, sun_color + sky_color)
    if g < SKY:
        far = wp.length(p) / things.fade
        haze = 1.0 - wp.exp(-far * far)
        out = out * (1.0 - haze) + sky(things, wp.vec3(d[0], d[1], wp.max(d[2], 0.0))) * haze
    elif direct > 0.0:
        half = wp.normalize(light.sun - wp.normalize(d))
        # its 40th power
        shine = wp.max(wp.dot(n, half), 0.0)
        shine = shine * shine
        shine = shine * shine
        shine = shine * shine
        shine = shine * (shine * shine) * (shine * shine)
        out += wp.vec3(1.0, 0.98, 0.95) * (0.12 * shine * direct)
    return out


@wp.kernel
def shade(
    eye: Eye,
    light: Light,
    things: Things,
    samples: Samples,
    per_pixel: int,
    step: int,
    open_sky: wp.array2d(dtype=float),
    tone: wp.array(dtype=wp.uint8),
    pixels: wp.array3d(dtype=wp.uint8),
):
    """One row of pixels, each the mean of per_pixel x per_pixel samples; samples of a common item are shaded once.

    `tone` is the table of sRGB values of linear light up to `BRIGHTEST`."""
    row = wp.tid()
    count = per_pixel * per_pixel
    last = float(tone.shape[0] - 1)
    for column in range(pixels.shape[1]):
        y0 = row * per_pixel
        x0 = column * per_pixel
        g0 = samples.item[y0, x0]
        same = bool(True)
        w_mean = float(0.0)
        for k in range(count):
            if samples.item[y0 + k // per_pixel, x0 + k % per_pixel] != g0:
                same = False
            w_mean += samples.near[y0 + k // per_pixel, x0 + k % per_pixel] / float(count)
        fraction = open_sky[wp.min(y0 // step, open_sky.shape[0] - 1), wp.min(x0 // step, open_sky.shape[1] - 1)]
        total = wp.vec3(0.0, 0.0, 0.0)
        if same:
            y_mean = float(y0) + 0.5 * float(per_pixel)
            x_mean = float(x0) + 0.5 * float(per_pixel)
            total = light_of_sample(eye, light, things, fraction, x_mean, y_mean, g0, w_mean)
        else:
            for k in range(count):
                y = y0 + k // per_pixel
                x = x0 + k % per_pixel
                total += light_of_sample(
                    eye, light, things, fraction, float(x) + 0.5, float(y) + 0.5, samples.item[y, x], samples.near[y, x]
                ) / float(count)
        for channel in range(3):
            light_of = total[channel] * (last / BRIGHTEST) + 0.5
            pixels[row, column, channel] = tone[int(wp.clamp(light_of, 0.0, last))]
