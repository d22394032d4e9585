"""Float64 operations (an addition or a multiplication is one) of kernels whose count follows from their arguments.

Kernels that are not listed branch by what they meet, as distances and CCD do: no count is made up for them.
"""

from __future__ import annotations

from collections.abc import Callable

BLOCK = 2 * 12 * 12
"""A 12x12 block times a vector."""


def _blocks(coupling) -> int:
    """Off-diagonal blocks of a coupling; each serves two rows."""
    return 0 if coupling.row is None else coupling.row.shape[0]


COUNTS: dict[str, Callable[[int, tuple], float]] = {
    "factor_blocks": lambda count, inputs: count * 12**3 / 3,
}
"""Kernel -> operations of a launch, from its items and arguments."""


def operations(kernel: str, count: int, inputs: tuple) -> float | None:
    """Operations of a launch, None where they are not counted."""
    rule = COUNTS.get(kernel)
    return None if rule is None else float(rule(count, inputs))
