"""The largest collision-free part of a path: device version of `follow_direction` of `abd.backends.reference.parts.arcs`."""

from __future__ import annotations

import warp as wp

from cuda_kernels.bodies import paths
from cuda_kernels.parallel import sums
from cuda_kernels.step import control, line_search, newton


class SafePath:
    """The path of one `WarpBackend`, up to `Control.limit` of every island.

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
        trial_path = b.trial_path
        self.device.launch(
            paths.direction_paths,
            b.n, b.at.body, trial_path.lower, trial_path.upper, *trial_path.surface_box, b.at.current, islands.done,
            b.linear.direction,
            trial_path.path, a, other,
        )  # fmt: skip
        islands.reduce(a, sums.MAX, moved)
        islands.reduce(other, sums.MIN, limit)

    def measure(self) -> None:
        """Compute the speeds of the islands along the path."""
        b, c = self.backend, self.control
        b.islands.reduce(b.trial_path.displacements(c.limit, b.scratch.a), sums.MAX, self._scratch)
        self.device.launch(newton.measure_path, b.n, c, self._scratch)

    def shorten(self) -> None:
        """Shorten the path to the first contacts of the list; set `COVERED` if the list covers it."""
        b, c = self.backend, self.control
        self.measure()
        self.stop_at_contacts()
        b.contacts.candidates.test_cover(b.trial_path.path, c.each, b.islands.island, c.limit, self._covered)

    def stop_at_contacts(self, proven: bool = False) -> None:
        """Set limits to the first impacts of the listed contacts; `proven` as in `Contacts.times_of_impact`."""
        b, c = self.backend, self.control
        a = b.scratch.a
        b.contacts.times_of_impact(b.trial_path.path, b.islands.island, c.limit, a, proven)
        b.islands.reduce(a, sums.MIN, self._scratch)
        self.device.launch(newton.shorten, b.n, c, self._scratch)
        b.islands.fold(c.each, sums.MAX, self.largest)

    def subtract_motion(self) -> None:
        """Subtract the accepted path, up to `alpha`, from the motion that the list covers."""
        b, c = self.backend, self.control
        self.device.launch(line_search.reach_of_trial, b.n, c)
        b.contacts.candidates.subtract_motion(b.trial_path.path, c.each, b.islands.island, c.alpha)
