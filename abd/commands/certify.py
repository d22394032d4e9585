"""`abd certify`: an independent certificate of a recorded run."""

from __future__ import annotations

import json
import sys

from abd.commands.arguments import count


def add(commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "certify",
        help="check frames and swept paths of a run for intersections, with independent code",
        description="Check a recorded run by code of others (ipctk, exact predicates): no frame in which bodies intersect, "
        "no intersection between frames, all gaps positive, all steps converged. Exit status 1 otherwise.",
    )
    parser.add_argument("run", metavar="RUN", help="directory of a run, or a trajectory file")
    parser.add_argument("--json", action="store_true", help="JSON on standard output")
    parser.add_argument("--every", type=count("frames"), default=1, metavar="K", help="check only every K-th frame [1]")
    parser.set_defaults(command=certify)


def certify(arguments) -> int:
    """Run the command."""
    from abd.certificate import certificate

    try:
        found = certificate.certify(arguments.run, arguments.every)
    except (OSError, KeyError) as error:
        print(f"cannot read {arguments.run}: {error}; RUN is the directory of a run, or its trajectory.h5", file=sys.stderr)
        return 2
    print(json.dumps(found.as_table(), allow_nan=False) if arguments.json else found)
    return 0 if found.ok else 1


def certify_run(directory, machine: bool, quiet: bool) -> int:
    """Certify a run and store the result in its trajectory; `quiet` prints only violations. Returns the exit status."""
    from abd.certificate import certificate

    found = certificate.certify(directory)
    certificate.store(found)
    if machine:
        print(json.dumps({"certificate": found.as_table()}, allow_nan=False))
    elif not (quiet and found.ok):
        print(found)
    return 0 if found.ok else 1
