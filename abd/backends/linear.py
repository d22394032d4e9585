"""Linear systems of 12x12 blocks: dense and sparse factorisation on the processor, PCG on any device.

The rule of `auto`: up to `DENSE_BODIES` free bodies dense Cholesky (LAPACK); on the processor sparse LU (SuperLU) up to
`SPARSE_BODIES`, or `JOINTED_BODIES` where at least half of the bodies hang on joints, whose graphs fill in little;
otherwise block-Jacobi PCG. It follows size and structure, never a clock.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
import warp as wp

from abd.backends.device import Device
from abd.backends.islands import Islands
from abd.errors import StepFailure
from cuda_kernels import dense, krylov, sums
from cuda_kernels.krylov import Coupling

DENSE_BODIES = 24
SPARSE_BODIES = 2000
JOINTED_BODIES = 50000


def choose(wanted: str, free_bodies: int, joints: int, on_cpu: bool) -> str:
    """Name of the solver: "dense", "sparse" or "pcg"."""
    if wanted == "pcg":
        return "pcg"
    if free_bodies <= DENSE_BODIES:
        return "dense"
    limit = JOINTED_BODIES if 2 * joints >= free_bodies else SPARSE_BODIES
    if wanted == "direct" or (on_cpu and free_bodies <= limit):
        return "sparse"
    return "pcg"


class Pattern:
    """Compressed columns of a matrix of 12x12 blocks in an order of little fill, and where each block's entries go.

    The order is one of the blocks, by minimum degree on their graph: it is found once, on a matrix twelve times smaller.

    Args:
        rows, columns: (k,) block coordinates, repeats are added up; size: number of block rows.
    """

    def __init__(self, rows: np.ndarray, columns: np.ndarray, size: int):
        self.rows, self.columns, self.size = rows, columns, 12 * size
        self.place_of = minimum_degree(rows, columns, size)
        self.order = np.argsort(self.place_of)
        rows, columns = self.place_of[rows], self.place_of[columns]
        keys, self.slot = np.unique(columns.astype(np.int64) * size + rows, return_inverse=True)
        self.count = len(keys)
        block_rows, block_columns = keys % size, keys // size
        # column 12 c + s holds the entries of column s of all blocks of block column c, top to bottom
        per_column = np.bincount(block_columns, minlength=size)
        first = np.concatenate([[0], np.cumsum(per_column)])[block_columns]
        within = np.arange(self.count) - first
        start = 144 * first + 12 * within
        lane = 12 * per_column[block_columns]
        s, r = np.meshgrid(np.arange(12), np.arange(12), indexing="xy")
        self.place = start[:, None, None] + s * lane[:, None, None] + r
        self.indptr = np.concatenate([[0], np.cumsum(np.repeat(12 * per_column, 12))])
        self.indices = np.empty(144 * self.count, dtype=np.int32)
        self.indices[self.place] = 12 * block_rows[:, None, None] + r

    def matrix(self, blocks: np.ndarray) -> scipy.sparse.csc_matrix:
        """The matrix of blocks (k, 12, 12)."""
        if self.count < len(blocks):
            summed = np.zeros((self.count, 12, 12))
            np.add.at(summed, self.slot, blocks)
        else:
            summed = np.empty_like(blocks)
            summed[self.slot] = blocks
        data = np.empty(144 * self.count)
        data[self.place] = summed
        return scipy.sparse.csc_matrix((data, self.indices, self.indptr), shape=(self.size, self.size))

    def factorize(self, blocks: np.ndarray):
        """Function that solves with the matrix of blocks (k, 12, 12), right-hand sides and solutions (12 size,)."""
        factor = scipy.sparse.linalg.splu(
            self.matrix(blocks), permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )

        def solve(rhs: np.ndarray) -> np.ndarray:
            ordered = rhs.reshape(-1, 12)[self.order].ravel()
            return factor.solve(ordered).reshape(-1, 12)[self.place_of].ravel()

        return solve


def minimum_degree(rows: np.ndarray, columns: np.ndarray, size: int) -> np.ndarray:
    """(size,) place of every block row in the elimination: SuperLU's minimum degree on the graph of the blocks."""
    graph = scipy.sparse.csc_matrix((np.ones(len(rows)), (rows, columns)), shape=(size, size))
    graph.data[:] = 1.0
    dominant = graph + scipy.sparse.diags_array(np.full(size, 2.0 * size), format="csc")
    return scipy.sparse.linalg.splu(
        dominant.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    ).perm_c


class LinearSolver:
    """Solves H d = -g for the bodies that have a slot.

    Args:
        method: "dense", "sparse" or "pcg".
        slot: (n,) row of every body in direct systems, -1 for bodies that never move.
        tolerance: of pcg, ``sqrt(r . M^-1 r)`` relative to its start.
    """

    def __init__(self, device: Device, method: str, slot: np.ndarray, islands: Islands, tolerance: float):
        self.device, self.method, self.tolerance, self.islands = device, method, tolerance, islands
        self.n, self.free = len(slot), int((slot >= 0).sum())
        self.slot_host = slot
        self.slot = device.upload(slot, wp.int32)
        self.direction = device.zeros((self.n, 12), wp.float64)
        self.max_iterations = 100 + 12 * self.free
        if method == "pcg":
            self.factors = device.zeros((self.n, 12, 12), wp.float64)
            self.r, self.z, self.p, self.q = (device.zeros((self.n, 12), wp.float64) for _ in range(4))
            self.scalar = device.zeros(self.n, wp.float64)
        elif method == "dense":
            self.matrix = device.zeros((12 * self.free, 12 * self.free), wp.float64)

    def solve(self, gradient, diagonal, couplings: list[tuple[Coupling, int]]) -> int:
        """Fill `direction`; returns the number of linear iterations (0 for direct solvers).

        Raises:
            StepFailure: the matrix is not positive definite or not finite.
        """
        if self.method == "pcg":
            return self._pcg(gradient, diagonal, [c for c, _ in couplings])
        try:
            factorize = self._dense if self.method == "dense" else self._sparse
            self._factors = factorize(diagonal, couplings)
            self.device.write(self.direction, self._solved(gradient))
        except (scipy.linalg.LinAlgError, ValueError, RuntimeError) as error:
            raise StepFailure("not_positive_definite", f"the linear system could not be factorised: {error}") from error
        return 0

    @property
    def has_factors(self) -> bool:
        """Whether `correct` can be called."""
        return self.method != "pcg"

    def correct(self, gradient) -> None:
        """Add the solution for another gradient (n, 12) to `direction`, with the matrix of the last `solve`."""
        self.device.write(self.direction, self.device.read(self.direction) + self._solved(gradient))

    def _solved(self, gradient) -> np.ndarray:
        """(n, 12) solution of H d = -gradient by the factors; zero for bodies without a slot."""
        x = self._factors(-self.device.read(gradient)[self.slot_host >= 0].ravel())
        if not np.isfinite(x).all():
            raise scipy.linalg.LinAlgError("the solution is not finite")
        full = np.zeros((self.n, 12))
        full[self.slot_host >= 0] = x.reshape(-1, 12)
        return full

    def _dense(self, diagonal, couplings):
        """Function that solves by a Cholesky factor."""
        launch = self.device.launch
        self.matrix.zero_()
        launch(dense.scatter_diagonal, 12 * self.n, self.slot, diagonal, self.matrix)
        for c, pairs in couplings:
            launch(dense.scatter_pairs, 12 * pairs, self.slot, c.row, c.column, c.blocks, self.matrix, grain=1 << 30)
        H = self.matrix.numpy()
        factor, info = scipy.linalg.lapack.dpotrf(H.T, lower=1, overwrite_a=1, clean=0)
        if info != 0:
            raise scipy.linalg.LinAlgError(f"leading minor {info} is not positive")
        return lambda rhs: scipy.linalg.lapack.dpotrs(factor, rhs, lower=1)[0]

    def _sparse(self, diagonal, couplings):
        """Function that solves by a sparse factor."""
        slot = self.slot_host
        rows, columns, blocks = [slot[slot >= 0]], [slot[slot >= 0]], [self.device.read(diagonal)[slot >= 0]]
        for c, pairs in couplings:
            if pairs == 0:
                continue
            i, j = slot[self.device.read(c.row, pairs)], slot[self.device.read(c.column, pairs)]
            inner = (i >= 0) & (j >= 0)
            B = self.device.read(c.blocks, pairs)[inner]
            rows += [i[inner], j[inner]]
            columns += [j[inner], i[inner]]
            blocks += [B, B.transpose(0, 2, 1)]
        return self._pattern(np.concatenate(rows), np.concatenate(columns)).factorize(np.concatenate(blocks))

    def _pattern(self, rows: np.ndarray, columns: np.ndarray) -> Pattern:
        """Pattern of these blocks; the last one is kept, and serves as long as the blocks stay where they are."""
        kept = self._kept
        if kept is None or not (np.array_equal(kept.rows, rows) and np.array_equal(kept.columns, columns)):
            self._kept = kept = Pattern(rows, columns, self.free)
        return kept

    _kept: Pattern | None = None

    def _pcg(self, gradient, diagonal, couplings) -> int:
        device, launch, n, islands = self.device, self.device.launch, self.n, self.islands
        x, r, z, p, q, island = self.direction, self.r, self.z, self.p, self.q, islands.island
        launch(krylov.factor_blocks, n, diagonal, self.factors, grain=64)
        launch(krylov.begin, n, gradient, self.factors, x, r, z, p, self.scalar, grain=256)
        rz, fresh = islands.scalars("rz"), islands.scalars("fresh")
        pq = islands.scalars("pq")
        islands.reduce(self.scalar, sums.SUM, rz)
        start = device.read(rz)
        if not np.isfinite(start).all():
            raise StepFailure("not_finite", "the gradient is not finite")
        every = 1 if device.is_cpu else 16
        for iteration in range(1, self.max_iterations + 1):
            launch(krylov.multiply, n, diagonal, *couplings, p, q, self.scalar, grain=64)
            islands.reduce(self.scalar, sums.SUM, pq)
            launch(krylov.descend, n, island, rz, pq, self.factors, p, q, x, r, z, self.scalar, grain=256)
            islands.reduce(self.scalar, sums.SUM, fresh)
            if iteration % every == 0:
                left = device.read(fresh)
                if not np.isfinite(left).all():
                    raise StepFailure("not_finite", f"conjugate gradients broke down in iteration {iteration}")
                if (left <= self.tolerance**2 * start).all():
                    return iteration
            launch(krylov.turn, n, island, fresh, rz, z, p, grain=2048)
            rz, fresh = fresh, rz
        raise StepFailure(
            "linear_solver",
            f"conjugate gradients did not reach {self.tolerance:g} in {self.max_iterations} iterations; "
            "use solver.linear_solver = 'direct'",
        )
