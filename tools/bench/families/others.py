"""Scenes of rigid-ipc that papers report times of: the wrecking ball, and nets of rings.

They are read from a fixtures folder, ``ABD_FIXTURES`` or `shared/fixtures` beside the checkout.
"""

from __future__ import annotations

import os
from pathlib import Path

import abd
from families.family import Family, alone

FIXTURES = Path(os.environ.get("ABD_FIXTURES") or Path(__file__).resolve().parents[3].parent / "shared" / "fixtures")
PITCH = (1.65, 1.6)
"""Of the rings along x and z [m]."""


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


FAMILIES = (
    Family("wrecking_ball", "bodies", alone(wrecking_ball), (575,), (575,), steps=lambda size: 195),
    Family("chain_net", "rings on a side", alone(chain_net), (4, 8, 16), (4,), steps=lambda size: 100),
)
