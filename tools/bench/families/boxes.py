"""Boxes on each other: columns that stand still, and a heap that settles."""

from __future__ import annotations

import numpy as np

import abd
from families.family import STEPS, Family, alone

EDGE = 0.1
D_HAT = 1e-3
HEIGHT = 10
"""Boxes of a column."""
SIZES = (10, 100, 1000, 10_000)


def ground(**solver) -> abd.Scene:
    """A half-space with friction, and the settings of both families: activation distance 1 mm in all sizes."""
    scene = abd.Scene(solver={"dt": 0.01, "d_hat": D_HAT, "tolerance": 1e-3, **solver})
    scene.add_material("default", mu=0.3)
    scene.add_body("ground", half_space={})
    return scene


def stack(boxes: float) -> abd.Scene:
    """Columns of ten boxes, in a rectangle, as far apart as a box is wide."""
    scene, gap = ground(), 0.5 * D_HAT
    columns = int(boxes) // HEIGHT
    side = max(k for k in range(1, int(columns**0.5) + 1) if columns % k == 0)
    copies = {"count": (side, columns // side, HEIGHT), "step": (2.0 * EDGE, 2.0 * EDGE, EDGE + gap)}
    scene.add_body("box", box=(EDGE,) * 3, position=(0.0, 0.0, 0.5 * EDGE + gap), repeat=copies)
    return scene


def pile(boxes: float) -> abd.Scene:
    """A heap of boxes, each turned at random about the vertical, that starts just apart and settles.

    Layers are shifted against each other by half a box, so that a box rests on up to four others.
    """
    scene, random = ground(), np.random.default_rng(7)
    count, layer, made = int(boxes), 0, 0
    side = next(s for s in range(1, count + 2) if s * (s + 1) * (2 * s + 1) // 6 >= count)
    pitch = 1.3 * EDGE
    while made < count:
        width = side - layer
        for i in range(width * width)[: count - made]:
            x, y = (pitch * (c - 0.5 * (width - 1)) for c in (i % width, i // width))
            z = 0.5 * EDGE + D_HAT + layer * (EDGE + 0.8 * D_HAT)
            turn = {"axis": (0, 0, 1), "degrees": float(random.uniform(-8.0, 8.0))}
            scene.add_body(f"box {made}", box=(EDGE,) * 3, position=(x, y, z), axis_angle=turn)
            made += 1
        layer += 1
    return scene


def steps(boxes: float) -> int:
    """More for large heaps, which take longer to come to rest."""
    return STEPS if boxes <= 1000 else 3 * STEPS


FAMILIES = (
    Family("stack", "boxes", alone(stack), SIZES, (10, 100), steps),
    Family("pile", "boxes", alone(pile), SIZES, (10, 100), steps),
)
