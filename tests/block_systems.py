"""Random symmetric systems of 12x12 blocks on graphs, and their dense solution."""

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.islands import Islands
from abd.backends.linear.linear import LinearSolver
from abd.backends.linear.solver import SOLVERS
from abd.backends.recorded.numbers import FAILURES, new_control, numbers
from abd.backends.warp.terms.joint_ends import lists_of
from abd.errors import StepFailure
from cuda_kernels.linear.couplings import Coupling
from cuda_kernels.step import control


def chain(n: int) -> np.ndarray:
    """Return (n - 1, 2) pairs of a chain."""
    return np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)


def star_of_chains(arms: int, length: int) -> np.ndarray:
    """Return the pairs of chains that are connected to body 0."""
    pairs = [(0 if k == 0 else 1 + a * length + k - 1, 1 + a * length + k) for a in range(arms) for k in range(length)]
    return np.array(pairs)


def net(*shape: int) -> np.ndarray:
    """Return the pairs of neighbours in a grid of any dimension."""
    numbers = np.arange(np.prod(shape)).reshape(shape)
    along = [np.moveaxis(numbers, axis, 0) for axis in range(len(shape))]
    return np.concatenate([np.stack([i[:-1].ravel(), i[1:].ravel()], axis=1) for i in along])


def cube(side: int) -> np.ndarray:
    """Return the pairs of neighbours in a cube of side^3 bodies."""
    return net(side, side, side)


def random_tree(n: int, seed: int) -> np.ndarray:
    """Return the pairs of a tree: each body is connected to a random body of smaller number."""
    rng = np.random.default_rng(seed)
    return np.array([(rng.integers(0, k), k) for k in range(1, n)])


def random_pairs(n: int, count: int, seed: int) -> np.ndarray:
    """Return distinct pairs in random order, some with the larger number first."""
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(n, 1)
    chosen = rng.choice(len(i), size=min(count, len(i)), replace=False)
    pairs = np.stack([i[chosen], j[chosen]], axis=1)
    flip = rng.random(len(pairs)) < 0.5
    pairs[flip] = pairs[flip][:, ::-1]
    return pairs


class Solves:
    """Solves of one `LinearSolver` with a relative tolerance, as in a Newton iteration.

    Attributes:
        iterations: number of iterations of conjugate gradients since `solve`.
    """

    def __init__(self, solver: LinearSolver, tolerance: float):
        self.solver, self.device, self.tolerance = solver, solver.device, tolerance
        self.control, self.solvers = new_control(self.device, max(solver.n, 1), solver.islands.counts), {}

    def solve(self, gradient, diagonal, couplings, near) -> np.ndarray:
        """Return the direction (n, 12); `near` contains pairs (k, 2) of bodies that may touch."""
        solver, write = self.solver, self.device.write
        at = numbers(1.0, 1.0, 1.0, self.tolerance)
        at[control.FORCING] = self.tolerance
        write(self.control.at, at)
        write(self.control.flags, np.zeros(control.FLAGS, dtype=np.int32))
        done = self.device.read(solver.islands.done, solver.n) != 0
        write(self.control.converged, solver.islands.whole(done).astype(np.int32))
        # keep the arrays alive for `correct`
        self._held = gradient, diagonal
        solver.follow_joints(*couplings[0])
        if any(map(len, near)):
            solver.follow_near(np.concatenate(near).astype(int))
        name = solver.choice.solver
        if name not in self.solvers:
            self.solvers[name] = SOLVERS[name](solver, self.control)
        self.linear = self.solvers[name]
        if len(solver.bodies):
            self.linear.launch_factor(diagonal, couplings)
            self.linear.launch_solve(gradient, solver.direction)
        return self._direction()

    def correct(self, gradient) -> np.ndarray:
        """Return the solution for another gradient (n, 12)."""
        self.linear.launch_correct(gradient, self.solver.step)
        return self.device.read(self.solver.step)

    def _direction(self) -> np.ndarray:
        flags = self.device.read(self.control.flags)
        self.iterations, failure = int(flags[control.LINEAR]), int(flags[control.FAILURE])
        if failure == control.NOT_POSITIVE:
            self.solver.check()
        if failure:
            raise StepFailure(*FAILURES[failure])
        return self.device.read(self.solver.direction)


class System:
    """Bodies coupled by up to three lists of pairs; each pair adds a positive semidefinite matrix.

    Args:
        pairs: (k, 2) of each list.
        stiffness: scale of the matrix of a pair relative to those of bodies.
    """

    def __init__(self, device: Device, n: int, *pairs: np.ndarray, stiffness: float = 10.0, seed: int = 0):
        rng = np.random.default_rng(seed)
        self.device, self.n = device, n
        own = rng.normal(size=(n, 12, 12))
        self.diagonal = own @ own.transpose(0, 2, 1) / 12.0 + np.eye(12)
        self.gradient = rng.normal(size=(n, 12))
        self.pairs = [np.asarray(p, dtype=np.int64).reshape(-1, 2) for p in pairs]
        self.pairs += [np.zeros((0, 2), dtype=np.int64)] * (3 - len(self.pairs))
        self.blocks = []
        for kind in self.pairs:
            J = rng.normal(size=(len(kind), 2, 12, 6)) * np.sqrt(stiffness)
            for side in range(2):
                np.add.at(self.diagonal, kind[:, side], J[:, side] @ J[:, side].transpose(0, 2, 1))
            self.blocks.append(J[:, 0] @ J[:, 1].transpose(0, 2, 1))
        self.couplings = [self.coupling(p, b) for p, b in zip(self.pairs, self.blocks, strict=True)]

    def coupling(self, pairs: np.ndarray, blocks: np.ndarray) -> tuple[Coupling, int]:
        """Create a device coupling; return it and its number of pairs."""
        d, c, codes = self.device, Coupling(), np.arange(len(pairs))
        c.row, c.column = d.upload(pairs[:, 0], wp.int32), d.upload(pairs[:, 1], wp.int32)
        c.blocks = d.upload(blocks.reshape(-1, 12, 12), wp.float64)
        c.count = d.upload(np.array([len(pairs)]), wp.int32)
        owners = np.concatenate([pairs[:, 0], pairs[:, 1]])
        starts, entries = lists_of(owners, np.concatenate([2 * codes, 2 * codes + 1]), self.n)
        c.starts, c.entries = d.upload(starts, wp.int32), d.upload(entries, wp.int32)
        return c, len(pairs)

    def solver(self, wanted: str, tolerance: float = 1e-10, moving: np.ndarray | None = None) -> Solves:
        """Create a solver for these bodies, in one island."""
        moving = np.ones(self.n, dtype=bool) if moving is None else moving
        names = [f"body {k}" for k in range(self.n)]
        return Solves(LinearSolver(self.device, wanted, moving, names, Islands(self.device, self.n), 3), tolerance)

    def solve(self, solves: Solves) -> np.ndarray:
        """Return the direction (n, 12) of a solver."""
        gradient, diagonal = (self.device.upload(one, wp.float64) for one in (self.gradient, self.diagonal))
        return solves.solve(gradient, diagonal, self.couplings, self.pairs[1:])

    def dense(self, moving: np.ndarray | None = None) -> np.ndarray:
        """Return -H^-1 g (n, 12) by LAPACK, zero for bodies that do not move."""
        n = self.n
        moving = np.ones(n, dtype=bool) if moving is None else moving
        H = np.zeros((n, 12, n, 12))
        H[np.arange(n), :, np.arange(n), :] = self.diagonal
        for pairs, blocks in zip(self.pairs, self.blocks, strict=True):
            for (i, j), B in zip(pairs, blocks, strict=True):
                H[i, :, j, :] += B
                H[j, :, i, :] += B.T
        inside = np.flatnonzero(np.repeat(moving, 12))
        x = np.zeros(12 * n)
        x[inside] = -np.linalg.solve(H.reshape(12 * n, 12 * n)[np.ix_(inside, inside)], self.gradient.ravel()[inside])
        return x.reshape(n, 12)
