"""The path between two states, the arc of every body; mirrors ``abd/contact/path.py`` (`between`)."""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, TWO, ZERO, Path, Pose, axial, identity3, map_of, rotation
from cuda_kernels.bodies.matrices import polar
from cuda_kernels.bodies.paths import bound_arc, deformed_radius
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)

SMALL = wp.constant(wp.float64(1.0e-9))
"""Sine of an angle below which it equals the angle and does not determine the axis."""
PI = wp.constant(wp.float64(3.141592653589793))


@wp.func
def nearest_rotation_vector(R: wp.mat33d, near: wp.vec3d) -> wp.vec3d:
    """Return the rotation vector [rad] of the rotation R that is nearest to `near`.

    With the axis n and the angle theta in [0, pi], ``(R + R^T) / 2 = cos(theta) (1 - n n^T) + n n^T`` gives the axis near
    half a turn, where the skew part vanishes.
    """
    v = axial(R)
    sine = wp.length(v)
    cosine = HALF * (R[0, 0] + R[1, 1] + R[2, 2] - ONE)
    w = v
    n = v
    if cosine < ZERO:
        dyad = HALF * (R + wp.transpose(R)) - cosine * identity3()
        k = wp.int32(0)
        if dyad[1, 1] > dyad[k, k]:
            k = 1
        if dyad[2, 2] > dyad[k, k]:
            k = 2
        n = wp.normalize(wp.vec3d(dyad[k, 0], dyad[k, 1], dyad[k, 2]))
        if wp.dot(n, v) < ZERO:
            n = -n
        w = wp.atan2(sine, cosine) * n
    elif sine > SMALL:
        n = v / sine
        w = wp.atan2(sine, cosine) * n
    else:
        # angle zero: full turns are about the axis of `near`
        n = wp.normalize(near)
    turns = wp.round((wp.dot(near, n) - wp.dot(w, n)) / (TWO * PI))
    return w + TWO * PI * turns * n


@wp.kernel
def swept_path_boxes(
    first: wp.int32,
    box_lower: wp.array(dtype=wp.vec3d),
    box_upper: wp.array(dtype=wp.vec3d),
    now: Pose,
    pose: Pose,
    velocity: wp.array2d(dtype=wp.float64),
    h: wp.array(dtype=wp.float64),
    back: wp.int32,
    path: Path,
    motion: wp.array(dtype=wp.float64),
):
    """Compute the path of every body in a step of h (n,) [s] from `now`, with the velocity (n, 12) there, to `pose`.

    If `back`, the path is the same curve from `pose` to `now`. `motion` [m] bounds the motion of all vertices. It is infinite if
    the strain of the path exceeds one half, because the search of candidates does not bound the bend of such paths.
    """
    b = wp.tid() + first
    A0 = now.A[b]
    A1 = pose.A[b]
    near = h[b] * axial(map_of(velocity, b) * wp.inverse(A0))
    w = nearest_rotation_vector(polar(A1) * wp.transpose(polar(A0)), near)
    p = now.p[b]
    dp = pose.p[b] - now.p[b]
    if back != 0:
        w = -w
        p = pose.p[b]
        dp = -dp
        A0 = pose.A[b]
        A1 = now.A[b]
    path.p[b] = p
    path.A[b] = A0
    path.dp[b] = dp
    S = rotation(-w) * A1 * wp.inverse(A0) - identity3()
    change = A1 - A0
    if wp.ddot(change, change) == ZERO and wp.length(near) < PI:
        # bodies at rest stay at rest to the last bit
        w = wp.vec3d()
        S = wp.mat33d()
    path.w[b] = w
    path.S[b] = S
    bound_arc(path, b, deformed_radius(box_lower[b], box_upper[b], A0))
    motion[b] = wp.length(dp) + path.affine_speed[b]
    if not (path.strain[b] <= HALF):
        motion[b] = wp.float64(wp.inf)


@wp.kernel
def set_stationary(
    first: wp.int32,
    stationary: wp.array(dtype=wp.int32),
    held: wp.array(dtype=wp.int32),
    pose: Pose,
    path: Path,
    motion: wp.array(dtype=wp.float64),
):
    """Set paths without motion, at `pose`, for bodies that are `stationary` (n,).

    Held bodies (n,) keep their paths: they may have reached their targets already, but the paths must still be checked."""
    b = wp.tid() + first
    if stationary[b] == 0 or held[b] != 0:
        return
    path.p[b] = pose.p[b]
    path.A[b] = pose.A[b]
    path.dp[b] = wp.vec3d()
    path.w[b] = wp.vec3d()
    path.S[b] = wp.mat33d()
    path.rate[b] = wp.mat33d()
    path.bend[b] = ZERO
    path.affine_speed[b] = ZERO
    path.strain[b] = ZERO
    motion[b] = ZERO
