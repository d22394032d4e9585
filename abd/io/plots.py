"""Figures of a run, or of two in one figure, drawn from their trajectories."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec

from abd.io.frame import STORED
from abd.io.trajectory import Trajectory

_WIDTH = 1.2
_STYLES = ("-", "--")
"""Lines of the first and of the second run."""
MOST_LINES = 10
"""Largest number of joints with lines of their own, one per colour; the joints with the largest values are drawn. Of two runs,
half of it from each."""
DECADES = 1e-8
"""Smallest residual that is shown, relative to the largest."""
_HEIGHTS = {1: 3.6, 2: 6.0}
"""Height of a figure [inch] by its number of axes."""


@dataclass(frozen=True)
class Run:
    """A run to be drawn: its name in legends, empty for a single run, and the style of its lines."""

    name: str
    trajectory: Trajectory
    style: str

    def label(self, text: str) -> str:
        """An entry of the legend."""
        return f"{text} ({self.name})" if self.name else text


def runs_of(trajectories: Sequence[Trajectory]) -> list[Run]:
    """One or two runs with different names."""
    if len(trajectories) == 1:
        return [Run("", trajectories[0], _STYLES[0])]
    paths = [one.path.resolve().parent for one in trajectories]
    names = [path.name for path in paths]
    if names[0] == names[1]:
        names = [f"{path.parent.name}/{path.name}" for path in paths]
    if names[0] == names[1]:
        names = [f"{name}, {number}" for name, number in zip(names, ("first", "second"))]
    return [Run(*one) for one in zip(names, trajectories, _STYLES)]


def energy_figure(runs: list[Run]) -> Figure:
    """Every energy that is not always zero, and their total less the external work, over time.

    Gravity is shown from its initial value.
    """
    figure, axes = _axes("energy [J]")
    for run in runs:
        time, energies = _time(run), run.trajectory.energies()
        total = sum(energies[name] for name in STORED)
        axes.set_prop_cycle(None)
        for k, (name, values) in enumerate(energies.items()):
            if np.any(values):
                shown = values - values[0] if name == "gravity" else values
                _line(axes, run, time, shown, name.replace("_", " "), color=f"C{k}")
        balance = total - energies["external_work"] - (energies["gravity"][0] if len(time) else 0.0)
        _line(axes, run, time, balance, "total less external work", color="k")
    return _finished(figure)


def momentum_figure(runs: list[Run]) -> Figure:
    """Linear momentum, and angular momentum about the origin, over time."""
    figure, upper, lower = _two_axes("momentum [kg m/s]", "angular momentum [kg m²/s]")
    for run in runs:
        for axes, name in ((upper, "linear"), (lower, "angular")):
            values = run.trajectory.series(f"/momentum/{name}")
            for axis in range(3):
                _line(axes, run, _time(run), values[:, axis], "xyz"[axis], color=f"C{axis}")
    return _finished(figure)


def gap_figure(runs: list[Run]) -> Figure | None:
    """Smallest gap, and the largest activation of contact, over time; None without contacts."""
    if not any(np.isfinite(run.trajectory.series("/solver/min_gap")).any() for run in runs):
        return None
    figure, axes = _axes("smallest gap [m]")
    for k, run in enumerate(runs):
        gap = run.trajectory.series("/solver/min_gap")
        near = np.isfinite(gap) & (gap > 0.0)
        line = np.where(near, gap, np.nan)
        _line(axes, run, _time(run), line, "smallest gap", color=f"C{k}", marker=".", markersize=2.5)
        d_hat = float(run.trajectory.solver_settings["d_hat"])
        axes.axhline(d_hat, color="0.6", linewidth=0.8, linestyle=run.style, label=run.label("largest activation"))
    axes.set_yscale("log")
    axes.set_xlim(*_span(np.concatenate([_time(run) for run in runs])))
    return _finished(figure)


def residual_figure(runs: list[Run]) -> Figure | None:
    """Largest residual over time of all joints, and of those with the largest ones; None without joints."""
    if not any(_joints(run) for run in runs):
        return None
    figure, upper, lower = _two_axes("residual [m]", "residual [rad]")
    for axes, part in ((upper, 0), (lower, 1)):
        colors: dict[str, str] = {}
        largest = 0.0
        for run in runs:
            lines = {}
            for path, name, _ in _joints(run):
                values = run.trajectory.series(f"{path}/residual").reshape(len(_time(run)), -1, 2)
                lines[name] = np.abs(values[:, :, part]).max(axis=1, initial=0.0)
            for name in _largest(lines, len(runs)):
                _line(axes, run, _time(run), _positive(lines[name]), name, color=_color(colors, name))
            worst = run.trajectory.series("/solver/max_joint_residual")[:, part]
            largest = max(largest, float(worst.max(initial=0.0)))
            _line(axes, run, _time(run), _positive(worst), "all", color="k")
        axes.set_yscale("log")
        if largest > 0.0:
            axes.set_ylim(bottom=DECADES * largest)
    return _finished(figure)


def coordinate_figure(runs: list[Run]) -> Figure | None:
    """Coordinates with the largest ranges: lengths, and angles below; None without coordinates."""
    figure, upper, lower = _two_axes("coordinate [m]", "coordinate [deg]")
    drawn, colors = False, ({}, {})
    for run in runs:
        lengths, angles = {}, {}
        for path, name, group in _joints(run):
            labels = [one.decode() if isinstance(one, bytes) else str(one) for one in group.attrs["coordinates"]]
            if not labels:
                continue
            values = run.trajectory.series(f"{path}/coordinates").reshape(len(_time(run)), -1, len(labels))
            copies = values.shape[1]
            for (copy, c), rotary in zip(np.ndindex(copies, len(labels)), np.tile(group.attrs["rotary"], copies)):
                own = f"{name}[{copy}].{labels[c]}" if copies > 1 else f"{name}.{labels[c]}"
                (angles if rotary else lengths)[own] = np.degrees(values[:, copy, c]) if rotary else values[:, copy, c]
        for axes, lines, known in ((upper, lengths, colors[0]), (lower, angles, colors[1])):
            for name in _largest(lines, len(runs), np.ptp):
                drawn = True
                _line(axes, run, _time(run), lines[name], name, color=_color(known, name))
    return _finished(figure) if drawn else None


def wrench_figure(runs: list[Run]) -> Figure | None:
    """Force and torque on the child of the joints with the largest ones, over time; None without joints."""
    if not any(_joints(run) for run in runs):
        return None
    figure, upper, lower = _two_axes("joint force [N]", "joint torque [N m]")
    for axes, part in ((upper, slice(0, 3)), (lower, slice(3, 6))):
        colors: dict[str, str] = {}
        for run in runs:
            lines = {}
            for path, name, _ in _joints(run):
                wrench = run.trajectory.series(f"{path}/wrench").reshape(len(_time(run)), -1, 6)
                lines[name] = np.linalg.norm(wrench[:, :, part], axis=2).max(axis=1, initial=0.0)
            for name in _largest(lines, len(runs)):
                if lines[name].any():
                    _line(axes, run, _time(run), lines[name], name, color=_color(colors, name))
    return _finished(figure)


def contact_figure(runs: list[Run]) -> Figure | None:
    """Sum and largest of the contact forces, and number of contacts, over time; None if no run has stored contacts."""
    figure, upper, lower = _two_axes("contact force [N]", "contacts")
    stored = [run for run in runs if run.trajectory.has("contacts/offset")]
    for run in stored:
        count = len(_time(run))
        offset = run.trajectory.rows("contacts/offset", 0, count + 1).astype(int)
        force = np.linalg.norm(run.trajectory.rows("contacts/force", 0, int(offset[-1])).reshape(-1, 3), axis=1)
        of_frame = np.repeat(np.arange(count), np.diff(offset))
        largest = np.zeros(count)
        np.maximum.at(largest, of_frame, force)
        _line(upper, run, _time(run), np.bincount(of_frame, force, minlength=count), "sum of sizes", color="C0")
        _line(upper, run, _time(run), largest, "largest", color="C1")
        _line(lower, run, _time(run), np.diff(offset), "number", color="C2")
    return _finished(figure) if stored else None


def iterations_figure(runs: list[Run]) -> Figure:
    """Newton iterations per frame, and linear iterations of an iterative solver."""
    figure, axes = _axes("iterations per frame")
    for run in runs:
        time = _time(run)[1:]
        _line(axes, run, time, run.trajectory.series("/solver/newton_iterations")[1:], "Newton", color="C0")
        linear = run.trajectory.series("/solver/linear_iterations")[1:]
        if np.any(linear):
            _line(axes, run, time, linear, "linear", color="C1")
            axes.set_yscale("symlog", linthresh=10)
    axes.set_ylim(bottom=0)
    return _finished(figure)


def stage_figure(runs: list[Run]) -> Figure | None:
    """Mean time of the stages of a step, from report.json; None without report."""
    reports = {run.name: report for run in runs if (report := _report(run)) is not None}
    if not reports:
        return None
    stages = list(dict.fromkeys(stage for report in reports.values() for stage in report["stages"]))
    figure, axes = _axes("time per step [ms]")
    height = 0.8 / len(reports)
    for k, (name, report) in enumerate(reports.items()):
        values = [1e3 * report["stages"].get(stage, 0.0) / max(report["steps"], 1) for stage in stages]
        axes.barh(np.arange(len(stages)) + k * height, values, height, label=name or "stages")
    axes.set_yticks(np.arange(len(stages)) + 0.5 * (len(reports) - 1) * height, [s.replace("_", " ") for s in stages])
    axes.invert_yaxis()
    axes.set_xlabel("time per step [ms]")
    axes.set_ylabel("")
    return _finished(figure, legend=len(runs) > 1)


FIGURES: dict[str, Callable[[list[Run]], Figure | None]] = {
    "energy": energy_figure,
    "momentum": momentum_figure,
    "gap": gap_figure,
    "residual": residual_figure,
    "coordinate": coordinate_figure,
    "wrench": wrench_figure,
    "contact": contact_figure,
    "iterations": iterations_figure,
    "stages": stage_figure,
}


def draw(trajectories: Sequence[Trajectory], name: str, path: Path) -> bool:
    """Draw one of `FIGURES` of one or two runs into a file; the suffix is the format (.svg, .png, .pdf).

    Returns:
        False without data for the figure; no file is written then.
    """
    # Without date and random identifiers the same run gives the same file.
    metadata = {"Date": None} if path.suffix == ".svg" else {"CreationDate": None} if path.suffix == ".pdf" else None
    with rc_context({"svg.hashsalt": "abd"}):
        figure = FIGURES[name](runs_of(trajectories))
        if figure is None:
            return False
        figure.savefig(path, metadata=metadata, dpi=150)
    return True


def _time(run: Run) -> np.ndarray:
    return run.trajectory.time


def _joints(run: Run) -> list[tuple[str, str, object]]:
    """Path, name and group of the joints, or of the copies of one."""
    return [(path, str(group.attrs["name"]), group) for path, group in run.trajectory.joint_groups()]


def _report(run: Run) -> dict | None:
    path = run.trajectory.path.with_name("report.json")
    report = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return report if report.get("stages") else None


def _largest(lines: dict[str, np.ndarray], runs: int, size: Callable = np.max) -> list[str]:
    """Names of the lines that are largest, in the order of the lines."""
    found = sorted(lines, key=lambda name: -float(size(lines[name])) if len(lines[name]) else 0.0)[: MOST_LINES // runs]
    return [name for name in lines if name in set(found)]


def _color(known: dict[str, str], name: str) -> str:
    """The colour of a joint, the same in both runs."""
    return known.setdefault(name, f"C{len(known) % 10}")


def _positive(values: np.ndarray) -> np.ndarray:
    """Positive values, NaN for others."""
    return np.where(values > 0.0, values, np.nan)


def _line(axes, run: Run, time: np.ndarray, values: np.ndarray, label: str, **style) -> None:
    axes.plot(time, values, linestyle=run.style, linewidth=_WIDTH, label=run.label(label), **style)


def _axes(label: str):
    figure = Figure(figsize=(7.0, _HEIGHTS[1]), layout="constrained")
    axes = figure.add_subplot()
    _dress(axes, label)
    return figure, axes


def _two_axes(upper: str, lower: str):
    figure = Figure(figsize=(7.0, _HEIGHTS[2]), layout="constrained")
    first = figure.add_subplot(2, 1, 1)
    second = figure.add_subplot(2, 1, 2, sharex=first)
    _dress(first, upper)
    _dress(second, lower)
    return figure, first, second


def _dress(axes, label: str) -> None:
    axes.set_xlabel("time [s]")
    axes.set_ylabel(label)
    axes.grid(linewidth=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _finished(figure: Figure, legend: bool = True) -> Figure:
    """The figure with legends and without empty axes; a long legend is next to the axes, so that it hides no line."""
    for axes in figure.axes:
        if not axes.has_data():
            axes.remove()
    grid = GridSpec(max(1, len(figure.axes)), 1, figure=figure)
    for k, axes in enumerate(figure.axes):
        axes.set_subplotspec(grid[k])
        axes.set_xlabel(axes.get_xlabel() if k == len(figure.axes) - 1 else "")
        count = len(axes.get_legend_handles_labels()[1])
        if legend and count > 7:
            axes.legend(fontsize="x-small", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        elif legend and count:
            axes.legend(fontsize="small", frameon=False)
    figure.set_figheight(_HEIGHTS[max(1, len(figure.axes))])
    return figure


def _span(time: np.ndarray) -> tuple[float, float]:
    """Range of the time axis, which is not empty for a single frame."""
    low, high = float(time.min()), float(time.max())
    return low, max(high, low + 1e-9)
