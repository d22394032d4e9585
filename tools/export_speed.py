"""Time and memory of `abd export`: `python tools/export_speed.py [--bodies 10000] [--frames 1000] [--only glb] [-o FILE]`.

Makes the trajectory of bodies that tumble, in the layout of a run (`--keep DIR` leaves it there), and exports it to every
format in a process of its own, whose seconds of the processor and largest memory are read from the operating system.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS.parent)]

import h5py  # noqa: E402
import numpy as np  # noqa: E402
from results_file import write_results  # noqa: E402

import abd  # noqa: E402
from abd.export.formats import FORMATS  # noqa: E402
from abd.io.frame import ENERGIES  # noqa: E402
from abd.io.layout import write_constants  # noqa: E402

SHAPES = {"box": {"box": (0.1, 0.06, 0.08)}, "sphere": {"sphere": {"radius": 0.05}}}
STRAIN = 1e-5


def make_run(folder: Path, shape: str, bodies: int, frames: int) -> None:
    """A run of bodies on a grid that turn and move, each by its own law, strained a little."""
    scene = abd.Scene("tumbling")
    side = int(np.ceil(bodies ** (1 / 3)))
    count = [side, side, -(-bodies // side**2)]
    scene.add_body("ground", half_space={})
    scene.add_body("body", **SHAPES[shape], position=(0, 0, 0.2), repeat={"count": count, "step": (0.2, 0.2, 0.2)})
    model = scene.compile()
    n, rng = len(model.bodies), np.random.default_rng(1)
    axis = rng.normal(size=(n, 3))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    spin, phase, start = rng.uniform(1.0, 9.0, n), rng.uniform(0.0, 6.0, n), model.user_transform(model.bodies.q)
    W = np.zeros((n, 3, 3))
    W[:, 0, 1], W[:, 0, 2], W[:, 1, 2] = -axis[:, 2], axis[:, 1], -axis[:, 0]
    W -= W.transpose(0, 2, 1)
    with h5py.File(folder / "trajectory.h5", "w") as file:
        write_constants(file, model, {"frames": frames, "scene": "tumbling"})
        times = 0.01 * np.arange(frames)
        file["time"], file["step"] = times, np.arange(frames)
        for name in ENERGIES:
            file[f"energy/{name}"] = np.zeros(frames)
        file["solver/min_gap"], file["solver/newton_iterations"] = np.full(frames, 1e-3), np.full(frames, 5)
        shape_of_frame = {"maxshape": (None, n, 4, 4), "chunks": (1, n, 4, 4), "dtype": float}
        pose = file.create_dataset("bodies/transform", (frames, n, 4, 4), **shape_of_frame)
        rate = file.create_dataset("bodies/velocity", (frames, n, 4, 4), **shape_of_frame)
        for k, t in enumerate(times):
            angle = (spin * t)[:, None, None]
            turned = np.eye(3) + np.sin(angle) * W + (1.0 - np.cos(angle)) * (W @ W)
            turned[:, 0, 1] += STRAIN * np.sin(20.0 * t + phase)
            now = start.copy()
            now[1:, :3, :3] = turned[1:]
            now[1:, 2, 3] += 0.05 * np.sin(3.0 * t + phase[1:])
            moving = np.zeros((n, 4, 4))
            moving[1:, :3, :3] = spin[1:, None, None] * (W[1:] @ turned[1:])
            moving[1:, 2, 3] = 0.15 * np.cos(3.0 * t + phase[1:])
            pose[k], rate[k] = now, moving


def measured(folder: Path, to: str) -> dict:
    """One export, in a process of its own."""
    code = f"from abd.export.formats import export; print(export({str(folder)!r}, {to!r}).path)"
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    memory = "import resource, sys; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", f"{code}; {memory}"], cwd=TOOLS.parent, capture_output=True, text=True)
    wall, after = perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"export to {to} failed:\n{done.stderr}")
    path = Path(done.stdout.split()[-1])
    files = [path] if path.is_file() else list(path.iterdir())
    size = sum(file.stat().st_size for file in files)
    for file in files:
        file.unlink()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak = int(done.stderr.split()[-1]) / 1024
    return {
        "cpu_seconds": round(cpu, 1),
        "wall_seconds": round(wall, 1),
        "peak_MiB": round(peak),
        "MB": round(size / 1e6),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bodies", type=int, default=10_000)
    parser.add_argument("--frames", type=int, default=1_000)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="box")
    parser.add_argument("--only", choices=sorted(FORMATS), help="one format")
    parser.add_argument("--keep", type=Path, help="folder of the run that is made; one that is there is taken")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "trajectory.h5").is_file():
            make_run(folder, options.shape, options.bodies, options.frames)
        print("| format | CPU [s] | wall [s] | peak [MiB] | written [MB] |\n|---|---|---|---|---|")
        for to in [options.only] if options.only else FORMATS:
            row = {"format": to, "shape": options.shape, **measured(folder, to)}
            rows.append(row)
            print(
                f"| {to} | {row['cpu_seconds']} | {row['wall_seconds']} | {row['peak_MiB']} | {row['MB']} |", flush=True
            )
    if options.output:
        write_results(options.output, "cpu", rows, bodies=options.bodies, frames=options.frames)
    return 0


if __name__ == "__main__":
    sys.exit(main())
