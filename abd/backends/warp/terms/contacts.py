"""Contact on a device: energies, times of impact, gradients and blocks of the candidates."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.answers import NO_PAIRS
from abd.backends.body_data import smallest_moments
from abd.backends.device.device import Device
from abd.backends.device.pool import Pool
from abd.backends.warp.iterate import Iterate
from abd.backends.warp.terms.candidates import Candidates
from abd.backends.warp.terms.impacts import BATCH, Impacts
from abd.backends.warp.terms.reduction import PairList, Reduction
from abd.contact.candidates import Candidates as Listed
from abd.contact.forces import Pressing
from abd.contact.pair_law import PairLaw, PairParameters
from abd.contact.pairs import Pairs, pairs_of
from abd.model import Model
from abd.potentials.barrier import BARRIERS
from cuda_kernels.bodies.affine import Path, Pose
from cuda_kernels.contact import contact as kernels
from cuda_kernels.contact.contact_blocks import contact_blocks
from cuda_kernels.contact.contact_elements import contact_elements
from cuda_kernels.contact.minima import PARTS
from cuda_kernels.linear.couplings import Coupling
from cuda_kernels.parallel import sums
from cuda_kernels.step import statistics

KNOWN = {"energy": wp.float64, "gap": wp.float64, "parts": wp.int32}
"""What a slot holds of every candidate."""
_COUNT = np.array([bits.bit_count() for bits in range(1 << PARTS)], dtype=np.int32)
"""How many parts a set of bits names."""


class Contacts:
    """Barrier energy of all candidates at two poses: the current one and a trial.

    What evaluates and linearises may be recorded, after `follow_list`. A record keeps the law's numbers (not the stiffness
    and the regularisation, which are arrays), the poses and the rooms of the list.

    Args:
        done: (n,) int32 on the device, 1 for bodies whose island has converged: candidates between two of them keep
            their energies and gaps, and add nothing to the linear system. Read whenever a kernel runs; none by default.
    """

    ties = NO_PAIRS

    def __init__(self, model: Model, device: Device, done: wp.array | None = None):
        settings = model.settings
        self.device, self.pool = device, Pool(device)
        self.n = len(model.bodies)
        self.done = device.zeros(self.n, wp.int32) if done is None else done
        self.pair_law = PairLaw(model)
        self.candidates = Candidates(model, device, self.pair_law)
        self.law = kernels.ContactLaw()
        self.law.kind = BARRIERS.index(settings.barrier)
        self.law.minimum = settings.minimum_separation
        self.scale, self.law.kappa = np.zeros(self.n), device.zeros(self.n, wp.float64)
        self.law.stiffness = device.upload(model.materials.stiffness, wp.float64)
        self.law.inertia = device.upload(smallest_moments(model), wp.float64)
        self.law.regularisation = device.upload(np.ones(self.n), wp.float64)
        self.reduction = Reduction(device, self.n)
        self.impacts = Impacts(device)
        self.without = device.zeros((self.n, 12), wp.float64)
        self.least, self.first_found = (device.zeros(max(self.n, 1), wp.float64) for _ in range(2))
        self._capacity, self._exchanged = (-1, -1), False
        self.batch = 1 if device.wide else BATCH
        self.anew, self.reach = kernels.Reach(), kernels.Reach()
        self.reach.known = 1

    @property
    def surfaces(self):
        """Surfaces of the scene."""
        return self.candidates.surfaces

    def set_scale(self, ch2: float | np.ndarray) -> None:
        """c h^2 of the bodies (n,), or of all, by which the energies of pairs stand in the incremental potential."""
        self.scale = ch2 if np.ndim(ch2) else np.full(self.n, ch2)
        self.device.write(self.law.kappa, self.scale)

    def set_pair_parameters(self, own: PairParameters) -> None:
        """Pairs whose law is their own; what is known of contacts has to be evaluated again."""
        self.pair_law.own = own
        count, get, write, device = len(own), self.pool.get, self.device.write, self.surfaces.between.own
        if count:
            device.key, device.activation = get("own key", count, wp.int64), get("own activation", count, wp.float64)
            device.factor = get("own factor", count, wp.float64)
            for name in ("key", "activation", "factor"):
                write(getattr(device, name), getattr(own, name))
        write(device.count, np.array([count], dtype=np.int32))

    def follow_list(self) -> None:
        """Make capacity for the present candidates and index their pairs: after every renewal of the list, before something is
        recorded or replayed."""
        self._sizes()
        if self.candidates.may_touch:
            self.candidates.index()
            self.reduction.follow(self._listed())

    def _listed(self) -> PairList:
        c = self.candidates
        return PairList(c.pairs, c.segment, c.group, c.columns, c.counts, c.pair_count, c.count, c.pair_capacity)

    def _sizes(self) -> tuple[int, int]:
        """Pairs and batches of candidates that a launch covers; arrays have capacity for them."""
        c, extent = self.candidates, self.device.extent
        pairs, count = c.pair_capacity, c.capacity
        if pairs > self._capacity[0] or count > self._capacity[1]:
            for slot in ("current", "trial"):
                for name, kind in KNOWN.items():
                    self.pool.get(f"{name}_{slot}", count, kind)
            self.pool.get("toi", count, wp.float64)
            self.pool.get("approach", pairs, wp.float64)
            self._capacity = self.pool.capacity("approach"), self.pool.capacity("toi")
            self.impacts.reserve(self._capacity[1])
        return extent(c.pair_count, pairs), -(-extent(c.count, count) // self.batch)

    def times_of_impact(self, path: Path, island, limit, out, proven: bool = False) -> None:
        """Per body, a safe alpha over the candidates it emits, at most the limit of its island. Only the smallest of an
        island means anything: others may depend on the order in which candidates were looked at.

        Slot "current" holds the gaps at the start of the path. `proven` says that the limits are safe for all pairs that
        the last renewal of the list has kept.
        """
        c = self.candidates
        if c.is_empty:
            self.device.fill(out, 1.0)
            return
        toi, query, known = self._along(path)
        self.device.copy(self.first_found, limit, count=limit.shape[0])
        where = island, limit, c.kept, int(proven), self.first_found
        self.impacts.stop(self.device.extent(c.count, c.capacity), query, known, where, toi)
        self.device.launch(sums.segment_minima, self.n, c.segment, c.group, toi, out, 1.0, grain=1024)

    def proven_fractions(self, path: Path, back: bool, out: wp.array) -> wp.array:
        """Per body, up to which fraction the swept paths of its candidates are proven free, and the same of every candidate; the
        paths lead `back`, or after that forth, where those that are free back stay so (`abd.backends.warp.parts.swept_paths`).
        Slot "current" holds the gaps at the end of the step."""
        c = self.candidates
        shares, query, known = self._along(path)
        self.impacts.free(self.device.extent(c.count, c.capacity), query, known, back, shares)
        self.device.launch(sums.segment_minima, self.n, c.segment, c.group, shares, out, 1.0, grain=1024)
        return shares

    @property
    def shares(self) -> wp.array:
        """What the last `times_of_impact` or `proven_fractions` found for every candidate."""
        return self.pool.get("toi", 1, wp.float64)

    def _along(self, path: Path) -> tuple[wp.array, tuple, tuple]:
        """Where shares of candidates go, and what `Impacts` takes first: how the bodies of their pairs approach on a path."""
        c, (pairs, _) = self.candidates, self._sizes()
        toi, approach = (self.pool.get(name, 1, wp.float64) for name in ("toi", "approach"))
        self.device.launch(kernels.pair_approaches, pairs, c.pairs, c.counts, self.done, path, approach, grain=4096)
        query = self.surfaces, path, c.pairs, c.items, c.counts, self.law.minimum
        return toi, query, (approach, self.arrays("current")[1])

    def smallest(self, values: wp.array, most: float) -> np.ndarray:
        """(pairs,) smallest value of the candidates (count,) of every listed pair of bodies, at most `most`; on the host."""
        c, read = self.candidates, self.device.read
        of_candidates, segment = read(values, c.count), read(c.segment, c.pair_count + 1)
        smallest, some = np.full(c.pair_count, most), np.diff(segment) > 0
        if some.any():
            smallest[some] = np.minimum.reduceat(of_candidates, segment[:-1][some])
        return smallest

    def arrays(self, slot: str) -> tuple[wp.array, ...]:
        """Energy and gap of every candidate, and bits of its parts that count, for slot "current" or "trial"."""
        self._sizes()
        return tuple(self.pool.get(f"{name}_{slot}", 1, kind) for name, kind in KNOWN.items())

    def exchange(self, at: Iterate) -> None:
        """Exchange what slots "current" and "trial" hold."""
        self._exchange()

    def _exchange(self) -> None:
        if self.candidates.is_empty:
            return
        if self.device.records:
            self._exchange_values()
        else:
            self._exchange_arrays()

    def _exchange_arrays(self) -> None:
        for name in KNOWN:
            self.pool.exchange(f"{name}_current", f"{name}_trial")
        self._exchanged = not self._exchanged

    def _exchange_values(self) -> None:
        slots = *self.arrays("current"), *self.arrays("trial")
        self.device.launch(kernels.exchange_known, self.candidates.capacity, self.candidates.counts, *slots)

    def begin_records(self) -> None:
        """Launches are recorded from now on: slots have the arrays that earlier records know them by."""
        if self._exchanged:
            self._exchange_arrays()
            self._exchange_values()

    def add_differences(self, at: Iterate, difference: wp.array, size: wp.array) -> None:
        """Add every body's change of energy from slot "current" to "trial", and the size of the terms."""
        c, launch = self.candidates, self.device.launch
        if not c.is_empty:
            energies = self.arrays("trial")[0], self.arrays("current")[0]
            launch(sums.segment_differences, self.n, c.segment, c.group, *energies, difference, size)

    def evaluate(self, at: Iterate, slot: str) -> None:
        """What is known at the pose of a slot.

        A trial on the path of the last `times_of_impact` (`Iterate.along`) settles distant candidates by a bound, and those
        of bodies that are done by what slot "current" holds.
        """
        c, pose = self.candidates, at.pose(slot)
        if c.is_empty:
            return
        reach, (_, batches) = self.anew if at.along is None else self.reach, self._sizes()
        if at.along is not None:
            reach.island, reach.alpha = at.along
            reach.approach = self.pool.get("approach", 1, wp.float64)
            reach.energy, reach.gap, reach.parts = self.arrays("current")
        self.device.launch(
            kernels.contact_energies,
            batches, self.surfaces, self.law, pose, c.pairs, c.items, c.counts, self.batch, reach,
            *self.arrays(slot), grain=512 // self.batch,
        )  # fmt: skip

    def carry(self, pose: Pose, before: tuple[wp.array, ...]) -> None:
        """What is known in slot "current" after the list was renewed at the current pose, where pairs that are kept
        have those of `before`, what the slot held for the list before."""
        if all(one is other for one, other in zip(before, self.arrays("current"), strict=True)):
            self.candidates.graphs.run(("carry", pose.p.ptr), lambda: self._launch_carry(pose, before))
        else:  # what it was before the list outgrew it is there once
            self._launch_carry(pose, before)

    def _launch_carry(self, pose: Pose, before: tuple[wp.array, ...]) -> None:
        """The same by launches only."""
        c, (_, batches) = self.candidates, self._sizes()
        self.device.launch(
            kernels.carry_energies,
            batches, self.surfaces, self.law, pose, c.pairs, c.items, c.counts, self.batch, c.kept, c.segment, c.old,
            *before, *self.arrays("trial"), grain=512 // self.batch,
        )  # fmt: skip
        self._exchange()

    def pair_gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """(k, 2) listed pairs of bodies and their smallest gaps (k,) in slot "current", in activations, infinite without
        any; on the host."""
        if self.candidates.pair_count == 0:
            return np.zeros((0, 2), dtype=np.int32), np.zeros(0)
        return self.candidates.pair_list(), self.smallest(self.arrays("current")[1], np.inf)

    def pressing(self, pose: Pose) -> Pressing:
        """Points at which bodies press on one another at the current pose, on the host. Its kernel is compiled for the first
        one who asks."""
        from cuda_kernels.contact.pressing import Points, press

        c, device, read, get = self.candidates, self.device, self.device.read, self.pool.get
        if c.count == 0:
            return Pressing.nothing()
        energy, _, parts = self.arrays("current")
        bits = read(parts, c.count)
        chosen = np.flatnonzero(bits).astype(np.int32)
        counts = _COUNT[bits[chosen]]
        total, offset = int(counts.sum()), np.cumsum(counts, dtype=np.int32) - counts
        if total == 0:
            return Pressing.nothing()
        points = Points()
        vectors = ("normal", "place", "force", "torque_i", "torque_j")
        for name, kind in {"pair": wp.vec2i, "gap": wp.float64, **dict.fromkeys(vectors, wp.vec3d)}.items():
            setattr(points, name, get(f"point {name}", total, kind))
        asked, first = get("asked", len(chosen), wp.int32), get("first point", len(chosen), wp.int32)
        device.write(asked, chosen)
        device.write(first, offset)
        query = self.surfaces, self.law, pose, c.pairs, c.items, asked, parts, energy, first
        device.launch(press, len(chosen), *query, points, grain=256)
        found = {name: read(getattr(points, name), total) for name in vectors}
        pair, gap = read(points.pair, total).astype(np.int64), read(points.gap, total)
        return Pressing(pair=pair, gap=gap, point=found.pop("place"), **found)

    def acting(self, model: Model) -> tuple[Pairs, Listed]:
        """Pairs of bodies, and those of their candidates that act in slot "current", as the definitions take them."""
        c, read = self.candidates, self.device.read
        items = np.zeros((0, 4), dtype=np.int64)
        if c.count:
            gap = read(self.arrays("current")[1], c.count)
            items = read(c.items, c.count).reshape(-1, 4)[gap < 1.0].astype(np.int64)
        pairs = c.pair_list().reshape(-1, 2).astype(np.int64)
        return pairs_of(model, *pairs.T), Listed(*items.T)

    def smallest_gap(self, slot: str = "current") -> tuple[float, bool]:
        """Smallest gap beyond the separation over all candidates [m], infinity without any, and whether it may be a lower
        bound."""
        c, read = self.candidates, self.device.read
        if c.count == 0:
            return float("inf"), False
        gap, pairs, items = read(self.arrays(slot)[1], c.count), c.pair_list(), read(c.items, c.count).reshape(-1, 4)
        length = gap * self.pair_law.activation(*pairs.T)[items[:, 0]]
        least = int(length.argmin())
        return float(length[least]), bool(gap[least] > 1.0)

    def body_gaps(self, slot: str = "current") -> wp.array:
        """(n,) smallest gap in activations over the candidates that a body emits; infinity without any."""
        out, c = self.least, self.candidates
        self.device.launch(sums.segment_minima, self.n, c.segment, c.group, self.arrays(slot)[1], out, float("inf"))
        return out

    def acting_pairs(self) -> np.ndarray:
        """(k, 2) pairs of bodies with an active contact in slot "current"; on the host."""
        c = self.candidates
        if c.count == 0:
            return np.zeros((0, 2), dtype=np.int32)
        found = self.pool.get("acting", c.pair_capacity, wp.vec2i)
        self.device.launch(statistics.list_acting, c.pair_count, c.pairs, c.segment, self.arrays("current")[1], found, grain=512)
        pairs = self.device.read(found, c.pair_count).reshape(-1, 2)
        return pairs[pairs[:, 0] >= 0]

    @property
    def couplings(self) -> list[tuple[Coupling, int]]:
        """Of the pairs of bodies in contact."""
        return [(self.reduction.coupling, 0 if self.candidates.is_empty else self.reduction.pair_capacity)]

    def add_to(self, at: Iterate, gradient: wp.array, diagonal: wp.array) -> None:
        """Add to those of bodies that are not done; `without` keeps the gradient before."""
        self.device.copy(self.without, gradient)
        self.linearize(at.current)
        self.reduce(gradient, diagonal)

    def linearize(self, pose: Pose) -> None:
        """Sums over the active candidates at the current pose, whose energies were evaluated in slot "current"."""
        c, r = self.candidates, self.reduction
        if c.is_empty:
            return
        if not self.device.deferring:
            c.index()
        _, gap, parts = self.arrays("current")
        r.prepare(self._listed(), self.done, gap, 1.0, parts if r.elements else None)
        runs, query = r.run_capacity, (self.surfaces, self.law, pose, c.pairs, c.items)
        listed = r.runs, r.counts
        if r.elements:
            self.device.launch(contact_elements, r.run * runs, *query, gap, *listed, r.run, r.elements, grain=64)
            r.sum_elements()
        else:
            self.device.launch(contact_blocks, runs, *query, parts, *listed, r.sums, grain=4)

    def pair_gradients(self, pose: Pose) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Body pairs (k, 2) with active candidates at the current pose, on the host, and the gradients (k, 12) of their
        contacts by the bodies i and j. As `linearize`, and not to be recorded."""
        empty = np.zeros((0, 2), dtype=np.int32), np.zeros((0, 12)), np.zeros((0, 12))
        if self.candidates.count == 0:
            return empty
        r, read, c = self.reduction, self.device.read, self.candidates
        r.follow(self._listed())

        def linearize() -> None:
            c.launch_columns()
            self.linearize(pose)

        def run() -> None:
            c.graphs.run(("linearize", pose.p.ptr), linearize)

        c.index(run)
        if r.lacks_capacity():
            run()
        if r.run_count == 0:
            return empty
        pair, place = np.unique(read(r.runs.pair, r.run_count), return_inverse=True)
        sums = np.zeros((2, len(pair), 12))
        for total, values in zip(sums, (r.sums.g_i, r.sums.g_j), strict=True):
            np.add.at(total, place.ravel(), read(values, r.run_count))
        return self.candidates.pair_list()[pair], *sums

    def reduce(self, gradient, diagonal) -> None:
        """Add what was linearised to gradient (n, 12) and diagonal (n, 12, 12) of bodies that are not done."""
        if not self.candidates.is_empty:
            self.reduction.reduce(self.done, gradient, diagonal)
