"""Arguments that several commands take."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable


def positive(what: str) -> Callable[[str], float]:
    """Return a parser of a positive, finite number; error messages call the number `what`."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0.0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"{text!r} is not a positive {what}")
        return value

    return read


def count(what: str) -> Callable[[str], int]:
    """Return a parser of a positive integer; error messages call it a number of `what`."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < 1:
            raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of {what}")
        return int(text)

    return read


def seed(text: str) -> int:
    """Parse a random seed, an integer that is not negative."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def scene_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select a scene and control its import."""
    parser.add_argument("scene", metavar="SCENE", help="path, or name of a shipped scene")
    override_argument(parser)
    parser.add_argument(
        "--allow-overlaps",
        action="store_true",
        help="disable contact between bodies that overlap at the start",
    )
    parser.add_argument(
        "--allow-code", action="store_true", help="run the Python files that the scene names for its joint types"
    )
    imported = parser.add_argument_group("imported formats", "URDF (xacro too), MJCF and USD")
    imported.add_argument(
        "--missing-meshes",
        choices=("fail", "boxes"),
        default="fail",
        help="boxes: use boxes of equal inertia instead [fail]",
    )
    imported.add_argument(
        "--assets",
        action="append",
        default=[],
        metavar="DIR",
        help="additional folder to search for meshes and packages; may be repeated",
    )
    imported.add_argument("--keyframe", default="", metavar="NAME", help="name or number of the initial pose")
    imported.add_argument(
        "--free-base", action="store_true", help="let the root link move freely; it is fixed by default"
    )


def scene_options(arguments) -> dict:
    """Return the arguments of `abd.load` among the arguments of a command."""
    names = "overrides", "allow_overlaps", "allow_code", "missing_meshes", "assets", "keyframe", "free_base"
    return {"source": arguments.scene} | {name: getattr(arguments, name) for name in names}


def length_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that set the length of a run."""
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--steps", type=count("steps"), metavar="N", help="number of steps [the scene's]")
    length.add_argument("--duration", type=positive("time in seconds"), metavar="S", help="simulated time in seconds")


def device_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument that selects the device."""
    parser.add_argument("--device", default="auto", metavar="NAME", help="auto, cpu, cuda, cuda:N or numpy [auto]")


def override_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument that overrides values of the scene."""
    parser.add_argument(
        "-o",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a value of the scene, such as solver.dt=0.005; may be repeated",
    )
