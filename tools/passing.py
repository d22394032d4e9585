"""Bodies thrown at each other so fast that a step leads beyond: do they meet?

    python tools/passing.py [--pairs NAMES] [--speeds S ...] [--spins S ...] [--trials N] [--references N] [--out FILE]

Every trial is a scene with default settings, without gravity: a projectile flies along x at a target that is free, fixed or
kinematic, by so many of its sizes per step, both turning by up to `spin` pi per step, from a random distance, at a random
offset that cannot miss. A trial is suspected if the projectile ends behind the target and less than a fifth of the momentum
was exchanged that a central inelastic impact exchanges, and has passed if at a hundredth of the step it does not end
behind: plates that turn fast are hit at their edges, or turn out of the way. `behind` counts all that end there, whatever
was exchanged. The first trials of every row are repeated at a hundredth of the step: `momentum` and `energy` are how many
of these end within 20 % of it, measured against the exchanged momentum there, and against the energy of the closing motion
and of the spins.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np

import abd
from abd.energies import kinetic_energy
from abd.errors import AbdError

sys.path.insert(0, str(Path(__file__).resolve().parent))

from results_file import write_results

SIZE = 0.2
"""Of a projectile [m]."""
DT = 0.01
FINER = 100
REFUSED = "refused_ways"


def sheet(width: float, bulge: float, cells: int = 4) -> dict:
    """An open bent surface in the y-z plane, of so many cells a side [m]."""
    side = np.linspace(-0.5, 0.5, cells + 1)
    y, z = (one.ravel() for one in np.meshgrid(side, side, indexing="ij"))
    vertices = np.column_stack([bulge * (4.0 * (y * y + z * z) - 1.0), width * y, width * z])
    corner = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
    a, b, c, d = corner, corner + 1, corner + cells + 2, corner + cells + 1
    triangles = np.concatenate([np.column_stack([a, b, c]), np.column_stack([a, c, d])])
    return {"vertices": vertices.tolist(), "triangles": triangles.tolist()}


BOX = {"box": (SIZE, SIZE, SIZE)}
BALL = {"sphere": {"radius": SIZE / 2, "subdivisions": 2}}
PLATE = {"box": (0.02, 1.0, 1.0)}
ROD_Y, ROD_Z = {"box": (0.02, 2 * SIZE, 0.02)}, {"box": (0.02, 0.02, 2 * SIZE)}
SHELL = {"surface": sheet(2 * SIZE, 0.05), "thickness": 0.004}


@dataclass(frozen=True)
class Pair:
    """What is thrown at what; tilts [rad], offsets [m] up to which they are turned and shifted, at random."""

    projectile: dict
    target: dict
    kind: str = "dynamic"
    tilt: float = np.pi
    offset: float = 0.25 * SIZE
    turns: bool = True


PAIRS = {
    "box at box": Pair(BOX, BOX),
    "ball at ball": Pair(BALL, BALL),
    "box at free plate": Pair(BOX, PLATE, tilt=0.3),
    "box at fixed plate": Pair(BOX, PLATE, "static", tilt=0.3),
    "box at kinematic plate": Pair(BOX, PLATE, "kinematic", tilt=0.0),
    "ball at fixed plate": Pair(BALL, PLATE, "static", tilt=0.3),
    "ball at free plate": Pair(BALL, PLATE, tilt=0.3),
    "rod at rod": Pair(ROD_Y, ROD_Z, tilt=0.2, turns=False),
    "rod at fixed rod": Pair(ROD_Y, ROD_Z, "static", tilt=0.2, turns=False),
    "shell at box": Pair(SHELL, BOX, tilt=0.3, turns=False),
    "ball at shell": Pair(BALL, SHELL, tilt=0.3, turns=False),
}


@dataclass
class Outcome:
    """End of a trial: x of the projectile before the target [m]; change of its momentum [kg m/s]; energy [J], and of the spins
    at the beginning; what the steps took."""

    ahead: float
    pushed: np.ndarray
    energy: float
    spins: float
    substeps: int
    refused: int
    newton: int
    steps: int


def tilted(pair: Pair, rng) -> list[float]:
    """A random quaternion: any, or by up to the tilt."""
    axis = rng.normal(size=3)
    angle = rng.uniform(0.0, pair.tilt)
    return [float(np.cos(angle / 2)), *(np.sin(angle / 2) * axis / np.linalg.norm(axis)).tolist()]


def thrown(pair: Pair, sizes: float, spin: float, seed: int, finer: int) -> tuple[abd.Scene, float, float]:
    """The scene, its duration [s], and the closing speed [m/s]."""
    rng = np.random.default_rng(seed)
    speed = sizes * SIZE / DT
    scene = abd.Scene(gravity=(0.0, 0.0, 0.0), solver={"dt": DT / finer})
    reach = {"dynamic": 0.5, "kinematic": 0.5, "static": 0.0}[pair.kind]

    def turning() -> list[float]:
        axis = rng.normal(size=3)
        rate = rng.uniform(0.0, spin) * np.pi / DT if pair.turns else 0.0
        return (rate * axis / np.linalg.norm(axis)).tolist()

    distance = 0.75 + rng.uniform(0.0, max(1.0, sizes) * SIZE)
    place = [-distance, *rng.uniform(-pair.offset, pair.offset, 2).tolist()]
    scene.add_body(
        "projectile", **pair.projectile, position=place, quaternion=tilted(pair, rng),
        velocity=((1.0 - reach) * speed, 0.0, 0.0), angular_velocity=turning(),
    )  # fmt: skip
    motion = {"static": {}, "kinematic": {"motion": {"velocity": (-reach * speed, 0.0, 0.0)}}}
    moves = {"velocity": (-reach * speed, 0.0, 0.0), "angular_velocity": turning()}
    pose = {} if pair.kind == "kinematic" else {"quaternion": tilted(pair, rng)}
    scene.add_body("target", **pair.target, **pose, kind=pair.kind, **motion.get(pair.kind, moves))
    return scene, DT * (np.ceil(distance / speed / DT) + 2.0), speed


def run(pair: Pair, sizes: float, spin: float, seed: int, device: str, finer: int = 1) -> Outcome:
    """One trial.

    Raises:
        StepFailure: a step did not converge.
    """
    scene, duration, _ = thrown(pair, sizes, spin, seed, finer)
    sim = abd.Simulation(scene, device=device)
    start, mass = sim.stepper.qd[0, :3].copy(), sim.bodies["projectile"].mass
    turning = sim.stepper.qd.copy()
    turning[:, :3] = 0.0
    spins = kinetic_energy(sim.model, turning)
    steps, substeps, refused, newton = round(duration / DT) * finer, 0, 0, 0
    for _ in range(steps):
        report = sim.step()
        substeps += report.substeps
        refused += getattr(report, REFUSED, 0)
        newton += report.newton_iterations
    q, qd = sim.stepper.q, sim.stepper.qd
    return Outcome(
        q[1, 0] - q[0, 0], mass * (qd[0, :3] - start), report.energy["kinetic"], spins, substeps, refused, newton, steps
    )


def reduced_mass(pair: Pair, sizes: float) -> tuple[float, float]:
    """Of the pair [kg], and the closing speed [m/s]."""
    scene, _, speed = thrown(pair, sizes, 0.0, 0, 1)
    model = scene.compile()
    m, other = model.bodies.mass[0], model.bodies.mass[1] if pair.kind == "dynamic" else np.inf
    return float(1.0 / (1.0 / m + 1.0 / other)), speed


def row(name: str, sizes: float, spin: float, trials: int, references: int, device: str, seed: int) -> dict:
    """All trials of a pair at one speed and spin."""
    pair, begin = PAIRS[name], process_time()
    mass, speed = reduced_mass(pair, sizes)
    out = {"pair": name, "sizes_per_step": sizes, "spin": spin, "trials": trials}
    counts = dict.fromkeys(("failed", "suspected", "passed", "behind", "refused", "substeps", "steps", "newton"), 0)
    compared = dict.fromkeys(("references", "behind_at_a_hundredth", "momentum", "energy"), 0)
    failures = []
    for trial in range(trials):
        number = seed + 1000 * trial
        try:
            end = run(pair, sizes, spin, number, device)
        except AbdError as error:
            counts["failed"] += 1
            failures.append(f"{number}: {error}")
            continue
        behind = end.ahead < 0.0
        counts["behind"] += behind
        suspected = behind and -end.pushed[0] < 0.2 * mass * speed
        counts["suspected"] += suspected
        for key in ("refused", "substeps", "steps", "newton"):
            counts[key] += getattr(end, key)
        if trial >= references and not suspected:
            continue
        fine = run(pair, sizes, spin, number, device, FINER)
        counts["passed"] += suspected and fine.ahead >= 0.0
        if trial >= references:
            continue
        compared["references"] += 1
        compared["behind_at_a_hundredth"] += fine.ahead < 0.0
        push = np.linalg.norm(fine.pushed)
        compared["momentum"] += np.linalg.norm(end.pushed - fine.pushed) <= 0.2 * push
        compared["energy"] += abs(end.energy - fine.energy) <= 0.2 * (0.5 * mass * speed**2 + fine.spins)
    out |= {key: int(value) for key, value in {**counts, **compared}.items()}
    out |= {"cpu_seconds": round(process_time() - begin, 2), "failures": failures}
    return out


def main(argv: list[str] | None = None) -> int:
    """Command line; status 1 if anything passed or failed."""
    parser = argparse.ArgumentParser(prog="passing.py", description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", nargs="*", default=list(PAIRS), choices=PAIRS, metavar="NAME", help=", ".join(PAIRS))
    parser.add_argument("--speeds", nargs="*", type=float, default=[0.5, 1, 2, 5, 20, 100], help="sizes per step")
    parser.add_argument("--spins", nargs="*", type=float, default=[0.0, 1.0], help="largest turn per step, over pi")
    parser.add_argument("--trials", type=int, default=20, help="of every pair, speed and spin [20]")
    parser.add_argument("--references", type=int, default=2, help="of these repeated at a hundredth of the step [2]")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="file of results (JSON)")
    arguments = parser.parse_args(argv)
    rows = []
    for name in arguments.pairs:
        for spin in arguments.spins if PAIRS[name].turns else [0.0]:
            for sizes in arguments.speeds:
                rows.append(
                    row(name, sizes, spin, arguments.trials, arguments.references, arguments.device, arguments.seed)
                )
                if arguments.out:
                    write_results(arguments.out, arguments.device, rows, dt=DT, size=SIZE)
                print(*(f"{key} {value}" for key, value in rows[-1].items() if value != []), sep="  ", flush=True)
    bad = sum(one["passed"] + one["failed"] for one in rows)
    print(f"{sum(one['trials'] for one in rows)} trials, {bad} passed or failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
