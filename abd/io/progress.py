"""Progress output of a run: a progress bar, plain lines or JSON lines."""

from __future__ import annotations

import json
import sys
from time import perf_counter
from typing import TextIO

from abd.io.report import finite
from abd.io.run import Observer, Outcome

_LINE_SECONDS = 2.0


class PlainLines(Observer):
    """Prints a line every few seconds, for logs and pipes."""

    def __init__(self, stream: TextIO):
        self.stream = stream

    def begin(self, sim, first: int, last: int) -> None:
        self.clock, self.first, self.last = perf_counter(), first, last
        self.shown = self.clock

    def step(self, report, tally) -> None:
        now = perf_counter()
        if now - self.shown < _LINE_SECONDS and report.step != self.last:
            return
        self.shown = now
        rate = (report.step - self.first) / (now - self.clock)
        left = clock_time((self.last - report.step) / rate)
        text = f"step {report.step}/{self.last}  {physics(report)}  left {left}"
        print(text, file=self.stream, flush=True)

    def note(self, text: str) -> None:
        print(f"note: {text}", file=self.stream, flush=True)


class Bar(Observer):
    """A progress bar on a terminal."""

    def __init__(self, stream: TextIO):
        self.progress = progress_bar("step", stream)

    def begin(self, sim, first: int, last: int) -> None:
        self.task = self.progress.add_task("", total=last, completed=first)
        self.progress.start()

    def step(self, report, tally) -> None:
        self.progress.update(self.task, completed=report.step, description=physics(report))

    def note(self, text: str) -> None:
        self.progress.console.print(f"note: {text}", markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        self.progress.stop()


def progress_bar(unit: str, stream: TextIO, quiet: bool = False):
    """Return a `rich.progress.Progress` of numbered units with description and remaining time; hidden without a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(unit), MofNCompleteColumn(), BarColumn(bar_width=20), TextColumn("{task.description}", markup=False),
        TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    return Progress(*columns, console=Console(file=stream), disable=quiet or not stream.isatty())


class JsonLines(Observer):
    """Prints one JSON object per step and the report at the end; notes go to another stream."""

    def __init__(self, stream: TextIO, notes: TextIO | None):
        self.stream, self.notes = stream, notes

    def note(self, text: str) -> None:
        if self.notes is not None:
            print(f"note: {text}", file=self.notes, flush=True)

    def step(self, report, tally) -> None:
        names = """step time dt converged substeps newton_iterations linear_iterations line_search_trials
            rejected_paths min_gap
            max_joint_residual max_orthogonality_error residual_force tolerance_achieved contacts energy momentum
            broken stages wall_seconds"""
        self._line({name: getattr(report, name) for name in names.split()})

    def end(self, outcome: Outcome) -> None:
        self._line({"report": outcome.report, "status": outcome.status.name.lower(), "out": str(outcome.directory)})

    def _line(self, values: dict) -> None:
        print(json.dumps(finite(values), allow_nan=False), file=self.stream, flush=True)


def observer_for(quiet: bool, machine: bool) -> Observer:
    """Select the observer for the options and the terminal; all output except JSON goes to standard error."""
    if machine:
        return JsonLines(sys.stdout, None if quiet else sys.stderr)
    if quiet:
        return Observer()
    return Bar(sys.stderr) if sys.stderr.isatty() else PlainLines(sys.stderr)


def physics(report) -> str:
    """Format time, iterations, smallest gap and joint error of a step in one line."""
    parts = [f"t {report.time:.3f} s", f"Newton {report.newton_iterations}"]
    if report.substeps > 1:
        parts.append(f"substeps {report.substeps}")
    if report.rejected_paths:
        parts.append(f"rejected paths {report.rejected_paths}")
    parts.append(f"gap {length(report.min_gap)}")
    metres, radians = report.max_joint_residual
    if metres or radians:
        parts.append(f"joints {length(metres)}" + (f" {radians:.1e} rad" if radians else ""))
    if report.broken:
        parts.append(f"broken: {', '.join(report.broken)}")
    return "  ".join(parts)


def length(metres: float) -> str:
    """Format a length with a suitable unit; an infinite length as a dash."""
    if not abs(metres) < float("inf"):
        return "-"
    for unit, factor in (("m", 1.0), ("mm", 1e3), ("um", 1e6)):
        if abs(metres) * factor >= 0.1:
            return f"{metres * factor:.3g} {unit}"
    return f"{metres:.1e} m"


def clock_time(seconds: float) -> str:
    """Format seconds as h:mm:ss."""
    whole = max(0, round(seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
