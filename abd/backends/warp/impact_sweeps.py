"""Sweeps over the impulses of impacts by a kernel on one CPU thread, for all devices: each pair depends on the one before."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse
import warp as wp

from abd.backends.device.device import turn_of
from abd.backends.linear.orders import shared
from abd.potentials.sweeps import NO_FRICTION, SETTLED, ConeRows, most_sweeps, sweeps_with_friction, yielding
from cuda_kernels.step import impacts


def swept(
    A: sparse.csr_matrix, power: np.ndarray, low: np.ndarray, high: np.ndarray, size: np.ndarray, fastest: np.ndarray,
    starts: np.ndarray, rows: np.ndarray, friction: ConeRows = NO_FRICTION,
) -> np.ndarray:  # fmt: skip
    """Compute `abd.potentials.sweeps.swept`."""
    x, (rows, first), host = np.zeros(len(power)), yielding(A, size, starts, rows), wp.get_device("cpu")
    system, cones = impacts.System(), impacts.Cones()
    system.normals = len(size)
    system.begin, system.column, system.value = shared(_int32(A.indptr)), shared(_int32(A.indices)), shared(A.data)
    system.diagonal, system.power, system.x = shared(A.diagonal()), shared(power.copy()), shared(x)
    first_cone, pairs = np.searchsorted(friction.pair, starts), np.diff(first)
    sweeps = most_sweeps(pairs), sweeps_with_friction(pairs, np.diff(first_cone))
    cones.pair, cones.limit = shared(_int32(friction.pair)), shared(friction.limit)
    cones.bodies = wp.array(friction.bodies, dtype=wp.int64, device=host, copy=False)
    cones.yields = shared(friction.yields(A))
    for name, one in {"spent": friction.spent, "before": friction.before, "direction": friction.directions}.items():
        setattr(cones, name, wp.array(_float64(one), dtype=wp.vec2d, device=host, copy=False))
    inputs = [
        system,
        *(shared(_int32(one)) for one in (*sweeps, rows, first)),
        *(shared(_float64(one)) for one in (low, high, size, SETTLED * fastest)),
        shared(_int32(first_cone)),
        cones,
    ]
    with turn_of(host):
        wp.launch(impacts.sweep, dim=len(fastest), inputs=inputs, device=host)
    return x


def _int32(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=np.int32)


def _float64(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=float)
