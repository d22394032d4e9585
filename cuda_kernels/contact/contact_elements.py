"""Single contacts for `cuda_kernels.contact.elements`, with the terms of `cuda_kernels.contact.contact_blocks`."""

import warp as wp

from cuda_kernels.bodies.affine import ONE, ZERO, Pose, vec12
from cuda_kernels.contact.active_pairs import Items
from cuda_kernels.contact.blocks import Runs
from cuda_kernels.contact.contact import (
    ContactLaw,
    across,
    homogeneous,
    mollifier,
    radial,
    stiffness,
    turning,
)
from cuda_kernels.contact.elements import MOLLIFIED, PLAIN, TURNING, Elements
from cuda_kernels.contact.minima import TOTAL, coefficient, edge_coefficients
from cuda_kernels.contact.pair_law import activation
from cuda_kernels.contact.parts import part
from cuda_kernels.contact.surfaces import (
    EDGE_EDGE,
    VERTEX_PLANE,
    CandidateList,
    Surfaces,
    primitives,
    proximity,
    separation,
)
from cuda_kernels.options import OPTIONS, opaque

wp.set_module_options(OPTIONS)
LOADED_FOR = ("cuda", "contact")


@wp.kernel(grid_stride=False)
def contact_elements(
    first: wp.int32,
    s: Surfaces,
    law: ContactLaw,
    pose: Pose,
    listed: CandidateList,
    parts: wp.array(dtype=wp.int64),
    runs: Runs,
    run_counts: wp.array(dtype=wp.int32),
    run: wp.int32,
    items: Items,
    out: Elements,
):
    """Compute one part of a candidate of a run in its place; run_counts = [pairs, runs]."""
    place = wp.tid() + first
    t = place // run
    if t >= run_counts[1]:
        return
    if place >= runs.end[t]:
        return
    e = items.item[place]
    c = listed.items[e]
    i = listed.pairs[c[0]][0]
    j = listed.pairs[c[0]][1]
    k = items.part[place]
    a = activation(s.between, i, j)
    xi = separation(s, i, j, law.minimum)
    prim = primitives(s, i, j, c[1], c[2], c[3])
    total = wp.float64(0.0)
    count = wp.float64(0.0)
    if c[1] == EDGE_EDGE:
        near = proximity(c[1], prim, pose.p[i], pose.A[i], pose.p[j], pose.A[j], s.plane[j])
        counts = edge_coefficients(s, law.kind, a, xi, pose, i, j, c, prim, near)
        count = counts[k]
        total = counts[TOTAL]
    else:
        count = coefficient(s, i, j, c, parts[e], k)
    # reloading is necessary: the points and poses would exceed the registers
    i = opaque(i)
    j = opaque(j)
    Ai = pose.A[i]
    Aj = pose.A[j]
    prim = primitives(s, i, j, c[1], c[2], c[3])
    one = part(c[1], prim, k)
    near = proximity(one.kind, one.c, pose.p[i], Ai, pose.p[j], Aj, s.plane[j])
    m = mollifier(c[1], prim, Ai, Aj)
    n = wp.normalize(near.r)
    along = radial(law, stiffness(law, s, i, j, a, xi), count, total, m, near.r, a, xi, law.regularisation[i])
    out.f[place] = along[0] * n
    out.Y_i[place] = homogeneous(near.Xi, ONE)
    out.Y_j[place] = homogeneous(near.Xj, wp.where(c[1] == VERTEX_PLANE, ZERO, ONE))
    K = along[1] * wp.outer(n, n)
    if along[0] > ZERO:
        K = K + across(near, along[0], n, Ai, Aj)
    kind = wp.vec3i(PLAIN, 0, 0)
    if m.active != 0 and k == 0:
        kind = wp.vec3i(MOLLIFIED, 0, 0)
        out.vectors[place] = vec12(
            m.ea[0], m.ea[1], m.ea[2], m.eb[0], m.eb[1], m.eb[2], m.Ea[0], m.Ea[1], m.Ea[2], m.Eb[0], m.Eb[1], m.Eb[2]
        )  # fmt: skip
        out.numbers[place] = wp.vec2d(along[2], ZERO)
    elif m.active == 0:
        turn = turning(near, -along[0], wp.min(law.inertia[i], law.inertia[j]), n, Ai, Aj)
        if turn.count > 0:
            regularisation = law.regularisation[i]
            kind = wp.vec3i(TURNING, near.feature, turn.count)
            K = K + regularisation * turn.tangential
            out.vectors[place] = vec12(
                n[0], n[1], n[2], turn.E0[0], turn.E0[1], turn.E0[2], turn.E1[0], turn.E1[1], turn.E1[2], ZERO, ZERO, ZERO
            )  # fmt: skip
            out.numbers[place] = wp.vec2d(regularisation * turn.normal, turn.cosine)
    out.K[place] = K
    out.kind[place] = kind
