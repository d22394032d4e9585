"""`abd render`: pictures and films of a run."""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path

from abd.commands.arguments import positive
from abd.pictures import PictureError

KINDS = ("mp4", "gif", "png")
MOST_PICTURES = 1_000_000
"""Largest number of pictures of a film: nine hours at 30 per second."""


def add(commands) -> None:
    parser = commands.add_parser(
        "render",
        help="make a film or a picture of a run, without a display",
        description="Make a film or a picture of a run on the processor, without display and driver. A picture is of one "
        "frame; a film runs through the run in its own time, each picture the nearest frame.",
    )
    parser.add_argument("run", metavar="RUN", help="directory of a run")
    parser.add_argument("--to", choices=KINDS, help="type of file [suffix of --out, otherwise mp4]")
    parser.add_argument("--out", metavar="FILE", help="output file [RUN/film.mp4, film.gif, or frame-K.png]")
    parser.add_argument("--frame", type=int, metavar="K", help="frame of a picture; negative: from the end [-1]")
    parser.add_argument("--size", type=_size, default=(1280, 720), metavar="WxH", help="width and height in pixels [1280x720]")
    camera_arguments(parser)
    parser.add_argument(
        "--orbit",
        type=float,
        nargs="?",
        const=360.0,
        metavar="DEG",
        help="rotation of the camera about the target during the film [360]",
    )
    parser.add_argument("--fps", type=positive("number"), default=30.0, metavar="N", help="pictures per second [30]")
    parser.add_argument(
        "--speed", type=positive("number"), default=1.0, metavar="X", help="simulated time per film time; 0.25 is slow motion [1]"
    )
    parser.add_argument(
        "--no-joints", dest="joints", action="store_false", help="do not draw joints, ropes and springs"
    )
    parser.add_argument("--no-contacts", dest="contacts", action="store_false", help="do not draw contact forces")
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    parser.set_defaults(command=render)


def camera_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--camera` and `--follow`."""
    parser.add_argument(
        "--camera",
        default="",
        metavar="KEYS",
        help="values of the scene's table camera, as in 'azimuth_deg=-40, zoom=1.5, target=[0, 0, 1]'; see `abd schema`",
    )
    parser.add_argument("--follow", metavar="BODY", help="keep a body in the middle of the picture")


def view_of(saved: dict, text: str, follow: str | None, orbit: float | None = None):
    """Return the camera of a scene with changes by keys and values as in TOML, separated by commas; unknown ones are errors."""
    from abd.scene.schema.schema import CameraSpec
    from abd.scene.schema.tables import table

    try:
        given = tomllib.loads(f"camera = {{ {text} }}")["camera"]
    except tomllib.TOMLDecodeError as error:
        raise PictureError(f"--camera {text!r}: {error}; use KEY=VALUE, KEY=VALUE with values as in TOML") from None
    given |= {"follow": follow} if follow is not None else {}
    given |= {"orbit_deg": orbit} if orbit is not None else {}
    return table(CameraSpec, "camera", {**saved, **given})


def render(arguments) -> int:
    import numpy as np

    from abd.io.progress import progress_bar
    from abd.io.trajectory import Trajectory
    from abd.pictures.cast import Recorded
    from abd.pictures.films import Studio, frames_of, write

    kind, frame = _kind(arguments), arguments.frame
    if frame is not None and kind != "png":
        raise PictureError(f"--frame is for pictures: use --to png, not {kind}")
    with Trajectory(arguments.run) as trajectory:
        run, fps, speed = Recorded(trajectory), arguments.fps, arguments.speed
        frame = -1 if frame is None else frame
        if not -len(run) <= frame < len(run):
            raise PictureError(f"there is no frame {frame}: the run has frames 0 to {len(run) - 1}")
        pictures = float(run.time[-1] - run.time[0]) / speed * fps
        if kind != "png" and pictures > MOST_PICTURES:
            most = f"at most {MOST_PICTURES} pictures, not {pictures:.3g}"
            raise PictureError(f"a film must have {most}: reduce --fps or raise --speed")
        frames = np.array([range(len(run))[frame]]) if kind == "png" else frames_of(run.time, fps, speed)
        view = view_of(trajectory.camera, arguments.camera, arguments.follow, arguments.orbit)
        studio = Studio(run, frames, view, arguments.size, arguments.joints, arguments.contacts)
        default = f"frame-{frames[0]}.png" if kind == "png" else f"film.{kind}"
        target = Path(arguments.out) if arguments.out else trajectory.path.parent / default
        target.parent.mkdir(parents=True, exist_ok=True)
        with progress_bar("picture", sys.stderr, arguments.quiet) as progress:
            task = progress.add_task("", total=len(frames))
            write(target, studio, kind, fps, lambda done: progress.update(task, completed=done))
    if not studio.shown:
        print("note: no body is in the picture: remove the position or the target of the camera", file=sys.stderr)
    if not arguments.quiet:
        print(target)
    return 0


def _kind(arguments) -> str:
    suffix = Path(arguments.out).suffix.lower().lstrip(".") if arguments.out else ""
    if arguments.to is None:
        if arguments.out and suffix not in KINDS:
            raise PictureError(f"--out {arguments.out}: the suffix must be one of {', '.join(KINDS)}; or give --to")
        return suffix or ("mp4" if arguments.frame is None else "png")
    return arguments.to


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    if not all(one.isdecimal() and 16 <= int(one) <= 8192 for one in (width, height)):
        raise argparse.ArgumentTypeError(f"{text!r} must have the form 1280x720, with both numbers from 16 to 8192")
    return int(width), int(height)
