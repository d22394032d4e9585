"""What a run has done since its start, and what it began with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from abd.energies import StepStatistics, kinetic_energy, potential_energies
from abd.joints.rows.forces import initial_laws, linear_energies, row_energies
from abd.joints.rows.measured_rows import evaluate
from abd.joints.rows.rows import residual
from abd.potentials.integrators import longest

if TYPE_CHECKING:
    from abd.step.step import Stepper


@dataclass(slots=True)
class Work:
    """Work since the start [J]: of forces and torques on bodies; of drives and forces on coordinates; of friction in
    contacts and joints and of damping in joints; and what the integration gave, negative where it took (`EnergyBalance`)."""

    external: float = 0.0
    drive: float = 0.0
    friction: float = 0.0
    integration: float = 0.0

    def after(self, statistics: StepStatistics) -> Work:
        """With that of one more substep, without what the integration gave."""
        return Work(
            self.external + statistics.external_work,
            self.drive + statistics.drive_work,
            self.friction + statistics.friction_work,
            self.integration,
        )

    @property
    def done(self) -> float:
        """All but what the integration gave."""
        return self.external + self.drive + self.friction


@dataclass(frozen=True)
class InitialContacts:
    """Contacts of a state that no step led to: energy [J], how many act, smallest gap [m] of those that are near."""

    energy: float = 0.0
    contacts: int = 0
    smallest_gap: float = np.inf


class EnergyBalance:
    """What the frames of a `Stepper` took from the mechanical energy, or gave to it, in addition to the work that was done:

        integration = (T + V at the end - T + V at the beginning) - work of loads, drives, friction and damping,

    T the kinetic energy of bodies and rotors, V that of gravity, strain, contacts and joints. That is what the integrator took
    or gave, and what inelastic impacts took, which implicit Euler does for them; and the work of prescribed bodies, which nothing
    else tells. What changes the energy between two frames is not in it: velocities and places that are set, other gravity, joints
    that are switched, changed or broken.

    Attributes:
        energy: T + V of the present state [J] as the last frame left it, None where something else led to it.
    """

    def __init__(self, stepper: Stepper):
        self.stepper, self.energy = stepper, None

    def forget(self) -> None:
        """The energy is another one than at the end of the last frame."""
        self.energy = None

    def begin(self) -> tuple[float, Work]:
        """What a frame begins with, for `end`."""
        return self._standing() if self.energy is None else self.energy, self.stepper.work

    def end(self, energy: float, before: Work) -> None:
        """A frame that began with an energy [J] and the work `before` has been done."""
        found, work = self.stepper.statistics, self.stepper.work
        self.energy = float(found.kinetic + found.gravity + found.elastic + found.contact + found.joint)
        work.integration = before.integration + (self.energy - energy - (work.done - before.done))

    def _standing(self) -> float:
        """T + V of the present state, to which a change by the user may have led [J]."""
        stepper = self.stepper
        q, qd, system, memory, dt = stepper.q, stepper.qd, stepper.joints, stepper.memory, stepper.settings.dt
        ch2 = stepper.modes.rule(dt, longest(stepper.previous_h)).c * dt * dt  # penalties store by it
        applied = initial_laws(system, memory, stepper.settings, stepper.time, ch2)
        out = kinetic_energy(stepper.model, qd) + sum(potential_energies(stepper.model, q).values())
        if len(system.linear):
            out += float(linear_energies(system, applied, residual(system.linear, q)).sum())
        if len(system.rows):
            x, _ = evaluate(system.rows, memory.reference)
            out += float(row_energies(system, applied, x, memory.history[2]).sum())
        if stepper.statistics is not None:
            return out + stepper.statistics.contact
        if stepper.touching.any():
            with stepper.listed():
                out += stepper.backend.readings.contact_statistics()[0]
        return out
