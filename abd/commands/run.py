"""`abd run`: run a scene, write the directory of the run and print a summary."""

from __future__ import annotations

import contextlib
import importlib
import shlex
import sys
from functools import partial
from pathlib import Path

from abd.commands import certify, plot, view
from abd.commands.arguments import scene_options

ROUNDING = 1e-6
"""Error of the energy, over the initial energy, below which it is not compared with the exchanged energy."""


def run_scene(arguments) -> int:
    """Run the command and return the exit status."""
    from abd.api.simulation import Simulation
    from abd.backends.device.compiling import without_progress
    from abd.io.directory import latest_directory, new_directory
    from abd.io.progress import observer_for
    from abd.io.run import Status, run
    from abd.scene.scene import load

    scene = load(**scene_options(arguments))
    model = scene.started()  # free of intersections
    certifies = arguments.certify or scene.spec.output.certificate
    if certifies:
        # a missing library is reported before the run
        importlib.import_module("abd.certificate.certificate")
    steps = arguments.steps
    if arguments.duration is not None:
        from abd.model import steps_in

        steps = max(1, steps_in(arguments.duration, max(model.settings.world_dt, default=model.settings.dt)))
    observer = observer_for(arguments.quiet, arguments.json)
    observers = [observer]
    for note in model.shown_notes:
        observer.note(note)

    choose = latest_directory if arguments.resume else new_directory
    directory = Path(arguments.out) if arguments.out else choose(model.name)
    # Programs parse standard output, so output of libraries goes to standard error.
    aside = contextlib.redirect_stdout(sys.stderr) if arguments.json else contextlib.nullcontext()
    compiling = without_progress() if arguments.quiet else contextlib.nullcontext()
    with view.live(scene, arguments.port) if arguments.view else contextlib.nullcontext() as live:
        observers += [live] if live is not None else []
        with aside, compiling:
            outcome = run(
                scene,
                model,
                directory,
                device=arguments.device,
                steps=steps,
                resume=arguments.resume,
                observers=observers,
                simulate=partial(Simulation, source=scene),
            )
        _print_outcome(arguments, outcome, directory)
        if live is not None and outcome.status is not Status.INTERRUPTED and sys.stderr.isatty():
            view.until_stopped(live.server)
    if certifies and outcome.status is not Status.INTERRUPTED:
        return max(certify.certify_run(directory, arguments.json, arguments.quiet), outcome.status.value)
    return outcome.status.value


def _print_outcome(arguments, outcome, directory: Path) -> None:
    """Print the reason of an early end, the summary and the next commands; draw the figures of `--plots`."""
    from abd.io.run import Status

    if outcome.status is Status.FAILED:
        failure = outcome.failure
        bodies = f" (bodies: {', '.join(failure.bodies)})" if failure.bodies else ""
        print(f"step {failure.step} failed at t = {failure.time:.6g} s: {failure.reason}{bodies}", file=sys.stderr)
        print(f"  {failure}", file=sys.stderr)
        print(f"  the frames up to this step are in {directory}", file=sys.stderr)
    elif arguments.resume and outcome.made == 0 and outcome.status is Status.DONE:
        print(
            f"nothing to do: the run has all of its {outcome.report['steps']} steps; extend it with --steps or --duration",
            file=sys.stderr,
        )
    elif outcome.status is Status.INTERRUPTED:
        print(f"interrupted after step {outcome.report['steps']}; continue with", file=sys.stderr)
        print(f"  {_resume_command(arguments, directory)}", file=sys.stderr)
    is_silent = arguments.quiet or arguments.json
    if not is_silent:
        print("\n".join(_closing_lines(outcome.report, directory)))
    if arguments.plots:
        figures = list(plot.draw_all([directory]))
        if not is_silent:
            print(f"{len(figures)} figures in {directory}")


def _resume_command(arguments, directory: Path) -> str:
    """Return the command of this run with its directory and `--resume`."""
    words = ["abd", *arguments.words]
    words += [] if arguments.out else ["--out", str(directory)]
    return shlex.join(words + ([] if arguments.resume else ["--resume"]))


def _closing_lines(report: dict, directory: Path) -> list[str]:
    """Summary of the run, and the next commands."""
    from abd.io.progress import length

    newton, tolerance = report["newton_iterations"], report["tolerance"]
    gap = "no contact" if report["min_gap"] is None else f"smallest gap {length(report['min_gap'])}"
    rate = f", {report['steps_per_second']:.3g} steps/s" if report["steps_per_second"] else ""
    worst = "-" if tolerance["worst"] is None else f"{tolerance['worst']:.2e}"
    place = shlex.quote(str(directory))
    return [
        f"{report['steps']} steps ({report['converged_steps']} converged) in {report['wall_seconds']:.2f} s{rate}, "
        f"on {report['device']}",
        f"Newton {newton['mean']:.2f} per step (maximum {newton['max']}), {gap}, "
        f"tolerance {worst} of {tolerance['requested']:.2e} m/s",
        *_energy_lines(report),
        f"written to {directory}",
        f"film:     abd render {place} --to gif",
        f"browser:  abd view {place}",
        f"figures:  abd plot {place}",
    ]


def _energy_lines(report: dict) -> list[str]:
    """Change and work of the mechanical energy; empty without an energy balance."""
    energy, drift = report["energy"], report["energy_drift"]
    if drift is None:
        return []
    change = energy["final"] - energy["initial"]
    # of a scene at rest, the exchanged energy is rounding
    is_rounding = abs(energy["integration"]) <= ROUNDING * abs(energy["initial"])
    part = "" if is_rounding else f" ({drift:+.2%} of the exchanged energy)"
    return [
        f"energy {change:+.3g} J: forces and drives {energy['external_work']:+.3g} J, friction and dampers "
        f"{energy['friction_work']:+.3g} J, impacts and integration {energy['integration']:+.3g} J{part}"
    ]
