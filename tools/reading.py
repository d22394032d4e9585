"""What reading contacts and force laws by functions cost, beside the steps that they belong to, in CPU time.

    python tools/reading.py [--boxes 10000] [--bodies 1000] [--steps 10] [-o FILE]

Contacts: boxes at rest in stacks of four; after every step all points with their normal forces are read, then the force on
every body, friction and slip at the points, and patches, each by itself, as arrays; then every patch as an object. Laws: the
same boxes, each pushed by a function of (time, body) that asks for its position, against the same ones that are pushed by
numbers.
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
    """CPU time of steps and of what is read after each of them [s], medians: points with their normal forces, then forces on
    all bodies, then friction at the points, then patches, then these as objects."""
    sim = abd.Simulation(stacks(count), device="cpu")
    sim.run(steps=5)
    sim.contacts().patches()
    spent: dict[str, list[float]] = {}

    def timed(name: str, what):
        begin = time.process_time()
        found = what()
        spent.setdefault(name, []).append(time.process_time() - begin)
        return found

    for _ in range(steps):
        timed("step", sim.step)
        contacts = timed("points", sim.contacts)
        forces = timed("bodies", lambda: [contacts.on(k)[:3] for k in range(len(sim.bodies))])  # noqa: B023
        timed("friction", lambda: (contacts.force, contacts.slip, contacts.sticks))  # noqa: B023
        patches = timed("patches", contacts.patches)
        timed("objects", lambda: list(patches))  # noqa: B023
    seconds = {name: float(np.median(values)) for name, values in spent.items()}
    weight = 9.81 * sim.model.bodies.mass[1:]
    return {
        "bodies": len(sim.bodies) - 1,
        "points": len(contacts),
        **{f"{name}_s": value for name, value in seconds.items()},
        "share_points": seconds["points"] / seconds["step"],
        "share_points_and_bodies": (seconds["points"] + seconds["bodies"]) / seconds["step"],
        "share_with_friction": (seconds["points"] + seconds["bodies"] + seconds["friction"]) / seconds["step"],
        "share_of_all_arrays": (sum(seconds.values()) - seconds["step"] - seconds["objects"]) / seconds["step"],
        "worst_balance": float(np.abs(np.array(forces)[1:, 2] / weight - 1.0).max()),
    }


def laws(count: int, steps: int) -> dict:
    """CPU time of a step of bodies that functions push, and of the same step that numbers push, in turns [s], medians."""
    sims, spent = {}, {"numbers": [], "functions": []}
    for name in spent:
        sims[name] = abd.Simulation(stacks(count), device="cpu")
        for body in list(sims[name].bodies.values())[1:]:
            body.apply_force((0, 0, 0) if name == "numbers" else lambda t, one: 0.0 * one.position)
        sims[name].run(steps=3)
    for _ in range(steps):
        for name, sim in sims.items():
            begin = time.process_time()
            sim.step()
            spent[name].append(time.process_time() - begin)
    found = {name: float(np.median(values)) for name, values in spent.items()}
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
