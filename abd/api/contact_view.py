"""`Contacts`: contact points and contact forces in the current state.

    contacts = sim.contacts()                       # all contacts, of one body, or between two
    contacts.point, contacts.force                  # (c, 3) arrays, one row per point
    for patch in contacts.patches(): ...            # one per pair of bodies in contact; arrays too: .pair, .force, .center

Forces are means over the last step (`abd.step.frame_forces`): times its length, they are the impulses, those of impacts included.
Forces on both bodies cancel, and balance gravity, joints and inertia to the solver's tolerance. A step that took several substeps
has the points of all of them, each with its fraction of the force. In a state without a previous step (the start, a state that
was set, a checkpoint), normal forces follow from the gaps, and friction is zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from abd.api.contact_patches import PairTable, Patches
from abd.contact.forces import FrictionPoints, Pressing
from abd.contact.pair_rows import PairRows
from abd.model import Model
from cuda_kernels.shared.contact import SLIDE


@dataclass(frozen=True)
class ContactPoint:
    """One contact point.

    Attributes:
        bodies: names of the first and the second body; point: (3,) [m]; normal: (3,) from the second to the first.
        gap: [m]; normal_force: [N], negative only at concave edges; friction: (3,) on the first body [N].
        slip: (3,) surface velocity of the first body relative to the second [m/s]; sticks: slip below `solver.eps_v`.
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
        """(3,) force on the first body [N]."""
        return self.normal_force * self.normal + self.friction


class Contacts(PairTable):
    """Contact points as arrays with one row per point.

    Attributes:
        pair: (c, 2) indices of the first and the second body; point: (c, 3) midway between the surfaces [m].
        normal: (c, 3) unit vectors from the second to the first body; gap: (c,) [m].
        normal_force: (c,) [N].
    """

    COLUMNS = ("point", "normal", "gap", "normal_force", "friction", "slip", "sticks")

    def __init__(self, model: Model, q: np.ndarray, pressing: Pressing, friction: FrictionPoints):
        self._model, self._q, self._pressing, self._friction = model, q, pressing, friction
        self.names = model.bodies.names
        self.pair, self.point, self.normal, self.gap = pressing.pair, pressing.point, pressing.normal, pressing.gap
        self.normal_force = pressing.load

    @property
    def friction(self) -> np.ndarray:
        """(c, 3) friction on the first body [N]."""
        return self._friction_and_slip[0]

    @property
    def slip(self) -> np.ndarray:
        """(c, 3) surface velocity of the first body relative to the second [m/s]."""
        return self._friction_and_slip[1]

    @cached_property
    def sticks(self) -> np.ndarray:
        """(c,) bool, whether the slip is below `solver.eps_v`."""
        return np.linalg.norm(self.slip, axis=1) < self._model.settings.eps_v

    @cached_property
    def _friction_and_slip(self) -> tuple[np.ndarray, np.ndarray]:
        """Friction and slip (c, 3); each friction force is assigned to the nearest point of its pair."""
        return self._friction.at_points(self.pair, self.point)

    @cached_property
    def _rows(self) -> PairRows:
        """Rows of the contact points, then of the friction points, by pair."""
        return PairRows(np.concatenate([self.pair, self._friction.pair]), len(self._q))

    def __repr__(self) -> str:
        return f"<{len(self)} contact points of {len(self._rows.key)} pairs of bodies>"

    def __getitem__(self, k: int) -> ContactPoint:
        names = tuple(self.names[body] for body in self.pair[k].tolist())
        return ContactPoint(
            names, self.point[k], self.normal[k], float(self.gap[k]), float(self.normal_force[k]),
            self.friction[k], self.slip[k], bool(self.sticks[k]),
        )  # fmt: skip

    def __iter__(self) -> Iterator[ContactPoint]:
        return (self[k] for k in range(len(self)))

    @property
    def force(self) -> np.ndarray:
        """(c, 3) force on the first body [N]."""
        return self.normal_force[:, None] * self.normal + self.friction

    @cached_property
    def _wrenches(self) -> np.ndarray:
        """(k, 9) force on the first body and torques on both bodies about their centres of mass, by pair."""
        parts = [np.column_stack([one.force, one.torque_i, one.torque_j]) for one in (self._pressing, self._friction)]
        total = self._rows.sums(np.concatenate(parts))
        # a half-space gets the opposite wrench about its own origin
        q, (i, j) = self._q, self._rows.pairs.T
        k = np.flatnonzero(np.isfinite(self._model.bodies.plane[j]).all(axis=1))
        total[k, 6:] = -total[k, 3:6] - np.cross(q[i[k], :3] - q[j[k], :3], total[k, :3])
        return total

    @cached_property
    def on_bodies(self) -> np.ndarray:
        """(n, 6) force and torque about the centre of mass of these contacts on each body, in world axes [N, N m]."""
        (i, j), wrench, out = self._rows.pairs.T, self._wrenches, np.zeros((len(self._q), 6))
        np.add.at(out, i, wrench[:, :6])
        np.add.at(out, j, np.column_stack([-wrench[:, :3], wrench[:, 6:]]))
        return out

    def between(self, body: int, other: int | None = None) -> Contacts:
        """Return the contacts of one body, or between two bodies."""

        def among(points: Pressing | FrictionPoints):
            of_body = (points.pair == body).any(axis=1)
            return points[of_body if other is None else of_body & (points.pair == other).any(axis=1)]

        return Contacts(self._model, self._q, among(self._pressing), among(self._friction))

    def patches(self) -> Patches:
        """Return one patch per pair of bodies, as arrays and as `ContactPatch` objects."""
        rows, points, pairs, count = self._rows, self._friction, self._rows.pairs, len(self)
        size, slides = np.abs(self.normal_force)[:, None], (points.kind == SLIDE)[:, None]
        normal = np.column_stack([size, size * self.point, np.zeros((count, 7))])
        tangential = np.column_stack([np.zeros((len(points), 4)), slides, slides * points.point, points.force])
        sums = rows.sums(np.concatenate([normal, tangential]))
        # pairs without normal forces: mean of the sliding points
        mean = np.where(sums[:, :1] > 0.0, sums[:, :4], sums[:, 4:8])
        center, force, friction = mean[:, 1:] / mean[:, :1], self._wrenches[:, :3], sums[:, 8:]
        order = rows.taken(np.arange(rows.count))

        def reduced(ufunc: np.ufunc, values: np.ndarray, neutral: float) -> np.ndarray:
            """Reduce values (c,) of the contact points per pair; a pair without contact points gets the neutral value."""
            return rows.reduced(ufunc, np.append(values, np.full(len(points), neutral, dtype=values.dtype)))

        return Patches(
            names=self.names,
            pair=pairs,
            force=force,
            torque=self._wrenches[:, 3:6] + np.cross(self._q[pairs[:, 0], :3] - center, force),
            normal_force=force - friction,
            friction=friction,
            center=center,
            gap=reduced(np.minimum, self.gap, np.inf),
            sticks=reduced(np.logical_and, self.sticks, True),
            count=reduced(np.add, np.ones(count, dtype=int), 0),
            order=order[order < count],
        )
