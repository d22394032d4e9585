"""Shapes of an export as triangles with normals: bodies, squares for half-spaces, markers of joints, ropes and springs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.pictures.shapes import Shape, corner_normals
from abd.scene.geometry.shapes import sphere

AROUND = 12
"""Corners of a round shaft."""
COILS = 8
"""Turns of a spring."""


@dataclass(frozen=True)
class Figure:
    """A shape.

    Attributes:
        vertices: (v, 3) [m]; triangles: (f, 3); normals: (v, 3) unit vectors. Vertices on an edge occur once for each side.
        balls: (b, 3), rods: (r, 2, 3), radius: the exact shape, if it consists of balls and rods.
        open: whether both sides of the triangles show.
    """

    vertices: np.ndarray
    triangles: np.ndarray
    normals: np.ndarray
    balls: np.ndarray
    rods: np.ndarray
    radius: float = 0.0
    open: bool = False

    @classmethod
    def of(cls, vertices: np.ndarray, triangles: np.ndarray, open: bool = False, shape: Shape | None = None) -> Figure:
        """A shape of triangles; faces without area are removed."""
        corners = np.asarray(vertices, dtype=float)[triangles]
        normals = corner_normals(corners)
        sound = (np.linalg.norm(normals, axis=2) > 0.5).all(axis=1)
        rows = np.concatenate([corners[sound], normals[sound]], axis=2).reshape(-1, 6)
        first, number = _first_of_equal(rows)
        exact = shape is not None and len(shape.corners) == 0
        return cls(
            vertices=rows[first, :3],
            triangles=number.reshape(-1, 3).astype(np.int32),
            normals=rows[first, 3:],
            balls=shape.balls if exact else np.zeros((0, 3)),
            rods=shape.rods if exact else np.zeros((0, 2, 3)),
            radius=shape.radius if exact else 0.0,
            open=open,
        )

    @classmethod
    def of_shape(cls, shape: Shape) -> Figure:
        """What a body looks like."""
        return cls.of(shape.vertices, shape.triangles, shape.open, shape)

    @classmethod
    def square(cls, plane: np.ndarray, middle: np.ndarray, extent: float) -> Figure:
        """Square in the plane (4,) of a half-space, in the world, wider than the scene [m] about its middle (3,)."""
        normal, offset = plane[:3], plane[3]
        foot = middle - (middle @ normal - offset) * normal
        x = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
        x /= np.linalg.norm(x)
        y = np.cross(normal, x)
        half = 1.5 * extent
        vertices = foot + half * np.array([-x - y, x - y, x + y, y - x])
        return cls.of(vertices, np.array([[0, 1, 2], [0, 2, 3]]), open=True)


def strut_figure(spring: bool) -> Figure:
    """A shaft of radius 1 along z from 0 to 1; the coils of a spring."""
    return Figure.of(*(_coil() if spring else _shaft(0.0, 1.0, 1.0)))


def marker(kind: str, drawing: dict, size: float, frame: np.ndarray) -> tuple[tuple, Figure] | None:
    """Drawing of a joint in the mesh frame of its child, with a key for equal drawings; None for joints that are not drawn.

    Args:
        kind: type of the joint; drawing: its drawing attributes by name.
        size: of the bodies [m]; frame: (4, 4) the joint's frame on the child.
    """
    if kind in ("fixed", "free", "pin"):
        return None
    ball = float(drawing.get("joint_radius", 0.0))
    length, radius = float(drawing.get("shaft_length", 0.0)), float(drawing.get("shaft_radius", 0.0))
    if not ball and not length:
        ball, length = (0.05 * size, 0.0) if kind in _WITHOUT_AXIS else (0.0, 0.4 * size)
    parts = []
    if length > 0.0:
        parts.append(_shaft(-0.5 * length, 0.5 * length, radius or 0.05 * length))
    if ball > 0.0:
        parts.append(sphere(ball, 2))
    start = np.cumsum([0, *(len(vertices) for vertices, _ in parts)])
    vertices = np.concatenate([vertices for vertices, _ in parts]) @ frame[:3, :3].T + frame[:3, 3]
    triangles = np.concatenate([faces + first for (_, faces), first in zip(parts, start)])
    return ("joint", length, radius, ball, frame.tobytes()), Figure.of(vertices, triangles)


_WITHOUT_AXIS = ("spherical", "gimbal", "spherical_rpy", "ellipsoid", "ellipsoid3", "general", "bushing", "fixed_axis")


def _shaft(low: float, high: float, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Closed shaft along z."""
    angle = 2.0 * np.pi * np.arange(AROUND) / AROUND
    ring = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    ends = [np.column_stack([ring, np.full(AROUND, z)]) for z in (low, high)]
    vertices = np.concatenate([*ends, [[0.0, 0.0, low], [0.0, 0.0, high]]])
    here, following, foot, top = np.arange(AROUND), (np.arange(AROUND) + 1) % AROUND, 2 * AROUND, 2 * AROUND + 1
    faces = [
        np.stack([here, following, AROUND + following], axis=1),
        np.stack([here, AROUND + following, AROUND + here], axis=1),
        np.stack([following, here, np.full(AROUND, foot)], axis=1),
        np.stack([AROUND + here, AROUND + following, np.full(AROUND, top)], axis=1),
    ]
    return vertices, np.concatenate(faces)


def _coil() -> tuple[np.ndarray, np.ndarray]:
    """Wire wound about z from 0 to 1, at radius 1."""
    steps, wire, corners = 16 * COILS, 0.15, 6
    t = np.linspace(0.0, 1.0, steps + 1)
    angle = 2.0 * np.pi * COILS * t
    out = np.stack([np.cos(angle), np.sin(angle), np.zeros_like(t)], axis=1)
    around = 2.0 * np.pi * np.arange(corners) / corners
    # thickness along z is in units of the length; a coil that is a few radii long looks round enough
    cross = wire * (np.cos(around)[None, :, None] * out[:, None] + np.sin(around)[None, :, None] * [0.0, 0.0, 0.1])
    middle = np.column_stack([out[:, :2], 0.02 + 0.96 * t])
    vertices = (middle[:, None] + cross).reshape(-1, 3)
    k, j = np.meshgrid(np.arange(steps), np.arange(corners), indexing="ij")
    a, b = (k * corners + j).ravel(), (k * corners + (j + 1) % corners).ravel()
    return vertices, np.concatenate([np.stack([a, a + corners, b + corners], 1), np.stack([a, b + corners, b], 1)])


def _first_of_equal(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of the different rows in order of appearance, and for each row the number of its like."""
    _, first, number = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[number.reshape(-1)]
