"""What the iterations of a step decide by, on the device, so that they can be recorded.

Numbers per island are float64, flags 0 or 1 among them; who has converged is int32, as kernels ask it of bodies.
`Control.at` holds the numbers of the whole step (indices below), `Control.flags` what loops and branches ask, both shared
by all islands.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, ZERO
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)

# numbers of the whole step ------------------------------------------------------------------------------------------

TOLERANCE = 0
"""Newton's, a vertex speed [m/s], of islands without friction (`Control.tolerance`)."""
H = 1
"""Length of the step [s], the largest where worlds have lengths of their own (`Control.length`)."""
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
"""Smallest safe step of those."""
OPEN = 8
"""Largest residual of the exact joints of islands that would have converged but for them, over its tolerance."""
CORRECTION = 9
"""Tolerance of the solves that close exact joints."""
FRICTION_TOLERANCE = 10
"""Newton's tolerance of islands with friction [m/s]."""
NUMBERS = 11

# flags --------------------------------------------------------------------------------------------------------------

FAILURE = 0
"""One of the failures below, the one with the largest number of those that were met."""
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
SOUND = 13
"""Whether nothing has failed so far."""
EVERYBODY = 14
"""Whether the next linearisation is of all bodies, those that are done included."""
ANEW = 15
"""Whether the iteration restarts, with full regularisation where its model was not convex."""
CAREFUL = 16
"""Whether it was."""
FLAGS = 17
STATUS = NUMBERS + FLAGS + 5
"""Entries of what the host asks of an iteration (`gather_status`)."""

NOT_FINITE = 1
NO_DECREASE = 2
NO_CONVERGENCE = 3
NO_CURVATURE = 4
NO_CUT = 5
NOT_FINITE_GRADIENT = 6
NOT_POSITIVE = 7
"""A pivot of the factor."""
NO_CAPACITY = 8
"""Not a failure of the step: arrays have to grow, and what they were too short for is repeated."""


@wp.struct
class Control:
    """What the iterations of a step decide by; (islands,) unless said otherwise.

    converged; length: of the step [s]; settled: efforts in joints; tolerance: of Newton's method [m/s]; small: within it;
    farther, stretch: see `abd.backends.reference.regularisation`; share: of the bounds of curvature; reached: speed with which it
    converged [m/s]; residual: largest change of a velocity by what forces are off [m/s]; loose: speed and residual that are
    well enough, with friction, balanced: residual below which forces balance there, 0 without [m/s]; moved: largest
    displacement of the full step [m]; speed: the same per unit of alpha, of the path; limit: largest safe alpha, alpha: the
    present one; slope: g.d; change, size: of the energy. Of the line search: rising: the energy at the trial; waits: that rise
    may be rounding, and slopes have to decide; taken: they have; halvings: how many there were.
    counts (2,): islands and chunks; at (NUMBERS,), flags (FLAGS,), shared.
    """

    counts: wp.array(dtype=wp.int32)
    at: wp.array(dtype=wp.float64)
    flags: wp.array(dtype=wp.int32)
    converged: wp.array(dtype=wp.int32)
    length: wp.array(dtype=wp.float64)
    settled: wp.array(dtype=wp.float64)
    tolerance: wp.array(dtype=wp.float64)
    small: wp.array(dtype=wp.float64)
    rising: wp.array(dtype=wp.float64)
    waits: wp.array(dtype=wp.float64)
    taken: wp.array(dtype=wp.float64)
    halvings: wp.array(dtype=wp.float64)
    farther: wp.array(dtype=wp.float64)
    share: wp.array(dtype=wp.float64)
    stretch: wp.array(dtype=wp.float64)
    reached: wp.array(dtype=wp.float64)
    residual: wp.array(dtype=wp.float64)
    loose: wp.array(dtype=wp.float64)
    balanced: wp.array(dtype=wp.float64)
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
def begin_iteration(first: wp.int32, c: Control):
    """Clear what an iteration counts; one item."""
    c.flags[FAILURE] = 0
    c.flags[SOUND] = 1
    c.flags[ANEW] = 1
    c.flags[CAREFUL] = 0
    c.flags[COVERED] = 0
    c.flags[MOVING] = 0
    c.flags[TRIALS] = 0
    c.flags[LINEAR] = 0
    c.at[GAP] = wp.float64(wp.inf)
    c.at[LEAST] = ONE
    c.at[OPEN] = ZERO


@wp.kernel
def set_flag(first: wp.int32, c: Control, flag: wp.int32, value: wp.int32):
    """flags[flag] = value; one item."""
    c.flags[flag] = value


@wp.kernel
def end_assembly(first: wp.int32, c: Control):
    """The iterate is linearised, if nothing has failed of all bodies where they had to be; one item."""
    c.flags[STALE] = 0
    if c.flags[SOUND] != 0:
        c.flags[EVERYBODY] = 0


@wp.kernel
def judge_model(first: wp.int32, c: Control):
    """Whether the model was not convex, for the first time in this iteration (`ANEW`); one item."""
    c.flags[ANEW] = 0
    bent = c.flags[FAILURE] == NOT_POSITIVE or c.flags[FAILURE] == NO_CURVATURE
    if bent and c.flags[CAREFUL] == 0:
        c.flags[ANEW] = 1
        c.flags[CAREFUL] = 1


@wp.kernel
def take_care(
    first: wp.int32,
    c: Control,
    rows: wp.int32,
    body: wp.array(dtype=wp.int32),
    island: wp.array(dtype=wp.int32),
    failed: wp.array(dtype=wp.int32),
):
    """Full regularisation in islands in which a row of the factor has failed, of so many of the bodies `body`, or in all of them
    where these are not known. Bodies that are done by the next factorisation must not report this one."""
    k = wp.tid() + first
    if c.flags[FAILURE] != NOT_POSITIVE or rows == 0:
        if k < c.counts[0]:
            c.share[k] = ONE
    elif k < rows:
        if failed[k] != 0:
            c.share[island[body[k]]] = ONE
        failed[k] = 0


@wp.kernel
def begin_anew(first: wp.int32, c: Control):
    """The iterate is to be linearised again; one item."""
    c.flags[FAILURE] = 0
    c.flags[SOUND] = 1
    c.flags[STALE] = 1
    c.flags[LINEAR] = 0


@wp.kernel
def begin_loop(first: wp.int32, c: Control):
    """Nothing asks for a round or for a branch yet; one item."""
    c.flags[AGAIN] = 0
    c.flags[ASKED] = 0
    c.flags[CLEAR] = 0
    c.flags[ROUND] = 0


@wp.kernel
def most_to_bodies(
    first: wp.int32,
    island: wp.array(dtype=wp.int32),
    values: wp.array(dtype=wp.float64),
    out: wp.array(dtype=wp.float64),
):
    """out of every body = the larger of its own and its island's value."""
    b = wp.tid() + first
    out[b] = wp.max(out[b], values[island[b]])


@wp.kernel
def check_capacity(first: wp.int32, c: Control, needed: wp.array(dtype=wp.int32), pairs: wp.int32, runs: wp.int32):
    """Whether the sums of contacts fitted into their rooms; one item."""
    if needed[0] > pairs or needed[1] > runs:
        fail(c, NO_CAPACITY)


@wp.kernel
def check_pivots(first: wp.int32, c: Control, any_failed: wp.array(dtype=wp.int32)):
    """Whether the matrix was positive definite; one item."""
    if any_failed[0] != 0:
        fail(c, NOT_POSITIVE)


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


@wp.kernel
def gather_status(
    first: wp.int32,
    c: Control,
    reach: wp.array(dtype=wp.float64),
    contacts: wp.array(dtype=wp.int32),
    friction: wp.array(dtype=wp.int32),
    out: wp.array(dtype=wp.float64),
):
    """All that the host asks of an iteration, in one array: numbers, flags, reach[0], and what the sums of contacts and of
    friction needed capacity for, two numbers each; one item."""
    for k in range(NUMBERS):
        out[k] = c.at[k]
    for k in range(FLAGS):
        out[NUMBERS + k] = wp.float64(c.flags[k])
    out[NUMBERS + FLAGS] = reach[0]
    for k in range(2):
        out[NUMBERS + FLAGS + 1 + k] = wp.float64(contacts[k])
        out[NUMBERS + FLAGS + 3 + k] = wp.float64(friction[k])
