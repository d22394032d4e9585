"""The contact potential of candidates: energies, and terms of their derivatives, as in ``abd/potentials/contact.py``."""

import warp as wp

from cuda_kernels.bodies.affine import ONE, TWO, ZERO, Path, Pose, approach, identity3
from cuda_kernels.contact.barrier import barrier
from cuda_kernels.contact.minima import INACTIVE, combine, combine_features
from cuda_kernels.contact.pair_law import activation_at, pair_parameters, pair_stiffness
from cuda_kernels.contact.surfaces import (
    CORNERS,
    EDGE_EDGE,
    EDGE_OF_I,
    EDGES,
    TARGET_VERTEX,
    CandidateList,
    Primitives,
    Proximity,
    Surfaces,
    corners,
    primitives,
    proximity_at,
    separation,
)
from cuda_kernels.options import INLINE_ALL
from cuda_kernels.shared import contact as shared

wp.set_module_options(INLINE_ALL)
LOADED_FOR = ("contact",)

SMALLEST_SQUARED_SINE = wp.constant(wp.float64(shared.SMALLEST_SQUARED_SINE))
TRANSIENT = wp.constant(wp.float64(shared.TRANSIENT))
STILL = wp.constant(wp.float64(shared.STILL))


@wp.struct
class ContactLaw:
    """Barrier kind, minimum separation [m], factor c h^2 on the stiffness of pairs by body, and multiplier by pair of materials;
    by body the smallest moment [kg m^2] and the weight of the bound of curvature (cuda_kernels/step/newton.py).
    `cuda_kernels.contact.pair_law` has the parameters of two bodies."""

    kind: wp.int32
    minimum: wp.float64
    kappa: wp.array(dtype=wp.float64)
    stiffness: wp.array2d(dtype=wp.float64)
    inertia: wp.array(dtype=wp.float64)
    regularisation: wp.array(dtype=wp.float64)


@wp.func
def stiffness(law: ContactLaw, s: Surfaces, i: wp.int32, j: wp.int32, a: wp.float64, xi: wp.float64) -> wp.float64:
    """Return kappa_c c h^2 of bodies i and j with activation a [m]."""
    return stiffness_at(law, s, pair_parameters(s.between.own, s.between.bodies, i, j), i, j, a, xi)


@wp.func
def stiffness_at(
    law: ContactLaw, s: Surfaces, place: wp.int32, i: wp.int32, j: wp.int32, a: wp.float64, xi: wp.float64
) -> wp.float64:
    """Return `stiffness` of a pair with its own parameters at `place`, -1 without."""
    by_material = law.stiffness[s.material[i], s.material[j]]
    return law.kappa[i] * by_material * pair_stiffness(s.between, law.kind, place, i, j, a, xi)


@wp.func
def pair_at(s: Surfaces, listed: CandidateList, pair: wp.int32):
    """Return the bodies of a listed pair, the place of their own parameters, -1 without, and their activation [m]."""
    i = listed.pairs[pair][0]
    j = listed.pairs[pair][1]
    place = pair_parameters(s.between.own, s.between.bodies, i, j)
    return i, j, place, activation_at(s.between, place, i, j)


UNKNOWN, ON_PATH, CARRIED = range(3)
"""Values before an evaluation (`KnownValues`)."""


@wp.struct
class KnownValues:
    """Values of the candidates before an evaluation, in slots.

    ON_PATH: those at the start of a path, the approach of the bodies of every pair on the whole path [m], negative for pairs at
    rest, and the position `alpha` of the evaluation on it, by islands.
    CARRIED: those at the same pose in the previous list, `kept` index of every pair in it, -1 for new ones, `segment` its first
    candidates."""

    mode: wp.int32
    approach: wp.array(dtype=wp.float64)
    island: wp.array(dtype=wp.int32)
    alpha: wp.array(dtype=wp.float64)
    kept: wp.array(dtype=wp.int32)
    segment: wp.array(dtype=wp.int32)
    energy: wp.array(dtype=wp.float64)
    gap: wp.array(dtype=wp.float64)
    parts: wp.array(dtype=wp.int64)


@wp.struct
class Mollifier:
    """Nearly parallel edges: ``c = |ea x eb|^2``, threshold, value m and slope dm/dc, deformed and rest edges."""

    active: wp.int32
    m: wp.float64
    dm: wp.float64
    ea: wp.vec3d
    eb: wp.vec3d
    Ea: wp.vec3d
    Eb: wp.vec3d


@wp.func
def mollifier(kind: wp.int32, c: Primitives, Ai: wp.mat33d, Aj: wp.mat33d) -> Mollifier:
    """Return m = x (2 - x) with x = c / eps below eps = 1e-3 |Ea|^2 |Eb|^2, 1 above (Li et al. 2020, as in ipctk)."""
    out = Mollifier()
    out.active = 0
    out.m = ONE
    out.dm = ZERO
    if kind == EDGE_EDGE:
        out.Ea = c.x1 - c.x0
        out.Eb = c.x3 - c.x2
        out.ea = Ai * out.Ea
        out.eb = Aj * out.Eb
        n = wp.cross(out.ea, out.eb)
        x = wp.dot(n, n)
        eps = SMALLEST_SQUARED_SINE * wp.dot(out.Ea, out.Ea) * wp.dot(out.Eb, out.Eb)
        if x < eps:
            out.active = 1
            out.m = x / eps * (TWO - x / eps)
            out.dm = TWO / eps * (ONE - x / eps)
    return out


@wp.struct
class Turning:
    """Positive part of ``dE/dd`` times the curvature of d, for a contact whose force exceeds its bodies' inertia.

    `count` extra elements; `tangential` is added to the plain element's block; `normal` = |dE/dd| length is the stiffness of the
    extra elements along n, which act through the unit rest vectors E0, E1; `cosine` is that of the edges' angle.
    """

    count: wp.int32
    tangential: wp.mat33d
    normal: wp.float64
    cosine: wp.float64
    E0: wp.vec3d
    E1: wp.vec3d


@wp.func
def turning(
    near: Proximity, force: wp.float64, least: wp.float64, n: wp.vec3d, Ai: wp.mat33d, Aj: wp.mat33d
) -> Turning:
    """Bound the curvature: ``t N^T + N t^T <= t t^T / l + l N N^T`` per tangent direction t, with N = n (x) E the rotation of the
    feature's edge E out of the tangent plane, and l the edge's length [m]."""
    out = Turning()
    out.count = 0
    if near.feature == CORNERS:
        return out
    first = wp.length(near.E0)
    length = first
    if near.feature >= EDGES:
        length = wp.sqrt(first * wp.length(near.E1))
    if force * length <= TRANSIENT * least:
        return out
    out.count = 1
    out.E0 = near.E0 / first
    out.normal = force * length
    if near.feature < EDGES:
        A = Aj
        if near.feature == EDGE_OF_I:
            A = Ai
        e = wp.normalize(A * out.E0)
        out.tangential = (force / length) * wp.outer(e, e)
        return out
    out.tangential = (force / length) * (identity3() - wp.outer(n, n))
    if near.feature == EDGES:
        out.E1 = near.E1 / wp.length(near.E1)
        out.cosine = wp.dot(wp.normalize(Ai * out.E0), wp.normalize(Aj * out.E1))
        return out
    out.E1 = wp.normalize(near.E1 - wp.dot(near.E1, out.E0) * out.E0)
    out.count = 2
    return out


@wp.func
def across(near: Proximity, pull: wp.float64, n: wp.vec3d, Ai: wp.mat33d, Aj: wp.mat33d) -> wp.mat33d:
    """Return the transverse stiffness of an attractive part, ``pull = dE/dd > 0``, times the curvature of its distance d:
    ``(1 - n n^T - e e^T) / d`` for a point and an edge along e, ``(1 - n n^T) / d`` for two points."""
    if near.feature >= EDGES:
        return wp.mat33d()
    K = identity3() - wp.outer(n, n)
    if near.feature != CORNERS:
        A = Aj
        if near.feature == EDGE_OF_I:
            A = Ai
        e = wp.normalize(A * near.E0)
        K = K - wp.outer(e, e)
    return (pull / wp.length(near.r)) * K


@wp.func
def radial(
    law: ContactLaw, kappa: wp.float64, count: wp.float64, total: wp.float64, m: Mollifier, r: wp.vec3d, a: wp.float64,
    xi: wp.float64, regularisation: wp.float64,
) -> wp.vec3d:  # fmt: skip
    """Return force and stiffness along the normal of a part with the coefficient `count` and the vector r between its closest
    points, and the slope of the energy by the mollifier's c for two edges with the combination `total`.

    The stiffness of a positive part is at least 0. Regularisation reduces that of a negative part.
    """
    D = wp.dot(r, r)
    b = barrier(law.kind, D, a, xi)
    factor = kappa * count * m.m
    stiffness = factor * wp.max(ZERO, wp.float64(4.0) * D * b[2] + TWO * b[1])
    if stiffness < ZERO:
        stiffness = (ONE - regularisation) * stiffness
    return wp.vec3d(factor * TWO * wp.sqrt(D) * b[1], stiffness, kappa * total * m.dm)


@wp.func
def homogeneous(x: wp.vec3d, w: wp.float64) -> wp.vec4d:
    return wp.vec4d(w, x[0], x[1], x[2])


@wp.kernel
def pair_approaches(
    first: wp.int32,
    listed: CandidateList,
    done: wp.array(dtype=wp.int32),
    path: Path,
    out: wp.array(dtype=wp.float64),
):
    """Bound the approach of the bodies of every pair on their whole arcs [m]; -1 if both are done."""
    k = wp.tid() + first
    if k >= listed.counts[0]:
        return
    i = listed.pairs[k][0]
    j = listed.pairs[k][1]
    out[k] = approach(path, i, j)
    if done[i] != 0 and done[j] != 0:
        out[k] = -ONE


@wp.struct
class Known:
    """Energy of a candidate, its gap beyond the separation [activations], codes of its nonzero parts
    (`cuda_kernels.contact.parts`), 0 if it is inactive, and `closest` of `cuda_kernels.contact.minima.Combination`."""

    energy: wp.float64
    gap: wp.float64
    parts: wp.int64
    closest: wp.vec4i


@wp.func
def known_at(
    s: Surfaces, law: ContactLaw, pose: Pose, i: wp.int32, j: wp.int32, place: wp.int32, a: wp.float64, c: wp.vec4i
) -> Known:
    """Evaluate a candidate of bodies i, j at a pose; their parameters are at `place`, their activation is a [m]."""
    out = Known()
    prim = primitives(s, i, j, c[1], c[2], c[3])
    world = corners(c[1], prim, pose.p[i], pose.A[i], pose.p[j], pose.A[j])
    near = proximity_at(c[1], prim, world, s.plane[j])
    D = wp.dot(near.r, near.r)
    xi = separation(s, i, j, law.minimum)
    d = near.side * wp.sqrt(D)
    out.gap = (d - xi) / a
    out.closest[0] = INACTIVE
    if out.gap >= ONE:
        return out
    if d <= xi:
        # never on an accepted path; an infinite energy rejects the trial
        out.energy = wp.float64(1.0e300)
        return out
    found = combine(s, law.kind, a, xi, pose, i, j, c, prim, world, near)
    out.parts = found.parts
    out.closest = found.closest
    if out.parts != wp.int64(0):
        kappa = stiffness_at(law, s, place, i, j, a, xi)
        out.energy = kappa * mollifier(c[1], prim, pose.A[i], pose.A[j]).m * found.value
    return out


@wp.kernel(grid_stride=False, cuda_max_registers=200)
def contact_energies(
    first: wp.int32,
    s: Surfaces,
    law: ContactLaw,
    pose: Pose,
    listed: CandidateList,
    batch: wp.int32,
    known: KnownValues,
    energy: wp.array(dtype=wp.float64),
    gap: wp.array(dtype=wp.float64),
    parts: wp.array(dtype=wp.int64),
    closest: wp.array(dtype=wp.vec4i),
):
    """Evaluate a batch of candidates (`Known`), those of vertices without their sides and corners; gaps below 1 are active.

    If a candidate's gap at the start of the path minus the motion of its bodies is at least 1, this bound becomes its gap.
    Carried candidates, and those of bodies that are done or whose motion is rounding, keep their values.
    """
    t = wp.tid() + first
    pair = wp.int32(-1)
    i = wp.int32(0)
    j = wp.int32(0)
    place = wp.int32(-1)
    a = wp.float64(1.0)
    is_known = wp.bool(False)
    shift = wp.int32(0)
    motion = wp.float64(0.0)
    for k in range(batch * t, wp.min(batch * (t + 1), listed.counts[1])):
        c = listed.items[k]
        if c[0] != pair:
            pair = c[0]
            i, j, place, a = pair_at(s, listed, pair)
            is_known = known.mode == ON_PATH
            motion = ZERO
            if known.mode == ON_PATH:
                if known.approach[pair] > ZERO:
                    motion = known.alpha[known.island[i]] * known.approach[pair]
            if known.mode == CARRIED:
                is_known = known.kept[pair] >= 0
                if is_known:
                    shift = known.segment[known.kept[pair]] - listed.segment[pair]
        found = Known()
        found.closest[0] = INACTIVE
        found.gap = -ONE
        if is_known:
            found.gap = known.gap[k + shift] - motion / a
        if is_known and motion <= STILL * a:
            found.energy = known.energy[k + shift]
            found.parts = known.parts[k + shift]
        elif found.gap < ONE:
            found = known_at(s, law, pose, i, j, place, a, c)
        energy[k] = found.energy
        gap[k] = found.gap
        parts[k] = found.parts
        closest[k] = found.closest


@wp.func
def is_same_vertex(a: wp.vec4i, b: wp.vec4i) -> bool:
    """Return whether two candidates of a pair have the same vertex."""
    return a[1] == b[1] and a[2] == b[2]


@wp.kernel
def add_features(
    first: wp.int32,
    s: Surfaces,
    law: ContactLaw,
    pose: Pose,
    listed: CandidateList,
    batch: wp.int32,
    closest: wp.array(dtype=wp.vec4i),
    energy: wp.array(dtype=wp.float64),
    parts: wp.array(dtype=wp.int64),
):
    """Add the sides and corners of targets to a batch of candidates evaluated at a pose."""
    t = wp.tid() + first
    pair = wp.int32(-1)
    i = wp.int32(0)
    j = wp.int32(0)
    a = wp.float64(1.0)
    xi = wp.float64(0.0)
    kappa = wp.float64(0.0)
    o = wp.int32(0)
    source = wp.int32(0)
    x = wp.vec3d()
    begin = wp.int32(0)
    end = wp.int32(0)
    for k in range(batch * t, wp.min(batch * (t + 1), listed.counts[1])):
        if closest[k][0] >= 0:
            c = listed.items[k]
            if c[0] != pair:
                pair = c[0]
                i, j, place, a = pair_at(s, listed, pair)
                xi = separation(s, i, j, law.minimum)
                kappa = stiffness_at(law, s, place, i, j, a, xi)
            if k >= end:
                begin = k
                while begin > listed.segment[pair] and is_same_vertex(listed.items[begin - 1], c):
                    begin = begin - 1
                end = k + 1
                while end < listed.segment[pair + 1] and is_same_vertex(listed.items[end], c):
                    end = end + 1
                v = wp.where(c[1] == TARGET_VERTEX, j, i)
                o = wp.where(c[1] == TARGET_VERTEX, i, j)
                source = s.vertex_start[s.mesh[v]] + c[2]
                x = pose.p[v] + pose.A[v] * s.vertices[source]
            found = combine_features(s, law.kind, a, xi, pose, listed, o, source, x, k, begin, end, closest)
            energy[k] = energy[k] + kappa * found.value
            parts[k] = parts[k] | found.parts


@wp.kernel
def exchange_known(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    energy: wp.array(dtype=wp.float64),
    gap: wp.array(dtype=wp.float64),
    parts: wp.array(dtype=wp.int64),
    other_energy: wp.array(dtype=wp.float64),
    other_gap: wp.array(dtype=wp.float64),
    other_parts: wp.array(dtype=wp.int64),
):
    """Exchange the values of two slots of candidates."""
    k = wp.tid() + first
    if k >= counts[1]:
        return
    e = energy[k]
    g = gap[k]
    codes = parts[k]
    energy[k] = other_energy[k]
    gap[k] = other_gap[k]
    parts[k] = other_parts[k]
    other_energy[k] = e
    other_gap[k] = g
    other_parts[k] = codes
