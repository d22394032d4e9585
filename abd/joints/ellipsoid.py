"""Ellipsoid joint: the origin of C glides on an ellipsoid of D, turns about the normal there, and tilts.

Parameters: ``radii`` (3,) = (A, B, C) [m]; ``alpha`` [rad], which turns the axis of the tilt about the normal, default 0;
``open_sim`` takes OpenSim's frame on the surface, ``Rx(longitude) Ry(latitude)``, whose z is the normal of a sphere only.

    point        p = (A sin g, -B sin psi cos g, C cos psi cos g), psi the longitude, g the latitude
    R_SD         x along dp/dg, z the normal, at p
    rows         surface [m], and tilt: ``z_S . (cos alpha x_C + sin alpha y_C)`` [rad], both measured
    coordinates  longitude, latitude, theta, phi     R_CD = R_SD Rz(theta + alpha) Rx(phi) Rz(-alpha)

At zero coordinates C is at (0, 0, C), not at the origin of D. At the poles, x = +-A, the longitude is not defined.
The surface row is ``|(x/A, y/B, z/C)| - 1`` times the geometric mean of the radii, metres for a sphere.
"""

from __future__ import annotations

import numpy as np

from abd.joints.measures import Measure, MeasureKind, along, measure, surface_triad
from abd.joints.motions import Motion, X, Z, product, rotation
from abd.joints.parameters import wrong
from abd.joints.rows import Row
from abd.model import Joint

UID = 0


def rows(joint: Joint) -> list[Row]:
    """None."""
    return []


def measured(joint: Joint) -> list[Measure]:
    """surface [m], tilt [rad]."""
    return constraints(joint)


def constraints(joint: Joint) -> list[Measure]:
    """surface [m], tilt [rad]."""
    alpha = _alpha(joint)
    return [surface(joint), normal_dot(joint, "tilt", (np.cos(alpha), np.sin(alpha), 0.0))]


def coordinates(joint: Joint) -> list[Measure]:
    """longitude, latitude, theta, phi [rad]."""
    numbers = surface_numbers(joint, alpha=_alpha(joint))
    return [
        *place(joint, ("longitude", "latitude")),
        measure("theta", True, MeasureKind.SURFACE_ROLL, numbers),
        measure("phi", True, MeasureKind.SURFACE_TILT, numbers),
    ]


def motions(joint: Joint) -> list[Motion] | None:
    """None: not a product of elementary motions."""
    return None


def transform(joint: Joint, values: np.ndarray) -> np.ndarray:
    """T_CD (4, 4) at (longitude, latitude, theta, phi)."""
    alpha = _alpha(joint)
    turn = product(
        [rotation("theta", Z), rotation("phi", X), rotation("alpha", Z)], (values[2] + alpha, values[3], -alpha)
    )
    return on_surface(joint, values[0], values[1]) @ turn


def on_surface(joint: Joint, longitude: float, latitude: float) -> np.ndarray:
    """T_SD (4, 4): the point of the surface and the frame there."""
    sine, cosine = np.sin(latitude), np.cos(latitude)
    unit = np.array([sine, -np.sin(longitude) * cosine, np.cos(longitude) * cosine])
    numbers = surface_numbers(joint)
    T = np.eye(4, dtype=unit.dtype)
    T[:3, 3] = numbers[:3] * unit
    T[:3, :3] = surface_triad(numbers[None], T[None, :3, 3])[0]
    return T


def surface(joint: Joint) -> Measure:
    """Distance from the surface [m], scaled as above."""
    radii = _radii(joint)
    mean = float(np.prod(radii)) ** (1.0 / 3.0)
    parts = (along(k, 1.0 / radius) for k, radius in enumerate(radii))
    return measure("surface", False, MeasureKind.NORM, *parts, scale=mean, offset=-mean)


def normal_dot(joint: Joint, name: str, direction: tuple[float, float, float]) -> Measure:
    """``z_S . v`` [rad] of a direction v of C that is tangential at zero."""
    return measure(name, True, MeasureKind.SURFACE_DOT, surface_numbers(joint, direction))


def place(joint: Joint, names: tuple[str, str]) -> list[Measure]:
    """Longitude and latitude [rad] by these names."""
    across, up, ahead = (along(k, 1.0 / radius) for k, radius in enumerate(_radii(joint)))
    return [
        measure(names[0], True, MeasureKind.ANGLE, -up, ahead),
        measure(names[1], True, MeasureKind.ELEVATION, across, up, ahead),
    ]


def surface_numbers(joint: Joint, direction=(0.0, 0.0, 0.0), alpha: float = 0.0) -> np.ndarray:
    """(8,) parameters of the surface kinds: radii, OpenSim's variant, a direction of C, alpha."""
    open_sim = 1.0 if joint.parameters.get("open_sim", False) else 0.0
    return np.array([*_radii(joint), open_sim, *direction, alpha])


def _radii(joint: Joint) -> np.ndarray:
    radii = np.asarray(joint.parameters["radii"], dtype=float)
    if radii.shape != (3,) or not (radii > 0.0).all():
        raise wrong(joint, "radii", "must be three lengths above 0")
    return radii


def _alpha(joint: Joint) -> float:
    return float(joint.parameters.get("alpha", 0.0))
