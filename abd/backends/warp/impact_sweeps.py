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
    x, (rows, first), normals = np.zeros(len(power)), yielding(A, size, starts, rows), len(size)
    system = impacts.System()
    system.on_power, system.of_slip = _rows(A[:, :normals]), _rows(A[normals:])
    values = {"diagonal": A.diagonal(), "power": power[:normals].copy(), "slip": _float64(power[normals:]), "x": x}
    for name, one in values.items():
        setattr(system, name, shared(one))
    first_cone, pairs, host = np.searchsorted(friction.pair, starts), np.diff(first), wp.get_device("cpu")
    sweeps, cones = (most_sweeps(pairs), sweeps_with_friction(pairs, np.diff(first_cone))), impacts.Cones()
    cones.pair, cones.limit, cones.of_bodies = shared(_int32(friction.pair)), shared(friction.limit), _rows(friction.of_bodies(A))
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


def _rows(A: sparse.csr_matrix) -> impacts.Rows:
    rows = impacts.Rows()
    rows.begin, rows.column, rows.value = shared(_int32(A.indptr)), shared(_int32(A.indices)), shared(A.data)
    return rows


def _int32(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=np.int32)


def _float64(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=float)
