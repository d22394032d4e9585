"""Forces, energies and work of the rows of a joint system, from the laws of its last substep.

A row exerts ``f = -psi'(x) / (c h^2)`` [N or N m] along its value x. For exact rows this is the multiplier plus the
stiffness times the remaining residual, which is the force in the momentum balance of the bodies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from abd.by_bodies import PerBody
from abd.joints.rows import laws
from abd.joints.rows.laws import Law, Role
from abd.joints.rows.system import JointMemory, JointSystem
from abd.model import Settings
from abd.potentials.integrators import over_one_step
from cuda_kernels.shared import slots

DOING = (Role.DRIVE, Role.FORCE, Role.APPLIED)
"""Roles whose work counts as work of drives and forces."""


@dataclass(frozen=True)
class Applied:
    """Laws of one substep.

    Attributes:
        law: (R,); p: (R, 8).
        stiffness: (l, 3) K of the linear rows [kg or kg m^2]; shift: (l, 3) their a.
        ch2: (R,) c h^2 [s^2] of the measured rows; linear_ch2: (l,) of the linear rows.
    """

    law: np.ndarray
    p: np.ndarray
    stiffness: np.ndarray
    shift: np.ndarray
    ch2: np.ndarray
    linear_ch2: np.ndarray

    @classmethod
    def of_step(cls, system: JointSystem, law: np.ndarray, p: np.ndarray, shift: np.ndarray, ch2: PerBody) -> Applied:
        """Laws of a substep of c h^2 [s^2], scalar or (n,)."""
        return cls(law, p, system.linear.K, shift, system.of_rows(ch2), system.of_linear(ch2))


def initial_laws(
    system: JointSystem, memory: JointMemory, settings: Settings, time: PerBody, ch2: float | None = None
) -> Applied:
    """Laws of the joint rows in an initial state.

    They are those of an implicit Euler step without motion, with c h^2 = dt^2 or a given `ch2` [s^2].
    """
    h = settings.dt
    ch2 = h * h if ch2 is None else ch2
    law, p = system.laws(memory, over_one_step(h), ch2, time, settings.eps_v)
    return Applied.of_step(system, law, p, system.shifts(memory, ch2), ch2)


def row_forces(applied: Applied, x: np.ndarray) -> np.ndarray:
    """f (R,) at values x (R,) of the measured rows."""
    _, slope, _ = laws.evaluate(applied.law, applied.p, x)
    return -slope / applied.ch2


def linear_forces(applied: Applied, F: np.ndarray) -> np.ndarray:
    """f (l, 3) of the linear rows at residuals F (l, 3)."""
    return -applied.stiffness * (F - applied.shift) / applied.linear_ch2[:, None]


def linear_energies(system: JointSystem, applied: Applied, F: np.ndarray) -> np.ndarray:
    """(l,) stored energies [J] at residuals F (l, 3); 0 for exact rows."""
    energy = 0.5 * np.einsum("lk,lk,lk->l", applied.stiffness, F, F) / applied.linear_ch2
    return np.where(system.linear.exact, 0.0, energy)


def row_energies(system: JointSystem, applied: Applied, x: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """(R,) stored energies [J] of springs, penalties, limits and rotors at values x and speeds `rate` (R,)."""
    a = system.row_laws
    on = applied.law != Law.OFF
    energy = np.where(system.springs & on, 0.5 * _elastic_stiffness(system, applied) * (x - a.target) ** 2, 0.0)
    limits = _undamped_limits(system, applied)
    potential, _, _ = laws.evaluate(limits.law, limits.p, x)
    energy += potential / applied.ch2
    return energy + np.where(on & (a.role == Role.ARMATURE), 0.5 * a.mass_stiffness * rate**2, 0.0)


def released_energies(system: JointSystem, applied: Applied, x: np.ndarray, width: np.ndarray) -> np.ndarray:
    """(R,) energies [J] at values x (R,) of barriers whose width an impact has reduced to `width` (R,): they are not stored."""
    limits = _undamped_limits(system, applied)
    potential, _, _ = laws.evaluate(limits.law, limits.p, x)
    reduced = (applied.law == Law.BARRIER) & (width < applied.p[:, slots.WIDTH])
    return np.where(reduced, potential / applied.ch2, 0.0)


def working_forces(system: JointSystem, applied: Applied, x: np.ndarray) -> np.ndarray:
    """(R,) non-conservative forces of the rows along their values x (R,) [N or N m]."""
    a = system.row_laws
    conservative = np.where(system.springs, -_elastic_stiffness(system, applied) * (x - a.target), 0.0)
    conservative = np.where(applied.law == Law.OFF, 0.0, conservative) + row_forces(
        _undamped_limits(system, applied), x
    )
    return row_forces(applied, x) - conservative


def row_work(
    system: JointSystem, applied: Applied, before: np.ndarray, after: np.ndarray, pushed: np.ndarray, smooth: np.ndarray
) -> tuple[float, float]:
    """Work [J] of drives and forces, and of friction and damping, over a step from values `before` to `after` (R,).

    Implicit Euler uses the forces at the end of the step. Rows that are `smooth` (R,), of second-order steps, use the
    mean with the forces at the start, `pushed` (R,) (`working_forces`).
    """
    if not len(before):
        return 0.0, 0.0
    a, force = system.row_laws, working_forces(system, applied, after)
    work = np.where(smooth, 0.5 * (pushed + force), force) * (after - before)
    driven = np.isin(a.role, DOING)
    dissipated = ~driven & (a.role != Role.ARMATURE) & ~(a.exact & ~a.follows)
    return float(work[driven].sum()), float(work[dissipated].sum())


def _elastic_stiffness(system: JointSystem, applied: Applied) -> np.ndarray:
    """(R,) stiffness without the contribution of damping [N/m or N m/rad]."""
    return system.row_laws.mass_stiffness / applied.ch2 + system.row_laws.stiffness


def _undamped_limits(system: JointSystem, applied: Applied) -> Applied:
    """Laws with only the inexact barriers and limits, undamped; all other rows off."""
    p = applied.p.copy()
    p[:, slots.DAMPING] = 0.0
    chosen = system.limits & (applied.law != Law.OFF) & ~system.row_laws.exact
    return replace(applied, law=np.where(chosen, applied.law, Law.OFF), p=p)
