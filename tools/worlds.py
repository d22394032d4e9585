"""Worlds side by side: `python tools/worlds.py [--worlds 64] [--steps 60] [--alone 4] [--speed 0] [--device cpu] [-o FILE]`.

Five boxes of 10 cm, rough and a little elastic, fall askew upon one another and upon the ground, in every world from another
start; with `--speed` they are thrown at up to so many m/s, so that many steps are taken in pieces. Measured is the CPU time
of a step of all worlds, over their number, beside that of a step of one world alone, step by step in turns. Every world that
is run alone has to be bit for bit what it is among the others: exit status 1 if not.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import process_time

import numpy as np

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS.parent)]

from results_file import write_results  # noqa: E402

import abd  # noqa: E402

BOXES = 5


def heap(world: int, speed: float) -> abd.Scene:
    """Five boxes above the ground, as they begin in a world."""
    random = np.random.default_rng(world)
    scene = abd.Scene(solver={"dt": 0.01, "tolerance": 1e-3})
    scene.add_material("default", mu=0.4, restitution=0.2)
    scene.add_body("ground", half_space={})
    for k in range(BOXES):
        turn = {"axis": random.normal(size=3).tolist(), "degrees": float(random.uniform(0, 40))}
        place = (*random.uniform(-0.03, 0.03, 2).tolist(), 0.1 + 0.18 * k)
        thrown = (speed * random.uniform(-1, 1, 3)).tolist()
        scene.add_body(f"box{k}", box=(0.1,) * 3, density=1000, position=place, axis_angle=turn, velocity=thrown)
    return scene


def side_by_side(count: int, speed: float) -> abd.Scene:
    """As many heaps as worlds of one scene."""
    out = heap(0, speed).replicate(count)
    for world in range(count):
        for body in heap(world, speed).spec.body:
            one = out.body(f"w{world}_{body.name}")
            one.velocity, one.position, one.axis_angle = body.velocity, body.position, body.axis_angle
    return out


def timed(simulation: abd.Simulation) -> tuple[float, int]:
    """CPU time of a step [s], and its substeps."""
    begin = process_time()
    report = simulation.step()
    return process_time() - begin, report.substeps


def main(arguments: list[str] | None = None) -> int:
    """Measure, and say whether bits agree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=64)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--alone", type=int, default=4)
    parser.add_argument("--speed", type=float, default=0.0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args(arguments)
    many = abd.Simulation(side_by_side(given.worlds, given.speed), device=given.device)
    alone = [abd.Simulation(heap(k, given.speed), device=given.device) for k in range(given.alone)]
    rows, same = [], True
    for step in range(given.steps):
        together, pieces = timed(many)
        single = [timed(one) for one in alone]
        states = [one.reshape(given.worlds, -1, 12) for one in (many.stepper.q, many.stepper.qd)]
        equal = all(
            np.array_equal(found[k], there)
            for k, one in enumerate(alone)
            for found, there in zip(states, (one.stepper.q, one.stepper.qd), strict=True)
        )
        same &= equal
        per_world, by_itself = together / given.worlds, float(np.mean([time for time, _ in single]))
        rows.append({
            "step": step, "cpu_ms_per_world": 1e3 * per_world, "cpu_ms_alone": 1e3 * by_itself, "substeps": pieces,
            "substeps_alone": [count for _, count in single], "same_bits": equal,
        })  # fmt: skip
    skipped = rows[2:]  # the first steps allocate and record
    ratios = {}
    for name, chosen in (
        ("all", skipped),
        ("whole", [row for row in skipped if row["substeps"] == 1]),
        ("in pieces", [row for row in skipped if row["substeps"] > 1]),
    ):
        if chosen:
            each, one = (sum(row[key] for row in chosen) for key in ("cpu_ms_per_world", "cpu_ms_alone"))
            ratios[name] = each / one
            print(f"{name:10} {len(chosen):4} steps: {each / len(chosen):8.3f} ms CPU per world, {one / len(chosen):8.3f} alone, "
                  f"{each / one:.3f}")  # fmt: skip
    print("every world is what it is alone" if same else "WORLDS DIFFER from what they are alone")
    if given.output:
        facts = {"worlds": given.worlds, "bodies": BOXES, "speed_m_per_s": given.speed, "ratios": ratios}
        write_results(given.output, given.device, rows, **facts)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
