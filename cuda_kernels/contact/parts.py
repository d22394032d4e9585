"""Parts of a candidate, and the codes of the nonzero ones in one number.

    vertex and target    part 0 the interior, 1 to 3 the sides, 4 to 6 the corners that the target owns
    two edges            part 0 the pair, 1 to 4 the ends (a0, a1, b0, b1) against the other edge
    vertex and plane     part 0

In the contact set "ipc" a candidate has one part, itself. A part without a coefficient has the code 0. The codes of a vertex
contain the numbers of features that its coefficients count (`cuda_kernels.contact.minima`): 1 for the interior, `SIDE_COUNT`
and `CORNER_COUNT` plus the number for sides and corners.
"""

import numpy as np
import warp as wp

from cuda_kernels.contact.surfaces import EDGE_EDGE, TARGET_VERTEX, VERTEX_TARGET, Primitives
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)

PARTS = 7
"""Largest number of parts of a candidate."""
EDGE_PARTS = 5
"""Number of parts of two edges."""
WIDTHS = (1, 8, 8, 8, 13, 13, 13)
"""Bits of the codes of the parts."""
SIDE_COUNT = wp.constant(128)
CORNER_COUNT = wp.constant(4096)
"""Codes of a side and of a corner that count 0 features."""


@wp.func
def place_of(k: wp.int32) -> wp.int32:
    """Return the first bit of the code of part k: 1 bit of part 0, 8 of 1 to 3, 13 of 4 to 6."""
    if k == 0:
        return 0
    if k <= 3:
        return 8 * k - 7
    return 13 * k - 27


@wp.func
def zero_of(k: wp.int32) -> wp.int32:
    """Return the code of part k that counts 0 features."""
    return wp.where(k == 0, 0, wp.where(k <= 3, SIDE_COUNT, CORNER_COUNT))


@wp.func
def code_of(parts: wp.int64, k: wp.int32) -> wp.int32:
    """Return the code of part k."""
    return wp.int32(parts >> wp.int64(place_of(k))) & wp.where(k == 0, 1, wp.where(k <= 3, 255, 8191))


@wp.func
def with_code(parts: wp.int64, k: wp.int32, code: wp.int32) -> wp.int64:
    """Add the code of part k."""
    return parts | (wp.int64(code) << wp.int64(place_of(k)))


@wp.func
def bits_of(parts: wp.int64) -> wp.int32:
    """Return one bit for each nonzero part."""
    bits = wp.int32(0)
    if parts == wp.int64(0):
        return bits
    for k in range(PARTS):
        if code_of(parts, k) != 0:
            bits = bits | (1 << k)
    return bits


def count_parts(parts: np.ndarray) -> np.ndarray:
    """Return the numbers of nonzero parts of candidates with the codes (m,)."""
    places = np.cumsum((0, *WIDTHS[:-1]))
    return np.count_nonzero((parts[:, None] >> places) & (2 ** np.array(WIDTHS) - 1), axis=1)


@wp.struct
class Part:
    """A distance: kind and rest points of a candidate with this distance."""

    kind: wp.int32
    c: Primitives


@wp.func
def part(kind: wp.int32, c: Primitives, k: wp.int32) -> Part:
    out = Part()
    out.kind = kind
    out.c = c
    if k == 0:
        return out
    if kind == EDGE_EDGE:
        out.kind = VERTEX_TARGET
        if k > 2:
            out.kind = TARGET_VERTEX
            out.c.x1 = c.x0
            out.c.x2 = c.x1
            out.c.x0 = c.x2
            if k == 4:
                out.c.x0 = c.x3
        else:
            out.c.x1 = c.x2
            out.c.x2 = c.x3
            if k == 2:
                out.c.x0 = c.x1
        out.c.x3 = out.c.x2
        return out
    if k <= 3:
        if k == 2:
            out.c.x1 = c.x2
            out.c.x2 = c.x3
        if k == 3:
            out.c.x1 = c.x3
            out.c.x2 = c.x1
        out.c.x3 = out.c.x2
        return out
    if k == 5:
        out.c.x1 = c.x2
    if k == 6:
        out.c.x1 = c.x3
    out.c.x2 = out.c.x1
    out.c.x3 = out.c.x1
    return out


@wp.func
def count_bits(parts: wp.int32) -> wp.int32:
    """Return the number of parts in a set of bits."""
    count = wp.int32(0)
    left = parts
    while left != 0:
        left = left & (left - 1)
        count = count + 1
    return count
