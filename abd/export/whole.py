"""All shapes of a scene as one mesh whose vertices move: for formats without instances."""

from __future__ import annotations

import numpy as np

from abd.export.scenery import Scenery
from abd.export.symbols import Figure
from abd.scene.geometry.shapes import capsule, sphere

MANY = 2e8
"""Vertices of all frames from which on balls and rods are made of fewer triangles."""


class WholeMesh:
    """One mesh of all things and markers.

    Attributes:
        triangles: (f, 3); thing: (p,) which thing or marker each part is of, markers counted on after the things.
        names: (p,); colors: (p, 4); vertex_starts, triangle_starts: (p + 1,) where the vertices and triangles of the
            parts begin.
    """

    def __init__(self, scenery: Scenery, frames: int):
        self.scenery = scenery
        carriers = [*range(len(scenery)), *(marker.body for marker in scenery.markers)]
        figure = np.array([*scenery.figure, *(marker.figure for marker in scenery.markers)], dtype=int)
        names = [*scenery.names, *(f"joint {marker.name}" for marker in scenery.markers)]
        colors = np.array([*scenery.colors, *(marker.color for marker in scenery.markers)]).reshape(-1, 4)
        drawn = np.flatnonzero(figure >= 0)
        figures = _coarse(scenery.figures, figure[drawn], frames)
        self._figures = [figures[k] for k in figure[drawn]]
        self._carrier = np.array(carriers, dtype=int)[drawn]
        self.names, self.colors, self.thing = [names[k] for k in drawn], colors[drawn], drawn
        self.vertex_starts = np.cumsum([0, *(len(one.vertices) for one in self._figures)])
        self.triangle_starts = np.cumsum([0, *(len(one.triangles) for one in self._figures)])
        shifted = [one.triangles + first for one, first in zip(self._figures, self.vertex_starts)]
        self.triangles = np.concatenate([np.zeros((0, 3), dtype=np.int64), *shifted])
        self._groups = self._grouped()

    def __len__(self) -> int:
        return int(self.vertex_starts[-1])

    def mapped(self, maps: np.ndarray) -> np.ndarray:
        """(v, 3) world positions [m] at the poses (m, 4, 4) of one frame; of their time derivatives, velocities [m/s]."""
        out = np.empty((len(self), 3))
        for figure, carriers, places in self._groups:
            at, parts = maps[carriers], np.empty((len(carriers), len(figure.vertices), 3))
            local = np.column_stack([figure.vertices, np.ones(len(figure.vertices))]).T
            for axis in range(3):
                # one product for all of a figure, (parts, 4) by (4, v)
                parts[:, :, axis] = at[:, axis] @ local
            out[places] = parts
        return out

    def _grouped(self) -> list[tuple[Figure, np.ndarray, np.ndarray]]:
        """Figures with the things that carry them (k,) and the places (k, v) of their vertices."""
        members: dict[int, list[int]] = {}
        for part, figure in enumerate(self._figures):
            members.setdefault(id(figure), []).append(part)
        groups = []
        for parts in members.values():
            figure = self._figures[parts[0]]
            places = self.vertex_starts[parts][:, None] + np.arange(len(figure.vertices))
            groups.append((figure, self._carrier[parts], places))
        return groups


def _coarse(figures: list[Figure], used: np.ndarray, frames: int) -> list[Figure]:
    """Figures with shared vertices, and with fewer triangles for balls and rods where there are very many of them."""
    plain = [_welded(figure) for figure in figures]
    for level in (2, 1, 0):
        if sum(len(plain[k].vertices) for k in used) * frames <= MANY:
            break
        plain = [_round(figure, level) or one for figure, one in zip(figures, plain)]
    return plain


def _welded(figure: Figure) -> Figure:
    """The figure with every vertex once; its normals are not used."""
    vertices, number = np.unique(figure.vertices, axis=0, return_inverse=True)
    return _bare(vertices, number.reshape(-1)[figure.triangles])


def _round(figure: Figure, level: int) -> Figure | None:
    """A single ball or rod of few triangles; None for anything else."""
    if len(figure.balls) == 1 and len(figure.rods) == 0:
        vertices, triangles = sphere(figure.radius, level)
        return _bare(vertices + figure.balls[0], triangles)
    if len(figure.rods) == 1 and len(figure.balls) == 0:
        from abd.export.scenery import turned_from_z

        one, other = figure.rods[0]
        length = float(np.linalg.norm(other - one))
        vertices, triangles = capsule(figure.radius, length, 8 << level)
        return _bare(vertices @ turned_from_z((other - one) / length).T + 0.5 * (one + other), triangles)
    return None


def _bare(vertices: np.ndarray, triangles: np.ndarray) -> Figure:
    return Figure(vertices, triangles, np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 2, 3)))
