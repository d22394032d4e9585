"""Pairs of bodies that intersect, contain one another, touch, or lie below a half-space, all of a scene at once.

A barrier needs a start without intersections. Boxes around the bodies cull, then directions that separate their hulls
(`abd.scene.overlaps.escape`); their elements decide about the rest (`abd.scene.overlaps.overlap`). Surfaces with a
thickness must be further apart than the sum of their radii and the scene's minimum separation.

Bodies that touch, or overlap by no more than `ROUNDING` of the smaller one, are *touching*: they can be set apart
(`abd.scene.overlaps.separation`). Those that overlap by more are *deep*; their depth is the length of the shortest displacement
found that frees the pair (`abd.scene.overlaps.escape`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from abd.contact.boxes import overlapping_boxes
from abd.contact.pair_law import activations, thinnest_extents
from abd.contact.pair_rows import distinct
from abd.contact.pairs import may_collide
from abd.joints.closure.link_graph import members
from abd.model import Model
from abd.scene.overlaps.escape import Hulls, escape, least_penetration, part
from abd.scene.overlaps.overlap import Placed, overlap

ROUNDING = 1e-6
"""Largest overlap of touching bodies, relative to the size of the smaller body."""
DIGITS = 64.0 * np.finfo(float).eps
"""Gap from rounding, relative to the largest coordinate."""
TOUCH = 1e-2
"""Largest gap of touching bodies, relative to their largest overlap."""
MOST_DEEP = 300
"""Number of deep pairs at which the search stops."""


@dataclass(frozen=True)
class Separation:
    """A direction (3,) in which `first` leaves `second`, and the gap between them along it [m], negative where they
    overlap."""

    first: int
    second: int
    direction: np.ndarray
    gap: float


@dataclass
class Survey:
    """Result of a survey of a state.

    Attributes:
        touching: separations of the pairs that touch; near: those of the other pairs whose hulls are near.
        deep: (first, second, depth roughly [m]) of pairs that overlap by more.
    """

    touching: list[Separation] = field(default_factory=list)
    near: list[Separation] = field(default_factory=list)
    deep: list[tuple[int, int, float]] = field(default_factory=list)

    def add(self, pair: Separation, rounding: float) -> None:
        """Add a pair by its gap; overlaps up to `rounding` [m] count as touching."""
        if pair.gap < -rounding:
            self.deep.append((pair.first, pair.second, -pair.gap))
        else:
            (self.touching if pair.gap <= 0.0 else self.near).append(pair)


class Surveyor:
    """Search for pairs of bodies that touch or overlap.

    Attributes:
        worlds: the bodies with a surface of every world that has some.
        size: (n,) diagonal of every body's surface, its thickness included [m]; inf for half-spaces.
    """

    def __init__(self, model: Model):
        self.model, self.hulls = model, Hulls(model)
        bodies = model.bodies
        self.meshed = np.flatnonzero(bodies.mesh >= 0)
        groups = [self.meshed[some] for some in members(bodies.world[self.meshed])]
        self.worlds = {int(bodies.world[some[0]]): some for some in groups}
        self.planes = np.flatnonzero(np.isfinite(bodies.plane[:, 3]))
        diagonals = np.array([np.linalg.norm(np.ptp(mesh.vertices, axis=0)) for mesh in model.meshes] + [np.inf])
        self.size = diagonals[bodies.mesh] + 2.0 * bodies.radius
        self._activations = activations(model, thinnest_extents(model))
        self.size = np.where(self.size > 0.0, self.size, self._activations.max(initial=0.0))

    def rounding(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the largest overlap (m,) of touching pairs [m]."""
        return ROUNDING * np.minimum(self.size[first], self.size[second])

    def activation(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the activation distances (m,) of pairs [m]."""
        return np.minimum(self._activations[first], self._activations[second])

    def separation(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the required distances (m,) of pairs [m]."""
        radius = self.model.bodies.radius
        return radius[first] + radius[second] + self.model.settings.minimum_separation

    def survey(self, q: np.ndarray, margin: float = 0.0, moved: np.ndarray | None = None) -> Survey:
        """Return all pairs that touch or overlap at q (n, 12).

        Args:
            margin: gap below which the hulls of other pairs count as near [m].
            moved: (n,) bool, bodies of which one at least must be in a pair; None for all pairs.
        """
        low, high = self._boxes(q)
        digits = DIGITS * float(np.nanmax(np.abs([low, high]), initial=0.0))
        first, second = self._candidates(low, high, margin, moved)
        gap, along = self.hulls.gaps(self.model.bodies.mesh, q, (low + high) / 2.0, first, second)
        gap -= self.separation(first, second)
        rounding = self.rounding(first, second)
        out = Survey()
        touch = np.maximum(digits, TOUCH * rounding)
        close = np.flatnonzero(gap < np.maximum(margin, touch))
        self._planes(out, q, low, high, margin, moved, digits)
        for k in close[np.argsort(gap[close], kind="stable")].tolist():
            pair = Separation(int(first[k]), int(second[k]), along[k], _rounded(float(gap[k]), float(touch[k])))
            self._classify(out, q, pair, float(rounding[k]))
            if len(out.deep) >= MOST_DEEP:
                break
        return out

    def _boxes(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Corners (n, 3) of the boxes around the bodies with a surface [m]; nan for others."""
        mesh = self.model.bodies.mesh
        low, high = np.full((2, len(q), 3), np.nan)
        for same in members(mesh[self.meshed]):
            vertices = self.model.meshes[mesh[self.meshed[same[0]]]].vertices
            most = max(1, (1 << 21) // len(vertices))
            for start in range(0, len(same), most):
                some = self.meshed[same[start : start + most]]
                for axis in range(3):
                    places = q[some, 3 + 3 * axis : 6 + 3 * axis] @ vertices.T
                    low[some, axis] = places.min(axis=1) + q[some, axis]
                    high[some, axis] = places.max(axis=1) + q[some, axis]
        return low, high

    def _candidates(self, low, high, margin: float, moved: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return pairs first < second of bodies that may collide and whose boxes, enlarged by their separation, overlap."""
        index = self.meshed
        if len(index) == 0:
            return np.zeros(0, dtype=int), np.zeros(0, dtype=int)
        grown = (self.model.bodies.radius[index] + (self.model.settings.minimum_separation + margin) / 2.0)[:, None]
        # sums and differences of rounded corners must not lose a pair that just touches
        grown = grown + 4.0 * np.finfo(float).eps * np.maximum(np.abs(low[index]), np.abs(high[index]))
        low, high = low[index] - grown, high[index] + grown
        if len(self.worlds) > 1:
            # a fourth axis separates worlds by more than the other axes, so that it is halved first
            span = float(high.max() - low.min())
            place = (1.0 + span) * self.model.bodies.world[index, None]
            low, high = np.hstack([low, place]), np.hstack([high, place])
        if moved is None:
            i, j = overlapping_boxes(low, high, low, high)
        else:
            mine = np.flatnonzero(moved[index])
            i, j = overlapping_boxes(low[mine], high[mine], low, high)
            i = mine[i]
        keys = distinct((np.minimum(i, j) * len(index) + np.maximum(i, j))[i != j])
        first, second = index[keys // len(index)], index[keys % len(index)]
        wanted = may_collide(self.model, first, second)
        return first[wanted], second[wanted]

    def _classify(self, out: Survey, q: np.ndarray, pair: Separation, rounding: float) -> None:
        """Add a pair with near hulls: by its hulls if they decide, else by its elements."""
        if pair.gap > 0.0:
            out.add(pair, rounding)
            return
        i, j, separation = pair.first, pair.second, float(self.separation(pair.first, pair.second))
        a, b = self.placed(q, i), self.placed(q, j)
        if separation == 0.0 and self._convex(i, j):
            least = (pair.gap, pair.direction) if pair.gap >= -rounding else least_penetration(a, b)
            if least is not None:
                out.add(Separation(i, j, least[1], least[0]), rounding)
                return
        if pair.gap >= -rounding:
            out.add(pair, rounding)
            return
        found = overlap(a, b, separation)
        if found is None:
            return  # hulls reach into one another where surfaces do not
        directions = part(a, b, separation, 2.0 * rounding) if found[1] <= rounding else None
        if directions is None:
            out.deep.append((i, j, max(found[1], -pair.gap)))
        else:
            out.touching += [Separation(i, j, direction, -rounding) for direction in directions]

    def _convex(self, i: int, j: int) -> bool:
        """Return whether two bodies with surfaces are both convex."""
        mesh = self.model.bodies.mesh
        return self.hulls.convex(int(mesh[i])) and self.hulls.convex(int(mesh[j]))

    def _planes(self, out: Survey, q, low, high, margin: float, moved: np.ndarray | None, digits: float) -> None:
        """Classify all bodies and half-spaces; gaps up to `digits` [m] are rounding."""
        bodies, near = self.model.bodies, [np.zeros((0, 2), dtype=np.int64)]
        for plane in self.planes.tolist():
            normal, offset = bodies.plane[plane, :3], bodies.plane[plane, 3]
            others = self.worlds.get(int(bodies.world[plane]), self.meshed[:0])
            others = others if moved is None else others[moved[others]]
            corner = np.where(normal > 0.0, low[others], high[others]) @ normal
            reach = self.separation(others, np.full(len(others), plane)) + margin
            slack = (
                4.0 * np.finfo(float).eps * np.maximum(np.abs(low[others]), np.abs(high[others])).max(axis=1, initial=0)
            )
            others = others[corner - offset <= reach + slack]
            near.append(np.stack([np.full(len(others), plane), others], axis=1))
        pairs = np.concatenate(near)
        for plane, k in pairs[may_collide(self.model, *pairs.T)].tolist():
            normal, offset = bodies.plane[plane, :3], bodies.plane[plane, 3]
            vertices = self.model.meshes[bodies.mesh[k]].vertices
            heights = vertices @ (normal @ q[k, 3:].reshape(3, 3)) + normal @ q[k, :3] - offset
            gap = float(heights.min() - self.separation(k, plane))
            rounding = float(self.rounding(k, plane))
            touch = max(digits, TOUCH * rounding)
            if gap < max(margin, touch):
                out.add(Separation(k, plane, normal, _rounded(gap, touch)), rounding)

    def placed(self, q: np.ndarray, body: int) -> Placed:
        """World coordinates of a body's surface."""
        number = int(self.model.bodies.mesh[body])
        mesh, state = self.model.meshes[number], q[body]
        vertices = mesh.vertices @ state[3:].reshape(3, 3).T + state[:3]
        return Placed(mesh, vertices, partial(self.hulls.components, number))

    def escape(self, q: np.ndarray, i: int, j: int) -> np.ndarray:
        """Return a short displacement (3,) of body `i` [m] that frees it from body or half-space `j`."""
        a, separation = self.placed(q, i), float(self.separation(i, j))
        if self.model.bodies.mesh[j] < 0:
            normal, offset = self.model.bodies.plane[j, :3], self.model.bodies.plane[j, 3]
            return (separation + offset - (a.vertices @ normal).min()) * normal
        return escape(a, self.placed(q, j), separation, self._convex(i, j))

    def relation(self, q: np.ndarray, i: int, j: int) -> str:
        """Return the verb of an overlap: "intersects", "contains", "lies inside", "is too close to" or "is partly below"."""
        if self.model.bodies.mesh[j] < 0:
            return "is partly below"
        found = overlap(self.placed(q, i), self.placed(q, j), float(self.separation(i, j)))
        return found[0] if found is not None and found[0] != "touches" else "intersects"


def _rounded(gap: float, touch: float) -> float:
    """Return the gap of a pair, 0 for positive gaps up to `touch` [m]."""
    return gap if gap > touch else min(gap, 0.0)
