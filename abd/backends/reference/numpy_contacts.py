"""Contacts of the iterate, from the definitions in `abd.contact` and `abd.potentials`."""

from __future__ import annotations

import numpy as np

from abd.backends.body_data import smallest_moments
from abd.backends.reference.iterate import Iterate
from abd.contact import ccd
from abd.contact.candidates import Candidates as Listed
from abd.contact.candidates import contacts, find_candidates
from abd.contact.minima import find_minima
from abd.contact.pair_law import PairLaw, PairParameters
from abd.contact.pairs import body_pairs, pairs_of
from abd.contact.path import Path, standing
from abd.contact.surfaces import Surfaces
from abd.contact.topology import Topology
from abd.model import Kind, Model
from abd.potentials import contact
from abd.potentials.contact import ContactParameters, Stencil
from abd.potentials.elements import Elements
from cuda_kernels.shared.contact import WITHIN


class NumpyContacts:
    """All contacts that can become active on a path.

    Attributes:
        candidates: every contact that is active anywhere on the path last searched.
        owners: (m,) dynamic body of each, the first one if both are.
        parts: terms of the contact set: local minima, or the candidates themselves for "ipc".
        pair_law: of all pairs of bodies; parameters: of the candidates, with the stiffness kappa_c c h^2 of the incremental
            potential; part_parameters: of the parts; activation: (m,) [m].
        regularisation: (n,) weights of the bodies' bounds of curvature (`cuda_kernels.step.newton`).
        excluded: (n,) bool, inactive bodies.
    """

    def __init__(self, model: Model):
        self.model, self.settings = model, model.settings
        self.surfaces, self.pairs = Surfaces.of(model), body_pairs(model)
        self.topology = None if self.settings.contact_set == "ipc" else Topology.of(model, self.surfaces)
        self.moments = smallest_moments(model)
        self.regularisation = np.ones(len(model.bodies))
        self.pair_law, self.scale = PairLaw(model), np.ones(len(model.bodies))
        self.excluded = np.zeros(len(model.bodies), dtype=bool)
        self.search(standing(model.bodies.q))

    def follow_materials(self) -> None:
        """Read the friction of all pairs from the model again."""
        self.pairs = pairs_of(self.model, self.pairs.i, self.pairs.j)

    def set_scale(self, ch2: float | np.ndarray) -> None:
        """Set c h^2 of the bodies, scalar or (n,), the factor of pair energies in the incremental potential."""
        self.scale = np.broadcast_to(ch2, len(self.model.bodies))
        self._update_parameters()

    def set_pair_parameters(self, own: PairParameters) -> None:
        self.pair_law.own = own
        self._update_parameters()

    def _update_parameters(self) -> None:
        law, c = self.pair_law, self.candidates
        first, second = c.first.astype(np.int64), c.second.astype(np.int64)
        self.activation = law.activation(first, second)
        kappa = self.scale[first] * law.stiffness(first, second, self.activation, c.xi)
        self.parameters = ContactParameters(kappa, self.activation, self.settings.barrier)
        self.part_parameters = self.parameters if self.minima is None else self.parameters[self.minima.source]

    def search(self, path: Path) -> None:
        reach = self.pair_law.regular(self.pairs.i, self.pairs.j)
        found = self._find(path, reach)
        self.found, self.candidates = found, contacts(self.model, self.surfaces, self.pairs, found)
        self.owners = owners_of(self.candidates, self.model)
        self.minima, self.parts = None, self.candidates
        if self.topology is not None and len(found):
            self.minima = find_minima(self.surfaces, self.topology, self.pairs, found, self.candidates)
            self.parts = self.minima.contacts
        self._update_parameters()

    def _find(self, path: Path, reach: np.ndarray | float) -> Listed:
        """Return candidates of the included pairs, within a reach (pairs,) [m]."""
        is_included = ~(self.excluded[self.pairs.i] | self.excluded[self.pairs.j])
        return find_candidates(self.model, self.surfaces, self.pairs, path, np.where(is_included, reach, -np.inf))

    def energy(self, q: np.ndarray) -> np.ndarray:
        """Return (m,) energies of the candidates in the state q (n, 12); inf at or below the separation."""
        if self.minima is None:
            return contact.energy(self.candidates.positions(q), self.candidates, self.parameters)
        return self.minima.energy(q, self.part_parameters, len(self.candidates))

    def energies(self, at: Iterate, q: np.ndarray) -> np.ndarray:
        return self.energy(q)

    def add_to(self, at: Iterate, gradient: np.ndarray, blocks: np.ndarray) -> None:
        parts, q = self.parts, at.q
        inertia = np.minimum(self.moments[parts.first], self.moments[parts.second])
        elements = contact.contact_elements(
            parts.positions(q), parts, self.part_parameters, inertia, self.regularisations(parts), self.weights(q)
        )
        add_elements(parts, elements, gradient, blocks)

    def weights(self, q: np.ndarray) -> contact.Weights | None:
        """Return weights of the parts in the state q, None for weights of 1."""
        return None if self.minima is None else self.minima.weights(q, self.part_parameters)

    def regularisations(self, candidates: contact.Contacts) -> np.ndarray:
        """Return (m,) weights of the bounds of contacts, those of their dynamic bodies."""
        return self.regularisation[owners_of(candidates, self.model)]

    def gaps(self, q: np.ndarray) -> np.ndarray:
        """Return (m,) distances beyond the separation [m], negative below the surface of a half-space."""
        candidates = self.candidates
        x = candidates.positions(q)
        distance = np.sqrt(contact.closest(x, candidates).D)
        plane = candidates.stencil == Stencil.POINT_PLANE
        distance[plane] = contact.heights(x[plane], candidates.plane[plane])
        return distance - candidates.xi

    def times_of_impact(self, path: Path, limit: np.ndarray) -> np.ndarray:
        """Return (m,) fractions of the path that are proven free of collisions, up to the limits (n,) of the bodies."""
        return ccd.time_of_impact(path, self.candidates, limit[self.owners], least=WITHIN * self.activation)

    def unproven(self, path: Path) -> np.ndarray:
        """Return (k, 2) pairs of bodies whose path between two states is not proven free; the candidates do not change."""
        found = self._find(path, 0.0)
        candidates = contacts(self.model, self.surfaces, self.pairs, found)
        bodies = candidates.first.astype(np.int64), candidates.second.astype(np.int64)
        fractions = ccd.proven_fractions(path, candidates, self.pair_law.activation(*bodies))
        return np.unique(np.sort(np.stack(bodies, axis=1)[fractions < 1.0], axis=1), axis=0)


def owners_of(candidates: contact.Contacts, model: Model) -> np.ndarray:
    """Return (m,) the dynamic body of every candidate, the first one if both are."""
    dynamic = model.bodies.kind[candidates.first] == Kind.DYNAMIC
    return np.where(dynamic, candidates.first, candidates.second).astype(int)


def body_pair(candidates: contact.Contacts, elements: Elements) -> tuple[np.ndarray, np.ndarray]:
    """Return (e,) bodies i and j of every element."""
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
