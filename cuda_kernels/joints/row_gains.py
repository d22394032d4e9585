"""By how much the energy of joint rows grew in a step; mirrors ``abd/joints/rows/gains.py``."""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ZERO, Pose
from cuda_kernels.bodies.integrators import FRESH
from cuda_kernels.joints import slots
from cuda_kernels.joints.laws import GIVEN, OFF, QUADRATIC, SINE, evaluate, is_limit
from cuda_kernels.joints.measured_rows import MeasuredRows, parameters, row_value
from cuda_kernels.joints.row_laws import EXACT, FOLLOWS, LIGHT, STORING, RowLaws, has
from cuda_kernels.joints.row_memory import Memory
from cuda_kernels.joints.rows import Rows, residual

wp.set_module_options({"enable_backward": False, "max_unroll": 4})
LOADED_FOR = ("joints",)

FAR = wp.constant(wp.float64(1.0e3))
ENDLESS = wp.constant(wp.float64(wp.inf))


@wp.func
def gain_of(
    row_laws: RowLaws, rows: MeasuredRows, memory: Memory, fresh: wp.bool, e: wp.int32, values: wp.array(dtype=wp.float64),
    per: wp.float64, ch2: wp.float64,
) -> wp.float64:
    law = rows.law[e]
    p = parameters(rows, e)
    if law == OFF or is_limit(law):
        return ZERO
    if p[slots.STRENGTH] == ZERO and law != GIVEN:
        return ZERO
    if law != QUADRATIC and law != SINE:
        return ENDLESS
    damped = row_laws.damping[e] > ZERO
    if has(row_laws, e, FOLLOWS) or memory.target[e] != row_laws.target[e] or memory.rate[e] != row_laws.rate[e]:
        return ENDLESS
    if damped and row_laws.rate[e] != ZERO:
        return ENDLESS
    before = memory.history[0, e]
    if has(row_laws, e, EXACT):
        if wp.abs(before - p[slots.TARGET]) <= FAR * row_laws.tolerance[e]:
            return ZERO
        return ENDLESS
    if not has(row_laws, e, STORING) or (damped and not has(row_laws, e, LIGHT)):
        return ENDLESS
    after = row_value(rows, e, values)
    way = after - before
    mean = HALF * (after + before) - row_laws.target[e]
    if law == QUADRATIC:
        held = mean
        if fresh:
            held = after - row_laws.target[e]
        pull = row_laws.mass_stiffness[e] / ch2 * held + row_laws.stiffness[e] * mean
        return way * pull + row_laws.damping[e] * per * way * way
    if fresh:
        return evaluate(law, p, after)[1] * way / ch2 - HALF * row_laws.stiffness[e] * way * way
    return (evaluate(law, p, after)[0] - evaluate(law, p, before)[0]) / ch2


@wp.kernel
def row_gains(
    first: wp.int32,
    row_laws: RowLaws,
    rows: MeasuredRows,
    memory: Memory,
    values: wp.array(dtype=wp.float64),
    weights: wp.array3d(dtype=wp.float64),
    mode: wp.array(dtype=wp.int32),
    of: wp.array(dtype=wp.int32),
    scale: wp.array(dtype=wp.float64),
    gain: wp.array(dtype=wp.float64),
):
    """gain (R,) [J] in the step that ends at measured values (m,), infinite where there is no potential, by the bodies' modes
    (n,); weights and `scale` as `set_laws` has them."""
    e = wp.tid() + first
    child = row_laws.child[e]
    gain[e] = gain_of(row_laws, rows, memory, mode[child] == FRESH, e, values, weights[of[child], 0, 7], scale[child])


@wp.func
def linear_gain(rows: Rows, e: wp.int32, before: Pose, after: Pose, ch2: wp.float64, fresh: wp.bool) -> wp.float64:
    """Of a linear row [J] between two poses, in a `FRESH` step or in another one."""
    if rows.exact[e] == 1:
        return ZERO
    old = residual(rows, e, before)
    new = residual(rows, e, after)
    mean = HALF * (new + old)
    if fresh:
        mean = new
    return wp.dot(wp.cw_mul(rows.K[e], new - old), mean) / ch2
