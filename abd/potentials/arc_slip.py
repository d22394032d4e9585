"""Slips of surfaces that roll, along the arcs of the bodies' turns.

Friction measures the slip of a step on chords, from where a point of the material was to where it is
(`abd.potentials.friction`). For a point that stays in contact that is the way it slips. But a round surface rolls over its
contact: the point r that touches at the end came down along a cycloid, and by the turn w of the step the chord of its arm is
``r sin w`` long where the surface has passed ``r w``. So a ball that rolls without slipping seems to slip by
``r (w - sin w)``, and one that friction holds on its way turns too fast, by a sixth of w^2.

The arm a from the centre of the rounding, the radius or an arm that resists turning (`abd.potentials.rolling`), passes

    w x a - (R(w) - 1) A X,    X = A^-1 R(-w) a  its rest coordinates at the end of the step

more than its chord, R(w) the turn that the step leads to. That is what the contact's spring is stretched by besides, where
the step begins, in the contact's tangent plane. What has no rounding has none of it.
"""

from __future__ import annotations

import numpy as np

from abd.model import Model
from abd.potentials.contact import Contacts
from abd.potentials.distance import dot
from abd.potentials.friction import Lagged
from abd.potentials.rolling import RUB, Resistances
from abd.rotations import nearest_rotation_vectors, polar, rotations


def counts(model: Model, resistances: Resistances) -> bool:
    """Whether anything in a scene rolls so; bdf2's reference is no pose, from which a body could turn."""
    rolls = (model.bodies.radius > 0.0).any() or (resistances.rolling > 0.0).any() or (resistances.spinning > 0.0).any()
    return bool(rolls) and model.settings.integrator != "bdf2"


def passed(
    lagged: Lagged, contacts: Contacts, q: np.ndarray, rest: np.ndarray, heading: np.ndarray, turn: np.ndarray,
    radius: np.ndarray,
) -> np.ndarray:
    """(l, 3) what the first surfaces pass more than the chords say, against the second [m].

    Args:
        contacts: the frozen ones; q: (n, 12) state in which they were frozen; rest: (n, 12) where the step begins.
        heading: (n, 3, 3) maps that the bodies' rotation leads to; turn: (n, 3) rotation vectors by which it does, whole
            turns included [rad]; radius: (n,) of the bodies' rounding [m].
    """
    sides = (contacts.first, -1.0, lagged.Y_first), (contacts.second, 1.0, lagged.Y_second)
    first, second = (
        _of(bodies, lagged.kind, sign * radius[bodies, None] * lagged.n, Y[:, 1:], q, rest, heading, turn)
        for bodies, sign, Y in sides
    )
    out = first - np.where(lagged.two_sided[:, None], second, 0.0)
    return out - dot(out, lagged.n)[:, None] * lagged.n


def _of(
    bodies: np.ndarray, kind: np.ndarray, round_arm: np.ndarray, X: np.ndarray, q: np.ndarray, rest: np.ndarray,
    heading: np.ndarray, turn: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """The same of the bodies (l,) on one side: arms (l, 3) of the rounding, rest coordinates X (l, 3) of those that resist."""
    A, begin = (state[bodies, 3:].reshape(-1, 3, 3) for state in (q, rest))
    inverse = np.linalg.inv(A)
    to_end = polar(heading[bodies] @ inverse)
    rubs = (kind == RUB)[:, None]
    X = np.where(rubs, np.einsum("lij,lkj,lk->li", inverse, to_end, round_arm), X)
    arm = np.where(rubs, round_arm, np.einsum("lij,ljk,lk->li", to_end, A, X))
    w = nearest_rotation_vectors(heading[bodies] @ np.linalg.inv(begin), turn[bodies])
    chord = np.einsum("lij,lj->li", (rotations(w) - np.eye(3)) @ begin, X)
    return np.cross(w, arm) - chord
