"""Decisions of the iterations of a step, on the device so that they can be recorded.

Numbers per island are float64, also flags 0 or 1; `converged` is int32 because kernels use it per body. `Control.at` holds the
numbers of the whole step (indices below), `Control.flags` the conditions of loops and branches, both for all islands.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, ZERO
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)

# numbers of the whole step ------------------------------------------------------------------------------------------

TOLERANCE = 0
"""Newton's tolerance of islands without friction (`Control.tolerance`), a vertex speed [m/s]."""
H = 1
"""Length of the step [s], the largest of all worlds (`Control.length`)."""
TIGHTEST = 2
"""Tightest tolerance of linear solves."""
FORCING = 3
"""Tolerance of the next linear solve."""
SPEED = 4
"""Largest speed of the last direction [m/s]."""
WORST = 5
"""Largest speed at which an island converged [m/s]."""
OPEN = 6
"""Largest residual, over its tolerance, of exact joints in islands that have otherwise converged."""
CORRECTION = 7
"""Tolerance of the solves that close exact joints."""
FRICTION_TOLERANCE = 8
"""Newton's tolerance of islands with friction [m/s]."""
NUMBERS = 9

# flags --------------------------------------------------------------------------------------------------------------

FAILURE = 0
"""Failure of the iteration, one of those below, the one with the largest number of several."""
MOVING = 1
"""Whether any island has not converged."""
STALE = 2
"""Whether the iterate has to be linearised."""
COVERED = 3
"""Whether the candidate list covers the path."""
REPEAT = 4
"""Whether a loop continues: of the line search, of closings, of cuts at limits."""
PENDING = 5
"""Whether any island needs a branch or another pass."""
CLEAR_RISE = 6
"""Whether energies rise by more than rounding in the trial."""
PASS = 7
"""Passes of the present loop."""
TRIALS = 8
"""Energy evaluations in this iteration."""
LINEAR = 9
"""Iterations of conjugate gradients in this iteration."""
RUNNING = 10
"""Number of islands whose conjugate gradients continue."""
TIGHTEN = 11
"""Whether the linear solve must continue to the tightest tolerance."""
SOUND = 12
"""Whether there was no failure so far."""
ALL_BODIES = 13
"""Whether the next linearisation includes all bodies, also those of converged islands."""
RESTART = 14
"""Whether the iteration restarts, with full regularisation if its model was not convex."""
RESTARTED = 15
"""Whether the iteration has restarted."""
RISE = 16
"""Whether energies rise in the trial."""
FLAGS = 17
STATUS = NUMBERS + FLAGS + 6
"""Number of entries of the status of an iteration or a start (`gather_status`)."""

NOT_FINITE = 1
NO_DECREASE = 2
NO_CONVERGENCE = 3
NO_CURVATURE = 4
NO_CUT = 5
NOT_FINITE_GRADIENT = 6
NOT_POSITIVE = 7
"""A pivot of the factor is not positive."""
NO_CAPACITY = 8
"""Arrays have to grow; the host repeats the operation, so that this is no failure of the step."""


@wp.struct
class Control:
    """Decisions of the iterations of a step, (islands,) by default.

    converged; length: of the step [s]; has_constant_efforts: of limited drives and friction in joints; tolerance: of Newton's
    method [m/s]; small: whether the step is within it; distance_ratio, stretch: see `cuda_kernels.step.newton`;
    regularisation: weight of the bounds of curvature; reached: speed at convergence [m/s]; residual: largest residual force as
    a velocity [m/s]; loose: sufficient speed and residual with friction, residual_bound: largest residual with bodies in
    contact, 0 without a bound [m/s]; moved: largest displacement of the full step [m]; speed: of the path per unit of alpha [m];
    limit: largest safe alpha, alpha: the present one; slope: g.d; change, size: of the energy. Line search: rising: whether the
    energy rises at the trial; waits: whether the rise may be rounding, so that slopes decide; taken: whether a step is
    accepted; halvings: their number.
    counts (2,): islands and chunks; at (NUMBERS,), flags (FLAGS,), for all islands.
    """

    counts: wp.array(dtype=wp.int32)
    at: wp.array(dtype=wp.float64)
    flags: wp.array(dtype=wp.int32)
    converged: wp.array(dtype=wp.int32)
    length: wp.array(dtype=wp.float64)
    has_constant_efforts: wp.array(dtype=wp.float64)
    tolerance: wp.array(dtype=wp.float64)
    small: wp.array(dtype=wp.float64)
    rising: wp.array(dtype=wp.float64)
    waits: wp.array(dtype=wp.float64)
    taken: wp.array(dtype=wp.float64)
    halvings: wp.array(dtype=wp.float64)
    distance_ratio: wp.array(dtype=wp.float64)
    regularisation: wp.array(dtype=wp.float64)
    stretch: wp.array(dtype=wp.float64)
    reached: wp.array(dtype=wp.float64)
    residual: wp.array(dtype=wp.float64)
    loose: wp.array(dtype=wp.float64)
    residual_bound: wp.array(dtype=wp.float64)
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
    """Record a failure, of several the one with the largest number."""
    wp.atomic_max(c.flags, FAILURE, failure)
    c.flags[SOUND] = 0


@wp.kernel
def begin_iteration(first: wp.int32, c: Control):
    """Reset the counts of an iteration; one item."""
    c.flags[FAILURE] = 0
    c.flags[SOUND] = 1
    c.flags[RESTART] = 1
    c.flags[RESTARTED] = 0
    c.flags[COVERED] = 0
    c.flags[MOVING] = 0
    c.flags[TRIALS] = 0
    c.flags[LINEAR] = 0
    c.at[OPEN] = ZERO


@wp.kernel
def set_flag(first: wp.int32, c: Control, flag: wp.int32):
    """Set flags[flag] = 1; one item."""
    c.flags[flag] = 1


@wp.kernel
def end_assembly(first: wp.int32, c: Control):
    """Mark the iterate as linearised, unless the linearisation of all bodies failed; one item."""
    c.flags[STALE] = 0
    if c.flags[SOUND] != 0:
        c.flags[ALL_BODIES] = 0


@wp.kernel
def judge_model(first: wp.int32, c: Control):
    """Set `RESTART` if the model was not convex for the first time in this iteration; reset `TIGHTEN`; one item."""
    c.flags[TIGHTEN] = 0
    c.flags[RESTART] = 0
    bent = c.flags[FAILURE] == NOT_POSITIVE or c.flags[FAILURE] == NO_CURVATURE
    if bent and c.flags[RESTARTED] == 0:
        c.flags[RESTART] = 1
        c.flags[RESTARTED] = 1


@wp.kernel
def set_full_regularisation(
    first: wp.int32,
    c: Control,
    rows: wp.int32,
    body: wp.array(dtype=wp.int32),
    island: wp.array(dtype=wp.int32),
    failed: wp.array(dtype=wp.int32),
):
    """Set full regularisation in islands with failed factor rows, or in all of them if the rows are not known.

    Converged bodies must not report this failure after the next factorisation."""
    k = wp.tid() + first
    if c.flags[FAILURE] != NOT_POSITIVE or rows == 0:
        if k < c.counts[0]:
            c.regularisation[k] = ONE
    elif k < rows:
        if failed[k] != 0:
            c.regularisation[island[body[k]]] = ONE
        failed[k] = 0


@wp.kernel
def request_linearisation(first: wp.int32, c: Control):
    """Request another linearisation of the iterate; one item."""
    c.flags[FAILURE] = 0
    c.flags[SOUND] = 1
    c.flags[STALE] = 1
    c.flags[LINEAR] = 0


@wp.kernel
def begin_loop(first: wp.int32, c: Control, repeat: wp.int32):
    """Reset the flags of a loop, which is entered if `repeat` is 1; one item."""
    c.flags[REPEAT] = repeat
    c.flags[PENDING] = 0
    c.flags[RISE] = 0
    c.flags[CLEAR_RISE] = 0
    c.flags[PASS] = 0


@wp.kernel
def most_to_bodies(
    first: wp.int32,
    island: wp.array(dtype=wp.int32),
    values: wp.array(dtype=wp.float64),
    out: wp.array(dtype=wp.float64),
):
    """Set out of every body to the larger of its own and its island's value."""
    b = wp.tid() + first
    out[b] = wp.max(out[b], values[island[b]])


@wp.kernel
def check_capacity(
    first: wp.int32,
    c: Control,
    contacts: wp.array(dtype=wp.int32),
    pairs: wp.int32,
    runs: wp.int32,
    friction: wp.array(dtype=wp.int32),
    frictional_pairs: wp.int32,
    frictional_runs: wp.int32,
    frozen: wp.array(dtype=wp.int32),
    most_frozen: wp.int32,
):
    """Record a failure if the capacity for the needed pairs and runs of contacts or of friction, or for lagged contacts, is too
    small; one item."""
    if contacts[0] > pairs or contacts[1] > runs or friction[0] > frictional_pairs or friction[1] > frictional_runs:
        fail(c, NO_CAPACITY)
    if frozen[0] > most_frozen:
        fail(c, NO_CAPACITY)


@wp.kernel
def check_pivots(first: wp.int32, c: Control, any_failed: wp.array(dtype=wp.int32)):
    """Record a failure if the matrix was not positive definite; one item."""
    if any_failed[0] != 0:
        fail(c, NOT_POSITIVE)


@wp.kernel
def count_pass(first: wp.int32, c: Control, most: wp.int32, failure: wp.int32):
    """Count a pass of a loop, which continues while `PENDING` is set; record `failure` if it is set after `most` passes."""
    c.flags[PASS] = c.flags[PASS] + 1
    c.flags[REPEAT] = 0
    if c.flags[PENDING] != 0:
        if c.flags[PASS] < most:
            c.flags[REPEAT] = 1
        elif failure != 0:
            fail(c, failure)
    c.flags[PENDING] = 0


@wp.kernel
def gather_status(
    first: wp.int32,
    c: Control,
    motion: wp.array(dtype=wp.float64),
    contacts: wp.array(dtype=wp.int32),
    friction: wp.array(dtype=wp.int32),
    frozen: wp.array(dtype=wp.int32),
    out: wp.array(dtype=wp.float64),
):
    """Write the status for the host: numbers, flags, motion[0], two needed capacities each of the sums of contacts and of
    friction, and that for lagged contacts; one item."""
    for k in range(NUMBERS):
        out[k] = c.at[k]
    for k in range(FLAGS):
        out[NUMBERS + k] = wp.float64(c.flags[k])
    out[NUMBERS + FLAGS] = motion[0]
    for k in range(2):
        out[NUMBERS + FLAGS + 1 + k] = wp.float64(contacts[k])
        out[NUMBERS + FLAGS + 3 + k] = wp.float64(friction[k])
    out[NUMBERS + FLAGS + 5] = wp.float64(frozen[0])
