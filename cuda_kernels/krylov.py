"""Block-Jacobi preconditioned conjugate gradients on 12x12 blocks; scalars stay on the device."""

import warp as wp

from cuda_kernels.affine import ONE, ZERO

wp.set_module_options({"enable_backward": False, "max_unroll": 4})


@wp.struct
class Coupling:
    """Off-diagonal blocks (k, 12, 12) between row and column bodies, with every body's sorted entries
    (2k: block k as it is, the other body is column[k]; 2k + 1: transposed, the other body is row[k])."""

    starts: wp.array(dtype=wp.int32)
    entries: wp.array(dtype=wp.int32)
    row: wp.array(dtype=wp.int32)
    column: wp.array(dtype=wp.int32)
    blocks: wp.array3d(dtype=wp.float64)


@wp.kernel
def factor_blocks(first: wp.int32, blocks: wp.array3d(dtype=wp.float64), factors: wp.array3d(dtype=wp.float64)):
    """Lower Cholesky factor of every 12x12 block; a non-positive pivot is replaced by the largest diagonal entry."""
    k = wp.tid() + first
    largest = ZERO
    for j in range(12):
        largest = wp.max(largest, wp.abs(blocks[k, j, j]))
    for j in range(12):
        s = blocks[k, j, j]
        for m in range(j):
            s = s - factors[k, j, m] * factors[k, j, m]
        if s <= wp.float64(1.0e-14) * largest:
            s = largest
        root = wp.sqrt(s)
        factors[k, j, j] = root
        inverse = ONE / root
        for i in range(j + 1, 12):
            v = blocks[k, i, j]
            for m in range(j):
                v = v - factors[k, i, m] * factors[k, j, m]
            factors[k, i, j] = v * inverse


@wp.kernel
def multiply(
    first: wp.int32,
    diagonal: wp.array3d(dtype=wp.float64),
    a: Coupling,
    b: Coupling,
    c: Coupling,
    x: wp.array2d(dtype=wp.float64),
    y: wp.array2d(dtype=wp.float64),
    product: wp.array(dtype=wp.float64),
):
    """y = H x for one body, and its share of x . y; three couplings: joints, contacts, friction."""
    i = wp.tid() + first
    for r in range(12):
        v = ZERO
        for m in range(12):
            v = v + diagonal[i, r, m] * x[i, m]
        y[i, r] = v
    couple_rows(a, i, x, y)
    couple_rows(b, i, x, y)
    couple_rows(c, i, x, y)
    s = ZERO
    for r in range(12):
        s = s + x[i, r] * y[i, r]
    product[i] = s


@wp.func
def couple_rows(a: Coupling, i: wp.int32, x: wp.array2d(dtype=wp.float64), y: wp.array2d(dtype=wp.float64)):
    """Add a coupling's blocks to row i of y."""
    for e in range(a.starts[i], a.starts[i + 1]):
        k = a.entries[e] // 2
        if a.entries[e] % 2 == 0:
            j = a.column[k]
            for r in range(12):
                v = ZERO
                for m in range(12):
                    v = v + a.blocks[k, r, m] * x[j, m]
                y[i, r] = y[i, r] + v
        else:
            j = a.row[k]
            for m in range(12):
                w = x[j, m]
                for r in range(12):
                    y[i, r] = y[i, r] + a.blocks[k, m, r] * w


@wp.kernel
def begin(
    first: wp.int32,
    gradient: wp.array2d(dtype=wp.float64),
    factors: wp.array3d(dtype=wp.float64),
    x: wp.array2d(dtype=wp.float64),
    r: wp.array2d(dtype=wp.float64),
    z: wp.array2d(dtype=wp.float64),
    p: wp.array2d(dtype=wp.float64),
    rz: wp.array(dtype=wp.float64),
):
    """x = 0, r = -gradient, z = M^-1 r, p = z, and r . z per body."""
    i = wp.tid() + first
    for k in range(12):
        x[i, k] = ZERO
        r[i, k] = -gradient[i, k]
    rz[i] = precondition(i, factors, r, z)
    for k in range(12):
        p[i, k] = z[i, k]


@wp.func
def precondition(
    i: wp.int32, L: wp.array3d(dtype=wp.float64), r: wp.array2d(dtype=wp.float64), z: wp.array2d(dtype=wp.float64)
) -> wp.float64:
    """z = (L L^T)^-1 r of one body; returns r . z."""
    for k in range(12):
        v = r[i, k]
        for m in range(k):
            v = v - L[i, k, m] * z[i, m]
        z[i, k] = v / L[i, k, k]
    for q in range(12):
        k = 11 - q
        v = z[i, k]
        for m in range(k + 1, 12):
            v = v - L[i, m, k] * z[i, m]
        z[i, k] = v / L[i, k, k]
    s = ZERO
    for k in range(12):
        s = s + r[i, k] * z[i, k]
    return s


@wp.kernel
def descend(
    first: wp.int32,
    island: wp.array(dtype=wp.int32),
    rz: wp.array(dtype=wp.float64),
    pq: wp.array(dtype=wp.float64),
    factors: wp.array3d(dtype=wp.float64),
    p: wp.array2d(dtype=wp.float64),
    q: wp.array2d(dtype=wp.float64),
    x: wp.array2d(dtype=wp.float64),
    r: wp.array2d(dtype=wp.float64),
    z: wp.array2d(dtype=wp.float64),
    out: wp.array(dtype=wp.float64),
):
    """x += a p, r -= a q with a = rz / pq of the body's island; z = M^-1 r and the new r . z per body."""
    i = wp.tid() + first
    w = island[i]
    a = ZERO
    if pq[w] > ZERO:
        a = rz[w] / pq[w]
    for k in range(12):
        x[i, k] = x[i, k] + a * p[i, k]
        r[i, k] = r[i, k] - a * q[i, k]
    out[i] = precondition(i, factors, r, z)


@wp.kernel
def turn(
    first: wp.int32,
    island: wp.array(dtype=wp.int32),
    fresh: wp.array(dtype=wp.float64),
    stale: wp.array(dtype=wp.float64),
    z: wp.array2d(dtype=wp.float64),
    p: wp.array2d(dtype=wp.float64),
):
    """p = z + (fresh / stale) p of the body's island."""
    i = wp.tid() + first
    w = island[i]
    b = ZERO
    if stale[w] > ZERO:
        b = fresh[w] / stale[w]
    for k in range(12):
        p[i, k] = z[i, k] + b * p[i, k]
