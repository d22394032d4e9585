"""The contact potential on candidates: energies, and the elements that build gradient and blocks.

Mirrors ``abd/potentials/contact.py``. An element of the pair (i, j) adds ``f_i Y_i^T`` and ``f_j Y_j^T`` (3x4) to the
two body gradients and ``K_ii (x) Y_i Y_i^T``, ``K_ij (x) Y_i Y_j^T``, ``K_jj (x) Y_j Y_j^T`` to their blocks. A plain
contact is one element; a nearly parallel edge pair carries a second one for its mollifier.
"""

import warp as wp

from cuda_kernels.affine import ONE, TWO, ZERO, Pose, identity3
from cuda_kernels.barrier import barrier
from cuda_kernels.surfaces import EDGE_EDGE, VERTEX_PLANE, Primitives, Surfaces, primitives, proximity, separation

wp.set_module_options({"enable_backward": False, "max_unroll": 4})

PARALLEL = 1.0e-3


@wp.struct
class ContactLaw:
    """Barrier kind, activation d_hat [m], minimum separation [m], stiffness in the incremental potential
    (kappa_c c h^2), and its multiplier per pair of materials."""

    kind: wp.int32
    d_hat: wp.float64
    minimum: wp.float64
    kappa: wp.array(dtype=wp.float64)
    stiffness: wp.array2d(dtype=wp.float64)


@wp.struct
class Elements:
    """Elements side by side (m,): forces, 3x3 blocks, and the 4-vectors Y they act through."""

    fi: wp.array(dtype=wp.vec3d)
    fj: wp.array(dtype=wp.vec3d)
    Kii: wp.array(dtype=wp.mat33d)
    Kij: wp.array(dtype=wp.mat33d)
    Kjj: wp.array(dtype=wp.mat33d)
    Yi: wp.array(dtype=wp.vec4d)
    Yj: wp.array(dtype=wp.vec4d)


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
    energy: wp.array(dtype=wp.float64),
    elements: wp.array(dtype=wp.int32),
    gap: wp.array(dtype=wp.float64),
):
    """Energy of every candidate, the number of its elements, and its gap beyond the separation [m]."""
    k = wp.tid() + first
    c = candidates[k]
    i = pairs[c[0]][0]
    j = pairs[c[0]][1]
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
    elements[k] = 1 + m.active


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

    With the distance d and unit normal n the block is the Gauss-Newton one, ``max(0, E_dd) n n^T``: the barrier falls,
    so the curvature of d itself only lowers it, up to terms of relative size d / edge length. The mollifier adds
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
    out.fi[e] = g * n
    out.fj[e] = -g * n
    out.Kii[e] = K
    out.Kij[e] = -K
    out.Kjj[e] = K
    out.Yi[e] = homogeneous(near.Xi, ONE)
    out.Yj[e] = homogeneous(near.Xj, ONE)
    if c[1] == VERTEX_PLANE:
        out.fj[e] = wp.vec3d()
        out.Yj[e] = wp.vec4d()
    if m.active != 0:
        aa = wp.dot(m.ea, m.ea)
        ab = wp.dot(m.ea, m.eb)
        bb = wp.dot(m.eb, m.eb)
        slope = kappa * b[0] * m.dm
        q = TWO * slope
        out.fi[e + 1] = q * (bb * m.ea - ab * m.eb)
        out.fj[e + 1] = q * (aa * m.eb - ab * m.ea)
        out.Kii[e + 1] = q * (bb * identity3() - wp.outer(m.eb, m.eb))
        out.Kij[e + 1] = q * (wp.outer(m.ea, m.eb) - ab * identity3())
        out.Kjj[e + 1] = q * (aa * identity3() - wp.outer(m.ea, m.ea))
        out.Yi[e + 1] = homogeneous(m.Ea, ZERO)
        out.Yj[e + 1] = homogeneous(m.Eb, ZERO)
