"""Which pairs of bodies have a contact law of their own (`abd.contact.pair_law`), and how it changes.

The law of a pair follows from its bodies. It is the pair's own where it

- started within its activation: it acts from closer by then, so that the start pushes nothing (`abd.step.own_laws.starts`);
- carries more than the logarithm of a gap can: where a tight gap fails to open, or collisions cap a step to zero, the forces of
  the pairs that are tight grow: to what they would need at a gap that is not tight, but at least twofold and at most
  `MOST`-fold at once. Once they have room again, the factor fades in time, not by steps.

A pair that has separated beyond both activations takes the common law again. Nothing here depends on contacts elsewhere,
and nothing on how long steps are, but for how soon a tight gap is noticed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.contact.pair_law import OwnLaws, PairLaw

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


class ContactStiffness:
    """Keeps the own laws of a backend's pairs.

    Attributes:
        adapts: whether forces may grow; not where the stiffness is given.
        gap: (n,) of the island of every body the gap of the last iterate, if that was tight, infinite if not.
    """

    def __init__(self, model):
        self.adapts = model.settings.contact_stiffness is None
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
        gaps, steps = backend.iteration.tightness()
        before = np.full(len(gaps), np.inf)
        np.minimum.at(before, islands, self.gap)
        chosen = ((gaps < TIGHT_GAP) & (gaps <= before)) | ((steps < BLOCKED) & (gaps < 1.0))
        self.gap = np.where(gaps < TIGHT_GAP, gaps, np.inf)[islands]
        return self._stiffen(backend, chosen, gaps) if chosen.any() else None

    def _stiffen(self, backend, chosen: np.ndarray, tightest: np.ndarray) -> np.ndarray:
        """Multiply the forces of the tight pairs of chosen islands (islands,) with their smallest gaps [activations]; returns
        those islands that had some."""
        pairs, gaps = backend.touch.pair_gaps()
        mobile, islands = backend.idle.mobile, backend.islands.host
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
        backend.touch.set_own_laws(merged(replace(law.own, factor=factor), OwnLaws(new, usual, growth[~known])))
        backend.arcs.evaluate()
        grown = np.zeros(len(chosen), dtype=bool)
        grown[of[tight]] = True
        return grown

    def end(self, backend, h: float | np.ndarray) -> None:
        """A step of length h [s], of all or (n,), has ended: let go of pairs that have separated, and of factors that are not
        needed."""
        law = backend.pair_law
        own = law.own
        if not len(own):
            return
        gap = _gaps_of(own, law, *backend.touch.pair_gaps())
        if ((gap >= 1.0) & (gap < np.inf)).any():  # such gaps may be bounds
            gap = _gaps_of(own, law, *backend.touch.pair_gaps(exact=True))
        first, second = law.bodies_of(own.key)
        usual, h = law.regular(first, second), np.broadcast_to(h, law.n)[first]
        together = gap * own.activation < np.maximum(usual, own.activation)
        factor = np.where(gap > ROOMY, np.maximum(1.0, own.factor * 2.0 ** (-h / FADING)), own.factor)
        kept = together & ((factor > 1.0) | (own.activation != usual))
        if kept.all() and (factor == own.factor).all():
            return
        backend.touch.set_own_laws(replace(own, factor=factor)[kept])


def _gaps_of(own: OwnLaws, law: PairLaw, pairs: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """(k,) gaps of the pairs with laws of their own, among those that are listed (m, 2), infinite where they are not."""
    key = law.keys(*pairs.T)
    order = np.argsort(key)
    listed = OwnLaws(key[order], gaps[order], gaps[order])
    at, known = listed.places(own.key)
    return np.where(known, listed.activation[at], np.inf) if len(listed) else np.full(len(own), np.inf)


def merged(a: OwnLaws, b: OwnLaws) -> OwnLaws:
    """Both tables, which have no key in common."""
    both = [np.concatenate([getattr(a, name), getattr(b, name)]) for name in ("key", "activation", "factor")]
    return OwnLaws(*both)[np.argsort(both[0])]
