"""Fixed degrees of freedom of bodies, projected out of vectors and blocks (`abd.backends.reference.numpy_bodies.projectors`)."""

import warp as wp

from cuda_kernels.bodies.affine import ONE, ZERO
from cuda_kernels.bodies.bodies import BodyData, StepData
from cuda_kernels.options import OPTIONS
from cuda_kernels.shared.bodies import Turning

wp.set_module_options(OPTIONS)


@wp.func
def project(body: BodyData, b: wp.int32, held: wp.int32, v: wp.array2d(dtype=wp.float64)):
    """Remove the components of the body's fixed degrees of freedom from row b of v (n, 12)."""
    if held != 0:
        for r in range(12):
            v[b, r] = ZERO
        return
    mask = body.translation[b]
    for r in range(3):
        v[b, r] = v[b, r] * mask[r]
    if body.rotation[b] == Turning.HELD:
        for r in range(9):
            v[b, 3 + r] = ZERO
    if body.rotation[b] == Turning.AXIS:
        u = body.rest_axis[b]
        for r in range(3):
            row = wp.vec3d(v[b, 3 + 3 * r], v[b, 4 + 3 * r], v[b, 5 + 3 * r])
            row = row - wp.dot(row, u) * u
            for c in range(3):
                v[b, 3 + 3 * r + c] = row[c]


@wp.kernel
def project_vectors(first: wp.int32, body: BodyData, step: StepData, v: wp.array2d(dtype=wp.float64)):
    """Remove the components of fixed degrees of freedom from every row of v (n, 12)."""
    b = wp.tid() + first
    project(body, b, step.held[b], v)


@wp.func
def projector(body: BodyData, b: wp.int32, held: wp.int32, i: wp.int32, j: wp.int32) -> wp.float64:
    """Entry (i, j) of a body's 12x12 projector onto its free motions."""
    if held != 0:
        return ZERO
    if i < 3 or j < 3:
        if i == j:
            mask = body.translation[b]
            return mask[i]
        return ZERO
    if body.rotation[b] == Turning.HELD:
        return ZERO
    v = ZERO
    if i == j:
        v = ONE
    if body.rotation[b] == Turning.AXIS:
        if (i - 3) // 3 == (j - 3) // 3:
            u = body.rest_axis[b]
            v = v - u[(i - 3) % 3] * u[(j - 3) % 3]
    return v


@wp.func
def is_constrained(body: BodyData, b: wp.int32, held: wp.int32) -> bool:
    """Return whether a body has fixed degrees of freedom in this step."""
    mask = body.translation[b]
    return held != 0 or body.rotation[b] != Turning.FREE or mask[0] + mask[1] + mask[2] < wp.float64(2.5)


@wp.kernel
def project_blocks(
    first: wp.int32,
    count: wp.array(dtype=wp.int32),
    body: BodyData,
    step: StepData,
    row: wp.array(dtype=wp.int32),
    column: wp.array(dtype=wp.int32),
    scratch: wp.array3d(dtype=wp.float64),
    blocks: wp.array3d(dtype=wp.float64),
    is_diagonal: wp.int32,
):
    """Project count[0] blocks: blocks[k] <- P_row blocks[k] P_column.

    Diagonal blocks get 1 - P in addition, so that they stay invertible in fixed directions.
    """
    k = wp.tid() + first
    if k >= count[0]:
        return
    i = row[k]
    j = column[k]
    hi = step.held[i]
    hj = step.held[j]
    ci = is_constrained(body, i, hi)
    cj = is_constrained(body, j, hj)
    if not ci and not cj:
        return
    if hi != 0 or hj != 0:
        for r in range(12):
            for c in range(12):
                blocks[k, r, c] = ZERO
            if is_diagonal != 0:
                blocks[k, r, r] = ONE
        return
    for r in range(12):
        for c in range(12):
            v = blocks[k, r, c]
            if cj:
                v = ZERO
                for m in range(12):
                    v = v + blocks[k, r, m] * projector(body, j, hj, m, c)
            scratch[k, r, c] = v
    for r in range(12):
        for c in range(12):
            v = scratch[k, r, c]
            if ci:
                v = ZERO
                for m in range(12):
                    v = v + projector(body, i, hi, r, m) * scratch[k, m, c]
            if is_diagonal != 0:
                p = -projector(body, i, hi, r, c)
                if r == c:
                    p = p + ONE
                v = v + p
            blocks[k, r, c] = v
