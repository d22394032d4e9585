"""Symbols: rods, balls and arrows that stand for joints, ropes, springs, contacts, and bodies without a surface."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd import colors
from abd.pictures.cast import Cast, Contacts, JointGroup, Moment

LINES = 18
"""Pieces of a rope that hangs through, sides of a cone."""
COILS = 9
"""Turns of a spring."""
HEAD = 2.6
"""Radius of the head of an arrow over that of its shaft; it is as many times longer than wide."""
STEPS = 10
"""Pieces of one turn."""
PIN, BALL = 0.13, 0.30
"""Radius of the pin of a hinge and of the ball of a spherical joint, in thinnest extents of the smaller body."""


@dataclass(frozen=True)
class Symbols:
    """What is drawn beside the bodies, in the world.

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
        way = tip - foot
        length = np.linalg.norm(way, axis=1, keepdims=True)
        unit = np.divide(way, length, out=np.zeros_like(way), where=length > 0.0)
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


def symbols(cast: Cast, moment: Moment, joints: bool = True, contacts: float | None = None) -> Symbols:
    """Everything beside the bodies at one instant.

    Args:
        joints: whether joints, ropes and springs are drawn.
        contacts: length of an arrow per force [m/N]; None for no arrows.
    """
    parts = [_points(cast, moment)]
    if joints:
        size = _Sizes(cast)
        for group, active in zip(cast.joints, moment.active):
            if group.drawing.get("show", True) and active.any():
                parts.append(_joint_symbols(group, active, moment.transform, size))
    if contacts is not None and moment.contacts is not None:
        parts.append(_forces(moment.contacts, contacts, _usual(cast)))
    return Symbols.joined(parts)


def force_scale(cast: Cast, forces: list[np.ndarray]) -> float | None:
    """Length of an arrow per force [m/N] at which large forces among (c, 3) are 1.5 usual bodies long; None without."""
    sizes = np.concatenate([np.linalg.norm(one, axis=1) for one in forces]) if forces else np.zeros(0)
    sizes = sizes[sizes > 0.0]
    return 1.5 * _usual(cast) / float(np.quantile(sizes, 0.95)) if len(sizes) else None


def _usual(cast: Cast) -> float:
    """Median diameter of bodies [m]."""
    return cast.usual or 1.0


class _Sizes:
    """Boxes of bodies, for symbols of a fitting size."""

    def __init__(self, cast: Cast):
        self.usual, self.boxes = _usual(cast), cast.boxes

    def thinnest(self, body: np.ndarray) -> np.ndarray:
        """(k,) smallest extent [m], NaN for the world and bodies without a surface."""
        return np.ptp(self.boxes[body], axis=1).min(axis=1)

    def along(self, body: np.ndarray, axis: np.ndarray) -> np.ndarray:
        """(k,) extent [m] along directions (k, 3) in the mesh frames."""
        return np.einsum("ki,ki->k", np.ptp(self.boxes[body], axis=1), np.abs(axis))


def _joint_symbols(group: JointGroup, active: np.ndarray, transform: np.ndarray, size: _Sizes) -> Symbols:
    """The symbols of a group's joints that are active."""
    D, C = group.frames(transform)
    look, parts = _Look(group, size), []
    D, C, number = D[active], C[active], int(active.sum())
    thin = look.thin[active]
    a, b = D[:, :3, 3], C[:, :3, 3]
    if group.type == "rope":
        parts.append(
            _ropes(a, b, float(group.parameters.get("distance", 0.0)), look.radius(thin, 0.12), look.color(colors.ROPE))
        )
    elif group.type == "distance":
        parts.append(_rods(np.stack([a, b], axis=1), look.radius(thin, 0.12), look.color(colors.JOINT)))
    elif group.type == "spring":
        parts.append(_springs(a, b, look.radius(thin, 0.25), look.color(colors.SPRING)))
    elif group.type in _PINS:
        length = look.shaft_length(active, D)
        axis = D[:, :3, 2] * (0.5 * length)[:, None]
        foot = a if group.type in ("hinge", "legacy_revolute") else b
        radius = look.given("shaft_radius", PIN * thin)
        parts.append(_rods(np.stack([foot - axis, foot + axis], axis=1), radius, look.color(colors.JOINT)))
    elif group.type in _BALLS:
        radius = look.given("joint_radius", BALL * thin)
        parts.append(_rods(np.stack([b, b], axis=1), radius, look.color(colors.JOINT)))
    elif "joint_radius" in group.drawing:
        radius = look.given("joint_radius", thin)
        parts.append(_rods(np.stack([b, b], axis=1), radius, look.color(colors.JOINT)))
    if group.type not in _PINS and group.drawing.get("shaft_length"):
        axis = D[:, :3, 2] * (0.5 * group.drawing["shaft_length"])
        parts.append(
            _rods(
                np.stack([b - axis, b + axis], axis=1), look.given("shaft_radius", PIN * thin), look.color(colors.JOINT)
            )
        )
    if group.drawing.get("plane_size"):
        parts.append(_planes(D, float(group.drawing["plane_size"]), look.color(np.array([*colors.JOINT[:3], 0.35]))))
    if group.drawing.get("slot_width") and "slot_range" in group.drawing:
        parts.append(_slots(D, group.drawing, look.color(colors.JOINT)))
    if group.drawing.get("draw_ellipsoid") and "radii" in group.parameters:
        parts.append(
            _ellipsoids(D, np.asarray(group.parameters["radii"]), look.color(np.array([*colors.JOINT[:3], 0.35])))
        )
    for key, frames in (("draw_frame_d", D), ("draw_frame_c", C)):
        if group.drawing.get(key, "off") != "off":
            length = np.broadcast_to(look.given("axis_length", 1.2 * thin), number)
            parts.append(_axes(frames, length, group.drawing[key] == "arrow"))
    return Symbols.joined(parts)


_PINS = ("hinge", "legacy_revolute", "cylindrical", "screw", "slotted_hinge")
_BALLS = (
    "spherical", "gimbal", "spherical_rpy", "pin", "universal", "skewed_universal", "roll_pitch", "bushing",
    "ellipsoid", "ellipsoid3", "planar_connector", "segmented_planar_connector",
)  # fmt: skip


class _Look:
    """Sizes and colours of a group's symbols: as the scene says, or fitting to its bodies."""

    def __init__(self, group: JointGroup, size: _Sizes):
        self.group, self.size = group, size
        both = np.stack([size.thinnest(group.parent), size.thinnest(group.child)])
        least = np.where(np.isfinite(both), both, np.inf).min(axis=0)
        self.thin = np.where(np.isfinite(least) & (least > 0.0), least, 0.2 * size.usual)

    def given(self, key: str, otherwise: np.ndarray) -> np.ndarray:
        """(k,) a length of the drawing, or another one."""
        return np.full(len(otherwise), float(self.group.drawing[key])) if key in self.group.drawing else otherwise

    def radius(self, thin: np.ndarray, share: float) -> np.ndarray:
        """(k,) radius of a rope, a rod or a spring."""
        return self.given("shaft_radius", np.minimum(share * thin, 0.02 * self.size.usual))

    def color(self, otherwise: np.ndarray) -> np.ndarray:
        """(4,) colour."""
        given = self.group.drawing.get("color")
        return otherwise if given is None else np.array([*given, 1.0])[:4]

    def shaft_length(self, active: np.ndarray, D: np.ndarray) -> np.ndarray:
        """(k,) length of a pin: a little more than the bodies that it holds."""
        group = self.group
        in_parent = group.parent_frame[active][:, :3, 2]
        in_child = group.child_frame[active][:, :3, 2]
        sizes = np.stack([
            self.size.along(group.parent[active], in_parent),
            self.size.along(group.child[active], in_child),
        ])  # fmt: skip
        least = np.where(np.isfinite(sizes), sizes, np.inf).min(axis=0)
        return self.given("shaft_length", np.where(np.isfinite(least), 1.12 * least, 2.0 * self.thin[active]))


def _rods(rods: np.ndarray, radius, color: np.ndarray) -> Symbols:
    """Rods of one colour (4,)."""
    none, count = Symbols.none(), len(rods)
    radius = np.broadcast_to(np.asarray(radius, dtype=float), count)
    rest = (none.arrows, none.arrow_radius, none.arrow_colors, none.triangles, none.triangle_colors)
    return Symbols(rods, radius, np.tile(color, (count, 1)), *rest)


def _lines(points: np.ndarray, radius: np.ndarray, color: np.ndarray) -> Symbols:
    """Broken lines (k, p, 3) of radii (k,)."""
    rods = np.stack([points[:, :-1], points[:, 1:]], axis=2).reshape(-1, 2, 3)
    return _rods(rods, np.repeat(radius, points.shape[1] - 1), color)


def _triangles(triangles: np.ndarray, color: np.ndarray) -> Symbols:
    none = Symbols.none()
    rest = (none.rods, none.radius, none.rod_colors, none.arrows, none.arrow_radius, none.arrow_colors)
    return Symbols(*rest, triangles, np.tile(color, (len(triangles), 1)))


def _arrows(arrows: np.ndarray, radius: np.ndarray, color: np.ndarray) -> Symbols:
    none = Symbols.none()
    rest = (none.triangles, none.triangle_colors)
    return Symbols(
        none.rods, none.radius, none.rod_colors, arrows, radius, np.broadcast_to(color, (len(arrows), 4)), *rest
    )


def _ropes(a: np.ndarray, b: np.ndarray, length: float, radius: np.ndarray, color: np.ndarray) -> Symbols:
    """Ropes of a length [m] between points (k, 3): straight, or the catenary that is as long.

    With the horizontal distance d and the height v between the ends, its parameter c solves
    ``sqrt(L^2 - v^2) = 2 c sinh(d / 2c)``; points are even along the curve.
    """
    way, share = b - a, np.linspace(0.0, 1.0, LINES + 1)
    chord, v = np.linalg.norm(way, axis=1), way[:, 2]
    points = a[:, None] + share[:, None] * way[:, None]
    slack = np.flatnonzero(length > chord * (1.0 + 1e-6))
    if len(slack):
        flat = np.hypot(way[slack, 0], way[slack, 1])
        # ends above one another: two strands, next to each other
        d, v, s = np.maximum(flat, 1e-3 * length), v[slack], length * share
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
        across = np.divide(way[slack, :2], flat[:, None], out=np.zeros((len(d), 2)), where=flat[:, None] > 0.0)
        curve = np.concatenate([x[:, :, None] * across[:, None], z[:, :, None]], axis=2)
        # rounding at the far end is spread along the curve
        curve += share[None, :, None] * (way[slack] - curve[:, -1])[:, None]
        points[slack] = a[slack, None] + curve
    return _lines(points, radius, color)


def _springs(a: np.ndarray, b: np.ndarray, radius: np.ndarray, color: np.ndarray) -> Symbols:
    """Coils of `COILS` turns between points (k, 3), whatever their distance."""
    way = b - a
    length = np.linalg.norm(way, axis=1, keepdims=True)
    unit = np.divide(way, length, out=np.tile([0.0, 0.0, 1.0], (len(a), 1)), where=length > 0.0)
    x, y = _across(unit)
    s = np.linspace(0.0, 1.0, COILS * STEPS + 1)
    wide = 4.0 * radius[:, None] * np.clip(np.minimum(s, 1.0 - s) * 2.0 * COILS, 0.0, 1.0)
    phi = 2.0 * np.pi * COILS * s
    turn = np.cos(phi)[:, None] * x[:, None] + np.sin(phi)[:, None] * y[:, None]
    along = 0.06 + 0.88 * s
    along[0], along[-1] = 0.0, 1.0
    return _lines(a[:, None] + along[:, None] * way[:, None] + wide[:, :, None] * turn, radius, color)


def _planes(D: np.ndarray, size: float, color: np.ndarray) -> Symbols:
    """Squares in the x-y planes of frames (k, 4, 4)."""
    half = 0.5 * size
    local = np.array([[-half, -half, 0], [half, -half, 0], [half, half, 0], [-half, half, 0]])
    corners = np.einsum("kij,cj->kci", D[:, :3, :3], local) + D[:, None, :3, 3]
    return _triangles(corners[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3, 3), color)


def _slots(D: np.ndarray, drawing: dict, color: np.ndarray) -> Symbols:
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
        parts.append(_lines(points, np.full(len(D), 0.06 * half), color))
    return Symbols.joined(parts)


def _ellipsoids(D: np.ndarray, radii: np.ndarray, color: np.ndarray) -> Symbols:
    """Ellipsoids of three radii about the origins of frames (k, 4, 4)."""
    from abd.scene.geometry.shapes import sphere

    vertices, triangles = sphere(1.0, 3)
    points = np.einsum("kij,cj->kci", D[:, :3, :3], vertices * radii) + D[:, None, :3, 3]
    return _triangles(points[:, triangles].reshape(-1, 3, 3), color)


def _axes(frames: np.ndarray, length: np.ndarray, arrows: bool) -> Symbols:
    """x, y and z of frames (k, 4, 4) in red, green and blue."""
    parts, origin = [], frames[:, :3, 3]
    for axis in range(3):
        ends = np.stack([origin, origin + length[:, None] * frames[:, :3, axis]], axis=1)
        radius = (0.035 if arrows else 0.02) * length
        parts.append((_arrows if arrows else _rods)(ends, radius, colors.AXES[axis]))
    return Symbols.joined(parts)


def _forces(contacts: Contacts, scale: float, usual: float) -> Symbols:
    """Forces of contacts as arrows from their points, not longer than four bodies."""
    size = np.linalg.norm(contacts.force, axis=1)
    chosen = size * scale > 0.02 * usual
    force = contacts.force[chosen] * scale
    length = np.linalg.norm(force, axis=1, keepdims=True)
    force *= np.minimum(1.0, 4.0 * usual / np.maximum(length, 1e-30))
    foot = contacts.point[chosen]
    return _arrows(np.stack([foot, foot + force], axis=1), np.full(len(foot), 0.018 * usual), colors.FORCE)


def _points(cast: Cast, moment: Moment) -> Symbols:
    """Bodies without a surface as balls, coloured like bodies."""
    chosen = (cast.shape < 0) & ~cast.is_plane
    if not chosen.any():
        return Symbols.none()
    at = moment.transform[chosen, :3, 3]
    has = cast.shape >= 0
    if has.any():
        radius = 0.15 * _usual(cast)
    else:
        radius = 0.04 * np.ptp(moment.transform[~cast.is_plane, :3, 3], axis=0).max(initial=0.0) or 0.1
    balls = _rods(np.stack([at, at], axis=1), radius, np.ones(4))
    balls.rod_colors[:] = cast.colors[chosen]
    return balls


def _across(unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors (k, 3) at right angles to unit vectors (k, 3)."""
    least = np.eye(3)[np.argmin(np.abs(unit), axis=1)]
    x = np.cross(unit, least)
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    return x, np.cross(unit, x)
