"""Derivatives of contact and friction forces by the states of both bodies.

The contacts of an *item*, which is a distance, or two crossing edges with the distances of their ends, depend on its four points.
Derivatives by these points are chained with the linear maps from states to points."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from abd.backends.reference.numpy_contacts import NumpyContacts
from abd.backends.reference.numpy_friction import signs
from abd.contact.minima import Minima
from abd.contact.pair_law import PairParameters
from abd.derivatives.equations import jacobian
from abd.errors import NotDifferentiable
from abd.model import Model
from abd.potentials import arc_slip, contact, distance, friction, mollifier
from abd.potentials.arc_slip import Course
from abd.potentials.barrier import barrier
from abd.potentials.contact import FIRST, Closest, ContactParameters, Contacts, Weights, closest
from abd.potentials.elements import STATE_ORDER, body_gradient
from abd.potentials.friction import Lagged
from abd.potentials.rolling import Resistances
from abd.potentials.sticking import Anchors, final_shares, tangential
from abd.rotations import axial
from cuda_kernels.shared.contact import SLIDE

STEP = 3e-4
"""Displacements of points in central differences, over the smallest gap: error 1e-7 by curvature, 1e-9 by rounding."""
TURN = 1e-5
"""Change of normals and shares, of points over the size of a body, and of stretches over the static slip."""

NEGLIGIBLE = 1e-9
"""Load of contacts without friction, such as those of nearly parallel edges, over the largest."""
ENDS = np.array([[0, 2, 3, 3], [1, 2, 3, 3], [2, 0, 1, 1], [3, 0, 1, 1]])
"""Points of the distance of an end of two crossing edges, among those of the edges (`abd.contact.minima`)."""
CLOSEST = np.array([[1.0, -1.0, 0.0, 0.0], [1.0, 0.0, -1.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
"""Weights of a contact whose points are the closest ones of both bodies, by stencil."""
ORDER = np.hstack([STATE_ORDER, 12 + STATE_ORDER])
"""(3, 8) indices, in the states of a pair, of the entries of [Q_first | Q_second] (`abd.potentials.elements`)."""


@dataclass
class Parts:
    """Contacts with forces in one state (`abd.contact.minima`), between k pairs of bodies of which none are shared.

    Attributes:
        bodies: (k, 2) of the scene; contacts: m between bodies 2 e + s, s = 0 or 1 of pair e.
        parameters: of the contacts, with the factor c h^2; minima: their combination; its constants are the
            coefficients of vertices, and its conditions do not count.
        loaded: contacts with friction, lagged with a coefficient of 1, None if not requested.
        item: (m,) item of every contact; point: (m, 4) its points among the four of the item.
        x: (i, 12) points of the items; pair: (i,) of bodies; Y: (i, 4, 8) weights of the entries of [Q_first | Q_second] in x.
        step: change of points in differences [m].
    """

    bodies: np.ndarray
    contacts: Contacts
    parameters: ContactParameters
    minima: Minima | None
    loaded: Lagged | None
    item: np.ndarray
    point: np.ndarray
    x: np.ndarray
    pair: np.ndarray
    Y: np.ndarray
    step: float

    @classmethod
    def of(
        cls, touching: NumpyContacts, q: np.ndarray, own: PairParameters, ch2: float, resistances: Resistances | None = None
    ) -> Parts:
        """Return the contacts in the state q (n, 12), with parameters `own` of single pairs.

        touching: its candidates contain these contacts; resistances: without contacts that have no friction, or no load, such as
            those of parallel edges."""
        touching.pair_law.own = own
        touching.set_scale(ch2)
        contacts, parameters, minima, n = touching.parts, touching.part_parameters, touching.minima, len(q)
        x = contacts.positions(q)
        near, constant, weights = closest(x, contacts), None, None
        gap = np.sqrt(near.D) - contacts.xi
        active, item = gap < parameters.d_hat, np.arange(len(x))
        if minima is not None:
            constant = minima.vertex_coefficients(near)
            weights = minima.combined(x, near, constant, parameters)
            item = weights.item
        loaded = None
        if resistances is not None:
            mu = (resistances.ratios(contacts.first, contacts.second) > 0.0).any(axis=1).astype(float)
            loaded, load = friction.lag(x, replace(contacts, mu=mu), parameters, weights, near), np.zeros(len(x))
            load[item[loaded.source]] = np.abs(loaded.load)
            active &= load[item] > NEGLIGIBLE * load.max(initial=0.0)
        smallest = np.min(gap, where=active, initial=np.inf)
        active &= gap < parameters.d_hat - 2.0 * STEP * smallest  # also in the differences
        if minima is not None:
            active &= weights.value != 0.0
            crossing = minima.crossing[active[minima.crossing[:, 0]]]
            active[crossing] = True
            columns = {name: getattr(minima, name)[active] for name in ("contacts", "role", "weight", "share")}
            minima = replace(minima, crossing=(np.cumsum(active) - 1)[crossing], constant=constant[active], **columns)
        if loaded is not None:
            loaded = loaded[active[loaded.source]]
            loaded = replace(loaded, source=(np.cumsum(active) - 1)[loaded.source])
        contacts, ends = contacts[active], np.stack([contacts.first, contacts.second], axis=1)[active].astype(np.int64)
        keys, place = np.unique(np.sort(ends, axis=1) @ [n, 1], return_inverse=True)
        bodies = np.stack([keys // n, keys % n], axis=1)
        first, second = (2 * place.ravel() + (one != bodies[place.ravel(), 0]) for one in ends.T)
        contacts = replace(contacts, first=first, second=second)
        lead, point = np.arange(len(contacts)), np.tile(np.arange(4), (len(contacts), 1))
        if minima is not None:
            lead[minima.crossing[:, 1:]], point[minima.crossing[:, 1:]] = minima.crossing[:, :1], ENDS
        lead, item = np.unique(lead, return_inverse=True)
        of, side = contacts[lead], contacts[lead].owners % 2
        homogeneous = np.concatenate([np.ones((len(lead), 4, 1)), of.rest], axis=2)
        Y = np.concatenate([(side == s)[:, :, None] * homogeneous for s in (0, 1)], axis=2)
        step = STEP * (smallest if np.isfinite(smallest) else 0.0)
        return cls(
            bodies, contacts, parameters[active], minima, loaded, item, point, of.positions(q[bodies.ravel()]).reshape(-1, 12),
            of.first // 2, Y, step,
        )  # fmt: skip

    def at(self, x: np.ndarray) -> tuple[np.ndarray, Contacts, ContactParameters, Weights | None, Closest]:
        """Return positions (c m, 4, 3), contacts, parameters, weights and closest points of c copies with points x (c i, 12)."""
        copies, m, minima = len(x) // len(self.x), len(self.contacts), self.minima
        x = x.reshape(copies, -1, 4, 3)[:, self.item[:, None], self.point].reshape(-1, 4, 3)
        rows, weights = np.tile(np.arange(m), copies), None
        contacts, parameters = self.contacts[rows], self.parameters[rows]
        near = closest(x, contacts)
        if minima is not None:
            crossing = np.concatenate([minima.crossing + copy * m for copy in range(copies)])
            columns = {name: getattr(minima, name)[rows] for name in ("role", "weight", "share")}
            tiled = replace(minima, contacts=contacts, crossing=crossing, **columns)
            weights = tiled.combined(x, near, minima.constant[rows], parameters)
        return x, contacts, parameters, weights, near

    def hessian(self) -> np.ndarray:
        """Return (k, 24, 24) second derivatives of the energy by the states of the pairs."""
        x, contacts, parameters, weights, near = self.at(self.x)
        selected, count = np.eye(4)[self.point], len(self.x)
        H = contact.hessian(x, contacts, parameters, weights, near).reshape(-1, 4, 3, 4, 3)
        H = np.einsum("mprqs,mpk,mql->mkrls", H, selected, selected, optimize=True).reshape(-1, 12, 12)
        if weights is not None:  # ``f = kappa s (weight m b' dD + value dm)`` depends on both weights
            b1, threshold = barrier(parameters.barrier, near.D, parameters.d_hat, contacts.xi)[1], contact.thresholds(contacts)
            by_weight = (b1 * mollifier.value(x, threshold))[:, None] * distance.gradient(near.r, near.w)
            f = np.stack([by_weight, mollifier.gradient(x, threshold)], axis=1).reshape(-1, 2, 4, 3)
            f = np.einsum("m,mapr,mpk->makr", parameters.kappa * contacts.stiffness, f, selected).reshape(-1, 2, 12)
            J = jacobian(self._weights, [self.x], [self.step])[1]
            H += f.transpose(0, 2, 1) @ J
        of_items, of_pairs = np.zeros((count, 12, 12)), np.zeros((len(self.bodies), 24, 24))
        np.add.at(of_items, self.item, H)
        H, of_states = of_items.reshape(-1, 4, 3, 4, 3), np.zeros((count, 24, 24))
        of_states[:, ORDER[:, :, None, None], ORDER] = np.einsum("iprqs,ipk,iql->irksl", H, self.Y, self.Y, optimize=True)
        np.add.at(of_pairs, self.pair, of_states)
        return of_pairs

    def _weights(self, x: np.ndarray) -> np.ndarray:
        weights = self.at(x)[3]
        return np.stack([weights.force, weights.value], axis=1)

    def by_states(self, J: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Return derivatives (l, o, 24) by the states of the pairs from those by the points (l, o, 12) of items (l,)."""
        out = np.zeros((*J.shape[:2], 24))
        out[:, :, ORDER] = np.einsum("lopr,lpk->lork", J.reshape(*J.shape[:2], 4, 3), self.Y[items])
        return out


class LaggedFriction:
    """Friction of the contacts that were lagged in one state, and its derivatives.

    Args:
        at_end: whether they were lagged at the end of the step, not at its start.
        states: (3, n, 12) at the end and at the start of the step, and inertial targets; turn: (n, 3) to the targets [rad].
        anchors: of the last step, None if contacts do not stick; eps: slip of static friction [m]; h: time step [s].

    Attributes:
        pair: (l,) pair of bodies of every lagged contact; materials: (l,) index of their materials in mu (m, m), the lower first.
        anchors: of the contacts, with shares at the start; sticks: whether there are any.
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
        resistances = Resistances.of(model)
        columns = {name: getattr(resistances, name)[bodies.ravel()] for name in ("material", "arm")}
        self.resistances = replace(resistances, **columns)
        x = np.concatenate([one[bodies].reshape(-1, 24) for one in states], axis=1)
        loaded, by_points = jacobian(self._loads, [parts.x], [parts.step])
        lagged, points = self._surfaces(x, loaded)
        flip, ends = lagged.flipped, np.stack([points.first, points.second], axis=1)
        self.pair, ends = points.first // 2, bodies.ravel()[np.where(flip[:, None], ends[:, ::-1], ends)]
        key, kind = ends @ [len(table), 1], lagged.kind.astype(np.int32)
        point = np.where(flip[:, None], lagged.Y_second, lagged.Y_first)[:, 1:]
        mu, slides, self.sticks = resistances.mu, kind == SLIDE, anchors is not None
        low, high = np.sort(table.material[ends], axis=1).T
        self.materials, slides = low * len(mu) + high, slides & (mu[low, high] > 0.0)
        share = np.zeros(point.shape)
        self.anchors = Anchors(key, kind, point, anchors.found(key, kind, point, share) if self.sticks else share)
        size = max(float(np.abs(parts.contacts.rest).max()), float(self.radius.max())) or 1.0
        of_states = parts.step * np.tile([1.0] * 3 + [1.0 / max(1.0, size)] * 9, 6)[None]
        of_loaded = TURN * np.array([[float(np.abs(loaded[:, 0]).max())] + [1.0] * 3 + [size] * 6])
        given = [x, loaded, self.anchors.share] if self.sticks else [x, loaded]
        value, J = jacobian(self._quantities, given, [of_states, of_loaded, TURN][: len(given)])
        at = 0 if at_end else 24  # first of the states in which the contacts were lagged
        by_points = parts.by_states(by_points, parts.item[parts.loaded.source])[lagged.source]
        J[:, :, at : at + 24] += J[:, :, 72:82] @ by_points
        J = np.delete(J, slice(72, 82), axis=2)
        by_all = self._of_gradient(value, J)
        self.by_states, self.by_share = by_all[:, :, :72], by_all[:, :, 72:]
        self.shares_by_states, self.shares_by_share = J[:, 3:6, :72], J[:, 3:6, 72:]
        self.by_mu = np.where(slides, 1.0 / np.where(slides, mu[low, high], 1.0), 0.0)[:, None] * self._gradient(value)

    def _loads(self, x: np.ndarray) -> np.ndarray:
        """Return loads [N], normals and rest coordinates on both bodies, (c l, 10), of the loaded contacts."""
        copies, (x, contacts, *at) = len(x) // len(self.parts.x), self.parts.at(x)
        lagged = friction.lag(x, replace(contacts, mu=np.ones(len(x))), *at)
        sources = self.parts.loaded.source + np.arange(copies)[:, None] * len(self.parts.contacts)
        if not np.array_equal(lagged.source, sources.ravel()):
            raise NotDifferentiable("contacts with friction begin or end in the state of this step: change it slightly")
        return np.concatenate([lagged.load[:, None], lagged.n, lagged.Y_first[:, 1:], lagged.Y_second[:, 1:]], axis=1)

    def _surfaces(self, x: np.ndarray, loaded: np.ndarray) -> tuple[Lagged, Contacts]:
        """Return lagged contacts and their points, in states x (c k, 72), from `_loads` (c l, 10)."""
        end, start, target = (one.reshape(-1, 12) for one in np.split(x, 3, axis=1))
        at, heading = (end, end) if self.at_end else (start, target)
        copies, parts = len(x) // len(self.parts.bodies), self.parts
        radius, turn = (np.concatenate([one] * copies) for one in (self.radius, self.turn))
        columns = {name: np.tile(getattr(self.resistances, name), copies) for name in ("material", "arm")}
        resistances, rows = replace(self.resistances, **columns), np.tile(np.arange(len(parts.loaded)), copies)
        load, n, X_first, X_second = np.split(loaded, (1, 4, 7), axis=1)
        contacts = parts.contacts[parts.loaded.source[rows]]
        rest = np.where(FIRST[contacts.stencil][:, :, None] > 0.0, X_first[:, None], X_second[:, None])
        shift = 2 * len(parts.bodies) * np.repeat(np.arange(copies), len(parts.loaded))
        contacts = replace(contacts, rest=rest, first=contacts.first + shift, second=contacts.second + shift)
        lagged = replace(parts.loaded[rows], load=load[:, 0], n=n, w=CLOSEST[contacts.stencil])
        lagged, points = friction.on_surfaces(lagged, contacts, at, radius, heading[:, 3:].reshape(-1, 3, 3), resistances)
        return arc_slip.along_arcs(lagged, points, at, Course(self._reference(start), heading, turn), radius)

    def _reference(self, start: np.ndarray) -> np.ndarray:
        """Return the reference of slips: states (n, 12) at the start, before the motion of surfaces."""
        rest, surface = start.copy(), np.concatenate([self.surface] * (len(start) // len(self.surface)))
        rest[:, :3] -= self.h * np.einsum("nij,nj->ni", start[:, 3:].reshape(-1, 3, 3), surface)
        return rest

    def _quantities(self, x: np.ndarray, loaded: np.ndarray, share: np.ndarray | None = None) -> np.ndarray:
        """Return (c l, 15) of c copies: stretches [m], shares at the end, loads [N], points (4,) with signs on both bodies."""
        lagged, points = self._surfaces(x, loaded)
        if share is not None:
            lagged = replace(lagged, start_stretch=signs(lagged) * tangential(share, lagged.n))
        end, start = (x[:, one : one + 24].reshape(-1, 12) for one in (0, 24))
        displacement = points.positions(end - self._reference(start))
        e = friction.stretch(lagged, displacement, np.full(len(lagged), self.eps))
        turned = axial(end[:, 3:].reshape(-1, 3, 3) @ np.linalg.inv(start[:, 3:].reshape(-1, 3, 3)))
        spin = 0.5 * np.sum((turned[points.first] + turned[points.second]) * lagged.n, axis=1)
        end_share = signs(lagged) * final_shares(e, self.eps, lagged.n, spin)
        sides = lagged.Y_first, -lagged.Y_second
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
