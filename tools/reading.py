"""What reading contacts and force laws by functions cost, beside the steps that they belong to, in CPU time.

    python tools/reading.py [--boxes 10000] [--bodies 1000] [--steps 10] [-o FILE]

Contacts: boxes at rest in stacks of four; after every step all points with their forces are read, and the force on every
body. Laws: the same boxes, each pushed by a function of (time, body) that asks for its position, against the same ones that
are pushed by numbers.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS.parent)]

import numpy as np  # noqa: E402
from results_file import write_results  # noqa: E402

import abd  # noqa: E402

STACK = 4


def stacks(count: int) -> abd.Scene:
    """Boxes in stacks on the ground, with friction."""
    side = int(np.ceil(np.sqrt(count / STACK)))
    scene = abd.Scene("stacks")
    scene.add_material("default", mu=0.5)
    scene.add_body("ground", half_space={})
    grid = {"count": (side, side, STACK), "step": (0.3, 0.3, 0.1002)}
    scene.add_body("box", box=(0.1, 0.1, 0.1), position=(0, 0, 0.0502), density=1000, repeat=grid)
    return scene


def reading(count: int, steps: int) -> dict:
    """CPU time of steps and of reading their contacts [s], medians."""
    sim = abd.Simulation(stacks(count), device="cpu")
    sim.run(steps=5)
    sim.contacts()
    step, read = [], []
    for _ in range(steps):
        begin = time.process_time()
        sim.step()
        between = time.process_time()
        contacts = sim.contacts()
        forces = np.array([contacts.on(k)[:3] for k in range(len(sim.bodies))])
        assert len(contacts.friction) == len(contacts.force)  # points share friction when they are asked for it
        step.append(between - begin)
        read.append(time.process_time() - between)
    weight = 9.81 * sim.model.bodies.mass[1:]
    return {
        "bodies": len(sim.bodies) - 1,
        "points": len(contacts),
        "step_s": float(np.median(step)),
        "reading_s": float(np.median(read)),
        "share": float(np.median(read) / np.median(step)),
        "worst_balance": float(np.abs(forces[1:, 2] / weight - 1.0).max()),
    }


def laws(count: int, steps: int) -> dict:
    """CPU time of a step of bodies that functions push, and of the same step that numbers push [s], medians."""
    found = {}
    for name in ("numbers", "functions"):
        sim = abd.Simulation(stacks(count), device="cpu")
        for body in list(sim.bodies.values())[1:]:
            body.apply_force((0, 0, 0) if name == "numbers" else lambda t, one: 0.0 * one.position)
        sim.run(steps=3)
        spent = []
        for _ in range(steps):
            begin = time.process_time()
            sim.step()
            spent.append(time.process_time() - begin)
        found[name] = float(np.median(spent))
    return found | {"bodies": len(sim.bodies) - 1, "share": found["functions"] / found["numbers"] - 1.0}


def main() -> None:
    """Measure, print, and write where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--boxes", type=int, default=10000)
    parser.add_argument("--bodies", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("-o", dest="out", type=Path, help="JSON file to write")
    given = parser.parse_args()
    found = {"contacts": reading(given.boxes, given.steps), "laws": laws(given.bodies, given.steps)}
    for name, values in found.items():
        print(name, {key: round(value, 6) for key, value in values.items()})
    if given.out is not None:
        write_results(given.out, "cpu", [{"what": name, **values} for name, values in found.items()])


if __name__ == "__main__":
    main()
