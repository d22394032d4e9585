"""Friction of the contacts that were frozen, from the definitions in `abd.potentials`."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np

from abd.backends.answers import NO_PAIRS, PairLoads
from abd.backends.reference.numpy_contacts import NumpyContacts, add_elements, owners_of
from abd.potentials import arc_slip, contact, friction
from abd.potentials.arc_slip import Course
from abd.potentials.contact import ContactParameters
from abd.potentials.elements import Elements
from abd.potentials.friction import Lagged
from abd.potentials.rolling import SLIDE, Resistances
from abd.potentials.sticking import Anchors, kept
from abd.rotations import axial

if TYPE_CHECKING:
    from abd.backends.reference.potential import Iterate


class NumpyFriction:
    """Friction of the contacts frozen in one state.

    Attributes:
        enabled: whether any pair of materials has friction or resists; follows_arcs: whether slips are measured along arcs.
        candidates: (l,) the frozen contacts, their points on the surfaces; owners: (l,) as of the contacts.
        lagged: what was frozen of them.
        anchors: what the contacts of the last step remember, where they `stick`.
    """

    ties = NO_PAIRS

    def __init__(self, touching: NumpyContacts):
        self.touching = touching
        self.anchors = Anchors()
        self.follow_materials()

    def follow_materials(self) -> None:
        """Whether any pair has friction, by the tables of the model; what was lagged is discarded."""
        model = self.touching.model
        self.resistances = Resistances.of(model)
        self.enabled = self.resistances.any and model.settings.friction_iterations != 0
        self.follows_arcs = arc_slip.counts(model)
        self.sticks = self.enabled and model.settings.stick == "elastic"
        self.forget()

    @property
    def count(self) -> int:
        """Number of frozen contacts."""
        return len(self.lagged)

    def forget(self) -> None:
        """Freeze nothing."""
        q, nothing = self.touching.model.bodies.q, np.zeros(0, dtype=int)
        none = self.touching.candidates[nothing]
        self._freeze(q, none, q[:, 3:].reshape(-1, 3, 3), self.touching.parameters[nothing])

    def lag(self, q: np.ndarray, course: Course, chosen: np.ndarray | None = None) -> None:
        """Lag the contacts with friction in the state q (n, 12) of bodies that follow a course; those of `chosen`
        bodies (n,) bool alone if they are given: the others keep what was frozen."""
        if not self.enabled:
            return
        touching, before = self.touching, (self.lagged, self.candidates, self.owners)
        heading = course.end[:, 3:].reshape(-1, 3, 3)
        self._freeze(q, touching.parts, heading, touching.part_parameters, touching.weights(q))
        if self.follows_arcs:
            radius = touching.model.bodies.radius
            self.lagged, self.candidates = arc_slip.along_arcs(self.lagged, self.candidates, q, course, radius)
        if chosen is not None:
            old, new = ~chosen[before[2]], chosen[self.owners]
            both = zip(before[:2], (self.lagged, self.candidates), strict=True)
            self.lagged, self.candidates = (_beside(kept, old, fresh, new) for kept, fresh in both)
            self.lagged = replace(self.lagged, source=np.arange(len(self.lagged)))
            self.owners = np.concatenate([before[2][old], self.owners[new]])

    def weigh(self, share: PairLoads) -> None:
        """Multiply the loads of body pairs with a share; those of other pairs stay."""
        bodies = np.stack([self.candidates.first, self.candidates.second], axis=1)
        self.lagged = replace(self.lagged, load=share.of(bodies, 1.0) * self.lagged.load)

    def loads(self, q: np.ndarray) -> tuple[PairLoads, PairLoads]:
        """Loads that were frozen, and those of the contacts in the state q (n, 12)."""
        touching, frozen = self.touching, self.lagged
        parts = touching.parts
        shares = self.resistances.shares(parts.first, parts.second).sum(axis=1)
        resisting = replace(parts, mu=shares)
        acting = friction.lag(parts.positions(q), resisting, touching.part_parameters, touching.weights(q))
        return _by_pair(self.candidates, frozen.load), _by_pair(parts[acting.source], acting.load)

    def _freeze(
        self,
        q: np.ndarray,
        candidates: contact.Contacts,
        heading: np.ndarray,
        parameters: ContactParameters,
        weights: contact.Weights | None = None,
    ) -> None:
        radius = self.touching.model.bodies.radius
        resists = self.resistances
        self.lagged, self.candidates = friction.freeze(q, candidates, parameters, radius, heading, resists, weights)
        self.owners = owners_of(self.candidates, self.touching.model)
        if len(self.anchors):
            share = self.anchors.found(*self._places(), self.lagged.n)
            # anchors say how the body i of a pair moves against j
            self.lagged = replace(self.lagged, share=_signs(self.lagged) * share)

    def _places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Keys (l,) and kinds (l,) of the frozen contacts and their points (l, 3) on the bodies i of their pairs."""
        frozen, lagged = self.candidates, self.lagged
        i = np.where(lagged.flipped, frozen.second, frozen.first).astype(np.int64)
        j = np.where(lagged.flipped, frozen.first, frozen.second).astype(np.int64)
        on_i = np.where(lagged.flipped[:, None], lagged.Y_second, lagged.Y_first)
        return i * len(self.touching.model.bodies) + j, lagged.kind.astype(np.int32), on_i[:, 1:]

    def keep_anchors(self, moved: np.ndarray, q: np.ndarray, now: np.ndarray, eps: np.ndarray) -> None:
        """Remember how far the contacts are stretched after a step from `now` to q (n, 12), with displacements `moved`
        (n, 12) against the reference xh; eps (n,) [m]."""
        if not self.sticks:
            return
        lagged, frozen = self.lagged, self.candidates
        A, before = (state[:, 3:].reshape(-1, 3, 3) for state in (q, now))
        turned = axial(A @ np.linalg.inv(before))
        spin = 0.5 * np.einsum("li,li->l", turned[frozen.first] + turned[frozen.second], lagged.n)
        eps = eps[self.owners, None]
        e = friction.stretch(lagged, frozen.positions(moved), eps)
        self.anchors = Anchors(*self._places(), _signs(lagged) * kept(e, eps, lagged.n, spin))

    def read_anchors(self) -> Anchors:
        """What the contacts of the last step remember."""
        return self.anchors

    def set_anchors(self, anchors: Anchors) -> None:
        """What the contacts remember from now on."""
        if self.sticks:
            self.anchors = anchors

    def frozen(self, eps: np.ndarray) -> tuple[np.ndarray, ...]:
        """Bodies i, j (l, 2), kinds (l,), normals (l, 3), contact points Y_i, Y_j (l, 4) of what is frozen, and its stretches
        (l, 3) besides chords, of eps (n,) [m]."""
        lagged, chosen = self.lagged, self.candidates
        bodies = np.stack([chosen.first, chosen.second], axis=1).astype(np.int64)
        flip = lagged.flipped[:, None]
        Y_i, Y_j = np.where(flip, lagged.Y_second, lagged.Y_first), np.where(flip, lagged.Y_first, lagged.Y_second)
        n, share = np.where(flip, -lagged.n, lagged.n), _signs(lagged) * (lagged.share + lagged.arc / eps[self.owners, None])
        return np.where(flip, bodies[:, ::-1], bodies), lagged.kind, n, Y_i, Y_j, share

    def energy(self, moved: np.ndarray, eps: np.ndarray) -> np.ndarray:
        """(l,) energies for displacements `moved` (n, 12) against the reference xh; eps (n,) [m]."""
        return friction.energy(self.lagged, self.candidates.positions(moved), eps[self.owners])

    def energies(self, at: Iterate, q: np.ndarray) -> np.ndarray:
        """(l,) energies in the state q."""
        return self.energy(q - at.rest, at.eps)

    def add_to(self, at: Iterate, gradient: np.ndarray, blocks: np.ndarray) -> None:
        """Add to gradient (n, 12) and blocks (n, n, 12, 12)."""
        add_elements(self.candidates, self.elements(at.q - at.rest, at.eps), gradient, blocks)

    def elements(self, moved: np.ndarray, eps: np.ndarray) -> Elements:
        """Elements of the frozen contacts."""
        share = self.touching.shares(self.candidates)
        return friction.friction_elements(self.lagged, self.candidates.positions(moved), eps[self.owners], share)

    def work(self, moved: np.ndarray, step: np.ndarray, eps: np.ndarray, ch2: np.ndarray) -> float:
        """Work on the slips of the motion `step` (n, 12) [J], of bodies with their c h^2 (n,): positions are linear in q, so
        displacements are as well."""
        lagged, frozen = self.lagged, self.candidates
        forces = friction.force(lagged, frozen.positions(moved), eps[self.owners])
        return -float(np.sum(forces * friction.slip(lagged, frozen.positions(step)) / ch2[self.owners, None]))


def _signs(lagged: Lagged) -> np.ndarray:
    """(l, 1) of stretches of the bodies i of pairs against j: where these are the second ones, slips are the other way round;
    arms are as well, so that what turns is not."""
    return np.where(lagged.flipped & (lagged.kind == SLIDE), -1.0, 1.0)[:, None]


def _beside(a, of_a: np.ndarray, b, of_b: np.ndarray):
    """Rows of a, by a mask, and of b, tables of one kind."""
    columns = ((getattr(a, one.name)[of_a], getattr(b, one.name)[of_b]) for one in fields(a))
    return type(a)(*(np.concatenate(pair) for pair in columns))


def _by_pair(candidates: contact.Contacts, load: np.ndarray) -> PairLoads:
    """Sums of the loads (l,) over the contacts of every body pair."""
    bodies = np.stack([candidates.first, candidates.second], axis=1)
    pairs, place = np.unique(bodies, axis=0, return_inverse=True)
    return PairLoads(pairs, np.bincount(place.ravel(), load, minlength=len(pairs)))
