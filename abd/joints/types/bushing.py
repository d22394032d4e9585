"""Bushings: springs and dampers on all six axes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from abd.joint_model import Joint
from abd.joints.joint_type import JointType, parameter_error
from abd.joints.measures.axes import displacement, xyz_angles
from abd.joints.measures.combined import Combined
from abd.joints.measures.measures import Measure
from abd.joints.measures.motions import X, Y, Z, rotation, translation

NEGLIGIBLE = 1e-12
"""Tolerance, relative to the largest value, for eigenvalues and asymmetries that count as zero."""


class Bushing(JointType):
    """Bushing: springs and dampers on the displacement and the rotation of C in D (Exudyn's RigidBodySpringDamper).

    They act on ``e = (x, y, z, rx, ry, rz)``: displacements [m] along axes of D and Tait-Bryan angles [rad].

    Parameters:

        stiffness, damping  one number, six numbers or a symmetric positive semidefinite 6x6 matrix
                            [N/m, N, N m/rad; damping: times s]
        rest                (6,) [m, rad], default 0

        combined     springs with the total energy ``(e - rest)^T stiffness (e - rest) / 2``
        coordinates  x, y, z, rx, ry, rz                          T_CD = (Rx(rx) Ry(ry) Rz(rz); x, y, z)
    """

    SYMBOL = MARKER = "ball"
    NEEDED: ClassVar = {"stiffness": 10.0}
    OPTIONAL = ("damping", "rest")

    def combined(self, joint: Joint) -> list[Combined]:
        """Springs along the axes if both matrices are diagonal; otherwise along the eigenvectors of each matrix."""
        K, D = _matrix(joint, "stiffness"), _matrix(joint, "damping")
        rest = np.broadcast_to(np.asarray(joint.parameters.get("rest", 0.0), dtype=float), 6)
        measures = tuple(self.coordinates(joint))
        if _is_diagonal(K) and _is_diagonal(D):
            return [
                Combined(one.name, one.rotary, (one,), (1.0,), float(K[k, k]), float(D[k, k]), float(rest[k]))
                for k, one in enumerate(measures)
                if K[k, k] > 0.0 or D[k, k] > 0.0
            ]
        springs = []
        for key, matrix in (("stiffness", K), ("damping", D)):
            for k, (value, weights) in enumerate(_weighted_squares(joint, key, matrix)):
                gains = (value, 0.0) if key == "stiffness" else (0.0, value)
                is_rotary = not weights[:3].any()
                springs.append(
                    Combined(
                        f"{key} {k + 1}", is_rotary, measures, tuple(weights.tolist()), *gains, float(weights @ rest)
                    )
                )
        return springs

    def coordinates(self, joint: Joint) -> list[Measure]:
        """x, y, z [m], rx, ry, rz [rad]."""
        return [*(displacement(name) for name in "xyz"), *xyz_angles()]

    def motions(self, joint: Joint) -> list[np.ndarray]:
        """Translations, then the three rotations."""
        return [*map(translation, (X, Y, Z)), *map(rotation, (X, Y, Z))]


def _matrix(joint: Joint, key: str) -> np.ndarray:
    given = np.asarray(joint.parameters.get(key, 0.0), dtype=float)
    if given.shape not in ((), (1,), (6,), (6, 6)):
        raise parameter_error(joint, key, "must be one number, six, or six rows of six")
    matrix = given if given.ndim == 2 else np.diag(np.broadcast_to(given, 6))
    if not np.allclose(matrix, matrix.T, rtol=NEGLIGIBLE, atol=NEGLIGIBLE * np.abs(matrix).max()):
        raise parameter_error(joint, key, "must be symmetric")
    if (np.diag(matrix) < 0.0).any():
        raise parameter_error(joint, key, "must not be negative")
    return matrix


def _is_diagonal(matrix: np.ndarray) -> bool:
    return not (matrix - np.diag(np.diag(matrix))).any()


def _weighted_squares(joint: Joint, key: str, matrix: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """(value, weights (6,)) with ``e^T matrix e = sum value (weights . e)^2``.

    The matrix is scaled to a unit diagonal first, because its blocks of metres and radians differ in magnitude.
    """
    diagonal = np.diag(matrix)
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    if values[0] < -NEGLIGIBLE * max(1.0, values[-1]):
        raise parameter_error(joint, key, "has a negative eigenvalue")
    kept = [k for k in range(6) if values[k] > NEGLIGIBLE]
    return [(float(values[k]), vectors[:, k] * scale) for k in kept]
