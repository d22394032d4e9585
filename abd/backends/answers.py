"""Data between backends and the step: starts of bodies, outcomes of iterations, loads of friction, paths not proven free."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NO_PAIRS = np.zeros((0, 2), dtype=int)
"""No pairs of bodies."""

LOOSEST = 1e-2
"""Relative tolerance of a linear solve that decides nothing, at most."""
UNSEEN = 1e-4
"""Speed of a full step, over Newton's tolerance, below which forces that do not balance are rounding."""
RELENT = 1.5
"""Times by how much forces may be off after an iteration that was within the tolerance but for that."""
STAY, WITH_FORCES, WITHOUT_FORCES = 0, 1, 2
"""How a body starts a step (`abd.backends.reference.start`)."""
STRAINED = 0.5
"""Share of a path that bends too much to be proven (`cuda_kernels.bodies.swept_paths`) after which the step is tried to end."""


@dataclass(frozen=True)
class Status:
    """What an iteration came to.

    failure: one of `cuda_kernels.step.control`, 0 without; covered: whether the candidate list is complete for the path, so that
    a step was searched for, reach: largest motion along it [m] if not; moving: whether an island has not converged; worst:
    largest speed with which islands converged [m/s]; gap: smallest one of the moving islands [m], least: their smallest
    safe step; open: largest residual of the exact joints of islands that would have converged but for them, over its
    tolerance; trials, linear: energy evaluations, iterations of pcg.
    """

    failure: int
    covered: bool
    reach: float
    moving: bool
    worst: float
    gap: float
    least: float
    open: float
    trials: int
    linear: int


@dataclass(frozen=True)
class PairLoads:
    """Sums of ``mu lambda`` over the contacts of k body pairs.

    Attributes:
        pairs: (k, 2) bodies, each pair at most once.
        load: (k,) times c h^2 [kg m].
    """

    pairs: np.ndarray
    load: np.ndarray

    def of(self, pairs: np.ndarray, other: float = 0.0) -> np.ndarray:
        """(m,) loads of body pairs (m, 2), which may come more than once; `other` where there is none."""
        if not len(self.pairs) or not len(pairs):
            return np.full(len(pairs), other)
        n = int(max(self.pairs.max(), pairs.max())) + 1
        mine, asked = (part[:, 0].astype(np.int64) * n + part[:, 1] for part in (self.pairs, pairs))
        order = np.argsort(mine)
        place = np.minimum(np.searchsorted(mine[order], asked), len(mine) - 1)
        return np.where(mine[order][place] == asked, self.load[order][place], other)


@dataclass(frozen=True)
class UnprovenPaths:
    """Pairs of bodies (k, 2) whose path is proven free up to a share (k,) of it only; a body whose own path bends too much to
    be proven is a pair with itself."""

    share: np.ndarray
    pairs: np.ndarray

    @classmethod
    def none(cls) -> UnprovenPaths:
        """All is free."""
        return cls(np.zeros(0), np.zeros((0, 2), dtype=int))

    def __len__(self) -> int:
        return len(self.share)
