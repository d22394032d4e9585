"""Statistics of a state: energies, momenta, errors; sums and largest values of many items in a fixed order.

A thread processes the items of a chunk (`cuda_kernels.parallel.chunks.item`). It writes one number per quantity to
``partial[quantity, chunk]``, sums first, then largest values; `fold` reduces these to one. The number of contacts is on the
device: launches may cover more, with the same sums.
"""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, ZERO, Pose, axial, farthest, map_of, triple
from cuda_kernels.bodies.bodies import BodyData, StepData, elastic_energy
from cuda_kernels.contact.pair_law import PairLaw, activation
from cuda_kernels.contact.surfaces import CandidateList
from cuda_kernels.joints.rows import Rows, residual
from cuda_kernels.options import OPTIONS
from cuda_kernels.parallel.chunks import CHUNK, item
from cuda_kernels.shared.bodies import Kind, Mode, Motion

wp.set_module_options(OPTIONS)

SMALLEST_VALUE = wp.constant(wp.float64(-wp.inf))
"""Largest value of an empty set."""

BODY_FIGURES = 13
BodyFigures = wp.types.vector(length=BODY_FIGURES, dtype=wp.float64)
BODY_SUMS = 10
"""kinetic; linear momentum, 3; angular momentum, 3; gravity; elastic; work: then strain, residual force, |dA/dt|, |L| / J_mid."""
ROW_SUMS = 1
"""energy: then the largest residuals [m], [rad]."""
CONTACT_SUMS = 2
"""energy; active contacts: then the smallest gap, and that of active contacts, both negative."""

TURNED = wp.constant(8)
"""Bit in the code of a linear row whose residual is an angle; 1, 2 and 4 are the components included."""


@wp.func
def strain_of(A: wp.mat33d) -> wp.float64:
    """|A A^T - 1|_F."""
    G = A * wp.transpose(A)
    s = ZERO
    for r in range(3):
        for c in range(3):
            e = G[r, c]
            if r == c:
                e = e - ONE
            s = s + e * e
    return wp.sqrt(s)


@wp.func
def column(m: wp.mat33d, c: wp.int32) -> wp.vec3d:
    return wp.vec3d(m[0, c], m[1, c], m[2, c])


@wp.kernel
def body_statistics(
    first: wp.int32,
    body: BodyData,
    step: StepData,
    pose: Pose,
    before: Pose,
    earlier: wp.array2d(dtype=wp.float64),
    velocity: wp.array2d(dtype=wp.float64),
    scheme: wp.array(dtype=wp.int32),
    motions: wp.array3d(dtype=wp.float64),
    gradient: wp.array2d(dtype=wp.float64),
    count: wp.int32,
    across: wp.int32,
    partial: wp.array2d(dtype=wp.float64),
):
    """Compute sums over the dynamic bodies (`BODY_SUMS`), and largest values of all bodies.

    The work is that of the present forces and torques along the path from `before`, with rates `earlier` there
    (`abd.energies.external_work`). Largest values are the strain, the gradient of the centre of mass, and |dA/dt|_F."""
    chunk = wp.tid() + first
    s = BodyFigures()
    for k in range(CHUNK):
        b = item(chunk, k, count, across)
        if b < count:
            A = pose.A[b]
            D = map_of(velocity, b)
            s[10] = wp.max(s[10], strain_of(A))
            for r in range(3):
                s[11] = wp.max(s[11], wp.abs(gradient[b, r]) / step.ch2[b])
            s[12] = wp.max(s[12], wp.sqrt(wp.ddot(D, D)))
            if body.kind[b] == Kind.DYNAMIC:
                m = body.mass[b]
                moment = body.moment[b]
                p = pose.p[b]
                v = triple(velocity, b, 0)
                spin = m * wp.cross(p, v)
                energy = m * wp.dot(v, v)
                for c in range(3):
                    d = column(D, c)
                    energy = energy + moment[c] * wp.dot(d, d)
                    spin = spin + moment[c] * wp.cross(column(A, c), d)
                s[0] = s[0] + HALF * energy
                for r in range(3):
                    s[1 + r] = s[1 + r] + m * v[r]
                    s[4 + r] = s[4 + r] + spin[r]
                s[7] = s[7] - m * wp.dot(p, step.gravity)
                s[8] = s[8] + elastic_energy(body.stiffness[b], body.arap[b], A)
                work = wp.dot(body.force[b], p - before.p[b])
                tau = body.torque[b]
                # excluded bodies keep a rate, but do not turn
                if wp.dot(tau, tau) > ZERO and step.held[b] == 0:
                    w = axial(D * wp.inverse(A)) + axial(map_of(earlier, b) * wp.inverse(before.A[b]))
                    work = work + HALF * motions[scheme[b], Mode.SMOOTH, Motion.STEP] * wp.dot(tau, w)
                s[9] = s[9] + work
    for q in range(BODY_FIGURES):
        partial[q, chunk] = s[q]


@wp.kernel
def row_statistics(
    first: wp.int32,
    rows: Rows,
    code: wp.array(dtype=wp.int32),
    pose: Pose,
    ch2: wp.array(dtype=wp.float64),
    count: wp.int32,
    across: wp.int32,
    partial: wp.array2d(dtype=wp.float64),
):
    """Compute the energy of the linear rows that are not exact, with c h^2 of bodies (n,), and the largest residuals [m] and
    [rad] of those with a nonzero `code` (l,); see `TURNED`."""
    chunk = wp.tid() + first
    energy = ZERO
    metres = ZERO
    radians = ZERO
    for k in range(CHUNK):
        e = item(chunk, k, count, across)
        if e < count:
            F = residual(rows, e, pose)
            if rows.exact[e] == 0:
                energy = energy + HALF * wp.dot(wp.cw_mul(rows.K[e], F), F) / ch2[rows.child[e]]
            square = ZERO
            for r in range(3):
                if (code[e] >> r) % 2 == 1:
                    square = square + F[r] * F[r]
            if code[e] >= TURNED:
                radians = wp.max(radians, wp.sqrt(square))
            else:
                metres = wp.max(metres, wp.sqrt(square))
    partial[0, chunk] = energy
    partial[1, chunk] = metres
    partial[2, chunk] = radians


@wp.kernel
def contact_statistics(
    first: wp.int32,
    candidates: CandidateList,
    energy: wp.array(dtype=wp.float64),
    gap: wp.array(dtype=wp.float64),
    between: PairLaw,
    scale: wp.array(dtype=wp.float64),
    count: wp.int32,
    across: wp.int32,
    partial: wp.array2d(dtype=wp.float64),
):
    """Compute the energy of the candidates over the `scale` of bodies (n,), the number of active ones, and the negative smallest
    gaps [m] of all and of active ones; those of inactive ones may be lower bounds."""
    chunk = wp.tid() + first
    listed = wp.min(count, candidates.counts[1])
    total = ZERO
    active = ZERO
    closest = SMALLEST_VALUE
    touching = SMALLEST_VALUE
    pair = wp.int32(-1)
    bodies = wp.vec2i()
    unit = ZERO
    for k in range(CHUNK):
        e = item(chunk, k, listed, across)
        if e < listed:
            if candidates.items[e][0] != pair:
                pair = candidates.items[e][0]
                bodies = candidates.pairs[pair]
                unit = activation(between, bodies[0], bodies[1])
            total = total + energy[e] / scale[bodies[0]]
            length = gap[e] * unit
            closest = wp.max(closest, -length)
            if gap[e] < ONE:
                active = active + ONE
                touching = wp.max(touching, -length)
    partial[0, chunk] = total
    partial[1, chunk] = active
    partial[2, chunk] = closest
    partial[3, chunk] = touching


@wp.kernel
def value_statistics(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    values: wp.array(dtype=wp.float64),
    count: wp.int32,
    across: wp.int32,
    partial: wp.array2d(dtype=wp.float64),
):
    """Compute the sum of the values, counts[1] of them."""
    chunk = wp.tid() + first
    listed = wp.min(count, counts[1])
    total = ZERO
    for k in range(CHUNK):
        e = item(chunk, k, listed, across)
        if e < listed:
            total = total + values[e]
    partial[0, chunk] = total


@wp.kernel
def fold(
    first: wp.int32,
    values: wp.array2d(dtype=wp.float64),
    count: wp.int32,
    sums: wp.int32,
    chunks: wp.int32,
    row: wp.int32,
    out: wp.array2d(dtype=wp.float64),
):
    """Reduce the chunk c of ``values[q, : count]`` to ``out[row + q, c]``: sums of the first quantities, then largest values."""
    i = wp.tid() + first
    q = i // chunks
    c = i % chunks
    v = values[q, c * CHUNK]
    for k in range(c * CHUNK + 1, wp.min(count, (c + 1) * CHUNK)):
        if q < sums:
            v = v + values[q, k]
        else:
            v = wp.max(v, values[q, k])
    out[row + q, c] = v


@wp.kernel
def mark_touching(
    first: wp.int32,
    candidates: CandidateList,
    gap: wp.array(dtype=wp.float64),
    touching: wp.array(dtype=wp.int32),
):
    """Set 1 for both bodies of every pair with an active candidate."""
    k = wp.tid() + first
    if k >= candidates.counts[0]:
        return
    for e in range(candidates.segment[k], candidates.segment[k + 1]):
        if gap[e] < ONE:
            touching[candidates.pairs[k][0]] = 1
            touching[candidates.pairs[k][1]] = 1
            return


@wp.kernel
def vertex_speeds(
    first: wp.int32,
    lower: wp.array(dtype=wp.vec3d),
    upper: wp.array(dtype=wp.vec3d),
    velocity: wp.array2d(dtype=wp.float64),
    out: wp.array(dtype=wp.float64),
):
    """Compute a bound (n,) of the speed of a body's surface, from its bounding box [m/s]."""
    b = wp.tid() + first
    D = map_of(velocity, b)
    out[b] = wp.length(triple(velocity, b, 0)) + farthest(lower[b], upper[b]) * wp.sqrt(wp.ddot(D, D))
