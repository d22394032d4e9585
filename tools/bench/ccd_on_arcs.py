"""Cost of continuous collision detection on arcs against straight paths: `python tools/bench/ccd_on_arcs.py [--json FILE]`.

A scene advances; after every step the motion of the next one is followed twice from the same state, once along the
arcs and once straight in the same direction, each with its own list of candidates. The two take turns in one process,
so that what else the machine does falls on both. Prints time per candidate, candidates, and how far the paths are free.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

TOOLS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOOLS), str(TOOLS.parent)]

from results_file import write_results  # noqa: E402

import abd  # noqa: E402
from abd.rotations import skew  # noqa: E402
from cuda_kernels.parallel import sums  # noqa: E402

FIELDS = ("dp", "w", "S", "rate", "bend", "reach", "strain")
REPEATS = 5


def tumbling_boxes(count: int = 64, seed: int = 0) -> abd.Scene:
    """Turning boxes of different edges over a half-space, close enough to meet at once."""
    scene, random = abd.Scene(solver={"dt": 0.01, "d_hat": 5e-4}), np.random.default_rng(seed)
    scene.add_body("ground", half_space={})
    for k in range(count):
        axis = random.normal(size=3)
        scene.add_body(
            f"box {k}",
            box=(0.1, 0.08, 0.06),
            position=(0.145 * (k % 4), 0.145 * (k // 4 % 4), 0.09 + 0.145 * (k // 16)),
            axis_angle={"axis": list(axis / np.linalg.norm(axis)), "degrees": float(random.uniform(0, 180))},
            angular_velocity=tuple(random.uniform(-10, 10, 3)),
        )
    return scene


def straightened(arcs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The straight paths that start in the direction of given arcs, from and to the fields of a kernel's `Path`."""
    turn, strain = np.linalg.norm(arcs["w"], axis=1), np.linalg.norm(arcs["S"], 2, axis=(1, 2))
    slope = turn * (1.0 + strain) + strain
    radius = np.where(slope > 0.0, arcs["reach"] / np.where(slope > 0.0, slope, 1.0), 0.0)
    S = skew(arcs["w"]) + arcs["S"]
    size, zero = np.linalg.norm(S, 2, axis=(1, 2)), np.zeros_like
    return {
        "dp": arcs["dp"],
        "w": zero(arcs["w"]),
        "S": S,
        "rate": arcs["rate"],
        "bend": zero(arcs["bend"]),
        "reach": radius * size,
        "strain": size,
    }


class Follower:
    """Follows the motion of a simulation's next step."""

    def __init__(self, simulation: abd.Simulation):
        self.simulation, self.backend = simulation, simulation.backend
        self.everybody = np.arange(self.backend.n)

    def arcs(self) -> dict[str, np.ndarray]:
        """Fields of the arcs along the velocities."""
        backend = self.backend
        backend.arcs.follow_velocity(np.ones(backend.n, dtype=int))
        return {name: backend.device.read(getattr(backend.track.path, name)) for name in FIELDS}

    def follow(self, fields: dict[str, np.ndarray]) -> tuple[float, int, np.ndarray]:
        """Seconds of one pass over the candidates, their number, and how far the islands' paths are free (islands,)."""
        backend = self.backend
        device, contacts, islands = backend.device, backend.contacts, backend.islands
        for name, values in fields.items():
            device.write(getattr(backend.track.path, name), values)
        limit, out = islands.scalars("limit"), backend.scratch.a
        device.write(limit, np.ones(islands.count))
        contacts.candidates.forget()
        contacts.candidates.build(backend.track.path, islands.island, limit)
        contacts.evaluate(backend.at, "current")
        times = []
        for _ in range(REPEATS):
            begin = perf_counter()
            contacts.times_of_impact(backend.track.path, islands.island, limit, out)
            times.append(perf_counter() - begin)
        return min(times), contacts.candidates.count, islands.reduced(out, sums.MIN)


def measure(scene, steps: int = 40, device: str = "cpu") -> dict:
    """One row: medians over the steps in which something may meet."""
    simulation = abd.Simulation(scene, device=device)
    follower, found = Follower(simulation), []
    for _ in range(steps):
        simulation.step()
        state = simulation.stepper.state()
        arcs = follower.arcs()
        on_arcs, straight = follower.follow(arcs), follower.follow(straightened(arcs))
        simulation.stepper.restore(state)
        if on_arcs[1] and straight[1]:
            found.append((on_arcs, straight, float(np.linalg.norm(arcs["w"], axis=1).max())))
    if not found:
        raise SystemExit("nothing comes near anything in these steps")
    return {
        "bodies": len(simulation.model.bodies),
        "steps": len(found),
        "largest_turn_rad": round(max(turn for *_, turn in found), 3),
        "candidates_arcs": median(arc[1] for arc, _, _ in found),
        "candidates_straight": median(line[1] for _, line, _ in found),
        "ns_per_candidate_arcs": round(1e9 * median(arc[0] / arc[1] for arc, _, _ in found), 1),
        "ns_per_candidate_straight": round(1e9 * median(line[0] / line[1] for _, line, _ in found), 1),
        "cost_ratio": round(median(arc[0] / line[0] for arc, line, _ in found), 3),
        "free_arcs": round(float(np.mean([arc[2].mean() for arc, _, _ in found])), 4),
        "free_straight": round(float(np.mean([line[2].mean() for _, line, _ in found])), 4),
    }


SCENES = {
    "tumbling boxes": tumbling_boxes,
    "gears": lambda: abd.load("gears"),
    "box stack": lambda: abd.load("box_stack"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--json", type=Path, help="file to write")
    options = parser.parse_args()
    rows = []
    for name, make in SCENES.items():
        rows.append({"scene": name} | measure(make(), options.steps, options.device))
        print(rows[-1], flush=True)
    if options.json:
        write_results(options.json, options.device, rows, tolerance="each scene's own")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
