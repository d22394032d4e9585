"""Cost of joints: `python tools/bench/joints.py [--device cpu] [--steps 150] [--json FILE]`.

Chains of n links, one end on the world, fall from the horizontal; both enforcements advance in turn, a step each, in one
process, so that what else the machine does falls on both. Prints the median time per step, its stages and the Newton
iterations, for hinges (linear rows), for universal joints (a measured row) and for hinges with ranges, friction and
drives.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median

import numpy as np

TOOLS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOOLS), str(TOOLS.parent)]

from results_file import write_results  # noqa: E402

import abd  # noqa: E402

WARM_UP = 5
DRIVEN = {
    "range": (-2.5, 2.5),
    "friction": 0.1,
    "drive": {"mode": "pd", "target": "0.2*sin(5*t)", "stiffness": 50.0, "damping": 2.0, "effort": 40.0},
}
KINDS = {"hinge": ("hinge", {}), "universal": ("universal", {}), "driven hinge": ("hinge", DRIVEN)}


def chain(kind: str, links: int, enforcement: str) -> abd.Scene:
    """Box links 1 x 0.1 x 0.1 m of 10 kg."""
    scene, parent = abd.Scene(solver={"dt": 0.01}), abd.WORLD
    type, keys = KINDS[kind]
    for k in range(links):
        name = scene.add_body(f"link {k}", box=(1.0, 0.1, 0.1), position=(k + 0.5, 0.0, 0.0))
        scene.add_joint(
            type, f"joint {k}", parent, name, anchor=(k, 0.0, 0.0), axis=(0.0, 1.0, 0.0), enforcement=enforcement, **keys
        )
        parent = name
    return scene


def measure(kind: str, links: int, steps: int, device: str) -> list[dict]:
    """One row per enforcement."""
    modes = ("penalty", "exact")
    runs = {mode: abd.Simulation(chain(kind, links, mode), device=device) for mode in modes}
    reports: dict[str, list] = {mode: [] for mode in modes}
    for _ in range(steps + WARM_UP):
        for mode, simulation in runs.items():
            reports[mode].append(simulation.step())
    rows = []
    for mode in modes:
        kept = reports[mode][WARM_UP:]
        stages = {name: round(1e3 * median(r.stages.get(name, 0.0) for r in kept), 3) for name in kept[0].stages}
        rows.append(
            {
                "joints": kind,
                "links": links,
                "enforcement": mode,
                "median_ms_per_step": round(1e3 * median(r.wall_seconds for r in kept), 3),
                "newton_per_step": round(float(np.mean([r.newton_iterations for r in kept])), 3),
                "largest_residual": [max(r.max_joint_residual[k] for r in kept) for k in (0, 1)],
                "stages_ms": stages,
            }
        )
    rows[1]["ratio_to_penalty"] = round(rows[1]["median_ms_per_step"] / rows[0]["median_ms_per_step"], 3)
    return rows


def main() -> int:
    """Print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--links", type=int, nargs="+", default=[1, 5, 20, 100])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    for kind in KINDS:
        for links in arguments.links:
            for row in measure(kind, links, arguments.steps, arguments.device):
                rows.append(row)
                ratio = f"  x {row['ratio_to_penalty']:.2f}" if "ratio_to_penalty" in row else ""
                print(
                    f"{kind:13} {links:5} {row['enforcement']:8} {row['median_ms_per_step']:8.2f} ms/step "
                    f"{row['newton_per_step']:6.2f} Newton/step  residual {row['largest_residual'][0]:.1e} m "
                    f"{row['largest_residual'][1]:.1e} rad{ratio}",
                    flush=True,
                )
    if arguments.json:
        facts = {"steps": arguments.steps, "dt_s": 0.01, "tolerance_m_per_s": 1e-3}
        write_results(arguments.json, arguments.device, rows, **facts)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
