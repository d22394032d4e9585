"""Shapes of links as colliders of the scene's bodies."""

from __future__ import annotations

import numpy as np

from abd.scene.geometry import shapes
from abd.scene.importers.compound import SAME, SUBDIVISIONS, Collider, height_grid
from abd.scene.importers.robots.compiled import Compiled, mujoco
from abd.scene.importers.robots.links import Link, place_in, pose_of


class ShapeSource:
    """Shapes of a compiled robot."""

    def __init__(self, compiled: Compiled):
        self.compiled, self.model = compiled, compiled.model
        self.kinds = mujoco.mjtGeom

    def collider(self, geom: int, link: Link | None) -> Collider:
        """A geom in the frame of its link, or in that of its body."""
        model, kinds = self.model, self.kinds
        place = pose_of(model.geom_pos[geom], model.geom_quat[geom])
        if link is not None:
            place = place_in(link, int(model.geom_bodyid[geom]), model) @ place
        kind, size = int(model.geom_type[geom]), model.geom_size[geom].tolist()
        one = Collider(f"geom {geom}", place)
        if kind == kinds.mjGEOM_BOX:
            one.make_box(2.0 * np.array(size))
        elif kind == kinds.mjGEOM_SPHERE:
            one.make_sphere(size[0])
        elif kind == kinds.mjGEOM_CAPSULE:
            one.make_capsule(size[0], 2.0 * size[1])
        elif kind == kinds.mjGEOM_CYLINDER:
            one.make_frustum(size[0], size[0], 2.0 * size[1])
        elif kind == kinds.mjGEOM_ELLIPSOID:
            vertices, triangles = shapes.sphere(1.0, SUBDIVISIONS + 1)
            own = {"sphere": {"radius": 1.0, "subdivisions": SUBDIVISIONS + 1}, "scale": tuple(size)}
            one.make_solid(vertices * size, triangles, own)
        elif kind == kinds.mjGEOM_HFIELD:
            one.vertices, one.triangles = self._height_field(int(model.geom_dataid[geom]))
        else:
            self._mesh(one, int(model.geom_dataid[geom]))
        return one

    def _mesh(self, one: Collider, mesh: int) -> None:
        """Set the vertices to those of the file in double precision, else to MuJoCo's, in the principal axes of the mesh."""
        model, assets = self.model, self.compiled.assets
        key = self.compiled.meshes.get(model.mesh(mesh).name)
        raw = None if key is None else assets.mesh(key)
        if raw is None:
            start, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
            first, faces = model.mesh_faceadr[mesh], model.mesh_facenum[mesh]
            one.vertices = np.array(model.mesh_vert[start : start + count], dtype=float)
            one.triangles = np.array(model.mesh_face[first : first + faces], dtype=np.int64)
            return
        scale = model.mesh_scale[mesh]
        mirrored = np.prod(np.sign(scale)) < 0.0
        one.vertices, one.triangles = raw.vertices * scale, raw.triangles[:, ::-1] if mirrored else raw.triangles
        one.own = {"mesh": str(assets.files[key])} | ({} if (scale == 1.0).all() else {"scale": tuple(scale.tolist())})
        place = one.place @ np.linalg.inv(pose_of(model.mesh_pos[mesh], model.mesh_quat[mesh]))
        one.place = np.eye(4) if np.abs(place - np.eye(4)).max() <= SAME else place

    def _height_field(self, field: int) -> tuple[np.ndarray, np.ndarray]:
        """Closed surface of a height field: the ground above, a rectangle below, walls between."""
        model = self.model
        rows, columns = int(model.hfield_nrow[field]), int(model.hfield_ncol[field])
        rx, ry, top, base = model.hfield_size[field].tolist()
        start = int(model.hfield_adr[field])
        heights = top * np.array(model.hfield_data[start : start + rows * columns], dtype=float).reshape(rows, columns)
        upper, above = height_grid(rx, ry, heights)
        grid = np.arange(rows * columns).reshape(rows, columns)
        rim = np.concatenate([grid[0, :-1], grid[:-1, -1], grid[-1, :0:-1], grid[:0:-1, 0]])
        # below, only the rim counts: a fan about the middle of the rectangle closes it
        number = np.full(rows * columns, -1)
        number[rim] = len(upper) + np.arange(len(rim))
        middle = len(upper) + len(rim)
        following = np.roll(rim, -1)
        walls = np.concatenate(
            [
                np.stack([rim, number[rim], number[following]], axis=1),
                np.stack([rim, number[following], following], axis=1),
                np.stack([np.full(len(rim), middle), number[following], number[rim]], axis=1),
            ]
        )
        lower = np.column_stack([upper[rim, :2], np.full(len(rim), -base)])
        vertices = np.concatenate([upper, lower, [[0.0, 0.0, -base]]])
        return vertices, np.concatenate([above, walls])
