"""Benchmark scenes by name and size: chains and loops of links, stacks and heaps of boxes, and scenes of rigid-ipc.

Scenes of rigid-ipc are read from a fixtures folder, ``ABD_FIXTURES`` or `shared/fixtures` next to the checkout.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from mechanism import Hinges, Links, Mechanism, box_inertia

import abd

FIXTURES = Path(os.environ.get("ABD_FIXTURES") or Path(__file__).resolve().parents[2].parent / "shared" / "fixtures")
EDGE, D_HAT, COLUMN = 0.1, 1e-3, 10
"""Of boxes [m], their activation distance [m], boxes of a column."""
LINK, LINK_MASS, ROD_MASS = (1.0, 0.1, 0.1), 10.0, 1.0
"""Extents [m] and mass [kg] of a chain's link, mass of a rod [kg]."""
DRIVEN = {
    "range": (-2.5, 2.5),
    "friction": 0.1,
    "drive": {"mode": "pd", "target": "0.2*sin(5*t)", "stiffness": 50.0, "damping": 2.0, "effort": 40.0},
}
PITCH = (1.65, 1.6)
"""Of the rings of a net along x and z [m]."""


def ground(**solver) -> abd.Scene:
    """Return a half-space with friction; activation distance 1 mm in all sizes."""
    scene = abd.Scene(solver={"dt": 0.01, "d_hat": D_HAT, "tolerance": 1e-3, **solver})
    scene.add_material("default", mu=0.3)
    scene.add_body("ground", half_space={})
    return scene


def stack(boxes: float) -> abd.Scene:
    """Columns of ten boxes, in a rectangle, as far apart as a box is wide."""
    scene, gap = ground(), 0.5 * D_HAT
    columns = int(boxes) // COLUMN
    side = max(k for k in range(1, int(columns**0.5) + 1) if columns % k == 0)
    copies = {"count": (side, columns // side, COLUMN), "step": (2.0 * EDGE, 2.0 * EDGE, EDGE + gap)}
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


def chain(links: float) -> Mechanism:
    """Links 1 x 0.1 x 0.1 m of 10 kg along x, hinges about y."""
    n = int(links)
    hinges = [Hinges(None, ("link", (0, 0, 0)), (1, 1, 1), (0.0, 0.0, 0.0))]
    if n > 1:
        hinges.append(Hinges(("link", (0, 0, 0)), ("link", (1, 0, 0)), (n - 1, 1, 1), (1.0, 0.0, 0.0)))
    return Mechanism(
        links=(Links("link", (n, 1, 1), (0.5, 0.0, 0.0), (1.0, 0.0, 0.0), LINK_MASS, box_inertia(LINK_MASS, LINK), LINK),),
        hinges=hinges,
    )


def ladder(rungs: float) -> Mechanism:
    """A rope ladder: n windows below each other."""
    return windows_of(int(rungs), 1)


def net(side: float) -> Mechanism:
    """N x N windows."""
    return windows_of(int(side), int(side))


def windows_of(rows: int, columns: int) -> Mechanism:
    """Windows of rods 1 m long in the plane x-z, hung by the upper ends of their upright rods; hinges about y.

    Upright rods join in columns; level ones hang between the lower ends of two neighbours. A wind blows sideways, so
    that the windows shear.
    """
    step, corner = (1.0, 0.0, -1.0), (0, 0, 0)
    upright = Links("upright", (columns + 1, 1, rows), (0.0, 0.0, -0.5), step, ROD_MASS, box_inertia(ROD_MASS, (0.1, 0.1, 1.0)))
    level = Links("level", (columns, 1, rows), (0.5, 0.0, -1.0), step, ROD_MASS, box_inertia(ROD_MASS, (1.0, 0.1, 0.1)))
    hinges = [
        Hinges(None, ("upright", corner), (columns + 1, 1, 1), (0.0, 0.0, 0.0)),
        Hinges(("upright", corner), ("level", corner), level.count, (0.0, 0.0, -1.0)),
        Hinges(("upright", (1, 0, 0)), ("level", corner), level.count, (1.0, 0.0, -1.0)),
    ]
    if rows > 1:
        below = (columns + 1, 1, rows - 1)
        hinges.append(Hinges(("upright", corner), ("upright", (0, 0, 1)), below, (0.0, 0.0, -1.0)))
    return Mechanism((upright, level), hinges, gravity=(3.0, 0.0, -9.81))


def fixture(path: str) -> abd.Scene:
    """A scene of the fixtures folder.

    Raises:
        FileNotFoundError: it is not there.
    """
    file = FIXTURES / path
    if not file.is_file():
        raise FileNotFoundError(f"{file} is not there: ABD_FIXTURES names the folder of fixtures")
    return abd.load(file)


def wrecking_ball(_: float) -> abd.Scene:
    """575 bodies, 573 of them dynamic: a ball on a chain of 12 links, and a wall of cubes."""
    return fixture("rigid-ipc/scenes/chain/wrecking-ball.json")


def chain_net(side: float) -> abd.Scene:
    """N x N lying rings but for the four corners, those on the rim fixed, linked by standing ones.

    The rule that makes the files for N = 4 and 8, from their bodies: 672 for N = 16.
    """
    n = int(side)
    scene = fixture("rigid-ipc/scenes/chain/chain-net/chain-net-4x4.json")
    bodies = scene.spec.body
    fixed, along_z = bodies[0], bodies[1]
    free = next(body for body in bodies if body.kind == "dynamic" and body.position[0] == PITCH[0] and body != along_z)
    along_x = bodies[5]
    scene.spec.body = []
    inner = range(1, n - 1)

    def place(body, x: float, z: float) -> None:
        k = len(scene.spec.body)
        position = (PITCH[0] * x, 0.0, PITCH[1] * z)
        scene.spec.body.append(body.model_copy(update={"name": f"ring {k}", "position": position}))

    for i in range(n):
        for j in range(n):
            if i in inner and j in inner:
                place(free, i, j)
            elif i in inner or j in inner:
                place(fixed, i, j)
    for i in inner:
        for j in range(n - 1):
            place(along_z, i, j + 0.5)
            place(along_x, j + 0.5, i)
    return scene


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
    "wrecking_ball": wrecking_ball,
    "chain_net": chain_net,
}
"""Name -> scene of a size: links, rungs, windows on a side, boxes, bodies, rings on a side."""


def scene_of(text: str) -> abd.Scene:
    """Return the scene of "NAME:SIZE", or of a file or shipped scene.

    Raises:
        AbdError: no scene has that name.
    """
    name, _, size = text.partition(":")
    return SCENES[name](float(size or 1)) if name in SCENES else abd.load(text)
