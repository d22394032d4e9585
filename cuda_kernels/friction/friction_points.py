"""Lagged friction per point for output; no step needs it. It has ``friction_points`` of ``abd/contact/forces.py`` and ``shared``
of ``abd/contact/sharing.py``."""

import warp as wp

from cuda_kernels.bodies.affine import ZERO
from cuda_kernels.bodies.vector12 import vec12
from cuda_kernels.friction.coulomb import SLIDE, f1_over_y
from cuda_kernels.friction.lagging import Lagged
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)


@wp.struct
class PointFriction:
    """Effects of lagged contacts (l,): force on i [N], slip of i against j, position [m], torques about both centres [N m]."""

    force: wp.array(dtype=wp.vec3d)
    slip: wp.array(dtype=wp.vec3d)
    place: wp.array(dtype=wp.vec3d)
    torque_i: wp.array(dtype=wp.vec3d)
    torque_j: wp.array(dtype=wp.vec3d)


@wp.func
def arm(q: vec12, Y: wp.vec4d) -> wp.vec3d:
    """Return ``A Y`` from the centre of a body in the state q to the point Y."""
    return wp.vec3d(
        q[3] * Y[1] + q[4] * Y[2] + q[5] * Y[3],
        q[6] * Y[1] + q[7] * Y[2] + q[8] * Y[3],
        q[9] * Y[1] + q[10] * Y[2] + q[11] * Y[3],
    )


@wp.func
def place_of(q: vec12, Y: wp.vec4d) -> wp.vec3d:
    return Y[0] * wp.vec3d(q[0], q[1], q[2]) + arm(q, Y)


@wp.kernel
def read_points(
    first: wp.int32,
    frozen: Lagged,
    q: wp.array(dtype=vec12),
    rest: wp.array(dtype=vec12),
    slips: wp.array(dtype=wp.float64),
    still: wp.float64,
    out: PointFriction,
):
    """Compute lagged friction in the state q, with slips from `rest`; loads are in N here.

    `slips` (l,) [m] are the largest static slips, at the speed `still` [m/s]."""
    k = wp.tid() + first
    eps = slips[k]
    i = frozen.pair[k][0]
    j = frozen.pair[k][1]
    n = frozen.n[k]
    moved = place_of(q[i] - rest[i], frozen.Y_i[k]) - place_of(q[j] - rest[j], frozen.Y_j[k])
    u = moved - wp.dot(moved, n) * n
    stretch = u + eps * frozen.start_stretch[k]
    force = -(frozen.load[k] * f1_over_y(wp.length(stretch), eps)) * stretch
    out.torque_i[k] = wp.cross(arm(q[i], frozen.Y_i[k]), force)
    out.torque_j[k] = -wp.cross(arm(q[j], frozen.Y_j[k]), force)
    out.place[k] = place_of(q[i], frozen.Y_i[k])
    # arms resist rotation only: they have no force and no position
    if frozen.kind[k] == SLIDE:
        out.force[k] = force
        out.slip[k] = still / eps * u
    else:
        out.force[k] = wp.vec3d()
        out.slip[k] = wp.vec3d()


@wp.kernel
def share_friction(
    first: wp.int32,
    points: wp.array(dtype=wp.vec2i),
    friction_rows: wp.array(dtype=wp.vec2i),
    place: wp.array(dtype=wp.vec3d),
    kind: wp.array(dtype=wp.int32),
    load: wp.array(dtype=wp.float64),
    point_friction: PointFriction,
    friction: wp.array(dtype=wp.vec3d),
    slip: wp.array(dtype=wp.vec3d),
    weight: wp.array(dtype=wp.float64),
):
    """Compute friction and mean slip at the contact points of a pair; a friction point belongs to the nearest contact point.

    points, friction_rows: first row of its contact and friction points, and the one after the last."""
    k = wp.tid() + first
    begin = points[k][0]
    end = points[k][1]
    for p in range(begin, end):
        friction[p] = wp.vec3d()
        slip[p] = wp.vec3d()
        weight[p] = ZERO
    for m in range(friction_rows[k][0], friction_rows[k][1]):
        if kind[m] == SLIDE:
            at = point_friction.place[m]
            nearest = begin
            best = wp.length_sq(place[begin] - at)
            for p in range(begin + 1, end):
                distance = wp.length_sq(place[p] - at)
                if distance < best:
                    best = distance
                    nearest = p
            w = wp.abs(load[m])
            friction[nearest] = friction[nearest] + point_friction.force[m]
            slip[nearest] = slip[nearest] + w * point_friction.slip[m]
            weight[nearest] = weight[nearest] + w
    for p in range(begin, end):
        if weight[p] > ZERO:
            slip[p] = slip[p] / weight[p]
