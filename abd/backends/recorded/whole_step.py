"""A step without contacts in one record: from its beginning to its statistics, with one read by the host.

In small scenes whose steps take one or two Newton iterations, the host work between launches dominates. This record contains the
launches of `Steps.begin`, `Start`, `Iteration`, `SweptPaths` and `Steps.finish`, without those of contacts. Boxes that the bodies
sweep, enlarged by the margin of a candidate list, exclude contacts: if no two of them overlap, the list is empty.

If any check fails, the state is restored and the host takes the step with contacts and failure handling
(`abd.step.substep`). Both give the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from abd.backends.recorded.numbers import numbers
from abd.by_bodies import PerBody
from abd.energies import StepStatistics
from abd.joints.rows.system import TURN
from abd.potentials.integrators import Scheme
from cuda_kernels.parallel import sums
from cuda_kernels.shared.step import WITH_FORCES, WITHOUT_FORCES
from cuda_kernels.step import control, newton
from cuda_kernels.step import whole_step as kernels

MOST_BODIES = 64
"""Largest number of bodies for which every pair of boxes is tested; a tree is faster for more."""
WIDE = 4.0
"""Margin of the empty list over that of a candidate list; all iterations of the step must stay within it."""
MAX_SKIPPED = 32
"""Largest number of steps without an attempt after failed ones; the number doubles with each failure."""
UNBOUNDED_MARGIN = 1e300
"""Margin [m] of the empty list if no bodies may collide."""


@dataclass(slots=True)
class Outcome:
    """Result of a step.

    Attributes:
        statistics: of the step; limited: (n,) bool, bodies on which limits act at its end, None for none.
        newton, trials: iterations and energy evaluations; worst: largest vertex speed with which islands converged [m/s].
    """

    statistics: StepStatistics
    limited: np.ndarray | None
    newton: int
    trials: int
    worst: float


class WholeStep:
    """Recorded steps of one `WarpBackend`.

    Attributes:
        taken: number of steps.
    """

    def __init__(self, backend):
        self.backend, self.device, self.settings = backend, backend.device, backend.model.settings
        d = self.device
        self.state = d.zeros(kernels.NUMBERS, wp.int32)
        self.numbers = d.zeros(control.NUMBERS, wp.float64)
        self.no_bodies = d.zeros(max(backend.n, 1), wp.int32)
        self.starts, self._constrained = d.zeros(backend.n, wp.int32), None
        self.taken = 0
        self._is_running, self._solved, self._done = (
            self.state[k : k + 1] for k in (kernels.GOES, kernels.SOLVED, kernels.DONE)
        )
        self._wait = self._skipped = 0
        self._rule: Scheme | None = None
        self._mode: np.ndarray | None = None
        self._pairs_are_current = False
        c = backend.contacts.candidates
        self._wide, self._narrow = c.growth(WIDE * c.margin), c.growth(np.zeros(c.worlds))
        self._slack = d.upload(WIDE * c.margin, wp.float64)
        self._unbounded = d.upload(np.full(c.worlds, UNBOUNDED_MARGIN), wp.float64)
        self._mobile, self._formed = backend.inactive.mobile.copy(), -1
        self._untouched = np.zeros(backend.n, dtype=np.int32)
        self._prescribed = backend.target_poses.count > 0

    def serves(self) -> bool:
        """Return whether the next step may be taken as a whole: no host work within it, and no recent failure."""
        b = self.backend
        system = b.system
        if self._prescribed or system.followers or b.graphs.needs_host:
            return False
        if b.contacts.candidates.may_collide:
            if b.n > MOST_BODIES or len(b.pair_law.own):
                return False
            if self._skipped < self._wait:
                self._skipped += 1
                return False
        return True

    def run(self, rule: Scheme, mode: np.ndarray, time: PerBody, constrained: np.ndarray) -> Outcome | None:
        """Take a step whose loads and joint memory are on the device; None if it is left to the host.

        Args:
            rule, mode (n,): as in `Steps.begin`; the arrays are not changed afterwards.
            time: end of the step [s], scalar or (n,).
            constrained: (n,) bool, bodies of articulations with active limits at its start.
        """
        b = self.backend
        b.linear.begin()
        if b.scheme.writer is not self or self._rule is not rule or self._mode is not mode:
            self._configure(rule, mode)
        if constrained is not self._constrained:
            self.device.write(self.starts, np.where(constrained, WITHOUT_FORCES, WITH_FORCES).astype(np.int32))
            self._constrained = constrained
        b.rows.aim(rule.ch2, time)
        self._clear_contacts()
        b.iteration.follow_rows()
        if b.system.has_friction:
            self.device.fill(b.iteration.residual_bounds)  # no contact forces have to balance
        if not b.iteration.solver.exact:
            return self._give_up()
        c = b.contacts.candidates
        c.is_empty = True
        try:
            if self.taken:
                b.iteration.graphs.run(self._key, self._launch)
            else:
                self._launch()  # its end allocates arrays, which must exist before recording
        finally:
            c.is_empty = not c.may_touch
        totals = b.totals
        totals.leave_empty("contact", "friction")
        found = totals.read()
        values = totals.numbered
        if values[kernels.DONE] == 0.0:
            return self._give_up()
        self._wait = self._skipped = 0
        self.taken += 1
        b.rows.finish_step()
        limited = self.device.read(b.scratch.marks) != 0 if values[kernels.LIMITED] else None
        newton_, trials = int(values[kernels.NEWTON]), int(values[kernels.TRIED])
        return Outcome(b.readings.statistics_of(found), limited, newton_, trials, values[kernels.NUMBERS])

    def _give_up(self) -> None:
        self._wait, self._skipped = min(max(1, 2 * self._wait), MAX_SKIPPED), 0

    def _configure(self, rule: Scheme, mode: np.ndarray) -> None:
        """Write changed inputs of the record, and select the record."""
        b, settings = self.backend, self.settings
        is_new = b.scheme.writer is not self
        if is_new or self._rule is not rule:
            b.scheme.set_rule(rule)
            self.device.fill(b.at.step.penalty, rule.penalty)
            tolerances = settings.tolerance, settings.friction_tolerance
            self.device.write(self.numbers, numbers(*tolerances, rule.h, settings.linear_tolerance))
        if is_new or mode is not self._mode:
            b.scheme.set_mode(mode)
        b.steps.set_scales(rule, settings.eps_v * rule.h)
        b.scheme.writer, self._rule, self._mode = self, rule, mode
        self._key = "whole step", b.potential.has_constraints
        self._pairs_are_current = False

    def _clear_contacts(self) -> None:
        """Empty the candidate list and lagged friction; islands are those of the joints."""
        b = self.backend
        c = b.contacts.candidates
        if c.pair_count or c.count or b.friction.count or b.friction.pair_count:
            c.clear()
            b.friction.discard()
        b.potential.has_contact_energies, b.touch.touched = True, self._untouched
        if self._pairs_are_current and b.islands.formed == self._formed:
            return
        self._pairs_are_current = True
        if b.islands.formed != self._formed:
            b.islands.follow_joined(self._mobile)
            b.islands.launch_renumber(b.inactive.held)
            self._formed = b.islands.formed
        b.iteration.follow_pairs()

    # recorded -------------------------------------------------------------------------------------------------------

    def _launch(self) -> None:
        b, device, launch = self.backend, self.device, self.device.launch
        c, rows = b.iteration.control, b.rows
        launch(kernels.begin_step, 1, c, self.numbers, self.state)
        b.steps.launch_begin()
        self.device.fill(b.islands.done)
        rows.launch_laws(self.settings.eps_v)
        if b.system.has_barriers:
            rows.launch_closed()
            launch(kernels.stop_at_gaps, 1, rows.closed, b.joints.row_count, self.state)
        launch(newton.begin_islands, b.n, c, self.no_bodies)
        if b.system.has_friction:
            b.iteration.launch_tolerances()
        self.device.copy(b.trial_path.moving, self.starts)
        b.start.leave()
        self._search()
        device.when(self._is_running, self._start)
        device.repeat(self._is_running, self._iterate)
        device.when(self._solved, self._end)
        device.when(self._done, self._finish)
        launch(kernels.gather, 1, c, self.state, b.totals.numbers)

    def _search(self) -> None:
        """Test whether bodies come near each other on the path from the state, and set the margin of the empty list."""
        c = self.backend.contacts.candidates
        if not c.may_collide:
            c.begin_slack(self._unbounded)
            return
        self._find_near(self._wide)
        c.begin_slack(self._slack)

    def _find_near(self, grown: wp.array) -> None:
        """Test whether a list for the present path would have any pair, with boxes enlarged by `grown` (worlds,) [m]."""
        b = self.backend
        c = b.contacts.candidates
        c.launch_boxes(b.trial_path.path, grown)
        self.device.launch(
            kernels.find_near, b.n, c.filters, c.surfaces, c.lower, c.upper, grown, self.state, grain=MOST_BODIES
        )

    def _start(self) -> None:
        b, c, launch = self.backend, self.backend.iteration.control, self.device.launch
        launch(control.begin_iteration, 1, c)
        b.start.go_alone()
        launch(kernels.begin_iterations, 1, c, self.state)
        self._judge_limits()
        b.iteration.set_flag(control.STALE)

    def _iterate(self) -> None:
        """Run an iteration; turns and limits of any iterate reject the step, as in `abd.step.verdict.of_iterate`."""
        b, launch = self.backend, self.device.launch
        b.iteration.iterate()
        launch(kernels.end_iteration, 1, b.iteration.control, self.settings.max_newton, self.state)
        if b.system.counts_turns:
            b.rows.mark_turned(TURN)
            launch(kernels.reject_marked, b.n, b.scratch.marks, self.state)
        self._judge_limits()

    def _judge_limits(self) -> None:
        """Mark bodies with active limits at the iterate, and test whether these reject the step."""
        b, launch, n = self.backend, self.device.launch, self.backend.n
        if b.rows.has_limits:
            b.rows.mark_limited()
            rejects_limits = int(self.settings.integrator == "generalized_alpha")
            launch(kernels.find_limited, n, b.scratch.marks, b.at.body.kind, b.scheme.mode, rejects_limits, self.state)

    def _end(self) -> None:
        """Test whether the swept path is collision-free."""
        b, c, launch = self.backend, self.backend.iteration.control, self.device.launch
        self.device.fill(b.islands.done)
        a, largest = b.scratch.a, b.iteration.search.largest
        b.swept_paths.launch_swept_paths(b.scheme.lengths, True, a)
        b.islands.reduce(a, sums.MAX, c.each)
        b.islands.fold(c.each, sums.MAX, largest)
        if b.contacts.candidates.may_collide:
            self._find_near(self._narrow)
        launch(kernels.end_step, 1, largest, self.state)

    def _finish(self) -> None:
        b = self.backend
        b.steps.launch_finish()
        b.readings.launch_statistics()
        self.device.fill(b.totals.flags)
        self.device.fill(b.friction.anchors.count)
