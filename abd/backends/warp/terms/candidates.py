"""The candidate list on a device: which primitive pairs can come close during a step.

A list built for one path holds every pair that comes within its activation and a margin of its separation anywhere on it, so it
stays complete as long as later motions add up to less than the margin. Then it is renewed: within a step, the pairs whose
bodies have not approached one another by their margin keep what they have. A step begins with a new list, so that it does
not depend on how the state was reached.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import warp as wp

from abd.backends.device.device import ALONE, Device
from abd.backends.device.graphs import Graphs
from abd.backends.device.scan import WARP, chunk_length
from abd.backends.device.upload import EMPTY, upload_filters, upload_surfaces
from abd.backends.warp.terms.columns import Columns
from abd.backends.warp.terms.list_capacities import CANDIDATES, ORDER, PAIRS, PRIMITIVES, ListCapacities
from abd.contact.pair_law import PairLaw
from abd.contact.pairs import some_may_collide
from abd.contact.typical import two_may_touch, typical_activation, typical_edge, typical_extent
from abd.model import Kind, Model
from cuda_kernels.bodies.affine import Path
from cuda_kernels.contact import broad_phase, items, kept_pairs, narrow_phase
from cuda_kernels.contact.relative_frames import relative_frames
from cuda_kernels.parallel import counting, scans

MARGIN = 0.05
"""How much further than d_hat the list reaches at most, in typical edge lengths: it survives most Newton steps, and on
meshes coarser than the reach its length hardly grows."""
REACH = 4.0
"""The same, over the motion that the list is built for, but no less than d_hat: a scene at rest needs a short list. One
half is for another start of the step, the other for the Newton steps."""
RESERVE = 4.0
"""Paths like the present one that the margin of a pair has to last for, or it is searched anew with the others: every
renewal is for the pair that runs out first, and the next one should not follow at once."""
LAST = 1.0
"""The same for a path that no other one follows."""

BATCH = 64
"""Candidates per thread on a processor, where entering a kernel costs more than to copy one."""
SAMPLES = 4096
"""Bodies whose places give the bounds of the tree on CUDA."""
FEW = 1 / 64
"""Part of the bodies that may be far from the others along an axis, on either side."""
SORTED_ALONE = 128
"""Partners of a body that one thread sorts where there are thousands of threads; those of larger bodies are sorted by one
thread each."""


class Candidates(ListCapacities):
    """Candidates of all body pairs, grouped by pair; pairs grouped by the body that emits them.

    Where launches are recorded, everything that is counted stays on the device: passes run over the capacity that there is,
    and one read tells whether it was enough. Otherwise every launch covers exactly what the one before it found.

    Attributes:
        count, pair_count: numbers of candidates and of body pairs; counts: (2,) int32 on the device, [pair_count, count].
        group: (n + 1,) first pair of every body; the other arrays as `ListCapacities` names them.
        builds: how often the list was renewed.
        worlds: how many there are; each has a list of its own: what happens in one says nothing of the others'.
        slack: (worlds,) motion [m] that the list of body pairs still covers, negative where it covers nothing; searched: 1
            while the path is the one that the list was renewed for, which uses up nothing; lacks: 1 where the last path
            tested was not covered; margins [m]; grown [m]: what boxes grow by; all on the device.
        columns: the pairs by their column bodies, after `index`.
        held: (n,) int32 on the device, 1 for bodies that do not move, whose island is not known.
        reusable: whether a renewal may keep the candidates of pairs.
        may_touch: whether two bodies have the surfaces for it; may_collide: whether contact filters and joints let any two do so
            at present.
        is_empty: no contact is listed or lagged, ever or in this step and in what is recorded of it: sums over contacts
            launch nothing then (`abd.backends.recorded.whole_step`).
        sorted_alone: partners of a body that one thread sorts.
        tree: over the boxes of the bodies, None before the first search. Every world has a subtree of its own, so that a
            body of one is not tested against those of the others; root: (n,) int32 on the device, the node of the subtree.
        tree_boxes: what the tree is over: on CUDA the boxes clamped to `bounds`, (2,) vec3 on the device, since Warp sorts
            leaves by a thousand cells of the tree's bounds per axis, which one body far away would leave all others one of.
        travel: motion [m] since the tree of the bodies was built; up to a typical mesh it is only fitted to new boxes.
    """

    def __init__(self, model: Model, device: Device, law: PairLaw):
        super().__init__(device)
        self.n = len(model.bodies)
        self.uploaded = upload_surfaces(model, device, law)
        self.surfaces = self.uploaded.data
        self.filters = upload_filters(model, device)
        self.minimum = model.settings.minimum_separation
        self.d_hat = typical_activation(model, law)
        self.margin = max(self.d_hat, MARGIN * typical_edge(model))
        self.lower = device.zeros(max(self.n, 1), wp.vec3)
        self.upper = device.zeros(max(self.n, 1), wp.vec3)
        self.may_touch = two_may_touch(model)
        self.may_collide = self.may_touch and some_may_collide(model)
        self.is_empty = not self.may_touch
        self.tree: wp.Bvh | None = None
        self.tree_boxes = (
            [device.zeros(max(self.n, 1), wp.vec3) for _ in range(2)] if device.wide else [self.lower, self.upper]
        )
        self.bounds = device.upload([[-EMPTY] * 3, [EMPTY] * 3], wp.vec3)
        self.extent, self.travel = typical_extent(model), np.inf
        self.group = device.zeros(self.n + 1, wp.int32)
        self.count = self.pair_count = self.builds = 0
        self.found, self.totals = device.zeros(3, wp.int32), device.zeros(3, wp.int64)
        self.counts = self.found[:2]
        self.bodies = device.upload([self.n], wp.int32)
        self.old = kept_pairs.OldList()
        self.batch, self.kinds = (BATCH, items.KINDS) if not device.wide else (1, 1)
        self.sorted_alone = SORTED_ALONE
        self.worlds = max(int(np.unique(model.bodies.world).size), 1)
        # the contact filters may change; the tree keeps worlds apart, which do not
        self.tree_group = device.upload(model.bodies.world, wp.int32) if self.worlds > 1 else None
        self.root = device.upload(np.full(max(self.n, 1), -1), wp.int32)
        self.slack = device.upload(np.full(self.worlds, -1.0), wp.float64)
        self.motion, self.margins, self.grown = (device.zeros(self.worlds, wp.float64) for _ in range(3))
        self.each, self.held = device.zeros(max(self.n, 1), wp.float64), device.zeros(max(self.n, 1), wp.int32)
        self.searched, self.covered = device.zeros(self.worlds, wp.int32), device.zeros(1, wp.int32)
        self.lacks = device.upload(np.ones(self.worlds), wp.int32)
        self.old.group, self.old.counts = device.zeros(self.n + 1, wp.int32), device.zeros(2, wp.int32)
        self.columns, self._indexed = Columns(device, model.bodies.kind == Kind.STATIC), 0
        self.graphs, self._old_count = Graphs(device), 0
        self.reusable = False

    def forget(self) -> None:
        """Search everything anew for the next path."""
        self.device.fill(self.slack, -1.0)
        self.reusable = False

    def clear(self) -> None:
        """Forget, and list nothing until the next path is searched."""
        self.forget()
        self.count = self.pair_count = 0
        self.device.fill(self.counts)

    @property
    def _extent(self) -> int:
        """Pairs that a launch covers."""
        return 0 if self.is_empty else self.device.extent(self.pair_count, self.pair_capacity)

    # what the list covers ----------------------------------------------------------------------------------------

    def launch_motions(self, each: wp.array, island: wp.array) -> None:
        """Know how far the islands (islands,) of every world move [m]."""
        if self.worlds > 1:
            self.device.fill(self.motion)
            self.device.launch(
                kept_pairs.world_motions, self.n, self.filters.world, self.held, island, each, self.motion, grain=ALONE
            )

    def test_cover(self, path: Path, reach: wp.array, each: wp.array, island, limit, covered: wp.array) -> None:
        """Set `covered` (1,) int32 to 1 if the list is complete for a path, up to the limits (islands,) of the bodies'
        islands (n,), to 0 if not, and note the worlds for which it is not.

        Args:
            each: (islands,) largest motion of a vertex [m]; reach: (1,) of all.
        """
        launch, extent, worlds = self.device.launch, self._extent, self.filters.world
        self.launch_motions(each, island)
        if self.worlds > 1:
            self.device.fill(covered, 1)
        motion = reach if self.worlds == 1 else self.motion
        launch(kept_pairs.test_slack, self.worlds, motion, self.slack, covered, self.searched, self.lacks)
        launch(
            kept_pairs.test_margins,
            extent, self.counts, self.pairs, worlds, path, island, limit, self.left, covered, self.searched, self.lacks,
        )  # fmt: skip

    def spend(self, path: Path, reach: wp.array, each: wp.array, island, alpha) -> None:
        """Bodies went along the path last covered, up to alpha (islands,), no vertex further than `each` (islands,), or
        `reach` (1,) [m]."""
        extent = max(self.worlds, self._extent)
        self.launch_motions(each, island)
        motion = reach if self.worlds == 1 else self.motion
        self.device.launch(
            kept_pairs.spend_margins,
            extent, self.counts, self.pairs, self.filters.world, path, motion, island, alpha, self.searched, self.kept,
            self.slack, self.left, grain=4096,
        )  # fmt: skip

    def _take(self, each: np.ndarray) -> tuple[wp.array, wp.array]:
        """Motions [m] that the host knows, of all islands together and of each (islands,)."""
        each = np.atleast_1d(each)
        if self.worlds == 1:
            self.device.write(self.motion, np.array([each.max(initial=0.0)]))
        else:
            self.device.write(self.each, each)
        return self.motion, self.each

    def covers(self, path: Path, each: np.ndarray, island, limit) -> bool:
        """`test_cover` for the host, whose motions (islands,) are numbers [m]."""
        if not self.reusable:
            self.launch_motions(self._take(each)[1], island)
            return False
        self.test_cover(path, *self._take(each), island, limit, self.covered)
        return bool(self.device.read(self.covered)[0])

    def cover(self, path: Path, each: np.ndarray, island, limit) -> bool:
        """Make the list complete for such a path; True if renewed."""
        if self.covers(path, each, island, limit):
            return False
        self.renew(path, float(np.max(each, initial=0.0)), island, limit)
        return True

    def moved(self, path: Path, each: np.ndarray, island, alpha) -> None:
        """`spend` for the host, whose motions (islands,) are numbers [m]."""
        self.spend(path, *self._take(each), island, alpha)

    # renewal -----------------------------------------------------------------------------------------------------

    def search_all(self) -> None:
        """Renew the list in all worlds next, for a path that leads nowhere."""
        self.device.fill(self.lacks, 1)
        self.device.fill(self.motion)

    def renew(self, path: Path, motion: float, island, limit) -> None:
        """Renew the list, in worlds that the last path tested was not covered in, for a path along which no vertex moves further
        than `motion` [m], with margins to match.

        Raises:
            StepFailure: there would be more candidates than may be.
        """
        self.travel += motion
        if self.worlds == 1:
            self.build(path, island, limit, min(max(self.d_hat, REACH * motion), self.margin))
            return
        query = self.motion, REACH, self.d_hat, self.margin, self.margins
        self.device.launch(kept_pairs.set_margins, self.worlds, *query)
        self._build(path, island, limit, RESERVE)

    def build(self, path: Path, island, limit, margin: float | None = None, reserve: float = RESERVE) -> None:
        """Renew the list for this path, up to the limits, with a margin [m], the largest one by default: pairs that are
        new, or whose own does not last for so many such paths, are searched.

        Raises:
            StepFailure: there would be more candidates than may be.
        """
        self.device.fill(self.margins, self.margin if margin is None else margin)
        self._build(path, island, limit, reserve)

    def _build(self, path: Path, island, limit, reserve: float) -> None:
        """The same with the margins of the worlds."""
        self.builds += 1
        extent, keeps = self.device.extent, self.reusable and self.pair_count > 0
        kept = (extent(self.pair_count, self.pair_capacity), extent(self.count, self.capacity)) if keeps else None
        self._old_count = self.count if keeps else 0
        if not self.reusable:
            self.device.fill(self.lacks, 1)
        self.reusable, self.count, self.pair_count = False, 0, 0
        if kept:
            self._reserve_old(*kept)
        self.graphs.run(("begin", keeps, path.p.ptr), lambda: self._launch_begin(path, kept))
        if self.may_touch:
            self._fit_tree()
            found = False
            while not found:
                found = self._search(path, island, limit, reserve)
        self.reusable = True

    def begin_slack(self, slack: float) -> None:
        """A path was searched with a margin [m]; launches only."""
        self.device.launch(kept_pairs.begin_slack, self.worlds, slack, self.slack, self.searched)

    def _reserve_old(self, pairs: int, count: int) -> None:
        """Room for an old list of so many pairs and candidates."""
        old, get = self.old, self.pool.get
        old.pairs, old.left = get("old pairs", pairs, wp.vec2i), get("old left", pairs, wp.float64)
        old.segment, old.number = get("old segment", pairs + 1, wp.int32), get("old number", pairs, wp.int32)
        old.items = get("old items", count, wp.vec4i)

    def _launch_begin(self, path: Path, kept: tuple[int, int] | None) -> None:
        """Keep the list as the old one, of which launches cover so many pairs and candidates, nothing of it where it does not
        serve any more; boxes of the bodies for the next one."""
        old, launch, copy = self.old, self.device.launch, self.device.copy
        if kept:
            pairs, count = kept
            copy(old.counts, self.counts, count=2)
            launch(kept_pairs.set_aside, pairs, self.pairs, self.left, self.segment, old, grain=16384)
            copy(old.group, self.group, count=self.n + 1)
            copy(old.items, self.items, count=count)
        else:
            self.device.fill(old.group)
            self.device.fill(old.counts)
        grown = self.margins, self.minimum, self.lacks, self.grown
        launch(kept_pairs.grow, self.worlds, *grown, self.slack, self.searched)
        if self.may_touch:
            self.launch_boxes(path, self.grown)

    def growth(self, slack: float) -> wp.array:
        """(worlds,) how far [m] the boxes of bodies grow for a list with a margin [m]."""
        return self.device.upload(np.full(self.worlds, 0.5 * (slack + self.minimum) * 1.0001), wp.float64)

    def launch_boxes(self, path: Path, grown: wp.array) -> None:
        """Boxes of the bodies over the path, grown by (worlds,) [m]."""
        self.device.launch(
            broad_phase.swept_boxes, self.n, self.surfaces, path, self.filters.world, grown, self.lower, self.upper
        )

    def _fit_tree(self) -> None:
        """Fit the tree to the boxes of the bodies. It is first built here: over equal boxes it would be a chain on CUDA."""
        fits = self.tree is not None and self.travel <= self.extent
        if self.device.wide:
            if not fits:
                self._bound()
            self.device.launch(broad_phase.clamp_boxes, self.n, self.lower, self.upper, self.bounds, *self.tree_boxes)
        with self.device.turn:
            if fits:
                self.tree.refit()
                return
            if self.tree is None:
                self.tree = wp.Bvh(*self.tree_boxes, groups=self.tree_group)
            else:
                self.tree.rebuild()
        self.travel = 0.0
        if self.tree_group is not None:
            self.device.launch(broad_phase.find_roots, self.n, self.tree.id, self.tree_group, self.root)

    def _bound(self) -> None:
        """Set the bounds of the tree, from where most bodies are."""
        stride = -(-self.n // SAMPLES)
        count = -(-self.n // stride)
        places = self.pool.get("places", count, wp.vec3)
        self.device.launch(broad_phase.sample_places, count, stride, self.lower, self.upper, places)
        found = self.device.read(places, count)
        found = found[np.isfinite(found).all(axis=1)]
        if len(found):
            low, high = np.quantile(found, [FEW, 1.0 - FEW], axis=0)
            span = np.maximum(high - low, self.extent)
            self.device.write(self.bounds, np.stack([low - span, high + span]))

    def _search(self, path: Path, island, limit, reserve: float) -> bool:
        """Find pairs, and their candidates unless they are kept; False if some arrays were too short, which have grown."""
        places = path.p.ptr, island.ptr, limit.ptr
        self.graphs.run(("search", places, reserve), lambda: self._launch_search(path, island, limit, reserve))
        wanted = self.device.read(self.totals)
        # every kind has to have its turn: what was cut short grows at once
        fits = False not in [self.grow(kind, wanted) for kind in ORDER]
        if fits:
            self.pair_count, self.count = int(wanted[PAIRS]), int(wanted[CANDIDATES])
        return fits

    def _launch_search(self, path: Path, island, limit, reserve: float) -> None:
        """The same as far as there is capacity, by launches only; `totals` says how much is needed."""
        get, launch, counts = self.pool.get, self.device.launch, self.counts
        self.device.fill(self.totals)
        self.columns.reserve(self.pair_capacity)
        numbers, partners = get("pair counts", self.n, wp.int32), get("partners", self.n, wp.int32, (broad_phase.ROOM,))
        near = self.filters, self.surfaces, self.lower, self.upper, self.grown
        query = self.tree.id, self.root, self.bounds, *near, self.old, self.lacks, self.group
        margins = self.filters.world, self.margins
        memory = self.sorted_alone, numbers, partners, counts
        launch(broad_phase.emit_pairs, self.n, *query, 0, *memory, self.pairs, grain=64)
        pairs = self._sum(PAIRS, numbers, self.bodies, 0, self.n, self.group)
        launch(broad_phase.emit_pairs, self.n, *query, 1, *memory, self.pairs, grain=64)
        if self.n > self.sorted_alone:
            query = counts, numbers, self.sorted_alone
            launch(broad_phase.copy_long, pairs, *query, self.pairs, self.unordered)
            launch(broad_phase.order_long, pairs, *query, self.group, self.unordered, self.pairs)
        launch(
            kept_pairs.match_pairs,
            pairs, counts, self.pairs, path, island, limit, self.old, self.filters.world, self.lacks, self.margins, reserve,
            self.kept, self.left, grain=1024,
        )  # fmt: skip
        launch(
            relative_frames,
            2 * pairs, counts, self.surfaces, path, self.pairs, self.kept, *margins, self.minimum, island, limit,
            self.frames, grain=512,
        )  # fmt: skip
        threads = items.KINDS // self.kinds * pairs
        query = pairs, self.kinds, self.found, self.surfaces, self.pairs, self.kept, self.frames, self.start
        launch(items.collect_items, threads, *query, 0, self.of_kind, self.carried, grain=64)
        launch(items.add_kinds, pairs, counts, self.of_kind, self.sizes, grain=16384)
        carried = self._sum(PRIMITIVES, self.sizes, self.found, PAIRS, pairs, self.start)
        launch(items.collect_items, threads, *query, 1, self.of_kind, self.carried, grain=64)
        query = (
            self.found, self.surfaces, path, self.pairs, self.frames, self.carried, *margins, self.minimum, self.slots
        )  # fmt: skip
        launch(narrow_phase.find_candidates, carried, *query, self.hits, grain=128)
        self._sum(CANDIDATES, self.hits, self.found, PRIMITIVES, carried, self.offset)
        launch(
            kept_pairs.pair_sizes,
            pairs, self.found, self.kept, self.old, self.start, self.offset, self.sizes, grain=16384,
        )  # fmt: skip
        self._sum(CANDIDATES, self.sizes, self.found, PAIRS, pairs, self.segment)
        launch(
            narrow_phase.gather_candidates,
            carried, *query, self.start, self.offset, self.segment, self.items, grain=4096,
        )  # fmt: skip
        self.columns.launch_keys(pairs, self.pairs, counts)
        covered = self.device.extent(self._old_count, self.pool.capacity("old items"))
        threads = -(-covered // self.batch)
        launch(kept_pairs.copy_kept, threads, counts, self.old, self.batch, self.segment, self.items, grain=256)

    def index(self, launch: Callable[[], None] | None = None) -> None:
        """Know the pairs by their column bodies, where that is not done yet.

        Args:
            launch: what is launched in any case, and holds `launch_columns`.
        """
        known, self._indexed = self._indexed == self.builds, self.builds
        if not known:
            self.columns.sort(self.pair_count)
        if launch is not None:
            launch()
        elif not known:
            self.launch_columns()

    def launch_columns(self) -> None:
        """The last of it, by launches only."""
        if self.may_touch:
            self.columns.launch_starts(self.counts)

    def _sum(self, kind: int, counts, sizes, which: int, extent: int, offsets) -> int:
        """Make offsets out of counts, and found[kind] their sum, or 0 where there is not enough capacity.

        Args:
            counts: sizes[which] of them, on the device, no more than `extent`.

        Returns:
            what launches over the new kind have to cover.
        """
        device, lanes = self.device, self.device.lanes(WARP)
        length = chunk_length(extent)
        chunks = -(-extent // length)
        sums, before = self.pool.get("sums", chunks, wp.int64), self.pool.get("before", chunks, wp.int32)
        device.launch(counting.chunk_totals, chunks * lanes, lanes, counts, sizes, which, length, sums)
        capacity = self.capacities[kind]
        device.launch(
            counting.settle_total,
            lanes, lanes, sizes, which, length, sums, kind, capacity, before, offsets, self.totals, self.found,
        )  # fmt: skip
        device.launch(scans.offset_chunks, chunks * lanes, lanes, counts, sizes, which, length, before, offsets)
        return capacity if device.records else max(int(device.read(self.found)[kind]), 1)

    def pair_list(self) -> np.ndarray:
        """Host copy of the body pairs (pair_count, 2)."""
        return self.device.read(self.pairs, self.pair_count).reshape(-1, 2)

    def coupled(self) -> np.ndarray:
        """(pair_count,) bool, body pairs that have candidates; the others are listed as their boxes meet."""
        return np.diff(self.device.read(self.segment, self.pair_count + 1)) > 0
