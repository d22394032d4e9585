"""User-defined rows in NumPy: differentiation, checks, and ArtiSynth's definition by wrenches and a projection.

Functions that accept complex numbers are differentiated by complex steps, exact to rounding. Other functions are
differentiated by differences of fourth order with an error near 1e-12. A Jacobian of the user is checked once, then
used.

ArtiSynth defines a joint by constraint wrenches and a projection to the nearest admissible pose, T_CD to T_GD. The
joint's error is the motion from G to C; row k is its component

    phi_k = G_k . log(T_GD^-1 T_CD)        G_k = (force; moment) in the axes of C, twists (v; w)

If a wrench does no work on the joint's freedoms, the rate of phi_k is ``G_k . v_CD`` at a closed joint. The rows are
differentiable by complex steps if the projection is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from abd.errors import SceneError
from abd.joints.measures.measures import analytic_rotation_vectors
from abd.joints.measures.motions import turned
from abd.joints.measures.slopes import AGREEMENT, COMPLEX_STEP, STENCIL, STEP, is_analytic
from abd.rotations import pose

Residual = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
Projection = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""T_GD (k, 4, 4) from T_CD (k, 4, 4) and parameters p (k, np)."""
Wrench = np.ndarray | Projection
"""(6,) force and moment in axes of C, or a function of T_GD (k, 4, 4) and p (k, np) that returns (k, 6)."""
ITERATIONS = 10
"""Number of Newton-Schulz iterations; each doubles the number of correct digits."""
SMALL = 1e-3
"""Squared angle [rad^2] below which series replace quotients."""
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
        differences = by_differences(self.values, M, r, numbers)
        self.takes_complex = jacobian is None and is_analytic(
            lambda: self._by_complex_steps(M, r, numbers), lambda found: worst_difference(found, differences) is None
        )
        if jacobian is not None:
            compare(name, names, self._shaped(jacobian(M, r, numbers), "Jacobian", 12), differences)

    def values(self, M: np.ndarray, r: np.ndarray, p: np.ndarray) -> np.ndarray:
        """See `RowFunction`."""
        return self._complex_values(M, r, p).real

    def slopes(self, M: np.ndarray, r: np.ndarray, p: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `RowFunction`."""
        if self.jacobian is not None:
            return self.values(M, r, p), self._shaped(self.jacobian(M, r, p), "Jacobian", 12)
        slopes = self._by_complex_steps(M, r, p) if self.takes_complex else by_differences(self.values, M, r, p, length)
        if self.kinked is not None:
            rows, by_wrench = self.kinked
            slopes[:, rows] = by_wrench(M, r, p)
        return self.values(M, r, p), slopes

    def _complex_values(self, M: np.ndarray, r: np.ndarray, p: np.ndarray) -> np.ndarray:
        return self._shaped(self.residual(M, r, p), "function")

    def _by_complex_steps(self, M: np.ndarray, r: np.ndarray, p: np.ndarray) -> np.ndarray:
        moved = _moved(self._complex_values, M, r, p, np.full((12, len(M)), 1j * COMPLEX_STEP))
        return np.moveaxis(moved.imag / COMPLEX_STEP, 0, 2)

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


def by_differences(values: Residual, M: np.ndarray, r: np.ndarray, p: np.ndarray, length: np.ndarray | float = 1.0) -> np.ndarray:
    """(k, rows, 12) derivatives of rows by the rows of M and by r; lengths (k,) [m] scale the steps in r."""
    steps = np.where(np.arange(12)[:, None] < 9, STEP, STEP * np.broadcast_to(length, len(M)))
    total = sum(weight * _moved(values, M, r, p, place * steps) for place, weight in STENCIL)
    return np.moveaxis(total / steps[:, :, None], 0, 2)


def _moved(values: Residual, M: np.ndarray, r: np.ndarray, p: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """(12, k, rows) with one feature at a time shifted by steps (12, k), in one call of the function."""
    k = len(M)
    features = np.concatenate([M.reshape(k, 9), r], axis=1) + np.eye(12)[:, None, :] * steps[:, :, None]
    features = features.reshape(12 * k, 12)
    moved = values(features[:, :9].reshape(-1, 3, 3), features[:, 9:], np.tile(p, (12, 1)))
    return moved.reshape(12, k, moved.shape[1])


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


def wrench_residual(wrenches: Projection, project: Projection) -> Residual:
    """Residual function of a function of T_GD (k, 4, 4) and p that returns the wrenches (k, rows, 6)."""

    def residual(M: np.ndarray, r: np.ndarray, p: np.ndarray) -> np.ndarray:
        T = pose(closest_rotations(M), r)
        G = project(T, p)
        return np.einsum("kri,ki->kr", wrenches(G, p), logarithms(inverses(G) @ T))

    return residual


def wrench_slopes(wrenches: Projection, project: Projection) -> Residual:
    """Jacobian function of the same rows, (k, rows, 12) by the rows of M and by r, from their rates ``G_k . v_CD``.

    Unlike the derivative of the residual, it has no kink where a projection begins to act.
    """

    def slopes(M: np.ndarray, r: np.ndarray, p: np.ndarray) -> np.ndarray:
        W = wrenches(project(pose(closest_rotations(M), r), p), p)
        by_M = 0.5 * np.cross(M[:, None], W[:, :, None, 3:])
        return np.concatenate([by_M.reshape(*W.shape[:2], 9), W[:, :, :3] @ M.transpose(0, 2, 1)], axis=2)

    return slopes


def stacked(wrenches: Mapping[str, Wrench]) -> Projection:
    """The wrenches of rows (k, rows, 6) as one function of T_GD (k, 4, 4) and p, in their order."""

    def function(G: np.ndarray, p: np.ndarray) -> np.ndarray:
        each = [one(G, p) if callable(one) else np.asarray(one, dtype=float) for one in wrenches.values()]
        return np.stack([np.broadcast_to(one, (len(G), 6)) for one in each], axis=1)

    return function


def mixed_residual(
    names: Sequence[str], function: Residual, wrenches: Mapping[str, Wrench], project: Projection
) -> Residual:
    """Residual function of rows by name: those of wrenches, and the others (k, others) of a function in their order."""
    by_wrench = wrench_residual(stacked(wrenches), project)
    order = [name for name in names if name not in wrenches] + list(wrenches)
    place = [order.index(name) for name in names]

    def residual(M: np.ndarray, r: np.ndarray, p: np.ndarray) -> np.ndarray:
        return np.concatenate([function(M, r, p), by_wrench(M, r, p)], axis=1)[:, place]

    return residual


def inverses(T: np.ndarray) -> np.ndarray:
    """(k, 4, 4) inverses of rigid poses."""
    R = T[:, :3, :3].transpose(0, 2, 1)
    return pose(R, -np.einsum("kij,kj->ki", R, T[:, :3, 3]))


def closest_rotations(M: np.ndarray) -> np.ndarray:
    """Rotations closest to M (k, 3, 3) with positive determinant, by an iteration that is analytic in M."""
    X = M * np.sqrt(3.0 / np.sum(M * M, axis=(1, 2)))[:, None, None]
    for _ in range(ITERATIONS):
        X = 1.5 * X - 0.5 * X @ X.transpose(0, 2, 1) @ X
    return X


def logarithms(T: np.ndarray) -> np.ndarray:
    """(k, 6) twists (v; w) of rigid poses (k, 4, 4), rotations less than half a turn; analytic in T."""
    R, p = T[:, :3, :3], T[:, :3, 3]
    w = analytic_rotation_vectors(R)
    angle2 = np.sum(w * w, axis=1)
    small = angle2.real < SMALL
    angle = np.sqrt(np.where(small, 1.0, angle2))
    curved = (1.0 - 0.5 * angle / np.tan(0.5 * angle)) / angle**2
    curved = np.where(small, 1 / 12 + angle2 * (1 / 720 + angle2 * (1 / 30240 + angle2 / 1209600)), curved)
    turned = np.cross(w, p)
    return np.concatenate([p - 0.5 * turned + curved[:, None] * np.cross(w, turned), w], axis=1)
