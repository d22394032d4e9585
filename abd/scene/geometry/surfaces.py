"""The surface of a body from its spec: a generated shape, a mesh file, or one written out in the scene."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from abd.scene.geometry import shapes
from abd.scene.geometry.mesh_files import RawMesh
from abd.scene.geometry.meshes import Surface, load_surface, make_surface, split_components
from abd.scene.schema.schema import SHAPES, BodySpec


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
        source, make = self._source(body)
        key = (source, scale, body.split_components)
        if key not in self._pieces:
            surface = make()
            parts = split_components(surface) if body.split_components else [surface]
            self._pieces[key] = [Piece((*key, k), part.scaled(scale)) for k, part in enumerate(parts)]
        return self._pieces[key]

    def _source(self, body: BodySpec) -> tuple[Hashable, Callable[[], Surface]]:
        """Return a key that is equal for equal surfaces, and the function that creates the surface."""
        if body.mesh is not None:
            path = Path(body.mesh).resolve()
            return ("mesh", str(path)), lambda: self._load(path)
        if body.surface is not None:
            # Copies of a body share the spec of its surface, which may be long: it is compared once.
            if id(body.surface) not in self._numbers:
                content = tuple(tuple(rows) for _, rows in body.surface)
                self._numbers[id(body.surface)] = self._contents.setdefault(content, len(self._contents))
            one = body.surface
            raw = partial(RawMesh.of, one.vertices, one.triangles, one.edges, one.points)
            return ("surface", self._numbers[id(one)]), lambda: make_surface(body.name, raw())
        if body.box is not None:
            return ("box", body.box), lambda: make_surface("box", RawMesh.of(*shapes.box(body.box)))
        name = next(name for name in SHAPES if getattr(body, name) is not None)
        keys = getattr(body, name).model_dump()
        return (name, *keys.items()), lambda: _round(name, keys)


def _round(name: str, keys: dict[str, Any]) -> Surface:
    """Return a sphere, capsule, cylinder or cone: exact without a resolution of its mesh."""
    if name == "sphere" and keys["subdivisions"] is None:
        return replace(make_surface(name, RawMesh.of([(0.0, 0.0, 0.0)], points=[0])), radius=keys["radius"])
    if name == "capsule" and keys["segments"] is None:
        axis = RawMesh.of([(0.0, 0.0, z * keys["length"]) for z in (-0.5, 0.5)], edges=[(0, 1)])
        return replace(make_surface(name, axis), radius=keys["radius"])
    return make_surface(name, RawMesh.of(*getattr(shapes, name)(**keys)))
