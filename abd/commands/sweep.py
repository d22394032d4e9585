"""`abd sweep`: run a scene with many parameter values in parallel."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from abd.commands.arguments import count, device_argument, length_arguments, override_argument, seed


def add(commands) -> None:
    parser = commands.add_parser(
        "sweep",
        help="run a scene with many parameter values in parallel",
        description="Run a scene with all combinations of the values of keys and collect the results in DIR/table.parquet. "
        "Repeat the command to run only the missing points.",
    )
    parser.add_argument("scene", metavar="SCENE", help="path, or name of a shipped scene")
    parser.add_argument(
        "--grid", action="append", nargs="+", required=True, metavar="KEY=VALUES",
        help="a:b:n for n equidistant numbers, v1,v2,... for values, a:b for a range that --sample samples; "
        "may be repeated",
    )  # fmt: skip
    override_argument(parser)
    device_argument(parser)
    parser.add_argument(
        "--sample",
        type=count("samples"),
        metavar="N",
        help="points of the ranges, by a Latin hypercube",
    )
    parser.add_argument("--sobol", action="store_true", help="use a Sobol sequence for --sample")
    parser.add_argument("--seed", type=seed, default=0, metavar="S", help="random seed of --sample [0]")
    parser.add_argument("--repeat", type=count("repetitions"), default=1, metavar="K", help="runs of each point [1]")
    length_arguments(parser)
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--workers", type=count("workers"), metavar="N", help="processes with one thread each [all processors]"
    )
    where.add_argument(
        "--scheduler", metavar="ADDRESS", help="Dask scheduler whose workers run it, such as tcp://host:8786"
    )
    parser.add_argument("--out", metavar="DIR", help="folder of the sweep [runs/SCENE-sweep]")
    parser.add_argument("--resume", action="store_true", help="fail unless DIR already contains this sweep")
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    parser.set_defaults(command=sweep)


def sweep(arguments) -> int:
    """Run the command; exit status 1 if a run failed."""
    from abd.sweeps.parameters import SweepError, read_parameters
    from abd.sweeps.sweep import REQUEST, TABLE
    from abd.sweeps.sweep import sweep as run_sweep

    source = Path(arguments.scene)
    out = Path(arguments.out or Path("runs") / f"{source.stem}-sweep")
    if arguments.resume and not (out / REQUEST).exists():
        raise SweepError(f"{out} contains no sweep to resume; give the folder of the sweep with --out")
    try:
        table = run_sweep(
            source.absolute() if source.exists() else arguments.scene,
            read_parameters(text for texts in arguments.grid for text in texts),
            out=out, duration=arguments.duration, steps=arguments.steps, device=arguments.device,
            overrides=arguments.overrides, sample=arguments.sample, method="sobol" if arguments.sobol else "lhs",
            seed=arguments.seed, repeat=arguments.repeat, workers=arguments.workers, scheduler=arguments.scheduler,
            progress=not arguments.quiet,
        )  # fmt: skip
    except KeyboardInterrupt:
        print(f"interrupted; repeat the command to run the missing points in {out}", file=sys.stderr)
        return 130
    failed = table[table["status"] == "failed"]
    for row in failed.itertuples():
        print(f"{row.run} failed: {row.failure}\n  {row.command}", file=sys.stderr)
    if not arguments.quiet:
        print(f"{len(table) - len(failed)} of {len(table)} runs done, table in {out / TABLE}")
        print(f"figure:   abd plot {shlex.quote(str(out))} --column newton_mean")
    return 1 if len(failed) else 0
