"""`abd.potentials.sweeps.swept` by a kernel: one thread of the processor, whatever device the bodies are on."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse
import warp as wp

from abd.potentials.sweeps import SETTLED, SWEEPS, YIELDS
from cuda_kernels.step import impacts


def swept(
    A: sparse.csr_matrix, power: np.ndarray, low: np.ndarray, high: np.ndarray, size: np.ndarray, fastest: float
) -> np.ndarray:
    """As `abd.potentials.sweeps.swept`."""
    diagonal = A.diagonal()
    x, power = np.zeros(len(power)), np.array(power)
    numbers = [wp.array(one, dtype=wp.int32, device="cpu") for one in (A.indptr, A.indices)]
    given = [wp.array(one, dtype=wp.float64, device="cpu") for one in (A.data, diagonal, low, high, size)]
    out = [wp.array(one, dtype=wp.float64, device="cpu", copy=False) for one in (power, x)]
    limits = YIELDS * float(diagonal.max(initial=0.0)), SETTLED * fastest, SWEEPS
    wp.launch(impacts.sweep, dim=1, inputs=[*numbers, *given, *limits, *out], device="cpu")
    return x
