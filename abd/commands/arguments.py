"""Arguments that several commands take."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable


def positive(what: str) -> Callable[[str], float]:
    """Reader of a positive, finite number, called `what` where it is none."""

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
    """Reader of a positive whole number of `what`."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < 1:
            raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of {what}")
        return int(text)

    return read


def scene_arguments(parser: argparse.ArgumentParser) -> None:
    """Which scene, and how it is read."""
    parser.add_argument("scene", metavar="SCENE", help="path, or name of a shipped scene")
    override_argument(parser)
    parser.add_argument(
        "--allow-overlaps",
        action="store_true",
        help="let bodies that overlap at the start pass through one another, by contact filters",
    )
    parser.add_argument(
        "--allow-code", action="store_true", help="run the Python files that the scene names for its joint types"
    )
    imported = parser.add_argument_group("imported formats", "URDF (xacro too), MJCF and USD")
    imported.add_argument(
        "--missing-meshes", choices=("fail", "boxes"), default="fail", help="boxes: replace them by boxes of the inertia [fail]"
    )
    imported.add_argument(
        "--assets",
        action="append",
        default=[],
        metavar="DIR",
        help="where meshes and packages may be, in addition to the folder of the file; may be repeated",
    )
    imported.add_argument("--keyframe", default="", metavar="NAME", help="name or number of the pose to start in")
    imported.add_argument("--free-base", action="store_true", help="free the root link, which is fixed otherwise")


def scene_of(arguments):
    """The scene that the arguments of a command name."""
    from abd.scene.scene import load

    return load(
        arguments.scene,
        arguments.overrides,
        allow_overlaps=arguments.allow_overlaps,
        allow_code=arguments.allow_code,
        **import_options(arguments),
    )


def import_options(arguments) -> dict:
    """Options of imported formats among the arguments of a command."""
    return {name: getattr(arguments, name) for name in ("missing_meshes", "assets", "keyframe", "free_base")}


def device_argument(parser: argparse.ArgumentParser) -> None:
    """Where the arithmetic happens."""
    parser.add_argument("--device", default="auto", metavar="NAME", help="auto, cpu, cuda, cuda:N or numpy [auto]")


def override_argument(parser: argparse.ArgumentParser) -> None:
    """Other values of keys."""
    parser.add_argument(
        "-o",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a value of the scene, such as solver.dt=0.005; may be repeated",
    )
