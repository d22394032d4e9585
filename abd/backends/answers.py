"""Data exchanged between backends and the step: results of iterations, and friction loads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NO_PAIRS = np.zeros((0, 2), dtype=int)
"""No pairs of bodies."""


class OnHost:
    """Host arrays with the interface of `abd.backends.device.read_back.PendingCopy`."""

    def __init__(self, *arrays: np.ndarray):
        self._arrays = list(arrays)

    def wait(self) -> list[np.ndarray]:
        """Return the arrays."""
        return self._arrays


@dataclass(frozen=True)
class Status:
    """Result of a Newton iteration, or of a start.

    Attributes:
        failure: one of `cuda_kernels.step.control`, 0 without.
        covered: whether the candidate list covers the path; motion: otherwise, the largest motion along it [m].
        moving: whether an island has not converged; worst: largest speed with which islands converged [m/s].
        open: largest residual, over its tolerance, of exact joints in islands that have otherwise converged.
        trials, linear: energy evaluations, iterations of conjugate gradients.
        needed: needed capacities for pairs and runs of contacts and of friction, and number of lagged contacts.
    """

    failure: int
    covered: bool
    motion: float
    moving: bool
    worst: float
    open: float
    trials: int
    linear: int
    needed: list[int]


@dataclass(frozen=True)
class PairLoads:
    """Sums of ``mu lambda`` over the contacts of each of k body pairs.

    Attributes:
        pairs: (k, 2) bodies, each pair at most once.
        load: (k,) times c h^2 [kg m].
    """

    pairs: np.ndarray
    load: np.ndarray

    def of(self, pairs: np.ndarray) -> np.ndarray:
        """Return (m,) loads of body pairs (m, 2), possibly repeated; 0 for pairs without a load."""
        if not len(self.pairs) or not len(pairs):
            return np.zeros(len(pairs))
        n = int(max(self.pairs.max(), pairs.max())) + 1
        own, wanted = (part[:, 0].astype(np.int64) * n + part[:, 1] for part in (self.pairs, pairs))
        order = np.argsort(own)
        place = np.minimum(np.searchsorted(own[order], wanted), len(own) - 1)
        return np.where(own[order][place] == wanted, self.load[order][place], 0.0)
