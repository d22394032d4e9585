"""What one Newton iteration came to, as whoever decides about the next one sees it; and what iterations have in common."""

from __future__ import annotations

from dataclasses import dataclass

LOOSEST = 1e-2
"""Relative tolerance of a linear solve that decides nothing, at most."""

@dataclass(frozen=True)
class Status:
    """What an iteration came to.

    failure: one of `cuda_kernels.step.control`, 0 without; covered: whether the candidate list is complete for the path, so that
    a step was searched for, reach: largest motion along it [m] if not; moving: whether an island has not converged; worst:
    largest speed with which islands converged [m/s]; gap: smallest one of the moving islands [m], least: their smallest
    accepted step; open: largest residual of the exact joints of islands that would have converged but for them, over its
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
