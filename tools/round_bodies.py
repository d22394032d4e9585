"""Balls, capsules and cylinders against closed forms, exact balls against meshes: `python tools/round_bodies.py [--only ...]`.

- `rolling`: set down with 1 m/s on a rough plane, v = v0 / (1 + I / (m r^2)) after 1 s at dt 10 ms, bdf2.
- `bowl`: a ball in a rough trough of facets, T = 2 pi sqrt(7 (R - r) / (5 g)) (1 + a^2 / 16).
- `clutter`: 10 balls and 10 cubes fall into a bin; CPU time per simulated second, Newton iterations and smallest gap.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import abd

G = 9.81
ON_ITS_SIDE = {"axis_angle": {"axis": (1.0, 0.0, 0.0), "degrees": 90.0}}
RADIUS = 0.1


def main() -> None:
    """Print what was asked for."""
    kinds = {"rolling": rolling, "bowl": bowl, "clutter": clutter}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(kinds), default=list(kinds), help="all by default")
    parser.add_argument("--steps", type=int, default=200, help="of the clutter")
    arguments = parser.parse_args()
    for name in arguments.only:
        kinds[name](*([arguments.steps] if name == "clutter" else []))


def rolling() -> None:
    """Speeds after 1 s of bodies that slide first, then roll."""
    bodies = {
        "exact ball": {"sphere": {"radius": RADIUS}},
        "ball of 642 vertices": {"sphere": {"radius": RADIUS, "subdivisions": 3}},
        "exact capsule": {"capsule": {"radius": RADIUS, "length": 0.2}, **ON_ITS_SIDE},
        "cylinder of 64 facets": {"cylinder": {"radius": RADIUS, "length": 0.2, "segments": 64}, **ON_ITS_SIDE},
    }
    for name, body in bodies.items():
        scene = abd.Scene(solver={"dt": 0.01, "integrator": "bdf2", "d_hat": 1e-3})
        scene.add_material("rough", mu=0.5)
        scene.add_body("ground", half_space={}, material="rough")
        scene.add_body("body", position=(0, 0, RADIUS + 1e-3), velocity=(1.0, 0, 0), material="rough", **body)
        simulation = abd.Simulation(scene)
        newton = sum(simulation.step().newton_iterations for _ in range(100))
        mass, moment = simulation.model.bodies.mass[1], np.sort(simulation.model.bodies.moment[1])
        # the two equal entries of S are those across the axis, and I about it is their sum
        across = moment[0] if moment[1] - moment[0] < moment[2] - moment[1] else moment[1]
        expected = 1.0 / (1.0 + 2.0 * across / (mass * RADIUS**2))
        speed = simulation.bodies["body"].velocity[0, 3]
        print(
            f"{name}: {speed:.5f} m/s, theory {expected:.5f} ({speed / expected - 1:+.2%}), {newton} Newton iterations"
        )


def trough(facets: int, radius: float, length: float) -> dict:
    """Half a cylinder along y, its inside up, as triangles."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, facets + 1)
    ring = np.stack([radius * np.sin(angle), -radius * np.cos(angle)], axis=1).tolist()
    vertices = [(x, y, z) for y in (-length / 2, length / 2) for x, z in ring]
    triangles = [t for k in range(facets) for t in ((k, k + 1, facets + 2 + k), (k, facets + 2 + k, facets + 1 + k))]
    return {"vertices": vertices, "triangles": triangles}


def bowl() -> None:
    """Half a period of a ball between two passages through the lowest point."""
    radius, start = 0.5, 0.3
    for facets in (90, 180):
        scene = abd.Scene(solver={"integrator": "bdf2", "d_hat": 5e-4})
        scene.add_material("rough", mu=0.8)
        scene.add_body("trough", kind="static", surface=trough(facets, radius, 0.4), material="rough")
        out = radius - RADIUS - 6e-4
        place = (out * np.sin(start), 0.03, -out * np.cos(start))
        scene.add_body("ball", sphere={"radius": RADIUS}, position=place, material="rough")
        simulation = abd.Simulation(scene)
        x, newton = [place[0]], 0
        for _ in range(200):
            newton += simulation.step().newton_iterations
            x.append(simulation.bodies["ball"].transform[0, 3])
        passages = [0.01 * (k + x[k] / (x[k] - x[k + 1])) for k in range(200) if x[k] * x[k + 1] < 0.0]
        expected = np.pi * np.sqrt(7.0 * (radius - RADIUS) / (5.0 * G)) * (1.0 + start**2 / 16.0)
        half = np.diff(passages)[0]
        print(
            f"trough of {facets} facets: half a period {half:.5f} s, theory {expected:.5f} s ({half / expected - 1:+.2%})"
        )


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


def clutter(steps: int) -> None:
    """The bin with exact balls, and with meshes of them."""
    for name, ball in (("exact balls", {}), ("balls of 642 vertices", {"subdivisions": 3})):
        simulation = abd.Simulation(bin_of(ball))
        begin, reports = time.process_time(), []
        for _ in range(steps):
            reports.append(simulation.step())
        cost = (time.process_time() - begin) / (steps * 0.01)
        newton, gap = sum(r.newton_iterations for r in reports), min(r.min_gap for r in reports)
        print(
            f"clutter, {name}: {cost:.2f} CPU-s per simulated second, {newton} Newton iterations, smallest gap {gap:.2e} m"
        )


if __name__ == "__main__":
    main()
