"""`Simulation.run`: many steps of a simulation."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from numbers import Integral, Real
from pathlib import Path

from abd.api.state_changes import StateChanges
from abd.api.step_report import StepReport
from abd.model import steps_in
from abd.potentials.integrators import longest

_log = logging.getLogger(__name__)


class Runs(StateChanges):
    """Runs of many steps; base of `Simulation`."""

    __slots__ = ()

    def run(
        self,
        duration: float | None = None,
        steps: int | None = None,
        record: str | Path | None = None,
        progress: bool = False,
        on_step: Callable[[StepReport], bool | None] | None = None,
        overwrite: bool = False,
        resume: bool = False,
    ) -> StepReport | None:
        """Advance by many steps, as `abd run` does.

        Args:
            duration: time to simulate [s], rounded up to whole steps, or steps: number of steps; by default the duration of the
                scene.
            record: folder for the trajectory, the report and the resolved scene; by default no files are written.
                If the folder contains a run, files go to `<record>-<k>`, and a warning names that folder.
            progress: print statistics of the steps.
            on_step: function called with the report of every step; the run ends when it returns False.
            overwrite: replace the run in the folder `record`.
            resume: continue the run in the folder `record` from its last state, which replaces the present one; duration and
                steps count from its start.

        Returns:
            the last report, or None without steps.

        Raises:
            StepFailure: a step did not converge; the recorded frames are kept. KeyboardInterrupt: Ctrl-C, likewise.
            ValueError: duration and steps are both given, `record` is given for a simulation without a scene, or `resume` without
                `record`. DirectoryError, ResumeError: the folder has no run of this scene.
        """
        from abd.io.directory import free_directory
        from abd.io.progress import observer_for
        from abd.io.report import Tally
        from abd.io.run import Listener, Status, advance, observed, run

        if resume and (overwrite or record is None):
            raise ValueError("resume continues the run in the folder `record`; it needs this folder, and excludes overwrite")
        last = _count(self, duration, steps) + (0 if resume else self.frame)
        listener = Listener(on_step)
        observers = [listener, observer_for(not progress, machine=False)]
        if record is None:
            with observed(observers) as is_interrupted:
                status = advance(self, last, self.step, Tally(), observers, is_interrupted)
            if status is Status.INTERRUPTED:
                raise KeyboardInterrupt(f"interrupted at {self.time:g} s")
            return listener.report
        if self.scene is None:
            raise ValueError("a simulation created from a compiled model has no scene to record; create it from the scene")
        folder = Path(record) if overwrite or resume else free_directory(record)
        if folder != Path(record):
            _log.warning(
                "%s already contains a run; this one is recorded in %s (overwrite=True replaces it, resume=True continues it)",
                record, folder,
            )  # fmt: skip
        outcome = run(
            self.scene, self.model, folder, steps=last, observers=observers, simulate=lambda *_: self,
            overwrite=overwrite, resume=resume,
        )  # fmt: skip
        if outcome.failure is not None:
            raise outcome.failure
        if outcome.status is Status.INTERRUPTED:
            raise KeyboardInterrupt(f"interrupted at {self.time:g} s; {outcome.directory} contains the computed steps")
        return listener.report


def _count(sim: StateChanges, duration: float | None, steps: int | None) -> int:
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
