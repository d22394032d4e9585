"""Links and hinges as arrays: the one description from which our scene and those of other programs are made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import abd

WORLD = -1
DT = 0.01
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Mechanism:
    """Bodies whose axes are those of the world at t = 0, joined by hinges; SI units.

    Attributes:
        mass: (n,); inertia: (n, 3) principal moments about the centre of mass; position: (n, 3) of the centres.
        box: (3,) extents where the bodies are boxes, which may touch, None for bodies without surface.
        parent, child: (k,) bodies of the hinges, the parent may be `WORLD`; anchor: (k, 3); axis: (3,) of all hinges.
        gravity: (3,).
    """

    mass: np.ndarray
    inertia: np.ndarray
    position: np.ndarray
    parent: np.ndarray
    child: np.ndarray
    anchor: np.ndarray
    axis: tuple[float, float, float]
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    box: tuple[float, float, float] | None = None

    def scene(self, enforcement: str = "exact", **joint) -> abd.Scene:
        """Ours, with h = 0.01 s and tolerance 1e-3 m/s; `joint` are further keys of every joint, `type` among them."""
        scene = abd.Scene(gravity=self.gravity, solver={"dt": DT, "tolerance": TOLERANCE})
        keys = {"type": "hinge", "axis": self.axis, "enforcement": enforcement, **joint}
        for k, position in enumerate(self.position.tolist()):
            if self.box is not None:
                matter = {"box": self.box, "mass": float(self.mass[k])}
            else:
                matter = {"proxy": True, "mass": float(self.mass[k]), "inertia": self.inertia[k].tolist()}
            scene.add_body(f"body {k}", position=position, **matter)
        for k, (parent, child, anchor) in enumerate(
            zip(self.parent.tolist(), self.child.tolist(), self.anchor.tolist())
        ):
            upper = abd.WORLD if parent == WORLD else f"body {parent}"
            scene.add_joint(name=f"joint {k}", parent=upper, child=f"body {child}", anchor=anchor, **keys)
        return scene


def box_inertia(mass: float, extents) -> np.ndarray:
    """(3,) principal moments of a solid box."""
    x, y, z = np.square(extents)
    return mass / 12.0 * np.array([y + z, x + z, x + y])


def rod_inertia(mass: float, length: float, along: int, thickness: float = 0.1) -> np.ndarray:
    """(3,) principal moments of a square rod along an axis."""
    extents = np.full(3, thickness)
    extents[along] = length
    return box_inertia(mass, extents)
