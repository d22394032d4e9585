"""Conjugate gradients on 12x12 blocks; scalars stay on the device. Converged bodies are skipped.

The products of an iteration need one sum over the bodies (Chronopoulos and Gear 1989): with z = M^-1 r and w = H z,

    p = z + b p,  q = w + b q,  x += a p,  r -= a q

where b is the ratio of ``r . z`` to the previous one, and ``a = (r . z) / (p . q)``, ``p . q = z . w - b^2 (p . q)_before``.
`cuda_kernels.linear.residuals` computes a and b.
"""

import warp as wp

from cuda_kernels.bodies.affine import ZERO, vec12
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
    residual: wp.array(dtype=vec12),
    y: wp.array(dtype=vec12),
    products: wp.array(dtype=wp.vec2d),
):
    """Compute y = H x of one body, and its parts of residual . x and x . y, from `number` couplings by their addresses
    (`couplings`)."""
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
    products[i] = wp.vec2d(wp.dot(residual[i], x[i]), wp.dot(x[i], v))


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


@wp.func
def divided(inverse: wp.array2d(dtype=vec12), i: wp.int32, r: vec12) -> vec12:
    """Return M^-1 r of body i by its inverse block, which is symmetric."""
    v = vec12()
    for m in range(12):
        v = v + r[m] * inverse[i, m]
    return v


@wp.kernel
def begin(
    first: wp.int32,
    done: wp.array(dtype=wp.int32),
    gradient: wp.array(dtype=vec12),
    inverse: wp.array2d(dtype=vec12),
    has_inverse: wp.int32,
    x: wp.array(dtype=vec12),
    r: wp.array(dtype=vec12),
    z: wp.array(dtype=vec12),
    p: wp.array(dtype=vec12),
    q: wp.array(dtype=vec12),
):
    """Start from x = 0; with inverse blocks of block Jacobi, compute z = M^-1 r."""
    i = wp.tid() + first
    if done[i] == 0:
        x[i] = vec12()
        r[i] = -gradient[i]
        p[i] = vec12()
        q[i] = vec12()
        if has_inverse != 0:
            z[i] = divided(inverse, i, r[i])


@wp.kernel
def descend(
    first: wp.int32,
    done: wp.array(dtype=wp.int32),
    island: wp.array(dtype=wp.int32),
    a: wp.array(dtype=wp.float64),
    b: wp.array(dtype=wp.float64),
    z: wp.array(dtype=vec12),
    w: wp.array(dtype=vec12),
    p: wp.array(dtype=vec12),
    q: wp.array(dtype=vec12),
    x: wp.array(dtype=vec12),
    r: wp.array(dtype=vec12),
    inverse: wp.array2d(dtype=vec12),
    has_inverse: wp.int32,
):
    """Compute p, q, x and r with the a and b of the body's island, unless a = 0; with inverse blocks also z = M^-1 r."""
    i = wp.tid() + first
    own = island[i]
    if done[i] != 0 or a[own] == ZERO:
        return
    direction = z[i] + b[own] * p[i]
    change = w[i] + b[own] * q[i]
    rest = r[i] - a[own] * change
    p[i] = direction
    q[i] = change
    x[i] = x[i] + a[own] * direction
    r[i] = rest
    if has_inverse != 0:
        z[i] = divided(inverse, i, rest)
