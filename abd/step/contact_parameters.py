"""Contact parameters per pair of bodies (`abd.contact.pair_law`).

A pair has its own activation distance, at most that of its bodies, if it

- starts within that distance: ``a = gap``. The force at the start is zero; under load the gap decreases until the barrier
  balances it;
- becomes active by an impact: ``a = min(a, gap)`` at the end of the impact's substep, so that the barrier stores no energy. It
  returns to its value before, `home`, at `RELAXATION` times the tolerance velocity.

A pair that separates beyond both activation distances uses the common parameters.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.contact.pair_law import PairLaw, PairParameters
from abd.contact.pair_rows import places
from abd.energies import InitialContacts

RELAXATION = 0.1
"""Rate of return of an activation distance after an impact, over the tolerance velocity."""
REACHED = 1e-3
"""Compression, over the activation distance, from which a new contact has an impact."""
SMALLEST_ACTIVATION = 1e-3
"""Smallest activation distance after an impact, over that of the bodies."""


def find_parameters(backend, bodies: np.ndarray | None = None) -> tuple[InitialContacts, np.ndarray]:
    """Set the parameters of pairs in an initial state, of all pairs or of those with one of `bodies`.

    Returns:
        the statistics of the contacts, and (n,) 1 for bodies that are within their activation distance.
    """
    touch, law = backend.touch, backend.pair_law
    kept = PairParameters() if bodies is None else law.own[~np.isin(law.bodies_of(law.own.key), bodies).any(axis=0)]
    touch.set_pair_parameters(kept)
    touch.list_contacts()
    touching = touch.touching()
    pairs, gaps = touch.pair_gaps(exact=True)
    within = (gaps > 0.0) & (gaps < 1.0)
    key, first = np.unique(law.keys(*pairs[within].T), return_index=True)
    activation = (gaps[within] * law.regular(*pairs[within].T))[first]
    found = PairParameters(key, activation, activation)
    if bodies is not None:
        found = found[np.isin(law.bodies_of(found.key), bodies).any(axis=0)]
    if len(found):
        touch.set_pair_parameters(merged(kept, found))
        touch.list_contacts()
    initial_contacts = InitialContacts(*backend.readings.contact_statistics())
    backend.states.abandon()
    return initial_contacts, touching


def relax(backend, tolerance: float, h: float | np.ndarray) -> None:
    """Return activation distances towards `home` in a substep of h [s], scalar or (n,); tolerance: of Newton's method [m/s]."""
    law, own = backend.pair_law, backend.pair_law.own
    if not len(own):
        return
    way = RELAXATION * tolerance * np.broadcast_to(h, law.n)[law.bodies_of(own.key)[0]]
    activation = np.minimum(own.home, own.activation + way)
    if (activation != own.activation).any():
        backend.touch.set_pair_parameters(replace(own, activation=activation))
        backend.iteration.evaluate()


def update_parameters(backend, impact_pairs: np.ndarray) -> None:
    """Update the parameters after a substep.

    Pairs of bodies (k, 2) that an impact made active get their gap as activation distance; separated pairs are dropped."""
    law = backend.pair_law
    if not len(law.own) and not len(impact_pairs):
        return
    pairs, gaps = backend.touch.pair_gaps()
    own = _with_impacts(law, impact_pairs, pairs, gaps) if len(impact_pairs) else law.own
    gap = _gaps_of(own.key, law, pairs, gaps)
    if ((gap >= 1.0) & (gap < np.inf)).any():  # gaps beyond the activation may be bounds
        gap = _gaps_of(own.key, law, *backend.touch.pair_gaps(exact=True))
    usual = law.regular(*law.bodies_of(own.key))
    remains = (gap * law.activation(*law.bodies_of(own.key)) < usual) & (own.activation != usual)
    if own is not law.own or not remains.all():
        backend.touch.set_pair_parameters(own[remains])


def new_contacts(
    law: PairLaw, bodies: np.ndarray, pair: np.ndarray, size: np.ndarray, start: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return (k,) bool, pairs of bodies (k, 2) in contact that have most of their impulse from points that were inactive when the
    substep began, and (k,) bool, those of them that have only just reached their activation distance: rounding chooses which of
    their points have a force.

    Pairs whose activation distance an impact has lowered already are not new.

    Args:
        pair: (c,) pair of every point; size: (c,) impulses [N s]; start, end: (c,) gaps of the substep [m].
    """
    own, (i, j), count = law.own, bodies.T, len(bodies)
    key, reached = law.keys(i, j), (1.0 - REACHED) * law.activation(i, j)
    at, is_known = own.places(key)
    lowered = is_known & (own.activation[at] < own.home[at]) if len(own) else is_known
    of_new = np.bincount(pair, weights=np.where(start >= reached[pair], size, 0.0), minlength=count)
    is_new = ~lowered & (of_new > 0.5 * np.bincount(pair, weights=size, minlength=count))
    return is_new, is_new & (np.bincount(pair, weights=end < reached[pair], minlength=count) == 0)


def _with_impacts(law: PairLaw, impact_pairs: np.ndarray, pairs: np.ndarray, gaps: np.ndarray) -> PairParameters:
    """Return parameters after impacts of pairs of bodies (k, 2), from the gaps (m,) [activations] of the listed pairs (m, 2)."""
    key = np.unique(law.keys(*impact_pairs.T))
    new = key[~law.own.places(key)[1]]
    usual = law.regular(*law.bodies_of(new))
    own = merged(law.own, PairParameters(new, usual, usual))
    bodies, at = law.bodies_of(key), np.searchsorted(own.key, key)
    gap = np.minimum(_gaps_of(key, law, pairs, gaps), 1.0) * law.activation(*bodies)
    own.activation[at] = np.maximum(gap, SMALLEST_ACTIVATION * law.regular(*bodies))
    return own


def _gaps_of(key: np.ndarray, law: PairLaw, pairs: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """Return (k,) gaps by keys of pairs from those of the listed pairs (m, 2); infinite for others."""
    listed, first = np.unique(law.keys(*pairs.T), return_index=True)
    at, is_listed = places(listed, key)
    out = np.full(len(key), np.inf)
    out[is_listed] = gaps[first[at[is_listed]]]
    return out


def merged(a: PairParameters, b: PairParameters) -> PairParameters:
    """Return the union of two tables without common keys."""
    both = PairParameters.joined(a, b)
    return both[np.argsort(both.key)]
