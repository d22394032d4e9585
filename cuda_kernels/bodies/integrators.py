"""Inertial targets of free rigid motion (`abd.potentials.integrators`); momenta are in `momenta`."""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, ZERO, Pose, axial, map_of, rotation, triple
from cuda_kernels.bodies.bodies import BodyData
from cuda_kernels.bodies.free_motion import (
    Principal,
    free_rotation,
    moments_about,
    nearest_turn,
    principal,
    spin,
)
from cuda_kernels.bodies.gyration import carried, displacement_factors, own_axis, thin_axis
from cuda_kernels.options import OPTIONS
from cuda_kernels.shared import bodies as shared
from cuda_kernels.shared.bodies import Kind, Mode, Motion, Turning

wp.set_module_options(OPTIONS)

PERSISTENT = wp.constant(wp.float64(shared.PERSISTENT))


@wp.struct
class Lead:
    """Predicted motion from the present state to the start of Newton's method: displacement dp [m] and rotation vector w [rad].

    Without contact, external forces per mass times `load` [s^2] are added to dp; in contact, `push` [m] is added to dp and
    `twist` [rad] to w."""

    dp: wp.array(dtype=wp.vec3d)
    w: wp.array(dtype=wp.vec3d)
    load: wp.array(dtype=wp.float64)
    push: wp.array(dtype=wp.vec3d)
    twist: wp.array(dtype=wp.vec3d)


@wp.func
def persistent_force(force: wp.vec3d, before: wp.vec3d) -> wp.vec3d:
    """Return the force if it is at most `PERSISTENT` times that of the step before, otherwise zero."""
    if wp.length(force) > PERSISTENT * wp.length(before):
        return wp.vec3d()
    return force


@wp.func
def spin_of(body: BodyData, b: wp.int32, axes: Principal, inertia: wp.mat33d, L: wp.vec3d) -> wp.vec3d:
    """Return the angular velocity from a momentum, within the free rotations of the body."""
    if body.rotation[b] == Turning.FREE:
        return spin(axes, L)
    if body.rotation[b] == Turning.AXIS:
        e = body.axis[b]
        moment = wp.dot(e, inertia * e)
        if moment > ZERO:
            return wp.dot(e, L) / moment * e
    return wp.vec3d()


@wp.func
def turning_of(body: BodyData, b: wp.int32, A: wp.mat33d, D: wp.mat33d) -> wp.vec3d:
    """Return the angular velocity of a rate D of A, within the free rotations of the body."""
    if body.rotation[b] == Turning.HELD:
        return wp.vec3d()
    w = axial(D * wp.inverse(A))
    if body.rotation[b] == Turning.AXIS:
        e = body.axis[b]
        w = wp.dot(w, e) * e
    return w


@wp.func
def blended(
    motion: wp.array(dtype=wp.float64),
    column: wp.int32,
    memory: wp.array2d(dtype=wp.float64),
    b: wp.int32,
    k: wp.int32,
) -> wp.vec3d:
    """Combine the last and the mean force (k = 0) or torque (3) of the history by two columns of `motion`."""
    return motion[column] * triple(memory, b, k) + motion[column + 1] * triple(memory, b, k + 6)


@wp.kernel
def levels_of_arms(
    first: wp.int32,
    body: BodyData,
    armed: wp.array(dtype=wp.int32),
    arm: wp.array(dtype=wp.vec3d),
    now: Pose,
    velocity: wp.array2d(dtype=wp.float64),
    scheme: wp.array(dtype=wp.int32),
    motions: wp.array3d(dtype=wp.float64),
    requested: wp.array(dtype=wp.int32),
):
    """Choose the level of spectral radius that damps the joint force on every turning arm (k,).

    See `abd.joints.rows.sizes.turning_arms` and `abd.potentials.integrators.levels`."""
    k = wp.tid() + first
    b = armed[k]
    motion = motions[scheme[b]]
    A = now.A[b]
    turn = wp.length(wp.cross(turning_of(body, b, A, map_of(velocity, b)), A * arm[k]))
    i = wp.int32(0)
    while turn * motion[Mode.SMOOTH + i, Motion.STEP] > motion[Mode.SMOOTH + i, Motion.TURN]:
        i = i + 1
    requested[k] = i


@wp.kernel
def choose_levels(
    first: wp.int32,
    armed: wp.array(dtype=wp.int32),
    mechanism: wp.array(dtype=wp.int32),
    requested: wp.array(dtype=wp.int32),
    level: wp.array(dtype=wp.int32),
):
    """Set the level of every mechanism to that of its fastest arm."""
    k = wp.tid() + first
    wp.atomic_max(level, mechanism[armed[k]], requested[k])


@wp.func
def row_of(
    mode: wp.array(dtype=wp.int32), mechanism: wp.array(dtype=wp.int32), level: wp.array(dtype=wp.int32), b: wp.int32
) -> wp.int32:
    """Return the row of `motion` of a body."""
    if mode[b] == Mode.SMOOTH:
        return Mode.SMOOTH + level[mechanism[b]]
    return mode[b]


@wp.kernel
def coast(
    first: wp.int32,
    body: BodyData,
    mode: wp.array(dtype=wp.int32),
    mechanism: wp.array(dtype=wp.int32),
    level: wp.array(dtype=wp.int32),
    scheme: wp.array(dtype=wp.int32),
    motions: wp.array3d(dtype=wp.float64),
    now: Pose,
    velocity: wp.array2d(dtype=wp.float64),
    memory: wp.array2d(dtype=wp.float64),
    pulled: wp.array2d(dtype=wp.float64),
    target: Pose,
    scale: wp.array(dtype=wp.float64),
    lead: Lead,
    rest: Pose,
):
    """Compute the inertial target by free rigid motion, the predicted motion `lead`, and friction's reference `rest`.

    The motion includes the impulses of the acceleration history (n, 12), and of springs with the forces `pulled` (n, 12) at the
    start of the step (`abd.joints.rows.springs.pulls`). `motions` (s, 7, 16): coefficients by mode and level
    (`abd.potentials.integrators`); `abd.potentials.gyration` defines the corrections for spin. The reference of a moving surface
    is displaced by its motion.
    """
    b = wp.tid() + first
    p = now.p[b]
    A = now.A[b]
    rest.p[b] = p - motions[scheme[b], 0, Motion.STEP] * (A * body.surface[b])
    rest.A[b] = A
    target.p[b] = p
    target.A[b] = A
    scale[b] = ONE
    lead.dp[b] = wp.vec3d()
    lead.w[b] = wp.vec3d()
    lead.load[b] = ZERO
    lead.push[b] = wp.vec3d()
    lead.twist[b] = wp.vec3d()
    if body.kind[b] != Kind.DYNAMIC:
        return
    i = row_of(mode, mechanism, level, b)
    motion = motions[scheme[b], i]
    h = motion[Motion.STEP]
    scale[b] = motion[Motion.SCALE]
    lead.load[b] = motion[Motion.LEAD_LOAD]
    inverse_mass = ZERO
    if body.mass[b] > ZERO:
        inverse_mass = ONE / body.mass[b]
    w = wp.vec3d()
    L = wp.vec3d()
    inertia = wp.mat33d()
    axes = Principal()
    factors = wp.vec3d()
    more = ZERO
    if body.rotation[b] != Turning.HELD:
        w = turning_of(body, b, A, map_of(velocity, b))
        inertia = moments_about(A, body.moment[b])
        L = inertia * w
    if body.rotation[b] == Turning.FREE:
        axes = principal(inertia)
        root = motion[Motion.ROOT]
        if root >= ZERO and axes.J[1] > ZERO and wp.length(L) > ZERO:
            factors = displacement_factors(h * wp.length(L) / axes.J[1], root)
            beta = ONE / ((ONE + root) * (ONE + root))
            more = h * (factors[0] - beta)
            scale[b] = motion[Motion.SCALE] / (factors[0] / beta)
    kick = blended(motion, Motion.KICK_F, memory, b, 0)
    ahead = blended(motion, Motion.LEAD_F, memory, b, 0)
    spun = more * (blended(motion, Motion.A_F, memory, b, 0) - triple(memory, b, 6))
    by = motion[Motion.SCALE] / (scale[b] * motion[Motion.STIFFNESS])
    kick = kick + spun + HALF * h * triple(pulled, b, 0) - by / h * triple(pulled, b, 6)
    ahead = ahead - h * spun + by * triple(pulled, b, 6)
    dp = h * (triple(velocity, b, 0) + inverse_mass * kick)
    target.p[b] = p + dp
    lead.dp[b] = dp + inverse_mass * ahead
    if i == Mode.DISSIPATIVE:
        lead.push[b] = h * h * inverse_mass * triple(memory, b, 6)
    if body.rotation[b] == Turning.HELD:
        return
    Q = rotation(h * w)
    axis = wp.int32(-1)
    if body.rotation[b] == Turning.FREE:
        Q = free_rotation(axes, L, h)
        axis = thin_axis(body.moment[b])
    along = own_axis(A, axis)
    stands = Q * along
    last = triple(memory, b, 9)
    spun = more * (blended(motion, Motion.A_F, memory, b, 3) - last)
    kick = blended(motion, Motion.KICK_F, memory, b, 3) + spun + HALF * h * triple(pulled, b, 3) - by / h * triple(pulled, b, 9)
    ahead = blended(motion, Motion.LEAD_F, memory, b, 3) - h * spun + by * triple(pulled, b, 9)
    kick = carried(kick, along, stands)
    ahead = carried(ahead, along, stands)
    if factors[0] > ZERO:
        last = carried(last, along, stands)
        e = L / wp.length(L)
        across = last - wp.dot(e, last) * e
        spun = h * ((factors[1] - (HALF - factors[0])) * across + factors[2] * wp.cross(e, across))
        spun = spun - wp.dot(spun, stands) * stands
        kick = kick + spun
        ahead = ahead - h * spun
    twist = wp.vec3d()
    if i == Mode.DISSIPATIVE:
        twist = h * h * triple(memory, b, 9)
    kicked = wp.vec3d()
    extra = wp.vec3d()
    if body.rotation[b] == Turning.FREE:
        # torques act on the body in its attitude at the end, as in the implicit part of the step
        kicked = h * (Q * spin(axes, wp.transpose(Q) * kick))
        extra = Q * spin(axes, wp.transpose(Q) * ahead)
        lead.twist[b] = Q * spin(axes, wp.transpose(Q) * twist)
    else:
        kicked = h * spin_of(body, b, axes, inertia, kick)
        extra = spin_of(body, b, axes, inertia, ahead)
        lead.twist[b] = spin_of(body, b, axes, inertia, twist)
    Q = rotation(kicked) * Q
    target.A[b] = Q * A
    lead.w[b] = nearest_turn(rotation(extra) * Q, h * w)
