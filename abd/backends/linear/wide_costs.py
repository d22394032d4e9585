"""What the linear solvers cost where thousands of threads run at once: a model in seconds, by structure, counts and the device.

Of a factorisation with its solve, and of an iteration of conjugate gradients:

    launches one after another, each `LAUNCH`
    + products of blocks that one thread does after another, each `CYCLES` per multiplication and addition
    + all of them, shared by all multiprocessors, or the bytes that they read, whichever takes longer

The two last ones are Brent's bound on the time of p processors, span + work / p [Brent 1974]. Levels, chains and products are
counted as they are launched (`abd.backends.linear.factor_schedules`). No part of it was measured on a GPU: a reckoning by the
data sheet, which no clock changes, so that the same run chooses the same solver again.
"""

from __future__ import annotations

from abd.backends.device.machine import Machine
from abd.backends.linear.elimination import Elimination
from abd.backends.linear.factor_schedules import AT_ONCE, longest_chain, solve_chain

LAUNCH = 2e-6
"""From one launch of a graph to the next, which waits for it [s]; of a loop's condition the same."""
CYCLES = 8.0
"""Of a multiplication and addition whose result the next one needs, its operands in cache."""
BLOCK = 12 * 12
PRODUCT = 12 * BLOCK
"""Multiplications and additions in a product of two blocks; of a block and a vector a twelfth."""
BYTES = 8 * BLOCK
"""Of a block."""
FACTOR_LAUNCHES, SOLVE_LAUNCHES = 3, 4
"""Per level."""
ITERATION_LAUNCHES = 11
"""Of an iteration of conjugate gradients, two reductions over islands among them, without its preconditioner."""
VECTORS = 12
"""That an iteration reads and writes, of twelve numbers per body."""


def direct_cost(whole: Elimination, machine: Machine) -> float:
    """Seconds of a factorisation with its solve."""
    levels = len(whole.levels) - 1
    launches = (FACTOR_LAUNCHES + SOLVE_LAUNCHES) * levels + 3 * 2 * -(-levels // AT_ONCE)
    work = whole.products * PRODUCT + 2 * whole.slots * BLOCK
    read = (2 * whole.products + 2 * whole.slots) * BYTES
    return LAUNCH * launches + _span(longest_chain(whole), machine) + _shared(work, read, machine)


def iteration_cost(whole: Elimination, pairs: int, static: Elimination | None, machine: Machine) -> float:
    """Seconds of an iteration of conjugate gradients on the matrix of as many coupled `pairs`; `static`: what preconditions it,
    None for the bodies' own blocks."""
    blocks, launches, chain = whole.size + 2 * pairs, ITERATION_LAUNCHES, (1 + whole.most_neighbours) / 12.0
    slots = whole.size
    if static is not None and static.slots > static.size:
        levels, slots = len(static.levels) - 1, 2 * static.slots
        launches += SOLVE_LAUNCHES * levels + 2 * 2 * -(-levels // AT_ONCE)
        chain += solve_chain(static)
    read = (blocks + slots) * BYTES + VECTORS * 96 * whole.size
    return LAUNCH * launches + _span(chain, machine) + _shared((blocks + slots) * BLOCK, read, machine)


def _span(chain: float, machine: Machine) -> float:
    """Seconds of products of blocks one after another."""
    return chain * PRODUCT * CYCLES / machine.clock


def _shared(work: float, read: float, machine: Machine) -> float:
    """Seconds of multiplications and additions, and of bytes, that all multiprocessors share."""
    return max(work / machine.rate, read / machine.bandwidth)
