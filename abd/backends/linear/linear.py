"""Linear system of a Newton iteration, H d = -g with 12x12 blocks: direct solver or conjugate gradients.

Both use a block Cholesky factor, whose order, fill and schedule are computed once per pattern. The direct solver factors all
blocks. The preconditioner of conjugate gradients is the factor of the static blocks, which are the diagonal blocks and the blocks
of joints; or of the diagonal blocks only (block Jacobi). The static blocks are positive definite, because the blocks of a contact
are positive semidefinite.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.pool import Pool
from abd.backends.linear.cholesky import Addresses, Cholesky
from abd.backends.linear.elimination import Elimination
from abd.backends.linear.solver_choice import BLOCK_BYTES, ITERATIONS, Choice, choose
from abd.backends.warp.islands import Islands
from abd.contact.pair_rows import are_among, distinct
from abd.errors import StepFailure
from cuda_kernels.linear import krylov
from cuda_kernels.linear.couplings import Coupling

NOT_POSITIVE = "not_positive_definite", "a pivot of the linear system is not positive, or not a number"
"""Reason and message of the failure."""
CORRECTION = 1e-6
"""Largest tolerance of pcg in the solves that close exact joints."""
RECHOOSE_RATIO = 3.0
"""Ratio of the mean to the assumed number of pcg iterations above which the solver is chosen again."""
REFUSED, EXPECTED = 1, 2
"""Indices in the numbers of `LinearSolver.memory`: listed pairs at the refused factorisation, and expected iterations."""
PATTERN_GROWTH = 1.5
"""A new pattern includes the pairs of the previous one if it has at most this multiple of the pairs that may touch."""
CACHED_ELIMINATIONS = 16
"""Number of cached patterns, for steps that are repeated."""


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
        bodies: (N,) bodies with block rows; couplings: number of couplings.
        choice: solver and reason; joined: whether the static factor contains the blocks of joints.
        recalls: number of calls of `recall`.
    """

    def __init__(
        self, device: Device, requested: str, moving: np.ndarray, names: list[str], islands: Islands, couplings: int,
        worlds: np.ndarray | None = None,
    ):  # fmt: skip
        self.names = names
        self.device, self.requested, self.islands = device, requested, islands
        self.n, self.bodies, self.couplings = len(moving), np.flatnonzero(moving), couplings
        worlds = np.zeros(self.n, dtype=int) if worlds is None else worlds
        self.worlds = np.unique(worlds[self.bodies], return_inverse=True)[1]
        self._world = np.full(self.n, -1)
        self._world[self.bodies] = self.worlds
        self.slot = np.where(moving, np.cumsum(moving) - 1, -1)
        self.direction, self.step = (device.zeros((self.n, 12), wp.float64) for _ in range(2))
        self.dots = device.zeros(self.n, wp.float64)
        self.static, self._whole = (Cholesky(device, self.bodies, self.n, couplings) for _ in range(2))
        self._addresses = Addresses(device)
        self.choice, self.factor = Choice("direct", "not chosen yet"), self.static
        self._pool = Pool(device)
        self._eliminations = lru_cache(CACHED_ELIMINATIONS)(self._eliminate)
        self._joint_rows: wp.array | None = None
        self._recalled: dict[str, np.ndarray] | None = None
        self.recalls = 0
        self._reset()

    def begin(self) -> None:
        """Begin a step: decay the expected number of pcg iterations towards `ITERATIONS`."""
        self._expected = max(ITERATIONS, self._expected // 2)
        if self._recalled is not None:
            numbers = self._recalled["solver_numbers"]
            numbers[EXPECTED] = max(ITERATIONS, numbers[EXPECTED] // 2)

    def memory(self) -> dict[str, np.ndarray]:
        """State that later choices and rounding depend on: keys (k,) of the changing pairs in the pattern, and numbers."""
        if self._recalled is not None:
            return {name: values.copy() for name, values in self._recalled.items()}
        keys = np.zeros(0, dtype=np.int64) if self._whole_keys is None else self._whole_keys
        direct = self._whole_keys is not None
        return {
            "solver_pairs": keys,
            "solver_numbers": np.array([direct, self._refused, self._expected, self._assumed, self._loose]),
        }

    def recall(self, memory: dict[str, np.ndarray]) -> None:
        """Restore a state that `memory` returned; the initial state if it has no entries."""
        names = ("solver_pairs", "solver_numbers")
        self.recalls += 1
        self._recalled = {name: memory[name].copy() for name in names} if names[1] in memory else None
        if self._recalled is None:
            self._reset()

    def memory_of_parts(self, parts: list[tuple[np.ndarray, dict[str, np.ndarray]]]) -> dict[str, np.ndarray]:
        """Merge the memories of parts, given as (bodies (n,) bool, memory).

        The pairs of a world come from the first part with bodies in it, the numbers from the first part that factors changing
        pairs. If the first part has refused to factor, its memory is the result."""
        first = parts[0][1]
        direct = [memory["solver_numbers"] for _, memory in parts if memory["solver_numbers"][0]]
        if self._count == 1 or first["solver_numbers"][REFUSED] or not direct:
            return {name: first[name] for name in ("solver_pairs", "solver_numbers")}
        of, keys = np.zeros(self._count, dtype=int), []
        for number, (chosen, _) in reversed(list(enumerate(parts))):
            of[self._world[chosen & (self._world >= 0)]] = number
        for number, (_, memory) in enumerate(parts):
            pairs = memory["solver_pairs"]
            keys.append(pairs[of[self._worlds_of(pairs)] == number])
        return {"solver_pairs": distinct(*keys), "solver_numbers": direct[0]}

    def _restore(self) -> None:
        direct, *numbers = (int(number) for number in self._recalled["solver_numbers"])
        keys, self._recalled = self._recalled["solver_pairs"], None
        self._refused, self._expected, self._assumed, self._loose = numbers
        self._listed = self._loose
        if not direct:
            self._whole_keys = None
            if self._refused:
                solver = "pcg" if self.requested in ("auto", "direct") else self.requested
                self._whole_choice = Choice(solver, "as before the checkpoint")
        elif self._whole_keys is None or not np.array_equal(keys, self._whole_keys):
            self._set_pattern(keys)

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
        """Return the matrix for `cuda_kernels.linear.krylov.multiply`.

        Blocks of friction and of other changing terms are added to the blocks of contact, because most of their pairs are
        equal; this halves the memory that an iteration reads."""
        launch, get, rows = self.device.launch, self._pool.get, self.device.rows
        blocks, merged = [c.blocks for c, _ in couplings], [None] * len(couplings)
        (base, pairs), others = couplings[1], [k for k, (_, capacity) in enumerate(couplings) if k > 1 and capacity]
        if pairs and others:
            blocks[1] = get("blocks", pairs, wp.float64, (12, 12))
            self.device.copy(blocks[1], base.blocks, count=pairs)
            for k in others:
                c, capacity = couplings[k]
                merged[k] = get(f"merged {k}", capacity, wp.int32)
                self.device.fill(merged[k])
                launch(krylov.merge, pairs, base, c, rows(c.blocks), merged[k], rows(blocks[1]), grain=256)
        return rows(diagonal), len(couplings), self._addresses.table([c for c, _ in couplings], blocks, merged)

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

    def keeps_refusal(self, joints: Coupling, pairs: int, listed: int) -> bool:
        """Return whether pcg stays chosen for `listed` pairs of bodies, whichever they are; else call `follow_near`.

        Args:
            joints, pairs: coupling of the joints and its number of pairs."""
        if len(self.bodies) == 0:
            return False
        self._follow_joints(joints, pairs)
        if not listed or not self._refused or self._is_outdated(listed):
            return False
        self.choice, self.factor = self._whole_choice, self._whole
        return True

    def follow_near(self, joints: Coupling, pairs: int, near: np.ndarray, listed: int = 0) -> None:
        """Update choice and patterns for the pairs of bodies that may come into contact.

        Args:
            joints, pairs: coupling of the joints and its number of pairs; near: (k, 2) changing pairs of bodies.
            listed: number of pairs of bodies that may come near each other, at least k.
        """
        if len(self.bodies) == 0:
            return
        self._follow_joints(joints, pairs)
        if len(near) == 0:
            self.choice, self.factor = self._static_choice, self.static
            return
        listed = max(listed, len(near))
        if not self._refused or self._is_outdated(listed):
            keys = self._keys_of(*near.T)
            if self._whole_keys is None or not are_among(keys, self._whole_keys).all():
                self._analyse(keys, len(near), listed)
            self._narrow(near)
            if self._fresh:
                self._whole.find(0, joints, pairs)
                self._fresh = False
        self.choice, self.factor = self._whole_choice, self._whole

    def record_iterations(self, iterations: int) -> None:
        """Update the running mean of pcg iterations with those of a solve."""
        if not self.choice.direct:
            self._expected = (3 * self._expected + iterations) // 4

    def _follow_joints(self, joints: Coupling, pairs: int) -> None:
        if self._joint_rows is not joints.row:
            self._analyse_joints(joints, pairs)
        if self._recalled is not None:
            self._restore()

    def _is_outdated(self, listed: int) -> bool:
        """Whether pcg was chosen for far more pairs than there are now, or for far fewer iterations than solves take."""
        return 2 * listed < self._refused or self._expected > RECHOOSE_RATIO * self._assumed

    def _analyse_joints(self, joints: Coupling, pairs: int) -> None:
        """Analyse the system without contacts."""
        self._joint_rows = joints.row
        self._joint_keys = self._keys(joints, pairs)
        self._reset()
        elimination = self._elimination(self._joint_keys)
        query = elimination, len(self._joint_keys), None
        self._static_choice = choose(self.requested, *query)
        self.joined = self._static_choice.direct or choose("auto", *query).direct
        if not self.joined:
            elimination = self._elimination(self._joint_keys[:0])
        self.static.set_elimination(elimination)
        # records may hold a factor of another kind
        self.device.generation += 1
        self.static.find(0, joints, pairs)

    def _reset(self) -> None:
        self._whole_keys: np.ndarray | None = None
        self._refused, self._loose, self._listed, self._fresh = 0, 0, 0, False
        self._expected = self._assumed = ITERATIONS

    def _analyse(self, keys: np.ndarray, loose: int, listed: int) -> None:
        """Choose a pattern for the `loose` pairs with these keys, out of `listed` ones, or refuse to factor them.

        The pattern also contains the pairs of the previous pattern, within `PATTERN_GROWTH`.
        """
        self._assumed, self._loose, self._listed = self._expected, loose, listed
        wide = keys if self._whole_keys is None else self._widen(keys)
        if not self._set_pattern(wide) and len(wide) > len(keys):
            self._set_pattern(keys)

    def _widen(self, keys: np.ndarray) -> np.ndarray:
        """Union of the pattern and keys (k,); only the keys in worlds where the union exceeds `PATTERN_GROWTH`."""
        wide = distinct(keys, self._whole_keys)
        now, both = (np.bincount(self._worlds_of(one), minlength=self._count) for one in (keys, wide))
        has_new_pairs = np.zeros(self._count, dtype=bool)
        has_new_pairs[self._worlds_of(keys[~are_among(keys, self._whole_keys)])] = True
        dropped = has_new_pairs & (both > PATTERN_GROWTH * now)
        return wide[~dropped[self._worlds_of(wide)] | are_among(wide, keys)]

    def _worlds_of(self, keys: np.ndarray) -> np.ndarray:
        """Worlds (k,) of pairs, by their keys."""
        return self.worlds[keys // len(self.bodies)]

    def _narrow(self, pairs: np.ndarray) -> None:
        """Exclude changing pairs of worlds with joints but without any current pair (k, 2) from the factored pattern.

        Such worlds then have the elimination order of their joints, as without contacts."""
        if self._whole_keys is None or self._count == 1 or not len(self._joint_keys):
            return
        present = np.ones(self._count, dtype=bool)
        present[self._worlds_of(self._joint_keys)] = False
        present[self._world[pairs[:, 0]]] = True
        keys = self._whole_keys[present[self._worlds_of(self._whole_keys)]]
        if not np.array_equal(keys, self._factored):
            self._adopt_whole(self._elimination(distinct(keys, self._joint_keys)), keys)

    def _adopt_whole(self, elimination: Elimination, keys: np.ndarray) -> None:
        """Make the elimination of changing pairs `keys` and joints the pattern of the factor."""
        self._whole.set_elimination(elimination)
        self._fresh, self._factored = True, keys

    def _set_pattern(self, keys: np.ndarray) -> bool:
        """Choose the solver for a pattern of changing pairs; returns whether it is factored."""
        elimination = self._elimination(distinct(keys, self._joint_keys))
        pairs = self._loose + len(self._joint_keys)
        query = elimination, pairs, self.static.elimination, self._assumed
        self._whole_choice = choose(self.requested, *query)
        if not self._whole_choice.direct:
            self._whole_keys, self._refused = None, self._listed
            return False
        self._whole_keys, self._refused = keys, 0
        self._adopt_whole(elimination, keys)
        return True

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

    @property
    def _count(self) -> int:
        return int(self.worlds.max(initial=0)) + 1
