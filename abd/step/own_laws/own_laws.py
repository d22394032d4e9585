"""Laws that pairs of bodies have for themselves, found where no step led to a state."""

from __future__ import annotations

import numpy as np

from abd.backends.protocol import Backend
from abd.contact.pair_law import OwnLaws
from abd.model import Model
from abd.potentials.sticking import Anchors
from abd.step.account import Opening
from abd.step.own_laws.starts import starting_laws
from abd.step.own_laws.stiffness import merged


def find_laws(model: Model, backend: Backend, q: np.ndarray, qd: np.ndarray) -> tuple[Opening, np.ndarray, Anchors]:
    """Give pairs their laws in the state (n, 12) that the backend holds.

    Returns:
        what contacts hold of energy, (n,) 1 for bodies that they act on, and what friction holds.
    """
    touch = backend.touch
    touch.set_own_laws(OwnLaws())
    touch.list_standing()
    laws, held = starting_laws(
        model, backend.pair_law, touch.near_contacts(q), q, qd if backend.friction.sticks else None
    )
    if len(laws):
        touch.set_own_laws(laws)
        touch.list_standing()
    opening, touching = Opening(*backend.readings.contact_figures()), touch.touching()
    backend.states.abandon()
    return opening, touching, held


def meet(model: Model, backend: Backend, q: np.ndarray, bodies: list[int]) -> np.ndarray:
    """Pairs of some bodies begin to collide: where they are near in the state q (n, 12), their laws are found as at the start of
    a scene. (n,) 1 for bodies that contacts act on."""
    touch, law = backend.touch, backend.pair_law
    touch.list_standing()
    found, _ = starting_laws(model, law, touch.near_contacts(q), q)
    own, theirs = law.own, [np.isin(law.bodies_of(one.key), bodies).any(axis=0) for one in (found, law.own)]
    touch.set_own_laws(merged(own[~theirs[1]], found[theirs[0]]))
    touch.list_standing()
    touching = touch.touching()
    backend.states.abandon()
    return touching
