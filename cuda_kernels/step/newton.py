"""Decisions of a Newton iteration, one thread per island: regularisation, tolerances of linear solves, convergence.

The regularisation is the weight of the bounds of curvature of friction and contacts, initially 0.
A positive definite quadratic model cannot represent two energies. Friction is straight along a slip with an edge where the slip
reverses; the distance of a contact has curvature of both signs when its bodies turn. Both have a bound of their curvature
(`abd.potentials.friction`, `abd.potentials.curvature`). Where contacts have negative parts (`abd.contact.minima`), the model may
have no minimum: the same weight reduces these parts, and a system that cannot be factorised is assembled again with weight 1.
With weight 1 full steps decrease the energy, but only slowly where the true curvature is far below the bound. With weight 0
Newton's method is quadratic near a smooth minimum, but oscillates across edges with many halvings.
Drives at their effort limits use the largest weight of their bodies in the step, because their multipliers move the edges between
iterations. Friction in joints needs no regularisation (`abd.joints.rows.laws.evaluate`).

With the slope g.d < 0 of the direction d, the model predicts a change of the energy of ``(alpha - alpha^2/2) g.d`` by a step
alpha d, and at most half of g.d. After a much smaller decrease or a halving, the next model of the island gets weight 1; also if
contacts stopped the step almost at once, because their curvature exceeds the model's. After a much larger decrease, the weight is
multiplied by `REDUCTION`.

A remaining error of the model, with or without the bound, is visible in the energy along the direction: its curvature is c times
that of the model, its minimum at 1/c. The next direction of the island is stretched by that, at most by `LARGEST_STRETCH`.

After a step with a much larger decrease than predicted, the minimum is farther away: 1/c times the length of the step if c is
known and at least 1/`LARGEST_STRETCH`. Otherwise the step cannot prove convergence; nor can one that was stopped
almost at once, as where a rope becomes taut.

Far from the minimum, exact directions of iterative linear solves are unnecessary. The relative tolerance follows the progress of
the last iteration (Eisenstat and Walker, Choosing the forcing terms in an inexact Newton method, 1996, choice 2), measured by the
vertex speed s of a full step:

    eta_k = 0.9 (s_k / s_{k-1})^2, at least 0.9 eta_{k-1}^2 while that is above 0.1, within [tightest, LOOSEST]

A direction may end the minimisation only if its solve has reached the tightest tolerance.
"""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, TWO, ZERO
from cuda_kernels.options import OPTIONS
from cuda_kernels.parallel.sums import vec13
from cuda_kernels.shared import step as shared
from cuda_kernels.step.control import (
    FORCING,
    FRICTION_TOLERANCE,
    MOVING,
    NOT_FINITE,
    OPEN,
    PENDING,
    REPEAT,
    SOUND,
    SPEED,
    TIGHTEN,
    TIGHTEST,
    TOLERANCE,
    WORST,
    Control,
    H,
    fail,
)

wp.set_module_options(OPTIONS)


@wp.kernel
def begin_islands(first: wp.int32, c: Control, asleep: wp.array(dtype=wp.int32)):
    w = wp.tid() + first
    c.length[w] = c.at[H]
    if w >= c.counts[0]:
        return
    c.converged[w] = asleep[w]
    c.regularisation[w] = ZERO
    c.stretch[w] = ONE
    c.distance_ratio[w] = ONE
    c.has_constant_efforts[w] = ONE
    c.reached[w] = ZERO
    c.loose[w] = ZERO
    c.residual_bound[w] = ZERO
    c.tolerance[w] = c.at[TOLERANCE]


@wp.kernel
def body_tolerances(
    first: wp.int32,
    c: Control,
    frictional: wp.array(dtype=wp.int32),
    group: wp.array(dtype=wp.int32),
    segment: wp.array(dtype=wp.int32),
    listed: wp.array(dtype=wp.int32),
    loose_tolerances: wp.array(dtype=wp.float64),
    residual_bounds: wp.array(dtype=wp.float64),
    out: wp.array(dtype=wp.float64),
    loose: wp.array(dtype=wp.float64),
    residual_bound: wp.array(dtype=wp.float64),
):
    """Set Newton's tolerance [m/s] of every body, that of friction for bodies with friction in joints or lagged contacts.

    Lagged contacts start at segment[group[b]]; `loose_tolerances` (n,) applies to bodies with any. Pairs of the candidate list
    start at listed[b]; `residual_bounds` (n,) applies to bodies with any."""
    b = wp.tid() + first
    frozen = wp.bool(False)
    if group[b + 1] > group[b]:
        frozen = segment[group[b + 1]] > segment[group[b]]
    has_friction = frozen or frictional[b] != 0
    loose[b] = wp.where(frozen, loose_tolerances[b], ZERO)
    residual_bound[b] = wp.where(listed[b + 1] > listed[b], residual_bounds[b], ZERO)
    out[b] = wp.where(has_friction, c.at[FRICTION_TOLERANCE], c.at[TOLERANCE])


@wp.kernel
def body_residuals(
    first: wp.int32,
    weight: wp.array(dtype=wp.float64),
    lengths: wp.array(dtype=wp.float64),
    gradient: wp.array2d(dtype=wp.float64),
    out: wp.array(dtype=wp.float64),
):
    """Set the residual force of every body as a change of velocity [m/s], in a step of its length (n,) [s]."""
    b = wp.tid() + first
    g = wp.vec3d(gradient[b, 0], gradient[b, 1], gradient[b, 2])
    out[b] = wp.length(g) / (weight[b] * lengths[b])


@wp.kernel
def judge_direction(first: wp.int32, c: Control, tightest: wp.int32):
    """Check that the direction is finite, and whether a solve must continue because an island may converge."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    # until `judge_efforts` sets it
    c.has_constant_efforts[w] = ONE
    c.each[w] = ZERO
    if c.converged[w] != 0:
        return
    moved = c.moved[w]
    if not wp.isfinite(moved):
        fail(c, NOT_FINITE)
        return
    c.each[w] = moved
    if tightest == 0 and moved <= c.tolerance[w] * c.length[w] and c.at[FORCING] > c.at[TIGHTEST]:
        c.flags[TIGHTEN] = 1


LOOSEST = wp.constant(wp.float64(shared.LOOSEST))
FORCING_SCALE = wp.constant(wp.float64(shared.FORCING_SCALE))
SAFEGUARD = wp.constant(wp.float64(shared.SAFEGUARD))


@wp.kernel
def advance_forcing(first: wp.int32, c: Control, largest: wp.array(dtype=wp.float64)):
    """Set the tolerance of the next solve after a direction with this largest displacement [m]; one item."""
    speed = largest[0] / c.at[H]
    before = c.at[SPEED]
    c.at[SPEED] = speed
    if before <= ZERO:
        return
    ratio = speed / before
    tolerance = FORCING_SCALE * ratio * ratio
    safeguard = FORCING_SCALE * c.at[FORCING] * c.at[FORCING]
    if safeguard > SAFEGUARD:
        tolerance = wp.max(tolerance, safeguard)
    c.at[FORCING] = wp.min(wp.max(tolerance, c.at[TIGHTEST]), wp.max(LOOSEST, c.at[TIGHTEST]))


@wp.kernel
def judge_efforts(first: wp.int32, c: Control, changes: wp.array(dtype=wp.float64)):
    """Mark islands whose friction and limited drives in joints hardly change in the direction."""
    w = wp.tid() + first
    if w < c.counts[0]:
        c.has_constant_efforts[w] = wp.where(changes[w] <= ONE, ONE, ZERO)


@wp.kernel
def choose_closing(first: wp.int32, c: Control, exact: wp.int32):
    """Choose the islands whose exact rows are closed: all if solves are `exact` (1), else those that may converge with the
    direction. None without a direction, because the corrections change the multipliers."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    closing = c.flags[SOUND] != 0 and c.converged[w] == 0 and (exact != 0 or c.moved[w] <= c.tolerance[w] * c.length[w])
    c.each[w] = wp.where(closing, ONE, ZERO)
    if closing:
        c.flags[REPEAT] = 1


@wp.kernel
def judge_closing(
    first: wp.int32,
    c: Control,
    errors: wp.array(dtype=wp.float64),
    closed: wp.float64,
    energy: wp.array(dtype=wp.float64),
    before: wp.array(dtype=wp.float64),
    turn: wp.array(dtype=wp.float64),
):
    """Continue the closing of chosen islands with open rows, end it for the others.

    `turn` is the ratio of the residuals' energy to that `before` the last correction, 0 without a correction."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    turn[w] = ZERO
    if c.each[w] != ZERO and errors[w] > closed:
        c.flags[PENDING] = 1
        if before[w] > ZERO:
            turn[w] = energy[w] / before[w]
    else:
        c.each[w] = ZERO
    before[w] = c.each[w] * energy[w]


@wp.kernel
def weigh_correction(
    first: wp.int32,
    c: Control,
    energy: wp.array(dtype=wp.float64),
    product: wp.array(dtype=wp.float64),
    least: wp.float64,
    weight: wp.array(dtype=wp.float64),
):
    """Set the weight of a correction, the energy of the residuals over minus the product of correction and forces.

    The closing of an island ends if this product is not more than `least` of the energy."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    weight[w] = ZERO
    if c.each[w] != ZERO:
        if -product[w] > least * energy[w]:
            weight[w] = -energy[w] / product[w]
        else:
            c.each[w] = ZERO


@wp.kernel
def choose_stretch(first: wp.int32, c: Control):
    """Set `REPEAT` if any direction is stretched: of islands that cannot converge with it."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    if c.converged[w] != 0 or c.moved[w] <= c.tolerance[w] * c.length[w]:
        c.stretch[w] = ONE
    if c.stretch[w] > ONE:
        c.flags[REPEAT] = 1


@wp.kernel
def measure_path(first: wp.int32, c: Control, reach: wp.array(dtype=wp.float64)):
    """Compute the speed of the path from the reach of its first `limit`."""
    w = wp.tid() + first
    if w < c.counts[0]:
        c.speed[w] = reach[w] / c.limit[w]


@wp.kernel
def shorten(first: wp.int32, c: Control, impact: wp.array(dtype=wp.float64)):
    """Limit alpha by the first impact, and start with this limit; set `each` to the reach [m]."""
    w = wp.tid() + first
    if w < c.counts[0]:
        c.limit[w] = wp.min(c.limit[w], impact[w])
        c.alpha[w] = c.limit[w]
        c.each[w] = c.limit[w] * c.speed[w]


TOO_SOFT = wp.constant(wp.float64(shared.TOO_SOFT))
TOO_STIFF = wp.constant(wp.float64(shared.TOO_STIFF))
BLOCKED = wp.constant(wp.float64(shared.BLOCKED))
REDUCTION = wp.constant(wp.float64(shared.REDUCTION))
LARGEST_STRETCH = wp.constant(wp.float64(shared.LARGEST_STRETCH))
NEGLIGIBLE = wp.constant(wp.float64(shared.NEGLIGIBLE))
ROUNDING_SPEED = wp.constant(wp.float64(shared.ROUNDING_SPEED))
BOUND_GROWTH = wp.constant(wp.float64(shared.BOUND_GROWTH))


@wp.func
def within(c: Control, w: wp.int32, speed: wp.float64) -> bool:
    """Return whether a direction of this vertex speed [m/s] and the residual forces end the minimisation of an island."""
    is_balanced = c.residual_bound[w] == ZERO or c.residual[w] <= c.residual_bound[w] or speed <= ROUNDING_SPEED * c.tolerance[w]
    return (speed <= c.tolerance[w] and is_balanced) or wp.max(speed, c.residual[w]) <= c.loose[w]


@wp.kernel
def end_iteration(first: wp.int32, c: Control, errors: wp.array(dtype=wp.float64), has_exact: wp.int32):
    """Update the regularisation with the change of the energy, and mark converged islands.

    errors: of exact rows, -1 for islands without any."""
    w = wp.tid() + first
    if w >= c.counts[0]:
        return
    is_exact = has_exact != 0 and errors[w] >= ZERO
    stretch = c.stretch[w]
    slope = c.slope[w] / stretch
    alpha = c.alpha[w] * stretch
    free = wp.min(c.limit[w] * stretch, ONE)
    predicted = wp.where(alpha < ONE, alpha - HALF * alpha * alpha, HALF) * slope
    is_predicted = predicted < ZERO
    too_soft = is_predicted and (alpha < free or free < BLOCKED or c.change[w] > TOO_SOFT * predicted)
    too_stiff = is_predicted and not too_soft and c.change[w] < TOO_STIFF * predicted
    is_conclusive = not too_stiff or c.regularisation[w] <= NEGLIGIBLE
    if too_soft:
        c.regularisation[w] = ONE
    elif too_stiff:
        c.regularisation[w] = REDUCTION * c.regularisation[w]
    c.stretch[w] = ONE
    c.distance_ratio[w] = wp.where(is_conclusive, ONE, wp.float64(wp.inf))
    if is_predicted and alpha >= ONE:
        curvature = TWO * (alpha * slope - c.change[w]) / (alpha * alpha * slope)
        longer = ONE / wp.max(curvature, ONE / LARGEST_STRETCH)
        if longer > TOO_STIFF and not is_exact:
            c.stretch[w] = longer
        if not is_conclusive and curvature >= ONE / LARGEST_STRETCH:
            c.distance_ratio[w] = wp.max(longer, ONE)
    if c.converged[w] != 0:
        return
    is_stopped = c.alpha[w] > ZERO and c.alpha[w] < BLOCKED
    in_tolerance = c.small[w] != ZERO and c.limit[w] == ONE and not is_stopped
    reached = in_tolerance and within(c, w, c.distance_ratio[w] * c.moved[w] / c.length[w])
    if is_exact and not (errors[w] <= ONE):
        reached = False
    if reached:
        c.converged[w] = 1
        c.reached[w] = c.moved[w] / c.length[w]
        wp.atomic_max(c.at, WORST, c.reached[w])
        return
    if c.moved[w] / c.length[w] <= c.tolerance[w]:
        c.residual_bound[w] = BOUND_GROWTH * c.residual_bound[w]
    c.flags[MOVING] = 1
    if is_exact and in_tolerance:
        wp.atomic_max(c.at, OPEN, errors[w])


@wp.kernel
def gather_numbers(first: wp.int32, c: Control, before: wp.array(dtype=wp.int32), out: wp.array(dtype=vec13)):
    """Gather the numbers of every body's previous island, with the opposite sign those of which islands keep the smallest."""
    b = wp.tid() + first
    k = before[b]
    v = vec13()
    v[0] = wp.float64(-c.converged[k])
    v[1] = wp.float64(c.converged[k])
    v[2] = -c.has_constant_efforts[k]
    v[3] = c.moved[k]
    v[4] = c.regularisation[k]
    v[5] = -c.stretch[k]
    v[6] = c.reached[k]
    v[7] = c.distance_ratio[k]
    v[8] = c.speed[k]
    v[9] = -c.limit[k]
    v[10] = -c.tolerance[k]
    v[11] = -c.loose[k]
    v[12] = c.residual_bound[k]
    out[b] = v


@wp.kernel
def set_numbers(first: wp.int32, c: Control, largest: wp.array(dtype=vec13)):
    """Set the numbers of renumbered islands from the largest ones of their bodies.

    Bodies at rest that a moving island has reached do not move in this direction."""
    i = wp.tid() + first
    if i >= c.counts[0]:
        return
    v = largest[i]
    is_converged = v[0] != ZERO
    c.converged[i] = wp.where(is_converged, 1, 0)
    c.has_constant_efforts[i] = wp.where(is_converged or v[1] == ZERO, -v[2], ZERO)
    c.moved[i] = v[3]
    c.regularisation[i] = v[4]
    c.stretch[i] = -v[5]
    c.reached[i] = v[6]
    c.distance_ratio[i] = v[7]
    c.speed[i] = v[8]
    c.limit[i] = -v[9]
    c.tolerance[i] = -v[10]
    c.loose[i] = -v[11]
    c.residual_bound[i] = v[12]
