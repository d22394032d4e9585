"""Energies of single bodies: inertia, external forces, near-rigidity and the pull of prescribed poses."""

from __future__ import annotations

import warp as wp

from abd.backends.answers import NO_PAIRS
from abd.backends.device.device import Device
from abd.backends.warp.iterate import Iterate
from cuda_kernels.bodies import bodies, poses
from cuda_kernels.linear.couplings import Coupling


class Bodies:
    """The first term: it sets what others add to.

    Attributes:
        energy: (n,) of the slots.
        constant: (n, 12, 12) blocks that stay from step to step, those of linear joint rows.
    """

    ties = NO_PAIRS

    def __init__(self, n: int, device: Device):
        self.n, self.device = n, device
        self.constant: wp.array | None = None
        self.energy = {slot: device.zeros(n, wp.float64) for slot in ("current", "trial")}

    def evaluate(self, at: Iterate, slot: str) -> None:
        """External work counts from the iterate."""
        self.device.launch(
            bodies.body_energies, self.n, at.body, at.step, at.current, at.pose(slot), at.done, self.energy[slot]
        )

    def exchange(self, at: Iterate) -> None:
        """Exchange the slots; the iterate, from which work counts, is another one."""
        self.device.launch(poses.exchange_values, self.n, self.energy["current"], self.energy["trial"])
        self.evaluate(at, "current")

    def add_differences(self, at: Iterate, difference: wp.array, size: wp.array) -> None:
        """Set both."""
        states = at.current, at.trial, self.energy["current"], self.energy["trial"]
        self.device.launch(bodies.body_differences, self.n, at.body, at.step, *states, difference, size)

    def add_to(self, at: Iterate, gradient: wp.array, diagonal: wp.array) -> None:
        """Set both."""
        self.device.launch(
            bodies.linearize_bodies,
            self.n, at.body, at.step, at.current, at.done, self.constant, gradient, diagonal, grain=128,
        )  # fmt: skip

    @property
    def couplings(self) -> list[tuple[Coupling, int]]:
        """None."""
        return []
