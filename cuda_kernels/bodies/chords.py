"""Inertial targets on chords of q (n, 12), and velocities: `bdf2` of `abd.potentials.integrators`."""

import warp as wp

from cuda_kernels.bodies.affine import ONE, Pose, rate_of
from cuda_kernels.bodies.bodies import BodyData
from cuda_kernels.bodies.integrators import Lead, turning_of
from cuda_kernels.options import OPTIONS
from cuda_kernels.shared.bodies import (
    PER_H,
    RATE_NEW,
    RATE_OLD,
    REST_BEFORE,
    REST_NOW,
    TARGET_BEFORE,
    TARGET_NOW,
    TARGET_RATE,
    TARGET_RATE_BEFORE,
)

wp.set_module_options(OPTIONS)


@wp.kernel
def predict(
    first: wp.int32,
    body: BodyData,
    now: Pose,
    before: Pose,
    velocity: wp.array2d(dtype=wp.float64),
    earlier: wp.array2d(dtype=wp.float64),
    scheme: wp.array(dtype=wp.int32),
    schemes: wp.array3d(dtype=wp.float64),
    ch2: wp.array(dtype=wp.float64),
    target: Pose,
    scale: wp.array(dtype=wp.float64),
    lead: Lead,
    rest: Pose,
):
    """Compute target = w0 now + w1 before + w2 velocity + w3 earlier, with the weights w of the body's scheme.

    rest (friction's xh) = w4 now + w5 before, minus the motion of a moving surface."""
    b = wp.tid() + first
    weights = schemes[scheme[b]]
    p = weights[1, TARGET_NOW] * now.p[b] + weights[1, TARGET_BEFORE] * before.p[b]
    A = weights[1, TARGET_NOW] * now.A[b] + weights[1, TARGET_BEFORE] * before.A[b]
    for r in range(3):
        p[r] = p[r] + weights[1, TARGET_RATE] * velocity[b, r] + weights[1, TARGET_RATE_BEFORE] * earlier[b, r]
        for c in range(3):
            k = 3 + 3 * r + c
            A[r, c] = A[r, c] + weights[1, TARGET_RATE] * velocity[b, k] + weights[1, TARGET_RATE_BEFORE] * earlier[b, k]
    target.p[b] = p
    target.A[b] = A
    scale[b] = ONE
    lead.dp[b] = p - now.p[b]
    lead.w[b] = turning_of(body, b, now.A[b], rate_of(velocity, b)) / weights[1, PER_H]
    lead.load[b] = ch2[b]
    surface = (now.A[b] * body.surface[b]) / weights[1, RATE_NEW]
    rest.p[b] = weights[1, REST_NOW] * now.p[b] + weights[1, REST_BEFORE] * before.p[b] - surface
    rest.A[b] = weights[1, REST_NOW] * now.A[b] + weights[1, REST_BEFORE] * before.A[b]


@wp.kernel
def differentiate(
    first: wp.int32,
    pose: Pose,
    now: Pose,
    before: Pose,
    scheme: wp.array(dtype=wp.int32),
    schemes: wp.array3d(dtype=wp.float64),
    velocity: wp.array2d(dtype=wp.float64),
):
    """velocity = w6 (pose - now) + w8 (before - now), with pose the new state."""
    b = wp.tid() + first
    weights = schemes[scheme[b]]
    w = weights[1, RATE_NEW]
    v = weights[1, RATE_OLD]
    dp = w * (pose.p[b] - now.p[b]) + v * (before.p[b] - now.p[b])
    dA = w * (pose.A[b] - now.A[b]) + v * (before.A[b] - now.A[b])
    for r in range(3):
        velocity[b, r] = dp[r]
        for c in range(3):
            velocity[b, 3 + 3 * r + c] = dA[r, c]
