"""Decisions of the line search, backtracking on the arc until the energy decreases, one thread per island.

Any decrease is accepted: steps capped by collisions cannot satisfy an Armijo fraction. Changes below `DOUBTFUL` times the size of
all terms may be rounding. They are judged by the gradient, which is more accurate: the step is accepted if the slope along the
direction decreases in size. A step within the tolerance is also accepted if it closes open exact joint rows. At the start of a
step (`abd.backends.recorded.start`) there is one trial.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, ZERO
from cuda_kernels.options import OPTIONS
from cuda_kernels.shared import step as shared
from cuda_kernels.step.control import (
    CLEAR_RISE,
    FAILURE,
    NO_DECREASE,
    PENDING,
    REPEAT,
    RISE,
    SOUND,
    STALE,
    TRIALS,
    Control,
    fail,
)
from cuda_kernels.step.newton import within

wp.set_module_options(OPTIONS)


@wp.kernel
def cut(first: wp.int32, c: Control, fraction: wp.array(dtype=wp.float64)):
    """Cut alpha to the fraction that keeps the limits open."""
    w = wp.tid() + first
    if w < c.counts[0]:
        c.alpha[w] = c.alpha[w] * fraction[w]
        c.limit[w] = c.alpha[w]
        if fraction[w] != ONE:
            c.flags[PENDING] = 1


ROUNDING = wp.constant(wp.float64(shared.ROUNDING))
DOUBTFUL = wp.constant(wp.float64(shared.DOUBTFUL))


@wp.kernel
def begin_search(first: wp.int32, c: Control):
    """Start a search from the largest safe alpha, which changes the iterate; mark islands that converge with the full step."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    c.flags[STALE] = 1
    speed = wp.where(c.converged[w] != 0, ZERO, c.moved[w] / c.length[w])
    c.small[w] = wp.where(within(c, w, speed) and c.has_constant_efforts[w] != ZERO, ONE, ZERO)
    c.alpha[w] = c.limit[w]
    c.taken[w] = ZERO
    c.halvings[w] = ZERO


@wp.kernel
def reset_search_flags(first: wp.int32, c: Control):
    """Reset the flags for a repeated search; one item."""
    c.flags[FAILURE] = 0
    c.flags[SOUND] = 1
    c.flags[TRIALS] = 0


@wp.kernel
def reach_of_trial(first: wp.int32, c: Control):
    """Set `each` to the motion of the trial [m]."""
    w = wp.tid() + first
    if w < c.counts[0]:
        c.each[w] = c.alpha[w] * c.speed[w]


@wp.kernel
def judge_trial(first: wp.int32, c: Control):
    """Mark islands whose energy rises, by possible rounding (`waits`, `RISE`) or clearly (`CLEAR_RISE`)."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    rising = c.taken[w] == ZERO and not (c.change[w] <= ROUNDING * c.size[w]) and c.alpha[w] > ZERO
    # NaN counts as clear
    doubtful = wp.abs(c.change[w]) <= DOUBTFUL * c.size[w]
    c.rising[w] = wp.where(rising, ONE, ZERO)
    c.waits[w] = wp.where(rising and doubtful, ONE, ZERO)
    if rising:
        c.flags[RISE] = 1
        if not doubtful:
            c.flags[CLEAR_RISE] = 1


@wp.kernel
def count_trial(first: wp.int32, c: Control):
    """Count a trial; set `PENDING` if all rises may be rounding, so that slopes decide.

    Until then those islands wait with the same trial; one item."""
    c.flags[TRIALS] = c.flags[TRIALS] + 1
    rises = c.flags[RISE]
    clearly = c.flags[CLEAR_RISE]
    c.flags[REPEAT] = rises * clearly
    c.flags[PENDING] = rises * (1 - clearly)
    c.flags[RISE] = 0
    c.flags[CLEAR_RISE] = 0


@wp.kernel
def judge_slopes(first: wp.int32, c: Control, errors: wp.array(dtype=wp.float64), has_exact: wp.int32):
    """Continue the search of waiting islands whose slope at the trial is larger in size than before; accept the others.

    Steps that close open exact rows, by their `errors` before the trial, are accepted too."""
    w = wp.tid() + first
    if w >= c.counts[0] or c.waits[w] == ZERO:
        return
    steeper = wp.abs(c.steepness[w]) > wp.abs(c.slope[w])
    if has_exact != 0 and c.small[w] != ZERO and errors[w] > ONE:
        steeper = False
    c.rising[w] = wp.where(steeper, ONE, ZERO)
    c.waits[w] = ZERO
    if steeper:
        c.flags[REPEAT] = 1
    else:
        c.taken[w] = ONE


@wp.kernel
def end_comparison(first: wp.int32, c: Control):
    """End the trials if there was no capacity to compare slopes; one item."""
    if c.flags[SOUND] == 0:
        c.flags[REPEAT] = 0


@wp.kernel
def halve(first: wp.int32, c: Control, most: wp.int32, compared: wp.int32):
    """Halve the step of islands whose energy rises, unless they wait; after the last halving they do not move, or fail.

    After slopes were `compared`, islands within the tolerance do not move: halving cannot resolve rounding."""
    w = wp.tid() + first
    if w >= c.counts[0] or c.rising[w] == ZERO or c.waits[w] != ZERO:
        return
    c.alpha[w] = wp.float64(0.5) * c.alpha[w]
    c.halvings[w] = c.halvings[w] + ONE
    if compared != 0 and c.small[w] != ZERO:
        c.alpha[w] = ZERO
    if c.halvings[w] >= wp.float64(most):
        if c.small[w] == ZERO:
            fail(c, NO_DECREASE)
        c.alpha[w] = ZERO


@wp.kernel
def judge_falls(first: wp.int32, c: Control):
    """Set `small` if an island's energy at the trial is no higher than at q_n; set `PENDING` if any is higher."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    decreases = c.change[w] <= ROUNDING * c.size[w]
    c.small[w] = wp.where(decreases, ONE, ZERO)
    if not decreases:
        c.flags[PENDING] = 1


@wp.kernel
def hold_rising(first: wp.int32, c: Control):
    """Keep islands at q_n if their energy rises."""
    w = wp.tid() + first
    if w < c.counts[0] and c.small[w] == ZERO:
        c.alpha[w] = ZERO
