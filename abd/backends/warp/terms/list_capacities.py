"""Arrays of a candidate list and of its search: capacities, growth and memory limit."""

from __future__ import annotations

import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.pool import GROWTH, Pool
from abd.errors import StepFailure
from cuda_kernels.contact import items, narrow_phase
from cuda_kernels.contact.relative_frames import Frames
from cuda_kernels.contact.surfaces import CandidateList

PAIRS, CANDIDATES, PRIMITIVES = range(3)
"""Kinds of entries: body pairs, candidates, and primitives of one body near the other body of a pair."""
ORDER = (PAIRS, PRIMITIVES, CANDIDATES)
"""Order in which the search finds them."""
NAMES = ("body pairs", "candidate contacts", "primitives near other bodies")

MOST_BYTES = 8 << 30
"""Memory limit of the list on the device."""
PAIR_BYTES = 3 * 8 + 2 * (8 + 4) + 2 * (2 * 72 + 2 * 24 + 8) + (4 + items.KINDS) * 4
"""Bytes per body pair: three copies of it, two margins and offsets, `Frames`, counts, offsets, index in the old list."""
PRIMITIVE_BYTES = 16 * narrow_phase.SLOTS + 12 + 4 + 4
"""Bytes per primitive in the frame of another body: slots, the primitive, number of its candidates, offset."""
CANDIDATE_BYTES = 2 * 16 + 2 * (8 + 8 + 8) + 16 + 8
"""Bytes per candidate: two copies of it, energy, gap and parts at two poses, closest features, time of impact."""
BYTES = (PAIR_BYTES, CANDIDATE_BYTES, PRIMITIVE_BYTES)


class ListCapacities:
    """Arrays with capacity for pairs, primitives and candidates, reallocated only if they grow.

    Attributes of P = `pair_capacity` pairs:
        pairs: (P,) vec2i body pairs, sorted; unordered: pairs in the order of the tree query.
        remaining: (P,) margins, the approach [m] that the candidates of the pair still cover.
        kept: (P,) index of the pair in the previous list, -1 if the pair was searched.
        segment: (P + 1,) first candidate; frames: (2 P,) relative maps.
        of_kind: (P, KINDS) number of primitives per kind; sizes, start: (P + 1,) numbers and offsets of primitives.

    Other attributes:
        carried: (primitives,) vec3i pair, kind and index; slots: first candidates of each; hits, offset: number of its
            candidates, and offset.
        items: (capacity,) vec4i candidates; listed: the list as a kernel argument.
        capacities: (3,) capacity of each kind; most_bytes: memory limit.
    """

    def __init__(self, device: Device):
        self.device, self.pool = device, Pool(device)
        self.most_bytes = MOST_BYTES
        self.frames, self.listed = Frames(), CandidateList()
        self.capacities = [0, 0, 0]
        for kind in ORDER:
            self._grow(kind, 0)

    @property
    def pair_capacity(self) -> int:
        """Entries that arrays over pairs have capacity for."""
        return self.capacities[PAIRS]

    @property
    def capacity(self) -> int:
        """Capacity for candidates."""
        return self.capacities[CANDIDATES]

    def grow(self, kind: int, needed) -> bool:
        """Ensure capacity for `needed` (3,) entries of a kind; True if the capacity was sufficient.

        Arrays that grow lose their contents. Call it in `ORDER`.

        Raises:
            StepFailure: the list would exceed `most_bytes`.
        """
        taken = GROWTH * sum(int(needed[k]) * BYTES[k] for k in ORDER[: ORDER.index(kind) + 1])
        if taken > self.most_bytes:
            raise StepFailure(
                "candidates",
                f"the {NAMES[kind]} of this step would take {taken / 2**30:.3g} GiB, more than the "
                f"{self.most_bytes / 2**30:.3g} GiB reserved for them; reduce solver.dt so that fewer swept boxes overlap, "
                "lower solver.d_hat, use coarser meshes, or switch contact off between bodies that overlap by design "
                "(body.group)",
            )
        if needed[kind] <= self.capacities[kind]:
            return True
        self._grow(kind, int(needed[kind]))
        return False

    def _grow(self, kind: int, count: int) -> None:
        grow = {PAIRS: self._grow_pairs, PRIMITIVES: self._grow_primitives, CANDIDATES: self._grow_candidates}
        grow[kind](count)

    def _grow_pairs(self, count: int) -> None:
        get, frames = self.pool.get, self.frames
        self.pairs = self.listed.pairs = get("pairs", count, wp.vec2i)
        self.unordered = get("unordered", count, wp.vec2i)
        self.remaining, self.kept = get("remaining", count, wp.float64), get("kept", count, wp.int32)
        self.segment = self.listed.segment = get("segment", count + 1, wp.int32)
        self.sizes, self.start = (get(x, count + 1, wp.int32) for x in ("sizes", "start"))
        self.of_kind = get("of kind", count, wp.int32, (items.KINDS,))
        self.pool.reserve(frames, 2 * count)
        self.capacities[PAIRS] = min(self.pairs.shape[0], self.segment.shape[0] - 1, frames.R0.shape[0] // 2)

    def _grow_primitives(self, count: int) -> None:
        get = self.pool.get
        self.carried, self.slots = get("carried", count, wp.vec3i), get("slots", narrow_phase.SLOTS * count, wp.vec4i)
        self.hits, self.offset = get("hits", count + 1, wp.int32), get("offset", count + 1, wp.int32)
        self.capacities[PRIMITIVES] = min(
            self.carried.shape[0], self.slots.shape[0] // narrow_phase.SLOTS, self.hits.shape[0] - 1
        )

    def _grow_candidates(self, count: int) -> None:
        self.items = self.listed.items = self.pool.get("items", count, wp.vec4i)
        self.capacities[CANDIDATES] = self.items.shape[0]
