"""Energies, momenta and errors of a state, from the definitions in `abd.potentials`; work since the start of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.model import Elasticity, Kind, Model
from abd.potentials import arap, orthogonality
from abd.rotations import axial


@dataclass(slots=True)
class StepStatistics:
    """Statistics of the state after a (sub)step; SI units.

    Attributes:
        kinetic, gravity, elastic, contact, joint: energies; linear, angular: momenta (3,) of the dynamic bodies.
        external_work, drive_work: work of forces and torques, and of drives and forces on coordinates, in the step.
        friction_work: work of friction in contacts and joints and of damping in joints, in the step.
        joint_residual: (2,) largest of active joints and couplings [m], [rad].
        orthogonality_error: largest |A A^T - 1|_F; residual_force: largest force left on a centre of mass at the last
            linearisation [N].
        contacts: active ones; smallest_gap: infinite without candidates.
        fastest: largest |dA/dt|_F [1/s].
    """

    kinetic: float
    gravity: float
    elastic: float
    contact: float
    joint: float
    linear: np.ndarray
    angular: np.ndarray
    external_work: float
    drive_work: float
    friction_work: float
    joint_residual: tuple[float, float]
    orthogonality_error: float
    residual_force: float
    contacts: int
    smallest_gap: float
    fastest: float


@dataclass(slots=True)
class Work:
    """Work since the start [J]: of external loads on bodies; of drives and forces on coordinates; of friction in contacts and
    joints and of damping in joints; and of the integration, negative where it dissipates (`abd.step.step.Stepper`)."""

    external: float = 0.0
    drive: float = 0.0
    friction: float = 0.0
    integration: float = 0.0

    def after(self, statistics: StepStatistics) -> Work:
        """Return the sum with the work of one more substep, without that of the integration."""
        return Work(
            self.external + statistics.external_work,
            self.drive + statistics.drive_work,
            self.friction + statistics.friction_work,
            self.integration,
        )

    @property
    def done(self) -> float:
        """Work without that of the integration."""
        return self.external + self.drive + self.friction


@dataclass(frozen=True)
class InitialContacts:
    """Contacts of an initial state: energy [J], number of active contacts, smallest gap [m] of nearby surfaces."""

    energy: float = 0.0
    contacts: int = 0
    smallest_gap: float = np.inf


def kinetic_energy(model: Model, qd: np.ndarray) -> float:
    """Return 1/2 qd M qd over the dynamic bodies [J]."""
    dynamic = model.bodies.kind == Kind.DYNAMIC
    return float(0.5 * np.sum(model.bodies.mass_matrix[dynamic] * qd[dynamic] ** 2))


def momenta(model: Model, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Linear momentum (3,) [kg m/s] and angular momentum about the origin (3,) [kg m^2/s] of the dynamic bodies.

    ``L = sum p x m pd + sum_k a_k s_k x ad_k`` with a_k the columns of A.
    """
    bodies = model.bodies
    dynamic = bodies.kind == Kind.DYNAMIC
    m, s, p, v = bodies.mass[dynamic], bodies.moment[dynamic], q[dynamic, :3], qd[dynamic, :3]
    A, Ad = (one[dynamic, 3:].reshape(-1, 3, 3) for one in (q, qd))
    orbital, spins = np.cross(p, v), np.cross(A, Ad, axis=1)
    return np.einsum("n,ni->i", m, v), np.einsum("n,ni->i", m, orbital) + np.einsum("nk,nik->i", s, spins)


def potential_energies(model: Model, q: np.ndarray) -> dict[str, float]:
    """Gravity and elastic energy of the dynamic bodies [J]."""
    bodies = model.bodies
    dynamic = bodies.kind == Kind.DYNAMIC
    gravity = -float(np.sum(bodies.mass[dynamic] * (q[dynamic, :3] @ model.settings.gravity)))
    return {"gravity": gravity, "elastic": float(elastic_energies(model, q, dynamic).sum())}


def elastic_energies(model: Model, q: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Return (m,) elastic energies of the bodies `among` (n,) bool [J]."""
    bodies, A = model.bodies, q[among, 3:].reshape(-1, 3, 3)
    stiffness, arap_law = (bodies.kappa * bodies.volume)[among], bodies.elasticity[among] == Elasticity.ARAP
    out = np.zeros(len(A))
    for chosen, law in ((~arap_law, orthogonality), (arap_law, arap)):
        if chosen.any():
            out[chosen] = law.energy(stiffness[chosen], A[chosen])
    return out


def external_work(
    loads: tuple[np.ndarray, np.ndarray], before: tuple[np.ndarray, np.ndarray], after: tuple[np.ndarray, np.ndarray],
    h: float | np.ndarray, chosen: np.ndarray,
) -> float:  # fmt: skip
    """Work of forces and torques (n, 3) on `chosen` bodies (n,) bool in a step of h [s], of all or (n,) [J].

    It is that of forces on displacements, and of torques on the mean of both angular velocities, because a body may make several
    turns in a step. before, after: states and their rates (n, 12).
    """
    force, torque = loads
    moved = (after[0] - before[0])[chosen, :3]
    turned = 0.5 * np.full(len(chosen), h)[chosen, None] * sum(spin(q[chosen], qd[chosen]) for q, qd in (before, after))
    return float(np.sum(force[chosen] * moved) + np.sum(torque[chosen] * turned))


def spin(q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Return (n, 3) angular velocities ``axial(dA/dt A^-1)`` [rad/s]."""
    return axial(qd[:, 3:].reshape(-1, 3, 3) @ np.linalg.inv(q[:, 3:].reshape(-1, 3, 3)))


def orthogonality_error(q: np.ndarray) -> float:
    """Largest |A A^T - 1|_F."""
    A = q[:, 3:].reshape(-1, 3, 3)
    return float(np.linalg.norm(A @ A.transpose(0, 2, 1) - np.eye(3), axis=(1, 2)).max(initial=0.0))
