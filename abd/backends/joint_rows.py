"""Joint rows on a device: constant blocks, gradients and energies."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device import Device, Pool
from abd.joints.rows import compile_rows, hessian
from abd.model import WORLD, Model
from cuda_kernels import rows as kernels
from cuda_kernels.krylov import Coupling


class JointRows:
    """All joints of a scene as linear rows.

    Attributes:
        count: number of rows; pairs: number of joined body pairs.
        diagonal: (n, 12, 12) constant blocks; coupling: the off-diagonal ones.
        starts, entries: rows of every body (2e child, 2e + 1 parent).
    """

    def __init__(self, model: Model, device: Device):
        n = len(model.bodies)
        self.device, self.pool, self.n = device, Pool(device), n
        self.host = rows = compile_rows(model.joints)
        self.count = len(rows)
        self.rows = kernels.Rows()
        self.rows.parent = device.upload(rows.parent, wp.int32)
        self.rows.child = device.upload(rows.child, wp.int32)
        self.rows.Yp, self.rows.Yc = device.upload(rows.Yp, wp.vec4d), device.upload(rows.Yc, wp.vec4d)
        self.rows.K = device.upload(rows.K, wp.float64)
        diagonal, pairs, blocks = hessian(rows, n)
        self.diagonal = device.upload(diagonal, wp.float64)
        self.pairs = len(pairs)
        self.constant = device.upload(blocks, wp.float64)
        self.coupling = Coupling()
        self.coupling.row, self.coupling.column = (
            device.upload(pairs[:, 0], wp.int32),
            device.upload(pairs[:, 1], wp.int32),
        )
        self.coupling.blocks = device.upload(blocks, wp.float64)
        bodies = np.concatenate([pairs[:, 0], pairs[:, 1]])
        codes = np.concatenate([2 * np.arange(self.pairs), 2 * np.arange(self.pairs) + 1])
        self.coupling.starts, self.coupling.entries = self._lists(bodies, codes)
        inner = rows.parent != WORLD
        bodies = np.concatenate([rows.child, rows.parent[inner]])
        codes = np.concatenate([2 * np.arange(self.count), 2 * np.flatnonzero(inner) + 1])
        self.starts, self.entries = self._lists(bodies, codes)

    def _lists(self, bodies: np.ndarray, codes: np.ndarray) -> tuple[wp.array, wp.array]:
        order = np.lexsort((codes, bodies))
        starts = np.searchsorted(bodies[order], np.arange(self.n + 1))
        return self.device.upload(starts, wp.int32), self.device.upload(codes[order], wp.int32)

    def restore_blocks(self) -> None:
        """Undo the projection of the off-diagonal blocks."""
        if self.pairs:
            wp.copy(self.coupling.blocks, self.constant)

    def evaluate(self, pose, slot: str) -> None:
        """Energies of all rows at a pose."""
        out = self.pool.get(f"energy_{slot}", self.count, wp.float64)
        self.device.launch(kernels.row_energies, self.count, self.rows, pose, out)

    def add_gradient(self, pose, gradient) -> None:
        """Add the joints' forces to gradient (n, 12)."""
        if self.count:
            self.device.launch(kernels.row_gradients, self.n, self.rows, pose, self.starts, self.entries, gradient)

    def residuals(self, pose) -> np.ndarray:
        """F (m, 3) on the host."""
        if not self.count:
            return np.zeros((0, 3))
        out = self.pool.get("residuals", self.count, wp.vec3d)
        self.device.launch(kernels.row_residuals, self.count, self.rows, pose, out)
        return self.device.read(out, self.count)
