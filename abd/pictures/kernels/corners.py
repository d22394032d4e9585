"""Triangles in the picture: their corners, and the boxes of samples that they may cover."""

from __future__ import annotations

import warp as wp

from abd.pictures.kernels.eye import Eye, in_picture
from abd.pictures.kernels.look import Things

wp.set_module_options({"enable_backward": False, "max_unroll": 4})


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
