"""History of measured rows between steps, and the laws of a step.

Counterpart of `JointSystem.laws` and `JointSystem.remember` of ``abd/joints/rows/system.py``, and the energies and works of
``abd/joints/rows/forces.py``.
"""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, ZERO
from cuda_kernels.joints import laws
from cuda_kernels.joints.laws import evaluate, is_limit
from cuda_kernels.joints.measured_rows import MeasuredRows, parameters, row_value
from cuda_kernels.joints.measures import Measures, is_angle
from cuda_kernels.joints.row_laws import (
    ACTIVE,
    ARMATURE,
    DRIVEN,
    ELASTIC,
    EXACT,
    FOLLOWS,
    GAP,
    LIMIT,
    LOSING,
    METRES,
    MOVING,
    RADIANS,
    RESOLVED,
    TURNING,
    RowLaws,
    has,
    least_mode,
    stiffness_weight,
)
from cuda_kernels.joints.rows import Rows
from cuda_kernels.options import OPTIONS
from cuda_kernels.parallel.chunks import CHUNK, item
from cuda_kernels.shared import joints as shared
from cuda_kernels.shared import slots
from cuda_kernels.shared.bodies import PER_H, RATE_NEW, RATE_OLD, REST_BEFORE, REST_NOW, REST_RATE
from cuda_kernels.shared.joints import Law

wp.set_module_options(OPTIONS)
LOADED_FOR = ("joints",)

REACH = wp.constant(wp.float64(shared.REACH))
WIDEST = wp.constant(wp.float64(1.0e300))
ROW_SUMS = 3
"""energy; work of drives; work of friction and damping: then the largest residuals [m], [rad]."""


@wp.struct
class Memory:
    """History of the rows.

    history (6, R): values after the last two steps and their rates, forces that do work, and widths of barriers;
    multiplier (R,); law (R,) and p (R, 8) of the last step; target, rate (R,): those of the present step."""

    history: wp.array2d(dtype=wp.float64)
    multiplier: wp.array(dtype=wp.float64)
    law: wp.array(dtype=wp.int32)
    p: wp.array2d(dtype=wp.float64)
    target: wp.array(dtype=wp.float64)
    rate: wp.array(dtype=wp.float64)


SMALLEST_WIDTH = wp.constant(wp.float64(shared.SMALLEST_WIDTH))


@wp.func
def next_width(width: wp.float64, distance: wp.float64, before: wp.float64, after: wp.float64) -> wp.float64:
    """Return the width of a barrier after a step from one gap to another (`abd.joints.rows.system.next_widths`)."""
    if after >= distance:
        return distance
    if after < width and before > width:
        return wp.max(after, SMALLEST_WIDTH * distance)
    return width


@wp.kernel
def row_values(
    first: wp.int32,
    rows: MeasuredRows,
    values: wp.array(dtype=wp.float64),
    history: wp.array2d(dtype=wp.float64),
):
    """Set the last values of all rows from measured values (m,)."""
    e = wp.tid() + first
    history[slots.VALUE, e] = row_value(rows, e, values)


@wp.kernel
def set_laws(
    first: wp.int32,
    row_laws: RowLaws,
    memory: Memory,
    weights: wp.array3d(dtype=wp.float64),
    mode: wp.array(dtype=wp.int32),
    of: wp.array(dtype=wp.int32),
    scale: wp.array(dtype=wp.float64),
    slow: wp.float64,
    rows: MeasuredRows,
):
    """Set the laws (R,) and parameters (R, 8) of a step.

    weights (s, 3, 10) of the schemes, `of` (n,) the scheme of every body; mode (n,) of the bodies; scale (n,) = c h^2 [s^2];
    slow: speed below which friction is static."""
    e = wp.tid() + first
    ch2 = scale[row_laws.child[e]]
    w = weights[of[row_laws.child[e]], least_mode(row_laws, mode, e)]
    law = row_laws.law[e]
    now = memory.history[slots.VALUE, e]
    before = memory.history[slots.BEFORE, e]
    held_multiplier = memory.multiplier[e]
    per_step = w[RATE_NEW]  # d(velocity)/dx
    last = w[REST_NOW] * now + w[REST_BEFORE] * before + w[REST_RATE] * memory.history[slots.RATE, e]
    ahead = last + memory.rate[e] / per_step
    target = memory.target[e]
    if has(row_laws, e, TURNING):
        target = wp.clamp(target, now - REACH, now + REACH)
    if has(row_laws, e, FOLLOWS):
        target = now
    if has(row_laws, e, MOVING):
        target = ahead
    damped = ch2 * row_laws.damping[e] * per_step
    elastic = row_laws.mass_stiffness[e] + ch2 * stiffness_weight(row_laws, mode, e) * row_laws.stiffness[e]
    K = elastic + damped
    centre = target
    if K > ZERO:
        centre = (elastic * target + damped * ahead) / K
    p = laws.Parameters()
    p[slots.STRENGTH] = K
    p[slots.CENTRE] = centre
    p[slots.TARGET] = centre
    held = has(row_laws, e, EXACT) and K > ZERO
    if held:
        p[slots.CENTRE] = centre - ch2 * held_multiplier / K
    if law == Law.SATURATED:
        p[slots.EFFORT] = ch2 * wp.min(row_laws.effort[e], WIDEST)
    if is_limit(law):
        bound = row_laws.bound[e]
        sign = row_laws.sign[e]
        p[slots.STRENGTH] = elastic
        p[slots.CENTRE] = bound
        p[slots.SIGN] = sign
        p[slots.WIDTH] = row_laws.distance[e]
        # damping acts on the displacement since the last state, whose rate is 1 / h
        p[slots.DAMPING] = ch2 * row_laws.damping[e] * w[PER_H]
        p[slots.LAST_GAP] = sign * (now - bound)
        p[slots.BOUND] = bound
        if held:
            p[slots.CENTRE] = bound + sign * ch2 * held_multiplier / elastic
    if law == Law.FRICTION:
        p[slots.STRENGTH] = ch2 * row_laws.effort[e]
        p[slots.CENTRE] = last
        p[slots.SMOOTHING] = slow / per_step
        p[slots.AIM] = last + memory.history[slots.RATE, e] / per_step
    if law == Law.LINEAR:
        p[slots.STRENGTH] = ch2 * wp.clamp(target, -row_laws.effort[e], row_laws.effort[e])
    if has(row_laws, e, ARMATURE):
        # inertia times the acceleration, by the same differences
        last_rate = w[REST_NOW] * memory.history[slots.RATE, e] + w[REST_BEFORE] * memory.history[slots.RATE_BEFORE, e]
        inertial = last + last_rate / per_step
        # a step without history has one acceleration
        per_rate = wp.where(w[REST_RATE] > ZERO, w[PER_H], per_step)
        p[slots.STRENGTH] = p[slots.STRENGTH] * ch2 * per_step * per_rate
        p[slots.CENTRE] = inertial
        p[slots.TARGET] = inertial
    if has(row_laws, e, EXACT):
        p[slots.TOLERANCE] = row_laws.tolerance[e]
    if law == Law.GIVEN:
        # inputs of the user's function; the host sets the other parameters
        p[slots.PER_STEP] = per_step
        p[slots.LAST] = last
        p[slots.BEGIN] = now
    if law == Law.BARRIER:
        p[slots.WIDTH] = memory.history[slots.BARRIER_WIDTH, e]
        # the force at a given fraction of the width is constant
        p[slots.STRENGTH] = p[slots.STRENGTH] * row_laws.distance[e] / memory.history[slots.BARRIER_WIDTH, e]
    if not has(row_laws, e, ACTIVE):
        law = Law.OFF
    rows.law[e] = law
    for slot in range(slots.COUNT):
        rows.p[e, slot] = p[slot]


@wp.kernel
def mark_limited(
    first: wp.int32,
    row_laws: RowLaws,
    rows: MeasuredRows,
    values: wp.array(dtype=wp.float64),
    flags: wp.array(dtype=wp.int32),
):
    """Set 1 for both bodies of every limit with a force at measured values (m,)."""
    e = wp.tid() + first
    if is_limit(rows.law[e]):
        if evaluate(rows.law[e], parameters(rows, e), row_value(rows, e, values))[1] != ZERO:
            flags[row_laws.child[e]] = 1
            if row_laws.parent[e] >= 0:
                flags[row_laws.parent[e]] = 1


@wp.kernel
def mark_turned(
    first: wp.int32,
    measures: Measures,
    values: wp.array(dtype=wp.float64),
    limit: wp.float64,
    flags: wp.array(dtype=wp.int32),
):
    """Set 1 for both bodies of every angle that has changed by more than `limit` in the step."""
    e = wp.tid() + first
    if is_angle(measures.kind[e]):
        if wp.abs(values[e] - measures.reference[e]) > limit:
            flags[measures.child[e]] = 1
            if measures.parent[e] >= 0:
                flags[measures.parent[e]] = 1


@wp.kernel
def find_closed(
    first: wp.int32, rows: MeasuredRows, history: wp.array2d(dtype=wp.float64), found: wp.array(dtype=wp.int32)
):
    """Lower found[0] to the first barrier row whose gap is not positive."""
    e = wp.tid() + first
    if rows.law[e] == Law.BARRIER and rows.p[e, slots.SIGN] * (history[slots.VALUE, e] - rows.p[e, slots.CENTRE]) <= ZERO:
        wp.atomic_min(found, 0, e)


@wp.kernel
def remember(
    first: wp.int32,
    row_laws: RowLaws,
    rows: MeasuredRows,
    values: wp.array(dtype=wp.float64),
    weights: wp.array3d(dtype=wp.float64),
    mode: wp.array(dtype=wp.int32),
    of: wp.array(dtype=wp.int32),
    scale: wp.array(dtype=wp.float64),
    memory: Memory,
    count: wp.int32,
    across: wp.int32,
    partial: wp.array2d(dtype=wp.float64),
):
    """Update the history after a step that ended at measured values (m,), and sum the statistics of the rows (`ROW_SUMS`).

    Work uses the forces at the end of a step of implicit Euler, and the mean of both ends in other steps
    (`abd.joints.rows.forces.row_work`).
    """
    chunk = wp.tid() + first
    energy = ZERO
    driven = ZERO
    lost = ZERO
    metres = ZERO
    radians = ZERO
    for k in range(CHUNK):
        e = item(chunk, k, count, across)
        if e < count:
            x = row_value(rows, e, values)
            law = rows.law[e]
            p = parameters(rows, e)
            ch2 = scale[row_laws.child[e]]
            if has(row_laws, e, RESOLVED):
                # with the full stiffness
                more = (ONE - stiffness_weight(row_laws, mode, e)) * ch2 * row_laws.stiffness[e]
                K = p[slots.STRENGTH] + more
                p[slots.CENTRE] = (p[slots.STRENGTH] * p[slots.CENTRE] + more * row_laws.target[e]) / K
                p[slots.TARGET] = p[slots.CENTRE]
                p[slots.STRENGTH] = K
            now = memory.history[slots.VALUE, e]
            before = memory.history[slots.BEFORE, e]
            w = weights[of[row_laws.child[e]], least_mode(row_laws, mode, e)]
            rate = w[RATE_NEW] * (x - now - w[REST_RATE] * memory.history[slots.RATE, e]) + w[RATE_OLD] * (before - now)

            carried = p[slots.TARGET] - p[slots.CENTRE]
            if row_laws.law[e] == Law.ONE_SIDED:
                carried = row_laws.sign[e] * (p[slots.CENTRE] - p[slots.BOUND])
            multiplier = ZERO
            if has(row_laws, e, EXACT) and has(row_laws, e, ACTIVE):
                multiplier = p[slots.STRENGTH] * carried / ch2
            memory.multiplier[e] = multiplier
            if is_limit(row_laws.law[e]):
                sign = row_laws.sign[e]
                bound = row_laws.bound[e]
                memory.history[slots.BARRIER_WIDTH, e] = next_width(
                    memory.history[slots.BARRIER_WIDTH, e], row_laws.distance[e], sign * (now - bound), sign * (x - bound)
                )
            memory.history[slots.RATE_BEFORE, e] = memory.history[slots.RATE, e]
            memory.history[slots.RATE, e] = rate
            memory.history[slots.BEFORE, e] = now
            memory.history[slots.VALUE, e] = x
            memory.law[e] = law
            for slot in range(slots.COUNT):
                memory.p[e, slot] = p[slot]

            off_target = x - row_laws.target[e]
            force = -evaluate(law, p, x)[1] / ch2
            kept = ZERO
            if has(row_laws, e, ELASTIC) and law != Law.OFF:
                stiffness = row_laws.mass_stiffness[e] / ch2 + row_laws.stiffness[e]
                energy = energy + HALF * stiffness * off_target * off_target
                kept = -stiffness * off_target
            if has(row_laws, e, LIMIT) and law != Law.OFF:
                undamped = p
                undamped[slots.DAMPING] = ZERO
                pushed = evaluate(law, undamped, x)
                energy = energy + pushed[0] / ch2
                kept = kept - pushed[1] / ch2
            if has(row_laws, e, ARMATURE) and law != Law.OFF:
                energy = energy + HALF * row_laws.mass_stiffness[e] * rate * rate
            pushes = force - kept
            acted = pushes
            if w[RATE_OLD] != ZERO:
                acted = HALF * (memory.history[slots.WORKING, e] + pushes)
            memory.history[slots.WORKING, e] = pushes
            work = acted * (x - now)
            if has(row_laws, e, DRIVEN):
                driven = driven + work
            if has(row_laws, e, LOSING):
                lost = lost + work

            deviation = wp.abs(off_target)
            if has(row_laws, e, GAP):
                deviation = wp.max(ZERO, row_laws.sign[e] * (row_laws.bound[e] - x))
            if has(row_laws, e, METRES):
                metres = wp.max(metres, deviation)
            if has(row_laws, e, RADIANS):
                radians = wp.max(radians, deviation)
    partial[0, chunk] = energy
    partial[1, chunk] = driven
    partial[2, chunk] = lost
    partial[3, chunk] = metres
    partial[4, chunk] = radians


@wp.kernel
def keep_multipliers(
    first: wp.int32, rows: Rows, scale: wp.array(dtype=wp.float64), multiplier: wp.array(dtype=wp.vec3d)
):
    """Compute the forces (l,) of the exact linear rows at the end of a step of c h^2 (n,), 0 for the others."""
    e = wp.tid() + first
    f = wp.vec3d()
    if rows.exact[e] == 1:
        f = -wp.cw_mul(rows.K[e], rows.shift[e]) / scale[rows.child[e]]
    multiplier[e] = f


@wp.kernel
def set_shifts(first: wp.int32, rows: Rows, scale: wp.array(dtype=wp.float64), multiplier: wp.array(dtype=wp.vec3d)):
    """Set the shifts of the linear rows at the beginning of a step of c h^2 (n,), from the forces (l,) of the last one."""
    e = wp.tid() + first
    a = wp.vec3d()
    if rows.exact[e] == 1:
        for r in range(3):
            if rows.K[e][r] > ZERO:
                a[r] = -scale[rows.child[e]] * multiplier[e][r] / rows.K[e][r]
    rows.shift[e] = a
