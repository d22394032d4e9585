"""Arcs from directions and from velocities, and the numbers that limit a step along them."""

import warp as wp

from cuda_kernels.bodies.affine import (
    HALF,
    ONE,
    TWO,
    ZERO,
    Path,
    Pose,
    axial,
    identity3,
    map_of,
    rotation,
    skew,
    spectral_bound,
    triple,
)
from cuda_kernels.bodies.bodies import BodyData, StepData
from cuda_kernels.bodies.integrators import Lead
from cuda_kernels.options import OPTIONS
from cuda_kernels.shared.bodies import Kind, Turning
from cuda_kernels.shared.step import STAY, WITH_FORCES, WITHOUT_FORCES

wp.set_module_options(OPTIONS)


@wp.func
def corner(lower: wp.vec3d, upper: wp.vec3d, k: wp.int32) -> wp.vec3d:
    """Corner k of a box."""
    x = lower
    if k % 2 == 1:
        x[0] = upper[0]
    if (k // 2) % 2 == 1:
        x[1] = upper[1]
    if k // 4 == 1:
        x[2] = upper[2]
    return x


@wp.func
def deformed_radius(lower: wp.vec3d, upper: wp.vec3d, A: wp.mat33d) -> wp.float64:
    """Largest |A X| over a body's box [m]."""
    r = ZERO
    for k in range(8):
        r = wp.max(r, wp.length(A * corner(lower, upper, k)))
    return r


@wp.func
def bound_arc(path: Path, b: wp.int32, r: wp.float64):
    """Set `rate`, `bend`, `affine_speed` and `strain` of a body with given A, dp, w and S."""
    path.rate[b] = (skew(path.w[b]) + path.S[b]) * path.A[b]
    S = spectral_bound(path.S[b])
    W = wp.length(path.w[b])
    path.bend[b] = r * (W * W * (ONE + S) + TWO * W * S)
    path.affine_speed[b] = r * (W * (ONE + S) + S)
    path.strain[b] = S


@wp.kernel
def stretch(
    first: wp.int32,
    island: wp.array(dtype=wp.int32),
    factor: wp.array(dtype=wp.float64),
    direction: wp.array2d(dtype=wp.float64),
):
    """Directions (n, 12) times the factors of the bodies' islands."""
    b = wp.tid() + first
    for r in range(12):
        direction[b, r] = factor[island[b]] * direction[b, r]


@wp.kernel
def direction_paths(
    first: wp.int32,
    body: BodyData,
    box_lower: wp.array(dtype=wp.vec3d),
    box_upper: wp.array(dtype=wp.vec3d),
    surface_lower: wp.array(dtype=wp.vec3d),
    surface_upper: wp.array(dtype=wp.vec3d),
    pose: Pose,
    done: wp.array(dtype=wp.int32),
    direction: wp.array2d(dtype=wp.float64),
    path: Path,
    speed: wp.array(dtype=wp.float64),
    limit: wp.array(dtype=wp.float64),
):
    """Compute the arc of every body along a direction (n, 12), the largest displacement of its surface [m] and the strain limit.

    The arc is bounded for the vertices within their box. The displacement is that of the surface, which is a contact radius
    further out, bounded by the corners of its box. The limit is the alpha at which |alpha S| reaches 1/2. Bodies that are
    done do not move; their direction is set to zero.
    """
    b = wp.tid() + first
    A = pose.A[b]
    D = wp.mat33d()
    dp = wp.vec3d()
    if done[b] == 0:
        dp = triple(direction, b, 0)
        D = map_of(direction, b)
    S = wp.mat33d()
    w = wp.vec3d()
    if wp.ddot(D, D) > ZERO:
        S = D * wp.inverse(A)
        if body.rotation[b] == Turning.FREE:
            w = axial(S)
        if body.rotation[b] == Turning.AXIS:
            e = body.axis[b]
            w = wp.dot(axial(S), e) * e
        S = S - skew(w)
    path.p[b] = pose.p[b]
    path.A[b] = A
    path.dp[b] = dp
    path.w[b] = w
    path.S[b] = S
    speed[b] = ZERO
    limit[b] = ONE
    if done[b] != 0:
        path.bend[b] = ZERO
        path.affine_speed[b] = ZERO
        path.strain[b] = ZERO
        for r in range(12):
            direction[b, r] = ZERO
        return
    bound_arc(path, b, deformed_radius(box_lower[b], box_upper[b], A))
    lo = surface_lower[b]
    hi = surface_upper[b]
    fastest = ZERO
    for k in range(8):
        fastest = wp.max(fastest, wp.length(dp + D * corner(lo, hi, k)))
    # minima and maxima drop a NaN: report it as an infinite speed
    for r in range(12):
        if not wp.isfinite(direction[b, r]):
            fastest = wp.float64(wp.inf)
    speed[b] = fastest
    strain = spectral_bound(S)
    if strain > HALF:
        limit[b] = HALF / strain


@wp.kernel
def start_paths(
    first: wp.int32,
    body: BodyData,
    step: StepData,
    box_lower: wp.array(dtype=wp.vec3d),
    box_upper: wp.array(dtype=wp.vec3d),
    pose: Pose,
    lead: Lead,
    moving: wp.array(dtype=wp.int32),
    path: Path,
):
    """Compute the arcs from q_n along the predicted motion (`Lead`), those of prescribed bodies to their poses.

    A prescribed body ends exactly on its pose: S is the difference that remains after the rotation, because contact may have
    strained A. Bodies with `moving` = 0 do not move. Those with 2 are in contact: they move without the force term, but with
    the forces of the last step.
    """
    b = wp.tid() + first
    A = pose.A[b]
    dp = wp.vec3d()
    w = wp.vec3d()
    S = wp.mat33d()
    if moving[b] != STAY and step.held[b] == 0:
        if body.kind[b] == Kind.DYNAMIC:
            dp = lead.dp[b]
            if body.mass[b] > ZERO and moving[b] == WITH_FORCES:
                dp = dp + lead.load[b] * (step.gravity + body.force[b] / body.mass[b])
            w = lead.w[b]
            if moving[b] == WITHOUT_FORCES:
                dp = dp + lead.push[b]
                w = w + lead.twist[b]
            dp = wp.cw_mul(dp, body.translation[b])
        else:
            dp = step.pk[b] - pose.p[b]
            turn_to_target = step.Ak[b] * wp.inverse(A)
            w = rotation_vector(turn_to_target)
            S = rotation(-w) * turn_to_target - identity3()
    path.p[b] = pose.p[b]
    path.A[b] = A
    path.dp[b] = dp
    path.w[b] = w
    path.S[b] = S
    bound_arc(path, b, deformed_radius(box_lower[b], box_upper[b], A))


@wp.kernel
def lead_to_targets(
    first: wp.int32,
    chosen: wp.array(dtype=wp.int32),
    q: wp.array2d(dtype=wp.float64),
    now: Pose,
    prescribed: Pose,
    target: Pose,
    lead: Lead,
):
    """Set the poses of prescribed bodies (k,) to q (k, 12), and their targets and leads from their states `now`."""
    k = wp.tid() + first
    b = chosen[k]
    p = triple(q, k, 0)
    A = map_of(q, k)
    prescribed.p[b] = p
    prescribed.A[b] = A
    target.p[b] = p
    target.A[b] = A
    lead.dp[b] = p - now.p[b]
    lead.w[b] = rotation_vector(A * wp.inverse(now.A[b]))


@wp.func
def rotation_vector(R: wp.mat33d) -> wp.vec3d:
    """Axial vector of log R for angles below pi."""
    v = axial(R)
    s = wp.length(v)
    c = HALF * (R[0, 0] + R[1, 1] + R[2, 2] - ONE)
    if s < wp.float64(1.0e-9):
        return v
    return wp.atan2(s, c) / s * v


@wp.kernel
def displacements(
    first: wp.int32,
    path: Path,
    island: wp.array(dtype=wp.int32),
    alpha: wp.array(dtype=wp.float64),
    out: wp.array(dtype=wp.float64),
):
    """Return a bound of the displacement of all vertices of a body on its arc up to alpha [m]."""
    b = wp.tid() + first
    a = alpha[island[b]]
    out[b] = a * (wp.length(path.dp[b]) + path.affine_speed[b])
