"""Bodies set down within the activation of contact: `python tools/starts.py [--quick] [-o FILE]`.

A box at gaps from a millionth of its size to the whole activation above a half-space, a static box and a floor of 800
triangles, at steps from 10 to 0.1 ms, with every integrator, in three sizes: how far it rises and sinks, over its size, its
largest upward speed over that of its scale, and how far its energy goes above that of the start, over m g size. Then what
must not depend on the step: the front of a row of dominoes, and how far an arch and a stack settle in 0.15 s; and what must
stand: twenty boxes for 10 s, three boxes with a wall 20 m away, a heavy body on a light one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from results_file import write_results  # noqa: E402

import abd  # noqa: E402
from abd.contact.pair_law import D_HAT_SHARE  # noqa: E402

G = 9.81
ENERGIES = ("kinetic", "gravity", "elastic", "contact")
INTEGRATORS = ("bdf1", "bdf2", "generalized_alpha")
DEFAULT = "generalized_alpha"

MOST = 100
"""Steps for which a box is watched, at most."""


def floor_file(folder: Path, width: float, cells: int = 20) -> Path:
    """A square floor of 2 cells^2 triangles as a mesh file."""
    at = np.linspace(-0.5 * width, 0.5 * width, cells + 1)
    lines = [f"v {x!r} {y!r} 0" for y in at.tolist() for x in at.tolist()]
    for row in range(cells):
        for k in range(row * (cells + 1) + 1, row * (cells + 1) + cells + 1):
            lines += [f"f {k} {k + 1} {k + cells + 2}", f"f {k} {k + cells + 2} {k + cells + 1}"]
    path = folder / f"floor{width}.obj"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def box_on(floor: str, share: float, size: float, folder: Path, **solver) -> abd.Scene:
    """A cube at a gap of so many activations above a floor."""
    scene, width = abd.Scene(solver=solver), 48.0 * size
    if floor == "half-space":
        scene.add_body("floor", half_space={})
    elif floor == "box":
        scene.add_body("floor", box=(width, width, size), kind="static", position=(0, 0, -0.5 * size))
    else:
        scene.add_body("floor", mesh=str(floor_file(folder, width)), kind="static")
    height = 0.5 * size + share * D_HAT_SHARE * size
    scene.add_body("box", box=(size,) * 3, density=1000.0, position=(0.26 * size, 0.34 * size, height))
    return scene


def boxes(device: str, folder: Path, quick: bool) -> list[dict]:
    """Rows of the box set down."""
    rows = []
    for scale in (1.0,) if quick else (1.0, 1e-3, 1e3):
        size = 0.05 * scale
        for floor in ("half-space", "box", "800 triangles"):
            for share in (1e-6 / D_HAT_SHARE, 0.01, 0.1, 0.5, 1.0 - 1e-9):
                for dt in (1e-2, 1e-4) if quick else (1e-2, 2.5e-3, 1e-3, 1e-4):
                    for integrator in INTEGRATORS:
                        solver = {"dt": dt, "integrator": integrator, "tolerance": 1e-3 * min(scale, 1.0)}
                        row = {
                            "box": size,
                            "floor": floor,
                            "gap over activation": share,
                            "dt": dt,
                            "integrator": integrator,
                        }
                        simulation = abd.Simulation(box_on(floor, share, size, folder, **solver), device=device)
                        rows.append(row | watched(simulation, size, min(int(0.1 / dt) + 1, MOST)))
                        print(json.dumps(rows[-1]), flush=True)
    return rows


def watched(simulation: abd.Simulation, size: float, steps: int) -> dict:
    """What a box does in so many steps."""
    start, weight = simulation.stepper.q[1, 2], simulation.bodies["box"].mass * G
    before = weight * start + simulation.stepper.opening.energy
    height, speed, gained, newton = [], [], [], 0
    for _ in range(steps):
        report = simulation.step()
        newton += report.newton_iterations
        height.append(simulation.stepper.q[1, 2] - start)
        speed.append(simulation.stepper.qd[1, 2])
        gained.append(sum(report.energy[name] for name in ENERGIES) - before)
    return {
        "rise": max(0.0, max(height)) / size,
        "sink": -min(height) / size,
        "upward speed": max(0.0, max(speed)) * 0.05 / size,
        "energy": max(gained) / (weight * size),
        "newton": newton / steps,
    }


def dominoes(dt: float, integrator: str, count: int, device: str) -> dict:
    """Front speed of dominoes of 8 x 24 x 50 mm, 25 mm apart, and how many fall."""
    scene = abd.Scene(solver={"dt": dt, "integrator": integrator})
    scene.add_material("wood", mu=0.3)
    scene.add_body(
        "table", box=(0.025 * count + 1.0, 1, 0.1), kind="static", position=(0.0125 * count, 0, -0.05), material="wood"
    )
    for k in range(count):
        push = {"angular_velocity": (0, 5.0, 0), "velocity": (0.125, 0, 0)} if k == 0 else {}
        place = (0.025 * k, 0, 0.025 + 2e-5)
        scene.add_body(f"d{k}", box=(0.008, 0.024, 0.05), density=600.0, position=place, material="wood", **push)
    simulation = abd.Simulation(scene, device=device)
    fell, newton = np.full(count, np.inf), 0
    while simulation.time < 0.05 * count and not np.isfinite(fell).all():
        newton += simulation.step().newton_iterations
        upright = simulation.stepper.q[1:, 11]
        fell[(upright < 0.9) & np.isinf(fell)] = simulation.time
    first, last = count // 5, 4 * count // 5
    speed = 0.025 * (last - first) / (fell[last] - fell[first])
    row = {
        "dominoes": count,
        "dt": dt,
        "integrator": integrator,
        "fell": int(np.isfinite(fell).sum()),
        "front": float(speed),
    }
    return row | {"newton": newton / simulation.frame}


def settled(name: str, dt: float, device: str) -> dict:
    """How far the centers of a shipped scene's bodies move in 0.15 s [m]."""
    simulation = abd.Simulation(abd.load(name, [f"solver.dt={dt}"]), device=device)
    start = simulation.stepper.q[:, :3].copy()
    for _ in range(round(0.15 / dt)):
        simulation.step()
    return {"scene": name, "dt": dt, "moved": float(np.abs(simulation.stepper.q[:, :3] - start).max())}


def standing(name: str, scene: abd.Scene, duration: float, device: str) -> dict:
    """Largest motion and speed of what should stand."""
    simulation = abd.Simulation(scene, device=device)
    start, speed, half = simulation.stepper.q[:, :3].copy(), 0.0, None
    steps = round(duration / scene.solver.dt)
    for k in range(steps):
        report = simulation.step()
        speed = max(speed, float(np.abs(simulation.stepper.qd[:, :3]).max()))
        half = simulation.stepper.q[:, :3].copy() if k == steps // 2 else half
    creep = float(np.abs(simulation.stepper.q[:, :3] - half).max())
    moved = float(np.abs(simulation.stepper.q[:, :3] - start).max())
    return {
        "standing": name,
        "s": duration,
        "moved": moved,
        "in the second half": creep,
        "speed": speed,
        "gap": report.min_gap,
    }


def piles() -> dict[str, tuple[abd.Scene, float]]:
    """Scenes that stand, and for how long they are watched [s]."""
    tower, far, heavy = (abd.Scene(solver={"dt": dt}) for dt in (1e-2, 1e-3, 1e-2))
    for scene in (tower, far, heavy):
        scene.add_body("floor", half_space={})
    for k in range(20):
        tower.add_body(f"box{k}", box=(0.1,) * 3, position=(0, 0, 0.05 + 0.1002 * k + 2e-4))
    for k in range(3):
        far.add_body(f"box{k}", box=(0.2,) * 3, position=(0, 0, 0.102 + 0.202 * k))
    far.add_body("wall", box=(1, 40, 40), kind="static", position=(20.5, 0, 0))
    heavy.add_body("light", box=(0.1,) * 3, density=100.0, position=(0, 0, 0.0502), kappa=1e12)
    heavy.add_body("heavy", box=(0.1,) * 3, density=1e8, position=(0, 0, 0.1504), kappa=1e12)
    named = {
        "twenty boxes": (tower, 10.0),
        "three boxes, a wall 20 m away": (far, 0.1),
        "a million on one": (heavy, 1.0),
    }
    return named


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="one size, two steps")
    parser.add_argument("--dominoes", type=int, default=100, help="how many stand in the row [100]")
    parser.add_argument("--only", choices=("boxes", "piles", "settled", "dominoes"), help="one part of it")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    wanted = [options.only] if options.only else ["boxes", "piles", "settled", "dominoes"]
    rows, later = [], []
    if "boxes" in wanted:
        with tempfile.TemporaryDirectory() as folder:
            rows += boxes(options.device, Path(folder), options.quick)
    if "piles" in wanted:
        later += [(standing, name, *pile, options.device) for name, pile in piles().items()]
    if "settled" in wanted:
        for name in ("masonry_arch", "box_stack"):
            later += [(settled, name, dt, options.device) for dt in (1e-2, 2e-3, 5e-4)]
    if "dominoes" in wanted:
        count = options.dominoes
        later += [(dominoes, dt, DEFAULT, count, options.device) for dt in (1e-2, 5e-3, 2.5e-3, 1e-3)]
    for measure, *arguments in later:
        rows.append(measure(*arguments))
        print(json.dumps(rows[-1]), flush=True)
    if options.output:
        write_results(options.output, options.device, rows, tolerance="1e-3 m/s, times the scale of small boxes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
