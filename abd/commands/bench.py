"""`abd bench`: time scenes, and report iterations and the tolerance that was reached."""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from time import perf_counter

import numpy as np

from abd.api.simulation import Simulation
from abd.errors import StepFailure
from abd.io.report import finite, versions

SHIPPED = ("pendulum", "four_bar", "chain", "box_stack", "gears", "masonry_arch", "wrecking_ball")
"""Scenes that `abd bench` runs if none is named: joints, contact, and much contact."""
STEPS = 20
WARM_UP = 3
"""Untimed steps at the start: they load kernels and allocate arrays."""


def measure(name: str, simulation: Simulation, steps: int) -> dict:
    """Time the steps of a simulation after `WARM_UP` untimed ones, until one fails.

    Returns:
        scene, device, bodies, joints; steps: number of timed steps; failure: reason why the scene stopped early, else empty.
        contacts: mean number of active contacts; newton, linear: mean iterations per step.
        ms, ms_p95: wall time of a call of `Simulation.step` [ms], median and 95th percentile; ms_solving: median without reading
        results; ms_per_newton: that per iteration; stages: medians by stage.
        tolerance, reached: requested, and the largest that a step ended with [m/s].
        min_gap: smallest [m], infinite without contact; joint_error: largest [m], [rad].
        solver, solver_facts: the linear solver, and the size of its factors.
        memory: peak of the process so far [MiB]; device_memory: the same on a CUDA device, None elsewhere.
        Statistics are None without timed steps.
    """
    model, reports, seconds, failure = simulation.model, [], [], ""
    try:
        for step in range(-WARM_UP, steps):
            begin = perf_counter()
            report = simulation.step()
            if step >= 0:
                seconds.append(perf_counter() - begin)
                reports.append(report)
    except StepFailure as error:
        failure = f"{error.reason}: {error}"

    def of(attribute: str) -> np.ndarray:
        return np.array([getattr(report, attribute) for report in reports], dtype=float)

    def statistic(function: Callable, values: np.ndarray, *arguments) -> float | None:
        return round(float(function(values, *arguments)), 4) if len(reports) else None

    milliseconds, solving, newton = 1e3 * np.array(seconds), 1e3 * of("wall_seconds"), of("newton_iterations")
    names = dict.fromkeys(name for report in reports for name in report.stages)
    stages = {name: 1e3 * np.array([report.stages.get(name, 0.0) for report in reports]) for name in names}
    facts = simulation.linear_solver
    return {
        "scene": name,
        "device": simulation.device,
        "bodies": len(model.bodies),
        "joints": len(model.joints),
        "steps": len(reports),
        "contacts": statistic(np.mean, of("contacts")),
        "newton": statistic(np.mean, newton),
        "linear": statistic(np.mean, of("linear_iterations")),
        "ms": statistic(np.median, milliseconds),
        "ms_p95": statistic(np.percentile, milliseconds, 95),
        "ms_solving": statistic(np.median, solving),
        "ms_per_newton": statistic(np.median, solving / np.maximum(newton, 1)),
        "tolerance": model.settings.tolerance,
        "reached": max((report.tolerance_achieved for report in reports), default=None),
        "min_gap": min((report.min_gap for report in reports), default=None),
        "joint_error": of("max_joint_residual").max(axis=0) if reports else None,
        "solver": facts.get("name", ""),
        "solver_facts": facts,
        "stages": {name: statistic(np.median, values) for name, values in stages.items()},
        "memory": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10, 1),
        "device_memory": device_memory(simulation),
        "failure": failure,
    }


def device_memory(simulation: Simulation) -> float | None:
    """Peak memory allocated on a CUDA device so far [MiB]; None on the CPU or without a memory pool."""
    if not simulation.device.startswith("cuda"):
        return None
    import warp as wp

    device = wp.get_device(simulation.device)
    return round(wp.get_mempool_used_mem_high(device) / 2**20, 1) if wp.is_mempool_enabled(device) else None


def circumstances(device: str) -> dict:
    """Conditions of a measurement: date, machine, load average and versions."""
    return {
        "date": date.today().isoformat(),
        "device": device,
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load_average": [round(one, 2) for one in os.getloadavg()],
        "versions": versions(),
    }


def _processor() -> str:
    """Model of the processor."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def bench(scenes: Sequence[str], overrides: Sequence[str], device: str, steps: int) -> dict:
    """Run scenes one after the other; returns ``{"facts", "rows"}``."""
    from abd.scene.scene import load

    rows = []
    for source in scenes or SHIPPED:
        simulation = Simulation(load(source, overrides), device=device)
        rows.append(finite(measure(Path(source).stem, simulation, steps)))
    return {"facts": {**circumstances(simulation.device), "steps": steps, "warm_up": WARM_UP}, "rows": rows}


def heading(facts: Mapping) -> str:
    """Describe the machine and the method of the measurement in one line."""
    load = ", ".join(str(one) for one in facts["load_average"])
    return (
        f"{facts['device']}, {facts['cores']} cores of {facts['processor']}, load {load}; "
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
