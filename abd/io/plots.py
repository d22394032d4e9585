"""Figures of a run, or of two in one figure, drawn from their trajectories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec

from abd.errors import AbdError
from abd.io.frame import STORED
from abd.io.report import read_json
from abd.io.trajectory import Trajectory

_WIDTH = 1.2
_STYLES = ("-", "--")
"""Lines of the first and of the second run."""
MOST_LINES = 10
"""Largest number of joints with a line each: those with the largest values; half as many of each of two runs."""
DECADES = 1e-8
"""Smallest residual that is shown, relative to the largest."""
MOST_SENSORS = 8
"""Largest number of sensors that are drawn."""
_COLUMNS = ("x", "y", "z", "about x", "about y", "about z")
"""Columns of sensors with three or six values: vectors, wrenches and twists."""


@dataclass(frozen=True)
class Run:
    """A run to be drawn: its name in legends, empty for a single run, and the style of its lines."""

    name: str
    trajectory: Trajectory
    style: str

    @property
    def joints(self) -> list[tuple[str, str, object]]:
        """Path, name and group of the joints, or of the copies of one."""
        return [(path, str(group.attrs["name"]), group) for path, group in self.trajectory.joint_groups()]

    def of_joint(self, path: str, what: str, columns: int) -> np.ndarray:
        """Return (T, copies, columns) values of a joint or of the copies of one."""
        return self.trajectory.series(f"{path}/{what}").reshape(len(self.trajectory), -1, columns)

    def label(self, text: str) -> str:
        """An entry of the legend."""
        return f"{text} ({self.name})" if self.name else text

    def line(self, axes, values: np.ndarray, label: str, **style) -> None:
        """Draw a line of values (T,), or of those after the first frame (T - 1,), over time."""
        time = self.trajectory.time[len(self.trajectory) - len(values) :]
        axes.plot(time, values, linestyle=self.style, linewidth=_WIDTH, label=self.label(label), **style)


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


FIGURES: dict[str, Callable[[list[Run]], Figure | None]] = {}
"""Functions that draw the figures of one or two runs, by name; None without data."""


def _figure(name: str, *labels: str) -> Callable:
    """Add a function that draws runs into axes with these labels, from top to bottom, to `FIGURES`."""

    def add(draw_lines: Callable[..., None]) -> None:
        def drawn(runs: list[Run]) -> Figure | None:
            figure, *axes = _axes(*labels)
            draw_lines(runs, *axes)
            return _finished(figure)

        FIGURES[name] = drawn

    return add


@_figure("energy", "energy [J]")
def _draw_energies(runs: list[Run], axes) -> None:
    """Draw every energy that is not always zero, gravity from its initial value, and their total less the external work."""
    for run in runs:
        energies = run.trajectory.energies()
        total = sum(energies[name] for name in STORED)
        for k, (name, values) in enumerate(energies.items()):
            if np.any(values):
                shown = values - values[0] if name == "gravity" else values
                run.line(axes, shown, name.replace("_", " "), color=f"C{k}")
        balance = total - energies["external_work"] - energies["gravity"][0]
        run.line(axes, balance, "total minus external work", color="k")


@_figure("momentum", "momentum [kg m/s]", "angular momentum [kg m²/s]")
def _draw_momenta(runs: list[Run], upper, lower) -> None:
    """Draw linear momentum, and angular momentum about the origin."""
    for run in runs:
        for axes, name in ((upper, "linear"), (lower, "angular")):
            values = run.trajectory.series(f"/momentum/{name}")
            for axis in range(3):
                run.line(axes, values[:, axis], "xyz"[axis], color=f"C{axis}")


@_figure("gap", "smallest gap [m]")
def _draw_gaps(runs: list[Run], axes) -> None:
    """Draw the smallest gap, and the largest activation of contact."""
    gaps = [run.trajectory.series("/solver/min_gap") for run in runs]
    if not any(np.isfinite(gap).any() for gap in gaps):
        return
    for k, (run, gap) in enumerate(zip(runs, gaps)):
        line = np.where(np.isfinite(gap), _positive(gap), np.nan)
        run.line(axes, line, "smallest gap", color=f"C{k}", marker=".", markersize=2.5)
        d_hat = float(run.trajectory.solver_settings["d_hat"])
        axes.axhline(d_hat, color="0.6", linewidth=0.8, linestyle=run.style, label=run.label("largest activation"))
    axes.set_yscale("log")
    time = np.concatenate([run.trajectory.time for run in runs])
    axes.set_xlim(time.min(), max(time.max(), time.min() + 1e-9))


@_figure("residual", "residual [m]", "residual [rad]")
def _draw_residuals(runs: list[Run], *both) -> None:
    """Draw the largest residual of all joints, and the residuals of the worst joints."""
    for part, axes in enumerate(both):
        lines, worst = [], []
        for run in runs:
            residuals = {name: run.of_joint(path, "residual", 2) for path, name, _ in run.joints}
            lines.append({name: _positive(np.abs(one[..., part]).max(axis=1)) for name, one in residuals.items()})
            worst.append(run.trajectory.series("/solver/max_joint_residual")[:, part])
        _largest_lines(axes, runs, lines, lambda line: np.nan_to_num(line).max())
        for run, values in zip(runs, worst):
            run.line(axes, _positive(values), "all", color="k")
        axes.set_yscale("log")
        largest = float(np.concatenate(worst).max(initial=0.0))
        if largest > 0.0:
            axes.set_ylim(bottom=DECADES * largest)


@_figure("coordinate", "coordinate [m]", "coordinate [deg]")
def _draw_coordinates(runs: list[Run], *both) -> None:
    """Draw the coordinates with the largest ranges: lengths, and angles below."""
    lines: tuple[list[dict], ...] = ([{} for _ in runs], [{} for _ in runs])
    for k, run in enumerate(runs):
        for path, name, group in run.joints:
            labels = group.attrs["coordinates"].tolist()
            if labels:
                values = run.of_joint(path, "coordinates", len(labels))
                for copy, c in np.ndindex(values.shape[1:]):
                    own = f"{name}[{copy}].{labels[c]}" if values.shape[1] > 1 else f"{name}.{labels[c]}"
                    rotary = bool(group.attrs["rotary"][c])
                    lines[rotary][k][own] = np.degrees(values[:, copy, c]) if rotary else values[:, copy, c]
    for axes, own in zip(both, lines):
        _largest_lines(axes, runs, own, np.ptp)


@_figure("wrench", "joint force [N]", "joint torque [N m]")
def _draw_wrenches(runs: list[Run], *both) -> None:
    """Draw force and torque on the child of the joints with the largest ones."""
    for axes, part in zip(both, (slice(0, 3), slice(3, 6))):
        lines = []
        for run in runs:
            wrenches = {name: run.of_joint(path, "wrench", 6)[..., part] for path, name, _ in run.joints}
            sizes = {name: np.linalg.norm(one, axis=2).max(axis=1) for name, one in wrenches.items()}
            lines.append({name: size for name, size in sizes.items() if size.any()})
        _largest_lines(axes, runs, lines, np.max)


@_figure("contact", "contact force [N]", "contacts")
def _draw_contacts(runs: list[Run], upper, lower) -> None:
    """Draw sum and largest of the contact forces, and number of contacts, of runs that have stored contacts."""
    for run in (run for run in runs if run.trajectory.has_contacts):
        count = len(run.trajectory)
        offset = run.trajectory.rows("contacts/offset", 0, count + 1).astype(int)
        force = np.linalg.norm(run.trajectory.rows("contacts/force", 0, int(offset[-1])).reshape(-1, 3), axis=1)
        of_frame = np.repeat(np.arange(count), np.diff(offset))
        largest = np.zeros(count)
        np.maximum.at(largest, of_frame, force)
        run.line(upper, np.bincount(of_frame, force, minlength=count), "sum of sizes", color="C0")
        run.line(upper, largest, "largest", color="C1")
        run.line(lower, np.diff(offset), "number", color="C2")


def sensor_figure(runs: list[Run]) -> Figure | None:
    """Draw the values of the first sensors over time, each in axes of its own; None if no run has recorded sensors."""
    sensors = [run.trajectory.sensors() for run in runs]
    names = list(dict.fromkeys(name for own in sensors for name in own))
    if not names:
        return None
    figure, *every = _axes(*names[:MOST_SENSORS])
    for name, axes in zip(names, every):
        for run, own in zip(runs, sensors):
            columns = own[name].T if name in own else ()
            for k, values in enumerate(columns):
                label = _COLUMNS[k] if len(columns) in (3, 6) else str(k)
                if len(columns) == 1:
                    label = name if run.name else "_"  # the axes have the label
                run.line(axes, values, label, color=f"C{k % 10}")
    if len(names) > len(every):
        figure.suptitle(f"{len(every)} of {len(names)} sensors", fontsize="small")
    return _finished(figure)


FIGURES["sensors"] = sensor_figure


@_figure("iterations", "iterations per step")
def _draw_iterations(runs: list[Run], axes) -> None:
    """Draw Newton iterations per step, and linear iterations of an iterative solver."""
    for run in runs:
        run.line(axes, run.trajectory.series("/solver/newton_iterations")[1:], "Newton", color="C0")
        linear = run.trajectory.series("/solver/linear_iterations")[1:]
        if np.any(linear):
            run.line(axes, linear, "linear", color="C1")
            axes.set_yscale("symlog", linthresh=10)
    axes.set_ylim(bottom=0)


@_figure("stages", "")
def _draw_stages(runs: list[Run], axes) -> None:
    """Draw the mean time of the stages of a step, from report.json."""
    known = {run.name: times for run in runs if (times := _stage_times(run))}
    stages = list(dict.fromkeys(stage for times in known.values() for stage in times))
    height = 0.8 / max(len(known), 1)
    for k, (name, times) in enumerate(known.items()):
        values = [times.get(stage, 0.0) for stage in stages]
        axes.barh(np.arange(len(stages)) + k * height, values, height, label=name)
    axes.set_yticks(np.arange(len(stages)) + 0.5 * (len(known) - 1) * height, [s.replace("_", " ") for s in stages])
    axes.invert_yaxis()
    axes.set_xlabel("time per step [ms]")


def draw(trajectories: Sequence[Trajectory], name: str, path: Path) -> bool:
    """Draw one of `FIGURES` into a .svg, .png or .pdf file; returns False, without a file, if there is no data for it."""
    # Without date and random identifiers the same run gives the same file.
    metadata = {"Date": None} if path.suffix == ".svg" else {"CreationDate": None} if path.suffix == ".pdf" else None
    with rc_context({"svg.hashsalt": "abd"}):
        figure = FIGURES[name](runs_of(trajectories))
        if figure is None:
            return False
        figure.savefig(path, metadata=metadata, dpi=150)
    return True


def _stage_times(run: Run) -> dict[str, float]:
    """Return mean times per step [ms] by stage; empty without report."""
    path = run.trajectory.path.with_name("report.json")
    if not path.is_file():
        return {}
    report = read_json(path)
    try:
        return {stage: 1e3 * time / max(report["steps"], 1) for stage, time in (report["stages"] or {}).items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise AbdError(f"{path} has no times of stages and number of steps") from error


def _largest_lines(axes, runs: list[Run], lines: list[dict[str, np.ndarray]], size: Callable) -> None:
    """Draw the largest lines of each run, one colour per name."""
    colors: dict[str, str] = {}
    for run, own in zip(runs, lines):
        found = sorted(own, key=lambda name: -float(size(own[name])) if len(own[name]) else 0.0)[
            : MOST_LINES // len(runs)
        ]
        for name in own:
            if name in found:
                color = colors.setdefault(name, f"C{len(colors) % 10}")
                run.line(axes, own[name], name, color=color)


def _positive(values: np.ndarray) -> np.ndarray:
    """Positive values, NaN for others."""
    return np.where(values > 0.0, values, np.nan)


def _axes(*labels: str) -> list:
    """Return a figure and one axes object per label, from top to bottom."""
    figure = Figure(figsize=(7.0, 1.0), layout="constrained")
    every = figure.subplots(len(labels), sharex=True, squeeze=False)[:, 0]
    for axes, label in zip(every, labels):
        axes.set_xlabel("time [s]")
        axes.set_ylabel(label)
        axes.grid(linewidth=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    return [figure, *every]


def _finished(figure: Figure) -> Figure | None:
    """Add legends and remove empty axes; return None if all are empty. A long legend is next to the axes and hides no line."""
    for axes in figure.axes:
        if not axes.patches and not any(np.isfinite(line.get_ydata()).any() for line in axes.lines):
            axes.remove()
    if not figure.axes:
        return None
    grid = GridSpec(len(figure.axes), 1, figure=figure)
    for k, axes in enumerate(figure.axes):
        axes.set_subplotspec(grid[k])
        last = k == len(figure.axes) - 1
        axes.set_xlabel(axes.get_xlabel() if last else "")
        axes.tick_params(labelbottom=last)
        count = len(axes.get_legend_handles_labels()[1])
        if count > 7:
            axes.legend(fontsize="x-small", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        elif count:
            axes.legend(fontsize="small", frameon=False)
    figure.set_figheight(1.2 + 2.4 * len(figure.axes))
    return figure
