"""Mass properties of bodies: volume, mass, centre of mass and the second moment ``S = integral rho X X^T dV``.

Closed surfaces are solids (exact: the density is constant and the boundary piecewise linear), open surfaces shells,
polylines rods, isolated points balls; a body may be a union of all four. The rigid inertia I about the same point and S
carry the same information: ``S = tr(I)/2 1 - I`` and ``I = tr(S) 1 - S``.

All are sums over simplices (points, segments, triangles, tetrahedra with a common apex): with n corners x_i, their sum s and
a mass m, the moments of order 0, 1, 2 are ``m``, ``m s / n`` and ``m (s s^T + sum x_i x_i^T) / (n (n + 1))``
(Tonon, "Explicit exact formulas for the 3-D tetrahedron inertia tensor", J. Math. Stat. 2005).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from abd.errors import SceneError


@dataclass(frozen=True)
class MassProperties:
    """Mass [kg], volume of matter [m^3], centre of mass (3,) [m] and S (3, 3) [kg m^2] about the centre, mesh axes."""

    mass: float
    volume: float
    center: np.ndarray
    second_moment: np.ndarray
    notes: tuple[str, ...] = ()

    @property
    def inertia(self) -> np.ndarray:
        """(3, 3) rigid inertia tensor about the centre of mass [kg m^2]."""
        return np.trace(self.second_moment) * np.eye(3) - self.second_moment


def solid(vertices: np.ndarray, triangles: np.ndarray, density: float) -> MassProperties:
    """The body of constant `density` [kg/m^3] bounded by a closed, consistently oriented surface.

    If all triangles face inwards, the sign of the integral is reversed, with a note.

    Args:
        vertices: (v, 3) [m].
        triangles: (f, 3) indices; the surface must be closed (see `Surface.closed`).

    Raises:
        SceneError: the surface encloses no volume.
    """
    signed_volume = enclosed_volume(vertices, triangles)
    if signed_volume == 0.0:
        remedy = "give mass and inertia, or an open surface with a thickness"
        raise SceneError.of("the closed surface encloses no volume", value=signed_volume, remedy=remedy)
    notes = ("its triangles face inwards and were treated as facing outwards",) if signed_volume < 0.0 else ()
    apex, corners, determinant = _tetrahedra(vertices, triangles)
    corners = np.concatenate([np.zeros_like(corners[:, :1]), corners], axis=1)
    masses = density * determinant / 6.0 * np.sign(signed_volume)
    return _simplices(apex, corners, masses, abs(signed_volume), notes)


def enclosed_volume(vertices: np.ndarray, triangles: np.ndarray) -> float:
    """Return the signed volume [m^3] within closed triangles, negative if they face inwards; 0 for a result of rounding."""
    _, _, determinant = _tetrahedra(vertices, triangles)
    extent = np.ptp(vertices[triangles].reshape(-1, 3), axis=0).max()
    volume = determinant.sum() / 6.0
    smallest = max(1e-12 * extent**3, 1e-9 * np.abs(determinant).sum() / 6.0)
    return float(volume) if abs(volume) > smallest else 0.0


def thin(vertices: np.ndarray, elements: np.ndarray, density: float) -> MassProperties:
    """Return the mass of points, straight lines or triangles without thickness (volume 0).

    Args:
        elements: (k, n) vertices of elements with n = 1, 2 or 3 corners; density: [kg], [kg/m] or [kg/m^2].

    Raises:
        SceneError: the elements have no length or no area.
    """
    masses = density * _sizes(vertices[elements])
    if masses.sum() <= 0.0:
        message = "the polylines have no length" if elements.shape[1] == 2 else "the surface has no area"
        raise SceneError.of(message, value=0.0, remedy="give mass and inertia")
    apex = vertices[np.unique(elements)].mean(axis=0)
    return _simplices(apex, vertices[elements] - apex, masses)


def thick(vertices: np.ndarray, elements: np.ndarray, density: float, size: float) -> MassProperties:
    """Return the mass of balls about points, of straight round rods along lines, or of shells along triangles.

    In addition to `thin` elements, balls have ``m r^2/5`` along every axis, rods ``m r^2/4`` transversely, and shells
    ``m_f t^2/12 n n^T`` per face.

    Args:
        elements: as in `thin`; density: [kg/m^3]; size: radius r of balls and rods, thickness t of shells [m].

    Raises:
        SceneError: the size, or the length or area of the elements, is not positive.
    """
    corners, count = vertices[elements], elements.shape[1]
    if not (size > 0.0 and np.isfinite(size)):
        key, kind = (("radius", "points"), ("radius", "polylines"), ("thickness", "an open surface"))[count - 1]
        message, remedy = f"the mass of {kind} needs a {key} [m]", f"give {key} > 0, or mass and inertia"
        raise SceneError.of(message, key=key, value=size, remedy=remedy)
    section = (4.0 / 3.0 * np.pi * size**3, np.pi * size**2, size)[count - 1]
    flat, sizes = thin(vertices, elements, density * section), _sizes(corners)
    positive = np.where(sizes > 0.0, sizes, 1.0)
    if count == 1:
        across = flat.mass * size**2 / 5.0 * np.eye(3)
    elif count == 2:
        axial = _weighted_outer(density * section / positive, corners[:, 1] - corners[:, 0])
        across = size**2 / 4.0 * (flat.mass * np.eye(3) - axial)
    else:
        across = _weighted_outer(density * size**3 / 48.0 / positive, _normals(corners))
    return replace(flat, volume=section * sizes.sum(), second_moment=flat.second_moment + across)


def capsule(radius: float, length: float) -> MassProperties:
    """Return a solid capsule of density 1 kg/m^3 along z about the origin; `length` without its half-balls [m].

    The half-balls, together of mass m, have ``m r^2/5`` along every axis, and ``m (L^2/4 + 3/8 r L)`` more along z, as the middle
    of a half-ball is 3/8 r beyond its end.
    """
    rod, ends = np.pi * radius**2 * length, 4.0 / 3.0 * np.pi * radius**3
    across = rod * radius**2 / 4.0 + ends * radius**2 / 5.0
    along = rod * length**2 / 12.0 + ends * (length**2 / 4.0 + 0.375 * radius * length + radius**2 / 5.0)
    return MassProperties(rod + ends, rod + ends, np.zeros(3), np.diag([across, across, along]))


def frustum(low: float, high: float, length: float) -> MassProperties:
    """Return a frustum of density 1 kg/m^3 along z about the origin, with the radii `low` and `high` at its ends [m]."""
    at, weights = np.polynomial.legendre.leggauss(3)  # exact for the fourth powers of radii
    z, radius = 0.5 * length * at, low + 0.5 * (high - low) * (1.0 + at)
    slices = 0.5 * length * weights * np.pi * radius**2
    volume = float(slices.sum())
    center = float(slices @ z) / volume
    across = float(slices @ radius**2) / 4.0
    second = np.diag([across, across, float(slices @ (z - center) ** 2)])
    return MassProperties(volume, volume, np.array([0.0, 0.0, center]), second)


def second_moment_of_inertia(inertia) -> np.ndarray:
    """``S = tr(I)/2 1 - I`` (3, 3) of a rigid inertia tensor about the same point, or of three principal moments.

    Negative eigenvalues within a millionth of the trace are taken for rounded input and set to zero.

    Raises:
        SceneError: the tensor is not symmetric, or S has a negative eigenvalue, so one principal moment exceeds the sum of
            the two others.
    """
    tensor = np.asarray(inertia, dtype=float)
    tensor = np.diag(tensor) if tensor.shape == (3,) else tensor
    if np.abs(tensor - tensor.T).max() > 1e-9 * np.abs(tensor).max():
        raise SceneError.of("the inertia tensor must be symmetric", key="inertia", value=tensor.tolist())
    second_moment = np.trace(tensor) / 2.0 * np.eye(3) - _symmetric(tensor)
    values, vectors = np.linalg.eigh(second_moment)
    trace = np.trace(second_moment)
    if trace <= 0.0 or values[0] < -1e-6 * trace:
        least, middle, largest = np.sort(np.linalg.eigvalsh(tensor))
        raise SceneError.of(
            f"principal moments {least:g}, {middle:g}, {largest:g}: the largest must not exceed the sum of the others",
            key="inertia",
            value=tensor.tolist(),
            remedy="check units and axes; the reference point is the centre of mass",
        )
    if values[0] >= 0.0:
        return second_moment
    return _symmetric((vectors * np.maximum(values, 0.0)) @ vectors.T)


def symmetric_tensor(xx: float, yy: float, zz: float, xy: float, xz: float, yz: float) -> np.ndarray:
    """(3, 3) symmetric tensor of its six entries in the order of MuJoCo, URDF and Newton."""
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def nearest_inertia(inertia: np.ndarray, least: float) -> np.ndarray:
    """(3, 3) an inertia that a body can have: the given one, or one whose S = tr(I)/2 - I has no moment below
    `least` of its largest."""
    values, axes = np.linalg.eigh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    if values[0] >= -1e-9 * values[-1]:
        return inertia
    values = np.maximum(values, max(least * values[-1], 1e-300))
    return values.sum() * np.eye(3) - (axes * values) @ axes.T


def united(parts: list[MassProperties]) -> MassProperties:
    """Mass properties of several parts together (parallel axes); at least one part."""
    if len(parts) == 1:
        return parts[0]
    mass = sum(part.mass for part in parts)
    center = sum(part.mass * part.center for part in parts) / mass
    second = np.zeros((3, 3))
    for part in parts:
        arm = part.center - center
        second += part.second_moment + part.mass * np.outer(arm, arm)
    notes = tuple(note for part in parts for note in part.notes)
    return MassProperties(mass, sum(part.volume for part in parts), center, _symmetric(second), notes)


def _tetrahedra(vertices: np.ndarray, triangles: np.ndarray):
    """Common apex (3,), corners (f, 3, 3) of all triangles from there, and determinants (f,)."""
    apex = vertices[np.unique(triangles)].mean(axis=0)
    corners = vertices[triangles] - apex
    return apex, corners, np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))


def _sizes(corners: np.ndarray) -> np.ndarray:
    """1, lengths [m] or areas [m^2] (k,) of points, lines or triangles with corners (k, n, 3)."""
    if corners.shape[1] == 3:
        return np.linalg.norm(_normals(corners), axis=1) / 2.0
    return np.linalg.norm(corners[:, 1] - corners[:, 0], axis=1) if corners.shape[1] == 2 else np.ones(len(corners))


def _normals(corners: np.ndarray) -> np.ndarray:
    """(k, 3) normals of triangles, twice as long as their areas."""
    return np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])


def _simplices(apex: np.ndarray, corners: np.ndarray, masses: np.ndarray, volume: float = 0.0, notes=()) -> MassProperties:
    """Simplices with corners (k, n, 3) about `apex`, of these masses (k,)."""
    n, total, corner_sum = corners.shape[1], float(masses.sum()), corners.sum(axis=1)
    second = _weighted_outer(masses, corner_sum) + sum(_weighted_outer(masses, corners[:, i]) for i in range(n))
    shift = masses @ corner_sum / (n * total)
    about_center = second / (n * (n + 1)) - total * np.outer(shift, shift)
    return MassProperties(total, volume, apex + shift, _symmetric(about_center), notes)


def _weighted_outer(weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(3, 3) sum over k of ``weights_k rows_k rows_k^T``."""
    return np.einsum("k,ki,kj->ij", weights, rows, rows)


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    return (matrix + matrix.T) / 2.0
