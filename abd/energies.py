"""Energies and momenta of a state, from the definitions in `abd.potentials`."""

from __future__ import annotations

import numpy as np

from abd.model import Elasticity, Kind, Model
from abd.potentials import arap, orthogonality
from abd.potentials.forces import couple


def kinetic_energy(model: Model, qd: np.ndarray) -> float:
    """1/2 qd M qd over the dynamic bodies [J]."""
    dynamic = model.bodies.kind == Kind.DYNAMIC
    return float(0.5 * np.sum(model.bodies.mass_matrix[dynamic] * qd[dynamic] ** 2))


def momenta(model: Model, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Linear momentum (3,) [kg m/s] and angular momentum about the origin (3,) [kg m^2/s] of the dynamic bodies.

    ``L = sum p x m pd + sum_k a_k s_k x ad_k`` with a_k the columns of A.
    """
    bodies = model.bodies
    dynamic = bodies.kind == Kind.DYNAMIC
    m, s = bodies.mass[dynamic], bodies.moment[dynamic]
    p, v = q[dynamic, :3], qd[dynamic, :3]
    A, Ad = q[dynamic, 3:].reshape(-1, 3, 3), qd[dynamic, 3:].reshape(-1, 3, 3)

    def dyad(i: int, j: int) -> float:
        return np.einsum("n,n,n->", m, p[:, i], v[:, j]) + np.einsum("nk,nk,nk->", s, A[:, i], Ad[:, j])

    angular = np.array([dyad(i, j) - dyad(j, i) for i, j in ((1, 2), (2, 0), (0, 1))])
    return np.einsum("n,ni->i", m, v), angular


class Budget:
    """Energies that need more than the state: work done by external forces since the start [J]."""

    def __init__(self, model: Model):
        self.external_work = 0.0
        bodies = model.bodies
        dynamic = bodies.kind == Kind.DYNAMIC
        self.model, self.dynamic = model, dynamic
        self.stiffness = bodies.kappa * bodies.volume
        self.arap = dynamic & (bodies.elasticity == Elasticity.ARAP)
        self.orthogonal = dynamic & ~self.arap
        self.has_forces = bool(bodies.force.any() or bodies.torque.any())

    def account(self, before: np.ndarray, after: np.ndarray) -> None:
        """Add the work of one frame that led from state `before` to `after` (n, 12)."""
        if self.has_forces:
            bodies, d = self.model.bodies, self.dynamic
            moved = (after - before)[d]
            affine = couple(bodies.torque[d], after[d, 3:].reshape(-1, 3, 3)).reshape(-1, 9)
            self.external_work += float(np.sum(bodies.force[d] * moved[:, :3]) + np.sum(affine * moved[:, 3:]))

    def potential(self, model: Model, q: np.ndarray) -> dict[str, float]:
        """Gravity and elastic energy [J]."""
        A = q[:, 3:].reshape(-1, 3, 3)
        elastic = 0.0
        if self.orthogonal.any():
            elastic += orthogonality.energy(self.stiffness[self.orthogonal], A[self.orthogonal]).sum()
        if self.arap.any():
            elastic += arap.energy(self.stiffness[self.arap], A[self.arap]).sum()
        gravity = -float(np.sum(model.bodies.mass[self.dynamic] * (q[self.dynamic, :3] @ model.settings.gravity)))
        return {"gravity": gravity, "elastic": float(elastic)}
