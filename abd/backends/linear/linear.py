"""The linear system of a Newton iteration, H d = -g with 12x12 blocks: direct, or conjugate gradients.

`direct` and `pcg` rest on one block Cholesky factor whose order, fill and schedule are found once per pattern. Of all blocks
it is the direct solver; of the bodies' own blocks and those of joints, which never come and go, it preconditions
conjugate gradients; of the bodies' own blocks alone it is block-Jacobi. Leaving out the coupling of a contact, whose
blocks are positive semidefinite as a whole, leaves the rest positive definite.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.pool import Pool
from abd.backends.linear.cholesky import Cholesky
from abd.backends.linear.couplings import Addresses
from abd.backends.linear.elimination import Elimination
from abd.backends.linear.solver_choice import BLOCK_BYTES, ITERATIONS, Choice, choose
from abd.backends.warp.islands import Islands
from abd.errors import StepFailure
from cuda_kernels.linear import krylov
from cuda_kernels.linear.couplings import Coupling

NOT_POSITIVE = "not_positive_definite", "a pivot of the linear system is not positive, or not a number"
"""Reason and words of that failure."""
CORRECTION = 1e-6
"""Tolerance of pcg in the solves that close exact joints, at most."""
SURPRISED = 3.0
"""Running mean of the iterations of pcg over those that were expected, from which on the choice is made anew."""
REFUSED, EXPECTED = 1, 2
"""Places of the pairs that were too many to be factored, and of the iterations that are expected, among the numbers of
`LinearSolver.memory`."""
KEPT = 1.5
"""Pairs of the pattern before stay in a new one while it holds no more than this multiple of those that may touch."""
KEPT_ELIMINATIONS = 16
"""Of the last patterns, which steps that are taken again go back to."""


class LinearSolver:
    """What H d = -g is solved with, for the bodies that have a slot; `abd.backends.linear.solvers` solve.

    Args:
        wanted: "auto", or the name of a solver (`abd.backends.linear.solvers`).
        moving: (n,) bool, bodies that take part; the others' directions stay zero. names: of all bodies, for failures.
        couplings: how many there are: of joints, whose pairs stay, and of what comes and goes.
        worlds: (n,) world of every body: what the pattern holds of one does not depend on others. One for all without.

    Attributes:
        direction: (n, 12) what a solve fills.
        bodies: (N,) those that take part; couplings: how many there are.
        choice: which solver, and why; joined: whether the factor of what stays holds the joints' blocks.
        recalls: how often it has gone on from a memory.
    """

    def __init__(
        self,
        device: Device,
        wanted: str,
        moving: np.ndarray,
        names: list[str],
        islands: Islands,
        couplings: int,
        worlds: np.ndarray | None = None,
    ):
        self.names = names
        self.device, self.wanted, self.islands = device, wanted, islands
        self.n, self.bodies, self.couplings = len(moving), np.flatnonzero(moving), couplings
        worlds = np.zeros(self.n, dtype=int) if worlds is None else worlds
        self.worlds = np.unique(worlds[self.bodies], return_inverse=True)[1]
        self._world = np.full(self.n, -1)
        self._world[self.bodies] = self.worlds
        self.slot = np.where(moving, np.cumsum(moving) - 1, -1)
        self.direction = device.zeros((self.n, 12), wp.float64)
        self.dots = device.zeros(self.n, wp.float64)
        self.static, self._whole = (Cholesky(device, self.bodies, self.n, couplings) for _ in range(2))
        self._addresses = Addresses(device, couplings)
        self.choice, self.factor = Choice("direct", "not looked at yet"), self.static
        self._pool = Pool(device)
        self._eliminations = lru_cache(KEPT_ELIMINATIONS)(self._eliminated)
        self._joints: wp.array | None = None
        self.step: wp.array | None = None
        self._recalled: dict[str, np.ndarray] | None = None
        self.recalls = 0
        self._start_anew()

    def begin(self) -> None:
        """Begin a step: what earlier ones say of the iterations of pcg fades."""
        self._expected = max(ITERATIONS, self._expected // 2)
        if self._recalled is not None:
            numbers = self._recalled["solver_numbers"]
            numbers[EXPECTED] = max(ITERATIONS, numbers[EXPECTED] // 2)

    def memory(self) -> dict[str, np.ndarray]:
        """What the choices and the rounding of later steps depend on: keys (k,) of the pairs that come and go in the
        pattern, and numbers."""
        if self._recalled is not None:
            return {name: values.copy() for name, values in self._recalled.items()}
        keys = np.zeros(0, dtype=np.int64) if self._whole_keys is None else self._whole_keys
        direct = self._whole_keys is not None
        return {
            "solver_pairs": keys,
            "solver_numbers": np.array([direct, self._refused, self._expected, self._assumed, self._loose]),
        }

    def recall(self, memory: dict[str, np.ndarray]) -> None:
        """Go on as the solver with that `memory` would; without one as in the beginning."""
        names = ("solver_pairs", "solver_numbers")
        self.recalls += 1
        self._recalled = {name: memory[name].copy() for name in names} if names[1] in memory else None
        if self._recalled is None:
            self._start_anew()

    def memory_of_parts(self, parts: list[tuple[np.ndarray, dict[str, np.ndarray]]]) -> dict[str, np.ndarray]:
        """What is remembered after bodies (n,) bool went on by themselves, each with a memory: of the pairs of every world what
        the first of them does that has bodies in it, and the numbers of the first that factors some, all of the first part where
        that does without."""
        first = parts[0][1]
        direct = [memory["solver_numbers"] for _, memory in parts if memory["solver_numbers"][0]]
        if self._count == 1 or first["solver_numbers"][REFUSED] or not direct:
            return {name: first[name] for name in ("solver_pairs", "solver_numbers")}
        of, keys = np.zeros(self._count, dtype=int), []
        for number, (who, _) in reversed(list(enumerate(parts))):
            of[self._world[who & (self._world >= 0)]] = number
        for number, (_, memory) in enumerate(parts):
            pairs = memory["solver_pairs"]
            keys.append(pairs[of[self._worlds_of(pairs)] == number])
        return {"solver_pairs": np.unique(np.concatenate(keys)), "solver_numbers": direct[0]}

    def _take_up(self) -> None:
        direct, *numbers = (int(number) for number in self._recalled["solver_numbers"])
        keys, self._recalled = self._recalled["solver_pairs"], None
        self._refused, self._expected, self._assumed, self._loose = numbers
        if not direct:
            self._whole_keys = None
            if self._refused:
                solver = "pcg" if self.wanted in ("auto", "direct") else self.wanted
                self._whole_choice = Choice(solver, "as before the checkpoint")
        elif self._whole_keys is None or not np.array_equal(keys, self._whole_keys):
            self._set_pattern(keys)

    @property
    def uses_loose_pairs(self) -> bool:
        """Whether the pattern that is factored holds pairs that come and go."""
        return self.choice.direct and self.factor is self._whole

    @property
    def known(self) -> bool:
        """Whether the pairs of the joints were looked at."""
        return self._joints is not None

    def reserve_step(self) -> None:
        """Make capacity (n, 12) for a correction."""
        if self.step is None:
            self.step = self.device.zeros((self.n, 12), wp.float64)

    def describe(self) -> dict:
        """What was picked at the last solve, and why; empty before the first one."""
        if self._joints is None:
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
        """What conjugate gradients multiply with. Friction, and whatever else comes and goes, acts mostly between bodies in
        contact: one block for all halves the memory that an iteration reads."""
        launch, get, rows = self.device.launch, self._pool.get, self.device.rows
        blocks, merged = [c.blocks for c, _ in couplings], [None] * len(couplings)
        (base, pairs), others = couplings[1], [k for k, (_, capacity) in enumerate(couplings) if k > 1 and capacity]
        if pairs and others:
            blocks[1] = get("blocks", pairs, wp.float64, (12, 12))
            launch(krylov.begin_merge, pairs, base, rows(base.blocks), rows(blocks[1]), grain=1024)
            for k in others:
                c, capacity = couplings[k]
                merged[k] = get(f"merged {k}", capacity, wp.int32)
                self.device.fill(merged[k])
                launch(krylov.merge, pairs, base, c, rows(c.blocks), merged[k], rows(blocks[1]), grain=256)
        self._addresses.launch_write([c for c, _ in couplings], blocks, merged)
        return rows(diagonal), len(couplings), self._addresses.table

    def check(self) -> None:
        """Look at the pivots of the last factorisation.

        Raises:
            StepFailure: one was not positive.
        """
        bodies = self.factor.failed_bodies()
        if len(bodies):
            islands = self.islands.host
            raise StepFailure(*NOT_POSITIVE, bodies=(self.names[bodies[0]],), islands=np.isin(islands, islands[bodies]))

    # patterns ----------------------------------------------------------------------------------------------------

    def follow_near(self, joints: Coupling, pairs: int, near: np.ndarray) -> None:
        """Bring choice and patterns up to date with the pairs that may come into contact.

        Args:
            joints, pairs: coupling of the joints and its number of pairs; near: (k, 2) the others, of bodies.
        """
        if len(self.bodies) == 0:
            return
        self._follow_joints(joints, pairs)
        if len(near) == 0:
            self.choice, self.factor = self._static_choice, self.static
            return
        if self._is_outdated(len(near)) if self._refused else True:
            keys = self._keys_of(*near.T)
            if self._whole_keys is None or not np.isin(keys, self._whole_keys).all():
                self._analyse(keys, len(near))
            self._narrow(near)
            if self._fresh:
                self._whole.find(0, joints, pairs)
                self._fresh = False
        self.choice, self.factor = self._whole_choice, self._whole

    def took(self, iterations: int) -> None:
        """Learn how many iterations of pcg a solve took."""
        if not self.choice.direct:
            self._expected = (3 * self._expected + iterations) // 4

    def _follow_joints(self, joints: Coupling, pairs: int) -> None:
        if self._joints is not joints.row:
            self._start_over(joints, pairs)
        if self._recalled is not None:
            self._take_up()

    def _is_outdated(self, loose: int) -> bool:
        """Whether the choice of pcg rests on far more pairs than there are, or on far fewer iterations than it took."""
        return 2 * loose < self._refused or self._expected > SURPRISED * self._assumed

    def _start_over(self, joints: Coupling, pairs: int) -> None:
        """Analyse the system without contacts."""
        self._joints = joints.row
        self._joint_keys = self._keys(joints, pairs)
        self._start_anew()
        elimination = self._elimination(self._joint_keys)
        query = elimination, len(self._joint_keys), None
        self._static_choice = choose(self.wanted, *query)
        self.joined = self._static_choice.direct or choose("auto", *query).direct
        if not self.joined:
            elimination = self._elimination(self._joint_keys[:0])
        self.static.adopt(elimination)
        # what was recorded before may solve with a factor of another kind
        self.device.generation += 1
        self.static.find(0, joints, pairs)

    def _start_anew(self) -> None:
        """Know nothing of pairs that come and go."""
        self._whole_keys: np.ndarray | None = None
        self._refused, self._loose, self._fresh = 0, 0, False
        self._expected = self._assumed = ITERATIONS

    def _analyse(self, keys: np.ndarray, loose: int) -> None:
        """A pattern for the pairs of these keys, or the decision to do without.

        One that replaces another also holds the pairs of the pattern before.
        """
        self._assumed, self._loose = self._expected, loose
        wide = keys if self._whole_keys is None else self._widened(keys)
        if not self._set_pattern(wide) and len(wide) > len(keys):
            self._set_pattern(keys)

    def _widened(self, keys: np.ndarray) -> np.ndarray:
        """What the pattern holds by now and keys (k,), in worlds where that is too much the keys alone."""
        wide = np.union1d(keys, self._whole_keys)
        now, both = (np.bincount(self._worlds_of(some), minlength=self._count) for some in (keys, wide))
        lacks = np.zeros(self._count, dtype=bool)
        lacks[self._worlds_of(keys[~np.isin(keys, self._whole_keys)])] = True
        dropped = lacks & (both > KEPT * now)
        return wide[~dropped[self._worlds_of(wide)] | np.isin(wide, keys)]

    def _worlds_of(self, keys: np.ndarray) -> np.ndarray:
        """(k,) worlds of pairs by their keys."""
        return self.worlds[keys // len(self.bodies)]

    def _narrow(self, pairs: np.ndarray) -> None:
        """Leave out of what is factored the worlds with joints in which no pair (k, 2) comes and goes at present: they have the
        order of their joints, as where there is nothing else."""
        if self._whole_keys is None or self._count == 1 or not len(self._joint_keys):
            return
        present = np.ones(self._count, dtype=bool)
        present[self._worlds_of(self._joint_keys)] = False
        present[self._world[pairs[:, 0]]] = True
        keys = self._whole_keys[present[self._worlds_of(self._whole_keys)]]
        if not np.array_equal(keys, self._factored):
            self._adopt_whole(self._elimination(np.union1d(keys, self._joint_keys)), keys)

    def _adopt_whole(self, elimination: Elimination, keys: np.ndarray) -> None:
        """Factor the pairs of these keys, and of joints."""
        self._whole.adopt(elimination)
        self._fresh, self._factored = True, keys

    def _set_pattern(self, keys: np.ndarray) -> bool:
        """Choose for a pattern of pairs that come and go; returns whether it is to be factored."""
        elimination = self._elimination(np.union1d(keys, self._joint_keys))
        pairs = self._loose + len(self._joint_keys)
        query = elimination, pairs, self.static.elimination, self._assumed
        self._whole_choice = choose(self.wanted, *query)
        if not self._whole_choice.direct:
            self._whole_keys, self._refused = None, self._loose
            return False
        self._whole_keys, self._refused = keys, 0
        self._adopt_whole(elimination, keys)
        return True

    def _keys(self, coupling: Coupling, pairs: int) -> np.ndarray:
        """Sorted keys of a coupling's pairs of moving bodies."""
        return self._keys_of(self.device.read(coupling.row, pairs), self.device.read(coupling.column, pairs))

    def _keys_of(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The same for pairs of bodies (k,)."""
        i, j = self.slot[rows], self.slot[columns]
        inner = (i >= 0) & (j >= 0)
        i, j = i[inner].astype(np.int64), j[inner]
        return np.unique(np.minimum(i, j) * len(self.bodies) + np.maximum(i, j))

    def _elimination(self, keys: np.ndarray) -> Elimination:
        """Of the pairs of these keys."""
        return self._eliminations(keys.astype(np.int64).tobytes())

    def _eliminated(self, keys: bytes) -> Elimination:
        ends = np.divmod(np.frombuffer(keys, dtype=np.int64), max(len(self.bodies), 1))
        return Elimination(len(self.bodies), *ends, in_ranges=not self.device.wide, worlds=self.worlds)

    @property
    def _count(self) -> int:
        """Worlds in which something takes part."""
        return int(self.worlds.max(initial=0)) + 1
