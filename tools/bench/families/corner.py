"""One adversarial corner, a wedge driven into a crack, and many free bodies, against each of them alone."""

from __future__ import annotations

from functools import partial

import numpy as np

import abd
from families.family import Family, Scenes

HALF_ANGLE = np.radians(12.0)
HEAVY = 1e5
"""Density of the wedge [kg/m^3]: a hundred times that of the stones below it."""
STONES = 8
CONTACT_STIFFNESS = 1e14
"""[J/m^4], that which the corner alone starts with: the automatic one looks at all bodies of a scene."""


def prism(profile: np.ndarray, depth: float) -> dict[str, list]:
    """A convex profile (k, 2) in the plane x-z, counter-clockwise seen from -y, drawn out along y."""
    k = len(profile)
    front, back = (np.insert(profile, 1, y, axis=1) for y in (-0.5 * depth, 0.5 * depth))
    triangles = []
    for i in range(1, k - 1):
        triangles += [(0, i, i + 1), (k, k + i + 1, k + i)]
    for i in range(k):
        j = (i + 1) % k
        triangles += [(i, k + i, k + j), (i, k + j, j)]
    return {"vertices": np.concatenate([front, back]).tolist(), "triangles": triangles}


def settings() -> abd.Scene:
    """Equal in all variants, so that the same work is compared."""
    return abd.Scene(solver={"dt": 0.01, "d_hat": 1e-3, "tolerance": 1e-3, "contact_stiffness": CONTACT_STIFFNESS})


def add_corner(scene: abd.Scene) -> None:
    """A heavy wedge falls into a crack and drives stones before it, which jam: tight contact, large forces, slip."""
    lean, random = np.tan(HALF_ANGLE), np.random.default_rng(5)
    foot = 0.05
    wall = np.array([(foot, 0.0), (0.6, 0.0), (0.6, 1.5), (foot + 1.5 * lean, 1.5)])
    mirrored = (wall * (-1.0, 1.0))[::-1]
    for name, profile in (("right wall", wall), ("left wall", mirrored)):
        scene.add_body(name, surface=prism(profile, 0.6), kind="static")
    for k in range(STONES):
        turn = {"axis": random.normal(size=3).tolist(), "degrees": float(random.uniform(0.0, 90.0))}
        z = 0.45 + 0.06 * k
        scene.add_body(f"stone {k}", box=(0.05, 0.06, 0.05), position=(0.0, 0.03 * (-1) ** k, z), axis_angle=turn)
    wedge = np.array([(-0.02, 0.0), (0.02, 0.0), (0.02 + 0.9 * lean, 1.0), (-0.02 - 0.9 * lean, 1.0)])
    top = 0.45 + 0.06 * STONES + 0.02
    scene.add_body("wedge", surface=prism(wedge, 0.3), position=(0.0, 0.0, top), velocity=(0, 0, -3.0), density=HEAVY)


def add_free(scene: abd.Scene, count: int) -> None:
    """Boxes that tumble far from each other and from the corner."""
    random = np.random.default_rng(3)
    side = int(np.ceil(count ** (1.0 / 3.0)))
    for k in range(count):
        cell = np.add((k % side, k // side % side, k // side**2), (4.0, 0.0, 4.0))
        spin = random.uniform(-2.0, 2.0, 3).tolist()
        scene.add_body(f"free {k}", box=(0.1, 0.2, 0.3), position=cell.tolist(), angular_velocity=spin)


def scene(corner: bool, free: int) -> abd.Scene:
    """With the corner or without, and this many free bodies."""
    built = settings()
    if corner:
        add_corner(built)
    add_free(built, free)
    return built


def variants(count: float) -> Scenes:
    """The corner, the free bodies, and both in one scene."""
    free = int(count)
    return {"corner": partial(scene, True, 0), "free": partial(scene, False, free), "both": partial(scene, True, free)}


FAMILIES = (
    Family(
        "corner",
        "free bodies",
        variants,
        (1000,),
        (100,),
        ratios={"both over the sum of each alone": ("both", ("corner", "free"))},
    ),
)
