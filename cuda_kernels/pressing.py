"""Contact forces point by point, for who reads them (`abd.contact.forces`); nothing of a step needs them."""

import warp as wp

from cuda_kernels.affine import HALF, ONE, TWO, ZERO, Pose
from cuda_kernels.blocks import spread
from cuda_kernels.contact import ContactLaw, homogeneous, mollifier, radial, stiffness
from cuda_kernels.minima import bit_at, coefficients, count_bits, part
from cuda_kernels.pair_law import activation
from cuda_kernels.surfaces import VERTEX_PLANE, Surfaces, primitives, proximity, separation
from cuda_kernels.vector12 import vec12

wp.set_module_options({"enable_backward": False, "max_unroll": 4})


@wp.struct
class Points:
    """Points (c,): bodies i, j, unit normal from j to i, place midway between the surfaces and gap [m], and the generalised
    forces on both bodies."""

    pair: wp.array(dtype=wp.vec2i)
    normal: wp.array(dtype=wp.vec3d)
    place: wp.array(dtype=wp.vec3d)
    gap: wp.array(dtype=wp.float64)
    on_i: wp.array(dtype=vec12)
    on_j: wp.array(dtype=vec12)


@wp.kernel
def press(
    first: wp.int32,
    s: Surfaces,
    law: ContactLaw,
    pose: Pose,
    pairs: wp.array(dtype=wp.vec2i),
    candidates: wp.array(dtype=wp.vec4i),
    chosen: wp.array(dtype=wp.int32),
    bits: wp.array(dtype=wp.int32),
    offset: wp.array(dtype=wp.int32),
    scale: wp.float64,
    out: Points,
):
    """The parts that count of one of the chosen candidates, from its offset on; `scale` is 1 / (c h^2)."""
    t = wp.tid() + first
    e = chosen[t]
    c = candidates[e]
    i = pairs[c[0]][0]
    j = pairs[c[0]][1]
    Ai = pose.A[i]
    Aj = pose.A[j]
    xi = separation(s, i, j, law.minimum)
    a = activation(s.between, i, j)
    kappa = stiffness(law, s, i, j, a, xi)
    prim = primitives(s, i, j, c[1], c[2], c[3])
    near = proximity(c[1], prim, pose.p[i], Ai, pose.p[j], Aj, s.plane[j])
    m = mollifier(c[1], prim, Ai, Aj)
    counts = coefficients(s, law.kind, a, xi, pose, i, j, c, prim, near, bits[e])
    for number in range(count_bits(bits[e])):
        k = bit_at(bits[e], number)
        if k > 0:
            one = part(c[1], prim, k)
            near = proximity(one.kind, one.c, pose.p[i], Ai, pose.p[j], Aj, s.plane[j])
        row = offset[t] + number
        distance = wp.length(near.r)
        n = near.r / distance
        along = radial(law, kappa, counts, k, m, near.r, a, xi, ZERO)
        f = along[0] * n
        g_i = spread(f, homogeneous(near.Xi, ONE))
        g_j = spread(-f, homogeneous(near.Xj, wp.where(c[1] == VERTEX_PLANE, ZERO, ONE)))
        if m.active != 0 and k == 0:
            aa = wp.dot(m.ea, m.ea)
            ab = wp.dot(m.ea, m.eb)
            bb = wp.dot(m.eb, m.eb)
            q = TWO * along[2]
            g_i = g_i + spread(q * (bb * m.ea - ab * m.eb), homogeneous(m.Ea, ZERO))
            g_j = g_j + spread(q * (aa * m.eb - ab * m.ea), homogeneous(m.Eb, ZERO))
        gap = distance - xi
        out.normal[row] = n
        out.gap[row] = gap
        out.place[row] = pose.p[i] + Ai * near.Xi - (s.radius[i] + HALF * (gap + law.minimum)) * n
        out.pair[row] = pairs[c[0]]
        out.on_i[row] = -scale * g_i
        out.on_j[row] = -scale * g_j
