"""What an export draws: things with a shape and a colour, and where they are in every frame.

Objects are in one order: the bodies (half-spaces among them, as finite squares that do not move), then *struts*, which are
what stretches between two bodies: ropes, rods and springs. A strut is a shape along z from 0 to 1, and its pose scales it.
Besides, *markers* of joints are rigidly attached to a body and have no poses of their own.

Poses (k, 4, 4) are affine maps from the shape to the world, shear included, and are read from the file in portions, by frames
or by things, so that memory stays bounded however long the run is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from abd.colors import JOINT, ROPE, SPRING
from abd.export.symbols import Figure, marker, strut_figure
from abd.io.trajectory import Trajectory
from abd.model import WORLD
from abd.pictures.cast import JointGroup, Recorded

PORTION = 1 << 23
"""Bytes of poses that are in memory at a time: they stay in the cache, and their memory is used again."""
READ = 1 << 27
"""Bytes of poses that are read at a time where they are wanted body by body."""
STRUTS = ("distance", "rope", "spring")
"""Joints that are drawn from one body to the other."""
SAMPLED = 16
"""Frames that the size of the scene is taken from."""


@dataclass(frozen=True)
class Marker:
    """Drawing of a joint in the mesh frame of a body: name, body, number of the figure, colour (4,)."""

    name: str
    body: int
    figure: int
    color: np.ndarray


@dataclass(frozen=True)
class _Ends:
    """Ends of all struts: bodies (k, 2), -1 for the world, points (k, 2, 3) in their mesh frames, radii (k,) [m]."""

    bodies: np.ndarray
    points: np.ndarray
    radius: np.ndarray


class Scenery:
    """A run as things to draw.

    Attributes:
        name: of the scene; time: (T,) [s]; up: "Z", or "Y" where gravity pulls along y.
        names: (m,) of all things, unique; colors: (m, 4) sRGB and opacity.
        figures: the different shapes; figure: (m,) which one a thing has, -1 for none.
        bodies: number of the things that are bodies; still: (m,) which things cannot move.
        markers: what is attached to bodies.
        extent: size of the scene [m].
    """

    def __init__(self, trajectory: Trajectory):
        recorded = Recorded(trajectory)
        cast = recorded.cast
        self.trajectory, self.time, self.name = trajectory, trajectory.time, cast.name or trajectory.path.parent.name
        self.up = "Y" if abs(float(trajectory.gravity[1])) > abs(float(trajectory.gravity[2])) else "Z"
        low, high = self._box(cast)
        self.extent = float(np.linalg.norm(high - low)) or 1.0
        self.figures: list[Figure] = [Figure.of_shape(shape) for shape in cast.shapes]
        self._known: dict[tuple, int] = {}
        self.bodies, self.names = len(cast), list(cast.names)
        figure, colors = cast.shape.tolist(), [*cast.colors]
        for body, plane in zip(cast.plane_bodies.tolist(), cast.planes):
            figure[body] = self._figure(("plane", *plane), Figure.square(plane, 0.5 * (low + high), self.extent))
        self.markers: list[Marker] = []
        ends: list[tuple[np.ndarray, np.ndarray, float]] = []
        for group in cast.joints:
            if group.drawing.get("show", True) is False:
                continue
            if group.type in STRUTS:
                new, kind, color = self._struts(group, cast)
                ends += new
                self.names += group.names
                figure += [kind] * len(new)
                colors += [color] * len(new)
            else:
                self._mark(group, cast)
        self.figure, self.colors = np.array(figure, dtype=int), np.array(colors).reshape(-1, 4)
        self._ends = _Ends(
            np.array([one[0] for one in ends], dtype=int).reshape(-1, 2),
            np.array([one[1] for one in ends], dtype=float).reshape(-1, 2, 3),
            np.array([one[2] for one in ends], dtype=float),
        )
        self.still = np.zeros(len(self.names), dtype=bool)
        self.still[: self.bodies] = np.array(cast.kind, dtype=object) == "static"

    def __len__(self) -> int:
        return len(self.names)

    def poses(self, first: int, last: int) -> np.ndarray:
        """(k, m, 4, 4) poses of all things in frames first to last - 1."""
        bodies = self.trajectory.transforms(slice(first, last))
        return (
            np.concatenate([bodies, self._strut_poses(bodies, slice(None))], axis=1)
            if len(self._ends.radius)
            else bodies
        )

    def by_frames(self, most: int = PORTION) -> Iterator[tuple[range, np.ndarray]]:
        """All frames in portions: their numbers, and `poses`."""
        count = max(1, most // (128 * max(len(self), 1)))
        for first in range(0, len(self.time), count):
            last = min(first + count, len(self.time))
            yield range(first, last), self.poses(first, last)

    def by_things(self, most: int = PORTION) -> Iterator[tuple[range, np.ndarray]]:
        """All things in portions: their numbers, and poses (T, g, 4, 4) in all frames."""
        count = max(1, most // (128 * max(len(self.time), 1)))
        # each frame is one chunk of the file: few large chunks are read faster than many small ones
        several = count * max(1, READ // most)
        for start in range(0, self.bodies, several):
            stop = min(start + several, self.bodies)
            block = self.trajectory.transforms(slice(None), slice(start, stop))
            for first in range(start, stop, count):
                last = min(first + count, stop)
                yield range(first, last), block[:, first - start : last - start]
        for first in range(0, len(self._ends.radius), count):
            last = min(first + count, len(self._ends.radius))
            poses = np.empty((len(self.time), last - first, 4, 4))
            step = max(1, most // (128 * max(self.bodies, 1)))
            for start in range(0, len(self.time), step):
                bodies = self.trajectory.transforms(slice(start, start + step))
                poses[start : start + step] = self._strut_poses(bodies, slice(first, last))
            yield range(self.bodies + first, self.bodies + last), poses

    def velocities(self, frames: range) -> np.ndarray:
        """(k, m, 4, 4) time derivatives of the poses; those of struts are not known and zero."""
        bodies = self.trajectory.rows("bodies/velocity", frames.start, frames.stop)
        if len(self) == self.bodies:
            return bodies
        return np.concatenate([bodies, np.zeros((len(bodies), len(self) - self.bodies, 4, 4))], axis=1)

    def _strut_poses(self, bodies: np.ndarray, which: slice) -> np.ndarray:
        """(k, s, 4, 4) poses of struts, which map z from 0 to 1 onto the line between the ends; bodies: (k, n, 4, 4)."""
        ends = self._ends
        body, point = ends.bodies[which], ends.points[which]
        carrier = bodies[:, body]
        placed = np.einsum("ksepq,seq->ksep", carrier[..., :3, :3], point) + carrier[..., :3, 3]
        placed = np.where((body == WORLD)[None, :, :, None], point[None], placed)
        along = placed[:, :, 1] - placed[:, :, 0]
        length = np.linalg.norm(along, axis=2, keepdims=True)
        direction = np.where(length > 0.0, along / np.where(length > 0.0, length, 1.0), [0.0, 0.0, 1.0])
        out = np.zeros((*along.shape[:2], 4, 4))
        out[..., :3, :3] = turned_from_z(direction)
        out[..., :3, :2] *= ends.radius[which][None, :, None, None]
        # a strut of no length keeps a scale that can be inverted
        out[..., :3, 2] *= np.maximum(length, 1e-6 * self.extent)
        out[..., :3, 3] = placed[:, :, 0]
        out[..., 3, 3] = 1.0
        return out

    def _struts(self, group: JointGroup, cast) -> tuple[list, int, np.ndarray]:
        """Ends of the struts of a group, their figure, and their colour."""
        radius = float(group.drawing.get("shaft_radius", 0.0)) or 0.02 * self._size(group, cast)
        spring = group.type == "spring"
        figure = self._figure((group.type == "spring",), strut_figure(spring))
        color = _color(group, SPRING if spring else ROPE)
        return [
            (np.array([parent, child]), np.stack([D[:3, 3], C[:3, 3]]), radius)
            for parent, child, D, C in zip(group.parent, group.child, group.parent_frame, group.child_frame)
        ], figure, color  # fmt: skip

    def _mark(self, group: JointGroup, cast) -> None:
        """Markers of the joints of a group."""
        frame = group.child_frame[0]
        drawn = marker(group.type, group.drawing, self._size(group, cast), frame)
        if drawn is None:
            return
        number = self._figure(drawn[0], drawn[1])
        color = _color(group, JOINT)
        self.markers += [Marker(name, int(body), number, color) for name, body in zip(group.names, group.child)]

    def _size(self, group: JointGroup, cast) -> float:
        """Size [m] of the smaller body at the first joint of a group; a fraction of the scene's size if neither has a surface."""
        ends = [int(body) for body in (group.parent[0], group.child[0]) if body != WORLD]
        sizes = [2.0 * cast.shapes[cast.shape[body]].extent for body in ends if cast.shape[body] >= 0]
        return min(sizes, default=0.02 * self.extent)

    def _figure(self, key: tuple, figure: Figure) -> int:
        """Number of a figure, which is added where it is new."""
        if key not in self._known:
            self._known[key] = len(self.figures)
            self.figures.append(figure)
        return self._known[key]

    def _box(self, cast) -> tuple[np.ndarray, np.ndarray]:
        """Corners of the box about all bodies in some frames."""
        frames = np.unique(np.linspace(0, len(self.time) - 1, SAMPLED).astype(int)) if len(self.time) else []
        low, high = np.full(3, np.inf), np.full(3, -np.inf)
        bodies = np.flatnonzero(~cast.is_plane)
        for frame in frames:
            middle, radius = cast.middles(self.trajectory.transform(int(frame)))
            if len(bodies):
                low = np.minimum(low, (middle - radius[:, None])[bodies].min(axis=0))
                high = np.maximum(high, (middle + radius[:, None])[bodies].max(axis=0))
        known = np.isfinite(low).all() and np.isfinite(high).all()
        return (low, high) if known else (-np.ones(3), np.ones(3))


def _color(group: JointGroup, default: np.ndarray) -> np.ndarray:
    """(4,) colour of a group of joints."""
    given = np.asarray(group.drawing.get("color", default), dtype=float).ravel()
    return given if len(given) == 4 else np.append(given, 1.0)


def turned_from_z(direction: np.ndarray) -> np.ndarray:
    """(..., 3, 3) least rotations that turn z to unit vectors (..., 3); half a turn about x where it points down."""
    x, y, z = np.moveaxis(direction, -1, 0)
    down = z < -1.0 + 1e-12
    c = 1.0 / np.where(down, 1.0, 1.0 + z)
    rows = [[1.0 - x * x * c, -x * y * c, x], [-x * y * c, 1.0 - y * y * c, y], [-x, -y, z]]
    out = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    out[down] = np.diag([1.0, -1.0, -1.0])
    return out
