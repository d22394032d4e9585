"""`Rasterizer`: pictures of a `Cast` on the CPU, without a display, a driver or another library.

The first pass renders the shadow map from the sun, the second samples of the nearest surfaces from the eye. The third
shades every pixel by the visible fractions of the sun and of the sky. The affine maps of bodies include shear. Rods and
balls are ray traced. The result does not depend on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from abd import colors
from abd.backends.device.cuda_support import start_warp
from abd.pictures.camera import Camera, Lens, axes_of
from abd.pictures.cast import Cast, Moment
from abd.pictures.kernels import cover, shade
from abd.pictures.shapes import corner_normals, perpendicular, segment_poses
from abd.pictures.symbols import symbols
from abd.scene.geometry.shapes import cone

SAMPLES = 2
"""Samples per pixel along each side."""
BAND = 16
"""Rows of samples per band."""
SHADOW_SIZE = 2048
"""Side of the shadow map in texels."""
SHADOW_BLUR = 2.2
"""Radius of the shadow blur [texels]."""
TAPS = 12
"""Samples of the shadow map per sample of the picture."""
SUN = np.array([-0.42, -0.50, 0.92]) / np.linalg.norm([-0.42, -0.50, 0.92])
CONE_SIDES = 18
"""Sides of the head of an arrow."""
TONES = 1 << 16
"""Entries of the table from linear light to sRGB."""
NEAREST = 1e-4
"""Smallest depth of drawn items, relative to the depth of the middle of the scene."""


@dataclass(frozen=True)
class _Items:
    """Items drawn at one instant, in the world: triangles first, then rods.

    corners, normals: (g, 3, 3); two_sided: (g,); rods: (r, 2, 3); radii: (r,); colors: (g + r, 4) sRGB and opacity."""

    corners: np.ndarray
    normals: np.ndarray
    two_sided: np.ndarray
    rods: np.ndarray
    radii: np.ndarray
    colors: np.ndarray


class Rasterizer:
    """Draws frames of one cast; not thread-safe.

    joints: whether joints are drawn; contacts: length of arrows per force [m/N], None for no arrows."""

    def __init__(self, cast: Cast, camera: Camera, joints: bool = True, contacts: float | None = None):
        start_warp()
        self.cast, self.camera, self.joints, self.contacts = cast, camera, joints, contacts
        width, height = (SAMPLES * extent for extent in camera.size)
        self._samples, self._from_sun = _samples(height, width), _samples(SHADOW_SIZE, SHADOW_SIZE)
        self._step = 2 * SAMPLES if max(camera.size) > 400 else SAMPLES
        coarse = (-(-height // self._step), -(-width // self._step))
        self._open_sky, self._smooth = _empty(coarse, float), _empty(coarse, float)
        self._tone = _array(tones(), wp.uint8)
        vertices, faces = cone(1.0, 1.0, CONE_SIDES)
        corners = vertices[faces] + [0.0, 0.0, 0.5]
        self._cone = corners, corner_normals(corners)
        self._pixels = _empty((camera.size[1], camera.size[0], 3), wp.uint8)

    def picture(self, moment: Moment, progress: float = 0.0) -> np.ndarray:
        """(height, width, 3) picture of one instant, 8 bits per channel; `progress` in the film is 0 to 1."""
        lens = self.camera.lens(moment, progress)
        middle, size = self.camera.middle, self.camera.extent
        items, things = self._items(moment), shade.Things()
        things.corners, things.normals = _array(items.corners - lens.eye, wp.vec3), _array(items.normals, wp.vec3)
        things.rods = _array(items.rods - lens.eye, wp.vec3)
        things.colors = _array(colors.to_linear(items.colors[:, :3]), wp.vec3)
        things.planes, things.cell = self._planes(lens), self.camera.cell
        things.fade = 3.0 * max(size, float(np.linalg.norm(middle - lens.eye)))
        things.sky_high, things.sky_low = (wp.vec3(*colors.to_linear(one)) for one in (colors.SKY_HIGH, colors.SKY_LOW))
        light, from_sun = _light(middle, size)
        light.origin, light.shadow = wp.vec3(*(from_sun.eye - lens.eye)), self._from_sun.near
        no_planes = wp.zeros((0, 4), dtype=wp.vec3, device="cpu")
        _draw(from_sun, light.eye, items, no_planes, 0.0, self._from_sun)
        eye = _eye(lens, SAMPLES)
        nearest = NEAREST * max(float((middle - lens.eye) @ lens.axes[2]), size)
        _draw(lens, eye, items, things.planes, nearest, self._samples)

        rows, reach = self._open_sky.shape[0], 0.4 * (self.cast.median_diameter or 0.2)
        _launch(shade.occlude, rows, eye, things, self._samples, self._step, reach, self._open_sky)
        _launch(shade.smooth, rows, self._samples, self._step, self._open_sky, self._smooth)
        rest = [SAMPLES, self._step, self._smooth, self._tone, self._pixels]
        _launch(shade.shade, lens.height, eye, light, things, self._samples, *rest)
        return self._pixels.numpy().copy()

    def item_count(self) -> int:
        """Number of samples of the last picture that show a body, a joint or an arrow."""
        return int(np.count_nonzero(self._samples.item.numpy() >= 0))

    def _items(self, moment: Moment) -> _Items:
        """All items at one instant."""
        cast, triangles, rods = self.cast, [], []

        def add(corners: np.ndarray, normals: np.ndarray, is_open: bool, maps: np.ndarray, rgba: np.ndarray) -> None:
            placed = _placed(corners, maps), _placed(normals, _cofactors(maps))
            triangles.append((*placed, is_open, np.repeat(rgba, len(corners), axis=0)))

        for k, shape in enumerate(cast.shapes):
            members = np.flatnonzero(cast.shape == k)
            maps, rgba = moment.transform[members], cast.colors[members]
            add(shape.corners, shape.normals, shape.open, maps, rgba)
            segments = np.concatenate([shape.rods, np.repeat(shape.balls[:, None], 2, axis=1)])
            rods.append((_placed(segments, maps), shape.radius, np.repeat(rgba, len(segments), axis=0)))
        extra = symbols(cast, moment, self.joints, self.contacts)
        for ends, radius, rgba in extra.cones:
            add(*self._cone, False, segment_poses(ends, radius), rgba)
        for corners, rgba in extra.triangles:
            flat = np.cross(*(corners[:, k] - corners[:, 0] for k in (1, 2)))
            triangles.append((corners, np.repeat(flat[:, None], 3, axis=1), True, rgba))
        rods += extra.rods
        return _Items(
            corners=np.concatenate([one[0] for one in triangles]),
            normals=np.concatenate([one[1] for one in triangles]),
            two_sided=np.concatenate([np.full(len(one[0]), one[2]) for one in triangles]),
            rods=np.concatenate([one[0] for one in rods]),
            radii=np.concatenate([np.broadcast_to(one[1], len(one[0])) for one in rods]),
            colors=np.concatenate([one[-1] for one in triangles + rods]),
        )

    def _planes(self, lens: Lens) -> wp.array:
        """Half-spaces as kernel input (`shade.Things`)."""
        normal, offset = self.cast.planes[:, :3], self.cast.planes[:, 3:]
        u, _ = perpendicular(normal)
        color = colors.to_linear(self.cast.colors[self.cast.plane_bodies, :3])
        return _array(np.stack([normal, normal * offset - lens.eye, u, color], axis=1), wp.vec3)


def _draw(lens: Lens, eye: cover.Eye, items: _Items, planes: wp.array, nearest: float, samples: cover.Samples) -> None:
    """Find the nearest item of every sample."""
    owner, corners, boxes = _projected(eye, lens.local(items.corners), items.two_sided, nearest)
    rod_boxes = _rod_boxes(eye, lens.local(items.rods), items.radii[:, None], nearest)
    owner = np.concatenate([owner, len(items.corners) + np.arange(len(rod_boxes))])
    boxes = np.concatenate([boxes, rod_boxes])
    parts = [_array(owner, int), _array(boxes, wp.vec4i), _array(corners, wp.vec3)]
    looks = [_array(items.rods - lens.eye, wp.vec3), _array(items.radii, float), _array(items.colors[:, 3], float)]
    _launch(cover.clear, eye.height, eye, planes, samples)
    _launch(cover.fill, -(-eye.height // BAND), eye, BAND, len(items.corners), *parts, *looks, samples)


def _projected(eye: cover.Eye, corners: np.ndarray, two_sided: np.ndarray, nearest: float) -> tuple[np.ndarray, ...]:
    """Indices (k,) of triangles (g, 3, 3) in camera axes that may be visible, clipped behind the eye; columns, rows and
    nearness of corners (k, 3, 3); and boxes of samples (k, 4)."""
    owner, depth = np.arange(len(corners)), corners[..., 2] - nearest
    if not eye.parallel and depth.min(initial=0.0) < 0.0:
        least, most = depth.min(axis=1), depth.max(axis=1)
        whole, crossing = np.flatnonzero(least >= 0.0), np.flatnonzero((least < 0.0) & (most >= 0.0))
        cut = [_cut(corners[g], depth[g]) for g in crossing]
        owner = np.concatenate([whole, np.repeat(crossing, [len(one) for one in cut]).astype(int)])
        corners = np.concatenate([corners[whole], *cut])
    z = corners[..., 2]
    factor, nearness = (eye.scale, -z) if eye.parallel else (eye.scale / z, 1.0 / z)
    x, y = eye.column + factor * corners[..., 0], eye.row - factor * corners[..., 1]
    area = (x[:, 1] - x[:, 0]) * (y[:, 2] - y[:, 0]) - (y[:, 1] - y[:, 0]) * (x[:, 2] - x[:, 0])
    facing = np.flatnonzero((area < 0.0) | two_sided[owner] & (area > 0.0))
    owner, x, y = owner[facing], x[facing], y[facing]
    boxes = _boxes(eye, x.min(axis=1), x.max(axis=1), y.min(axis=1), y.max(axis=1))
    return owner, np.stack([x, y, nearness[facing]], axis=2), boxes


def _cut(triangle: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """(1 or 2, 3, 3) triangles of the part of a triangle (3, 3) at positive depths (3,)."""
    polygon = []
    for p, q, a, b in zip(triangle, np.roll(triangle, -1, axis=0), depth, np.roll(depth, -1)):
        if a >= 0.0:
            polygon.append(p)
        if a * b < 0.0:
            polygon.append(p + a / (a - b) * (q - p))
    return np.array([[polygon[0], polygon[k], polygon[k + 1]] for k in range(1, len(polygon) - 1)]).reshape(-1, 3, 3)


def _rod_boxes(eye: cover.Eye, ends: np.ndarray, r: np.ndarray, nearest: float) -> np.ndarray:
    """(k, 4) boxes (`_boxes`) of rods with ends (k, 2, 3) in camera axes and radii (k, 1)."""
    x, y, z = np.moveaxis(ends, -1, 0)
    if eye.parallel:
        left, right, down, up = x - r, x + r, y - r, y + r
    else:
        spans = []
        for value in (x, y):
            # tangents from the eye to the circle about (value, z)
            middle, half = np.arctan2(value, z), np.arcsin(np.minimum(r / np.maximum(np.hypot(value, z), 1e-30), 1.0))
            spans += [np.tan(np.clip(middle + sign * half, -1.57, 1.57)) for sign in (-1.0, 1.0)]
        left, right, down, up = spans
        whole, gone = (z - r <= nearest).any(axis=1, keepdims=True), (z + r <= nearest).all(axis=1, keepdims=True)
        left, down = (np.where(gone, np.inf, np.where(whole, -np.inf, low)) for low in (left, down))
        right, up = (np.where(gone, -np.inf, np.where(whole, np.inf, high)) for high in (right, up))
    columns = eye.column + eye.scale * left.min(axis=1), eye.column + eye.scale * right.max(axis=1)
    return _boxes(eye, *columns, eye.row - eye.scale * up.max(axis=1), eye.row - eye.scale * down.min(axis=1))


def _boxes(eye: cover.Eye, left: np.ndarray, right: np.ndarray, top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """(k, 4) columns and rows of samples, first and last + 1, between limits (k,); zeros outside the picture."""
    out = np.stack([np.floor(left).clip(0, eye.width), np.ceil(right).clip(0, eye.width),
                    np.floor(top).clip(0, eye.height), np.ceil(bottom).clip(0, eye.height)], axis=1)  # fmt: skip
    out[(out[:, 0] >= out[:, 1]) | (out[:, 2] >= out[:, 3])] = 0.0
    return out.astype(np.int32)


def _eye(lens: Lens, samples: int) -> cover.Eye:
    eye = cover.Eye()
    eye.right, eye.up, eye.forward = (wp.vec3(*row) for row in lens.axes)
    eye.width, eye.height = samples * lens.width, samples * lens.height
    eye.scale, eye.column, eye.row = samples * lens.scale, 0.5 * eye.width, 0.5 * eye.height
    eye.parallel = int(lens.parallel)
    return eye


def _light(middle: np.ndarray, size: float) -> tuple[shade.Light, Lens]:
    """The sun with a lens that covers a ball of diameter 1.1 `size` [m] about a point."""
    radius = 0.55 * size
    scale = 0.5 * SHADOW_SIZE / radius
    lens = Lens(middle + SUN * radius, axes_of(-SUN), scale, SHADOW_SIZE, SHADOW_SIZE, parallel=True)
    light = shade.Light()
    light.sun, light.eye, light.texel, light.blur = wp.vec3(*SUN), _eye(lens, 1), 1.0 / scale, SHADOW_BLUR
    # points of a spiral by the golden angle
    radii, angle = np.sqrt((np.arange(TAPS) + 0.5) / TAPS), 2.399963 * np.arange(TAPS)
    light.taps = _array(np.stack([radii * np.cos(angle), radii * np.sin(angle)], axis=1), wp.vec2)
    return light, lens


def tones() -> np.ndarray:
    """(TONES,) sRGB, 0 to 255, of linear light from 0 to `shade.BRIGHTEST`, with a smooth roll-off beyond white."""
    light = np.linspace(0.0, float(shade.BRIGHTEST), TONES)
    bent = np.where(light > 0.8, 0.8 + 0.2 * (1.0 - np.exp(-(np.maximum(light, 0.8) - 0.8) / 0.2)), light)
    return np.clip(255.0 * colors.to_srgb(bent) + 0.5, 0.0, 255.0).astype(np.uint8)


def _placed(points: np.ndarray, maps: np.ndarray) -> np.ndarray:
    """(n k, c, 3) world positions of points (k, c, 3) of a mesh frame at poses (n, 4, 4)."""
    out = np.einsum("nij,kcj->nkci", maps[:, :3, :3], points) + maps[:, None, None, :3, 3]
    return out.reshape(-1, *points.shape[1:])


def _cofactors(maps: np.ndarray) -> np.ndarray:
    """(n, 4, 4) maps of normals under maps (n, 4, 4) of surfaces, up to a positive factor."""
    a, b, c = np.moveaxis(maps[:, :3, :3], 2, 0)
    out = np.zeros(maps.shape)
    out[:, :3, :3] = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], axis=2)
    return out * np.sign(np.linalg.det(maps[:, :3, :3]))[:, None, None]


def _array(values: np.ndarray, kind) -> wp.array:
    """Warp array on the CPU."""
    return wp.array(values, dtype=kind, device="cpu")


def _empty(shape: tuple[int, ...], kind) -> wp.array:
    return wp.zeros(shape, dtype=kind, device="cpu")


def _samples(height: int, width: int) -> cover.Samples:
    out = cover.Samples()
    out.near, out.item = _empty((height, width), float), _empty((height, width), int)
    return out


def _launch(kernel, count: int, *inputs) -> None:
    wp.launch(kernel, dim=count, inputs=list(inputs), device="cpu")
