"""Proven-safe fractions of single candidates: cheap proofs for all of them, marches for the others.

A march needs many registers and up to hundreds of advances, but few candidates need one. `try_*` proves what it can and lists the
others, and neighbouring threads of `march_*` process these. The results do not depend on the order of the list.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, Path
from cuda_kernels.contact.ccd import (
    IMPACT_MARGIN,
    MAX_ADVANCES,
    WITHIN,
    Limits,
    Query,
    barely_moves,
    gap_on_path,
    is_far,
    march,
    proven_fraction,
    publish_impact,
)
from cuda_kernels.contact.pair_law import activation
from cuda_kernels.contact.surfaces import Surfaces
from cuda_kernels.options import OPTIONS, opaque

wp.set_module_options(OPTIONS)
LOADED_FOR = ("contact",)


@wp.struct
class Marches:
    """Candidates to march: count (1,), initially 0, of the list `item`."""

    count: wp.array(dtype=wp.int32)
    item: wp.array(dtype=wp.int32)


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return atomicAdd(&count.data[0], 1);
#else
    return __atomic_fetch_add(&count.data[0], 1, __ATOMIC_RELAXED);
#endif
""")
def next_place(count: wp.array(dtype=wp.int32)) -> wp.int32:
    """Return count[0] and increment it; atomic also on a CPU."""
    ...


@wp.kernel(grid_stride=False)
def try_impacts(
    first: wp.int32,
    s: Surfaces,
    path: Path,
    q: Query,
    ends: Limits,
    marches: Marches,
    toi: wp.array(dtype=wp.float64),
    batch: wp.int32,
):
    """Set alphas to the limit of the island, and list candidates not proven safe up to it. Known gaps are those at alpha = 0.

    One thread per `batch` candidates, here and in `try_paths`, because a CPU copies the arguments for every thread."""
    t = wp.tid() + first
    number = wp.int32(-1)
    reach = wp.float64(0.0)
    for k in range(batch * t, wp.min(batch * (t + 1), q.listed.counts[1])):
        c = q.listed.items[k]
        pair = q.listed.pairs[c[0]]
        if c[0] != number:
            number = c[0]
            reach = activation(s.between, pair[0], pair[1])
        alpha = ends.limit[ends.island[pair[0]]]
        if ends.proven == 0 or ends.kept[c[0]] < 0:
            gap = q.known[k] * reach
            if not is_far(q.approach[c[0]], gap, alpha):
                if not barely_moves(s, path, pair[0], pair[1], c, gap, alpha):
                    marches.item[next_place(marches.count)] = k
        toi[k] = alpha


@wp.kernel(grid_stride=False)
def try_paths(
    first: wp.int32,
    s: Surfaces,
    path: Path,
    q: Query,
    back: wp.int32,
    marches: Marches,
    fraction: wp.array(dtype=wp.float64),
    batch: wp.int32,
):
    """Set fractions to 1, and list candidates not proven free on the whole path.

    Forward, candidates with a free backward path keep their fraction, because it is the same path."""
    t = wp.tid() + first
    number = wp.int32(-1)
    reach = wp.float64(0.0)
    for k in range(batch * t, wp.min(batch * (t + 1), q.listed.counts[1])):
        if back != 0 or fraction[k] != ONE:
            c = q.listed.items[k]
            pair = q.listed.pairs[c[0]]
            if c[0] != number:
                number = c[0]
                reach = activation(s.between, pair[0], pair[1])
            closer = q.approach[c[0]]
            gap = gap_on_path(q.known[k], reach, closer, back)
            if not is_far(closer, gap, ONE):
                if not barely_moves(s, path, pair[0], pair[1], c, gap, ONE):
                    marches.item[next_place(marches.count)] = k
        fraction[k] = ONE


# without a grid-stride loop, whose counters would occupy registers during a march
@wp.kernel(grid_stride=False, cuda_max_registers=200)
def march_impacts(
    first: wp.int32,
    s: Surfaces,
    path: Path,
    q: Query,
    ends: Limits,
    marches: Marches,
    toi: wp.array(dtype=wp.float64),
):
    """Compute proven-safe alphas of the listed candidates; only the smallest one of an island is used (`publish_impact`)."""
    t = wp.tid() + first
    if t >= marches.count[0]:
        return
    k = marches.item[t]
    c = q.listed.items[k]
    pair = q.listed.pairs[c[0]]
    b = ends.island[pair[0]]
    alpha = wp.min(ends.limit[b], IMPACT_MARGIN * ends.first_found[b])
    closer = q.approach[c[0]]
    reach = activation(s.between, pair[0], pair[1])
    gap = q.known[k] * reach
    if not is_far(closer, gap, alpha):
        alpha = march(s, path, pair[0], pair[1], c, q.minimum, alpha, gap, closer, WITHIN * reach, MAX_ADVANCES)
    k = opaque(k)
    toi[k] = alpha
    publish_impact(alpha, ends.island[q.listed.pairs[q.listed.items[k][0]][0]], ends.first_found)


@wp.kernel(grid_stride=False, cuda_max_registers=200)
def march_paths(
    first: wp.int32,
    s: Surfaces,
    path: Path,
    q: Query,
    back: wp.int32,
    again: wp.int32,
    marches: Marches,
    fraction: wp.array(dtype=wp.float64),
):
    """Compute the fractions of the listed candidates; if `again`, only of those whose path is not proven free yet."""
    t = wp.tid() + first
    if t >= marches.count[0]:
        return
    k = marches.item[t]
    if again != 0 and fraction[k] == ONE:
        return
    c = q.listed.items[k]
    fraction[k] = proven_fraction(s, path, q.listed.pairs[c[0]], c, q.minimum, q.approach[c[0]], q.known[k], back, again)
