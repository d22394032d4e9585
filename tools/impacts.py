"""Impacts and friction: `python tools/impacts.py [--device cpu] [-o FILE] [--swings 10]`.

Measures, and writes as a JSON file and a table: the restitution of a ball and of a box on its edge on a plane at dt 1 ms,
for every e and integrator; the share of the friction impulse that acts in the very step of an impact; the acceleration of a
box on a ramp beyond the angle of friction; the energy that a Newton's cradle of five keeps with e = 1. Exit status 1 if a
restitution is off by more than 0.02, energy grows, or the cradle keeps less than 95 %.
"""

from __future__ import annotations

import argparse
import sys
from math import cos, pi, sin, sqrt, tan
from pathlib import Path

import numpy as np

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS.parent)]

from results_file import write_results  # noqa: E402

import abd  # noqa: E402

G, H, SPEED = 9.81, 1e-3, 2.0
ENERGIES = ("kinetic", "gravity", "elastic")


def restitution(kind: str, e: float, integrator: str, device: str) -> dict:
    """A ball of 5 cm radius, or a box of 10 cm on its edge, that falls on a plane at 2 m/s."""
    scene = abd.Scene(solver={"dt": H, "integrator": integrator})
    scene.add_material("m", restitution=e)
    scene.add_body("ground", half_space={}, material="m")
    if kind == "ball":
        shape, height = {"sphere": {"radius": 0.05, "subdivisions": 2}}, 0.05
    else:
        shape, height = (
            {"box": (0.1, 0.1, 0.1), "axis_angle": {"axis": (0.0, 1.0, 0.0), "degrees": 45.0}},
            0.05 * sqrt(2.0),
        )
    scene.add_body("body", position=(0.0, 0.0, height + 0.0074), velocity=(0.0, 0.0, -SPEED), material="m", **shape)
    simulation = abd.Simulation(scene, device=device)
    speeds, energies, iterations = [-SPEED], [], 0
    for _ in range(20):
        report = simulation.step()
        iterations += report.newton_iterations
        speeds.append(float(simulation.bodies["body"].velocity[2, 3]))
        energies.append(sum(report.energy[name] for name in ENERGIES))
    hit = int(np.argmax(np.diff(speeds) > 0.1))
    measured = max(speeds[hit + 1 :]) / -speeds[hit]
    growth = max(energies) / energies[0] - 1.0
    return {"case": f"{kind}, {integrator}", "e": e, "measured": measured, "growth": growth, "newton": iterations}


def first_friction(device: str) -> dict:
    """A box with fixed axes strikes a rough plane at 2 m/s: friction's impulse in the step over mu times the normal one."""
    mu, h = 0.3, 0.01
    scene = abd.Scene(solver={"dt": h})
    scene.add_material("rough", mu=mu)
    scene.add_body("ground", half_space={}, material="rough")
    scene.add_body(
        "box", box=(0.2, 0.2, 0.2), position=(0.0, 0.0, 0.113), velocity=(1.0, 0.0, -SPEED), material="rough",
        fix=["rx", "ry", "rz"],
    )  # fmt: skip
    simulation = abd.Simulation(scene, device=device)
    simulation.step()
    velocity = simulation.bodies["box"].velocity[:3, 3]
    share = (1.0 - velocity[0]) / (mu * (velocity[2] + SPEED + G * h))
    for _ in range(9):
        simulation.step()
    # what ten steps of weight and the whole impact take
    whole = (1.0 - simulation.bodies["box"].velocity[0, 3]) / (mu * (SPEED + 10 * G * h))
    return {"case": "friction in the step of the impact", "measured": float(share), "after ten steps": float(whole)}


def ramp(device: str, beyond: float = 0.05) -> dict:
    """Acceleration of a box on a ramp of 0.5 rad, mu = tan(0.5) - `beyond`, over g (sin - mu cos)."""
    slope, h = 0.5, 0.01
    mu = tan(slope) - beyond
    scene = abd.Scene(solver={"dt": h})
    scene.add_material("rough", mu=mu)
    normal, downhill = np.array([sin(slope), 0.0, cos(slope)]), np.array([cos(slope), 0.0, -sin(slope)])
    scene.add_body("slope", half_space={"normal": tuple(normal)}, material="rough")
    turn = {"axis": (0.0, 1.0, 0.0), "degrees": float(np.degrees(slope))}
    scene.add_body(
        "box", box=(0.2, 0.2, 0.2), position=tuple(0.1004 * normal), axis_angle=turn, material="rough"
    )  # fmt: skip
    simulation = abd.Simulation(scene, device=device)
    speeds = []
    for _ in range(100):
        simulation.step()
        speeds.append(float(simulation.bodies["box"].velocity[:3, 3] @ downhill))
    measured = (speeds[-1] - speeds[20]) / (79 * h) / (G * (sin(slope) - mu * cos(slope)))
    return {"case": "ramp beyond the angle of friction", "measured": measured}


def cradle(device: str, swings: float, integrator: str = "bdf2", gap: float = 1e-4, angle: float = 0.4) -> dict:
    """Energy that five balls on hinges keep, the first one lifted; one swing is one period of the pendulum."""
    length, radius, h = 0.3, 0.025, H
    scene = abd.Scene(solver={"dt": h, "integrator": integrator, "d_hat": 2e-5, "tolerance": 1e-4})
    scene.add_material("steel", restitution=1.0)
    for k in range(5):
        x, a = (2.0 * radius + gap) * k, angle if k == 0 else 0.0
        scene.add_body(
            f"ball{k}", sphere={"radius": radius, "subdivisions": 1}, position=(x - length * sin(a), 0.0, -length * cos(a)),
            axis_angle={"axis": (0.0, 1.0, 0.0), "degrees": float(np.degrees(a))}, material="steel", density=7800.0,
        )  # fmt: skip
        scene.add_hinge(
            f"string{k}", abd.WORLD, f"ball{k}", anchor=(x, 0.0, 0.0), axis=(0.0, 1.0, 0.0), enforcement="exact"
        )
    simulation = abd.Simulation(scene, device=device)
    lowest = -float(simulation.model.bodies.mass.sum()) * G * length
    energies, iterations = [], 0
    for _ in range(round(swings * 2.0 * pi * sqrt(length / G) / h)):
        report = simulation.step()
        iterations += report.newton_iterations
        energies.append(sum(report.energy[name] for name in ENERGIES) - lowest)
    return {
        "case": f"cradle, {integrator}, {swings:g} swings", "measured": energies[-1] / energies[0],
        "growth": max(energies) / energies[0] - 1.0, "newton": iterations,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--swings", type=float, default=10.0, help="of the cradle; 0 leaves it out")
    given = parser.parse_args()
    rows = [
        restitution(kind, e, integrator, given.device)
        for integrator in ("generalized_alpha", "bdf1", "bdf2")
        for kind in ("ball", "edge")
        for e in (0.0, 0.3, 0.6, 0.9, 1.0)
    ]
    rows += [first_friction(given.device), ramp(given.device)]
    if given.swings > 0.0:
        rows.append(cradle(given.device, given.swings))
    failed = 0
    for row in rows:
        off = abs(row["measured"] - row["e"]) > 0.02 if "e" in row else row["measured"] < 0.95
        failed += off or row.get("growth", 0.0) > 1e-4
        print("  ".join(f"{key} {value:.4g}" if isinstance(value, float) else str(value) for key, value in row.items()))
    if given.out:
        write_results(given.out, given.device, rows)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
