"""Maps of the rest space of one body of a pair into that of the other at both ends of a path, and bounds of the deviation of
points from the chord between.
"""

import warp as wp

from cuda_kernels.bodies.affine import ONE, TWO, ZERO, Path, arc, farthest, spectral_bound
from cuda_kernels.contact.pair_law import regular
from cuda_kernels.contact.surfaces import Surfaces, separation
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)
LOADED_FOR = ("contact",)


@wp.struct
class Frames:
    """Per body pair: maps of i's rest points into j's rest frame at alpha = 0 and 1, the reverse, and growths [m]."""

    R0: wp.array(dtype=wp.mat33d)
    t0: wp.array(dtype=wp.vec3d)
    R1: wp.array(dtype=wp.mat33d)
    t1: wp.array(dtype=wp.vec3d)
    grow: wp.array(dtype=wp.float64)


@wp.kernel
def relative_frames(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    s: Surfaces,
    path: Path,
    pairs: wp.array(dtype=wp.vec2i),
    kept: wp.array(dtype=wp.int32),
    world: wp.array(dtype=wp.int32),
    margin: wp.array(dtype=wp.float64),
    minimum: wp.float64,
    island: wp.array(dtype=wp.int32),
    limit: wp.array(dtype=wp.float64),
    frames: Frames,
):
    """Compute relative maps of every searched body pair k, both ways (items 2k and 2k + 1), at alpha = 0 and at the limit of the
    emitting body's island. Mobile bodies of a pair are later in one island, whose limit is the smaller one of theirs; an immobile
    body has the same map at any alpha. No path is thus longer.

    Up to the limit ``|alpha S| <= 1/2``, so that ``A' A^-1 = W + S (1 + alpha S)^-1`` is at most W + S / (1 - S).

    With r = x_i - p_j and y = A_j^-1 r: ``y'' = A_j^-1 (r'' - A_j'' y - 2 A_j' y')``, each factor bounded over the step.
    """
    e = wp.tid() + first
    k = e // 2
    if k >= counts[0]:
        return
    i = pairs[k][0]
    j = pairs[k][1]
    if s.mesh[j] < 0 or kept[k] >= 0:
        return
    xi = separation(s, i, j, minimum)
    end = limit[island[i]]
    if e % 2 == 1:
        i = pairs[k][1]
        j = pairs[k][0]
    Aj0 = path.A[j]
    Aj1 = arc(path, j, end)
    B0 = wp.inverse(Aj0)
    B1 = wp.inverse(Aj1)
    Ai1 = arc(path, i, end)
    d0 = path.p[i] - path.p[j]
    d1 = d0 + end * (path.dp[i] - path.dp[j])
    frames.R0[e] = B0 * path.A[i]
    frames.t0[e] = B0 * d0
    frames.R1[e] = B1 * Ai1
    frames.t1[e] = B1 * d1
    S = end * spectral_bound(path.S[j])
    W = end * wp.length(path.w[j])
    inverse = spectral_bound(B0) / wp.max(ONE - S, wp.float64(0.25))
    stretch = S / wp.max(ONE - S, wp.float64(0.25))
    rate = W + stretch
    ri = farthest(s.lower[s.mesh[i]], s.upper[s.mesh[i]])
    extent0 = spectral_bound(path.A[i]) * ri
    extent1 = spectral_bound(Ai1) * ri
    bend_i = end * end * path.bend[i]
    distance = wp.max(wp.length(d0) + extent0, wp.length(d1) + extent1) + bend_i / wp.float64(8.0)
    curve = W * W + TWO * W * stretch
    travel = end * (wp.length(path.dp[i] - path.dp[j]) + path.affine_speed[i])
    slope = inverse * (travel + rate * distance)
    second = inverse * (bend_i + curve * distance + TWO * rate * slope)
    if W == ZERO and S == ZERO:
        second = inverse * bend_i
    frames.grow[e] = inverse * (regular(s.between, i, j) + margin[world[i]] + xi) + second / wp.float64(8.0)
