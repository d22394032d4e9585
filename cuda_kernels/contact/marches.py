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
    pairs: wp.array(dtype=wp.vec2i),
    candidates: wp.array(dtype=wp.vec4i),
    listed: wp.array(dtype=wp.int32),
    minimum: wp.float64,
    approach: wp.array(dtype=wp.float64),
    known: wp.array(dtype=wp.float64),
    island: wp.array(dtype=wp.int32),
    limit: wp.array(dtype=wp.float64),
    kept: wp.array(dtype=wp.int32),
    proven: wp.int32,
    first_found: wp.array(dtype=wp.float64),
    marches: Marches,
    toi: wp.array(dtype=wp.float64),
):
    """Set alphas to the limit of the island, and mark candidates not proven safe up to it; arguments as in
    `cuda_kernels.contact.impacts.times_of_impact`."""
    k = wp.tid() + first
    if k >= listed[1]:
        return
    c = candidates[k]
    pair = pairs[c[0]]
    alpha = limit[island[pair[0]]]
    is_open = wp.int32(0)
    if proven == 0 or kept[c[0]] < 0:
        gap = known[k] * activation(s.between, pair[0], pair[1])
        if not is_far(approach[c[0]], gap, alpha):
            if not barely_moves(s, path, pair[0], pair[1], c, gap, alpha):
                is_open = 1
    marches.open[k] = is_open
    toi[k] = alpha


@wp.kernel
def try_paths(
    first: wp.int32,
    s: Surfaces,
    path: Path,
    pairs: wp.array(dtype=wp.vec2i),
    candidates: wp.array(dtype=wp.vec4i),
    listed: wp.array(dtype=wp.int32),
    minimum: wp.float64,
    approach: wp.array(dtype=wp.float64),
    known: wp.array(dtype=wp.float64),
    back: wp.int32,
    marches: Marches,
    fraction: wp.array(dtype=wp.float64),
):
    """Set fractions to 1, and mark candidates not proven free on the whole path; arguments as in
    `cuda_kernels.contact.impacts.proven_fractions`."""
    k = wp.tid() + first
    if k >= listed[1]:
        return
    if back == 0 and fraction[k] == ONE:
        marches.open[k] = 0
        return
    c = candidates[k]
    pair = pairs[c[0]]
    closer = approach[c[0]]
    gap = gap_on_path(known[k], activation(s.between, pair[0], pair[1]), closer, back)
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
    pairs: wp.array(dtype=wp.vec2i),
    candidates: wp.array(dtype=wp.vec4i),
    listed: wp.array(dtype=wp.int32),
    minimum: wp.float64,
    approach: wp.array(dtype=wp.float64),
    known: wp.array(dtype=wp.float64),
    island: wp.array(dtype=wp.int32),
    limit: wp.array(dtype=wp.float64),
    kept: wp.array(dtype=wp.int32),
    proven: wp.int32,
    first_found: wp.array(dtype=wp.float64),
    marches: Marches,
    toi: wp.array(dtype=wp.float64),
):
    """Compute the alphas of the listed candidates."""
    t = wp.tid() + first
    if t >= marches.slot[listed[1]]:
        return
    k = marches.item[t]
    c = candidates[k]
    pair = pairs[c[0]]
    b = island[pair[0]]
    alpha = wp.min(limit[b], IMPACT_MARGIN * first_found[b])
    closer = approach[c[0]]
    reach = activation(s.between, pair[0], pair[1])
    gap = known[k] * reach
    if not is_far(closer, gap, alpha):
        alpha = march(s, path, pair[0], pair[1], c, minimum, alpha, gap, closer, WITHIN * reach, MAX_ADVANCES)
    k = opaque(k)
    toi[k] = alpha
    publish_impact(alpha, island[pairs[candidates[k][0]][0]], first_found)


@wp.kernel(grid_stride=False, cuda_max_registers=200)
def march_paths(
    first: wp.int32,
    s: Surfaces,
    path: Path,
    pairs: wp.array(dtype=wp.vec2i),
    candidates: wp.array(dtype=wp.vec4i),
    listed: wp.array(dtype=wp.int32),
    minimum: wp.float64,
    approach: wp.array(dtype=wp.float64),
    known: wp.array(dtype=wp.float64),
    back: wp.int32,
    again: wp.int32,
    marches: Marches,
    fraction: wp.array(dtype=wp.float64),
):
    """Compute the fractions of the listed candidates; if `again`, only of those whose path is not proven free yet."""
    t = wp.tid() + first
    if t >= marches.slot[listed[1]]:
        return
    k = marches.item[t]
    if again != 0 and fraction[k] == ONE:
        return
    c = candidates[k]
    fraction[k] = proven_fraction(s, path, pairs[c[0]], c, minimum, approach[c[0]], known[k], back, again)
