"""`abd export`: write a run in the format of another program."""

from __future__ import annotations

from abd.export.formats import FORMATS


def add(commands) -> None:
    """Add the command and its arguments."""
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
