"""Conjugate gradients on 12x12 blocks; scalars stay on the device. Converged bodies are skipped."""

import warp as wp

from cuda_kernels.bodies.affine import ZERO
from cuda_kernels.bodies.vector12 import vec12
from cuda_kernels.linear.couplings import BLOCKS, COLUMN, ENTRIES, MERGED, ROW, STARTS, UNBOUNDED, Coupling
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)


@wp.kernel
def multiply(
    first: wp.int32,
    done: wp.array(dtype=wp.int32),
    diagonal: wp.array2d(dtype=vec12),
    number: wp.int32,
    addresses: wp.array2d(dtype=wp.uint64),
    x: wp.array(dtype=vec12),
    y: wp.array(dtype=vec12),
    product: wp.array(dtype=wp.float64),
):
    """Compute y = H x of one body, and its part of x . y, from `number` couplings by their addresses (`couplings`)."""
    i = wp.tid() + first
    if done[i] != 0:
        return
    v = vec12()
    for m in range(12):
        v = v + x[i][m] * diagonal[i, m]
    for c in range(number):
        starts = wp.array(ptr=addresses[c, STARTS], shape=(UNBOUNDED,), dtype=wp.int32)
        entries = wp.array(ptr=addresses[c, ENTRIES], shape=(UNBOUNDED,), dtype=wp.int32)
        row = wp.array(ptr=addresses[c, ROW], shape=(UNBOUNDED,), dtype=wp.int32)
        column = wp.array(ptr=addresses[c, COLUMN], shape=(UNBOUNDED,), dtype=wp.int32)
        blocks = wp.array(ptr=addresses[c, BLOCKS], shape=(UNBOUNDED, 12), dtype=vec12)
        merged = wp.array(ptr=addresses[c, MERGED], shape=(UNBOUNDED,), dtype=wp.int32)
        has_merged = addresses[c, MERGED] != wp.uint64(0)
        for e in range(starts[i], starts[i + 1]):
            entry = entries[e]
            k = entry // 2
            is_included = True
            if has_merged:
                is_included = merged[k] == 0
            if is_included:
                if entry % 2 == 0:
                    w = x[column[k]]
                    for r in range(12):
                        v[r] = v[r] + wp.dot(blocks[k, r], w)
                else:
                    w = x[row[k]]
                    for m in range(12):
                        v = v + w[m] * blocks[k, m]
    y[i] = v
    product[i] = wp.dot(x[i], v)


@wp.kernel
def begin_merge(first: wp.int32, a: Coupling, blocks: wp.array2d(dtype=vec12), out: wp.array2d(dtype=vec12)):
    """Copy the block of one pair."""
    k = wp.tid() + first
    if k < a.count[0]:
        for r in range(12):
            out[k, r] = blocks[k, r]


@wp.kernel
def merge(
    first: wp.int32,
    a: Coupling,
    b: Coupling,
    blocks_b: wp.array2d(dtype=vec12),
    merged: wp.array(dtype=wp.int32),
    out: wp.array2d(dtype=vec12),
):
    """Add the block of the same pair of b to the block of one pair of a, and mark it as `merged`, initially zero."""
    k = wp.tid() + first
    if k >= a.count[0]:
        return
    i = a.row[k]
    j = a.column[k]
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
    i = wp.tid() + first
    if done[i] == 0:
        x[i] = vec12()
        r[i] = -gradient[i]


@wp.kernel
def aim(first: wp.int32, done: wp.array(dtype=wp.int32), z: wp.array(dtype=vec12), p: wp.array(dtype=vec12)):
    i = wp.tid() + first
    if done[i] == 0:
        p[i] = z[i]


@wp.func
def quotient(a: wp.array(dtype=wp.float64), b: wp.array(dtype=wp.float64), w: wp.int32) -> wp.float64:
    """Return a / b of an island, 0 if b is not positive, so that the island does not move."""
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
    """Add x += a p, r -= a q with a = rz / pq of the body's island."""
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
    """Run `descend`, then compute z = M^-1 r by the inverse blocks of block Jacobi, and r . z."""
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
    """Set p = z + (fresh / stale) p of the body's island."""
    i = wp.tid() + first
    if done[i] != 0:
        return
    p[i] = z[i] + quotient(fresh, stale, island[i]) * p[i]
