"""`abd certify`: an independent certificate of a recorded run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from abd.commands.arguments import count

if TYPE_CHECKING:
    from abd.certificate.certificate import Certificate


def add(commands) -> None:
    parser = commands.add_parser(
        "certify",
        help="check frames and swept paths of a run for intersections, with independent code",
        description="Check a recorded run with independent code (ipctk, exact predicates): no intersection in a frame or between "
        "frames, all gaps positive, all steps converged. Exit status 1 otherwise.",
    )
    parser.add_argument("run", metavar="RUN", help="directory of a run, or a trajectory file")
    parser.add_argument("--json", action="store_true", help="JSON on standard output")
    parser.add_argument("--every", type=count("frames"), default=1, metavar="K", help="check only every K-th frame [1]")
    parser.set_defaults(command=certify)


def certify(arguments) -> int:
    found = certified(arguments.run, arguments.every)
    print(json.dumps(found.as_table(), allow_nan=False) if arguments.json else found)
    return 0 if found.ok else 1


def certified(run, every: int = 1) -> Certificate:
    """Verify the hashes of a trajectory and certify the run."""
    from abd.certificate.certificate import certify
    from abd.io.trajectory import Trajectory

    with Trajectory(run) as trajectory:
        trajectory.verify()
        return certify(run, every)


def certify_run(directory, machine: bool, quiet: bool) -> int:
    """Certify a run and store the result in its trajectory; `quiet` prints only violations. Returns the exit status."""
    found = certified(directory)
    store(found)
    if machine:
        print(json.dumps({"certificate": found.as_table()}, allow_nan=False))
    elif not (quiet and found.ok):
        print(found)
    return 0 if found.ok else 1


def store(found: Certificate) -> None:
    """Write a certificate into its trajectory, at /certificate: numbers as attributes, violations as one text each."""
    import h5py

    from abd.io.datasets import SPARE, reserve
    from abd.io.trajectory import trajectory_path

    with h5py.File(trajectory_path(found.path), "r+", locking=False) as file:
        reserve(file, SPARE + sum(len(str(violation)) + 16 for violation in found.violations))
        file.pop("certificate", None)
        group = file.create_group("certificate")
        for name, value in found.as_table().items():
            if name not in ("path", "violations"):
                group.attrs[name] = float("inf") if value is None else value
        group["violations"] = [str(violation).encode() for violation in found.violations]
