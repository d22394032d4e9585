"""Run the scenes of others and certify every frame: `python tools/bench/fixtures.py [--device cpu] [--steps 100]`.

Takes the rigid-ipc and affine-body-dynamics scenes of a fixtures folder (`scenes` says which), runs each in a
process of its own through `abd run`, certifies the trajectory with `abd certify`, and writes a JSON file and a
table: bodies, contacts, Newton iterations, milliseconds per step, peak memory, verdict. Times are those that `abd run`
wrote into the trajectory; `run.py` measures cost against size.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

from results_file import write_results  # noqa: E402

from abd.certificate.certificate import certify  # noqa: E402
from scenes import FIXTURES  # noqa: E402

FAMILIES = ("rigid-ipc/scenes", "affine-body-dynamics/scenes")


def run_scene(scene: Path, directory: Path, device: str, steps: int, every: int) -> dict:
    """One scene in a process of its own; returns its row of the table."""
    command = [
        sys.executable,
        "-m",
        "abd.cli",
        "run",
        str(scene),
        "--device",
        device,
        "--out",
        str(directory),
        "--quiet",
    ]
    available = frames_of(scene)
    command += ["--steps", str(min(steps, available))]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    done = subprocess.run(command, capture_output=True, text=True)
    row = {"scene": scene.stem, "exit": done.returncode, "wanted": min(steps, available)}
    row["peak_MiB_of_all_so_far"] = max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) // 1024
    if done.returncode:
        row["message"] = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
    trajectory = directory / "trajectory.h5"
    if not trajectory.exists():
        return row
    with h5py.File(trajectory) as file:
        solver = {name: file["solver"][name][1:] for name in file["solver"]}
        row["bodies"] = len(file["bodies/name"])
    wall = 1e3 * solver["wall_seconds"]
    row |= {
        "steps": len(wall),
        "substeps_max": int(solver["substeps"].max(initial=0)),
        "contacts_mean": round(float(solver["contacts"].mean()), 1) if len(wall) else 0.0,
        "newton_mean": round(float(solver["newton_iterations"].mean()), 2) if len(wall) else 0.0,
        "newton_max": int(solver["newton_iterations"].max(initial=0)),
        "ms_mean": round(float(wall.mean()), 2) if len(wall) else 0.0,
        "ms_median": round(float(np.median(wall)), 2) if len(wall) else 0.0,
        "min_gap": smallest if np.isfinite(smallest := float(solver["min_gap"].min(initial=np.inf))) else None,
        "tolerance_worst": float(solver["tolerance_achieved"].max(initial=0.0)),
        "converged": bool(solver["converged"].all()),
    }
    verdict = certify(trajectory, every)
    row["certified"] = verdict.ok
    if not verdict.ok:
        row["violations"] = [str(violation) for violation in verdict.violations[:3]]
    return row


def frames_of(scene: Path) -> int:
    """Frames the scene asks for."""
    from abd.scene.scene import load

    return load(scene).compile().settings.frames


def table(rows: list[dict]) -> str:
    """Markdown table of the rows."""
    lines = [
        "| scene | bodies | contacts | Newton mean (max) | ms/step mean (median) | smallest gap [m] | steps | certificate |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if "bodies" not in row:
            lines.append(f"| {row['scene']} | | | | | | 0 of {row['wanted']} | {row.get('message', '')} |")
            continue
        gap = "none" if row["min_gap"] is None else f"{row['min_gap']:.2g}"
        verdict = "holds" if row["certified"] else "FAILS"
        if row["exit"]:
            verdict += f", stopped: {row.get('message', '')}"
        lines.append(
            f"| {row['scene']} | {row['bodies']} | {row['contacts_mean']:.0f} | {row['newton_mean']} ({row['newton_max']}) "
            f"| {row['ms_mean']} ({row['ms_median']}) | {gap} | {row['steps']} of {row['wanted']} | {verdict} |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fixtures", type=Path, default=FIXTURES)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--every", type=int, default=1, help="certify every K-th frame")
    parser.add_argument("--only", default="", help="part of a scene's name")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    scenes = [
        scene
        for family in FAMILIES
        for scene in sorted((options.fixtures / family).rglob("*.json"))
        if options.only in scene.as_posix()
    ]
    if not scenes:
        print(f"no scenes under {options.fixtures}", file=sys.stderr)
        return 2
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for k, scene in enumerate(scenes):
            rows.append(run_scene(scene, Path(folder) / str(k), options.device, options.steps, options.every))
            print(json.dumps(rows[-1]), flush=True)
    print(table(rows))
    if options.output:
        write_results(options.output, options.device, rows, tolerance="each scene's own")
    return 0 if all(row.get("certified") and row["exit"] == 0 for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
