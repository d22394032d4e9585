"""Impacts, friction and rolling: `python tools/impacts.py [--device cpu] [-o FILE] [--swings 10] [--stick 100]`.

Measures, and writes as a JSON file and a table: the restitution of a ball and of a box on its edge on a plane at dt 1 ms,
for every e and integrator; the share of the friction impulse that acts in the very step of an impact; the acceleration of a
box on a ramp beyond the angle of friction; how far a box moves on a ramp of 0.95 of that angle; rolling bodies after 1 s at
dt 10 ms over theory; the energy that a Newton's cradle of five keeps with e = 1. Exit status 1 if a restitution is off by more
than 0.02, energy grows, the box moves by more than 1e-6 m, a ratio to theory is off by more than 0.005 (impulses: by 0.05), or
the cradle keeps less than 95 %.
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
        shape, height = {"sphere": {"radius": 0.05}}, 0.05
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
    case = {"case": "friction in the step of the impact", "measured": float(share), "within": 0.05}
    return case | {"after ten steps": float(whole)}


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
    return {"case": "ramp beyond the angle of friction", "measured": measured, "within": 0.005}


def stick(device: str, seconds: float) -> dict:
    """How far a box moves on a ramp of 0.95 of the angle of friction [m], dt 10 ms, its first step left out: it was put down
    above the ramp."""
    slope, h = 0.5, 0.01
    scene = abd.Scene(solver={"dt": h})
    scene.add_material("rough", mu=tan(slope) / 0.95)
    normal, downhill = np.array([sin(slope), 0.0, cos(slope)]), np.array([cos(slope), 0.0, -sin(slope)])
    scene.add_body("slope", half_space={"normal": tuple(normal)}, material="rough")
    turn = {"axis": (0.0, 1.0, 0.0), "degrees": float(np.degrees(slope))}
    scene.add_body(
        "box", box=(0.2, 0.2, 0.2), position=tuple(0.1004 * normal), axis_angle=turn, material="rough"
    )  # fmt: skip
    simulation = abd.Simulation(scene, device=device)
    places, iterations = [], 0
    for _ in range(round(seconds / h)):
        iterations += simulation.step().newton_iterations
        places.append(float(simulation.bodies["box"].position @ downhill))
    return {
        "case": f"box at 0.95 of the angle of friction, {seconds:g} s", "moves": float(np.ptp(places)),
        "after 1 s": float(np.ptp(places[100:])), "newton": iterations,
    }  # fmt: skip


def rolling(device: str, kind: str) -> dict:
    """Speed after 1 s at dt 10 ms over theory, of a ball or a cylinder of 5 cm radius: rolling on level ground, down a slope
    of 0.1 rad, or set down with 1 m/s without a spin."""
    shape, motion = kind.split(", ")
    radius, h, angle = 0.05, 0.01, 0.1 if motion == "slope" else 0.0
    gravity = (G * sin(angle), 0.0, -G * cos(angle))
    scene = abd.Scene(solver={"dt": h}, gravity=gravity)
    scene.add_material("rough", mu=0.5)
    scene.add_body("ground", half_space={}, material="rough")
    spin = 1.0 / radius if motion == "level" else 0.0
    body = {"velocity": (0.0 if motion == "slope" else 1.0, 0.0, 0.0), "angular_velocity": (0.0, spin, 0.0)}
    if shape == "ball":
        body |= {"sphere": {"radius": radius}}
    else:
        body |= {"cylinder": {"radius": radius, "length": 0.1}, "axis_angle": {"axis": (1.0, 0.0, 0.0), "degrees": 90.0}}
    scene.add_body("body", position=(0.0, 0.0, radius + 1e-4), material="rough", **body)
    simulation = abd.Simulation(scene, device=device)
    inertia = 0.4 if shape == "ball" else 0.5
    expected = {"level": 1.0, "slope": G * sin(angle) / (1.0 + inertia), "set down": 1.0 / (1.0 + inertia)}[motion]
    for _ in range(100):
        simulation.step()
    measured = float(simulation.bodies["body"].linear_velocity[0]) / expected
    return {"case": f"rolling, {kind}", "measured": measured, "within": 0.005}


def rolling_cone(device: str, rate: float = 1.0) -> dict:
    """Rate after 1 s at dt 10 ms, over that of the beginning, of a cone that rolls around its tip on level ground: `rate` [rad/s]
    about the line in which it touches."""
    radius, length, h = 0.05, 0.1, 0.01
    up = np.arctan2(radius, length)
    along = np.array([cos(up), 0.0, sin(up)])  # from the tip to the base
    scene = abd.Scene(solver={"dt": h})
    scene.add_material("rough", mu=1.0)
    scene.add_body("ground", half_space={}, material="rough")
    spin = np.array([rate, 0.0, 0.0])
    scene.add_body(
        "cone", cone={"radius": radius, "length": length}, position=tuple(0.5 * length * along + (0.0, 0.0, 1e-4)),
        axis_angle={"axis": (0.0, 1.0, 0.0), "degrees": float(np.degrees(np.arctan2(-along[0], -along[2])))},
        velocity=tuple(np.cross(spin, 0.75 * length * along)), angular_velocity=tuple(spin), material="rough",
    )  # fmt: skip
    simulation = abd.Simulation(scene, device=device)
    for _ in range(100):
        simulation.step()
    measured = float(np.linalg.norm(simulation.bodies["cone"].angular_velocity)) / rate
    return {"case": f"rolling, cone around its tip, {rate:g} rad/s", "measured": measured, "within": 0.005}


def cradle(device: str, swings: float, integrator: str = "generalized_alpha", gap: float = 1e-4, angle: float = 0.4) -> dict:
    """Energy that five balls on hinges keep, the first one lifted; one swing is one period of the pendulum."""
    length, radius, h = 0.3, 0.025, H
    scene = abd.Scene(solver={"dt": h, "integrator": integrator, "tolerance": 1e-4})
    scene.add_material("steel", restitution=1.0)
    for k in range(5):
        x, a = (2.0 * radius + gap) * k, angle if k == 0 else 0.0
        scene.add_body(
            f"ball{k}", sphere={"radius": radius}, position=(x - length * sin(a), 0.0, -length * cos(a)),
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
    parser.add_argument("--stick", type=float, default=100.0, help="seconds that the box has to stay; 0 leaves it out")
    given = parser.parse_args()
    rows = [
        restitution(kind, e, integrator, given.device)
        for integrator in ("generalized_alpha", "bdf1", "bdf2")
        for kind in ("ball", "edge")
        for e in (0.0, 0.3, 0.6, 0.9, 1.0)
    ]
    rows += [first_friction(given.device), ramp(given.device)]
    kinds = [f"{shape}, {motion}" for shape in ("ball", "cylinder") for motion in ("level", "slope", "set down")]
    rows += [rolling(given.device, kind) for kind in kinds]
    rows.append(rolling_cone(given.device))
    if given.stick > 0.0:
        rows.append(stick(given.device, given.stick))
    if given.swings > 0.0:
        rows.append(cradle(given.device, given.swings))
    failed = 0
    for row in rows:
        off = row.get("moves", 0.0) > 1e-6
        if "e" in row:
            off = abs(row["measured"] - row["e"]) > 0.02
        elif "within" in row:
            off = abs(row["measured"] - 1.0) > row["within"]
        elif "measured" in row:
            off = row["measured"] < 0.95
        failed += off or row.get("growth", 0.0) > 1e-9
        print("  ".join(f"{key} {value:.4g}" if isinstance(value, float) else str(value) for key, value in row.items()))
    if given.out:
        write_results(given.out, given.device, rows)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
