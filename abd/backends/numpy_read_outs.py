"""What is read back from the definitions' state when a step has ended."""

from __future__ import annotations

import numpy as np

from abd.backends.numpy_bodies import maps


class ReadOuts:
    """Numbers of the current iterate; the part of `NumpyBackend` that the Newton loop does not need."""

    def smallest_gap(self, exact: bool = True) -> float:
        """Smallest gap among the candidates at the current iterate [m]; infinity without any."""
        return float(self.contacts.gaps(self.q).min(initial=np.inf))

    def island_gaps(self) -> np.ndarray:
        """(islands,) smallest gaps [m] at the current iterate, infinite without any."""
        everything = np.full(self.islands.count, np.inf)
        return self.islands.minima(self.contacts.gaps(self.q), self.contacts.owners, everything)

    def contact_count(self) -> int:
        """Active contacts at the current iterate."""
        return int(np.count_nonzero(self.contacts.gaps(self.q) < self.d_hat))

    def touching(self) -> np.ndarray:
        """(n,) 1 for bodies with an active contact at the current iterate."""
        flags, candidates = np.zeros(self.n, dtype=np.int32), self.contacts.candidates
        active = self.contacts.gaps(self.q) < self.d_hat
        flags[np.concatenate([candidates.first[active], candidates.second[active]])] = 1
        return flags

    def residual_force(self) -> float:
        """Largest force left on a body's centre of mass at the last linearisation [N]."""
        return float(np.abs(self.gradient[:, :3]).max(initial=0.0) / self.step.ch2)

    def strain(self) -> float:
        """Largest |A A^T - 1|_F."""
        A = maps(self.q)
        return float(np.linalg.norm(A @ A.transpose(0, 2, 1) - np.eye(3), axis=(1, 2)).max(initial=0.0))

    def contact_energy(self) -> float:
        """Barrier energy at the current iterate [J]."""
        return float(self.contacts.energy(self.q).sum() / self.step.ch2)

    def friction_work(self) -> float:
        """Work of friction in the last (sub)step, times c h^2; not positive."""
        return self._friction_work
