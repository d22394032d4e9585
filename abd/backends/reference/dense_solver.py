"""The linear system of a Newton iteration, H d = -g, as a dense matrix per island."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from abd.backends.reference.numpy_bodies import Boxes, maps, positions
from abd.backends.reference.parts.conditions import Inactive
from abd.backends.reference.potential import Potential
from abd.errors import StepFailure
from abd.joints.rows.system import CLOSED, CLOSINGS, IMMOBILE


class DenseSolver:
    """Directions by dense Cholesky; `abd.backends.protocol.Linear`.

    Attributes:
        direction: (n, 12) last solution.
    """

    def __init__(self, potential: Potential, inactive: Inactive, boxes: Boxes):
        self.potential, self.inactive, self.boxes = potential, inactive, boxes
        self.at, self.islands, self.n = potential.at, potential.islands, potential.n
        self.all_bodies = np.arange(self.n)

    def describe(self) -> dict:
        return {"name": "dense Cholesky", "why": "the only one of this backend"}

    def linearize(self) -> None:
        """Compute gradient and blocks of the potential at the iterate, with fixed degrees of freedom projected out."""
        self.potential.linearize(self.inactive.projectors)

    def solve(self, forcing: float | None = None) -> tuple[np.ndarray, int]:
        """Solve for the Newton direction; return the largest vertex displacement per island [m], and 0 linear iterations.

        The solution is exact for any `forcing`.

        Raises:
            StepFailure: the matrix is not positive definite or not finite.
        """
        self.factors, failed = [], np.zeros(self.n, dtype=bool)
        for island in range(self.islands.count):
            # immobile bodies belong to no particular island
            bodies = np.flatnonzero((self.islands.host == island) & self.inactive.mobile)
            size = 12 * len(bodies)
            H = self.potential.blocks[np.ix_(bodies, bodies)].transpose(0, 2, 1, 3).reshape(size, size)
            try:
                self.factors.append((bodies, scipy.linalg.cho_factor(H, lower=True)))
            except (scipy.linalg.LinAlgError, ValueError) as error:
                failed[bodies], message = True, f"the linear system could not be factorised: {error}"
        if failed.any():
            raise StepFailure("not_positive_definite", message, concerned=failed)
        self.direction = self._solve(self.potential.gradient)
        return self._largest_displacement(), 0

    def tighten(self) -> tuple[np.ndarray, int]:
        """Return the largest displacements, because `solve` was exact."""
        return self._largest_displacement(), 0

    def _solve(self, gradient: np.ndarray) -> np.ndarray:
        """Return (n, 12) the solution of H d = -gradient, without rounding in fixed degrees of freedom."""
        step = np.zeros((self.n, 12))
        for bodies, factor in self.factors:
            step[bodies] = scipy.linalg.cho_solve(factor, -gradient[bodies].ravel()).reshape(-1, 12)
        return np.einsum("nij,nj->ni", self.inactive.projectors, step)

    def _largest_displacement(self) -> np.ndarray:
        """Return (islands,) largest displacements of surfaces in the full step [m]."""
        dp, dA = positions(self.direction), maps(self.direction)
        largest = np.linalg.norm(dp[:, None] + self.boxes.surface_corners @ dA.transpose(0, 2, 1), axis=2).max(axis=1)
        return -self.islands.minima(-largest, self.all_bodies, np.zeros(self.islands.count))

    def stretch(self, factors: np.ndarray) -> None:
        """Stretch the direction by a factor per island (count,)."""
        self.direction = factors[self.islands.host, None] * self.direction

    def effort_changes(self, converged: np.ndarray) -> np.ndarray:
        """Return (islands,) changes of joint friction and of drives with an effort limit along the direction.

        They are relative to `abd.joints.rows.system.SETTLED` of the largest force; 0 for `converged` islands (islands,)."""
        skipped = converged[self.islands.host]
        changes = self.potential.joints.effort_changes(self.at.q, self.direction, skipped)
        return -self.islands.minima(-changes, self.potential.joints.owners, np.zeros(self.islands.count))

    def close_joints(self, chosen: np.ndarray) -> np.ndarray:
        """Correct the direction with the present factor until the linear model closes all exact rows of chosen islands (count,).

        A change ``K s`` of the multipliers changes the residuals c by ``-C H^-1 C^T K s``. Conjugate gradients with the
        preconditioner K solve ``c = 0``. Returns the largest vertex displacement per island [m].
        """
        joints, islands, host = self.potential.joints, self.islands, self.islands.host
        before, change = np.zeros(islands.count), np.zeros((len(joints.owners), 3))
        has_mobile = joints.with_bodies(self.inactive.mobile)[:, None]
        for _ in range(CLOSINGS):
            residuals, J = joints.closable(self.at.q, self.direction)
            residuals = np.where(has_mobile, residuals, 0.0)
            open_by = -islands.minima(-joints.left_open(residuals), joints.owners, np.zeros(islands.count))
            chosen = chosen & (open_by > CLOSED)
            if not chosen.any():
                break
            energy = islands.sums(np.sum(joints.strengths * residuals**2, axis=1), joints.owners)
            turn = np.divide(energy, before, out=np.zeros(islands.count), where=before > 0.0)
            change = residuals + turn[host[joints.owners], None] * change
            forces = np.einsum("nij,nj->ni", self.inactive.projectors, joints.pull_back(change, J))
            step = self._solve(forces)
            product = -islands.sums(np.sum(forces * step, axis=1), self.all_bodies)
            chosen = chosen & (product > IMMOBILE * energy)
            weight = np.divide(energy, product, out=np.zeros(islands.count), where=chosen)
            joints.step_multipliers(weight[host[joints.owners], None] * change)
            self.direction += weight[host, None] * step
            self.potential.gradient += weight[host, None] * forces
            before = np.where(chosen, energy, 0.0)
        self.potential.evaluate()
        return self._largest_displacement()

    def descent(self) -> np.ndarray:
        return self.islands.sums(np.sum(self.potential.gradient * self.direction, axis=1), self.all_bodies)
