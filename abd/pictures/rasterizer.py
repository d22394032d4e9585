"""`Rasterizer`: pictures of a `Cast` on the processor, without a display, a driver or another library.

Three passes: what the sun sees gives the shadows, what the eye sees gives samples of the nearest surfaces, and then every
pixel is lit: by the sun as far as it is seen from there, by the sky as far as neighbours leave it open. Maps of bodies are
taken as they are, shear included; rods and balls are hit by rays and are round at any distance. One frame is the same for
any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import warp as wp

from abd import colors
from abd.backends.device.cuda_support import start_warp
from abd.pictures.camera import Camera, Lens, axes_of
from abd.pictures.cast import Cast, Moment
from abd.pictures.kernels import corners as corner_kernels
from abd.pictures.kernels import cover, occlusion, shade
from abd.pictures.kernels.eye import Eye
from abd.pictures.kernels.look import Things
from abd.pictures.kernels.sun import Light
from abd.pictures.symbols import symbols

SAMPLES = 2
"""Samples of a pixel along each side."""
BAND = 16
"""Rows of samples that are filled together."""
SHADOW_SIZE = 2048
"""Edge of the shadow map in texels."""
SHADOW_BLUR = 2.2
"""Radius over which shadows fade [texels]."""
TAPS = 12
"""Samples of the shadow map per sample of the picture."""
SUN = np.array([-0.42, -0.50, 0.92]) / np.linalg.norm([-0.42, -0.50, 0.92])
TONES = 1 << 16
"""Entries of the table from light to sRGB."""
NEAREST = 1e-4
"""Depth of the nearest thing that is drawn, in depths of the middle of the scene."""


class Rasterizer:
    """Draws frames of one cast; one for each thread.

    Args:
        cast: what there is to draw; camera: where from.
        joints: whether to draw them; contacts: length of arrows per force [m/N], None for no arrows.
    """

    def __init__(self, cast: Cast, camera: Camera, joints: bool = True, contacts: float | None = None):
        start_warp()
        self.cast, self.camera, self.joints, self.contacts = cast, camera, joints, contacts
        starts = np.cumsum([0, *(len(one.corners) for one in cast.shapes)])
        self._face, self._body, self._open = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
        self._rods: list[tuple[np.ndarray, np.ndarray, float]] = []
        for k, shape in enumerate(cast.shapes):
            members = np.flatnonzero(cast.shape == k)
            faces = np.arange(starts[k], starts[k + 1])
            self._face.append(np.tile(faces, len(members)))
            self._body.append(np.repeat(members, len(faces)))
            self._open.append(np.full(len(members) * len(faces), shape.open))
            rods = np.concatenate([shape.rods, np.repeat(shape.balls[:, None], 2, axis=1)])
            if len(rods):
                self._rods.append((members, rods, shape.radius))
        self._face, self._body, self._open = (
            np.concatenate(one).astype(np.int32) for one in (self._face, self._body, self._open)
        )
        self._corners = _stacked([one.corners for one in cast.shapes])
        self._normals = _stacked([one.normals for one in cast.shapes])
        width, height = (SAMPLES * extent for extent in camera.size)
        self._near, self._item = (
            wp.zeros((height, width), dtype=float, device="cpu"),
            wp.zeros((height, width), dtype=int, device="cpu"),
        )
        self._shadow = wp.zeros((SHADOW_SIZE, SHADOW_SIZE), dtype=float, device="cpu")
        self._caster = wp.zeros((SHADOW_SIZE, SHADOW_SIZE), dtype=int, device="cpu")
        self._step = 2 * SAMPLES if max(camera.size) > 400 else SAMPLES
        coarse = (-(-height // self._step), -(-width // self._step))
        self._share, self._smooth = (wp.zeros(coarse, dtype=float, device="cpu") for _ in range(2))
        self._tone = wp.array(tones(), dtype=wp.uint8, device="cpu")
        self._pixels = wp.zeros((camera.size[1], camera.size[0], 3), dtype=wp.uint8, device="cpu")

    def picture(self, moment: Moment, progress: float = 0.0) -> np.ndarray:
        """(height, width, 3) of one instant, 8 bits per channel; `progress` through the film, 0 to 1, is for orbits."""
        lens = self.camera.lens(moment, progress)
        low, high = self.camera.bounds
        middle, size = 0.5 * (low + high), float(np.linalg.norm(high - low)) or 1.0
        eye = _eye(lens, SAMPLES)
        things = self._things(lens, moment, size)
        nearest = NEAREST * max(float((middle - lens.eye) @ lens.axes[2]), size)
        self._draw(eye, things, nearest, self._near, self._item)

        light, place = _light(middle, size)
        self._draw(light.eye, _seen_from(things, place - lens.eye), 0.0, self._shadow, self._caster)
        light.origin = wp.vec3(*(place - lens.eye))
        inputs = [eye, things.look, self._near, self._item, self._step, 0.4 * (self.cast.usual or 0.2), self._share]
        rows = self._share.shape[0]
        wp.launch(occlusion.occlude, dim=rows, inputs=inputs, device="cpu")
        wp.launch(occlusion.smooth, dim=rows, inputs=[self._near, self._step, self._share, self._smooth], device="cpu")
        inputs = [eye, light, things.look, self._shadow, self._near, self._item, SAMPLES, self._step, self._smooth, self._tone]
        wp.launch(shade.shade, dim=lens.height, inputs=[*inputs, self._pixels], device="cpu")
        return self._pixels.numpy().copy()

    def item_count(self) -> int:
        """How many samples of the last picture show a body, a joint or an arrow."""
        return int((self._item.numpy() >= 0).sum())

    def _things(self, lens: Lens, moment: Moment, size: float) -> _Things:
        """All that is to be drawn, with places relative to a lens."""
        n, strokes = len(self.cast), symbols(self.cast, moment, self.joints, self.contacts)
        maps = np.concatenate([moment.transform[:, :3, :3], np.eye(3)[None]])
        shift = np.concatenate([moment.transform[:, :3, 3] - lens.eye, np.zeros((1, 3))])
        shafts, shaft_radius, _ = strokes.arrow_parts()
        heads, head_normals, whose = strokes.cones()
        flat = np.cross(*(strokes.triangles[:, k] - strokes.triangles[:, 0] for k in (1, 2)))
        more = np.concatenate([strokes.triangles, heads]) - lens.eye
        more_normals = np.concatenate([np.repeat(flat[:, None], 3, axis=1), head_normals])
        ends, radii = [strokes.rods - lens.eye, shafts - lens.eye], [strokes.radius, shaft_radius]
        palette = [self.cast.colors, strokes.triangle_colors, strokes.arrow_colors, strokes.rod_colors]
        first_of = np.cumsum([0, *(len(one) for one in palette)])
        shafts_and_heads = first_of[2] + np.arange(len(shafts)), first_of[2] + whose
        tint = [self._body, first_of[1] + np.arange(len(strokes.triangles)), shafts_and_heads[1]]
        tint += [first_of[3] + np.arange(len(strokes.rods)), shafts_and_heads[0]]
        for members, rods, radius in self._rods:
            places = np.einsum("nij,rkj->nrki", maps[members], rods) + shift[members][:, None, None]
            ends.append(places.reshape(-1, 2, 3))
            radii.append(np.full(len(members) * len(rods), radius))
            tint.append(np.repeat(members, len(rods)))
        palette, tint = np.concatenate(palette), np.concatenate(tint)

        look = Things()
        look.local = _vectors(np.concatenate([self._corners, more.reshape(-1, 3)]))
        look.normals = _vectors(np.concatenate([self._normals, more_normals.reshape(-1, 3)]))
        look.face = _whole(np.concatenate([self._face, len(self._corners) // 3 + np.arange(len(more))]))
        look.body = _whole(np.concatenate([self._body, np.full(len(more), n)]))
        look.tint = _whole(tint)
        look.turn = wp.array(maps.astype(np.float32), dtype=wp.mat33, device="cpu")
        look.turn_normals = wp.array(_cofactors(maps).astype(np.float32), dtype=wp.mat33, device="cpu")
        look.shift, look.rods = _vectors(shift), _vectors(np.concatenate(ends).reshape(-1, 3))
        look.colors = _vectors(colors.to_linear(palette[:, :3]))
        look.triangles = len(look.face)
        self._set_planes(look, lens, size)
        return _Things(
            look=look,
            two_sided=_whole(np.concatenate([self._open, np.ones(len(more))])),
            radii=wp.array(np.concatenate(radii).astype(np.float32), dtype=float, device="cpu"),
            opacity=wp.array(palette[tint, 3].astype(np.float32), dtype=float, device="cpu"),
        )

    def _set_planes(self, look: Things, lens: Lens, size: float) -> None:
        """Half-spaces with their grids, whose cells are a power of ten [m]."""
        planes = self.cast.planes
        heights = planes[:, :3] @ lens.eye - planes[:, 3]
        look.planes = wp.array(
            np.column_stack([planes[:, :3], heights]).astype(np.float32), dtype=wp.vec4, device="cpu"
        )
        look.plane_colors = _vectors(colors.to_linear(self.cast.plane_colors[:, :3]))
        u = np.cross(planes[:, :3], np.eye(3)[np.argmin(np.abs(planes[:, :3]), axis=1)])
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        look.grid_u, look.grid_v = _vectors(u), _vectors(np.cross(planes[:, :3], u))
        look.grid_origin = _vectors(planes[:, :3] * planes[:, 3:] - lens.eye)
        look.cell = float(10.0 ** np.floor(np.log10(size / 2.5)))
        middle = 0.5 * (self.camera.bounds[0] + self.camera.bounds[1])
        look.fade = 3.0 * max(size, float(np.linalg.norm(middle - lens.eye)))
        look.sky_high, look.sky_low = (wp.vec3(*colors.to_linear(one)) for one in (colors.SKY_HIGH, colors.SKY_LOW))

    def _draw(self, eye: Eye, things: _Things, nearest: float, near: wp.array, item: wp.array) -> None:
        """The nearest item of every sample."""
        look = things.look
        wp.launch(cover.clear, dim=eye.height, inputs=[eye, look.planes, near, item], device="cpu")
        count = look.triangles
        corners = wp.zeros(3 * count, dtype=wp.vec3, device="cpu")
        boxes = wp.zeros(count, dtype=wp.vec4i, device="cpu")
        cut = wp.zeros(count, dtype=int, device="cpu")
        inputs = [eye, look, things.two_sided, nearest, corners, boxes, cut]
        wp.launch(corner_kernels.project, dim=count, inputs=inputs, device="cpu")
        owner, parts = _cut(look, np.flatnonzero(cut.numpy()), np.array(eye.forward), nearest)
        if len(owner):
            corners, boxes = (
                _longer(one, len(more)) for one, more in ((corners, parts.reshape(-1, 3)), (boxes, owner))
            )
            inputs = [eye, count, _vectors(parts.reshape(-1, 3)), corners, boxes]
            wp.launch(corner_kernels.project_points, dim=len(owner), inputs=inputs, device="cpu")
        of_rods = _rod_boxes(eye, look.rods.numpy().reshape(-1, 2, 3), things.radii.numpy(), nearest)
        boxes = np.concatenate([boxes.numpy(), of_rods])
        owner = np.concatenate([np.arange(count), owner, count + np.arange(len(of_rods))])
        starts, order = _bands(boxes, eye.height)
        inputs = [eye, BAND, _whole(starts), _whole(order), corners, look.rods, things.radii]
        inputs += [wp.array(boxes.astype(np.int32), dtype=wp.vec4i, device="cpu"), _whole(owner), things.opacity]
        wp.launch(cover.fill, dim=len(starts) - 1, inputs=[*inputs, near, item], device="cpu")


@dataclass(frozen=True)
class _Things:
    """What there is to draw, for the kernels: looks, which triangles show both sides, radii of rods, opacities of items."""

    look: Things
    two_sided: wp.array
    radii: wp.array
    opacity: wp.array


def _seen_from(things: _Things, offset: np.ndarray) -> _Things:
    """The same with places relative to a point `offset` [m] from the first one, without planes."""
    look, old = Things(), things.look
    for name in ("local", "normals", "face", "body", "tint", "turn", "turn_normals", "colors", "triangles"):
        setattr(look, name, getattr(old, name))
    shift, local, rods = old.shift.numpy() - offset, old.local, old.rods.numpy() - offset
    look.shift, look.local, look.rods = _vectors(shift), local, _vectors(rods)
    look.planes = wp.zeros(0, dtype=wp.vec4, device="cpu")
    return replace(things, look=look)


def tones() -> np.ndarray:
    """(TONES,) sRGB, 0 to 255, of linear light from 0 to `shade.BRIGHTEST`; what is brighter than white is bent down softly."""
    light = np.linspace(0.0, float(shade.BRIGHTEST), TONES)
    bent = np.where(light > 0.8, 0.8 + 0.2 * (1.0 - np.exp(-(np.maximum(light, 0.8) - 0.8) / 0.2)), light)
    coded = np.where(bent > 0.0031308, 1.055 * bent ** (1.0 / 2.4) - 0.055, 12.92 * bent)
    return np.clip(255.0 * coded + 0.5, 0.0, 255.0).astype(np.uint8)


def _eye(lens: Lens, samples: int) -> Eye:
    eye = Eye()
    eye.right, eye.up, eye.forward = (wp.vec3(*row) for row in lens.axes)
    eye.width, eye.height = samples * lens.width, samples * lens.height
    eye.scale, eye.column, eye.row = samples * lens.scale, 0.5 * eye.width, 0.5 * eye.height
    eye.parallel = int(lens.parallel)
    return eye


def _light(middle: np.ndarray, size: float) -> tuple[Light, np.ndarray]:
    """The sun as a lens that covers a ball of diameter 1.1 `size` [m] about a point, and its position."""
    radius = 0.55 * size
    place = middle + SUN * radius
    scale = 0.5 * SHADOW_SIZE / radius
    light = Light()
    light.sun = wp.vec3(*SUN)
    light.eye = _eye(Lens(place, axes_of(-SUN), scale, SHADOW_SIZE, SHADOW_SIZE, parallel=True), 1)
    light.texel, light.blur = 1.0 / scale, SHADOW_BLUR
    # points of a spiral by the golden angle
    radii, angle = np.sqrt((np.arange(TAPS) + 0.5) / TAPS), 2.399963 * np.arange(TAPS)
    taps = np.stack([radii * np.cos(angle), radii * np.sin(angle)], axis=1).astype(np.float32)
    light.taps = wp.array(taps, dtype=wp.vec2, device="cpu")
    return light, place


def _cut(
    look: Things, crossing: np.ndarray, forward: np.ndarray, nearest: float
) -> tuple[np.ndarray, np.ndarray]:
    """What of triangles lies beyond the depth `nearest`: items (k,) and triangles (k, 3, 3), one or two for each."""
    face, body = look.face.numpy()[crossing], look.body.numpy()[crossing]
    corners = look.local.numpy().reshape(-1, 3, 3)[face]
    corners = np.einsum("gij,gcj->gci", look.turn.numpy()[body], corners) + look.shift.numpy()[body][:, None]
    owner, parts = [], []
    for g, triangle in zip(crossing, corners):
        polygon = []
        for p, q in zip(triangle, np.roll(triangle, -1, axis=0)):
            a, b = p @ forward - nearest, q @ forward - nearest
            if a >= 0.0:
                polygon.append(p)
            if a * b < 0.0:
                polygon.append(p + a / (a - b) * (q - p))
        for k in range(1, len(polygon) - 1):
            owner.append(g)
            parts.append([polygon[0], polygon[k], polygon[k + 1]])
    return np.array(owner, dtype=int), np.array(parts).reshape(-1, 3, 3)


def _rod_boxes(eye: Eye, rods: np.ndarray, radii: np.ndarray, nearest: float) -> np.ndarray:
    """(r, 4) columns and rows, first and last + 1, that rods (r, 2, 3) may cover."""
    axes = np.array([eye.right, eye.up, eye.forward])
    x, y, z = np.moveaxis(rods @ axes.T, -1, 0).astype(float)
    r = radii[:, None].astype(float)
    if eye.parallel:
        spans = [(value - r, value + r) for value in (x, y)]
        whole = gone = np.zeros(len(rods), dtype=bool)
    else:
        gone, whole = (z + r <= nearest).all(axis=1), (z - r <= nearest).any(axis=1)
        spans = []
        for value in (x, y):
            # tangents from the eye to the circle about (value, z)
            middle, half = np.arctan2(value, z), np.arcsin(np.minimum(r / np.maximum(np.hypot(value, z), 1e-30), 1.0))
            low, high = (np.tan(np.clip(middle + sign * half, -1.57, 1.57)) for sign in (-1.0, 1.0))
            spans.append((low, high))
    (left, right), (down, up) = ((low.min(axis=1), high.max(axis=1)) for low, high in spans)
    box = np.stack([eye.column + eye.scale * left, eye.column + eye.scale * right,
                    eye.row - eye.scale * up, eye.row - eye.scale * down], axis=1)  # fmt: skip
    box[whole] = [0, eye.width, 0, eye.height]
    box[gone] = 0
    most = np.array([eye.width, eye.width, eye.height, eye.height])
    box = np.clip(np.where([True, False, True, False], np.floor(box), np.ceil(box)), 0, most).astype(np.int32)
    box[(box[:, 0] >= box[:, 1]) | (box[:, 2] >= box[:, 3])] = 0
    return box


def _bands(boxes: np.ndarray, height: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the parts of each band start (bands + 1,), and the parts, in order within a band."""
    seen = np.flatnonzero(boxes[:, 3] > boxes[:, 2])
    first, last = boxes[seen, 2] // BAND, (boxes[seen, 3] - 1) // BAND
    spans = last - first + 1
    order = np.repeat(seen, spans)
    band = np.repeat(first, spans) + np.arange(len(order)) - np.repeat(np.cumsum(spans) - spans, spans)
    by_band = np.argsort(band, kind="stable")
    return np.searchsorted(band[by_band], np.arange(-(-height // BAND) + 1)), order[by_band]


def _cofactors(maps: np.ndarray) -> np.ndarray:
    """(k, 3, 3) matrices that turn normals as maps (k, 3, 3) turn surfaces, up to a positive factor."""
    a, b, c = np.moveaxis(maps, 2, 0)
    sign = np.sign(np.einsum("ki,ki->k", a, np.cross(b, c)))
    return np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], axis=2) * sign[:, None, None]


def _longer(array: wp.array, more: int) -> wp.array:
    """The array with room for more rows at its end."""
    out = wp.zeros(len(array) + more, dtype=array.dtype, device="cpu")
    wp.copy(out, array)
    return out


def _vectors(rows: np.ndarray) -> wp.array:
    return wp.array(np.ascontiguousarray(rows, dtype=np.float32).reshape(-1, 3), dtype=wp.vec3, device="cpu")


def _whole(values: np.ndarray) -> wp.array:
    return wp.array(np.ascontiguousarray(values, dtype=np.int32), dtype=int, device="cpu")


def _stacked(parts: list[np.ndarray]) -> np.ndarray:
    """(3 f, 3) corners of all triangles (f, 3, 3)."""
    return np.concatenate([np.zeros((0, 3)), *(one.reshape(-1, 3) for one in parts)])
