"""Scalar contact barriers as functions of the squared distance.

A pair at distance d with separation xi (the sum of its radii and the minimum separation) is active for
``xi < d < xi + d_hat``. With ``D = d^2`` the two log families use the shifted variables (Li et al. 2020, section 2.3)

    x = D - xi^2,    h = (xi + d_hat)^2 - xi^2 = d_hat^2 + 2 d_hat xi

    log      b = -(x - h)^2 ln(x/h)                          [m^4]   Li et al. 2020
    log_sq   b =  (x - h)^2 ln(x/h)^2                        [m^4]   libuipc
    cubic    b = -(2 / (3 d_hat)) (d - xi - d_hat)^3         [m^2]   Ando 2024

Each has a core in addition, with the weight c = `CORE`,

    c (h - x)^3 / x,    for cubic    c (h - x)^3 / (x (d_hat + 2 xi)^2)

For xi = 0 its force grows with the third power of 1 / d, so that loads far above the weight of a body, as in impacts, leave a gap
that is not tiny. At half of the activation it adds a sixth to the force of ``log``. All barriers and their first derivatives
vanish continuously at ``d = xi + d_hat`` and are unbounded at ``d = xi``. Ando's stiffness depends on the gap; here it does not.
"""

from __future__ import annotations

import numpy as np

from cuda_kernels.shared.contact import CORE

Parts = tuple[np.ndarray, np.ndarray, np.ndarray]
"""``(b, db/dD, d2b/dD2)``, each (m,)."""


def barrier(kind: str, D: np.ndarray, d_hat: np.ndarray | float, xi: np.ndarray | float = 0.0) -> Parts:
    """Barrier and its first two derivatives by the squared distance.

    Args:
        kind: one of `BARRIERS`.
        D: (m,) squared distances [m^2].
        d_hat: (m,) or scalar activation distance beyond the separation [m].
        xi: (m,) or scalar separation [m].

    Returns:
        ``(b, db/dD, d2b/dD2)``, each (m,). Beyond activation all are 0. At or below the separation b is inf and the
        derivatives are 0: line searches reject such a state.

    Raises:
        ValueError: unknown kind.
    """
    if kind not in BARRIERS:
        raise ValueError(f"unknown barrier {kind!r}: expected one of {', '.join(BARRIERS)}")
    D, xi, d_hat = np.broadcast_arrays(*(np.asarray(one, dtype=float) for one in (D, xi, d_hat)))
    x, h = _shifted(D, d_hat, xi)
    violated = x <= 0.0
    active = ~violated & (x < h)
    b = np.where(violated, np.inf, 0.0)
    b1, b2 = np.zeros(D.shape), np.zeros(D.shape)
    at = D[active], d_hat[active], xi[active]
    b[active], b1[active], b2[active] = np.add(FAMILIES[kind](*at), _core(kind, *at))
    return b, b1, b2


def _shifted(D: np.ndarray, d_hat: np.ndarray, xi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x and h of the log families."""
    return D - xi**2, d_hat**2 + 2.0 * d_hat * xi


def _log(D: np.ndarray, d_hat: np.ndarray, xi: np.ndarray) -> Parts:
    x, h = _shifted(D, d_hat, xi)
    y, ln, r = x - h, np.log(x / h), (x - h) / x
    return -(y**2) * ln, -2.0 * y * ln - y * r, -2.0 * ln - 4.0 * r + r**2


def _log_sq(D: np.ndarray, d_hat: np.ndarray, xi: np.ndarray) -> Parts:
    x, h = _shifted(D, d_hat, xi)
    y, ln, r = x - h, np.log(x / h), (x - h) / x
    return (y * ln) ** 2, 2.0 * y * ln * (ln + r), 2.0 * ln**2 + 8.0 * r * ln + 2.0 * r**2 * (1.0 - ln)


def _cubic(D: np.ndarray, d_hat: np.ndarray, xi: np.ndarray) -> Parts:
    """Chain rule with d = sqrt(D): ``db/dD = b_d / (2 d)``, ``d2b/dD2 = (b_dd - b_d / d) / (4 D)``."""
    d = np.sqrt(D)
    y = d - xi - d_hat
    b_d, b_dd = -2.0 * y**2 / d_hat, -4.0 * y / d_hat
    return -2.0 * y**3 / (3.0 * d_hat), b_d / (2.0 * d), (b_dd - b_d / d) / (4.0 * D)


def _core(kind: str, D: np.ndarray, d_hat: np.ndarray, xi: np.ndarray) -> Parts:
    x, h = _shifted(D, d_hat, xi)
    y, r, scale = x - h, (x - h) / x, CORE * FORCE_SCALE[kind](d_hat, xi) / FORCE_SCALE["log"](d_hat, xi)
    return -scale * y**2 * r, scale * y * r * (r - 3.0), scale * 2.0 * r * (3.0 * (r - 1.0) - r**2)


FAMILIES = {
    "log": _log,
    "log_sq": _log_sq,
    "cubic": _cubic,
}
FORCE_SCALE = {
    "log": lambda a, xi: a * (a + 2.0 * xi) ** 2,
    "log_sq": lambda a, xi: a * (a + 2.0 * xi) ** 2,
    "cubic": lambda a, xi: a,
}
"""Ratio of the force of a barrier of stiffness 1 to a function of gap / a, for activations a and separations xi [m]."""
BARRIERS = tuple(FAMILIES)
"""Names of the barriers; their indices identify them in kernels."""
