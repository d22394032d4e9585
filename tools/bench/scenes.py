"""Benchmark scenes by name and size: chains and loops of links, stacks and heaps of boxes, many worlds."""

from __future__ import annotations

import numpy as np
from mechanism import Hinges, Links, Mechanism, box_inertia

import abd

EDGE, D_HAT, COLUMN = 0.1, 1e-3, 10
"""Edge of a box [m], activation distance [m], number of boxes per column."""
LINK, LINK_MASS, ROD_MASS = (1.0, 0.1, 0.1), 10.0, 1.0
"""Extents [m] and mass [kg] of a link of a chain, mass of a rod [kg]."""
DRIVEN = {
    "range": (-2.5, 2.5),
    "friction": 0.1,
    "drive": {"mode": "pd", "target": "0.2*sin(5*t)", "stiffness": 50.0, "damping": 2.0, "effort": 40.0},
}


def ground(**solver) -> abd.Scene:
    """Create a scene with a half-space with friction; the activation distance is 1 mm for all sizes."""
    scene = abd.Scene(solver={"dt": 0.01, "d_hat": D_HAT, "tolerance": 1e-3, **solver})
    scene.add_material("default", mu=0.3)
    scene.add_body("ground", half_space={})
    return scene


def stack(boxes: float) -> abd.Scene:
    """Create columns of ten boxes on a rectangular grid; the distance between columns is one edge of a box."""
    scene, gap = ground(), 0.5 * D_HAT
    columns = int(boxes) // COLUMN
    side = max(k for k in range(1, int(columns**0.5) + 1) if columns % k == 0)
    repeat = {"count": (side, columns // side, COLUMN), "step": (2.0 * EDGE, 2.0 * EDGE, EDGE + gap)}
    scene.add_body("box", box=(EDGE,) * 3, position=(0.0, 0.0, 0.5 * EDGE + gap), repeat=repeat)
    return scene


def pile(boxes: float) -> abd.Scene:
    """Create a pyramid of boxes with random angles about the vertical and small gaps.

    Layers are offset by half a box, so that a box rests on up to four others.
    """
    scene, random = ground(), np.random.default_rng(7)
    count, layer, created = int(boxes), 0, 0
    side = next(s for s in range(1, count + 2) if s * (s + 1) * (2 * s + 1) // 6 >= count)
    pitch = 1.3 * EDGE
    while created < count:
        width = side - layer
        for i in range(width * width)[: count - created]:
            x, y = (pitch * (c - 0.5 * (width - 1)) for c in (i % width, i // width))
            z = 0.5 * EDGE + D_HAT + layer * (EDGE + 0.8 * D_HAT)
            turn = {"axis": (0, 0, 1), "degrees": float(random.uniform(-8.0, 8.0))}
            scene.add_body(f"box {created}", box=(EDGE,) * 3, position=(x, y, z), axis_angle=turn)
            created += 1
        layer += 1
    return scene


def worlds(count: float) -> abd.Scene:
    """Create worlds with one column of five boxes each."""
    scene, gap = ground(), 0.8 * D_HAT
    repeat = {"count": (1, 1, 5), "step": (EDGE, EDGE, EDGE + gap)}
    scene.add_body("box", box=(EDGE,) * 3, position=(0.0, 0.0, 0.5 * EDGE + D_HAT), repeat=repeat)
    return scene.replicate(int(count))


def chain(links: float) -> Mechanism:
    """Create links of 1 x 0.1 x 0.1 m and 10 kg along x, with hinges about y."""
    n = int(links)
    hinges = [Hinges(None, ("link", (0, 0, 0)), (1, 1, 1), (0.0, 0.0, 0.0))]
    if n > 1:
        hinges.append(Hinges(("link", (0, 0, 0)), ("link", (1, 0, 0)), (n - 1, 1, 1), (1.0, 0.0, 0.0)))
    return Mechanism(
        links=(Links("link", (n, 1, 1), (0.5, 0.0, 0.0), (1.0, 0.0, 0.0), LINK_MASS, box_inertia(LINK_MASS, LINK), LINK),),
        hinges=hinges,
    )


def ladder(rungs: float) -> Mechanism:
    """Create a rope ladder: a column of windows."""
    return windows(int(rungs), 1)


def net(side: float) -> Mechanism:
    """Create N x N windows."""
    return windows(int(side), int(side))


def windows(rows: int, columns: int) -> Mechanism:
    """Create square windows of rods of 1 m in the plane x-z, with hinges about y; the top of each column is fixed.

    Vertical rods form columns; horizontal rods connect the lower ends of neighbouring vertical rods. Gravity has a
    component along x, so that the windows shear.
    """
    step, corner = (1.0, 0.0, -1.0), (0, 0, 0)
    vertical = Links("vertical", (columns + 1, 1, rows), (0.0, 0.0, -0.5), step, ROD_MASS, box_inertia(ROD_MASS, (0.1, 0.1, 1.0)))
    horizontal = Links("horizontal", (columns, 1, rows), (0.5, 0.0, -1.0), step, ROD_MASS, box_inertia(ROD_MASS, (1.0, 0.1, 0.1)))
    hinges = [
        Hinges(None, ("vertical", corner), (columns + 1, 1, 1), (0.0, 0.0, 0.0)),
        Hinges(("vertical", corner), ("horizontal", corner), horizontal.count, (0.0, 0.0, -1.0)),
        Hinges(("vertical", (1, 0, 0)), ("horizontal", corner), horizontal.count, (1.0, 0.0, -1.0)),
    ]
    if rows > 1:
        below = (columns + 1, 1, rows - 1)
        hinges.append(Hinges(("vertical", corner), ("vertical", (0, 0, 1)), below, (0.0, 0.0, -1.0)))
    return Mechanism((vertical, horizontal), hinges, gravity=(3.0, 0.0, -9.81))


MECHANISMS = {"chain": chain, "ladder": ladder, "net": net}
SCENES = {
    "chain": lambda links: chain(links).scene(),
    "penalty_chain": lambda links: chain(links).scene("penalty"),
    "universal_chain": lambda links: chain(links).scene(type="universal"),
    "driven_chain": lambda links: chain(links).scene(**DRIVEN),
    "ladder": lambda rungs: ladder(rungs).scene(),
    "net": lambda side: net(side).scene(),
    "stack": stack,
    "pile": pile,
    "worlds": worlds,
}
"""Functions from a size (number of links, rungs, windows per side, boxes, worlds) to a scene."""


def scene_of(text: str) -> abd.Scene:
    """Create the scene "NAME:SIZE" of `SCENES`, or load a file or a shipped scene.

    Raises:
        AbdError: the scene does not exist.
    """
    name, _, size = text.partition(":")
    return SCENES[name](float(size or 1)) if name in SCENES else abd.load(text)
