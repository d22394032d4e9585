"""Conjugate gradients on 12x12 blocks; scalars stay on the device. Converged bodies are skipped.

The products of an iteration need one sum over the bodies (Chronopoulos and Gear 1989): with z = M^-1 r and w = H z,

    p = z + b p,  q = w + b q,  x += a p,  r -= a q

where b is the ratio of ``r . z`` to the previous one, and ``a = (r . z) / (p . q)``, ``p . q = z . w - b^2 (p . q)_before``.
`cuda_kernels.linear.residuals` computes a and b.
"""

import warp as wp

from cuda_kernels.bodies.affine import ZERO, vec12
from cuda_kernels.linear.couplings import BLOCKS, COLUMN, ENTRIES, MERGED, PARTS, STARTS, UNBOUNDED, Coupling
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)


@wp.kernel
def multiply_rows(
    first: wp.int32,
    done: wp.array(dtype=wp.int32),
    diagonal: wp.array2d(dtype=vec12),
    number: wp.int32,
    addresses: wp.array2d(dtype=wp.uint64),
    x: wp.array(dtype=vec12),
    y: wp.array(dtype=vec12),
):
    """Compute y of one body by the blocks of its row in the matrix H, without transposed ones.

    The blocks are those of `number` couplings, by their addresses (`couplings`). The products of the transposed blocks with x of
    the body are stored for `add_columns`, so that every block is read once."""
    i = wp.tid() + first
    if done[i] != 0:
        return
    own = x[i]
    v = vec12()
    for m in range(12):
        v = v + own[m] * diagonal[i, m]
    for c in range(number):
        starts = wp.array(ptr=addresses[c, STARTS], shape=(UNBOUNDED,), dtype=wp.int32)
        entries = wp.array(ptr=addresses[c, ENTRIES], shape=(UNBOUNDED,), dtype=wp.int32)
        column = wp.array(ptr=addresses[c, COLUMN], shape=(UNBOUNDED,), dtype=wp.int32)
        blocks = wp.array(ptr=addresses[c, BLOCKS], shape=(UNBOUNDED, 12), dtype=vec12)
        merged = wp.array(ptr=addresses[c, MERGED], shape=(UNBOUNDED,), dtype=wp.int32)
        parts = wp.array(ptr=addresses[c, PARTS], shape=(UNBOUNDED,), dtype=vec12)
        has_merged = addresses[c, MERGED] != wp.uint64(0)
        for e in range(starts[i], starts[i + 1]):
            k = entries[e] // 2
            is_included = entries[e] % 2 == 0 and done[column[k]] == 0
            if is_included and has_merged:
                is_included = merged[k] == 0
            if is_included:
                w = x[column[k]]
                part = vec12()
                for r in range(12):
                    row = blocks[k, r]
                    v[r] = v[r] + wp.dot(row, w)
                    part = part + own[r] * row
                parts[k] = part
    y[i] = v


@wp.kernel
def add_columns(
    first: wp.int32,
    done: wp.array(dtype=wp.int32),
    number: wp.int32,
    addresses: wp.array2d(dtype=wp.uint64),
    x: wp.array(dtype=vec12),
    residual: wp.array(dtype=vec12),
    y: wp.array(dtype=vec12),
    products: wp.array(dtype=wp.vec2d),
):
    """Add the products of the transposed blocks to y = H x of one body; compute its parts of residual . x and x . y.

    The products of bodies that are done are zero initially."""
    i = wp.tid() + first
    if done[i] != 0:
        return
    v = y[i]
    for c in range(number):
        starts = wp.array(ptr=addresses[c, STARTS], shape=(UNBOUNDED,), dtype=wp.int32)
        entries = wp.array(ptr=addresses[c, ENTRIES], shape=(UNBOUNDED,), dtype=wp.int32)
        merged = wp.array(ptr=addresses[c, MERGED], shape=(UNBOUNDED,), dtype=wp.int32)
        parts = wp.array(ptr=addresses[c, PARTS], shape=(UNBOUNDED,), dtype=vec12)
        has_merged = addresses[c, MERGED] != wp.uint64(0)
        for e in range(starts[i], starts[i + 1]):
            k = entries[e] // 2
            is_included = entries[e] % 2 == 1
            if is_included and has_merged:
                is_included = merged[k] == 0
            if is_included:
                v = v + parts[k]
    y[i] = v
    products[i] = wp.vec2d(wp.dot(residual[i], x[i]), wp.dot(x[i], v))


@wp.kernel
def merge(
    first: wp.int32,
    a: Coupling,
    b: Coupling,
    blocks_a: wp.array2d(dtype=vec12),
    blocks_b: wp.array2d(dtype=vec12),
    merged: wp.array(dtype=wp.int32),
    out: wp.array2d(dtype=vec12),
):
    """Compute the sum of the blocks of one pair of a and of the same pair of b, which is marked as `merged`, initially zero.

    The pairs of a coupling are unique."""
    k = wp.tid() + first
    if k >= a.count[0]:
        return
    i = a.row[k]
    j = a.column[k]
    found = wp.int32(-1)
    for e in range(b.starts[i], b.starts[i + 1]):
        entry = b.entries[e]
        if wp.where(entry % 2 == 0, b.column[entry // 2], b.row[entry // 2]) == j:
            found = entry
    m = found // 2
    if found >= 0:
        merged[m] = 1
    for r in range(12):
        v = blocks_a[k, r]
        if found >= 0:
            if found % 2 == 0:
                v = v + blocks_b[m, r]
            else:
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
