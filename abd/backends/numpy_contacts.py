"""Contacts and friction of the iterate, from the definitions in `abd.contact` and `abd.potentials`."""

from __future__ import annotations

import numpy as np

from abd.backends.body_data import smallest_moments
from abd.contact import ccd
from abd.contact.candidates import contacts, find_candidates
from abd.contact.pairs import body_pairs
from abd.contact.path import Path, standing
from abd.contact.surfaces import Surfaces
from abd.model import Kind, Model
from abd.potentials import contact, friction
from abd.potentials.contact import ContactParameters, Stencil
from abd.potentials.elements import Elements


class NumpyContacts:
    """All contacts that can act on a path.

    Attributes:
        candidates: every contact that is active anywhere on the path last searched.
        owners: (m,) the dynamic body of each, the first one where both are.
        parameters: the law, its stiffness that of the incremental potential, kappa_c c h^2.
        caution: (n,) shares of the bodies' bounds of the curvature (`abd.solver.caution`).
    """

    def __init__(self, model: Model):
        self.model, self.settings = model, model.settings
        self.surfaces, self.pairs = Surfaces.of(model), body_pairs(model)
        self.moments = smallest_moments(model)
        self.caution = np.ones(len(model.bodies))
        self.set_stiffness(0.0)
        self.search(standing(model.bodies.q))

    def set_stiffness(self, kappa: float) -> None:
        """Stiffness in the incremental potential."""
        self.parameters = ContactParameters(kappa, self.settings.d_hat, self.settings.barrier)

    def search(self, path: Path) -> None:
        """Find the candidates of a path."""
        found = find_candidates(self.model, self.surfaces, self.pairs, path, self.settings.d_hat)
        self.candidates = contacts(self.model, self.surfaces, self.pairs, found)
        self.owners = owners_of(self.candidates, self.model)

    def energy(self, q: np.ndarray) -> np.ndarray:
        """(m,) energies of the candidates in the state q (n, 12); inf at or below the separation."""
        return contact.energy(self.candidates.positions(q), self.candidates, self.parameters)

    def elements(self, q: np.ndarray) -> Elements:
        """Elements of the active candidates."""
        candidates = self.candidates
        inertia = np.minimum(self.moments[candidates.first], self.moments[candidates.second])
        return contact.contact_elements(
            candidates.positions(q), candidates, self.parameters, inertia, self.shares(candidates)
        )

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
        return ccd.time_of_impact(path, self.candidates, limit[self.owners])

    def free_way(self, path: Path) -> tuple[float, tuple[int, ...]]:
        """How far a path between two states is proven free, and the bodies that are the first in one another's way: nobody
        where it is free as a whole. The candidates of the iterate stay."""
        found = find_candidates(self.model, self.surfaces, self.pairs, path, 0.0)
        candidates = contacts(self.model, self.surfaces, self.pairs, found)
        shares = ccd.way_shares(path, candidates, self.settings.d_hat)
        if shares.min(initial=1.0) == 1.0:
            return 1.0, ()
        first = int(shares.argmin())
        return float(shares[first]), (int(candidates.first[first]), int(candidates.second[first]))


class NumpyFriction:
    """Friction of the contacts frozen in one state.

    Attributes:
        enabled: whether any pair of materials rubs.
        candidates: (l,) the frozen contacts, their points on the surfaces; owners: (l,) as of the contacts.
        lagged: what was frozen of them.
    """

    def __init__(self, model: Model, touching: NumpyContacts):
        self.touching = touching
        self.enabled = bool((model.materials.mu > 0).any()) and model.settings.friction_iterations != 0
        self.forget()

    @property
    def count(self) -> int:
        """Number of frozen contacts."""
        return len(self.lagged)

    def forget(self) -> None:
        """Freeze nothing."""
        q = self.touching.model.bodies.q
        self._freeze(q, self.touching.candidates[np.zeros(0, dtype=int)], q[:, 3:].reshape(-1, 3, 3))

    def lag(self, q: np.ndarray, heading: np.ndarray) -> None:
        """Freeze the contacts that rub in the state q (n, 12); `heading` as in `abd.potentials.friction.freeze`."""
        if self.enabled:
            self._freeze(q, self.touching.candidates, heading)

    def _freeze(self, q: np.ndarray, candidates: contact.Contacts, heading: np.ndarray) -> None:
        model, parameters = self.touching.model, self.touching.parameters
        self.lagged, self.candidates = friction.freeze(q, candidates, parameters, model.bodies.radius, heading)
        self.owners = owners_of(self.candidates, model)

    def energy(self, moved: np.ndarray, eps: float) -> np.ndarray:
        """(l,) energies for displacements `moved` (n, 12) against the reference xh; eps [m]."""
        return friction.energy(self.lagged, self.candidates.positions(moved), eps)

    def elements(self, moved: np.ndarray, eps: float) -> Elements:
        """Elements of the frozen contacts."""
        share = self.touching.shares(self.candidates)
        return friction.friction_elements(self.lagged, self.candidates.positions(moved), eps, share)

    def work(self, moved: np.ndarray, step: np.ndarray, eps: float) -> float:
        """Work on the motion `step` (n, 12), times c h^2: positions are linear in q, so displacements are as well."""
        gradients = friction.gradient(self.lagged, self.candidates.positions(moved), eps)
        return -float(np.sum(gradients * self.candidates.positions(step).reshape(-1, 12)))


def owners_of(candidates: contact.Contacts, model: Model) -> np.ndarray:
    """(m,) dynamic body of every candidate, the first one where both are."""
    dynamic = model.bodies.kind[candidates.first] == Kind.DYNAMIC
    return np.where(dynamic, candidates.first, candidates.second).astype(int)


def body_pair(candidates: contact.Contacts, elements: Elements) -> tuple[np.ndarray, np.ndarray]:
    """(e,) bodies i and j of every element."""
    chosen = candidates[elements.source]
    swap = chosen.flipped
    return np.where(swap, chosen.second, chosen.first), np.where(swap, chosen.first, chosen.second)
