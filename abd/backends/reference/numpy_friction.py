"""Friction of lagged contacts, from the definitions in `abd.potentials`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.backends.answers import PairLoads
from abd.backends.reference.iterate import Iterate
from abd.backends.reference.numpy_contacts import NumpyContacts, add_elements, owners_of
from abd.potentials import arc_slip, contact, friction
from abd.potentials.arc_slip import Course
from abd.potentials.contact import ContactParameters
from abd.potentials.friction import Lagged
from abd.potentials.rolling import Resistances
from abd.potentials.sticking import Anchors, final_shares
from abd.rotations import axial
from cuda_kernels.shared.contact import SLIDE


class NumpyFriction:
    """Friction of the contacts lagged in one state.

    Attributes:
        enabled: whether any pair of materials has friction or rolling resistance.
        candidates: (l,) lagged contacts, their points on the surfaces; owners: (l,) as of the contacts.
        lagged: their lagged quantities.
        anchors: stretches of the contacts of the last step, if contacts can stick.
    """

    def __init__(self, touching: NumpyContacts):
        self.touching = touching
        self.anchors = Anchors()
        self.follow_materials()

    def follow_materials(self) -> None:
        """Read the friction of the model's materials; drop lagged contacts."""
        model = self.touching.model
        self.resistances = Resistances.of(model)
        self.enabled = self.resistances.any and model.settings.friction_iterations != 0
        self.sticks = self.enabled and model.settings.stick == "elastic"
        self.forget()

    @property
    def count(self) -> int:
        return len(self.lagged)

    def forget(self) -> None:
        q, no_rows = self.touching.model.bodies.q, np.zeros(0, dtype=int)
        none = self.touching.candidates[no_rows]
        self._freeze(q, none, q[:, 3:].reshape(-1, 3, 3), self.touching.parameters[no_rows])

    def lag(self, q: np.ndarray, course: Course, chosen: np.ndarray | None = None) -> None:
        """Lag the contacts with friction in the state q (n, 12) of bodies that follow a course.

        chosen: (n,) bool, bodies to lag again; the others keep their lagged contacts."""
        if not self.enabled:
            return
        touching, before = self.touching, (self.lagged, self.candidates, self.owners)
        heading = course.end[:, 3:].reshape(-1, 3, 3)
        self._freeze(q, touching.parts, heading, touching.part_parameters, touching.weights(q))
        radius = touching.model.bodies.radius
        self.lagged, self.candidates = arc_slip.along_arcs(self.lagged, self.candidates, q, course, radius)
        if chosen is not None:
            old, new = ~chosen[before[2]], chosen[self.owners]
            tables = zip(before[:2], (self.lagged, self.candidates), strict=True)
            self.lagged, self.candidates = (type(kept).joined(kept[old], fresh[new]) for kept, fresh in tables)
            self.lagged = replace(self.lagged, source=np.arange(len(self.lagged)))
            self.owners = np.concatenate([before[2][old], self.owners[new]])

    def loads(self, q: np.ndarray) -> tuple[PairLoads, PairLoads]:
        """Return lagged loads, and those of the contacts in the state q (n, 12)."""
        touching, frozen = self.touching, self.lagged
        parts = touching.parts
        resisting = replace(parts, mu=self.resistances.ratios(parts.first, parts.second).sum(axis=1))
        current = friction.lag(parts.positions(q), resisting, touching.part_parameters, touching.weights(q))
        return _by_pair(self.candidates, frozen.load), _by_pair(parts[current.source], current.load)

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
            start_stretch = self.anchors.found(*self._places(), self.lagged.n)
            # anchors are motions of body i of a pair relative to j
            self.lagged = replace(self.lagged, start_stretch=signs(self.lagged) * start_stretch)

    def _places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return keys (l,), kinds (l,) and points (l, 3) on bodies i of the lagged contacts."""
        frozen, lagged = self.candidates, self.lagged
        i = np.where(lagged.flipped, frozen.second, frozen.first).astype(np.int64)
        j = np.where(lagged.flipped, frozen.first, frozen.second).astype(np.int64)
        on_i = np.where(lagged.flipped[:, None], lagged.Y_second, lagged.Y_first)
        return i * len(self.touching.model.bodies) + j, lagged.kind.astype(np.int32), on_i[:, 1:]

    def keep_anchors(self, moved: np.ndarray, q: np.ndarray, now: np.ndarray, eps: np.ndarray) -> None:
        """Store the stretches of contacts after a step from `now` to q (n, 12) as anchors.

        moved: (n, 12) displacements from the reference xh; eps: (n,) [m]."""
        if not self.sticks:
            return
        lagged, frozen = self.lagged, self.candidates
        A, before = (state[:, 3:].reshape(-1, 3, 3) for state in (q, now))
        turned = axial(A @ np.linalg.inv(before))
        spin = 0.5 * np.einsum("li,li->l", turned[frozen.first] + turned[frozen.second], lagged.n)
        eps = eps[self.owners, None]
        e = friction.stretch(lagged, frozen.positions(moved), eps)
        self.anchors = Anchors(*self._places(), signs(lagged) * final_shares(e, eps, lagged.n, spin))

    def read_anchors(self) -> Anchors:
        return self.anchors

    def set_anchors(self, anchors: Anchors) -> None:
        if self.sticks:
            self.anchors = anchors

    def frozen(self, eps: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return bodies i, j (l, 2), kinds (l,), normals (l, 3), points Y_i, Y_j (l, 4) of the lagged contacts, and stretches
        (l, 3) in addition to chords; eps: (n,) [m]."""
        lagged, chosen = self.lagged, self.candidates
        bodies = np.stack([chosen.first, chosen.second], axis=1).astype(np.int64)
        flip = lagged.flipped[:, None]
        Y_i, Y_j = np.where(flip, lagged.Y_second, lagged.Y_first), np.where(flip, lagged.Y_first, lagged.Y_second)
        n = np.where(flip, -lagged.n, lagged.n)
        start_stretch = signs(lagged) * (lagged.start_stretch + lagged.arc / eps[self.owners, None])
        return np.where(flip, bodies[:, ::-1], bodies), lagged.kind, n, Y_i, Y_j, start_stretch

    def energies(self, at: Iterate, q: np.ndarray) -> np.ndarray:
        return friction.energy(self.lagged, self.candidates.positions(q - at.rest), at.eps[self.owners])

    def add_to(self, at: Iterate, gradient: np.ndarray, blocks: np.ndarray) -> None:
        moved, regularisation = self.candidates.positions(at.q - at.rest), self.touching.regularisations(self.candidates)
        elements = friction.friction_elements(self.lagged, moved, at.eps[self.owners], regularisation)
        add_elements(self.candidates, elements, gradient, blocks)

    def work(self, moved: np.ndarray, eps: np.ndarray, ch2: np.ndarray) -> float:
        """Return the work on the slips of a step [J] for displacements `moved` (n, 12) from the reference xh; ch2: (n,) c h^2."""
        lagged, displacement = self.lagged, self.candidates.positions(moved)
        forces = friction.force(lagged, displacement, eps[self.owners])
        return -float(np.sum(forces * friction.slip(lagged, displacement) / ch2[self.owners, None]))


def signs(lagged: Lagged) -> np.ndarray:
    """Return (l, 1) signs of stretches of bodies i relative to j: slips of flipped contacts change sign, rotations do not."""
    return np.where(lagged.flipped & (lagged.kind == SLIDE), -1.0, 1.0)[:, None]


def _by_pair(candidates: contact.Contacts, load: np.ndarray) -> PairLoads:
    """Return sums of the loads (l,) over the contacts of every body pair."""
    bodies = np.stack([candidates.first, candidates.second], axis=1)
    pairs, place = np.unique(bodies, axis=0, return_inverse=True)
    sums = np.zeros(len(pairs))
    np.add.at(sums, place.ravel(), load)
    return PairLoads(pairs, sums)
