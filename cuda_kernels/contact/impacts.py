"""Proven-safe fractions of paths of candidates, by batches; most candidates of a batch are far and need no march."""

import warp as wp

from cuda_kernels.bodies.affine import ONE, ZERO, Path
from cuda_kernels.contact.ccd import (
    IMPACT_MARGIN,
    MAX_ADVANCES,
    WITHIN,
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
    batch: wp.int32,
    toi: wp.array(dtype=wp.float64),
):
    """Compute proven-safe alphas of a batch of candidates up to the limits of their islands; only the smallest one of an island
    is used (`publish_impact`).

    `approach` bounds the approach of the bodies of every pair, `known` are the candidates' gaps at alpha = 0 [activations], or
    lower bounds of them. If `proven`, the limits are safe for pairs that are `kept` (not -1). listed = [pairs, candidates].
    """
    t = wp.tid() + first
    number = wp.int32(-1)
    reach = wp.float64(0.0)
    for k in range(batch * t, wp.min(batch * (t + 1), listed[1])):
        c = candidates[k]
        pair = pairs[c[0]]
        if c[0] != number:
            number = c[0]
            reach = activation(s.between, pair[0], pair[1])
        of_island = island[pair[0]]
        alpha = limit[of_island]
        if proven == 0 or kept[c[0]] < 0:
            alpha = wp.min(alpha, IMPACT_MARGIN * first_found[of_island])
            closer = approach[c[0]]
            gap = known[k] * reach
            # tested before the call, whose arguments are copied: most candidates are far
            if not is_far(closer, gap, alpha):
                alpha = march(s, path, pair[0], pair[1], c, minimum, alpha, gap, closer, WITHIN * reach, MAX_ADVANCES)
                publish_impact(alpha, of_island, first_found)
        toi[k] = alpha


@wp.kernel
def proven_fractions(
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
    batch: wp.int32,
    fraction: wp.array(dtype=wp.float64),
):
    """Compute fractions of the swept paths of a batch of candidates by `proven_fraction`; listed = [pairs, candidates].

    Forward, candidates with a free backward path keep their fraction, because it is the same path.
    """
    t = wp.tid() + first
    for k in range(batch * t, wp.min(batch * (t + 1), listed[1])):
        if back == 0 and fraction[k] == ONE:
            continue
        c = candidates[k]
        pair = pairs[c[0]]
        closer = approach[c[0]]
        alpha = ONE
        if not is_far(closer, gap_on_path(known[k], activation(s.between, pair[0], pair[1]), closer, back), ONE):
            alpha = ZERO
            again = wp.int32(0)
            # a loop over a range of two would be unrolled with the march
            while again < 2:
                if alpha < ONE:
                    alpha = proven_fraction(s, path, pair, c, minimum, closer, known[k], back, again)
                again = again + 1
        fraction[k] = alpha
