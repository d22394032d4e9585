"""The candidate list on a device: which primitive pairs can come close during a step.

A list built for one path holds every pair that comes within ``d_hat + margin`` of its separation anywhere on it, so it
stays complete as long as later motions add up to less than the margin; then it is built again.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device import GROWTH, Device, Pool
from abd.backends.upload import upload_filters, upload_surfaces
from abd.errors import StepFailure
from abd.model import Model
from cuda_kernels import broad_phase, narrow_phase
from cuda_kernels.affine import Path

MARGIN = 0.05
"""How much further than d_hat the list reaches, in typical edge lengths: it survives most Newton steps, and on meshes
coarser than the reach its length hardly grows."""

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


class Candidates:
    """Candidates of all body pairs, grouped by pair; pairs grouped by the body that emits them.

    Attributes:
        count, pair_count: numbers of candidates and of body pairs.
        items: (count,) vec4i; pairs: (pair_count,) vec2i; segment: (pair_count + 1,) first candidate of every pair;
        group: (n + 1,) first pair of every body.
        peak: largest count so far; most_bytes: what the list may take.
        slack: motion [m] the list still covers beyond the path it was built for.
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
        self.tree = wp.Bvh(self.lower, self.upper) if self.n else None
        self.group = device.zeros(self.n + 1, wp.int32)
        self.pair_counts = device.zeros(self.n + 1, wp.int32)
        self.partners = device.zeros((self.n, int(broad_phase.ROOM)), wp.int32)
        self.segment = device.zeros(1, wp.int32)
        self.pairs = self.pool.get("pairs", 1, wp.vec2i)
        self.items = self.pool.get("items", 1, wp.vec4i)
        self.count = self.pair_count = self.builds = self.peak = 0
        self.most_bytes = MOST_BYTES
        self.slack, self.on_path = -1.0, False
        self.extent, self.travel = typical_extent(model), np.inf

    def cover(self, path: Path, motion: float, island, limit) -> bool:
        """Make the list complete for a path, up to the limits (islands,) of the bodies' islands (n,), along which no
        vertex moves further than `motion` [m]; True if rebuilt."""
        self.on_path = False
        if self.slack >= 2.0 * motion:
            return False
        self.travel += motion
        self.build(path, island, limit)
        return True

    def moved(self, motion: float) -> None:
        """Bodies went along the path last covered; no vertex further than `motion` [m]."""
        if not self.on_path:
            self.slack -= 2.0 * motion

    def build(self, path: Path, island, limit) -> None:
        """Search all pairs anew for this path, up to the limits."""
        self.builds += 1
        self.slack, self.on_path = self.margin, True
        self._find_pairs(path)
        if self.pair_count:
            self._find_items(path, island, limit)
        else:
            self.count = 0
            self.segment = self.pool.get("segment", 1, wp.int32)

    def _find_pairs(self, path: Path) -> None:
        device, reach = self.device, self.d_hat + self.margin
        grown = 0.5 * (reach + self.minimum) * 1.0001
        device.launch(broad_phase.swept_boxes, self.n, self.surfaces, path, grown, self.lower, self.upper)
        if self.travel > self.extent:
            self.tree.rebuild()
            self.travel = 0.0
        else:
            self.tree.refit()
        arguments = (self.tree.id, self.filters, self.surfaces, self.lower, self.upper, grown, self.group)
        found = (self.pair_counts, self.partners)
        device.launch(broad_phase.emit_pairs, self.n, *arguments, 0, *found, self.pairs, grain=64)
        self._make_room(self._total(self.pair_counts, self.n) * narrow_phase.PAIR_BYTES, "body pairs")
        self.pair_count = device.scan(self.pair_counts, self.group, self.n)
        self.pairs = self.pool.get("pairs", self.pair_count, wp.vec2i)
        if self.pair_count:
            device.launch(broad_phase.emit_pairs, self.n, *arguments, 1, *found, self.pairs, grain=64)

    def _find_items(self, path: Path, island, limit) -> None:
        device, pool, surfaces = self.device, self.pool, self.surfaces
        reach, pairs = self.d_hat + self.margin, self.pair_count
        frames = narrow_phase.Frames()
        frames.R0 = pool.get("R0", 2 * pairs, wp.mat33d)
        frames.R1 = pool.get("R1", 2 * pairs, wp.mat33d)
        frames.t0 = pool.get("t0", 2 * pairs, wp.vec3d)
        frames.t1 = pool.get("t1", 2 * pairs, wp.vec3d)
        frames.grow = pool.get("grow", 2 * pairs, wp.float64)
        device.launch(
            narrow_phase.relative_frames,
            pairs,
            surfaces,
            path,
            self.pairs,
            reach,
            self.minimum,
            island,
            limit,
            frames,
            grain=256,
        )
        sizes, start = pool.get("sizes", pairs + 1, wp.int32), pool.get("start", pairs + 1, wp.int32)
        carried = pool.get("carried", 1, wp.vec3i)
        query = (surfaces, self.pairs, frames, start)
        device.launch(narrow_phase.collect_items, pairs, *query, 0, sizes, carried, grain=64)
        self._make_room(self._total(sizes, pairs) * ITEM_BYTES, "primitives near other bodies")
        total = device.scan(sizes, start, pairs)
        carried = pool.get("carried", total, wp.vec3i)
        device.launch(narrow_phase.collect_items, pairs, *query, 1, sizes, carried, grain=64)
        slots = pool.get("slots", narrow_phase.SLOTS * total, wp.vec4i)
        hits, begin = pool.get("hits", total + 1, wp.int32), pool.get("begin", total + 1, wp.int32)
        query = (surfaces, path, self.pairs, frames, carried, reach, self.minimum, slots)
        device.launch(narrow_phase.find_candidates, total, *query, hits, grain=128)
        count = self._total(hits, total)
        self._make_room(count * CANDIDATE_BYTES + total * ITEM_BYTES, "candidate contacts")
        self.peak = max(self.peak, count)
        self.count = device.scan(hits, begin, total)
        self.items = pool.get("items", self.count, wp.vec4i)
        device.launch(narrow_phase.gather_candidates, total, *query, begin, self.items, grain=4096)
        self.segment = pool.get("segment", pairs + 1, wp.int32)
        device.launch(narrow_phase.segment_starts, pairs + 1, start, begin, self.segment, grain=16384)

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
