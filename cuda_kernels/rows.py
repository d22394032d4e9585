"""Linear joint rows: ``F = Q_child Y_child - Q_parent Y_parent`` (3,), with Q = [p | A] and constant 4-vectors Y.

Point rows have Y = (1, X), direction rows Y = (0, u); joined to the world, the parent's term is X or u itself. Every
row adds ``K/2 |F|^2`` to the incremental potential. Mirrors ``abd/joints/rows.py``.
"""

import warp as wp

from cuda_kernels.affine import HALF, Pose

wp.set_module_options({"enable_backward": False, "max_unroll": 4})


@wp.struct
class Rows:
    """All rows (m,): bodies (parent -1 = world), 4-vectors, stiffness K [kg]."""

    parent: wp.array(dtype=wp.int32)
    child: wp.array(dtype=wp.int32)
    Yp: wp.array(dtype=wp.vec4d)
    Yc: wp.array(dtype=wp.vec4d)
    K: wp.array(dtype=wp.float64)


@wp.func
def carried(pose: Pose, b: wp.int32, Y: wp.vec4d) -> wp.vec3d:
    """Q Y of a body."""
    return Y[0] * pose.p[b] + pose.A[b] * wp.vec3d(Y[1], Y[2], Y[3])


@wp.func
def residual(rows: Rows, e: wp.int32, pose: Pose) -> wp.vec3d:
    """F of a row."""
    F = carried(pose, rows.child[e], rows.Yc[e])
    Y = rows.Yp[e]
    if rows.parent[e] < 0:
        return F - wp.vec3d(Y[1], Y[2], Y[3])
    return F - carried(pose, rows.parent[e], Y)


@wp.kernel
def row_residuals(first: wp.int32, rows: Rows, pose: Pose, out: wp.array(dtype=wp.vec3d)):
    """Residuals of all rows."""
    e = wp.tid() + first
    out[e] = residual(rows, e, pose)


@wp.kernel
def row_energies(first: wp.int32, rows: Rows, pose: Pose, out: wp.array(dtype=wp.float64)):
    """K/2 |F|^2 of all rows."""
    e = wp.tid() + first
    F = residual(rows, e, pose)
    out[e] = HALF * rows.K[e] * wp.dot(F, F)


@wp.kernel
def row_gradients(
    first: wp.int32,
    rows: Rows,
    pose: Pose,
    starts: wp.array(dtype=wp.int32),
    entries: wp.array(dtype=wp.int32),
    gradient: wp.array2d(dtype=wp.float64),
):
    """Add K F Y^T of all its rows to every body's gradient; entry 2e is row e's child, 2e + 1 its parent."""
    b = wp.tid() + first
    for k in range(starts[b], starts[b + 1]):
        e = entries[k] // 2
        f = rows.K[e] * residual(rows, e, pose)
        Y = rows.Yc[e]
        if entries[k] % 2 == 1:
            Y = rows.Yp[e]
            f = -f
        for r in range(3):
            gradient[b, r] = gradient[b, r] + f[r] * Y[0]
            for c in range(3):
                gradient[b, 3 + 3 * r + c] = gradient[b, 3 + 3 * r + c] + f[r] * Y[1 + c]
