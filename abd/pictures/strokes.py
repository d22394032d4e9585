"""What symbols are made of: rods, arrows and triangles, and ropes, springs, planes, slots, ellipsoids and axes out of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd import colors

LINES = 18
"""Pieces of a rope that hangs through, sides of a cone."""
COILS = 9
"""Turns of a spring."""
HEAD = 2.6
"""Radius of the head of an arrow over that of its shaft; it is as many times longer than wide."""
STEPS = 10
"""Pieces of one turn."""


@dataclass(frozen=True)
class Symbols:
    """Symbols in world coordinates that are drawn in addition to the bodies.

    Attributes:
        rods: (r, 2, 3) segments with round ends [m], balls where both ends are one point; radius: (r,); rod_colors: (r, 4).
        arrows: (a, 2, 3) from foot to tip; arrow_radius: (a,) of the shaft; arrow_colors: (a, 4).
        triangles: (t, 3, 3), seen from both sides; triangle_colors: (t, 4).
    """

    rods: np.ndarray
    radius: np.ndarray
    rod_colors: np.ndarray
    arrows: np.ndarray
    arrow_radius: np.ndarray
    arrow_colors: np.ndarray
    triangles: np.ndarray
    triangle_colors: np.ndarray

    @classmethod
    def none(cls) -> Symbols:
        """Nothing."""
        return cls(*(np.zeros(shape) for shape in ((0, 2, 3), 0, (0, 4), (0, 2, 3), 0, (0, 4), (0, 3, 3), (0, 4))))

    @classmethod
    def joined(cls, parts: list[Symbols]) -> Symbols:
        """All of several."""
        parts = [cls.none(), *parts]
        return cls(*(np.concatenate([getattr(one, name) for one in parts]) for name in cls.__annotations__))

    def arrow_parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Shafts (a, 2, 3), their radii (a,), and heads (a, 2, 3) from neck to tip, `HEAD` times as wide."""
        foot, tip = self.arrows[:, 0], self.arrows[:, 1]
        span = tip - foot
        length = np.linalg.norm(span, axis=1, keepdims=True)
        unit = np.divide(span, length, out=np.zeros_like(span), where=length > 0.0)
        neck = tip - unit * np.minimum(2.6 * HEAD * self.arrow_radius[:, None], 0.6 * length)
        return np.stack([foot, neck], axis=1), self.arrow_radius, np.stack([neck, tip], axis=1)

    def cones(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Heads of arrows as triangles (a LINES 2, 3, 3), their normals, and the arrows that they belong to."""
        heads = self.arrow_parts()[2]
        neck, tip = heads[:, 0], heads[:, 1]
        length = np.linalg.norm(tip - neck, axis=1, keepdims=True)
        unit = np.divide(tip - neck, length, out=np.zeros_like(neck), where=length > 0.0)
        x, y = _across(unit)
        angle = 2.0 * np.pi * np.arange(LINES + 1) / LINES
        out = np.cos(angle)[:, None] * x[:, None] + np.sin(angle)[:, None] * y[:, None]
        ring = neck[:, None] + HEAD * self.arrow_radius[:, None, None] * out
        sides = np.stack([ring[:, :-1], ring[:, 1:], np.repeat(tip[:, None], LINES, axis=1)], axis=2)
        lids = np.stack([ring[:, 1:], ring[:, :-1], np.repeat(neck[:, None], LINES, axis=1)], axis=2)
        slant = out + unit[:, None] / 2.6
        slant /= np.linalg.norm(slant, axis=2, keepdims=True)
        of_sides = np.stack([slant[:, :-1], slant[:, 1:], 0.5 * (slant[:, :-1] + slant[:, 1:])], axis=2)
        of_lids = np.broadcast_to(-unit[:, None, None], lids.shape)
        triangles = np.stack([sides, lids], axis=1).reshape(-1, 3, 3)
        normals = np.stack([of_sides, of_lids], axis=1).reshape(-1, 3, 3)
        return triangles, normals, np.repeat(np.arange(len(heads)), 2 * LINES)


def draw_rods(rods: np.ndarray, radius, color: np.ndarray) -> Symbols:
    """Rods of one colour (4,)."""
    none, count = Symbols.none(), len(rods)
    radius = np.broadcast_to(np.asarray(radius, dtype=float), count)
    rest = (none.arrows, none.arrow_radius, none.arrow_colors, none.triangles, none.triangle_colors)
    return Symbols(rods, radius, np.tile(color, (count, 1)), *rest)


def draw_lines(points: np.ndarray, radius: np.ndarray, color: np.ndarray) -> Symbols:
    """Broken lines (k, p, 3) of radii (k,)."""
    rods = np.stack([points[:, :-1], points[:, 1:]], axis=2).reshape(-1, 2, 3)
    return draw_rods(rods, np.repeat(radius, points.shape[1] - 1), color)


def draw_triangles(triangles: np.ndarray, color: np.ndarray) -> Symbols:
    none = Symbols.none()
    rest = (none.rods, none.radius, none.rod_colors, none.arrows, none.arrow_radius, none.arrow_colors)
    return Symbols(*rest, triangles, np.tile(color, (len(triangles), 1)))


def draw_arrows(arrows: np.ndarray, radius: np.ndarray, color: np.ndarray) -> Symbols:
    none = Symbols.none()
    rest = (none.triangles, none.triangle_colors)
    return Symbols(
        none.rods, none.radius, none.rod_colors, arrows, radius, np.broadcast_to(color, (len(arrows), 4)), *rest
    )


def draw_ropes(a: np.ndarray, b: np.ndarray, length: float, radius: np.ndarray, color: np.ndarray) -> Symbols:
    """Ropes of a length [m] between points (k, 3): straight, or the catenary that is as long.

    With the horizontal distance d and the height v between the ends, its parameter c solves
    ``sqrt(L^2 - v^2) = 2 c sinh(d / 2c)``; points are even along the curve.
    """
    span, fraction = b - a, np.linspace(0.0, 1.0, LINES + 1)
    chord, v = np.linalg.norm(span, axis=1), span[:, 2]
    points = a[:, None] + fraction[:, None] * span[:, None]
    slack = np.flatnonzero(length > chord * (1.0 + 1e-6))
    if len(slack):
        flat = np.hypot(span[slack, 0], span[slack, 1])
        # ends above one another: two strands, next to each other
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
        # rounding at the far end is spread along the curve
        curve += fraction[None, :, None] * (span[slack] - curve[:, -1])[:, None]
        points[slack] = a[slack, None] + curve
    return draw_lines(points, radius, color)


def draw_springs(a: np.ndarray, b: np.ndarray, radius: np.ndarray, color: np.ndarray) -> Symbols:
    """Coils of `COILS` turns between points (k, 3), whatever their distance."""
    span = b - a
    length = np.linalg.norm(span, axis=1, keepdims=True)
    unit = np.divide(span, length, out=np.tile([0.0, 0.0, 1.0], (len(a), 1)), where=length > 0.0)
    x, y = _across(unit)
    s = np.linspace(0.0, 1.0, COILS * STEPS + 1)
    wide = 4.0 * radius[:, None] * np.clip(np.minimum(s, 1.0 - s) * 2.0 * COILS, 0.0, 1.0)
    phi = 2.0 * np.pi * COILS * s
    turn = np.cos(phi)[:, None] * x[:, None] + np.sin(phi)[:, None] * y[:, None]
    along = 0.06 + 0.88 * s
    along[0], along[-1] = 0.0, 1.0
    return draw_lines(a[:, None] + along[:, None] * span[:, None] + wide[:, :, None] * turn, radius, color)


def draw_planes(D: np.ndarray, size: float, color: np.ndarray) -> Symbols:
    """Squares in the x-y planes of frames (k, 4, 4)."""
    half = 0.5 * size
    local = np.array([[-half, -half, 0], [half, -half, 0], [half, half, 0], [-half, half, 0]])
    corners = np.einsum("kij,cj->kci", D[:, :3, :3], local) + D[:, None, :3, 3]
    return draw_triangles(corners[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3, 3), color)


def draw_slots(D: np.ndarray, drawing: dict, color: np.ndarray) -> Symbols:
    """Slots along x of frames (k, 4, 4), as outlines of the given width, above and below by half the depth."""
    first, last = (float(x) for x in drawing["slot_range"])
    half, depth = 0.5 * float(drawing["slot_width"]), 0.5 * float(drawing.get("slot_depth", 0.0))
    angle = np.linspace(-0.5 * np.pi, 0.5 * np.pi, LINES)
    right = np.stack([last + half * np.cos(angle), half * np.sin(angle)], axis=1)
    left = np.stack([first - half * np.cos(angle), -half * np.sin(angle)], axis=1)
    outline = np.concatenate([right, left, right[:1]])
    parts = []
    for height in sorted({-depth, depth}):
        local = np.column_stack([outline, np.full(len(outline), height)])
        points = np.einsum("kij,cj->kci", D[:, :3, :3], local) + D[:, None, :3, 3]
        parts.append(draw_lines(points, np.full(len(D), 0.06 * half), color))
    return Symbols.joined(parts)


def draw_ellipsoids(D: np.ndarray, radii: np.ndarray, color: np.ndarray) -> Symbols:
    """Ellipsoids of three radii about the origins of frames (k, 4, 4)."""
    from abd.scene.geometry.shapes import sphere

    vertices, triangles = sphere(1.0, 3)
    points = np.einsum("kij,cj->kci", D[:, :3, :3], vertices * radii) + D[:, None, :3, 3]
    return draw_triangles(points[:, triangles].reshape(-1, 3, 3), color)


def draw_axes(frames: np.ndarray, length: np.ndarray, arrows: bool) -> Symbols:
    """x, y and z of frames (k, 4, 4) in red, green and blue."""
    parts, origin = [], frames[:, :3, 3]
    for axis in range(3):
        ends = np.stack([origin, origin + length[:, None] * frames[:, :3, axis]], axis=1)
        radius = (0.035 if arrows else 0.02) * length
        parts.append((draw_arrows if arrows else draw_rods)(ends, radius, colors.AXES[axis]))
    return Symbols.joined(parts)


def _across(unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors (k, 3) at right angles to unit vectors (k, 3)."""
    least = np.eye(3)[np.argmin(np.abs(unit), axis=1)]
    x = np.cross(unit, least)
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    return x, np.cross(unit, x)
