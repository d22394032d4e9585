"""How much a slide over a flat floor feels the floor's triangles, with either contact set.

A frictionless box of 0.1 m slides with 0.4 m/s over flat floors of 2, 800 and 20,000 triangles and over a half-space, in
three directions: the relative change of its speed, its largest yaw rate [rad/s], where it rests [m], and the Newton
iterations. ``python tools/triangulation.py [--seconds 1.5] [--device cpu] [--out FILE]``
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from results_file import write_results

import abd

SPEED, SIZE, HALF = 0.4, 0.1, 1.0
"""[m/s], box and half the floor [m]."""
GAP, D_HAT = 2e-4, 1e-3
"""Start above the floor, activation [m]."""
CELLS = {"half-space": 0, "2": 1, "800": 20, "20000": 100}
"""Triangles, and squares along a side."""
DIRECTIONS = (0.0, 17.0, 45.0)
"""[deg]"""


@dataclass(frozen=True)
class Slide:
    """Largest relative change of the speed [-], largest yaw rate [rad/s], gap at the end [m], Newton iterations."""

    speed_change: float
    yaw_rate: float
    gap: float
    newton_iterations: int


def floor(cells: int) -> dict:
    """A flat sheet of ``2 cells^2`` triangles."""
    nodes = np.linspace(-HALF, HALF, cells + 1)
    corners = [[float(x), float(y), 0.0] for x in nodes for y in nodes]
    starts = [i * (cells + 1) + j for i in range(cells) for j in range(cells)]
    triangles = [t for a in starts for b in (a + cells + 1,) for t in ([a, b, b + 1], [a, b + 1, a + 1])]
    return {"vertices": corners, "triangles": triangles}


def slide(cells: int, direction: float, device: str, seconds: float, contact_set: str = "minima") -> Slide:
    """One slide in a direction [deg]; over a half-space where there are no cells."""
    scene = abd.Scene(gravity=(0.0, 0.0, -9.81))
    scene.solver.contact_set, scene.solver.d_hat = contact_set, D_HAT
    if cells:
        scene.add_body("floor", surface=floor(cells), kind="static")
    else:
        scene.add_body("floor", half_space={}, kind="static")
    along = np.array([np.cos(np.radians(direction)), np.sin(np.radians(direction))])
    start = -0.31 * along + (0.0123, 0.0071)
    scene.add_body(
        "box",
        box=(SIZE, SIZE, SIZE),
        position=(*start.tolist(), 0.5 * SIZE + GAP),
        velocity=(*(SPEED * along).tolist(), 0.0),
    )
    simulation = abd.Simulation(scene, device=device)
    box, iterations, speeds, rates = simulation.bodies["box"], 0, [], []
    for _ in range(round(seconds / scene.solver.dt)):
        iterations += simulation.step().newton_iterations
        velocity, pose = np.asarray(box.velocity), np.asarray(box.transform)
        spin = velocity[:3, :3] @ np.linalg.inv(pose[:3, :3])
        speeds.append(np.linalg.norm(velocity[:2, 3]))
        rates.append(0.5 * (spin[1, 0] - spin[0, 1]))
    change = np.abs(np.array(speeds) / SPEED - 1.0).max()
    return Slide(float(change), float(np.abs(rates).max()), float(pose[2, 3] - 0.5 * SIZE), int(iterations))


def main() -> None:
    """Print the table, and write it where `--out` says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    rows = []
    print(f"{'set':8} {'triangles':>10} {'deg':>5} {'speed':>9} {'yaw rad/s':>10} {'gap m':>12} {'newton':>7}")
    for contact_set in ("minima", "ipc"):
        for name, cells in CELLS.items():
            for direction in DIRECTIONS:
                found = slide(cells, direction, chosen.device, chosen.seconds, contact_set)
                rows.append({"contact_set": contact_set, "triangles": name, "direction_deg": direction, **asdict(found)})
                print(
                    f"{contact_set:8} {name:>10} {direction:5.0f} {found.speed_change:9.1e} {found.yaw_rate:10.1e} "
                    f"{found.gap:12.7f} {found.newton_iterations:7d}",
                    flush=True,
                )
    if chosen.out:
        write_results(chosen.out, chosen.device, rows, seconds=chosen.seconds)


if __name__ == "__main__":
    main()
