"""Sums of contact terms per body pair: gradients and 12x12 blocks, and their sums per body.

The parts of a pair's active items are divided into runs; one thread sums the terms of a run in its own rows, in order. The first
run of a pair is in the pair's place, further runs follow all pairs, and are added to it afterwards.

A term with the 3x3 block K between points with homogeneous rest coordinates Y_a, Y_b (4,) adds ``K (x) Y_a Y_b^T``:
entry (r, a) of a body's 3x4 gradient is at q index ``r`` for a = 0 and ``3 + 3 r + a - 1`` for a > 0.
"""

import warp as wp

from cuda_kernels.bodies.affine import vec12
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)

RUN = 64
"""Parts of items per run. Longer runs leave a device idle for few bodies with fine meshes; shorter runs need more sums."""


@wp.struct
class Runs:
    """Runs (s,) of active pairs: index of the pair in the list, first place and the one after the last."""

    pair: wp.array(dtype=wp.int32)
    begin: wp.array(dtype=wp.int32)
    end: wp.array(dtype=wp.int32)


@wp.struct
class PairSums:
    """Gradients (s,) and blocks (s, 12), by rows, of runs; of pairs after their runs are added."""

    g_i: wp.array(dtype=vec12)
    g_j: wp.array(dtype=vec12)
    H_ii: wp.array2d(dtype=vec12)
    H_ij: wp.array2d(dtype=vec12)
    H_jj: wp.array2d(dtype=vec12)


@wp.func
def spread(f: wp.vec3d, Y: wp.vec4d) -> vec12:
    """Return ``f Y^T`` in the order of q."""
    return vec12(
        f[0] * Y[0], f[1] * Y[0], f[2] * Y[0],
        f[0] * Y[1], f[0] * Y[2], f[0] * Y[3],
        f[1] * Y[1], f[1] * Y[2], f[1] * Y[3],
        f[2] * Y[1], f[2] * Y[2], f[2] * Y[3],
    )  # fmt: skip


@wp.func
def add_block(H: wp.array2d(dtype=vec12), t: wp.int32, K: wp.mat33d, Ya: wp.vec4d, Yb: wp.vec4d):
    """Add K (x) Ya Yb^T to H[t]."""
    for r in range(3):
        z = spread(wp.vec3d(K[r, 0], K[r, 1], K[r, 2]), Yb)
        H[t, r] = H[t, r] + Ya[0] * z
        H[t, 3 + 3 * r] = H[t, 3 + 3 * r] + Ya[1] * z
        H[t, 4 + 3 * r] = H[t, 4 + 3 * r] + Ya[2] * z
        H[t, 5 + 3 * r] = H[t, 5 + 3 * r] + Ya[3] * z


@wp.func
def add_between(out: PairSums, t: wp.int32, f: wp.vec3d, K: wp.mat33d, Y_i: wp.vec4d, Y_j: wp.vec4d):
    """Add a term that depends on ``x_i - x_j`` only: force f on i, block K."""
    out.g_i[t] = out.g_i[t] + spread(f, Y_i)
    out.g_j[t] = out.g_j[t] - spread(f, Y_j)
    add_block(out.H_ii, t, K, Y_i, Y_i)
    add_block(out.H_ij, t, -K, Y_i, Y_j)
    add_block(out.H_jj, t, K, Y_j, Y_j)


@wp.func
def clear_sums(out: PairSums, t: wp.int32):
    out.g_i[t] = vec12()
    out.g_j[t] = vec12()
    for r in range(12):
        out.H_ii[t, r] = vec12()
        out.H_ij[t, r] = vec12()
        out.H_jj[t, r] = vec12()


@wp.kernel
def join_runs(first: wp.int32, counts: wp.array(dtype=wp.int32), rest: wp.array(dtype=wp.int32), out: PairSums):
    """Add the further runs of every pair to its first, one thread per pair and row; counts = [pairs, runs]."""
    t = wp.tid() + first
    n = t // 12
    r = t % 12
    if n >= counts[0]:
        return
    for m in range(counts[0] + rest[n], counts[0] + rest[n + 1]):
        out.H_ii[n, r] = out.H_ii[n, r] + out.H_ii[m, r]
        out.H_ij[n, r] = out.H_ij[n, r] + out.H_ij[m, r]
        out.H_jj[n, r] = out.H_jj[n, r] + out.H_jj[m, r]
        if r == 0:
            out.g_i[n] = out.g_i[n] + out.g_i[m]
            out.g_j[n] = out.g_j[n] + out.g_j[m]


@wp.kernel
def gather_bodies(
    first: wp.int32,
    done: wp.array(dtype=wp.int32),
    starts: wp.array(dtype=wp.int32),
    entries: wp.array(dtype=wp.int32),
    sums: PairSums,
    gradient: wp.array2d(dtype=wp.float64),
    diagonal: wp.array2d(dtype=vec12),
):
    """Add the sums of pairs to the rows of bodies that are not done, in the order of their entries.

    One thread processes one row of a body's block, the first one the gradient too."""
    t = wp.tid() + first
    b = t // 12
    r = t % 12
    if done[b] != 0 or starts[b] == starts[b + 1]:
        return
    H = diagonal[b, r]
    for e in range(starts[b], starts[b + 1]):
        k = entries[e] // 2
        if entries[e] % 2 == 0:
            H = H + sums.H_ii[k, r]
        else:
            H = H + sums.H_jj[k, r]
    diagonal[b, r] = H
    if r == 0:
        g = vec12()
        for e in range(starts[b], starts[b + 1]):
            k = entries[e] // 2
            if entries[e] % 2 == 0:
                g = g + sums.g_i[k]
            else:
                g = g + sums.g_j[k]
        for c in range(12):
            gradient[b, c] = gradient[b, c] + g[c]
