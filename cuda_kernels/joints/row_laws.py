"""Laws of measured rows and their numbers; counterpart of `abd.joints.rows.laws.RowLaws`."""

import warp as wp

from cuda_kernels.bodies.affine import ONE
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)

ACTIVE = wp.constant(1)
EXACT = wp.constant(2)
FOLLOWS = wp.constant(4)
MOVING = wp.constant(8)
ARMATURE = wp.constant(16)
ELASTIC = wp.constant(32)
LIMIT = wp.constant(64)
DRIVEN = wp.constant(128)
LOSING = wp.constant(256)
METRES = wp.constant(512)
RADIANS = wp.constant(1024)
GAP = wp.constant(2048)
TURNING = wp.constant(4096)
RESOLVED = wp.constant(16384)


@wp.struct
class RowLaws:
    """Laws of the rows (R,), as in `abd.joints.rows.laws.RowLaws`, SI; parent, child: bodies of a row, -1 for the world.

    `flags` is a sum of: ACTIVE, EXACT, FOLLOWS, MOVING (a drive with a moving target), ARMATURE, ELASTIC (stores spring energy),
    LIMIT (a limit that is not exact), DRIVEN (drive work), LOSING (dissipation), METRES or RADIANS (residual in the
    statistics), GAP (one-sided constraint of the joint type), TURNING (angle of a drive without a gain), RESOLVED (force by the
    trapezoidal rule). stiffness_weights (3,): `abd.potentials.integrators.Scheme.stiffness_weights`.
    """

    law: wp.array(dtype=wp.int32)
    flags: wp.array(dtype=wp.int32)
    mass_stiffness: wp.array(dtype=wp.float64)
    stiffness: wp.array(dtype=wp.float64)
    damping: wp.array(dtype=wp.float64)
    effort: wp.array(dtype=wp.float64)
    bound: wp.array(dtype=wp.float64)
    sign: wp.array(dtype=wp.float64)
    distance: wp.array(dtype=wp.float64)
    tolerance: wp.array(dtype=wp.float64)
    target: wp.array(dtype=wp.float64)
    rate: wp.array(dtype=wp.float64)
    parent: wp.array(dtype=wp.int32)
    child: wp.array(dtype=wp.int32)
    stiffness_weights: wp.array(dtype=wp.float64)


@wp.func
def has(row_laws: RowLaws, e: wp.int32, flag: wp.int32) -> wp.bool:
    return (row_laws.flags[e] & flag) != 0


@wp.func
def least_mode(row_laws: RowLaws, mode: wp.array(dtype=wp.int32), e: wp.int32) -> wp.int32:
    """Return the smaller mode of a row's bodies, by which it has its weights."""
    least = mode[row_laws.child[e]]
    if row_laws.parent[e] >= 0:
        least = wp.min(least, mode[row_laws.parent[e]])
    return least


@wp.func
def stiffness_weight(row_laws: RowLaws, mode: wp.array(dtype=wp.int32), e: wp.int32) -> wp.float64:
    """Return the weight of a row's stiffness in the step (`abd.joints.rows.springs`)."""
    if not has(row_laws, e, RESOLVED):
        return ONE
    return row_laws.stiffness_weights[least_mode(row_laws, mode, e)]
