"""Kernels of the rasterizer; they run on the processor, over bands of rows, so that no two threads write to one sample.

A sample holds the item nearest to the eye and its nearness w, which is linear in the picture: 1/z under perspective, -z
without. Items are triangles, then rods (capsules; a ball is one of no length); -1 is the sky, -2 - k the k-th plane.
"""

from __future__ import annotations

import warp as wp

wp.set_module_options({"enable_backward": False, "max_unroll": 4})

SKY = wp.constant(-1)
NOWHERE = wp.constant(-1.0e30)


@wp.struct
class Eye:
    """A lens: axes, columns and rows per unit, the middle of the picture, its size in samples."""

    right: wp.vec3
    up: wp.vec3
    forward: wp.vec3
    scale: float
    column: float
    row: float
    width: int
    height: int
    parallel: int


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
def foot(eye: Eye, x: float, y: float):
    """Where the ray of column x and row y begins, seen from the eye's place."""
    if eye.parallel != 0:
        return eye.right * ((x - eye.column) / eye.scale) + eye.up * ((eye.row - y) / eye.scale)
    return wp.vec3(0.0, 0.0, 0.0)


@wp.func
def ray(eye: Eye, x: float, y: float):
    """Its direction, of depth 1."""
    if eye.parallel != 0:
        return eye.forward
    return eye.forward + eye.right * ((x - eye.column) / eye.scale) + eye.up * ((eye.row - y) / eye.scale)


@wp.func
def nearness(eye: Eye, t: float):
    """Of the depth t."""
    if eye.parallel != 0:
        return -t
    return 1.0 / t


@wp.func
def hit_rod(o: wp.vec3, d: wp.vec3, a: wp.vec3, b: wp.vec3, r: float):
    """Depth at which the ray o + t d meets the surface of points within r of the segment a b; negative for none."""
    length = wp.length(d)
    n = d / length
    ba = b - a
    # near the rod, single precision keeps its digits
    along = wp.dot(0.5 * (a + b) - o, n)
    p = o + n * along
    oa = p - a
    baba = wp.dot(ba, ba)
    t = float(-1.0e20)
    if baba > 0.0:
        bard = wp.dot(ba, n)
        baoa = wp.dot(ba, oa)
        rdoa = wp.dot(n, oa)
        oaoa = wp.dot(oa, oa)
        A = baba - bard * bard
        B = baba * rdoa - baoa * bard
        C = baba * oaoa - baoa * baoa - r * r * baba
        h = B * B - A * C
        if h >= 0.0 and A > 1.0e-12 * baba:
            s = (-B - wp.sqrt(h)) / A
            y = baoa + s * bard
            if y > 0.0 and y < baba:
                t = s
    if t < -1.0e19:
        for end in range(2):
            oc = oa
            if end == 1:
                oc = p - b
            B = wp.dot(n, oc)
            h = B * B - (wp.dot(oc, oc) - r * r)
            if h > 0.0:
                s = -B - wp.sqrt(h)
                y = float(0.0)
                if baba > 0.0:
                    y = wp.dot(ba, oa + n * s)
                if baba == 0.0 or (end == 0 and y <= 0.0) or (end == 1 and y >= baba):
                    if t < -1.0e19 or s < t:
                        t = s
    if t < -1.0e19:
        return -1.0
    return (t + along) / length


@wp.func
def veiled(x: int, y: int, opacity: float):
    """Whether a sample of something translucent lets through what is behind: an ordered pattern of 4 x 4 samples."""
    if opacity >= 1.0:
        return False
    a = x & 3
    b = y & 3
    # bits of x xor y and of y, interleaved from below: the thresholds of Bayer's matrix
    e = a ^ b
    level = ((e & 1) << 3) | ((b & 1) << 2) | (e & 2) | ((b & 2) >> 1)
    return float(level) + 0.5 >= 16.0 * opacity


@wp.kernel
def clear(
    eye: Eye,
    planes: wp.array(dtype=wp.vec4),
    near: wp.array2d(dtype=float),
    item: wp.array2d(dtype=int),
):
    """One row: the planes (normal, height of the eye above it), and the sky."""
    y = wp.tid()
    empty = float(0.0)
    if eye.parallel != 0:
        empty = NOWHERE
    for x in range(eye.width):
        w = float(empty)
        found = int(SKY)
        d = ray(eye, float(x) + 0.5, float(y) + 0.5)
        for k in range(planes.shape[0]):
            plane = planes[k]
            rate = wp.dot(wp.vec3(plane[0], plane[1], plane[2]), d)
            if rate < 0.0 and plane[3] > 0.0:
                nearer = -rate / plane[3]
                if nearer > w:
                    w = nearer
                    found = -2 - k
        near[y, x] = w
        item[y, x] = found


@wp.kernel
def fill(
    eye: Eye,
    rows: int,
    starts: wp.array(dtype=int),
    order: wp.array(dtype=int),
    corners: wp.array(dtype=wp.vec3),
    rods: wp.array(dtype=wp.vec3),
    radii: wp.array(dtype=float),
    boxes: wp.array(dtype=wp.vec4i),
    owner: wp.array(dtype=int),
    opacity: wp.array(dtype=float),
    near: wp.array2d(dtype=float),
    item: wp.array2d(dtype=int),
):
    """One band of `rows` rows: all parts that reach into it, in order; `owner` is the item of a part. Corners are column, row
    and nearness."""
    band = wp.tid()
    triangles = corners.shape[0] // 3
    for k in range(starts[band], starts[band + 1]):
        part = order[k]
        g = owner[part]
        box = boxes[part]
        y0 = wp.max(box[2], band * rows)
        y1 = wp.min(box[3], wp.min((band + 1) * rows, eye.height))
        alpha = opacity[g]
        if part < triangles:
            a = corners[3 * part]
            b = corners[3 * part + 1]
            c = corners[3 * part + 2]
            area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
            over = 1.0 / area
            for y in range(y0, y1):
                v = float(y) + 0.5 - a[1]
                lo = float(box[0])
                hi = float(box[1])
                # the shares of b, of c and of a, each p + q x, must not be negative
                qb = (c[1] - a[1]) * over
                pb = (-a[0] * (c[1] - a[1]) - v * (c[0] - a[0])) * over
                qc = -(b[1] - a[1]) * over
                pc = ((b[0] - a[0]) * v + a[0] * (b[1] - a[1])) * over
                for side in range(3):
                    p = pb
                    q = qb
                    if side == 1:
                        p = pc
                        q = qc
                    if side == 2:
                        p = 1.0 - pb - pc
                        q = -qb - qc
                    if q > 1.0e-12:
                        lo = wp.max(lo, -p / q)
                    elif q < -1.0e-12:
                        hi = wp.min(hi, -p / q)
                    elif p < 0.0:
                        hi = -1.0
                first = int(wp.max(wp.ceil(lo - 0.502), 0.0))
                last = int(wp.min(wp.floor(hi - 0.498), float(eye.width - 1)))
                w0 = a[2] + pb * (b[2] - a[2]) + pc * (c[2] - a[2])
                dw = qb * (b[2] - a[2]) + qc * (c[2] - a[2])
                for x in range(first, last + 1):
                    w = w0 + dw * (float(x) + 0.5)
                    if w > near[y, x]:
                        if not veiled(x, y, alpha):
                            near[y, x] = w
                            item[y, x] = g
        else:
            r = part - triangles
            for y in range(y0, y1):
                for x in range(box[0], box[1]):
                    o = foot(eye, float(x) + 0.5, float(y) + 0.5)
                    d = ray(eye, float(x) + 0.5, float(y) + 0.5)
                    t = hit_rod(o, d, rods[2 * r], rods[2 * r + 1], radii[r])
                    if t > 0.0:
                        w = nearness(eye, t)
                        if w > near[y, x]:
                            if not veiled(x, y, alpha):
                                near[y, x] = w
                                item[y, x] = g


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


@wp.func
def line_share(at: float, width: float, blur: float):
    """Share of an interval of length `blur` about `at` that lines of `width` about whole numbers cover."""
    b = wp.max(blur, 1.0e-6)
    lo = at - 0.5 * b + 0.5 * width
    hi = at + 0.5 * b + 0.5 * width
    first = wp.floor(lo) * width + wp.min(lo - wp.floor(lo), width)
    last = wp.floor(hi) * width + wp.min(hi - wp.floor(hi), width)
    return wp.clamp((last - first) / b, 0.0, 1.0)


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
        shine = wp.pow(wp.max(wp.dot(n, half), 0.0), 40.0)
        out += wp.vec3(1.0, 0.98, 0.95) * (0.12 * shine * direct)
    if haze > 0.0:
        flat = wp.vec3(d[0], d[1], wp.max(d[2], 0.0))
        out = out * (1.0 - haze) + sky(things, flat) * haze
    return out


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
                    for k in range(12):
                        r = disc * (float(k) + 0.6) / 12.0
                        phi = turn + 2.399963 * float(k)
                        sx = x + int(r * wp.cos(phi))
                        sy = y + int(r * wp.sin(phi))
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


@wp.func
def encoded(value: float):
    """sRGB of linear light, 0 to 255; what is brighter than white is bent down softly."""
    v = value
    if v > 0.8:
        v = 0.8 + 0.2 * (1.0 - wp.exp(-(v - 0.8) / 0.2))
    s = 12.92 * v
    if v > 0.0031308:
        s = 1.055 * wp.pow(v, 1.0 / 2.4) - 0.055
    return wp.uint8(wp.clamp(255.0 * s + 0.5, 0.0, 255.0))


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
        pixels[row, column, 0] = encoded(total[0])
        pixels[row, column, 1] = encoded(total[1])
        pixels[row, column, 2] = encoded(total[2])


@wp.kernel
def project(
    eye: Eye,
    things: Things,
    two_sided: wp.array(dtype=int),
    nearest: float,
    corners: wp.array(dtype=wp.vec3),
    boxes: wp.array(dtype=wp.vec4i),
    cut: wp.array(dtype=int),
):
    """One triangle: columns, rows and nearness of its corners, and columns and rows that it may cover (first, last + 1);
    none where it is turned away or out of the picture. `cut`: 1 where the plane at depth `nearest` goes through it."""
    g = wp.tid()
    f = things.face[g]
    body = things.body[g]
    A = things.turn[body]
    s = things.shift[body]
    a = A * things.local[3 * f] + s
    b = A * things.local[3 * f + 1] + s
    c = A * things.local[3 * f + 2] + s
    boxes[g] = wp.vec4i(0, 0, 0, 0)
    cut[g] = 0
    n = wp.cross(b - a, c - a)
    away = wp.dot(n, a)
    if eye.parallel != 0:
        away = wp.dot(n, eye.forward)
    if two_sided[g] == 0 and away >= 0.0:
        return
    za = wp.dot(a, eye.forward)
    zb = wp.dot(b, eye.forward)
    zc = wp.dot(c, eye.forward)
    if eye.parallel == 0:
        behind = int(0)
        if za < nearest:
            behind += 1
        if zb < nearest:
            behind += 1
        if zc < nearest:
            behind += 1
        if behind == 3:
            return
        if behind > 0:
            cut[g] = 1
            return
    place(eye, g, a, b, c, corners, boxes)


@wp.func
def place(
    eye: Eye,
    g: int,
    a: wp.vec3,
    b: wp.vec3,
    c: wp.vec3,
    corners: wp.array(dtype=wp.vec3),
    boxes: wp.array(dtype=wp.vec4i),
):
    """Write the corners in the picture, and the box about them."""
    pa = in_picture(eye, a)
    pb = in_picture(eye, b)
    pc = in_picture(eye, c)
    corners[3 * g] = pa
    corners[3 * g + 1] = pb
    corners[3 * g + 2] = pc
    area = (pb[0] - pa[0]) * (pc[1] - pa[1]) - (pb[1] - pa[1]) * (pc[0] - pa[0])
    if area == 0.0:
        return
    # what is far outside is clamped before it becomes a whole number
    w = float(eye.width)
    h = float(eye.height)
    x0 = int(wp.clamp(wp.floor(wp.min(wp.min(pa[0], pb[0]), pc[0])), 0.0, w))
    x1 = int(wp.clamp(wp.ceil(wp.max(wp.max(pa[0], pb[0]), pc[0])), 0.0, w))
    y0 = int(wp.clamp(wp.floor(wp.min(wp.min(pa[1], pb[1]), pc[1])), 0.0, h))
    y1 = int(wp.clamp(wp.ceil(wp.max(wp.max(pa[1], pb[1]), pc[1])), 0.0, h))
    if x0 < x1 and y0 < y1:
        boxes[g] = wp.vec4i(x0, x1, y0, y1)


@wp.func
def in_picture(eye: Eye, p: wp.vec3):
    """Column, row and nearness of a point."""
    z = wp.dot(p, eye.forward)
    factor = eye.scale
    w = -z
    if eye.parallel == 0:
        factor = eye.scale / z
        w = 1.0 / z
    return wp.vec3(eye.column + factor * wp.dot(p, eye.right), eye.row - factor * wp.dot(p, eye.up), w)


@wp.kernel
def project_points(
    eye: Eye,
    first: int,
    points: wp.array(dtype=wp.vec3),
    corners: wp.array(dtype=wp.vec3),
    boxes: wp.array(dtype=wp.vec4i),
):
    """One triangle that is given by its corners; its number counts from `first`."""
    k = wp.tid()
    place(eye, first + k, points[3 * k], points[3 * k + 1], points[3 * k + 2], corners, boxes)
