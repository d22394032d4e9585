"""Comparison with libuipc on one GPU: `python tools/bench/peer_libuipc.py [--scenes wrecking_ball pile:1000] [--out F]`.

NOT RUN YET on a GPU: it was written on a machine that has none. What was run there is the conversion of every scene and
libuipc's own check of it, with its backend that moves nothing (`--backend none`), against pyuipc 0.0.29.

Four programs per scene, all from the same compiled scene (`libuipc_scene.py`): ours at 1e-3 m/s and at libuipc's 5e-2,
libuipc as shipped, and libuipc converged (semi-implicit shortcut off, linear tolerance 1e-6, velocity 1e-3 m/s,
transrate 1e-2). Ratios of times are to ours at the same velocity tolerance. Its contact stiffness is found first, by
bisection, such that a cube of the scene's median mass rests on the ground with the gap that it has in ours. Every program
runs in a process of its own, three rounds in turn, kernels compiled in untimed steps; a step of libuipc is `advance()` and
`retrieve()`, a step of ours `Simulation.step()`. Rows have median and 95th percentile of all rounds, the smallest gap at
the end as ipctk finds it for both, what hinges are open by, the tolerance that was asked for and, for ours, reached (libuipc
does not tell), and how far the rounds end from each other. The file is written after every scene; with `--budget` no scene
is begun after so many seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

from libuipc_scene import Peer  # noqa: E402
from peers import opening  # noqa: E402
from results_file import write_results  # noqa: E402

import abd  # noqa: E402
from abd.commands.bench import WARM_UP, advance, solver_facts, table  # noqa: E402
from abd.contact.pair_law import widest_activation  # noqa: E402
from abd.model import Kind, Model, affine_matrices  # noqa: E402
from scenes import MECHANISMS, SCENES  # noqa: E402

CASES = (
    ("wrecking_ball", 575),
    ("pile", 1000),
    ("pile", 10_000),
    ("chain_net", 16),
    ("chain", 1000),
    ("chain", 10_000),
)
QUICK = (("pile", 100), ("chain", 100))
TIGHT, LOOSE = 1e-3, 5e-2
"""Velocity tolerances [m/s]: ours by default, and libuipc's as it ships."""
PROGRAMS = {"abd": TIGHT, "abd loose": LOOSE, "libuipc shipped": LOOSE, "libuipc converged": TIGHT}
"""And the velocity tolerance of each."""
OURS = {tolerance: program for program, tolerance in PROGRAMS.items() if program.startswith("abd")}
ROUNDS = 3
STEPS = 50
COUNTED = 5
RESISTANCES = (1e5, 1e13)
BISECTIONS = 8
"""They leave the stiffness within 7 %."""
SETTLING = 80
COMPILING = 600.0
"""Seconds that the driver may take for libuipc's kernels."""


def built(scene: str, size: float, tolerance: float | None = None):
    """The model, and the mechanism where the scene has joints; those have no surfaces, and are held by penalties."""
    mechanism = MECHANISMS[scene](size).bare() if scene in MECHANISMS else None
    if mechanism is not None:
        made = mechanism.scene("penalty")
    elif scene == "cube":
        made = cube(size)
    else:
        made = SCENES[scene](size)
    if tolerance is not None:
        made.solver.tolerance, made.solver.tolerance_relative = tolerance, None
        if tolerance == LOOSE:
            made.solver.friction_tolerance = LOOSE
    return made.compile(), mechanism


def cube(mass: float) -> abd.Scene:
    """A cube of this mass [kg] and density 1000 a little above the ground; d_hat is set by who asks."""
    edge = (mass / 1000.0) ** (1.0 / 3.0)
    scene = abd.Scene(solver={"dt": 0.01, "tolerance": 1e-4})
    scene.add_body("ground", half_space={})
    scene.add_body("cube", box=(edge,) * 3, position=(0.0, 0.0, 0.5 * edge + 5e-4))
    return scene


def smallest_gap(model: Model, transforms: np.ndarray) -> float | None:
    """Smallest distance between surfaces of different bodies, and to half-spaces, by ipctk [m]; None without any near."""
    import ipctk

    vertices, faces, owner, rest = [], [], [], 0
    for body in np.flatnonzero(model.bodies.mesh >= 0):
        mesh = model.meshes[model.bodies.mesh[body]]
        vertices.append(mesh.vertices @ transforms[body, :3, :3].T + transforms[body, :3, 3])
        faces.append(mesh.triangles + rest)
        owner.append(np.full(len(mesh.vertices), body))
        rest += len(mesh.vertices)
    if not vertices:
        return None
    points, owner = np.asfortranarray(np.concatenate(vertices)), np.concatenate(owner)
    triangles = np.asfortranarray(np.concatenate(faces), dtype=np.int32)
    surface = ipctk.CollisionMesh(points, ipctk.edges(triangles), triangles)
    surface.can_collide = ipctk.make_vertex_patches_filter(owner.astype(np.int32))
    near = ipctk.NormalCollisions()
    near.build(surface, points, widest_activation(model))
    gaps = [float(np.sqrt(near.compute_minimum_distance(surface, points)))] if len(near) else []
    moving = points[(model.bodies.kind == Kind.DYNAMIC)[owner]]
    for *normal, offset in model.bodies.plane.tolist():
        if np.isfinite(offset):
            gaps.append(float((moving @ np.array(normal) - offset).min()))
    return min(gaps, default=None)


def run_ours(
    scene: str, size: float, steps: int, device: str, tolerance: float, d_hat: float | None, limit: float
) -> dict:
    """One run of this program; after `limit` seconds no further step is begun."""
    model, mechanism = built(scene, size, tolerance)
    model = with_d_hat(model, d_hat)
    simulation = abd.Simulation(model, device=device)
    run = advance({"": simulation}, steps, limit=limit)[""]
    done = {"failure": run.failure, "solver": solver_facts(simulation).get("name", "")}
    if run.reports:
        newton = float(np.mean([report.newton_iterations for report in run.reports]))
        done |= {"newton": newton, "reached": max(report.tolerance_achieved for report in run.reports)}
    return quality(model, mechanism, run.seconds, affine_matrices(simulation.stepper.q)) | done


def run_peer(
    scene: str,
    size: float,
    steps: int,
    backend: str,
    converged: bool,
    resistance: float,
    d_hat: float | None,
    limit: float,
) -> dict:
    """One run of libuipc; after `limit` seconds no further step is begun."""
    model, mechanism = built(scene, size)
    model = with_d_hat(model, d_hat)
    with tempfile.TemporaryDirectory() as workspace:
        peer = Peer(model, mechanism, workspace, resistance, converged, backend)
        start = perf_counter()
        for _ in range(WARM_UP):
            peer.step()
        seconds = []
        for _ in range(steps):
            if seconds and perf_counter() - start > limit:
                break
            begin = perf_counter()
            peer.step()
            seconds.append(perf_counter() - begin)
        valid = peer.world.is_valid()
        row = quality(model, mechanism, seconds, peer.transforms())
        counts = peer.counts(COUNTED) if backend != "none" else {}
    newton = next(
        (count for name, count in counts.items() if "newton" in name.lower() and "iter" in name.lower()), None
    )
    return row | {"newton": newton, "timers": counts, "failure": "" if valid else "the world is not valid any more"}


def with_d_hat(model: Model, d_hat: float | None) -> Model:
    """The same scene with another activation distance."""
    return model if d_hat is None else replace(model, settings=replace(model.settings, d_hat=d_hat))


def quality(model: Model, mechanism, seconds: list[float], transforms: np.ndarray) -> dict:
    """Times, and what the end of a run looks like."""
    opened = None
    if mechanism is not None:
        opened = opening(mechanism, (transforms[:, :3, 3], transforms[:, :3, :3]))
    last = transforms[-1, :3, 3].tolist()
    return {
        "seconds": seconds,
        "bodies": len(model.bodies),
        "gap": smallest_gap(model, transforms),
        "opening": opened,
        "height": float(transforms[-1, 2, 3]),
        "last_body": last,
        "d_hat": widest_activation(model),
        "mass": float(np.median(model.bodies.mass[model.bodies.kind == Kind.DYNAMIC])),
    }


def apart(
    program: str,
    options,
    scene: str,
    size: float,
    steps: int,
    resistance: float,
    d_hat: float | None = None,
    patience: float | None = None,
) -> dict:
    """A run in a process of its own, ended after `patience` seconds [four times the limit]."""
    patience = patience or 4.0 * options.limit
    asked = {"program": program, "scene": scene, "size": size, "steps": steps, "resistance": resistance, "d_hat": d_hat}
    command = [sys.executable, str(HERE / "peer_libuipc.py"), "--one", json.dumps(asked)]
    command += ["--device", options.device, "--backend", options.backend, "--limit", str(options.limit)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience)
    except subprocess.TimeoutExpired:
        return {"failure": f"not done after {patience:g} s", "seconds": []}
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        # native code ends its messages with a stack trace, whose lines begin with a number
        said = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith(("#", "Stack trace"))]
        return {"failure": said[-1] if said else f"exit status {done.returncode}", "seconds": []}


def one(asked: dict, options) -> dict:
    """What a process of its own does."""
    scene, size, steps, d_hat = asked["scene"], asked["size"], asked["steps"], asked["d_hat"]
    if asked["program"].startswith("abd"):
        return run_ours(scene, size, steps, options.device, PROGRAMS[asked["program"]], d_hat, options.limit)
    converged = asked["program"].endswith("converged")
    return run_peer(scene, size, steps, options.backend, converged, asked["resistance"], d_hat, options.limit)


def matched_resistance(options, scene: str, size: float, known: dict) -> float:
    """Contact stiffness of libuipc with which a cube of the scene's median mass rests at the gap of ours.

    `known` keeps what was found for a mass and a d_hat.
    """
    model, _ = built(scene, size)
    low, high = RESISTANCES
    if not (model.bodies.mesh >= 0).any() or options.backend == "none":
        return float(np.sqrt(low * high))
    dynamic = model.bodies.kind == Kind.DYNAMIC
    mass, d_hat = float(np.median(model.bodies.mass[dynamic])), widest_activation(model)
    if (mass, d_hat) in known:
        return known[mass, d_hat]
    goal = apart("abd", options, "cube", mass, SETTLING, 0.0, d_hat).get("gap")
    if goal is None:
        raise RuntimeError("the cube that matches contact stiffness could not be run here")
    for _ in range(BISECTIONS):
        middle = float(np.sqrt(low * high))
        gap = apart("libuipc converged", options, "cube", mass, SETTLING, middle, d_hat).get("gap")
        if gap is None:
            raise RuntimeError("the cube that matches contact stiffness could not be run in libuipc")
        # stiffer contact rests higher
        low, high = (middle, high) if gap < goal else (low, middle)
    known[mass, d_hat] = float(np.sqrt(low * high))
    return known[mass, d_hat]


def warm(options) -> str:
    """Have the driver compile libuipc's kernels, which takes minutes where they are not built for the GPU, and keep them.

    Returns what went wrong, empty if nothing did.
    """
    return apart("libuipc converged", options, "cube", 1.0, 2, RESISTANCES[0], 1e-3, COMPILING)["failure"]


def measure(options, scene: str, size: float, known: dict) -> list[dict]:
    """Rows of the four programs; where stiffness cannot be matched, one that says why."""
    try:
        resistance = matched_resistance(options, scene, size, known)
    except RuntimeError as error:
        return [{"scene": f"{scene} {size:g}", "program": "libuipc", "steps": 0, "failure": str(error)}]
    runs: dict[str, list[dict]] = {program: [] for program in PROGRAMS}
    for turn in range(options.rounds):
        for program in PROGRAMS:
            runs[program].append(apart(program, options, scene, size, options.steps, resistance))
            print(f"{scene} {size:g} {turn + 1}/{options.rounds} {program}", file=sys.stderr)
    rows = []
    for program, found in runs.items():
        row = {"scene": f"{scene} {size:g}", "program": program, "resistance": resistance, "steps": 0}
        row["asked"] = PROGRAMS[program]
        row["failure"] = next((run["failure"] for run in found if run["failure"]), "")
        done = [run for run in found if run["seconds"]]
        if done:
            milliseconds = 1e3 * np.concatenate([run["seconds"] for run in done])
            ends = np.array([run["last_body"] for run in done])
            row |= {name: value for name, value in done[-1].items() if name not in ("seconds", "failure")}
            row |= {
                "steps": len(milliseconds),
                "ms": float(np.median(milliseconds)),
                "ms_p95": float(np.percentile(milliseconds, 95)),
                "ms_of_rounds": [1e3 * float(np.median(run["seconds"])) for run in done],
                "spread": float(np.linalg.norm(np.ptp(ends, axis=0))),
            }
        rows.append(row)
    times = {row["program"]: row["ms"] for row in rows if "ms" in row}
    for row in rows:
        ours = times.get(OURS[row["asked"]])
        row["over_abd"] = row["ms"] / ours if ours and "ms" in row else None
    return rows


COLUMNS = (
    ("scene", "{scene}"),
    ("program", "{program}"),
    ("bodies", "{bodies}"),
    ("ms/step", "{ms:.3g}"),
    ("P95", "{ms_p95:.3g}"),
    ("of abd", "{over_abd:.3g}"),
    ("Newton", "{newton:.2f}"),
    ("asked m/s", "{asked:.0e}"),
    ("reached m/s", "{reached:.1e}"),
    ("gap m", "{gap:.1e}"),
    ("hinges open m", "{opening:.1e}"),
    ("rounds apart m", "{spread:.1e}"),
)


def main() -> int:
    """Exit status: 0 done, 1 some run failed and its row says why, 2 there is no GPU or no pyuipc."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = "names and sizes of scenes.py [wrecking_ball, pile, chain_net, chain]"
    parser.add_argument("--scenes", nargs="+", metavar="NAME:SIZE", help=kinds)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--device", default="cuda", help="of this program")
    parser.add_argument("--backend", default="cuda", choices=("cuda", "none"), help="of libuipc; none moves nothing")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a run begins no further step")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds after which no further scene is begun")
    parser.add_argument("--only-warm", action="store_true", help="let the driver compile libuipc's kernels, and end")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        with contextlib.redirect_stdout(sys.stderr):
            row = one(json.loads(options.one), options)
        print(json.dumps(row))
        return 0
    missing = what_is_missing(options)
    if missing:
        print(missing, file=sys.stderr)
        return 2
    failure = warm(options)
    if failure or options.only_warm:
        print(failure or "libuipc's kernels are compiled", file=sys.stderr)
        return 1 if failure else 0
    cases = QUICK if options.quick else CASES
    if options.scenes:
        cases = [(name, float(size or 100)) for name, _, size in (text.partition(":") for text in options.scenes)]
    facts = {"rounds": options.rounds, "steps": options.steps, "pyuipc": "0.0.29"}
    facts["asked"] = [f"{scene} {size:g}" for scene, size in cases]
    rows, known, start = [], {}, perf_counter()
    for scene, size in cases:
        if rows and perf_counter() - start > options.budget:
            print(f"{scene} {size:g} does not fit into {options.budget:g} s", file=sys.stderr)
            continue
        rows += measure(options, scene, float(size), known)
        if options.out:
            write_results(options.out, options.device, rows, **facts)
    print(table(rows, COLUMNS))
    return 1 if any(row["failure"] for row in rows) else 0


def what_is_missing(options) -> str:
    """Why this cannot run here, in a sentence; empty where it can."""
    from importlib.util import find_spec

    from abd.backends.device.cuda_support import cuda_problem

    if find_spec("uipc") is None:
        return "libuipc is not installed: pip install pyuipc==0.0.29"
    if options.backend == "cuda" and (problem := cuda_problem()):
        return f"libuipc needs a GPU: {problem}"
    return ""


if __name__ == "__main__":
    raise SystemExit(main())
