"""The linear system of a Newton iteration, H d = -g, as a dense matrix of every island."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from abd.backends.reference.numpy_bodies import Boxes, maps, positions
from abd.backends.reference.parts.inactive import Inactive
from abd.backends.reference.potential import Potential
from abd.errors import StepFailure
from abd.joints.rows.system import CLOSED, CLOSINGS


class DenseSolver:
    """Directions by dense Cholesky; `abd.backends.protocol.Linear`.

    Attributes:
        direction: (n, 12) the last one.
    """

    def __init__(self, potential: Potential, inactive: Inactive, boxes: Boxes):
        self.potential, self.inactive, self.boxes = potential, inactive, boxes
        self.at, self.islands, self.n = potential.at, potential.islands, potential.n
        self.everybody = np.arange(self.n)

    def describe(self) -> dict:
        """Which solver there is."""
        return {"name": "dense Cholesky", "why": "the only one of this backend"}

    def memory(self) -> dict[str, np.ndarray]:
        """Nothing: every matrix is factored by itself."""
        return {}

    def recall(self, memory: dict[str, np.ndarray]) -> None:
        """Nothing to go on with."""

    def memory_of_parts(self, parts: list[tuple[np.ndarray, dict[str, np.ndarray]]]) -> dict[str, np.ndarray]:
        """Nothing."""
        return {}

    def linearize(self) -> None:
        """Gradient and blocks of the potential at the iterate, fixed degrees of freedom projected out."""
        self.potential.linearize(self.inactive.projectors)

    def solve(self, forcing: float | None = None) -> tuple[np.ndarray, int]:
        """Newton direction; the largest vertex displacement of the full step per island [m], linear iterations (0).

        The solution is exact, whatever `forcing` says.

        Raises:
            StepFailure: the matrix is not positive definite or not finite.
        """
        self.factors, failed = [], np.zeros(self.n, dtype=bool)
        for island in range(self.islands.count):
            # what does not move is of no island in particular
            bodies = np.flatnonzero((self.islands.host == island) & self.inactive.mobile)
            size = 12 * len(bodies)
            H = self.potential.blocks[np.ix_(bodies, bodies)].transpose(0, 2, 1, 3).reshape(size, size)
            try:
                self.factors.append((bodies, scipy.linalg.cho_factor(H, lower=True)))
            except (scipy.linalg.LinAlgError, ValueError) as error:
                failed[bodies], message = True, f"the linear system could not be factorised: {error}"
        if failed.any():
            raise StepFailure("not_positive_definite", message, islands=failed)
        self.direction = self._solved(self.potential.gradient)
        return self._farthest(), 0

    def tighten(self) -> tuple[np.ndarray, int]:
        """The same as the last `solve`, which was exact."""
        return self._farthest(), 0

    def _solved(self, gradient: np.ndarray) -> np.ndarray:
        """(n, 12) solution of H d = -gradient by the factor; rounding must not leak into fixed degrees of freedom."""
        step = np.zeros((self.n, 12))
        for bodies, factor in self.factors:
            step[bodies] = scipy.linalg.cho_solve(factor, -gradient[bodies].ravel()).reshape(-1, 12)
        return np.einsum("nij,nj->ni", self.inactive.projectors, step)

    def _farthest(self) -> np.ndarray:
        """(islands,) largest displacement of a surface in the full step [m]."""
        dp, dA = positions(self.direction), maps(self.direction)
        farthest = np.linalg.norm(dp[:, None] + self.boxes.surface_corners @ dA.transpose(0, 2, 1), axis=2).max(axis=1)
        return -self.islands.minima(-farthest, self.everybody, np.zeros(self.islands.count))

    def stretch(self, factors: np.ndarray) -> None:
        """Stretch the direction by a factor per island (count,)."""
        self.direction = factors[self.islands.host, None] * self.direction

    def effort_changes(self, converged: np.ndarray) -> np.ndarray:
        """(islands,) how much the direction changes the forces of friction in joints and of drives with an effort limit,
        over `abd.joints.rows.system.SETTLED` of their largest; 0 for those that have `converged` (islands,)."""
        aside = converged[self.islands.host]
        changes = self.potential.joints.effort_changes(self.at.q, self.direction, aside)
        return -self.islands.minima(-changes, self.potential.joints.owners, np.zeros(self.islands.count))

    def close_joints(self, chosen: np.ndarray) -> np.ndarray:
        """Bend the direction until the linear model closes all exact rows of the chosen islands (count,), each as often as it
        needs, by solves with the factor that is there.

        The multipliers take over what closed them. Returns the largest vertex displacement per island [m].
        """
        joints, islands = self.potential.joints, self.islands
        for _ in range(CLOSINGS):
            linear, measured, J = joints.predicted(self.at.q, self.direction)
            open_by = -islands.minima(-joints.left_open(linear, measured), joints.owners, np.zeros(islands.count))
            chosen = chosen & (open_by > CLOSED)
            if not chosen.any():
                break
            aside = ~chosen[islands.host]
            missing = np.einsum("nij,nj->ni", self.inactive.projectors, joints.missing(linear, measured, J))
            missing[aside] = 0.0
            joints.take_over(linear, measured, whole=False, aside=aside)
            self.direction += self._solved(missing)
            self.potential.gradient += missing
        self.potential.evaluate()
        return self._farthest()

    def descent(self) -> np.ndarray:
        """g . d per island."""
        return self.islands.sums(np.sum(self.potential.gradient * self.direction, axis=1), self.everybody)
