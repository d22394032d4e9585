"""Cameras of pictures: from a scene's `[camera]`, the command line, and computed defaults."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from abd.pictures.cast import Cast, Moment
from abd.scene.schema.schema import CameraSpec

DISTANCE_MARGIN = 1.06
"""Ratio of the camera distance to the distance at which everything just fits."""
FOLLOWED_RADII = 5.0
"""Visible radius around a followed body, in radii of the body."""
LARGEST_STATIC = 3.0
"""Largest radius of a static body that must be visible, relative to the extent of all moving bodies."""
OUTLIER_DISTANCE = 8.0
"""Largest distance from the middle, in median distances, of bodies that must be visible."""


@dataclass(frozen=True)
class Lens:
    """A camera at one instant, of a picture in pixels; `parallel` for parallel projection, as for the sun.

    eye: (3,) position [m]; axes: (3, 3) rows right, up, forward; scale: pixels per unit of tangent, or per metre if parallel.
    """

    eye: np.ndarray
    axes: np.ndarray
    scale: float
    width: int
    height: int
    parallel: bool = False

    def local(self, points: np.ndarray) -> np.ndarray:
        """(..., 3) world points (..., 3) in camera axes: right, up, and depth [m]."""
        return np.einsum("...j,ij->...i", points - self.eye, self.axes)

    def seen(self, points: np.ndarray) -> np.ndarray:
        """(..., 3) columns, rows and depths [m] of world points (..., 3)."""
        x, y, z = np.moveaxis(self.local(points), -1, 0)
        factor = self.scale if self.parallel else self.scale / np.where(z == 0.0, np.inf, z)
        return np.stack([0.5 * self.width + factor * x, 0.5 * self.height - factor * y, z], axis=-1)


class Camera:
    """Camera of a scene or a user; missing values are computed from the visible bodies.

    Args:
        view: keys of the table camera; cast: drawn objects.
        moments: instants that must fit into the picture.
        size: width and height in pixels; covered: fraction of the width, at the right, that a panel covers.

    Attributes:
        middle, extent: (3,) centre and diagonal [m] of the bounding box of all bodies.
        cell: grid size for a scene of this size, a power of ten [m].

    Raises:
        PictureError: there is no body with the name to follow.
    """

    def __init__(self, view: CameraSpec, cast: Cast, moments: list[Moment], size: tuple[int, int], covered: float = 0.0):
        self.view, self.cast, self.size, self.covered = view, cast, size, covered
        self.followed = cast.index(view.follow) if view.follow else None
        points, radii = (np.concatenate(parts) for parts in zip(*(_visible_bounds(cast, one) for one in moments)))
        low, high = (points - radii[:, None]).min(axis=0), (points + radii[:, None]).max(axis=0)
        self.middle, self.extent = 0.5 * (low + high), float(np.linalg.norm(high - low)) or 1.0
        self.cell = float(10.0 ** np.floor(np.log10(self.extent / 2.5)))
        if self.followed is not None:
            center, radius = self.place(moments[0])
            points, radii = center[None], np.array([FOLLOWED_RADII * (radius or _median_radius(radii))])
        self._focus = points.min(axis=0), points.max(axis=0)
        self._points, self._radii = points, radii
        self._known: dict[float, Lens] = {}

    def place(self, moment: Moment) -> tuple[np.ndarray, float]:
        """Centre (3,) and radius of the bounding ball of the followed body."""
        middle, radius = self.cast.bounding_balls(moment.transform)
        return middle[self.followed], float(radius[self.followed])

    def lens(self, moment: Moment, progress: float = 0.0) -> Lens:
        """Camera at one instant; `progress` in the film, 0 to 1, determines the orbit."""
        turn = self.view.orbit_deg * progress
        if turn not in self._known:
            self._known[turn] = self._lens(np.radians(turn))
        lens = self._known[turn]
        if self.followed is None:
            return lens
        return replace(lens, eye=lens.eye + self.place(moment)[0] - self._points[0])

    def _lens(self, turn: float) -> Lens:
        """Camera after an orbit angle [rad], with a followed body at its initial position."""
        view, (width, height) = self.view, self.size
        focal = 1.0 / np.tan(np.radians(0.5 * view.fov_deg))
        low, high = self._focus
        middle = 0.5 * (low + high) if view.target is None else np.array(view.target, dtype=float)
        if view.position is None:
            azimuth, rise = np.radians(view.azimuth_deg) + turn, np.radians(view.elevation_deg)
            axes = axes_of(-np.array([np.cos(rise) * np.cos(azimuth), np.cos(rise) * np.sin(azimuth), np.sin(rise)]))
            eye = self._fitting_eye(middle, axes, focal)
        else:
            (x, y, z), cos, sin = np.array(view.position) - middle, np.cos(turn), np.sin(turn)
            sight = -np.array([cos * x - sin * y, sin * x + cos * y, z])
            length = np.linalg.norm(sight)
            axes = axes_of(sight / length if length > 0.0 else np.array([1.0, 0.0, 0.0]))
            eye, focal = middle - sight, focal * view.zoom
        return Lens(eye, axes, 0.5 * height * focal, width, height)

    def _fitting_eye(self, middle: np.ndarray, axes: np.ndarray, focal: float) -> np.ndarray:
        """(3,) eye position that shows all bodies, centred in the part of the picture that is not covered.

        A target or a followed body is in the centre of this part."""
        (width, height), points, radii = self.size, self._points, self._radii
        # tangents of the angles between the axis of the camera and the sides of the free part
        left, upper = width / height / focal, 1.0 / focal
        right, center = (1.0 - 2.0 * self.covered) * left, -self.covered * left
        fixed = middle if self.view.target is not None or self.followed is not None else None
        for _ in range(8):
            x, y, z = np.einsum("ij,kj->ik", axes, points - middle)
            # a ball of radius r about (x, y, z) is in the picture from a distance of (|y| + r hypot(1, upper)) / upper - z
            sides = (-x, left), (x, right), (np.abs(y), upper)
            over = np.max([(c + radii * np.hypot(1.0, side)) / side for c, side in sides], axis=0) - z
            distance = DISTANCE_MARGIN * float(over.max()) / self.view.zoom
            if fixed is not None:
                middle = fixed - center * distance * axes[0]
                continue
            depth = np.maximum(z + distance, 1e-3 * distance)
            across, along = (0.5 * (((c - radii) / depth).min() + ((c + radii) / depth).max()) for c in (x, y))
            middle = middle + distance * ((across - center) * axes[0] + along * axes[1])
        return middle - axes[2] * distance


def axes_of(forward: np.ndarray) -> np.ndarray:
    """(3, 3) rows right, up, forward; z is up in the picture unless it is the viewing direction."""
    up = np.array([0.0, 0.0, 1.0]) if abs(forward[2]) < 0.999 else np.array([0.0, 1.0, 0.0])
    right = np.cross(forward, up)
    right /= np.linalg.norm(right)
    return np.array([right, np.cross(right, forward), forward])


def _visible_bounds(cast: Cast, moment: Moment) -> tuple[np.ndarray, np.ndarray]:
    """Points (k, 3) and radii (k,) that must be visible at one instant: corners of the bounding boxes of bodies.

    Bodies far from all others, and ground much larger than the moving bodies, are excluded."""
    middle, radius = cast.bounding_balls(moment.transform)
    chosen = ~cast.is_plane & np.isfinite(middle).all(axis=1)
    moves = chosen & (cast.kind != "static")
    if moves.any():
        reach = LARGEST_STATIC * (np.linalg.norm(np.ptp(middle[moves], axis=0)) + 2.0 * radius[moves].max())
        chosen &= moves | (radius < reach)
    if not chosen.any():
        foot = cast.planes[0, :3] * cast.planes[0, 3] if len(cast.planes) else np.zeros(3)
        return foot[None], np.ones(1)
    index = np.flatnonzero(chosen)
    center = np.median(middle[index], axis=0)
    away = np.linalg.norm(middle[index] - center, axis=1)
    limit = OUTLIER_DISTANCE * (np.quantile(away, 0.8) + np.median(radius[index]))
    index = index[away <= limit] if limit > 0.0 else index
    bare, boxed = index[cast.shape[index] < 0], index[cast.shape[index] >= 0]
    size = max(0.02 * _median_radius(radius[index]) or 0.1, 0.1 * np.ptp(middle[index], axis=0).max())
    corners = np.stack([cast.boxes[boxed][:, sides, range(3)] for sides in np.ndindex(2, 2, 2)], axis=1)
    placed = np.einsum("nij,ncj->nci", moment.transform[boxed, :3, :3], corners) + moment.transform[boxed, None, :3, 3]
    points = np.concatenate([placed.reshape(-1, 3), middle[bare]])
    return points, np.concatenate([np.zeros(8 * len(boxed)), np.full(len(bare), size)])


def _median_radius(radii: np.ndarray) -> float:
    """Median of the positive radii; 0 without any."""
    some = radii[radii > 0.0]
    return float(np.median(some)) if len(some) else 0.0
