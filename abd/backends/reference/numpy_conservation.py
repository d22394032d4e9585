"""Energy and momenta of conservative mechanisms over smooth steps, by the definition `abd.potentials.conservation`."""

from __future__ import annotations

import numpy as np

from abd.backends.body_data import BodyData
from abd.backends.reference.numpy_bodies import maps, positions, state
from abd.joints.closure.symmetries import symmetries
from abd.joints.rows.system import JointSystem
from abd.model import Model
from abd.potentials import arap, orthogonality
from abd.potentials.conservation import Moving, balance
from abd.potentials.integrators import Mode


class Conservation:
    """Mechanisms of one scene with a joint system."""

    def __init__(self, model: Model, data: BodyData, system: JointSystem):
        self.data, self.gravity, self.found = data, np.asarray(model.settings.gravity, dtype=float), symmetries(model, system)

    def correct(
        self, mode: np.ndarray, h: float | np.ndarray, gained: np.ndarray, before: np.ndarray, now: np.ndarray,
        earlier: np.ndarray, velocity: np.ndarray, owed: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Velocities (n, 12) at the end of a step of h [s], of all or (n,), between two states, and what is owed (n,), as they
        become.

        Args:
            mode: (n,) `Mode` of the bodies; gained: (n,) energy that joint rows of theirs gained [J]; earlier: (n, 12)
                velocities before the step.
        """
        velocity, owed, data, found = velocity.copy(), owed.copy(), self.data, self.found
        lengths = np.broadcast_to(h, len(owed))
        for k in range(len(found)):
            b = found.bodies[found.starts[k] : found.starts[k + 1]]
            root, due = b[0], owed[b[0]]
            owed[root] = 0.0
            loaded = data.force[b].any() or data.torque[b].any()
            one_mode = (mode[b] == mode[root]).all() and mode[root] > Mode.TOUCHING
            if loaded or not one_mode or not np.isfinite([due, *gained[b]]).all():
                continue
            mass, moment, fresh = data.mass[b], data.moment[b], mode[root] == Mode.FRESH
            moves = np.concatenate([mass[:, None]] * 3 + [moment] * 3, axis=1)
            change = gained[b].sum() + 0.5 * np.sum(moves * (velocity[b] - earlier[b]) * (velocity[b] + earlier[b]))
            change -= float(mass @ (positions(now)[b] - positions(before)[b]) @ self.gravity)
            change += self._strained(b, maps(before)[b], maps(now)[b], fresh)
            ends = [
                Moving(positions(q)[b], maps(q)[b], positions(rate)[b], maps(rate)[b])
                for q, rate in ((before, earlier), (now, velocity))
            ]
            twists = found.twists[k, : found.count[k]]
            due = None if fresh else due
            own = found.own[found.starts[k] : found.starts[k + 1]]
            balanced = balance(mass, moment, own, *ends, change, twists, bool(found.free[k]), self.gravity, lengths[root], due)
            velocity[b], owed[root] = state(*balanced.velocities(ends[1], own)), balanced.owed
        return velocity, owed

    def _strained(self, b: np.ndarray, before: np.ndarray, now: np.ndarray, fresh: bool) -> float:
        """What the strain of some bodies stores in a step between maps (k, 3, 3), as `fresh` ones count it [J]."""
        other = (self.data.arap[b] != 0)[:, None, None]
        old, new = (np.where(other, arap.strain(A), orthogonality.strain(A)) for A in (before, now))
        force = 2.0 * new if fresh else new + old
        return float(self.data.stiffness[b] @ np.sum(force * (new - old), axis=(1, 2)))
