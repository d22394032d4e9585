"""Ellipsoid joint of three coordinates: C glides on an ellipsoid of D and turns about the normal, without tilting.

Parameters ``radii`` and ``open_sim`` as in `abd.joints.types.ellipsoid`.

    rows         surface [m]; rx, ry: ``y_C`` and ``x_C`` are at right angles to z_S; all measured
    constraints  surface rx ry
    coordinates  x (the longitude), y (the latitude), theta              T_CD = T_SD(x, y) Rz(theta)
"""

from __future__ import annotations

import numpy as np

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure, MeasureKind, measure, surface_normal
from abd.joints.pieces.motions import Motion, Z, product, rotation
from abd.joints.types.ellipsoid import nearest_point, normal_dot, on_surface, place, surface, surface_numbers
from abd.model import Joint
from abd.rotations import least_turn

UID = 0


def rows(joint: Joint) -> list[Row]:
    """None."""
    return []


def measured(joint: Joint) -> list[Measure]:
    """surface [m], rx, ry [rad]."""
    return constraints(joint)


def constraints(joint: Joint) -> list[Measure]:
    """surface [m], rx, ry [rad]: small rotations of C about the x and y of the frame on the surface."""
    return [
        surface(joint),
        normal_dot(joint, "rx", (0.0, 1.0, 0.0)),
        normal_dot(joint, "ry", (-1.0, 0.0, 0.0)),
    ]


def coordinates(joint: Joint) -> list[Measure]:
    """x, y, theta [rad]."""
    theta = measure("theta", True, MeasureKind.SURFACE_ROLL, surface_numbers(joint))
    return [*place(joint, ("x", "y")), theta]


def motions(joint: Joint) -> list[Motion] | None:
    """None: not a product of elementary motions."""
    return None


def project(joint: Joint, T: np.ndarray) -> np.ndarray:
    """T_GD (4, 4): the nearest point of the ellipsoid, and the least rotation of z onto the normal there."""
    numbers = surface_numbers(joint)
    G = T.copy()
    G[:3, 3] = nearest_point(numbers[:3], T[:3, 3])
    G[:3, :3] = least_turn(T[:3, 2], surface_normal(numbers[None], G[None, :3, 3])[0]) @ T[:3, :3]
    return G


def transform(joint: Joint, values: np.ndarray) -> np.ndarray:
    """T_CD (4, 4) at (x, y, theta)."""
    return on_surface(joint, values[0], values[1]) @ product([rotation("theta", Z)], values[2:])
