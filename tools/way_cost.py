"""What it costs to prove that ways are free: `python tools/way_cost.py [--device cpu] [-o FILE]`.

A pile of 200 turned boxes while it falls together, and the wrecking ball through its impact: the share of the processor's time
of the steps that is spent on the ways between states (`abd.backends.protocol.Ways.free_way`), those that Newton's iterates
are asked for included. Exit status 1 if a share is above 10 %.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import process_time

import numpy as np

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS.parent)]

from results_file import write_results  # noqa: E402

import abd  # noqa: E402

MOST = 0.1


def pile(count: int = 200) -> abd.Scene:
    """Turned boxes of 0.2 m in columns above the ground."""
    scene, rng = abd.Scene(solver={"dt": 0.01}), np.random.default_rng(0)
    scene.add_material("stone", mu=0.4)
    scene.add_body("floor", half_space={}, material="stone")
    for k in range(count):
        place = (0.36 * (k % 5), 0.36 * (k // 5 % 5), 0.2 + 0.36 * (k // 25))
        turn = {"axis": rng.normal(size=3).tolist(), "degrees": float(rng.uniform(0.0, 60.0))}
        scene.add_body(f"box {k}", box=(0.2, 0.2, 0.2), position=place, axis_angle=turn, material="stone")
    return scene


def measured(name: str, simulation: abd.Simulation, skipped: int, steps: int) -> dict:
    """Times [s of the processor] of some steps, and of the ways in them."""
    ways, spent = simulation.backend.ways, [0.0]
    free_way = ways.free_way

    def timed(*arguments):
        begin = process_time()
        try:
            return free_way(*arguments)
        finally:
            spent[0] += process_time() - begin

    for _ in range(skipped):
        simulation.step()
    ways.free_way, begin = timed, process_time()
    reports = [simulation.step() for _ in range(steps)]
    total = process_time() - begin
    row = {"scene": name, "steps": steps, "newton": sum(r.newton_iterations for r in reports)}
    row |= {"seconds": round(total, 3), "ways": round(spent[0], 4), "share": round(spent[0] / total, 4)}
    print(row, flush=True)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    ball = TOOLS.parent / "scenes" / "wrecking_ball.toml"
    rows = [
        measured("pile of 200", abd.Simulation(pile(), device=options.device), 20, 60),
        measured("wrecking ball", abd.Simulation(ball, device=options.device), 60, 60),
    ]
    if options.output:
        write_results(options.output, options.device, rows)
    return int(any(row["share"] > MOST for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
