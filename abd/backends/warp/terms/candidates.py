"""The candidate list on a device: which primitive pairs can come close during a step.

A list built for one path holds every pair that comes within its activation and a margin of its separation anywhere on it, so it
stays complete as long as later motions add up to less than the margin. Then it is renewed: within a step, the pairs whose
bodies have not approached one another by their margin keep what they have. A step begins with a new list, so that it does
not depend on how the state was reached.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.scan import WARP, chunk_length
from abd.backends.device.upload import upload_filters, upload_surfaces
from abd.backends.warp.terms.list_rooms import CANDIDATES, ORDER, PAIRS, PRIMITIVES, ListRooms
from abd.contact.pair_law import PairLaw
from abd.model import Kind, Model
from cuda_kernels.bodies.affine import Path
from cuda_kernels.contact import broad_phase, kept_pairs, narrow_phase
from cuda_kernels.contact.relative_frames import relative_frames
from cuda_kernels.parallel import counting, scans

MARGIN = 0.05
"""How much further than d_hat the list reaches at most, in typical edge lengths: it survives most Newton steps, and on
meshes coarser than the reach its length hardly grows."""
REACH = 4.0
"""The same, over the motion that the list is built for, but no less than d_hat: a scene at rest needs a short list. One
half is for another start of the step, the other for the Newton steps."""
LASTING = 4.0
"""Paths like the present one that the margin of a pair has to last for, or it is searched anew with the others: every
renewal is for the pair that runs out first, and the next one should not follow at once."""
LAST = 1.0
"""The same for a path that no other one follows."""

BATCH = 64
"""Candidates per thread on a processor, where entering a kernel costs more than to copy one."""
SORTED_ALONE = 128
"""Partners of a body that one thread sorts where there are thousands of threads; those of larger bodies are sorted by one
thread each."""


def typical_edge(model: Model) -> float:
    """Median edge length of the scene's meshes, each counted once [m]; 0 without any."""
    lengths = [
        np.median(np.linalg.norm(mesh.vertices[mesh.edges[:, 0]] - mesh.vertices[mesh.edges[:, 1]], axis=1))
        for mesh in model.meshes
        if len(mesh.edges)
    ]
    return float(np.median(lengths)) if lengths else 0.0


def typical_extent(model: Model) -> float:
    """Median diagonal of the meshes' boxes, each counted once [m]; 0 without any."""
    diagonals = [np.linalg.norm(np.ptp(mesh.vertices, axis=0)) for mesh in model.meshes if len(mesh.vertices)]
    return float(np.median(diagonals)) if diagonals else 0.0


def typical_activation(model: Model, law: PairLaw) -> float:
    """Median activation of the bodies that move and have a surface [m]; the largest of all without any."""
    own = law.d_hat[(model.bodies.mesh >= 0) & (model.bodies.kind == Kind.DYNAMIC)]
    return float(np.median(own) if len(own) else law.d_hat.max(initial=0.0))


def two_may_touch(model: Model) -> bool:
    """Whether there are a body that moves and another one, both with a surface."""
    meshed = model.bodies.mesh >= 0
    others = int(meshed.sum()) + int(np.isfinite(model.bodies.plane[:, 3]).sum())
    return others > 1 and bool((meshed & (model.bodies.kind == Kind.DYNAMIC)).any())


class Candidates(ListRooms):
    """Candidates of all body pairs, grouped by pair; pairs grouped by the body that emits them.

    Where launches are recorded, everything that is counted stays on the device: passes run over the room that there is,
    and one read tells whether it was enough. Otherwise every launch covers exactly what the one before it found.

    Attributes:
        count, pair_count: numbers of candidates and of body pairs; counts: (2,) int32 on the device, [pair_count, count].
        group: (n + 1,) first pair of every body; the other arrays as `ListRooms` names them.
        builds: how often the list was renewed.
        slack: (1,) motion [m] that the list of body pairs still covers, negative where it covers nothing; searched: (1,) 1
            while the path is the one that the list was renewed for, which uses up nothing; both on the device.
        reusable: whether a renewal may keep the candidates of pairs.
        may_touch: whether there are two bodies that could.
        nobody: nothing is listed and nothing is frozen, ever or in this step and in what is recorded of it: what sums over
            contacts launches nothing then (`abd.backends.recorded.whole_step`).
        sorted_alone: partners of a body that one thread sorts.
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
        self.nobody = not self.may_touch
        self.tree = wp.Bvh(self.lower, self.upper) if self.n else None
        self.extent, self.travel = typical_extent(model), np.inf
        self.group = device.zeros(self.n + 1, wp.int32)
        self.count = self.pair_count = self.builds = 0
        self.found, self.totals = device.zeros(3, wp.int32), device.zeros(3, wp.int64)
        self.counts = self.found[:2]
        self.bodies = device.upload([self.n], wp.int32)
        self.old = kept_pairs.OldList()
        self.batch, self.kinds = (BATCH, narrow_phase.KINDS) if not device.wide else (1, 1)
        self.sorted_alone = SORTED_ALONE
        self.slack, self.motion = device.upload([-1.0], wp.float64), device.zeros(1, wp.float64)
        self.searched, self.covered = device.zeros(1, wp.int32), device.zeros(1, wp.int32)
        self.reusable = False

    def forget(self) -> None:
        """Search everything anew for the next path."""
        self.device.write(self.slack, np.array([-1.0]))
        self.reusable = False

    def clear(self) -> None:
        """Forget, and list nothing until the next path is searched."""
        self.forget()
        self.count = self.pair_count = 0
        self.device.fill(self.counts)

    @property
    def _extent(self) -> int:
        """Pairs that a launch covers."""
        return 0 if self.nobody else self.device.extent(self.pair_count, self.pair_room)

    # what the list covers ----------------------------------------------------------------------------------------

    def test_cover(self, path: Path, reach: wp.array, island, limit, covered: wp.array) -> None:
        """Set `covered` (1,) int32 to 1 if the list is complete for a path, up to the limits (islands,) of the bodies'
        islands (n,), along which no vertex moves further than `reach` (1,) [m], to 0 if not."""
        launch, extent = self.device.launch, self._extent
        launch(kept_pairs.test_slack, 1, reach, self.slack, covered, self.searched)
        launch(
            kept_pairs.test_margins,
            extent, self.counts, self.pairs, path, island, limit, self.left, covered, self.searched,
        )  # fmt: skip

    def spend(self, path: Path, reach: wp.array, island, alpha) -> None:
        """Bodies went along the path last covered, up to alpha (islands,), no vertex further than `reach` (1,) [m]."""
        extent = max(1, self._extent)
        self.device.launch(
            kept_pairs.spend_margins,
            extent, self.counts, self.pairs, path, reach, island, alpha, self.searched, self.kept, self.slack, self.left,
            grain=4096,
        )  # fmt: skip

    def covers(self, path: Path, motion: float, island, limit) -> bool:
        """`test_cover` for the host, whose motion is a number [m]."""
        if not self.reusable:
            return False
        self.device.write(self.motion, np.array([motion]))
        self.test_cover(path, self.motion, island, limit, self.covered)
        return bool(self.device.read(self.covered)[0])

    def cover(self, path: Path, motion: float, island, limit) -> bool:
        """Make the list complete for such a path; True if renewed."""
        if self.covers(path, motion, island, limit):
            return False
        self.renew(path, motion, island, limit)
        return True

    def moved(self, path: Path, motion: float, island, alpha) -> None:
        """`spend` for the host, whose motion is a number [m]."""
        self.device.write(self.motion, np.array([motion]))
        self.spend(path, self.motion, island, alpha)

    # renewal -----------------------------------------------------------------------------------------------------

    def renew(self, path: Path, motion: float, island, limit) -> None:
        """Renew the list for a path along which no vertex moves further than `motion` [m], with a margin to match.

        Raises:
            StepFailure: there would be more candidates than may be.
        """
        self.travel += motion
        self.build(path, island, limit, min(max(self.d_hat, REACH * motion), self.margin))

    def build(self, path: Path, island, limit, margin: float | None = None, lasting: float = LASTING) -> None:
        """Renew the list for this path, up to the limits, with a margin [m], the largest one by default: pairs that are
        new, or whose own does not last for so many such paths, are searched.

        Raises:
            StepFailure: there would be more candidates than may be.
        """
        self.builds += 1
        slack = self.margin if margin is None else margin
        self._set_aside()
        self.reusable, self.count, self.pair_count = False, 0, 0
        if self.may_touch:
            grown = self.grown(slack)
            self._bound_bodies(path, grown)
            found = False
            while not found:
                found = self._search(path, island, limit, slack, grown, lasting)
        self.begin_slack(slack)
        self.reusable = True

    def begin_slack(self, slack: float) -> None:
        """A path was searched with a margin [m]; launches only."""
        self.device.launch(kept_pairs.begin_slack, 1, slack, self.slack, self.searched)

    def _set_aside(self) -> None:
        """Keep the list as the old one, nothing of it where it does not serve any more."""
        old, get, pairs = self.old, self.pool.get, self.pair_count if self.reusable else 0
        old.pair_count = pairs
        old.count = self.count if pairs else 0
        if pairs == 0:
            return
        old.pairs, old.left = get("old pairs", pairs, wp.vec2i), get("old left", pairs, wp.float64)
        old.segment, old.number = get("old segment", pairs + 1, wp.int32), get("old number", pairs, wp.int32)
        old.group, old.items = get("old group", self.n + 1, wp.int32), get("old items", old.count, wp.vec4i)
        self.device.launch(kept_pairs.set_aside, pairs, self.pairs, self.left, self.segment, old, grain=16384)
        self.device.copy(old.group, self.group, count=self.n + 1)
        if old.count:
            # a count of 0 stands for all that there is room for
            self.device.copy(old.items, self.items, count=old.count)

    def grown(self, slack: float) -> float:
        """How far [m] the boxes of bodies grow for a list with a margin [m]."""
        return 0.5 * (slack + self.minimum) * 1.0001

    def launch_boxes(self, path: Path, grown: float) -> None:
        """Boxes of the bodies over the path, grown [m]."""
        self.device.launch(broad_phase.swept_boxes, self.n, self.surfaces, path, grown, self.lower, self.upper)

    def _bound_bodies(self, path: Path, grown: float) -> None:
        """The same, and the tree over them."""
        self.launch_boxes(path, grown)
        if self.travel > self.extent:
            self.tree.rebuild()
            self.travel = 0.0
        else:
            self.tree.refit()

    def _search(self, path: Path, island, limit, slack: float, grown: float, lasting: float) -> bool:
        """Find pairs, and their candidates unless they are kept; False if some arrays were too short, which have grown."""
        device, get = self.device, self.pool.get
        launch, counts = device.launch, self.counts
        self.device.fill(self.totals)
        numbers, partners = get("pair counts", self.n, wp.int32), get("partners", self.n, wp.int32, (broad_phase.ROOM,))
        query = self.tree.id, self.filters, self.surfaces, self.lower, self.upper, grown, self.group
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
            pairs, counts, self.pairs, path, island, limit, self.old, slack, lasting, self.kept, self.left, grain=1024,
        )  # fmt: skip
        launch(
            relative_frames,
            2 * pairs, counts, self.surfaces, path, self.pairs, self.kept, slack, self.minimum, island, limit, self.frames,
            grain=512,
        )  # fmt: skip
        threads = narrow_phase.KINDS // self.kinds * pairs
        query = pairs, self.kinds, self.found, self.surfaces, self.pairs, self.kept, self.frames, self.start
        launch(narrow_phase.collect_items, threads, *query, 0, self.of_kind, self.carried, grain=64)
        launch(narrow_phase.add_kinds, pairs, counts, self.of_kind, self.sizes, grain=16384)
        carried = self._sum(PRIMITIVES, self.sizes, self.found, PAIRS, pairs, self.start)
        launch(narrow_phase.collect_items, threads, *query, 1, self.of_kind, self.carried, grain=64)
        query = (
            self.found, self.surfaces, path, self.pairs, self.frames, self.carried, slack, self.minimum, self.slots
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
        threads = -(-self.old.count // self.batch)
        launch(kept_pairs.copy_kept, threads, counts, self.old, self.batch, self.segment, self.items, grain=256)
        wanted = device.read(self.totals)
        # every kind has to have its turn: what was cut short grows at once
        fits = False not in [self.make_room(kind, wanted) for kind in ORDER]
        if fits:
            self.pair_count, self.count = int(wanted[PAIRS]), int(wanted[CANDIDATES])
        return fits

    def _sum(self, kind: int, counts, sizes, which: int, extent: int, offsets) -> int:
        """Make offsets out of counts, and found[kind] their sum, or 0 where there is not enough room.

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
        room = self.rooms[kind]
        device.launch(
            counting.settle_total,
            lanes, lanes, sizes, which, length, sums, kind, room, before, offsets, self.totals, self.found,
        )  # fmt: skip
        device.launch(scans.offset_chunks, chunks * lanes, lanes, counts, sizes, which, length, before, offsets)
        return room if device.records else max(int(device.read(self.found)[kind]), 1)

    def pair_list(self) -> np.ndarray:
        """Host copy of the body pairs (pair_count, 2)."""
        return self.device.read(self.pairs, self.pair_count).reshape(-1, 2)
