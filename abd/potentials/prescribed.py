"""Augmented Lagrangian of the prescribed pose of a kinematic body, used while contact obstructs the body.

``E = penalty w/2 (|dp|^2 + spread |dA|^2) - l_p . dp - l_A : dA`` with d = pose - target. Multipliers increase by the
remaining penalty force until the target is reached.
"""

from __future__ import annotations

import numpy as np


def energy(weight, spread, penalty, dp, dA, lp, lA) -> np.ndarray:
    """(n,) energies; weight (n,) [kg], spread (n,) [m^2], dp (n, 3) [m], dA (n, 3, 3), multipliers likewise."""
    quadratic = np.sum(dp * dp, axis=1) + spread * np.sum(dA * dA, axis=(1, 2))
    return 0.5 * penalty * weight * quadratic - np.sum(lp * dp, axis=1) - np.sum(lA * dA, axis=(1, 2))


def gradient(weight, spread, penalty, dp, dA, lp, lA) -> tuple[np.ndarray, np.ndarray]:
    """Gradients (n, 3) and (n, 3, 3)."""
    w = penalty * weight
    return w[:, None] * dp - lp, (w * spread)[:, None, None] * dA - lA


def hessian(weight, spread, penalty) -> np.ndarray:
    """(n, 12, 12), constant and diagonal."""
    affine = np.repeat(np.asarray(spread)[:, None], 9, axis=1)
    diagonal = np.concatenate([np.ones((len(affine), 3)), affine], axis=1)
    return (penalty * np.asarray(weight))[:, None, None] * diagonal[:, :, None] * np.eye(12)
