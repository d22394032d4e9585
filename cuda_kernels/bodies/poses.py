"""Conversions between poses and states q (n, 12), and operations on poses."""

import warp as wp

from cuda_kernels.bodies.affine import ZERO, Pose, map_of, set_row, triple
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)


@wp.kernel
def unpack(first: wp.int32, q: wp.array2d(dtype=wp.float64), pose: Pose):
    """Pose of a state q (n, 12)."""
    b = wp.tid() + first
    pose.p[b] = triple(q, b, 0)
    pose.A[b] = map_of(q, b)


@wp.kernel
def go_straight(first: wp.int32, pose: Pose, d: wp.array2d(dtype=wp.float64), out: Pose):
    """out = pose + d, a straight step (n, 12)."""
    b = wp.tid() + first
    out.p[b] = pose.p[b] + triple(d, b, 0)
    out.A[b] = pose.A[b] + map_of(d, b)


@wp.kernel
def add_rows(
    first: wp.int32,
    island: wp.array(dtype=wp.int32),
    weight: wp.array(dtype=wp.float64),
    x: wp.array2d(dtype=wp.float64),
    y: wp.array2d(dtype=wp.float64),
):
    """y += weight x (n, 12) with the weights of the bodies' islands, where they are not zero."""
    b = wp.tid() + first
    a = weight[island[b]]
    if a != ZERO:
        for r in range(12):
            y[b, r] = y[b, r] + a * x[b, r]


@wp.kernel
def pack(first: wp.int32, pose: Pose, q: wp.array2d(dtype=wp.float64)):
    """State q (n, 12) of a pose."""
    b = wp.tid() + first
    set_row(q, b, pose.p[b], pose.A[b])


@wp.kernel
def pack_some(first: wp.int32, chosen: wp.array(dtype=wp.int32), pose: Pose, q: wp.array2d(dtype=wp.float64)):
    """States q (k, 12) of the poses of chosen bodies (k,)."""
    k = wp.tid() + first
    set_row(q, k, pose.p[chosen[k]], pose.A[chosen[k]])


@wp.kernel
def copy_pose(first: wp.int32, source: Pose, target: Pose):
    """target = source."""
    b = wp.tid() + first
    target.p[b] = source.p[b]
    target.A[b] = source.A[b]


@wp.kernel
def exchange_poses(first: wp.int32, a: Pose, b: Pose):
    """Exchange the contents of two poses."""
    k = wp.tid() + first
    p = a.p[k]
    A = a.A[k]
    a.p[k] = b.p[k]
    a.A[k] = b.A[k]
    b.p[k] = p
    b.A[k] = A


@wp.kernel
def exchange_values(first: wp.int32, a: wp.array(dtype=wp.float64), b: wp.array(dtype=wp.float64)):
    """Exchange the contents of two arrays."""
    k = wp.tid() + first
    v = a[k]
    a[k] = b[k]
    b[k] = v


@wp.kernel
def snap(first: wp.int32, target: Pose, chosen: wp.array(dtype=wp.int32), pose: Pose):
    """Set the chosen bodies exactly to their targets."""
    b = wp.tid() + first
    if chosen[b] != 0:
        pose.p[b] = target.p[b]
        pose.A[b] = target.A[b]
