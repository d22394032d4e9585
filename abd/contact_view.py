"""`Contacts`: where bodies touch in the present state, and with what forces.

    contacts = sim.contacts()                       # all, or of one body, or between two
    contacts.point, contacts.force                  # (c, 3) arrays, one row per point
    for patch in contacts.patches(): ...            # one per pair of bodies in contact

Forces are the gradients by which the last step converged: normal forces of the contact potential at its end, and the
friction of the normal forces that the step lagged. Those on both bodies cancel; with gravity, joints and inertia they
balance to the solver's tolerance. Where bodies went through a frame in substeps by themselves, they are those of the last
substep of each. In a state that no step led to (the start, a state set by hand, a checkpoint), normal forces are those of
the gaps, and there is no friction. What an impact gave back (restitution) is an impulse besides, and no force.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from abd.contact.forces import Pressing, Rubbing, joined, rubbing, wrenches
from abd.pandas_tables import table_of
from abd.potentials.rolling import RUB

if TYPE_CHECKING:
    import pandas

    from abd.simulation import Simulation
    from abd.solver.step import Frozen

    Chosen = Callable[[np.ndarray], np.ndarray]

FEW = 32
"""Points of a pair up to which the nearest is found by looking at each, and not by a tree."""


@dataclass(frozen=True)
class ContactPoint:
    """One point of contact.

    Attributes:
        bodies: names of the first and the second body; point: (3,) [m]; normal: (3,) from the second to the first.
        gap: [m]; normal_force: [N], negative in the crease of a valley alone; friction: (3,) on the first body [N].
        slip: (3,) velocity of the first body's surface against the second's [m/s]; sticks: slower than `solver.eps_v`.
    """

    bodies: tuple[str, str]
    point: np.ndarray
    normal: np.ndarray
    gap: float
    normal_force: float
    friction: np.ndarray
    slip: np.ndarray
    sticks: bool

    @property
    def force(self) -> np.ndarray:
        """(3,) on the first body [N]."""
        return self.normal_force * self.normal + self.friction


@dataclass(frozen=True)
class ContactPatch:
    """All contact of two bodies.

    Attributes:
        bodies: names of the first and the second body; points: rows of `Contacts`.
        force, torque: (3,) on the first body, the torque about `center` [N, N m]; normal_force: (3,), friction: (3,) shares
            of the force [N]. On the second body act their negatives, and the couple of friction across the gap.
        center: (3,) mean of the points, weighted by the sizes of their normal forces [m]; gap: the smallest [m].
        sticks: no point that carries friction slides.
    """

    bodies: tuple[str, str]
    points: np.ndarray
    force: np.ndarray
    torque: np.ndarray
    normal_force: np.ndarray
    friction: np.ndarray
    center: np.ndarray
    gap: float
    sticks: bool


class Contacts:
    """Points of contact, as arrays of one row per point.

    Attributes:
        pair: (c, 2) indices of the first and the second body; point: (c, 3) midway between the surfaces [m].
        normal: (c, 3) unit vectors from the second to the first body; gap: (c,) [m].
        normal_force: (c,) [N].
    """

    def __init__(self, simulation: Simulation, pressing: Pressing, rubs: Rubs):
        self._simulation, self._pressing, self._rubs = simulation, pressing, rubs
        self.pair, self.point, self.normal, self.gap = pressing.pair, pressing.point, pressing.normal, pressing.gap
        self.normal_force = np.einsum("ci,ci->c", pressing.force, pressing.normal)

    @property
    def friction(self) -> np.ndarray:
        """(c, 3) on the first body [N]."""
        return self._shared[0]

    @property
    def slip(self) -> np.ndarray:
        """(c, 3) velocity of the first body's surface against the second's [m/s]."""
        return self._shared[1]

    @cached_property
    def sticks(self) -> np.ndarray:
        """(c,) bool, slower than `solver.eps_v`."""
        return np.linalg.norm(self.slip, axis=1) < self._simulation.model.settings.eps_v

    @cached_property
    def _shared(self) -> tuple[np.ndarray, np.ndarray]:
        """Friction and slip: every force of friction belongs to the nearest point of its pair, for contact may have moved on
        by what a step brings."""
        rub, speed = self._rubs.points, self._rubs.slip
        row = _nearest(self.pair, self.point, rub.pair, rub.point)
        row[rub.kind != RUB] = -1
        weight = np.abs(rub.load)
        total = summed(row, np.column_stack([rub.force, weight, weight[:, None] * speed]), len(self))
        return total[:, :3], total[:, 4:] / np.where(total[:, 3] > 0.0, total[:, 3], 1.0)[:, None]

    def __len__(self) -> int:
        return len(self.pair)

    def __repr__(self) -> str:
        return f"<{len(self)} points of contact of {len(self._pairs)} pairs of bodies>"

    def __getitem__(self, k: int) -> ContactPoint:
        return ContactPoint(
            self._names(self.pair[k]), self.point[k], self.normal[k], float(self.gap[k]), float(self.normal_force[k]),
            self.friction[k], self.slip[k], bool(self.sticks[k]),
        )  # fmt: skip

    def __iter__(self) -> Iterator[ContactPoint]:
        return (self[k] for k in range(len(self)))

    @property
    def force(self) -> np.ndarray:
        """(c, 3) on the first body [N]."""
        return self.normal_force[:, None] * self.normal + self.friction

    @property
    def bodies(self) -> list[tuple[str, str]]:
        """(c,) names of the first and the second body."""
        return [self._names(pair) for pair in self.pair]

    def to_pandas(self) -> pandas.DataFrame:
        """A table with one row per point and the columns first, second (names), point.x and so on.

        Raises:
            MissingLibrary: pandas is not installed.
        """
        names = np.array(self.bodies, dtype=object).reshape(-1, 2)
        own = ("point", "normal", "gap", "normal_force", "friction", "slip", "sticks")
        return table_of({"first": names[:, 0], "second": names[:, 1], **{name: getattr(self, name) for name in own}})

    def _names(self, pair: np.ndarray) -> tuple[str, str]:
        names = self._simulation.model.bodies.names
        return names[int(pair[0])], names[int(pair[1])]

    @cached_property
    def _pairs(self) -> np.ndarray:
        """(k, 2) pairs that press or rub."""
        n = len(self._simulation.model.bodies)
        keys = np.unique(np.concatenate([_keys(self.pair, n), _keys(self._rubs.points.pair, n)]))
        return np.stack([keys // n, keys % n], axis=1)

    @cached_property
    def _on_bodies(self) -> np.ndarray:
        """(n, 6) force and torque about the centre of mass of all contacts on every body."""
        q, parts = self._rubs.q, (self._pressing, self._rubs.points)
        total = sum(summed(one.pair.T.ravel(), np.concatenate([one.on_i, one.on_j]), len(q)) for one in parts)
        out = wrenches(total, q)
        # what a half-space feels is what it does to others, seen from its own origin
        flat = np.isfinite(self._simulation.model.bodies.plane).all(axis=1)
        for one in parts:
            rows = np.flatnonzero(flat[one.pair[:, 1]])
            i, j = one.pair[rows].T
            felt = -wrenches(one.on_i[rows], q[i])
            felt[:, 3:] += np.cross(q[i, :3] - q[j, :3], felt[:, :3])
            out += summed(j, felt, len(q))
        return out

    def between(self, body: int, other: int | None = None) -> Contacts:
        """Those of one body, or of two."""

        def rows(pair: np.ndarray) -> np.ndarray:
            mine = (pair == body).any(axis=1)
            return np.flatnonzero(mine if other is None else mine & (pair == other).any(axis=1))

        return Contacts(self._simulation, part_of(self._pressing, rows(self.pair)), self._rubs.part(rows))

    def on(self, body: int) -> np.ndarray:
        """(6,) force [N] and torque about the centre of mass [N m] of these contacts on a body, world axes."""
        return self._on_bodies[body]

    def patches(self) -> list[ContactPatch]:
        """One for every pair of bodies."""
        press, rub, q, pairs = self._pressing, self._rubs.points, self._rubs.q, self._pairs
        n, k = len(q), len(pairs)
        if k == 0:
            return []
        known = _keys(pairs, n)
        of_press, of_rub = (np.searchsorted(known, _keys(one.pair, n)) for one in (press, rub))
        size = np.abs(self.normal_force)
        pressed = summed(of_press, np.column_stack([size, size[:, None] * self.point, press.on_i]), k)
        slides = (rub.kind == RUB).astype(float)
        rubbed = summed(of_rub, np.column_stack([slides, slides[:, None] * rub.point, rub.force, rub.on_i]), k)
        # where nothing presses, the middle of what rubs
        mean = np.where(pressed[:, :1] > 0.0, pressed[:, :4], rubbed[:, :4])
        center = mean[:, 1:] / mean[:, :1]
        first = q[pairs[:, 0]]
        wrench = wrenches(pressed[:, 4:] + rubbed[:, 7:], first)
        force, friction = wrench[:, :3], rubbed[:, 4:7]
        torque = wrench[:, 3:] + np.cross(first[:, :3] - center, force)
        gap, sticks = np.full(k, np.inf), np.ones(k, dtype=bool)
        np.minimum.at(gap, of_press, self.gap)
        np.logical_and.at(sticks, of_press, self.sticks)
        order = np.argsort(of_press, kind="stable")
        rows = np.split(order, np.cumsum(np.bincount(of_press, minlength=k))[:-1])
        return [
            ContactPatch(
                bodies=self._names(pairs[m]),
                points=rows[m],
                force=force[m],
                torque=torque[m],
                normal_force=force[m] - friction[m],
                friction=friction[m],
                center=center[m],
                gap=float(gap[m]),
                sticks=bool(sticks[m]),
            )
            for m in range(k)
        ]


class Rubs:
    """What rubbed in the last (sub)steps that led to a state, worked out when it is asked for.

    Args:
        frozen: lagged contacts of each of the steps, as `rubbing` takes them, and eps [m].
        q: (n, 12) the state; eps_v: speed below which friction counts as static [m/s].
        chosen: pairs (l, 2) -> the rows that count; None for all.
    """

    def __init__(self, frozen: tuple[Frozen, ...], q: np.ndarray, eps_v: float, chosen: Chosen | None = None):
        self.q, self._frozen, self._eps_v, self._chosen = q, frozen, eps_v, chosen

    def part(self, chosen: Chosen) -> Rubs:
        """Those of some pairs."""
        return Rubs(self._frozen, self.q, self._eps_v, chosen)

    @property
    def points(self) -> Rubbing:
        """Where, and with what forces."""
        return self._all[0]

    @property
    def slip(self) -> np.ndarray:
        """(l, 3) velocities of slip [m/s]."""
        return self._all[1]

    @cached_property
    def _all(self) -> tuple[Rubbing, np.ndarray]:
        steps = []
        for contacts, eps in self._frozen:
            rows = slice(None) if self._chosen is None else self._chosen(contacts[0])
            *contacts, rest = contacts
            steps.append((rubbing(*(one[rows] for one in contacts), rest, self.q, eps), eps))
        slips = [rub.slip * (self._eps_v / eps) for rub, eps in steps]
        return joined([rub for rub, _ in steps]), np.concatenate([np.zeros((0, 3)), *slips])


def summed(row: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """(count, d) sums of the values (l, d) of every row, in their order; those of row -1 are left out."""
    kept = row >= 0
    where = np.flatnonzero(kept)
    matrix = csr_matrix((np.ones(len(where)), (row[kept], where)), shape=(count, len(row)))
    return matrix @ values


def part_of(one: Pressing | Rubbing, which: np.ndarray) -> Pressing | Rubbing:
    """Some of the points."""
    return type(one)(**{name: value[which] for name, value in vars(one).items()})


def read_contacts(simulation: Simulation) -> tuple[Pressing, Rubs]:
    """What presses and rubs in the present state."""
    stepper = simulation.stepper
    with stepper.listed():
        return simulation.backend.pressing(), Rubs(stepper.rubbing(), stepper.q.copy(), simulation.model.settings.eps_v)


def _keys(pair: np.ndarray, n: int) -> np.ndarray:
    """(c,) one number for every pair (c, 2) of n bodies."""
    return pair[:, 0].astype(np.int64) * n + pair[:, 1]


def _nearest(pair: np.ndarray, point: np.ndarray, asked_pair: np.ndarray, asked_point: np.ndarray) -> np.ndarray:
    """(l,) row of the nearest point of the same pair, -1 where the pair has none."""
    out = np.full(len(asked_pair), -1)
    if not len(pair) or not len(asked_pair):
        return out
    n = int(max(pair.max(), asked_pair.max())) + 1
    key, asked_key = _keys(pair, n), _keys(asked_pair, n)
    order = np.argsort(key, kind="stable")
    first, end = (np.searchsorted(key[order], asked_key, side) for side in ("left", "right"))
    few = end - first <= FEW
    best = np.full(len(out), np.inf)
    for rank in range(int((end - first)[few].max(initial=0))):
        asked = np.flatnonzero(few & (first + rank < end))
        row = order[first[asked] + rank]
        way = point[row] - asked_point[asked]
        distance = np.einsum("li,li->l", way, way)
        closer = distance < best[asked]
        best[asked[closer]], out[asked[closer]] = distance[closer], row[closer]
    if not few.all():
        many, mine = np.flatnonzero(~few), np.isin(key, asked_key[~few])
        # pairs are kept apart by a fourth coordinate that is larger than all distances
        size = 8.0 * max(np.abs(point).max(), np.abs(asked_point).max(), 1e-300)
        tree = cKDTree(np.column_stack([point[mine], size * key[mine]]))
        _, row = tree.query(np.column_stack([asked_point[many], size * asked_key[many]]))
        out[many] = np.flatnonzero(mine)[row]
    return out
