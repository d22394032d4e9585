"""Residuals of exact rows, their prediction by the linear model, and updates of their multipliers.

Counterpart of ``abd/backends/reference/numpy_joints.py``; the rows are those of `cuda_kernels.joints.measured_rows`.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, ZERO
from cuda_kernels.joints.measured_rows import Ends, MeasuredRows, row_value
from cuda_kernels.options import OPTIONS
from cuda_kernels.shared import slots
from cuda_kernels.shared.joints import Law

wp.set_module_options(OPTIONS)
LOADED_FOR = ("joints",)


@wp.func
def is_held(rows: MeasuredRows, e: wp.int32) -> wp.bool:
    """Return whether a row is exact and active."""
    law = rows.law[e]
    return rows.p[e, slots.TOLERANCE] > ZERO and (law == Law.QUADRATIC or law == Law.SATURATED or law == Law.ONE_SIDED)


@wp.func
def is_closed(rows: MeasuredRows, e: wp.int32) -> wp.bool:
    """Return whether a row is exact, active and without effort limit, so that a direction can close it."""
    return is_held(rows, e) and rows.law[e] == Law.QUADRATIC


@wp.func
def residual(rows: MeasuredRows, e: wp.int32, x: wp.float64) -> wp.float64:
    """Return the residual along x: x - target; for one-sided rows the smaller one of the gap and lambda / K."""
    if rows.law[e] == Law.ONE_SIDED:
        sign = rows.p[e, slots.SIGN]
        bound = rows.p[e, slots.BOUND]
        return sign * wp.min(sign * (x - bound), sign * (rows.p[e, slots.CENTRE] - bound))
    return x - rows.p[e, slots.TARGET]


@wp.func
def has_body_left(ends: Ends, done: wp.array(dtype=wp.int32), e: wp.int32) -> bool:
    """Return whether a row has a body that is not done."""
    for end in range(ends.of_row[e], ends.of_row[e + 1]):
        if done[ends.body[end]] == 0:
            return True
    return False


@wp.kernel
def row_errors(
    first: wp.int32,
    rows: MeasuredRows,
    ends: Ends,
    done: wp.array(dtype=wp.int32),
    values: wp.array(dtype=wp.float64),
    errors: wp.array(dtype=wp.float64),
):
    """Compute the residuals (R,) of the exact rows over their tolerances at measured values (m,).

    They are 0 for drives at their effort limit and for rows whose bodies are all done, -1 for rows that are not exact."""
    e = wp.tid() + first
    error = wp.where(is_held(rows, e), ZERO, -ONE)
    if is_held(rows, e) and has_body_left(ends, done, e):
        x = row_value(rows, e, values)
        force = rows.p[e, slots.STRENGTH] * wp.abs(x - rows.p[e, slots.CENTRE])
        if rows.law[e] != Law.SATURATED or force < rows.p[e, slots.EFFORT]:
            error = wp.abs(residual(rows, e, x)) / rows.p[e, slots.TOLERANCE]
    errors[e] = error


@wp.kernel
def predicted_errors(
    first: wp.int32,
    rows: MeasuredRows,
    ends: Ends,
    done: wp.array(dtype=wp.int32),
    predicted: wp.array(dtype=wp.float64),
    errors: wp.array(dtype=wp.float64),
    energies: wp.array(dtype=wp.float64),
):
    """Compute predicted residuals C (R,), over their tolerances, of the exact rows without an effort limit, and ``K C^2``.

    Both are 0 for other rows, and for rows whose bodies are all done."""
    e = wp.tid() + first
    error = ZERO
    energy = ZERO
    if is_closed(rows, e) and has_body_left(ends, done, e):
        C = predicted[e] - rows.p[e, slots.TARGET]
        error = wp.abs(C) / rows.p[e, slots.TOLERANCE]
        energy = rows.p[e, slots.STRENGTH] * C * C
    errors[e] = error
    energies[e] = energy


@wp.kernel
def row_predictions(
    first: wp.int32,
    ends: Ends,
    u: wp.array2d(dtype=wp.float64),
    direction: wp.array2d(dtype=wp.float64),
    x: wp.array(dtype=wp.float64),
    predicted: wp.array(dtype=wp.float64),
):
    """Compute the values (R,) of the rows by the linear model at the end of a direction (n, 12)."""
    e = wp.tid() + first
    v = x[e]
    for end in range(ends.of_row[e], ends.of_row[e + 1]):
        for r in range(12):
            v = v + u[end, r] * direction[ends.body[end], r]
    predicted[e] = v


@wp.kernel
def update_multipliers(
    first: wp.int32,
    rows: MeasuredRows,
    owner: wp.array(dtype=wp.int32),
    skipped: wp.array(dtype=wp.int32),
    x: wp.array(dtype=wp.float64),
    predicted: wp.array(dtype=wp.float64),
):
    """Update lambda += K C in all exact rows, where C is the residual of the values predicted by the linear model about x.

    The shift of the law's centre is ``a -= C``, within the effort limit of drives. One-sided rows have a multiplier of one sign,
    0 if they exert no force in the model. Rows of skipped owners (R,) keep theirs.
    """
    e = wp.tid() + first
    if skipped[owner[e]] != 0:
        return
    if is_held(rows, e):
        a = rows.p[e, slots.CENTRE] - residual(rows, e, predicted[e])
        if rows.law[e] == Law.SATURATED:
            reach = rows.p[e, slots.EFFORT] / rows.p[e, slots.STRENGTH]
            a = wp.clamp(a, rows.p[e, slots.TARGET] - reach, rows.p[e, slots.TARGET] + reach)
        if rows.law[e] == Law.ONE_SIDED and rows.p[e, slots.SIGN] * (x[e] - rows.p[e, slots.CENTRE]) >= ZERO:
            a = rows.p[e, slots.BOUND]
        rows.p[e, slots.CENTRE] = a


@wp.kernel
def step_multipliers(
    first: wp.int32,
    rows: MeasuredRows,
    owner: wp.array(dtype=wp.int32),
    predicted: wp.array(dtype=wp.float64),
    island: wp.array(dtype=wp.int32),
    weight: wp.array(dtype=wp.float64),
    turn: wp.array(dtype=wp.float64),
    change: wp.array(dtype=wp.float64),
):
    """Set change = C + turn change and a -= weight change in the exact rows without an effort limit.

    C is the predicted residual; `weight` and `turn` are numbers of the owners' islands."""
    e = wp.tid() + first
    if is_closed(rows, e):
        i = island[owner[e]]
        C = predicted[e] - rows.p[e, slots.TARGET]
        if turn[i] != ZERO:
            C = C + turn[i] * change[e]
        change[e] = C
        rows.p[e, slots.CENTRE] = rows.p[e, slots.CENTRE] - weight[i] * C


@wp.kernel
def held_forces(
    first: wp.int32,
    rows: MeasuredRows,
    x: wp.array(dtype=wp.float64),
    slope: wp.array(dtype=wp.float64),
):
    """Compute ``K (x - target)`` of the exact rows without an effort limit, 0 for all others."""
    e = wp.tid() + first
    s = ZERO
    if is_closed(rows, e):
        s = rows.p[e, slots.STRENGTH] * (x[e] - rows.p[e, slots.TARGET])
    slope[e] = s


@wp.kernel
def forces_to_bodies(
    first: wp.int32,
    starts: wp.array(dtype=wp.int32),
    entries: wp.array(dtype=wp.int32),
    ends: Ends,
    slope: wp.array(dtype=wp.float64),
    u: wp.array2d(dtype=wp.float64),
    skipped: wp.array(dtype=wp.int32),
    gradient: wp.array2d(dtype=wp.float64),
):
    """Add slope u of all ends of a body, entries[starts[b] .. starts[b + 1]], to its gradient, unless it is skipped."""
    b = wp.tid() + first
    if skipped[b] != 0:
        return
    for k in range(starts[b], starts[b + 1]):
        end = entries[k]
        s = slope[ends.row[end]]
        for r in range(12):
            gradient[b, r] = gradient[b, r] + s * u[end, r]
