"""Slips of surfaces that roll, along arcs; twin of ``abd/potentials/arc_slip.py``."""

import warp as wp

from cuda_kernels.bodies.affine import Pose, identity3, rotation
from cuda_kernels.bodies.free_motion import nearest_turn
from cuda_kernels.bodies.matrices import polar
from cuda_kernels.friction.lagging import Lagged
from cuda_kernels.friction.rolling import RUB

wp.set_module_options({"enable_backward": False, "max_unroll": 4})
LOADED_FOR = ("friction",)


@wp.func
def passed_by(
    kind: wp.int32, round_arm: wp.vec3d, Y: wp.vec4d, A: wp.mat33d, begin: wp.mat33d, heading: wp.mat33d, turn: wp.vec3d
) -> wp.vec3d:
    """What the surface of one body passes more than its chord says [m]."""
    inverse = wp.inverse(A)
    to_end = polar(heading * inverse)
    arm = round_arm
    X = inverse * (wp.transpose(to_end) * arm)
    if kind != RUB:
        X = wp.vec3d(Y[1], Y[2], Y[3])
        arm = to_end * (A * X)
    w = nearest_turn(heading * wp.inverse(begin), turn)
    return wp.cross(w, arm) - (rotation(w) - identity3()) * (begin * X)


@wp.kernel
def add_passed(
    first: wp.int32,
    l: Lagged,
    pose: Pose,
    rest: Pose,
    heading: wp.array(dtype=wp.mat33d),
    turn: wp.array(dtype=wp.vec3d),
    radius: wp.array(dtype=wp.float64),
):
    """Stretch the frozen contacts where the step begins; they were frozen at `pose`, the step begins at `rest`."""
    e = wp.tid() + first
    if e >= l.counts[1]:
        return
    i = l.pair[e][0]
    j = l.pair[e][1]
    kind = l.kind[e]
    if kind == RUB and radius[i] == wp.float64(0.0) and radius[j] == wp.float64(0.0):
        return
    n = l.n[e]
    out = passed_by(kind, -radius[i] * n, l.Y_i[e], pose.A[i], rest.A[i], heading[i], turn[i])
    if l.Y_j[e][0] != wp.float64(0.0) or kind != RUB:
        out = out - passed_by(kind, radius[j] * n, l.Y_j[e], pose.A[j], rest.A[j], heading[j], turn[j])
    out = out - wp.dot(out, n) * n
    l.share[e] = l.share[e] + out / l.eps[i]
