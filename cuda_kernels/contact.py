"""The contact potential on candidates: energies, and the elements that build gradient and blocks.

Mirrors ``abd/potentials/contact.py``. An element of the pair (i, j) adds ``f_i Y_i^T`` and ``f_j Y_j^T`` (3x4) to the
two body gradients and ``K_ii (x) Y_i Y_i^T``, ``K_ij (x) Y_i Y_j^T``, ``K_jj (x) Y_j Y_j^T`` to their blocks. A plain
contact is one element; a nearly parallel edge pair carries a second one for its mollifier.
"""

import warp as wp

from cuda_kernels.affine import ONE, TWO, ZERO, Path, Pose, approach, identity3
from cuda_kernels.barrier import barrier
from cuda_kernels.surfaces import (
    CORNERS,
    EDGE_EDGE,
    EDGE_OF_I,
    EDGES,
    FACE_OF_I,
    VERTEX_PLANE,
    Primitives,
    Proximity,
    Surfaces,
    primitives,
    proximity,
    separation,
)

wp.set_module_options({"enable_backward": False, "max_unroll": 4})

PARALLEL = 1.0e-3
TRANSIENT = wp.constant(wp.float64(0.05))
"""Share of a body's inertia that force times edge length must exceed for the curvature of the distance to count."""


@wp.struct
class ContactLaw:
    """Barrier kind, activation d_hat [m], minimum separation [m], stiffness in the incremental potential
    (kappa_c c h^2), its multiplier per pair of materials, and the smallest moment of every body [kg m^2]."""

    kind: wp.int32
    d_hat: wp.float64
    minimum: wp.float64
    kappa: wp.array(dtype=wp.float64)
    stiffness: wp.array2d(dtype=wp.float64)
    inertia: wp.array(dtype=wp.float64)


@wp.struct
class Reach:
    """What is known of the candidates before a trial: where `known`, their gaps at the start of the path, and how far
    along it the trial lies."""

    known: wp.int32
    path: Path
    island: wp.array(dtype=wp.int32)
    alpha: wp.array(dtype=wp.float64)
    gap: wp.array(dtype=wp.float64)


@wp.struct
class Elements:
    """Elements side by side (m,): forces, 3x3 blocks, and the 4-vectors Y they act through."""

    f_i: wp.array(dtype=wp.vec3d)
    f_j: wp.array(dtype=wp.vec3d)
    K_ii: wp.array(dtype=wp.mat33d)
    K_ij: wp.array(dtype=wp.mat33d)
    K_jj: wp.array(dtype=wp.mat33d)
    Y_i: wp.array(dtype=wp.vec4d)
    Y_j: wp.array(dtype=wp.vec4d)


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
    """m = x (2 - x) with x = c / eps below eps = 1e-3 |Ea|^2 |Eb|^2, 1 above (Li et al. 2020, as in ipctk)."""
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
        eps = wp.float64(PARALLEL) * wp.dot(out.Ea, out.Ea) * wp.dot(out.Eb, out.Eb)
        if x < eps:
            out.active = 1
            out.m = x / eps * (TWO - x / eps)
            out.dm = TWO / eps * (ONE - x / eps)
    return out


@wp.struct
class Turning:
    """Positive part of ``dE/dd`` times the curvature of d, for a contact whose force outweighs its bodies' inertia.

    `count` extra elements; `tangential` joins the plain element's block; `normal` = |dE/dd| length is the stiffness
    of the extra elements along n, which act through the unit rest vectors E0, E1; `cosine` is the edges' angle.
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
    """Bound of the curvature: ``t N^T + N t^T <= t t^T / l + l N N^T`` per tangent direction t, with N = n (x) E how
    the feature's edge E tips out of the tangent plane, and l the edge's length [m]."""
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
def homogeneous(x: wp.vec3d, w: wp.float64) -> wp.vec4d:
    return wp.vec4d(w, x[0], x[1], x[2])


@wp.kernel
def contact_energies(
    first: wp.int32,
    s: Surfaces,
    law: ContactLaw,
    pose: Pose,
    pairs: wp.array(dtype=wp.vec2i),
    candidates: wp.array(dtype=wp.vec4i),
    reach: Reach,
    energy: wp.array(dtype=wp.float64),
    elements: wp.array(dtype=wp.int32),
    gap: wp.array(dtype=wp.float64),
):
    """Energy of every candidate, the number of its elements, and its gap beyond the separation [m].

    A candidate whose gap at the start of the path, less what its bodies may have moved since, still exceeds d_hat is
    settled by that bound, which becomes its gap.
    """
    k = wp.tid() + first
    c = candidates[k]
    i = pairs[c[0]][0]
    j = pairs[c[0]][1]
    if reach.known != 0:
        bound = reach.gap[k] - reach.alpha[reach.island[i]] * approach(reach.path, i, j)
        if bound > law.d_hat:
            energy[k] = ZERO
            elements[k] = 0
            gap[k] = bound
            return
    prim = primitives(s, i, j, c[1], c[2], c[3])
    near = proximity(c[1], prim, pose.p[i], pose.A[i], pose.p[j], pose.A[j], s.plane[j])
    D = wp.dot(near.r, near.r)
    xi = separation(s, i, j, law.minimum)
    d = near.side * wp.sqrt(D)
    gap[k] = d - xi
    if d - xi >= law.d_hat:
        energy[k] = ZERO
        elements[k] = 0
        return
    if d <= xi:
        # never on an accepted path; an infinite energy makes the line search reject the trial
        energy[k] = wp.float64(1.0e300)
        elements[k] = 0
        return
    kappa = law.kappa[0] * law.stiffness[s.material[i], s.material[j]]
    m = mollifier(c[1], prim, pose.A[i], pose.A[j])
    b = barrier(law.kind, D, law.d_hat, xi)
    energy[k] = kappa * m.m * b[0]
    extra = m.active
    if extra == 0:
        force = -kappa * TWO * d * b[1]
        n = near.r / d
        least = wp.min(law.inertia[i], law.inertia[j])
        extra = turning(near, force, least, n, pose.A[i], pose.A[j]).count
    elements[k] = 1 + extra


@wp.func
def clear_element(e: wp.int32, out: Elements):
    """An element that adds nothing."""
    out.f_i[e] = wp.vec3d()
    out.f_j[e] = wp.vec3d()
    out.K_ii[e] = wp.mat33d()
    out.K_ij[e] = wp.mat33d()
    out.K_jj[e] = wp.mat33d()
    out.Y_i[e] = wp.vec4d()
    out.Y_j[e] = wp.vec4d()


@wp.func
def tip_over(feature: wp.int32, turn: Turning, n: wp.vec3d, e: wp.int32, room: wp.int32, out: Elements):
    """The extra elements of a turning contact, from slot e on: ``normal n n^T`` through (0, E)."""
    N = turn.normal * wp.outer(n, n)
    for k in range(wp.min(turn.count, room)):
        E = turn.E0
        if k == 1:
            E = turn.E1
        if feature == EDGES:
            scale = ONE / wp.max(ONE - turn.cosine * turn.cosine, wp.float64(PARALLEL))
            out.K_ii[e] = scale * N
            out.K_jj[e] = scale * N
            out.K_ij[e] = -(turn.cosine * scale) * N
            out.Y_i[e] = homogeneous(turn.E0, ZERO)
            out.Y_j[e] = homogeneous(turn.E1, ZERO)
        elif feature == EDGE_OF_I or feature == FACE_OF_I:
            out.K_ii[e + k] = N
            out.Y_i[e + k] = homogeneous(E, ZERO)
        else:
            out.K_jj[e + k] = N
            out.Y_j[e + k] = homogeneous(E, ZERO)


@wp.kernel
def contact_elements(
    first: wp.int32,
    s: Surfaces,
    law: ContactLaw,
    pose: Pose,
    pairs: wp.array(dtype=wp.vec2i),
    candidates: wp.array(dtype=wp.vec4i),
    offset: wp.array(dtype=wp.int32),
    out: Elements,
):
    """Elements of the active candidates, behind the exclusive sum `offset` (candidates + 1,) of their numbers.

    With the distance d and unit normal n the block is the Gauss-Newton one, ``max(0, E_dd) n n^T``, plus a bound of the
    positive part of ``dE/dd`` times the curvature of d where it matters (`turning`). The mollifier adds
    ``kappa b m' 2 J^T J`` with J the Jacobian of ea x eb.
    """
    k = wp.tid() + first
    e = offset[k]
    if offset[k + 1] == e:
        return
    c = candidates[k]
    i = pairs[c[0]][0]
    j = pairs[c[0]][1]
    prim = primitives(s, i, j, c[1], c[2], c[3])
    near = proximity(c[1], prim, pose.p[i], pose.A[i], pose.p[j], pose.A[j], s.plane[j])
    D = wp.dot(near.r, near.r)
    xi = separation(s, i, j, law.minimum)
    kappa = law.kappa[0] * law.stiffness[s.material[i], s.material[j]]
    m = mollifier(c[1], prim, pose.A[i], pose.A[j])
    b = barrier(law.kind, D, law.d_hat, xi)
    d = wp.sqrt(D)
    n = near.r / d
    g = kappa * m.m * TWO * d * b[1]
    stiff = wp.max(ZERO, kappa * m.m * (wp.float64(4.0) * D * b[2] + TWO * b[1]))
    K = stiff * wp.outer(n, n)
    # the room was counted by another kernel: it is the truth, whatever rounding decides here
    room = offset[k + 1] - e - 1
    for spare in range(room):
        clear_element(e + 1 + spare, out)
    if m.active == 0 and room > 0:
        least = wp.min(law.inertia[i], law.inertia[j])
        turn = turning(near, -g, least, n, pose.A[i], pose.A[j])
        K = K + turn.tangential
        tip_over(near.feature, turn, n, e + 1, room, out)
    out.f_i[e] = g * n
    out.f_j[e] = -g * n
    out.K_ii[e] = K
    out.K_ij[e] = -K
    out.K_jj[e] = K
    out.Y_i[e] = homogeneous(near.Xi, ONE)
    out.Y_j[e] = homogeneous(near.Xj, ONE)
    if c[1] == VERTEX_PLANE:
        out.f_j[e] = wp.vec3d()
        out.Y_j[e] = wp.vec4d()
    if m.active != 0 and room > 0:
        aa = wp.dot(m.ea, m.ea)
        ab = wp.dot(m.ea, m.eb)
        bb = wp.dot(m.eb, m.eb)
        slope = kappa * b[0] * m.dm
        q = TWO * slope
        out.f_i[e + 1] = q * (bb * m.ea - ab * m.eb)
        out.f_j[e + 1] = q * (aa * m.eb - ab * m.ea)
        out.K_ii[e + 1] = q * (bb * identity3() - wp.outer(m.eb, m.eb))
        out.K_ij[e + 1] = q * (wp.outer(m.ea, m.eb) - ab * identity3())
        out.K_jj[e + 1] = q * (aa * identity3() - wp.outer(m.ea, m.ea))
        out.Y_i[e + 1] = homogeneous(m.Ea, ZERO)
        out.Y_j[e + 1] = homogeneous(m.Eb, ZERO)
