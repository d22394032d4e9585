"""`Stage`: a cast in the browser's picture.

Bodies of one shape are one batch of instances. An instance has a position, a rotation and three scales; a body that is
sheared by more than `SHEAR` becomes a mesh of its own with its vertices where they are, so that every map is shown as it is.
"""

from __future__ import annotations

import numpy as np

from abd.pictures.camera import Camera, View
from abd.pictures.cast import Cast, Moment
from abd.pictures.shapes import corner_normals
from abd.pictures.symbols import HEAD, Symbols, symbols
from abd.scene.geometry.shapes import cylinder, sphere
from abd.viewer.poses import decomposed, from_z

SHEAR = 3e-4
"""Largest shear that is left to an instance: a third of a pixel of a body that is 1000 pixels wide."""
MOST_SHEARED = 400
"""Most bodies that become meshes of their own; of more, those with the least shear stay instances."""


class Stage:
    """Shows moments of a cast on a server.

    Args:
        server: `viser.ViserServer`; cast: what there is to show; view: the camera; moments: some, for the camera.

    Attributes:
        joints, forces: whether joints are drawn; length of arrows per force [m/N], or None.
        extra: more symbols, or None.
        batches: handle of the batch of each shape and its bodies.
    """

    def __init__(self, server, cast: Cast, view: View, moments: list[Moment]):
        self.server, self.cast = server, cast
        self.joints, self.forces = True, None
        self.extra: Symbols | None = None
        self.camera = Camera(view, cast, moments, (1280, 720))
        self._shift = np.zeros(3)
        server.scene.set_up_direction("+z")
        server.scene.configure_default_lights(cast_shadow=len(cast) <= 3000)
        self._planes()
        self.batches: dict[int, tuple[object, np.ndarray]] = {}
        self._meshes = [split(one.vertices, one.triangles) for one in cast.shapes]
        self._sheared: dict[int, object] = {}
        for k, (vertices, triangles) in enumerate(self._meshes):
            members = np.flatnonzero(cast.shape == k)
            if len(members) and len(triangles):
                self.batches[k] = self._batch(f"/bodies/{k}", vertices, triangles, members, cast.shapes[k].open)
        self._extra = _Extra(server)
        self._look(moments[0])

    def show(self, moment: Moment) -> None:
        """Bring everything to one instant, at once."""
        with self.server.atomic():
            for k, (handle, members) in self.batches.items():
                maps = moment.transform[members]
                position, wxyz, scales, rest = decomposed(maps)
                apart = self._apart(k, members, maps, rest)
                scales[apart] = 0.0
                handle.batched_positions = position.astype(np.float32)
                handle.batched_wxyzs = wxyz.astype(np.float32)
                handle.batched_scales = scales.astype(np.float32)
            own = symbols(self.cast, moment, self.joints, self.forces)
            self._extra.show(own if self.extra is None else Symbols.joined([own, self.extra]))
        if self.camera.followed is not None:
            self._follow(moment)

    def follow(self, name: str, moment: Moment) -> None:
        """Keep a body where it is now in the picture; "" for none."""
        self.camera.followed = self.cast.index(name) if name else None
        if name:
            self._shift = self._place(moment)

    def body_at(self, shape: int, instance: int) -> int:
        """Number of the body of an instance of a batch."""
        return int(self.batches[shape][1][instance])

    def _place(self, moment: Moment) -> np.ndarray:
        return self.cast.middles(moment.transform)[0][self.camera.followed]

    def _follow(self, moment: Moment) -> None:
        """Move the cameras of all clients as the followed body moved."""
        place = self._place(moment)
        step, self._shift = place - self._shift, place
        if np.abs(step).max() == 0.0:
            return
        for client in self.server.get_clients().values():
            with client.atomic():
                position, target = client.camera.position, client.camera.look_at
                client.camera.position, client.camera.look_at = position + step, target + step

    def _look(self, moment: Moment) -> None:
        """Initial camera of clients."""
        lens = self.camera.lens(moment)
        low, high = self.camera.bounds
        depth = max(float((0.5 * (low + high) - lens.eye) @ lens.axes[2]), 1e-3)
        start = self.server.initial_camera
        start.position, start.look_at, start.up = lens.eye, lens.eye + depth * lens.axes[2], (0.0, 0.0, 1.0)
        size = float(np.linalg.norm(high - low))
        start.near, start.far = 1e-3 * min(size, depth), 1e3 * max(size, depth)
        start.fov = float(np.radians(self.camera.view.fov))
        if self.camera.followed is not None:
            self._shift = self._place(moment)

    def _batch(self, name: str, vertices, triangles, members: np.ndarray, is_open: bool) -> tuple[object, np.ndarray]:
        """Instances of one shape."""
        rgba = self.cast.colors[members]
        handle = self.server.scene.add_batched_meshes_simple(
            name,
            vertices.astype(np.float32),
            triangles.astype(np.uint32),
            batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (len(members), 1)),
            batched_positions=np.zeros((len(members), 3)),
            batched_scales=np.ones((len(members), 3), dtype=np.float32),
            batched_colors=_bytes(rgba[:, :3]),
            batched_opacities=rgba[:, 3].astype(np.float32) if (rgba[:, 3] < 1.0).any() else None,
            lod="off",
            side="double" if is_open else "front",
        )
        return handle, members

    def _apart(self, k: int, members: np.ndarray, maps: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """Show bodies with shear as meshes of their own; returns their places among the members."""
        vertices, triangles = self._meshes[k]
        apart = np.flatnonzero(rest > SHEAR)
        room = MOST_SHEARED - sum(body not in members for body in self._sheared)
        if len(apart) > room:
            apart = np.sort(apart[np.argsort(-rest[apart], kind="stable")[: max(room, 0)]])
        chosen = set(members[apart].tolist())
        for body in [body for body in self._sheared if body not in chosen and self.cast.shape[body] == k]:
            self._sheared.pop(body).remove()
        for place in apart:
            body = int(members[place])
            moved = (vertices @ maps[place, :3, :3].T + maps[place, :3, 3]).astype(np.float32)
            if body in self._sheared:
                self._sheared[body].vertices = moved
            else:
                self._sheared[body] = self.server.scene.add_mesh_simple(
                    f"/sheared/{body}", moved, triangles.astype(np.uint32), color=tuple(_bytes(self.cast.colors[body, :3])),
                    opacity=float(self.cast.colors[body, 3]) if self.cast.colors[body, 3] < 1.0 else None,
                    side="double" if self.cast.shapes[k].open else "front",
                )  # fmt: skip
        return apart

    def _planes(self) -> None:
        low, high = self.camera.bounds
        size = float(np.linalg.norm(high - low)) or 1.0
        cell = float(10.0 ** np.floor(np.log10(size / 2.5)))
        for k, (plane, rgba) in enumerate(zip(self.cast.planes, self.cast.plane_colors)):
            foot = 0.5 * (low + high)
            foot = foot - (plane[:3] @ foot - plane[3]) * plane[:3]
            # lines of the grid are at multiples of the cell size
            foot -= np.where(np.abs(plane[:3]) > 0.999, 0.0, np.mod(foot, 5.0 * cell))
            self.server.scene.add_grid(
                f"/planes/{k}", infinite_grid=True, cell_size=cell, section_size=5.0 * cell, fade_distance=12.0 * size,
                cell_color=(190, 190, 190), section_color=(150, 150, 150), shadow_opacity=0.35,
                plane_color=tuple(_bytes(rgba[:3])), plane_opacity=1.0, wxyz=from_z(plane[None, :3])[0], position=foot,
            )  # fmt: skip


class _Extra:
    """Symbols in the picture: tubes, balls and cones, each one batch."""

    def __init__(self, server):
        self.server = server
        tube, ball = cylinder(1.0, 1.0, 20), sphere(1.0, 2)
        angle = 2.0 * np.pi * np.arange(20) / 20
        rim = np.column_stack([np.cos(angle), np.sin(angle), np.full(20, -0.5)])
        here, after = np.arange(20), (np.arange(20) + 1) % 20
        faces = [np.stack([here, after, np.full(20, 20)], axis=1), np.stack([after, here, np.full(20, 21)], axis=1)]
        cone = np.concatenate([rim, [[0.0, 0.0, 0.5], [0.0, 0.0, -0.5]]]), np.concatenate(faces)
        self._kinds = {name: split(*mesh) for name, mesh in (("tubes", tube), ("balls", ball), ("cones", cone))}
        self._handles: dict[str, tuple[object, int]] = {}
        self._faces = None

    def show(self, extra: Symbols) -> None:
        (shafts, heads), wide = extra.arrow_parts(), extra.arrow_radius
        rods = np.concatenate([extra.rods, shafts])
        radius, rgba = np.concatenate([extra.radius, wide]), np.concatenate([extra.rod_colors, extra.arrow_colors])
        length = np.linalg.norm(rods[:, 1] - rods[:, 0], axis=1)
        long = length > 0.0
        self._segments("tubes", rods[long], radius[long], rgba[long])
        both = np.concatenate([rods[:, 0], rods[long, 1]])
        twice = (np.concatenate([one, one[long]]) for one in (radius, rgba))
        self._balls(both, *twice)
        self._segments("cones", heads, HEAD * wide, extra.arrow_colors)
        self._triangles(extra)

    def _segments(self, name: str, ends: np.ndarray, radius: np.ndarray, rgba: np.ndarray) -> None:
        span = ends[:, 1] - ends[:, 0]
        scales = np.column_stack([radius, radius, np.linalg.norm(span, axis=1)])
        self._instances(name, ends.mean(axis=1), from_z(span), scales, rgba)

    def _balls(self, middle: np.ndarray, radius: np.ndarray, rgba: np.ndarray) -> None:
        wxyz = np.tile([1.0, 0.0, 0.0, 0.0], (len(middle), 1))
        self._instances("balls", middle, wxyz, np.repeat(radius[:, None], 3, axis=1), rgba)

    def _instances(self, name: str, position, wxyz, scales, rgba) -> None:
        """Bring a batch to other places. It has room for the next power of two, since contacts come and go with every
        picture; instances that are not used have no size."""
        handle, room = self._handles.get(name, (None, 0))
        count = len(position)
        if count > room:
            if handle is not None:
                handle.remove()
            room = 1 << (count - 1).bit_length()
            self._handles[name] = self._new(name, room), room
            handle = self._handles[name][0]
        if handle is None:
            return
        given = (position, [0.0, 0.0, 0.0], wxyz, [1.0, 0.0, 0.0, 0.0], scales, [0.0, 0.0, 0.0])
        places, turns, sizes = (
            _filled(values, rest, room).astype(np.float32) for values, rest in zip(given[::2], given[1::2])
        )
        handle.batched_positions, handle.batched_wxyzs, handle.batched_scales = places, turns, sizes
        colors = _filled(_bytes(rgba[:, :3]), [0, 0, 0], room).astype(np.uint8)
        if not np.array_equal(colors, handle.batched_colors):
            handle.batched_colors = colors

    def _new(self, name: str, room: int):
        vertices, triangles = self._kinds[name]
        return self.server.scene.add_batched_meshes_simple(
            f"/{name}", vertices.astype(np.float32), triangles.astype(np.uint32), lod="off",
            batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (room, 1)), batched_positions=np.zeros((room, 3)),
            batched_scales=np.zeros((room, 3), dtype=np.float32), batched_colors=np.zeros((room, 3), dtype=np.uint8),
        )  # fmt: skip

    def _triangles(self, extra: Symbols) -> None:
        if self._faces is not None:
            self._faces.remove()
            self._faces = None
        if len(extra.triangles):
            faces = np.arange(3 * len(extra.triangles)).reshape(-1, 3)
            color, opacity = extra.triangle_colors[0, :3], float(extra.triangle_colors[0, 3])
            self._faces = self.server.scene.add_mesh_simple(
                "/surfaces", extra.triangles.reshape(-1, 3).astype(np.float32), faces.astype(np.uint32),
                color=tuple(_bytes(color)), opacity=opacity, side="double",
            )  # fmt: skip


def _filled(values: np.ndarray, rest: list, room: int) -> np.ndarray:
    """(room, c) values (k, c), and for what is left of the room the same rest."""
    return np.concatenate([values, np.tile(rest, (room - len(values), 1))])


def split(vertices: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A mesh with vertices doubled at creases: the browser's mean normals are then those of `corner_normals`."""
    if len(triangles) == 0:
        return vertices, triangles
    corners = vertices[triangles]
    rows = np.concatenate([corners.reshape(-1, 3), np.round(corner_normals(corners).reshape(-1, 3), 3)], axis=1)
    found, index = np.unique(rows, axis=0, return_inverse=True)
    return found[:, :3], index.reshape(-1, 3)


def _bytes(color: np.ndarray) -> np.ndarray:
    return np.round(255.0 * np.asarray(color)).astype(np.uint8)
