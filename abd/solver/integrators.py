"""Implicit Euler (`bdf1`) and `bdf2` as weights of one incremental potential (formulation.md section 2).

target qt = w0 q_n + w1 q_{n-1} + w2 qd_n + w3 qd_{n-1}
friction's reference xh = w4 x_n + w5 x_{n-1}
velocity qd_{n+1} = w6 (q_{n+1} - q_n) + w8 (q_{n-1} - q_n)          (w7 = -w6 - w8 belongs to q_n)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Scheme:
    """Weights (9,), the factor c of c h^2 [-], and the ratio of friction's beta to h."""

    weights: np.ndarray
    c: float
    beta: float


def scheme(name: str, h: float, previous_h: float) -> Scheme:
    """The scheme of one step of length h [s] after one of length `previous_h` [s] (0: there is none).

    bdf2 begins, and begins again after a change of h, with one step of bdf1.
    """
    if name == "bdf2" and previous_h == h:
        weights = [
            4.0 / 3.0,
            -1.0 / 3.0,
            8.0 * h / 9.0,
            -2.0 * h / 9.0,
            4.0 / 3.0,
            -1.0 / 3.0,
            1.5 / h,
            -2.0 / h,
            0.5 / h,
        ]
        return Scheme(np.array(weights), 4.0 / 9.0, 2.0 / 3.0)
    return Scheme(np.array([1.0, 0.0, h, 0.0, 1.0, 0.0, 1.0 / h, -1.0 / h, 0.0]), 1.0, 1.0)
