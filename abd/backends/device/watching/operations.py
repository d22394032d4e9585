"""What is known of the work of single kernels, for `abd bench --profile`: float64 operations, and which walk through rows.

An addition or a multiplication is one operation. Kernels that are not listed branch by what they meet, as distances and
CCD do, or loop over lists: no count is made up for them. A factorisation is counted as a whole, from its pattern.
"""

from __future__ import annotations

PRODUCT = 2 * 12**3
"""Of two 12x12 blocks."""
SOLVE = 12**3
"""Of a triangular block against twelve columns."""

PER_ITEM: dict[str, float] = {
    "dot_rows": 24.0,
    "add_rows": 12.0,
    "descend": 48.0,
    "turn": 24.0,
    "add": 12.0,
}
"""Operations of one item."""

WALKING = frozenset(
    {
        "multiply", "factor_ranges", "forward_ranges", "backward_ranges",
        "gather_level", "factor_level", "divide_level", "sum_forward", "solve_forward", "sum_backward", "solve_backward",
    }
)  # fmt: skip
"""Kernels whose items walk through many rows each, together through most: all rows of their arrays count as moved."""

FACTORING = frozenset(
    {
        "factor_ranges", "gather_pieces", "factor_corners", "divide_pieces",
        "gather_level", "factor_level", "divide_level",
    }
)  # fmt: skip
"""Kernels that together factor a matrix."""


def operations(kernel: str, count: int) -> float | None:
    """Operations of a launch on `count` items, None where they are not counted."""
    each = PER_ITEM.get(kernel)
    return None if each is None else each * count


def factor_operations(products: int, slots: int) -> float:
    """Operations of a factorisation that takes as many products of blocks, and has as many blocks."""
    return PRODUCT * products + SOLVE * slots
