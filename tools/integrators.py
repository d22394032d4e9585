"""What every integrator keeps, loses and costs: rotation, energy, order on mechanisms, and impacts.

    python tools/integrators.py [--only PART] [-o tools/results/integrators-cpu-DATE.json]

Torque: 100 N m on 0.1 kg m^2 for 1 s at 10 ms; 1,000 rad/s is right. Tumbling: a free body of three moments, 5 rad per
step for 1 s. Top: a symmetric one on its tip, against Euler's equations at 1e-12. Mechanisms: those of `reference_cases`,
exact joints, at h and h/2. Double pendulum: energy over steps of 5 ms. Limit, contact: speed returned over the incoming one,
and the largest gain of energy, at four phases of the step.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS / "peers"), str(TOOLS.parent)]

from reference_cases import CASES, G, angular_velocity, empty, link, position, solution  # noqa: E402
from reference_runs import KINDS, run, worst  # noqa: E402
from results_file import write_results  # noqa: E402

import abd  # noqa: E402

INTEGRATORS = ("generalized_alpha", "bdf1", "bdf2")
MECHANISMS = (("spherical chain", 0.005, 0.5), ("four-bar", 0.005, 0.5), ("linkage", 0.0025, 0.25))
TOP = {"mass": 1.0, "moment": 0.05, "along": 0.02, "height": 0.5, "tilt": 0.5}
"""Mass [kg], moments about the centre of mass [kg m^2], its distance from the tip [m], first angle to the vertical [rad]."""


def torque(integrator: str, device: str) -> dict:
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01, "integrator": integrator})
    scene.add_body("wheel", proxy=True, mass=1.0, inertia=(0.1,) * 3, torque=(0, 0, 100.0))
    simulation = abd.Simulation(scene, device=device)
    newton = sum(simulation.step().newton_iterations for _ in range(100))
    return {"speed": float(angular_velocity(simulation, "wheel")[2]), "newton_mean": newton / 100}


def tumbling(integrator: str, device: str) -> dict:
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01, "integrator": integrator})
    spin = 500.0 * np.array([0.6, 0.48, 0.64])
    scene.add_body("body", proxy=True, mass=1.0, inertia=(0.1, 0.15, 0.22), angular_velocity=tuple(spin))
    simulation = abd.Simulation(scene, device=device)
    for _ in range(100):
        report = simulation.step()
    inertia = np.array([0.1, 0.15, 0.22])
    momentum = np.linalg.norm(report.momentum["angular"] - inertia * spin) / np.linalg.norm(inertia * spin)
    return {"energy": report.energy["kinetic"] / (0.5 * inertia @ spin**2) - 1.0, "momentum": float(momentum)}


def top(integrator: str, device: str, spin: float, h: float, duration: float) -> dict:
    """Error of the centre of mass [m] and loss of spin about the body's axis [-]."""
    m, moment, along, height, tilt = TOP.values()
    axis = np.array([np.sin(tilt), 0.0, np.cos(tilt)])
    scene = empty(h, gravity=(0, 0, -G), integrator=integrator)
    keys = {"axis_angle": {"axis": (0, 1, 0), "degrees": np.degrees(tilt)}, "angular_velocity": tuple(spin * axis)}
    link(scene, "top", m, (moment, moment, along), tuple(height * axis), **keys)
    scene.add_spherical("tip", abd.WORLD, "top", anchor=(0, 0, 0), enforcement="exact")
    simulation = abd.Simulation(scene, device=device)
    steps, newton = round(duration / h), 0
    for _ in range(steps):
        newton += simulation.step().newton_iterations
    about_tip = moment + m * height**2

    def rate(t, y):
        """Of the axis and the angular momentum about the tip; the spin about the axis is constant."""
        u, L = y[:3], y[3:]
        w = (L - (L @ u) * u) / about_tip
        return np.concatenate([np.cross(w, u), np.cross(height * u, (0, 0, -m * G))])

    known = solution(rate, np.concatenate([axis, along * spin * axis]), [duration])[-1]
    found = angular_velocity(simulation, "top") @ simulation.bodies["top"].transform[:3, 2]
    return {
        "position": float(np.abs(position(simulation, "top") - height * known[:3]).max()),
        "spin_lost": float(1.0 - found / spin),
        "newton_mean": newton / steps,
    }


def mechanism(integrator: str, device: str, name: str, h: float, until: float) -> dict:
    coarse, fine = (run(CASES[name], step, until, device, integrator=integrator) for step in (h, 0.5 * h))
    errors = {kind: (worst(coarse.errors, kind), worst(fine.errors, kind)) for kind in KINDS}
    row = {kind: fine_error for kind, (_, fine_error) in errors.items()}
    return {**row, "order": float(np.log2(np.divide(*errors["position"]))), "newton_mean": round(fine.newton, 2)}


def double_pendulum(integrator: str, device: str, steps: int) -> dict:
    """Largest and last change of energy [J]; the bars of 1 kg and 1 m begin level."""
    scene = empty(0.005, integrator=integrator)
    for k, parent in enumerate((abd.WORLD, "bar0")):
        link(scene, f"bar{k}", 1.0, (0.01, 0.1, 0.1), (0.5 + k, 0, 0))
        scene.add_hinge(f"hinge{k}", parent, f"bar{k}", anchor=(k, 0, 0), axis=(0, 0, 1), enforcement="exact")
    simulation = abd.Simulation(scene, device=device)
    energies, newton = [], 0
    for _ in range(steps):
        report = simulation.step()
        newton += report.newton_iterations
        energies.append(sum(report.energy[name] for name in ("kinetic", "gravity", "elastic", "joint")))
    change = np.array(energies) - energies[0]
    return {"last": float(change[-1]), "largest": float(np.abs(change).max()), "newton_mean": newton / steps}


def stopped(integrator: str, device: str, what: str, h: float) -> dict:
    """Share of the incoming speed that a joint limit or a floor returns, and gain of energy [-]."""
    returned, gain = [], []
    for phase in (0.0, 0.25, 0.5, 0.75):
        scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": h, "integrator": integrator})
        if what == "limit":
            scene.add_body("arm", proxy=True, mass=1.0, inertia=(0.01,) * 3, angular_velocity=(0, 0, 2.0))
            way = {"range": (-1.0, 0.1 + 2.0 * phase * h), "enforcement": "exact"}
            scene.add_hinge("hinge", abd.WORLD, "arm", anchor=(0, 0, 0), axis=(0, 0, 1), **way)
        else:
            scene.add_body("floor", half_space={})
            scene.add_body("box", box=(0.1,) * 3, position=(0, 0, 0.06 + phase * h), velocity=(0, 0, -1.0))
        simulation = abd.Simulation(scene, device=device)
        energies = []
        for _ in range(round((0.05 if what == "limit" else 0.01) / h) + (60 if h > 5e-4 else 250)):
            energy = simulation.step().energy
            energies.append(energy["kinetic"] + energy["contact"] + energy["joint"])
        speed = -simulation.joints["hinge"].rates[0] / 2.0 if what == "limit" else simulation.stepper.qd[-1, 2]
        returned.append(float(speed))
        gain.append(max(energies) / energies[0] - 1.0)
    return {"returned": max(returned), "gain": max(gain)}


def plans(steps: int):
    """(what, function, arguments, integrators)."""
    yield "torque", torque, (), INTEGRATORS
    yield "tumbling", tumbling, (), INTEGRATORS
    for spin, h in ((150.0, 1e-3), (1500.0, 1e-3), (1500.0, 1e-4)):
        yield f"top of {spin:g} rad/s, h = {h:g}", top, (spin, h, 0.2), INTEGRATORS
    for name, h, until in MECHANISMS:
        yield f"{name}, h = {h / 2:g}", mechanism, (name, h, until), INTEGRATORS
    yield f"double pendulum, {steps} steps", double_pendulum, (steps,), ("generalized_alpha", "bdf2")
    for what in ("limit", "contact"):
        for h in (1e-2, 1e-3, 1e-4):
            yield f"{what}, h = {h:g}", stopped, (what, h), ("generalized_alpha",)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="part of what is measured")
    parser.add_argument("--steps", type=int, default=2000, help="of the double pendulum")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    rows = []
    print("| what | integrator | measured |\n|---|---|---|")
    for what, function, arguments, integrators in plans(options.steps):
        if options.only not in what:
            continue
        for integrator in integrators:
            found = function(integrator, options.device, *arguments)
            rows.append({"what": what, "integrator": integrator, **found})
            numbers = ", ".join(f"{name} {value:.3g}" for name, value in found.items())
            print(f"| {what} | {integrator} | {numbers} |", flush=True)
    if not rows:
        print(f"nothing has '{options.only}' in its name", file=sys.stderr)
        return 2
    if options.output:
        write_results(options.output, options.device, rows, spectral_radius=0.8)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
