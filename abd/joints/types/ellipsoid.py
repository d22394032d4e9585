"""Joints whose child slides on an ellipsoid."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from abd.joint_model import Joint
from abd.joints.joint_type import JointType, parameter_error
from abd.joints.measures.measures import Measure, MeasureKind, along, measure, surface_normal, surface_triad
from abd.joints.measures.motions import X, Y, Z, product, rotation
from abd.rotations import least_turn, pose


class Ellipsoid(JointType):
    """Ellipsoid joint: the origin of C slides on an ellipsoid of D; C rotates about the surface normal and tilts.

    Parameters:

        radii     (3,) = (A, B, C) [m]
        alpha     rotation [rad] of the tilt axis about the normal, default 0
        open_sim  use OpenSim's surface frame, ``Rx(longitude) Ry(latitude)``; its z is the normal of a sphere only

        point        p = (A sin g, -B sin psi cos g, C cos psi cos g), psi the longitude, g the latitude
        R_SD         x along dp/dg, z the normal, at p
        rows         surface [m], and tilt: ``z_S . (cos alpha x_C + sin alpha y_C)`` [rad], both measured
        coordinates  longitude, latitude, theta, phi     R_CD = R_SD Rz(theta + alpha) Rx(phi) Rz(-alpha)

    At zero coordinates C is at (0, 0, C), not at the origin of D. At the poles, x = +-A, the longitude is undefined.
    The surface row is ``|(x/A, y/B, z/C)| - 1`` times the geometric mean of the radii; for a sphere this is the
    distance.
    """

    SYMBOL = MARKER = "ball"
    NEEDED: ClassVar = {"radii": (1.0, 2.0, 3.0)}
    OPTIONAL = ("alpha", "open_sim")
    NAMES = ("longitude", "latitude")

    def measured(self, joint: Joint) -> list[Measure]:
        """surface [m], tilt [rad]."""
        return [surface(joint), normal_dot(joint, "tilt", _tilt_axis(joint))]

    def coordinates(self, joint: Joint) -> list[Measure]:
        """longitude, latitude, theta, phi [rad]."""
        across, up, ahead = (along(k, 1.0 / radius) for k, radius in enumerate(_radii(joint)))
        numbers = surface_numbers(joint, alpha=_alpha(joint))
        return [
            measure(self.NAMES[0], True, MeasureKind.ANGLE, -up, ahead),
            measure(self.NAMES[1], True, MeasureKind.ELEVATION, across, up, ahead),
            measure("theta", True, MeasureKind.SURFACE_ROLL, numbers),
            measure("phi", True, MeasureKind.SURFACE_TILT, numbers),
        ]

    def transform(self, joint: Joint, values: np.ndarray) -> np.ndarray:
        """T_CD (4, 4) at (longitude, latitude, theta, phi)."""
        alpha = _alpha(joint)
        turn = product([rotation(Z), rotation(X), rotation(Z)], (values[2] + alpha, values[3], -alpha))
        return on_surface(joint, values[0], values[1]) @ turn

    def project(self, joint: Joint, T: np.ndarray) -> np.ndarray:
        """T_GD (4, 4): the nearest point, and the smallest rotation of the tilt axis into the tangent plane."""
        point, normal = _nearest(joint, T)
        axis = T[:3, :3] @ _tilt_axis(joint)
        flat = axis - (axis @ normal) * normal
        return pose(least_turn(axis, flat / np.linalg.norm(flat)) @ T[:3, :3], point)


class Ellipsoid3(Ellipsoid):
    """Ellipsoid joint of three coordinates: C slides on an ellipsoid of D and rotates about the normal without tilt.

    Parameters ``radii`` and ``open_sim`` as in `Ellipsoid`.

        rows         surface [m]; rx, ry: ``y_C`` and ``x_C`` are perpendicular to z_S; all measured
        constraints  surface rx ry
        coordinates  x (the longitude), y (the latitude), theta              T_CD = T_SD(x, y) Rz(theta)
    """

    OPTIONAL = ("open_sim",)
    NAMES = ("x", "y")

    def measured(self, joint: Joint) -> list[Measure]:
        """surface [m], rx, ry [rad]: small rotations of C about x and y of the surface frame."""
        return [surface(joint), normal_dot(joint, "rx", Y), normal_dot(joint, "ry", -X)]

    def coordinates(self, joint: Joint) -> list[Measure]:
        """x, y, theta [rad]."""
        return super().coordinates(joint)[:3]

    def transform(self, joint: Joint, values: np.ndarray) -> np.ndarray:
        """T_CD (4, 4) at (x, y, theta)."""
        return super().transform(joint, (*values, 0.0))

    def project(self, joint: Joint, T: np.ndarray) -> np.ndarray:
        """T_GD (4, 4): the nearest point of the ellipsoid, and the smallest rotation of z onto its normal."""
        point, normal = _nearest(joint, T)
        return pose(least_turn(T[:3, 2], normal) @ T[:3, :3], point)


def _nearest(joint: Joint, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Point (3,) of the surface nearest to the origin of C at T_CD (4, 4), and the normal (3,) there."""
    point = nearest_point(_radii(joint), T[:3, 3])
    return point, surface_normal(surface_numbers(joint)[None], point[None])[0]


def nearest_point(radii: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Point p (3,) of the ellipsoid nearest to x (3,).

    ``p_i = a_i^2 x_i / (a_i^2 + t)``, t the largest root of ``sum_i (a_i x_i / (a_i^2 + t))^2 = 1``, by bisection
    (Eberly 2011, "Distance from a point to an ellipsoid"). A point x on a plane of symmetry may have two nearest
    points; the one with the larger coordinate is returned.
    """
    square, product = radii**2, radii * x
    least = int(np.argmin(radii))
    low, high = -square[least] + radii[least] * abs(x[least]), -square[least] + float(np.linalg.norm(product))
    others = np.delete(np.arange(3), least)
    if x[least] == 0.0:
        room = square[others] - square[least]
        outside = np.where(product[others] != 0.0, np.inf, 0.0)
        reach = np.divide(product[others], room, out=outside, where=room > 0.0)
        if np.sum(reach**2) < 1.0:
            p = np.zeros(3)
            p[others] = np.divide(square[others] * x[others], room, out=np.zeros(2), where=room > 0.0)
            p[least] = radii[least] * np.sqrt(max(0.0, 1.0 - np.sum((p[others] / radii[others]) ** 2)))
            return p
    for _ in range(200):
        t = 0.5 * (low + high)
        if t in (low, high):
            break
        inside = np.sum((product / (square + t)) ** 2) < 1.0
        low, high = (low, t) if inside else (t, high)
    return square * x / (square + t)


def on_surface(joint: Joint, longitude: float, latitude: float) -> np.ndarray:
    """T_SD (4, 4): point and surface frame at a longitude and latitude [rad]."""
    sine, cosine = np.sin(latitude), np.cos(latitude)
    unit = np.array([sine, -np.sin(longitude) * cosine, np.cos(longitude) * cosine])
    numbers = surface_numbers(joint)
    T = np.eye(4, dtype=unit.dtype)
    T[:3, 3] = numbers[:3] * unit
    T[:3, :3] = surface_triad(numbers[None], T[None, :3, 3])[0]
    return T


def surface(joint: Joint) -> Measure:
    """Scaled distance from the surface [m] (`Ellipsoid`)."""
    radii = _radii(joint)
    mean = float(np.prod(radii)) ** (1.0 / 3.0)
    parts = (along(k, 1.0 / radius) for k, radius in enumerate(radii))
    return measure("surface", False, MeasureKind.NORM, *parts, scale=mean, offset=-mean)


def normal_dot(joint: Joint, name: str, direction: np.ndarray) -> Measure:
    """``z_S . v`` [rad] for a direction v of C that is tangential when the row is zero."""
    return measure(name, True, MeasureKind.SURFACE_DOT, surface_numbers(joint, direction))


def surface_numbers(joint: Joint, direction=(0.0, 0.0, 0.0), alpha: float = 0.0) -> np.ndarray:
    """(8,) parameters of the surface measures: radii, OpenSim's variant, a direction of C, alpha."""
    open_sim = 1.0 if joint.parameters.get("open_sim", False) else 0.0
    return np.array([*_radii(joint), open_sim, *direction, alpha])


def _radii(joint: Joint) -> np.ndarray:
    radii = np.asarray(joint.parameters["radii"], dtype=float)
    if radii.shape != (3,) or not (radii > 0.0).all():
        raise parameter_error(joint, "radii", "must be three lengths above 0")
    return radii


def _alpha(joint: Joint) -> float:
    return float(joint.parameters.get("alpha", 0.0))


def _tilt_axis(joint: Joint) -> np.ndarray:
    """(3,) in C."""
    return np.array([np.cos(_alpha(joint)), np.sin(_alpha(joint)), 0.0])
