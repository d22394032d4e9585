"""Surfaces and mass properties of bodies from their tables; those of equal bodies are made once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from abd.errors import SceneError
from abd.scene.geometry import mass, shapes
from abd.scene.geometry.boundary import describe, open_sides
from abd.scene.geometry.frames import principal_frame
from abd.scene.geometry.mass import MassProperties
from abd.scene.geometry.mesh_files import RawMesh
from abd.scene.geometry.meshes import Surface, load_surface, make_surface, split_components
from abd.scene.schema.schema import SHAPES, BodySpec


@dataclass(frozen=True)
class Matter:
    """Mass properties of one body in mesh axes, with its principal frame.

    Attributes:
        mass: [kg]; volume: [m^3]; center: (3,) centre of mass [m].
        axes: (3, 3), columns are the principal axes; bitwise equal for equal shapes of any density.
        moments: (3,) diagonal of S in these axes, and mesh_moments: (3,) in the mesh axes [kg m^2].
        notes: origin of the mass, if it is not that of a solid.
    """

    mass: float
    volume: float
    center: np.ndarray
    axes: np.ndarray
    moments: np.ndarray
    mesh_moments: np.ndarray
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, body: MassProperties) -> Matter:
        """Return the matter of a body with its `principal_frame`.

        Raises:
            SceneError: the mass is 0 or not finite, because the shape is too small or too large.
        """
        if not (0.0 < body.mass < np.inf and np.isfinite(body.second_moment).all()):
            raise SceneError.of("its mass cannot be computed from its size", value=body.mass, remedy="give mass and inertia")
        axes, moments = principal_frame(body.second_moment)
        diagonal = np.diag(body.second_moment).copy()
        return cls(body.mass, body.volume, body.center, axes, moments, diagonal, body.notes)

    def times(self, factor: float) -> Matter:
        """Return the matter with `factor` times the density."""
        changed = {"mass": factor * self.mass, "moments": factor * self.moments}
        return replace(self, **changed, mesh_moments=factor * self.mesh_moments)


class BodySource:
    """Surfaces and mass properties of the bodies of one scene; those of equal bodies are made once and shared."""

    def __init__(self) -> None:
        self._load, self._unit = cache(load_surface), cache(_unit_matter)
        self._surfaces: dict[Hashable, list[Surface]] = {}
        self._contents: dict[tuple, int] = {}
        self._numbers: dict[int, int] = {}

    def surfaces(self, body: BodySpec) -> list[Surface]:
        """The scaled surface of a body; with `split_components` one per connected component; none for a proxy or a
        half-space.

        Raises:
            SceneError: a mesh file that cannot be read, or an unusable surface.
        """
        if body.half_space is not None or body.proxy:
            return []
        scale = tuple(np.broadcast_to(np.asarray(body.scale, dtype=float), 3).tolist())
        source, make = self._source(body)
        key = (source, scale, body.split_components)
        if key not in self._surfaces:
            surface = make()
            parts = split_components(surface) if body.split_components else [surface]
            self._surfaces[key] = [part.scaled(scale) for part in parts]
        return self._surfaces[key]

    def _source(self, body: BodySpec) -> tuple[Hashable, Callable[[], Surface]]:
        """Return a key that is equal for equal surfaces, and the function that creates the surface."""
        if body.mesh is not None:
            path = Path(body.mesh).resolve()
            return ("mesh", str(path)), lambda: self._load(path)
        if body.surface is not None:
            one = body.surface
            if id(one) not in self._numbers:  # bodies share the table, which may be long: it is compared once
                content = tuple(tuple(rows) for _, rows in one)
                self._numbers[id(one)] = self._contents.setdefault(content, len(self._contents))
            rows = one.vertices, one.triangles, one.edges, one.points
            return ("surface", self._numbers[id(one)]), lambda: make_surface(body.name, RawMesh.of(*rows))
        if body.box is not None:
            return ("box", body.box), lambda: make_surface("box", RawMesh.of(*shapes.box(body.box)))
        name = next(name for name in SHAPES if getattr(body, name) is not None)
        keys = getattr(body, name).model_dump()
        return (name, *keys.items()), lambda: _round(name, keys)

    def matter(self, spec: BodySpec, surface: Surface | None, needed: bool) -> Matter | None:
        """Mass properties of a body; None for one without matter that does not need any.

        A given mass without inertia is distributed uniformly over the surface. The volume is that of the closed surface, of
        the shell or the rods, else mass / density.

        Raises:
            SceneError: the given values are impossible or insufficient.
        """
        stated = spec.inertia is not None and spec.mass is not None
        if not stated and (surface is None or not (needed or _has_matter(spec, surface))):
            return None
        # per area or length for an explicit mass without thickness
        of_surface = (surface, spec.thickness, spec.radius, spec.mass is not None)
        if not stated:
            matter = self._unit(*of_surface)
            matter = matter.times(spec.density if spec.mass is None else spec.mass / matter.mass)
            volume = matter.volume or matter.mass / spec.density
            center = matter.center if spec.center_of_mass is None else np.array(spec.center_of_mass)
            return replace(matter, volume=volume, center=center)
        center, volume = spec.center_of_mass, spec.mass / spec.density
        if center is None:
            center = np.zeros(3) if surface is None else self._unit(*of_surface).center
        if surface is not None and (surface.closed or surface.radius > 0.0):
            volume = self._unit(*of_surface).volume
        return Matter.of(MassProperties(spec.mass, volume, np.array(center), mass.second_moment_of_inertia(spec.inertia)))


def _unit_matter(surface: Surface, thickness: float, radius: float, spread: bool) -> Matter:
    """Return properties at unit density of a surface."""
    return Matter.of(mass.united(list(_parts(surface, thickness, radius, spread))))


def _round(name: str, keys: dict[str, Any]) -> Surface:
    """Return a sphere, capsule, cylinder or cone: exact without a resolution of its mesh."""
    if name == "sphere" and keys["subdivisions"] is None:
        return replace(make_surface(name, RawMesh.of([(0.0, 0.0, 0.0)], points=[0])), radius=keys["radius"])
    if name == "capsule" and keys["segments"] is None:
        axis = RawMesh.of([(0.0, 0.0, z * keys["length"]) for z in (-0.5, 0.5)], edges=[(0, 1)])
        return replace(make_surface(name, axis), radius=keys["radius"])
    return make_surface(name, RawMesh.of(*getattr(shapes, name)(**keys)))


def _parts(surface: Surface, thickness: float, radius: float, spread: bool):
    """Mass properties of the triangles, lines and points of a surface at unit density, with notes."""
    vertices, triangles, lines, points = surface.vertices, surface.triangles, surface.codim_edges, surface.points[:, None]
    if surface.radius > 0.0:
        if len(points):
            yield mass.thick(vertices, points, 1.0, surface.radius)
        else:
            yield mass.capsule(surface.radius, float(np.linalg.norm(vertices[1] - vertices[0])))
        return
    # Without a thickness, a given mass can be distributed only over parts of one dimension.
    spread = spread and sum(len(part) > 0 for part in (triangles, lines, points)) == 1
    if len(triangles) and surface.closed:
        solid = mass.solid(vertices, triangles, 1.0)
        yield replace(solid, notes=tuple(f"surface '{surface.name}': {note}" for note in solid.notes))
        triangles = triangles[:0]
    elif len(triangles) and thickness == 0.0 and not spread:
        sides = open_sides(vertices, triangles)
        message = f"surface '{surface.name}' is open ({describe(vertices, sides)}) and needs a thickness for its mass"
        remedy = "close it, or give a thickness > 0, or mass and inertia"
        raise SceneError.of(message, key="thickness", value=thickness, remedy=remedy)
    for elements, size, note in (
        (triangles, thickness, "surface '{}' is open: its mass is that of a shell of thickness {:g} m"),
        (lines, radius, "the mass of the lines of surface '{}' is that of rods of radius {:g} m"),
        (points, radius, "the mass of the points of surface '{}' is that of balls of radius {:g} m"),
    ):
        if len(elements) and spread and size == 0.0:
            yield mass.thin(vertices, elements, 1.0)
        elif len(elements):
            yield replace(mass.thick(vertices, elements, 1.0, size), notes=(note.format(surface.name, size),))


def _has_matter(spec: BodySpec, surface: Surface) -> bool:
    """Return whether the mass of every part of a surface is defined."""
    if surface.radius > 0.0:
        return True
    if surface.closed:
        thick = mass.enclosed_volume(surface.vertices, surface.triangles) != 0.0
    else:
        thick = spec.thickness > 0.0 or not len(surface.triangles)
    return thick and (spec.radius > 0.0 or not (len(surface.codim_edges) or len(surface.points)))
