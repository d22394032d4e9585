"""Forces, energies and work of a joint system's rows, from the laws that its last substep applied.

A row pushes its value x with ``f = -psi'(x) / (c h^2)`` [N or N m]. In exact rows that is the multiplier and what the
stiffness makes of the residual that is left: the sum is what the bodies' momenta feel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from abd.by_bodies import OfBodies
from abd.joints.rows import laws, slots
from abd.joints.rows.laws import LIMITS, Law, Role
from abd.joints.rows.system import JointMemory, JointSystem
from abd.model import Settings

SPRINGS = (Role.CONSTRAINT, Role.LOCK, Role.SPRING, Role.COUPLING)
"""Roles whose quadratic rows store energy; what a drive does is work."""
DOING = (Role.DRIVE, Role.FORCE, Role.APPLIED)
"""Roles that do work."""


@dataclass(frozen=True)
class Applied:
    """Laws of one substep.

    Attributes:
        law: (R,); p: (R, 8); stiffness, shift: K [kg or kg m^2] and a (l, 3) of the linear rows.
        ch2: (R,) c h^2 [s^2] of the rows, linear_ch2: (l,) of the linear ones.
    """

    law: np.ndarray
    p: np.ndarray
    stiffness: np.ndarray
    shift: np.ndarray
    ch2: np.ndarray
    linear_ch2: np.ndarray

    @classmethod
    def of_step(cls, system: JointSystem, law: np.ndarray, p: np.ndarray, shift: np.ndarray, ch2: OfBodies) -> Applied:
        """Of a substep of c h^2 [s^2], of all bodies or (n,)."""
        return cls(law, p, system.linear.K, shift, system.of_rows(ch2).copy(), system.of_linear(ch2).copy())


def initial_laws(
    system: JointSystem, memory: JointMemory, settings: Settings, time: OfBodies, ch2: float | None = None
) -> Applied:
    """Laws of the joint rows in a state that no step led to: those of an implicit Euler step that stays there, or of one with
    another c h^2 [s^2]."""
    h = settings.dt
    ch2 = h * h if ch2 is None else ch2
    weights = np.array([1.0, 0.0, h, 0.0, 1.0, 0.0, 1.0 / h, 1.0 / h, 0.0])
    law, p = system.laws(memory, weights, ch2, time, settings.eps_v)
    return Applied.of_step(system, law, p, system.shifts(memory, ch2), ch2)


def row_forces(applied: Applied, x: np.ndarray) -> np.ndarray:
    """f (R,) at values x (R,) of the measured rows."""
    _, slope, _ = laws.evaluate(applied.law, applied.p, x)
    return -slope / applied.ch2


def linear_forces(applied: Applied, F: np.ndarray) -> np.ndarray:
    """f (l, 3) of the linear rows at residuals F (l, 3)."""
    return -applied.stiffness * (F - applied.shift) / applied.linear_ch2[:, None]


def linear_energies(system: JointSystem, applied: Applied, F: np.ndarray) -> np.ndarray:
    """(l,) energies stored [J] at residuals F (l, 3); exact rows store none."""
    energy = 0.5 * np.einsum("lk,lk,lk->l", applied.stiffness, F, F) / applied.linear_ch2
    return np.where(system.linear.exact, 0.0, energy)


def row_energies(system: JointSystem, applied: Applied, x: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """(R,) energies stored [J] in springs, penalties, barriers and rotors at values x and speeds `rate` (R,)."""
    a = system.row_laws
    on = applied.law != Law.OFF
    energy = np.where(_elastic(system) & on, 0.5 * _elasticity(system, applied) * (x - a.target) ** 2, 0.0)
    limits = _limits_alone(system, applied)
    pushed, _, _ = laws.evaluate(limits.law, limits.p, x)
    energy += pushed / applied.ch2
    return energy + np.where(on & (a.role == Role.ARMATURE), 0.5 * a.mass_stiffness * rate**2, 0.0)


def working_forces(system: JointSystem, applied: Applied, x: np.ndarray) -> np.ndarray:
    """(R,) forces with which the rows push their values x (R,) beyond what has a potential [N or N m]."""
    a = system.row_laws
    kept = np.where(_elastic(system), -_elasticity(system, applied) * (x - a.target), 0.0)
    kept = np.where(applied.law == Law.OFF, 0.0, kept) + row_forces(_limits_alone(system, applied), x)
    return row_forces(applied, x) - kept


def row_work(
    system: JointSystem, applied: Applied, before: np.ndarray, after: np.ndarray, pushed: np.ndarray, smooth: np.ndarray
) -> tuple[float, float]:
    """Work [J] of drives and of forces, and of friction and damping, while the rows went from `before` to `after` (R,).

    Implicit Euler takes forces as they are at the end of the step; rows that are `smooth` (R,), of steps of second order, count
    the mean with those at its beginning, `pushed` (R,), as `working_forces` has them.
    """
    if not len(before):
        return 0.0, 0.0
    a, force = system.row_laws, working_forces(system, applied, after)
    work = np.where(smooth, 0.5 * (pushed + force), force) * (after - before)
    driven = np.isin(a.role, DOING)
    lost = ~driven & (a.role != Role.ARMATURE) & ~(a.exact & ~a.follows)
    return float(work[driven].sum()), float(work[lost].sum())


def _elastic(system: JointSystem) -> np.ndarray:
    """(R,) rows that store the energy of a spring."""
    a = system.row_laws
    return np.isin(a.role, SPRINGS) & (a.law == Law.QUADRATIC) & ~a.exact & ~a.follows


def _elasticity(system: JointSystem, applied: Applied) -> np.ndarray:
    """(R,) stiffness without what damping adds [N/m or N m/rad]."""
    return system.row_laws.mass_stiffness / applied.ch2 + system.row_laws.stiffness


def _limits_alone(system: JointSystem, applied: Applied) -> Applied:
    """The barriers and other limits that are not exact, without what they damp; all else off."""
    p = applied.p.copy()
    p[:, slots.DAMPING] = 0.0
    chosen = np.isin(applied.law, LIMITS) & ~system.row_laws.exact
    return replace(applied, law=np.where(chosen, applied.law, Law.OFF), p=p)
