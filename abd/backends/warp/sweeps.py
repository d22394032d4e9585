"""`abd.potentials.sweeps.swept` by a kernel: one thread of the processor, whatever device the bodies are on."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse
import warp as wp

from abd.potentials.sweeps import SETTLED, SWEEPS, least_yielding
from cuda_kernels.step import impacts


def swept(
    A: sparse.csr_matrix, power: np.ndarray, low: np.ndarray, high: np.ndarray, size: np.ndarray, fastest: float
) -> np.ndarray:
    """As `abd.potentials.sweeps.swept`."""
    diagonal = A.diagonal()
    x, power = np.zeros(len(power)), np.array(power)
    given = [wp.array(one, dtype=wp.int32, device="cpu", copy=False) for one in (A.indptr, A.indices)]
    numbers = A.data, diagonal, low, high, size, least_yielding(diagonal, size), power, x
    given += [wp.array(one, dtype=wp.float64, device="cpu", copy=False) for one in map(np.ascontiguousarray, numbers)]
    limits = SETTLED * fastest, SWEEPS
    wp.launch(impacts.sweep, dim=1, inputs=[*given[:-2], *limits, *given[-2:]], device="cpu")
    return x
