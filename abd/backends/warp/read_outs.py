"""What is read back from the kernels' state when a step has ended."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from abd.backends.device.totals import Section, Totals
from abd.backends.warp.terms.rubbing import RubbingReader
from abd.contact.forces import Pressing
from abd.energies import Figures
from cuda_kernels.bodies import figures
from cuda_kernels.joints import row_memory
from cuda_kernels.parallel import sums
from cuda_kernels.step import whole_step

SECTIONS = {
    "bodies": Section(figures.BODY_FIGURES, figures.BODY_SUMS),
    "linear": Section(3, figures.ROW_SUMS),
    "measured": Section(5, row_memory.ROW_SUMS),
    "contact": Section(4, figures.CONTACT_SUMS),
    "friction": Section(1, 1),
}


class ReadOuts:
    """Numbers of the current iterate; the part of `WarpBackend` that the Newton loop does not need."""

    def _open_read_outs(self) -> None:
        """Room for the sums."""
        self.totals = Totals(self.device, SECTIONS, flags=self.n, numbers=whole_step.TOLD)
        self.touched: np.ndarray | None = None

    def smallest_gap(self, exact: bool = True) -> float:
        """Smallest gap among the listed candidates at the current iterate [m], infinite if there are none.

        Without `exact`, the gap of a contact that does not act may be a lower bound.
        """
        self.potential.know_contacts()
        gap, bound = self.contacts.smallest_gap()
        return self._exact_gap() if exact and bound else gap

    def _exact_gap(self) -> float:
        """The smallest gap [m] where that of a contact that does not act is smallest: such gaps may be bounds."""
        self.contacts.evaluate(self.at, "current")
        return self.contacts.smallest_gap()[0]

    def pair_gaps(self, exact: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """(k, 2) pairs of bodies that may touch, and their smallest gaps (k,) at the current iterate in activations.

        Without `exact`, gaps beyond 1 may be lower bounds.
        """
        self.potential.know_contacts()
        if exact:
            self.contacts.evaluate(self.at, "current")
        return self.contacts.pair_gaps()

    def island_gaps(self) -> np.ndarray:
        """(islands,) smallest gaps at the current iterate, in activations, infinite without any; beyond 1 lower bounds."""
        self.potential.know_contacts()
        if self.contacts.candidates.count == 0:
            return np.full(self.islands.count, np.inf)
        return self.islands.reduced(self.contacts.body_gaps(), sums.MIN)

    def contact_count(self) -> int:
        """Active contacts at the current iterate."""
        self.potential.know_contacts()
        return int(np.count_nonzero(self.contacts.active())) if self.contacts.candidates.count else 0

    def contact_storage(self) -> dict[str, int]:
        """Largest number of candidates so far, and bytes that contact and friction take on the device."""
        return {"peak_candidates": self.contacts.candidates.peak, "bytes": self.contacts.bytes + self.friction.bytes}

    def pressing(self) -> Pressing:
        """Points at which bodies press on one another at the current iterate."""
        self.potential.know_contacts()
        return self.contacts.pressing(self.pose)

    def frozen_friction(self) -> tuple[np.ndarray, ...]:
        """Of every lagged contact the bodies (l, 2), kind (l,), normal (l, 3), contact points Y_i, Y_j (l, 4), share (l, 3) and
        load (l,) [N], as `abd.potentials.friction.Lagged` has them; and the reference (n, 12) of slips."""
        *where, load = self.friction.frozen()
        rest = self.device.read(self._packed(self.rest, self.vectors))  # others may look at `q`
        return *where, load / self.step.ch2, rest

    @cached_property
    def rubbing(self) -> RubbingReader:
        """Reads friction point by point."""
        return RubbingReader(self.device)

    def touching(self) -> np.ndarray:
        """(n,) 1 for bodies with an active contact at the current iterate."""
        if self.touched is not None:
            return self.touched
        if self.contacts.candidates.count == 0:
            return np.zeros(self.n, dtype=np.int32)
        self.potential.know_contacts()
        self._mark_touching()
        return self.device.read(self.totals.flags)

    def _mark_touching(self) -> None:
        c, flags = self.contacts.candidates, self.totals.flags
        self.device.fill(flags)
        self.device.launch(
            figures.mark_touching,
            c.pair_count, c.pairs, c.segment, self.contacts.arrays("current")[1], flags, grain=512,
        )  # fmt: skip

    def vertex_speeds(self) -> np.ndarray:
        """(n,) bounds of the speed of every point of a surface in the state [m/s]."""
        out = self.values["a"]
        self.device.launch(figures.vertex_speeds, self.n, *self.surface_box, self.velocity, out)
        return self.device.read(out)

    def figures(self) -> Figures:
        """Of the state that the last step led to; joints and friction left theirs in `finish`."""
        self.potential.know_contacts()
        c, between = self.contacts.candidates, self.contacts.surfaces.between
        self.launch_figures()
        self._mark_touching()
        self.totals.launch(
            "contact", figures.contact_figures, c.count, *self.contacts.arrays("current")[:2], c.pairs, c.items, between
        )
        return self.read_figures()

    def launch_figures(self) -> None:
        """Those of the bodies."""
        self.totals.launch(
            "bodies", figures.body_figures, self.n,
            self.body, self.step.gravity, self.pose, self.before, self.velocity, self.potential.gradient,
        )  # fmt: skip

    def read_figures(self) -> Figures:
        """What was launched for `figures`."""
        return self.figures_of(self.totals.read())

    def figures_of(self, found: dict[str, list[float]]) -> Figures:
        """The same of what was read of the totals."""
        ch2, self.touched = self.step.ch2, self.totals.flagged
        body, linear, measured, contact = found["bodies"], found["linear"], found["measured"], found["contact"]
        gap, momenta = -contact[2], self.totals.host[1:7]  # bodies come first
        return Figures(
            kinetic=body[0],
            gravity=body[7],
            elastic=body[8],
            contact=contact[0] / ch2,
            joint=linear[0] / ch2 + measured[0],
            linear=momenta[:3],
            angular=momenta[3:],
            external_work=body[9],
            drive_work=measured[1],
            friction_work=found["friction"][0] / ch2 + measured[2],
            joint_residual=(max(linear[1], measured[3], 0.0), max(linear[2], measured[4], 0.0)),
            orthogonality_error=max(body[10], 0.0),
            residual_force=max(body[11], 0.0) / ch2,
            contacts=int(contact[1]),
            smallest_gap=self._exact_gap() if gap < -contact[3] else gap,
            fastest=max(body[12], 0.0),
            whirl=max(body[13], 0.0),
        )

    def device_positions(self):
        """Device array (n, 12) of the current state."""
        return self._packed(self.pose, self.q)
