"""Figures of a run, drawn from its trajectory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from abd.io.frame import ENERGIES
from abd.io.trajectory import Trajectory

_STYLE = {"linewidth": 1.2}


def energy_figure(trajectory: Trajectory) -> Figure:
    """Every energy that is not always zero, and their total less the external work, over time.

    Gravity is shown from its initial value.
    """
    time = trajectory.time
    energies = {name: trajectory.series(f"/energy/{name}") for name in ENERGIES}
    total = sum(values for name, values in energies.items() if not name.endswith("_work"))
    figure, axes = _axes("energy [J]")
    for name, values in energies.items():
        if np.any(values):
            shown = values - values[0] if name == "gravity" else values
            axes.plot(time, shown, label=name.replace("_", " "), **_STYLE)
    balance = total - energies["external_work"] - (energies["gravity"][0] if len(time) else 0.0)
    axes.plot(time, balance, "k--", label="total less external work", **_STYLE)
    axes.legend(fontsize="small", frameon=False)
    return figure


def gap_figure(trajectory: Trajectory) -> Figure:
    """Smallest gap, and the largest activation of contact, over time."""
    time, gap = trajectory.time, trajectory.series("/solver/min_gap")
    figure, axes = _axes("smallest gap [m]")
    near = np.isfinite(gap) & (gap > 0.0)
    axes.plot(time, np.where(near, gap, np.nan), ".-", markersize=2.5, label="smallest gap", **_STYLE)
    d_hat = float(trajectory.solver_settings["d_hat"])
    axes.axhline(d_hat, color="0.6", linewidth=0.8, label="largest activation")
    axes.set_yscale("log")
    axes.set_xlim(*_span(time))
    axes.legend(fontsize="small", frameon=False)
    return figure


def iterations_figure(trajectory: Trajectory) -> Figure:
    """Newton iterations per frame, and linear iterations where an iterative solver ran."""
    time = trajectory.time[1:]
    figure, axes = _axes("iterations per frame")
    axes.plot(time, trajectory.series("/solver/newton_iterations")[1:], label="Newton", **_STYLE)
    linear = trajectory.series("/solver/linear_iterations")[1:]
    if np.any(linear):
        axes.plot(time, linear, label="linear", **_STYLE)
        axes.set_yscale("symlog", linthresh=10)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize="small", frameon=False)
    return figure


FIGURES = {"energy": energy_figure, "gap": gap_figure, "iterations": iterations_figure}


def draw(trajectory: Trajectory, name: str, path: Path) -> None:
    """Draw one of `FIGURES` into a file; its suffix says the format (.svg, .png, .pdf)."""
    # Without date and random identifiers the same run gives the same file.
    metadata = {"Date": None} if path.suffix == ".svg" else None
    with rc_context({"svg.hashsalt": "abd"}):
        FIGURES[name](trajectory).savefig(path, metadata=metadata, dpi=150)


def _axes(label: str):
    figure = Figure(figsize=(7.0, 3.6), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel("time [s]")
    axes.set_ylabel(label)
    axes.grid(linewidth=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _span(time: np.ndarray) -> tuple[float, float]:
    """Range of the time axis; of some width also for a single frame."""
    return float(time[0]), max(float(time[-1]), float(time[0]) + 1e-9)
