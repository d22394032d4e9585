"""Symbols of joints, ropes, springs, contacts and bodies without a surface: rods, balls, arrows, triangles."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

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
    """Symbols in world coordinates, drawn in addition to the bodies.

    Attributes:
        rods: (r, 2, 3) segments with round ends [m], balls if both ends are equal; radius: (r,); rod_colors: (r, 4).
        arrows: (a, 2, 3) from foot to tip; arrow_radius: (a,) of the shaft; arrow_colors: (a, 4).
        triangles: (t, 3, 3), two-sided; triangle_colors: (t, 4).
    """

    rods: np.ndarray = field(default_factory=partial(np.zeros, (0, 2, 3)))
    radius: np.ndarray = field(default_factory=partial(np.zeros, (0,)))
    rod_colors: np.ndarray = field(default_factory=partial(np.zeros, (0, 4)))
    arrows: np.ndarray = field(default_factory=partial(np.zeros, (0, 2, 3)))
    arrow_radius: np.ndarray = field(default_factory=partial(np.zeros, (0,)))
    arrow_colors: np.ndarray = field(default_factory=partial(np.zeros, (0, 4)))
    triangles: np.ndarray = field(default_factory=partial(np.zeros, (0, 3, 3)))
    triangle_colors: np.ndarray = field(default_factory=partial(np.zeros, (0, 4)))

    @classmethod
    def joined(cls, parts: list[Symbols]) -> Symbols:
        """Concatenation of symbols."""
        return cls(*(np.concatenate([getattr(one, name) for one in [cls(), *parts]]) for name in cls.__annotations__))

    def arrow_parts(self) -> tuple[np.ndarray, np.ndarray]:
        """Shafts (a, 2, 3), and heads (a, 2, 3) from neck to tip, `HEAD` times as wide."""
        foot, tip = self.arrows[:, 0], self.arrows[:, 1]
        length = np.linalg.norm(tip - foot, axis=1, keepdims=True)
        neck = tip - unit(tip - foot) * np.minimum(SLIM * HEAD * self.arrow_radius[:, None], 0.6 * length)
        return np.stack([foot, neck], axis=1), np.stack([neck, tip], axis=1)


def symbols(cast: Cast, moment: Moment, joints: bool = True, contacts: float | None = None) -> Symbols:
    """All symbols at one instant.

    Args:
        joints: whether joints, ropes and springs are drawn.
        contacts: length of an arrow per force [m/N]; None for no arrows.
    """
    parts = [_points(cast, moment)]
    if joints:
        for group, active in zip(cast.joints, moment.active):
            if group.drawing.get("show", True) and active.any():
                parts += _joint_symbols(group, active, moment.transform, cast)
    if contacts is not None and moment.contacts is not None:
        parts.append(_forces(moment.contacts, contacts, _median_diameter(cast)))
    return Symbols.joined(parts)


def force_scale(cast: Cast, moments: list[Moment]) -> float | None:
    """Length of an arrow per force [m/N]; large contact forces are 1.5 median diameters long. None without forces."""
    forces = [one.contacts.force for one in moments if one.contacts is not None]
    sizes = np.linalg.norm(np.concatenate([np.zeros((0, 3)), *forces]), axis=1)
    sizes = sizes[sizes > 0.0]
    return 1.5 * _median_diameter(cast) / float(np.quantile(sizes, 0.95)) if len(sizes) else None


def _median_diameter(cast: Cast) -> float:
    """Median diameter of bodies [m]."""
    return cast.median_diameter or 1.0


def _joint_symbols(group: JointGroup, active: np.ndarray, transform: np.ndarray, cast: Cast) -> list[Symbols]:
    """Symbols of the active joints of a group."""
    D, C = (frames[active] for frames in group.frames(transform))
    a, b, drawing = D[:, :3, 3], C[:, :3, 3], group.drawing
    thin, pin_length = _sizes(group, active, cast)

    def given(key: str, otherwise: np.ndarray) -> np.ndarray:
        """(k,) a length of the drawing, or a default."""
        return np.full(len(thin), float(drawing[key])) if key in drawing else otherwise

    def width(fraction: float) -> np.ndarray:
        """(k,) radius of a rope, a rod or a spring."""
        return given("shaft_radius", np.minimum(fraction * thin, 0.02 * _median_diameter(cast)))

    def shaft(middle: np.ndarray, length: np.ndarray) -> Symbols:
        """Pins along z of D."""
        half = D[:, :3, 2] * (0.5 * length)[:, None]
        ends = np.stack([middle - half, middle + half], axis=1)
        return draw_rods(ends, given("shaft_radius", PIN * thin), color)

    parts, symbol = [], group.kind.SYMBOL
    color, faint = (group.color(colors.JOINT * [1.0, 1.0, 1.0, opacity]) for opacity in (1.0, 0.35))
    if symbol == "rope":
        parts.append(draw_ropes(a, b, float(group.parameters.get("distance", 0.0)), width(0.12), group.color(colors.ROPE)))
    elif symbol == "rod":
        parts.append(draw_rods(np.stack([a, b], axis=1), width(0.12), color))
    elif symbol == "spring":
        parts.append(draw_springs(a, b, width(0.25), group.color(colors.SPRING)))
    elif symbol == "pin":
        parts.append(shaft(b, given("shaft_length", pin_length)))
    elif symbol == "ball" or "joint_radius" in drawing:
        parts.append(draw_rods(np.stack([b, b], axis=1), given("joint_radius", BALL * thin), color))
    if symbol != "pin" and drawing.get("shaft_length"):
        parts.append(shaft(b, given("shaft_length", thin)))
    if drawing.get("plane_size"):
        half = 0.5 * float(drawing["plane_size"])
        corners = half * np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])
        triangles = _transformed(corners, D)[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3, 3)
        parts.append(draw_triangles(triangles, faint))
    if drawing.get("slot_width") and "slot_range" in drawing:
        parts += draw_slots(D, drawing, color)
    if drawing.get("draw_ellipsoid") and "radii" in group.parameters:
        vertices, faces = sphere(1.0, 3)
        triangles = _transformed(vertices * np.asarray(group.parameters["radii"]), D)[:, faces].reshape(-1, 3, 3)
        parts.append(draw_triangles(triangles, faint))
    for key, frames in (("draw_frame_d", D), ("draw_frame_c", C)):
        if drawing.get(key, "off") != "off":
            parts += draw_axes(frames, given("axis_length", 1.2 * thin), drawing[key] == "arrow")
    return parts


def _sizes(group: JointGroup, active: np.ndarray, cast: Cast) -> tuple[np.ndarray, np.ndarray]:
    """Thinnest extent [m] of the smaller body (k,) at the active joints of a group, and lengths of pins (k,).

    A pin is slightly longer than the extent of the smaller body along it.
    """
    ends = ((group.parent[active], group.parent_frame[active]), (group.child[active], group.child_frame[active]))
    extents = np.stack([np.ptp(cast.boxes[body], axis=1) for body, _ in ends])
    along = np.stack([np.einsum("ki,ki->k", e, np.abs(f[:, :3, 2])) for e, (_, f) in zip(extents, ends)])
    thin, length = (np.where(np.isfinite(one), one, np.inf).min(axis=0) for one in (extents.min(axis=2), along))
    thin = np.where(np.isfinite(thin) & (thin > 0.0), thin, DEFAULT_THICKNESS * _median_diameter(cast))
    return thin, np.where(np.isfinite(length), np.minimum(1.12 * length, LONGEST_PIN * thin), 2.0 * thin)


def _forces(contacts: Contacts, scale: float, usual: float) -> Symbols:
    """Contact forces as arrows from their points, at most four median diameters long."""
    chosen = np.linalg.norm(contacts.force, axis=1) * scale > 0.02 * usual
    foot, force = contacts.point[chosen], contacts.force[chosen] * scale
    force *= np.minimum(1.0, 4.0 * usual / np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-30))
    return draw_arrows(np.stack([foot, foot + force], axis=1), 0.018 * usual, colors.FORCE)


def _points(cast: Cast, moment: Moment) -> Symbols:
    """Bodies without a surface as balls in the colours of bodies."""
    chosen = (cast.shape < 0) & ~cast.is_plane
    at = moment.transform[chosen, :3, 3]
    radius = 0.15 * _median_diameter(cast)
    if len(at) and not (cast.shape >= 0).any():
        radius = 0.04 * np.ptp(at, axis=0).max() or 0.1
    return draw_rods(np.stack([at, at], axis=1), radius, cast.colors[chosen])


def draw_rods(rods: np.ndarray, radius, color: np.ndarray) -> Symbols:
    """Rods (k, 2, 3) with radii (k,) or scalar, and colours with opacity (k, 4) or (4,)."""
    return Symbols(rods=rods, radius=_broadcast(radius, rods), rod_colors=_broadcast(color, rods, 4))


def draw_arrows(arrows: np.ndarray, radius, color: np.ndarray) -> Symbols:
    """Arrows (k, 2, 3) with shaft radii (k,) or scalar, and colours with opacity (k, 4) or (4,)."""
    return Symbols(arrows=arrows, arrow_radius=_broadcast(radius, arrows), arrow_colors=_broadcast(color, arrows, 4))


def draw_triangles(triangles: np.ndarray, color: np.ndarray) -> Symbols:
    """Triangles (k, 3, 3) of one colour with opacity (4,)."""
    return Symbols(triangles=triangles, triangle_colors=_broadcast(color, triangles, 4))


def draw_lines(points: np.ndarray, radius: np.ndarray, color: np.ndarray) -> Symbols:
    """Polylines (k, p, 3) of radii (k,)."""
    rods = np.stack([points[:, :-1], points[:, 1:]], axis=2).reshape(-1, 2, 3)
    return draw_rods(rods, np.repeat(radius, points.shape[1] - 1), color)


def draw_ropes(a: np.ndarray, b: np.ndarray, length: float, radius: np.ndarray, color: np.ndarray) -> Symbols:
    """Ropes of a length [m] between points (k, 3): straight, or a catenary of this length.

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
    return draw_lines(points, radius, color)


def draw_springs(a: np.ndarray, b: np.ndarray, radius: np.ndarray, color: np.ndarray) -> Symbols:
    """Coils of `COILS` turns between points (k, 3)."""
    span = b - a
    x, y = perpendicular(unit(span))
    s = np.linspace(0.0, 1.0, COILS * STEPS + 1)
    wide = 4.0 * radius[:, None] * np.clip(np.minimum(s, 1.0 - s) * 2.0 * COILS, 0.0, 1.0)
    phi = 2.0 * np.pi * COILS * s
    turn = np.cos(phi)[:, None] * x[:, None] + np.sin(phi)[:, None] * y[:, None]
    along = 0.06 + 0.88 * s
    along[0], along[-1] = 0.0, 1.0
    return draw_lines(a[:, None] + along[:, None] * span[:, None] + wide[:, :, None] * turn, radius, color)


def draw_slots(D: np.ndarray, drawing: dict, color: np.ndarray) -> list[Symbols]:
    """Slots along x of frames (k, 4, 4) as outlines of the given width, above and below by half the depth."""
    first, last = (float(x) for x in drawing["slot_range"])
    half, depth = 0.5 * float(drawing["slot_width"]), 0.5 * float(drawing.get("slot_depth", 0.0))
    angle = np.linspace(-0.5 * np.pi, 0.5 * np.pi, LINES)
    right = np.stack([last + half * np.cos(angle), half * np.sin(angle)], axis=1)
    left = np.stack([first - half * np.cos(angle), -half * np.sin(angle)], axis=1)
    outline = np.concatenate([right, left, right[:1]])
    parts = []
    for height in sorted({-depth, depth}):
        local = np.column_stack([outline, np.full(len(outline), height)])
        parts.append(draw_lines(_transformed(local, D), np.full(len(D), 0.06 * half), color))
    return parts


def draw_axes(frames: np.ndarray, length: np.ndarray, arrows: bool) -> list[Symbols]:
    """x, y and z axes of frames (k, 4, 4) in red, green and blue."""
    draw, radius, origin = (draw_arrows, 0.035, frames[:, :3, 3]) if arrows else (draw_rods, 0.02, frames[:, :3, 3])
    ends = [np.stack([origin, origin + length[:, None] * frames[:, :3, axis]], axis=1) for axis in range(3)]
    return [draw(one, radius * length, color) for one, color in zip(ends, colors.AXES)]


def _broadcast(value, things: np.ndarray, *shape: int) -> np.ndarray:
    """Values broadcast to one per item."""
    return np.broadcast_to(np.asarray(value, dtype=float), (len(things), *shape))


def _transformed(points: np.ndarray, frames: np.ndarray) -> np.ndarray:
    """(k, c, 3) world positions of points (c, 3) of frames (k, 4, 4)."""
    return points @ np.swapaxes(frames[:, :3, :3], 1, 2) + frames[:, None, :3, 3]
