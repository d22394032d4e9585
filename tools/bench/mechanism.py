"""Links and hinges on grids: the one description from which our scene and those of other programs are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

import abd

WORLD = -1
DT = 0.01
TOLERANCE = 1e-3
D_HAT = 1e-3
"""[m]: the default grows with the scene, and in a chain of a thousand links the third neighbour would be in contact."""
Triple = tuple[int, int, int]
Vector = tuple[float, float, float]


@dataclass(frozen=True)
class Links:
    """Equal bodies on a grid, z fastest; their axes are those of the world at t = 0.

    Attributes:
        first: centre of the first one [m]; step: from one to the next along x, y, z [m].
        mass [kg]; inertia: principal moments about the centre of mass [kg m^2].
        box: extents [m] where they are boxes, which may touch; None for bodies without surface.
    """

    name: str
    count: Triple
    first: Vector
    step: Vector
    mass: float
    inertia: Vector
    box: Vector | None = None

    @property
    def matter(self) -> dict:
        """Keys of the body in our scene."""
        if self.box is not None:
            return {"box": self.box, "mass": self.mass}
        return {"proxy": True, "mass": self.mass, "inertia": tuple(self.inertia)}


@dataclass(frozen=True)
class Hinges:
    """Hinges on a grid: parent and child are the links' name and place of the first one, and count up with it.

    Attributes:
        parent: None for the world; anchor: of the first one [m], the others' moves as the child does.
    """

    parent: tuple[str, Triple] | None
    child: tuple[str, Triple]
    count: Triple
    anchor: Vector


@dataclass(frozen=True)
class Mechanism:
    """Links joined by hinges about one axis, and gravity [m/s^2]."""

    links: Sequence[Links]
    hinges: Sequence[Hinges]
    axis: Vector = (0.0, 1.0, 0.0)
    gravity: Vector = (0.0, 0.0, -9.81)

    def bare(self) -> Mechanism:
        """The same without surfaces."""
        return replace(self, links=tuple(replace(links, box=None) for links in self.links))

    def scene(self, enforcement: str = "exact", **joint) -> abd.Scene:
        """Ours, with h = 0.01 s, tolerance 1e-3 m/s and d_hat 1 mm; `joint` are further keys of every joint."""
        scene = abd.Scene(gravity=self.gravity, solver={"dt": DT, "tolerance": TOLERANCE, "d_hat": D_HAT})
        for links in self.links:
            copies = {"count": links.count, "step": links.step}
            scene.add_body(links.name, position=links.first, repeat=copies, **links.matter)
        keys = {"type": "hinge", "axis": self.axis, "enforcement": enforcement, **joint}
        for k, hinges in enumerate(self.hinges):
            parent = abd.WORLD if hinges.parent is None else _copy(*hinges.parent)
            ends = {"parent": parent, "child": _copy(*hinges.child), "anchor": hinges.anchor}
            scene.add_joint(name=f"hinge {k}", repeat={"count": hinges.count}, **ends, **keys)
        return scene

    @cached_property
    def mass(self) -> np.ndarray:
        """(n,)."""
        return np.concatenate([np.full(int(np.prod(links.count)), links.mass) for links in self.links])

    @cached_property
    def inertia(self) -> np.ndarray:
        """(n, 3)."""
        return np.concatenate([np.tile(links.inertia, (int(np.prod(links.count)), 1)) for links in self.links])

    @cached_property
    def position(self) -> np.ndarray:
        """(n, 3) of the centres."""
        return np.concatenate([np.add(links.first, _grid(links.count) * links.step) for links in self.links])

    @cached_property
    def parent(self) -> np.ndarray:
        """(k,) bodies, or `WORLD`."""
        return np.concatenate([self._bodies(hinges.parent, hinges.count) for hinges in self.hinges])

    @cached_property
    def child(self) -> np.ndarray:
        """(k,) bodies."""
        return np.concatenate([self._bodies(hinges.child, hinges.count) for hinges in self.hinges])

    @cached_property
    def anchor(self) -> np.ndarray:
        """(k, 3)."""
        steps = {links.name: links.step for links in self.links}
        return np.concatenate(
            [np.add(hinges.anchor, _grid(hinges.count) * steps[hinges.child[0]]) for hinges in self.hinges]
        )

    def _bodies(self, first: tuple[str, Triple] | None, count: Triple) -> np.ndarray:
        """(k,) numbers of the bodies at one end of hinges."""
        if first is None:
            return np.full(int(np.prod(count)), WORLD)
        name, place = first
        start = 0
        for links in self.links:
            if links.name == name:
                _, ny, nz = links.count
                return start + (_grid(count) + place) @ [ny * nz, nz, 1]
            start += int(np.prod(links.count))
        raise KeyError(name)


def box_inertia(mass: float, extents: Vector) -> Vector:
    """Principal moments of a solid box."""
    x, y, z = np.square(extents).tolist()
    return (mass / 12.0 * (y + z), mass / 12.0 * (x + z), mass / 12.0 * (x + y))


def _copy(name: str, place: Triple) -> str:
    return "_".join([name, *map(str, place)])


def _grid(count: Triple) -> np.ndarray:
    """(k, 3) places, z fastest."""
    return np.stack(np.unravel_index(np.arange(int(np.prod(count))), count), axis=1)
