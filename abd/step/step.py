"""`Stepper`: advances a state by frames, and keeps their energy balance; `abd.step.substep` takes one substep."""

from __future__ import annotations

import logging
from time import perf_counter

import numpy as np

from abd.backends.progress import Progress
from abd.backends.protocol import Backend
from abd.energies import Work, kinetic_energy, potential_energies
from abd.errors import StepFailure
from abd.joints.rows.forces import initial_laws, linear_energies, row_energies
from abd.joints.rows.laws import Law
from abd.joints.rows.measured_rows import evaluate
from abd.joints.rows.rows import residual
from abd.model import Model
from abd.state import State
from abd.step.frame import Frame
from abd.step.frame_path import FramePath
from abd.step.stepper_state import StepperState
from cuda_kernels.shared import slots

_log = logging.getLogger(__name__)


class Stepper(StepperState):
    """Advances a state by frames, which `abd.step.frame` divides into substeps."""

    def __init__(self, model: Model, backend: Backend, state: State):
        super().__init__(model, backend)
        self.frames, self.energy_balance = Frame(self), EnergyBalance(self)
        self.reset(state)

    def restore(self, state: State) -> None:
        self.energy_balance.forget()
        super().restore(state)

    def advance(self) -> tuple[Progress, int, float]:
        """Advance by one frame; return its progress, the number of substeps and the wall time [s].

        Raises:
            StepFailure: the shortest substep failed; with the frame and time.
        """
        begin, progress = perf_counter(), Progress()
        energy, start = self.energy_balance.energy, self.energy_balance.begin()
        self.path = FramePath()
        try:
            substeps = self.frames.advance(progress)
        except StepFailure as failure:
            failure.step, failure.time = self.frame + 1, self.worlds.clock
            self.energy_balance.energy = energy
            raise
        if (stopped := self.frames.stopped):
            progress.stopped = {world: str(failure) for world, failure in stopped}
            self.stop(np.isin(self.model.bodies.world, [*self.stopped_worlds, *progress.stopped]))
            for world, why in progress.stopped.items():
                _log.warning("world %d stopped at %.6g s, the others continue: %s", world, self.worlds.clock, why)
        self.energy_balance.end(*start)
        self.worlds.advance()
        self.frame += 1
        return progress, substeps, perf_counter() - begin


class EnergyBalance:
    """Change of the mechanical energy by the frames of a `StepperState` in addition to the work of loads:

        integration = (T + V at the end - T + V at the beginning) - work of loads, drives, friction and damping,

    T the kinetic energy of bodies and rotors, V that of gravity, strain, contacts and joints. It contains numerical dissipation,
    losses of inelastic impacts, and the work of prescribed bodies and moving surfaces. It does not contain changes between two
    frames: velocities and positions that are set, other gravity, joints that are switched, changed or broken.

    Attributes:
        energy: T + V at the end of the last frame [J], None if the state was changed since.
    """

    def __init__(self, stepper: StepperState):
        self.stepper, self.energy = stepper, None

    def forget(self) -> None:
        """Drop the energy of the last frame because the state was changed."""
        self.energy = None

    def begin(self) -> tuple[float, Work]:
        """Return the energy [J] and the work at the start of a frame, the arguments of `end`."""
        return self._energy() if self.energy is None else self.energy, self.stepper.work

    def end(self, energy: float, before: Work) -> None:
        """Add the integration work of a frame that began with an energy [J] and the work `before`."""
        found, work = self.stepper.statistics, self.stepper.work
        self.energy = float(found.kinetic + found.gravity + found.elastic + found.contact + found.joint)
        work.integration = before.integration + (self.energy - energy - (work.done - before.done))

    def _energy(self) -> float:
        """Evaluate T + V of the present state [J], without penalties that were inactive in the last step: closing them has no
        work."""
        stepper = self.stepper
        q, qd, system, memory, dt = stepper.q, stepper.qd, stepper.joints, stepper.memory, stepper.settings.dt
        ch2 = stepper.modes.rule(dt).ch2  # the energy of penalties depends on it
        applied, last = initial_laws(system, memory, stepper.settings, stepper.time, ch2), stepper.applied
        out = kinetic_energy(stepper.model, qd) + sum(potential_energies(stepper.model, q).values())
        if len(system.linear):
            was_active = (last.stiffness > 0.0).any(axis=1)
            out += float(linear_energies(system, applied, residual(system.linear, q))[was_active].sum())
        if len(system.rows):
            x, _ = evaluate(system.rows, memory.reference)
            was_active = (last.law != Law.OFF) | (system.row_laws.mass_stiffness == 0.0) | ~system.springs
            out += float(row_energies(system, applied, x, memory.history[slots.RATE])[was_active].sum())
        if stepper.statistics is not None:
            return out + stepper.statistics.contact
        if stepper.constrained.any():
            with stepper.listed():
                out += stepper.backend.readings.contact_statistics()[0]
        return out
