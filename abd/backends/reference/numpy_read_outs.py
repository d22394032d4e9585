"""What is read back from the definitions' state when a step has ended."""

from __future__ import annotations

import numpy as np

from abd.contact.sharing import RubbingDefinition
from abd.energies import Figures, external_work, kinetic_energy, momenta, orthogonality_error, potential_energies, whirl
from abd.joints.coordinates.readings import Readings
from abd.joints.rows.forces import row_work
from abd.model import Kind


class ReadOuts:
    """Numbers of the current iterate; the part of `NumpyBackend` that the Newton loop does not need."""

    rubbing = RubbingDefinition()

    def smallest_gap(self, exact: bool = True) -> float:
        """Smallest gap among the candidates at the current iterate [m]; infinity without any."""
        return float(self.contacts.gaps(self.q).min(initial=np.inf))

    def island_gaps(self) -> np.ndarray:
        """(islands,) smallest gaps at the current iterate in activations, infinite without any."""
        everything = np.full(self.islands.count, np.inf)
        return self.islands.minima(self._relative(), self.contacts.owners, everything)

    def _relative(self) -> np.ndarray:
        """(m,) gaps of the candidates at the current iterate in activations."""
        return self.contacts.gaps(self.q) / self.contacts.activation

    def pair_gaps(self, exact: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """(k, 2) pairs of bodies that may touch, and their smallest gaps (k,) at the current iterate in activations."""
        candidates = self.contacts.candidates
        pairs, of = np.unique(np.stack([candidates.first, candidates.second], axis=1), axis=0, return_inverse=True)
        gaps = np.full(len(pairs), np.inf)
        np.minimum.at(gaps, of.ravel(), self._relative())
        return np.sort(pairs.reshape(-1, 2), axis=1), gaps

    def contact_count(self) -> int:
        """Active contacts at the current iterate."""
        return int(np.count_nonzero(self._relative() < 1.0))

    def touching(self) -> np.ndarray:
        """(n,) 1 for bodies with an active contact at the current iterate."""
        flags, candidates = np.zeros(self.n, dtype=np.int32), self.contacts.candidates
        active = self._relative() < 1.0
        flags[np.concatenate([candidates.first[active], candidates.second[active]])] = 1
        return flags

    def vertex_speeds(self) -> np.ndarray:
        """(n,) bounds of the speed of every point of a surface in the state [m/s]."""
        far = np.linalg.norm(np.abs(self.surface_corners).max(axis=1), axis=1)
        return np.linalg.norm(self.velocity[:, :3], axis=1) + far * np.linalg.norm(self.velocity[:, 3:], axis=1)

    def figures(self) -> Figures:
        """Of the state that the last step led to."""
        model, q, qd = self.model, self.now, self.velocity
        ch2, applied, memory = self.step.ch2, self.applied, self.memory
        read = Readings(self.reader, self.system, q, qd, self.reader.initial, memory, applied)
        # values before a step are the second row of the history after it
        driven, lost = row_work(self.system, applied, memory.history[1], memory.history[0])
        linear, angular = momenta(model, q, qd)
        return Figures(
            kinetic=kinetic_energy(model, qd),
            **potential_energies(model, q),
            contact=float(self.contacts.energy(q).sum() / ch2),
            joint=float(read.energy.sum()),
            linear=linear,
            angular=angular,
            external_work=external_work(model, self.before, q),
            drive_work=driven,
            friction_work=self._friction_work / ch2 + lost,
            joint_residual=tuple(read.worst_residual.tolist()),
            orthogonality_error=orthogonality_error(q),
            residual_force=float(np.abs(self.potential.gradient[:, :3]).max(initial=0.0) / ch2),
            contacts=self.contact_count(),
            smallest_gap=self.smallest_gap(),
            fastest=float(np.linalg.norm(qd[:, 3:], axis=1).max(initial=0.0)),
            whirl=float(whirl(model, q, qd)[model.bodies.kind == Kind.DYNAMIC].max(initial=0.0)),
        )
