"""Contact on a device: energies, times of impact, gradients and Hessian blocks of the candidates."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.body_data import smallest_moments
from abd.backends.device.device import Device
from abd.backends.device.pool import Pool
from abd.backends.warp.iterate import Iterate
from abd.backends.warp.terms.candidates import BATCH, Candidates
from abd.backends.warp.terms.reduction import PairList, Reduction
from abd.contact.forces import Pressing
from abd.contact.pair_law import PairLaw, PairParameters
from abd.model import Model
from abd.potentials.barrier import BARRIERS
from cuda_kernels.bodies.affine import Path, Pose
from cuda_kernels.contact import contact as kernels
from cuda_kernels.contact import marches
from cuda_kernels.contact.ccd import Limits, Query
from cuda_kernels.contact.contact_blocks import contact_blocks
from cuda_kernels.contact.contact_elements import contact_elements
from cuda_kernels.contact.parts import count_parts
from cuda_kernels.contact.pressing import Points, press
from cuda_kernels.linear.couplings import Coupling
from cuda_kernels.parallel import sums

KNOWN = {"energy": wp.float64, "gap": wp.float64, "parts": wp.int64}
"""Arrays per candidate in a slot."""
OWN, PAIRS = ("key", "activation"), 4096
"""Arrays of pairs with contact parameters of their own, and their initial capacity."""


class Contacts:
    """Term of the barrier energy of all candidates at the iterate and at a trial.

    Evaluation and linearisation can be recorded after `follow_list`. A record fixes the scalars of the law, the poses and the
    capacities of the list; stiffness and regularisation are arrays and may change.

    Args:
        done: (n,) int32 on the device, 1 for bodies of converged islands; zeros by default. Candidates between two such bodies
            keep their energies and gaps and add nothing to the linear system.
    """

    def __init__(self, model: Model, device: Device, done: wp.array | None = None):
        settings = model.settings
        self.device, self.pool, self._reading = device, Pool(device), Pool(device, is_recorded=False)
        self.n = len(model.bodies)
        self.done = device.zeros(self.n, wp.int32) if done is None else done
        self.pair_law = PairLaw(model)
        self.candidates = Candidates(model, device, self.pair_law)
        self.law = kernels.ContactLaw()
        self.law.kind = BARRIERS.index(settings.barrier)
        self.law.minimum = settings.minimum_separation
        self.law.kappa = device.zeros(self.n, wp.float64)
        self.law.stiffness = device.upload(model.materials.stiffness, wp.float64)
        self.law.inertia = device.upload(smallest_moments(model), wp.float64)
        self.law.regularisation = device.upload(np.ones(self.n), wp.float64)
        self.pool.reserve(self.surfaces.between.own, PAIRS, *OWN)
        self.reduction = Reduction(device, self.n)
        self.marches = marches.Marches()
        self.marches.count = device.zeros(1, wp.int32)
        self.without = device.zeros((self.n, 12), wp.float64)
        self._query, self._ends = Query(), Limits()
        self._query.minimum = self.law.minimum
        self._ends.first_found = device.zeros(max(self.n, 1), wp.float64)
        self._capacity = -1, -1
        self.batch = 1 if device.wide else BATCH
        self._known = {mode: kernels.KnownValues() for mode in (kernels.UNKNOWN, kernels.ON_PATH, kernels.CARRIED)}

    @property
    def surfaces(self):
        """Surfaces of the scene."""
        return self.candidates.surfaces

    def set_scale(self, ch2: float | np.ndarray) -> None:
        """Set c h^2 [s^2], scalar or (n,), the factor of contact energies in the incremental potential."""
        self.device.assign(self.law.kappa, ch2)

    def set_pair_parameters(self, own: PairParameters) -> None:
        """Set per-pair contact parameters; contact energies must be evaluated again."""
        self.pair_law.own = own
        count, write, device = len(own), self.device.write, self.surfaces.between.own
        if count:
            self.pool.reserve(device, count, *OWN)
            for name in OWN:
                write(getattr(device, name), getattr(own, name))
        write(device.count, np.array([count], dtype=np.int32))

    def follow_list(self) -> None:
        """Make capacity for the current candidates and index their pairs.

        Call it after the list is rebuilt and before launches are recorded or replayed."""
        self._sizes()
        self.candidates.index()
        if self.candidates.may_touch:
            self.reduction.reserve(self._listed())

    def _listed(self) -> PairList:
        c = self.candidates
        return PairList(c.pairs, c.segment, c.group, c.columns, c.counts, c.pair_count, c.count, c.pair_capacity)

    def _sizes(self) -> tuple[int, int]:
        """Ensure array capacity; returns the numbers of pairs and of batches of candidates that launches cover."""
        c, extent = self.candidates, self.device.extent
        pairs, count = c.pair_capacity, c.capacity
        if pairs > self._capacity[0] or count > self._capacity[1]:
            for slot in ("current", "trial"):
                for name, kind in KNOWN.items():
                    self.pool.get(f"{name}_{slot}", count, kind)
            self.pool.get("closest", count, wp.vec4i)
            self.pool.get("toi", count, wp.float64)
            self.pool.get("approach", pairs, wp.float64)
            self._capacity = self.pool.capacity("approach"), self.pool.capacity("toi")
            self.pool.reserve(self.marches, self._capacity[1], "item")
        return extent(c.pair_count, pairs), -(-extent(c.count, count) // self.batch)

    def times_of_impact(self, path: Path, island, limit, out, proven: bool = False) -> None:
        """Compute the collision-free alpha of every body over its candidates, `out` (n,).

        Only the minimum of each island is defined: other values may depend on the order of evaluation.
        Slot "current" holds the gaps at the start of the path.

        Args:
            island, limit: island (n,) of every body and upper bounds (islands,).
            proven: whether the limits are collision-free for all pairs kept in the last rebuild of the list.
        """
        c = self.candidates
        if c.is_empty:
            self.device.fill(out, 1.0)
            return
        query, ends, toi = self._along(path), self._ends, self.fractions
        self.device.copy(ends.first_found, limit, count=limit.shape[0])
        ends.island, ends.limit, ends.kept, ends.proven = island, limit, c.kept, int(proven)
        count = self._open(marches.try_impacts, *query, ends, self.marches, toi)
        self.device.launch(marches.march_impacts, count, *query, ends, self.marches, toi, grain=64)
        self.device.launch(sums.segment_minima, self.n, c.segment, c.group, toi, out, grain=1024)

    def proven_fractions(self, path: Path, back: bool, out: wp.array) -> wp.array:
        """Compute the proven collision-free fraction of the swept path: per body in `out` (n,); returns it per candidate.

        Args:
            back: the paths lead backward from the end of the step; otherwise forward, and pairs proven backward stay
                proven (`abd.backends.warp.parts.paths`).

        Slot "current" holds the gaps at the end of the step."""
        c, query, fractions = self.candidates, self._along(path), self.fractions
        count = self._open(marches.try_paths, *query, int(back), self.marches, fractions)
        for again in range(2):
            self.device.launch(marches.march_paths, count, *query, int(back), again, self.marches, fractions, grain=64)
        self.device.launch(sums.segment_minima, self.n, c.segment, c.group, fractions, out, grain=1024)
        return fractions

    def _open(self, test: wp.Kernel, *arguments) -> int:
        """Launch the cheap `test` of all candidates, and list those that it leaves open; return how many marches must cover.

        Only these are marched along, so that no thread waits for another."""
        device, listed, (_, batches) = self.device, self.marches.count, self._sizes()
        device.fill(listed)
        device.launch(test, batches, *arguments, self.batch, grain=512 // self.batch)
        return self.candidates.capacity if device.records else int(device.read(listed)[0])

    @property
    def fractions(self) -> wp.array:
        """Fractions per candidate from the last `times_of_impact` or `proven_fractions`."""
        return self.pool.get("toi", 1, wp.float64)

    def _along(self, path: Path) -> tuple:
        """Compute the approach of every pair on a path; returns the arguments of `cuda_kernels.contact.marches`."""
        c, q, (pairs, _) = self.candidates, self._query, self._sizes()
        q.listed, q.approach, q.known = c.listed, self.pool.get("approach", 1, wp.float64), self.arrays("current")[1]
        self.device.launch(kernels.pair_approaches, pairs, c.listed, self.done, path, q.approach, grain=4096)
        return self.surfaces, path, q

    def smallest(self, values: wp.array, most: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the listed pairs of bodies (k, 2) and the minima (k,) over their candidates, at most `most`, on the host."""
        c, out = self.candidates, self.pool.get("smallest", self.candidates.pair_capacity, wp.float64)
        self.device.launch(sums.group_minima, c.pair_count, c.segment, values, out, most, grain=512)
        return tuple(self.device.read_all((c.pairs, c.pair_count), (out, c.pair_count)))

    def arrays(self, slot: str) -> tuple[wp.array, ...]:
        """Energy, gap and codes of the nonzero parts of every candidate, for slot "current" or "trial"."""
        self._sizes()
        return tuple(self.pool.get(f"{name}_{slot}", 1, kind) for name, kind in KNOWN.items())

    def exchange(self) -> None:
        """Exchange the values of slots "current" and "trial"."""
        c, slots = self.candidates, (*self.arrays("current"), *self.arrays("trial"))
        if not c.is_empty:
            self.device.launch(kernels.exchange_known, self.device.extent(c.count, c.capacity), c.counts, *slots, grain=16384)

    def add_differences(self, difference: wp.array, size: wp.array) -> None:
        """Add the energy differences between the slots, and the magnitudes of the energies, per body."""
        c, launch = self.candidates, self.device.launch
        if not c.is_empty:
            energies = self.arrays("trial")[0], self.arrays("current")[0]
            launch(sums.segment_differences, self.n, c.segment, c.group, *energies, difference, size)

    def evaluate(self, at: Iterate, slot: str) -> None:
        """Evaluate energies, gaps and active parts at the pose of a slot.

        If the trial lies on the path of the last `times_of_impact` (`Iterate.along`), distant candidates are skipped by a bound
        on their approach, and candidates of bodies that are done keep the values of slot "current".
        """
        c, pose = self.candidates, at.pose(slot)
        if c.is_empty:
            return
        if at.along is None:
            self._launch(pose, self.arrays(slot), kernels.UNKNOWN)
            return
        known = self._known[kernels.ON_PATH]
        known.island, known.alpha = at.along
        known.approach = self.pool.get("approach", 1, wp.float64)
        self._launch(pose, self.arrays(slot), kernels.ON_PATH, self.arrays("current"))

    def _launch(self, pose: Pose, out: tuple[wp.array, ...], mode: int, before: tuple[wp.array, ...] = ()) -> None:
        """Evaluate all candidates at a pose into the arrays `out` of a slot; before: known arrays of another slot."""
        listed, closest, (_, batches) = self.candidates.listed, self.pool.get("closest", 1, wp.vec4i), self._sizes()
        query, grain, known = (self.surfaces, self.law, pose, listed, self.batch), 512 // self.batch, self._known[mode]
        known.mode = mode
        for name, array in zip(KNOWN, before, strict=False):
            setattr(known, name, array)
        self.device.launch(kernels.contact_energies, batches, *query, known, *out, closest, grain=grain)
        if self.surfaces.topology.local:
            self.device.launch(kernels.add_features, batches, *query, closest, out[0], out[2], grain=grain)

    def carry(self, pose: Pose, before: tuple[wp.array, ...]) -> None:
        """Set slot "current" after the list was rebuilt at the current pose.

        Kept pairs take their values from `before`, the arrays of the slot for the previous list; others are evaluated."""
        if all(one is other for one, other in zip(before, self.arrays("current"), strict=True)):
            self.candidates.graphs.run(("carry", pose.p.ptr), lambda: self._launch_carry(pose, before))
        else:  # the arrays of the previous list were reallocated: nothing to replay
            self._launch_carry(pose, before)

    def _launch_carry(self, pose: Pose, before: tuple[wp.array, ...]) -> None:
        """Launches of `carry`."""
        known = self._known[kernels.CARRIED]
        known.kept, known.segment = self.candidates.kept, self.candidates.old.segment
        self._launch(pose, self.arrays("trial"), kernels.CARRIED, before)
        self.exchange()

    def pair_gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the listed pairs of bodies (k, 2) and their smallest gaps (k,) in slot "current", on the host.

        Gaps are in activations, infinite for pairs without candidates."""
        if self.candidates.pair_count == 0:
            return np.zeros((0, 2), dtype=np.int32), np.zeros(0)
        return self.smallest(self.arrays("current")[1], np.inf)

    def pressing(self, pose: Pose) -> Pressing:
        """Return the points of active contacts at the current pose, on the host."""
        c, device, get = self.candidates, self.device, self._reading.get
        if c.count == 0:
            return Pressing.nothing()
        _, _, parts = self.arrays("current")
        codes = device.read(parts, c.count)
        chosen = np.flatnonzero(codes).astype(np.int32)
        counts = count_parts(codes[chosen])
        total, offset = int(counts.sum()), np.cumsum(counts, dtype=np.int32) - counts
        if total == 0:
            return Pressing.nothing()
        points = Points()
        self._reading.reserve(points, total)
        selected, first = get("selected", len(chosen), wp.int32), get("first point", len(chosen), wp.int32)
        device.write(selected, chosen)
        device.write(first, offset)
        query = self.surfaces, self.law, pose, c.listed, selected, parts, first
        device.launch(press, len(chosen), *query, points, grain=256)
        names = "pair", "place", "normal", "gap", "force", "torque_i", "torque_j"
        pair, *others = device.read_all(*((getattr(points, name), total) for name in names))
        return Pressing(pair.astype(np.int64), *others)

    def smallest_gap(self) -> float:
        """Return the smallest gap in slot "current" beyond the minimum separation [m], infinite without candidates."""
        pairs, gaps = self.pair_gaps()
        return float((gaps * self.pair_law.activation(*pairs.T)).min(initial=np.inf))

    @property
    def coupled(self) -> tuple[Coupling, int]:
        """Off-diagonal blocks of the pairs of bodies in contact, and the capacity for pairs."""
        return self.reduction.coupling, 0 if self.candidates.is_empty else self.reduction.pair_capacity

    def add_to(self, at: Iterate, gradient: wp.array, diagonal: wp.array) -> None:
        """Add gradient and blocks of bodies that are not done; `without` keeps the gradient without contact."""
        self.device.copy(self.without, gradient)
        self.linearize(at.current)
        if not self.candidates.is_empty:
            self.reduction.reduce(self.done, gradient, diagonal)

    def linearize(self, pose: Pose) -> None:
        """Sum gradients and blocks of active candidates at the current pose; slot "current" holds its energies."""
        c, r = self.candidates, self.reduction
        if c.is_empty:
            return
        if not self.device.deferring:
            c.index()
        _, gap, parts = self.arrays("current")
        r.prepare(self._listed(), self.done, gap, 1.0, parts)
        runs, query = r.run_capacity, (self.surfaces, self.law, pose, c.listed)
        listed = r.runs, r.counts
        if r.elements:
            self.device.launch(contact_elements, r.run * runs, *query, parts, *listed, r.run, r.items, r.elements, grain=64)
            r.sum_elements()
        else:
            self.device.launch(contact_blocks, runs, *query, parts, *listed, r.items, r.sums, grain=4)
