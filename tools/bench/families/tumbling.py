"""Fast rotation with contact, for stiffnesses kappa from 1e8 to 1e11 Pa: a tumbling pile, gears, a spinning top.

The size of these families is kappa: their iterations per step should not depend on it.
"""

from __future__ import annotations

import numpy as np

import abd
from families.boxes import ground
from families.family import Family, alone

KAPPAS = (1e8, 1e9, 1e10, 1e11)
QUICK = (1e8, 1e11)


def tumbling(kappa: float) -> abd.Scene:
    """27 boxes that spin at up to 10 rad/s while they fall onto each other."""
    scene, random = ground(), np.random.default_rng(11)
    for k in range(27):
        cell = np.array([k % 3, k // 3 % 3, k // 9])
        position = 0.19 * cell + random.uniform(-0.01, 0.01, 3) + (0.0, 0.0, 0.1)
        spin, velocity = random.uniform(-10.0, 10.0, 3), (0.0, 0.0, -1.0)
        keys = {"velocity": velocity, "angular_velocity": spin.tolist(), "kappa": kappa}
        scene.add_body(f"box {k}", box=(0.1, 0.1, 0.1), position=position.tolist(), **keys)
    return scene


def gears(kappa: float) -> abd.Scene:
    """The shipped pair of gears, one driven, that mesh by contact."""
    return abd.load("gears", [f"body.{name}.kappa={kappa}" for name in body_names(abd.load("gears"))])


def body_names(scene: abd.Scene) -> list[str]:
    """Names of its bodies."""
    return [body.name for body in scene.spec.body]


def top(kappa: float) -> abd.Scene:
    """A double cone that spins on its tip at 60 rad/s, leaning by 10 degrees."""
    scene = ground()
    turns = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
    rim = np.column_stack([0.05 * np.cos(turns), 0.05 * np.sin(turns), np.full(24, 0.06)])
    vertices = np.concatenate([[(0.0, 0.0, 0.0), (0.0, 0.0, 0.09)], rim])
    k = np.arange(24)
    here, ahead = 2 + k, 2 + (k + 1) % 24
    triangles = np.concatenate([np.column_stack([0 * k, ahead, here]), np.column_stack([0 * k + 1, here, ahead])])
    lean = np.radians(10.0)
    axis = np.array([np.sin(lean), 0.0, np.cos(lean)])
    scene.add_body(
        "top",
        surface={"vertices": vertices.tolist(), "triangles": triangles.tolist()},
        position=(0.0, 0.0, 5e-4),
        axis_angle={"axis": (0, 1, 0), "degrees": 10.0},
        angular_velocity=(60.0 * axis).tolist(),
        kappa=kappa,
    )
    return scene


def steps(_: float) -> int:
    """Enough to meet, bounce and roll."""
    return 60


FAMILIES = (
    Family("tumbling", "kappa [Pa]", alone(tumbling), KAPPAS, QUICK, steps),
    Family("gears", "kappa [Pa]", alone(gears), KAPPAS, QUICK, steps),
    Family("top", "kappa [Pa]", alone(top), KAPPAS, QUICK, steps),
)
