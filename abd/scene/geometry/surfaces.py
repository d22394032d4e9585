"""The surface of a body from its spec: a generated shape, a mesh file, or one written out in the scene."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from abd.scene.geometry import shapes
from abd.scene.geometry.mesh_files import RawMesh
from abd.scene.geometry.meshes import Surface, load_surface, make_surface, split_components
from abd.scene.schema.schema import SHAPES, SURFACE_KEYS, BodySpec


@dataclass(frozen=True)
class Piece:
    """A scaled surface with a key that is equal for equal surfaces."""

    key: Hashable
    surface: Surface


class SurfaceSource:
    """Surfaces of the bodies of one scene; equal ones are made once and shared."""

    def __init__(self) -> None:
        self._load = cache(load_surface)
        self._numbers: dict[int, int] = {}
        self._contents: dict[tuple, int] = {}
        self._pieces: dict[Hashable, list[Piece]] = {}

    def pieces(self, body: BodySpec) -> list[Piece]:
        """The scaled surface of a body; with `split_components` one per connected component; none for a proxy or a
        half-space.

        Raises:
            SceneError: a mesh file that cannot be read, or an unusable surface.
        """
        if body.half_space is not None or body.proxy:
            return []
        scale = tuple(np.broadcast_to(np.asarray(body.scale, dtype=float), 3).tolist())
        key = (self._key(body), scale, body.split_components)
        if key not in self._pieces:
            surface = self._surface(body)
            parts = split_components(surface) if body.split_components else [surface]
            self._pieces[key] = [Piece((*key, k), part.scaled(scale)) for k, part in enumerate(parts)]
        return self._pieces[key]

    def _key(self, body: BodySpec) -> Hashable:
        if body.mesh is not None:
            return "mesh", str(Path(body.mesh).resolve())
        if body.surface is not None:
            # Copies of a body share the spec of its surface, which may be long: it is compared once.
            if id(body.surface) not in self._numbers:
                content = tuple(tuple(rows) for _, rows in body.surface)
                self._numbers[id(body.surface)] = self._contents.setdefault(content, len(self._contents))
            return "surface", self._numbers[id(body.surface)]
        for name in SHAPES:
            value = getattr(body, name)
            if value is not None:
                return name, value if name == "box" else tuple(value.model_dump().items())
        raise ValueError(f"body '{body.name}' has none of {', '.join(SURFACE_KEYS)}")

    def _surface(self, body: BodySpec) -> Surface:
        if body.mesh is not None:
            return self._load(Path(body.mesh).resolve())
        if body.surface is not None:
            raw = RawMesh(
                np.array(body.surface.vertices, dtype=float).reshape(-1, 3),
                np.array(body.surface.triangles, dtype=np.int64).reshape(-1, 3),
                np.array(body.surface.edges, dtype=np.int64).reshape(-1, 2),
                np.array(body.surface.points, dtype=np.int64),
            )
            return make_surface(body.name, raw)
        if body.box is not None:
            return make_surface("box", RawMesh(*shapes.box(body.box)))
        if body.sphere is not None and body.sphere.subdivisions is None:
            return replace(make_surface("sphere", shapes.round_point()), radius=body.sphere.radius)
        if body.capsule is not None and body.capsule.segments is None:
            return replace(
                make_surface("capsule", shapes.round_segment(body.capsule.length)), radius=body.capsule.radius
            )
        for name in ("sphere", "capsule", "cylinder", "cone"):
            make, value = getattr(shapes, name), getattr(body, name)
            if value is not None:
                return make_surface(name, RawMesh(*make(**value.model_dump())))
        raise ValueError(f"body '{body.name}' has none of {', '.join(SURFACE_KEYS)}")
