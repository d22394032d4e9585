"""Choice of the linear solver by a cost model of the size and structure of the system.

The unit of cost is one product of two 12x12 blocks. A factorisation costs the products of its fill. An iteration of conjugate
gradients costs about half a product per block of the matrix and one per block of the factor of the preconditioner. Dependent
launches cost the products that the device could compute in the meantime, which dominates on a GPU, where rows are in levels.

The direct solver is chosen if it costs at most `ITERATIONS` iterations of pcg, or the expected number if that is larger. The
limit is `JOINTED_ITERATIONS` if only joints couple the bodies, because pcg converges slowly for stiff joints. The memory of the
factor has a separate limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from abd.backends.linear.elimination import Elimination

ITERATIONS = 50
JOINTED_ITERATIONS = 2000
LAUNCHES = 500
"""Cost of the launches of an iteration on the CPU, in products."""
WIDE_LAUNCH = 18_000
"""Cost of a dependent launch on a GPU, in products: 2 us at 16e12 multiply-adds per second (data sheet of an H200)."""
FACTOR_LAUNCHES, SOLVE_LAUNCHES, ITERATION_LAUNCHES = 3, 4, 11
"""Number of launches: per level, per level, and per iteration without its preconditioner."""
MOST_BYTES = 8 << 30
BLOCK_BYTES = 12 * 12 * 8
PRODUCT_BYTES = 2 * 4
"""Memory per listed product of two blocks, if rows are in levels."""


@dataclass(frozen=True)
class Choice:
    """solver: name of the solver; why: reason."""

    solver: str
    why: str

    @property
    def direct(self) -> bool:
        return self.solver == "direct"


def direct_cost(whole: Elimination) -> float:
    return whole.products + _levels_cost(whole, FACTOR_LAUNCHES + SOLVE_LAUNCHES)


def iteration_cost(whole: Elimination, pairs: int, static: Elimination | None) -> float:
    """Cost of a pcg iteration for a matrix with `pairs` coupled pairs.

    `static` is the elimination of the preconditioner, None for block Jacobi."""
    launches = LAUNCHES if whole.in_ranges else WIDE_LAUNCH * ITERATION_LAUNCHES
    slots, levels = whole.size, 0.0
    if static is not None:
        slots = static.slots
        levels = _levels_cost(static, SOLVE_LAUNCHES) if slots > static.size else 0.0
    return launches + levels + 0.5 * (whole.size + 2 * pairs) + slots


def _levels_cost(elimination: Elimination, launches: int) -> float:
    """Cost of `launches` launches per level, if all rows are in levels."""
    return 0.0 if elimination.in_ranges else float(WIDE_LAUNCH * launches * (len(elimination.levels) - 1))


def choose(requested: str, whole: Elimination, pairs: int, static: Elimination | None, iterations: int = ITERATIONS) -> Choice:
    """Choose the solver of a system with `pairs` coupled pairs.

    Args:
        requested: "auto" or the name of a solver.
        whole: elimination of all blocks; static: elimination of the static blocks, None if all are static.
        iterations: expected number of pcg iterations.
    """
    if requested not in ("auto", "direct"):
        return Choice(requested, "requested")
    size = whole.slots * BLOCK_BYTES + (0 if whole.in_ranges else PRODUCT_BYTES * whole.products)
    if size > MOST_BYTES:
        return Choice("pcg", f"the factor would take {size / 2**30:.1f} GiB (limit {MOST_BYTES >> 30})")
    if requested == "direct":
        return Choice("direct", "requested")
    iterations = JOINTED_ITERATIONS if static is None else iterations
    limit = iterations * iteration_cost(whole, pairs, static)
    limit += 0.0 if static is None else direct_cost(static)
    direct = direct_cost(whole)
    relation = "at most" if direct <= limit else "more than"
    return Choice(
        "direct" if direct <= limit else "pcg",
        f"a factorisation takes {direct:,.0f} products of blocks, {relation} {iterations} iterations of pcg ({limit:,.0f})",
    )
