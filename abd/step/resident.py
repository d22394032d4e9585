"""Newton iterations that run on the device (`abd.backends.recorded.iteration`), and what the host adds to them.

The same as `abd.step.newton.minimise`, which says what the iterations do. The host looks once per iteration, and once
more where the candidate list had to be renewed.
"""

from __future__ import annotations

from collections.abc import Callable

from abd.step.forcing import LOOSEST
from abd.step.progress import Progress, not_converged


def minimise_resident(
    backend,
    settings,
    h: float,
    tolerance: float,
    stiffness,
    progress: Progress,
    watch: Callable[[], None] | None = None,
) -> None:
    """As `minimise`, with the tolerance [m/s] that holds.

    Raises:
        StepFailure: as `minimise`.
    """
    iteration, tightest = backend.iteration, settings.linear_tolerance
    with progress.time("iterations"):
        if not iteration.begin(tolerance, h, tightest, max(LOOSEST, tightest)):
            return
        for _ in range(settings.max_newton):
            status = iteration.run(progress)
            if not status.moving:
                return
            if watch is not None:
                watch()
            if stiffness.adapt(backend, status.gap, status.least):
                iteration.restiffen()
        raise not_converged(backend, settings.max_newton, status.open, iteration.speeds(h), tolerance)
