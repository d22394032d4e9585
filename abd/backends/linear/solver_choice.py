"""Which linear solver: a rule on the size and the structure of the system.

A factorisation costs the products of two 12x12 blocks that its fill takes. An iteration of conjugate gradients costs about
half a product per block of the matrix and one per block of the preconditioner's factor. Launches that wait for one another
cost as many products as would be done meanwhile: most of it on a GPU, where rows stand in levels. The direct solver is taken
up to the cost of `ITERATIONS` iterations, or of as many as a solve of this step took if that is more; where joints couple the
bodies, whose stiffness iterations take long to see through, up to `JOINTED_ITERATIONS`. Its memory has a limit of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from abd.backends.linear.elimination import Elimination

ITERATIONS = 50
JOINTED_ITERATIONS = 2000
LAUNCHES = 500
"""Of an iteration's launches on a processor, in products."""
WIDE_LAUNCH = 18_000
"""Of a launch that waits for the one before on a GPU, in products: 2 us of 16e12 multiplications and additions per second, by the
data sheet of an H200."""
FACTOR_LAUNCHES, SOLVE_LAUNCHES, ITERATION_LAUNCHES = 3, 4, 11
"""Per level, per level, and per iteration without its preconditioner."""
MOST_BYTES = 8 << 30
BLOCK_BYTES = 12 * 12 * 8
PRODUCT_BYTES = 2 * 4
"""Of a product of two blocks in a list, where rows stand in levels."""


@dataclass(frozen=True)
class Choice:
    """solver: its name; why: the reason in words."""

    solver: str
    why: str

    @property
    def direct(self) -> bool:
        """Whether everything is factored."""
        return self.solver == "direct"


def direct_cost(whole: Elimination) -> float:
    """Cost of a factorisation with its solve."""
    return whole.products + _levels_cost(whole, FACTOR_LAUNCHES + SOLVE_LAUNCHES)


def iteration_cost(whole: Elimination, pairs: int, static: Elimination | None) -> float:
    """Cost of an iteration on the matrix of as many coupled pairs; `static`: what preconditions it, None for the bodies' own
    blocks."""
    launches = LAUNCHES if whole.in_ranges else WIDE_LAUNCH * ITERATION_LAUNCHES
    slots, levels = whole.size, 0.0
    if static is not None:
        slots = static.slots
        levels = _levels_cost(static, SOLVE_LAUNCHES) if slots > static.size else 0.0
    return launches + levels + 0.5 * (whole.size + 2 * pairs) + slots


def _levels_cost(elimination: Elimination, launches: int) -> float:
    """Cost of so many launches per level, where all rows stand in levels."""
    return 0.0 if elimination.in_ranges else float(WIDE_LAUNCH * launches * (len(elimination.levels) - 1))


def choose(wanted: str, whole: Elimination, pairs: int, static: Elimination | None, iterations: int = ITERATIONS) -> Choice:
    """Direct or iterative, for a system of as many coupled pairs.

    Args:
        wanted: "auto" or the name of a solver.
        whole: of all blocks; static: of those that do not come and go, None where `whole` has no others.
        iterations: that pcg is expected to take.
    """
    if wanted not in ("auto", "direct"):
        return Choice(wanted, "asked for")
    size = whole.slots * BLOCK_BYTES + (0 if whole.in_ranges else PRODUCT_BYTES * whole.products)
    if size > MOST_BYTES:
        return Choice("pcg", f"the factor would take {size / 2**30:.1f} GiB (limit {MOST_BYTES >> 30})")
    if wanted == "direct":
        return Choice("direct", "asked for")
    iterations = JOINTED_ITERATIONS if static is None else iterations
    limit = iterations * iteration_cost(whole, pairs, static)
    limit += 0.0 if static is None else direct_cost(static)
    direct = direct_cost(whole)
    relation = "at most" if direct <= limit else "more than"
    return Choice(
        "direct" if direct <= limit else "pcg",
        f"a factorisation takes {direct:,.0f} products of blocks, {relation} {iterations} iterations of pcg ({limit:,.0f})",
    )
