"""The command line. Nothing heavy is imported before a command needs it: `abd --help` answers at once."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import shlex
import sys
from pathlib import Path

from abd.commands import certify, export, plot, render, view
from abd.commands.arguments import count, positive
from abd.errors import AbdError, Problem, SceneError

_MOST_NOTES = 10


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns the exit status: 0 done, 1 failed, 2 usage or scene error, 130 interrupted."""
    arguments = _parser().parse_args(argv)
    try:
        return arguments.command(arguments)
    except SceneError as error:
        return _refuse(error)
    except AbdError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:
        # Whoever read our output is gone (`abd run --json ... | head`); Python must not complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
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
    parser.add_argument("--version", action="version", version=f"abd {_version()}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run a scene", description="Run a scene and write the directory of the run.")
    _scene_arguments(run)
    _device_argument(run)
    length = run.add_mutually_exclusive_group()
    length.add_argument("--steps", type=count("steps"), metavar="N", help="number of steps [the scene's]")
    length.add_argument("--duration", type=positive("time in seconds"), metavar="S", help="simulated time in seconds")
    run.add_argument("--out", metavar="DIR", help="directory of the run [runs/SCENE-K]")
    run.add_argument("--resume", action="store_true", help="continue the run in DIR, or the latest one of this scene")
    run.add_argument("--quiet", action="store_true", help="print errors only")
    run.add_argument(
        "--json", action="store_true", help="JSON on standard output: one object per step, then the report"
    )
    run.add_argument("--certify", action="store_true", help="check the run when it has ended, as `abd certify` does")
    run.add_argument("--view", action="store_true", help="show it in the browser as it goes; begins when one looks")
    run.add_argument("--port", type=int, default=8080, help="of the page, the first free one from this on [8080]")
    run.set_defaults(command=_run)

    check = commands.add_parser("check", help="report every problem of a scene at once, intersections included")
    _scene_arguments(check)
    check.add_argument("--json", action="store_true", help="JSON on standard output: problems, and what it consists of")
    check.set_defaults(command=_check)

    convert = commands.add_parser(
        "convert",
        help="turn a robot or a stage into a scene file",
        description="Write any scene that `abd run` takes as a TOML file, which runs to the same bits and can be edited.",
    )
    _scene_arguments(convert)
    convert.add_argument("out", metavar="OUT", help="the .toml file to write")
    convert.add_argument("--force", action="store_true", help="replace OUT if it is there")
    convert.set_defaults(command=_convert)

    certify.add(commands)
    plot.add(commands)
    render.add(commands)
    view.add(commands)
    export.add(commands)

    doctor = commands.add_parser("doctor", help="what is installed, which devices there are, what is missing")
    doctor.set_defaults(command=_doctor)

    bench = commands.add_parser(
        "bench",
        help="time scenes, beside the tolerance they reach",
        description="Time scenes, one after the other; ms/step is the median of the steps after a few to warm up.",
    )
    bench.add_argument("scenes", nargs="*", metavar="SCENE", help="path, or name of a shipped scene [a few of these]")
    _override_argument(bench)
    _device_argument(bench)
    bench.add_argument("--steps", type=count("steps"), metavar="N", help="steps that are timed [20]")
    bench.add_argument("--profile", action="store_true", help="stages and kernels, against what the device can do")
    bench.add_argument("--json", action="store_true", help="JSON on standard output")
    bench.set_defaults(command=_bench)

    schema = commands.add_parser("schema", help="what a scene file may say")
    schema.add_argument("--json", action="store_true", help="as JSON Schema")
    schema.set_defaults(command=_schema)
    return parser


def _scene_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scene", metavar="SCENE", help="path, or name of a shipped scene")
    _override_argument(parser)
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
        "--missing-meshes", choices=("fail", "boxes"), default="fail", help="boxes: go on with boxes from inertia [fail]"
    )
    imported.add_argument(
        "--assets",
        action="append",
        default=[],
        metavar="DIR",
        help="where meshes and packages may be, beside the file's own folder; may be repeated",
    )
    imported.add_argument("--keyframe", default="", metavar="NAME", help="name or number of the pose to start in")
    imported.add_argument("--free-base", action="store_true", help="free the root link, which else stands still")


def _scene(arguments):
    """The scene that the arguments of a command name."""
    from abd.scene.scene import load

    return load(
        arguments.scene,
        arguments.overrides,
        allow_overlaps=arguments.allow_overlaps,
        allow_code=arguments.allow_code,
        **_import_options(arguments),
    )


def _import_options(arguments) -> dict:
    """What the arguments of a command say of imported formats."""
    return {name: getattr(arguments, name) for name in ("missing_meshes", "assets", "keyframe", "free_base")}


def _device_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="auto", metavar="NAME", help="auto, cpu, cuda, cuda:N or numpy [auto]")


def _override_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a value of the scene, such as solver.dt=0.005; may be repeated",
    )


def _version() -> str:
    from abd import __version__

    return __version__


def _load(arguments):
    """The scene with its overrides, and its model with a start that is free of intersections."""
    scene = _scene(arguments)
    return scene, scene.started()


def _run(arguments) -> int:
    from abd.api.simulation import Simulation
    from abd.io.directory import latest_directory, new_directory
    from abd.io.progress import observer_for
    from abd.io.run import Status, run

    scene, model = _load(arguments)
    certifies = arguments.certify or scene.spec.output.certificate
    if certifies:
        # what is missing for it is said before the run
        importlib.import_module("abd.certificate.certificate")
    steps = arguments.steps
    if arguments.duration is not None:
        from abd.model import steps_in

        steps = max(1, steps_in(arguments.duration, model.settings.dt))
    observer = observer_for(arguments.quiet, arguments.json)
    observers = [observer]
    for note in model.notes[:_MOST_NOTES]:
        observer.note(note)
    if len(model.notes) > _MOST_NOTES:
        observer.note(f"{len(model.notes) - _MOST_NOTES} more notes; `abd check` shows all")

    choose = latest_directory if arguments.resume else new_directory
    directory = Path(arguments.out) if arguments.out else choose(model.name)
    # Machines read standard output: what libraries print goes elsewhere.
    aside = contextlib.redirect_stdout(sys.stderr) if arguments.json else contextlib.nullcontext()
    with aside, view.live(scene, arguments.port) if arguments.view else contextlib.nullcontext() as live:
        observers += [live] if live is not None else []
        outcome = run(
            scene,
            model,
            directory,
            device=arguments.device,
            steps=steps,
            resume=arguments.resume,
            observers=observers,
            simulate=Simulation,
        )
    if outcome.status is Status.FAILED:
        failure = outcome.failure
        bodies = f" (bodies: {', '.join(failure.bodies)})" if failure.bodies else ""
        print(f"step {failure.step} failed at t = {failure.time:.6g} s: {failure.reason}{bodies}", file=sys.stderr)
        print(f"  {failure}", file=sys.stderr)
        print(f"  what was computed is in {directory}", file=sys.stderr)
    elif arguments.resume and outcome.made == 0 and outcome.status is Status.DONE:
        print(
            f"nothing to do: the run has all of its {outcome.report['steps']} steps; --steps N or --duration S goes on",
            file=sys.stderr,
        )
    elif outcome.status is Status.INTERRUPTED:
        print(f"interrupted after step {outcome.report['steps']}; continue with", file=sys.stderr)
        print(f"  {_resume_command(arguments, directory)}", file=sys.stderr)
    if not (arguments.quiet or arguments.json):
        print(_closing_lines(outcome.report, directory))
    if certifies and outcome.status is not Status.INTERRUPTED:
        return max(certify.certify_run(directory, arguments.json, arguments.quiet), outcome.status.value)
    return outcome.status.value


def _resume_command(arguments, directory: Path) -> str:
    words = ["abd", "run", arguments.scene, "--out", str(directory), "--resume"]
    if arguments.device != "auto":
        words += ["--device", arguments.device]
    if arguments.steps is not None:
        words += ["--steps", str(arguments.steps)]
    if arguments.duration is not None:
        words += ["--duration", repr(arguments.duration)]
    for override in arguments.overrides:
        words += ["-o", override]
    words += ["--certify"] * arguments.certify
    words += ["--view"] * arguments.view + (["--port", str(arguments.port)] if arguments.port != 8080 else [])
    for folder in arguments.assets:
        words += ["--assets", folder]
    if arguments.missing_meshes != "fail":
        words += ["--missing-meshes", arguments.missing_meshes]
    if arguments.keyframe:
        words += ["--keyframe", arguments.keyframe]
    words += ["--allow-overlaps"] * arguments.allow_overlaps + ["--free-base"] * arguments.free_base
    words += ["--allow-code"] * arguments.allow_code
    words += ["--quiet"] * arguments.quiet + ["--json"] * arguments.json
    return shlex.join(words)


def _closing_lines(report: dict, directory: Path) -> str:
    from abd.io.progress import length

    newton, tolerance = report["newton_iterations"], report["tolerance"]
    gap = "no contact" if report["min_gap"] is None else f"smallest gap {length(report['min_gap'])}"
    rate = f", {report['steps_per_second']:.3g} steps/s" if report["steps_per_second"] else ""
    worst = "-" if tolerance["worst"] is None else f"{tolerance['worst']:.2e}"
    return "\n".join(
        [
            f"{report['steps']} steps ({report['converged_steps']} converged) in {report['wall_seconds']:.2f} s{rate}, "
            f"on {report['device']}",
            f"Newton {newton['mean']:.2f} per step (at most {newton['max']}), {gap}, "
            f"tolerance {worst} of {tolerance['requested']:.2e} m/s",
            *_energy_lines(report),
            f"written to {directory}",
        ]
    )


def _energy_lines(report: dict) -> list[str]:
    """Where the mechanical energy went; nothing where it is in no account."""
    energy, drift = report["energy"], report["energy_drift"]
    if drift is None:
        return []
    change = energy["final"] - energy["initial"]
    return [
        f"energy {change:+.3g} J: forces and drives {energy['external_work']:+.3g} J, friction and dampers "
        f"{energy['friction_work']:+.3g} J, impacts and integration {energy['unexplained']:+.3g} J "
        f"({drift:+.2%} of what moved)"
    ]


def _check(arguments) -> int:
    import json

    from abd.commands.check import as_table, check, summary

    try:
        scene, model, problems = check(
            arguments.scene,
            arguments.overrides,
            arguments.allow_overlaps,
            arguments.allow_code,
            **_import_options(arguments),
        )
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


def _convert(arguments) -> int:
    out = Path(arguments.out)
    if out.suffix.lower() != ".toml":
        raise SceneError([Problem(f"'{out}' is no .toml file", value=str(out), remedy=f"write {out.stem}.toml")])
    if out.exists() and not arguments.force:
        raise SceneError([Problem("is there already", file=str(out), remedy="choose another name, or give --force")])
    scene = _scene(arguments)
    scene.compile()
    scene.save(out)
    for note in scene.notes:
        print(f"note: {note}")
    print(f"written to {out}")
    return 0


def _refuse(error: SceneError) -> int:
    """Print all problems of a scene."""
    print(error, file=sys.stderr)
    count = len(error.problems)
    print(f"{count} problem{'s' if count != 1 else ''}", file=sys.stderr)
    return error.exit_status


def _bench(arguments) -> int:
    import json

    from abd.commands import bench, profile
    from abd.io.progress import observer_for
    from abd.io.run import Messages

    # Machines read standard output: what libraries print goes elsewhere.
    aside = contextlib.redirect_stdout(sys.stderr) if arguments.json else contextlib.nullcontext()
    with aside, Messages([observer_for(quiet=False, machine=True)]):
        found = bench.bench(
            arguments.scenes, arguments.overrides, arguments.device, arguments.steps or bench.STEPS, arguments.profile
        )
    rows = found["rows"]
    if arguments.json:
        print(json.dumps(found, allow_nan=False))
    else:
        print(bench.heading(found["facts"]))
        print(bench.table(rows))
        for row in rows:
            if "profile" in row:
                print(f"\n{row['scene']}\n{profile.text(row['profile'])}")
    return 1 if any(row["failure"] for row in rows) else 0


def _doctor(_) -> int:
    from abd.commands.doctor import text

    print(text())
    return 0


def _schema(arguments) -> int:
    from abd.scene.schema.documentation import schema_json, schema_markdown

    print(schema_json() if arguments.json else schema_markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
