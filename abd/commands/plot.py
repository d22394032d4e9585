"""`abd plot`: figures of a run, or of two beside each other."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path


def add(commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "plot",
        help="draw energies, momenta, gaps, joints, forces, iterations and times of a run, or of two",
        description="Draw figures of a run, or of two beside each other: energies, momenta, smallest gap, residuals and "
        "coordinates of joints, contact forces where they are stored, iterations, and times of the stages of a step.",
    )
    parser.add_argument("run", metavar="RUN", help="directory of a run")
    parser.add_argument("other", metavar="RUN2", nargs="?", help="another one, with broken lines")
    parser.add_argument("--format", choices=("svg", "png", "pdf"), default="svg", help="of the files [svg]")
    parser.add_argument("--out", metavar="DIR", help="where to put them [the directory of RUN]")
    parser.set_defaults(command=plot)


def plot(arguments) -> int:
    """Run the command; figures of two runs have names of their own, so that those of one stay."""
    from abd.io.plots import FIGURES, draw
    from abd.io.trajectory import Trajectory

    with ExitStack() as open_files:
        runs = [arguments.run, *([arguments.other] if arguments.other else [])]
        trajectories = [open_files.enter_context(Trajectory(run)) for run in runs]
        for one in trajectories:
            one.verify()
        folder = Path(arguments.out) if arguments.out else trajectories[0].path.parent
        folder.mkdir(parents=True, exist_ok=True)
        for name in FIGURES:
            target = folder / f"{name}{'-both' if arguments.other else ''}.{arguments.format}"
            if draw(trajectories, name, target):
                print(target)
    return 0
