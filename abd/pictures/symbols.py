"""Symbols of joints, ropes, springs, contacts and bodies without a surface: rods, balls, arrows, triangles."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from abd import colors
from abd.pictures.cast import Cast, Contacts, JointGroup, Moment
from abd.pictures.shapes import perpendicular, unit
from abd.scene.geometry.shapes import sphere

LINES = 18
"""Segments of a slack rope and of the round end of a slot."""
COILS, STEPS = 9, 10
"""Turns of a spring, and segments per turn."""
HEAD, SLIM = 2.6, 2.6
"""Radius of an arrow head over that of its shaft, and its length over its radius."""
PIN, BALL = 0.13, 0.30
"""Radius of the pin of a hinge and of the ball of a spherical joint, in thinnest extents of the smaller body."""
LONGEST_PIN = 3.0
"""Largest length of a pin, in thinnest extents of the smaller body."""
DEFAULT_THICKNESS = 0.05
"""Assumed thickness at joints between bodies without a surface, in median diameters."""


@dataclass(frozen=True)
class Symbols:
    """Symbols in world coordinates, drawn in addition to the bodies, as lists of arrays.

    Attributes:
        rods: segments (k, 2, 3) with round ends [m], balls if both ends are equal; radii (k,); colours with opacity (k, 4).
        cones: heads of arrows from neck to tip, likewise.
        triangles: (k, 3, 3), two-sided; colours (k, 4).
    """

    rods: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    cones: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    triangles: list[tuple[np.ndarray, ...]] = field(default_factory=list)

    def add_rods(self, ends: np.ndarray, radius, color: np.ndarray) -> None:
        """Add rods (k, 2, 3) with radii (k,) or scalar, and colours (k, 4) or (4,)."""
        self.rods.append((ends, _broadcast(radius, ends), _broadcast(color, ends, 4)))

    def add_balls(self, centers: np.ndarray, radius, color: np.ndarray) -> None:
        """Add balls (k, 3)."""
        self.add_rods(np.stack([centers, centers], axis=1), radius, color)

    def add_lines(self, points: np.ndarray, radius: np.ndarray, color: np.ndarray) -> None:
        """Add polylines (k, p, 3) of radii (k,)."""
        rods = np.stack([points[:, :-1], points[:, 1:]], axis=2).reshape(-1, 2, 3)
        self.add_rods(rods, np.repeat(radius, points.shape[1] - 1), color)

    def add_arrows(self, arrows: np.ndarray, radius, color: np.ndarray) -> None:
        """Add arrows (k, 2, 3) from foot to tip with shaft radii (k,) or scalar; heads are `HEAD` times as wide."""
        foot, tip, radius = arrows[:, 0], arrows[:, 1], _broadcast(radius, arrows)
        length = np.linalg.norm(tip - foot, axis=1, keepdims=True)
        neck = tip - unit(tip - foot) * np.minimum(SLIM * HEAD * radius[:, None], 0.6 * length)
        self.add_rods(np.stack([foot, neck], axis=1), radius, color)
        self.cones.append((np.stack([neck, tip], axis=1), HEAD * radius, _broadcast(color, arrows, 4)))

    def add_triangles(self, triangles: np.ndarray, color: np.ndarray) -> None:
        """Add triangles (k, 3, 3) of one colour (4,)."""
        self.triangles.append((triangles, _broadcast(color, triangles, 4)))


def symbols(cast: Cast, moment: Moment, joints: bool = True, contacts: float | None = None) -> Symbols:
    """All symbols at one instant, of joints if requested; contacts: length of arrows per force [m/N], None for none."""
    out = Symbols()
    _add_points(out, cast, moment)
    if joints:
        for group, active in zip(cast.joints, moment.active):
            if group.drawing.get("show", True) and active.any():
                _add_joints(out, group, active, moment.transform, cast)
    if contacts is not None and moment.contacts is not None:
        _add_forces(out, moment.contacts, contacts, _median_diameter(cast))
    return out


def force_scale(cast: Cast, moments: list[Moment]) -> float | None:
    """Length of an arrow per force [m/N]; large contact forces are 1.5 median diameters long. None without forces."""
    forces = [one.contacts.force for one in moments if one.contacts is not None]
    sizes = np.linalg.norm(np.concatenate([np.zeros((0, 3)), *forces]), axis=1)
    sizes = sizes[sizes > 0.0]
    return 1.5 * _median_diameter(cast) / float(np.quantile(sizes, 0.95)) if len(sizes) else None


def _median_diameter(cast: Cast) -> float:
    """Median diameter of bodies [m]."""
    return cast.median_diameter or 1.0


def _add_joints(out: Symbols, group: JointGroup, active: np.ndarray, transform: np.ndarray, cast: Cast) -> None:
    """Add the active joints of a group."""
    D, C = (frames[active] for frames in group.frames(transform))
    a, b, drawing = D[:, :3, 3], C[:, :3, 3], group.drawing
    thin, pin_length = _sizes(group, active, cast)

    def given(key: str, otherwise: np.ndarray) -> np.ndarray:
        """(k,) a length of the drawing, or a default."""
        return np.full(len(thin), float(drawing[key])) if key in drawing else otherwise

    def width(fraction: float) -> np.ndarray:
        """(k,) radius of a rope, a rod or a spring."""
        return given("shaft_radius", np.minimum(fraction * thin, 0.02 * _median_diameter(cast)))

    symbol = group.kind.SYMBOL
    color, faint = (group.color(colors.JOINT * [1.0, 1.0, 1.0, opacity]) for opacity in (1.0, 0.35))
    if symbol == "rope":
        points = catenaries(a, b, float(group.parameters.get("distance", 0.0)))
        out.add_lines(points, width(0.12), group.color(colors.ROPE))
    elif symbol == "rod":
        out.add_rods(np.stack([a, b], axis=1), width(0.12), color)
    elif symbol == "spring":
        out.add_lines(coils(a, b, width(0.25)), width(0.25), group.color(colors.SPRING))
    elif symbol != "pin" and (symbol == "ball" or "joint_radius" in drawing):
        out.add_balls(b, given("joint_radius", BALL * thin), color)
    if symbol == "pin" or drawing.get("shaft_length"):
        half = D[:, :3, 2] * (0.5 * given("shaft_length", pin_length))[:, None]
        out.add_rods(np.stack([b - half, b + half], axis=1), given("shaft_radius", PIN * thin), color)
    if drawing.get("plane_size"):
        half = 0.5 * float(drawing["plane_size"])
        corners = half * np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])
        out.add_triangles(_transformed(corners, D)[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3, 3), faint)
    if drawing.get("slot_width") and "slot_range" in drawing:
        _add_slots(out, D, drawing, color)
    if drawing.get("draw_ellipsoid") and "radii" in group.parameters:
        vertices, faces = sphere(1.0, 3)
        triangles = _transformed(vertices * np.asarray(group.parameters["radii"]), D)[:, faces].reshape(-1, 3, 3)
        out.add_triangles(triangles, faint)
    for key, frames in (("draw_frame_d", D), ("draw_frame_c", C)):
        if drawing.get(key, "off") != "off":
            _add_axes(out, frames, given("axis_length", 1.2 * thin), drawing[key] == "arrow")


def _sizes(group: JointGroup, active: np.ndarray, cast: Cast) -> tuple[np.ndarray, np.ndarray]:
    """Thinnest extent (k,) [m] of the smaller body at the active joints of a group, and lengths (k,) of their pins."""
    ends = ((group.parent[active], group.parent_frame[active]), (group.child[active], group.child_frame[active]))
    extents = np.stack([np.ptp(cast.boxes[body], axis=1) for body, _ in ends])
    along = np.stack([np.einsum("ki,ki->k", e, np.abs(f[:, :3, 2])) for e, (_, f) in zip(extents, ends)])
    thin, length = (np.where(np.isfinite(one), one, np.inf).min(axis=0) for one in (extents.min(axis=2), along))
    thin = np.where(np.isfinite(thin) & (thin > 0.0), thin, DEFAULT_THICKNESS * _median_diameter(cast))
    return thin, np.where(np.isfinite(length), np.minimum(1.12 * length, LONGEST_PIN * thin), 2.0 * thin)


def _add_forces(out: Symbols, contacts: Contacts, scale: float, usual: float) -> None:
    """Add contact forces as arrows from their points, at most four median diameters long."""
    chosen = np.linalg.norm(contacts.force, axis=1) * scale > 0.02 * usual
    foot, force = contacts.point[chosen], contacts.force[chosen] * scale
    force *= np.minimum(1.0, 4.0 * usual / np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-30))
    out.add_arrows(np.stack([foot, foot + force], axis=1), 0.018 * usual, colors.FORCE)


def _add_points(out: Symbols, cast: Cast, moment: Moment) -> None:
    """Add bodies without a surface as balls in the colours of bodies."""
    chosen = (cast.shape < 0) & ~cast.is_plane
    at = moment.transform[chosen, :3, 3]
    radius = 0.15 * _median_diameter(cast)
    if len(at) and not (cast.shape >= 0).any():
        radius = 0.04 * np.ptp(at, axis=0).max() or 0.1
    out.add_balls(at, radius, cast.colors[chosen])


def catenaries(a: np.ndarray, b: np.ndarray, length: float) -> np.ndarray:
    """(k, p, 3) points of ropes of a length [m] between points (k, 3): straight, or a catenary of this length.

    With the horizontal distance d and the height v between the ends, its parameter c solves
    ``sqrt(L^2 - v^2) = 2 c sinh(d / 2c)``; points are equidistant along the curve.
    """
    span, fraction = b - a, np.linspace(0.0, 1.0, LINES + 1)
    chord, v = np.linalg.norm(span, axis=1), span[:, 2]
    points = a[:, None] + fraction[:, None] * span[:, None]
    slack = np.flatnonzero(length > chord * (1.0 + 1e-6))
    if len(slack):
        flat = np.hypot(span[slack, 0], span[slack, 1])
        # vertically aligned ends: two adjacent strands
        d, v, s = np.maximum(flat, 1e-3 * length), v[slack], length * fraction
        ratio = np.sqrt(length * length - v * v) / d
        low, high = np.full(len(d), 1e-9), np.full(len(d), 20.0)
        for _ in range(60):
            middle = 0.5 * (low + high)
            above = np.sinh(middle) / middle > ratio
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        c = d / (2.0 * low)
        lowest = 0.5 * d - c * np.arctanh(v / length)
        first = c * np.sinh(lowest / c)
        along = (lowest / c)[:, None] + np.arcsinh((s - first[:, None]) / c[:, None])
        x = c[:, None] * along * (flat / d)[:, None]
        z = np.hypot(c[:, None], s - first[:, None]) - np.hypot(c, first)[:, None]
        across = np.divide(span[slack, :2], flat[:, None], out=np.zeros((len(d), 2)), where=flat[:, None] > 0.0)
        curve = np.concatenate([x[:, :, None] * across[:, None], z[:, :, None]], axis=2)
        # distribute the rounding error at the far end along the curve
        curve += fraction[None, :, None] * (span[slack] - curve[:, -1])[:, None]
        points[slack] = a[slack, None] + curve
    return points


def coils(a: np.ndarray, b: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """(k, p, 3) points of coils of `COILS` turns between points (k, 3), for wires of radii (k,)."""
    span = b - a
    x, y = perpendicular(unit(span))
    s = np.linspace(0.0, 1.0, COILS * STEPS + 1)
    wide = 4.0 * radius[:, None] * np.clip(np.minimum(s, 1.0 - s) * 2.0 * COILS, 0.0, 1.0)
    phi = 2.0 * np.pi * COILS * s
    turn = np.cos(phi)[:, None] * x[:, None] + np.sin(phi)[:, None] * y[:, None]
    along = 0.06 + 0.88 * s
    along[0], along[-1] = 0.0, 1.0
    return a[:, None] + along[:, None] * span[:, None] + wide[:, :, None] * turn


def _add_slots(out: Symbols, D: np.ndarray, drawing: dict, color: np.ndarray) -> None:
    """Add slots along x of frames (k, 4, 4) as outlines of the given width, above and below by half the depth."""
    first, last = (float(x) for x in drawing["slot_range"])
    half, depth = 0.5 * float(drawing["slot_width"]), 0.5 * float(drawing.get("slot_depth", 0.0))
    angle = np.linspace(-0.5 * np.pi, 0.5 * np.pi, LINES)
    right = np.stack([last + half * np.cos(angle), half * np.sin(angle)], axis=1)
    left = np.stack([first - half * np.cos(angle), -half * np.sin(angle)], axis=1)
    outline = np.concatenate([right, left, right[:1]])
    for height in sorted({-depth, depth}):
        local = np.column_stack([outline, np.full(len(outline), height)])
        out.add_lines(_transformed(local, D), np.full(len(D), 0.06 * half), color)


def _add_axes(out: Symbols, frames: np.ndarray, length: np.ndarray, arrows: bool) -> None:
    """Add x, y and z axes of frames (k, 4, 4) in red, green and blue."""
    add, radius, origin = (out.add_arrows, 0.035, frames[:, :3, 3]) if arrows else (out.add_rods, 0.02, frames[:, :3, 3])
    for axis, color in enumerate(colors.AXES):
        add(np.stack([origin, origin + length[:, None] * frames[:, :3, axis]], axis=1), radius * length, color)


def _broadcast(value, things: np.ndarray, *shape: int) -> np.ndarray:
    """Values broadcast to one per item."""
    return np.broadcast_to(np.asarray(value, dtype=float), (len(things), *shape))


def _transformed(points: np.ndarray, frames: np.ndarray) -> np.ndarray:
    """(k, c, 3) world positions of points (c, 3) of frames (k, 4, 4)."""
    return points @ np.swapaxes(frames[:, :3, :3], 1, 2) + frames[:, None, :3, 3]
