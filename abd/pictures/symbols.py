"""Symbols of joints, ropes, springs, contacts and bodies without a surface: rods, balls and arrows."""

from __future__ import annotations

import numpy as np

from abd import colors
from abd.pictures.cast import Cast, Contacts, JointGroup, Moment
from abd.pictures.strokes import (
    Symbols,
    draw_arrows,
    draw_axes,
    draw_ellipsoids,
    draw_planes,
    draw_rods,
    draw_ropes,
    draw_slots,
    draw_springs,
)

PIN, BALL = 0.13, 0.30
"""Radius of the pin of a hinge and of the ball of a spherical joint, in thinnest extents of the smaller body."""
LONGEST_PIN = 3.0
"""Largest length of a pin, in the same unit: an axis along a limb does not make a pin as long as the limb."""
UNKNOWN = 0.05
"""Thickness that is assumed at joints between bodies without a surface, in sizes of a usual body."""


def symbols(cast: Cast, moment: Moment, joints: bool = True, contacts: float | None = None) -> Symbols:
    """All symbols at one instant.

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
    """Bounding boxes of bodies, from which sizes of symbols follow."""

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
            draw_ropes(a, b, float(group.parameters.get("distance", 0.0)), look.radius(thin, 0.12), look.color(colors.ROPE))
        )
    elif group.type == "distance":
        parts.append(draw_rods(np.stack([a, b], axis=1), look.radius(thin, 0.12), look.color(colors.JOINT)))
    elif group.type == "spring":
        parts.append(draw_springs(a, b, look.radius(thin, 0.25), look.color(colors.SPRING)))
    elif group.type in _PINS:
        length = look.shaft_length(active, D)
        axis = D[:, :3, 2] * (0.5 * length)[:, None]
        foot = a if group.type in ("hinge", "legacy_revolute") else b
        radius = look.given("shaft_radius", PIN * thin)
        parts.append(draw_rods(np.stack([foot - axis, foot + axis], axis=1), radius, look.color(colors.JOINT)))
    elif group.type in _BALLS:
        radius = look.given("joint_radius", BALL * thin)
        parts.append(draw_rods(np.stack([b, b], axis=1), radius, look.color(colors.JOINT)))
    elif "joint_radius" in group.drawing:
        radius = look.given("joint_radius", thin)
        parts.append(draw_rods(np.stack([b, b], axis=1), radius, look.color(colors.JOINT)))
    if group.type not in _PINS and group.drawing.get("shaft_length"):
        axis = D[:, :3, 2] * (0.5 * group.drawing["shaft_length"])
        parts.append(
            draw_rods(
                np.stack([b - axis, b + axis], axis=1), look.given("shaft_radius", PIN * thin), look.color(colors.JOINT)
            )
        )
    if group.drawing.get("plane_size"):
        parts.append(draw_planes(D, float(group.drawing["plane_size"]), look.color(np.array([*colors.JOINT[:3], 0.35]))))
    if group.drawing.get("slot_width") and "slot_range" in group.drawing:
        parts.append(draw_slots(D, group.drawing, look.color(colors.JOINT)))
    if group.drawing.get("draw_ellipsoid") and "radii" in group.parameters:
        parts.append(
            draw_ellipsoids(D, np.asarray(group.parameters["radii"]), look.color(np.array([*colors.JOINT[:3], 0.35])))
        )
    for key, frames in (("draw_frame_d", D), ("draw_frame_c", C)):
        if group.drawing.get(key, "off") != "off":
            length = np.broadcast_to(look.given("axis_length", 1.2 * thin), number)
            parts.append(draw_axes(frames, length, group.drawing[key] == "arrow"))
    return Symbols.joined(parts)


_PINS = ("hinge", "legacy_revolute", "cylindrical", "screw", "slotted_hinge")
_BALLS = (
    "spherical", "gimbal", "spherical_rpy", "pin", "universal", "skewed_universal", "roll_pitch", "bushing",
    "ellipsoid", "ellipsoid3", "planar_connector", "segmented_planar_connector",
)  # fmt: skip


class _Look:
    """Sizes and colours of a group's symbols, from the scene or from the sizes of its bodies."""

    def __init__(self, group: JointGroup, size: _Sizes):
        self.group, self.size = group, size
        both = np.stack([size.thinnest(group.parent), size.thinnest(group.child)])
        least = np.where(np.isfinite(both), both, np.inf).min(axis=0)
        self.thin = np.where(np.isfinite(least) & (least > 0.0), least, UNKNOWN * size.usual)

    def given(self, key: str, otherwise: np.ndarray) -> np.ndarray:
        """(k,) a length of the drawing, or another one."""
        return np.full(len(otherwise), float(self.group.drawing[key])) if key in self.group.drawing else otherwise

    def radius(self, thin: np.ndarray, fraction: float) -> np.ndarray:
        """(k,) radius of a rope, a rod or a spring."""
        return self.given("shaft_radius", np.minimum(fraction * thin, 0.02 * self.size.usual))

    def color(self, otherwise: np.ndarray) -> np.ndarray:
        """(4,) colour."""
        given = self.group.drawing.get("color")
        return otherwise if given is None else np.array([*given, 1.0])[:4]

    def shaft_length(self, active: np.ndarray, D: np.ndarray) -> np.ndarray:
        """(k,) length of a pin, slightly more than the extent of the smaller body along it."""
        group = self.group
        in_parent = group.parent_frame[active][:, :3, 2]
        in_child = group.child_frame[active][:, :3, 2]
        sizes = np.stack([
            self.size.along(group.parent[active], in_parent),
            self.size.along(group.child[active], in_child),
        ])  # fmt: skip
        least = np.where(np.isfinite(sizes), sizes, np.inf).min(axis=0)
        thin = self.thin[active]
        length = np.where(np.isfinite(least), np.minimum(1.12 * least, LONGEST_PIN * thin), 2.0 * thin)
        return self.given("shaft_length", length)


def _forces(contacts: Contacts, scale: float, usual: float) -> Symbols:
    """Forces of contacts as arrows from their points, not longer than four bodies."""
    size = np.linalg.norm(contacts.force, axis=1)
    chosen = size * scale > 0.02 * usual
    force = contacts.force[chosen] * scale
    length = np.linalg.norm(force, axis=1, keepdims=True)
    force *= np.minimum(1.0, 4.0 * usual / np.maximum(length, 1e-30))
    foot = contacts.point[chosen]
    return draw_arrows(np.stack([foot, foot + force], axis=1), np.full(len(foot), 0.018 * usual), colors.FORCE)


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
    balls = draw_rods(np.stack([at, at], axis=1), radius, np.ones(4))
    balls.rod_colors[:] = cast.colors[chosen]
    return balls
