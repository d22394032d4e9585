"""Contact and friction on a device: energies, times of impact, gradients and blocks of the candidates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import warp as wp

from abd.backends.body_data import smallest_moments
from abd.backends.candidates import Candidates
from abd.backends.device import Device, Pool
from abd.backends.reduction import PairList, Reduction
from abd.backends.scan import Scan
from abd.contact.candidates import Candidates as Listed
from abd.contact.minima import counting
from abd.contact.pair_law import OwnLaws, PairLaw
from abd.contact.pairs import Pairs, pairs_of
from abd.contact.surfaces import Surfaces as DefinedSurfaces
from abd.model import Kind, Model
from abd.potentials.contact import Contacts as DefinedContacts
from abd.potentials.rolling import Resistances
from abd.potentials.sticking import Anchors
from abd.solver.lagging import PairLoads
from cuda_kernels import barrier, friction, rolling, sticking, sums
from cuda_kernels import contact as kernels
from cuda_kernels.affine import Path, Pose
from cuda_kernels.ccd import times_of_impact
from cuda_kernels.contact_blocks import contact_blocks
from cuda_kernels.contact_elements import contact_elements
from cuda_kernels.ways import way_shares

BARRIERS = {"log": barrier.LOG, "log_sq": barrier.LOG_SQ, "cubic": barrier.CUBIC}
REMEMBERED = ("key", "kind", "point", "share")
"""What contacts remember (`abd.potentials.sticking.Anchors`)."""
BATCH = 64
"""Candidates per thread on a processor, where entering a kernel costs more than to see that a candidate is far."""


class Contacts:
    """Barrier energy of all candidates at two poses: the current one and a trial.

    What evaluates and linearises may be recorded, after `follow_list`. A record keeps the law's numbers (not the stiffness
    and the caution, which are arrays), the poses and the rooms of the list.

    Args:
        done: (n,) int32 on the device, 1 for bodies whose island has converged: candidates between two of them keep
            their energies and gaps, and add nothing to the linear system. Read whenever a kernel runs; nobody by default.
    """

    def __init__(self, model: Model, device: Device, done: wp.array | None = None):
        settings = model.settings
        self.device, self.pool = device, Pool(device)
        self.n = len(model.bodies)
        self.done = device.zeros(self.n, wp.int32) if done is None else done
        self.pair_law = PairLaw(model)
        self.candidates = Candidates(model, device, self.pair_law)
        self.law = kernels.ContactLaw()
        self.law.kind = BARRIERS[settings.barrier]
        self.law.minimum = settings.minimum_separation
        self.law.kappa = device.zeros(1, wp.float64)
        self.law.stiffness = device.upload(model.materials.stiffness, wp.float64)
        self.law.inertia = device.upload(smallest_moments(model), wp.float64)
        self.law.caution = device.upload(np.ones(self.n), wp.float64)
        self.reduction = Reduction(device, model.bodies.kind == Kind.STATIC)
        self.least, self.first_found = (device.zeros(max(self.n, 1), wp.float64) for _ in range(2))
        self._room = -1, -1
        self.batch = 1 if device.wide else BATCH
        self.anew, self.reach = kernels.Reach(), kernels.Reach()
        self.reach.known = 1

    @property
    def surfaces(self):
        """Surfaces of the scene."""
        return self.candidates.surfaces

    @property
    def bytes(self) -> int:
        """What candidates, their energies and their sums take on the device; grows to the largest need so far."""
        return self.pool.bytes + self.candidates.pool.bytes + self.reduction.pool.bytes

    def set_scale(self, ch2: float) -> None:
        """c h^2, by which the energies of all pairs stand in the incremental potential."""
        self.device.write(self.law.kappa, np.array([ch2]))

    def set_own_laws(self, own: OwnLaws) -> None:
        """Pairs whose law is their own; what is known of contacts has to be evaluated again."""
        self.pair_law.own = own
        count, get, write, device = len(own), self.pool.get, self.device.write, self.surfaces.between.own
        if count:
            device.key, device.activation = get("own key", count, wp.int64), get("own activation", count, wp.float64)
            device.factor = get("own factor", count, wp.float64)
            for name in ("key", "activation", "factor"):
                write(getattr(device, name), getattr(own, name))
        write(device.count, np.array([count], dtype=np.int32))

    def set_caution(self, share: np.ndarray) -> None:
        """Shares (n,) of the bodies' bounds of the curvature of contacts and friction (`abd.solver.caution`)."""
        self.device.write(self.law.caution, share)

    def follow_list(self) -> None:
        """Make room for the present candidates and index their pairs: after every renewal of the list, before something is
        recorded or replayed."""
        self._sizes()
        self.reduction.follow(self._listed())

    def _listed(self) -> PairList:
        c = self.candidates
        return PairList(c.builds, c.pairs, c.segment, c.group, c.counts, c.pair_count, c.count, c.pair_room)

    def _sizes(self) -> tuple[int, int]:
        """Pairs and batches of candidates that a launch covers; arrays have room for them."""
        c, extent = self.candidates, self.device.extent
        pairs, count = extent(c.pair_count, c.pair_room), extent(c.count, c.room)
        if pairs > self._room[0] or count > self._room[1]:
            for name in ("energy_current", "gap_current", "energy_trial", "gap_trial", "toi"):
                self.pool.get(name, count, wp.float64)
            self.pool.get("approach", pairs, wp.float64)
            self.pool.get("parts", count, wp.int32)
            self._room = self.pool.room("approach"), self.pool.room("toi")
        return pairs, -(-count // self.batch)

    def times_of_impact(self, path: Path, island, limit, out, proven: bool = False) -> None:
        """Per body, a safe alpha over the candidates it emits, at most the limit of its island. Only the smallest of an
        island means anything: others may depend on the order in which candidates were looked at.

        Slot "current" holds the gaps at the start of the path. `proven` says that the limits are safe for all pairs that
        the last renewal of the list has kept.
        """
        c, (pairs, batches) = self.candidates, self._sizes()
        toi, approach = (self.pool.get(name, 1, wp.float64) for name in ("toi", "approach"))
        wp.copy(self.first_found, limit, count=limit.shape[0])
        self.device.launch(kernels.pair_approaches, pairs, c.pairs, c.counts, self.done, path, approach, grain=4096)
        self.device.launch(
            times_of_impact,
            batches, self.surfaces, path, c.pairs, c.items, c.counts, self.batch, self.law.minimum, island, limit,
            approach, self.arrays("current")[1], c.kept, int(proven), self.first_found, toi, grain=512 // self.batch,
        )  # fmt: skip
        self.device.launch(sums.segment_minima, self.n, c.segment, c.group, toi, out, 1.0, grain=1024)

    def way_shares(self, path: Path, back: bool, out: wp.array) -> wp.array:
        """Per body, how far the ways of the candidates it emits are proven free, and the same of every candidate; the ways
        lead `back` or forth (`abd.backends.ways`). Slot "current" holds the gaps at the end of the step."""
        c, (pairs, batches) = self.candidates, self._sizes()
        shares, approach = (self.pool.get(name, 1, wp.float64) for name in ("toi", "approach"))
        self.device.launch(kernels.pair_approaches, pairs, c.pairs, c.counts, self.done, path, approach, grain=4096)
        self.device.launch(
            way_shares,
            batches, self.surfaces, path, c.pairs, c.items, c.counts, self.batch, self.law.minimum, approach,
            self.arrays("current")[1], int(back), shares, grain=512 // self.batch,
        )  # fmt: skip
        self.device.launch(sums.segment_minima, self.n, c.segment, c.group, shares, out, 1.0, grain=1024)
        return shares

    def smallest(self, values: wp.array, most: float) -> np.ndarray:
        """(pairs,) smallest value of the candidates (count,) of every listed pair of bodies, at most `most`; on the host."""
        c, read = self.candidates, self.device.read
        of_candidates, segment = read(values, c.count), read(c.segment, c.pair_count + 1)
        smallest, some = np.full(c.pair_count, most), np.diff(segment) > 0
        if some.any():
            smallest[some] = np.minimum.reduceat(of_candidates, segment[:-1][some])
        return smallest

    def arrays(self, slot: str):
        """Energy and gap of every candidate, for slot "current" or "trial"."""
        self._sizes()
        return self.pool.get(f"energy_{slot}", 1, wp.float64), self.pool.get(f"gap_{slot}", 1, wp.float64)

    def exchange(self) -> None:
        """Exchange slots "current" and "trial"; a record exchanges what they hold."""
        for name in ("energy", "gap"):
            a, b = f"{name}_current", f"{name}_trial"
            if self.device.resident:
                count, arrays = self.candidates.room, (self.pool.get(slot, 1, wp.float64) for slot in (a, b))
                self.device.launch(kernels.exchange, count, self.candidates.counts, *arrays)
            else:
                self.pool.swap(a, b)

    def add_differences(self, difference, size) -> None:
        """Add every body's change of energy from slot "current" to "trial", and the size of the terms."""
        c, launch = self.candidates, self.device.launch
        if self.device.extent(c.count, c.room):
            energies = self.arrays("trial")[0], self.arrays("current")[0]
            launch(sums.segment_differences, self.n, c.segment, c.group, *energies, difference, size)

    def evaluate(self, pose: Pose, slot: str, along: tuple | None = None) -> None:
        """Energies and gaps at a pose.

        `along` = (island, alpha) says that it lies on the path of the last `times_of_impact`, which settles distant
        candidates by a bound, and those of bodies that are done by what slot "current" holds.
        """
        c, reach, (_, batches) = self.candidates, self.anew if along is None else self.reach, self._sizes()
        if along is not None:
            reach.island, reach.alpha = along
            reach.approach = self.pool.get("approach", 1, wp.float64)
            reach.energy, reach.gap = self.arrays("current")
        self.device.launch(
            kernels.contact_energies,
            batches, self.surfaces, self.law, pose, c.pairs, c.items, c.counts, self.batch, reach,
            *self.arrays(slot), grain=512 // self.batch,
        )  # fmt: skip

    def carry(self, pose: Pose, before: tuple[wp.array, wp.array]) -> None:
        """Energies and gaps in slot "current" after the list was renewed at the current pose, where pairs that are kept
        have those of `before`, what the slot held for the list before."""
        c, (_, batches) = self.candidates, self._sizes()
        self.device.launch(
            kernels.carry_energies,
            batches, self.surfaces, self.law, pose, c.pairs, c.items, c.counts, self.batch, c.kept, c.segment, c.old,
            *before, *self.arrays("trial"), grain=512 // self.batch,
        )  # fmt: skip
        self.exchange()

    def pair_gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """(k, 2) listed pairs of bodies and their smallest gaps (k,) in slot "current", in activations, infinite without
        any; on the host."""
        if self.candidates.pair_count == 0:
            return np.zeros((0, 2), dtype=np.int32), np.zeros(0)
        return self.candidates.pair_list(), self.smallest(self.arrays("current")[1], np.inf)

    def acting(self, model: Model) -> tuple[Pairs, Listed]:
        """Pairs of bodies, and those of their candidates that act in slot "current", as the definitions take them."""
        c, read = self.candidates, self.device.read
        items = np.zeros((0, 4), dtype=np.int64)
        if c.count:
            gap = read(self.arrays("current")[1], c.count)
            items = read(c.items, c.count).reshape(-1, 4)[gap < 1.0].astype(np.int64)
        pairs = c.pair_list().reshape(-1, 2).astype(np.int64)
        return pairs_of(model, *pairs.T), Listed(*items.T)

    def defined(self, model: Model, q: np.ndarray) -> DefinedContacts:
        """What counts in the state q (n, 12) of the pairs that are within their reach in slot "current", as the definitions
        take it."""
        pairs, gap = self.pair_gaps()
        i, j = pairs.T.astype(np.int64)
        law = self.pair_law
        near = gap * law.activation(i, j) < law.reach(i, j)
        items = self.device.read(self.candidates.items, self.candidates.count).reshape(-1, 4).astype(np.int64)
        items = items[near[items[:, 0]]] if len(pairs) else items
        surfaces = DefinedSurfaces.of(model)
        return counting(model, surfaces, pairs_of(model, i, j), Listed(*items.T), q, law.reach(i, j))

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

    def near_pairs(self, within: float) -> np.ndarray:
        """(k, 2) pairs of bodies whose gap in slot "current", which may be a lower bound beyond 1, is below so many of their
        activations; on the host."""
        c, read = self.candidates, self.device.read
        close = np.cumsum(read(self.arrays("current")[1], c.count) < within)
        return c.pair_list()[np.diff(np.append(0, close)[read(c.segment, c.pair_count + 1)]) > 0]

    def active(self) -> np.ndarray:
        """(count,) whether each candidate is active in slot "current"."""
        return self.device.read(self.arrays("current")[1], self.candidates.count) < 1.0

    def linearize(self, pose: Pose) -> None:
        """Sums over the active candidates at the current pose, whose energies were evaluated in slot "current"."""
        c, r, gap = self.candidates, self.reduction, self.arrays("current")[1]
        parts = self._find_parts(pose, gap) if r.elements else None
        r.prepare(self._listed(), self.done, gap, 1.0, parts)
        runs, items = self.device.extent(r.run_count, r.run_room), (c.pairs, c.items, gap, r.runs, r.counts)
        if r.elements:
            self.device.launch(
                contact_elements, r.run * runs, self.surfaces, self.law, pose, *items, r.run, r.elements, grain=64
            )
            r.sum_elements()
        else:
            self.device.launch(contact_blocks, runs, self.surfaces, self.law, pose, *items, r.sums, grain=4)

    def _find_parts(self, pose: Pose, gap: wp.array) -> wp.array:
        """Bits of the parts of every candidate that count at a pose."""
        c, parts, (_, batches) = self.candidates, self.pool.get("parts", 1, wp.int32), self._sizes()
        query = self.surfaces, self.law, pose, c.pairs, c.items, c.counts, self.batch, gap
        self.device.launch(kernels.find_parts, batches, *query, parts, grain=512 // self.batch)
        return parts

    def pair_gradients(self, pose: Pose) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Body pairs (k, 2) with active candidates at the current pose, on the host, and the gradients (k, 12) of their
        contacts by the bodies i and j. As `linearize`, and not to be recorded."""
        empty = np.zeros((0, 2), dtype=np.int32), np.zeros((0, 12)), np.zeros((0, 12))
        if self.candidates.count == 0:
            return empty
        self.linearize(pose)
        r, read = self.reduction, self.device.read
        if r.run_count == 0:
            return empty
        pair, place = np.unique(read(r.runs.pair, r.run_count), return_inverse=True)
        sums = np.zeros((2, len(pair), 12))
        for total, values in zip(sums, (r.sums.g_i, r.sums.g_j), strict=True):
            np.add.at(total, place.ravel(), read(values, r.run_count))
        return self.candidates.pair_list()[pair], *sums

    def reduce(self, gradient, diagonal) -> None:
        """Add what was linearised to gradient (n, 12) and diagonal (n, 12, 12) of bodies that are not done."""
        self.reduction.reduce(self.done, gradient, diagonal)


class Friction:
    """Lagged friction of the contacts frozen at one pose.

    What evaluates and linearises may be recorded. A record keeps eps, the poses and the rooms of the frozen contacts.

    Attributes:
        count, pair_count: frozen contacts, and body pairs of the list they were taken from; lagged.counts on the device.
        segment, group: where the contacts of every pair and the pairs of every body begin.
    """

    def __init__(self, model: Model, device: Device, contacts: Contacts):
        self.device, self.contacts, self.pool = device, contacts, Pool(device)
        n = len(model.bodies)
        self.defined = Resistances.of(model)
        self.resists = rolling.Resistances()
        for name in ("mu", "rolling", "spinning", "arm"):
            setattr(self.resists, name, device.upload(getattr(self.defined, name), wp.float64))
        self.lags, self.elastic = model.settings.friction_iterations != 0, model.settings.stick == "elastic"
        self.enabled = self.defined.any and self.lags
        self.reduction = Reduction(device, model.bodies.kind == Kind.STATIC)
        self.anchors = sticking.Anchors()
        self.anchors.count, self.anchors.key = device.zeros(1, wp.int32), device.zeros(1, wp.int64)
        self.anchors.kind = device.zeros(1, wp.int32)
        self.anchors.point, self.anchors.share = device.zeros(1, wp.vec3d), device.zeros(1, wp.vec3d)
        self.lagged = friction.Lagged()
        self.lagged.counts = device.zeros(2, wp.int32)
        self.count = self.pair_count = self.laggings = 0
        self.pairs, self.segment = device.zeros(1, wp.vec2i), device.zeros(1, wp.int32)
        self.group = device.zeros(n + 1, wp.int32)
        self.nobody = device.zeros(n, wp.int32)
        self.wanted, self.scan, self._builds = device.zeros(1, wp.int32), Scan(device), -1

    @property
    def sticks(self) -> bool:
        """Whether contacts remember how far they are stretched, as `anchors` (`abd.potentials.sticking`)."""
        return self.enabled and self.elastic

    def set_coefficients(self, mu: np.ndarray) -> None:
        """Other coefficients (m, m) between materials; what is frozen is let go."""
        self.defined = replace(self.defined, mu=np.array(mu))
        self.device.write(self.resists.mu, self.defined.mu)
        self.enabled = self.defined.any and self.lags
        self.device.write(self.lagged.counts, np.zeros(2, dtype=np.int32))
        self.laggings += 1
        self.take(0)
        self.group.zero_()
        self._index()

    def lag(self, pose: Pose, heading: wp.array) -> None:
        """Freeze the contacts that are active at `pose`; slot "current" holds its energies. Not to be recorded.

        `heading` (n,) are the maps that the bodies' rotation leads to (`abd.potentials.friction.freeze`)."""
        if not self.enabled:
            return
        if not self.device.resident:
            self.laggings += 1
            self._freeze(pose, heading, self._mark(pose))
            return
        self.follow_list()
        self.launch_lag(pose, heading)
        wanted = int(self.device.read(self.wanted)[0])
        if self.make_room(wanted):
            self.launch_lag(pose, heading)
        self.take(wanted)

    def follow_list(self) -> None:
        """Make room for the pairs of the present list and index them: where launches are recorded, before it is lagged."""
        c, get = self.contacts.candidates, self.pool.get
        if not self.enabled:
            return
        for name in ("marks", "offset"):
            get(name, c.room + 1, wp.int32)
        self.scan.reserve(c.room)
        self._take_pairs(c.pair_room)
        # the pairs, but not yet how many of their candidates will be frozen
        self.reduction.follow(PairList(c.builds, c.pairs, c.segment, c.group, c.counts, c.pair_count, 0, c.pair_room))

    def launch_lag(self, pose: Pose, heading: wp.array) -> None:
        """As `lag`, to be recorded after `follow_list`; `take` then tells the host how many were `wanted`. Nothing is frozen
        where there is no room for all."""
        if self.enabled:
            self._freeze(pose, heading, self._mark(pose))

    @property
    def follows_list(self) -> bool:
        """Whether the pairs of frozen contacts are among those of the present candidate list."""
        return self._builds == self.contacts.candidates.builds

    def take(self, wanted: int) -> None:
        """So many contacts were frozen at the last `launch_lag`."""
        self.count = wanted
        self.pair_count = self.contacts.candidates.pair_count if wanted else 0
        self._builds = self.contacts.candidates.builds

    @property
    def room(self) -> int:
        """Contacts that there is room for."""
        return self.pool.room("load")

    def make_room(self, count: int) -> bool:
        """Make room for so many contacts; True if there was too little, so that they have yet to be frozen."""
        grows, get, lagged = count > self.room, self.pool.get, self.lagged
        lagged.pair, lagged.n = get("pair", count, wp.vec2i), get("n", count, wp.vec3d)
        lagged.kind = get("kind", count, wp.int32)
        lagged.Y_i, lagged.Y_j = get("Y_i", count, wp.vec4d), get("Y_j", count, wp.vec4d)
        for name in ("energy_current", "energy_trial", "work"):
            get(name, count, wp.float64)
        lagged.load, lagged.share = get("load", count, wp.float64), get("share", count, wp.vec3d)
        if self.sticks:
            self._make_room_for_anchors(self.room)
        return grows

    def _make_room_for_anchors(self, room: int) -> None:
        """For so many contacts; those of the last step stay."""
        if self.anchors.key.shape[0] < room:
            for name in REMEMBERED:
                before = getattr(self.anchors, name)
                array = self.device.empty(room, before.dtype)
                wp.copy(array, before, count=before.shape[0])
                setattr(self.anchors, name, array)

    def keep_anchors(self, pose: Pose, rest: Pose, now: Pose, eps: float) -> None:
        """Remember how far the contacts are stretched after a step from `now` to `pose`."""
        if self.sticks:
            extent = max(self._extent, 1)
            self.device.launch(friction.keep_anchors, extent, self.lagged, eps, pose, rest, now, self.anchors)

    def read_anchors(self) -> Anchors:
        """What the contacts of the last step remember, on the host."""
        a, read = self.anchors, self.device.read
        count = int(read(a.count)[0])
        if count == 0:
            return Anchors()
        return Anchors(*(read(getattr(a, name), count) for name in REMEMBERED))

    def set_anchors(self, anchors: Anchors) -> None:
        """What the contacts remember from now on."""
        if not self.sticks:
            return
        self._make_room_for_anchors(len(anchors))
        for name in REMEMBERED if len(anchors) else ():
            self.device.write(getattr(self.anchors, name), getattr(anchors, name))
        self.device.write(self.anchors.count, np.array([len(anchors)], dtype=np.int32))

    def _take_pairs(self, room: int) -> None:
        self.pairs, self.segment = self.pool.get("pairs", room, wp.vec2i), self.pool.get("segment", room + 1, wp.int32)

    def _mark(self, pose: Pose) -> wp.array:
        """Where every candidate goes that is to be frozen: an exclusive sum of 0 and 1; what is needed for them."""
        c, device, get, surfaces = self.contacts.candidates, self.device, self.pool.get, self.contacts.surfaces
        extent, gap = device.extent(c.count, c.room), self.contacts.arrays("current")[1]
        marks, offset = get("marks", extent + 1, wp.int32), get("offset", extent + 1, wp.int32)
        device.launch(
            friction.rubbing,
            extent, self.resists, surfaces.material, c.pairs, c.items, c.counts, surfaces, self.contacts.law, pose, gap, marks,
        )  # fmt: skip
        if device.resident:
            self.scan.run(marks, offset, c.counts, 1, extent)
        else:
            self.take(device.scan(marks, offset, extent))
            self.make_room(self.count)
            self._take_pairs(c.pair_count)
        device.launch(friction.count_lagged, 1, c.counts, offset, self.room, self.wanted, self.lagged.counts)
        return offset

    def _freeze(self, pose: Pose, heading: wp.array, offset: wp.array) -> None:
        """Freeze what was marked, and find the pairs that it belongs to."""
        c, device, n, counts = self.contacts.candidates, self.device, self.contacts.n, self.lagged.counts
        extent, pairs = device.extent(c.count, c.room), device.extent(c.pair_count, c.pair_room)
        if device.resident or self.count:
            device.launch(
                friction.lag_contacts,
                extent, self.contacts.surfaces, self.contacts.law, self.resists, pose, heading, c.pairs, c.items, c.counts,
                offset, self.anchors, self.lagged,
            )  # fmt: skip
            # the pair list may be rebuilt while these contacts stay frozen: keep its groups
            wp.copy(self.pairs, c.pairs, count=pairs)
            device.launch(friction.gather_offsets, pairs + 1, counts, c.segment, offset, self.segment)
            wp.copy(self.group, c.group, count=n + 1)
        else:
            self.group.zero_()
        self._index()

    def _index(self) -> None:
        """Prepare the sums over what is frozen, of which everything counts: a load is finite."""
        c, counts = self.contacts.candidates, self.lagged.counts
        version = c.builds if self.device.resident else self.laggings
        listed = PairList(
            version, self.pairs, self.segment, self.group, counts, self.pair_count, self.count, c.pair_room
        )  # fmt: skip
        self.reduction.prepare(listed, self.nobody, self.lagged.load, float("inf"))

    @property
    def bytes(self) -> int:
        """What the frozen contacts and their sums take on the device; grows to the largest need so far."""
        anchors = sum(getattr(self.anchors, name).capacity for name in REMEMBERED)
        return self.pool.bytes + self.reduction.pool.bytes + anchors

    @property
    def _extent(self) -> int:
        """Contacts that a launch covers."""
        return self.device.extent(self.count, self.room)

    def pair_list(self) -> np.ndarray:
        """Host copy of the body pairs (k, 2) among which contacts were frozen."""
        if self.count == 0:
            return np.zeros((0, 2), dtype=np.int32)
        return self.device.read(self.pairs, self.pair_count).reshape(-1, 2)

    def frozen(self) -> tuple[np.ndarray, ...]:
        """Bodies (l, 2), kinds (l,), normals (l, 3), contact points Y_i, Y_j (l, 4), shares (l, 3) and loads times c h^2 (l,) of
        what is frozen (`abd.potentials.friction.Lagged`)."""
        if self.count == 0:
            # there may be no arrays: nothing was ever frozen
            pair, kind = np.zeros((0, 2), dtype=np.int32), np.zeros(0, dtype=np.int32)
            return pair, kind, *(np.zeros((0, k)) for k in (3, 4, 4, 3)), np.zeros(0)
        names = ("pair", "kind", "n", "Y_i", "Y_j", "share", "load")
        return tuple(self.device.read(getattr(self.lagged, name), self.count) for name in names)

    def energies(self, slot: str) -> wp.array:
        """Energy of every lagged contact, for slot "current" or "trial"."""
        return self.pool.get(f"energy_{slot}", 1, wp.float64)

    def exchange(self) -> None:
        """Exchange slots "current" and "trial"; a record exchanges what they hold."""
        if self.device.resident:
            slots = self.energies("current"), self.energies("trial")
            self.device.launch(kernels.exchange, self._extent, self.lagged.counts, *slots)
        else:
            self.pool.swap("energy_current", "energy_trial")

    def add_differences(self, difference, size) -> None:
        """Add every body's change of energy from slot "current" to "trial", and the size of the terms."""
        if self._extent:
            energies = self.energies("trial"), self.energies("current")
            n, launch = self.contacts.n, self.device.launch
            launch(sums.segment_differences, n, self.segment, self.group, *energies, difference, size)

    def evaluate(self, pose: Pose, rest: Pose, eps: float, slot: str):
        """Energies (count,) of the lagged contacts for displacements against `rest`."""
        out = self.energies(slot)
        self.device.launch(friction.friction_energies, self._extent, self.lagged, eps, pose, rest, out)
        return out

    def linearize(self, pose: Pose, rest: Pose, eps: float) -> None:
        """Sums over the lagged contacts."""
        r, contacts = self.reduction, self.contacts
        runs, items = self.device.extent(r.run_count, r.run_room), (r.runs, r.counts)
        slips, caution = (self.lagged, eps, pose, rest), contacts.law.caution
        if r.elements:
            self.device.launch(
                friction.friction_elements, r.run * runs, *slips, caution, *items, r.run, r.elements, grain=128
            )
            r.sum_elements()
        else:
            self.device.launch(friction.friction_blocks, runs, *slips, contacts.done, caution, *items, r.sums, grain=8)

    def reduce(self, gradient, diagonal) -> None:
        """Add what was linearised to gradient (n, 12) and diagonal (n, 12, 12) of bodies that are not done."""
        self.reduction.reduce(self.contacts.done, gradient, diagonal)

    def loads(self, pose: Pose) -> tuple[PairLoads, PairLoads]:
        """Loads that were frozen, and those at a pose whose gaps are in slot "current"; pairs without any are left out."""
        read, launch, c, contacts = self.device.read, self.device.launch, self.contacts.candidates, self.contacts
        out = self.pool.get("loads", max(c.pair_count, self.pair_count), wp.float64)

        def kept(pairs: wp.array, count: int) -> PairLoads:
            load = read(out, count)
            some = np.flatnonzero(load)
            return PairLoads(read(pairs, count)[some] if len(some) else np.zeros((0, 2), dtype=np.int32), load[some])

        frozen = acting = PairLoads(np.zeros((0, 2), dtype=np.int32), np.zeros(0))
        if self.count:
            launch(friction.lagged_loads, self.pair_count, self.lagged, self.segment, out)
            frozen = kept(self.pairs, self.pair_count)
        if c.count:
            launch(
                friction.pair_loads,
                c.pair_count, contacts.surfaces, contacts.law, self.resists, pose, c.pairs, c.items, c.counts, c.segment,
                contacts.arrays("current")[1], out, grain=512,
            )  # fmt: skip
            acting = kept(c.pairs, c.pair_count)
        return frozen, acting

    def works(self, pose: Pose, rest: Pose, now: Pose, eps: float) -> wp.array:
        """(count,) work of friction on the motion from `now` to `pose`, times c h^2, contact by contact."""
        out = self.pool.get("work", 1, wp.float64)
        self.device.launch(friction.friction_works, self._extent, self.lagged, eps, pose, rest, now, out)
        return out
