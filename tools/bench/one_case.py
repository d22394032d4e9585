"""One benchmark case in a process of its own: `python tools/bench/one_case.py FAMILY SIZE [--device cpu]`.

Prints its rows as JSON, one line. `tools/bench/run.py` runs many of these. With `--profile` a row says where the time of
further steps goes, as `abd bench --profile` does for scene files.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "peers"), str(HERE.parent.parent)]

from families import FAMILIES, Family  # noqa: E402

from abd import Simulation  # noqa: E402
from abd.commands import bench, profile  # noqa: E402
from abd.errors import AbdError  # noqa: E402


def case(
    family: Family,
    size: float,
    device: str,
    steps: int,
    variants: list[str] | None = None,
    overrides: list[str] | None = None,
    limit: float = np.inf,
    profiled: bool = False,
) -> list[dict]:
    """Rows of the variants of a size, all by default, and of their ratios.

    Every row has ``family, unit, size, variant, device`` beside `abd.commands.bench.Row` and the time [s] to build the scene and
    the simulation, and ``profile`` if asked for; a ratio has ``ratio``, of the times of all steps, and ``of``.
    """
    about = {"family": family.name, "unit": family.unit, "size": size, "device": device}
    simulations, built = {}, {}
    for variant, build in family.build(size).items():
        if variants and variant not in variants:
            continue
        begin = perf_counter()
        scene = build()
        simulations[variant] = Simulation(scene.override(overrides) if overrides else scene, device=device)
        built[variant] = round(perf_counter() - begin, 3)
    runs = bench.advance(simulations, steps, limit=limit)
    rows = []
    for variant, simulation in simulations.items():
        name = f"{family.name} {size:g} {variant}".strip()
        row = bench.summary(name, simulation, runs[variant]).as_json()
        rows.append({**about, "variant": variant, "built_seconds": built[variant], **row})
        if profiled and not row["failure"]:
            rows[-1]["profile"] = profile.profile(simulation, steps, profile.ceilings_of(simulation))
    for title, (above, below) in family.ratios.items():
        seconds = [runs[variant].seconds for variant in (above, *below) if variant in runs]
        both = min(map(len, seconds), default=0)
        if both and len(seconds) == 1 + len(below):
            first, *others = (sum(one[:both]) for one in seconds)
            rows.append({**about, "of": title, "ratio": round(first / sum(others), 4)})
    return rows


def main() -> int:
    """Exit status: 0 done, 1 a scene could not be built or failed; the rows say why."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("size", type=float)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, help="timed steps [the family's]")
    parser.add_argument("--limit", type=float, default=np.inf, help="seconds after which no further step is begun")
    parser.add_argument("--variant", action="append", help="only this variant; may be repeated")
    parser.add_argument("--profile", action="store_true", help="stages and kernels of further steps")
    parser.add_argument("-o", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    family = FAMILIES[options.family]
    steps = options.steps or family.steps(options.size)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            rows = case(
                family,
                options.size,
                options.device,
                steps,
                options.variant,
                options.overrides,
                options.limit,
                options.profile,
            )
    except (AbdError, OSError) as error:
        rows = [
            {"family": family.name, "unit": family.unit, "size": options.size, "device": options.device, "variant": ""}
            | {"failure": str(error)}
        ]
    print(json.dumps(rows))
    return 1 if any(row.get("failure") for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
