"""The candidate list on a device: which primitive pairs can come close during a step.

A list built for one path holds every pair that comes within ``d_hat + margin`` of its separation anywhere on it, so it
stays complete as long as later motions add up to less than the margin. Then it is renewed: within a step, the pairs whose
bodies have not approached one another by their margin keep what they have. A step begins with a new list, so that it does
not depend on how the state was reached.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device import GROWTH, Device, Pool
from abd.backends.upload import upload_filters, upload_surfaces
from abd.errors import StepFailure
from abd.model import Kind, Model
from cuda_kernels import broad_phase, kept_pairs, narrow_phase
from cuda_kernels.affine import Path

MARGIN = 0.05
"""How much further than d_hat the list reaches at most, in typical edge lengths: it survives most Newton steps, and on
meshes coarser than the reach its length hardly grows."""
REACH = 4.0
"""The same, over the motion that the list is built for, but no less than d_hat: a scene at rest needs a short list. One
half is for another start of the step, the other for the Newton steps."""

MOST_BYTES = 8 << 30
"""What the list of a step may take on the device."""
ITEM_BYTES = 16 * narrow_phase.SLOTS + 12 + 4 + 4
"""Of a primitive that is carried into another body's frame: its slots, itself, its number of candidates, its offset."""
CANDIDATE_BYTES = 16 + 2 * (8 + 8) + 8
"""Of a candidate: itself, energy and gap at two poses, its time of impact."""


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


def two_may_touch(model: Model) -> bool:
    """Whether there are a body that moves and another one, both with a surface."""
    meshed = model.bodies.mesh >= 0
    others = int(meshed.sum()) + int(np.isfinite(model.bodies.plane[:, 3]).sum())
    return others > 1 and bool((meshed & (model.bodies.kind == Kind.DYNAMIC)).any())


class Candidates:
    """Candidates of all body pairs, grouped by pair; pairs grouped by the body that emits them.

    Attributes:
        count, pair_count: numbers of candidates and of body pairs; counts: int32 (2,) [pairs, candidates] on the device.
        items: (count,) vec4i; pairs: (pair_count,) vec2i; segment: (pair_count + 1,) first candidate of every pair;
        group: (n + 1,) first pair of every body.
        peak: largest count so far; most_bytes: what the list may take.
        slack: motion [m] that the list of body pairs still covers; left: (pair_count,) approach [m] that the candidates of
            every pair still cover; reusable: whether a renewal may keep them.
        travel: motion [m] since the tree of the bodies was built; up to a typical mesh it is only fitted to new boxes.
    """

    def __init__(self, model: Model, device: Device):
        self.device, self.pool = device, Pool(device)
        self.n = len(model.bodies)
        self.uploaded = upload_surfaces(model, device)
        self.surfaces = self.uploaded.data
        self.filters = upload_filters(model, device)
        self.minimum = model.settings.minimum_separation
        self.d_hat = model.settings.d_hat
        self.margin = max(self.d_hat, MARGIN * typical_edge(model))
        self.lower = device.zeros(max(self.n, 1), wp.vec3)
        self.upper = device.zeros(max(self.n, 1), wp.vec3)
        self.may_touch = two_may_touch(model)
        self.tree = wp.Bvh(self.lower, self.upper) if self.n else None
        self.group, self.segment = device.zeros(self.n + 1, wp.int32), device.zeros(1, wp.int32)
        self.pairs, self.items = device.zeros(1, wp.vec2i), device.zeros(1, wp.vec4i)
        self.left = device.zeros(1, wp.float64)
        self.count = self.pair_count = self.builds = self.peak = 0
        self.counts = device.zeros(2, wp.int32)
        self.most_bytes = MOST_BYTES
        self.slack, self.reusable, self.searched = -1.0, False, False
        self.kept = device.zeros(1, wp.int32)
        self.extent, self.travel = typical_extent(model), np.inf

    def forget(self) -> None:
        """Search everything anew for the next path."""
        self.slack, self.reusable = -1.0, False

    def covers(self, path: Path, motion: float, island, limit) -> bool:
        """Whether the list is complete for a path, up to the limits (islands,) of the bodies' islands (n,), along which no
        vertex moves further than `motion` [m]."""
        if not self.reusable or self.slack < 2.0 * motion:
            return False
        groups = -(-self.pair_count // kept_pairs.GROUP)
        least = self.pool.get("least", groups, wp.float64)
        self.device.launch(
            kept_pairs.least_margins,
            groups, self.pairs, self.pair_count, path, island, limit, self.left, least, grain=8,
        )  # fmt: skip
        return groups == 0 or bool(self.device.read(least, groups).min() >= 0.0)

    def cover(self, path: Path, motion: float, island, limit) -> bool:
        """Make the list complete for such a path; True if renewed."""
        if self.covers(path, motion, island, limit):
            self.searched = False
            return False
        self.travel += motion
        self.build(path, island, limit, min(max(self.d_hat, REACH * motion), self.margin))
        return True

    def moved(self, path: Path, motion: float, island, alpha) -> None:
        """Bodies went along the path last covered, up to alpha (islands,), no vertex further than `motion` [m]."""
        if not self.searched:
            self.slack -= 2.0 * motion
        if self.reusable:
            self.device.launch(
                kept_pairs.spend_margins,
                self.pair_count, self.pairs, path, island, alpha, int(self.searched), self.kept, self.left, grain=4096,
            )  # fmt: skip

    def build(self, path: Path, island, limit, margin: float | None = None) -> None:
        """Renew the list for this path, up to the limits, with a margin [m], the largest one by default: pairs that have
        none left or are new are searched."""
        self.builds += 1
        self.slack = self.margin if margin is None else margin
        old = (self.pairs, self.group, self.left, self.pair_count if self.reusable else 0)
        if self.may_touch:
            self._find_pairs(path, self.d_hat + self.slack)
        self._match(old, path, island, limit)
        if self.pair_count:
            self._find_items(path, island, limit, self.kept)
        else:
            self.count = 0
        self.device.write(self.counts, np.array([self.pair_count, self.count]))
        self.reusable = self.searched = True

    @property
    def pair_room(self) -> int:
        """Pairs that their arrays have room for."""
        return self.pairs.shape[0]

    @property
    def room(self) -> int:
        """Candidates that there is room for."""
        return self.items.shape[0]

    def _fresh(self, name: str, count: int, dtype) -> wp.array:
        """Array `name` with room for `count` entries, another one than at the last call, which keeps its contents."""
        for kept in (name, f"old {name}"):
            self.pool.get(kept, 1, dtype)
        self.pool.swap(name, f"old {name}")
        return self.pool.get(name, count, dtype)

    def _find_pairs(self, path: Path, reach: float) -> None:
        device = self.device
        grown = 0.5 * (reach + self.minimum) * 1.0001
        device.launch(broad_phase.swept_boxes, self.n, self.surfaces, path, grown, self.lower, self.upper)
        if self.travel > self.extent:
            self.tree.rebuild()
            self.travel = 0.0
        else:
            self.tree.refit()
        self.group = self._fresh("group", self.n + 1, wp.int32)
        counts = self.pool.get("pair counts", self.n + 1, wp.int32)
        arguments = (self.tree.id, self.filters, self.surfaces, self.lower, self.upper, grown, self.group)
        found = counts, self.pool.get("partners", self.n, wp.int32, (int(broad_phase.ROOM),))
        device.launch(broad_phase.emit_pairs, self.n, *arguments, 0, *found, self.pairs, grain=64)
        self._make_room(self._total(counts, self.n) * narrow_phase.PAIR_BYTES, "body pairs")
        self.pair_count = device.scan(counts, self.group, self.n)
        self.pairs = self._fresh("pairs", self.pair_count, wp.vec2i)
        if self.pair_count:
            device.launch(broad_phase.emit_pairs, self.n, *arguments, 1, *found, self.pairs, grain=64)

    def _match(self, old: tuple, path: Path, island, limit) -> None:
        """Find the pairs (pair_count,) of the old list whose candidates still serve along a path."""
        self.kept = self.pool.get("kept", self.pair_count, wp.int32)
        self.left = self._fresh("left", self.pair_count, wp.float64)
        self.device.launch(
            kept_pairs.match_pairs,
            self.pair_count, self.pairs, path, island, limit, *old, self.slack, self.kept, self.left, grain=1024,
        )  # fmt: skip

    def _find_items(self, path: Path, island, limit, kept) -> None:
        device, pool, surfaces, pairs = self.device, self.pool, self.surfaces, self.pair_count
        reach = self.d_hat + self.slack
        frames = narrow_phase.Frames()
        frames.R0 = pool.get("R0", 2 * pairs, wp.mat33d)
        frames.R1 = pool.get("R1", 2 * pairs, wp.mat33d)
        frames.t0 = pool.get("t0", 2 * pairs, wp.vec3d)
        frames.t1 = pool.get("t1", 2 * pairs, wp.vec3d)
        frames.grow = pool.get("grow", 2 * pairs, wp.float64)
        device.launch(
            narrow_phase.relative_frames,
            pairs, surfaces, path, self.pairs, kept, reach, self.minimum, island, limit, frames, grain=256,
        )  # fmt: skip
        sizes, start = pool.get("sizes", pairs + 1, wp.int32), pool.get("start", pairs + 1, wp.int32)
        carried = pool.get("carried", 1, wp.vec3i)
        query = (surfaces, self.pairs, kept, frames, start)
        device.launch(narrow_phase.collect_items, pairs, *query, 0, sizes, carried, grain=64)
        self._make_room(self._total(sizes, pairs) * ITEM_BYTES, "primitives near other bodies")
        total = device.scan(sizes, start, pairs)
        carried = pool.get("carried", total, wp.vec3i)
        device.launch(narrow_phase.collect_items, pairs, *query, 1, sizes, carried, grain=64)
        slots = pool.get("slots", narrow_phase.SLOTS * total, wp.vec4i)
        hits, offset = pool.get("hits", total + 1, wp.int32), pool.get("offset", total + 1, wp.int32)
        query = (surfaces, path, self.pairs, frames, carried, reach, self.minimum, slots)
        device.launch(narrow_phase.find_candidates, total, *query, hits, grain=128)
        self._make_room(self._total(hits, total) * CANDIDATE_BYTES + total * ITEM_BYTES, "candidate contacts")
        device.scan(hits, offset, total)
        old_segment, old_items = self.segment, self.items
        device.launch(kept_pairs.pair_sizes, pairs, kept, old_segment, start, offset, sizes, grain=16384)
        count = self._total(sizes, pairs)
        self._make_room(count * CANDIDATE_BYTES + total * ITEM_BYTES, "candidate contacts")
        self.segment = self._fresh("segment", pairs + 1, wp.int32)
        self.count = device.scan(sizes, self.segment, pairs)
        self.peak = max(self.peak, count)
        self.items = self._fresh("items", self.count, wp.vec4i)
        device.launch(
            narrow_phase.gather_candidates, total, *query, start, offset, self.segment, self.items, grain=4096
        )
        device.launch(kept_pairs.copy_kept, pairs, kept, old_segment, old_items, self.segment, self.items, grain=512)

    def _total(self, counts, count: int) -> int:
        """Exact sum of the first `count` counts."""
        parts = -(-count // narrow_phase.TOTALLED)
        totals = self.pool.get("totals", parts, wp.int64)
        self.device.launch(narrow_phase.partial_totals, parts, counts, count, totals, grain=64)
        return int(self.device.read(totals, parts).sum())

    def _make_room(self, wanted: int, what: str) -> None:
        """Refuse a list that would not fit.

        Raises:
            StepFailure: with what to do about it.
        """
        if GROWTH * wanted > self.most_bytes:
            raise StepFailure(
                "candidates",
                f"the {what} of this step would take {GROWTH * wanted / 2**30:.3g} GiB, more than the "
                f"{self.most_bytes / 2**30:.3g} GiB set aside for them; shorten solver.dt so that fewer swept boxes meet, "
                "lower solver.d_hat, use coarser meshes, or switch contact off between bodies that overlap by design "
                "(body.group)",
            )

    def pair_list(self) -> np.ndarray:
        """Host copy of the body pairs (pair_count, 2)."""
        return self.device.read(self.pairs, self.pair_count).reshape(-1, 2)
