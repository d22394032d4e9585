"""`Stage`: a cast in the browser.

Bodies of one shape are one batch of instances. An instance has a position, a rotation and three scales. A body with a
shear of more than `SHEAR` becomes a separate mesh with transformed vertices, so that every map is exact.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from abd.colors import FORCE, to_linear
from abd.pictures.camera import Camera
from abd.pictures.cast import Cast, Moment
from abd.pictures.shapes import creased, scaled_rotations, unit
from abd.pictures.symbols import Symbols, symbols
from abd.rotations import quaternions
from abd.scene.geometry.frames import triad
from abd.scene.geometry.shapes import cone, cylinder, sphere
from abd.scene.schema.schema import CameraSpec

SHEAR = 3e-4
"""Largest shear of an instance: a third of a pixel of a body that is 1000 pixels wide."""
MOST_SHEARED = 400
"""Largest number of separate meshes; beyond it bodies with the least shear remain instances."""
PANEL = 400 / 1280
"""Fraction of the width of a window that the panel of controls covers."""
RATE = 30.0
"""Largest number of pictures per second."""


class Stage:
    """Shows moments of a cast on a server.

    Args:
        server: `viser.ViserServer`; cast: drawn objects; view: the camera; moments: sample for the camera.
        covered: fraction of the width, at the right, that a panel covers.

    Attributes:
        joints, names, axes: whether joints, names of bodies and axes of mesh frames are drawn.
        forces: length of arrows per force [m/N], or None.
        pull: (2, 3) foot and tip of an additional arrow, or None.
        batches: handle and bodies of the batch of each shape.
    """

    def __init__(self, server, cast: Cast, view: CameraSpec, moments: list[Moment], covered: float = 0.0):
        self.server, self.cast = server, cast
        self.joints, self.forces, self.names, self.axes = True, None, False, False
        self.pull: np.ndarray | None = None
        self.camera = Camera(view, cast, moments, (1280, 720), covered)
        self._shift = np.zeros(3)
        server.scene.set_up_direction("+z")
        server.scene.configure_default_lights(cast_shadow=len(cast) <= 3000)
        self._planes()
        self.batches: dict[int, tuple[object, np.ndarray]] = {}
        self._sheared: dict[int, object] = {}
        for k, shape in enumerate(cast.shapes):
            vertices, triangles, _ = shape.mesh
            members = np.flatnonzero(cast.shape == k)
            if len(members) and len(triangles):
                rgba = cast.colors[members]
                handle = _instances(
                    server, f"/bodies/{k}", vertices, triangles, len(members), batched_colors=_linear(rgba[:, :3]),
                    batched_opacities=rgba[:, 3].astype(np.float32) if (rgba[:, 3] < 1.0).any() else None,
                    side="double" if shape.open else "front",
                )  # fmt: skip
                self.batches[k] = handle, members
        self._symbols, self._labels, self._axes = _SymbolBatches(server), [], None
        self._look(moments[0])

    def show(self, moment: Moment) -> None:
        """Update everything to one instant."""
        position, wxyz, scales, rest = decomposed(moment.transform)
        with self.server.atomic():
            for k, (handle, members) in self.batches.items():
                scales[members[self._show_sheared(k, members, moment.transform[members], rest[members])]] = 0.0
                handle.batched_positions = position[members].astype(np.float32)
                handle.batched_wxyzs = wxyz[members].astype(np.float32)
                handle.batched_scales = scales[members].astype(np.float32)
            drawn = symbols(self.cast, moment, self.joints, self.forces)
            if self.pull is not None:
                drawn.add_arrows(self.pull[None], 0.02 * float(np.linalg.norm(self.pull[1] - self.pull[0])), FORCE)
            self._symbols.show(drawn)
            self._show_names(moment)
            self._show_axes(position, wxyz)
        if self.camera.followed is not None:
            self._follow(moment)

    def _show_names(self, moment: Moment) -> None:
        """Show the names of all bodies at their centres."""
        if self.names and not self._labels:
            bodies = np.flatnonzero(~self.cast.is_plane)
            self._labels = [(k, self.server.scene.add_label(f"/names/{k}", str(self.cast.names[k]))) for k in bodies.tolist()]
        if self._labels:
            center = self.cast.bounding_balls(moment.transform)[0]
            for k, label in self._labels:
                label.visible = self.names
                label.position = center[k]

    def _show_axes(self, position: np.ndarray, wxyz: np.ndarray) -> None:
        """Show the axes of the mesh frames (n, 3), (n, 4)."""
        if self.axes and self._axes is None:
            length = 0.5 * (self.cast.median_diameter or 0.1 * self.camera.extent)
            size = {"axes_length": length, "axes_radius": 0.03 * length}
            self._axes = self.server.scene.add_batched_axes("/axes", wxyz, position, **size)
        if self._axes is not None:
            self._axes.visible = self.axes
            self._axes.batched_wxyzs, self._axes.batched_positions = wxyz.astype(np.float32), position.astype(np.float32)

    def follow(self, name: str, moment: Moment) -> None:
        """Keep a body at its present position in the picture; "nothing" for none. Unknown names are ignored."""
        if name == "nothing":
            self.camera.followed = None
        elif name in self.cast.names:
            self.camera.followed = self.cast.index(name)
            self._shift = self.camera.place(moment)[0]

    def on_click(self, choose: Callable[[int], None] | None) -> None:
        """Call a function with the index of a clicked body; None disables clicks."""
        for k, (handle, _) in self.batches.items():
            handle.remove_click_callback()
            if choose is not None:
                handle.on_click(lambda event, k=k: choose(self.body_at(k, event)))

    def body_at(self, shape: int, event) -> int:
        """Index of the body of a batch that an event refers to."""
        return int(self.batches[shape][1][event.instance_index or 0])

    def _follow(self, moment: Moment) -> None:
        """Move the cameras of all clients with the followed body."""
        place = self.camera.place(moment)[0]
        step, self._shift = place - self._shift, place
        if np.abs(step).max() == 0.0:
            return
        for client in self.server.get_clients().values():
            with client.atomic():
                position, target = client.camera.position, client.camera.look_at
                client.camera.position, client.camera.look_at = position + step, target + step

    def _look(self, moment: Moment) -> None:
        """Set the initial camera of clients."""
        lens = self.camera.lens(moment)
        size = self.camera.extent
        depth = max(float((self.camera.middle - lens.eye) @ lens.axes[2]), 1e-3 * size)
        start = self.server.initial_camera
        start.position, start.look_at, start.up = lens.eye, lens.eye + depth * lens.axes[2], (0.0, 0.0, 1.0)
        start.near, start.far = 1e-3 * min(size, depth), 1e3 * max(size, depth)
        start.fov = float(np.radians(self.camera.view.fov_deg))
        if self.camera.followed is not None:
            self._shift = self.camera.place(moment)[0]

    def _show_sheared(self, k: int, members: np.ndarray, maps: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """Show bodies with shear as separate meshes; returns their indices among the members."""
        vertices, triangles, _ = self.cast.shapes[k].mesh
        apart = np.flatnonzero(rest > SHEAR)
        capacity = MOST_SHEARED - sum(body not in members for body in self._sheared)
        if len(apart) > capacity:
            apart = np.sort(apart[np.argsort(-rest[apart], kind="stable")[: max(capacity, 0)]])
        chosen = set(members[apart].tolist())
        for body in [body for body in self._sheared if body not in chosen and self.cast.shape[body] == k]:
            self._sheared.pop(body).remove()
        for place in apart:
            body = int(members[place])
            moved = vertices @ maps[place, :3, :3].T + maps[place, :3, 3]
            if body in self._sheared:
                self._sheared[body].vertices = moved.astype(np.float32)
            else:
                rgba, is_open = self.cast.colors[body], self.cast.shapes[k].open
                self._sheared[body] = _mesh(self.server, f"/sheared/{body}", moved, triangles, rgba, is_open)
        return apart

    def _planes(self) -> None:
        cell, middle = self.camera.cell, self.camera.middle
        for k, (plane, rgba) in enumerate(zip(self.cast.planes, self.cast.colors[self.cast.plane_bodies])):
            # lines of the grid of a level plane are at multiples of the cell size
            foot = middle - np.mod(middle, 5.0 * cell)
            foot -= (plane[:3] @ foot - plane[3]) * plane[:3]
            (wxyz,) = from_z(plane[None, :3])
            self.server.scene.add_grid(
                f"/planes/{k}", infinite_grid=True, cell_size=cell, section_size=5.0 * cell, wxyz=wxyz, position=foot,
                cell_color=(190, 190, 190), section_color=(150, 150, 150), fade_distance=12.0 * self.camera.extent,
                plane_color=tuple(_bytes(rgba[:3])), plane_opacity=1.0, shadow_opacity=0.35,
            )  # fmt: skip


class _SymbolBatches:
    """Symbols: tubes, balls and cones, one batch each."""

    def __init__(self, server):
        self.server = server
        meshes = {"tubes": cylinder(1.0, 1.0, 20), "balls": sphere(1.0, 2), "cones": cone(1.0, 1.0, 20)}
        self._meshes = {name: creased(*mesh)[:2] for name, mesh in meshes.items()}
        self._batches: dict[str, tuple[object, int]] = {}
        self._faces: list = []

    def show(self, drawn: Symbols) -> None:
        nothing = np.zeros((0, 2, 3)), np.zeros(0), np.zeros((0, 4))
        rods, radius, rgba = (np.concatenate(parts) for parts in zip(nothing, *drawn.rods))
        long = np.flatnonzero((rods[:, 0] != rods[:, 1]).any(axis=1))
        self._show("tubes", rods[long], radius[long], rgba[long])
        ends = np.concatenate([rods[:, 0], rods[long, 1]])
        both = np.concatenate([np.arange(len(rods)), long])
        self._show("balls", np.stack([ends, ends], axis=1), radius[both], rgba[both])
        self._show("cones", *(np.concatenate(parts) for parts in zip(nothing, *drawn.cones)))
        for handle in self._faces:
            handle.remove()
        self._faces = []
        for k, (corners, rgba) in enumerate(drawn.triangles):
            numbers = np.arange(3 * len(corners)).reshape(-1, 3)
            self._faces.append(_mesh(self.server, f"/surfaces/{k}", corners.reshape(-1, 3), numbers, rgba[0], True))

    def _show(self, name: str, ends: np.ndarray, radius: np.ndarray, rgba: np.ndarray) -> None:
        """Update a batch to segments (k, 2, 3); its capacity is a power of two, and unused instances have zero size."""
        handle, capacity = self._batches.get(name, (None, 0))
        count, span = len(ends), ends[:, 1] - ends[:, 0]
        if count > capacity:
            if handle is not None:
                handle.remove()
            capacity = 1 << (count - 1).bit_length()
            handle = _instances(self.server, f"/{name}", *self._meshes[name], capacity)
            self._batches[name] = handle, capacity
        if handle is None:
            return
        length = radius if name == "balls" else np.linalg.norm(span, axis=1)
        values = {
            "positions": (0.5 * (ends[:, 0] + ends[:, 1]), np.zeros(3), np.float32),
            "wxyzs": (from_z(span), [1.0, 0.0, 0.0, 0.0], np.float32),
            "scales": (np.column_stack([radius, radius, length]), np.zeros(3), np.float32),
            "colors": (_linear(rgba[:, :3]), np.zeros(3), np.uint8),
        }
        for key, (used, rest, kind) in values.items():
            filled = np.concatenate([used, np.tile(rest, (capacity - count, 1))]).astype(kind)
            if not np.array_equal(filled, getattr(handle, f"batched_{key}")):
                setattr(handle, f"batched_{key}", filled)


def _instances(server, name: str, vertices: np.ndarray, triangles: np.ndarray, count: int, **look):
    """Batch of instances of a mesh, with zero size initially."""
    colors = {"batched_colors": np.zeros((count, 3), dtype=np.uint8)} | look
    return server.scene.add_batched_meshes_simple(
        name, vertices.astype(np.float32), triangles.astype(np.uint32), lod="off",
        batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)), batched_positions=np.zeros((count, 3)),
        batched_scales=np.zeros((count, 3), dtype=np.float32), **colors,
    )  # fmt: skip


def _mesh(server, name: str, vertices: np.ndarray, triangles: np.ndarray, rgba: np.ndarray, is_open: bool):
    """Mesh of one colour (4,), seen from both sides if it is open."""
    return server.scene.add_mesh_simple(
        name, vertices.astype(np.float32), triangles.astype(np.uint32), color=tuple(_bytes(rgba[:3])),
        opacity=float(rgba[3]) if rgba[3] < 1.0 else None, side="double" if is_open else "front",
    )  # fmt: skip


def decomposed(maps: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Positions (n, 3), quaternions (n, 4), scales (n, 3) of maps (n, 4, 4), and Frobenius norms (n,) of their shear."""
    R, scales, shear = scaled_rotations(maps[:, :3, :3])
    return maps[:, :3, 3], quaternions(R), scales, np.sqrt(np.einsum("nij,nij->n", shear, shear))


def from_z(direction: np.ndarray) -> np.ndarray:
    """(n, 4) quaternions of the smallest rotations of z to directions (n, 3), of any length."""
    return quaternions(triad(unit(direction)))


def _bytes(color: np.ndarray) -> np.ndarray:
    return np.round(255.0 * np.asarray(color)).astype(np.uint8)


def _linear(color: np.ndarray) -> np.ndarray:
    """Bytes of sRGB colours for instances, whose colours the browser takes as linear."""
    return _bytes(to_linear(color))
