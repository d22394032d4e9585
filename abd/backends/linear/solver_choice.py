"""Which linear solver: a rule on the size and the structure of the system.

On a processor a factorisation costs the products of two 12x12 blocks that its fill takes. An iteration of conjugate gradients
costs about half a product per block of the matrix and one per block of the preconditioner's factor. Where thousands of threads
run at once it is other things that take time (`abd.backends.linear.wide_costs`). The direct solver is taken up to the cost of
`ITERATIONS` iterations, or of as many as a solve of this step took if that is more; where joints couple the bodies,
whose stiffness iterations take long to see through, up to `JOINTED_ITERATIONS`. Its memory has a limit of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from abd.backends.device.machine import Machine
from abd.backends.linear import wide_costs
from abd.backends.linear.elimination import Elimination

ITERATIONS = 50
JOINTED_ITERATIONS = 2000
LAUNCHES = 500
"""Of an iteration's launches, in products."""
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


def iteration_cost(bodies: int, pairs: int, slots: int) -> float:
    """Cost of an iteration with a preconditioner of as many slots."""
    return LAUNCHES + 0.5 * (bodies + 2 * pairs) + slots


def choose(
    wanted: str, whole: Elimination, pairs: int, static: Elimination | None, iterations: int = ITERATIONS,
    machine: Machine | None = None,
) -> Choice:  # fmt: skip
    """Direct or iterative, for a system of as many coupled pairs.

    Args:
        wanted: "auto" or the name of a solver.
        whole: of all blocks; static: of those that do not come and go, None where `whole` has no others.
        iterations: that pcg is expected to take.
        machine: where thousands of threads run at once; None for a processor.
    """
    if wanted not in ("auto", "direct"):
        return Choice(wanted, "asked for")
    size = whole.slots * BLOCK_BYTES + (0 if whole.in_ranges else PRODUCT_BYTES * whole.products)
    if size > MOST_BYTES:
        return Choice("pcg", f"the factor would take {size / 2**30:.1f} GiB (limit {MOST_BYTES >> 30})")
    if wanted == "direct":
        return Choice("direct", "asked for")
    iterations = JOINTED_ITERATIONS if static is None else iterations
    if machine is not None:
        direct = wide_costs.direct_cost(whole, machine)
        limit = iterations * wide_costs.iteration_cost(whole, pairs, static, machine)
        if static is not None and static.slots > static.size:
            limit += wide_costs.direct_cost(static, machine)
        takes, most = f"{1e3 * direct:.3g} ms by the device's data", f"{1e3 * limit:.3g} ms"
    else:
        slots, products = (whole.size, 0) if static is None else (static.slots, static.products)
        direct, limit = whole.products, products + iterations * iteration_cost(whole.size, pairs, slots)
        takes, most = f"{direct:,} products of blocks", f"{limit:,.0f}"
    relation = "at most" if direct <= limit else "more than"
    return Choice(
        "direct" if direct <= limit else "pcg",
        f"a factorisation takes {takes}, {relation} {iterations} iterations of pcg ({most})",
    )
