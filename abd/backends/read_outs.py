"""What is read back from the kernels' state when a step has ended."""

from __future__ import annotations

import numpy as np

from cuda_kernels import integrators, sums


class ReadOuts:
    """Numbers of the current iterate; the part of `WarpBackend` that the Newton loop does not need."""

    def smallest_gap(self, exact: bool = True) -> float:
        """Smallest gap among the listed candidates at the current iterate [m], infinite if there are none.

        Without `exact`, a gap beyond d_hat may be a lower bound.
        """
        self.know_contacts()
        gap = self.contacts.smallest_gap()
        if exact and self.d_hat < gap < np.inf:
            # beyond d_hat the gaps may be bounds
            self.contacts.evaluate(self.pose, "current")
            gap = self.contacts.smallest_gap()
        return gap

    def island_gaps(self) -> np.ndarray:
        """(islands,) smallest gaps [m] at the current iterate, infinite without any; beyond d_hat lower bounds."""
        self.know_contacts()
        if self.contacts.candidates.count == 0:
            return np.full(self.islands.count, np.inf)
        return self.islands.reduced(self.contacts.body_gaps(), sums.MIN)

    def contact_count(self) -> int:
        """Active contacts at the current iterate."""
        self.know_contacts()
        return int(np.count_nonzero(self.contacts.active())) if self.contacts.candidates.count else 0

    def contact_storage(self) -> dict[str, int]:
        """Largest number of candidates so far, and bytes that contact and friction take on the device."""
        return {"peak_candidates": self.contacts.candidates.peak, "bytes": self.contacts.bytes + self.friction.bytes}

    def touching(self) -> np.ndarray:
        """(n,) 1 for bodies with an active contact at the current iterate."""
        self.know_contacts()
        return self.contacts.touching()

    def residual_force(self) -> float:
        """Largest force left on a body's centre of mass at the last linearisation [N]."""
        g = self.device.read(self.gradient)
        return float(np.abs(g[:, :3]).max() / self.step.ch2) if self.n else 0.0

    def strain(self) -> float:
        """Largest |A A^T - 1|_F."""
        a = self.values["a"]
        self.device.launch(integrators.strain, self.n, self.pose, a)
        return float(self.device.read(a).max()) if self.n else 0.0

    def contact_energy(self) -> float:
        """Barrier energy at the current iterate [J]."""
        self.know_contacts()
        count = self.contacts.candidates.count
        return (
            float(self.device.read(self.contacts.arrays("current")[0], count).sum() / self.step.ch2) if count else 0.0
        )

    def friction_work(self) -> float:
        """Work of friction in the last (sub)step, times c h^2."""
        return self._friction_work

    def device_positions(self):
        """Device array (n, 12) of the current state."""
        self.device.launch(integrators.pack, self.n, self.pose, self.q)
        return self.q
