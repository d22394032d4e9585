"""Conjugate gradients on 12x12 blocks; scalars stay on the device. Bodies that are done are passed over."""

import warp as wp

from cuda_kernels.bodies.affine import ZERO
from cuda_kernels.bodies.vector12 import vec12

wp.set_module_options({"enable_backward": False, "max_unroll": 4})


@wp.struct
class Coupling:
    """Off-diagonal blocks (k, 12, 12) between row and column bodies, with every body's sorted entries
    (2k: block k as it is, the other body is column[k]; 2k + 1: transposed, the other body is row[k]).

    count[0] blocks are there; the arrays may have room for more.
    """

    count: wp.array(dtype=wp.int32)
    starts: wp.array(dtype=wp.int32)
    entries: wp.array(dtype=wp.int32)
    row: wp.array(dtype=wp.int32)
    column: wp.array(dtype=wp.int32)
    blocks: wp.array3d(dtype=wp.float64)


@wp.kernel
def multiply(
    first: wp.int32,
    done: wp.array(dtype=wp.int32),
    diagonal: wp.array2d(dtype=vec12),
    a: Coupling,
    blocks_a: wp.array2d(dtype=vec12),
    b: Coupling,
    blocks_b: wp.array2d(dtype=vec12),
    c: Coupling,
    blocks_c: wp.array2d(dtype=vec12),
    merged: wp.array(dtype=wp.int32),
    x: wp.array(dtype=vec12),
    y: wp.array(dtype=vec12),
    product: wp.array(dtype=wp.float64),
):
    """y = H x for one body, and its share of x . y; three couplings: joints, contacts, friction.

    Pairs of the third that are `merged` (1) are in the blocks of the second already.
    """
    i = wp.tid() + first
    if done[i] != 0:
        return
    v = vec12()
    for m in range(12):
        v = v + x[i][m] * diagonal[i, m]
    for e in range(a.starts[i], a.starts[i + 1]):
        v = couple_row(a, blocks_a, a.entries[e], x, v)
    for e in range(b.starts[i], b.starts[i + 1]):
        v = couple_row(b, blocks_b, b.entries[e], x, v)
    for e in range(c.starts[i], c.starts[i + 1]):
        if merged[c.entries[e] // 2] == 0:
            v = couple_row(c, blocks_c, c.entries[e], x, v)
    y[i] = v
    product[i] = wp.dot(x[i], v)


@wp.func
def couple_row(
    a: Coupling, blocks: wp.array2d(dtype=vec12), entry: wp.int32, x: wp.array(dtype=vec12), v: vec12
) -> vec12:
    """v and the product of one entry's block with x of the other body."""
    k = entry // 2
    if entry % 2 == 0:
        w = x[a.column[k]]
        for r in range(12):
            v[r] = v[r] + wp.dot(blocks[k, r], w)
    else:
        w = x[a.row[k]]
        for m in range(12):
            v = v + w[m] * blocks[k, m]
    return v


@wp.kernel
def merge(
    first: wp.int32,
    a: Coupling,
    blocks_a: wp.array2d(dtype=vec12),
    b: Coupling,
    blocks_b: wp.array2d(dtype=vec12),
    merged: wp.array(dtype=wp.int32),
    out: wp.array2d(dtype=vec12),
):
    """Block of one pair of a, with that of the same pair of b added, which is then `merged` (it comes in as zero)."""
    k = wp.tid() + first
    if k >= a.count[0]:
        return
    i = a.row[k]
    j = a.column[k]
    for r in range(12):
        out[k, r] = blocks_a[k, r]
    for e in range(b.starts[i], b.starts[i + 1]):
        m = b.entries[e] // 2
        if b.entries[e] % 2 == 0:
            if b.column[m] == j:
                merged[m] = 1
                for r in range(12):
                    out[k, r] = out[k, r] + blocks_b[m, r]
        elif b.row[m] == j:
            merged[m] = 1
            for r in range(12):
                v = out[k, r]
                for c in range(12):
                    v[c] = v[c] + blocks_b[m, c][r]
                out[k, r] = v


@wp.kernel
def begin(
    first: wp.int32,
    done: wp.array(dtype=wp.int32),
    gradient: wp.array(dtype=vec12),
    x: wp.array(dtype=vec12),
    r: wp.array(dtype=vec12),
):
    """x = 0 and r = -gradient."""
    i = wp.tid() + first
    if done[i] == 0:
        x[i] = vec12()
        r[i] = -gradient[i]


@wp.kernel
def aim(first: wp.int32, done: wp.array(dtype=wp.int32), z: wp.array(dtype=vec12), p: wp.array(dtype=vec12)):
    """p = z."""
    i = wp.tid() + first
    if done[i] == 0:
        p[i] = z[i]


@wp.func
def quotient(a: wp.array(dtype=wp.float64), b: wp.array(dtype=wp.float64), w: wp.int32) -> wp.float64:
    """a / b of an island; 0 where b is not positive: it stays where it is."""
    if b[w] > ZERO:
        return a[w] / b[w]
    return ZERO


@wp.kernel
def descend(
    first: wp.int32,
    done: wp.array(dtype=wp.int32),
    island: wp.array(dtype=wp.int32),
    rz: wp.array(dtype=wp.float64),
    pq: wp.array(dtype=wp.float64),
    p: wp.array(dtype=vec12),
    q: wp.array(dtype=vec12),
    x: wp.array(dtype=vec12),
    r: wp.array(dtype=vec12),
):
    """x += a p, r -= a q with a = rz / pq of the body's island."""
    i = wp.tid() + first
    if done[i] != 0:
        return
    a = quotient(rz, pq, island[i])
    x[i] = x[i] + a * p[i]
    r[i] = r[i] - a * q[i]


@wp.kernel
def descend_and_divide(
    first: wp.int32,
    done: wp.array(dtype=wp.int32),
    island: wp.array(dtype=wp.int32),
    rz: wp.array(dtype=wp.float64),
    pq: wp.array(dtype=wp.float64),
    p: wp.array(dtype=vec12),
    q: wp.array(dtype=vec12),
    x: wp.array(dtype=vec12),
    r: wp.array(dtype=vec12),
    inverse: wp.array2d(dtype=vec12),
    z: wp.array(dtype=vec12),
    product: wp.array(dtype=wp.float64),
):
    """`descend`, then z = M^-1 r by the inverse blocks of block-Jacobi, and r . z."""
    i = wp.tid() + first
    if done[i] != 0:
        return
    a = quotient(rz, pq, island[i])
    x[i] = x[i] + a * p[i]
    rest = r[i] - a * q[i]
    v = vec12()
    for m in range(12):
        v = v + rest[m] * inverse[i, m]
    r[i] = rest
    z[i] = v
    product[i] = wp.dot(rest, v)


@wp.kernel
def turn(
    first: wp.int32,
    done: wp.array(dtype=wp.int32),
    island: wp.array(dtype=wp.int32),
    fresh: wp.array(dtype=wp.float64),
    stale: wp.array(dtype=wp.float64),
    z: wp.array(dtype=vec12),
    p: wp.array(dtype=vec12),
):
    """p = z + (fresh / stale) p of the body's island."""
    i = wp.tid() + first
    if done[i] != 0:
        return
    p[i] = z[i] + quotient(fresh, stale, island[i]) * p[i]


@wp.kernel
def add(first: wp.int32, done: wp.array(dtype=wp.int32), z: wp.array(dtype=vec12), x: wp.array(dtype=vec12)):
    """x += z."""
    i = wp.tid() + first
    if done[i] == 0:
        x[i] = x[i] + z[i]
