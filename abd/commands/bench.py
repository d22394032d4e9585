"""`abd bench`: time scenes, and report iterations and the tolerance that was reached."""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from time import perf_counter

import numpy as np

from abd.api.simulation import Simulation
from abd.api.step_report import StepReport
from abd.errors import StepFailure
from abd.io.report import finite, versions

SHIPPED = ("pendulum", "four_bar", "chain", "box_stack", "gears", "masonry_arch", "wrecking_ball")
"""Scenes that `abd bench` runs if none is named: joints, contact, and much contact."""
STEPS = 20
WARM_UP = 3
"""Untimed steps at the start: they load kernels and allocate arrays."""


@dataclass
class Row:
    """Cost of one scene on one device; medians over steps, times in milliseconds.

    Attributes:
        contacts: mean number of active contacts; newton, linear: iterations per step.
        ms, ms_p95: wall time of a call of `Simulation.step`, median and 95th percentile; ms_solving: without reading results;
            ms_per_newton: that per iteration.
        tolerance, reached: requested, and the largest that a step ended with [m/s].
        min_gap: smallest [m], None without contact; joint_error: largest [m], [rad].
        solver, solver_facts: the linear solver, and the size of its factors; stages: milliseconds per stage.
        memory: peak of the process so far [MiB]; device_memory: the same on a CUDA device.
        failure: reason why the scene stopped early, else empty.
    """

    scene: str
    device: str
    bodies: int
    joints: int
    steps: int
    contacts: float = 0.0
    newton: float = 0.0
    linear: float = 0.0
    ms: float | None = None
    ms_p95: float | None = None
    ms_solving: float | None = None
    ms_per_newton: float | None = None
    tolerance: float = 0.0
    reached: float | None = None
    min_gap: float | None = None
    joint_error: tuple[float, float] | None = None
    solver: str = ""
    solver_facts: dict = field(default_factory=dict)
    stages: dict[str, float] = field(default_factory=dict)
    memory: float = 0.0
    device_memory: float | None = None
    failure: str = ""


@dataclass
class Run:
    """Steps of one simulation: reports, wall time of each call [s], and the reason of an early stop."""

    reports: list[StepReport] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    failure: str = ""


def advance(simulation: Simulation, steps: int) -> Run:
    """Advance a simulation by `WARM_UP` untimed steps and then by timed steps, until one fails."""
    run = Run()
    try:
        for _ in range(WARM_UP):
            simulation.step()
        for _ in range(steps):
            begin = perf_counter()
            report = simulation.step()
            run.seconds.append(perf_counter() - begin)
            run.reports.append(report)
    except StepFailure as error:
        run.failure = f"{error.reason}: {error}"
    return run


def summary(name: str, simulation: Simulation, run: Run) -> Row:
    """Summarise the steps of a simulation as a row."""
    model, reports = simulation.model, run.reports
    facts = solver_facts(simulation)
    row = Row(
        name, simulation.device, len(model.bodies), len(model.joints), len(reports),
        tolerance=model.settings.tolerance, failure=run.failure, solver=facts.get("name", ""), solver_facts=facts,
        memory=peak_memory(), device_memory=device_memory(simulation),
    )  # fmt: skip
    if not reports:
        return row

    def of(attribute: str) -> np.ndarray:
        return np.array([getattr(report, attribute) for report in reports], dtype=float)

    def median(values: np.ndarray) -> float:
        return round(float(np.median(values)), 4)

    milliseconds, solving = 1e3 * np.array(run.seconds), 1e3 * of("wall_seconds")
    row.contacts, row.newton, row.linear = (
        round(float(of(one).mean()), 3) for one in ("contacts", "newton_iterations", "linear_iterations")
    )
    row.ms, row.ms_p95 = median(milliseconds), round(float(np.percentile(milliseconds, 95)), 4)
    row.ms_solving = median(solving)
    row.ms_per_newton = median(solving / np.maximum(of("newton_iterations"), 1))
    row.reached, row.min_gap = float(of("tolerance_achieved").max()), float(of("min_gap").min())
    row.joint_error = tuple(of("max_joint_residual").max(axis=0).tolist())
    names = dict.fromkeys(name for report in reports for name in report.stages)
    row.stages = {name: median(1e3 * np.array([report.stages.get(name, 0.0) for report in reports])) for name in names}
    return row


def solver_facts(simulation: Simulation) -> dict:
    """Name, reason for the selection and size of the last linear solver; empty on `numpy`, which has a single solver."""
    linear = getattr(simulation.backend, "linear", None)
    return {} if linear is None else linear.describe()


def peak_memory() -> float:
    """Largest resident memory of this process so far [MiB]."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(kilobytes / (2**20 if platform.system() == "Darwin" else 2**10), 1)


def device_memory(simulation: Simulation) -> float | None:
    """Peak memory allocated on a CUDA device so far [MiB]; None on the CPU or without a memory pool."""
    if not simulation.device.startswith("cuda"):
        return None
    import warp as wp

    device = wp.get_device(simulation.device)
    return round(wp.get_mempool_used_mem_high(device) / 2**20, 1) if wp.is_mempool_enabled(device) else None


def circumstances(device: str) -> dict:
    """Conditions of a measurement: date, machine, load average and versions."""
    load = os.getloadavg() if hasattr(os, "getloadavg") else ()
    return {
        "date": date.today().isoformat(),
        "device": device,
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load_average": [round(one, 2) for one in load],
        "versions": versions(),
    }


def _processor() -> str:
    """Model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def bench(scenes: Sequence[str], overrides: Sequence[str], device: str, steps: int) -> dict:
    """Run scenes one after the other; returns ``{"facts", "rows"}``.

    Raises:
        SceneError: a scene has problems. DeviceError: the device is not available.
    """
    from abd.scene.scene import load

    rows = []
    for source in scenes or SHIPPED:
        simulation = Simulation(load(source, overrides), device=device)
        name = Path(source).stem
        rows.append(finite(asdict(summary(name, simulation, advance(simulation, steps)))))
    return {"facts": {**circumstances(simulation.device), "steps": steps, "warm_up": WARM_UP}, "rows": rows}


def heading(facts: Mapping) -> str:
    """Describe the machine and the method of the measurement in one line."""
    load = ", ".join(str(one) for one in facts["load_average"])
    return (
        f"{facts['device']}, {facts['cores']} cores of {facts['processor']}, load {load or 'unknown'}; "
        f"median of {facts['steps']} steps after {facts['warm_up']}"
    )


COLUMNS = (
    ("scene", "{scene}"),
    ("bodies", "{bodies}"),
    ("joints", "{joints}"),
    ("contacts", "{contacts:.0f}"),
    ("Newton", "{newton:.2f}"),
    ("linear", "{linear:.1f}"),
    ("ms/step", "{ms:.3g}"),
    ("P95", "{ms_p95:.3g}"),
    ("solving", "{ms_solving:.3g}"),
    ("ms/Newton", "{ms_per_newton:.3g}"),
    ("reached m/s", "{reached:.1e}"),
    ("of", "{tolerance:.0e}"),
    ("gap m", "{min_gap:.1e}"),
    ("joints m", "{metres:.1e}"),
    ("rad", "{radians:.1e}"),
    ("solver", "{solver}"),
)


def table(rows: Sequence[Mapping], columns=COLUMNS) -> str:
    """Aligned columns; a missing value is a dash; a failure follows its row."""
    texts = [[title for title, _ in columns]]
    for row in rows:
        metres, radians = row.get("joint_error") or (None, None)
        known = {**row, "metres": metres, "radians": radians}
        texts.append([_cell(form, known) for _, form in columns])
    widths = [max(len(line[k]) for line in texts) for k in range(len(columns))]
    lines = [
        "  ".join(
            text.ljust(width) if k == 0 else text.rjust(width) for k, (text, width) in enumerate(zip(line, widths))
        )
        for line in texts
    ]
    for k, row in reversed(list(enumerate(rows))):
        if row.get("failure"):
            lines.insert(k + 2, f"  stopped after {row['steps']} steps: {row['failure']}")
    return "\n".join(line.rstrip() for line in lines)


def _cell(form: str, row: Mapping) -> str:
    name = form[1:-1].partition(":")[0]
    return "-" if row.get(name) is None or row[name] == "" else form.format(**row)
