"""Proven-safe fractions of single candidates: cheap proofs for all of them, marches for the others.

A march needs many registers and up to hundreds of advances, but few candidates need one. `try_*` proves what it can and marks the
others, `list_marches` compacts these in order, and neighbouring threads of `march_*` process them. The proofs are those at the
start of `cuda_kernels.contact.impacts`, with the same bits.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, Path
from cuda_kernels.bodies.opaque import opaque
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
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)
LOADED_FOR = ("cuda", "contact")


@wp.struct
class Marches:
    """Candidates to march: `open` (count,) marks them, slot (count + 1,) is the number of them before each and, at the end, in
    all, `item` (count,) lists them."""

    open: wp.array(dtype=wp.int32)
    slot: wp.array(dtype=wp.int32)
    item: wp.array(dtype=wp.int32)


@wp.kernel
def try_impacts(
    first: wp.int32,
    s: Surfaces,
    path: Path,
    q: Query,
    ends: Limits,
    marches: Marches,
    toi: wp.array(dtype=wp.float64),
):
    """Set alphas to the limit of the island, and mark candidates not proven safe up to it; arguments as in
    `cuda_kernels.contact.impacts.times_of_impact`."""
    k = wp.tid() + first
    if k >= q.listed[1]:
        return
    c = q.candidates[k]
    pair = q.pairs[c[0]]
    alpha = ends.limit[ends.island[pair[0]]]
    is_open = wp.int32(0)
    if ends.proven == 0 or ends.kept[c[0]] < 0:
        gap = q.known[k] * activation(s.between, pair[0], pair[1])
        if not is_far(q.approach[c[0]], gap, alpha):
            if not barely_moves(s, path, pair[0], pair[1], c, gap, alpha):
                is_open = 1
    marches.open[k] = is_open
    toi[k] = alpha


@wp.kernel
def try_paths(
    first: wp.int32,
    s: Surfaces,
    path: Path,
    q: Query,
    back: wp.int32,
    marches: Marches,
    fraction: wp.array(dtype=wp.float64),
):
    """Set fractions to 1, and mark candidates not proven free on the whole path; arguments as in
    `cuda_kernels.contact.impacts.proven_fractions`."""
    k = wp.tid() + first
    if k >= q.listed[1]:
        return
    if back == 0 and fraction[k] == ONE:
        marches.open[k] = 0
        return
    c = q.candidates[k]
    pair = q.pairs[c[0]]
    closer = q.approach[c[0]]
    gap = gap_on_path(q.known[k], activation(s.between, pair[0], pair[1]), closer, back)
    is_open = wp.int32(0)
    if not is_far(closer, gap, ONE):
        if not barely_moves(s, path, pair[0], pair[1], c, gap, ONE):
            is_open = 1
    marches.open[k] = is_open
    fraction[k] = ONE


@wp.kernel
def list_marches(first: wp.int32, listed: wp.array(dtype=wp.int32), marches: Marches):
    k = wp.tid() + first
    if k < listed[1] and marches.open[k] != 0:
        marches.item[marches.slot[k]] = k


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
    """Compute the alphas of the listed candidates."""
    t = wp.tid() + first
    if t >= marches.slot[q.listed[1]]:
        return
    k = marches.item[t]
    c = q.candidates[k]
    pair = q.pairs[c[0]]
    b = ends.island[pair[0]]
    alpha = wp.min(ends.limit[b], IMPACT_MARGIN * ends.first_found[b])
    closer = q.approach[c[0]]
    reach = activation(s.between, pair[0], pair[1])
    gap = q.known[k] * reach
    if not is_far(closer, gap, alpha):
        alpha = march(s, path, pair[0], pair[1], c, q.minimum, alpha, gap, closer, WITHIN * reach, MAX_ADVANCES)
    k = opaque(k)
    toi[k] = alpha
    publish_impact(alpha, ends.island[q.pairs[q.candidates[k][0]][0]], ends.first_found)


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
    if t >= marches.slot[q.listed[1]]:
        return
    k = marches.item[t]
    if again != 0 and fraction[k] == ONE:
        return
    c = q.candidates[k]
    fraction[k] = proven_fraction(s, path, q.pairs[c[0]], c, q.minimum, q.approach[c[0]], q.known[k], back, again)
