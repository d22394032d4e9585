"""Measured rows ``x = sum_t f_t(measure_t)`` and their laws: energies, gradients and blocks, and the gaps of limits.

An *end* is the gradient of a row on one body: ``u = dx/dq_b`` (12,). A row adds ``slope u`` to the gradient of its ends'
bodies and ``curvature u_i u_j^T`` to their blocks, so every block sum is positive semi-definite. Mirrors
``abd/joints/rows/measured_rows.py`` and, for gaps, ``abd/backends/reference/numpy_joints.py``; exact rows:
`cuda_kernels.joints.exact_rows`.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, TINY, ZERO, Pose, set_row
from cuda_kernels.joints.laws import Parameters, aimed, bend, evaluate
from cuda_kernels.joints.measures import Measures, frames
from cuda_kernels.options import OPTIONS
from cuda_kernels.parallel.sums import joined
from cuda_kernels.shared import slots
from cuda_kernels.shared.joints import Law

wp.set_module_options(OPTIONS)
LOADED_FOR = ("joints",)

INFINITE = wp.constant(wp.float64(wp.inf))


@wp.struct
class MeasuredRows:
    """Measured rows R, their terms T and the pieces P of the terms.

    starts (R + 1,): first term of every row; term_measure (T,); piece_starts (T + 1,): first piece of every term;
    starts_at (P,): lower bound of the values of a piece; origin (P,) of its polynomial; coefficients (P, 6), lowest order
    first; law (R,), p (R, 8): laws of this step and their parameters.
    """

    starts: wp.array(dtype=wp.int32)
    term_measure: wp.array(dtype=wp.int32)
    piece_starts: wp.array(dtype=wp.int32)
    starts_at: wp.array(dtype=wp.float64)
    origin: wp.array(dtype=wp.float64)
    coefficients: wp.array2d(dtype=wp.float64)
    law: wp.array(dtype=wp.int32)
    p: wp.array2d(dtype=wp.float64)


@wp.struct
class Ends:
    """Ends E in the order of their rows.

    row, body (E,); of_row (R + 1,): first end of every row; starts (E + 1,) of their entries: 2t for the child's side of
    term t, 2t + 1 for the parent's.
    """

    row: wp.array(dtype=wp.int32)
    body: wp.array(dtype=wp.int32)
    of_row: wp.array(dtype=wp.int32)
    starts: wp.array(dtype=wp.int32)
    entries: wp.array(dtype=wp.int32)


@wp.func
def piece_at(rows: MeasuredRows, t: wp.int32, v: wp.float64) -> wp.int32:
    """Return the last piece of a term that starts at or below v."""
    lo = rows.piece_starts[t]
    hi = rows.piece_starts[t + 1]
    while lo + 1 < hi:
        mid = (lo + hi) // 2
        if rows.starts_at[mid] <= v:
            lo = mid
        else:
            hi = mid
    return lo


@wp.func
def term(rows: MeasuredRows, t: wp.int32, values: wp.array(dtype=wp.float64)) -> wp.vec2d:
    """Return f_t and its derivative at the value of its measure."""
    v = values[rows.term_measure[t]]
    k = piece_at(rows, t, v)
    u = v - rows.origin[k]
    height = ZERO
    slope = ZERO
    for i in range(6):
        slope = slope * u + height
        height = height * u + rows.coefficients[k, 5 - i]
    return wp.vec2d(height, slope)


@wp.func
def row_value(rows: MeasuredRows, e: wp.int32, values: wp.array(dtype=wp.float64)) -> wp.float64:
    """Return the value x of a row."""
    x = ZERO
    for t in range(rows.starts[e], rows.starts[e + 1]):
        x = x + term(rows, t, values)[0]
    return x


@wp.func
def parameters(rows: MeasuredRows, e: wp.int32) -> Parameters:
    """Return the parameters of a row's law."""
    p = Parameters()
    for k in range(slots.COUNT):
        p[k] = rows.p[e, k]
    return p


@wp.kernel
def row_energies(
    first: wp.int32,
    rows: MeasuredRows,
    values: wp.array(dtype=wp.float64),
    x: wp.array(dtype=wp.float64),
    energy: wp.array(dtype=wp.float64),
):
    """Compute the values x and energies psi(x) (R,) of all rows at measured values (m,)."""
    e = wp.tid() + first
    x[e] = row_value(rows, e, values)
    energy[e] = evaluate(rows.law[e], parameters(rows, e), x[e])[0]


@wp.kernel
def row_slopes(
    first: wp.int32,
    rows: MeasuredRows,
    ends: Ends,
    values: wp.array(dtype=wp.float64),
    regularisation: wp.array(dtype=wp.float64),
    x: wp.array(dtype=wp.float64),
    slope: wp.array(dtype=wp.float64),
    curvature: wp.array(dtype=wp.float64),
    weight: wp.array(dtype=wp.float64),
):
    """Compute values x, slopes and curvatures of the laws (R,), and the derivatives of all terms (T,).

    Curvatures include the bodies' `regularisation` (n,) (`abd.joints.rows.laws.evaluate`)."""
    e = wp.tid() + first
    x[e] = row_value(rows, e, values)
    p = parameters(rows, e)
    psi = evaluate(rows.law[e], p, x[e])
    bound_weight = ZERO
    for end in range(ends.of_row[e], ends.of_row[e + 1]):
        bound_weight = wp.max(bound_weight, regularisation[ends.body[end]])
    own = bend(rows.law[e], p, x[e], psi[2])
    slope[e] = psi[1]
    curvature[e] = own + bound_weight * (psi[2] - own)
    for t in range(rows.starts[e], rows.starts[e + 1]):
        weight[t] = term(rows, t, values)[1]


@wp.kernel
def end_gradients(
    first: wp.int32,
    rows: MeasuredRows,
    ends: Ends,
    weight: wp.array(dtype=wp.float64),
    child_gradient: wp.array2d(dtype=wp.float64),
    parent_gradient: wp.array2d(dtype=wp.float64),
    u: wp.array2d(dtype=wp.float64),
):
    """Compute u (E, 12) from the derivatives (m, 12) of the measures; thread (end, entry of q)."""
    i = wp.tid() + first
    end = i // 12
    r = i % 12
    s = ZERO
    for k in range(ends.starts[end], ends.starts[end + 1]):
        t = ends.entries[k] // 2
        m = rows.term_measure[t]
        if ends.entries[k] % 2 == 0:
            s = s + weight[t] * child_gradient[m, r]
        else:
            s = s + weight[t] * parent_gradient[m, r]
    u[end, r] = s


@wp.kernel
def stiffen_sides(
    first: wp.int32,
    rows: MeasuredRows,
    measures: Measures,
    pose: Pose,
    ends: Ends,
    lengths: wp.array(dtype=wp.int32),
    term_row: wp.array(dtype=wp.int32),
    row_count: wp.int32,
    slope: wp.array(dtype=wp.float64),
    weight: wp.array(dtype=wp.float64),
    curvature: wp.array(dtype=wp.float64),
    u: wp.array2d(dtype=wp.float64),
):
    """Set the transverse stiffness ``t/|d| (1 - n n^T)`` of lengths under tension ``t = slope weight scale > 0``.

    Length k of the list fills the ends of rows R + 2k and R + 2k + 1, one for each direction across it.
    """
    k = wp.tid() + first
    t = lengths[k]
    m = rows.term_measure[t]
    _D, _C, d = frames(measures, m, pose)
    size = wp.max(wp.length(d), TINY)
    n = d / size
    tension = slope[term_row[t]] * weight[t] * measures.scale[m]
    axis = wp.vec3d(ONE, ZERO, ZERO)
    if wp.abs(n[0]) > wp.float64(0.6):
        axis = wp.vec3d(ZERO, ONE, ZERO)
    side = wp.normalize(wp.cross(n, axis))
    for j in range(2):
        row = row_count + 2 * k + j
        curvature[row] = wp.max(tension, ZERO) / size
        for end in range(ends.of_row[row], ends.of_row[row + 1]):
            X = measures.parent_point[m]
            f = -side
            if ends.body[end] == measures.child[m]:
                X = measures.child_point[m]
                f = side
            set_row(u, end, f, wp.outer(f, X))
        side = wp.cross(n, side)


@wp.kernel
def add_to_bodies(
    first: wp.int32,
    starts: wp.array(dtype=wp.int32),
    entries: wp.array(dtype=wp.int32),
    ends: Ends,
    slope: wp.array(dtype=wp.float64),
    curvature: wp.array(dtype=wp.float64),
    u: wp.array2d(dtype=wp.float64),
    done: wp.array(dtype=wp.int32),
    gradient: wp.array2d(dtype=wp.float64),
    diagonal: wp.array3d(dtype=wp.float64),
):
    """Add all ends of a body, entries[starts[b] .. starts[b + 1]], to its gradient and block; thread (b, row of q)."""
    i = wp.tid() + first
    b = i // 12
    if done[b] != 0:
        return
    r = i % 12
    g = ZERO
    for k in range(starts[b], starts[b + 1]):
        end = entries[k]
        e = ends.row[end]
        g = g + slope[e] * u[end, r]
        f = curvature[e] * u[end, r]
        for c in range(12):
            diagonal[b, r, c] = diagonal[b, r, c] + f * u[end, c]
    gradient[b, r] = gradient[b, r] + g


@wp.kernel
def pair_blocks(
    first: wp.int32,
    starts: wp.array(dtype=wp.int32),
    entries: wp.array(dtype=wp.vec2i),
    ends: Ends,
    curvature: wp.array(dtype=wp.float64),
    u: wp.array2d(dtype=wp.float64),
    constant: wp.array3d(dtype=wp.float64),
    blocks: wp.array3d(dtype=wp.float64),
):
    """Sum the blocks (k, 12, 12) of body pairs: constant parts, and contributions of the ends of rows between them.

    An entry contains the two ends of one row. One thread per row of a block."""
    i = wp.tid() + first
    pair = i // 12
    r = i % 12
    for c in range(12):
        blocks[pair, r, c] = constant[pair, r, c]
    for k in range(starts[pair], starts[pair + 1]):
        a = entries[k][0]
        b = entries[k][1]
        f = curvature[ends.row[a]] * u[a, r]
        for c in range(12):
            blocks[pair, r, c] = blocks[pair, r, c] + f * u[b, c]


@wp.kernel
def row_gaps(first: wp.int32, rows: MeasuredRows, values: wp.array(dtype=wp.float64), gaps: wp.array(dtype=wp.float64)):
    """Compute the gaps (R,) of the barriers at measured values (m,), infinite for all other rows."""
    e = wp.tid() + first
    gaps[e] = INFINITE
    if rows.law[e] == Law.BARRIER:
        gaps[e] = rows.p[e, slots.SIGN] * (row_value(rows, e, values) - rows.p[e, slots.CENTRE])


@wp.kernel
def open_fractions(
    first: wp.int32,
    rows: MeasuredRows,
    before: wp.array(dtype=wp.float64),
    after: wp.array(dtype=wp.float64),
    kept: wp.float64,
    fractions: wp.array(dtype=wp.float64),
):
    """Compute the fraction (R,) of a step from gaps `before` to `after` that keeps `kept` of every gap or of its width."""
    e = wp.tid() + first
    least = kept * wp.min(before[e], rows.p[e, slots.WIDTH])
    fraction = ONE
    if after[e] < least:
        fraction = wp.float64(0.9) * (before[e] - least) / (before[e] - after[e])
    fractions[e] = fraction


@wp.kernel
def effort_changes(
    first: wp.int32,
    rows: MeasuredRows,
    owner: wp.array(dtype=wp.int32),
    skipped: wp.array(dtype=wp.int32),
    x: wp.array(dtype=wp.float64),
    predicted: wp.array(dtype=wp.float64),
    curvature: wp.array(dtype=wp.float64),
    settled: wp.float64,
    changes: wp.array(dtype=wp.float64),
):
    """Compute the force changes (R,) of friction and of drives with an effort limit from x to the predicted values, and the
    errors of the linear model there, of barriers and of ropes that become slack.

    They are relative to `settled` times the largest force; 0 for other rows, and for rows of skipped owners (R,). Also updates
    the predicted force of friction."""
    e = wp.tid() + first
    changes[e] = ZERO
    if skipped[owner[e]] != 0:
        return
    largest = ZERO
    if rows.law[e] == Law.FRICTION:
        largest = rows.p[e, slots.STRENGTH]
    if rows.law[e] == Law.SATURATED:
        largest = rows.p[e, slots.EFFORT]
    # multipliers move the kinks of exact ropes
    is_stiff = rows.law[e] == Law.BARRIER or (rows.law[e] == Law.ONE_SIDED and rows.p[e, slots.TOLERANCE] == ZERO)
    change = ZERO
    if largest > ZERO or is_stiff:
        p = parameters(rows, e)
        there = evaluate(rows.law[e], p, predicted[e])[1]
        expected = evaluate(rows.law[e], p, x[e])[1]
        if is_stiff:
            largest = wp.max(wp.abs(expected), wp.abs(there))
            expected = expected + curvature[e] * (predicted[e] - x[e])
        if rows.law[e] == Law.ONE_SIDED and there != ZERO:
            # without a release
            expected = there
        change = wp.abs(there - expected) / (settled * wp.max(largest, TINY))
        if rows.law[e] == Law.FRICTION:
            rows.p[e, slots.AIM] = aimed(p, x[e], predicted[e], curvature[e])
    changes[e] = change


@wp.kernel
def fold_into_bodies(
    first: wp.int32,
    starts: wp.array(dtype=wp.int32),
    entries: wp.array(dtype=wp.int32),
    values: wp.array(dtype=wp.float64),
    operation: wp.int32,
    out: wp.array(dtype=wp.float64),
):
    """Compute the sum, minimum or maximum of out[b] and the values of a body's rows, the even entries (2k stands for row k)."""
    b = wp.tid() + first
    v = out[b]
    for k in range(starts[b], starts[b + 1]):
        if entries[k] % 2 == 0:
            v = joined(v, values[entries[k] // 2], operation)
    out[b] = v
