"""`abd convert` and `abd export`: scenes from files of other programs, and runs as such files."""

from __future__ import annotations

from pathlib import Path

from abd.commands.arguments import scene_arguments, scene_options
from abd.errors import SceneError
from abd.export.formats import FORMATS


def add_convert(commands) -> None:
    parser = commands.add_parser(
        "convert",
        help="convert a robot or a stage to a scene file",
        description="Write any scene that `abd run` reads as an editable TOML file that gives bitwise equal results.",
    )
    scene_arguments(parser)
    parser.add_argument("out", metavar="OUT", help="the .toml file to write")
    parser.add_argument("--force", action="store_true", help="replace OUT if it exists")
    parser.set_defaults(command=convert)


def convert(arguments) -> int:
    """Write the scene and print notes on it."""
    from abd.scene.scene import load

    out = Path(arguments.out)
    if out.suffix.lower() != ".toml":
        raise SceneError.of(f"'{out}' must end in .toml", value=str(out), remedy=f"write {out.stem}.toml")
    if out.exists() and not arguments.force:
        raise SceneError.of("file already exists", file=str(out), remedy="choose another name, or add --force")
    scene = load(**scene_options(arguments))
    scene.compile()
    scene.save(out)
    for note in scene.notes:
        print(f"note: {note}")
    print(f"written to {out}")
    return 0


def add(commands) -> None:
    listed = "; ".join(f"{name}: {form.meaning}" for name, form in FORMATS.items())
    parser = commands.add_parser(
        "export",
        help="write a run as USD, GLB, OBJ, VTK or rerun",
        description=f"Write a run in another program's format. {listed}.",
    )
    parser.add_argument("run", metavar="RUN", help="directory of a run")
    parser.add_argument("--to", choices=tuple(FORMATS), required=True, help="format")
    parser.add_argument("--out", metavar="FILE", help="output file, or folder for obj [in the run's directory]")
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    parser.set_defaults(command=export)


def export(arguments) -> int:
    """Write the file and print its contents."""
    from abd.export.formats import export as write

    done = write(arguments.run, arguments.to, arguments.out)
    if not arguments.quiet:
        for note in done.notes:
            print(f"note: {note}")
        print(f"written to {done.path}")
    return 0
