"""Drawn objects of an export: things with a shape and a colour, and their poses in every frame.

Things are first the bodies (half-spaces as finite static squares), then *struts*, ropes, rods and springs between two bodies: a
shape along z from 0 to 1, scaled by its pose. *Markers* of joints are rigidly attached to a body and have no poses.

Poses (k, 4, 4) are affine maps from the shape to the world, shear included, read from the file in portions of bounded size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from abd.colors import JOINT, ROPE, SPRING
from abd.io.trajectory import Trajectory
from abd.model import WORLD
from abd.pictures.cast import Cast, JointGroup, Recorded, evenly_spaced
from abd.pictures.shapes import Shape, creased, joined, perpendicular, segment_poses
from abd.scene.geometry.shapes import cylinder, sphere

PORTION = 1 << 23
"""Bytes of poses per portion of frames, which fit into the cache."""
READ_BYTES = 1 << 25
"""Bytes of poses per portion of things: each frame is one chunk of the file, so that large reads are faster."""
SAMPLED_FRAMES = 16
"""Number of frames that determine the size of the scene."""
SHAFT_CORNERS = 12
"""Corners of a round shaft."""
COILS = 8
"""Turns of a spring."""
MOST_COLORS = 256
"""Largest number of colours if each is a separate object."""
STRUTS = ("rod", "rope", "spring")
"""Symbols of joints that are drawn from one body to the other."""


@dataclass(frozen=True)
class Figure:
    """Mesh of a shape, with vertices on a crease once per side; two-sided if it is `open`.

    balls (b, 3), rods (r, 2, 3) and radius are the exact shape, if it consists of balls and rods."""

    vertices: np.ndarray
    triangles: np.ndarray
    normals: np.ndarray = field(default_factory=partial(np.zeros, (0, 3)))
    balls: np.ndarray = field(default_factory=partial(np.zeros, (0, 3)))
    rods: np.ndarray = field(default_factory=partial(np.zeros, (0, 2, 3)))
    radius: float = 0.0
    open: bool = False

    @classmethod
    def of(cls, shape: Shape) -> Figure:
        """Return the figure of the shape of a body."""
        exact = (shape.balls, shape.rods, shape.radius) if len(shape.corners) == 0 else ()
        return cls(*shape.mesh, *exact, open=shape.open)


@dataclass(frozen=True)
class Part:
    """Drawn thing or marker: index, title, index of the thing with its pose, index of its figure, colour (4,)."""

    number: int
    title: str
    carrier: int
    figure: int
    color: np.ndarray


class Scenery:
    """A run as things to draw.

    Attributes:
        name: of the scene; time: (T,) [s]; up: "Z", or "Y" if gravity acts along y.
        names: (m,) of all things, unique; colors: (m, 4) sRGB and opacity.
        figures: distinct shapes; figure: (m,) index of the shape of a thing, -1 without one.
        bodies: number of things that are bodies.
        markers: parts attached to bodies, numbered after the things.
        extent: size of the scene [m].
    """

    def __init__(self, trajectory: Trajectory):
        cast = Recorded(trajectory).cast
        self.trajectory, self.time, self.name = trajectory, trajectory.time, cast.name or trajectory.path.parent.name
        _, y, z = np.abs(trajectory.solver_settings["gravity"])
        self.up = "Y" if y > z else "Z"
        low, high = self._box(cast)
        self.extent = float(np.linalg.norm(high - low)) or 1.0
        self.figures = [Figure.of(shape) for shape in cast.shapes]
        self._known: dict[tuple, int] = {}
        self.bodies, self.names = len(cast), list(cast.names)
        figure, colors = cast.shape.tolist(), [*cast.colors]
        for body, plane in zip(cast.plane_bodies.tolist(), cast.planes):
            figure[body] = self._figure(("plane", *plane), square(plane, 0.5 * (low + high), self.extent))
        ends = [(np.zeros((0, 2), dtype=int), np.zeros((0, 2, 3)), np.zeros(0))]
        marked = []
        for group in cast.joints:
            if not group.drawing.get("show", True):
                continue
            size = self._size(group, cast)
            if group.kind.SYMBOL in STRUTS:
                spring = group.kind.SYMBOL == "spring"
                number, color = self._figure((spring,), strut(spring)), group.color(SPRING if spring else ROPE)
                self.names += group.names
                figure += [number] * len(group.child)
                colors += [color] * len(group.child)
                points = np.stack([group.parent_frame[:, :3, 3], group.child_frame[:, :3, 3]], axis=1)
                radius = float(group.drawing.get("shaft_radius", 0.0)) or 0.02 * size
                ends.append((np.stack([group.parent, group.child], axis=1), points, np.full(len(points), radius)))
            elif group.kind.MARKER:
                number, color = self._figure(*marker(group, size)), group.color(JOINT)
                marked += [(f"joint {name}", int(body), number, color) for name, body in zip(group.names, group.child)]
        self._ends, self._points, self._radius = (np.concatenate(parts) for parts in zip(*ends))
        self.figure, self.colors = np.array(figure, dtype=int), np.array(colors).reshape(-1, 4)
        self.markers = [Part(len(self) + k, *values) for k, values in enumerate(marked)]

    def __len__(self) -> int:
        return len(self.names)

    def parts(self) -> list[Part]:
        """All drawn things and markers."""
        things = zip(self.names, self.figure.tolist(), self.colors)
        return [Part(k, name, k, *rest) for k, (name, *rest) in enumerate(things) if rest[0] >= 0] + self.markers

    def by_frames(self) -> Iterator[tuple[range, np.ndarray]]:
        """All frames in portions: indices of frames, and poses (k, m, 4, 4) of all things."""
        for frames in _portions(0, len(self.time), PORTION // (128 * max(len(self), 1))):
            bodies = self.trajectory.transforms(slice(frames.start, frames.stop))
            yield frames, np.concatenate([bodies, self._struts(bodies)], axis=1)

    def by_things(self) -> Iterator[tuple[range, np.ndarray]]:
        """All things in portions: indices of things, and poses (T, g, 4, 4) in all frames."""
        count = READ_BYTES // (128 * max(len(self.time), 1))
        for things in _portions(0, self.bodies, count):
            yield things, self.trajectory.transforms(slice(None), slice(things.start, things.stop))
        for things in _portions(self.bodies, len(self), count):
            which = slice(things.start - self.bodies, things.stop - self.bodies)
            frames = _portions(0, len(self.time), PORTION // (128 * max(self.bodies, 1)))
            parts = [self._struts(self.trajectory.transforms(slice(some.start, some.stop)), which) for some in frames]
            yield things, np.concatenate(parts)

    def velocities(self, frames: range) -> np.ndarray:
        """(k, m, 4, 4) time derivatives of the poses; zero for struts."""
        out = np.zeros((len(frames), len(self), 4, 4))
        out[:, : self.bodies] = self.trajectory.rows("bodies/velocity", frames.start, frames.stop)
        return out

    def _struts(self, bodies: np.ndarray, which: slice = slice(None)) -> np.ndarray:
        """(k, s, 4, 4) poses of struts, which map z from 0 to 1 onto the line between the ends; bodies: (k, n, 4, 4)."""
        body, point = self._ends[which], self._points[which]
        carrier = bodies[:, body]
        placed = np.einsum("ksepq,seq->ksep", carrier[..., :3, :3], point) + carrier[..., :3, 3]
        placed = np.where((body == WORLD)[None, :, :, None], point[None], placed)
        # a strut of zero length keeps an invertible scale
        return segment_poses(placed, self._radius[which], 1e-6 * self.extent)

    def _size(self, group: JointGroup, cast: Cast) -> float:
        """Size [m] of the smaller body at the first joint of a group, or a fraction of the scene's size without surfaces."""
        radii = [cast.radii[body] for body in (group.parent[0], group.child[0]) if body != WORLD]
        return min((2.0 * float(one) for one in radii if one > 0.0), default=0.02 * self.extent)

    def _figure(self, key: tuple, figure: Figure) -> int:
        """Index of a figure, added if it is new."""
        if key not in self._known:
            self._known[key] = len(self.figures)
            self.figures.append(figure)
        return self._known[key]

    def _box(self, cast: Cast) -> tuple[np.ndarray, np.ndarray]:
        """Corners of the bounding box of all bodies in a sample of frames."""
        bodies = ~cast.is_plane
        corners = []
        for frame in evenly_spaced(range(len(self.time)), SAMPLED_FRAMES):
            middle, radius = cast.bounding_balls(self.trajectory.transform(int(frame)))
            corners += [(middle - radius[:, None])[bodies], (middle + radius[:, None])[bodies]]
        points = np.concatenate(corners)
        if not len(points) or not np.isfinite(points).all():
            return -np.ones(3), np.ones(3)
        return points.min(axis=0), points.max(axis=0)


def distinct_colors(colors: np.ndarray, most: int = MOST_COLORS) -> tuple[np.ndarray, np.ndarray]:
    """Distinct colours (c, 4) of colours (n, 4), rounded to 8 bits or, if more than `most`, coarser; and the index of each."""
    step = 1
    while True:
        levels = np.round(255.0 * colors / step).astype(int)
        first, number = np.unique(levels.reshape(-1, 4), axis=0, return_inverse=True)
        if len(first) <= most or step >= 64:
            return np.clip(first * step / 255.0, 0.0, 1.0), number.reshape(-1)
        step *= 2


def square(plane: np.ndarray, middle: np.ndarray, extent: float) -> Figure:
    """World square in the plane (4,) of a half-space, larger than the scene [m], about its middle (3,)."""
    normal, offset = plane[:3], plane[3]
    foot = middle - (middle @ normal - offset) * normal
    (x,), (y,) = perpendicular(normal[None])
    vertices = foot + 1.5 * extent * np.array([-x - y, x - y, x + y, y - x])
    return Figure(*creased(vertices, np.array([[0, 1, 2], [0, 2, 3]])), open=True)


def strut(spring: bool) -> Figure:
    """Shaft of radius 1 along z from 0 to 1, or a helical wire."""
    if not spring:
        vertices, triangles = cylinder(1.0, 1.0, SHAFT_CORNERS)
        return Figure(*creased(vertices + np.array([0.0, 0.0, 0.5]), triangles))
    steps, wire, corners = 16 * COILS, 0.15, 6
    t = np.linspace(0.0, 1.0, steps + 1)
    angle, around = 2.0 * np.pi * COILS * t, 2.0 * np.pi * np.arange(corners) / corners
    out = np.stack([np.cos(angle), np.sin(angle), np.zeros_like(t)], axis=1)
    # thickness along z is in units of the length, approximately round for a coil of a few radii
    cross = wire * (np.cos(around)[None, :, None] * out[:, None] + np.sin(around)[None, :, None] * [0.0, 0.0, 0.1])
    middle = np.column_stack([out[:, :2], 0.02 + 0.96 * t])
    k, j = np.meshgrid(np.arange(steps), np.arange(corners), indexing="ij")
    a, b = (k * corners + j).ravel(), (k * corners + (j + 1) % corners).ravel()
    triangles = np.concatenate([np.stack([a, a + corners, b + corners], 1), np.stack([a, b + corners, b], 1)])
    return Figure(*creased((middle[:, None] + cross).reshape(-1, 3), triangles))


def marker(group: JointGroup, size: float) -> tuple[tuple, Figure]:
    """Key of equal drawings, and drawing of the joints of a group in the mesh frames of their children for a body size [m]."""
    frame, drawing = group.child_frame[0], group.drawing
    ball, length, radius = (float(drawing.get(key, 0.0)) for key in ("joint_radius", "shaft_length", "shaft_radius"))
    if not ball and not length:
        ball, length = (0.05 * size, 0.0) if group.kind.MARKER == "ball" else (0.0, 0.4 * size)
    parts = [cylinder(radius or 0.05 * length, length, SHAFT_CORNERS)] if length > 0.0 else []
    vertices, triangles = joined(*parts, *([sphere(ball, 2)] if ball > 0.0 else []))
    figure = Figure(*creased(vertices @ frame[:3, :3].T + frame[:3, 3], triangles))
    return ("joint", length, radius, ball, frame.tobytes()), figure


def _portions(first: int, last: int, count: int) -> Iterator[range]:
    """Ranges from first to last - 1 of at most `count` indices, and at least one."""
    for start in range(first, last, max(1, count)):
        yield range(start, min(start + max(1, count), last))
