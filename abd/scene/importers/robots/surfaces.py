"""Surfaces of links: their shapes as one of the scene's own, where that says the same, else as one written out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.scene import shapes
from abd.scene.importers.robots.compiled import Compiled, mujoco_module
from abd.scene.importers.robots.links import Link, place_in, pose_of

SEGMENTS = 24
"""Facets around round parts of links with several shapes."""
SUBDIVISIONS = 2
"""Of the spheres among them; ellipsoids are split once more."""
SAME = 1e-9
"""Distance [m] and entries of rotations up to which a shape's frame is the link's."""


@dataclass
class Shape:
    """One geom in the frame of a body of the scene.

    Attributes:
        geom: MuJoCo's number; kind: MuJoCo's type; size: (3,); place: (4, 4).
    """

    geom: int
    kind: int
    size: np.ndarray
    place: np.ndarray


class ShapeSource:
    """Shapes of a compiled robot."""

    def __init__(self, compiled: Compiled):
        self.compiled, self.model = compiled, compiled.model
        self.kinds = mujoco_module().mjtGeom

    def shape(self, geom: int, link: Link | None) -> Shape:
        """A geom in the frame of its link, or in that of its body."""
        model, body = self.model, int(self.model.geom_bodyid[geom])
        place = pose_of(model.geom_pos[geom], model.geom_quat[geom])
        if link is not None:
            place = place_in(link, body, model) @ place
        return Shape(geom, int(model.geom_type[geom]), model.geom_size[geom].copy(), place)

    def keys(self, found: list[Shape]) -> dict[str, object]:
        """Keys of a body with these shapes."""
        if not found:
            return {"proxy": True}
        round_ones = [self.round_radius(shape) for shape in found]
        if len(found) == 1:
            own = self._own(found[0])
            if own:
                return own
        if round_ones[0] > 0.0 and len(set(round_ones)) == 1:
            return self._round(found, round_ones[0])
        vertices, triangles, count = [], [], 0
        for shape in found:
            points, faces = self._mesh(shape)
            vertices.append(points @ shape.place[:3, :3].T + shape.place[:3, 3])
            triangles.append(faces + count)
            count += len(points)
        vertices, triangles = np.concatenate(vertices), np.concatenate(triangles)
        return {"surface": {"vertices": vertices.tolist(), "triangles": triangles.tolist()}}

    def round_radius(self, shape: Shape) -> float:
        """Radius [m] of a sphere or capsule; 0 for others."""
        return float(shape.size[0]) if shape.kind in (self.kinds.mjGEOM_SPHERE, self.kinds.mjGEOM_CAPSULE) else 0.0

    def _own(self, shape: Shape) -> dict[str, object]:
        """The key of a shape whose frame is the link's; nothing where there is none."""
        size, kinds = shape.size.tolist(), self.kinds
        moved = np.abs(shape.place[:3, 3]).max() > SAME
        if moved or (shape.kind != kinds.mjGEOM_SPHERE and np.abs(shape.place - np.eye(4)).max() > SAME):
            return self._file(shape)
        if shape.kind == kinds.mjGEOM_BOX:
            return {"box": tuple(2.0 * x for x in size)}
        if shape.kind == kinds.mjGEOM_SPHERE:
            return {"sphere": {"radius": size[0]}}
        if shape.kind == kinds.mjGEOM_CAPSULE:
            return {"capsule": {"radius": size[0], "length": 2.0 * size[1]}}
        if shape.kind == kinds.mjGEOM_CYLINDER:
            return {"cylinder": {"radius": size[0], "length": 2.0 * size[1]}}
        if shape.kind == kinds.mjGEOM_ELLIPSOID:
            return {"sphere": {"radius": 1.0, "subdivisions": SUBDIVISIONS + 1}, "scale": tuple(size)}
        return self._file(shape)

    def _file(self, shape: Shape) -> dict[str, object]:
        """The mesh file of a shape, where its frame, scaled, is the link's."""
        key = self._asset(shape)
        if key is None or np.abs(self._raw_place(shape) - np.eye(4)).max() > SAME:
            return {}
        scale = self.model.mesh_scale[self.model.geom_dataid[shape.geom]]
        file = str(self.compiled.assets.files[key])
        return {"mesh": file} | ({} if (scale == 1.0).all() else {"scale": tuple(scale.tolist())})

    def _round(self, found: list[Shape], radius: float) -> dict[str, object]:
        """Spheres and capsules of one radius: points and segments."""
        vertices, edges, points = [], [], []
        for shape in found:
            place = shape.place
            if shape.kind == self.kinds.mjGEOM_SPHERE:
                points.append(len(vertices))
                vertices.append(place[:3, 3].tolist())
            else:
                edges.append((len(vertices), len(vertices) + 1))
                half = shape.size[1] * place[:3, 2]
                vertices += [(place[:3, 3] - half).tolist(), (place[:3, 3] + half).tolist()]
        return {"surface": {"vertices": vertices, "edges": edges, "points": points}, "radius": radius}

    def _asset(self, shape: Shape) -> str | None:
        """The key of the mesh file that was read for a shape."""
        if shape.kind != self.kinds.mjGEOM_MESH:
            return None
        name = self.model.mesh(int(self.model.geom_dataid[shape.geom])).name
        key = self.compiled.meshes.get(name)
        return key if key is not None and self.compiled.assets.mesh(key) is not None else None

    def _raw_place(self, shape: Shape) -> np.ndarray:
        """(4, 4) frame of a mesh as its file has it: MuJoCo moves meshes to their principal axes."""
        mesh = int(self.model.geom_dataid[shape.geom])
        own = pose_of(self.model.mesh_pos[mesh], self.model.mesh_quat[mesh])
        place = shape.place @ np.linalg.inv(own)
        near = np.abs(place - np.eye(4)).max() <= SAME
        return np.eye(4) if near else place

    def _mesh(self, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
        """Vertices (v, 3) in the frame of the shape, triangles (f, 3)."""
        kinds, size, model = self.kinds, shape.size, self.model
        if shape.kind == kinds.mjGEOM_BOX:
            return shapes.box(tuple(2.0 * size))
        if shape.kind == kinds.mjGEOM_SPHERE:
            return shapes.sphere(size[0], SUBDIVISIONS)
        if shape.kind == kinds.mjGEOM_CAPSULE:
            return shapes.capsule(size[0], 2.0 * size[1], SEGMENTS)
        if shape.kind == kinds.mjGEOM_CYLINDER:
            return shapes.cylinder(size[0], 2.0 * size[1], SEGMENTS)
        if shape.kind == kinds.mjGEOM_ELLIPSOID:
            vertices, triangles = shapes.sphere(1.0, SUBDIVISIONS + 1)
            return vertices * size, triangles
        if shape.kind == kinds.mjGEOM_HFIELD:
            return self._height_field(int(model.geom_dataid[shape.geom]))
        mesh = int(model.geom_dataid[shape.geom])
        key = self._asset(shape)
        if key is not None:
            raw = self.compiled.assets.mesh(key)
            inner = np.linalg.inv(shape.place) @ self._raw_place(shape)
            vertices = raw.vertices * model.mesh_scale[mesh]
            return vertices @ inner[:3, :3].T + inner[:3, 3], raw.triangles
        start, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
        first, faces = model.mesh_faceadr[mesh], model.mesh_facenum[mesh]
        vertices = np.array(model.mesh_vert[start : start + count], dtype=float)
        return vertices, np.array(model.mesh_face[first : first + faces], dtype=np.int64)

    def _height_field(self, field: int) -> tuple[np.ndarray, np.ndarray]:
        """Closed surface of a height field: the ground above, a rectangle below, walls between."""
        model = self.model
        rows, columns = int(model.hfield_nrow[field]), int(model.hfield_ncol[field])
        rx, ry, top, base = model.hfield_size[field].tolist()
        start = int(model.hfield_adr[field])
        heights = top * np.array(model.hfield_data[start : start + rows * columns], dtype=float).reshape(rows, columns)
        x, y = np.meshgrid(np.linspace(-rx, rx, columns), np.linspace(-ry, ry, rows))
        upper = np.stack([x, y, heights], axis=2).reshape(-1, 3)
        lower = np.stack([x, y, np.full_like(x, -base)], axis=2).reshape(-1, 3)
        grid = np.arange(rows * columns).reshape(rows, columns)
        a, b, c, d = (grid[s].ravel() for s in (np.s_[:-1, :-1], np.s_[:-1, 1:], np.s_[1:, 1:], np.s_[1:, :-1]))
        above = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
        rim = np.concatenate([grid[0, :-1], grid[:-1, -1], grid[-1, :0:-1], grid[:0:-1, 0]])
        # below, only the rim counts: a fan about the middle of the rectangle closes it
        number = np.full(rows * columns, -1)
        number[rim] = len(upper) + np.arange(len(rim))
        middle = len(upper) + len(rim)
        beside = np.roll(rim, -1)
        walls = np.concatenate(
            [
                np.stack([rim, number[rim], number[beside]], axis=1),
                np.stack([rim, number[beside], beside], axis=1),
                np.stack([np.full(len(rim), middle), number[beside], number[rim]], axis=1),
            ]
        )
        vertices = np.concatenate([upper, lower[rim], [[0.0, 0.0, -base]]])
        return vertices, np.concatenate([above, walls])
