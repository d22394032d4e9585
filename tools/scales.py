"""Scales of mechanisms: `python tools/scales.py [--steps 15] [--device cpu] [-o FILE]`.

Bennett's overconstrained linkage from 1e-6 to 1e3 of its size, with gravity that grows with the size and with time that
grows with its root, and a body that hangs on another one of 1 to 1e7 times less and more mass: Newton iterations of the
steps, strain, kappa. Exit status 1 if one of them stops.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS.parent), str(TOOLS.parent / "tests" / "reference")]

from results_file import write_results  # noqa: E402
from test_scales import bennett, hanging  # noqa: E402

from abd.api.simulation import Simulation  # noqa: E402
from abd.errors import StepFailure  # noqa: E402


def run(scene, device: str, steps: int) -> dict:
    """One scene: what its steps took."""
    model = scene.compile()
    simulation, reports, stop = Simulation(model, device), [], ""
    try:
        reports = [simulation.step() for _ in range(steps)]
    except StepFailure as failure:
        stop = str(failure)
    newton = [report.newton_iterations for report in reports]
    strain = max((report.max_orthogonality_error for report in reports), default=None)
    kappa = [float(model.bodies.kappa.min()), float(model.bodies.kappa.max())]
    facts = {"tolerance": model.settings.tolerance, "kappa": kappa, "newton": newton}
    return facts | {"total": sum(newton), "most": max(newton, default=0), "strain": strain, "stop": stop}


def scenes():
    """Facts of every scene, and the scene."""
    for exponent in range(-6, 4):
        size = 10.0**exponent
        yield {"kind": "bennett", "size": size, "scaled": "gravity"}, bennett(size, 9.81 * size, 0.01)
        yield {"kind": "bennett", "size": size, "scaled": "time"}, bennett(size, 9.81, 0.01 * math.sqrt(size))
    for exponent in range(8):
        ratio = 10.0**exponent
        yield {"kind": "hanging", "light": 1.0, "heavy": ratio, "heavy_is": "below"}, hanging(1.0, ratio)
        yield {"kind": "hanging", "light": 1.0, "heavy": ratio, "heavy_is": "above"}, hanging(ratio, 1.0)


def main() -> int:
    """Run all, print a table, write the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("-o", "--output", type=Path)
    chosen = parser.parse_args()
    rows = []
    for facts, scene in scenes():
        rows.append(facts | run(scene, chosen.device, chosen.steps))
        print(*facts.values(), *(rows[-1][key] for key in ("total", "most", "strain", "stop")), flush=True)
    if chosen.output:
        write_results(chosen.output, chosen.device, rows, steps=chosen.steps)
    return int(any(row["stop"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
