"""Start of a step on the arc of the velocities, as far as collisions allow.

The energy of a stiff body is a narrow curved valley. Newton's method from q_n or from the stretched inertial target converges
slowly along it (docs/theory.md, "Newton's method on arcs"). Bodies start at the end of their free motion with stored or external
forces if that decreases the energy. The force term would press bodies in contact or at a limit, and bodies jointed to them, on
their supports: they are tried without it. In contact, they otherwise start at q_n.

The host renews the candidate list for the first path, and for the second one if the list does not cover it. It reads the status
after each.
"""

from __future__ import annotations

import numpy as np

from abd.backends.recorded.numbers import FAILURES, flags_of
from abd.errors import StepFailure
from cuda_kernels.parallel import sums
from cuda_kernels.step import control
from cuda_kernels.step import start as kernels


class Start:
    """Starts of one backend."""

    def __init__(self, backend):
        self.backend, self.device, self.iteration = backend, backend.device, backend.iteration
        self.graphs, c = self.iteration.graphs, self.iteration.control
        self.control, self.search = c, self.iteration.search
        self._flag = flags_of(c, "SOUND", "COVERED", "PENDING")

    def run(self, moving: np.ndarray, touching: bool, may_sleep: np.ndarray) -> None:
        """Move the iterate from q_n to the start.

        Args:
            moving: (n,) start of the bodies (`cuda_kernels.shared.step`); touching: whether any are in contact.
            may_sleep: (n,) bool, bodies that sleep if their whole island does.

        Raises:
            StepFailure: no fraction of the path satisfies the joint limits, or there are too many candidates.
        """
        b = self.backend
        self.device.write(b.trial_path.moving, moving.astype(np.int32))
        self.graphs.run(("start path", touching), self.leave)
        self._renew(starts=True)
        b.inactive.sleep(may_sleep)
        # the record evaluates them
        b.potential.has_contact_energies = True
        status = self.iteration.run_record(("start", touching), lambda: self._follow_first(touching))
        b.touch.set_frozen(status.needed[-1])
        if not (status.failure or status.covered):
            self._renew()
            status = self.iteration.run_record(("start on a new list", touching), self._follow_second)
        if status.failure:
            raise StepFailure(*FAILURES[status.failure])

    def _renew(self, starts: bool = False) -> None:
        """Renew the candidate list for the path, and the islands."""
        touch = self.backend.touch
        touch.renew(self.search.motion, self.control.limit, starts)
        self.graphs.run("carry speeds", self._carry)
        touch.follow_list()

    def _carry(self) -> None:
        """Transfer the numbers of islands to their new numbering; launches only."""
        self.iteration.carry_numbers()
        self.backend.islands.clear_done()

    # recorded -------------------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Set the first path and measure it."""
        self._set_path()
        self.search.measure()
        islands = self.backend.islands
        islands.fold(self.control.speed, sums.MAX, self.search.largest)
        self.backend.touch.launch_motions(self.control.speed)

    def _set_path(self) -> None:
        self.backend.trial_path.launch_start()
        self.device.fill(self.control.limit, 1.0)

    def go_alone(self) -> None:
        """Follow the first path without candidates or lagged friction."""
        self.device.fill(self.control.limit, 1.0)
        self.search.stop_at_contacts()
        self.search.keep_limits()
        self.backend.potential.evaluate()
        self.device.when(self._flag["SOUND"], lambda: self._try_paths(False))

    def _follow_first(self, touching: bool) -> None:
        """Follow the first path on its list and, where it fails, the second."""
        b, c, launch = self.backend, self.control, self.device.launch
        launch(control.begin_iteration, 1, c)
        self.device.fill(c.limit, 1.0)
        b.potential.launch_contacts()
        self.search.stop_at_contacts()
        self.search.keep_limits()
        b.touch.launch_lag()
        b.potential.evaluate()
        self.search.check_capacity()
        self.device.when(self._flag["SOUND"], lambda: self._try_paths(touching))

    def _follow_second(self) -> None:
        self.iteration.set_flag(control.COVERED)
        self.search.stop_at_contacts()
        self._try_second()
        self._accept()

    def _try_paths(self, touching: bool) -> None:
        self._try()
        self.iteration.set_flag(control.COVERED)
        if touching:
            self.device.when(self._flag["PENDING"], self._try_in_place)
        self.device.when(self._flag["COVERED"], self._accept)

    def _try_in_place(self) -> None:
        """Set the second path, which the list may not cover."""
        b, c = self.backend, self.control
        self.device.launch(kernels.leave_in_place, b.n, c, b.islands.island, b.trial_path.moving)
        self._set_path()
        self.search.measure()
        self.search.stop_at_contacts()
        self.device.launch(kernels.keep_paths, b.n, c)
        b.touch.test_cover(c.each, c.limit, self._flag["COVERED"])
        self.device.when(self._flag["COVERED"], self._try_second)

    def _try_second(self) -> None:
        self.search.keep_limits()
        self._try()

    def _try(self) -> None:
        b, c, launch = self.backend, self.control, self.device.launch
        self.search.evaluate_trial()
        launch(control.begin_loop, 1, c, 0)
        launch(kernels.judge_falls, b.n, c)

    def _accept(self) -> None:
        """Accept the trial; hold bodies whose energy rises."""
        self.device.when(self._flag["PENDING"], self._hold_bodies)
        self.backend.potential.exchange()
        self.search.subtract_motion()

    def _hold_bodies(self) -> None:
        self.device.launch(kernels.hold_rising, self.backend.n, self.control)
        self.search.evaluate_trial()
