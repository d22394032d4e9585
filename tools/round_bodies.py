"""Exact balls in a trough and in a bin: `python tools/round_bodies.py [--only trough] [--device cpu] [-o FILE]`.

- `trough`: a ball in a rough trough of facets, half a period over pi sqrt(7 (R - r) / (5 g)) (1 + a^2 / 16).
- `bin`: ten balls and ten cubes fall into a bin; the processor's seconds for one second simulated, Newton iterations and the
  smallest gap. `--subdivisions 3` makes the balls meshes of 642 vertices.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS.parent)]

from results_file import write_results  # noqa: E402

import abd  # noqa: E402

G, RADIUS = 9.81, 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("trough", "bin"), help="both by default")
    parser.add_argument("--steps", type=int, default=200, help="of the bin [200]")
    parser.add_argument("--subdivisions", type=int, help="of the bin's balls; exact ones by default")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    rows = []
    if options.only != "bin":
        rows += [rolling(facets, options.device) for facets in (90, 180)]
    if options.only != "trough":
        ball = {} if options.subdivisions is None else {"subdivisions": options.subdivisions}
        rows.append(falling(ball, options.steps, options.device))
    for row in rows:
        print(row, flush=True)
    if options.output:
        write_results(options.output, options.device, rows)


def trough(facets: int, radius: float, length: float) -> dict:
    """Half a cylinder along y, its inside up, as triangles."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, facets + 1)
    ring = np.stack([radius * np.sin(angle), -radius * np.cos(angle)], axis=1).tolist()
    vertices = [(x, y, z) for y in (-length / 2, length / 2) for x, z in ring]
    triangles = [t for k in range(facets) for t in ((k, k + 1, facets + 2 + k), (k, facets + 2 + k, facets + 1 + k))]
    return {"vertices": vertices, "triangles": triangles}


def rolling(facets: int, device: str) -> dict:
    """Half a period of a ball between two passages through the lowest point."""
    radius, start = 0.5, 0.3
    scene = abd.Scene()
    scene.add_material("rough", mu=0.8)
    scene.add_body("trough", kind="static", surface=trough(facets, radius, 0.4), material="rough")
    out = radius - RADIUS - 6e-4
    place = (out * np.sin(start), 0.03, -out * np.cos(start))
    scene.add_body("ball", sphere={"radius": RADIUS}, position=place, material="rough")
    simulation = abd.Simulation(scene, device=device)
    x = [place[0]]
    for _ in range(200):
        simulation.step()
        x.append(simulation.bodies["ball"].transform[0, 3])
    passages = [0.01 * (k + x[k] / (x[k] - x[k + 1])) for k in range(200) if x[k] * x[k + 1] < 0.0]
    expected = np.pi * np.sqrt(7.0 * (radius - RADIUS) / (5.0 * G)) * (1.0 + start**2 / 16.0)
    return {"trough": facets, "over theory": float(np.diff(passages)[0] / expected)}


def bin_of(ball: dict) -> abd.Scene:
    """Ten balls (radius 25 mm) and ten cubes (50 mm) above the bottom of a bin of 0.3 x 0.3 x 0.6 m."""
    scene = abd.Scene(solver={"dt": 0.01})
    scene.add_material("rough", mu=0.5)
    width, height, wall = 0.3, 0.6, 0.02
    fixed = {"kind": "static", "material": "rough"}
    scene.add_body("floor", box=(width + 2 * wall, width + 2 * wall, wall), position=(0, 0, -wall / 2), **fixed)
    for k, (x, y) in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
        extents = (wall, width + 2 * wall, height) if x else (width, wall, height)
        out = (width + wall) / 2
        scene.add_body(f"wall_{k}", box=extents, position=(x * out, y * out, height / 2), **fixed)
    rng = np.random.default_rng(0)
    for k in range(20):
        middle = 0.13 * (np.array([k % 2, k // 2 % 2]) - 0.5) + rng.uniform(-0.02, 0.02, 2)
        turn = rng.normal(size=4)
        shape = {"box": (0.05, 0.05, 0.05)} if k % 2 else {"sphere": {"radius": 0.025, **ball}}
        place = (*middle.tolist(), 0.08 + 0.1 * (k // 4))
        quaternion = tuple((turn / np.linalg.norm(turn)).tolist())
        scene.add_body(f"body_{k}", **shape, position=place, quaternion=quaternion, material="rough")
    return scene


def falling(ball: dict, steps: int, device: str) -> dict:
    """The bin's first steps."""
    simulation = abd.Simulation(bin_of(ball), device=device)
    begin = time.process_time()
    reports = [simulation.step() for _ in range(steps)]
    seconds = (time.process_time() - begin) / (steps * simulation.model.settings.dt)
    newton, gap = sum(r.newton_iterations for r in reports), min(r.min_gap for r in reports)
    return {"bin": ball or "exact balls", "seconds per second": seconds, "newton": newton, "smallest gap": gap}


if __name__ == "__main__":
    main()
