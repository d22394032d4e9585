"""Derivatives of contact and friction forces by the states of both bodies, as functions of independent pairs of bodies."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from abd.backends.reference.numpy_contacts import NumpyContacts
from abd.backends.reference.numpy_friction import signs
from abd.contact.minima import Minima, Queries
from abd.contact.pair_law import PairParameters
from abd.contact.path import standing
from abd.derivatives.equations import jacobian
from abd.errors import NotDifferentiable
from abd.model import Model
from abd.potentials import arc_slip, contact, friction
from abd.potentials.arc_slip import Course
from abd.potentials.contact import ContactParameters, Contacts, Weights, closest
from abd.potentials.elements import STATE_ORDER, body_gradient
from abd.potentials.friction import Lagged
from abd.potentials.rolling import Resistances
from abd.potentials.sticking import Anchors, final_shares
from abd.rotations import axial
from cuda_kernels.shared.contact import SLIDE, STEEP

STEP = 3e-4
"""Displacements of points in central differences, over the smallest gap: error 1e-7 by curvature, 1e-9 by rounding."""

NEGLIGIBLE = 1e-9
"""Load of contacts without friction, such as those of nearly parallel edges, over the largest."""


@dataclass
class Parts:
    """Contacts with forces in one state (`abd.contact.minima`), between k pairs of bodies of which none are shared.

    Attributes:
        bodies: (k, 2) of the scene; contacts: between bodies 2 e + s, s = 0 or 1 of pair e.
        parameters: of the contacts, with the factor c h^2; minima: their combination, with constant coefficients of vertices.
        step: (1, 24) changes of the states of a pair in differences.
    """

    bodies: np.ndarray
    contacts: Contacts
    parameters: ContactParameters
    minima: Minima | None
    step: np.ndarray

    @classmethod
    def of(cls, touching: NumpyContacts, q: np.ndarray, own: PairParameters, ch2: float, resist: bool = False) -> Parts:
        """Return the contacts in the state q (n, 12), with parameters `own` of single pairs.

        resist: without contacts that have no load, such as those of parallel edges."""
        touching.pair_law.own = own
        touching.set_scale(ch2)
        touching.search(standing(q))
        contacts, parameters, minima, n = touching.parts, touching.part_parameters, touching.minima, len(q)
        x = contacts.positions(q)
        gap = np.sqrt(closest(x, contacts).D) - contacts.xi
        active, weights = gap < parameters.d_hat, touching.weights(q)
        if resist:
            lagged = friction.lag(x, replace(contacts, mu=np.ones(len(x))), parameters, weights)
            item, load = np.arange(len(x)) if weights is None else weights.item, np.zeros(len(x))
            load[item[lagged.source]] = np.abs(lagged.load)
            active &= load[item] > NEGLIGIBLE * load.max(initial=0.0)
        smallest = np.min(gap, where=active, initial=np.inf)
        active &= gap < parameters.d_hat - 2.0 * STEP * smallest  # also in the differences
        if minima is not None:
            active &= weights.value != 0.0
            constant, crossing = minima.vertex_coefficients(q, x), minima.crossing[active[minima.crossing[:, 0]]]
            active[crossing] = True
            none = {one.name: getattr(minima.queries, one.name)[:0] for one in fields(Queries)}
            columns = {name: getattr(minima, name)[active] for name in ("source", "role", "weight", "share")}
            columns |= {"constant": constant[active], "extra": np.zeros(active.sum()), "queries": Queries(**none)}
            minima = replace(minima, crossing=(np.cumsum(active) - 1)[crossing], contacts=contacts[active], **columns)
        contacts, ends = contacts[active], np.stack([contacts.first, contacts.second], axis=1)[active].astype(np.int64)
        keys, place = np.unique(np.sort(ends, axis=1) @ [n, 1], return_inverse=True)
        bodies = np.stack([keys // n, keys % n], axis=1)
        first, second = (2 * place.ravel() + (one != bodies[place.ravel(), 0]) for one in ends.T)
        size = max(1.0, float(np.abs(contacts.rest).max(initial=0.0)))
        step = STEP * (smallest if np.isfinite(smallest) else 0.0) * np.tile([1.0] * 3 + [1.0 / size] * 9, 2)[None]
        return cls(bodies, replace(contacts, first=first, second=second), parameters[active], minima, step)

    def copied(self, copies: int) -> Parts:
        """Return copies between other pairs of bodies, one after the other."""

        def numbered(index: np.ndarray, count: int) -> np.ndarray:
            return np.concatenate([index + copy * count for copy in range(copies)])

        k, minima, table = 2 * len(self.bodies), self.minima, self.parameters
        rows = np.tile(np.arange(len(self.contacts)), copies)
        ends = {name: numbered(getattr(self.contacts, name), k) for name in ("first", "second")}
        contacts = replace(self.contacts[rows], **ends)
        if minima is not None:
            columns = {name: getattr(minima, name)[rows] for name in ("source", "role", "constant", "extra", "weight", "share")}
            minima = replace(minima, contacts=contacts, crossing=numbered(minima.crossing, len(minima)), **columns)
        return replace(self, contacts=contacts, parameters=table[rows], minima=minima)

    def weights(self, q: np.ndarray) -> Weights | None:
        return None if self.minima is None else self.minima.weights(q, self.parameters)

    def hessian(self, q: np.ndarray) -> np.ndarray:
        """Return (k, 24, 24) second derivatives of the energy by the states of the pairs, in the state q (n, 12)."""

        def gradient(x: np.ndarray) -> np.ndarray:
            states = x.reshape(-1, 12)
            parts = self.copied(len(x) // len(self.bodies))
            table, out = parts.contacts, np.zeros(states.shape)
            f = contact.gradient(table.positions(states), table, parts.parameters, parts.weights(states)).reshape(-1, 3)
            Y = np.concatenate([np.ones((*table.rest.shape[:2], 1)), table.rest], axis=2).reshape(-1, 4)
            np.add.at(out, table.owners.ravel(), body_gradient(f, Y))
            return out.reshape(x.shape)

        return jacobian(gradient, [q[self.bodies].reshape(-1, 24)], [self.step])[1]


class LaggedFriction:
    """Friction of the contacts that were lagged in one state, and its derivatives.

    Args:
        at_end: whether they were lagged at the end of the step, not at its start.
        states: (3, n, 12) at the end and at the start of the step, and inertial targets; turn: (n, 3) to the targets [rad].
        anchors: of the last step, None if contacts do not stick; eps: slip of static friction [m]; h: time step [s].

    Attributes:
        pair: (l,) pair of bodies of every lagged contact; materials: (l,) index of their materials in mu (m, m), the lower first.
        key, kind, point: (l,) of their anchors (`Anchors`); slides: (l,) bool.
        share: (l, 3) at the start.
        by_states: (l, 24, 72) derivatives of the gradient by the states of the pairs; by_share: (l, 24, 3); by_mu: (l, 24).
        shares_by_states: (l, 3, 72) of the shares at the end; shares_by_share: (l, 3, 3).
    """

    def __init__(
        self, model: Model, parts: Parts, at_end: bool, states: np.ndarray, turn: np.ndarray, anchors: Anchors | None,
        eps: float, h: float,
    ):  # fmt: skip
        bodies, self.parts, self.at_end, self.eps, self.h = parts.bodies, parts, at_end, eps, h
        table = model.bodies
        self.radius, self.surface, self.turn = (one[bodies.ravel()] for one in (table.radius, table.surface_velocity, turn))
        resistances, self.follows_arcs = Resistances.of(model), arc_slip.counts(model)
        columns = {name: getattr(resistances, name)[bodies.ravel()] for name in ("material", "arm")}
        self.resistances = replace(resistances, **columns)
        x = np.concatenate([one[bodies].reshape(-1, 24) for one in states], axis=1)
        lagged, points, *_ = self._lag(x)
        flip, ends = lagged.flipped, np.stack([points.first, points.second], axis=1)
        self.pair, ends = points.first // 2, bodies.ravel()[np.where(flip[:, None], ends[:, ::-1], ends)]
        self.key, self.kind = ends @ [len(table), 1], lagged.kind.astype(np.int32)
        self.point = np.where(flip[:, None], lagged.Y_second, lagged.Y_first)[:, 1:]
        mu, slides = resistances.mu, self.kind == SLIDE
        low, high = np.sort(table.material[ends], axis=1).T
        self.materials, self.slides = low * len(mu) + high, slides & (mu[low, high] > 0.0)
        self.share = None if anchors is None else anchors.found(self.key, self.kind, self.point, np.zeros(self.point.shape))
        given = [x] if self.share is None else [x, self.share]
        value, J = jacobian(self._quantities, given, [np.tile(parts.step, 3), STEP])
        by_all = self._of_gradient(value, J)
        self.by_states, self.by_share = by_all[:, :, :72], by_all[:, :, 72:]
        self.shares_by_states, self.shares_by_share = J[:, 3:6, :72], J[:, 3:6, 72:]
        self.by_mu = np.where(self.slides, 1.0 / np.where(self.slides, mu[low, high], 1.0), 0.0)[:, None] * self._gradient(value)

    def _lag(self, x: np.ndarray, share: np.ndarray | None = None) -> tuple[Lagged, Contacts, np.ndarray, np.ndarray, np.ndarray]:
        """Return lagged contacts, their points, and the states at the end, at the start, and the reference of slips."""
        copies = len(x) // len(self.parts.bodies)
        end, start, target = (one.reshape(-1, 12) for one in np.split(x, 3, axis=1))
        at, heading = (end, end) if self.at_end else (start, target)
        radius, surface, turn = (np.concatenate([one] * copies) for one in (self.radius, self.surface, self.turn))
        columns = {name: np.tile(getattr(self.resistances, name), copies) for name in ("material", "arm")}
        parts, resistances, rest = self.parts.copied(copies), replace(self.resistances, **columns), start.copy()
        rest[:, :3] -= self.h * np.einsum("nij,nj->ni", start[:, 3:].reshape(-1, 3, 3), surface)
        toward = heading[:, 3:].reshape(-1, 3, 3)
        lagged, points = friction.freeze(at, parts.contacts, parts.parameters, radius, toward, resistances, parts.weights(at))
        if self.follows_arcs:
            lagged, points = arc_slip.along_arcs(lagged, points, at, Course(rest, heading, turn), radius)
        if share is not None:  # `sticking.tangential`
            flat = share - np.sum(share * lagged.n, axis=1, keepdims=True) * lagged.n
            size, flat_size = (np.linalg.norm(one, axis=1, keepdims=True) for one in (share, flat))
            flat = np.where(flat_size > STEEP * size, flat * size / np.maximum(flat_size, 1e-300), flat)
            lagged = replace(lagged, start_stretch=signs(lagged) * flat)
        return lagged, points, end, start, rest

    def _quantities(self, x: np.ndarray, share: np.ndarray | None = None) -> np.ndarray:
        """Return (c l, 15) of c copies: stretches [m], shares at the end, loads [N], points (4,) with signs on both bodies."""
        lagged, points, end, start, rest = self._lag(x, share)
        if len(lagged) * len(self.parts.bodies) != len(x) * len(self.key):
            raise NotDifferentiable("contacts with friction begin or end in the state of this step: change it slightly")
        e = friction.stretch(lagged, points.positions(end - rest), self.eps)
        turned = axial(end[:, 3:].reshape(-1, 3, 3) @ np.linalg.inv(start[:, 3:].reshape(-1, 3, 3)))
        spin = 0.5 * np.sum((turned[points.first] + turned[points.second]) * lagged.n, axis=1)
        end_share = signs(lagged) * final_shares(e, self.eps, lagged.n, spin)
        sides = lagged.Y_first, -(lagged.two_sided[:, None] * lagged.Y_second)
        sides = np.where((points.first % 2 == 0)[:, None], np.hstack(sides), np.hstack(sides[::-1]))
        return np.concatenate([e, end_share, lagged.load[:, None], sides], axis=1)

    def _gradient(self, value: np.ndarray) -> np.ndarray:
        """Return gradients (l, 24) by the states of the pairs from `_quantities`."""
        e, load = value[:, :3], value[:, 6:7]
        f = load * friction.f1_over_y(np.linalg.norm(e, axis=1, keepdims=True), self.eps) * e
        return np.concatenate([body_gradient(f, Y) for Y in (value[:, 7:11], value[:, 11:])], axis=1)

    def _of_gradient(self, value: np.ndarray, J: np.ndarray) -> np.ndarray:
        """Return derivatives (l, 24, k) of `_gradient` from those of `_quantities` (l, 15, k).

        The force ``load f1(|e|) e/|e|`` has kinks, where differences would be inexact."""
        e, load = value[:, :3], value[:, 6:7]
        y = np.linalg.norm(e, axis=1, keepdims=True)
        t, secant = e / np.maximum(y, 1e-300), friction.f1_over_y(y, self.eps)
        bend = (friction.f2(y, self.eps) - secant)[:, :, None] * t[:, :, None] * t[:, None, :]
        K = load[:, :, None] * (secant[:, :, None] * np.eye(3) + bend)
        df, f, out = K @ J[:, :3] + (secant * e)[:, :, None] * J[:, 6:7], load * secant * e, np.zeros((len(e), 2, 12, J.shape[2]))
        for side, rows in enumerate((slice(7, 11), slice(11, 15))):
            by_points = np.einsum("lr,lkx->lrkx", f, J[:, rows])
            out[:, side, STATE_ORDER] = np.einsum("lrx,lk->lrkx", df, value[:, rows]) + by_points
        return out.reshape(len(e), 24, -1)
