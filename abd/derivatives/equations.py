"""Linear equations between the differentials of named unknowns and inputs, and central differences of local functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import splu

ROWS = 4096
"""Number of entities per call in `jacobian`; intermediate results then fit into the cache."""


def jacobian(
    function: Callable[..., np.ndarray], arrays: Sequence[np.ndarray], steps: Sequence[np.ndarray | float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the value (r, o) of a function of independent entities, and its derivatives (r, o, k) by central differences.

    Args:
        function: of c copies of the arrays, (c e_i, k_i) each, one copy after the other; returns (c r, o).
        arrays: (e_i, k_i), with k columns in all; steps: changes of the columns, (e_i, k_i) with e_i = r, (1, k_i) or scalars.
    """
    changes = [np.broadcast_to(step, (1 if np.ndim(step) == 0 else len(step), x.shape[1])).T for x, step in zip(arrays, steps)]
    of = [(which, k) for which, change in enumerate(changes) for k in range(len(change))]
    moves = [(*column, sign) for column in of for sign in (1.0, -1.0)] + [(0, 0, 0.0)]
    ends, block = [], max(1, ROWS // max(len(x) for x in arrays))
    for first in range(0, len(moves), block):
        some = moves[first : first + block]
        tiled = [np.tile(x, (len(some), 1, 1)) for x in arrays]
        for copy, (which, k, sign) in enumerate(some):
            tiled[which][copy, :, k] += sign * changes[which][k]
        found = function(*(x.reshape(-1, x.shape[2]) for x in tiled))
        ends.append(found.reshape(len(some), len(found) // len(some), found.shape[1]))
    ends = np.concatenate(ends)
    scale = [2.0 * changes[which][k][:, None] for which, k in of]
    J = np.stack([(a - b) / one for a, b, one in zip(ends[0:-1:2], ends[1::2], scale)], axis=2)
    return ends[-1], J


def body_columns(bodies: np.ndarray) -> np.ndarray:
    """Return (k, 12) indices of the states of bodies (k,)."""
    return 12 * np.asarray(bodies, dtype=int)[:, None] + np.arange(12)


class Equations:
    """Equations ``U dy + V dx = 0``, one per unknown y, for inputs x.

    Args:
        unknowns, inputs: sizes by name; the first of both are states (12 n) of the bodies.

    Attributes:
        unknowns, inputs: slices by name.
    """

    def __init__(self, unknowns: Mapping[str, int], inputs: Mapping[str, int]):
        self.unknowns, self.inputs = _slices(unknowns), _slices(inputs)
        self.sizes = sum(unknowns.values()), sum(inputs.values())
        self._blocks: tuple[list, list] = [], []

    def add(self, equation: str, of: str, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
        """Add derivatives (k, r, c) of equations `rows` (k, r) by unknowns or inputs `columns` (k, c)."""
        is_input = of in self.inputs
        start = (self.inputs if is_input else self.unknowns)[of].start
        k, r, c = np.nonzero(values)
        self._blocks[is_input].append((values[k, r, c], rows[k, r] + self.unknowns[equation].start, columns[k, c] + start))

    def add_diagonal(self, equation: str, of: str, values: np.ndarray | float, row: int = 0, column: int = 0) -> None:
        """Add derivatives (k,), or a scalar for all equations, of equations `row` on by the unknowns or inputs `column` on."""
        span = self.unknowns[equation]
        k = np.arange(len(values) if np.ndim(values) else span.stop - span.start)[:, None]
        self.add(equation, of, row + k, column + k, np.broadcast_to(values, len(k))[:, None, None])

    def factorise(self, projectors: np.ndarray, fixed: np.ndarray) -> None:
        """Assemble U and V, and factorise U.

        Args:
            projectors: (n, 12, 12) on the free motions of the bodies, whose states are the first unknowns and inputs.
            fixed: (n,) 1 where the other motions are those of the inputs, 0 where they are zero.
        """
        count, given = self.sizes
        U, V = (
            sparse.csr_array((value, (row, column)), shape=(count, width))
            for (value, row, column), width in zip(map(_joined, self._blocks), self.sizes, strict=True)
        )
        n, rest = len(projectors), np.eye(12) - projectors
        place = np.broadcast_to(body_columns(np.arange(n))[:, :, None], rest.shape)
        indices = place.ravel(), place.transpose(0, 2, 1).ravel()

        def of_bodies(values: np.ndarray, width: int) -> sparse.csr_array:
            return sparse.csr_array((values.ravel(), indices), shape=(count, width))

        S = sparse.eye_array(count, format="csr") - of_bodies(rest, count)
        self._factor = splu((S @ U + of_bodies(rest, count)).tocsc())
        self._by_inputs = S @ V - of_bodies(fixed[:, None, None] * rest, given)
        self._blocks = [], []

    def forward(self, dx: np.ndarray) -> np.ndarray:
        """Return dy for dx, both with one column per direction."""
        return self._factor.solve(-(self._by_inputs @ dx))

    def adjoint(self, by_y: np.ndarray) -> np.ndarray:
        """Return derivatives by the inputs of a function with derivatives `by_y` by the unknowns, by a transposed solve."""
        return -(self._by_inputs.T @ self._factor.solve(by_y, trans="T"))


def _joined(blocks: list[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
    return [np.concatenate(one) for one in zip(*blocks, strict=True)]


def _slices(sizes: Mapping[str, int]) -> dict[str, slice]:
    ends = np.cumsum([0, *sizes.values()]).tolist()
    return {name: slice(*span) for name, span in zip(sizes, pairwise(ends), strict=True)}
