"""Forces of springs that follow the trapezoidal rule; mirrors ``abd/joints/rows/springs.py``."""

import warp as wp

from cuda_kernels.bodies.affine import Pose, map_of, triple
from cuda_kernels.bodies.free_motion import torque_of
from cuda_kernels.joints.measured_rows import MeasuredRows, row_value, term
from cuda_kernels.joints.row_laws import RowLaws, stiffness_weight
from cuda_kernels.options import OPTIONS
from cuda_kernels.shared.bodies import Mode

wp.set_module_options(OPTIONS)
LOADED_FOR = ("joints",)


@wp.kernel
def pull(
    first: wp.int32,
    body: wp.array(dtype=wp.int32),
    starts: wp.array(dtype=wp.int32),
    entries: wp.array(dtype=wp.int32),
    row_laws: RowLaws,
    rows: MeasuredRows,
    mode: wp.array(dtype=wp.int32),
    values: wp.array(dtype=wp.float64),
    child_gradient: wp.array2d(dtype=wp.float64),
    parent_gradient: wp.array2d(dtype=wp.float64),
    pose: Pose,
    out: wp.array2d(dtype=wp.float64),
):
    """Compute force and torque of the springs on bodies (k,), and both times their weights, into `out` (n, 12).

    entries: 2e for the child of row e, 2e + 1 for its parent; values (m,) and their gradients (m, 12) are those at a pose."""
    k = wp.tid() + first
    b = body[k]
    f = wp.vec3d()
    F = wp.mat33d()
    shared = wp.vec3d()
    sharing = wp.mat33d()
    if mode[b] != Mode.DISSIPATIVE:
        for i in range(starts[k], starts[k + 1]):
            e = entries[i] // 2
            size = -row_laws.stiffness[e] * (row_value(rows, e, values) - row_laws.target[e])
            weight = stiffness_weight(row_laws, mode, e)
            for t in range(rows.starts[e], rows.starts[e + 1]):
                m = rows.term_measure[t]
                each = size * term(rows, t, values)[1]
                g = triple(child_gradient, m, 0)
                G = map_of(child_gradient, m)
                if entries[i] % 2 == 1:
                    g = triple(parent_gradient, m, 0)
                    G = map_of(parent_gradient, m)
                f = f + each * g
                F = F + each * G
                shared = shared + weight * each * g
                sharing = sharing + weight * each * G
    A = pose.A[b]
    turned = torque_of(F, A)
    turning = torque_of(sharing, A)
    for r in range(3):
        out[b, r] = f[r]
        out[b, 3 + r] = turned[r]
        out[b, 6 + r] = shared[r]
        out[b, 9 + r] = turning[r]
