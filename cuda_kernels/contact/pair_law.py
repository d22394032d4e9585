"""Activation and stiffness of contact of a pair of bodies; device version of ``abd/contact/pair_law.py``.

Both follow from the two bodies, except for the pairs listed in `PairParameters`; see `activation` and `pair_stiffness`.
"""

import warp as wp

from cuda_kernels.bodies.affine import TWO, ZERO
from cuda_kernels.contact.barrier import CUBIC, LOG, LOG_SQ
from cuda_kernels.options import OPTIONS
from cuda_kernels.parallel.chunks import lower_bound
from cuda_kernels.shared import contact as shared

wp.set_module_options(OPTIONS)
FORCE_SHARE = wp.constant(wp.float64(shared.FORCE_SHARE))


@wp.struct
class PairParameters:
    """Pairs with their own parameters: sorted keys ``min n + max`` of n bodies, activation distances [m]; count (1,) of them."""

    count: wp.array(dtype=wp.int32)
    key: wp.array(dtype=wp.int64)
    activation: wp.array(dtype=wp.float64)


@wp.struct
class PairLaw:
    """Per body: activation distance [m], 1/m [1/kg] (0 if immobile), acceleration to resist [m/s^2]; given: kappa_c
    instead of all this, 0 without; own: pairs with their own parameters."""

    bodies: wp.int32
    d_hat: wp.array(dtype=wp.float64)
    lightness: wp.array(dtype=wp.float64)
    acceleration: wp.array(dtype=wp.float64)
    given: wp.float64
    own: PairParameters


@wp.func
def pair_parameters(own: PairParameters, bodies: wp.int32, i: wp.int32, j: wp.int32) -> wp.int32:
    """Return the index of a pair with its own parameters, -1 without."""
    count = own.count[0]
    if count == 0:
        return -1
    key = wp.int64(wp.min(i, j)) * wp.int64(bodies) + wp.int64(wp.max(i, j))
    lo = lower_bound(own.key, 0, count, key)
    if lo < count:
        if own.key[lo] == key:
            return lo
    return -1


@wp.func
def regular(p: PairLaw, i: wp.int32, j: wp.int32) -> wp.float64:
    """Return the activation of bodies i and j without parameters of single pairs [m], an upper bound of those with parameters."""
    return wp.min(p.d_hat[i], p.d_hat[j])


@wp.func
def activation(p: PairLaw, i: wp.int32, j: wp.int32) -> wp.float64:
    """Return the gap [m] below which contact of bodies i and j is active."""
    return activation_at(p, pair_parameters(p.own, p.bodies, i, j), i, j)


@wp.func
def activation_at(p: PairLaw, k: wp.int32, i: wp.int32, j: wp.int32) -> wp.float64:
    """Return `activation` of a pair with parameters at k, -1 without."""
    if k >= 0:
        return p.own.activation[k]
    return regular(p, i, j)


@wp.func
def force_scale(kind: wp.int32, a: wp.float64, xi: wp.float64) -> wp.float64:
    """Return the force of a barrier of stiffness 1 over a function of gap / activation; NaN for an unknown kind.

    Counterpart of `abd.potentials.barrier.FORCE_SCALE`."""
    if kind == CUBIC:
        return a
    if kind == LOG or kind == LOG_SQ:
        return a * (a + TWO * xi) * (a + TWO * xi)
    return wp.float64(wp.nan)


@wp.func
def pair_stiffness(
    p: PairLaw, kind: wp.int32, k: wp.int32, i: wp.int32, j: wp.int32, a: wp.float64, xi: wp.float64
) -> wp.float64:
    """Return kappa_c of bodies i and j with activation a [m] and parameters at k: the force of the pair over `force_scale`."""
    force = p.given * force_scale(kind, regular(p, i, j), xi)
    if p.given == ZERO:
        force = FORCE_SHARE * wp.max(p.acceleration[i], p.acceleration[j]) / (p.lightness[i] + p.lightness[j])
    if k < 0 and p.given > ZERO:
        return p.given
    return force / force_scale(kind, a, xi)
