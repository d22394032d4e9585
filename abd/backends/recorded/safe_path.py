"""The largest collision-free part of a path."""

from __future__ import annotations

import warp as wp

from cuda_kernels.parallel import sums
from cuda_kernels.step import control, line_search, newton


class SafePath:
    """The path of one backend, up to `Control.limit` of every island.

    Attributes:
        largest: (1,) motion [m] up to the limits.
    """

    def __init__(self, backend, numbers: control.Control):
        self.backend, self.device, self.control = backend, backend.device, numbers
        self.largest = self.device.zeros(1, wp.float64)
        self._scratch = self.device.zeros(max(backend.n, 1), wp.float64)
        self._covered = numbers.flags[control.COVERED : control.COVERED + 1]

    def aim(self, moved: wp.array, limit: wp.array) -> None:
        """Set the path along the direction; compute per island the largest displacement of a surface in a full step [m], and the
        largest alpha by the strain limit."""
        b, islands, (a, other) = self.backend, self.backend.islands, (self.backend.scratch.a, self.backend.scratch.b)
        b.trial_path.aim(b.linear.direction, a, other)
        islands.reduce(a, sums.MAX, moved)
        islands.reduce(other, sums.MIN, limit)

    def measure(self) -> None:
        """Compute the speeds of the islands along the path."""
        b, c = self.backend, self.control
        b.islands.reduce(b.trial_path.displacements(c.limit, b.scratch.a), sums.MAX, self._scratch)
        self.device.launch(newton.measure_path, b.n, c, self._scratch)

    @property
    def motion(self) -> float:
        """Largest motion up to the limits [m]; waits for the device."""
        return float(self.device.read(self.largest)[0])

    def covers(self) -> bool:
        """Return whether the list covers the whole path, whose speeds have been measured; waits for the device."""
        self.backend.islands.fold(self.control.speed, sums.MAX, self.largest)
        self.backend.touch.test_cover(self.control.speed, self.control.limit, self._covered)
        return bool(self.device.read(self._covered)[0])

    def shorten(self) -> None:
        """Shorten the path to the first contacts of the list; set `COVERED` if the list covers it."""
        b, c = self.backend, self.control
        self.measure()
        self.stop_at_contacts()
        b.touch.test_cover(c.each, c.limit, self._covered)

    def stop_at_contacts(self, proven: bool = False) -> None:
        """Set limits to the first impacts of the listed contacts; `proven`: present limits hold for the previous list."""
        b, c = self.backend, self.control
        a = b.scratch.a
        b.touch.times_of_impact(c.limit, a, proven)
        b.islands.reduce(a, sums.MIN, self._scratch)
        self.device.launch(newton.shorten, b.n, c, self._scratch)
        b.islands.fold(c.each, sums.MAX, self.largest)

    def subtract_motion(self) -> None:
        """Subtract the accepted path, up to `alpha`, from the motion that the list covers."""
        b, c = self.backend, self.control
        self.device.launch(line_search.reach_of_trial, b.n, c)
        b.touch.subtract_motion(c.each, c.alpha)
