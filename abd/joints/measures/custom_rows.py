"""Custom measures: their grouping by user function and their evaluation.

One call of a function returns all rows of a joint, so measures are grouped by function and by joint.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.joints.measures.measures import Measure, RowFunction

ROW, LENGTH, FIRST = 0, 1, 2
"""Indices in the numbers of a custom measure: its row, the length of the joint [m], the first joint parameter."""


@dataclass(frozen=True)
class CustomRows:
    """The measures of one function within a list of measures.

    Attributes:
        function: row function.
        measure: (e,) indices in the list; row: (e,) rows of the function; pair: (e,) index of the frame pair.
        first: (k,) a measure with the frames of each pair; p: (k, np) parameters; length: (k,) [m].
    """

    function: RowFunction
    measure: np.ndarray
    row: np.ndarray
    pair: np.ndarray
    first: np.ndarray
    p: np.ndarray
    length: np.ndarray

    def evaluate(self, M: np.ndarray, r: np.ndarray, with_slopes: bool) -> tuple[np.ndarray, np.ndarray | None]:
        """Values (e,) at M (k, 3, 3) and r (k, 3) of the pairs, and derivatives (e, 12) if `with_slopes`."""
        if not with_slopes:
            return self.function.values(M, r, self.p)[self.pair, self.row], None
        f, g = self.function.slopes(M, r, self.p, self.length)
        return f[self.pair, self.row], g[self.pair, self.row]


def group_custom_rows(measures: list[Measure], owners: list[int]) -> tuple[CustomRows, ...]:
    """Group the custom measures by function; measures with equal `owners` share their frames."""
    by_function: dict[int, list[int]] = {}
    for index, one in enumerate(measures):
        if one.function is not None:
            by_function.setdefault(id(one.function), []).append(index)
    groups = []
    for indices in by_function.values():
        function = measures[indices[0]].function
        numbers = np.array([measures[index].numbers for index in indices])
        _, first, pair = np.unique([owners[index] for index in indices], return_index=True, return_inverse=True)
        p = numbers[first, FIRST : FIRST + function.parameters]
        index, row, length = np.array(indices), numbers[:, ROW].astype(int), numbers[first, LENGTH]
        groups.append(CustomRows(function, index, row, pair, index[first], p, length))
    return tuple(groups)


def evaluate_custom_rows(groups: tuple[CustomRows, ...], z: np.ndarray, with_slopes: bool) -> np.ndarray | None:
    """(m, 16) values and derivatives by the first 15 features at features z (m, 16); None without custom measures.

    If `with_slopes` is False, the derivatives are zero.
    """
    if not groups:
        return None
    out = np.zeros((len(z), 16))
    for one in groups:
        values, slopes = one.evaluate(z[one.first, :9].reshape(-1, 3, 3), z[one.first, 9:12], with_slopes)
        out[one.measure, 0] = values
        if with_slopes:
            out[one.measure, 1:13] = slopes
    return out
