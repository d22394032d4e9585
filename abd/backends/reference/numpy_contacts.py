"""Contacts and friction of the iterate, from the definitions in `abd.contact` and `abd.potentials`."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np

from abd.backends.answers import NOBODY, NotProven, PairLoads
from abd.backends.warp.body_data import smallest_moments
from abd.contact import ccd
from abd.contact.candidates import Candidates as Listed
from abd.contact.candidates import contacts, find_candidates
from abd.contact.minima import counting, find_minima
from abd.contact.pair_law import OwnLaws, PairLaw
from abd.contact.pairs import body_pairs, pairs_of
from abd.contact.path import Path, standing
from abd.contact.surfaces import Surfaces
from abd.contact.topology import Topology
from abd.model import Kind, Model
from abd.potentials import contact, friction
from abd.potentials.contact import ContactParameters, Stencil
from abd.potentials.elements import Elements
from abd.potentials.rolling import Resistances
from abd.potentials.sticking import Anchors, kept
from abd.rotations import axial

if TYPE_CHECKING:
    from abd.backends.reference.potential import Iterate


class NumpyContacts:
    """All contacts that can act on a path.

    Attributes:
        candidates: every contact that is active anywhere on the path last searched.
        owners: (m,) the dynamic body of each, the first one where both are.
        parts: what the candidates count in the contact set of local minima, the candidates themselves in that of "ipc".
        pair_law: of all pairs of bodies; parameters: the law of the candidates, with the stiffness of the incremental
            potential, kappa_c c h^2, and part_parameters that of the parts; activation: (m,) [m].
        caution: (n,) shares of the bodies' bounds of the curvature (`abd.backends.reference.caution`).
        party: (n,) who meets whom: 0 meets all, another number only other ones, one below 0 nobody.
    """

    ties = NOBODY

    def __init__(self, model: Model):
        self.model, self.settings = model, model.settings
        self.surfaces, self.pairs = Surfaces.of(model), body_pairs(model)
        self.topology = None if self.settings.contact_set == "ipc" else Topology.of(model, self.surfaces)
        self.moments = smallest_moments(model)
        self.caution = np.ones(len(model.bodies))
        self.pair_law, self.scale = PairLaw(model), 1.0
        self.party = np.zeros(len(model.bodies), dtype=int)
        self.search(standing(model.bodies.q))

    def follow_materials(self) -> None:
        """Take the friction of all pairs from the model again."""
        self.pairs = pairs_of(self.model, self.pairs.i, self.pairs.j)

    def set_scale(self, ch2: float) -> None:
        """c h^2, by which the energies of all pairs stand in the incremental potential."""
        self.scale = ch2
        self._take_law()

    def set_own_laws(self, own: OwnLaws) -> None:
        """Pairs of bodies whose law is their own."""
        self.pair_law.own = own
        self._take_law()

    def _take_law(self) -> None:
        """The law of every candidate."""
        law, c = self.pair_law, self.candidates
        first, second = c.first.astype(np.int64), c.second.astype(np.int64)
        self.activation = law.activation(first, second)
        kappa = self.scale * law.stiffness(first, second, self.activation, c.xi)
        self.parameters = ContactParameters(kappa, self.activation, self.settings.barrier)
        self.part_parameters = self.parameters if self.minima is None else self.parameters[self.minima.source]

    def search(self, path: Path) -> None:
        """Find the candidates of a path."""
        reach = self.pair_law.reach(self.pairs.i, self.pairs.j)
        found = self._find(path, reach)
        self.found, self.candidates = found, contacts(self.model, self.surfaces, self.pairs, found)
        self.owners = owners_of(self.candidates, self.model)
        self.minima, self.parts = None, self.candidates
        if self.topology is not None:
            self.minima = find_minima(self.surfaces, self.topology, self.pairs, found, self.candidates)
            self.parts = self.minima.contacts
        self._take_law()

    def _find(self, path: Path, reach: np.ndarray | float) -> Listed:
        """Candidates of the pairs that meet, within a reach (pairs,) [m]."""
        i, j = self.party[self.pairs.i], self.party[self.pairs.j]
        meets = (i >= 0) & (j >= 0) & ((i == 0) | (i != j))
        return find_candidates(self.model, self.surfaces, self.pairs, path, np.where(meets, reach, -np.inf))

    def counting(self, q: np.ndarray) -> contact.Contacts:
        """What counts of the candidates in the state q (n, 12)."""
        reach = self.pair_law.reach(self.pairs.i, self.pairs.j)
        return counting(self.model, self.surfaces, self.pairs, self.found, q, reach)

    def energy(self, q: np.ndarray) -> np.ndarray:
        """(m,) energies of the candidates in the state q (n, 12); inf at or below the separation."""
        if self.minima is None:
            return contact.energy(self.candidates.positions(q), self.candidates, self.parameters)
        return self.minima.energy(q, self.part_parameters, len(self.candidates))

    def energies(self, at: Iterate, q: np.ndarray) -> np.ndarray:
        """(m,) energies of the candidates in the state q."""
        return self.energy(q)

    def add_to(self, at: Iterate, gradient: np.ndarray, blocks: np.ndarray) -> None:
        """Add to gradient (n, 12) and blocks (n, n, 12, 12)."""
        add_elements(self.parts, self.elements(at.q), gradient, blocks)

    def weights(self, q: np.ndarray) -> contact.Weights | None:
        """Weights of the parts in the state q; None where every one counts by itself."""
        return None if self.minima is None else self.minima.weights(q, self.part_parameters)

    def elements(self, q: np.ndarray) -> Elements:
        """Elements of the active parts."""
        parts = self.parts
        inertia = np.minimum(self.moments[parts.first], self.moments[parts.second])
        return contact.contact_elements(
            parts.positions(q), parts, self.part_parameters, inertia, self.shares(parts), self.weights(q)
        )

    def pair_gradients(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Body pairs (k, 2) with active candidates in the state q (n, 12), and the gradients (k, 12) of their contacts by
        both."""
        elements = self.elements(q)
        pairs, place = np.unique(np.stack(body_pair(self.parts, elements), axis=1), axis=0, return_inverse=True)
        sums = np.zeros((2, len(pairs), 12))
        for total, gradient in zip(sums, elements.gradients(), strict=True):
            np.add.at(total, place.ravel(), gradient)
        return pairs, *sums

    def shares(self, candidates: contact.Contacts) -> np.ndarray:
        """(m,) shares of the bounds of contacts, those of their dynamic bodies."""
        return self.caution[owners_of(candidates, self.model)]

    def gaps(self, q: np.ndarray) -> np.ndarray:
        """(m,) distances beyond the separation [m]; negative below the surface of a half-space."""
        candidates = self.candidates
        x = candidates.positions(q)
        distance = np.sqrt(contact.closest(x, candidates).D)
        plane = candidates.stencil == Stencil.POINT_PLANE
        distance[plane] = contact.heights(x[plane], candidates.plane[plane])
        return distance - candidates.xi

    def times_of_impact(self, path: Path, limit: np.ndarray) -> np.ndarray:
        """(m,) fractions of the path that are proven free of collisions, up to the limits (n,) of the bodies."""
        return ccd.time_of_impact(path, self.candidates, limit[self.owners], least=ccd.WITHIN * self.activation)

    def free_way(self, path: Path) -> NotProven:
        """Pairs of bodies whose way along a path between two states is not proven free. The candidates of the iterate stay."""
        found = self._find(path, 0.0)
        candidates = contacts(self.model, self.surfaces, self.pairs, found)
        bodies = candidates.first.astype(np.int64), candidates.second.astype(np.int64)
        shares = ccd.way_shares(path, candidates, self.pair_law.activation(*bodies))
        closed = shares < 1.0
        pairs, of = np.unique(np.sort(np.stack(bodies, axis=1)[closed], axis=1), axis=0, return_inverse=True)
        smallest = np.ones(len(pairs))
        np.minimum.at(smallest, of.ravel(), shares[closed])
        return NotProven(smallest, pairs)


class NumpyFriction:
    """Friction of the contacts frozen in one state.

    Attributes:
        enabled: whether any pair of materials rubs or resists.
        candidates: (l,) the frozen contacts, their points on the surfaces; owners: (l,) as of the contacts.
        lagged: what was frozen of them.
        anchors: what the contacts of the last step remember, where they `stick`.
    """

    ties = NOBODY

    def __init__(self, touching: NumpyContacts):
        self.touching = touching
        self.anchors = Anchors()
        self.follow_materials()

    def follow_materials(self) -> None:
        """Whether anything rubs, by the model's tables; what is frozen is let go."""
        model = self.touching.model
        self.resistances = Resistances.of(model)
        self.enabled = self.resistances.any and model.settings.friction_iterations != 0
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

    def lag(self, q: np.ndarray, heading: np.ndarray, chosen: np.ndarray | None = None) -> None:
        """Freeze the contacts that rub in the state q (n, 12), those of `chosen` bodies (n,) bool alone if they are given: the
        others keep what was frozen. `heading` as in `abd.potentials.friction.freeze`."""
        if not self.enabled:
            return
        touching, before = self.touching, (self.lagged, self.candidates, self.owners)
        self._freeze(q, touching.parts, heading, touching.part_parameters, touching.weights(q))
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
            sign = np.where(self.lagged.flipped, -1.0, 1.0)
            self.lagged = replace(self.lagged, share=sign[:, None] * share)

    def _places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Keys (l,) and kinds (l,) of the frozen contacts and their points (l, 3) on the bodies i of their pairs."""
        frozen, lagged = self.candidates, self.lagged
        i = np.where(lagged.flipped, frozen.second, frozen.first).astype(np.int64)
        j = np.where(lagged.flipped, frozen.first, frozen.second).astype(np.int64)
        on_i = np.where(lagged.flipped[:, None], lagged.Y_second, lagged.Y_first)
        return i * len(self.touching.model.bodies) + j, lagged.kind.astype(np.int32), on_i[:, 1:]

    def keep_anchors(self, moved: np.ndarray, q: np.ndarray, now: np.ndarray, eps: float) -> None:
        """Remember how far the contacts are stretched after a step from `now` to q (n, 12), with displacements `moved`
        (n, 12) against the reference xh; eps [m]."""
        if not self.sticks:
            return
        lagged, frozen = self.lagged, self.candidates
        A, before = (state[:, 3:].reshape(-1, 3, 3) for state in (q, now))
        turned = axial(A @ np.linalg.inv(before))
        spin = 0.5 * np.einsum("li,li->l", turned[frozen.first] + turned[frozen.second], lagged.n)
        e = friction.stretch(lagged, frozen.positions(moved), eps)
        sign = np.where(lagged.flipped, -1.0, 1.0)
        self.anchors = Anchors(*self._places(), sign[:, None] * kept(e, eps, lagged.n, spin))

    def read_anchors(self) -> Anchors:
        """What the contacts of the last step remember."""
        return self.anchors

    def set_anchors(self, anchors: Anchors) -> None:
        """What the contacts remember from now on."""
        if self.sticks:
            self.anchors = anchors

    def frozen(self) -> tuple[np.ndarray, ...]:
        """Bodies i, j (l, 2), kinds (l,), normals (l, 3), contact points Y_i, Y_j (l, 4) and shares (l, 3) of what is frozen."""
        lagged, chosen = self.lagged, self.candidates
        bodies = np.stack([chosen.first, chosen.second], axis=1).astype(np.int64)
        flip = lagged.flipped[:, None]
        Y_i, Y_j = np.where(flip, lagged.Y_second, lagged.Y_first), np.where(flip, lagged.Y_first, lagged.Y_second)
        n, share = (np.where(flip, -one, one) for one in (lagged.n, lagged.share))
        return np.where(flip, bodies[:, ::-1], bodies), lagged.kind, n, Y_i, Y_j, share

    def energy(self, moved: np.ndarray, eps: float) -> np.ndarray:
        """(l,) energies for displacements `moved` (n, 12) against the reference xh; eps [m]."""
        return friction.energy(self.lagged, self.candidates.positions(moved), eps)

    def energies(self, at: Iterate, q: np.ndarray) -> np.ndarray:
        """(l,) energies in the state q."""
        return self.energy(q - at.rest, at.eps)

    def add_to(self, at: Iterate, gradient: np.ndarray, blocks: np.ndarray) -> None:
        """Add to gradient (n, 12) and blocks (n, n, 12, 12)."""
        add_elements(self.candidates, self.elements(at.q - at.rest, at.eps), gradient, blocks)

    def elements(self, moved: np.ndarray, eps: float) -> Elements:
        """Elements of the frozen contacts."""
        share = self.touching.shares(self.candidates)
        return friction.friction_elements(self.lagged, self.candidates.positions(moved), eps, share)

    def work(self, moved: np.ndarray, step: np.ndarray, eps: float) -> float:
        """Work on the motion `step` (n, 12), times c h^2: positions are linear in q, so displacements are as well."""
        gradients = friction.gradient(self.lagged, self.candidates.positions(moved), eps)
        return -float(np.sum(gradients * self.candidates.positions(step).reshape(-1, 12)))


def _beside(a, of_a: np.ndarray, b, of_b: np.ndarray):
    """Rows of a, by a mask, and of b, tables of one kind."""
    columns = ((getattr(a, one.name)[of_a], getattr(b, one.name)[of_b]) for one in fields(a))
    return type(a)(*(np.concatenate(pair) for pair in columns))


def _by_pair(candidates: contact.Contacts, load: np.ndarray) -> PairLoads:
    """Sums of the loads (l,) over the contacts of every body pair."""
    bodies = np.stack([candidates.first, candidates.second], axis=1)
    pairs, place = np.unique(bodies, axis=0, return_inverse=True)
    return PairLoads(pairs, np.bincount(place.ravel(), load, minlength=len(pairs)))


def owners_of(candidates: contact.Contacts, model: Model) -> np.ndarray:
    """(m,) dynamic body of every candidate, the first one where both are."""
    dynamic = model.bodies.kind[candidates.first] == Kind.DYNAMIC
    return np.where(dynamic, candidates.first, candidates.second).astype(int)


def body_pair(candidates: contact.Contacts, elements: Elements) -> tuple[np.ndarray, np.ndarray]:
    """(e,) bodies i and j of every element."""
    chosen = candidates[elements.source]
    swap = chosen.flipped
    return np.where(swap, chosen.second, chosen.first), np.where(swap, chosen.first, chosen.second)


def add_elements(candidates: contact.Contacts, elements: Elements, gradient: np.ndarray, blocks: np.ndarray) -> None:
    """Add elements to gradient (n, 12) and blocks (n, n, 12, 12)."""
    i, j = body_pair(candidates, elements)
    for bodies, own in zip((i, j), elements.gradients(), strict=True):
        np.add.at(gradient, bodies, own)
    H_ii, H_ij, H_jj = elements.blocks()
    np.add.at(blocks, (i, i), H_ii)
    np.add.at(blocks, (i, j), H_ij)
    np.add.at(blocks, (j, i), H_ij.transpose(0, 2, 1))
    np.add.at(blocks, (j, j), H_jj)
