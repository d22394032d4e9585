"""Run mechanisms with known motion and joint forces: `python tools/peers/references.py [--device cpu] [-o FILE] [--only TEXT]`.

All joints are exact, integrator and kappa are the default ones. Every mechanism runs with the
step that its bounds need and, where that takes no more than 5000 steps, with twice that step too, which shows the
order. Writes a JSON file and prints a table: step, largest errors of positions, velocities and forces, order,
residuals of the joints, Newton iterations and milliseconds per step. Exit status 1 if an error is above its bound.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TOOLS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOOLS / "peers"), str(TOOLS), str(TOOLS.parent)]

from reference_cases import CASES  # noqa: E402
from reference_runs import KINDS, Outcome, run, worst  # noqa: E402
from results_file import write_results  # noqa: E402

TOLERANCE = 1e-7
SOLVER = {"tolerance": TOLERANCE, "integrator": "generalized_alpha"}
LONG = 5000
"""Steps beyond which a mechanism is not run with twice the step as well."""


@dataclass(frozen=True)
class Plan:
    """A run of the table: case, step [s], end [s], largest position error [m or rad] and relative force error."""

    case: str
    h: float
    until: float
    position: float = 1e-4
    force: float = 1e-3


PLANS = (
    Plan("spherical chain", 0.0025, 1.0),
    Plan("hinges and a slider", 0.0025, 0.25),
    Plan("A01 pendulum", 0.0025, 0.5),
    Plan("A01 pendulum", 0.0005, 10.0, position=2e-4),
    Plan("A02, N = 2", 0.0005, 10.0, position=1.5e-3),
    Plan("A02, N = 40", 0.0004, 10.0, position=1e-3),
    Plan("four-bar", 0.0025, 1.0),
    Plan("four-bar", 0.001, 2.0),
    Plan("double pendulum (0.1, 0.2)", 0.001, 5.0),
    Plan("double pendulum (1.0, -0.5)", 0.001, 2.0),
    Plan("capsule on a hinge, damping 0", 0.0005, 2.0),
    Plan("capsule on a hinge, damping 29", 0.0005, 2.0),
    Plan("linkage", 0.0025, 0.25),
    Plan("linkage, compliant", 0.0025, 0.25, position=2e-3),
)


def row_of(plan: Plan, h: float, outcome: Outcome) -> dict:
    """One run as a row of the file."""
    return {
        "case": plan.case,
        "h": h,
        "tolerance": TOLERANCE,
        "until": plan.until,
        "steps": outcome.steps,
        "worst": {kind: worst(outcome.errors, kind) for kind in KINDS},
        "bounds": {"position": plan.position, "force": plan.force},
        "residual": list(outcome.residual),
        "newton_mean": round(outcome.newton, 3),
        "ms_mean": round(outcome.milliseconds, 3),
        "errors": {str(time): row for time, row in outcome.errors.items()},
    }


def holds(row: dict) -> bool:
    """Whether the errors are within their bounds."""
    return all(row["worst"][kind] <= bound for kind, bound in row["bounds"].items())


def table(rows: list[dict]) -> str:
    """Markdown table of the rows."""
    lines = [
        "| mechanism | h [s] | t [s] | position | velocity | force (relative) | order | residual [m], [rad] "
        "| Newton | ms/step | bounds |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        errors = " | ".join(f"{row['worst'][kind]:.1e}" if row["worst"][kind] else "" for kind in KINDS)
        order = f"{row['order']:.2f}" if "order" in row else ""
        residual = ", ".join(f"{size:.0e}" for size in row["residual"])
        lines.append(
            f"| {row['case']} | {row['h']:g} | {row['until']:g} | {errors} | {order} | {residual} "
            f"| {row['newton_mean']:.2f} | {row['ms_mean']:.2f} | {'hold' if holds(row) else 'FAIL'} |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="part of a mechanism's name")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    rows = []
    for plan in (plan for plan in PLANS if options.only in plan.case):
        case = CASES[plan.case]
        row = row_of(plan, plan.h, run(case, plan.h, plan.until, options.device, **SOLVER))
        if row["steps"] <= LONG:
            coarse = run(case, 2.0 * plan.h, plan.until, options.device, **SOLVER)
            row["worst_at_2h"] = {kind: worst(coarse.errors, kind) for kind in KINDS}
            row["order"] = float(np.log2(row["worst_at_2h"]["position"] / row["worst"]["position"]))
        rows.append(row)
        print(table([row]).splitlines()[-1], flush=True)
    if not rows:
        print(f"no mechanism has '{options.only}' in its name", file=sys.stderr)
        return 2
    print(table(rows))
    if options.output:
        write_results(
            options.output,
            options.device,
            rows,
            integrator=SOLVER["integrator"],
            enforcement="exact",
            tolerance_m_per_s=TOLERANCE,
            kappa="default",
        )
    return 0 if all(map(holds, rows)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
