"""The path of a step: arcs (docs/theory.md, "Newton's method on arcs"); straight steps have W = 0.

    p(alpha) = p + alpha dp,    A(alpha) = exp(alpha W) (1 + alpha S) A,    alpha in [0, 1],    W = [w]_x

For a direction (dp, dA) with ``D = dA A^-1``, W is the rotation that the body may follow and ``S = D - W`` the rest.
The initial derivative of the arc is the direction for any W.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.rotations import axial, nearest_rotation_vectors, polar, rotations, skew


@dataclass(frozen=True)
class Path:
    """Arcs of n bodies.

    Attributes:
        p: (n, 3) origins at alpha = 0 [m]; A: (n, 3, 3) affine maps at alpha = 0.
        dp: (n, 3) [m]; w: (n, 3) axial vectors of W [rad]; S: (n, 3, 3).
        radius: (n,) largest deformed radius |A X| of the bodies' points [m].
    """

    p: np.ndarray
    A: np.ndarray
    dp: np.ndarray
    w: np.ndarray
    S: np.ndarray
    radius: np.ndarray

    @property
    def turn(self) -> np.ndarray:
        """(n,) |W| [rad]."""
        return np.linalg.norm(self.w, axis=1)

    @property
    def strain(self) -> np.ndarray:
        """(n,) |S|."""
        return np.linalg.norm(self.S, 2, axis=(1, 2))

    @property
    def bend(self) -> np.ndarray:
        """(n,) bounds ``r (|W|^2 (1 + |S|) + 2 |W| |S|)`` of the second derivative of every point [m]."""
        turn, strain = self.turn, self.strain
        return self.radius * (turn**2 * (1.0 + strain) + 2.0 * turn * strain)

    @property
    def affine_speed(self) -> np.ndarray:
        """(n,) bounds ``r (|W| (1 + |S|) + |S|)`` of the first derivative of every point relative to the origin [m]."""
        turn, strain = self.turn, self.strain
        return self.radius * (turn * (1.0 + strain) + strain)

    def approach(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """(m,) bounds of the decrease of the distance of two bodies (m,) along their arcs [m]."""
        speed = self.affine_speed
        return np.linalg.norm(self.dp[first] - self.dp[second], axis=1) + speed[first] + speed[second]

    def origins(self, bodies: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """(m, 3) origins of bodies (m,) at alpha (m,) [m]."""
        return self.p[bodies] + alpha[:, None] * self.dp[bodies]

    def maps(self, bodies: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """(m, 3, 3) affine maps of bodies (m,) at alpha (m,)."""
        A = self.A[bodies]
        return rotations(alpha[:, None] * self.w[bodies]) @ (A + alpha[:, None, None] * (self.S[bodies] @ A))

    def rates(self, bodies: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """(m, 3, 3) derivatives of `maps` by alpha."""
        A, S, w = self.A[bodies], self.S[bodies], self.w[bodies]
        strained = A + alpha[:, None, None] * (S @ A)
        return rotations(alpha[:, None] * w) @ (skew(w) @ strained + S @ A)

    def samples(self, alpha: np.ndarray) -> np.ndarray:
        """(k, n, 12) states of all bodies at every alpha (k,)."""
        n = len(self.p)
        bodies, alpha = np.tile(np.arange(n), len(alpha)), np.repeat(alpha, n)
        states = [self.origins(bodies, alpha), self.maps(bodies, alpha).reshape(-1, 9)]
        return np.concatenate(states, axis=1).reshape(-1, n, 12)


def direction_path(q: np.ndarray, direction: np.ndarray, turning: np.ndarray, radius: np.ndarray) -> Path:
    """Path that starts at q in a direction.

    Args:
        q, direction: (n, 12) states and their change over the whole step.
        turning: (n, 3, 3) projectors on the rotation vectors of a body: 1 for a free body, ``e e^T`` for a body that
            rotates about the axis e, 0 for a straight step.
        radius: (n,) largest deformed radii [m].
    """
    A = q[:, 3:].reshape(-1, 3, 3)
    D = direction[:, 3:].reshape(-1, 3, 3) @ np.linalg.inv(A)
    w = np.einsum("nij,nj->ni", turning, axial(D))
    return Path(p=q[:, :3], A=A, dp=direction[:, :3], w=w, S=D - skew(w), radius=radius)


def between(q: np.ndarray, end: np.ndarray, turned: np.ndarray, radius: np.ndarray) -> Path:
    """Path from one state to another: one arc per body, which ends exactly there.

    W is the rotation between the polar factors of both maps, on the branch of the logarithm nearest to `turned`. A body
    may rotate by more than half a turn. S is the rest, ``exp(-W) A1 A0^-1 - 1``. The reverse path is the same curve.

    Args:
        q, end: (n, 12) states; turned: (n, 3) rotation vectors by the angular velocities, h omega [rad].
        radius: (n,) largest deformed radii in the state q [m].
    """
    A, A1 = q[:, 3:].reshape(-1, 3, 3), end[:, 3:].reshape(-1, 3, 3)
    w = nearest_rotation_vectors(polar(A1) @ polar(A).transpose(0, 2, 1), turned)
    S = rotations(-w) @ A1 @ np.linalg.inv(A) - np.eye(3)
    return Path(p=q[:, :3], A=A, dp=end[:, :3] - q[:, :3], w=w, S=S, radius=radius)


def straight(q: np.ndarray, end: np.ndarray) -> Path:
    """Path without arcs from one state to another, both (n, 12)."""
    return direction_path(q, end - q, np.zeros((len(q), 3, 3)), np.zeros(len(q)))


def standing(q: np.ndarray) -> Path:
    """Path of bodies at rest at q (n, 12)."""
    return straight(q, q)
