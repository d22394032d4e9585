"""Active items and their sums by rows, for devices with more threads than runs.

A run's items have `run` consecutive places. First one thread fills each place, then one thread per row of a run's blocks sums in
registers, in the order of the items. One thread per run would access the memory of whole blocks for every item.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, TWO, ZERO, identity3, vec12
from cuda_kernels.contact.blocks import PairSums, Runs, spread
from cuda_kernels.contact.contact import SMALLEST_SQUARED_SINE, homogeneous
from cuda_kernels.contact.surfaces import EDGE_OF_I, EDGES, FACE_OF_I
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)
LOADED_FOR = ("cuda", "contact")

SHORT_RUN = 16
"""Active items per run: more lengthen the sums, fewer add blocks, which are joined."""

PLAIN, TURNING, MOLLIFIED = 0, 1, 2
"""Kinds of additions of an item to the term between its points."""


@wp.struct
class Elements:
    """Items (s,) by place: force f on body i and stiffness K between the points Y_i, Y_j; addition [kind, feature, count], with
    its vectors (n, E0, E1 of `Turning`, or ea, eb, Ea, Eb of `Mollifier`) and numbers (normal and cosine of `Turning`, or the
    mollifier's slope)."""

    f: wp.array(dtype=wp.vec3d)
    K: wp.array(dtype=wp.mat33d)
    Y_i: wp.array(dtype=wp.vec4d)
    Y_j: wp.array(dtype=wp.vec4d)
    kind: wp.array(dtype=wp.vec3i)
    vectors: wp.array(dtype=vec12)
    numbers: wp.array(dtype=wp.vec2d)


@wp.func
def entry_of(Y: wp.vec4d, m: wp.int32) -> wp.float64:
    """Return Y[m]; selections keep a vector in registers, a variable index would put it in memory."""
    return wp.where(m < 2, wp.where(m == 0, Y[0], Y[1]), wp.where(m == 2, Y[2], Y[3]))


@wp.func
def row_of(c: wp.int32, m: wp.int32, K: wp.mat33d, Ya: wp.vec4d, Yb: wp.vec4d) -> vec12:
    """Return the row of K (x) Ya Yb^T of coordinate c and entry m of the homogeneous point."""
    f = wp.vec3d(
        wp.where(c == 0, K[0, 0], wp.where(c == 1, K[1, 0], K[2, 0])),
        wp.where(c == 0, K[0, 1], wp.where(c == 1, K[1, 1], K[2, 1])),
        wp.where(c == 0, K[0, 2], wp.where(c == 1, K[1, 2], K[2, 2])),
    )
    return entry_of(Ya, m) * spread(f, Yb)


@wp.func
def vector_at(v: vec12, k: wp.int32) -> wp.vec3d:
    """Return the k-th of four vectors."""
    return wp.vec3d(v[3 * k], v[3 * k + 1], v[3 * k + 2])


II, IJ, JJ = wp.constant(0), wp.constant(1), wp.constant(2)
"""Blocks of a run."""


@wp.func
def block_row(elements: Elements, begin: wp.int32, end: wp.int32, which: wp.int32, r: wp.int32) -> vec12:
    """Return row r of one of a run's blocks: all three blocks at once would exceed the registers of a thread."""
    c = r
    p = wp.int32(0)
    if r >= 3:
        c = (r - 3) // 3
        p = 1 + (r - 3) % 3
    sign = wp.where(which == IJ, -ONE, ONE)
    H = vec12()
    for e in range(begin, end):
        Ya = elements.Y_i[e]
        Yb = Ya
        if which != II:
            Yb = elements.Y_j[e]
        if which == JJ:
            Ya = Yb
        H = H + sign * row_of(c, p, elements.K[e], Ya, Yb)
        kind = elements.kind[e]
        if kind[0] == TURNING:
            v = elements.vectors[e]
            numbers = elements.numbers[e]
            n = vector_at(v, 0)
            N = numbers[0] * wp.outer(n, n)
            Y0 = homogeneous(vector_at(v, 1), ZERO)
            Y1 = homogeneous(vector_at(v, 2), ZERO)
            if kind[1] == EDGES:
                cosine = numbers[1]
                N = N / wp.max(ONE - cosine * cosine, SMALLEST_SQUARED_SINE)
                weight = ONE
                if which == IJ:
                    weight = -cosine
                if which == JJ:
                    Y0 = Y1
                if which == II:
                    Y1 = Y0
                H = H + weight * row_of(c, p, N, Y0, Y1)
            else:
                owner = JJ
                if kind[1] == EDGE_OF_I or kind[1] == FACE_OF_I:
                    owner = II
                if which == owner:
                    both = row_of(c, p, N, Y0, Y0)
                    if kind[2] == 2:
                        both = both + row_of(c, p, N, Y1, Y1)
                    H = H + both
        elif kind[0] == MOLLIFIED:
            v = elements.vectors[e]
            a = vector_at(v, 0)
            b = vector_at(v, 1)
            Xa = homogeneous(vector_at(v, 2), ZERO)
            Xb = homogeneous(vector_at(v, 3), ZERO)
            M = wp.outer(a, b) - wp.dot(a, b) * identity3()
            if which == II:
                M = wp.dot(b, b) * identity3() - wp.outer(b, b)
                Xb = Xa
            if which == JJ:
                M = wp.dot(a, a) * identity3() - wp.outer(a, a)
                Xa = Xb
            H = H + row_of(c, p, (TWO * elements.numbers[e][0]) * M, Xa, Xb)
    return H


@wp.func
def sum_gradients(elements: Elements, begin: wp.int32, end: wp.int32, t: wp.int32, out: PairSums):
    g_i = vec12()
    g_j = vec12()
    for e in range(begin, end):
        f = elements.f[e]
        g_i = g_i + spread(f, elements.Y_i[e])
        g_j = g_j - spread(f, elements.Y_j[e])
        if elements.kind[e][0] == MOLLIFIED:
            v = elements.vectors[e]
            ea = vector_at(v, 0)
            eb = vector_at(v, 1)
            q = TWO * elements.numbers[e][0]
            aa = wp.dot(ea, ea)
            ab = wp.dot(ea, eb)
            bb = wp.dot(eb, eb)
            g_i = g_i + spread(q * (bb * ea - ab * eb), homogeneous(vector_at(v, 2), ZERO))
            g_j = g_j + spread(q * (aa * eb - ab * ea), homogeneous(vector_at(v, 3), ZERO))
    out.g_i[t] = g_i
    out.g_j[t] = g_j


@wp.kernel
def sum_elements(first: wp.int32, elements: Elements, runs: Runs, counts: wp.array(dtype=wp.int32), out: PairSums):
    """Sum one row of the blocks of a run, the first row the gradients too; counts = [pairs, runs]."""
    tid = wp.tid() + first
    t = tid // 12
    r = tid % 12
    if t >= counts[1]:
        return
    begin = runs.begin[t]
    end = runs.end[t]
    out.H_ii[t, r] = block_row(elements, begin, end, II, r)
    out.H_ij[t, r] = block_row(elements, begin, end, IJ, r)
    out.H_jj[t, r] = block_row(elements, begin, end, JJ, r)
    if r == 0:
        sum_gradients(elements, begin, end, t, out)
