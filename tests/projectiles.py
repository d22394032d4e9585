"""Pairs of bodies that collide at several times their size per step."""

from dataclasses import dataclass

import numpy as np

import abd
from abd.energies import kinetic_energy

SIZE, DT = 0.2, 0.01
"""Size of a projectile [m]; time step [s]."""


def sheet(width: float, bulge: float, cells: int = 4) -> dict:
    """Create an open, curved surface in the y-z plane [m]."""
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
    """Projectile, target and its kind; largest random tilt [rad] and offset [m]; whether the bodies spin."""

    projectile: dict
    target: dict
    kind: str = "dynamic"
    tilt: float = np.pi
    offset: float = 0.25 * SIZE
    spins: bool = True


FLAT = Pair(BOX, BOX, tilt=0.0, offset=0.02)
PAIRS = {
    "box at box": Pair(BOX, BOX),
    "ball at ball": Pair(BALL, BALL),
    "box at free plate": Pair(BOX, PLATE, tilt=0.3),
    "box at fixed plate": Pair(BOX, PLATE, "static", tilt=0.3),
    "box at kinematic plate": Pair(BOX, PLATE, "kinematic", tilt=0.0),
    "ball at fixed plate": Pair(BALL, PLATE, "static", tilt=0.3),
    "ball at free plate": Pair(BALL, PLATE, tilt=0.3),
    "rod at rod": Pair(ROD_Y, ROD_Z, tilt=0.2, spins=False),
    "rod at fixed rod": Pair(ROD_Y, ROD_Z, "static", tilt=0.2, spins=False),
    "shell at box": Pair(SHELL, BOX, tilt=0.3, spins=False),
    "ball at shell": Pair(BALL, SHELL, tilt=0.3, spins=False),
}


@dataclass
class Outcome:
    """End of a run.

    Attributes:
        distance: x of the target minus x of the projectile [m].
        impulse: (3,) on the projectile [N s].
        energy: kinetic, at the end [J].
        inelastic_impulse: impulse of a central inelastic impact [N s].
        available_energy: of the closing motion and of the spins [J].
        rejected_paths: number of swept paths that were not collision-free.
    """

    distance: float
    impulse: np.ndarray
    energy: float
    inelastic_impulse: float
    available_energy: float
    rejected_paths: int


def _tilt(pair: Pair, rng) -> list[float]:
    """Return a quaternion of a random rotation by at most `pair.tilt`."""
    axis, angle = rng.normal(size=3), rng.uniform(0.0, pair.tilt)
    return [float(np.cos(angle / 2)), *(np.sin(angle / 2) * axis / np.linalg.norm(axis)).tolist()]


def create_scene(pair: Pair, sizes: float, spin: float, seed: int, substeps: int = 1) -> tuple[abd.Scene, float, float]:
    """Return the scene, its duration [s] and the closing speed [m/s]; bodies spin by up to `spin` pi per step of `DT`."""
    rng, speed = np.random.default_rng(seed), sizes * SIZE / DT
    scene = abd.Scene(gravity=(0.0, 0.0, 0.0), solver={"dt": DT / substeps})
    fraction = 0.0 if pair.kind == "static" else 0.5

    def random_spin() -> list[float]:
        axis = rng.normal(size=3)
        rate = rng.uniform(0.0, spin) * np.pi / DT if pair.spins else 0.0
        return (rate * axis / np.linalg.norm(axis)).tolist()

    distance = 0.75 + rng.uniform(0.0, max(1.0, sizes) * SIZE)
    position = [-distance, *rng.uniform(-pair.offset, pair.offset, 2).tolist()]
    velocity = ((1.0 - fraction) * speed, 0.0, 0.0)
    keys = {"quaternion": _tilt(pair, rng), "velocity": velocity, "angular_velocity": random_spin()}
    scene.add_body("projectile", **pair.projectile, position=position, **keys)
    target_velocity = (-fraction * speed, 0.0, 0.0)
    if pair.kind == "kinematic":
        scene.add_body("target", **pair.target, kind="kinematic", motion={"velocity": target_velocity})
    elif pair.kind == "static":
        scene.add_body("target", **pair.target, kind="static", quaternion=_tilt(pair, rng))
    else:
        moves = {"velocity": target_velocity, "angular_velocity": random_spin()}
        scene.add_body("target", **pair.target, quaternion=_tilt(pair, rng), **moves)
    return scene, DT * (np.ceil(distance / speed / DT) + 2.0), speed


def run(pair: Pair, sizes: float, spin: float, seed: int, device: str, substeps: int = 1) -> Outcome:
    """Advance by steps of ``DT / substeps`` until the projectile would be behind the target."""
    scene, duration, speed = create_scene(pair, sizes, spin, seed, substeps)
    sim = abd.Simulation(scene, device=device)
    start, masses = sim.stepper.qd[0, :3].copy(), sim.model.bodies.mass
    rotation = sim.stepper.qd.copy()
    rotation[:, :3] = 0.0
    target_mass = masses[1] if pair.kind == "dynamic" else np.inf
    reduced_mass = 1.0 / (1.0 / masses[0] + 1.0 / target_mass)
    available = 0.5 * reduced_mass * speed**2 + kinetic_energy(sim.model, rotation)
    reports = [sim.step() for _ in range(round(duration / DT) * substeps)]
    q, qd = sim.stepper.q, sim.stepper.qd
    impulse, rejected = masses[0] * (qd[0, :3] - start), sum(report.rejected_paths for report in reports)
    return Outcome(q[1, 0] - q[0, 0], impulse, reports[-1].energy["kinetic"], reduced_mass * speed, available, rejected)


def has_passed(pair: Pair, sizes: float, spin: float, seed: int, device: str) -> bool:
    """Return whether the projectile passes the target with a small impulse, and does not with steps of ``DT / 100``.

    A small impulse is less than a fifth of that of a central inelastic impact.
    """
    end = run(pair, sizes, spin, seed, device)
    if end.distance >= 0.0 or -end.impulse[0] >= 0.2 * end.inelastic_impulse:
        return False
    return run(pair, sizes, spin, seed, device, 100).distance >= 0.0
