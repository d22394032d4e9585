"""`abd plot`: figures of a run, or of two runs in one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path


def add(commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "plot",
        help="draw energies, momenta, gaps, joints, forces, iterations and times of one or two runs",
        description="Draw figures of a run, or of two in one: energies, momenta, smallest gap, residuals, coordinates, forces "
        "and torques of joints, contact forces if they are stored, iterations, and times of the stages of a step.",
    )
    parser.add_argument("run", metavar="RUN", help="directory of a run")
    parser.add_argument("other", metavar="RUN2", nargs="?", help="another one, with broken lines")
    parser.add_argument("--format", choices=("svg", "png", "pdf"), default="svg", help="of the files [svg]")
    parser.add_argument("--out", metavar="DIR", help="where to put them [the directory of RUN]")
    parser.set_defaults(command=plot)


def plot(arguments) -> int:
    """Run the command; figures of two runs have names of their own, so that those of one stay."""
    runs = [arguments.run, *([arguments.other] if arguments.other else [])]
    for path in draw_all(runs, arguments.format, arguments.out):
        print(path)
    return 0


def draw_all(runs: list[str | Path], suffix: str = "svg", out: str | Path | None = None) -> Iterator[Path]:
    """Draw all figures that one or two runs have data for; yields the files as they are written.

    Args:
        runs: directories of runs.
        suffix: svg, png or pdf.
        out: folder of the figures, by default the directory of the first run.
    """
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
