"""How far candidates may go on a path, one by one: cheap proofs for all of them, marches for those that they leave open.

A march takes many registers and up to hundreds of advances, and few candidates need one: `try_*` settles what it can and marks
the others, `list_marches` closes them up in their order, and `march_*` has threads side by side march. The proofs are those
that `cuda_kernels.contact.impacts` begins with: the bits are the same.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, Path
from cuda_kernels.bodies.opaque import opaque
from cuda_kernels.contact.ccd import (
    BEYOND,
    MAX_ADVANCES,
    WITHIN,
    barely_moves,
    gap_on_path,
    is_far,
    march,
    proven_fraction,
    tell,
)
from cuda_kernels.contact.pair_law import activation
from cuda_kernels.contact.surfaces import Surfaces
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)
LOADED_FOR = ("cuda", "contact")


@wp.struct
class Marches:
    """Candidates that are left to march: `open` (count,) says which, slot (count + 1,) how many are before each and, behind
    the last one, in all, `item` (count,) which ones they are."""

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
    """Alphas of candidates that are safe up to the limit of their island, and which are not known to be; arguments as
    `cuda_kernels.contact.impacts.times_of_impact` has them."""
    k = wp.tid() + first
    if k >= listed[1]:
        return
    c = candidates[k]
    pair = pairs[c[0]]
    alpha = limit[island[pair[0]]]
    left = wp.int32(0)
    if proven == 0 or kept[c[0]] < 0:
        gap = known[k] * activation(s.between, pair[0], pair[1])
        if not is_far(approach[c[0]], gap, alpha):
            if not barely_moves(s, path, pair[0], pair[1], c, gap, alpha):
                left = 1
    marches.open[k] = left
    toi[k] = alpha


@wp.kernel
def try_ways(
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
    share: wp.array(dtype=wp.float64),
):
    """Shares of candidates whose whole path is free, and which are not known to be; arguments as
    `cuda_kernels.contact.impacts.proven_fractions` has them."""
    k = wp.tid() + first
    if k >= listed[1]:
        return
    if back == 0 and share[k] == ONE:
        marches.open[k] = 0
        return
    c = candidates[k]
    pair = pairs[c[0]]
    closer = approach[c[0]]
    gap = gap_on_path(known[k], activation(s.between, pair[0], pair[1]), closer, back)
    left = wp.int32(0)
    if not is_far(closer, gap, ONE):
        if not barely_moves(s, path, pair[0], pair[1], c, gap, ONE):
            left = 1
    marches.open[k] = left
    share[k] = ONE


@wp.kernel
def list_marches(first: wp.int32, listed: wp.array(dtype=wp.int32), marches: Marches):
    """Candidates that are open, in their order."""
    k = wp.tid() + first
    if k < listed[1] and marches.open[k] != 0:
        marches.item[marches.slot[k]] = k


# without a loop over the grid, whose counters would lie in registers through all of a march
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
    """Alphas of the candidates that are listed to march."""
    t = wp.tid() + first
    if t >= marches.slot[listed[1]]:
        return
    k = marches.item[t]
    c = candidates[k]
    pair = pairs[c[0]]
    b = island[pair[0]]
    alpha = wp.min(limit[b], BEYOND * first_found[b])
    closer = approach[c[0]]
    reach = activation(s.between, pair[0], pair[1])
    gap = known[k] * reach
    if not is_far(closer, gap, alpha):
        alpha = march(s, path, pair[0], pair[1], c, minimum, alpha, gap, closer, WITHIN * reach, MAX_ADVANCES)
    k = opaque(k)
    toi[k] = alpha
    tell(alpha, island[pairs[candidates[k][0]][0]], first_found)


@wp.kernel(grid_stride=False, cuda_max_registers=200)
def march_ways(
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
    share: wp.array(dtype=wp.float64),
):
    """Shares of the candidates that are listed to march; of those whose path is not free yet where they march `again`."""
    t = wp.tid() + first
    if t >= marches.slot[listed[1]]:
        return
    k = marches.item[t]
    if again != 0 and share[k] == ONE:
        return
    c = candidates[k]
    share[k] = proven_fraction(s, path, pairs[c[0]], c, minimum, approach[c[0]], known[k], back, again)
