"""Inertial targets on chords of q (n, 12), and velocities: `bdf2` of `abd.potentials.integrators`."""

import warp as wp

from cuda_kernels.bodies.affine import ONE, Pose, map_of, set_row, triple
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
    Mode,
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
    weights = schemes[scheme[b], Mode.SMOOTH]
    p = weights[TARGET_NOW] * now.p[b] + weights[TARGET_BEFORE] * before.p[b]
    A = weights[TARGET_NOW] * now.A[b] + weights[TARGET_BEFORE] * before.A[b]
    p = p + weights[TARGET_RATE] * triple(velocity, b, 0) + weights[TARGET_RATE_BEFORE] * triple(earlier, b, 0)
    A = A + weights[TARGET_RATE] * map_of(velocity, b) + weights[TARGET_RATE_BEFORE] * map_of(earlier, b)
    target.p[b] = p
    target.A[b] = A
    scale[b] = ONE
    lead.dp[b] = p - now.p[b]
    lead.w[b] = turning_of(body, b, now.A[b], map_of(velocity, b)) / weights[PER_H]
    lead.load[b] = ch2[b]
    surface = (now.A[b] * body.surface[b]) / weights[RATE_NEW]
    rest.p[b] = weights[REST_NOW] * now.p[b] + weights[REST_BEFORE] * before.p[b] - surface
    rest.A[b] = weights[REST_NOW] * now.A[b] + weights[REST_BEFORE] * before.A[b]


@wp.func
def set_difference(
    pose: Pose, now: Pose, before: Pose, weights: wp.array(dtype=wp.float64), b: wp.int32,
    velocity: wp.array2d(dtype=wp.float64),
):  # fmt: skip
    """velocity = w6 (pose - now) + w8 (before - now), with pose the new state."""
    w = weights[RATE_NEW]
    v = weights[RATE_OLD]
    dp = w * (pose.p[b] - now.p[b]) + v * (before.p[b] - now.p[b])
    set_row(velocity, b, dp, w * (pose.A[b] - now.A[b]) + v * (before.A[b] - now.A[b]))


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
    """Compute `set_difference` of every body."""
    b = wp.tid() + first
    set_difference(pose, now, before, schemes[scheme[b], Mode.SMOOTH], b, velocity)
