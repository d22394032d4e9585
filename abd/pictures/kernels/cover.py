"""What every sample shows: the item nearest to the eye. Kernels run over bands of rows, so that no two threads write to
one sample.

A sample holds the item and its nearness w, which is linear in the picture: 1/z under perspective, -z without. Items are
triangles, then rods (capsules; a ball is one of no length); `SKY` is the sky, ``SKY - 1 - k`` the k-th plane.
"""

from __future__ import annotations

import warp as wp

from abd.pictures.kernels.eye import Eye, foot, nearness, ray

wp.set_module_options({"enable_backward": False, "max_unroll": 4})

SKY = wp.constant(-1)
NOWHERE = wp.constant(-1.0e30)


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
        near[y, x] = empty
        item[y, x] = SKY
    first = ray(eye, 0.5, float(y) + 0.5)
    for k in range(planes.shape[0]):
        plane = planes[k]
        if plane[3] > 0.0:
            # along a row the nearness of a plane grows evenly
            n = wp.vec3(plane[0], plane[1], plane[2])
            start = -wp.dot(n, first) / plane[3]
            slope = -wp.dot(n, eye.right) / (eye.scale * plane[3])
            if eye.parallel != 0:
                slope = float(0.0)
            for x in range(eye.width):
                nearer = start + slope * float(x)
                if nearer > 0.0 and nearer > near[y, x]:
                    near[y, x] = nearer
                    item[y, x] = -2 - k


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
