"""Generalized alpha on bodies that spin while joints hold them.

A force that holds a spinning body acts on its gyroscopic motion. Across its spin a body that turns by ``x = h |L| / J`` in a
step answers an impulse at its begin by ``E = (e^(ix) - 1)/(ix)`` times what it would at rest, i turning about L by a quarter.
In a step

    theta <- free motion + h I^-1 (D1 a_{n+1} + Dn a_n),        L <- L + (1 - gamma) h a_n + gamma h a_{n+1},

whose D1 = beta and Dn = 1/2 - beta know nothing of that, a force that alternates from step to step, which generalized alpha of
the spectral radius rho damps by it, grows: for rho = 1 at any spin, for 0.9 from 0.3 rad on, for 0.8 from 0.5. The forces that
this difference equation lets through, the zeros of

    D1 z^2 + (Dn - D1 + gamma E) z + (1 - gamma) E - Dn,

are -rho twice at rest. Here they are -rho and z_2, of the same modulus where a real D1, all that a potential can have, allows
it; with y = x/2 and R = cos y + (rho^2 - sin^2 y)^(1/2)

    D1 = sin y / (y (1 + rho) R),   z_2 = 1 - R e^(iy),   Dn = (1 - gamma) E + rho D1 z_2,

which at rest is generalized alpha. Its order is kept: D1 - beta and the real part of Dn - (1/2 - beta) are of the order h^2,
the imaginary one of the order h, in displacements of the order h^2. A symmetric top on its tip then has the eigenvalues of
generalized alpha up to 1.5 rad per step, and its slow motion grows by less than 1e-5 per step up to half a radian.

Thin axes. A rod's spin about itself changes by torques about it alone, however fast it tumbles, if its other two moments are
equal. Of momenta in axes of the world that is a difference of large numbers: what a step is wrong by across the rod, J_2 h^3,
is spin of the small moment J_1 in the next one. For bodies with one moment below `THIN` of the others, what is remembered
about its axis e goes with it, and the momentum about it follows Euler's equation,

    e L <- (e L)_free + h/2 (J_2 - J_3) (w_2 w_3 - (w_2 w_3)_free) + h ((1 - gamma) (e a)_n + gamma (e a)_{n+1}),

`free` at the end of the free motion of the step.
"""

from __future__ import annotations

import numpy as np

FURTHEST = 1.5
"""Turn [rad] beyond which the shares stay what they are there."""
THIN = 0.5
"""Share of the next larger moment of inertia below which the least one belongs to a thin axis."""


def shares(turn: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """D1 (n,), and Dn (n,), complex: what the forces of the new step and of the last one displace, over h^2.

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
    """(n,) the own axis about which bodies of the moments s (n, 3) are `THIN`, -1 where there is none."""
    J = moment.sum(axis=1, keepdims=True) - moment
    least, next_one = np.sort(J, axis=1)[:, :2].T
    return np.where(least < THIN * next_one, np.argmin(J, axis=1), -1)


def carried(v: np.ndarray, now: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Vectors v (n, 3) whose part along thin axes went with the body, from `now` (n, 3) to `new` (n, 3)."""
    return v + np.sum(v * (now - new), axis=1, keepdims=True) * new
