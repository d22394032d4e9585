"""Step statistics and contact data that the host reads after a step."""

from __future__ import annotations

import numpy as np

from abd.backends.device.totals import Section
from abd.contact.forces import Pressing
from abd.energies import StepStatistics
from cuda_kernels.joints import row_memory
from cuda_kernels.step import statistics

SECTIONS = {
    "bodies": Section(statistics.BODY_FIGURES, statistics.BODY_SUMS),
    "linear": Section(3, statistics.ROW_SUMS),
    "measured": Section(5, row_memory.ROW_SUMS),
    "contact": Section(4, statistics.CONTACT_SUMS),
    "friction": Section(1, 1),
}


class Readings:
    """Implementation of `abd.backends.protocol.Readings`; totals: sums over a step."""

    def __init__(self, backend):
        self.backend, self.device, self.at, self.totals = backend, backend.device, backend.at, backend.totals
        self.contacts = backend.contacts

    def contact_statistics(self) -> tuple[float, int, float]:
        count = self.contacts.candidates.count
        energy, gap = self.device.read_all(*((one, count) for one in self.contacts.arrays("current")[:2]))
        return float(energy.sum()), int(np.count_nonzero(gap < 1.0)), self.contacts.smallest_gap()

    def pressing(self) -> Pressing:
        self.backend.potential.evaluate_contacts()
        return self.contacts.pressing(self.at.current)

    def frozen_friction(self) -> tuple[np.ndarray, ...]:
        b = self.backend
        *where, load = b.friction.frozen(self.at.eps)
        rest = self.device.read(b.states.packed(self.at.rest, b.scratch.vectors))  # `q` must not change
        return *where, load / self.at.ch2[where[0][:, 0]], rest

    def vertex_speeds(self) -> np.ndarray:
        b, out = self.backend, self.backend.scratch.a
        self.device.launch(statistics.vertex_speeds, b.n, *b.trial_path.surface_box, b.states.velocity, out)
        return self.device.read(out)

    def statistics(self) -> StepStatistics:
        self.backend.potential.evaluate_contacts()
        c = self.contacts.candidates
        has_contacts = c.count > 0
        (self.totals.fill if has_contacts else self.totals.leave_empty)("contact")
        c.graphs.run(("statistics", has_contacts), lambda: self._launch_all(has_contacts))
        return self.statistics_of(self.totals.read())

    def _launch_all(self, has_contacts: bool) -> None:
        """Compute statistics of bodies, and of contacts if any is listed; launches only."""
        c = self.contacts.candidates
        self.launch_statistics()
        self.backend.touch.mark_touching(self.totals.flags)
        if has_contacts:
            known = *self.contacts.arrays("current")[:2], self.contacts.surfaces.between, self.contacts.law.kappa
            extent = self.device.extent(c.count, c.capacity)
            self.totals.launch("contact", statistics.contact_statistics, extent, c.listed, *known)

    def launch_statistics(self) -> None:
        """Compute statistics of bodies; launches only."""
        b, at, states = self.backend, self.at, self.backend.states
        self.totals.launch(
            "bodies", statistics.body_statistics, b.n,
            at.body, at.step, at.current, states.before, states.earlier, states.velocity, b.scheme.of, b.scheme.motion,
            b.potential.gradient,
        )  # fmt: skip

    def statistics_of(self, found: dict[str, list[float]]) -> StepStatistics:
        """Build `StepStatistics` from totals that the host has read."""
        self.backend.touch.touched = self.totals.flagged
        body, linear, measured, contact = found["bodies"], found["linear"], found["measured"], found["contact"]
        gap, host = -contact[2], self.totals.host  # bodies come first
        if gap < -contact[3]:
            # stored gaps of inactive contacts may be lower bounds
            self.contacts.evaluate(self.at, "current")
            gap = self.contacts.smallest_gap()
        return StepStatistics(
            kinetic=body[0],
            gravity=body[7],
            elastic=body[8],
            contact=contact[0],
            joint=linear[0] + measured[0],
            linear=host[1:4],
            angular=host[4:7],
            external_work=body[9],
            drive_work=measured[1],
            friction_work=found["friction"][0] + measured[2],
            joint_residual=(max(linear[1], measured[3], 0.0), max(linear[2], measured[4], 0.0)),
            orthogonality_error=max(body[10], 0.0),
            residual_force=max(body[11], 0.0),
            contacts=int(contact[1]),
            smallest_gap=gap,
            fastest=max(body[12], 0.0),
        )
