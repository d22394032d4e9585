"""Bodies of one or more colliders: the colliders, and the keys of a scene's body with all of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from abd.rotations import quaternion
from abd.scene.geometry import mass, shapes
from abd.scene.geometry.mass import MassProperties
from abd.scene.geometry.mesh_files import RawMesh
from abd.scene.geometry.meshes import make_surface

SEGMENTS, SUBDIVISIONS = 32, 2
"""Facets around round shapes, and of spheres, where they are part of a surface."""
ROUNDING = 1e-15
"""Absolute value of a coordinate [m] or of a number of a quaternion that counts as 0."""
SAME = 1e-9
"""Distance [m] and entries of rotations up to which a collider's frame is the body's."""


@dataclass
class Collider:
    """One collider in the frame of its body [m].

    Attributes:
        path: path in the source; place: pose (4, 4); own: keys of a body that has only this collider, at the identity.
        vertices, triangles: surface in the collider's frame; edges, points, radius: exact geometry of round shapes.
        matter: mass properties for a density of 1 kg/m^3, in the collider's frame.
        frame: pose (4, 4) of its prim, if that is not `place`, as for shapes along other axes.
        material: name of the material in the source, "" for none; plane: whether it is a half-space with the normal z.
    """

    path: str
    place: np.ndarray
    vertices: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    triangles: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    own: dict = field(default_factory=dict)
    edges: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    points: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    round_vertices: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    radius: float = 0.0
    matter: MassProperties | None = None
    plane: bool = False
    frame: np.ndarray | None = None
    material: str = ""

    def make_solid(self, vertices: np.ndarray, triangles: np.ndarray, own: dict | None = None) -> None:
        """Set a closed surface, and the keys of a body with this collider only."""
        self.vertices, self.triangles, self.own = vertices, triangles, own or {}
        self.matter = mass.solid(vertices, triangles, 1.0)

    def make_sphere(self, radius: float) -> None:
        """An exact sphere [m]."""
        self.make_solid(*shapes.sphere(radius, SUBDIVISIONS), own={"sphere": {"radius": radius}})
        self.round_vertices, self.points, self.radius = np.zeros((1, 3)), np.array([0]), radius
        self.matter = mass.thick(self.round_vertices, self.points[:, None], 1.0, radius)

    def make_capsule(self, radius: float, length: float) -> None:
        """An exact capsule along z [m]; `length` without its ends."""
        own = {"capsule": {"radius": radius, "length": length}}
        self.make_solid(*shapes.capsule(radius, length, SEGMENTS), own=own)
        self.round_vertices = np.array([[0.0, 0.0, -0.5 * length], [0.0, 0.0, 0.5 * length]])
        self.edges, self.radius = np.array([[0, 1]]), radius
        self.matter = mass.capsule(radius, length)

    def make_frustum(self, low: float, high: float, length: float) -> None:
        """A frustum along z about the origin, with the radii `low` and `high` at its ends [m]."""
        own = {"cylinder": {"radius": low, "length": length}} if low == high else {}
        self.make_solid(*shapes.frustum(low, high, length, SEGMENTS), own=own)
        self.matter = mass.frustum(low, high, length)

    def make_box(self, extents: np.ndarray) -> None:
        """A box about the origin [m]."""
        self.make_solid(*shapes.box(tuple(extents)), own={"box": tuple(np.asarray(extents, dtype=float).tolist())})

    def make_mesh(self, vertices: np.ndarray, triangles: np.ndarray) -> bool:
        """Set a surface; return whether it is closed and therefore has mass."""
        self.vertices, self.triangles = vertices, triangles
        surface = make_surface(self.path, RawMesh.of(vertices, triangles))
        if not surface.closed or mass.enclosed_volume(surface.vertices, surface.triangles) == 0.0:
            return False
        self.matter = mass.solid(surface.vertices, surface.triangles, 1.0)
        return True

    @property
    def matter_in_body(self) -> MassProperties | None:
        """`matter` in the frame of the body."""
        if self.matter is None:
            return None
        R, p, one = self.place[:3, :3], self.place[:3, 3], self.matter
        return MassProperties(one.mass, one.volume, R @ one.center + p, R @ one.second_moment @ R.T)


def keys(colliders: list[Collider]) -> dict:
    """Return keys of a body with these colliders: a shape, points and segments of one radius, or a surface."""
    if not colliders:
        return {"proxy": True}
    only = colliders[0]
    if len(colliders) == 1 and only.own:
        at_middle = np.abs(only.place[:3, 3]).max() <= SAME
        turned = np.abs(only.place[:3, :3] - np.eye(3)).max() > SAME
        if at_middle and ("sphere" in only.own or not turned):
            return only.own
    is_round = only.radius > 0.0 and all(one.radius == only.radius for one in colliders)
    parts = [one.round_vertices if is_round else one.vertices for one in colliders]
    starts = np.cumsum([0, *map(len, parts)])
    places = [part @ one.place[:3, :3].T + one.place[:3, 3] for part, one in zip(parts, colliders)]
    surface = {"vertices": np.concatenate(places).tolist()}
    for key in ("edges", "points") if is_round else ("triangles",):
        surface[key] = np.concatenate([getattr(one, key) + start for one, start in zip(colliders, starts)]).tolist()
    return {"surface": surface} | ({"radius": only.radius} if is_round else {})


def frame_keys(frame: np.ndarray) -> dict[str, object]:
    """Return position and rotation of a pose (4, 4) [m], without rounding and without the identity."""
    position, turn = (np.where(np.abs(x) < ROUNDING, 0.0, x) for x in (frame[:3, 3], quaternion(frame[:3, :3])))
    keys: dict[str, object] = {"position": tuple(position.tolist())}
    return keys | ({} if turn[0] == 1.0 else {"quaternion": tuple(turn.tolist())})


def color_key(color: np.ndarray) -> list[float]:
    """Return red, green, blue and an opacity below 1, from a colour (4,)."""
    rounded = np.clip(np.round(color, 6), 0.0, 1.0).tolist()
    return rounded[:3] if rounded[3] == 1.0 else rounded


def height_grid(rx: float, ry: float, heights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of the open surface over heights (rows, columns) of a rectangle with half sides rx, ry [m]."""
    rows, columns = heights.shape
    x, y = np.meshgrid(np.linspace(-rx, rx, columns), np.linspace(-ry, ry, rows))
    grid = np.arange(rows * columns).reshape(rows, columns)
    a, b, c, d = (grid[s].ravel() for s in (np.s_[:-1, :-1], np.s_[:-1, 1:], np.s_[1:, 1:], np.s_[1:, :-1]))
    triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return np.stack([x, y, heights], axis=2).reshape(-1, 3), triangles


def hull(vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of the convex hull."""
    from trimesh.convex import convex_hull

    mesh = convex_hull(vertices)
    return np.array(mesh.vertices), np.array(mesh.faces)
