"""Elimination orders of a sparse Cholesky factorisation, from the graph of the blocks.

Minimum degree gives no fill for trees. On a GPU, rounds of independent rows give a low elimination tree.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
import warp as wp

from abd.backends.device.device import turn_of
from cuda_kernels.linear import elimination as kernels

CAPACITY = 24
"""Capacity for neighbours of a row in elimination rounds."""
MOST_NEIGHBOURS = 8
"""Maximum number of neighbours of a row that is eliminated in a round."""


def run(kernel, *values: np.ndarray | int) -> None:
    """Run a kernel with one thread on host arrays, in place, and numbers."""
    inputs, host = [one if isinstance(one, int) else shared(one) for one in values], wp.get_device("cpu")
    with turn_of(host):
        wp.launch(kernel, dim=1, inputs=[0, *inputs], device=host)


def shared(values: np.ndarray) -> wp.array:
    """A Warp array over the memory of a contiguous NumPy array."""
    return wp.array(values, dtype={"i": wp.int32, "f": wp.float64}[values.dtype.kind], device="cpu", copy=False)


def minimum_degree(graph: scipy.sparse.csr_matrix, worlds: np.ndarray) -> np.ndarray:
    """(N,) block rows in the order of SuperLU's minimum degree, separately for each world of `worlds` (N,)."""
    if graph.nnz == 0:
        return np.arange(graph.shape[0], dtype=np.int32)
    if (worlds == worlds[0]).all():
        return _minimum_degree(graph)
    rows = np.argsort(worlds, kind="stable").astype(np.int32)
    starts, columns = permuted(graph, rows)
    ends = np.append(np.flatnonzero(np.diff(worlds[rows], prepend=np.nan)), len(rows))
    order = []
    for first, last in pairwise(ends.tolist()):
        begin, end = starts[first], starts[last]
        local = starts[first : last + 1] - begin, np.ascontiguousarray(columns[begin:end] - first)
        order.append(first + _order_of(*(one.tobytes() for one in local)))
    return rows[np.concatenate(order)]


@lru_cache(maxsize=1 << 14)
def _order_of(starts: bytes, columns: bytes) -> np.ndarray:
    """Order of a graph by its lists of neighbours, int32, cached: equal worlds share one entry."""
    indptr, indices = (np.frombuffer(one, dtype=np.int32) for one in (starts, columns))
    if not len(indices):
        return np.arange(len(indptr) - 1, dtype=np.int32)
    shape = len(indptr) - 1, len(indptr) - 1
    return _minimum_degree(scipy.sparse.csr_matrix((np.ones(len(indices), dtype=bool), indices, indptr), shape=shape))


def _minimum_degree(graph: scipy.sparse.csr_matrix) -> np.ndarray:
    """Minimum degree order of one graph by SuperLU.

    SuperLU orders only as part of a factorisation. An incomplete factorisation that drops all fill gives the same order at the
    cost of the matrix, not of the fill."""
    size = graph.shape[0]
    weights = scipy.sparse.csc_matrix((np.ones(graph.nnz), graph.indices, graph.indptr), shape=graph.shape)
    dominant = (weights + scipy.sparse.diags_array(np.full(size, 2.0 * size), format="csc")).tocsc()
    place = scipy.sparse.linalg.spilu(
        dominant, drop_tol=1.0, fill_factor=1.0, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    ).perm_c  # fmt: skip
    order = np.empty(size, dtype=np.int32)
    order[place] = np.arange(size, dtype=np.int32)
    return order


def in_rounds(graph: scipy.sparse.csr_matrix, worlds: np.ndarray) -> np.ndarray:
    """(N,) block rows in an order with a low elimination tree, which has few and wide levels.

    Rows with few neighbours are eliminated in rounds of independent rows, which causes some fill. Minimum degree orders the
    remaining rows.
    """
    size = graph.shape[0]
    lengths = np.diff(graph.indptr)
    degree = np.where(lengths <= CAPACITY, lengths, -1).astype(np.int32)
    lists = np.zeros((size, CAPACITY), dtype=np.int32)
    row = np.repeat(np.arange(size), lengths)
    within = np.arange(graph.nnz) - np.repeat(graph.indptr[:-1], lengths)
    is_listed = degree[row] >= 0
    lists[row[is_listed], within[is_listed]] = graph.indices[is_listed]
    touched, order, count = np.full(size, -1, dtype=np.int32), np.empty(size, dtype=np.int32), np.zeros(1, np.int32)
    arrays = lists, degree, touched, np.empty_like(order), order, count
    run(kernels.eliminate_in_rounds, MOST_NEIGHBOURS, *arrays)
    done = order[: count[0]]
    core = np.ones(size, dtype=bool)
    core[done] = False
    core = np.flatnonzero(core)
    # remaining graph: lists with their fill, and neighbours of rows beyond the capacity of a list
    place = np.full(size, -1)
    place[core] = np.arange(len(core))
    listed = np.arange(CAPACITY) < degree[core][:, None]
    rows = np.concatenate([np.repeat(core, listed.sum(axis=1)), row[~is_listed]])
    columns = np.concatenate([lists[core][listed], graph.indices[~is_listed]])
    both = (place[rows] >= 0) & (place[columns] >= 0)
    i, j = place[rows[both]], place[columns[both]]
    ends = np.concatenate([i, j]), np.concatenate([j, i])
    rest = scipy.sparse.csr_matrix((np.ones(len(ends[0]), dtype=bool), ends), shape=(len(core), len(core)))
    return np.concatenate([done, core[minimum_degree(rest, worlds[core])]]).astype(np.int32)


def permuted(graph: scipy.sparse.csr_matrix, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lists of neighbours (starts, columns) of a graph after its rows are reordered."""
    place = np.empty_like(order)
    place[order] = np.arange(len(order), dtype=order.dtype)
    lengths = np.diff(graph.indptr)
    rows = np.repeat(place, lengths)
    moved = scipy.sparse.csr_matrix((np.ones(graph.nnz, dtype=bool), (rows, place[graph.indices])), shape=graph.shape)
    return moved.indptr.astype(np.int32), moved.indices.astype(np.int32)
