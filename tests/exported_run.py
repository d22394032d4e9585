"""A run with all objects that exports draw."""

from pathlib import Path

import numpy as np

import abd
from abd.api.simulation import Simulation
from abd.io.run import run
from abd.io.trajectory import Trajectory

FRAMES = 7


def scene(gravity=(0.0, 0.0, -9.81)) -> abd.Scene:
    """Create a scene with all shapes and with a hinge, ball joint, rope and spring."""
    scene = abd.Scene("mixed <scene>", gravity=gravity, solver={"dt": 0.01}, output={"frames": FRAMES - 1})
    scene.add_body("ground", half_space={})
    scene.add_body("box one", box=(0.3, 0.2, 0.1), position=(0, 0, 1), angular_velocity=(30, 2, 10))
    scene.add_body("box_one", box=(0.3, 0.2, 0.1), position=(0.5, 0, 1), color=(1, 0, 0, 0.5))
    scene.add_body("rounded", box=(0.1, 0.1, 0.1), rounding=0.02, position=(-1, 0, 1), color=(0, 0.5, 1))
    scene.add_body("ball", sphere={"radius": 0.1}, position=(1, 0, 0.5), velocity=(1, 0, 0))
    scene.add_body("rod", capsule={"radius": 0.1, "length": 0.3}, position=(2, 0, 0.5), angular_velocity=(9, 0, 1))
    scene.add_body("cylinder", cylinder={"radius": 0.1, "length": 0.3}, position=(3, 0, 0.5))
    scene.add_body("wall", box=(0.1, 1, 1), position=(-2, 0, 1), kind="static")
    scene.add_hinge("pivot", abd.WORLD, "cylinder", anchor=(3, 0, 0.7), axis=(0, 1, 0))
    scene.add_spherical("socket", abd.WORLD, "box one", anchor=(0, 0, 1.2))
    scene.add_rope("rope", abd.WORLD, "ball", 2.0, parent_anchor=(1, 0, 2), child_anchor=(0, 0, 0))
    scene.add_spring("spring", "rod", "cylinder", 50.0, parent_anchor=(0, 0, 0), child_anchor=(0, 0, 0), rest_length=1)
    return scene


def make(folder: Path, **options) -> Path:
    """Run the scene and return the directory of the run."""
    mixed = scene(**options)
    run(mixed, mixed.started(), folder / "run", device="cpu", simulate=Simulation)
    return folder / "run"


def poses(folder: Path) -> tuple[list[str], np.ndarray]:
    """Return the names of the bodies and their poses (T, n, 4, 4)."""
    with Trajectory(folder) as trajectory:
        return trajectory.names, trajectory.transforms(slice(None))


def rope_ends(folder: Path) -> np.ndarray:
    """Return (T, 2, 3) ends of the rope."""
    names, pose = poses(folder)
    ball = pose[:, names.index("ball"), :3, 3]
    return np.stack([np.broadcast_to([1.0, 0.0, 2.0], ball.shape), ball], axis=1)
