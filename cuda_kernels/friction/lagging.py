"""Lagging of contacts for friction: points, normals and loads, as ``lag`` and ``freeze`` of ``abd/potentials/friction.py``."""

import warp as wp

from cuda_kernels.bodies.affine import ONE, TWO, ZERO, Pose
from cuda_kernels.bodies.matrices import polar
from cuda_kernels.contact.barrier import barrier
from cuda_kernels.contact.contact import ContactLaw, homogeneous, mollifier, pair_at, stiffness_at
from cuda_kernels.contact.minima import coefficient, edge_coefficients
from cuda_kernels.contact.parts import EDGE_PARTS, PARTS, bits_of, code_of, count_bits, part
from cuda_kernels.contact.surfaces import (
    EDGE_EDGE,
    TARGET_VERTEX,
    VERTEX_TARGET,
    CandidateList,
    Surfaces,
    primitives,
    proximity,
    separation,
)
from cuda_kernels.friction.coulomb import Resistances, is_resisted, ratios, tangent
from cuda_kernels.friction.sticking import Anchors, anchored
from cuda_kernels.options import INLINE_ALL, opaque
from cuda_kernels.parallel.chunks import lower_bound
from cuda_kernels.shared.contact import SLIDE, SPIN

wp.set_module_options(INLINE_ALL)
LOADED_FOR = ("friction",)


@wp.struct
class Lagged:
    """Lagged contacts (m,): bodies, kind of resistance, normal n, contact points Y_i, Y_j on the surfaces, or arms,
    load (mu, or the ratio of an arm, times the normal force, times c h^2), start_stretch: stretch at the start of
    the step over eps (`sticking`), arc: excess of the slip over the chord [m] (`arc_slip`), face: body with the face below a
    vertex, -1 without one; counts = [pairs, contacts]; eps (n,) [m] of the bodies, below which slips count as static."""

    counts: wp.array(dtype=wp.int32)
    eps: wp.array(dtype=wp.float64)

    pair: wp.array(dtype=wp.vec2i)
    kind: wp.array(dtype=wp.int32)
    face: wp.array(dtype=wp.int32)
    n: wp.array(dtype=wp.vec3d)
    Y_i: wp.array(dtype=wp.vec4d)
    Y_j: wp.array(dtype=wp.vec4d)
    load: wp.array(dtype=wp.float64)
    start_stretch: wp.array(dtype=wp.vec3d)
    arc: wp.array(dtype=wp.vec3d)


@wp.func
def pair_key(i: wp.int32, j: wp.int32, bodies: wp.int32) -> wp.int64:
    """Return the key of a pair of bodies, ascending in the order of candidate lists."""
    return wp.int64(i) * wp.int64(bodies) + wp.int64(j)


@wp.func
def at_surface(X: wp.vec3d, arm: wp.vec3d, A: wp.mat33d, heading: wp.mat33d) -> wp.vec3d:
    """Return rest coordinates of the material point at `arm` from X after the map A has turned towards `heading`."""
    if wp.dot(arm, arm) == ZERO:
        return X
    inverse = wp.inverse(A)
    return X + inverse * (wp.transpose(polar(heading * inverse)) * arm)


@wp.func
def slope(law: ContactLaw, D: wp.float64, a: wp.float64, xi: wp.float64) -> wp.float64:
    """Return the derivative of the barrier by the distance of squared distance D."""
    return TWO * wp.sqrt(D) * barrier(law.kind, D, a, xi)[1]


@wp.func
def edge_load(
    s: Surfaces, law: ContactLaw, pose: Pose, i: wp.int32, j: wp.int32, c: wp.vec4i, a: wp.float64, xi: wp.float64
) -> wp.float64:  # fmt: skip
    """Return the normal force of two edges at their closest points, over the stiffness: the normal component of their force and
    those of their ends."""
    prim = primitives(s, i, j, c[1], c[2], c[3])
    near = proximity(c[1], prim, pose.p[i], pose.A[i], pose.p[j], pose.A[j], s.plane[j])
    counts = edge_coefficients(s, law.kind, a, xi, pose, i, j, c, prim, near)
    # reloading is necessary: the points and poses would exceed the registers
    i = opaque(i)
    j = opaque(j)
    prim = primitives(s, i, j, c[1], c[2], c[3])
    n = wp.normalize(near.r)
    total = counts[0] * slope(law, wp.dot(near.r, near.r), a, xi)
    for m in range(1, EDGE_PARTS):
        if counts[m] != ZERO:
            one = part(c[1], prim, m)
            end = proximity(one.kind, one.c, pose.p[i], pose.A[i], pose.p[j], pose.A[j], s.plane[j])
            D = wp.dot(end.r, end.r)
            total = total + counts[m] * slope(law, D, a, xi) * wp.dot(n, end.r) / wp.sqrt(D)
    return wp.max(-mollifier(c[1], prim, pose.A[i], pose.A[j]).m * total, ZERO)


@wp.func
def load_of(
    s: Surfaces, law: ContactLaw, pose: Pose, i: wp.int32, j: wp.int32, c: wp.vec4i, parts: wp.int64, a: wp.float64,
    xi: wp.float64,
) -> wp.float64:  # fmt: skip
    """Return the sum of the normal forces of the nonzero `parts` of a candidate of bodies i, j, over the stiffness."""
    if c[1] == EDGE_EDGE:
        return edge_load(s, law, pose, i, j, c, a, xi)
    prim = primitives(s, i, j, c[1], c[2], c[3])
    total = wp.float64(0.0)
    m = wp.int32(0)
    while m < PARTS:
        if code_of(parts, m) != 0:
            one = part(c[1], prim, m)
            near = proximity(one.kind, one.c, pose.p[i], pose.A[i], pose.p[j], pose.A[j], s.plane[j])
            total = total - coefficient(s, i, j, c, parts, m) * slope(law, wp.dot(near.r, near.r), a, xi)
        m = m + 1
    return total


@wp.func
def has_friction(kind: wp.int32, parts: wp.int64, m: wp.int32) -> bool:
    """Return whether part m of an active candidate has its own friction."""
    if kind == EDGE_EDGE:
        return m == 0
    return code_of(parts, m) != 0


@wp.func
def lag_candidate(
    s: Surfaces,
    law: ContactLaw,
    resists: Resistances,
    pose: Pose,
    heading: wp.array(dtype=wp.mat33d),
    i: wp.int32,
    j: wp.int32,
    a: wp.float64,
    xi: wp.float64,
    place: wp.int32,
    c: wp.vec4i,
    parts: wp.int64,
    begin: wp.int32,
    anchors: Anchors,
    nearby: wp.int32,
    out: Lagged,
):
    """Lag the active parts of a candidate of bodies i, j to the entries from `begin`.

    a, place: as `pair_at`; xi: separation [m]; nearby: first anchor of the bodies."""
    e = begin
    load = ZERO
    if c[1] == EDGE_EDGE:
        load = edge_load(s, law, pose, i, j, c, a, xi)
    m = wp.int32(0)
    while m < PARTS:
        if has_friction(c[1], parts, m):
            i = opaque(i)
            j = opaque(j)
            one = part(c[1], primitives(s, i, j, c[1], c[2], c[3]), m)
            near = proximity(one.kind, one.c, pose.p[i], pose.A[i], pose.p[j], pose.A[j], s.plane[j])
            n = wp.normalize(near.r)
            if c[1] != EDGE_EDGE:
                load = -coefficient(s, i, j, c, parts, m) * slope(law, wp.dot(near.r, near.r), a, xi)
            i = opaque(i)
            j = opaque(j)
            load = load * stiffness_at(law, s, place, i, j, a, xi)  # once: two edges have a single part
            length = wp.min(resists.arm[i], resists.arm[j])
            ratio = ratios(resists, s.material[i], s.material[j], length)
            kind = wp.int32(0)
            while kind < 3:
                if is_resisted(ratio[kind]):
                    weight = wp.where(kind == SLIDE, ONE, ZERO)
                    arm = length * wp.where(kind == SPIN, tangent(n), n)
                    X_i = at_surface(weight * near.Xi, wp.where(kind == SLIDE, -s.radius[i] * n, arm), pose.A[i], heading[i])
                    X_j = at_surface(weight * near.Xj, wp.where(kind == SLIDE, s.radius[j] * n, arm), pose.A[j], heading[j])
                    out.pair[e] = wp.vec2i(i, j)
                    out.kind[e] = kind
                    out.face[e] = wp.where(c[1] == VERTEX_TARGET, j, wp.where(c[1] == TARGET_VERTEX, i, -1))
                    out.n[e] = n
                    out.Y_i[e] = homogeneous(X_i, weight)
                    out.Y_j[e] = homogeneous(X_j, weight)
                    out.load[e] = ratio[kind] * load
                    out.arc[e] = wp.vec3d()
                    out.start_stretch[e] = anchored(anchors, nearby, pair_key(i, j, s.mesh.shape[0]), kind, X_i, n)
                    e = e + 1
                kind = kind + 1
        m = m + 1


@wp.kernel(grid_stride=False, cuda_max_registers=200)
def lag_contacts(
    first: wp.int32,
    s: Surfaces,
    law: ContactLaw,
    resists: Resistances,
    pose: Pose,
    heading: wp.array(dtype=wp.mat33d),
    listed: CandidateList,
    batch: wp.int32,
    parts: wp.array(dtype=wp.int64),
    offset: wp.array(dtype=wp.int32),
    anchors: Anchors,
    out: Lagged,
):
    """Lag the parts of a batch of candidates (exclusive sum `offset` of their numbers) at the given pose, with points on the
    surfaces of bodies with a radius; loads may be negative."""
    t = wp.tid() + first
    if out.counts[1] == 0:
        return
    pair = wp.int32(-1)
    i = wp.int32(0)
    j = wp.int32(0)
    a = ONE
    xi = ZERO
    place = wp.int32(-1)
    nearby = wp.int32(0)
    for k in range(batch * t, wp.min(batch * (t + 1), listed.counts[1])):
        if offset[k + 1] > offset[k]:
            c = listed.items[k]
            if c[0] != pair:
                pair = c[0]
                i, j, place, a = pair_at(s, listed, pair)
                xi = separation(s, i, j, law.minimum)
                nearby = lower_bound(anchors.key, 0, anchors.count[0], pair_key(i, j, s.mesh.shape[0]))
            lag_candidate(
                s, law, resists, pose, heading, i, j, a, xi, place, c, parts[k], offset[k], anchors, nearby, out
            )


@wp.kernel(grid_stride=False)
def count_sources(
    first: wp.int32,
    resists: Resistances,
    listed: CandidateList,
    surfaces: Surfaces,
    pose: Pose,
    parts: wp.array(dtype=wp.int64),
    count: wp.array(dtype=wp.int32),
):
    """Count the lagged contacts of a candidate: per part with friction one of each resistance, none for parallel edges, whose
    force the mollifier removes."""
    k = wp.tid() + first
    if k >= listed.counts[1]:
        return
    count[k] = 0
    if parts[k] == wp.int64(0):
        return
    c = listed.items[k]
    i = listed.pairs[c[0]][0]
    j = listed.pairs[c[0]][1]
    each = count_bits(bits_of(parts[k]))
    if c[1] == EDGE_EDGE:
        prim = primitives(surfaces, i, j, c[1], c[2], c[3])
        each = wp.where(mollifier(c[1], prim, pose.A[i], pose.A[j]).m == ZERO, 0, 1)
    ratio = ratios(resists, surfaces.material[i], surfaces.material[j], wp.min(resists.arm[i], resists.arm[j]))
    for kind in range(3):
        if is_resisted(ratio[kind]):
            count[k] = count[k] + each


@wp.kernel
def pair_loads(
    first: wp.int32,
    s: Surfaces,
    law: ContactLaw,
    resists: Resistances,
    pose: Pose,
    listed: CandidateList,
    parts: wp.array(dtype=wp.int64),
    out: wp.array(dtype=wp.float64),
):
    """Sum the friction loads of the candidates of every pair."""
    k = wp.tid() + first
    if k >= listed.counts[0]:
        return
    i, j, place, a = pair_at(s, listed, k)
    total = wp.float64(0.0)
    ratio = ratios(resists, s.material[i], s.material[j], wp.min(resists.arm[i], resists.arm[j]))
    resisted = ratio[0] + ratio[1] + ratio[2]
    if resisted > ZERO:
        xi = separation(s, i, j, law.minimum)
        load = resisted * stiffness_at(law, s, place, i, j, a, xi)
        for e in range(listed.segment[k], listed.segment[k + 1]):
            if parts[e] != wp.int64(0):
                total = total + load * load_of(s, law, pose, i, j, listed.items[e], parts[e], a, xi)
    out[k] = total


@wp.kernel
def count_lagged(
    first: wp.int32,
    listed: wp.array(dtype=wp.int32),
    offset: wp.array(dtype=wp.int32),
    capacity: wp.int32,
    needed: wp.array(dtype=wp.int32),
    counts: wp.array(dtype=wp.int32),
):
    """Set the number of contacts to lag, and counts = [pairs, contacts] of lagged ones, 0 if the capacity is too small; one
    thread. listed = [pairs, candidates]"""
    total = offset[listed[1]]
    needed[0] = total
    counts[0] = listed[0]
    counts[1] = wp.where(total <= capacity, total, 0)


@wp.kernel
def gather_offsets(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    segment: wp.array(dtype=wp.int32),
    offset: wp.array(dtype=wp.int32),
    out: wp.array(dtype=wp.int32),
):
    """Find the first lagged contact of every body pair; counts = [pairs, contacts]."""
    k = wp.tid() + first
    if k <= counts[0]:
        out[k] = 0
        if counts[1] > 0:
            out[k] = offset[segment[k]]
