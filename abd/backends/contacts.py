"""Contact and friction on a device: energies of the candidates, and their reduction to blocks per body pair."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.body_data import smallest_moments
from abd.backends.candidates import Candidates
from abd.backends.device import Device, Pool
from abd.model import Model
from cuda_kernels import barrier, blocks, friction, sums
from cuda_kernels import contact as kernels
from cuda_kernels.affine import Path, Pose
from cuda_kernels.ccd import times_of_impact
from cuda_kernels.krylov import Coupling

BARRIERS = {"log": barrier.LOG, "log_sq": barrier.LOG_SQ, "cubic": barrier.CUBIC}


class Reduction:
    """Elements of body pairs, summed in a fixed order to gradients and 12x12 blocks.

    Attributes:
        coupling: off-diagonal blocks with every body's list of entries, for the solvers.
        pairs: number of active body pairs.
    """

    def __init__(self, device: Device, n: int):
        self.device, self.n, self.pool = device, n, Pool(device)
        self.pairs = 0
        self.coupling = Coupling()
        self.coupling.starts = device.zeros(n + 1, wp.int32)
        self._resize(0, 0)

    def _resize(self, elements: int, pairs: int) -> None:
        get = self.pool.get
        self.elements = kernels.Elements()
        for name, dtype in (
            ("f_i", wp.vec3d), ("f_j", wp.vec3d), ("K_ii", wp.mat33d), ("K_ij", wp.mat33d), ("K_jj", wp.mat33d),
            ("Y_i", wp.vec4d), ("Y_j", wp.vec4d),
        ):  # fmt: skip
            setattr(self.elements, name, get(name, elements, dtype))
        c = self.coupling
        c.row, c.column = get("row", pairs, wp.int32), get("column", pairs, wp.int32)
        c.entries = get("entries", 4 * pairs, wp.int32)
        c.blocks = get("blocks", pairs, wp.float64, (12, 12))
        self.begin, self.end = get("begin", pairs, wp.int32), get("end", pairs, wp.int32)
        self.gradients = [get(f"g{k}", pairs, wp.float64, (12,)) for k in range(2)]
        self.diagonals = [get(f"d{k}", pairs, wp.float64, (12, 12)) for k in range(2)]

    def prepare(self, pairs, pair_count: int, segment, offset, elements: int) -> kernels.Elements:
        """Find the active pairs; segments (pair_count + 1,) index items, `offset` their elements. Returns the room."""
        get = self.pool.get
        marks, slot = get("marks", pair_count + 1, wp.int32), get("slot", pair_count + 1, wp.int32)
        if elements == 0:
            self.pairs = 0
            self.coupling.starts.zero_()
            return self.elements
        self.device.launch(blocks.mark_pairs, pair_count, segment, offset, marks, grain=16384)
        self.pairs = self.device.scan(marks, slot, pair_count)
        self._resize(elements, self.pairs)
        c = self.coupling
        self.device.launch(
            blocks.keep_pairs,
            pair_count,
            pairs,
            segment,
            offset,
            slot,
            c.row,
            c.column,
            self.begin,
            self.end,
            grain=16384,
        )
        keys = get("keys", 4 * self.pairs, wp.int32)
        self.device.launch(blocks.incidence_keys, self.pairs, c.row, c.column, self.pairs, keys, c.entries, grain=16384)
        self.device.sort_pairs(keys, c.entries, 2 * self.pairs)
        self.device.launch(blocks.incidence_starts, self.n + 1, keys, 2 * self.pairs, c.starts, grain=16384)
        return self.elements

    def reduce(self, gradient, diagonal) -> None:
        """Sum the elements to blocks, and add the bodies' shares to gradient (n, 12) and diagonal (n, 12, 12)."""
        if self.pairs == 0:
            return
        gi, gj = self.gradients
        dii, djj = self.diagonals
        blocks_ij = self.coupling.blocks
        self.device.launch(
            blocks.reduce_pairs,
            16 * self.pairs,
            self.elements,
            self.begin,
            self.end,
            gi,
            gj,
            dii,
            blocks_ij,
            djj,
            grain=1024,
        )
        self.device.launch(
            blocks.gather_bodies,
            12 * self.n, self.coupling.starts, self.coupling.entries, gi, gj, dii, djj, gradient, diagonal,
        )  # fmt: skip


class Contacts:
    """Barrier energy of all candidates at two poses: the current one and a trial."""

    def __init__(self, model: Model, device: Device):
        settings = model.settings
        self.device, self.pool = device, Pool(device)
        self.n = len(model.bodies)
        self.candidates = Candidates(model, device)
        self.law = kernels.ContactLaw()
        self.law.kind = BARRIERS[settings.barrier]
        self.law.d_hat = settings.d_hat
        self.law.minimum = settings.minimum_separation
        self.law.kappa = device.zeros(1, wp.float64)
        self.law.stiffness = device.upload(model.materials.stiffness, wp.float64)
        self.law.inertia = device.upload(smallest_moments(model), wp.float64)
        self.reduction = Reduction(device, self.n)
        self.element_count = 0

    @property
    def surfaces(self):
        """Surfaces of the scene."""
        return self.candidates.surfaces

    def set_stiffness(self, kappa: float) -> None:
        """Stiffness in the incremental potential, kappa_c c h^2."""
        self.device.write(self.law.kappa, np.array([kappa]))

    def times_of_impact(self, path: Path, island, limit, out) -> None:
        """Per body, the smallest safe alpha over the candidates it emits, at most the limit of its island."""
        c = self.candidates
        toi = self.pool.get("toi", c.count, wp.float64)
        self.device.launch(
            times_of_impact,
            c.count, self.surfaces, path, c.pairs, c.items, self.law.minimum, island, limit, self.arrays("current")[2], toi,
            grain=512,
        )  # fmt: skip
        self.device.launch(sums.segment_minima, self.n, c.segment, c.group, toi, out, 1.0, grain=1024)

    def arrays(self, slot: str):
        """Energy, element number and gap of every candidate, for slot "current" or "trial"."""
        count = self.candidates.count + 1
        get = self.pool.get
        return (
            get(f"energy_{slot}", count, wp.float64),
            get(f"elements_{slot}", count, wp.int32),
            get(f"gap_{slot}", count, wp.float64),
        )

    def evaluate(self, pose: Pose, slot: str, along: tuple | None = None) -> None:
        """Energies, element numbers and gaps at a pose; `along` = (path, island, alpha) says how it was reached from
        the one in slot "current", which settles distant candidates by a bound."""
        c, reach = self.candidates, kernels.Reach()
        if along is not None:
            reach.known = 1
            reach.path, reach.island, reach.alpha = along
            reach.gap = self.arrays("current")[2]
        self.device.launch(
            kernels.contact_energies,
            c.count, self.surfaces, self.law, pose, c.pairs, c.items, reach, *self.arrays(slot), grain=512,
        )  # fmt: skip

    def level(self) -> None:
        """Make slot "trial" hold what slot "current" holds."""
        if self.candidates.count:
            for trial, current in zip(self.arrays("trial"), self.arrays("current"), strict=True):
                wp.copy(trial, current, count=self.candidates.count)

    def smallest_gap(self, slot: str = "current") -> float:
        """Smallest gap beyond the separation over all candidates [m]; infinity without any."""
        if self.candidates.count == 0:
            return float("inf")
        return float(self.device.read(self.body_gaps(slot), self.n).min())

    def body_gaps(self, slot: str = "current") -> wp.array:
        """(n,) smallest gap [m] beyond the separation over the candidates that a body emits; infinity without any."""
        out, c = self.pool.get("gap_body", self.n, wp.float64), self.candidates
        self.device.launch(sums.segment_minima, self.n, c.segment, c.group, self.arrays(slot)[2], out, float("inf"))
        return out

    def linearize(self, pose: Pose) -> None:
        """Elements of the active candidates at the current pose, whose energies were evaluated in slot "current"."""
        c = self.candidates
        counts = self.arrays("current")[1]
        offset = self.pool.get("offset", c.count + 1, wp.int32)
        self.element_count = self.device.scan(counts, offset, c.count)
        elements = self.reduction.prepare(c.pairs, c.pair_count, c.segment, offset, self.element_count)
        if self.element_count:
            self.device.launch(
                kernels.contact_elements,
                c.count, self.surfaces, self.law, pose, c.pairs, c.items, offset, elements, grain=1024,
            )  # fmt: skip


class Friction:
    """Lagged friction of the contacts frozen at one pose."""

    def __init__(self, model: Model, device: Device, contacts: Contacts):
        self.device, self.contacts, self.pool = device, contacts, Pool(device)
        self.mu = device.upload(model.materials.mu, wp.float64)
        self.enabled = bool((model.materials.mu > 0).any()) and model.settings.friction_iterations != 0
        self.reduction = Reduction(device, len(model.bodies))
        self.lagged = friction.Lagged()
        self.count = self.pair_count = 0

    def lag(self, pose: Pose) -> None:
        """Freeze the contacts that are active at `pose`; slot "current" holds its energies."""
        self.count = 0
        c = self.contacts.candidates
        if not self.enabled or c.count == 0:
            return
        device, get, surfaces = self.device, self.pool.get, self.contacts.surfaces
        marks, offset = get("marks", c.count + 1, wp.int32), get("offset", c.count + 1, wp.int32)
        numbers = self.contacts.arrays("current")[1]
        device.launch(
            friction.rubbing, c.count, self.mu, surfaces.material, c.pairs, c.items, surfaces, pose, numbers, marks
        )
        self.count = device.scan(marks, offset, c.count)
        lagged = self.lagged
        lagged.pair = get("pair", self.count, wp.vec2i)
        lagged.n = get("n", self.count, wp.vec3d)
        lagged.Y_i, lagged.Y_j = get("Y_i", self.count, wp.vec4d), get("Y_j", self.count, wp.vec4d)
        lagged.load = get("load", self.count, wp.float64)
        device.launch(
            friction.lag_contacts,
            c.count, surfaces, self.contacts.law, self.mu, pose, c.pairs, c.items, offset, lagged,
        )  # fmt: skip
        # the pair list may be rebuilt while these contacts stay frozen: keep its groups
        self.pair_count = c.pair_count
        self.pairs = get("pairs", c.pair_count, wp.vec2i)
        self.segment = get("segment", c.pair_count + 1, wp.int32)
        self.group = get("group", self.contacts.n + 1, wp.int32)
        self.unit = get("unit", self.count + 1, wp.int32)
        wp.copy(self.pairs, c.pairs, count=c.pair_count)
        wp.copy(self.group, c.group, count=self.contacts.n + 1)
        device.launch(friction.gather_offsets, c.pair_count + 1, c.segment, offset, self.segment)
        device.launch(friction.count_up, self.count + 1, self.unit)

    def pair_list(self) -> np.ndarray:
        """Host copy of the body pairs (k, 2) among which contacts were frozen."""
        if self.count == 0:
            return np.zeros((0, 2), dtype=np.int32)
        return self.device.read(self.pairs, self.pair_count).reshape(-1, 2)

    def evaluate(self, pose: Pose, rest: Pose, eps: float, slot: str):
        """Energies (count,) of the lagged contacts for displacements against `rest`."""
        out = self.pool.get(f"energy_{slot}", self.count + 1, wp.float64)
        self.device.launch(friction.friction_energies, self.count, self.lagged, eps, pose, rest, out)
        return out

    def linearize(self, pose: Pose, rest: Pose, eps: float) -> None:
        """Elements of the lagged contacts."""
        if self.count == 0:
            self.reduction.prepare(None, 0, None, None, 0)
            return
        elements = self.reduction.prepare(self.pairs, self.pair_count, self.segment, self.unit, self.count)
        self.device.launch(friction.friction_elements, self.count, self.lagged, eps, pose, rest, elements)

    def work(self, pose: Pose, rest: Pose, now: Pose, eps: float) -> float:
        """Work of friction on the motion from `now` to `pose`, times c h^2."""
        if self.count == 0:
            return 0.0
        out = self.pool.get("work", self.count, wp.float64)
        self.device.launch(friction.friction_works, self.count, self.lagged, eps, pose, rest, now, out)
        return float(self.device.read(out, self.count).sum())
