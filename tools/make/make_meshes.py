"""Write the meshes of the shipped scenes: `python tools/make/make_meshes.py [FOLDER]`, by default to `scenes/meshes`.

All surfaces except the card are closed, with triangles counter-clockwise from outside and lengths in metres. The files are
equal on all machines. Scenes depend on the dimensions.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from abd.scene.geometry.shapes import sphere

FOLDER = Path(__file__).resolve().parents[2] / "scenes" / "meshes"

Surface = tuple[np.ndarray, np.ndarray]
"""Vertices (v, 3) [m] and triangles (f, 3)."""

LINK_BEND, LINK_STRAIGHT, LINK_WIRE = 0.12, 0.10, 0.05
"""Chain link [m]: radius of the centre line of the bends, half length of the straight parts, radius of the wire."""
LINK_PITCH = 2.0 * (LINK_STRAIGHT + (LINK_BEND - LINK_WIRE) * np.cos(np.pi / 10.0))
"""Spacing of links in a taut chain [m]: the inner length of a link, whose bends have five segments."""
ARCH_STONES, ARCH_HALF_SPAN, ARCH_PARAMETER, ARCH_THICKNESS, ARCH_DEPTH = 25, 1.0, 0.5, 0.25, 0.3
"""Masonry arch: number of stones; half span, parameter c of the catenary, thickness and depth [m]."""
ARCH_GAP = 5e-4
"""Gap between neighbouring stones [m]."""
SOCKET_CLEARANCE = 1e-4
"""Gap between a centred peg and the hole of the socket [m]."""
GEAR_MODULE, GEAR_PRESSURE_ANGLE, GEAR_BACKLASH = 0.01, np.radians(20.0), 4e-4
"""Gears: pitch diameter over number of teeth [m]; pressure angle [rad]; backlash, subtracted from each tooth [m]."""


def circle(count: int, phase: float = 0.0) -> np.ndarray:
    """Return (count, 2) points of the unit circle, counter-clockwise from the angle `phase` [rad]."""
    angle = phase + 2.0 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def tube_triangles(rings: np.ndarray) -> np.ndarray:
    """Return (f, 3) triangles between consecutive closed rings of vertex numbers (r, k)."""
    low, high = rings[:-1], rings[1:]
    next_low, next_high = np.roll(low, -1, axis=1), np.roll(high, -1, axis=1)
    quads = np.stack([low, next_low, next_high, high], axis=2).reshape(-1, 4)
    return np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])


def closed_tube(centers: np.ndarray, outwards: np.ndarray, wire: float, sides: int) -> Surface:
    """Create a wire along a closed curve in the plane y = 0.

    Args:
        centers: (s, 3) points of the centre line, counter-clockwise as seen from -y.
        outwards: (s, 3) outward unit normals of the curve in the plane.
        wire: circumscribed radius of the polygonal section [m]; one vertex of the section points inwards.
        sides: number of sides of the section.
    """
    section = wire * circle(sides, np.pi)
    binormal = np.array([0.0, 1.0, 0.0])
    rings = centers[:, None] + section[:, :1] * outwards[:, None] + section[:, 1:] * binormal
    numbers = np.arange(len(centers) * sides).reshape(-1, sides)
    return rings.reshape(-1, 3), tube_triangles(np.concatenate([numbers, numbers[:1]]))


def link() -> Surface:
    """Create a chain link in the plane y = 0, elongated along z: two half circles of five segments and straight sides.

    The middle segments of the half circles are perpendicular to z, so that two links touch with one edge each.
    """
    angle = np.pi * np.arange(6) / 5.0
    bend = np.stack([np.cos(angle), np.zeros(6), np.sin(angle)], axis=1)
    outwards = np.concatenate([bend, -bend])
    straight = np.repeat([[0.0, 0.0, LINK_STRAIGHT], [0.0, 0.0, -LINK_STRAIGHT]], 6, axis=0)
    return closed_tube(LINK_BEND * outwards + straight, outwards, LINK_WIRE, 6)


def ring() -> Surface:
    """Create a ring of the chain net in the plane y = 0: radius 0.1 m, radius of the wire 0.012 m, 16 segments."""
    outwards = np.insert(circle(16, np.pi / 16.0), 1, 0.0, axis=1)
    return closed_tube(0.1 * outwards, outwards, 0.012, 6)


def ball_with_eye() -> Surface:
    """Create a wrecking ball of radius 0.4 m about the origin with a handle on top, as one surface.

    A five-sided tube along half an ellipse replaces two vertices of the sphere, 32 degrees from the top. The hole of the
    handle extends to z = 0.627 m.
    """
    vertices, triangles = sphere(0.4, 2)
    feet = [int(np.argmin(np.linalg.norm(vertices - foot, axis=1))) for foot in _eye_feet()]
    loops = [_loop_around(triangles, foot) for foot in feet]
    angles = []
    for side, loop in zip((1.0, -1.0), loops):
        inwards = np.array([0.0, -side, 0.0])
        offset = vertices[loop] - vertices[loop].mean(axis=0)
        angles.append(np.arctan2(offset @ inwards, offset[:, 0]))
    # the loops are mirror images: vertices with equal angles correspond
    loops = [loop[np.argsort(angle)] for loop, angle in zip(loops, angles)]
    around = np.sort(angles[0])

    start = vertices[loops[0]].mean(axis=0)
    half_width, height, eye_radius = start[1], 0.35, 0.05
    rings, added = [loops[0]], []
    for phi in np.pi * np.arange(1, 8) / 8.0:
        center = start + np.array([0.0, half_width * (np.cos(phi) - 1.0), height * np.sin(phi)])
        normal = -np.array([0.0, np.cos(phi) / half_width, np.sin(phi) / height])
        normal /= np.linalg.norm(normal)
        points = center + eye_radius * (np.cos(around)[:, None] * [1.0, 0.0, 0.0] + np.sin(around)[:, None] * normal)
        rings.append(len(vertices) + 5 * len(added) + np.arange(5))
        added.append(points)
    rings.append(loops[1])
    handle = tube_triangles(np.array(rings))
    remaining = triangles[~np.isin(triangles, feet).any(axis=1)]
    if not _is_oriented_like(remaining, handle):
        handle = handle[:, ::-1]
    return _without_unused(np.concatenate([vertices, *added]), np.concatenate([remaining, handle]))


def _eye_feet() -> np.ndarray:
    """Return (2, 3) the two corners of the icosahedron next to the top [m]."""
    golden = (1.0 + np.sqrt(5.0)) / 2.0
    return 0.4 * np.array([[0.0, 1.0, golden], [0.0, -1.0, golden]]) / np.hypot(1.0, golden)


def _loop_around(triangles: np.ndarray, vertex: int) -> np.ndarray:
    """Return the vertices that share a triangle with a vertex."""
    around = np.unique(triangles[(triangles == vertex).any(axis=1)])
    return around[around != vertex]


def _is_oriented_like(first: np.ndarray, second: np.ndarray) -> bool:
    """Return whether the triangles of two parts of a surface have the same orientation: no common directed side."""
    sides = [{(t[k], t[(k + 1) % 3]) for t in part.tolist() for k in range(3)} for part in (first, second)]
    return sides[0].isdisjoint(sides[1])


def _without_unused(vertices: np.ndarray, triangles: np.ndarray) -> Surface:
    """Remove the vertices without triangles."""
    used, numbers = np.unique(triangles, return_inverse=True)
    return vertices[used], numbers.reshape(-1, 3)


def prism(profile: np.ndarray, bottom: float, top: float, middle: tuple[float, float] = (0.0, 0.0)) -> Surface:
    """Extrude a counter-clockwise profile (k, 2) in x and y from z = bottom to top.

    The ends are triangle fans about `middle`, from which the whole profile must be visible.
    """
    count = len(profile)
    loops = [np.column_stack([profile, np.full(count, z)]) for z in (bottom, top)]
    vertices = np.concatenate([*loops, [[*middle, bottom], [*middle, top]]])
    current = np.arange(count)
    following = (current + 1) % count
    sides = tube_triangles(np.array([current, count + current]))
    lower = np.stack([following, current, np.full(count, 2 * count)], axis=1)
    upper = np.stack([count + current, count + following, np.full(count, 2 * count + 1)], axis=1)
    return vertices, np.concatenate([sides, lower, upper])


def t_handle() -> Surface:
    """Create a T-handle of 24 mm thickness: a bar of 0.2 m along x, a stem of 0.12 m along -y; all principal moments differ."""
    half_bar, half_stem, bar = 0.1, 0.012, 0.024
    stem_end = -0.12
    profile = [
        (half_stem, stem_end),
        (half_stem, 0.0),
        (half_bar, 0.0),
        (half_bar, bar),
        (-half_bar, bar),
        (-half_bar, 0.0),
        (-half_stem, 0.0),
        (-half_stem, stem_end),
    ]
    return prism(np.array(profile), -0.012, 0.012, (0.0, 0.5 * bar))


def gear(teeth: int, width: float) -> Surface:
    """Create a spur gear about z with involute flanks and a tooth centred on +x; addendum 1, dedendum 1.25 modules.

    Args:
        teeth: number of teeth.
        width: face width along z [m].
    """
    pitch = 0.5 * GEAR_MODULE * teeth
    base, tip, root = pitch * np.cos(GEAR_PRESSURE_ANGLE), pitch + GEAR_MODULE, pitch - 1.25 * GEAR_MODULE
    radii = np.concatenate([[root], np.linspace(max(base, root * 1.001), tip, 6)])
    half_angle = 0.25 * np.pi * GEAR_MODULE / pitch - 0.5 * GEAR_BACKLASH / pitch
    flank = half_angle + _involute(GEAR_PRESSURE_ANGLE) - _involute(np.arccos(np.minimum(base / radii, 1.0)))
    angles = np.concatenate([-flank, flank[::-1]])
    tooth_radii = np.concatenate([radii, radii[::-1]])
    centres = 2.0 * np.pi * np.arange(teeth) / teeth
    polar = centres[:, None] + angles
    profile = np.stack([tooth_radii * np.cos(polar), tooth_radii * np.sin(polar)], axis=2).reshape(-1, 2)
    return prism(profile, -0.5 * width, 0.5 * width)


def _involute(angle):
    """Return the involute function of an angle [rad]."""
    return np.tan(angle) - angle


def arch() -> Surface:
    """Create the stones of a catenary arch in the plane y = 0 on the ground z = 0, one component each, from -x to +x.

    The line of thrust of an arch of constant thickness is an inverted catenary. Joints are perpendicular to it; the
    lower ends of the springers are horizontal.
    """
    c = ARCH_PARAMETER
    length = 2.0 * c * np.sinh(ARCH_HALF_SPAN / c)
    cuts = np.linspace(-0.5 * length, 0.5 * length, ARCH_STONES + 1)
    rise = c * (np.cosh(ARCH_HALF_SPAN / c) - 1.0)

    def section(s: float, shift: float) -> np.ndarray:
        """Return inner and outer point (2, 2) of the cut at arc length s, translated by `shift` along the catenary."""
        x = c * np.arcsinh(s / c)
        along = np.array([1.0, -np.sinh(x / c)]) / np.cosh(x / c)
        across = np.array([-along[1], along[0]])
        middle = np.array([x, rise + c - c * np.cosh(x / c)]) + shift * along
        return middle + 0.5 * ARCH_THICKNESS * np.array([[-1.0], [1.0]]) * across

    surfaces = []
    for k in range(ARCH_STONES):
        ends = [section(cuts[k], 0.5 * ARCH_GAP), section(cuts[k + 1], -0.5 * ARCH_GAP)]
        for end, springer in ((0, k == 0), (1, k == ARCH_STONES - 1)):
            if springer:
                ends[end] = _cut_horizontally(ends[1 - end], ends[end])
        profile = np.array([ends[0][0], ends[1][0], ends[1][1], ends[0][1]])
        surfaces.append(_prism_along_y(profile, ARCH_DEPTH))
    return _joined(surfaces)


def _cut_horizontally(upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """Intersect the lines from `upper` (2, 2) through `lower` (2, 2) with z = 0."""
    slope = (lower - upper) / (lower - upper)[:, 1:]
    return upper - upper[:, 1:] * slope


def _prism_along_y(profile: np.ndarray, depth: float) -> Surface:
    """Extrude a quadrilateral (4, 2) in x and z, counter-clockwise from -y, along y; symmetric about y = 0, 8 vertices."""
    front = np.insert(profile, 1, -0.5 * depth, axis=1)
    vertices = np.concatenate([front, front + np.array([0.0, depth, 0.0])])
    sides = tube_triangles(np.array([[0, 1, 2, 3], [4, 5, 6, 7]]))[:, ::-1]
    return vertices, np.concatenate([sides, [[0, 1, 2], [0, 2, 3], [4, 6, 5], [4, 7, 6]]])


def _joined(surfaces: list[Surface]) -> Surface:
    """Concatenate surfaces as components of one surface."""
    starts = np.cumsum([0] + [len(vertices) for vertices, _ in surfaces])
    triangles = [triangles + start for (_, triangles), start in zip(surfaces, starts)]
    return np.concatenate([vertices for vertices, _ in surfaces]), np.concatenate(triangles)


def card() -> Surface:
    """Create a playing card of 88 by 63 mm in the plane z = 0, an open surface; the scene defines its thickness."""
    x, y = 0.044, 0.0315
    return np.array([[-x, -y, 0.0], [x, -y, 0.0], [x, y, 0.0], [-x, y, 0.0]]), np.array([[0, 1, 2], [0, 2, 3]])


def socket() -> Surface:
    """Create a cylindrical block about z, 40 mm high, with a chamfered through hole for a cylinder of 20 mm with 32 facets.

    The gap between the facets of the hole and of a coaxial cylinder with a vertex on +x is `SOCKET_CLEARANCE`.
    """
    height, chamfer, circumscribed = 0.04, 0.005, 1.0 / np.cos(np.pi / 32.0)
    bore = 0.01 + SOCKET_CLEARANCE * circumscribed
    profile = [(0.028, 0.0), (0.028, height), (bore + 0.0025, height), (bore, height - chamfer), (bore, 0.0)]
    rings = [np.column_stack([radius * circle(32), np.full(32, z)]) for radius, z in profile]
    numbers = np.arange(32 * len(rings)).reshape(-1, 32)
    return np.concatenate(rings), tube_triangles(np.concatenate([numbers, numbers[:1]]))


MESHES: dict[str, Callable[[], Surface]] = {
    "arch": arch,
    "ball_with_eye": ball_with_eye,
    "card": card,
    "gear_20": lambda: gear(20, 0.05),
    "gear_30": lambda: gear(30, 0.04),
    "link": link,
    "ring": ring,
    "socket": socket,
    "t_handle": t_handle,
}


def obj_text(surface: Surface, name: str) -> str:
    """Return a surface as Wavefront OBJ, rounded to micrometres."""
    vertices, triangles = surface
    lines = [f"# {name}, written by tools/make/make_meshes.py [m]"]
    # adding zero turns -0.0 into 0.0: the sign would depend on rounding
    lines += ["v {:.6f} {:.6f} {:.6f}".format(*point) for point in np.round(vertices, 6) + 0.0]
    lines += ["f {} {} {}".format(*corners) for corners in triangles + 1]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Write all meshes to a folder; return 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="[scenes/meshes]")
    folder = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, create in MESHES.items():
        (folder / f"{name}.obj").write_text(obj_text(create(), name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
