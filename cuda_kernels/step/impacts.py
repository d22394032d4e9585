"""Device version of `abd.potentials.sweeps.swept`: one thread per block, because each pair depends on the one before."""

import warp as wp

from cuda_kernels.bodies.affine import ONE, ZERO
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)

LEAST = wp.constant(wp.float64(1.0e-300))
"""Smallest divisor."""


@wp.struct
class System:
    """A, whose row k is ``value[begin[k]:begin[k + 1]]`` in ascending columns `column`, and its diagonal; factors of `normals`
    pairs, then friction impulses x; powers of the pairs at x, then slips at x = 0."""

    normals: wp.int32
    begin: wp.array(dtype=wp.int32)
    column: wp.array(dtype=wp.int32)
    value: wp.array(dtype=wp.float64)
    diagonal: wp.array(dtype=wp.float64)
    power: wp.array(dtype=wp.float64)
    x: wp.array(dtype=wp.float64)


@wp.func
def set_factor(a: System, k: wp.int32, found: wp.float64) -> wp.float64:
    """Set a factor, update the powers, and return the change."""
    change = found - a.x[k]
    if change != ZERO:
        a.x[k] = found
        for e in range(a.begin[k], a.begin[k + 1]):
            if a.column[e] >= a.normals:
                break
            a.power[a.column[e]] = a.power[a.column[e]] + change * a.value[e]
    return change


@wp.func
def slip_of(a: System, row: wp.int32) -> wp.float64:
    """Return a slip."""
    out = a.power[row]
    for e in range(a.begin[row], a.begin[row + 1]):
        out += a.value[e] * a.x[a.column[e]]
    return out


@wp.func
def sweep_normals(
    a: System, rows: wp.array(dtype=wp.int32), begin: wp.int32, end: wp.int32, low: wp.array(dtype=wp.float64),
    high: wp.array(dtype=wp.float64), size: wp.array(dtype=wp.float64),
) -> wp.float64:  # fmt: skip
    """Sweep the normal impulses of a block once; return the largest change of a normal velocity."""
    largest = wp.float64(0.0)
    for r in range(begin, end):
        k = rows[r]
        free = a.power[k] - a.diagonal[k] * a.x[k]
        found = wp.float64(0.0)
        if free < low[k]:
            found = (low[k] - free) / a.diagonal[k]
        elif free > high[k]:
            found = wp.max((high[k] - free) / a.diagonal[k], -ONE)
        largest = wp.max(largest, wp.abs(set_factor(a, k, found)) * a.diagonal[k] / size[k])
    return largest


@wp.struct
class Cones:
    """Friction of pairs and its arrays as in `abd.potentials.sweeps.ConeRows`."""

    pair: wp.array(dtype=wp.int32)
    limit: wp.array(dtype=wp.float64)
    spent: wp.array(dtype=wp.vec2d)
    before: wp.array(dtype=wp.vec2d)
    direction: wp.array(dtype=wp.vec2d)
    bodies: wp.array(dtype=wp.int64)
    yields: wp.array(dtype=wp.float64)


@wp.func
def friction_of(a: System, cones: Cones, j: wp.int32) -> wp.vec2d:
    """Return the friction impulse of a pair, with that of the step."""
    row = a.normals + 2 * j
    return cones.spent[j] + wp.vec2d(a.x[row], a.x[row + 1])


@wp.func
def limit_of(a: System, cones: Cones, j: wp.int32) -> wp.float64:
    """Return the largest friction impulse of a pair."""
    return cones.limit[j] * (ONE + a.x[cones.pair[j]])


@wp.func
def most_friction(a: System, cones: Cones, j: wp.int32) -> wp.vec2d:
    """Return the largest friction impulse of a pair in the direction of its slip before the impact."""
    return limit_of(a, cones, j) * cones.direction[j]


@wp.func
def opposed_slip(a: System, cones: Cones, row: wp.int32, slip: wp.float64) -> wp.float64:
    """Return a slip if all friction of the two bodies opposed the slip before the impact."""
    for e in range(a.begin[row], a.begin[row + 1]):
        column = a.column[e] - a.normals
        if column >= 0:
            j = column / 2
            if cones.bodies[j] == cones.bodies[(row - a.normals) / 2]:
                most = friction_of(a, cones, j) + most_friction(a, cones, j)
                slip -= a.value[e] * most[column % 2]
    return slip


@wp.func
def sweep_cone(a: System, cones: Cones, j: wp.int32) -> wp.float64:
    """Stop the slip of a pair within Coulomb's cone; return the change of its slip."""
    row = a.normals + 2 * j
    p = wp.vec2d(slip_of(a, row), slip_of(a, row + 1))
    before = cones.before[j]
    change = before - wp.vec2d(opposed_slip(a, cones, row, p[0]), opposed_slip(a, cones, row + 1, p[1]))
    part = wp.clamp(wp.dot(before, change) / wp.max(wp.dot(change, change), LEAST), ZERO, ONE)
    most = most_friction(a, cones, j)
    first = -part * most
    rest = friction_of(a, cones, j) - first - p / wp.max(cones.yields[j], LEAST)
    rest = rest * wp.min(ONE, (ONE - part) * limit_of(a, cones, j) / wp.max(wp.length(rest), LEAST))
    found = first + rest - cones.spent[j]
    by_first = wp.abs(set_factor(a, row, found[0])) * a.diagonal[row]
    return wp.max(by_first, wp.abs(set_factor(a, row + 1, found[1])) * a.diagonal[row + 1])


@wp.kernel
def sweep(
    a: System,
    sweeps: wp.array(dtype=wp.int32),
    with_friction: wp.array(dtype=wp.int32),
    rows: wp.array(dtype=wp.int32),
    first: wp.array(dtype=wp.int32),
    low: wp.array(dtype=wp.float64),
    high: wp.array(dtype=wp.float64),
    size: wp.array(dtype=wp.float64),
    settled: wp.array(dtype=wp.float64),
    first_cone: wp.array(dtype=wp.int32),
    cones: Cones,
):
    """Compute factors x, from 0, of the pairs ``rows[first[b]:first[b + 1]]`` of every block b, and their friction.

    Sweeps `with_friction`, then `sweeps` of the normal impulses, end when no velocity changes by more than `settled`."""
    b = wp.tid()
    for _ in range(with_friction[b]):
        largest = sweep_normals(a, rows, first[b], first[b + 1], low, high, size)
        for j in range(first_cone[b], first_cone[b + 1]):
            largest = wp.max(largest, sweep_cone(a, cones, j))
        if largest <= settled[b]:
            return
    for _ in range(sweeps[b]):
        if sweep_normals(a, rows, first[b], first[b + 1], low, high, size) <= settled[b]:
            return
