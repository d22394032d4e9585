"""Implementation of `Simulation.run`: many steps of an existing simulation."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from numbers import Integral, Real
from pathlib import Path

from abd.api.protocol import RunningSimulation
from abd.api.step_report import StepReport
from abd.io.directory import free_directory
from abd.io.progress import observer_for
from abd.io.report import Tally
from abd.io.run import Observer, Status, advance, observed, run
from abd.model import steps_in
from abd.potentials.integrators import longest

_log = logging.getLogger(__name__)


class _Listener(Observer):
    """Store the last report, and call a function that can end the run."""

    def __init__(self, on_step: Callable | None):
        self.on_step, self.report = on_step, None

    def step(self, report, tally) -> bool | None:
        self.report = report
        return None if self.on_step is None else self.on_step(report)


def run_simulation(
    sim: RunningSimulation,
    duration: float | None,
    steps: int | None,
    record: str | Path | None,
    progress: bool,
    on_step: Callable | None,
    overwrite: bool = False,
    resume: bool = False,
) -> StepReport | None:
    """See `abd.Simulation.run`."""
    if resume and (overwrite or record is None):
        raise ValueError("resume continues the run in the folder `record`; it needs this folder, and excludes overwrite")
    last = _count(sim, duration, steps) + (0 if resume else sim.frame)
    listener = _Listener(on_step)
    observers = [listener, observer_for(not progress, machine=False)]
    if record is None:
        with observed(observers) as is_interrupted:
            status = advance(sim, last, sim.step, Tally(), observers, is_interrupted)
        if status is Status.INTERRUPTED:
            raise KeyboardInterrupt(f"interrupted at {sim.time:g} s")
        return listener.report
    if sim.scene is None:
        raise ValueError("a simulation created from a compiled model has no scene to record; create it from the scene")
    folder = Path(record) if overwrite or resume else free_directory(record)
    if folder != Path(record):
        _log.warning(
            "%s already contains a run; this one is recorded in %s (overwrite=True replaces it, resume=True continues it)",
            record, folder,
        )  # fmt: skip
    outcome = run(
        sim.scene, sim.model, folder, steps=last, observers=observers, simulate=lambda *_: sim, overwrite=overwrite, resume=resume
    )
    if outcome.failure is not None:
        raise outcome.failure
    if outcome.status is Status.INTERRUPTED:
        raise KeyboardInterrupt(f"interrupted at {sim.time:g} s; {outcome.directory} contains the computed steps")
    return listener.report


def _count(sim: RunningSimulation, duration: float | None, steps: int | None) -> int:
    if duration is not None and steps is not None:
        raise ValueError(f"duration = {duration} s and steps = {steps} cannot both be given")
    if duration is not None:
        if not (isinstance(duration, Real) and 0.0 <= duration < math.inf):
            raise ValueError(f"duration must be a time in seconds, not {duration!r}")
        return steps_in(duration, longest(sim.stepper.worlds.lengths))
    if steps is not None:
        if not (isinstance(steps, Integral) and steps >= 0):
            raise ValueError(f"steps must be a number of steps, not {steps!r}")
        return int(steps)
    return sim.model.settings.frames
