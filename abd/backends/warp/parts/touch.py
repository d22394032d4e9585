"""Contacts and friction on a device: candidate list, contact parameters and lagged friction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import warp as wp

from abd.backends.answers import PairLoads
from abd.backends.device.upload import exclude
from abd.contact.pair_law import PairParameters
from abd.contact.pairs import some_may_collide
from cuda_kernels.step import statistics


class Touch:
    """Implementation of `abd.backends.protocol.Touch`.

    Attributes:
        touched: (n,) flags of bodies in contact at the iterate, None if not read.
    """

    def __init__(self, backend):
        self.backend, self.device, self.islands, self.at = backend, backend.device, backend.islands, backend.at
        self.potential, self.contacts, self.friction = backend.potential, backend.contacts, backend.friction
        self.trial_path = backend.trial_path
        self.touched: np.ndarray | None = None

    @property
    def near(self) -> bool:
        return self.contacts.candidates.count > 0

    # candidate list ----------------------------------------------------------------------------------------------

    @property
    def may_collide(self) -> bool:
        return self.contacts.candidates.may_collide

    def list_contacts(self, scale: float = 1.0) -> None:
        islands, trial_path = self.islands, self.trial_path
        self.device.fill(trial_path.moving)
        trial_path.launch_start()
        self.contacts.set_scale(scale)
        self.contacts.candidates.search_all()
        self.contacts.candidates.renew(trial_path.path, 0.0, islands.island, islands.ones)
        self.invalidate()
        self.potential.evaluate_contacts()

    def exclude_pairs(self, pairs: np.ndarray) -> None:
        """Set the pairs of bodies (k, 2) that do not collide and invalidate recorded launches."""
        candidates = self.contacts.candidates
        exclude(candidates.filters, pairs, self.backend.n, self.device)
        candidates.may_collide = candidates.may_touch and some_may_collide(replace(self.backend.model, excluded_pairs=pairs))
        self.device.generation += 1
        self.clear()

    def invalidate(self) -> None:
        """Mark contact energies of the iterate as not evaluated, in settled islands too."""
        self.potential.has_contact_energies = False
        self.clear_touching()
        self.islands.clear_done()

    def clear_touching(self) -> None:
        """Discard the bodies in contact that were read at the iterate."""
        self.touched = None

    def clear(self) -> None:
        """Empty the candidate list and invalidate contact energies."""
        self.contacts.candidates.clear()
        self.invalidate()

    def carry(self, before: tuple[wp.array, ...]) -> None:
        """Update the contact energies of the iterate after the list was rebuilt (`Contacts.carry`).

        `before`: arrays of slot "current" for the previous list. Settled islands become active again."""
        self.clear_touching()
        self.islands.clear_done()
        self.contacts.carry(self.at.current, before)
        self.potential.has_contact_energies = True

    @property
    def is_empty(self) -> bool:
        """Whether no contact is listed or lagged in the step."""
        return self.contacts.candidates.is_empty

    @property
    def builds(self) -> int:
        """Number of rebuilds of the list."""
        return self.contacts.candidates.builds

    @property
    def lists(self) -> tuple[wp.array, wp.array, wp.array]:
        """First pair of every body and first contact of every pair in lagged friction; first listed pair of every body."""
        return self.friction.group, self.friction.segment, self.contacts.candidates.group

    @property
    def capacities(self) -> tuple[wp.array | int, ...]:
        """Needed (2,) and present capacities for pairs and runs in the sums of contacts, and of friction; needed (1,) and present
        capacity for lagged contacts."""
        sums_ = ((r.needed, r.pair_capacity, r.run_capacity) for r in (self.contacts.reduction, self.friction.reduction))
        return *next(sums_), *next(sums_), self.friction.needed, self.friction.capacity

    def grow(self, pairs: int, runs: int, frictional_pairs: int, frictional_runs: int, frozen: int) -> None:
        """Increase the capacities to those needed."""
        self.friction.grow(frozen)
        self.contacts.reduction.grow(pairs, runs)
        self.friction.reduction.grow(frictional_pairs, frictional_runs)

    def renew(self, motion: float, limit: wp.array, starts: bool = False) -> None:
        """Renew the list for the trial path up to the limits (islands,), and the islands.

        motion: largest motion [m] on the path; starts: whether a step starts, without lagged friction and known energies."""
        if starts:
            self.friction.untie()
        before = self.contacts.arrays("current")
        self.contacts.candidates.renew(self.trial_path.path, motion, self.islands.island, limit)
        if not starts:
            self.carry(before)
        self.islands.keep_numbering()
        self.launch_renumber()

    def follow_list(self) -> None:
        """Make capacity for the energies and for the lagged friction of the current list."""
        self.contacts.follow_list()
        self.friction.follow_list()

    def test_cover(self, each: wp.array, limit: wp.array, covered: wp.array) -> None:
        """Set `covered` (1,) to whether the list covers the trial path up to the limits (islands,); launches only.

        each: (islands,) largest motions of the islands [m]."""
        self.contacts.candidates.test_cover(self.trial_path.path, each, self.islands.island, limit, covered)

    def launch_motions(self, each: wp.array) -> None:
        """Set the motions (islands,) [m] on the path for which the list is renewed; launches only."""
        self.contacts.candidates.launch_motions(each, self.islands.island)

    def subtract_motion(self, each: wp.array, alpha: wp.array) -> None:
        """Subtract motions (islands,) [m] on the trial path up to alpha (islands,) from those that the list covers."""
        self.contacts.candidates.subtract_motion(self.trial_path.path, each, self.islands.island, alpha)

    def times_of_impact(self, limit: wp.array, out: wp.array, proven: bool) -> None:
        """Compute the collision-free fraction of every body on the trial path (`Contacts.times_of_impact`), `out` (n,)."""
        self.contacts.times_of_impact(self.trial_path.path, self.islands.island, limit, out, proven)

    def launch_renumber(self) -> None:
        """Form the islands for the current lists; launches only."""
        c, f, extent = self.contacts.candidates, self.friction, self.device.extent
        inactive = self.backend.inactive
        self.islands.follow_joined(inactive.mobile)
        near = c.pairs, c.counts, extent(c.pair_count, c.pair_capacity)
        frictional = f.pairs, f.lagged.counts, extent(f.pair_count, f.pairs.shape[0]) if f.pair_count else 0
        self.islands.launch_renumber(inactive.held, near, frictional)

    # parameters --------------------------------------------------------------------------------------------------

    def set_pair_parameters(self, own: PairParameters) -> None:
        self.contacts.set_pair_parameters(own)
        self.invalidate()

    def launch_lag(self) -> None:
        """Lag friction at the start of a step; launches only, call `set_frozen` afterwards."""
        self.friction.launch_lag(self.at.current, self.at.target)

    def set_frozen(self, count: int) -> None:
        """Set the number of contacts that the last `launch_lag` has frozen."""
        self.friction.set_count(count)

    def lag_friction(self, chosen: np.ndarray | None = None) -> None:
        is_all = chosen is None or bool(chosen[self.backend.inactive.mobile].all())
        self.potential.evaluate_contacts()
        known = self.friction.follows_list
        self.friction.lag(self.at, self.at.current, None if is_all else chosen)
        if not known:
            # islands follow the current lists
            self.launch_renumber()

    def friction_loads(self) -> tuple[PairLoads, PairLoads]:
        self.potential.evaluate_contacts()
        return self.friction.loads(self.at.current)

    # bodies in contact -------------------------------------------------------------------------------------------

    def touching(self) -> np.ndarray:
        if self.touched is not None:
            return self.touched
        if self.contacts.candidates.count == 0:
            return np.zeros(self.backend.n, dtype=np.int32)
        self.potential.evaluate_contacts()
        flags = self.backend.totals.flags
        self.contacts.candidates.graphs.run("touching", lambda: self.mark_touching(flags))
        self.touched = self.device.read(flags)
        return self.touched

    def mark_touching(self, flags: wp.array) -> None:
        """Set `flags` (n,) int32 to 1 for bodies with an active contact, 0 for others; launches only."""
        c = self.contacts.candidates
        self.device.fill(flags)
        extent = self.device.extent(c.pair_count, c.pair_capacity)
        self.device.launch(statistics.mark_touching, extent, c.listed, self.contacts.arrays("current")[1], flags, grain=512)

    def candidate_pairs(self) -> np.ndarray:
        return np.concatenate([self.contacts.candidates.pair_list(), self.friction.pair_list()])

    def pair_gaps(self, exact: bool = False) -> tuple[np.ndarray, np.ndarray]:
        self.potential.evaluate_contacts()
        if exact:
            self.contacts.evaluate(self.at, "current")
        return self.contacts.pair_gaps()
