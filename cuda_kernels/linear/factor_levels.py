"""Cholesky factor of a sparse symmetric matrix of 12x12 blocks, by levels of independent rows, in the storage of `factor_rows`.

`level_solves` solves with it. The rows of a level are data: every launch has as many threads as a device runs concurrently, reads
the present level (`Levels.at`) and divides its work among them. The same launches thus serve any pattern. Long sums are divided
among *lanes*, neighbouring threads of a warp: each sums a stride of the products, and the parts are added in a fixed order. On
the CPU one item does the work of all lanes in sequence.

Twelve times its lanes compute a block ``A_ji - sum_k U_kj^T U_ki`` of U; the products of every slot are listed. Rows of converged
bodies do not change; no row of another island depends on them.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, ZERO, vec12
from cuda_kernels.linear.couplings import BLOCKS, UNBOUNDED
from cuda_kernels.linear.factor_rows import Factor, Pattern, Sources
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)
LOADED_FOR = ("cuda",)

PIVOT_LANES = wp.constant(wp.int32(16))
"""Threads per diagonal block, of which twelve process a row or column."""


@wp.struct
class Levels:
    """m levels of rows, and the P products of the blocks of U.

    rows (m + 1,): first row of every level; products, ups, rights (m,): lanes per sum over the products of a slot, the updates
    of a row, the blocks right of its diagonal; count (1,): m. The arrays may have a larger capacity.
    at, going (1,): number of completed levels, and whether any is left.
    starts (K + 1,): first product of every slot; left, right (P,): slots of U_kj and U_ki, by ascending k.
    """

    rows: wp.array(dtype=wp.int32)
    products: wp.array(dtype=wp.int32)
    ups: wp.array(dtype=wp.int32)
    rights: wp.array(dtype=wp.int32)
    count: wp.array(dtype=wp.int32)
    at: wp.array(dtype=wp.int32)
    going: wp.array(dtype=wp.int32)
    starts: wp.array(dtype=wp.int32)
    left: wp.array(dtype=wp.int32)
    right: wp.array(dtype=wp.int32)


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return lanes;
#else
    return 1;
#endif
""")
def side_by_side(lanes: wp.int32) -> wp.int32:
    """Return the number of these lanes that are separate threads."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const unsigned int all = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1u;
    const unsigned int group = all << (threadIdx.x & 31u & ~(unsigned int)(lanes - 1));
    for (int distance = lanes / 2; distance > 0; distance /= 2)
        v += __shfl_xor_sync(group, v, distance);
#endif
    return v;
""")
def over_group(v: wp.float64, lanes: wp.int32) -> wp.float64:
    """Sum over neighbouring threads, a power of two; all of them must call this."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const unsigned int all = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1u;
    __syncwarp(all << (threadIdx.x & 31u & ~(unsigned int)(lanes - 1)));
#endif
""")
def wait_for_group(lanes: wp.int32):
    """Wait for the writes of neighbouring threads, a power of two; all of them must call this."""
    ...


@wp.func
def row_over_group(v: vec12, lanes: wp.int32) -> vec12:
    """Sum rows over neighbouring threads."""
    for m in range(12):
        v[m] = over_group(v[m], lanes)
    return v


@wp.func
def level_at(l: Levels, ahead: wp.int32, backward: wp.int32) -> wp.int32:
    """Return the level at a distance `ahead` after the completed ones, -1 for none."""
    level = l.at[0] + ahead
    if level >= l.count[0]:
        return -1
    if backward != 0:
        return l.count[0] - 1 - level
    return level


@wp.kernel
def begin_levels(first: wp.int32, l: Levels):
    """Start without completed levels; one item."""
    l.at[0] = 0
    l.going[0] = wp.min(l.count[0], 1)


@wp.kernel
def pass_levels(first: wp.int32, l: Levels, done: wp.int32):
    """Complete `done` more levels; one item."""
    l.at[0] = l.at[0] + done
    l.going[0] = wp.where(l.at[0] < l.count[0], 1, 0)


@wp.func
def with_source(row: vec12, blocks: wp.array2d(dtype=vec12), entry: wp.int32, r: wp.int32) -> vec12:
    """Add row r of a coupling's block, if there is one."""
    if entry >= 0:
        k = entry // 2
        if entry % 2 == 0:
            row = row + blocks[k, r]
        else:
            for m in range(12):
                v = blocks[k, m]
                row[m] = row[m] + v[r]
    return row


@wp.func
def source_row(p: Pattern, a: Sources, slot: wp.int32, r: wp.int32) -> vec12:
    j = p.row[slot]
    v = vec12()
    if p.column[slot] == j:
        v = a.diagonal[p.body[j], r]
    else:
        for c in range(a.number):
            blocks = wp.array(ptr=a.addresses[c, BLOCKS], shape=(UNBOUNDED, 12), dtype=vec12)
            v = with_source(v, blocks, a.slot[c * a.stride + slot], r)
    return v


@wp.kernel
def gather_level(first: wp.int32, threads: wp.int32, ahead: wp.int32, l: Levels, p: Pattern, a: Sources, f: Factor):
    """Compute A_ji - sum_k U_kj^T U_ki of the slots of a level, each row of a block by its lanes."""
    t = wp.tid() + first
    level = level_at(l, ahead, 0)
    if level < 0:
        return
    begin = p.starts[l.rows[level]]
    slots = p.starts[l.rows[level + 1]] - begin
    lanes = l.products[level]
    width = side_by_side(lanes)
    q = t
    while q < 12 * slots * width:
        slot = begin + q / width / 12
        r = (q / width) % 12
        if f.done[p.body[p.row[slot]]] == 0:
            v = vec12()
            if q % width == 0:
                v = source_row(p, a, slot, r)
                if r == 0 and p.column[slot] == p.row[slot]:
                    f.failed[p.row[slot]] = 0
            for lane in range(q % width, lanes, width):
                for e in range(l.starts[slot] + lane, l.starts[slot + 1], lanes):
                    left = l.left[e]
                    if f.done[p.body[p.row[left]]] == 0:
                        right = l.right[e]
                        for m in range(12):
                            v = v - f.entries[left, m, r] * f.rows[right, m]
            v = row_over_group(v, width)
            if q % width == 0:
                f.rows[slot, r] = v
        q = q + threads


@wp.func
def positive(pivot: wp.float64) -> wp.float64:
    """Return the pivot, or 1 instead of a pivot that is not positive."""
    if pivot > ZERO:
        return pivot
    return ONE


@wp.func
def scale_row(f: Factor, j: wp.int32, slot: wp.int32, r: wp.int32):
    """Divide row r of an eliminated diagonal block by the root of its pivot, and store the reciprocal root there."""
    pivot = f.entries[slot, r, r]
    usable = positive(pivot)
    if pivot != usable:
        f.failed[j] = 1
        f.any_failed[0] = 1
    scale = wp.sqrt(ONE / usable)
    row = scale * f.rows[slot, r]
    row[r] = scale
    f.rows[slot, r] = row


@wp.kernel
def factor_level(first: wp.int32, threads: wp.int32, ahead: wp.int32, l: Levels, p: Pattern, f: Factor):
    """Factor the diagonal blocks of a level, each row by a thread."""
    t = wp.tid() + first
    level = level_at(l, ahead, 0)
    if level < 0:
        return
    begin = l.rows[level]
    width = side_by_side(PIVOT_LANES)
    q = t
    while q < (l.rows[level + 1] - begin) * width:
        j = begin + q / width
        lane = q % width
        slot = p.starts[j]
        if f.done[p.body[j]] == 0:
            for r in range(11):
                for i in range(lane, 12, width):
                    if i > r:
                        factor = f.entries[slot, r, i] / positive(f.entries[slot, r, r])
                        f.rows[slot, i] = f.rows[slot, i] - factor * f.rows[slot, r]
                wait_for_group(width)
            for i in range(lane, 12, width):
                scale_row(f, j, slot, i)
            wait_for_group(width)
            for i in range(lane, 12, width):
                for m in range(i):
                    f.entries[slot, i, m] = f.entries[slot, m, i]
        q = q + threads


@wp.kernel
def divide_level(first: wp.int32, threads: wp.int32, ahead: wp.int32, l: Levels, p: Pattern, f: Factor):
    """Compute U_ji = U_jj^-T A_ji of the other blocks of a level in place, each column by a thread."""
    t = wp.tid() + first
    level = level_at(l, ahead, 0)
    if level < 0:
        return
    begin = p.starts[l.rows[level]]
    slots = p.starts[l.rows[level + 1]] - begin
    q = t
    while q < 12 * slots:
        slot = begin + q / 12
        column = q % 12
        j = p.row[slot]
        pivot = p.starts[j]
        if slot > pivot and f.done[p.body[j]] == 0:
            for r in range(12):
                v = f.entries[slot, r, column]
                for m in range(r):
                    v = v - f.entries[pivot, m, r] * f.entries[slot, m, column]
                f.entries[slot, r, column] = f.entries[pivot, r, r] * v
        q = q + threads
