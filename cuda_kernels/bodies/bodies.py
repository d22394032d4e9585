"""Energies of single bodies: inertia, near-rigidity, external forces, penalty of a prescribed pose.

Mirrors ``abd/potentials/{inertia,orthogonality,arap,forces,prescribed}.py``. Vectors are in q order (p, rows of A).
"""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, TWO, ZERO, Pose, identity3, skew
from cuda_kernels.bodies.matrices import polar, positive_part
from cuda_kernels.options import OPTIONS
from cuda_kernels.shared.bodies import Kind, Turning

wp.set_module_options(OPTIONS)


@wp.struct
class BodyData:
    """Constants of all bodies (n,).

    `kind` is one of `Kind`; `weight` scales the penalty of prescribed poses [kg], `spread` its affine part [m^2]; `translation`
    masks the world axes along which the centre of mass may move; `rotation` is one of `Turning`, for AXIS about `axis` with the
    rest direction `rest_axis`; `surface` is the velocity of the surface's material in the body's frame [m/s].
    """

    kind: wp.array(dtype=wp.int32)
    mass: wp.array(dtype=wp.float64)
    moment: wp.array(dtype=wp.vec3d)
    stiffness: wp.array(dtype=wp.float64)
    arap: wp.array(dtype=wp.int32)
    force: wp.array(dtype=wp.vec3d)
    torque: wp.array(dtype=wp.vec3d)
    weight: wp.array(dtype=wp.float64)
    spread: wp.array(dtype=wp.float64)
    translation: wp.array(dtype=wp.vec3d)
    rotation: wp.array(dtype=wp.int32)
    axis: wp.array(dtype=wp.vec3d)
    rest_axis: wp.array(dtype=wp.vec3d)
    surface: wp.array(dtype=wp.vec3d)


@wp.struct
class StepData:
    """Constants of a step.

    Inertial target (pt, At) and the weight of a body's inertia, `scale` [-]; prescribed poses (pk, Ak) with multipliers
    (lp, lA) and `penalty` (1,) [-]; `held` marks bodies that no longer move in this step; `ch2` (n,) = c h^2 [s^2].
    """

    pt: wp.array(dtype=wp.vec3d)
    At: wp.array(dtype=wp.mat33d)
    scale: wp.array(dtype=wp.float64)
    pk: wp.array(dtype=wp.vec3d)
    Ak: wp.array(dtype=wp.mat33d)
    lp: wp.array(dtype=wp.vec3d)
    lA: wp.array(dtype=wp.mat33d)
    held: wp.array(dtype=wp.int32)
    gravity: wp.vec3d
    penalty: wp.array(dtype=wp.float64)
    ch2: wp.array(dtype=wp.float64)


@wp.func
def elastic_energy(stiffness: wp.float64, arap: wp.int32, A: wp.mat33d) -> wp.float64:
    """kappa vol |A A^T - 1|^2, or kappa vol |A - R|^2 for arap [J]."""
    if arap != 0:
        D = A - polar(A)
        return stiffness * wp.ddot(D, D)
    E = A * wp.transpose(A) - identity3()
    return stiffness * wp.ddot(E, E)


@wp.func
def couple(torque: wp.vec3d, A: wp.mat33d) -> wp.mat33d:
    """Generalised force of a couple: 1/2 [tau] A^-T [N m]."""
    return HALF * (skew(torque) * wp.transpose(wp.inverse(A)))


@wp.kernel
def body_energies(
    first: wp.int32,
    body: BodyData,
    step: StepData,
    reference: Pose,
    pose: Pose,
    done: wp.array(dtype=wp.int32),
    out: wp.array(dtype=wp.float64),
):
    """Compute the incremental energies of single bodies; external work is 0 at `reference` (the state of linearisation)."""
    b = wp.tid() + first
    if done[b] != 0:
        return
    kind = body.kind[b]
    e = ZERO
    if step.held[b] == 0:
        A = pose.A[b]
        if kind == Kind.DYNAMIC:
            m = body.mass[b]
            s = body.moment[b]
            dp = pose.p[b] - step.pt[b]
            D = A - step.At[b]
            e = HALF * m * wp.dot(dp, dp)
            for r in range(3):
                e = e + HALF * (s[0] * D[r, 0] * D[r, 0] + s[1] * D[r, 1] * D[r, 1] + s[2] * D[r, 2] * D[r, 2])
            e = step.scale[b] * e
            work = wp.dot(m * step.gravity + body.force[b], pose.p[b] - reference.p[b])
            tau = body.torque[b]
            if wp.dot(tau, tau) > ZERO:
                work = work + wp.ddot(couple(tau, reference.A[b]), A - reference.A[b])
            e = e - step.ch2[b] * work
        else:
            dp = pose.p[b] - step.pk[b]
            D = A - step.Ak[b]
            e = step.penalty[0] * HALF * body.weight[b] * (wp.dot(dp, dp) + body.spread[b] * wp.ddot(D, D))
            e = e - wp.dot(step.lp[b], dp) - wp.ddot(step.lA[b], D)
        e = e + step.ch2[b] * elastic_energy(body.stiffness[b], body.arap[b], A)
    out[b] = e


@wp.func
def elastic_size(body: BodyData, b: wp.int32, A: wp.mat33d) -> wp.float64:
    """Return the size ``2 sqrt(k V)`` [J] of the numbers whose differences the near-rigidity energy V squares.

    Rounding of A, whose entries are about 1, changes V as much as terms of this size."""
    k = body.stiffness[b]
    return TWO * wp.sqrt(k * elastic_energy(k, body.arap[b], A))


@wp.kernel
def body_differences(
    first: wp.int32,
    body: BodyData,
    step: StepData,
    poses: Pose,
    trials: Pose,
    base: wp.array(dtype=wp.float64),
    trial: wp.array(dtype=wp.float64),
    difference: wp.array(dtype=wp.float64),
    size: wp.array(dtype=wp.float64),
):
    """Set the sums of every body to the change of its own energies and the size of their terms."""
    b = wp.tid() + first
    difference[b] = trial[b] - base[b]
    s = wp.abs(trial[b]) + wp.abs(base[b])
    if step.held[b] == 0:
        s = s + step.ch2[b] * (elastic_size(body, b, poses.A[b]) + elastic_size(body, b, trials.A[b]))
    size[b] = s


@wp.kernel
def linearize_bodies(
    first: wp.int32,
    body: BodyData,
    step: StepData,
    pose: Pose,
    done: wp.array(dtype=wp.int32),
    joint_diagonal: wp.array3d(dtype=wp.float64),
    gradient: wp.array2d(dtype=wp.float64),
    diagonal: wp.array3d(dtype=wp.float64),
):
    """Compute the gradient (n, 12) of the energies of single bodies, and the 12x12 blocks, with constant blocks of joints."""
    b = wp.tid() + first
    if done[b] != 0:
        return
    for r in range(12):
        gradient[b, r] = ZERO
        for c in range(12):
            diagonal[b, r, c] = joint_diagonal[b, r, c]
    if step.held[b] != 0:
        return
    A = pose.A[b]
    G = wp.mat33d()
    if body.kind[b] == Kind.DYNAMIC:
        m = step.scale[b] * body.mass[b]
        s = step.scale[b] * body.moment[b]
        g = m * (pose.p[b] - step.pt[b]) - step.ch2[b] * (body.mass[b] * step.gravity + body.force[b])
        D = A - step.At[b]
        tau = body.torque[b]
        T = wp.mat33d()
        if wp.dot(tau, tau) > ZERO:
            T = couple(tau, A)
        for r in range(3):
            gradient[b, r] = g[r]
            diagonal[b, r, r] = diagonal[b, r, r] + m
            for c in range(3):
                G[r, c] = s[c] * D[r, c] - step.ch2[b] * T[r, c]
                diagonal[b, 3 + 3 * r + c, 3 + 3 * r + c] = diagonal[b, 3 + 3 * r + c, 3 + 3 * r + c] + s[c]
    else:
        w = step.penalty[0] * body.weight[b]
        ws = w * body.spread[b]
        g = w * (pose.p[b] - step.pk[b]) - step.lp[b]
        G = ws * (A - step.Ak[b]) - step.lA[b]
        for r in range(3):
            gradient[b, r] = g[r]
            diagonal[b, r, r] = diagonal[b, r, r] + w
            for c in range(3):
                diagonal[b, 3 + 3 * r + c, 3 + 3 * r + c] = diagonal[b, 3 + 3 * r + c, 3 + 3 * r + c] + ws
    k = step.ch2[b] * body.stiffness[b]
    if body.arap[b] != 0:
        # dA -> 2 k sym(dA R^T) R, the positive semi-definite part of the Hessian at A = R
        R = polar(A)
        G = G + TWO * k * (A - R)
        for r in range(3):
            for s2 in range(3):
                for a in range(3):
                    for c in range(3):
                        v = R[r, c] * R[s2, a]
                        if r == s2 and a == c:
                            v = v + ONE
                        i = 3 + 3 * r + a
                        j = 3 + 3 * s2 + c
                        diagonal[b, i, j] = diagonal[b, i, j] + k * v
    else:
        E = A * wp.transpose(A) - identity3()
        M = wp.transpose(A) * A
        k4 = wp.float64(4.0) * k
        G = G + k4 * (E * A)
        P = positive_part(E)
        for r in range(3):
            for s2 in range(3):
                for a in range(3):
                    for c in range(3):
                        v = A[s2, a] * A[r, c]
                        if r == s2:
                            v = v + M[a, c]
                        if a == c:
                            v = v + P[r, s2]
                        i = 3 + 3 * r + a
                        j = 3 + 3 * s2 + c
                        diagonal[b, i, j] = diagonal[b, i, j] + k4 * v
    for r in range(3):
        for c in range(3):
            gradient[b, 3 + 3 * r + c] = gradient[b, 3 + 3 * r + c] + G[r, c]


@wp.kernel
def stiffen_rotations(
    first: wp.int32,
    body: BodyData,
    step: StepData,
    pose: Pose,
    done: wp.array(dtype=wp.int32),
    before: wp.array2d(dtype=wp.float64),
    gradient: wp.array2d(dtype=wp.float64),
    diagonal: wp.array3d(dtype=wp.float64),
):
    """Replace the stress term of the straight Hessian by that of the arc, in the blocks of bodies in contact.

    Along ``A(alpha) = exp(alpha W) A`` the second derivative gains ``G : W^2 A = w . (sym P - tr P 1) w``, ``P = G A^T``;
    its positive part goes to the rotations ``w = axial(D A^-1)``. G is the gradient of all energies except near-rigidity;
    a body is in contact if `gradient` differs from `before`, the gradient without contacts. See
    `abd/potentials/arc_stiffness.py`.
    """
    b = wp.tid() + first
    if done[b] != 0 or step.held[b] != 0 or body.rotation[b] == Turning.HELD:
        return
    A = pose.A[b]
    G = wp.mat33d()
    contact = ZERO
    for r in range(3):
        for c in range(3):
            G[r, c] = gradient[b, 3 + 3 * r + c]
            contact = contact + wp.abs(G[r, c] - before[b, 3 + 3 * r + c])
    k = step.ch2[b] * body.stiffness[b]
    if body.arap[b] != 0:
        elastic = TWO * k * (A - polar(A))
        if contact == ZERO:
            G = wp.mat33d()
        G = G - elastic
    else:
        if contact == ZERO:
            return
        k4 = wp.float64(4.0) * k
        E = A * wp.transpose(A) - identity3()
        G = G - k4 * (E * A)
        stress = wp.mat33d()
        if k4 > ZERO:
            stress = positive_part(E)
        for r in range(3):
            for s in range(3):
                for a in range(3):
                    i = 3 + 3 * r + a
                    j = 3 + 3 * s + a
                    diagonal[b, i, j] = diagonal[b, i, j] - k4 * stress[r, s]
    P = G * wp.transpose(A)
    M = HALF * (P + wp.transpose(P)) - wp.trace(P) * identity3()
    if body.rotation[b] == Turning.AXIS:
        e = body.axis[b]
        M = wp.max(ZERO, wp.dot(e, M * e)) * wp.outer(e, e)
    else:
        M = positive_part(M)
    if wp.ddot(M, M) == ZERO:
        return
    B = wp.inverse(A)
    for i in range(3):
        for a in range(3):
            wi = half_cross(i, B, a)
            Mw = M * wi
            for j in range(3):
                for c in range(3):
                    wj = half_cross(j, B, c)
                    p = 3 + 3 * i + a
                    q = 3 + 3 * j + c
                    diagonal[b, p, q] = diagonal[b, p, q] + wp.dot(Mw, wj)


@wp.func
def half_cross(i: wp.int32, B: wp.mat33d, a: wp.int32) -> wp.vec3d:
    """Axial vector of ``D B`` for the unit change D of entry (i, a): ``1/2 b x e_i`` with b the row a of B."""
    e = wp.vec3d()
    e[i] = ONE
    return HALF * wp.cross(wp.vec3d(B[a, 0], B[a, 1], B[a, 2]), e)
