"""Time scenes, of two checkouts in turn if asked: `python tools/bench/run.py [SCENE ...] [--old CHECKOUT] [--device cpu]`.

A SCENE is NAME:SIZE of `scenes.py`, a scene file, or the name of a shipped scene. Every run is a process of its own; with
`--old` the runs of both checkouts alternate. Printed are medians over the repeats of the CPU time and wall time of a step [ms],
and the Newton iterations of all timed steps.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

HERE = Path(__file__).resolve().parent
DEFAULT = ("chain:20", "chain:1000", "stack:10", "pile:100", "net:8", "four_bar", "wrecking_ball:575")
WARM_UP = 3
"""Steps before timing, in which kernels are loaded and launches recorded."""


def timed(scene: str, device: str, steps: int) -> dict:
    """Return CPU time and wall time of a step [ms] and the number of Newton iterations, by the `abd` on the path."""
    import abd
    from scenes import scene_of

    simulation = abd.Simulation(scene_of(scene), device=device)
    for _ in range(WARM_UP):
        simulation.step()
    cpu, wall = process_time(), perf_counter()
    newton = sum(simulation.step().newton_iterations for _ in range(steps))
    simulation.state.q  # noqa: B018 - waits for the device
    return {"cpu": 1e3 * (process_time() - cpu) / steps, "wall": 1e3 * (perf_counter() - wall) / steps, "newton": newton}


def run(checkout: Path, scene: str, device: str, steps: int) -> dict:
    """Return what `timed` finds in a process that imports `abd` from a checkout.

    Raises:
        RuntimeError: the process failed; its last line.
    """
    command = [sys.executable, str(HERE / "run.py"), scene, "--device", device, "--steps", str(steps), "--once"]
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no output"])[-1])
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    """Exit status: 0 done, 1 if a scene failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenes", nargs="*", default=DEFAULT, metavar="SCENE")
    parser.add_argument("--old", type=Path, help="checkout to compare with")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        print(json.dumps(timed(options.scenes[0], options.device, options.steps)))
        return 0
    checkouts = {"old": options.old.resolve()} if options.old else {}
    checkouts["new"] = HERE.parents[1]
    print(f"{'scene':24} {'':4} {'CPU ms':>10} {'wall ms':>10} {'Newton':>8}")
    failed = False
    for scene in options.scenes:
        found: dict[str, list[dict]] = {name: [] for name in checkouts}
        try:
            for _ in range(options.repeats):
                for name, checkout in checkouts.items():
                    found[name].append(run(checkout, scene, options.device, options.steps))
        except RuntimeError as error:
            print(f"{scene:24} {error}")
            failed = True
            continue
        for name, rows in found.items():
            cpu, wall = (median(row[key] for row in rows) for key in ("cpu", "wall"))
            print(f"{scene:24} {name:4} {cpu:10.3f} {wall:10.3f} {rows[0]['newton']:8d}", flush=True)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
