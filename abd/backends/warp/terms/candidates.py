"""Candidate list on a device: primitive pairs that can come close during a step.

A list is built for one path. It holds every pair that comes within activation plus margin anywhere on the path. It stays complete
as long as the sum of later motions is below the margin; then it is rebuilt. In a rebuild within a step, body pairs keep their
candidates if they have not approached by their margin. Every step starts with a new list, so that results depend on the state
only.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device.device import ONE_THREAD, Device
from abd.backends.device.graphs import Graphs
from abd.backends.device.scan import Scan
from abd.backends.device.upload import EMPTY, upload_filters, upload_surfaces
from abd.backends.warp.terms.list_capacities import CANDIDATES, ORDER, PAIRS, PRIMITIVES, ListCapacities
from abd.backends.warp.terms.reduction import Columns
from abd.contact.pair_law import PairLaw
from abd.contact.pairs import some_may_collide
from abd.contact.typical import two_may_touch, typical_activations, typical_edges, typical_extent
from abd.model import Kind, Model
from cuda_kernels.bodies.affine import Path
from cuda_kernels.contact import broad_phase, items, kept_pairs, narrow_phase
from cuda_kernels.contact.relative_frames import relative_frames
from cuda_kernels.parallel import scans

MARGIN = 0.05
"""Largest margin of the list beyond d_hat, in typical edge lengths: it lasts for most Newton iterations, and on coarser meshes
the list hardly grows."""
REACH = 4.0
"""Margin relative to the motion for which the list is built; it is at least d_hat. One half allows another start of the step,
the other half the Newton iterations."""
RESERVE = 4.0
"""Number of paths like the current one for which the margin of a kept pair must last; otherwise the rebuild searches the pair,
to avoid another rebuild soon."""
LAST = 1.0
"""Value of `RESERVE` for the last path of a step."""

BATCH = 64
"""Candidates per CPU thread: a kernel call costs more than a copy."""
SAMPLES = 4096
"""Number of bodies sampled for the bounds of the tree on CUDA."""
FEW = 1 / 64
"""Fraction of bodies that are treated as outliers on either side of an axis."""


class Candidates(ListCapacities):
    """Candidates of all body pairs, grouped by pair; pairs grouped by row body.

    If launches are recorded, counts stay on the device: passes cover the capacity, and one read checks that it sufficed.
    Otherwise every launch covers exactly the number of entries found by the previous one.

    Attributes:
        count, pair_count: numbers of candidates and of body pairs; counts: (2,) int32 on the device, [pair_count, count].
        group: (n + 1,) first pair of every body; other arrays: see `ListCapacities`.
        builds: number of rebuilds of the list.
        worlds: number of worlds; each has its own list.
        slack: (worlds,) motion [m] that the list of body pairs still covers, negative if none.
        searched: (worlds,) 1 while the path is the one for which the list was built, which uses no margin.
        lacks: (worlds,) 1 if the last tested path was not covered.
        margins, grown: (worlds,) margins [m] and growth of the boxes [m].
        margin: (worlds,) largest margins [m]; bounds_of_margins: the smallest and the largest on the device.
        columns: index of the pairs by column body, after `index`.
        held: (n,) int32 on the device, 1 for bodies that do not move, whose island may span worlds.
        reusable: whether a rebuild may keep the candidates of pairs.
        reads_pairs: whether a rebuild on CUDA also reads the pairs, for `coupled_pairs`, which saves a wait for the device.
        may_touch: whether two bodies have surfaces that can touch; may_collide: whether contact filters and joints currently
            allow any collision.
        is_empty: no contact is listed or lagged in the current step or its record; sums over contacts launch nothing
            (`abd.backends.recorded.whole_step`).
        tree: bounding volume hierarchy of the bodies with one subtree per world, None before the first search;
            root: (n,) int32 on the device, root node of the subtree of every body.
        tree_boxes: boxes of the tree. On CUDA they are clamped to `bounds`, (2,) vec3 on the device: Warp sorts leaves on
            a grid over the tree's bounds, so that one distant body would put all others into one cell.
        travel: motion [m] since the tree was built; below a typical mesh size the tree is refitted, not rebuilt.
    """

    def __init__(self, model: Model, device: Device, law: PairLaw):
        super().__init__(device)
        self.n = len(model.bodies)
        self.surfaces, self._trees = upload_surfaces(model, device, law)
        self.filters = upload_filters(model, device)
        self.minimum = model.settings.minimum_separation
        least = typical_activations(model, law)
        self.margin = np.maximum(least, MARGIN * typical_edges(model))
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
        self.counts = self.listed.counts = self.found[:2]
        self.bodies = device.upload([self.n], wp.int32)
        self.old = kept_pairs.OldList()
        self.batch, self.kinds = (BATCH, items.KINDS) if not device.wide else (1, 1)
        self.worlds = max(len(least), 1)
        self.bounds_of_margins = device.upload(least, wp.float64), device.upload(self.margin, wp.float64)
        # the contact filters may change; the tree keeps worlds apart, which do not
        self.tree_group = device.upload(model.bodies.world, wp.int32) if self.worlds > 1 else None
        self.root = device.upload(np.full(max(self.n, 1), -1), wp.int32)
        self.slack = device.upload(np.full(self.worlds, -1.0), wp.float64)
        self.motion, self.margins, self.grown = (device.zeros(self.worlds, wp.float64) for _ in range(3))
        self.held = device.zeros(max(self.n, 1), wp.int32)
        self.searched = device.zeros(self.worlds, wp.int32)
        self.lacks = device.upload(np.ones(self.worlds), wp.int32)
        self.old.group, self.old.counts = device.zeros(self.n + 1, wp.int32), device.zeros(2, wp.int32)
        self.columns, self._indexed = Columns(device, model.bodies.kind == Kind.STATIC), 0
        self.graphs, self.scan, self._old_count = Graphs(device), Scan(device), 0
        self.reusable, self.reads_pairs = False, True
        self._host_pairs: list[np.ndarray] = []

    def forget(self) -> None:
        """Search all pairs for the next path."""
        self.device.fill(self.slack, -1.0)
        self.reusable = False

    def clear(self) -> None:
        """Empty the list and search all pairs for the next path."""
        self.forget()
        self.count = self.pair_count = 0
        self.device.fill(self.counts)

    @property
    def _extent(self) -> int:
        """Number of pairs that a launch covers."""
        return 0 if self.is_empty else self.device.extent(self.pair_count, self.pair_capacity)

    # coverage of the list ----------------------------------------------------------------------------------------

    def launch_motions(self, each: wp.array, island: wp.array, least: float = 0.0) -> None:
        """Reduce the motions (islands,) [m] to the largest motion of every world, not below `least`."""
        self.device.fill(self.motion, least)
        self.device.launch(
            kept_pairs.world_motions, self.n, self.filters.world, self.held, island, each, self.motion, grain=ONE_THREAD
        )

    def test_cover(self, path: Path, each: wp.array, island, limit, covered: wp.array) -> None:
        """Set `covered` (1,) int32 to 1 if the list is complete for a path, else 0; set `lacks` for worlds where it is not.

        Args:
            each: largest vertex motion [m] of every island (islands,), -1 if its path is the one that the list covers.
            island, limit: island (n,) of every body and end of the path (islands,).
        """
        launch, worlds = self.device.launch, self.filters.world
        self.launch_motions(each, island, -1.0)
        self.device.fill(covered, 1)
        launch(kept_pairs.test_slack, self.worlds, self.motion, self.slack, covered, self.searched, self.lacks)
        launch(
            kept_pairs.test_margins,
            self._extent, self.counts, self.pairs, worlds, path, island, limit, self.motion, self.remaining, covered,
            self.searched, self.lacks,
        )  # fmt: skip

    def subtract_motion(self, path: Path, each: wp.array, island, alpha) -> None:
        """Reduce the margins after bodies have moved along the last covered path up to alpha (islands,).

        `each` (islands,) is the largest vertex motion [m]."""
        self.launch_motions(each, island)
        self.device.launch(
            kept_pairs.subtract_motion,
            max(self.worlds, self._extent), self.counts, self.pairs, self.filters.world, path, self.motion, island, alpha,
            self.searched, self.lacks, self.kept, self.slack, self.remaining, grain=4096,
        )  # fmt: skip

    # rebuild -----------------------------------------------------------------------------------------------------

    def search_all(self) -> None:
        """Prepare a rebuild in all worlds for a path without motion."""
        self.device.fill(self.lacks, 1)
        self.device.fill(self.motion)

    def renew(self, path: Path, motion: float, island, limit) -> None:
        """Rebuild the list in the worlds that did not cover the last tested path, with margins that suit its motion.

        Args:
            motion: upper bound of the vertex motions [m].

        Raises:
            StepFailure: the list would exceed its memory limit.
        """
        query = self.motion, REACH, *self.bounds_of_margins, self.margins
        self.device.launch(kept_pairs.set_margins, self.worlds, *query)
        self._build(path, motion, island, limit, RESERVE)

    def renew_last(self, path: Path, motion: float, island, limit) -> None:
        """The same without margins, for the last path of a step."""
        self.device.fill(self.margins)
        self._build(path, motion, island, limit, LAST)

    def _build(self, path: Path, motion: float, island, limit, reserve: float) -> None:
        """Rebuild the list with the margins in `margins`: search new pairs, and pairs whose margin does not last for `reserve`
        such paths."""
        self.travel += motion
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

    def begin_slack(self, slack: wp.array) -> None:
        """Set `slack` after a path was searched with margins (worlds,) [m]; launches only."""
        self.device.copy(self.slack, slack)
        self.device.fill(self.searched, 1)

    def _reserve_old(self, pairs: int, count: int) -> None:
        """Make capacity for a previous list of pairs and candidates."""
        old, get = self.old, self.pool.get
        old.pairs, old.remaining = get("old pairs", pairs, wp.vec2i), get("old remaining", pairs, wp.float64)
        old.segment, old.number = get("old segment", pairs + 1, wp.int32), get("old number", pairs, wp.int32)
        old.items = get("old items", count, wp.vec4i)

    def _launch_begin(self, path: Path, kept: tuple[int, int] | None) -> None:
        """Copy the list to the previous one and compute the boxes of the bodies.

        `kept`: numbers of pairs and candidates that launches cover; None empties the previous list."""
        old, launch, copy = self.old, self.device.launch, self.device.copy
        if kept:
            pairs, count = kept
            copy(old.counts, self.counts, count=2)
            copy(old.pairs, self.pairs, count=pairs)
            copy(old.remaining, self.remaining, count=pairs)
            copy(old.segment, self.segment, count=pairs + 1)
            self.device.fill(old.number, -1)
            copy(old.group, self.group, count=self.n + 1)
            copy(old.items, self.items, count=count)
        else:
            self.device.fill(old.group)
            self.device.fill(old.counts)
        grown = self.margins, self.minimum, self.lacks, self.grown
        launch(kept_pairs.grow, self.worlds, *grown, self.slack, self.searched)
        if self.may_touch:
            self.launch_boxes(path, self.grown)

    def growth(self, slack: np.ndarray) -> wp.array:
        """Growth (worlds,) [m] of the boxes of bodies for a list with margins (worlds,) [m]."""
        return self.device.upload(0.5 * (slack + self.minimum) * 1.0001, wp.float64)

    def launch_boxes(self, path: Path, grown: wp.array) -> None:
        """Compute the swept boxes of the bodies over the path, grown by `grown` (worlds,) [m]."""
        self.device.launch(
            broad_phase.swept_boxes, self.n, self.surfaces, path, self.filters.world, grown, self.lower, self.upper
        )

    def _fit_tree(self) -> None:
        """Refit or rebuild the tree. It is first built here: over equal initial boxes it would be a chain on CUDA."""
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
        """Set the bounds of the tree from the positions of most bodies."""
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
        """Find pairs, and the candidates of pairs that are not kept; False if arrays were too short and have grown."""
        places = path.p.ptr, island.ptr, limit.ptr
        self.graphs.run(("search", places, reserve), lambda: self._launch_search(path, island, limit, reserve))
        pairs = (self.pairs, self.segment) if self.device.wide and self.reads_pairs else ()
        needed, *self._host_pairs = self.device.read_all(*((one, None) for one in (self.totals, *pairs)))
        # check every kind, so that all short arrays grow in one pass
        fits = False not in [self.grow(kind, needed) for kind in ORDER]
        if fits:
            self.pair_count, self.count = int(needed[PAIRS]), int(needed[CANDIDATES])
        return fits

    def _launch_search(self, path: Path, island, limit, reserve: float) -> None:
        """Launches of `_search` within the capacity; `totals` receives the required capacities."""
        get, launch, counts = self.pool.get, self.device.launch, self.counts
        self.device.fill(self.totals)
        self.columns.reserve(self.pair_capacity)
        numbers, partners = get("pair counts", self.n, wp.int32), get("partners", self.n, wp.int32, (broad_phase.MAX_PARTNERS,))
        near = self.filters, self.surfaces, self.lower, self.upper, self.grown
        query = self.tree.id, self.root, self.bounds, *near, self.old, self.lacks, self.group
        margins = self.filters.world, self.margins
        memory = numbers, partners, counts, self.unordered
        launch(broad_phase.emit_pairs, self.n, *query, 0, *memory, grain=64)
        pairs = self._sum(PAIRS, numbers, self.bodies, 0, self.n, self.group)
        launch(broad_phase.emit_pairs, self.n, *query, 1, *memory, grain=64)
        launch(broad_phase.order_pairs, pairs, counts, self.group, self.unordered, self.pairs)
        launch(
            kept_pairs.match_pairs,
            pairs, counts, self.pairs, path, island, limit, self.old, self.filters.world, self.lacks, self.margins, reserve,
            self.kept, self.remaining, grain=1024,
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

    def index(self) -> None:
        """Update `columns` for the current list."""
        if self.may_touch and self._indexed != self.builds:
            self._indexed = self.builds
            self.columns.sort(self.pair_count)
            self.graphs.run("columns", lambda: self.columns.launch_starts(self.counts))

    def _sum(self, kind: int, counts, sizes, which: int, extent: int, offsets) -> int:
        """Compute offsets from counts, and their sum, found[kind]; the sum is 0 if it exceeds the capacity.

        Args:
            counts: sizes[which] numbers on the device, at most `extent`.

        Returns:
            number of entries of the kind that launches must cover.
        """
        device, capacity = self.device, self.capacities[kind]
        self.scan.run(counts, offsets, sizes, which, extent)
        device.launch(scans.settle_total, 1, self.scan.total, kind, capacity, self.totals, self.found)
        return capacity if device.records else max(int(device.read(self.found)[kind]), 1)

    def pair_list(self) -> np.ndarray:
        """Host copy of the body pairs (pair_count, 2)."""
        return self.device.read(self.pairs, self.pair_count).reshape(-1, 2)

    def coupled_pairs(self) -> np.ndarray:
        """Host copy of the body pairs (k, 2) with candidates; others are listed because their boxes overlap."""
        count = self.pair_count
        pairs, segment = self._host_pairs or self.device.read_all((self.pairs, count), (self.segment, count + 1))
        return pairs[:count][np.diff(segment[: count + 1]) > 0]
