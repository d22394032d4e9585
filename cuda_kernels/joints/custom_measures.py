"""Interface to user-defined measures: the frames for their functions, and storage of their results."""

import warp as wp

from cuda_kernels.joints.measures import Measures, Pose, frames
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)
LOADED_FOR = ("joints",)


@wp.kernel
def frame_features(
    first: wp.int32,
    chosen: wp.array(dtype=wp.int32),
    measures: Measures,
    pose: Pose,
    M: wp.array(dtype=wp.mat33d),
    r: wp.array(dtype=wp.vec3d),
):
    """Compute ``M = D^T C`` and ``r = D^T d`` (e,) of the chosen measures (e,)."""
    e = wp.tid() + first
    D, C, d = frames(measures, chosen[e], pose)
    M[e] = wp.transpose(D) * C
    r[e] = wp.transpose(D) * d


@wp.kernel
def store_results(
    first: wp.int32,
    chosen: wp.array(dtype=wp.int32),
    values: wp.array(dtype=wp.float64),
    by_M: wp.array(dtype=wp.mat33d),
    by_r: wp.array(dtype=wp.vec3d),
    supplied: wp.array2d(dtype=wp.float64),
):
    """Store the values (e,) of the chosen measures, and the last derivatives (e,) by M and r; those by s stay zero."""
    e = wp.tid() + first
    k = chosen[e]
    supplied[k, 0] = values[e]
    for c in range(9):
        supplied[k, 1 + c] = by_M[e][c // 3, c % 3]
    for c in range(3):
        supplied[k, 10 + c] = by_r[e][c]
