"""Benchmarks: `python tools/bench/run.py [--scenes chain:10,100 net ...] [--devices cpu] [--quick] [--out F]`.

Scenes x sizes x devices; every case in a process of its own (`one_case.py`), all cases in turn, `--repeats` times over,
so that what else the machine does falls on all of them. Kernels are compiled before anything is timed. Rows are medians
over repeats; each has the tolerance that was reached beside its times. `compare.py` compares two files, `plot.py` draws.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "peers"), str(HERE.parent.parent)]

from families import FAMILIES, QUICK_STEPS, requested  # noqa: E402
from results_file import write_results  # noqa: E402

from abd.commands.bench import COLUMNS, WARM_UP, table  # noqa: E402

TIMES = ("ms", "ms_p95", "ms_mean", "ms_solving", "ms_per_newton", "built_seconds")
Case = tuple[str, float, str]
"""Family, size, device."""


def run_case(case: Case, limit: float, further: list[str]) -> list[dict]:
    """Rows of a case; one that says why, where it fails or takes longer than three times `limit` [s].

    `further` are options of `one_case.py`.
    """
    family, size, device = case
    command = [sys.executable, str(HERE / "one_case.py"), family, repr(size), "--device", device]
    command += ["--limit", str(limit), *further]
    failed = {"family": family, "unit": FAMILIES[family].unit, "size": size, "device": device, "variant": ""}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=3.0 * limit)
    except subprocess.TimeoutExpired:
        return [{**failed, "failure": f"not done after {3.0 * limit:g} s"}]
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        return [{**failed, "failure": last[0]}]


def merged(repeats: list[list[dict]]) -> list[dict]:
    """Rows of the repeats of a case as one: medians of times and ratios, the worst of what was reached."""
    groups: dict[tuple, list[dict]] = {}
    for one in (row for repeat in repeats for row in repeat):
        groups.setdefault((one.get("variant"), one.get("of")), []).append(one)
    rows = []
    for alike in groups.values():
        row = dict(alike[-1])
        for name in (*TIMES, "ratio"):
            values = [one[name] for one in alike if one.get(name) is not None]
            if values:
                row[name] = round(median(values), 4)
                row[f"{name}_of_repeats"] = values
        for name, worst in (("reached", max), ("min_gap", min), ("memory", max), ("device_memory", max)):
            values = [one[name] for one in alike if one.get(name) is not None]
            if values:
                row[name] = worst(values)
        row["failure"] = next((one["failure"] for one in alike if one.get("failure")), "")
        rows.append(row)
    return rows


def warm(devices: list[str]) -> None:
    """Compile all kernels, and load them once, before anything is timed."""
    for device in devices:
        for family in ("chain", "stack"):
            run_case((family, 10.0, device), 600.0, ["--steps", "1"])


def measure(
    cases: list[Case],
    repeats: int,
    limit: float,
    budget: float,
    further: list[str],
    keep: Callable,
) -> list[dict]:
    """Rows of all cases; progress on standard error. `keep` is given the rows so far after every case.

    A repeat that would end after `budget` seconds, if it takes as long as the longest so far, is left out; the first is
    made in any case.
    """
    found: dict[Case, list[list[dict]]] = {case: [] for case in cases}
    start, longest = perf_counter(), 0.0
    for turn in range(repeats):
        turned = perf_counter()
        if turn and turned - start + longest > budget:
            print(f"{turn} of {repeats} repeats fit into {budget:g} s", file=sys.stderr)
            break
        for case in cases:
            begin = perf_counter()
            rows = run_case(case, limit, further)
            found[case].append(rows)
            told = ", ".join(told_of(row) for row in rows)
            seconds = perf_counter() - begin
            print(f"{turn + 1}/{repeats} {case[0]} {case[1]:g} {case[2]}: {told} [{seconds:.0f} s]", file=sys.stderr)
            rows = [row for case in cases for row in merged(found[case])]
            keep(rows)
        longest = max(longest, perf_counter() - turned)
    return rows


def told_of(row: dict) -> str:
    """A row in a few words."""
    if "ratio" in row:
        return f"{row['of']} {row['ratio']:.2f}"
    name = f"{row['variant']} " if row["variant"] else ""
    return name + (f"{row['ms']:.3g} ms/step" if row.get("ms") is not None else row.get("failure", ""))


def text(rows: list[dict]) -> str:
    """The table of all rows, and the ratios below it."""
    timed = [
        row | {"scene": row.get("scene", f"{row['family']} {row['size']:g}")} for row in rows if "ratio" not in row
    ]
    timed = [row | {"bodies": row.get("bodies", 0), "joints": row.get("joints", 0)} for row in timed]
    columns = (*COLUMNS, ("MiB", "{memory:.0f}"), ("on device", "{device_memory:.0f}"))
    lines = [table([{"steps": 0, **row} for row in timed], columns)]
    lines += [f"{row['family']} {row['size']:g}: {row['of']} {row['ratio']:.3f}" for row in rows if "ratio" in row]
    return "\n".join(lines)


def main() -> int:
    """Exit status: 0 done, 1 some case failed, and its row says why."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every = [(name, ()) for name in FAMILIES]
    kinds = f"FAMILY or FAMILY:SIZE,...; families: {', '.join(FAMILIES)} [all, in their own sizes]"
    parser.add_argument("--scenes", nargs="+", type=requested, default=every, metavar="FAMILY", help=kinds)
    parser.add_argument("--sizes", nargs="+", type=float, help="of families that come without")
    parser.add_argument("--devices", nargs="+", default=["cpu"])
    parser.add_argument("--steps", type=int, help="timed steps [each family's own]")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds after which a case begins no further step")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds into which the repeats should fit")
    parser.add_argument("--quick", action="store_true", help="small sizes, few steps, once: minutes")
    parser.add_argument("--variant", action="append", help="only this variant; may be repeated")
    parser.add_argument("--profile", action="store_true", help="stages and kernels of further steps, in the JSON file")
    parser.add_argument("--warm", action="store_true", help="kernels are compiled already")
    parser.add_argument("-o", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    options = parser.parse_args()
    if options.quick:
        options.steps, options.repeats = options.steps or QUICK_STEPS, 1
    cases = []
    for name, sizes in options.scenes:
        family = FAMILIES[name]
        for size in sizes or options.sizes or (family.quick if options.quick else family.sizes):
            cases += [(name, float(size), device) for device in options.devices]
    if not options.warm:
        warm(options.devices)
    asked = [f"{family} {size:g}" for family, size, _ in cases]
    facts = {"repeats": options.repeats, "warm_up": WARM_UP, "overrides": options.overrides, "asked": asked}
    further = ["--steps", str(options.steps)] if options.steps else []
    further += [word for variant in options.variant or () for word in ("--variant", variant)]
    further += [word for override in options.overrides for word in ("-o", override)]
    further += ["--profile"] * options.profile

    def keep(rows: list[dict]) -> None:
        if options.out:
            write_results(options.out, " ".join(options.devices), rows, **facts)

    rows = measure(cases, options.repeats, options.limit, options.budget, further, keep)
    print(text(rows))
    return 1 if any(row.get("failure") for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
