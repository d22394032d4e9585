"""Linear joint rows: ``F = Q_child Y_child - Q_parent Y_parent`` (3,), with Q = [p | A] and constant 4-vectors Y.

Point rows have Y = (1, X), direction rows Y = (0, u); for the world as parent, the parent's term is X or u itself. Every
row adds ``1/2 sum_k K_k (F_k - a_k)^2`` to the incremental potential. Mirrors ``abd/joints/rows/rows.py``.
"""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, ZERO, Pose
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)
LOADED_FOR = ("joints",)


@wp.struct
class Rows:
    """All rows (m,): bodies (parent -1 = world), 4-vectors, stiffness K [kg] and shift a by components, exact (0, 1),
    and the residual tolerance [m] of exact rows."""

    parent: wp.array(dtype=wp.int32)
    child: wp.array(dtype=wp.int32)
    Yp: wp.array(dtype=wp.vec4d)
    Yc: wp.array(dtype=wp.vec4d)
    K: wp.array(dtype=wp.vec3d)
    shift: wp.array(dtype=wp.vec3d)
    exact: wp.array(dtype=wp.int32)
    tolerance: wp.array(dtype=wp.float64)


@wp.func
def carried(pose: Pose, b: wp.int32, Y: wp.vec4d) -> wp.vec3d:
    """Return ``Q Y`` of a body."""
    return Y[0] * pose.p[b] + pose.A[b] * wp.vec3d(Y[1], Y[2], Y[3])


@wp.func
def residual(rows: Rows, e: wp.int32, pose: Pose) -> wp.vec3d:
    """Return the residual F of a row."""
    F = carried(pose, rows.child[e], rows.Yc[e])
    Y = rows.Yp[e]
    if rows.parent[e] < 0:
        return F - wp.vec3d(Y[1], Y[2], Y[3])
    return F - carried(pose, rows.parent[e], Y)


@wp.kernel
def row_energies(first: wp.int32, rows: Rows, pose: Pose, out: wp.array(dtype=wp.float64)):
    """Compute the energies of all rows."""
    e = wp.tid() + first
    F = residual(rows, e, pose) - rows.shift[e]
    out[e] = HALF * wp.dot(wp.cw_mul(rows.K[e], F), F)


@wp.kernel
def row_gradients(
    first: wp.int32,
    rows: Rows,
    pose: Pose,
    skipped: wp.array(dtype=wp.int32),
    starts: wp.array(dtype=wp.int32),
    entries: wp.array(dtype=wp.int32),
    gradient: wp.array2d(dtype=wp.float64),
):
    """Add K (F - a) Y^T of all its rows to the gradient of every body that is not skipped (n,); entry 2e is row e's
    child, 2e + 1 its parent."""
    b = wp.tid() + first
    if skipped[b] != 0:
        return
    for k in range(starts[b], starts[b + 1]):
        e = entries[k] // 2
        f = wp.cw_mul(rows.K[e], residual(rows, e, pose) - rows.shift[e])
        Y = rows.Yc[e]
        if entries[k] % 2 == 1:
            Y = rows.Yp[e]
            f = -f
        for r in range(3):
            gradient[b, r] = gradient[b, r] + f[r] * Y[0]
            for c in range(3):
                gradient[b, 3 + 3 * r + c] = gradient[b, 3 + 3 * r + c] + f[r] * Y[1 + c]


@wp.func
def counted(K: wp.vec3d, F: wp.vec3d) -> wp.vec3d:
    """Return F without the free components."""
    return wp.vec3d(
        wp.where(K[0] > ZERO, F[0], ZERO), wp.where(K[1] > ZERO, F[1], ZERO), wp.where(K[2] > ZERO, F[2], ZERO)
    )


@wp.kernel
def row_errors(
    first: wp.int32,
    rows: Rows,
    pose: Pose,
    done: wp.array(dtype=wp.int32),
    errors: wp.array(dtype=wp.float64),
    energies: wp.array(dtype=wp.float64),
):
    """Compute the sizes of the residuals F of the exact rows over their tolerances, and ``F . K F``.

    Errors of other rows are -1. Both are 0 for rows whose bodies are all done. Excluded bodies are done,
    and may have the island of others."""
    e = wp.tid() + first
    error = wp.where(rows.exact[e] == 1, ZERO, -ONE)
    energy = ZERO
    parent = rows.parent[e]
    has_body_left = done[rows.child[e]] == 0
    if parent >= 0:
        has_body_left = has_body_left or done[parent] == 0
    if rows.exact[e] == 1 and has_body_left:
        F = residual(rows, e, pose)
        error = wp.length(counted(rows.K[e], F)) / rows.tolerance[e]
        energy = wp.dot(F, wp.cw_mul(rows.K[e], F))
    errors[e] = error
    energies[e] = energy


@wp.kernel
def shift_rows(first: wp.int32, rows: Rows, pose: Pose, skipped: wp.array(dtype=wp.int32)):
    """Update a -= F of the exact rows: the force of their stiffness at the pose becomes part of the multipliers.

    Rows of skipped children (n,) do not change.
    """
    e = wp.tid() + first
    if rows.exact[e] == 1 and skipped[rows.child[e]] == 0:
        rows.shift[e] = rows.shift[e] - counted(rows.K[e], residual(rows, e, pose))


@wp.kernel
def step_multipliers(
    first: wp.int32,
    rows: Rows,
    pose: Pose,
    island: wp.array(dtype=wp.int32),
    weight: wp.array(dtype=wp.float64),
    turn: wp.array(dtype=wp.float64),
    change: wp.array(dtype=wp.vec3d),
):
    """Set change = F + turn change and a -= weight change in the exact rows, by the numbers of the children's islands."""
    e = wp.tid() + first
    if rows.exact[e] == 1:
        i = island[rows.child[e]]
        F = counted(rows.K[e], residual(rows, e, pose))
        if turn[i] != ZERO:
            F = F + turn[i] * change[e]
        change[e] = F
        rows.shift[e] = rows.shift[e] - weight[i] * F
