"""What a march is for: the first impact of an island, or a way that is free as a whole."""

import warp as wp

from cuda_kernels.bodies.affine import ONE, ZERO, Path, arc
from cuda_kernels.contact.ccd import ANY_GAP, ENOUGH, MANY, MAX_ADVANCES, march
from cuda_kernels.contact.pair_law import activation
from cuda_kernels.contact.surfaces import Surfaces, primitives, proximity, separation
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)


@wp.func
def tell(alpha: wp.float64, island: wp.int32, first_found: wp.array(dtype=wp.float64)):
    """Let others know of an impact in an island: they march no further than `BEYOND` it.

    Only the smallest alpha of an island means anything. `first_found` (islands,), the limits at first, is the smallest
    that some thread has found so far. It is a hint that threads write without waiting for each other; whoever reads an
    old one marches further than necessary. The smallest alpha has the same bits in any order, as a march that stops before
    its end does not depend on where that is.
    """
    if alpha < first_found[island]:
        first_found[island] = alpha


@wp.func
def gap_on_way(known: wp.float64, activation: wp.float64, closer: wp.float64, back: wp.int32) -> wp.float64:
    """Gap at the beginning of a way, or a lower bound of it [m], as `share_of_way` has it."""
    gap = known * activation
    if back == 0:
        gap = wp.max(gap - closer, ZERO)
    return gap


@wp.func
def share_of_way(
    s: Surfaces,
    path: Path,
    pair: wp.vec2i,
    c: wp.vec4i,
    minimum: wp.float64,
    closer: wp.float64,
    known: wp.float64,
    back: wp.int32,
    again: wp.int32,
) -> wp.float64:
    """How far the way of a candidate is proven free, 1 where it is free as a whole.

    `closer` bounds how much closer its bodies come, `known` is its gap at the end of the step, in activations, or a lower
    bound of it: where the path leads `back` that is the one at its beginning. A gap may shrink to a fifth, or to the
    activation if that is smaller; where the march goes `again`, after it did not come to the end, to a fifth of its value
    at the other end if that is smaller still, in more advances.
    """
    i = pair[0]
    j = pair[1]
    least = activation(s.between, i, j)
    floor = ANY_GAP
    if back == 0:
        floor = least
    cap = MAX_ADVANCES
    if again != 0:
        prim = primitives(s, i, j, c[1], c[2], c[3])
        end = proximity(
            c[1], prim,
            path.p[i] + path.dp[i], arc(path, i, ONE), path.p[j] + path.dp[j], arc(path, j, ONE), s.plane[j],
        )  # fmt: skip
        floor = wp.min(floor, ENOUGH * wp.max(end.side * wp.length(end.r) - separation(s, i, j, minimum), ZERO))
        cap = MANY
    gap = gap_on_way(known, least, closer, back)
    return march(s, path, i, j, c, minimum, ONE, gap, closer, floor, cap)
