"""Contact and friction forces in one state, point by point.

Forces are minus the derivatives of the energies that the step minimises, so that action equals reaction and a converged
state balances all other loads. With the contact set of local minima (`abd.contact.minima`) some distances have negative
weights in concave regions. The force of a single point may then be attractive; their sum over the pair is not. Nearly
parallel edges also exert a couple, which is part of the wrench of the pair.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.sparse import csr_matrix

from abd.contact.candidates import Candidates, contacts
from abd.contact.minima import find_minima
from abd.contact.pair_law import PairLaw
from abd.contact.pair_rows import keys
from abd.contact.pairs import Pairs
from abd.contact.surfaces import Surfaces
from abd.contact.topology import Topology
from abd.model import Model
from abd.potentials.contact import FIRST, ContactParameters, closest, contact_elements
from abd.potentials.elements import body_gradient
from abd.potentials.free_motion import torque
from abd.potentials.friction import f1_over_y
from abd.potentials.sticking import nearest
from abd.tables import Table
from cuda_kernels.shared.contact import SLIDE


@dataclass(frozen=True)
class _Points(Table):
    """Contact points of pairs of bodies with forces."""

    def scaled(self, factor: np.ndarray) -> Self:
        """Return the points with forces and torques times `factor` (k,)."""
        each = {name: factor[:, None] * getattr(self, name) for name in ("force", "torque_i", "torque_j")}
        return replace(self, **each)


@dataclass(frozen=True)
class Pressing(_Points):
    """c contact points with a normal force.

    Attributes:
        pair: (c, 2) bodies i, j; point: (c, 3) midway between the two surfaces [m]; normal: (c, 3) from j to i; gap:
            (c,) [m].
        force: (c, 3) on i [N], its negative on j; torque_i, torque_j: (c, 3) about the centres of mass of both,
            including couples of parallel edges, 0 on a half-space [N m].
    """

    pair: np.ndarray
    point: np.ndarray
    normal: np.ndarray
    gap: np.ndarray
    force: np.ndarray
    torque_i: np.ndarray
    torque_j: np.ndarray

    @property
    def load(self) -> np.ndarray:
        """(c,) normal forces [N], negative where a point attracts."""
        return np.einsum("ci,ci->c", self.force, self.normal)

    @classmethod
    def nothing(cls) -> Pressing:
        """Empty set of points."""
        vectors = np.zeros((0, 3))
        return cls(np.zeros((0, 2), dtype=np.int64), vectors, vectors, np.zeros(0), vectors, vectors, vectors)


@dataclass(frozen=True)
class FrictionPoints(_Points):
    """l friction points, as lagged in the last Newton iterations of a step.

    Attributes:
        pair: (l, 2) bodies i, j; kind: (l,) resisted motion (`abd.potentials.rolling`); all but `SLIDE` are couples.
        point: (l, 3) of the material of i [m]; load: (l,) mu times the normal force [N].
        force: (l, 3) on i [N], its negative on j; slip: (l, 3) velocity of i relative to j [m/s]; torque_i, torque_j:
            (l, 3) about the centres of mass of both, 0 on a half-space [N m].
    """

    pair: np.ndarray
    kind: np.ndarray
    point: np.ndarray
    load: np.ndarray
    force: np.ndarray
    slip: np.ndarray
    torque_i: np.ndarray
    torque_j: np.ndarray

    @classmethod
    def nothing(cls) -> FrictionPoints:
        """Empty set of points."""
        vectors, pair = np.zeros((0, 3)), np.zeros((0, 2), dtype=np.int64)
        return cls(pair, np.zeros(0, dtype=np.int32), vectors, np.zeros(0), vectors, vectors, vectors, vectors)

    def at_points(self, pair: np.ndarray, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Friction (c, 3) [N] on the first bodies at points (c, 3) of pairs (c, 2), and slips (c, 3) in the unit of `slip`.

        Every friction force acts at the nearest point of its pair; slips are means weighted by load. Friction is lagged in the
        last Newton iterations of a step, whereas the points are those of its end and may have moved in between.
        """
        n = 1 + max(pair.max(initial=0), self.pair.max(initial=0))
        row = nearest(keys(pair, n), point, keys(self.pair, n), self.point)
        used, weight = np.flatnonzero((row >= 0) & (self.kind == SLIDE)), np.abs(self.load)
        values = np.column_stack([self.force, weight, weight[:, None] * self.slip])
        total = csr_matrix((np.ones(len(used)), (row[used], used)), shape=(len(pair), len(row))) @ values
        return total[:, :3], total[:, 4:] / np.where(total[:, 3] > 0.0, total[:, 3], 1.0)[:, None]


def pressing(
    model: Model, surfaces: Surfaces, topology: Topology | None, law: PairLaw, pairs: Pairs, found: Candidates, q: np.ndarray
) -> Pressing:
    """Active contacts of candidates in the state q (n, 12); `topology` is None for the contact set "ipc"."""
    listed = contacts(model, surfaces, pairs, found)
    parts = listed
    if topology is not None:
        minima = find_minima(surfaces, topology, pairs, found, listed)
        parts = minima.contacts
    i, j = parts.first.astype(np.int64), parts.second.astype(np.int64)
    activation = law.activation(i, j)
    rule = ContactParameters(law.stiffness(i, j, activation, parts.xi), activation, law.barrier)
    weights = None if topology is None else minima.weights(q, rule)
    x = parts.positions(q)
    elements = contact_elements(x, parts, rule, weights=weights)
    source, place = np.unique(elements.source, return_inverse=True)
    on_i, on_j = np.zeros((2, len(source), 12))
    for total, f, Y in ((on_i, elements.f_i, elements.Y_i), (on_j, elements.f_j, elements.Y_j)):
        np.add.at(total, place, -body_gradient(f, Y))
    parts, near = parts[source], closest(x[source], parts[source])
    distance = np.sqrt(near.D)
    toward_first = near.r / distance[:, None]
    side = np.where(parts.flipped, -1.0, 1.0)[:, None]
    at_first = np.einsum("mk,mki->mi", FIRST[parts.stencil] * near.w, x[source])
    gap, radius = distance - parts.xi, model.bodies.radius
    inner = radius[parts.first.astype(np.int64)] + 0.5 * (gap + model.settings.minimum_separation)
    pair = np.stack([parts.first, parts.second], axis=1).astype(np.int64)
    pair = np.where(parts.flipped[:, None], pair[:, ::-1], pair)
    return Pressing(
        pair=pair,
        point=at_first - inner[:, None] * toward_first,
        normal=side * toward_first,
        gap=gap,
        force=on_i[:, :3],
        torque_i=wrenches(on_i, q[pair[:, 0]])[:, 3:],
        torque_j=wrenches(on_j, q[pair[:, 1]])[:, 3:],
    )


def friction_points(
    pair, kind, n, Y_i, Y_j, start_stretch, load, rest, q: np.ndarray, eps: np.ndarray, eps_v: float
) -> FrictionPoints:
    """Forces of lagged friction in the state q (n, 12).

    Args:
        pair: (l, 2); kind: (l,) resisted motion; n: (l, 3) unit normals; Y_i, Y_j: (l, 4) homogeneous rest coordinates;
            start_stretch: (l, 3) stretch at the start of the step, over eps; load: (l,) mu lambda [N].
        rest: (n, 12) reference of slips; eps: (l,) static slip limit [m]; eps_v: static speed limit [m/s].
    """
    i, j = pair.T
    moved = _points(q - rest, i, Y_i) - _points(q - rest, j, Y_j)
    u = moved - np.einsum("li,li->l", moved, n)[:, None] * n
    stretch = u + eps[:, None] * start_stretch
    force = -(load * f1_over_y(np.linalg.norm(stretch, axis=1), eps))[:, None] * stretch
    torque_i, torque_j = np.cross(_arms(q, i, Y_i), force), -np.cross(_arms(q, j, Y_j), force)
    sliding = (kind == SLIDE)[:, None]
    # rolling and spinning resistance are couples
    slip = sliding * (eps_v / eps)[:, None] * u
    return FrictionPoints(pair, kind, _points(q, i, Y_i), load, sliding * force, slip, torque_i, torque_j)


def impact_friction(pair: np.ndarray, points: np.ndarray, force: np.ndarray, q: np.ndarray) -> FrictionPoints:
    """Points with the friction of impacts: forces (k, 3) [N] on the first bodies of pairs (k, 2), at points (k, 2, 3) [m].

    They have no load, so that the mean slips of pairs are those of the other points."""
    arm = points - q[pair, :3]
    torque_i, torque_j = np.cross(arm[:, 0], force), -np.cross(arm[:, 1], force)
    k = len(pair)
    return FrictionPoints(pair, np.full(k, SLIDE), points[:, 0], np.zeros(k), force, np.zeros((k, 3)), torque_i, torque_j)


def _points(q: np.ndarray, body: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """(l, 3) ``y0 p + A Y`` of the bodies (l,)."""
    return Y[:, :1] * q[body, :3] + _arms(q, body, Y)


def _arms(q: np.ndarray, body: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """(l, 3) ``A Y`` of the bodies (l,)."""
    return np.einsum("lij,lj->li", q[body, 3:].reshape(-1, 3, 3), Y[:, 1:])


def wrenches(forces: np.ndarray, q: np.ndarray) -> np.ndarray:
    """(k, 6) forces [N] and torques about the centres of mass [N m] from generalised forces (k, 12) in states q (k,
    12).
    """
    F, A = (one[:, 3:].reshape(-1, 3, 3) for one in (forces, q))
    return np.concatenate([forces[:, :3], torque(F, A)], axis=1)
