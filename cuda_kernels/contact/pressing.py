"""Contact forces per point (`abd.contact.forces`), for impacts and output."""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, TWO, ZERO, Pose
from cuda_kernels.contact.contact import ContactLaw, mollifier, radial, stiffness
from cuda_kernels.contact.minima import TOTAL, Coefficients, coefficient, edge_coefficients
from cuda_kernels.contact.pair_law import activation
from cuda_kernels.contact.parts import PARTS, code_of, part
from cuda_kernels.contact.surfaces import (
    EDGE_EDGE,
    VERTEX_PLANE,
    CandidateList,
    Surfaces,
    primitives,
    proximity,
    separation,
)
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)


@wp.struct
class Points:
    """Points (c,): bodies i, j, unit normal from j to i, position midway between the surfaces and gap [m], force on i [N], and
    torques about the centres of mass of both bodies [N m]."""

    pair: wp.array(dtype=wp.vec2i)
    normal: wp.array(dtype=wp.vec3d)
    place: wp.array(dtype=wp.vec3d)
    gap: wp.array(dtype=wp.float64)
    force: wp.array(dtype=wp.vec3d)
    torque_i: wp.array(dtype=wp.vec3d)
    torque_j: wp.array(dtype=wp.vec3d)


@wp.kernel
def press(
    first: wp.int32,
    s: Surfaces,
    law: ContactLaw,
    pose: Pose,
    listed: CandidateList,
    chosen: wp.array(dtype=wp.int32),
    parts: wp.array(dtype=wp.int64),
    offset: wp.array(dtype=wp.int32),
    out: Points,
):
    """Compute the nonzero parts of one chosen candidate, from its offset on; `parts` are its codes at this pose."""
    t = wp.tid() + first
    e = chosen[t]
    c = listed.items[e]
    i = listed.pairs[c[0]][0]
    j = listed.pairs[c[0]][1]
    Ai = pose.A[i]
    Aj = pose.A[j]
    xi = separation(s, i, j, law.minimum)
    a = activation(s.between, i, j)
    kappa = stiffness(law, s, i, j, a, xi)
    scale = ONE / law.kappa[i]
    prim = primitives(s, i, j, c[1], c[2], c[3])
    m = mollifier(c[1], prim, Ai, Aj)
    counts = Coefficients()
    if c[1] == EDGE_EDGE:
        near = proximity(c[1], prim, pose.p[i], Ai, pose.p[j], Aj, s.plane[j])
        counts = edge_coefficients(s, law.kind, a, xi, pose, i, j, c, prim, near)
    row = offset[t]
    for k in range(PARTS):
        if code_of(parts[e], k) == 0:
            continue
        count = counts[k]
        if c[1] != EDGE_EDGE:
            count = coefficient(s, i, j, c, parts[e], k)
        one = part(c[1], prim, k)
        near = proximity(one.kind, one.c, pose.p[i], Ai, pose.p[j], Aj, s.plane[j])
        distance = wp.length(near.r)
        n = near.r / distance
        along = radial(law, kappa, count, counts[TOTAL], m, near.r, a, xi, ZERO)
        f = -scale * along[0] * n
        arm_i = Ai * near.Xi
        t_i = wp.cross(arm_i, f)
        t_j = wp.vec3d()
        if c[1] != VERTEX_PLANE:
            t_j = wp.cross(f, Aj * near.Xj)
        if m.active != 0 and k == 0:
            ab = wp.dot(m.ea, m.eb)
            # the couple that the mollifier of two edges exerts
            couple = -scale * TWO * along[2] * ab * wp.cross(m.eb, m.ea)
            t_i = t_i + couple
            t_j = t_j - couple
        gap = distance - xi
        out.normal[row] = n
        out.gap[row] = gap
        out.place[row] = pose.p[i] + arm_i - (s.radius[i] + HALF * (gap + law.minimum)) * n
        out.pair[row] = listed.pairs[c[0]]
        out.force[row] = f
        out.torque_i[row] = t_i
        out.torque_j[row] = t_j
        row = row + 1
