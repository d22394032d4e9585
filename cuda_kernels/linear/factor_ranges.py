"""Cholesky factor of a sparse symmetric matrix of 12x12 blocks, and solves with it, on a CPU.

The storage is that of `factor_rows` and `factor_panels`. One item processes a range of panels; above the ranges, levels of
independent panels follow one after another, with one item per piece of a panel. Only the order of the rows affects the values.
"""

import warp as wp

from cuda_kernels.bodies.affine import vec12
from cuda_kernels.linear.factor_panels import (
    Panels,
    backward_panel,
    divide_piece,
    factor_corner,
    factor_panel,
    forward_panel,
    gather_piece,
)
from cuda_kernels.linear.factor_rows import Factor, Pattern, Sources
from cuda_kernels.options import FUSED

wp.set_module_options(FUSED)
LOADED_FOR = ("cpu",)


@wp.kernel
def factor_ranges(first: wp.int32, p: Pattern, g: Panels, a: Sources, f: Factor):
    """Factor the panels of one range in sequence."""
    t = wp.tid() + first
    for panel in range(p.ranges[t], p.ranges[t + 1]):
        factor_panel(p, g, a, f, panel)


@wp.kernel
def forward_ranges(
    first: wp.int32,
    p: Pattern,
    g: Panels,
    f: Factor,
    scale: wp.float64,
    rhs: wp.array(dtype=vec12),
    x: wp.array(dtype=vec12),
):
    """Compute x = U^-T (scale rhs) of one range of panels; every panel of a level is a range of its own."""
    t = wp.tid() + first
    for panel in range(p.ranges[t], p.ranges[t + 1]):
        forward_panel(p, g, f, panel, scale, rhs, x)


@wp.kernel
def backward_ranges(
    first: wp.int32,
    p: Pattern,
    g: Panels,
    f: Factor,
    rhs: wp.array(dtype=vec12),
    x: wp.array(dtype=vec12),
    dots: wp.array(dtype=wp.float64),
):
    """Compute x = U^-1 x of one range of panels, and rhs . x of its bodies."""
    t = wp.tid() + first
    begin = p.ranges[t]
    end = p.ranges[t + 1]
    for q in range(end - begin):
        backward_panel(p, g, f, end - 1 - q, rhs, x, dots)


@wp.kernel
def gather_pieces(first: wp.int32, p: Pattern, g: Panels, a: Sources, f: Factor):
    """Compute A_ji - sum_k U_kj^T U_ki of the rows j of a panel of a level in one piece of its columns i."""
    head = g.heads[wp.tid() + first]
    gather_piece(p, g, a, f, g.panel[p.row[head]], head)


@wp.kernel
def factor_corners(first: wp.int32, p: Pattern, g: Panels, f: Factor):
    """Factor the blocks of one panel of a level in the columns of its own rows."""
    factor_corner(p, g, f, wp.tid() + first)


@wp.kernel
def divide_pieces(first: wp.int32, p: Pattern, g: Panels, f: Factor):
    """Compute the blocks of a panel of a level in one piece of its shared columns."""
    head = g.heads[wp.tid() + first]
    divide_piece(p, g, f, g.panel[p.row[head]], head)
