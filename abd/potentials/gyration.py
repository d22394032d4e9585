"""Generalized alpha for spinning bodies under joint forces.

A force on a spinning body acts on its gyroscopic motion. Across the spin, a body that rotates by ``x = h |L| / J`` per
step responds to an impulse at the start of the step by ``E = (e^(ix) - 1)/(ix)`` times its response at rest; i is a
quarter rotation about L. In a step

    theta <- free motion + h I^-1 (D1 a_{n+1} + Dn a_n),        L <- L + (1 - gamma) h a_n + gamma h a_{n+1}

With the standard D1 = beta and Dn = 1/2 - beta, the spectral radius rho does not damp a force that alternates from step
to step. The force grows: for rho = 1 at any spin, for 0.9 from 0.3 rad on, for 0.8 from 0.5. The undamped forces of
this difference equation, the zeros of

    D1 z^2 + (Dn - D1 + gamma E) z + (1 - gamma) E - Dn,

are -rho twice at rest. Here they are -rho and z_2 with the same modulus, if a real D1, as required by a potential,
permits it. With y = x/2 and R = cos y + (rho^2 - sin^2 y)^(1/2)

    D1 = sin y / (y (1 + rho) R),   z_2 = 1 - R e^(iy),   Dn = (1 - gamma) E + rho D1 z_2,

which at rest is generalized alpha. The order of accuracy is unchanged: D1 - beta and the real part of Dn - (1/2 - beta)
are O(h^2), the imaginary part is O(h), in displacements of O(h^2). A symmetric top on its tip has the eigenvalues of
generalized alpha up to 1.5 rad per step. Its slow motion grows by less than 1e-5 per step up to half a radian.

Thin axes. If the two larger moments of a rod are equal, its spin about its axis changes by torques about this axis
only. In world axes this is a difference of large momenta: an error J_2 h^3 across the rod is spin of the small moment
J_1 in the next step. In the step of an impact this error is larger: the body turns for the whole step with its rotation
after the impact. For bodies with one moment below `THIN` of the others, in all modes, the integrator history along the
axis e rotates with the body, and the momentum about it follows Euler's equation,

    e L <- (e L)_free + h/2 (J_2 - J_3) (w_2 w_3 - (w_2 w_3)_free) + h ((1 - gamma) (e a)_n + gamma (e a)_{n+1}),

`free` at the end of the free motion of the step.
"""

from __future__ import annotations

import numpy as np

from cuda_kernels.shared.bodies import FURTHEST, THIN


def displacement_factors(turn: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """D1 (n,), and Dn (n,) complex: displacements by the forces of the new and of the last step, over h^2.

    Args:
        turn: (n,) h |L| / J [rad]; root: (n,) rho.
    """
    y = 0.5 * np.minimum(turn, FURTHEST)
    sine, turned = np.sin(y), np.exp(1j * y)
    answer = turned * np.divide(sine, y, out=np.ones_like(y), where=y > 0.0)
    R = turned.real + np.sqrt(np.maximum(root**2 - sine**2, 0.0))
    new = np.abs(answer) / ((1.0 + root) * R)
    late = (3.0 * root - 1.0) / (2.0 * (1.0 + root))  # 1 - gamma
    return new, late * answer + root * new * (1.0 - R * turned)


def thin_axis(moment: np.ndarray) -> np.ndarray:
    """(n,) index of the thin body axis (`THIN`) of bodies with moments s (n, 3), -1 without one."""
    J = moment.sum(axis=1, keepdims=True) - moment
    least, next_one = np.sort(J, axis=1)[:, :2].T
    return np.where(least < THIN * next_one, np.argmin(J, axis=1), -1)


def carried(v: np.ndarray, now: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Vectors v (n, 3) whose components along thin axes rotate with the body, from `now` (n, 3) to `new` (n, 3)."""
    return v + np.sum(v * (now - new), axis=1, keepdims=True) * new
