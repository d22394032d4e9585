"""User-defined rows in NumPy: differentiation and checks.

Functions that accept complex numbers are differentiated by complex steps, exact to rounding. Other functions are
differentiated by differences of fourth order with an error near 1e-12. A Jacobian of the user is checked once, then
used.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from abd.errors import SceneError
from abd.joints.measures.motions import turned
from abd.joints.measures.slopes import AGREEMENT, COMPLEX_STEP, STENCIL, STEP, is_analytic

Residual = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
SAMPLES = 23
"""Number of poses at which derivatives are checked."""
SAMPLE_TURN = np.pi / 3.0
SAMPLE_REACH = 0.5
"""Largest rotation [rad] and largest component of r [m] of these poses, as in ArtiSynth's tests of couplings."""


class NumpyRows:
    """Rows of a joint type by a smooth function ``residual(M, r, p) -> (k, rows)``.

    Args:
        name: joint type; names: of the rows.
        residual: function of M (k, 3, 3), r (k, 3), p (k, np).
        jacobian: same arguments -> (k, rows, 12): derivatives by the rows of M, then by r.
        p: (np,) parameters for the check.
        kinked: rows whose residual has a kink, and their derivatives (k, kinked, 12) as a function of the same arguments.

    Raises:
        SceneError: the function has the wrong shape, or its Jacobian is wrong.
    """

    def __init__(
        self, name: str, names: list[str], residual: Residual, p: np.ndarray, jacobian: Residual | None = None,
        kinked: tuple[list[int], Residual] | None = None,
    ):  # fmt: skip
        self.name, self.names, self.count, self.parameters = name, names, len(names), len(p)
        self.residual, self.jacobian, self.kinked = residual, jacobian, kinked
        self.takes_complex = False
        M, r, numbers = self._samples(p)
        differences = self._by_differences(M, r, numbers, np.ones(len(M)))
        self.takes_complex = jacobian is None and is_analytic(
            lambda: self._by_complex_steps(M, r, numbers), lambda found: worst_difference(found, differences) is None
        )
        if jacobian is not None:
            compare(name, names, self._shaped(jacobian(M, r, numbers), "Jacobian", 12), differences)

    def values(self, M: np.ndarray, r: np.ndarray, p: np.ndarray) -> np.ndarray:
        """See `RowFunction`."""
        return self._shaped(self.residual(M, r, p), "function").real

    def slopes(self, M: np.ndarray, r: np.ndarray, p: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `RowFunction`."""
        if self.jacobian is not None:
            return self.values(M, r, p), self._shaped(self.jacobian(M, r, p), "Jacobian", 12)
        slopes = self._by_complex_steps(M, r, p) if self.takes_complex else self._by_differences(M, r, p, length)
        if self.kinked is not None:
            rows, by_wrench = self.kinked
            slopes[:, rows] = by_wrench(M, r, p)
        return self.values(M, r, p), slopes

    # derivatives -------------------------------------------------------------------------------------------------

    def _by_complex_steps(self, M: np.ndarray, r: np.ndarray, p: np.ndarray) -> np.ndarray:
        moved = self._moved(M, r, p, np.full((12, len(M)), 1j * COMPLEX_STEP))
        return np.moveaxis(moved.imag / COMPLEX_STEP, 0, 2)

    def _by_differences(self, M: np.ndarray, r: np.ndarray, p: np.ndarray, length: np.ndarray) -> np.ndarray:
        steps = np.where(np.arange(12)[:, None] < 9, STEP, STEP * length)
        total = sum(weight * self._moved(M, r, p, place * steps) for place, weight in STENCIL)
        return np.moveaxis(total.real / steps[:, :, None], 0, 2)

    def _moved(self, M: np.ndarray, r: np.ndarray, p: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """(12, k, rows) with one feature at a time shifted by steps (12, k), in one call of the function."""
        k = len(M)
        features = np.concatenate([M.reshape(k, 9), r], axis=1) + np.eye(12)[:, None, :] * steps[:, :, None]
        features = features.reshape(12 * k, 12)
        moved = self.residual(features[:, :9].reshape(-1, 3, 3), features[:, 9:], np.tile(p, (12, 1)))
        return self._shaped(moved, "function").reshape(12, k, self.count)

    # checks ------------------------------------------------------------------------------------------------------

    def _samples(self, p: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """M, r and p of the sample poses at which all rows are finite."""
        M, r = sample_poses()
        numbers = np.tile(p, (len(M), 1))
        finite = np.isfinite(self.values(M, r, numbers)).all(axis=1)
        if not finite.any():
            message = f"joint type {self.name!r}: the function is not finite at any pose near the identity"
            raise SceneError.of(message, remedy="check its parameters' default values")
        return M[finite], r[finite], numbers[finite]

    def _shaped(self, out: np.ndarray, what: str, *tail: int) -> np.ndarray:
        out = np.asarray(out)
        if out.ndim != 2 + len(tail) or out.shape[1:] != (self.count, *tail):
            wanted = ", ".join(map(str, ("k", self.count, *tail)))
            message = f"joint type {self.name!r}: the {what} returned an array of shape {out.shape}, not ({wanted})"
            raise SceneError.of(message, remedy="one column for every name in rows, then in coordinates")
        return out


def sample_poses() -> tuple[np.ndarray, np.ndarray]:
    """M (s, 3, 3) and r (s, 3) of the poses at which derivatives are checked; deterministic."""
    rng = np.random.default_rng(0)
    turns = rng.uniform(-SAMPLE_TURN, SAMPLE_TURN, (SAMPLES, 3)) / np.sqrt(3.0)
    return np.array([turned(turn) for turn in turns]), rng.uniform(-SAMPLE_REACH, SAMPLE_REACH, (SAMPLES, 3))


def worst_difference(given: np.ndarray, expected: np.ndarray) -> tuple[int, int, int] | None:
    """Index of the entry (k, rows, 12) with the largest error; None if all agree to `AGREEMENT`."""
    finite = np.isfinite(expected)
    off = np.abs(np.where(finite, given - expected, 0.0)) / (1.0 + np.abs(np.where(finite, expected, 0.0)))
    off = np.where(np.isfinite(off), off, np.inf)
    worst = np.unravel_index(np.argmax(off), off.shape)
    return None if off[worst] <= AGREEMENT else tuple(int(i) for i in worst)


def compare(name: str, names: list[str], given: np.ndarray, expected: np.ndarray) -> None:
    """Compare derivatives (k, rows, 12) with differences.

    Raises:
        SceneError: they differ.
    """
    worst = worst_difference(given, expected)
    if worst is None:
        return
    _, row, column = worst
    by = f"M[{column // 3}, {column % 3}]" if column < 9 else f"r[{column - 9}]"
    one, other = given[worst], expected[worst]
    message = (
        f"joint type {name!r}, row {names[row]!r}: its derivative by {by} is {one:.6g}, "
        f"but differences give {other:.6g}, {abs(one - other):.3g} apart"
    )
    raise SceneError.of(message, remedy="correct the Jacobian, or leave it out")
