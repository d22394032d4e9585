"""Random scenes that are hard on a barrier: exactly parallel lattices with small gaps, and clutter."""

from __future__ import annotations

from itertools import product

import numpy as np

LETTERS = {
    "L": ("X..", "X..", "XXX"),
    "T": ("XXX", ".X.", ".X."),
    "U": ("X.X", "X.X", "XXX"),
    "H": ("X.X", "XXX", "X.X"),
}
"""Cells of a letter, its top row first."""
FACES = ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1))


def letter(name: str, size: float) -> dict:
    """Surface of a letter of cubes: `size` wide and tall along x and z, a third of that deep; closed, without a hull."""
    rows = LETTERS[name]
    cells = {(x, 0, 2 - z) for z, row in enumerate(rows) for x, cell in enumerate(row) if cell == "X"}
    corners: dict[tuple[int, ...], int] = {}
    triangles = []
    for cell, face in product(sorted(cells), FACES):
        if tuple(np.add(cell, face)) in cells:
            continue
        axis, out = int(np.flatnonzero(face)[0]), sum(face) > 0
        u, v = (axis + 1) % 3, (axis + 2) % 3
        quad = []
        for along, across in ((0, 0), (1, 0), (1, 1), (0, 1)):
            corner = list(cell)
            corner[axis] += out
            corner[u] += along
            corner[v] += across
            quad.append(corners.setdefault(tuple(corner), len(corners)))
        quad = quad if out else quad[::-1]
        triangles += [[quad[0], quad[1], quad[2]], [quad[0], quad[2], quad[3]]]
    vertices = (np.array(list(corners), dtype=float) - (1.5, 0.5, 1.5)) * size / 3.0
    return {"surface": {"vertices": vertices.tolist(), "triangles": triangles}}


def body(rng: np.random.Generator, size: float) -> tuple[dict, np.ndarray]:
    """A random box, letter, plate or crumb that fits into a cube of this size [m], and its extents (3,)."""
    kind = rng.choice(["box", "letter", "plate", "crumb"], p=[0.3, 0.3, 0.2, 0.2])
    if kind == "letter":
        return letter(str(rng.choice(list(LETTERS))), size), np.array([1.0, 1.0 / 3.0, 1.0]) * size
    shares = {
        "box": rng.choice([0.5, 1.0], size=3),
        "plate": rng.permutation([1.0, 1.0, 10.0 ** rng.uniform(-2.0, -1.0)]),
        "crumb": np.full(3, 10.0 ** rng.uniform(-2.0, -1.0)),
    }
    extents = shares[kind] * size
    return {"box": extents.tolist()}, extents


def solver(rng: np.random.Generator) -> dict:
    """A step between 0.3 and 50 ms."""
    return {"dt": float(10.0 ** rng.uniform(np.log10(3e-4), np.log10(5e-2)))}


def lattice(seed: int) -> dict:
    """Bodies in the cells of a lattice, exactly parallel, with gaps of 1e-6 to 1e-2 m between its layers."""
    rng = np.random.default_rng([seed, 0])
    size = 10.0 ** rng.uniform(-1.5, 0.0)
    counts = rng.integers(2, 5, size=3)
    gap = 10.0 ** rng.uniform(-6.0, -2.0, size=3 if rng.random() < 0.5 else 1) * np.ones(3)
    speed = float(rng.choice([0.0, 0.1, 1.0, 10.0]))
    bodies = []
    for k, cell in enumerate(np.ndindex(*counts)):
        shape, extents = body(rng, size)
        low = np.array(cell) * (size + gap) + [0.0, 0.0, gap[2]]
        bodies.append({"name": f"b{k}", **shape, "position": (low + extents / 2.0).tolist(), "material": "m"})
        bodies[-1]["velocity"] = (speed * rng.normal(size=3)).tolist()
        bodies[-1]["density"] = float(10.0 ** rng.uniform(2.0, 4.0))
    bodies.append({"name": "floor", "half_space": {"normal": (0, 0, 1), "offset": 0.0}, "material": "m"})
    mu = float(rng.choice([0.0, 0.3, 0.6]))
    return {"body": bodies, "material": [{"name": "m", "mu": mu}], "solver": solver(rng)}


def clutter(seed: int) -> dict:
    """Bodies turned at random in the cells of a loose lattice above a floor, thrown at each other."""
    rng = np.random.default_rng([seed, 1])
    size = 10.0 ** rng.uniform(-1.5, 0.0)
    pitch = 1.02 * np.sqrt(3.0) * size
    bodies = []
    for k, cell in enumerate(np.ndindex(*rng.integers(2, 4, size=3))):
        shape, _ = body(rng, size)
        if rng.random() < 0.2:
            shape = {"sphere": {"radius": size / 2.0, "subdivisions": 1}}
        bodies.append(
            {"name": f"b{k}", **shape, "position": (pitch * (np.array(cell) + 0.5)).tolist(), "material": "m"}
        )
        bodies[-1]["euler"] = {"order": "xyz", "degrees": rng.uniform(0.0, 360.0, 3).tolist()}
        bodies[-1]["velocity"] = (3.0 * np.sqrt(size) * rng.normal(size=3)).tolist()
        bodies[-1]["angular_velocity"] = (5.0 * rng.normal(size=3)).tolist()
    bodies.append({"name": "floor", "half_space": {"normal": (0, 0, 1), "offset": 0.0}, "material": "m"})
    mu = float(rng.choice([0.0, 0.3, 0.6]))
    return {"body": bodies, "material": [{"name": "m", "mu": mu}], "solver": solver(rng)}


SCENES = {"lattice": lattice, "clutter": clutter}
