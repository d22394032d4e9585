"""Gradient and blocks of the contact potential, summed over the candidates of body pairs.

With the distance d and unit normal n, the block of a contact is the Gauss-Newton one, ``max(0, E_dd) n n^T`` between its
closest points, plus ``dE/dd`` times the curvature of d. The curvature is complete for an attractive part (`across`), else a
weighted bound of its positive part if it is large enough (`turning`). A nearly parallel edge pair adds ``kappa b m' 2 J^T J`` for
its mollifier, with J the Jacobian of ea x eb.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, TWO, ZERO, Pose, identity3
from cuda_kernels.contact.active_pairs import Items
from cuda_kernels.contact.blocks import PairSums, Runs, add_between, add_block, clear_sums, spread
from cuda_kernels.contact.contact import (
    SMALLEST_SQUARED_SINE,
    ContactLaw,
    Mollifier,
    Turning,
    across,
    homogeneous,
    mollifier,
    radial,
    stiffness,
    turning,
)
from cuda_kernels.contact.minima import TOTAL, Coefficients, coefficient, edge_coefficients
from cuda_kernels.contact.pair_law import activation
from cuda_kernels.contact.parts import part
from cuda_kernels.contact.surfaces import (
    EDGE_EDGE,
    EDGE_OF_I,
    EDGES,
    FACE_OF_I,
    VERTEX_PLANE,
    CandidateList,
    Primitives,
    Proximity,
    Surfaces,
    primitives,
    proximity,
    separation,
)
from cuda_kernels.options import INLINE_ALL

wp.set_module_options(INLINE_ALL)
LOADED_FOR = ("cpu", "contact")


@wp.func
def add_turning(out: PairSums, t: wp.int32, feature: wp.int32, turn: Turning, n: wp.vec3d):
    """Add ``normal n n^T`` through (0, E), for the edges that rotate out of the tangent plane."""
    N = turn.normal * wp.outer(n, n)
    Y0 = homogeneous(turn.E0, ZERO)
    Y1 = homogeneous(turn.E1, ZERO)
    if feature == EDGES:
        N = N / wp.max(ONE - turn.cosine * turn.cosine, SMALLEST_SQUARED_SINE)
        add_block(out.H_ii, t, N, Y0, Y0)
        add_block(out.H_ij, t, -turn.cosine * N, Y0, Y1)
        add_block(out.H_jj, t, N, Y1, Y1)
        return
    if feature == EDGE_OF_I or feature == FACE_OF_I:
        add_block(out.H_ii, t, N, Y0, Y0)
        if turn.count == 2:
            add_block(out.H_ii, t, N, Y1, Y1)
    else:
        add_block(out.H_jj, t, N, Y0, Y0)
        if turn.count == 2:
            add_block(out.H_jj, t, N, Y1, Y1)


@wp.func
def add_mollifier(out: PairSums, t: wp.int32, m: Mollifier, slope: wp.float64):
    """Add the mollifier's force and ``slope 2 J^T J``; slope = kappa b dm/dc."""
    aa = wp.dot(m.ea, m.ea)
    ab = wp.dot(m.ea, m.eb)
    bb = wp.dot(m.eb, m.eb)
    q = TWO * slope
    Ya = homogeneous(m.Ea, ZERO)
    Yb = homogeneous(m.Eb, ZERO)
    out.g_i[t] = out.g_i[t] + spread(q * (bb * m.ea - ab * m.eb), Ya)
    out.g_j[t] = out.g_j[t] + spread(q * (aa * m.eb - ab * m.ea), Yb)
    add_block(out.H_ii, t, q * (bb * identity3() - wp.outer(m.eb, m.eb)), Ya, Ya)
    add_block(out.H_ij, t, q * (wp.outer(m.ea, m.eb) - ab * identity3()), Ya, Yb)
    add_block(out.H_jj, t, q * (aa * identity3() - wp.outer(m.ea, m.ea)), Yb, Yb)


@wp.kernel
def contact_blocks(
    first: wp.int32,
    s: Surfaces,
    law: ContactLaw,
    pose: Pose,
    listed: CandidateList,
    parts: wp.array(dtype=wp.int64),
    runs: Runs,
    run_counts: wp.array(dtype=wp.int32),
    items: Items,
    out: PairSums,
):
    """Sum over the parts of candidates of every run; run_counts = [pairs, runs]."""
    t = wp.tid() + first
    if t >= run_counts[1]:
        return
    clear_sums(out, t)
    p = runs.pair[t]
    i = listed.pairs[p][0]
    j = listed.pairs[p][1]
    pi = pose.p[i]
    Ai = pose.A[i]
    pj = pose.p[j]
    Aj = pose.A[j]
    xi = separation(s, i, j, law.minimum)
    a = activation(s.between, i, j)
    kappa = stiffness(law, s, i, j, a, xi)
    least = wp.min(law.inertia[i], law.inertia[j])
    regularisation = law.regularisation[i]  # body i is dynamic; the weight of an immobile body is undefined
    # consecutive candidates with the same two closest points, as around two vertices, are added as one
    f = wp.vec3d()
    K = wp.mat33d()
    Y_i = wp.vec4d()
    Y_j = wp.vec4d()
    e = wp.int32(-1)
    c = wp.vec4i()
    prim = Primitives()
    near = Proximity()
    m = Mollifier()
    counts = Coefficients()
    for place in range(runs.begin[t], runs.end[t]):
        if items.item[place] != e:
            e = items.item[place]
            c = listed.items[e]
            prim = primitives(s, i, j, c[1], c[2], c[3])
            m = mollifier(c[1], prim, Ai, Aj)
            if c[1] == EDGE_EDGE:
                near = proximity(c[1], prim, pi, Ai, pj, Aj, s.plane[j])
                counts = edge_coefficients(s, law.kind, a, xi, pose, i, j, c, prim, near)
        k = items.part[place]
        count = counts[k]
        if c[1] != EDGE_EDGE:
            count = coefficient(s, i, j, c, parts[e], k)
        if c[1] != EDGE_EDGE or k > 0:
            one = part(c[1], prim, k)
            near = proximity(one.kind, one.c, pi, Ai, pj, Aj, s.plane[j])
        n = wp.normalize(near.r)
        along = radial(law, kappa, count, counts[TOTAL], m, near.r, a, xi, regularisation)
        Z_i = homogeneous(near.Xi, ONE)
        Z_j = homogeneous(near.Xj, wp.where(c[1] == VERTEX_PLANE, ZERO, ONE))
        if not (Z_i == Y_i and Z_j == Y_j):
            if Y_i[0] != ZERO:
                add_between(out, t, f, K, Y_i, Y_j)
            f = wp.vec3d()
            K = wp.mat33d()
            Y_i = Z_i
            Y_j = Z_j
        f = f + along[0] * n
        K = K + along[1] * wp.outer(n, n)
        if along[0] > ZERO:
            K = K + across(near, along[0], n, Ai, Aj)
        if m.active == 0:
            turn = turning(near, -along[0], least, n, Ai, Aj)
            if turn.count > 0:
                K = K + regularisation * turn.tangential
                turn.normal = regularisation * turn.normal
                add_turning(out, t, near.feature, turn, n)
        elif k == 0:
            add_mollifier(out, t, m, along[2])
    if Y_i[0] != ZERO:
        add_between(out, t, f, K, Y_i, Y_j)
