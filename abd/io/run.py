"""Run a scene: simulation, trajectory, report and interruption."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from time import perf_counter, sleep

from abd.errors import AbdError, OutOfMemory, StepFailure
from abd.io.datasets import stacked
from abd.io.directory import RunDirectory
from abd.io.fingerprint import model_digest
from abd.io.frame import FrameReader, SolverRow
from abd.io.frame_queue import FrameQueue
from abd.io.initial import initial_report
from abd.io.report import Tally, run_report, write_report
from abd.io.trajectory import Trajectory
from abd.io.trajectory_writer import TrajectoryWriter
from abd.model import Model
from abd.scene.overlaps.starts import free_start

_PAUSE = 0.01
"""Time between two queries of observers that pause a run [s]."""


class ResumeError(AbdError):
    """The run cannot be continued with this scene."""

    exit_status = 2


class Status(Enum):
    """How a run ended; the value is the exit status of `abd run`."""

    DONE = 0
    FAILED = 1
    INTERRUPTED = 130


@dataclass(frozen=True)
class Outcome:
    """End of a run: the content of report.json, the directory, the failure if there was one, and the number of steps that
    were made by this call."""

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

    def step(self, report, tally: Tally) -> None:
        """Called after every step."""

    def note(self, text: str) -> None:
        """Called with a note for the user."""

    def end(self, outcome: Outcome) -> None:
        """Called after the last file is written."""

    def close(self) -> None:
        """Called when the run has ended, also after an exception."""


class Interruption:
    """Turn the first Ctrl-C or SIGTERM into a flag, so that the current step finishes; the second stops at once."""

    def __init__(self):
        self.requested = False
        self._saved: dict[int, object] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._saved[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_) -> None:
        for number, handler in self._saved.items():
            signal.signal(number, handler)

    def _hear(self, *_) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


class Messages(logging.Handler):
    """Forward each distinct log message of the package to the observers as a note, once per run."""

    def __init__(self, observers: list[Observer]):
        super().__init__()
        self.observers, self.log = observers, logging.getLogger("abd")
        self._forwarded: set[str] = set()

    def __enter__(self) -> Messages:
        self.level_before = self.log.level
        self.log.setLevel(logging.INFO)
        self.log.addHandler(self)
        return self

    def __exit__(self, *_) -> None:
        self.log.removeHandler(self)
        self.log.setLevel(self.level_before)

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message in self._forwarded:
            return  # `abd bench` selects the device once per scene
        self._forwarded.add(message)
        for observer in self.observers:
            observer.note(message)


class Recorder:
    """Records of a run in addition to the simulation: its trajectory, the tally of its report and the row being filled.

    Frames are the states after every `every`-th step; steps beyond the last whole frame live in the checkpoint.
    """

    def __init__(self, frame: FrameReader, writer: TrajectoryWriter, tally: Tally, row: SolverRow, every: int):
        self.sim, self.frame = frame.sim, frame
        self.tally, self.row, self.every = tally, row, every
        self.writer, self.queue = writer, FrameQueue(writer, in_thread=frame.sim.device.startswith("cuda"))

    @classmethod
    def fresh(
        cls, sim, path: Path, every: int, steps: int, attributes: dict, contacts: bool = False
    ) -> Recorder:
        """Start a trajectory with the initial state, and with points of contact if they are wanted."""
        report = replace(initial_report(sim.model, sim.host_state(), sim.initial_contacts), time=sim.time)
        frame, tally, row = FrameReader(sim, contacts), Tally(), SolverRow()
        tally.begin(report)
        row.add(report)
        first = stacked([frame.read(report, row).values()])
        row = SolverRow()
        checkpoint = _checkpoint(sim, tally, row, 1)
        options = {"frames": steps // every, "attributes": attributes}
        return cls(frame, TrajectoryWriter(path, sim.model, [first], checkpoint, **options), tally, row, every)

    @classmethod
    def resumed(cls, sim, path: Path, every: int, steps: int, attributes: dict) -> Recorder:
        """Bring the simulation to the checkpoint of a trajectory, which goes on from there.

        Raises:
            ResumeError: the trajectory belongs to another scene.
        """
        with Trajectory(path) as old:
            if old.attributes["digest"] != attributes["digest"] or old.attributes["every"] != every:
                raise ResumeError(
                    f"{path} was written by another scene, or by this one before it was changed "
                    "(bodies, joints, materials, solver settings and output.every must be the same); "
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
            self.queue.add(self.frame.read(report, self.row))
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
    stopped: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Run a scene and write its directory.

    Args:
        scene: the `Scene`, written resolved to scene.toml.
        model: the same scene, compiled.
        directory: must not hold a run, unless `resume` or `overwrite`, which replaces it.
        device: see `abd.Simulation`.
        steps: number of steps in all, those of a resumed run included; default: the scene's frames.
        resume: continue from the checkpoint in the directory, bit for bit as if the run had never stopped.
        observers: hear of every step.
        simulate: makes the simulation from model and device: `abd.Simulation`, or what wraps it.
        stopped: queried before every step; the run ends if it returns True.

    Raises:
        SceneError, DirectoryError, ResumeError, DeviceError: the run did not start. OSError: writing failed.
    """
    model = free_start(model)
    steps = model.settings.frames if steps is None else steps
    every = scene.output.every
    observers = list(observers)
    with RunDirectory(directory, resume, overwrite) as place, Interruption() as interruption, ExitStack() as at_the_end:
        for observer in observers:
            at_the_end.callback(observer.close)
        at_the_end.enter_context(Messages(observers))
        sim = simulate(model, device)
        attributes = {"scene": model.name, "device": sim.device, "digest": model_digest(model), "every": every}
        start = Recorder.resumed if resume else partial(Recorder.fresh, contacts=scene.output.contacts)
        recorder = start(sim, place.trajectory, every, steps, attributes)
        with recorder.writer, recorder.queue:
            scene.resolved(model.settings).save(place.path / "scene.toml", explicit=True)
            for observer in observers:
                observer.begin(sim, sim.frame, steps)
            first = sim.frame
            status, failure = _advance(recorder, steps, interruption, observers, stopped)
            recorder.flush()
            recorder.queue.close()
        report = run_report(recorder.tally, model, sim.device, failure, sim.linear_solver)
        write_report(place.path / "report.json", report)
        outcome = Outcome(status, report, place.path, failure, sim.frame - first)
        for observer in observers:
            observer.end(outcome)
    return outcome


def hold(observers: Iterable[Observer], interruption: Interruption) -> None:
    """Wait until no observer pauses the run, or the run is interrupted."""
    while not interruption.requested and any(observer.waits() for observer in observers):
        sleep(_PAUSE)


def _advance(
    recorder: Recorder,
    steps: int,
    interruption: Interruption,
    observers: list[Observer],
    stopped: Callable[[], bool],
) -> tuple[Status, StepFailure | None]:
    """Advance until the end, an interruption or a failure."""
    while recorder.sim.frame < steps and not stopped():
        hold(observers, interruption)
        if interruption.requested:
            return Status.INTERRUPTED, None
        try:
            report = recorder.step()
        except StepFailure as failure:
            return Status.FAILED, failure
        except OutOfMemory as error:
            return Status.FAILED, StepFailure("memory", str(error), recorder.sim.frame, recorder.sim.time)
        for observer in observers:
            observer.step(report, recorder.tally)
    return Status.DONE, None
