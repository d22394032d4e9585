"""Contact parameters of single pairs of bodies (`abd.contact.pair_law`), and how they change.

A pair has its own activation distance, no larger than the one that follows from its bodies, where it

- starts within that distance: ``a = gap``. The force at the start is zero, whatever the step is; under load the gap decreases
  until the barrier carries it;
- had an impact that made it active: ``a = min(a, gap)`` where the substep of the impact ends. The barrier stores no energy, so
  that nothing rebounds but what restitution gives, whatever stands behind the contact. It returns to what it was before, its
  `home`, by `RELAXATION` of the tolerance velocity, which moves no body faster.

A pair has a factor on its force where it carries more than the logarithm of a gap can: where a tight gap fails to open, or
collisions cap a step to zero, the forces of the pairs that are tight grow to what they would need at a gap that is not tight,
at least twofold and at most `MOST`-fold at once. The factor fades in time once they have room again.

A pair that has separated beyond both activation distances takes the common parameters again. Nothing here depends on contacts
elsewhere.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.contact.pair_law import PairLaw, PairParameters
from abd.step.energy_balance import InitialContacts

TIGHT_GAP = 1e-2
"""Gap, in activations, below which a contact that still closes gets stiffer: the logarithm grows too slowly there."""
ROOMY = 0.8
"""Gap, in activations, beyond which the factor of a pair fades."""
FADING = 0.05
"""Time in which it halves [s]."""
BLOCKED = 1e-6
"""Largest safe step below which an island counts as blocked. How far a search shortened it says nothing: it does so where
contacts are too stiff, too."""
MOST = 64.0
"""Largest growth of a force at once: how far a step was stopped from closing a gap says little of how much it pushed."""
STIFFEST = 2.0**60
"""Largest factor."""
RELAXATION = 0.1
"""Rate at which the activation distance of a pair returns after an impact, over the tolerance velocity."""
SMALLEST = 1e-3
"""Activation distance after an impact, over that of the bodies, at least."""


def starting_parameters(law: PairLaw, pairs: np.ndarray, gaps: np.ndarray) -> PairParameters:
    """Of pairs of bodies (k, 2), whose gaps (k,) [activations] are known: those that start within their activation distance."""
    usual = law.regular(*pairs.T)
    within = (gaps > 0.0) & (gaps < 1.0)
    key, first = np.unique(law.keys(*pairs[within].T), return_index=True)
    activation = (gaps * usual)[within][first]
    return PairParameters(key, activation, np.ones(len(key)), activation)


def find_parameters(backend, bodies: np.ndarray | None = None) -> tuple[InitialContacts, np.ndarray]:
    """Give pairs their parameters in the state that the backend holds, to which no step led; or those with one of some bodies.

    Returns:
        the statistics of the contacts, and (n,) 1 for bodies that are within their activation distance.
    """
    touch, law = backend.touch, backend.pair_law
    kept = PairParameters() if bodies is None else law.own[~np.isin(law.bodies_of(law.own.key), bodies).any(axis=0)]
    touch.set_pair_parameters(kept)
    touch.list_standing()
    touching = touch.touching()
    found = starting_parameters(law, *touch.pair_gaps(exact=True))
    if bodies is not None:
        found = found[np.isin(law.bodies_of(found.key), bodies).any(axis=0)]
    if len(found):
        touch.set_pair_parameters(merged(kept, found))
        touch.list_standing()
    initial_contacts = InitialContacts(*backend.readings.contact_statistics())
    backend.states.abandon()
    return initial_contacts, touching


class ContactStiffness:
    """Stores the parameters of a backend's pairs.

    Attributes:
        adapts: whether forces may grow; not where the stiffness is given.
        gap: (n,) of the island of every body the gap of the last iterate, if that was tight, infinite if not.
    """

    def __init__(self, model):
        self.adapts = model.settings.contact_stiffness is None
        self.rate = RELAXATION * model.settings.tolerance
        self.roomy = np.full(len(model.bodies), np.inf)
        self.gap = self.roomy

    def begin(self) -> None:
        """A step begins."""
        self.gap = self.roomy

    def adapt(self, backend, gap: float, least: float) -> np.ndarray | None:
        """Raise the forces of tight pairs in islands where one fails to open or collisions capped a step to zero.

        Args:
            gap: smallest one of the islands that still move, in activations; least: their smallest safe step.

        Returns:
            (islands,) bool, where some changed; None where none did.
        """
        if not self.adapts:
            return None
        if not (gap < TIGHT_GAP or (least < BLOCKED and gap < 1.0)):
            self.gap = self.roomy
            return None
        islands = backend.islands.host
        gaps, steps = backend.iteration.smallest_gaps()
        before = np.full(len(gaps), np.inf)
        np.minimum.at(before, islands, self.gap)
        chosen = ((gaps < TIGHT_GAP) & (gaps <= before)) | ((steps < BLOCKED) & (gaps < 1.0))
        self.gap = np.where(gaps < TIGHT_GAP, gaps, np.inf)[islands]
        return self._stiffen(backend, chosen, gaps) if chosen.any() else None

    def _stiffen(self, backend, chosen: np.ndarray, tightest: np.ndarray) -> np.ndarray:
        """Multiply the forces of the tight pairs of chosen islands (islands,) with their smallest gaps [activations]; returns
        those islands that had some."""
        pairs, gaps = backend.touch.pair_gaps()
        mobile, islands = backend.inactive.mobile, backend.islands.host
        of = islands[np.where(mobile[pairs[:, 0]], pairs[:, 0], pairs[:, 1])]
        tight = chosen[of] & (gaps < np.maximum(TIGHT_GAP, 2.0 * tightest[of]))
        # deep in its activation the force goes as 1 over the gap; whole powers of two, which rounding of the gap hardly tips
        missing = np.ceil(np.log2(TIGHT_GAP / np.maximum(tightest[of[tight]], 1e-300)))
        growth = np.minimum(2.0 ** np.maximum(1.0, missing), MOST)
        law = backend.pair_law
        key, first = np.unique(law.keys(*pairs[tight].T), return_index=True)
        growth = growth[first]
        at, known = law.own.places(key)
        factor = law.own.factor.copy()
        factor[at[known]] = np.minimum(growth[known] * factor[at[known]], STIFFEST)
        new = key[~known]
        usual = law.regular(*law.bodies_of(new))
        added = PairParameters(new, usual, growth[~known], usual)
        backend.touch.set_pair_parameters(merged(replace(law.own, factor=factor), added))
        backend.arcs.evaluate()
        grown = np.zeros(len(chosen), dtype=bool)
        grown[of[tight]] = True
        return grown

    def relax(self, backend, h: float | np.ndarray) -> None:
        """Let activation distances return in a substep of h [s], of all or (n,), whose friction has the loads of the last one."""
        law, own = backend.pair_law, backend.pair_law.own
        if not len(own):
            return
        way = self.rate * np.broadcast_to(h, law.n)[law.bodies_of(own.key)[0]]
        activation = np.minimum(own.home, own.activation + way)
        if (activation != own.activation).any():
            backend.touch.set_pair_parameters(replace(own, activation=activation))
            backend.arcs.evaluate()

    def end(self, backend, h: float | np.ndarray, impact_pairs: np.ndarray) -> None:
        """Follow a substep of h [s], of all or (n,): pairs of bodies (k, 2) that an impact made active take their gap as
        activation distance, and pairs that have separated are dropped."""
        law = backend.pair_law
        if not len(law.own) and not len(impact_pairs):
            return
        pairs, gaps = backend.touch.pair_gaps()
        own = _with_impacts(law.own, law, impact_pairs, pairs, gaps) if len(impact_pairs) else law.own
        gap = _gaps_of(own.key, law, pairs, gaps)
        if ((gap >= 1.0) & (gap < np.inf)).any():  # such gaps may be bounds
            gap = _gaps_of(own.key, law, *backend.touch.pair_gaps(exact=True))
        first, second = law.bodies_of(own.key)
        usual, h = law.regular(first, second), np.broadcast_to(h, law.n)[first]
        together = gap * law.activation(first, second) < np.maximum(usual, own.activation)
        factor = np.where(gap > ROOMY, np.maximum(1.0, own.factor * 2.0 ** (-h / FADING)), own.factor)
        stays = together & ((factor > 1.0) | (own.activation != usual))
        if stays.all() and own is law.own and (factor == own.factor).all():
            return
        backend.touch.set_pair_parameters(replace(own, factor=factor)[stays])


def became_active(backend, bodies: np.ndarray, closing: np.ndarray) -> np.ndarray:
    """(k,) bool, pairs of bodies (k, 2) in contact that were not when the substep began, from how far (k,) [m] they approached
    each other in it; not those whose activation distance an impact has lowered already."""
    law, own, (i, j) = backend.pair_law, backend.pair_law.own, bodies.T
    key = law.keys(i, j)
    gap = _gaps_of(key, law, *backend.touch.pair_gaps()) * law.activation(i, j)
    at, known = own.places(key)
    lowered = known & (own.activation[at] < own.home[at]) if len(own) else known
    return ~lowered & (gap + closing >= law.activation(i, j))


def _with_impacts(
    own: PairParameters, law: PairLaw, impact_pairs: np.ndarray, pairs: np.ndarray, gaps: np.ndarray
) -> PairParameters:
    """Parameters after impacts of pairs of bodies (k, 2), with the gaps (m,) [activations] of the listed pairs (m, 2)."""
    key = np.unique(law.keys(*impact_pairs.T))
    first, second = law.bodies_of(key)
    usual, now = law.regular(first, second), law.activation(first, second)
    gap = np.minimum(_gaps_of(key, law, pairs, gaps), 1.0) * now
    at, known = own.places(key)
    activation = np.maximum(np.minimum(now, gap), SMALLEST * usual)
    lowered = replace(own, activation=own.activation.copy())
    lowered.activation[at[known]] = activation[known]
    new = ~known
    return merged(lowered, PairParameters(key[new], activation[new], np.ones(new.sum()), usual[new]))


def _gaps_of(key: np.ndarray, law: PairLaw, pairs: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """(k,) gaps of pairs of bodies by their keys, from those of the listed pairs (m, 2); infinite for others."""
    listed, first = np.unique(law.keys(*pairs.T), return_index=True)
    at = np.searchsorted(listed, key).clip(max=max(len(listed) - 1, 0))
    return np.where(listed[at] == key, gaps[first][at], np.inf) if len(listed) else np.full(len(key), np.inf)


def merged(a: PairParameters, b: PairParameters) -> PairParameters:
    """Both tables, which have no key in common."""
    both = PairParameters.joined(a, b)
    return both[np.argsort(both.key)]
