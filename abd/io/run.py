"""Run a scene: simulation, trajectory, report and interruption."""

from __future__ import annotations

import json
import logging
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from time import perf_counter, sleep

from abd.errors import OutOfMemory, StepFailure, UsageError
from abd.io.datasets import stacked
from abd.io.directory import TRAJECTORY, run_directory
from abd.io.fingerprint import model_digest
from abd.io.frame import FrameReader, SolverRow, initial_report
from abd.io.report import Tally, run_report
from abd.io.trajectory import Trajectory
from abd.io.trajectory_writer import FrameQueue, TrajectoryWriter
from abd.model import Model
from abd.scene.overlaps.starts import free_start
from abd.scene.schema.formula import FormulaError
from abd.step.frame_path import FramePath

_PAUSE = 0.01
"""Time between two queries of observers that pause a run [s]."""


class ResumeError(UsageError):
    """The run cannot be continued with this scene."""


class Status(Enum):
    """How a run ended; the value is the exit status of `abd run`."""

    DONE = 0
    FAILED = 1
    INTERRUPTED = 130


@dataclass(frozen=True)
class Outcome:
    """End of a run: content of report.json, directory, failure if any, and number of steps made by this call."""

    status: Status
    report: dict
    directory: Path
    failure: StepFailure | None = None
    made: int = 0


class Observer:
    """Receives the events of a run. By default every method does nothing."""

    def begin(self, sim, first: int, last: int) -> None:
        """Called before step `first` + 1 of `last`."""

    def waits(self) -> bool:
        """Return whether the run must wait; queried repeatedly before a step."""
        return False

    def step(self, report, tally: Tally) -> bool | None:
        """Called after every step; the run ends if it returns False."""

    def note(self, text: str) -> None:
        """Called with a note for the user."""

    def end(self, outcome: Outcome) -> None:
        """Called after the last file is written."""

    def close(self) -> None:
        """Called when the run has ended, also after an exception."""


class Listener(Observer):
    """Store the last report, and call a function that can end the run."""

    def __init__(self, on_step: Callable | None):
        self.on_step, self.report = on_step, None

    def step(self, report, tally: Tally) -> bool | None:
        self.report = report
        return None if self.on_step is None else self.on_step(report)


@contextmanager
def messages(observers: list[Observer]) -> Iterator[None]:
    """Forward each distinct log message of the package, once per run, to the observers that take notes; without any, messages go
    where `logging` sends them."""
    takers = [observer for observer in observers if type(observer).note is not Observer.note]
    log, handler, forwarded = logging.getLogger("abd"), logging.Handler(), set()

    def emit(record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in forwarded:  # `abd bench` selects the device once per scene
            forwarded.add(message)
            for observer in takers:
                observer.note(message)

    handler.emit, level = emit, log.level
    if takers:
        log.setLevel(logging.INFO)
        log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


@contextmanager
def observed(observers: list[Observer]) -> Iterator[Callable[[], bool]]:
    """Pass log messages to observers, and close them at the end.

    Yields a function that returns whether Ctrl-C or SIGTERM was received, so that the step finishes; the second stops at once."""
    received: list[int] = []

    def receive(number: int, _) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    with ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                stack.callback(signal.signal, number, signal.signal(number, receive))
        for observer in observers:
            stack.callback(observer.close)
        stack.enter_context(messages(observers))
        yield lambda: bool(received)


class Recorder:
    """Writer of a run: its trajectory, the tally of its report and the solver row of the next frame.

    A frame is written after every `every`-th step; later steps are in the checkpoint only.
    """

    def __init__(self, frame: FrameReader, writer: TrajectoryWriter, tally: Tally, row: SolverRow, every: int):
        self.sim, self.frame = frame.sim, frame
        self.tally, self.row, self.every = tally, row, every
        self.writer, self.queue = writer, FrameQueue(writer, in_thread=frame.sim.device.startswith("cuda"))

    @classmethod
    def fresh(
        cls, sim, path: Path, every: int, steps: int, attributes: dict, contacts: bool = False
    ) -> Recorder:
        """Start a trajectory with the initial state; `contacts`: contact points are recorded."""
        report = replace(initial_report(sim.model, sim.host_state(), sim.initial_contacts), time=sim.time)
        frame, tally, row = FrameReader(sim, contacts), Tally(), SolverRow()
        tally.begin(report)
        row.add(report)
        first = stacked([frame.read(report, row, FramePath()).values()])
        row = SolverRow()
        checkpoint = _checkpoint(sim, tally, row, 1)
        options = {"frames": steps // every, "attributes": attributes}
        return cls(frame, TrajectoryWriter(path, sim.model, [first], checkpoint, **options), tally, row, every)

    @classmethod
    def resumed(cls, sim, path: Path, every: int, steps: int, attributes: dict) -> Recorder:
        """Restore the simulation from the checkpoint of a trajectory, and continue it; `ResumeError` if of another scene."""
        with Trajectory(path) as old:
            if old.attributes["digest"] != attributes["digest"] or old.attributes["every"] != every:
                raise ResumeError(
                    f"{path} was written by another scene, or by this one before it was changed "
                    "(bodies, joints, materials, sensors, solver settings and output.every must be the same); "
                    "undo the change, or start a new run with another --out"
                )
            saved, has_contacts = old.checkpoint(), old.has_contacts
            old.verify(int(saved["frames"]))
            sim.restore(saved["simulation"])
            tally, row = Tally(**saved["tally"]), SolverRow(**saved["row"])
            options = {"frames": steps // every, "attributes": attributes}
            writer = TrajectoryWriter(path, sim.model, old.blocks(saved["frames"]), saved, **options)
        return cls(FrameReader(sim, has_contacts), writer, tally, row, every)

    def step(self):
        """Advance by one step and record it; returns the `StepReport`."""
        begin = perf_counter()
        report = self.sim.step()
        self.tally.add(report, perf_counter() - begin)
        self.row.add(report)
        if report.step % self.every == 0:
            path = self.sim.stepper.path if self.every == 1 else FramePath()
            self.queue.add(self.frame.read(report, self.row, path))
            self.row = SolverRow()
        if self.queue.due:
            self.flush()
        return report

    def flush(self) -> None:
        """Write all recorded data to the disk."""
        self.queue.flush(_checkpoint(self.sim, self.tally, self.row, self.queue.count))


def _checkpoint(sim, tally: Tally, row: SolverRow, frames: int) -> dict:
    return {"simulation": sim.checkpoint(), "tally": asdict(tally), "row": asdict(row), "frames": frames}


def run(
    scene,
    model: Model,
    directory: str | Path,
    *,
    device: str = "auto",
    steps: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    observers: Iterable[Observer] = (),
    simulate: Callable,
) -> Outcome:
    """Run a scene, compiled to a model, and write its directory.

    Args:
        directory: must not contain a run, unless `resume` continues it, bit for bit, or `overwrite` replaces it.
        steps: total number of steps, including those of a resumed run; default: the scene's.
        observers: receive every step; simulate: (model, device) -> `abd.Simulation`.

    Raises:
        SceneError, DirectoryError, ResumeError, DeviceError: the run did not start. OSError: writing failed.
    """
    model = free_start(model)
    steps = model.settings.frames if steps is None else steps
    every = scene.output.every
    observers = list(observers)
    with run_directory(directory, resume, overwrite) as folder, observed(observers) as is_interrupted:
        sim = simulate(model, device)
        attributes = {"scene": model.name, "device": sim.device, "every": every}
        attributes["digest"] = model_digest(model, [one.definition for one in sim.sensors.values()])
        start = Recorder.resumed if resume else partial(Recorder.fresh, contacts=scene.output.contacts)
        recorder = start(sim, folder / TRAJECTORY, every, steps, attributes)
        with recorder.writer, recorder.queue:
            scene.resolved(model.settings).save(folder / "scene.toml", explicit=True)
            first, failure = sim.frame, None
            try:
                status = advance(sim, steps, recorder.step, recorder.tally, observers, is_interrupted)
            except StepFailure as error:
                status, failure = Status.FAILED, error
            except (OutOfMemory, FormulaError) as error:
                reason = "memory" if isinstance(error, OutOfMemory) else "formula"
                status, failure = Status.FAILED, StepFailure(reason, str(error), sim.frame, sim.time)
            recorder.flush()
        report = run_report(recorder.tally, model, sim.device, failure, sim.linear_solver)
        text = json.dumps(report, indent=2, allow_nan=False) + "\n"
        (folder / "report.json").write_text(text, encoding="utf-8")
        outcome = Outcome(status, report, folder, failure, sim.frame - first)
        for observer in observers:
            observer.end(outcome)
    return outcome


def advance(
    sim, last: int, step: Callable, tally: Tally, observers: list[Observer], is_interrupted: Callable[[], bool]
) -> Status:
    """Call `step` until step number `last` or an interruption; observers may pause or end the run."""
    for observer in observers:
        observer.begin(sim, sim.frame, last)
    is_running = True
    while is_running and sim.frame < last:
        while not is_interrupted() and any(observer.waits() for observer in observers):
            sleep(_PAUSE)
        if is_interrupted():
            return Status.INTERRUPTED
        report = step()
        is_running = False not in [observer.step(report, tally) for observer in observers]
    return Status.DONE
