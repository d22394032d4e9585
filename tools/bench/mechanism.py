"""Mechanisms of links and hinges on grids, as arrays for other programs and as scenes of abd."""

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
"""Activation distance [m]. The default grows with the scene; in a chain of 1,000 links, it would exceed the gap of
links that are not neighbours."""
Triple = tuple[int, int, int]
Vector = tuple[float, float, float]


@dataclass(frozen=True)
class Links:
    """Equal bodies on a grid, numbered with z fastest; their axes are initially those of the world.

    Attributes:
        first: centre of the first link [m]; step: spacing along x, y, z [m].
        mass: of a link [kg]; inertia: principal moments about the centre of mass [kg m^2].
        box: extents [m] of links with a surface, else None.
    """

    name: str
    count: Triple
    first: Vector
    step: Vector
    mass: float
    inertia: Vector
    box: Vector | None = None

    @property
    def keys(self) -> dict:
        """Keys of the body in a scene of abd: shape and mass properties."""
        if self.box is not None:
            return {"box": self.box, "mass": self.mass}
        return {"proxy": True, "mass": self.mass, "inertia": tuple(self.inertia)}


@dataclass(frozen=True)
class Hinges:
    """Hinges on a grid, with constant spacing of parents, children and anchors.

    Attributes:
        parent, child: name and grid indices of the links of the first hinge; parent None is the world.
        count: number of hinges along x, y, z.
        anchor: of the first hinge [m]; its spacing is that of the children.
    """

    parent: tuple[str, Triple] | None
    child: tuple[str, Triple]
    count: Triple
    anchor: Vector


@dataclass(frozen=True)
class Mechanism:
    """Links, hinges about a common axis, and gravity [m/s^2]."""

    links: Sequence[Links]
    hinges: Sequence[Hinges]
    axis: Vector = (0.0, 1.0, 0.0)
    gravity: Vector = (0.0, 0.0, -9.81)

    def without_surfaces(self) -> Mechanism:
        """Return a copy whose links have no surfaces."""
        return replace(self, links=tuple(replace(links, box=None) for links in self.links))

    def scene(self, enforcement: str = "exact", **joint) -> abd.Scene:
        """Create the scene of abd; `joint` contains further keys of every joint."""
        scene = abd.Scene(gravity=self.gravity, solver={"dt": DT, "tolerance": TOLERANCE, "d_hat": D_HAT})
        for links in self.links:
            repeat = {"count": links.count, "step": links.step}
            scene.add_body(links.name, position=links.first, repeat=repeat, **links.keys)
        keys = {"type": "hinge", "axis": self.axis, "enforcement": enforcement, **joint}
        for k, hinges in enumerate(self.hinges):
            parent = abd.WORLD if hinges.parent is None else _body_name(*hinges.parent)
            ends = {"parent": parent, "child": _body_name(*hinges.child), "anchor": hinges.anchor}
            scene.add_joint(name=f"hinge {k}", repeat={"count": hinges.count}, **ends, **keys)
        return scene

    @cached_property
    def mass(self) -> np.ndarray:
        """(n,) [kg]."""
        return np.concatenate([np.full(int(np.prod(links.count)), links.mass) for links in self.links])

    @cached_property
    def inertia(self) -> np.ndarray:
        """(n, 3) principal moments [kg m^2]."""
        return np.concatenate([np.tile(links.inertia, (int(np.prod(links.count)), 1)) for links in self.links])

    @cached_property
    def position(self) -> np.ndarray:
        """(n, 3) centres [m]."""
        return np.concatenate([np.add(links.first, _grid(links.count) * links.step) for links in self.links])

    @cached_property
    def parent(self) -> np.ndarray:
        """(k,) body numbers, or `WORLD`."""
        return np.concatenate([self._bodies(hinges.parent, hinges.count) for hinges in self.hinges])

    @cached_property
    def child(self) -> np.ndarray:
        """(k,) body numbers."""
        return np.concatenate([self._bodies(hinges.child, hinges.count) for hinges in self.hinges])

    @cached_property
    def anchor(self) -> np.ndarray:
        """(k, 3) [m]."""
        steps = {links.name: links.step for links in self.links}
        return np.concatenate(
            [np.add(hinges.anchor, _grid(hinges.count) * steps[hinges.child[0]]) for hinges in self.hinges]
        )

    def _bodies(self, first: tuple[str, Triple] | None, count: Triple) -> np.ndarray:
        """Return (k,) numbers of the bodies at one end of hinges."""
        if first is None:
            return np.full(int(np.prod(count)), WORLD)
        name, index = first
        start = 0
        for links in self.links:
            if links.name == name:
                _, ny, nz = links.count
                return start + (_grid(count) + index) @ [ny * nz, nz, 1]
            start += int(np.prod(links.count))
        raise KeyError(name)


def box_inertia(mass: float, extents: Vector) -> Vector:
    """Return the principal moments of a solid box."""
    x, y, z = np.square(extents).tolist()
    return (mass / 12.0 * (y + z), mass / 12.0 * (x + z), mass / 12.0 * (x + y))


def _body_name(name: str, index: Triple) -> str:
    return "_".join([name, *map(str, index)])


def _grid(count: Triple) -> np.ndarray:
    """Return (k, 3) grid indices, z fastest."""
    return np.stack(np.unravel_index(np.arange(int(np.prod(count))), count), axis=1)
