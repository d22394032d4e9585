"""A lens for the kernels: rays of samples, and points in the picture."""

from __future__ import annotations

import warp as wp

wp.set_module_options({"enable_backward": False, "max_unroll": 4})


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
def in_picture(eye: Eye, p: wp.vec3):
    """Column, row and nearness of a point."""
    z = wp.dot(p, eye.forward)
    factor = eye.scale
    w = -z
    if eye.parallel == 0:
        factor = eye.scale / z
        w = 1.0 / z
    return wp.vec3(eye.column + factor * wp.dot(p, eye.right), eye.row - factor * wp.dot(p, eye.up), w)
