"""Run random lattices and clutter: `python tools/lattices.py [--seeds 300] [--only lattice] [--device cpu] [-o FILE]`.

Counts the scenes that stop, with the reason of the step that failed ("time" where one scene takes longer than `--limit`
seconds of the processor), and the steps of more than 100 Newton iterations. Exit status 1 if more than one scene of a
kind in a hundred stops.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from time import process_time

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS.parent)]

from lattice_scenes import SCENES  # noqa: E402
from results_file import write_results  # noqa: E402

from abd.api.simulation import Simulation  # noqa: E402
from abd.errors import StepFailure  # noqa: E402
from abd.scene.compile.compile import compile_scene  # noqa: E402
from abd.scene.schema.schema import SceneSpec  # noqa: E402

STEPS = 50
MANY = 100
"""Newton iterations beyond which a step counts as a hard one."""


class OutOfTime(Exception):
    """A scene took too long."""


@contextmanager
def time_limit(seconds: int):
    """Raise `OutOfTime` after so many seconds of the processor."""

    def stop(*_):
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def run(kind: str, seed: int, device: str, steps: int, limit: int) -> dict:
    """One scene: how it ended, and what it took."""
    spec = SceneSpec.model_validate(SCENES[kind](seed))
    model = compile_scene(spec)
    row = {"kind": kind, "seed": seed, "bodies": len(model.bodies), "dt": model.settings.dt, "stop": "", "message": ""}
    newton, hard, gap = [], 0, float("inf")
    began = process_time()
    try:
        with time_limit(limit):
            sim = Simulation(model, device)
            for _ in range(steps):
                report = sim.step()
                newton.append(report.newton_iterations)
                gap = min(gap, report.min_gap)
    except StepFailure as failure:
        row |= {"stop": failure.reason, "message": str(failure)}
    except OutOfTime:
        row |= {"stop": "time", "message": f"more than {limit} s after {len(newton)} steps"}
    hard = sum(count > MANY for count in newton)
    row |= {"steps": len(newton), "newton": sum(newton), "most": max(newton, default=0), "hard": hard}
    row |= {"min_gap": gap if gap < float("inf") else None, "cpu_seconds": round(process_time() - began, 2)}
    return row


def line(row: dict) -> str:
    """One row of the table."""
    return (
        f"| {row['kind']} {row['seed']} | {row['bodies']} | {1e3 * row['dt']:.3g} | {row['steps']} | {row['newton']} "
        f"| {row['most']} | {row['hard']} | {row['cpu_seconds']:.1f} | {row['stop']} {row['message']} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=300, help="scenes of each kind [300]")
    parser.add_argument("--first", type=int, default=0, help="the first seed [0]")
    parser.add_argument("--only", choices=sorted(SCENES), help="one kind of scenes")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"steps of each scene [{STEPS}]")
    parser.add_argument("--limit", type=int, default=120, help="seconds of the processor for one scene [120]")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    rows, bad = [], False
    print("| scene | bodies | dt [ms] | steps | Newton | most | hard | CPU [s] | stop |\n|" + 9 * "---|")
    for kind in [options.only] if options.only else SCENES:
        for seed in range(options.first, options.first + options.seeds):
            rows.append(run(kind, seed, options.device, options.steps, options.limit))
            print(line(rows[-1]), flush=True)
        these = [row for row in rows if row["kind"] == kind]
        stops = Counter(row["stop"] for row in these if row["stop"])
        print(
            f"{kind}: {stops.total()} of {len(these)} stop {dict(stops)}, {sum(row['hard'] for row in these)} of "
            f"{sum(row['steps'] for row in these)} steps took more than {MANY} iterations"
        )
        bad |= 100 * stops.total() > len(these)
    if options.output:
        write_results(options.output, options.device, rows, steps=options.steps)
    return int(bad)


if __name__ == "__main__":
    raise SystemExit(main())
