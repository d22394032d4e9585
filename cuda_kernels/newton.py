"""The decisions of a Newton step on the device, one thread per island: twin of ``abd/solver``'s newton, line_search,
caution and forcing, which say what they mean.

Numbers per island are float64, flags 0 or 1 among them, so that one reduction serves all. `Control.at` holds the numbers
of the whole step (indices below), `Control.flags` what loops and branches ask, both shared by all islands.
"""

import warp as wp

from cuda_kernels.affine import ONE, ZERO

wp.set_module_options({"enable_backward": False, "max_unroll": 4})

# numbers of the whole step ------------------------------------------------------------------------------------------

TOLERANCE = 0
"""Newton's, a vertex speed [m/s]."""
H = 1
"""Length of the step [s]."""
TIGHTEST = 2
"""Of the linear solves that decide."""
FORCING = 3
"""Tolerance of the next linear solve."""
SPEED = 4
"""Largest speed of the last direction [m/s]."""
WORST = 5
"""Largest speed with which an island converged [m/s]."""
GAP = 6
"""Smallest gap of the islands that move on [m]."""
LEAST = 7
"""Smallest accepted step of those."""
OPEN = 8
"""Largest residual of the exact joints of islands that would have converged but for them, over its tolerance."""
CORRECTION = 9
"""Tolerance of the solves that close exact joints."""
NUMBERS = 10

# flags --------------------------------------------------------------------------------------------------------------

FAILURE = 0
"""One of the failures below, the first that was met."""
MOVING = 1
"""Whether an island is left that has not converged."""
STALE = 2
"""Whether the iterate has yet to be linearised."""
COVERED = 3
"""Whether the candidate list is complete for the path."""
AGAIN = 4
"""Whether a loop goes on: of the line search, closings, cuts at limits."""
ASKED = 5
"""Whether some island asks for a branch."""
CLEAR = 6
"""Whether energies rise by more than may be rounding."""
ROUND = 7
"""Rounds of the present loop."""
TRIALS = 8
"""Energy evaluations of the line search in this iteration."""
LINEAR = 9
"""Iterations of conjugate gradients in this iteration."""
RUNNING = 10
"""Whether conjugate gradients go on."""
TIGHTEN = 11
"""Whether the linear solve has to be continued to the tightest tolerance."""
PASSED = 12
"""Iterations of conjugate gradients in the present solve."""
EXHAUSTED = 13
"""Whether the line search gave up on an island."""
SOUND = 14
"""Whether nothing has failed so far."""
FLAGS = 15

NOT_FINITE = 1
NO_DECREASE = 2
NO_CONVERGENCE = 3
NO_CURVATURE = 4
NO_CUT = 5
NOT_FINITE_GRADIENT = 6
NO_ROOM = 7
"""Not a failure of the step: arrays have to grow, and the iteration is repeated."""


@wp.struct
class Control:
    """What the iterations of a step decide by; (islands,) unless said otherwise.

    converged; settled: efforts in joints; small: within the tolerance; decides: see `abd.solver.caution`; share: of the
    bounds of curvature; moved: largest displacement of the full step [m]; speed: the same per unit of alpha, of the path;
    limit: largest safe alpha, alpha: the present one; slope: g.d; change, size: of the energy.
    counts (2,): islands and chunks; at (NUMBERS,), flags (FLAGS,), shared.
    """

    counts: wp.array(dtype=wp.int32)
    at: wp.array(dtype=wp.float64)
    flags: wp.array(dtype=wp.int32)
    converged: wp.array(dtype=wp.float64)
    settled: wp.array(dtype=wp.float64)
    small: wp.array(dtype=wp.float64)
    rising: wp.array(dtype=wp.float64)
    decides: wp.array(dtype=wp.float64)
    share: wp.array(dtype=wp.float64)
    moved: wp.array(dtype=wp.float64)
    speed: wp.array(dtype=wp.float64)
    limit: wp.array(dtype=wp.float64)
    alpha: wp.array(dtype=wp.float64)
    slope: wp.array(dtype=wp.float64)
    steepness: wp.array(dtype=wp.float64)
    change: wp.array(dtype=wp.float64)
    size: wp.array(dtype=wp.float64)
    each: wp.array(dtype=wp.float64)


@wp.func
def fail(c: Control, failure: wp.int32):
    """Note a failure; of several the one with the largest number."""
    wp.atomic_max(c.flags, FAILURE, failure)
    c.flags[SOUND] = 0


@wp.kernel
def begin_islands(first: wp.int32, c: Control, asleep: wp.array(dtype=wp.float64)):
    """Start a minimisation."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    c.converged[w] = asleep[w]
    c.share[w] = ZERO
    c.decides[w] = ONE
    c.settled[w] = ONE


@wp.kernel
def begin_iteration(first: wp.int32, c: Control):
    """Clear what an iteration counts; one item."""
    c.flags[FAILURE] = 0
    c.flags[SOUND] = 1
    c.flags[COVERED] = 0
    c.flags[MOVING] = 0
    c.flags[TRIALS] = 0
    c.flags[LINEAR] = 0
    c.flags[EXHAUSTED] = 0
    c.at[GAP] = wp.float64(wp.inf)
    c.at[LEAST] = ONE
    c.at[OPEN] = ZERO


@wp.kernel
def set_flag(first: wp.int32, c: Control, flag: wp.int32, value: wp.int32):
    """flags[flag] = value; one item."""
    c.flags[flag] = value


@wp.kernel
def begin_loop(first: wp.int32, c: Control):
    """Nothing asks for a round or for a branch yet; one item."""
    c.flags[AGAIN] = 0
    c.flags[ASKED] = 0
    c.flags[CLEAR] = 0
    c.flags[ROUND] = 0


@wp.kernel
def to_bodies(
    first: wp.int32,
    island: wp.array(dtype=wp.int32),
    values: wp.array(dtype=wp.float64),
    out: wp.array(dtype=wp.float64),
):
    """out of every body = its island's value."""
    b = wp.tid() + first
    out[b] = values[island[b]]


@wp.kernel
def check_room(first: wp.int32, c: Control, needed: wp.array(dtype=wp.int32), pairs: wp.int32, runs: wp.int32):
    """Whether the sums of contacts fitted into their rooms; one item."""
    if needed[0] > pairs or needed[1] > runs:
        fail(c, NO_ROOM)


# linear solves ------------------------------------------------------------------------------------------------------


@wp.kernel
def judge_direction(first: wp.int32, c: Control, tightest: wp.int32):
    """Whether the direction is finite, and whether a solve that seems to end an island has to be continued."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    c.each[w] = ZERO
    if c.converged[w] != ZERO:
        return
    moved = c.moved[w]
    if not wp.isfinite(moved):
        fail(c, NOT_FINITE)
        return
    c.each[w] = moved
    if tightest == 0 and moved <= c.at[TOLERANCE] * c.at[H] and c.at[FORCING] > c.at[TIGHTEST]:
        c.flags[TIGHTEN] = 1


@wp.kernel
def begin_residuals(
    first: wp.int32,
    c: Control,
    start: wp.array(dtype=wp.float64),
    goal: wp.array(dtype=wp.float64),
    tolerance: wp.int32,
):
    """Goals of conjugate gradients that begin, r . M^-1 r of every island; `tolerance` is one of the numbers."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    goal[w] = c.at[tolerance] * c.at[tolerance] * start[w]
    if c.converged[w] == ZERO:
        if not wp.isfinite(start[w]):
            fail(c, NOT_FINITE_GRADIENT)
        elif start[w] > goal[w]:
            c.flags[RUNNING] = 1


@wp.kernel
def resume_residuals(
    first: wp.int32,
    c: Control,
    start: wp.array(dtype=wp.float64),
    left: wp.array(dtype=wp.float64),
    goal: wp.array(dtype=wp.float64),
    tolerance: wp.int32,
):
    """Further goals of conjugate gradients that go on."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    goal[w] = c.at[tolerance] * c.at[tolerance] * start[w]
    if c.converged[w] == ZERO and left[w] > goal[w]:
        c.flags[RUNNING] = 1


@wp.kernel
def count_product(first: wp.int32, c: Control):
    """An iteration of conjugate gradients begins; one item."""
    c.flags[RUNNING] = 0
    c.flags[PASSED] = c.flags[PASSED] + 1
    c.flags[LINEAR] = c.flags[LINEAR] + 1


@wp.kernel
def judge_residuals(
    first: wp.int32,
    c: Control,
    left: wp.array(dtype=wp.float64),
    fresh: wp.array(dtype=wp.float64),
    curvature: wp.array(dtype=wp.float64),
    goal: wp.array(dtype=wp.float64),
    doubt_every: wp.int32,
    most: wp.int32,
):
    """Whether an island's conjugate gradients go on; left = fresh."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    left[w] = fresh[w]
    if c.converged[w] != ZERO or fresh[w] <= goal[w]:
        return
    if not wp.isfinite(fresh[w]):
        fail(c, NOT_FINITE_GRADIENT)
    elif c.flags[PASSED] % doubt_every == 0 and not (curvature[w] > ZERO):
        fail(c, NO_CURVATURE)
    elif c.flags[PASSED] >= most:
        fail(c, NO_CONVERGENCE)
    else:
        c.flags[RUNNING] = 1


LOOSEST = wp.constant(wp.float64(1.0e-2))
SCALE = wp.constant(wp.float64(0.9))
KEPT_ABOVE = wp.constant(wp.float64(0.1))


@wp.kernel
def advance_forcing(first: wp.int32, c: Control, largest: wp.array(dtype=wp.float64)):
    """Tolerance of the next solve after a direction of this largest displacement [m]; one item."""
    speed = largest[0] / c.at[H]
    before = c.at[SPEED]
    c.at[SPEED] = speed
    if before <= ZERO:
        return
    ratio = speed / before
    fresh = SCALE * ratio * ratio
    kept = SCALE * c.at[FORCING] * c.at[FORCING]
    if kept > KEPT_ABOVE:
        fresh = wp.max(fresh, kept)
    c.at[FORCING] = wp.min(wp.max(fresh, c.at[TIGHTEST]), wp.max(LOOSEST, c.at[TIGHTEST]))


@wp.kernel
def judge_efforts(first: wp.int32, c: Control, changes: wp.array(dtype=wp.float64)):
    """Whether the direction leaves friction and limited drives in joints nearly as they are."""
    w = wp.tid() + first
    if w < c.counts[0]:
        c.settled[w] = wp.where(changes[w] <= ONE, ONE, ZERO)


@wp.kernel
def choose_closing(first: wp.int32, c: Control):
    """Islands whose exact rows are to be closed: those that the direction seems to end."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    closing = c.converged[w] == ZERO and c.moved[w] <= c.at[TOLERANCE] * c.at[H]
    c.each[w] = wp.where(closing, ONE, ZERO)
    if closing:
        c.flags[AGAIN] = 1


@wp.kernel
def leave_aside(
    first: wp.int32, c: Control, island: wp.array(dtype=wp.int32), aside: wp.array(dtype=wp.int32)
):
    """1 for the bodies of islands that are not chosen (`each`)."""
    b = wp.tid() + first
    aside[b] = wp.where(c.each[island[b]] != ZERO, 0, 1)


@wp.kernel
def judge_closing(first: wp.int32, c: Control, errors: wp.array(dtype=wp.float64), closed: wp.float64):
    """Whether a chosen island's rows are still open."""
    w = wp.tid() + first
    if w < c.counts[0] and c.each[w] != ZERO and errors[w] > closed:
        c.flags[ASKED] = 1


@wp.kernel
def go_round(first: wp.int32, c: Control, most: wp.int32, failure: wp.int32):
    """Count a round of a loop, which goes on while it is asked for; `failure` where it is still asked for at the end."""
    c.flags[ROUND] = c.flags[ROUND] + 1
    c.flags[AGAIN] = 0
    if c.flags[ASKED] != 0:
        if c.flags[ROUND] < most:
            c.flags[AGAIN] = 1
        elif failure != 0:
            fail(c, failure)
    c.flags[ASKED] = 0


# the path -----------------------------------------------------------------------------------------------------------


@wp.kernel
def measure_path(first: wp.int32, c: Control, reach: wp.array(dtype=wp.float64)):
    """Speed of the path from the reach of its first `limit`."""
    w = wp.tid() + first
    if w < c.counts[0]:
        c.speed[w] = reach[w] / c.limit[w]


@wp.kernel
def shorten(first: wp.int32, c: Control, impact: wp.array(dtype=wp.float64)):
    """Limit alpha by the first impact; `each` is the reach then [m]."""
    w = wp.tid() + first
    if w < c.counts[0]:
        c.limit[w] = wp.min(c.limit[w], impact[w])
        c.each[w] = c.limit[w] * c.speed[w]


@wp.kernel
def begin_alpha(first: wp.int32, c: Control):
    """The largest safe alpha is tried first."""
    w = wp.tid() + first
    if w < c.counts[0]:
        c.alpha[w] = c.limit[w]


@wp.kernel
def cut(first: wp.int32, c: Control, share: wp.array(dtype=wp.float64)):
    """Cut alpha to the share that keeps the limits open."""
    w = wp.tid() + first
    if w < c.counts[0]:
        c.alpha[w] = c.alpha[w] * share[w]
        c.limit[w] = c.alpha[w]
        if share[w] != ONE:
            c.flags[ASKED] = 1


# the line search ----------------------------------------------------------------------------------------------------

ROUNDING = wp.constant(wp.float64(1.0e-15))
DOUBTFUL = wp.constant(wp.float64(1.0e-9))


@wp.kernel
def begin_search(first: wp.int32, c: Control):
    """Which islands the full step would end."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    speed = wp.where(c.converged[w] != ZERO, ZERO, c.moved[w] / c.at[H])
    c.small[w] = wp.where(speed <= c.at[TOLERANCE] and c.settled[w] != ZERO, ONE, ZERO)


@wp.kernel
def reach_of_trial(first: wp.int32, c: Control):
    """`each` = motion [m] of the trial."""
    w = wp.tid() + first
    if w < c.counts[0]:
        c.each[w] = c.alpha[w] * c.speed[w]


@wp.kernel
def judge_trial(first: wp.int32, c: Control):
    """Islands whose energy rises, and whether one rises by more than may be rounding."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    rising = not (c.change[w] <= ROUNDING * c.size[w]) and c.alpha[w] > ZERO
    c.rising[w] = wp.where(rising, ONE, ZERO)
    if rising:
        c.flags[AGAIN] = 1
        # written so that what is not a number is clear
        if not (wp.abs(c.change[w]) <= DOUBTFUL * c.size[w]):
            c.flags[CLEAR] = 1


@wp.kernel
def count_trial(first: wp.int32, c: Control):
    """Whether rising energies are all doubtful, so that slopes decide (`ASKED`); one item."""
    c.flags[TRIALS] = c.flags[TRIALS] + 1
    c.flags[ASKED] = 0
    if c.flags[EXHAUSTED] != 0:
        c.flags[AGAIN] = 0
    if c.flags[AGAIN] != 0 and c.flags[CLEAR] == 0:
        c.flags[ASKED] = 1
        c.flags[AGAIN] = 0
    c.flags[CLEAR] = 0


@wp.kernel
def take_doubtful(first: wp.int32, c: Control):
    """No slope is steeper: the trial is taken, and linearised already; one item."""
    if c.flags[AGAIN] == 0:
        c.flags[STALE] = 0
    c.flags[ASKED] = c.flags[AGAIN]


@wp.kernel
def judge_slopes(first: wp.int32, c: Control):
    """Islands whose slope at the trial is larger in size than before go on, or stay where they are if that is near."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    steeper = c.rising[w] != ZERO and wp.abs(c.steepness[w]) > wp.abs(c.slope[w])
    c.rising[w] = wp.where(steeper, ONE, ZERO)
    if steeper:
        c.flags[AGAIN] = 1
        if c.small[w] != ZERO:
            c.alpha[w] = ZERO


@wp.kernel
def halve(first: wp.int32, c: Control, most: wp.int32):
    """Half the step where energies rise; what still rises after the last halving stays where it is, or fails."""
    w = wp.tid() + first
    if w >= c.counts[0] or c.rising[w] == ZERO:
        return
    c.alpha[w] = wp.float64(0.5) * c.alpha[w]
    if c.flags[TRIALS] >= most:
        if c.small[w] == ZERO:
            fail(c, NO_DECREASE)
        c.alpha[w] = ZERO


@wp.kernel
def end_halvings(first: wp.int32, c: Control, most: wp.int32):
    """After the last halving one more trial is taken as it is; one item."""
    if c.flags[TRIALS] >= most:
        c.flags[EXHAUSTED] = 1


# the end of an iteration --------------------------------------------------------------------------------------------

MISSED = wp.constant(wp.float64(0.8))
SURPASSED = wp.constant(wp.float64(1.3))
RELAXED = wp.constant(wp.float64(0.25))
SLIGHT = wp.constant(wp.float64(0.01))


@wp.kernel
def end_iteration(first: wp.int32, c: Control, errors: wp.array(dtype=wp.float64), has_exact: wp.int32):
    """Learn from the change of the energy, and see which islands have converged."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    alpha = c.alpha[w]
    foretold = (alpha - wp.float64(0.5) * alpha * alpha) * c.slope[w]
    went = foretold < ZERO
    missed = went and (alpha < c.limit[w] or c.change[w] > MISSED * foretold)
    surpassed = went and not missed and c.change[w] < SURPASSED * foretold
    c.decides[w] = wp.where(not surpassed or c.share[w] <= SLIGHT, ONE, ZERO)
    if missed:
        c.share[w] = ONE
    elif surpassed:
        c.share[w] = RELAXED * c.share[w]
    if c.converged[w] != ZERO:
        return
    near = c.small[w] != ZERO and c.limit[w] == ONE
    reached = near and c.decides[w] != ZERO
    if has_exact != 0 and not (errors[w] <= ONE):
        reached = False
    if reached:
        c.converged[w] = ONE
        wp.atomic_max(c.at, WORST, c.moved[w] / c.at[H])
        return
    c.flags[MOVING] = 1
    # smallest of all in any order; asking first spares most of the atomics
    if alpha < c.at[LEAST]:
        wp.atomic_min(c.at, LEAST, alpha)
    if has_exact != 0 and near:
        wp.atomic_max(c.at, OPEN, errors[w])


@wp.kernel
def fold_gaps(first: wp.int32, c: Control, gaps: wp.array(dtype=wp.float64)):
    """Smallest gap of the islands that move on."""
    w = wp.tid() + first
    if w < c.counts[0] and c.converged[w] == ZERO and gaps[w] < c.at[GAP]:
        wp.atomic_min(c.at, GAP, gaps[w])


@wp.kernel
def rouse_paired(first: wp.int32, c: Control, paired: wp.array(dtype=wp.int32)):
    """Islands whose bodies may touch have not converged any more: their contacts have changed."""
    w = wp.tid() + first
    if w < c.counts[0] and paired[w] != 0:
        c.converged[w] = ZERO


@wp.kernel
def merge_flags(
    first: wp.int32,
    c: Control,
    all_converged: wp.array(dtype=wp.float64),
    some_converged: wp.array(dtype=wp.float64),
    all_settled: wp.array(dtype=wp.float64),
):
    """Flags of renumbered islands. Bodies at rest that a moving island has reached stood still in this direction."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    c.converged[w] = all_converged[w]
    whole = all_converged[w] != ZERO or some_converged[w] == ZERO
    c.settled[w] = wp.where(whole, all_settled[w], ZERO)


@wp.kernel
def gather_status(
    first: wp.int32,
    c: Control,
    any_failed: wp.array(dtype=wp.int32),
    out: wp.array(dtype=wp.float64),
):
    """All that the host asks of an iteration, in one array: numbers, flags, whether a pivot failed; one item."""
    for k in range(NUMBERS):
        out[k] = c.at[k]
    for k in range(FLAGS):
        out[NUMBERS + k] = wp.float64(c.flags[k])
    out[NUMBERS + FLAGS] = wp.float64(any_failed[0])
