"""Energies of single bodies in a step from `abd.potentials` (inertia, external forces, near-rigidity, penalties of prescribed
poses), and projectors of fixed degrees of freedom."""

from __future__ import annotations

from functools import partial

import numpy as np

from abd.backends.body_data import BodyData, Turning, body_boxes, surface_boxes
from abd.backends.reference.iterate import Iterate, StepData
from abd.model import Kind, Model
from abd.potentials import arap, arc_stiffness, inertia, orthogonality, prescribed
from abd.potentials.forces import generalised_force


class Boxes:
    """Corners of boxes of the bodies.

    Attributes:
        corners, surface_corners: (n, 8, 3) of all moving geometry of a body, and of its surface.
    """

    def __init__(self, model: Model):
        self.corners, self.surface_corners = _corners(*body_boxes(model)), _corners(*surface_boxes(model))

    def radii(self, q: np.ndarray) -> np.ndarray:
        """Return (n,) largest deformed radii |A X| over the bodies' boxes [m] in the state q (n, 12)."""
        return np.linalg.norm(self.corners @ maps(q).transpose(0, 2, 1), axis=2).max(axis=1)


def _corners(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """(n, 8, 3) corners of boxes (n, 3)."""
    choice = np.array([[k & 1, k >> 1 & 1, k >> 2 & 1] for k in range(8)])
    return np.where(choice, upper[:, None], lower[:, None])


def positions(q: np.ndarray) -> np.ndarray:
    """(n, 3) positions of the bodies' origins [m] in the state q (n, 12)."""
    return q[:, :3]


def maps(q: np.ndarray) -> np.ndarray:
    """(n, 3, 3) affine maps of the state q (n, 12)."""
    return q[:, 3:].reshape(-1, 3, 3)


def state(p: np.ndarray, A: np.ndarray) -> np.ndarray:
    """(n, 12) state of positions p (n, 3) and affine maps A (n, 3, 3)."""
    return np.concatenate([p, A.reshape(-1, 9)], axis=1)


class BodyEnergies:
    """Incremental energies of single bodies.

    Args:
        data: constants of the bodies.

    Attributes:
        owners: (n,) the bodies.
    """

    def __init__(self, data: BodyData):
        self.data = data
        self.dynamic, self.owners = data.kind == Kind.DYNAMIC, np.arange(len(data.kind))
        self.mass_matrix = mass_matrix(data)

    def energies(self, at: Iterate, q: np.ndarray) -> np.ndarray:
        """Return (n,) energies in the state q (n, 12); the work of external forces is 0 at the iterate."""
        step, data, (free, driven) = at.step, self.data, self._moving(at.step)
        energies = np.zeros(len(q))
        work = np.sum(self._external(step, free, at.q) * (q[free] - at.q[free]), axis=1)
        energies[free] = inertia.energy(self._masses(step, free), q[free], state(step.pt, step.At)[free])
        energies[free] -= step.ch2[free] * work
        weights = data.weight[driven], data.spread[driven], step.penalty
        energies[driven] = prescribed.energy(*weights, *self._prescribed(step, driven, q))
        energies[free | driven] += step.ch2[free | driven] * self._elastic(arap.energy, orthogonality.energy, free | driven, q)
        return energies

    def add_to(self, at: Iterate, gradient: np.ndarray, blocks: np.ndarray) -> None:
        gradient += self.gradient(at.step, at.q)
        blocks[self.owners, self.owners] += self.hessian(at.step, at.q)

    def elastic_size(self, step: StepData, q: np.ndarray) -> np.ndarray:
        """Return (n,) sizes of the numbers whose differences the near-rigidity energy V squares, ``2 c h^2 sqrt(k V)``.

        Rounding of A, with entries of about 1, causes errors in V like those of terms of this size."""
        size, rows = np.zeros(len(q)), ~step.held
        elastic = self._elastic(arap.energy, orthogonality.energy, rows, q)
        size[rows] = 2.0 * step.ch2[rows] * np.sqrt(self.data.stiffness[rows] * elastic)
        return size

    def gradient(self, step: StepData, q: np.ndarray) -> np.ndarray:
        data, (free, driven) = self.data, self._moving(step)
        gradient = np.zeros((len(q), 12))
        gradient[free] = inertia.gradient(self._masses(step, free), q[free], state(step.pt, step.At)[free])
        gradient[free] -= step.ch2[free, None] * self._external(step, free, q)
        weights = data.weight[driven], data.spread[driven], step.penalty
        gradient[driven] = state(*prescribed.gradient(*weights, *self._prescribed(step, driven, q)))
        elastic = self._elastic(arap.gradient, orthogonality.gradient, free | driven, q)
        gradient[free | driven, 3:] += step.ch2[free | driven, None] * elastic.reshape(-1, 9)
        return gradient

    def hessian(self, step: StepData, q: np.ndarray) -> np.ndarray:
        """Return (n, 12, 12) positive semi-definite blocks, without the dependence of couples on A."""
        data, (free, driven) = self.data, self._moving(step)
        blocks = np.zeros((len(q), 12, 12))
        blocks[free] = inertia.hessian(self._masses(step, free))
        blocks[driven] = prescribed.hessian(data.weight[driven], data.spread[driven], step.penalty)
        elastic = self._elastic(arap.hessian, partial(orthogonality.hessian, project=True), free | driven, q)
        blocks[free | driven, 3:, 3:] += step.ch2[free | driven, None, None] * elastic
        return blocks

    def arc_stiffness(self, step: StepData, q: np.ndarray, gradient: np.ndarray, touching: np.ndarray) -> np.ndarray:
        """Return (n, 12, 12) additions to the blocks by the arcs of the bodies.

        Args:
            gradient: (n, 12) of all energies; touching: (n,) bodies with active contacts.
        """
        blocks, G, polar = np.zeros((len(q), 12, 12)), maps(gradient).copy(), self.data.arap != 0
        G[~touching] = 0.0
        turns, A = ~step.held & (self.data.rotation != Turning.HELD), maps(q)
        G[turns] -= step.ch2[turns, None, None] * self._elastic(arap.gradient, orthogonality.gradient, turns, q)
        rows = turns & (touching | polar)
        blocks[rows, 3:, 3:] = arc_stiffness.hessian(A[rows], G[rows], turning(self.data)[rows])
        rows &= ~polar
        blocks[rows, 3:, 3:] -= orthogonality.stress(step.ch2[rows] * self.data.stiffness[rows], A[rows])
        return blocks

    def _masses(self, step: StepData, rows: np.ndarray) -> np.ndarray:
        """Return (k, 12) diagonal mass matrices of the bodies `rows`, with the weights of the step."""
        return step.scale[rows, None] * self.mass_matrix[rows]

    def _moving(self, step: StepData) -> tuple[np.ndarray, np.ndarray]:
        """Return masks (n,) of the dynamic and of the prescribed bodies that are not held."""
        moving = ~step.held
        return moving & self.dynamic, moving & ~self.dynamic

    def _external(self, step: StepData, rows: np.ndarray, q: np.ndarray) -> np.ndarray:
        data = self.data
        return generalised_force(data.mass[rows], step.gravity, data.force[rows], data.torque[rows], maps(q)[rows])

    def _elastic(self, of_arap, of_orthogonality, rows: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Evaluate one quantity of the near-rigidity energy of the bodies `rows`, by the function of each."""
        stiffness, A = self.data.stiffness[rows], maps(q)[rows]
        polar = self.data.arap[rows] != 0
        values = of_orthogonality(stiffness, A)
        values[polar] = of_arap(stiffness[polar], A[polar])
        return values

    def _prescribed(self, step: StepData, rows: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return distances to the target poses and multipliers of prescribed bodies."""
        dp, dA = positions(q)[rows] - step.pk[rows], maps(q)[rows] - step.Ak[rows]
        return dp, dA, step.lp[rows], step.lA[rows]


def mass_matrix(data: BodyData) -> np.ndarray:
    """Return (n, 12) diagonals of the mass matrices."""
    return np.concatenate([np.repeat(data.mass[:, None], 3, 1), *[data.moment] * 3], axis=1)


def projectors(data: BodyData, held: np.ndarray) -> np.ndarray:
    """Return (n, 12, 12) projectors on motions without fixed degrees of freedom, zero for held bodies.

    A body with a single free axis of rotation, at rest u, keeps ``A u``: u is removed from the rows of dA.
    """
    u = data.rest_axis
    one_axis = np.eye(3) - np.einsum("ni,nj->nij", u, u)
    kinds = [(data.rotation == kind)[:, None, None] for kind in (Turning.FREE, Turning.AXIS)]
    row = np.select(kinds, [np.eye(3), one_axis], 0.0)
    P = np.zeros((len(held), 12, 12))
    P[:, :3, :3] = data.translation[:, :, None] * np.eye(3)
    P[:, 3:, 3:] = np.einsum("rs,nij->nrisj", np.eye(3), row).reshape(-1, 9, 9)
    P[held] = 0.0
    return P


def turning(data: BodyData) -> np.ndarray:
    """Return (n, 3, 3) projectors on the rotation vectors that the bodies' arcs may have: all, one axis, none."""
    kinds = [(data.rotation == kind)[:, None, None] for kind in (Turning.FREE, Turning.AXIS)]
    return np.select(kinds, [np.eye(3), np.einsum("ni,nj->nij", data.axis, data.axis)], 0.0)
