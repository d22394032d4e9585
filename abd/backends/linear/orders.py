"""In which order the rows of a sparse Cholesky factorisation are eliminated, from the graph of the blocks alone.

Minimum degree leaves trees without fill and eliminates chains from both ends; where many small items run side by side, rounds
of independent rows keep the elimination tree low.
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

ROOM = 24
"""Neighbours that a row may have while rows are eliminated in rounds."""
MOST_NEIGHBOURS = 8
"""Of a row that is eliminated in a round."""


def run(kernel, *values: np.ndarray | int) -> None:
    """Run a kernel of one item on host arrays, in place, and numbers."""
    inputs, host = [one if isinstance(one, int) else shared(one) for one in values], wp.get_device("cpu")
    with turn_of(host):
        wp.launch(kernel, dim=1, inputs=[0, *inputs], device=host)


def shared(values: np.ndarray) -> wp.array:
    """A Warp array over the memory of a contiguous NumPy array."""
    return wp.array(values, dtype={"i": wp.int32, "f": wp.float64}[values.dtype.kind], device="cpu", copy=False)


def minimum_degree(graph: scipy.sparse.csr_matrix, worlds: np.ndarray | None = None) -> np.ndarray:
    """(N,) block rows in the order of SuperLU's minimum degree, those of each of the `worlds` (N,) by themselves."""
    if graph.nnz == 0:
        return np.arange(graph.shape[0], dtype=np.int32)
    if worlds is None or (worlds == worlds[0]).all():
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
    """The order of a graph by its lists of neighbours, int32: worlds that are alike have the same."""
    indptr, indices = (np.frombuffer(one, dtype=np.int32) for one in (starts, columns))
    if not len(indices):
        return np.arange(len(indptr) - 1, dtype=np.int32)
    shape = len(indptr) - 1, len(indptr) - 1
    return _minimum_degree(scipy.sparse.csr_matrix((np.ones(len(indices), dtype=bool), indices, indptr), shape=shape))


def _minimum_degree(graph: scipy.sparse.csr_matrix) -> np.ndarray:
    """The same of one graph: SuperLU finds it on a matrix of numbers, before it factors that. An incomplete factor, of which
    everything is dropped, leaves the order as it is, and takes time like the matrix, not like its fill."""
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


def in_rounds(graph: scipy.sparse.csr_matrix, worlds: np.ndarray | None = None) -> np.ndarray:
    """(N,) block rows in an order whose elimination tree is low, so that levels are few and wide.

    Chains, trees and ladders are eliminated in rounds of independent rows at the price of some fill; minimum degree
    orders what is left when rounds become small.
    """
    size = graph.shape[0]
    lengths = np.diff(graph.indptr)
    degree = np.where(lengths <= ROOM, lengths, -1).astype(np.int32)
    lists = np.zeros((size, ROOM), dtype=np.int32)
    row = np.repeat(np.arange(size), lengths)
    within = np.arange(graph.nnz) - np.repeat(graph.indptr[:-1], lengths)
    known = degree[row] >= 0
    lists[row[known], within[known]] = graph.indices[known]
    touched, order, count = np.full(size, -1, dtype=np.int32), np.empty(size, dtype=np.int32), np.zeros(1, np.int32)
    arrays = lists, degree, touched, np.empty_like(order), order, count
    run(kernels.eliminate_in_rounds, MOST_NEIGHBOURS, *arrays)
    done = order[: count[0]]
    core = np.ones(size, dtype=bool)
    core[done] = False
    core = np.flatnonzero(core)
    # what is left: the lists with their fill, and the neighbours of rows that were too long for one
    place = np.full(size, -1)
    place[core] = np.arange(len(core))
    listed = np.arange(ROOM) < degree[core][:, None]
    rows = np.concatenate([np.repeat(core, listed.sum(axis=1)), row[~known]])
    columns = np.concatenate([lists[core][listed], graph.indices[~known]])
    both = (place[rows] >= 0) & (place[columns] >= 0)
    i, j = place[rows[both]], place[columns[both]]
    ends = np.concatenate([i, j]), np.concatenate([j, i])
    rest = scipy.sparse.csr_matrix((np.ones(len(ends[0]), dtype=bool), ends), shape=(len(core), len(core)))
    of = None if worlds is None or not len(core) else worlds[core]
    return np.concatenate([done, core[minimum_degree(rest, of)]]).astype(np.int32)


def permuted(graph: scipy.sparse.csr_matrix, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lists of neighbours (starts, columns) of a graph whose rows stand in an order."""
    place = np.empty_like(order)
    place[order] = np.arange(len(order), dtype=order.dtype)
    lengths = np.diff(graph.indptr)
    rows = np.repeat(place, lengths)
    moved = scipy.sparse.csr_matrix((np.ones(graph.nnz, dtype=bool), (rows, place[graph.indices])), shape=graph.shape)
    return moved.indptr.astype(np.int32), moved.indices.astype(np.int32)
