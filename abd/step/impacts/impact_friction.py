"""Friction of impacts (`abd.potentials.sweeps`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse

from abd.contact.pair_rows import keys
from abd.potentials.rolling import tangents
from abd.potentials.sweeps import ConeRows, first_part
from abd.step.impacts.impact_pairs import ImpactPairs, ImpulseRows


@dataclass(frozen=True)
class ImpactFriction:
    """Friction of the m pairs with a coefficient of friction, among k pairs with possible impacts.

    Attributes:
        cones: their rows in a sweep; tangents: (m, 2, 3) unit tangents of the first body's normal.
        rows: 2 m impulses along the tangents, of 1 N s; their powers are slips.
    """

    cones: ConeRows
    tangents: np.ndarray
    rows: ImpulseRows

    @classmethod
    def of(
        cls, part: ImpactPairs, q: np.ndarray, before: np.ndarray, changes: np.ndarray, fresh: np.ndarray
    ) -> ImpactFriction:
        """Return the friction of pairs in states q (n, 12).

        before: (n, 6) twists of the surfaces before the impacts; changes: (n, 6) added to them at `fresh` pairs (k,) bool."""
        pair = np.flatnonzero(part.mu > 0.0)
        pairs, normal = part.pairs[pair], part.impulses[pair, 0, :3]
        length = np.linalg.norm(normal, axis=1, keepdims=True)  # zero where forces of two bodies on each other cancel
        normal = np.where(length > 0.0, normal, (0.0, 0.0, 1.0)) / np.where(length > 0.0, length, 1.0)
        across = tangents(normal)
        both = np.stack([across, np.cross(normal, across)], axis=1)
        arm = part.points[pair] - q[pairs, :3]
        lever = np.concatenate(np.broadcast_arrays(both[:, :, None], np.cross(arm[:, None], both[:, :, None])), axis=3)
        lever[:, :, 1] *= -1.0
        rows = ImpulseRows(np.repeat(pairs, 2, axis=0), lever.reshape(-1, 2, 6))
        spent = (both @ part.friction[pair][:, :, None])[:, :, 0]
        slip = rows.powers(before) + np.where(np.repeat(fresh[pair], 2), rows.powers(changes), 0.0)
        cones = ConeRows(pair, part.mu[pair] * part.size[pair], spent, slip.reshape(-1, 2), keys(pairs, len(q)))
        return cls(cones, both, rows)

    def on_first(self, impulses: np.ndarray, count: int) -> np.ndarray:
        """Return impulses (count, 3) on the first bodies of all pairs from friction impulses (2 m,) [N s]."""
        out = np.zeros((count, 3))
        out[self.cones.pair] = (impulses.reshape(-1, 1, 2) @ self.tangents)[:, 0]
        return out

    def power(self, step: np.ndarray, given: np.ndarray, added: np.ndarray, count: int) -> np.ndarray:
        """Return (count,) work of the friction of the step with surface twists `step` (n, 6), and of that and the added impulses
        (2 m,) with the twists `given` (n, 6) of prescribed bodies and moving surfaces [J]."""
        each = self.cones.spent.ravel() * self.rows.powers(step) + added * self.rows.powers(given)
        return np.bincount(np.repeat(self.cones.pair, 2), weights=each, minlength=count)

    def work(
        self, A: sparse.csr_matrix, limit: np.ndarray, added: np.ndarray, after: np.ndarray, step: np.ndarray, block: np.ndarray
    ) -> float:
        """Return the work of friction in the impacts minus that in the converged step [J].

        The slip of a point or an edge changes as in a sweep if no other bodies of its block have friction. Otherwise, and on
        faces with three patches, slips follow the impulses.

        Args:
            A: as for a sweep; limit: (m,) of the impacts [N s]; added: (2 m,) impulses in addition to those of the step.
            after, step: (2 m,) slips after the impacts and in the step [m/s]; block: (m,) numbers of the pairs' blocks."""
        cones, after, step = self.cones, after.reshape(-1, 2), step.reshape(-1, 2)
        total = cones.spent + added.reshape(-1, 2)
        most = limit[:, None] * cones.directions
        opposed = after - (cones.of_bodies(A) @ (total + most).ravel()).reshape(-1, 2)
        _, any_patch, place, patches = np.unique(cones.bodies, return_index=True, return_inverse=True, return_counts=True)
        is_alone = np.bincount(block[any_patch])[block] == 1
        is_path = is_alone & (patches[place] < 3) & added.reshape(-1, 2).any(axis=1)
        part = np.where(is_path[:, None], first_part(cones.before, opposed), 0.0)
        first, middle = -part * most, cones.before + part * (opposed - cones.before)
        each = first * (cones.before + middle) + (total - first) * (middle + after)
        return float((0.5 * each - cones.spent * step).sum())
