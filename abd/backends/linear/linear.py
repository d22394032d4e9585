"""Linear system of a Newton iteration, H d = -g with 12x12 blocks: direct solver or conjugate gradients.

Both use a block Cholesky factor, whose order, fill and schedule are computed once per pattern. The direct solver factors all
blocks. The preconditioner of conjugate gradients is the factor of the static blocks, which are the diagonal blocks and the blocks
of joints; or of the diagonal blocks only (block Jacobi). The static blocks are positive definite, because the blocks of a contact
are positive semidefinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.pool import Pool
from abd.backends.islands import Islands
from abd.backends.linear.cholesky import Addresses, Cholesky
from abd.backends.linear.elimination import Elimination
from abd.contact.pair_rows import distinct
from abd.errors import StepFailure
from cuda_kernels.bodies.affine import vec12
from cuda_kernels.linear import krylov
from cuda_kernels.linear.couplings import Coupling

NOT_POSITIVE = "not_positive_definite", "a pivot of the linear system is not positive, or not a number"
"""Reason and message of the failure."""
CORRECTION = 1e-6
"""Largest tolerance of pcg in the solves that close exact joints."""
CACHED_ELIMINATIONS = 16
"""Number of cached patterns, for steps that are repeated."""
PRODUCTS_PER_BLOCK = 96
"""Largest number of products of two blocks in a factorisation per block of the matrix for which contacts are factored: about 75
iterations of pcg take as long. Resting piles need 20 to 45 per solve, impacts on chains of links more than 150."""
MOST_BYTES = 8 << 30
"""Memory limit of a factor."""
BLOCK_BYTES = 12 * 12 * 8
PRODUCT_BYTES = 2 * 4
"""Memory per listed product of two blocks, if rows are in levels."""


@dataclass(frozen=True)
class Choice:
    """solver: name of the solver; why: reason."""

    solver: str
    why: str

    @property
    def direct(self) -> bool:
        return self.solver == "direct"


def choose(requested: str, elimination: Elimination, pairs: int, has_contacts: bool) -> Choice:
    """Choose the solver of a system with `pairs` coupled pairs, by the fill of its factor.

    Conjugate gradients converge slowly for stiff joints, so that systems without contacts are factored if memory suffices.

    Args:
        requested: "auto" or the name of a solver.
    """
    if requested not in ("auto", "direct"):
        return Choice(requested, "requested")
    size = elimination.slots * BLOCK_BYTES + (0 if elimination.in_ranges else PRODUCT_BYTES * elimination.products)
    if size > MOST_BYTES:
        return Choice("pcg", f"the factor would take {size / 2**30:.1f} GiB (limit {MOST_BYTES >> 30})")
    if requested == "direct":
        return Choice("direct", "requested")
    if not has_contacts:
        return Choice("direct", "only joints couple the bodies")
    ratio = elimination.products / max(elimination.size + pairs, 1)
    solver, relation = ("direct", "at most") if ratio <= PRODUCTS_PER_BLOCK else ("pcg", "more than")
    why = f"a factorisation takes {ratio:.1f} products per block of the matrix, {relation} {PRODUCTS_PER_BLOCK}"
    return Choice(solver, why)


class LinearSolver:
    """Patterns, factors and choice of the solver for H d = -g; `abd.backends.linear.solver` solve.

    Pairs of bodies are static (joints) or changing (contacts, friction).

    Args:
        requested: "auto", or the name of a solver (`abd.backends.linear.solver`).
        moving: (n,) bool, bodies with block rows; directions of other bodies stay zero. names: (n,) names for failures.
        couplings: number of couplings, joints first.
        worlds: (n,) world of every body, by default one. The pattern of a world does not depend on other worlds.

    Attributes:
        direction: (n, 12) solution; step: (n, 12) correction.
        bodies: (N,) bodies with block rows.
        choice: solver and reason; joined: whether the static factor contains the blocks of joints.
        is_refused: whether the factor of the changing pairs had too much fill in this step; then pcg solves until its end,
            whichever pairs follow.
    """

    def __init__(
        self, device: Device, requested: str, moving: np.ndarray, names: list[str], islands: Islands, couplings: int,
        worlds: np.ndarray | None = None,
    ):  # fmt: skip
        self.names = names
        self.device, self.requested, self.islands = device, requested, islands
        self.n, self.bodies = len(moving), np.flatnonzero(moving)
        worlds = np.zeros(self.n, dtype=int) if worlds is None else worlds
        self.worlds = np.unique(worlds[self.bodies], return_inverse=True)[1]
        self.slot = np.where(moving, np.cumsum(moving) - 1, -1)
        self.direction, self.step = (device.zeros((self.n, 12), wp.float64) for _ in range(2))
        self.dots = device.zeros(self.n, wp.float64)
        self._addresses = Addresses(device)
        self.static, self._whole = (Cholesky(device, self.bodies, self.n, couplings, self._addresses) for _ in range(2))
        self.choice, self.factor = Choice("direct", "not chosen yet"), self.static
        self._pool = Pool(device)
        self._eliminations = lru_cache(CACHED_ELIMINATIONS)(self._eliminate)
        self._joint_rows: wp.array | None = None
        self._whole_keys: np.ndarray | None = None
        self.is_refused = False

    def begin(self) -> None:
        """Begin a step: consider a factor of the changing pairs again."""
        self.is_refused = False

    @property
    def uses_loose_pairs(self) -> bool:
        """Whether the factored pattern contains changing pairs."""
        return self.choice.direct and self.factor is self._whole

    @property
    def known(self) -> bool:
        """Whether the pattern of the joints was analysed."""
        return self._joint_rows is not None

    def describe(self) -> dict:
        """Solver of the last solve, the reason and sizes of the factor; empty before the first solve."""
        if self._joint_rows is None:
            return {}
        factor = self.factor if self.choice.direct else self.static
        e = factor.elimination
        preconditioner = "block-Jacobi" if e.slots == e.size else "block Cholesky of bodies and joints"
        names = {"direct": "block Cholesky", "pcg": f"pcg, {preconditioner}"}
        name = names.get(self.choice.solver, self.choice.solver)
        return {
            "name": name, "why": self.choice.why, "bodies": e.size, "joined_pairs": len(self._joint_keys),
            "factor_blocks": e.slots, "factor_bytes": e.slots * BLOCK_BYTES, "products": e.products,
            "ranges": factor.ranges, "levels": factor.levels,
        }  # fmt: skip

    def gathered(self, diagonal, couplings: list[tuple[Coupling, int]]) -> tuple:
        """Return the matrix for `cuda_kernels.linear.krylov.multiply_rows`.

        Blocks of friction and of other changing terms are added to the blocks of contact, because most of their pairs are
        equal; this halves the memory that an iteration reads. The products of the transposed blocks are 0 initially, because
        bodies that are done do not write theirs."""
        launch, get, rows = self.device.launch, self._pool.get, self.device.rows
        blocks, merged = [c.blocks for c, _ in couplings], [None] * len(couplings)
        base, pairs = couplings[1]
        for k, (c, capacity) in enumerate(couplings):
            if pairs and capacity and k > 1:
                merged[k] = get(f"merged {k}", capacity, wp.int32)
                self.device.fill(merged[k])
                out, flags = get("blocks", pairs, wp.float64, (12, 12)), merged[k]
                launch(krylov.merge, pairs, base, c, rows(blocks[1]), rows(c.blocks), flags, rows(out), grain=256)
                blocks[1] = out
        parts = [get(f"parts {k}", capacity, vec12) for k, (_, capacity) in enumerate(couplings)]
        for one in parts:
            self.device.fill(one)
        return rows(diagonal), len(couplings), self._addresses.table([c for c, _ in couplings], blocks, merged, parts)

    def check(self) -> None:
        """Check the pivots of the last factorisation.

        Raises:
            StepFailure: a pivot is not positive.
        """
        bodies = self.factor.failed_bodies()
        if len(bodies):
            islands = self.islands.host
            raise StepFailure(*NOT_POSITIVE, bodies=(self.names[bodies[0]],), concerned=np.isin(islands, islands[bodies]))

    # patterns ----------------------------------------------------------------------------------------------------

    def follow_joints(self, joints: Coupling, pairs: int) -> None:
        """Set choice and pattern for the coupling of the joints, with `pairs` pairs, without changing pairs."""
        if len(self.bodies) == 0:
            return
        if self._joint_rows is not joints.row:
            self._analyse_joints(joints, pairs)
        self.choice, self.factor = self._static_choice, self.static

    def follow_near(self, near: np.ndarray) -> None:
        """Set choice and pattern for changing pairs (k, 2), after `follow_joints`; they have no effect if `is_refused`."""
        if len(self.bodies) == 0:
            return
        if not self.is_refused:
            keys = self._keys_of(*near.T)
            if self._whole_keys is None or not np.array_equal(keys, self._whole_keys):
                self._set_pattern(keys)
        self.choice, self.factor = self._whole_choice, self._whole

    def _analyse_joints(self, joints: Coupling, pairs: int) -> None:
        """Analyse the system without changing pairs."""
        self._joints, self._joint_rows, self._whole_keys = (joints, pairs), joints.row, None
        self._joint_keys = self._keys(joints, pairs)
        elimination = self._elimination(self._joint_keys)
        query = elimination, len(self._joint_keys), False
        self._static_choice = choose(self.requested, *query)
        self.joined = choose("auto", *query).direct
        if not self.joined:
            elimination = self._elimination(self._joint_keys[:0])
        self.static.set_elimination(elimination)
        # records may hold a factor of another kind, and tables of former joints
        self.device.generation += 1
        self._addresses.clear()
        self.static.launch_find(0, joints, pairs)

    def _set_pattern(self, keys: np.ndarray) -> None:
        """Choose the solver for changing pairs with these keys, and set the pattern of the factor."""
        both = distinct(keys, self._joint_keys)
        elimination = self._elimination(both)
        self._whole_choice = choose(self.requested, elimination, len(both), True)
        self.is_refused, self._whole_keys = not self._whole_choice.direct, None
        if not self.is_refused:
            self._whole_keys = keys
            self._whole.set_elimination(elimination)
            self._whole.launch_find(0, *self._joints)

    def _keys(self, coupling: Coupling, pairs: int) -> np.ndarray:
        """Sorted keys of the pairs of a coupling with block rows."""
        return self._keys_of(self.device.read(coupling.row, pairs), self.device.read(coupling.column, pairs))

    def _keys_of(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Sorted keys of pairs of bodies (k,), without pairs that lack a block row."""
        i, j = self.slot[rows], self.slot[columns]
        inner = (i >= 0) & (j >= 0)
        i, j = i[inner].astype(np.int64), j[inner]
        return distinct(np.minimum(i, j) * len(self.bodies) + np.maximum(i, j))

    def _elimination(self, keys: np.ndarray) -> Elimination:
        """Elimination of the pairs with these keys, cached."""
        return self._eliminations(keys.astype(np.int64).tobytes())

    def _eliminate(self, keys: bytes) -> Elimination:
        ends = np.divmod(np.frombuffer(keys, dtype=np.int64), max(len(self.bodies), 1))
        return Elimination(len(self.bodies), *ends, in_ranges=not self.device.wide, worlds=self.worlds)
