"""Measures: scalar functions of two frames, and their derivatives by the affine states of the frames.

With ``D = A_p D0``, ``o_D = p_p + A_p X_D`` (the world: D0 and X_D themselves), the same for C, and ``d = o_C - o_D``, a
measure is a function of the features ``z = (M = D^T C ; r = D^T d ; s = C^T d ; 1)`` and of d. Mirrors
``abd/joints/measures/measures.py``.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, TINY, ZERO, Pose, set_row
from cuda_kernels.joints.special_measures import special_function
from cuda_kernels.options import OPTIONS, opaque
from cuda_kernels.shared.joints import SPECIAL, TURNING, MeasureKind

wp.set_module_options(OPTIONS)
LOADED_FOR = ("joints",)

TURN = wp.constant(wp.float64(6.283185307179586))

Features = wp.types.vector(length=16, dtype=wp.float64)


@wp.struct
class Measures:
    """All measures (m,).

    kind, numbers (m, 48), scale, offset: the function; parent (-1 = world), child: bodies; parent_point, child_point [m]
    and parent_axes, child_axes (columns): the frames in internal rest coordinates of their bodies; reference: value near
    which an angle is counted [rad]; supplied (m, 16): f of a CUSTOM measure and its derivatives by the features.
    """

    kind: wp.array(dtype=wp.int32)
    numbers: wp.array2d(dtype=wp.float64)
    scale: wp.array(dtype=wp.float64)
    offset: wp.array(dtype=wp.float64)
    parent: wp.array(dtype=wp.int32)
    child: wp.array(dtype=wp.int32)
    parent_point: wp.array(dtype=wp.vec3d)
    child_point: wp.array(dtype=wp.vec3d)
    parent_axes: wp.array(dtype=wp.mat33d)
    child_axes: wp.array(dtype=wp.mat33d)
    reference: wp.array(dtype=wp.float64)
    supplied: wp.array2d(dtype=wp.float64)


@wp.func
def frames(measures: Measures, e: wp.int32, pose: Pose):
    """Return the axes of D and C as columns, and d [m]."""
    j = measures.child[e]
    C = pose.A[j] * measures.child_axes[e]
    d = pose.p[j] + pose.A[j] * measures.child_point[e]
    i = measures.parent[e]
    D = measures.parent_axes[e]
    if i < 0:
        d = d - measures.parent_point[e]
    else:
        D = pose.A[i] * D
        d = d - (pose.p[i] + pose.A[i] * measures.parent_point[e])
    return D, C, d


@wp.func
def features(D: wp.mat33d, C: wp.mat33d, d: wp.vec3d) -> Features:
    """Return the features (16,)."""
    M = wp.transpose(D) * C
    r = wp.transpose(D) * d
    s = wp.transpose(C) * d
    z = Features()
    for k in range(9):
        z[k] = M[k // 3, k % 3]
    for k in range(3):
        z[9 + k] = r[k]
        z[12 + k] = s[k]
    z[15] = ONE
    return z


@wp.func
def functionals(measures: Measures, e: wp.int32, z: Features) -> wp.vec3d:
    """Return the functionals ``u_k = numbers_k . z``."""
    u = wp.vec3d()
    for c in range(16):
        u = u + z[c] * wp.vec3d(measures.numbers[e, c], measures.numbers[e, 16 + c], measures.numbers[e, 32 + c])
    return u


TURNING_BITS = wp.constant(sum(1 << kind for kind in TURNING))
SPECIAL_BITS = wp.constant(sum(1 << kind for kind in SPECIAL))


@wp.func
def is_special(kind: wp.int32) -> wp.bool:
    """Return whether the kind is one of `special_measures`."""
    return (SPECIAL_BITS >> kind) % 2 == 1


@wp.func
def is_angle(kind: wp.int32) -> wp.bool:
    """Return whether measures of the kind count turns."""
    return (TURNING_BITS >> kind) % 2 == 1


@wp.func
def of_functionals(kind: wp.int32, u: wp.vec3d) -> wp.float64:
    """Return f of three functionals."""
    if kind == MeasureKind.ANGLE:
        return wp.atan2(u[0], u[1])
    if kind == MeasureKind.ELEVATION:
        return wp.atan2(u[0], wp.sqrt(u[1] * u[1] + u[2] * u[2]))
    if kind == MeasureKind.NORM:
        return wp.length(u)
    return u[0]


@wp.func
def by_functionals(kind: wp.int32, u: wp.vec3d) -> wp.vec3d:
    """Return the derivatives of f by the functionals."""
    if kind == MeasureKind.ANGLE:
        return wp.vec3d(u[1], -u[0], ZERO) / (u[0] * u[0] + u[1] * u[1])
    if kind == MeasureKind.ELEVATION:
        square = u[1] * u[1] + u[2] * u[2]
        flat = wp.sqrt(square)
        square = square + u[0] * u[0]
        slope = -u[0] / (square * wp.max(flat, TINY))
        return wp.vec3d(flat / square, slope * u[1], slope * u[2])
    if kind == MeasureKind.NORM:
        return u / wp.max(wp.length(u), TINY)
    return wp.vec3d(ONE, ZERO, ZERO)


@wp.func
def function_value(measures: Measures, e: wp.int32, D: wp.mat33d, C: wp.mat33d, d: wp.vec3d) -> wp.float64:
    """Return f without scale and offset."""
    kind = measures.kind[e]
    if kind == MeasureKind.CUSTOM or kind == MeasureKind.CUSTOM_ANGLE:
        return measures.supplied[e, 0]
    if kind == MeasureKind.LENGTH:
        return wp.length(d)
    if is_special(kind):
        M = wp.transpose(D) * C
        r = wp.transpose(D) * d
        f = special_function(kind, measures.numbers, e, M, r, wp.mat33d(), wp.vec3d())
        return f[0]
    return of_functionals(kind, functionals(measures, e, features(D, C, d)))


@wp.func
def by_features(measures: Measures, e: wp.int32, D: wp.mat33d, C: wp.mat33d, d: wp.vec3d) -> Features:
    """Return the derivatives of f by the features; the last entry, that of the constant, is not used."""
    kind = measures.kind[e]
    g = Features()
    if kind == MeasureKind.CUSTOM or kind == MeasureKind.CUSTOM_ANGLE:
        for c in range(15):
            g[c] = measures.supplied[e, 1 + c]
    elif is_special(kind):
        # these kinds do not depend on s
        M = wp.transpose(D) * C
        r = wp.transpose(D) * d
        for c in range(12):
            dM = wp.mat33d()
            dr = wp.vec3d()
            if c < 9:
                dM[c // 3, c % 3] = ONE
            else:
                dr[c - 9] = ONE
            # opaque: otherwise all loop invariants would occupy registers
            f = special_function(kind, measures.numbers, opaque(e), M, r, dM, dr)
            g[c] = f[1]
    elif kind != MeasureKind.LENGTH:
        w = by_functionals(kind, functionals(measures, e, features(D, C, d)))
        for c in range(16):
            g[c] = (
                w[0] * measures.numbers[e, c] + w[1] * measures.numbers[e, 16 + c] + w[2] * measures.numbers[e, 32 + c]
            )
    return g


@wp.kernel
def measure_values(first: wp.int32, measures: Measures, pose: Pose, values: wp.array(dtype=wp.float64)):
    """Compute the values (m,) of all measures, with angles nearest to their references."""
    e = wp.tid() + first
    D, C, d = frames(measures, e, pose)
    value = measures.scale[e] * function_value(measures, e, D, C, d) + measures.offset[e]
    if is_angle(measures.kind[e]):
        value = value + TURN * wp.rint((measures.reference[e] - value) / TURN)
    values[e] = value


@wp.kernel
def measure_gradients(
    first: wp.int32,
    measures: Measures,
    pose: Pose,
    done: wp.array(dtype=wp.int32),
    child_gradient: wp.array2d(dtype=wp.float64),
    parent_gradient: wp.array2d(dtype=wp.float64),
):
    """Compute the derivatives (m, 12) of all measures by the states of their child and parent; zero for the world."""
    e = wp.tid() + first
    if done[measures.child[e]] != 0:
        return
    D, C, d = frames(measures, e, pose)
    g = measures.scale[e] * by_features(measures, e, D, C, d)
    # opaque: otherwise the frames would occupy registers during the derivatives by features
    D, C, d = frames(measures, opaque(e), pose)
    G_M = wp.mat33d(g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8])
    g_r = wp.vec3d(g[9], g[10], g[11])
    g_s = wp.vec3d(g[12], g[13], g[14])
    g_o = D * g_r + C * g_s
    if measures.kind[e] == MeasureKind.LENGTH:
        g_o = measures.scale[e] * d / wp.max(wp.length(d), TINY)
    g_C = D * G_M + wp.outer(d, g_s)
    g_A = wp.outer(g_o, measures.child_point[e]) + g_C * wp.transpose(measures.child_axes[e])
    set_row(child_gradient, e, g_o, g_A)
    g_p = wp.vec3d()
    g_A = wp.mat33d()
    if measures.parent[e] >= 0:
        g_D = C * wp.transpose(G_M) + wp.outer(d, g_r)
        g_p = -g_o
        g_A = g_D * wp.transpose(measures.parent_axes[e]) - wp.outer(g_o, measures.parent_point[e])
    set_row(parent_gradient, e, g_p, g_A)
