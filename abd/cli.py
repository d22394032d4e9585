"""The command line. Heavy libraries are imported by the commands that need them, so that `abd --help` is fast."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import sys

from abd.commands import certify, doctor, export, plot, render, sweep, view
from abd.commands.arguments import (
    count,
    device_argument,
    length_arguments,
    override_argument,
    scene_arguments,
    scene_options,
)
from abd.commands.run import run_scene
from abd.errors import AbdError, SceneError
from abd.version import __version__

GARBAGE = (50_000, 20, 50)
"""Thresholds of Python's garbage collector: its defaults take 0.35 s of 2.2 s of a short run, because imports allocate much."""


def command() -> None:
    """Run a command and exit, without a collection of all objects, which takes 0.5 s."""
    status = main()
    gc.freeze()
    sys.exit(status)


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns the exit status: 0 done, 1 failed, 2 usage or scene error, 130 interrupted."""
    gc.set_threshold(*GARBAGE)
    words = sys.argv[1:] if argv is None else argv
    arguments = _parser().parse_args(words, argparse.Namespace(words=words))
    try:
        return arguments.command(arguments)
    except SceneError as error:
        number = len(error.problems)
        print(f"{error}\n{number} problem{'s' if number != 1 else ''}", file=sys.stderr)
        return error.exit_status
    except AbdError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:
        # The output pipe is closed (`abd run --json ... | head`); flushing at exit must not raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}" if error.filename else f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="abd",
        description="Multibody simulation in which bodies never pass through each other.",
        epilog="SCENE is a path or the name of a shipped scene; RUN is the directory of a run.",
    )
    parser.add_argument("--version", action="version", version=f"abd {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run a scene", description="Run a scene and write the directory of the run.")
    scene_arguments(run)
    device_argument(run)
    length_arguments(run)
    run.add_argument("--out", metavar="DIR", help="directory of the run [runs/SCENE-K]")
    run.add_argument("--resume", action="store_true", help="continue the run in DIR, or the latest one of this scene")
    run.add_argument("--quiet", action="store_true", help="print errors only")
    run.add_argument(
        "--json", action="store_true", help="JSON on standard output: one object per step, then the report"
    )
    run.add_argument("--plots", action="store_true", help="draw the figures of `abd plot` when the run has ended")
    run.add_argument(
        "--certify", action="store_true", help="check the run for intersections at the end, like `abd certify`"
    )
    run.add_argument(
        "--view", action="store_true", help="show the run in the browser; computing starts when the page is open"
    )
    view.port_argument(run)
    run.set_defaults(command=run_scene)

    sweep.add(commands)

    check = commands.add_parser("check", help="report every problem of a scene at once, intersections included")
    scene_arguments(check)
    check.add_argument(
        "--json", action="store_true", help="JSON on standard output: problems, and the size of the scene"
    )
    check.set_defaults(command=_check)

    export.add_convert(commands)

    certify.add(commands)
    plot.add(commands)
    render.add(commands)
    view.add(commands)
    export.add(commands)

    doctor.add(commands)

    bench = commands.add_parser(
        "bench",
        help="time scenes and report the tolerance they reach",
        description="Time scenes, one after the other; ms/step is the median after a few warm-up steps.",
    )
    bench.add_argument("scenes", nargs="*", metavar="SCENE", help="path, or name of a shipped scene [a few of these]")
    override_argument(bench)
    device_argument(bench)
    bench.add_argument("--steps", type=count("steps"), metavar="N", help="number of timed steps [20]")
    bench.add_argument("--json", action="store_true", help="JSON on standard output")
    bench.set_defaults(command=_bench)

    schema = commands.add_parser("schema", help="print the keys of a scene file")
    help_text = "print the keys of this joint type, the tables with this word in their name, or else the keys and types with it"
    schema.add_argument("word", nargs="?", help=help_text)
    schema.add_argument("--json", action="store_true", help="as JSON Schema")
    schema.set_defaults(command=_schema)
    return parser


def _check(arguments) -> int:
    import json

    from abd.commands.check import as_table, check, summary

    try:
        scene, model, problems = check(**scene_options(arguments))
    except SceneError as error:
        if not arguments.json:
            raise
        print(json.dumps(as_table(None, None, error.problems), allow_nan=False))
        return error.exit_status
    if arguments.json:
        print(json.dumps(as_table(scene, model, problems), allow_nan=False))
        return SceneError.exit_status if problems else 0
    if model is not None:
        print("\n".join(summary(model)))
    if problems:
        raise SceneError(problems)
    print("no problems")
    return 0


def _bench(arguments) -> int:
    import json

    from abd.commands import bench
    from abd.io.progress import observer_for
    from abd.io.run import messages

    # Programs parse standard output, so output of libraries goes to standard error.
    aside = contextlib.redirect_stdout(sys.stderr) if arguments.json else contextlib.nullcontext()
    with aside, messages([observer_for(quiet=False, machine=True)]):
        found = bench.bench(arguments.scenes, arguments.overrides, arguments.device, arguments.steps or bench.STEPS)
    rows = found["rows"]
    if arguments.json:
        print(json.dumps(found, allow_nan=False))
    else:
        print(bench.heading(found["facts"]))
        print(bench.table(rows))
    return 1 if any(row["failure"] for row in rows) else 0


def _schema(arguments) -> int:
    from abd.scene.schema.documentation import schema_json, schema_markdown, sections_with

    if arguments.word is None:
        print(schema_json() if arguments.json else schema_markdown())
        return 0
    found = sections_with(arguments.word)
    if not found:
        raise AbdError(f"no table, key or joint type contains '{arguments.word}'; `abd schema` prints all")
    print(found)
    return 0


if __name__ == "__main__":
    command()
