"""`abd plot`: figures of a run, or of two runs in one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path


def add(commands) -> None:
    parser = commands.add_parser(
        "plot",
        help="draw energies, momenta, gaps, joints, forces, iterations and times of one or two runs, or a sweep",
        description="Draw figures of one or two runs: energies, momenta, smallest gap, residuals, coordinates, forces "
        "and torques of joints, contact forces and sensors if they are stored, iterations, and times of the stages of a step. "
        "Of a sweep, draw a column of its table over one or two parameters.",
    )
    parser.add_argument("run", metavar="RUN", help="directory of a run, or of a sweep")
    parser.add_argument("other", metavar="RUN2", nargs="?", help="second run, drawn with dashed lines")
    parser.add_argument("--format", choices=("svg", "png", "pdf"), default="svg", help="file format [svg]")
    parser.add_argument("--out", metavar="DIR", help="folder of the figures [the directory of RUN]")
    parser.add_argument(
        "--column", metavar="NAME", help="column of a sweep's table, drawn over its parameters [wall_seconds]"
    )
    parser.set_defaults(command=plot)


def plot(arguments) -> int:
    """Run the command. Figures of two runs have separate file names and do not replace those of one run."""
    from abd.sweeps.sweep import REQUEST

    if (Path(arguments.run) / REQUEST).is_file():
        from abd.sweeps.figure import draw_sweep

        print(draw_sweep(arguments.run, arguments.column or "wall_seconds", arguments.format, arguments.out))
        return 0
    runs = [arguments.run, *([arguments.other] if arguments.other else [])]
    for path in draw_all(runs, arguments.format, arguments.out):
        print(path)
    return 0


def draw_all(runs: list[str | Path], suffix: str = "svg", out: str | Path | None = None) -> Iterator[Path]:
    """Draw all figures for which one or two runs have data, by default next to the first; yield the written files."""
    from abd.io.plots import FIGURES, draw
    from abd.io.trajectory import Trajectory

    with ExitStack() as open_files:
        trajectories = [open_files.enter_context(Trajectory(run)) for run in runs]
        for one in trajectories:
            one.verify()
        folder = Path(out) if out else trajectories[0].path.parent
        folder.mkdir(parents=True, exist_ok=True)
        for name in FIGURES:
            target = folder / f"{name}{'-both' if len(runs) > 1 else ''}.{suffix}"
            if draw(trajectories, name, target):
                yield target
