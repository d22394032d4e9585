"""Smoothed Coulomb friction of lagged contacts (`lagging`): energies, blocks and works, as in ``abd/potentials/friction.py``."""

import warp as wp

from cuda_kernels.bodies.affine import ONE, ZERO, Pose, axial
from cuda_kernels.contact.active_pairs import Items
from cuda_kernels.contact.blocks import PairSums, Runs, add_between, clear_sums
from cuda_kernels.contact.elements import PLAIN, Elements
from cuda_kernels.friction.coulomb import f0, f1_over_y
from cuda_kernels.friction.lagging import Lagged, pair_key
from cuda_kernels.friction.sticking import Anchors
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)
LOADED_FOR = ("friction",)


@wp.func
def slip(l: Lagged, e: wp.int32, pose: Pose, rest: Pose) -> wp.vec3d:
    """Return the tangential relative displacement from the rest pose xh, along arcs [m], a world vector."""
    i = l.pair[e][0]
    j = l.pair[e][1]
    Yi = l.Y_i[e]
    Yj = l.Y_j[e]
    Xi = wp.vec3d(Yi[1], Yi[2], Yi[3])
    Xj = wp.vec3d(Yj[1], Yj[2], Yj[3])
    u = Yi[0] * (pose.p[i] - rest.p[i]) + (pose.A[i] - rest.A[i]) * Xi
    u = u - Yj[0] * (pose.p[j] - rest.p[j]) - (pose.A[j] - rest.A[j]) * Xj
    n = l.n[e]
    return u - wp.dot(u, n) * n + l.arc[e]


@wp.func
def stretch(l: Lagged, e: wp.int32, pose: Pose, rest: Pose) -> wp.vec3d:
    """Return the stretch of the contact's spring: its initial stretch plus the slip of the step [m], a world vector."""
    return slip(l, e, pose, rest) + l.eps[l.pair[e][0]] * l.start_stretch[e]


@wp.kernel
def friction_energies(first: wp.int32, l: Lagged, pose: Pose, rest: Pose, energy: wp.array(dtype=wp.float64)):
    """Compute the energies ``load f0(|e|)``."""
    e = wp.tid() + first
    if e >= l.counts[1]:
        return
    energy[e] = l.load[e] * f0(wp.length(stretch(l, e, pose, rest)), l.eps[l.pair[e][0]])


@wp.struct
class FrictionTerm:
    """Force f on body i and stiffness K of a lagged contact."""

    f: wp.vec3d
    K: wp.mat33d


@wp.func
def friction_term(
    l: Lagged, e: wp.int32, pose: Pose, rest: Pose, regularisation: wp.array(dtype=wp.float64)
) -> FrictionTerm:
    """Return the force along the stretch, and the block ``load (g (1 - n n^T) + (g' / y) u u^T)``, g = f1 / y.

    The weight `regularisation` reduces its negative second term, or the whole block of a negative load."""
    eps = l.eps[l.pair[e][0]]
    u = stretch(l, e, pose, rest)
    y = wp.length(u)
    n = l.n[e]
    w = l.load[e]
    weight = ONE - regularisation[l.pair[e][0]]  # a dynamic body
    secant = f1_over_y(y, eps)
    out = FrictionTerm()
    T = wp.mat33d(ONE, ZERO, ZERO, ZERO, ONE, ZERO, ZERO, ZERO, ONE) - wp.outer(n, n)
    regular_weight = weight
    if w < ZERO:
        regular_weight = ONE
    if y >= eps:
        out.K = w * secant * (T - regular_weight / (y * y) * wp.outer(u, u))
    else:
        out.K = w * secant * T
        if y > ZERO:
            out.K = out.K - regular_weight * w / (eps * eps * y) * wp.outer(u, u)
    if w < ZERO:
        out.K = weight * out.K
    out.f = w * secant * u
    return out


@wp.kernel
def friction_blocks(
    first: wp.int32,
    l: Lagged,
    pose: Pose,
    rest: Pose,
    done: wp.array(dtype=wp.int32),
    regularisation: wp.array(dtype=wp.float64),
    runs: Runs,
    counts: wp.array(dtype=wp.int32),
    items: Items,
    out: PairSums,
):
    """Sum over the lagged contacts of every run, unless both bodies are done; counts = [pairs, runs]."""
    t = wp.tid() + first
    if t >= counts[1]:
        return
    begin = runs.begin[t]
    pair = l.pair[items.item[begin]]
    if done[pair[0]] != 0 and done[pair[1]] != 0:
        return
    clear_sums(out, t)
    for place in range(begin, runs.end[t]):
        e = items.item[place]
        friction = friction_term(l, e, pose, rest, regularisation)
        add_between(out, t, friction.f, friction.K, l.Y_i[e], l.Y_j[e])


@wp.kernel
def friction_elements(
    first: wp.int32,
    l: Lagged,
    pose: Pose,
    rest: Pose,
    regularisation: wp.array(dtype=wp.float64),
    runs: Runs,
    counts: wp.array(dtype=wp.int32),
    run: wp.int32,
    items: Items,
    out: Elements,
):
    """Compute one lagged contact of a run in its place; counts = [pairs, runs]."""
    place = wp.tid() + first
    t = place // run
    if t >= counts[1]:
        return
    if place >= runs.end[t]:
        return
    e = items.item[place]
    friction = friction_term(l, e, pose, rest, regularisation)
    out.f[place] = friction.f
    out.K[place] = friction.K
    out.Y_i[place] = l.Y_i[e]
    out.Y_j[place] = l.Y_j[e]
    out.kind[place] = wp.vec3i(PLAIN, 0, 0)


@wp.kernel
def friction_works(
    first: wp.int32,
    l: Lagged,
    pose: Pose,
    rest: Pose,
    ch2: wp.array(dtype=wp.float64),
    out: wp.array(dtype=wp.float64),
):
    """Compute the work of friction on the slips of a step to `pose` [J], with c h^2 of bodies (n,)."""
    e = wp.tid() + first
    if e >= l.counts[1]:
        return
    eps = l.eps[l.pair[e][0]]
    u = slip(l, e, pose, rest)
    s = u + eps * l.start_stretch[e]
    out[e] = -l.load[e] * f1_over_y(wp.length(s), eps) * wp.dot(s, u) / ch2[l.pair[e][0]]


@wp.kernel
def keep_anchors(first: wp.int32, l: Lagged, pose: Pose, rest: Pose, now: Pose, out: Anchors):
    """Store the anchors of the contacts after a step from `now` to `pose` (`sticking`)."""
    e = wp.tid() + first
    if e == 0:
        out.count[0] = l.counts[1]
    if e >= l.counts[1]:
        return
    i = l.pair[e][0]
    j = l.pair[e][1]
    n = l.n[e]
    s = stretch(l, e, pose, rest) / l.eps[i]
    s = s / wp.max(wp.length(s), ONE)
    turned = axial(pose.A[i] * wp.inverse(now.A[i])) + axial(pose.A[j] * wp.inverse(now.A[j]))
    spin = wp.float64(0.5) * wp.dot(turned, n)
    Y = l.Y_i[e]
    out.key[e] = pair_key(i, j, pose.p.shape[0])
    out.kind[e] = l.kind[e]
    out.point[e] = wp.vec3d(Y[1], Y[2], Y[3])
    out.share[e] = wp.cos(spin) * s + wp.sin(spin) * wp.cross(n, s)
