"""Lagged friction on a device: frozen contacts, their energies, gradients and Hessian blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import warp as wp

from abd.backends.answers import PairLoads
from abd.backends.device.device import Device
from abd.backends.device.pool import Pool
from abd.backends.device.scan import Scan
from abd.backends.device.upload import allocate_struct, upload_struct
from abd.backends.warp.iterate import Iterate
from abd.backends.warp.terms.contacts import Contacts
from abd.backends.warp.terms.reduction import Columns, PairList, Reduction
from abd.model import Kind, Model
from abd.potentials.rolling import Resistances
from abd.potentials.sticking import Anchors
from cuda_kernels.bodies import poses
from cuda_kernels.bodies.affine import Pose
from cuda_kernels.friction import arc_slip, coulomb, friction, lagging, sticking
from cuda_kernels.linear.couplings import Coupling
from cuda_kernels.parallel import sums

LAGGED = "pair", "kind", "face", "n", "Y_i", "Y_j", "load", "start_stretch", "arc"
"""Arrays per contact of `cuda_kernels.friction.lagging.Lagged`."""
ANCHOR_COLUMNS = ("key", "kind", "point", "share")
"""Fields of `abd.potentials.sticking.Anchors`."""


class Friction:
    """Term of lagged friction of the contacts frozen at one pose.

    Evaluation and linearisation can be recorded. A record fixes the poses and the capacities for frozen contacts.

    `lag` freezes contacts at once. A recorded substep does it in this order: `follow_list` on the host, which makes capacity
    for the pairs of the candidate list; `launch_lag` in the record; `grow` on the host with the number `needed`, and the
    record again if it returns True; `set_count` on the host. `lag` calls the same four.

    Attributes:
        count, pair_count: numbers of frozen contacts and of body pairs of their candidate list; on the device `lagged.counts`.
        segment, group: first contact of every pair and first pair of every body.
        begin, turn: pose at which the arcs of slips start, and their rotation vectors (n,) (`abd.potentials.arc_slip`).
    """

    def __init__(self, model: Model, device: Device, contacts: Contacts):
        self.device, self.contacts, self.pool = device, contacts, Pool(device)
        n = len(model.bodies)
        self.defined = Resistances.of(model)
        self.resists = upload_struct(coulomb.Resistances, self.defined, device)
        self.lags, self.elastic = model.settings.friction_iterations != 0, model.settings.stick == "elastic"
        self.enabled = self._may_act()
        self.reduction = Reduction(device, n)
        self.columns = Columns(device, model.bodies.kind == Kind.STATIC)
        self.anchors = allocate_struct(sticking.Anchors, 1, device)
        self.lagged = lagging.Lagged()
        self.lagged.counts, self.lagged.eps = device.zeros(2, wp.int32), device.zeros(n, wp.float64)
        self.count = self.pair_count = 0
        self.pairs, self.segment = device.zeros(1, wp.vec2i), device.zeros(1, wp.int32)
        self.group = device.zeros(n + 1, wp.int32)
        self.no_bodies = device.zeros(n, wp.int32)
        self.begin: Pose | None = None
        self.turn: wp.array | None = None
        self.needed, self.scan, self._builds = device.zeros(1, wp.int32), Scan(device), -1
        self._host_pairs: tuple[np.ndarray, np.ndarray] | None = None

    def set_eps(self, eps: float | np.ndarray) -> None:
        """Set the slip [m] below which contacts count as static, scalar or (n,)."""
        self.device.write(self.lagged.eps, np.full(len(self.lagged.eps), eps))

    @property
    def sticks(self) -> bool:
        """Whether contacts store their elastic stretch in `anchors` (`abd.potentials.sticking`)."""
        return self.enabled and self.elastic

    def set_coefficients(self, mu: np.ndarray) -> None:
        """Set the friction coefficients (m, m) between materials and discard the frozen contacts."""
        self.defined = replace(self.defined, mu=np.array(mu))
        self.device.write(self.resists.mu, self.defined.mu)
        self.enabled = self._may_act()
        if self.contacts.candidates.may_touch:
            self.discard()
            self._index(self.contacts.candidates.pair_capacity)

    def _may_act(self) -> bool:
        return self.defined.any and self.lags and self.contacts.candidates.may_touch

    def discard(self) -> None:
        """Discard the frozen contacts on the host and on the device."""
        self.device.write(self.lagged.counts, np.zeros(2, dtype=np.int32))
        self.untie()
        self.device.fill(self.group)
        self.device.fill(self.columns.starts)

    def untie(self) -> None:
        """Discard the frozen contacts and their body pairs on the host."""
        self.count, self.pair_count, self._host_pairs = 0, 0, None
        self._builds = self.contacts.candidates.builds

    def lag(self, at: Iterate, heading: Pose, chosen: np.ndarray | None = None) -> None:
        """Freeze the contacts that are active at the iterate and evaluate their energies. Cannot be recorded.

        Slot "current" of the contacts holds the energies of the iterate.

        Args:
            heading: inertial targets or target poses of the bodies in the step (`abd.potentials.friction.freeze`).
            chosen: (n,) bool, bodies of whole islands whose contacts are frozen, all by default; others keep theirs.
        """
        if not self.enabled:
            return
        before = None if chosen is None else self._table()
        self._lag_all(at, heading)
        if chosen is not None:
            self._merge(at, before, self._table(), chosen)

    def _table(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Host copies of the pairs with their numbers of contacts, and of the contacts."""
        self.grow(self.count)  # allocates the arrays before their first use
        return list(self._read_pairs()), self._read(*LAGGED)

    def _merge(self, at: Iterate, before: tuple, after: tuple, chosen: np.ndarray) -> None:
        """Combine the contacts `after` of chosen bodies (n,) with those `before` of the others."""
        write, run = self.device.write, self.contacts.candidates.graphs.run
        pairs, lengths = merge_tables(before[0], after[0], chosen)
        contacts = merge_tables(before[1], after[1], chosen)
        self.count, self.pair_count, self._builds, self._host_pairs = len(contacts[0]), len(pairs), -1, None
        self.grow(self.count)
        self._take_pairs(max(self.pair_count, self.contacts.candidates.pair_capacity))
        self.columns.reserve(self.pair_capacity)
        for name, values in zip(LAGGED, contacts, strict=True):
            write(getattr(self.lagged, name), values)
        write(self.pairs, pairs)
        write(self.segment, np.concatenate([[0], np.cumsum(lengths)]))
        write(self.group, np.searchsorted(pairs[:, 0], np.arange(self.contacts.n + 1)))
        write(self.lagged.counts, np.array([self.pair_count, self.count]))
        extent = self.device.extent(self.pair_count, self.pair_capacity)
        self.columns.launch_keys(extent, self.pairs, self.lagged.counts)
        self.columns.sort(self.pair_count)
        self.reduction.reserve(self._listed(self.pair_capacity))
        run(("both", at.current.p.ptr), lambda: self._follow_merge(at))
        if self.reduction.lacks_capacity():
            run(("both", at.current.p.ptr), lambda: self._follow_merge(at))

    def _follow_merge(self, at: Iterate) -> None:
        """Index and evaluate the merge, whose pairs are sorted by columns."""
        self.columns.launch_starts(self.lagged.counts)
        self._index(self.pair_capacity)
        self.evaluate(at, "current")

    def _lag_all(self, at: Iterate, heading: Pose) -> None:
        self.follow_list()
        self._run_lag(at, heading)
        needed = int(self.device.read(self.needed)[0])
        if self.grow(needed):
            self._run_lag(at, heading)
        if self.reduction.lacks_capacity():
            self._run_lag(at, heading)
        self.set_count(needed)

    def _run_lag(self, at: Iterate, heading: Pose) -> None:
        def lag() -> None:
            self.launch_lag(at.current, heading)
            self.evaluate(at, "current")

        self.contacts.candidates.graphs.run(("lag", at.current.p.ptr, heading.p.ptr), lag)

    def follow_list(self) -> None:
        """Make capacity for the pairs of the current list, before launches that freeze its contacts are recorded."""
        c, get = self.contacts.candidates, self.pool.get
        if not self.enabled:
            return
        for name in ("marks", "offset"):
            get(name, c.capacity + 1, wp.int32)
        self.scan.reserve(c.capacity)
        self._take_pairs(c.pair_capacity)
        self.columns.reserve(c.pair_capacity)
        c.index()
        # the number of pairs is known; the number of frozen candidates is not
        self.reduction.reserve(PairList(c.pairs, c.segment, c.group, c.columns, c.counts, c.pair_count, 0, c.pair_capacity))

    def launch_lag(self, pose: Pose, heading: Pose) -> None:
        """Launches of `lag`, which can be recorded after `follow_list`; call `set_count` with the number `needed` afterwards.

        If the capacity does not suffice for all contacts, none is frozen."""
        if self.enabled:
            self._freeze(pose, heading, self._mark(pose))

    @property
    def follows_list(self) -> bool:
        """Whether the current candidate list contains the pairs of all frozen contacts."""
        return self._builds == self.contacts.candidates.builds

    def set_count(self, count: int) -> None:
        """Set the number of contacts that the last `launch_lag` has frozen."""
        self.count, self._host_pairs = count, None
        self.pair_count = self.contacts.candidates.pair_count if self.enabled else 0
        self._builds = self.contacts.candidates.builds

    @property
    def capacity(self) -> int:
        """Capacity for frozen contacts."""
        return self.pool.capacity("load")

    @property
    def pair_capacity(self) -> int:
        """Capacity for body pairs of frozen contacts."""
        return min(self.pairs.shape[0], self.segment.shape[0] - 1)

    def grow(self, count: int) -> bool:
        """Make capacity for `count` contacts; True if it was insufficient, so that they must be frozen again."""
        grows = count > self.capacity
        self.pool.reserve(self.lagged, count, *LAGGED)
        for name in ("energy_current", "energy_trial", "work"):
            self.pool.get(name, count, wp.float64)
        if self.sticks:
            self._grow_anchors(self.capacity)
        return grows

    def _grow_anchors(self, capacity: int) -> None:
        """Make capacity for anchors and keep the anchors of the last step."""
        if self.anchors.key.shape[0] < capacity:
            for name in ANCHOR_COLUMNS:
                before = getattr(self.anchors, name)
                array = self.device.empty(capacity, before.dtype)
                self.device.copy(array, before, count=before.shape[0])
                setattr(self.anchors, name, array)

    def keep_anchors(self, pose: Pose, rest: Pose, now: Pose) -> None:
        """Store the elastic stretch of the contacts after a step from `now` to `pose`."""
        if self.sticks:
            extent = max(self._extent, 1)
            self.device.launch(friction.keep_anchors, extent, self.lagged, pose, rest, now, self.anchors)

    def read_anchors(self) -> Anchors:
        """Host copy of the anchors of the last step."""
        a, device = self.anchors, self.device
        count = int(device.read(a.count)[0])
        return Anchors(*device.read_all(*((getattr(a, name), count) for name in ANCHOR_COLUMNS))) if count else Anchors()

    def set_anchors(self, anchors: Anchors) -> None:
        """Set the anchors."""
        if not self.sticks:
            return
        self._grow_anchors(len(anchors))
        for name in ANCHOR_COLUMNS if len(anchors) else ():
            self.device.write(getattr(self.anchors, name), getattr(anchors, name))
        self.device.write(self.anchors.count, np.array([len(anchors)], dtype=np.int32))

    def _take_pairs(self, capacity: int) -> None:
        self.pairs, self.segment = self.pool.get("pairs", capacity, wp.vec2i), self.pool.get("segment", capacity + 1, wp.int32)

    def _mark(self, pose: Pose) -> wp.array:
        """Compute the first output index of every candidate, an exclusive sum of lagged contacts, and their number `needed`."""
        c, device, get, surfaces = self.contacts.candidates, self.device, self.pool.get, self.contacts.surfaces
        extent, (_, _, parts) = c.capacity, self.contacts.arrays("current")
        marks, offset = get("marks", extent + 1, wp.int32), get("offset", extent + 1, wp.int32)
        device.launch(lagging.count_sources, extent, self.resists, c.listed, surfaces, pose, parts, marks)
        self.scan.run(marks, offset, c.counts, 1, extent)
        device.launch(lagging.count_lagged, 1, c.counts, offset, self.capacity, self.needed, self.lagged.counts)
        return offset

    def _freeze(self, pose: Pose, heading: Pose, offset: wp.array) -> None:
        """Freeze the marked candidates and index them by pair."""
        c, device, n, counts = self.contacts.candidates, self.device, self.contacts.n, self.lagged.counts
        extent, pairs = c.capacity, c.pair_capacity
        device.launch(
            lagging.lag_contacts,
            -(-extent // c.batch), self.contacts.surfaces, self.contacts.law, self.resists, pose, heading.A, c.listed, c.batch,
            self.contacts.arrays("current")[2], offset, self.anchors, self.lagged, grain=2048 // c.batch,
        )  # fmt: skip
        if self.begin is not None:
            radius = self.contacts.surfaces.radius
            arcs = pose, self.begin, heading, self.turn
            device.launch(arc_slip.follow_arcs, max(self.capacity, 1), self.lagged, *arcs, radius)
        # the pair list may be rebuilt while these contacts stay frozen: copy its groups
        self.device.copy(self.pairs, c.pairs, count=pairs)
        device.launch(lagging.gather_offsets, pairs + 1, counts, c.segment, offset, self.segment)
        self.device.copy(self.group, c.group, count=n + 1)
        self.columns.launch_copy(c.columns, device.extent(c.pair_count, pairs))
        self._index(pairs)

    def _index(self, capacity: int) -> None:
        """Prepare the sums over all frozen contacts; every load is below infinity, so that all count."""
        self.reduction.prepare(self._listed(capacity), self.no_bodies, self.lagged.load, float("inf"))

    def _listed(self, capacity: int) -> PairList:
        known = self.pairs, self.segment, self.group, self.columns, self.lagged.counts
        return PairList(*known, self.pair_count, self.count, capacity)

    @property
    def _extent(self) -> int:
        """Number of contacts that a launch covers."""
        return 0 if self.contacts.candidates.is_empty else self.capacity

    def pair_list(self) -> np.ndarray:
        """Host copy of the body pairs (k, 2) of the list from which contacts were frozen."""
        return self._read_pairs()[0]

    def coupled_pairs(self) -> np.ndarray:
        """Host copy of the pairs of `pair_list` with frozen contacts."""
        pairs, lengths = self._read_pairs()
        return pairs[lengths > 0]

    def _read_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """`pair_list` and the numbers of frozen contacts of its pairs (k,), read once per lagging."""
        if self._host_pairs is None:
            count = self.pair_count
            pairs, segment = self.device.read_all((self.pairs, count), (self.segment, count + 1))
            self._host_pairs = pairs, np.diff(segment) if self.count else np.zeros(count, dtype=int)
        return self._host_pairs

    def _read(self, *names: str) -> list[np.ndarray]:
        """Host copies of columns of the frozen contacts."""
        return self.device.read_all(*((getattr(self.lagged, name), self.count) for name in names))

    def frozen(self, eps: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the frozen contacts on the host (`abd.potentials.friction.Lagged`).

        Args:
            eps: (n,) static slip [m] of the bodies.

        Returns:
            bodies (l, 2), kinds (l,), normals (l, 3), contact points Y_i, Y_j (l, 4), stretches besides chords (l, 3) in units
            of eps, and loads times c h^2 (l,).
        """
        if self.count == 0:
            # the arrays may not exist yet
            pair, kind = np.zeros((0, 2), dtype=np.int32), np.zeros(0, dtype=np.int32)
            return pair, kind, *(np.zeros((0, k)) for k in (3, 4, 4, 3)), np.zeros(0)
        *where, start_stretch, arc, load = self._read("pair", "kind", "n", "Y_i", "Y_j", "start_stretch", "arc", "load")
        return *where, start_stretch + arc / eps[where[0][:, 0], None], load

    def energies(self, slot: str) -> wp.array:
        """Energy of every frozen contact, for slot "current" or "trial"."""
        return self.pool.get(f"energy_{slot}", 1, wp.float64)

    def exchange(self) -> None:
        """Exchange the values of slots "current" and "trial"."""
        slots = self.energies("current"), self.energies("trial")
        self.device.launch(poses.exchange_values, self._extent, *slots)

    def add_differences(self, difference: wp.array, size: wp.array) -> None:
        """Add the energy differences between the slots, and the magnitudes of the energies, per body."""
        if self._extent:
            energies = self.energies("trial"), self.energies("current")
            n, launch = self.contacts.n, self.device.launch
            launch(sums.segment_differences, n, self.segment, self.group, *energies, difference, size)

    def evaluate(self, at: Iterate, slot: str) -> None:
        """Evaluate the energies of the frozen contacts for displacements from `Iterate.rest`."""
        self.device.launch(
            friction.friction_energies, self._extent, self.lagged, at.pose(slot), at.rest, self.energies(slot)
        )

    @property
    def coupled(self) -> tuple[Coupling, int]:
        """Off-diagonal blocks of the pairs of bodies in frictional contact, and the capacity for pairs."""
        return self.reduction.coupling, 0 if self.contacts.candidates.is_empty else self.reduction.pair_capacity

    def add_to(self, at: Iterate, gradient: wp.array, diagonal: wp.array) -> None:
        """Add gradient and blocks of bodies that are not done."""
        self.linearize(at)
        if self.enabled and not self.contacts.candidates.is_empty:
            self.reduction.reduce(self.contacts.done, gradient, diagonal)

    def linearize(self, at: Iterate) -> None:
        """Sum gradients and blocks of the frozen contacts."""
        r, contacts = self.reduction, self.contacts
        if contacts.candidates.is_empty or not self.enabled:
            return
        launch, runs, listed = self.device.launch, r.run_capacity, (r.runs, r.counts)
        slips, regularisation = (self.lagged, at.current, at.rest), contacts.law.regularisation
        if r.elements:
            given = *slips, regularisation, *listed, r.run
            launch(friction.friction_elements, r.run * runs, *given, r.items, r.elements, grain=128)
            r.sum_elements()
        else:
            given = *slips, contacts.done, regularisation, *listed
            launch(friction.friction_blocks, runs, *given, r.items, r.sums, grain=8)

    def loads(self, pose: Pose) -> tuple[PairLoads, PairLoads]:
        """Return the nonzero loads by body pair: frozen, and at a pose whose gaps are in slot "current"."""
        c = self.contacts.candidates
        frozen = active = PairLoads(np.zeros((0, 2), dtype=np.int32), np.zeros(0))
        if self.count:
            pairs, lengths = self._read_pairs()
            pair = np.repeat(np.arange(self.pair_count), lengths)
            load = np.bincount(pair, weights=self.device.read(self.lagged.load, self.count), minlength=self.pair_count)
            frozen = PairLoads(pairs[load != 0.0], load[load != 0.0])
        if c.count:
            out = self.pool.get("active", c.pair_capacity, wp.float64)
            c.graphs.run(("loads", pose.p.ptr), lambda: self._launch_loads(pose, out))
            pairs, load = self.device.read_all((c.pairs, c.pair_count), (out, c.pair_count))
            active = PairLoads(pairs[load != 0.0], load[load != 0.0])
        return frozen, active

    def _launch_loads(self, pose: Pose, out: wp.array) -> None:
        """Compute the loads of the listed pairs at a pose."""
        c, contacts = self.contacts.candidates, self.contacts
        self.device.launch(
            lagging.pair_loads, self.device.extent(c.pair_count, c.pair_capacity),
            contacts.surfaces, contacts.law, self.resists, pose, c.listed, contacts.arrays("current")[2], out, grain=512,
        )  # fmt: skip

    def works(self, pose: Pose, rest: Pose, ch2: wp.array) -> wp.array:
        """Compute the work [J] of friction on every contact (count,) in a step to `pose`; `ch2` (n,) [s^2]."""
        out = self.pool.get("work", 1, wp.float64)
        self.device.launch(friction.friction_works, self._extent, self.lagged, pose, rest, ch2, out)
        return out


def merge_tables(before: list[np.ndarray], after: list[np.ndarray], chosen: np.ndarray) -> list[np.ndarray]:
    """Return the columns of two tables whose first columns are pairs of bodies: rows `after` of chosen first bodies (n,), rows
    `before` of the others."""
    first = [table[0][:, 0] for table in (before, after)]
    kept, taken = np.flatnonzero(~chosen[first[0]]), np.flatnonzero(chosen[first[1]])
    order = np.argsort(np.concatenate([first[0][kept], first[1][taken]]), kind="stable")
    return [np.concatenate([one[kept], other[taken]])[order] for one, other in zip(before, after, strict=True)]
