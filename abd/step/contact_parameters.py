"""Contact parameters per pair of bodies (`abd.contact.pair_law`).

A pair has its own activation distance, at most that of its bodies, if it

- starts within that distance: ``a = gap``. The force at the start is zero; under load the gap decreases until the barrier
  balances it;
- becomes active by an impact: ``a = min(a, gap)`` at the end of the impact's substep, so that the barrier stores no energy. It
  returns to its value before, `home`, at `RELAXATION` times the tolerance velocity.

The force factor of a pair increases if a small gap does not open, or if collisions limit a step to zero: forces then grow to
those needed at `TIGHT_GAP`, by a factor of 2 to `LARGEST_GROWTH` at once. The factor fades in time once the gap is large.
A pair that separates beyond both activation distances uses the common parameters.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.contact.pair_law import PairLaw, PairParameters
from abd.contact.pair_rows import places
from abd.energies import InitialContacts

TIGHT_GAP = 1e-2
"""Gap, in activations, below which a closing contact is stiffened: the logarithm grows too slowly there."""
FADING_GAP = 0.8
"""Gap, in activations, beyond which the factor of a pair fades."""
FADING_TIME = 0.05
"""Half-life of the factor [s]."""
BLOCKED_STEP = 1e-6
"""Largest safe step of a blocked island. The step after the line search is no criterion: stiff contacts shorten it too."""
LARGEST_GROWTH = 64.0
"""Largest growth of a force at once: the gap at which a step was stopped is a poor measure of the force."""
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
    found = PairParameters(key, activation, np.ones(len(key)), activation)
    if bodies is not None:
        found = found[np.isin(law.bodies_of(found.key), bodies).any(axis=0)]
    if len(found):
        touch.set_pair_parameters(merged(kept, found))
        touch.list_contacts()
    initial_contacts = InitialContacts(*backend.readings.contact_statistics())
    backend.states.abandon()
    return initial_contacts, touching


class ContactStiffness:
    """Adapts the contact parameters of a backend's pairs.

    Attributes:
        adapts: whether forces may grow; False if the stiffness is given.
        gap: (n,) gap of each body's island at the last iterate if below `TIGHT_GAP`, else infinite.
    """

    def __init__(self, model):
        self.adapts = model.settings.contact_stiffness is None
        self.rate = RELAXATION * model.settings.tolerance
        self.no_gap = np.full(len(model.bodies), np.inf)
        self.gap = self.no_gap

    def begin(self) -> None:
        self.gap = self.no_gap

    def adapt(self, backend, gap: float, least: float) -> np.ndarray | None:
        """Raise the forces of pairs with small gaps in islands where one fails to open or collisions cap a step to zero.

        Args:
            gap: smallest gap of the moving islands [activations]; least: their smallest safe step.

        Returns:
            (islands,) bool, islands with changed forces; None without any.
        """
        if not self.adapts:
            return None
        if not (gap < TIGHT_GAP or (least < BLOCKED_STEP and gap < 1.0)):
            self.gap = self.no_gap
            return None
        islands = backend.islands.host
        gaps, steps = backend.iteration.smallest_gaps()
        before = np.full(len(gaps), np.inf)
        np.minimum.at(before, islands, self.gap)
        chosen = ((gaps < TIGHT_GAP) & (gaps <= before)) | ((steps < BLOCKED_STEP) & (gaps < 1.0))
        self.gap = np.where(gaps < TIGHT_GAP, gaps, np.inf)[islands]
        if not chosen.any():
            return None
        tightest, (pairs, gaps) = gaps, backend.touch.pair_gaps()
        of = islands[np.where(backend.inactive.mobile[pairs[:, 0]], pairs[:, 0], pairs[:, 1])]
        tight = chosen[of] & (gaps < np.maximum(TIGHT_GAP, 2.0 * tightest[of]))
        # far below its activation the force is proportional to 1 / gap; powers of two are insensitive to rounding of the gap
        missing = np.ceil(np.log2(TIGHT_GAP / np.maximum(tightest[of[tight]], 1e-300)))
        growth = np.minimum(2.0 ** np.maximum(1.0, missing), LARGEST_GROWTH)
        law = backend.pair_law
        key, first = np.unique(law.keys(*pairs[tight].T), return_index=True)
        own, at = _extended(law, key)
        own.factor[at] *= growth[first]
        backend.touch.set_pair_parameters(own)
        backend.iteration.evaluate()
        changed = np.zeros(len(chosen), dtype=bool)
        changed[of[tight]] = True
        return changed

    def relax(self, backend, h: float | np.ndarray) -> None:
        """Return activation distances towards `home` in a substep of h [s], scalar or (n,)."""
        law, own = backend.pair_law, backend.pair_law.own
        if not len(own):
            return
        way = self.rate * np.broadcast_to(h, law.n)[law.bodies_of(own.key)[0]]
        activation = np.minimum(own.home, own.activation + way)
        if (activation != own.activation).any():
            backend.touch.set_pair_parameters(replace(own, activation=activation))
            backend.iteration.evaluate()

    def end(self, backend, h: float | np.ndarray, impact_pairs: np.ndarray) -> None:
        """Update the parameters after a substep of h [s], scalar or (n,).

        Pairs of bodies (k, 2) that an impact made active get their gap as activation distance; separated pairs are dropped."""
        law = backend.pair_law
        if not len(law.own) and not len(impact_pairs):
            return
        pairs, gaps = backend.touch.pair_gaps()
        own = _with_impacts(law, impact_pairs, pairs, gaps) if len(impact_pairs) else law.own
        gap = _gaps_of(own.key, law, pairs, gaps)
        if ((gap >= 1.0) & (gap < np.inf)).any():  # gaps beyond the activation may be bounds
            gap = _gaps_of(own.key, law, *backend.touch.pair_gaps(exact=True))
        first, second = law.bodies_of(own.key)
        usual, h = law.regular(first, second), np.broadcast_to(h, law.n)[first]
        is_near = gap * law.activation(first, second) < np.maximum(usual, own.activation)
        factor = np.where(gap > FADING_GAP, np.maximum(1.0, own.factor * 2.0 ** (-h / FADING_TIME)), own.factor)
        remains = is_near & ((factor > 1.0) | (own.activation != usual))
        if remains.all() and own is law.own and (factor == own.factor).all():
            return
        backend.touch.set_pair_parameters(replace(own, factor=factor)[remains])


def new_contacts(backend, bodies: np.ndarray, closing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (k,) bool, pairs of bodies (k, 2) in contact that were inactive when the substep began, and (k,) bool, those of them
    that have only just reached their activation distance: rounding chooses which of their points have a force.

    Pairs whose activation distance an impact has lowered already are not new. closing: (k,) approach in the substep [m]."""
    law, own, (i, j) = backend.pair_law, backend.pair_law.own, bodies.T
    key, activation = law.keys(i, j), law.activation(i, j)
    gap = _gaps_of(key, law, *backend.touch.pair_gaps()) * activation
    at, is_known = own.places(key)
    lowered = is_known & (own.activation[at] < own.home[at]) if len(own) else is_known
    is_new = ~lowered & (gap + closing >= (1.0 - REACHED) * activation)
    return is_new, is_new & (gap >= (1.0 - REACHED) * activation)


def _with_impacts(law: PairLaw, impact_pairs: np.ndarray, pairs: np.ndarray, gaps: np.ndarray) -> PairParameters:
    """Return parameters after impacts of pairs of bodies (k, 2), from the gaps (m,) [activations] of the listed pairs (m, 2)."""
    key = np.unique(law.keys(*impact_pairs.T))
    bodies, (own, at) = law.bodies_of(key), _extended(law, key)
    gap = np.minimum(_gaps_of(key, law, pairs, gaps), 1.0) * law.activation(*bodies)
    own.activation[at] = np.maximum(gap, SMALLEST_ACTIVATION * law.regular(*bodies))
    return own


def _extended(law: PairLaw, key: np.ndarray) -> tuple[PairParameters, np.ndarray]:
    """Return a copy of the parameters of single pairs, common ones for new keys (k,), and the places of the keys (k,)."""
    new = key[~law.own.places(key)[1]]
    usual = law.regular(*law.bodies_of(new))
    own = merged(law.own, PairParameters(new, usual, np.ones(len(new)), usual))
    return own, np.searchsorted(own.key, key)


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
