"""Start of a step on the arc of the velocities, as far as collisions allow.

The energy of a stiff body is a narrow curved valley. Newton's method from q_n or from the stretched inertial target converges
slowly along it (docs/theory.md, "Newton's method on arcs"). The bodies of an island start at the end of their free motion with
stored or external forces if that does not increase its energy, otherwise at q_n. The external forces would press bodies in
contact or at a limit, and bodies jointed to them, on their supports: they are tried without them.
"""

from __future__ import annotations

import numpy as np

from abd.backends.recorded.numbers import FAILURES, flags_of
from abd.errors import StepFailure
from cuda_kernels.parallel import sums
from cuda_kernels.step import control, line_search


class Start:
    """Starts of one backend."""

    def __init__(self, backend):
        self.backend, self.device, self.iteration = backend, backend.device, backend.iteration
        self.graphs, c = self.iteration.graphs, self.iteration.control
        self.control, self.search = c, self.iteration.search
        self._flag = flags_of(c, "SOUND", "PENDING")

    def run(self, moving: np.ndarray, may_sleep: np.ndarray) -> None:
        """Move the iterate from q_n to the start.

        Args:
            moving: (n,) start of the bodies (`cuda_kernels.shared.step`).
            may_sleep: (n,) bool, bodies that sleep if their whole island does.

        Raises:
            StepFailure: no fraction of the path satisfies the joint limits, or there are too many candidates.
        """
        b = self.backend
        self.device.write(b.trial_path.moving, moving.astype(np.int32))
        self.graphs.run("start path", self.leave)
        b.touch.renew(self.search.motion, self.control.limit, starts=True)
        self.graphs.run("carry speeds", self._carry)
        b.touch.follow_list()
        b.inactive.sleep(may_sleep)
        # the record evaluates them
        b.potential.has_contact_energies = True
        status = self.iteration.run_record("start", self._follow)
        b.touch.set_frozen(status.needed[-1])
        if status.failure:
            raise StepFailure(*FAILURES[status.failure])

    def _carry(self) -> None:
        """Transfer the numbers of islands to their new numbering; launches only."""
        self.iteration.carry_numbers()
        self.backend.islands.clear_done()

    # recorded -------------------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Set the path and measure it."""
        self.backend.trial_path.launch_start()
        self.device.fill(self.control.limit, 1.0)
        self.search.measure()
        islands = self.backend.islands
        islands.fold(self.control.speed, sums.MAX, self.search.largest)
        self.backend.touch.launch_motions(self.control.speed)

    def go_alone(self) -> None:
        """Follow the path without candidates or lagged friction."""
        self.device.fill(self.control.limit, 1.0)
        self.search.stop_at_contacts()
        self.search.keep_limits()
        self.backend.potential.evaluate()
        self.device.when(self._flag["SOUND"], self._try)

    def _follow(self) -> None:
        """Follow the path on its candidate list."""
        b, c = self.backend, self.control
        self.device.launch(control.begin_iteration, 1, c)
        self.device.fill(c.limit, 1.0)
        b.potential.launch_contacts()
        self.search.stop_at_contacts()
        self.search.keep_limits()
        b.touch.launch_lag()
        b.potential.evaluate()
        self.search.check_capacity()
        self.device.when(self._flag["SOUND"], self._try)

    def _try(self) -> None:
        """Move to the end of the path; islands whose energy rises stay at q_n."""
        b, c, launch = self.backend, self.control, self.device.launch
        self.search.evaluate_trial()
        launch(control.begin_loop, 1, c, 0)
        launch(line_search.judge_falls, b.n, c)
        self.device.when(self._flag["PENDING"], self._hold)
        b.potential.exchange()
        self.search.subtract_motion()

    def _hold(self) -> None:
        self.device.launch(line_search.hold_rising, self.backend.n, self.control)
        self.search.evaluate_trial()
