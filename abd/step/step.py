"""`Stepper`: advances a state by frames; `abd.step.substep` takes one substep."""

from __future__ import annotations

import logging
from time import perf_counter

import numpy as np

from abd.backends.progress import Progress
from abd.backends.protocol import Backend
from abd.errors import StepFailure
from abd.model import Model
from abd.state import State
from abd.step.energy_balance import EnergyBalance
from abd.step.frame import Frame
from abd.step.stepper_state import StepperState

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
        self.path.begin()
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
