"""All shapes of a scene as one mesh with moving vertices, for formats without instances."""

from __future__ import annotations

import numpy as np

from abd.export.scenery import Figure, Scenery
from abd.scene.geometry.frames import triad
from abd.scene.geometry.shapes import capsule, sphere

MANY_VERTICES = 2e8
"""Number of vertices of all frames beyond which balls and rods have fewer triangles."""


class WholeMesh:
    """One mesh of all things and markers: triangles (f, 3) of parts (`Scenery.parts`) with colors (p, 4).

    vertex_starts, triangle_starts: (p + 1,) offsets of the vertices and triangles of the parts."""

    def __init__(self, scenery: Scenery, frames: int):
        self.parts = scenery.parts()
        self.colors = np.array([part.color for part in self.parts]).reshape(-1, 4)
        used = np.array([part.figure for part in self.parts], dtype=int)
        figures = _coarse(scenery.figures, used, frames)
        own = [figures[k] for k in used]
        self.vertex_starts = np.cumsum([0, *(len(one.vertices) for one in own)])
        self.triangle_starts = np.cumsum([0, *(len(one.triangles) for one in own)])
        shifted = [one.triangles + first for one, first in zip(own, self.vertex_starts)]
        self.triangles = np.concatenate([np.zeros((0, 3), dtype=np.int64), *shifted])
        # figures with their things (k,) and the indices (k, v) of their vertices
        self._groups: list[tuple[Figure, np.ndarray, np.ndarray]] = []
        carriers = np.array([part.carrier for part in self.parts], dtype=int)
        for number in np.unique(used):
            members = np.flatnonzero(used == number)
            places = self.vertex_starts[members][:, None] + np.arange(len(figures[number].vertices))
            self._groups.append((figures[number], carriers[members], places))

    def __len__(self) -> int:
        return int(self.vertex_starts[-1])

    def mapped(self, maps: np.ndarray) -> np.ndarray:
        """(v, 3) world positions [m] at the poses (m, 4, 4) of one frame, or velocities [m/s] from their derivatives."""
        out = np.empty((len(self), 3))
        for figure, carriers, places in self._groups:
            at = maps[carriers]
            out[places] = figure.vertices @ at[:, :3, :3].swapaxes(1, 2) + at[:, None, :3, 3]
        return out


def _coarse(figures: list[Figure], used: np.ndarray, frames: int) -> list[Figure]:
    """Figures without duplicate vertices, and with fewer triangles for balls and rods if there are many."""
    plain = []
    for figure in figures:
        vertices, number = np.unique(figure.vertices, axis=0, return_inverse=True)
        plain.append(Figure(vertices, number.reshape(-1)[figure.triangles]))
    for level in (2, 1, 0):
        if sum(len(plain[k].vertices) for k in used) * frames <= MANY_VERTICES:
            break
        plain = [_round(figure, level) or one for figure, one in zip(figures, plain)]
    return plain


def _round(figure: Figure, level: int) -> Figure | None:
    """Coarse mesh of a single ball or rod; None for other figures."""
    if len(figure.balls) == 1 and len(figure.rods) == 0:
        vertices, triangles = sphere(figure.radius, level)
        return Figure(vertices + figure.balls[0], triangles)
    if len(figure.rods) == 1 and len(figure.balls) == 0:
        one, other = figure.rods[0]
        length = float(np.linalg.norm(other - one))
        vertices, triangles = capsule(figure.radius, length, 8 << level)
        return Figure(vertices @ triad((other - one) / length).T + 0.5 * (one + other), triangles)
    return None
