"""Mass properties of bodies: from the surface and density, or from explicit values."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from abd.errors import SceneError
from abd.scene.geometry import mass
from abd.scene.geometry.boundary import describe, open_sides
from abd.scene.geometry.frames import principal_frame
from abd.scene.geometry.mass import MassProperties
from abd.scene.geometry.meshes import Surface
from abd.scene.geometry.surfaces import Piece
from abd.scene.schema.schema import BodySpec


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


class MatterSource:
    """Mass properties of the bodies of one scene; those of equal surfaces are computed once, at unit density."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Matter] = {}

    def matter(self, spec: BodySpec, piece: Piece | None, needed: bool) -> Matter | None:
        """Mass properties of a body; None for one without matter that does not need any.

        A given mass without inertia is distributed uniformly over the surface. The volume is that of the closed surface, of
        the shell or the rods, else mass / density.

        Raises:
            SceneError: the given values are impossible or insufficient.
        """
        if spec.inertia is not None and spec.mass is not None:
            return self._stated(spec, piece)
        if piece is None:
            return None
        if not needed and not _has_matter(spec, piece.surface):
            return None
        matter = self._unit(spec, piece)
        matter = matter.times(spec.density if spec.mass is None else spec.mass / matter.mass)
        if matter.volume == 0.0:
            matter = replace(matter, volume=matter.mass / spec.density)
        return matter if spec.center_of_mass is None else replace(matter, center=np.array(spec.center_of_mass))

    def _stated(self, spec: BodySpec, piece: Piece | None) -> Matter:
        """Return explicit mass and inertia; centre and volume are by default those of the surface."""
        center, volume = spec.center_of_mass, spec.mass / spec.density
        if center is None:
            center = np.zeros(3) if piece is None else self._unit(spec, piece).center
        if piece is not None and (piece.surface.closed or piece.surface.radius > 0.0):
            volume = self._unit(spec, piece).volume
        return Matter.of(MassProperties(spec.mass, volume, np.array(center), mass.second_moment_of_inertia(spec.inertia)))

    def _unit(self, spec: BodySpec, piece: Piece) -> Matter:
        """Return properties at unit density of the surface; per area or length for an explicit mass without thickness."""
        spread = spec.mass is not None
        key = (piece.key, spec.thickness, spec.radius, spread)
        if key not in self._known:
            parts = list(_parts(piece.surface, spec.thickness, spec.radius, spread))
            self._known[key] = Matter.of(mass.united(parts))
        return self._known[key]


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
