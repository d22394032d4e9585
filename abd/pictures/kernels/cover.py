"""Visible item of every sample: the item nearest to the eye. Kernels run over disjoint bands of rows.

Items are triangles, then rods (capsules; balls have zero length); `SKY` is the sky, ``SKY - 1 - k`` the k-th plane.
Positions are relative to the eye.
"""

from __future__ import annotations

import warp as wp

from abd.backends.device.compiling import OPTIONS

wp.set_module_options(OPTIONS)

SKY = wp.constant(-1)


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
class Samples:
    """Nearest item of each sample, and its nearness, linear in the picture: 1/z for perspective, else -z."""

    near: wp.array2d(dtype=float)
    item: wp.array2d(dtype=int)


@wp.func
def across(eye: Eye, x: float, y: float):
    """Point of column x and row y perpendicular to the line of sight, at depth 1 for perspective."""
    return eye.right * ((x - eye.column) / eye.scale) + eye.up * ((eye.row - y) / eye.scale)


@wp.func
def ray(eye: Eye, x: float, y: float):
    """Direction, of depth 1, of the ray of column x and row y for perspective."""
    return eye.forward + across(eye, x, y)


@wp.func
def hit_rod(o: wp.vec3, d: wp.vec3, a: wp.vec3, b: wp.vec3, r: float):
    """Depth at which the ray o + t d intersects the surface at distance r from the segment a b; negative without one."""
    length = wp.length(d)
    n = d / length
    ba = b - a
    # relative to a point near the rod, to reduce cancellation in single precision
    along = wp.dot(0.5 * (a + b) - o, n)
    p = o + n * along
    oa = p - a
    end = oa
    baba = wp.dot(ba, ba)
    bard = wp.dot(ba, n)
    A = baba - bard * bard
    if A > 1.0e-6 * baba:
        baoa = wp.dot(ba, oa)
        B = baba * wp.dot(n, oa) - baoa * bard
        h = B * B - A * (baba * wp.dot(oa, oa) - baoa * baoa - r * r * baba)
        if h < 0.0:
            return -1.0
        s = (-B - wp.sqrt(h)) / A
        y = baoa + s * bard
        if y > 0.0 and y < baba:
            return (s + along) / length
        if y > 0.0:
            end = p - b
    elif bard < 0.0:
        end = p - b
    B = wp.dot(n, end)
    h = B * B - (wp.dot(end, end) - r * r)
    if h <= 0.0:
        return -1.0
    return (along - B - wp.sqrt(h)) / length


@wp.func
def is_transparent(x: int, y: int, opacity: float):
    """Whether a translucent sample is transparent: an ordered dither pattern of 4 x 4 samples."""
    if opacity >= 1.0:
        return False
    a = x & 3
    b = y & 3
    # bits of x xor y and of y, interleaved from below: the thresholds of Bayer's matrix
    e = a ^ b
    level = ((e & 1) << 3) | ((b & 1) << 2) | (e & 2) | ((b & 2) >> 1)
    return float(level) + 0.5 >= 16.0 * opacity


@wp.kernel
def clear(eye: Eye, planes: wp.array2d(dtype=wp.vec3), samples: Samples):
    """One row: the sky, and for perspective the planes, each given by a normal and a point (the rest is unused)."""
    y = wp.tid()
    empty = float(0.0)
    if eye.parallel != 0:
        empty = -1.0e30
    for x in range(eye.width):
        samples.near[y, x] = empty
        samples.item[y, x] = SKY
    first = ray(eye, 0.5, float(y) + 0.5)
    for k in range(planes.shape[0]):
        n = planes[k, 0]
        height = -wp.dot(n, planes[k, 1])
        if height > 0.0:
            # along a row the nearness of a plane is linear
            start = -wp.dot(n, first) / height
            slope = -wp.dot(n, eye.right) / (eye.scale * height)
            for x in range(eye.width):
                nearer = start + slope * float(x)
                if nearer > 0.0 and nearer > samples.near[y, x]:
                    samples.near[y, x] = nearer
                    samples.item[y, x] = SKY - 1 - k


@wp.kernel
def fill(
    eye: Eye,
    rows: int,
    triangles: int,
    owner: wp.array(dtype=int),
    boxes: wp.array(dtype=wp.vec4i),
    corners: wp.array2d(dtype=wp.vec3),
    rods: wp.array2d(dtype=wp.vec3),
    radii: wp.array(dtype=float),
    opacity: wp.array(dtype=float),
    samples: Samples,
):
    """One band of `rows` rows: all parts, in order.

    `owner` is the item of a part, a triangle if it is less than `triangles`; `boxes` are columns and rows that a part
    may cover, first and last + 1; `corners` are columns, rows and nearness.
    """
    band = wp.tid()
    for part in range(owner.shape[0]):
        box = boxes[part]
        y0 = wp.max(box[2], band * rows)
        y1 = wp.min(box[3], (band + 1) * rows)
        if y0 >= y1:
            continue
        g = owner[part]
        alpha = opacity[g]
        if g < triangles:
            a = corners[part, 0]
            ab = corners[part, 1] - a
            ac = corners[part, 2] - a
            area = ab[0] * ac[1] - ab[1] * ac[0]
            to_right = (ab[2] * ac[1] - ab[1] * ac[2]) / area
            down = (ab[0] * ac[2] - ab[2] * ac[0]) / area
            for y in range(y0, y1):
                middle = float(y) + 0.5
                lo = float(box[1])
                hi = float(box[0])
                for side in range(3):
                    p = corners[part, side]
                    q = corners[part, (side + 1) % 3]
                    if (p[1] <= middle) != (q[1] <= middle):
                        x = p[0] + (middle - p[1]) / (q[1] - p[1]) * (q[0] - p[0])
                        lo = wp.min(lo, x)
                        hi = wp.max(hi, x)
                first = wp.max(int(wp.ceil(lo - 0.502)), box[0])
                last = wp.min(int(wp.floor(hi - 0.498)), box[1] - 1)
                start = a[2] + down * (middle - a[1]) + to_right * (0.5 - a[0])
                for x in range(first, last + 1):
                    w = start + to_right * float(x)
                    if w > samples.near[y, x]:
                        if not is_transparent(x, y, alpha):
                            samples.near[y, x] = w
                            samples.item[y, x] = g
        else:
            for y in range(y0, y1):
                for x in range(box[0], box[1]):
                    o = across(eye, float(x) + 0.5, float(y) + 0.5)
                    d = eye.forward
                    if eye.parallel == 0:
                        d += o
                        o = wp.vec3(0.0, 0.0, 0.0)
                    t = hit_rod(o, d, rods[g - triangles, 0], rods[g - triangles, 1], radii[g - triangles])
                    w = 1.0 / t
                    if eye.parallel != 0:
                        w = -t
                    if t > 0.0 and w > samples.near[y, x]:
                        if not is_transparent(x, y, alpha):
                            samples.near[y, x] = w
                            samples.item[y, x] = g
