"""Kernel of the export to OBJ: numbers as text. There are hundreds of millions of them in a large run."""

from __future__ import annotations

import warp as wp

wp.set_module_options({"enable_backward": False, "max_unroll": 4})

BLANK = wp.constant(wp.uint8(ord(" ")))
ZERO = wp.constant(ord("0"))
POINT = wp.constant(wp.uint8(ord(".")))
MINUS = wp.constant(wp.uint8(ord("-")))
VERTEX = wp.constant(wp.uint8(ord("v")))
END = wp.constant(wp.uint8(ord("\n")))


@wp.kernel
def write_vertices(
    vertices: wp.array2d(dtype=wp.float64),
    factor: wp.float64,
    places: int,
    width: int,
    text: wp.array2d(dtype=wp.uint8),
):
    """One line ``v x y z``: every number, times `factor` a whole one, in `width` columns with `places` after the point."""
    row = wp.tid()
    text[row, 0] = VERTEX
    text[row, 3 * width + 1] = END
    for axis in range(3):
        x = vertices[row, axis]
        rest = wp.int64(wp.rint(wp.abs(x) * factor))
        negative = x < wp.float64(0.0) and rest > wp.int64(0)
        first = 1 + axis * width
        column = first + width - 1
        for _ in range(places):
            following = rest / wp.int64(10)
            text[row, column] = wp.uint8(ZERO + int(rest - wp.int64(10) * following))
            rest = following
            column -= 1
        if places > 0:
            text[row, column] = POINT
            column -= 1
        # one digit before the point at least
        going = bool(True)
        while going:
            following = rest / wp.int64(10)
            text[row, column] = wp.uint8(ZERO + int(rest - wp.int64(10) * following))
            rest = following
            column -= 1
            going = rest > wp.int64(0)
        if negative:
            text[row, column] = MINUS
            column -= 1
        while column >= first:
            text[row, column] = BLANK
            column -= 1
