"""Energies of single bodies: inertia, external forces, stiffness of the affine map and penalty of target poses."""

from __future__ import annotations

import warp as wp

from abd.backends.device.device import Device
from abd.backends.warp.iterate import Iterate
from cuda_kernels.bodies import bodies, poses


class Bodies:
    """First term of the potential: it sets the outputs to which the other terms add.

    Attributes:
        energy: (n,) energies by slot.
        constant: (n, 12, 12) constant diagonal blocks of linear joint rows.
    """

    def __init__(self, n: int, device: Device, at: Iterate):
        self.n, self.device, self.at = n, device, at
        self.constant: wp.array | None = None
        self.energy = {slot: device.zeros(n, wp.float64) for slot in ("current", "trial")}

    def evaluate(self, at: Iterate, slot: str) -> None:
        """Evaluate the energies; external work is relative to the iterate."""
        self.device.launch(
            bodies.body_energies, self.n, at.body, at.step, at.current, at.pose(slot), at.done, self.energy[slot]
        )

    def exchange(self) -> None:
        """Exchange the slots and evaluate the new iterate, to which external work is relative."""
        self.device.launch(poses.exchange_values, self.n, self.energy["current"], self.energy["trial"])
        self.evaluate(self.at, "current")

    def add_differences(self, difference: wp.array, size: wp.array) -> None:
        """Set difference and size (n,)."""
        at = self.at
        states = at.current, at.trial, self.energy["current"], self.energy["trial"]
        self.device.launch(bodies.body_differences, self.n, at.body, at.step, *states, difference, size)

    def add_to(self, at: Iterate, gradient: wp.array, diagonal: wp.array) -> None:
        """Set gradient (n, 12) and diagonal (n, 12, 12)."""
        self.device.launch(
            bodies.linearize_bodies,
            self.n, at.body, at.step, at.current, at.done, self.constant, gradient, diagonal, grain=128,
        )  # fmt: skip
