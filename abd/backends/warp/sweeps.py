"""`abd.potentials.sweeps.swept` as a kernel on one CPU thread, for all devices."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse
import warp as wp

from abd.backends.device.device import turn_of
from abd.potentials.sweeps import SETTLED, SWEEPS, yielding
from cuda_kernels.step import impacts


def swept(
    A: sparse.csr_matrix, power: np.ndarray, low: np.ndarray, high: np.ndarray, size: np.ndarray, fastest: np.ndarray,
    starts: np.ndarray, rows: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """See `abd.potentials.sweeps.swept`."""
    x, power = np.zeros(len(power)), np.array(power)
    rows, first = yielding(A, size, starts, rows)
    whole, real = ((one, wp.int32) for one in (A.indptr, A.indices, rows, first)), (A.data, A.diagonal(), low, high, size)
    real = ((one, wp.float64) for one in (*real, SETTLED * fastest, power, x))
    given = [
        wp.array(np.ascontiguousarray(one, dtype=wp.dtype_to_numpy(kind)), dtype=kind, device="cpu", copy=False)
        for one, kind in (*whole, *real)
    ]
    host = wp.get_device("cpu")
    with turn_of(host):
        wp.launch(impacts.sweep, dim=len(fastest), inputs=[SWEEPS, *given], device=host)
    return x
