"""Panels of a Cholesky factor: consecutive rows with the same blocks to their right, which are factored together.

Rows ``panels[J] .. panels[J + 1]`` are panel J = ``panel[j]`` of each row j. Every row has blocks in the columns of the later
rows of its panel, then in the columns that all rows share. The *reach* of a column is its distance from the end of a row, equal
in all rows of a panel: U_kc is slot ``starts[k + 1] - reach``. The *updates* of panel J are the panels with a block in its
columns, ``ups[J] .. ups[J + 1]``, ascending: panel `up_panel`, and the reach `up_reach` of its first such column.

A product of two blocks updates four rows of the target, which stay in registers while a panel's rows are subtracted. Every block
is ``A_ji - sum_k U_kj^T U_ki`` by ascending k, independent of the thread. Rows of converged bodies do not change; no row of
another island depends on them.
"""

import warp as wp

from cuda_kernels.bodies.affine import vec12
from cuda_kernels.linear.factor_rows import (
    Factor,
    Pattern,
    Sources,
    divide_slot,
    finish_row,
    load_slot,
    pivot_row,
    solve_transposed,
)
from cuda_kernels.options import OPTIONS
from cuda_kernels.parallel.chunks import lower_bound

wp.set_module_options(OPTIONS)

PIECE = wp.constant(wp.int32(8))
"""Columns of a panel per item: they share the reads of another panel."""


@wp.struct
class Panels:
    """P panels of N rows with E updates, for a CPU: items process pieces of the columns of panels.

    panels (P + 1,); panel (N,); ups (P + 1,), up_panel and up_reach (E,); heads: first slots of the pieces, in the first rows of
    the panels above the ranges.
    """

    panels: wp.array(dtype=wp.int32)
    panel: wp.array(dtype=wp.int32)
    ups: wp.array(dtype=wp.int32)
    up_panel: wp.array(dtype=wp.int32)
    up_reach: wp.array(dtype=wp.int32)
    heads: wp.array(dtype=wp.int32)


@wp.func
def subtract_products(
    p: Pattern,
    f: Factor,
    begin: wp.int32,
    end: wp.int32,
    left: wp.int32,
    right: wp.int32,
    target: wp.int32,
):
    """Subtract the sum of U_k,left^T U_k,right over rows begin .. end - 1 of a panel from U_target; left, right are reaches."""
    for h in range(3):
        i = 4 * h
        a = f.rows[target, i]
        b = f.rows[target, i + 1]
        c = f.rows[target, i + 2]
        d = f.rows[target, i + 3]
        for k in range(begin, end):
            if f.done[p.body[k]] == 0:
                s = p.starts[k + 1] - left
                t = p.starts[k + 1] - right
                for m in range(12):
                    row = f.rows[t, m]
                    a = a - f.entries[s, m, i] * row
                    b = b - f.entries[s, m, i + 1] * row
                    c = c - f.entries[s, m, i + 2] * row
                    d = d - f.entries[s, m, i + 3] * row
        f.rows[target, i] = a
        f.rows[target, i + 1] = b
        f.rows[target, i + 2] = c
        f.rows[target, i + 3] = d


@wp.func
def subtract_panel(
    p: Pattern,
    g: Panels,
    f: Factor,
    source: wp.int32,
    reach: wp.int32,
    target: wp.int32,
    begin: wp.int32,
    end: wp.int32,
):
    """Subtract the products of panel `source`, with common columns from `reach` on, in the columns at slots begin .. end - 1 of
    the target's first row."""
    end_of_row = p.starts[g.panels[source + 1]]
    lefts = end_of_row - reach
    inner = g.panels[target + 1]
    right = lower_bound(p.column, lefts, end_of_row, p.column[begin])
    bound = p.column[end - 1]
    line = p.starts[g.panels[target] + 1]
    place = begin
    while right < end_of_row and p.column[right] <= bound:
        while p.column[place] < p.column[right]:
            place = place + 1
        left = lefts
        while left <= right and p.column[left] < inner:
            j = p.column[left]
            if f.done[p.body[j]] == 0:
                subtract_products(
                    p,
                    f,
                    g.panels[source],
                    g.panels[source + 1],
                    end_of_row - left,
                    end_of_row - right,
                    p.starts[j + 1] - (line - place),
                )
            left = left + 1
        right = right + 1


@wp.func
def gather_piece(p: Pattern, g: Panels, a: Sources, f: Factor, panel: wp.int32, begin: wp.int32):
    """Compute A_ji - sum_k U_kj^T U_ki, over earlier panels, of the rows j of a panel in `PIECE` columns i from slot `begin` of
    its first row."""
    first = g.panels[panel]
    line = p.starts[first + 1]
    end = wp.min(begin + PIECE, line)
    for j in range(first, g.panels[panel + 1]):
        if f.done[p.body[j]] == 0:
            for s in range(wp.max(p.starts[j + 1] - (line - begin), p.starts[j]), p.starts[j + 1] - (line - end)):
                load_slot(p, a, f, s)
    for e in range(g.ups[panel], g.ups[panel + 1]):
        subtract_panel(p, g, f, g.up_panel[e], g.up_reach[e], panel, begin, end)


@wp.func
def factor_corner(p: Pattern, g: Panels, f: Factor, panel: wp.int32):
    """Factor the blocks of a panel in the columns of its own rows, after the subtraction of other panels."""
    first = g.panels[panel]
    last = g.panels[panel + 1]
    shared = p.starts[last] - p.starts[last - 1] - 1
    for j in range(first, last):
        if f.done[p.body[j]] == 0:
            slot = p.starts[j]
            reach = shared + last - j
            if j > first:
                for q in range(last - j):
                    subtract_products(p, f, first, j, reach, reach - q, slot + q)
            pivot_row(f, j, slot)
            for q in range(1, last - j):
                divide_slot(f, slot, slot + q)


@wp.func
def divide_piece(p: Pattern, g: Panels, f: Factor, panel: wp.int32, begin: wp.int32):
    """Compute the blocks of a panel in a piece of its shared columns, after its corner."""
    first = g.panels[panel]
    last = g.panels[panel + 1]
    shared = p.starts[last] - p.starts[last - 1] - 1
    line = p.starts[first + 1]
    for place in range(wp.max(begin, line - shared), wp.min(begin + PIECE, line)):
        for j in range(first, last):
            if f.done[p.body[j]] == 0:
                slot = p.starts[j + 1] - (line - place)
                if j > first:
                    subtract_products(p, f, first, j, shared + last - j, line - place, slot)
                divide_slot(f, p.starts[j], slot)


@wp.func
def factor_panel(p: Pattern, g: Panels, a: Sources, f: Factor, panel: wp.int32):
    """Compute the rows of a panel from the panels before it."""
    first = g.panels[panel]
    begin = p.starts[first]
    while begin < p.starts[first + 1]:
        gather_piece(p, g, a, f, panel, begin)
        begin = begin + PIECE
    factor_corner(p, g, f, panel)
    begin = p.starts[first]
    while begin < p.starts[first + 1]:
        divide_piece(p, g, f, panel, begin)
        begin = begin + PIECE


@wp.func
def subtract_known(
    p: Pattern,
    f: Factor,
    begin: wp.int32,
    end: wp.int32,
    reach: wp.int32,
    v: vec12,
    x: wp.array(dtype=vec12),
) -> vec12:
    """Return v minus the sum of U_k^T x_k over rows begin .. end - 1 of a panel, in the column at `reach`."""
    for k in range(begin, end):
        other = p.body[k]
        if f.done[other] == 0:
            y = x[other]
            slot = p.starts[k + 1] - reach
            for m in range(12):
                v = v - y[m] * f.rows[slot, m]
    return v


@wp.func
def forward_panel(
    p: Pattern,
    g: Panels,
    f: Factor,
    panel: wp.int32,
    scale: wp.float64,
    rhs: wp.array(dtype=vec12),
    x: wp.array(dtype=vec12),
):
    """Compute x of a panel's rows j = U_jj^-T (scale rhs_j - sum_k U_kj^T x_k)."""
    first = g.panels[panel]
    last = g.panels[panel + 1]
    shared = p.starts[last] - p.starts[last - 1] - 1
    for j in range(first, last):
        b = p.body[j]
        if f.done[b] == 0:
            v = scale * rhs[b]
            for e in range(g.ups[panel], g.ups[panel + 1]):
                source = g.up_panel[e]
                end_of_row = p.starts[g.panels[source + 1]]
                left = end_of_row - g.up_reach[e]
                while left < end_of_row and p.column[left] < j:
                    left = left + 1
                if left < end_of_row and p.column[left] == j:
                    v = subtract_known(p, f, g.panels[source], g.panels[source + 1], end_of_row - left, v, x)
            v = subtract_known(p, f, first, j, shared + last - j, v, x)
            x[b] = solve_transposed(f, p.starts[j], v)


@wp.func
def backward_panel(
    p: Pattern,
    g: Panels,
    f: Factor,
    panel: wp.int32,
    rhs: wp.array(dtype=vec12),
    x: wp.array(dtype=vec12),
    dots: wp.array(dtype=wp.float64),
):
    """Compute x of a panel's rows j = U_jj^-1 (x_j - sum_i U_ji x_i), and rhs . x of their bodies."""
    first = g.panels[panel]
    last = g.panels[panel + 1]
    for q in range(last - first):
        j = last - 1 - q
        if f.done[p.body[j]] == 0:
            finish_row(p, f, j, rhs, x, dots)
