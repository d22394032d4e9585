"""Momenta and forces at the end of a step (`abd.potentials.integrators`)."""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, ZERO, Pose, map_of, set_row, skew, triple
from cuda_kernels.bodies.bodies import BodyData
from cuda_kernels.bodies.free_motion import (
    Principal,
    free_rotation,
    moments_about,
    principal,
    spin,
    torque_of,
)
from cuda_kernels.bodies.gyration import carried, own_axis, thin_axis, twisting
from cuda_kernels.bodies.integrators import (
    blended,
    persistent_force,
    row_of,
    spin_of,
    turning_of,
)
from cuda_kernels.options import OPTIONS, opaque
from cuda_kernels.shared.bodies import Kind, Mode, Motion, Turning

wp.set_module_options(OPTIONS)


@wp.func
def acting_on(
    body: BodyData, b: wp.int32, k: wp.float64, p: wp.vec3d, A: wp.mat33d, to: wp.vec3d, At: wp.mat33d
) -> tuple[wp.vec3d, wp.vec3d]:
    """Return net force and torque at the end (p, A) of a step with the target (to, At), k = s_b/(c_b h^2) [1/s^2]."""
    D = A - At
    s = body.moment[b]
    for r in range(3):
        for c in range(3):
            D[r, c] = k * s[c] * D[r, c]
    return k * body.mass[b] * (p - to), torque_of(D, A)


@wp.kernel(grid_stride=False)
def keep_momentum(
    first: wp.int32,
    body: BodyData,
    mode: wp.array(dtype=wp.int32),
    mechanism: wp.array(dtype=wp.int32),
    level: wp.array(dtype=wp.int32),
    scheme: wp.array(dtype=wp.int32),
    motions: wp.array3d(dtype=wp.float64),
    pose: Pose,
    now: Pose,
    target: Pose,
    scale: wp.array(dtype=wp.float64),
    earlier: wp.array2d(dtype=wp.float64),
    pulled: wp.array2d(dtype=wp.float64),
    pulls: wp.array2d(dtype=wp.float64),
    memory: wp.array2d(dtype=wp.float64),
    velocity: wp.array2d(dtype=wp.float64),
):
    """Compute the momenta after a step from `now` to `pose`, as a rigid velocity (n, 12), and the acceleration history.

    earlier: velocity before the step; pulled, pulls: (n, 12) spring forces at its start and at its end. Bodies that are not
    dynamic get the mean rates of the step."""
    b = wp.tid() + first
    A = pose.A[b]
    i = row_of(mode, mechanism, level, b)
    motion = motions[scheme[b], i]
    if body.kind[b] != Kind.DYNAMIC:
        h = motion[Motion.STEP]
        set_row(velocity, b, (pose.p[b] - now.p[b]) / h, (A - now.A[b]) / h)
        return
    k = motion[Motion.STIFFNESS] * (scale[b] / motion[Motion.SCALE])
    s = body.moment[b]
    force, torque = acting_on(body, b, k, pose.p[b], A, target.p[b], target.A[b])
    force = force - triple(pulls, b, 6)
    torque = torque - triple(pulls, b, 9)
    half = HALF * motion[Motion.STEP]
    inverse_mass = ZERO
    if body.mass[b] > ZERO:
        inverse_mass = ONE / body.mass[b]
    gain = motion[Motion.M_NEW] * force + blended(motion, Motion.M_F, memory, b, 0)
    gain = gain + half * (triple(pulled, b, 0) + triple(pulls, b, 0))
    whirl = motion[Motion.M_NEW] * torque + blended(motion, Motion.M_F, memory, b, 3)
    whirl = whirl + half * (triple(pulled, b, 3) + triple(pulls, b, 3))
    mean = motion[Motion.A_NEW] * force + blended(motion, Motion.A_F, memory, b, 0)
    axis = wp.int32(-1)
    if body.rotation[b] == Turning.FREE:
        axis = thin_axis(s)
    along = own_axis(now.A[b], axis)
    stands = own_axis(A, axis)
    turned = motion[Motion.A_NEW] * torque + carried(blended(motion, Motion.A_F, memory, b, 3), along, stands)
    v = triple(earlier, b, 0) + inverse_mass * gain
    # otherwise values loaded so far would occupy registers during the following rotations
    b = opaque(b)
    inertia = moments_about(now.A[b], s)
    known = inertia * turning_of(body, b, now.A[b], map_of(earlier, b))
    L = known + whirl
    free = wp.vec3d()
    at = wp.mat33d()
    about = ZERO
    if axis >= 0:
        axes_now = principal(inertia)
        Q = free_rotation(axes_now, known, motion[Motion.STEP])
        at = Q * now.A[b]
        free = Q * spin(axes_now, wp.transpose(Q) * known)
        about = wp.dot(Q * along, known) + motion[Motion.M_NEW] * wp.dot(stands, torque)
        about = about + wp.dot(along, blended(motion, Motion.M_F, memory, b, 3) + half * triple(pulled, b, 3))
        about = about + half * wp.dot(stands, triple(pulls, b, 3))
    b = opaque(b)
    A = pose.A[b]
    inertia = moments_about(A, s)
    axes = Principal()
    if body.rotation[b] == Turning.FREE:
        axes = principal(inertia)
    w = spin_of(body, b, axes, inertia, L)
    if axis >= 0:
        # J_2 - J_3 = s_3 - s_2
        apart = s[(axis + 2) % 3] - s[(axis + 1) % 3]
        about = about + HALF * motion[Motion.STEP] * apart * (twisting(A, axis, w) - twisting(at, axis, free))
        w = spin_of(body, b, axes, inertia, L + (about - wp.dot(stands, L)) * stands)
    rate = skew(w) * A
    if i == Mode.DISSIPATIVE:
        mean = persistent_force(force, triple(memory, b, 0))
        turned = persistent_force(torque, triple(memory, b, 3))
    for r in range(3):
        memory[b, r] = force[r]
        memory[b, 3 + r] = torque[r]
        memory[b, 6 + r] = mean[r]
        memory[b, 9 + r] = turned[r]
    set_row(velocity, b, v, rate)
