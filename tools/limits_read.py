"""Joints thrown against the barrier ends of their ranges at random: is a coordinate that a user reads ever beyond one?

    python tools/limits_read.py [--trials N] [--first SEED] [--out FILE]

A trial is one joint between two bodies, or to the world, of any type with a coordinate, enforcement, integrator, step, size and
stiffness, with a range of random width around its first value, at up to 1,000 m/s and 500 rad/s. After every step all that
tells of a coordinate is read: `joint.coordinates`, the coordinate's `value`, both in degrees too, and the values of its rows.
A trial ends early where a step is refused; by which error is counted.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from datetime import date
from pathlib import Path
from time import process_time

import numpy as np

import abd
from abd.errors import AbdError

sys.path.insert(0, str(Path(__file__).resolve().parent))

from results_file import write_results

ROOT = Path(__file__).resolve().parent.parent
STEPS = 8
KINDS = {
    "hinge": ("theta",),
    "prismatic": ("z",),
    "slider": ("z",),
    "cylindrical": ("z", "theta"),
    "planar": ("x", "y", "theta"),
    "slotted_hinge": ("x", "theta"),
    "universal": ("roll", "pitch"),
    "gimbal": ("roll", "pitch", "yaw"),
    "screw": ("theta",),
}
"""Types, and those of their coordinates that get ranges."""
ENFORCEMENTS = ("penalty", "exact", "compliant")
INTEGRATORS = ("generalized_alpha", "bdf1", "bdf2")


def trial_scene(seed: int, device: str = "cpu") -> tuple[abd.Scene, str]:
    """A random scene with one joint "j", and a few words about it."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(list(KINDS)))
    enforcement, integrator = str(rng.choice(ENFORCEMENTS)), str(rng.choice(INTEGRATORS))
    dt, kappa = float(10.0 ** rng.uniform(-4, -2)), float(10.0 ** rng.uniform(5, 10))
    speed, spin = 10.0 ** rng.uniform(-1, 3), 10.0 ** rng.uniform(-1, np.log10(500.0))
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt, "integrator": integrator})

    def motion() -> dict:
        v, w = rng.normal(size=3), rng.normal(size=3)
        return {
            "velocity": tuple(speed * v / np.linalg.norm(v)),
            "angular_velocity": tuple(spin * w / np.linalg.norm(w)),
            "box": tuple(rng.uniform(0.05, 0.5, 3)),
            "mass": float(10.0 ** rng.uniform(-1, 1)),
            "kappa": kappa,
        }

    parent = abd.WORLD
    if rng.random() < 0.6:
        scene.add_body("base", **motion())
        parent = "base"
    scene.add_body("tip", position=tuple(rng.uniform(-0.5, 0.5, 3)), **motion())
    ranges = {
        name: {"range": [float(-(10.0 ** rng.uniform(-3, -0.3))), float(10.0 ** rng.uniform(-3, -0.3))]}
        for name in KINDS[kind]
    }
    soft = {"compliance": float(10.0 ** rng.uniform(-6, -3))} if enforcement == "compliant" else {}
    lead = {"lead": 0.05} if kind == "screw" else {}
    axis = rng.normal(size=3)
    scene.add_joint(
        kind, "j", parent, "tip", anchor=tuple(rng.uniform(-0.2, 0.2, 3)), axis=tuple(axis / np.linalg.norm(axis)),
        enforcement=enforcement, coordinate=ranges, **soft, **lead,
    )  # fmt: skip
    return scene, f"{kind} {enforcement} {integrator}, dt {dt:.1e}, kappa {kappa:.0e}, {speed:.3g} m/s, {spin:.3g} rad/s"


def readings(joint, name: str) -> list[float]:
    """How far inside its range a coordinate is by all that is told of it [m or rad]; negative: beyond."""
    view, k = joint.coordinate(name), joint.coordinate_names.index(name)
    rows = [joint.row(f"{name}.{end}").value for end in ("lower", "upper")]
    radians = [(view.value, view.range), (joint.coordinates[k], view.range)]
    degrees = [(view.value_deg, view.range_deg), (joint.coordinates_deg[k], view.range_deg)]
    return [float(min(one - lower, upper - one)) for one, (lower, upper) in radians + degrees] + rows


def trial(seed: int, steps: int = STEPS) -> dict:
    """What became of a trial: the smallest of `readings` and its parts, the largest strain, and the error that ended it."""
    scene, words = trial_scene(seed)
    simulation = abd.Simulation(scene, device="cpu")
    joint = simulation.joints["j"]
    inside, strain, error, taken, names = np.inf, 0.0, "", 0, KINDS[joint.joint.type]
    for _ in range(steps):
        try:
            simulation.step()
        except AbdError as failure:
            error = getattr(failure, "reason", type(failure).__name__)
            break
        taken += 1
        for name in names:
            inside = min(inside, *readings(joint, name))
        A = simulation.stepper.q[:, 3:].reshape(-1, 3, 3)
        strain = max(strain, float(np.abs(A @ A.transpose(0, 2, 1) - np.eye(3)).max()))
    return {"seed": seed, "scene": words, "steps": taken, "inside": float(inside), "strain": strain, "error": error}


def main() -> int:
    """Run them; exit status 1 if any coordinate is read beyond an end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="seed of the first trial")
    name = f"limits-read-cpu-{date.today().isoformat()}.json"
    parser.add_argument("--out", type=Path, default=ROOT / "tools" / "results" / name)
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    begin, rows = process_time(), []
    try:
        for seed in range(given.first, given.first + given.trials):
            rows.append(trial(seed))
            if not rows[-1]["inside"] > 0.0 or rows[-1]["error"]:
                print(rows[-1], flush=True)
    except KeyboardInterrupt:
        print("interrupted: what was tried is written")
    beyond = sum(not row["inside"] > 0.0 for row in rows)
    errors = dict(Counter(row["error"] for row in rows if row["error"]))
    strained = sum(row["strain"] > 1e-3 for row in rows)
    facts = {"trials": len(rows), "beyond": beyond, "refused": errors, "strained_by_1e-3": strained}
    print(facts)
    write_results(given.out, "cpu", rows, **facts, cpu_seconds=round(process_time() - begin, 1))
    return int(beyond > 0)


if __name__ == "__main__":
    sys.exit(main())
