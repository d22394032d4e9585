"""Time the steps of scenes: `python tools/bench/run.py [SCENE ...] [--old CHECKOUT] [--device cpu]`.

A SCENE is NAME:SIZE of `scenes.py`, a scene file, or the name of a shipped scene. Each run is a separate process. With `--old`,
the runs of two checkouts alternate. The table contains medians over the runs of CPU time and wall time per step [ms], and the
number of Newton iterations in all timed steps. `--page docs/benchmarks.md` writes a page of the documentation.
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
DEFAULT = (
    "chain:20", "chain:1000", "net:8", "four_bar", "robot_arm", "peg", "stack:10", "pile:100", "pile:1000", "wrecking_ball",
)  # fmt: skip
WARM_UP = 3
"""Untimed steps at the start, in which kernels are loaded and launches are recorded."""


def measure(scene: str, device: str, steps: int) -> dict:
    """Return CPU time and wall time per step [ms] and the number of Newton iterations, in this process."""
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
    """Return the results of `measure` in a process that imports `abd` from a checkout.

    Raises:
        RuntimeError: the process failed; the message is its last line of output.
    """
    command = [sys.executable, str(HERE / "run.py"), scene, "--device", device, "--steps", str(steps), "--once"]
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no output"])[-1])
    return json.loads(done.stdout.splitlines()[-1])


def write_page(path: Path, device: str, steps: int, repeats: int, rows: dict[str, tuple[float, float, int]]) -> None:
    """Write a page with CPU time and wall time per step [ms] and Newton iterations of each scene."""
    from abd.commands.bench import circumstances

    facts = circumstances(device)
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items() if version)
    lines = [
        "# Benchmarks",
        "",
        f"Written by `python tools/bench/run.py --steps {steps} --page docs/benchmarks.md` on {facts['date']}: "
        f"{facts['processor']}, {facts['cores']} cores, device `{device}`; {versions}.",
        f"The first {WARM_UP} steps, in which kernels are loaded and launches are recorded, are not timed. Times are medians of "
        f"{repeats} runs. A size after a colon is a number of links, boxes or bodies (`tools/bench/scenes.py`); other names are "
        "[shipped scenes](scenes.md).",
        "",
        "| scene | CPU time per step [ms] | wall time per step [ms] | Newton iterations per step |",
        "|---|---|---|---|",
        *(f"| {scene} | {cpu:.3g} | {wall:.3g} | {newton / steps:.3g} |" for scene, (cpu, wall, newton) in rows.items()),
        "",
    ]
    path.write_text("\n".join(lines), encoding="utf-8")


def main() -> int:
    """Measure and print all scenes; return 1 if a scene failed, else 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenes", nargs="*", default=DEFAULT, metavar="SCENE")
    parser.add_argument("--old", type=Path, help="checkout to compare with")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=20, help="timed steps per run [20]")
    parser.add_argument("--repeats", type=int, default=3, help="runs per scene [3]")
    parser.add_argument("--page", type=Path, help="Markdown file for the results of this checkout")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        print(json.dumps(measure(options.scenes[0], options.device, options.steps)))
        return 0
    checkouts = {"old": options.old.resolve()} if options.old else {}
    checkouts["new"] = HERE.parents[1]
    print(f"{'scene':24} {'':4} {'CPU ms':>10} {'wall ms':>10} {'Newton':>8}")
    failed, results = False, {}
    for scene in options.scenes:
        runs: dict[str, list[dict]] = {name: [] for name in checkouts}
        try:
            for _ in range(options.repeats):
                for name, checkout in checkouts.items():
                    runs[name].append(run(checkout, scene, options.device, options.steps))
        except RuntimeError as error:
            print(f"{scene:24} {error}")
            failed = True
            continue
        for name, rows in runs.items():
            cpu, wall = (median(row[key] for row in rows) for key in ("cpu", "wall"))
            print(f"{scene:24} {name:4} {cpu:10.3f} {wall:10.3f} {rows[0]['newton']:8d}", flush=True)
            results[scene] = cpu, wall, rows[0]["newton"]
    if options.page:
        write_page(options.page, options.device, options.steps, options.repeats, results)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
