"""Proven-safe fractions of paths of candidates, by batches; most candidates of a batch are far and need no march."""

import warp as wp

from cuda_kernels.bodies.affine import ONE, ZERO, Path
from cuda_kernels.contact.ccd import (
    IMPACT_MARGIN,
    MAX_ADVANCES,
    WITHIN,
    Limits,
    Query,
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
LOADED_FOR = ("cpu", "contact")


@wp.kernel
def times_of_impact(
    first: wp.int32,
    s: Surfaces,
    path: Path,
    q: Query,
    ends: Limits,
    batch: wp.int32,
    toi: wp.array(dtype=wp.float64),
):
    """Compute proven-safe alphas of a batch of candidates up to the limits of their islands; only the smallest one of an island
    is used (`publish_impact`). Known gaps are those at alpha = 0."""
    t = wp.tid() + first
    number = wp.int32(-1)
    reach = wp.float64(0.0)
    for k in range(batch * t, wp.min(batch * (t + 1), q.listed[1])):
        c = q.candidates[k]
        pair = q.pairs[c[0]]
        if c[0] != number:
            number = c[0]
            reach = activation(s.between, pair[0], pair[1])
        of_island = ends.island[pair[0]]
        alpha = ends.limit[of_island]
        if ends.proven == 0 or ends.kept[c[0]] < 0:
            alpha = wp.min(alpha, IMPACT_MARGIN * ends.first_found[of_island])
            closer = q.approach[c[0]]
            gap = q.known[k] * reach
            # tested before the call, whose arguments are copied: most candidates are far
            if not is_far(closer, gap, alpha):
                least = WITHIN * reach
                alpha = march(s, path, pair[0], pair[1], c, q.minimum, alpha, gap, closer, least, MAX_ADVANCES)
                publish_impact(alpha, of_island, ends.first_found)
        toi[k] = alpha


@wp.kernel
def proven_fractions(
    first: wp.int32,
    s: Surfaces,
    path: Path,
    q: Query,
    back: wp.int32,
    batch: wp.int32,
    fraction: wp.array(dtype=wp.float64),
):
    """Compute fractions of the swept paths of a batch of candidates by `proven_fraction`.

    Forward, candidates with a free backward path keep their fraction, because it is the same path.
    """
    t = wp.tid() + first
    for k in range(batch * t, wp.min(batch * (t + 1), q.listed[1])):
        if back == 0 and fraction[k] == ONE:
            continue
        c = q.candidates[k]
        pair = q.pairs[c[0]]
        closer = q.approach[c[0]]
        alpha = ONE
        if not is_far(closer, gap_on_path(q.known[k], activation(s.between, pair[0], pair[1]), closer, back), ONE):
            alpha = ZERO
            again = wp.int32(0)
            # a loop over a range of two would be unrolled with the march
            while again < 2:
                if alpha < ONE:
                    alpha = proven_fraction(s, path, pair, c, q.minimum, closer, q.known[k], back, again)
                again = again + 1
        fraction[k] = alpha
