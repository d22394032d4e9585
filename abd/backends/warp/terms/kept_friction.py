"""What friction keeps of some islands while it is lagged anew in others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from abd.backends.device.pool import Pool
from abd.backends.device.scan import Scan
from cuda_kernels.friction import keeping, lagging

if TYPE_CHECKING:
    from abd.backends.warp.terms.friction import Friction

COLUMNS = {
    "pair": wp.vec2i, "kind": wp.int32, "n": wp.vec3d, "Y_i": wp.vec4d, "Y_j": wp.vec4d, "load": wp.float64, "share": wp.vec3d,
    "arc": wp.vec3d,
}  # fmt: skip
"""Of `cuda_kernels.friction.lagging.Lagged`."""


class KeptFriction:
    """Copies of what one `Friction` of n bodies has frozen, and the two taken together."""

    def __init__(self, device, n: int):
        self.device, self.n, self.pools, self.scan = device, n, (Pool(device), Pool(device)), Scan(device)
        self.scan.reserve(n)
        self.every = device.upload([n], wp.int32)
        self.chosen, self.pairs, self.contacts = (device.zeros(max(n, 1), wp.int32) for _ in range(3))
        self.start = device.zeros(n + 1, wp.int32)

    def copied(self, of: Friction, place: int) -> keeping.Frozen:
        """What is frozen now, in the first or the second place."""
        out, get = self._of(lagging.Lagged()), self.pools[place].get
        out.lagged.counts = of.lagged.counts
        for name, kind in COLUMNS.items():
            setattr(out.lagged, name, get(name, of.count, kind))
        out.pairs, out.segment = get("pairs", of.pair_count, wp.vec2i), get("segment", of.pair_count + 1, wp.int32)
        out.group = get("group", self.n + 1, wp.int32)
        source = self._of(of.lagged)
        source.pairs, source.segment, source.group = of.pairs, of.segment, of.group
        extent = max(of.count, of.pair_count, self.n) + 1
        self.device.launch(keeping.set_aside, extent, source, of.count, of.pair_count, self.n, out)
        return out

    def _of(self, lagged: lagging.Lagged) -> keeping.Frozen:
        out = keeping.Frozen()
        out.lagged = lagged
        return out

    def count(self, new: keeping.Frozen, old: keeping.Frozen, chosen: np.ndarray, group: wp.array) -> tuple[int, int]:
        """How many pairs and contacts there are, if `chosen` bodies (n,) bool take the new ones and others the old ones;
        `group` (n + 1,) becomes that of both."""
        device, n = self.device, self.n
        device.write(self.chosen, chosen.astype(np.int32))
        device.launch(keeping.count_both, n, self.chosen, new, old, self.pairs, self.contacts)
        self.scan.run(self.pairs, group, self.every, 0, n)
        self.scan.run(self.contacts, self.start, self.every, 0, n)
        return int(device.read(group)[n]), int(device.read(self.start)[n])

    def take(self, new: keeping.Frozen, old: keeping.Frozen, into: Friction) -> None:
        """Both, as they were counted, into what there is room for."""
        out = self._of(into.lagged)
        out.pairs, out.segment, out.group = into.pairs, into.segment, into.group
        self.device.launch(keeping.take_both, self.n, self.chosen, new, old, self.start, out)
