"""Picture of one frame of a run: `python tools/picture.py RUN [--frame K] -o picture.png`.

A small software renderer, so that no display, driver or viewer is needed: depth buffer, perspective, flat shading by
a sun and the sky, shadows on half-spaces. Reads trajectory.h5 alone. Edges and points without triangles and
without a radius are not drawn.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from abd.errors import AbdError
from abd.io.trajectory import Trajectory

SUPERSAMPLING = 2
"""Samples per pixel along each side."""
SUN = np.array([-0.45, -0.55, 0.95]) / np.linalg.norm([-0.45, -0.55, 0.95])
"""Unit vector towards the light."""
SKY_HIGH, SKY_LOW = np.array([0.80, 0.87, 0.95]), np.array([0.97, 0.97, 0.96])
GROUND, STATIC = np.array([0.80, 0.79, 0.76]), np.array([0.55, 0.56, 0.58])
PALETTE = np.array(
    [
        [0.45, 0.65, 0.47],
        [0.91, 0.65, 0.29],
        [0.30, 0.53, 0.67],
        [0.86, 0.42, 0.27],
        [0.60, 0.44, 0.62],
        [0.78, 0.52, 0.42],
        [0.36, 0.43, 0.58],
        [0.71, 0.69, 0.38],
    ]
)
"""Colours of bodies that move, by mesh, linear RGB."""


@dataclass(frozen=True)
class Camera:
    """Perspective camera.

    Attributes:
        eye: (3,) position [m]; axes: (3, 3) rows right, up, forward.
        focal: focal length over half the picture's height.
        width, height: of the picture in samples.
    """

    eye: np.ndarray
    axes: np.ndarray
    focal: float
    width: int
    height: int

    def project(self, points: np.ndarray) -> np.ndarray:
        """(..., 3) column, row and inverse depth [1/m] of world points (..., 3); negative depth is behind the eye."""
        seen = (points - self.eye) @ self.axes.T
        inverse = 1.0 / seen[..., 2]
        scale = 0.5 * self.height * self.focal
        column = 0.5 * self.width + scale * seen[..., 0] * inverse
        row = 0.5 * self.height - scale * seen[..., 1] * inverse
        return np.stack([column, row, inverse], axis=-1)

    def rays(self) -> np.ndarray:
        """(height, width, 3) directions of all samples, of depth 1."""
        scale = 0.5 * self.height * self.focal
        x = (np.arange(self.width) + 0.5 - 0.5 * self.width) / scale
        y = (0.5 * self.height - np.arange(self.height) - 0.5) / scale
        return self.axes[2] + x[None, :, None] * self.axes[0] + y[:, None, None] * self.axes[1]


def looking_at(points: np.ndarray, azimuth: float, elevation: float, zoom: float, size: tuple[int, int]) -> Camera:
    """Camera that has all points (k, 3) in view.

    Args:
        azimuth, elevation: where it stands as seen from the scene [deg]; 0, 0 is on the +x side.
        zoom: 1 fits the points into the picture.
        size: width and height in samples.
    """
    turn, rise = np.radians([azimuth, elevation])
    forward = -np.array([np.cos(rise) * np.cos(turn), np.cos(rise) * np.sin(turn), np.sin(rise)])
    right = np.array([-np.sin(turn), np.cos(turn), 0.0])
    axes = np.array([right, np.cross(right, forward), forward])
    focal, (width, height) = 2.6, size
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    seen = (points - middle) @ axes.T
    # A point at (x, y, z) is in the picture from a distance of focal |y| - z, and likewise for x.
    distance = np.maximum(np.abs(seen[:, 1]), np.abs(seen[:, 0]) * height / width) * focal * 1.05 - seen[:, 2]
    return Camera(middle - forward * distance.max() / zoom, axes, focal, width, height)


class Canvas:
    """Colours (height, width, 3) and inverse depths (height, width) of all samples."""

    def __init__(self, camera: Camera):
        self.camera = camera
        self.rays = camera.rays()
        height = self.rays[..., 2:] / np.linalg.norm(self.rays, axis=2, keepdims=True)
        self.color = SKY_LOW + np.clip(2.0 * height, 0.0, 1.0) * (SKY_HIGH - SKY_LOW)
        self.inverse = np.zeros(self.color.shape[:2])

    def plane(self, normal: np.ndarray, offset: float, triangles: np.ndarray, extent: float) -> None:
        """A half-space with the shadows of triangles (k, 3, 3) on it; it fades away beyond `extent` [m]."""
        rate = self.rays @ normal
        facing = (offset - self.camera.eye @ normal) / np.where(rate == 0.0, np.inf, rate)
        seen = facing > 0.0
        inverse = np.where(seen, 1.0 / np.where(seen, facing, 1.0), 0.0)
        shadow = np.zeros(seen.shape)
        if SUN @ normal > 0.0:
            fallen = triangles - ((triangles @ normal - offset) / (SUN @ normal))[..., None] * SUN
            flat = np.zeros(seen.shape)
            self._fill(fallen, np.ones((len(fallen), 1)), shadow[..., None], flat)
        light = _lit(normal[None])[0] * (1.0 - 0.45 * shadow)
        fade = np.clip(1.6 - np.where(seen, facing, np.inf) / extent, 0.0, 1.0)[..., None]
        nearer = seen & (inverse > self.inverse)
        mixed = fade * GROUND * light[..., None] + (1.0 - fade) * self.color
        self.color[nearer] = mixed[nearer]
        self.inverse[nearer] = inverse[nearer]

    def triangles(self, corners: np.ndarray, colors: np.ndarray, two_sided: np.ndarray) -> None:
        """Triangles (k, 3, 3) [m] of colours (k, 3); back sides are drawn only where `two_sided` (k,)."""
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        away = np.einsum("ij,ij->i", normals, corners[:, 0] - self.camera.eye) > 0.0
        normals[away] *= -1.0
        length = np.linalg.norm(normals, axis=1, keepdims=True)
        drawn = (~away | two_sided) & (length[:, 0] > 0.0)
        shaded = colors * _lit(normals / np.where(length > 0.0, length, 1.0))[:, None]
        self._fill(corners[drawn], shaded[drawn], self.color, self.inverse)

    def _fill(self, corners: np.ndarray, values: np.ndarray, target: np.ndarray, inverse: np.ndarray) -> None:
        """Write values (k, c) into target (height, width, c) wherever a triangle is nearer than `inverse`."""
        projected = self.camera.project(corners)
        height, width = inverse.shape
        low = np.floor(projected[..., :2].min(axis=1)).astype(int).clip(0, [width, height])
        high = np.ceil(projected[..., :2].max(axis=1)).astype(int).clip(0, [width, height])
        inside = (projected[..., 2] > 0.0).all(axis=1) & (low < high).all(axis=1)
        for k in np.flatnonzero(inside):
            (x0, y0), (x1, y1) = low[k], high[k]
            (ax, ay, az), (bx, by, bz), (cx, cy, cz) = projected[k]
            area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
            if area == 0.0:
                continue
            x, y = np.arange(x0, x1) + 0.5, np.arange(y0, y1)[:, None] + 0.5
            b = ((x - ax) * (cy - ay) - (y - ay) * (cx - ax)) / area
            c = ((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / area
            depth = az + b * (bz - az) + c * (cz - az)
            window = (slice(y0, y1), slice(x0, x1))
            covered = (b >= 0.0) & (c >= 0.0) & (b + c <= 1.0) & (depth > inverse[window])
            inverse[window][covered] = depth[covered]
            target[window][covered] = values[k]

    def picture(self) -> np.ndarray:
        """(h, w, 3) samples averaged to pixels, 8 bits per channel."""
        s = SUPERSAMPLING
        height, width, _ = self.color.shape
        pixels = self.color.reshape(height // s, s, width // s, s, 3).mean(axis=(1, 3))
        return np.round(255.0 * np.clip(pixels, 0.0, 1.0)).astype(np.uint8)


def _lit(normals: np.ndarray) -> np.ndarray:
    """(k,) brightness of surfaces with unit normals (k, 3): sun, sky from above, and a little from everywhere."""
    return 0.34 + 0.56 * np.clip(normals @ SUN, 0.0, 1.0) + 0.16 * (0.5 + 0.5 * normals[:, 2])


def draw(
    trajectory: Trajectory,
    frame: int,
    azimuth: float = -60.0,
    elevation: float = 18.0,
    zoom: float = 1.0,
    size: tuple[int, int] = (960, 540),
) -> np.ndarray:
    """(height, width, 3) picture of one frame, 8 bits per channel; -1 is the last frame.

    Raises:
        AbdError: there is no such frame, or nothing to draw.
    """
    if not -len(trajectory) <= frame < len(trajectory):
        raise AbdError(f"there is no frame {frame}: the run has frames 0 to {len(trajectory) - 1}")
    corners, colors, two_sided = _surfaces(trajectory, frame)
    if len(corners) == 0:
        raise AbdError("no body of this run has triangles")
    points = corners.reshape(-1, 3)
    width, height = size
    camera = looking_at(points, azimuth, elevation, zoom, (width * SUPERSAMPLING, height * SUPERSAMPLING))
    canvas = Canvas(camera)
    extent = 3.0 * np.linalg.norm(camera.eye - points.mean(axis=0))
    for plane in trajectory.plane[np.isfinite(trajectory.plane[:, 3])]:
        canvas.plane(plane[:3], plane[3], corners, extent)
    canvas.triangles(corners, colors, two_sided)
    return canvas.picture()


def _surfaces(trajectory: Trajectory, frame: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """World corners (k, 3, 3), colours (k, 3) and whether both sides show (k,) of all triangles."""
    poses = trajectory.transform(frame)
    corners, colors, two_sided = [np.zeros((0, 3, 3))], [np.zeros((0, 3))], [np.zeros(0, dtype=bool)]
    for body, mesh in enumerate(trajectory.mesh):
        vertices, triangles = trajectory.meshes[mesh].drawn if mesh >= 0 else (None, ())
        if len(triangles) == 0:
            continue
        world = vertices @ poses[body, :3, :3].T + poses[body, :3, 3]
        count = len(triangles)
        color = STATIC if trajectory.kind[body] == "static" else PALETTE[mesh % len(PALETTE)]
        # Bodies of one mesh differ a little in brightness, so that a wall shows its stones.
        shade = 0.9 + 0.2 * ((body * 0.61803398875) % 1.0)
        corners.append(world[triangles])
        colors.append(np.repeat((color * shade)[None], count, axis=0))
        two_sided.append(np.full(count, _is_open(triangles)))
    return np.concatenate(corners), np.concatenate(colors), np.concatenate(two_sided)


def _is_open(triangles: np.ndarray) -> bool:
    """Whether some side belongs to one triangle only."""
    sides = np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1)
    return bool((np.unique(sides, axis=0, return_counts=True)[1] == 1).any())


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    return int(width), int(height)


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Picture of one frame of a run.")
    parser.add_argument("run", type=Path, help="directory of a run, or a trajectory file")
    parser.add_argument("--frame", type=int, default=-1, help="number of the frame; negative from the end")
    parser.add_argument("-o", "--output", type=Path, required=True, help="PNG file")
    parser.add_argument("--azimuth", type=float, default=-60.0, help="where the camera stands [deg], 0 is +x")
    parser.add_argument("--elevation", type=float, default=18.0, help="its height [deg]")
    parser.add_argument("--zoom", type=float, default=1.0, help="1 shows everything")
    parser.add_argument("--size", type=_size, default=(960, 540), help="in pixels, such as 960x540")
    options = parser.parse_args(arguments)
    try:
        with Trajectory(options.run) as trajectory:
            view = (options.azimuth, options.elevation, options.zoom, options.size)
            picture = draw(trajectory, options.frame, *view)
    except AbdError as error:
        print(error, file=sys.stderr)
        return 1
    from matplotlib.image import imsave

    imsave(options.output, picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
