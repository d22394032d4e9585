"""`Stepper`: advances a state by frames, and keeps their energy balance."""

from __future__ import annotations

import logging
from time import perf_counter

import numpy as np

from abd.backends.progress import Progress
from abd.backends.protocol import Backend
from abd.energies import kinetic_energy, potential_energies
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
    """Advances a state by frames, which `abd.step.frame` divides into substeps.

    The energy balance of a frame has the entry

        integration = (T + V at the end - T + V at the beginning) - work of loads, drives, friction and damping,

    T the kinetic energy of bodies and rotors, V that of gravity, strain, contacts and joints. It contains numerical dissipation,
    losses of inelastic impacts, and the work of prescribed bodies and moving surfaces. It does not contain changes between two
    frames: velocities and positions that are set, other gravity, joints that are switched, changed or broken.

    Attributes:
        energy: T + V at the end of the last frame [J], None if the state was changed since.
    """

    def __init__(self, model: Model, backend: Backend, state: State):
        super().__init__(model, backend)
        self.frames = Frame(self)
        self.reset(state)

    def restore(self, state: State) -> None:
        self.energy: float | None = None
        super().restore(state)

    def advance(self) -> tuple[Progress, int, float]:
        """Advance by one frame; return its progress, the number of substeps and the wall time [s].

        Raises:
            StepFailure: the shortest substep failed; with the frame and time.
        """
        begin, progress, before, stored = perf_counter(), Progress(), self.work, self.energy
        energy = self._mechanical_energy() if stored is None else stored
        self.path = FramePath()
        try:
            substeps = self.frames.advance(progress)
        except StepFailure as failure:
            failure.step, failure.time = self.frame + 1, self.worlds.clock
            self.energy = stored
            raise
        if (stopped := self.frames.stopped):
            progress.stopped = {world: str(failure) for world, failure in stopped}
            self.stop(np.isin(self.model.bodies.world, [*self.stopped_worlds, *progress.stopped]))
            for world, why in progress.stopped.items():
                _log.warning("world %d stopped at %.6g s, the others continue: %s", world, self.worlds.clock, why)
        found = self.statistics
        self.energy = float(found.kinetic + found.gravity + found.elastic + found.contact + found.joint)
        self.work.integration = before.integration + (self.energy - energy - (self.work.done - before.done))
        self.worlds.advance()
        self.frame += 1
        return progress, substeps, perf_counter() - begin

    def _mechanical_energy(self) -> float:
        """Return T + V of the present state [J], without penalties that were inactive in the last step: closing them has no
        work."""
        q, system, memory, last = self.q, self.joints, self.memory, self.applied
        ch2 = self.modes.rule(self.settings.dt).ch2  # the energy of penalties depends on it
        applied = initial_laws(system, memory, self.settings, self.time, ch2)
        out = kinetic_energy(self.model, self.qd) + sum(potential_energies(self.model, q).values())
        if len(system.linear):
            was_active = (last.stiffness > 0.0).any(axis=1)
            out += float(linear_energies(system, applied, residual(system.linear, q))[was_active].sum())
        if len(system.rows):
            x, _ = evaluate(system.rows, memory.reference)
            was_active = (last.law != Law.OFF) | (system.row_laws.mass_stiffness == 0.0) | ~system.springs
            out += float(row_energies(system, applied, x, memory.history[slots.RATE])[was_active].sum())
        if self.statistics is not None:
            return out + self.statistics.contact
        if self.constrained.any():
            with self.listed():
                out += self.backend.readings.contact_statistics()[0]
        return out
