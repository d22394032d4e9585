"""A step in which nothing touches anything, from its beginning to its statistics in one record that the host looks at once.

Of mechanisms and free bodies, whose steps take one or two Newton iterations on a few numbers, most of the time goes into
what the host does between the launches. Here it says by which scheme and to which targets the step goes, and reads what came
of it: the launches are those of `Steps.begin`, `Start`, `Iteration`, `SweptPaths` and `Steps.finish`, without the ones that
walk through contacts. Whether bodies come near one another is tested on the boxes that they sweep, grown by the margin of a
candidate list: where no two meet, the list is known to be empty, and for how far.

Whatever the record does not find in order, it leaves: the state is the one before, and the step is taken once more by the
host, who knows what to do about it (`abd.step.substep`). Both ways give the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import warp as wp

from abd.backends.recorded.numbers import numbers
from abd.by_bodies import OfBodies
from abd.energies import StepStatistics
from abd.joints.rows.system import TURN
from abd.potentials.integrators import Scheme
from cuda_kernels.parallel import sums
from cuda_kernels.step import control, newton
from cuda_kernels.step import whole_step as kernels

MOST_BODIES = 64
"""Bodies of which every one looks at all others; for more a tree would pay."""
WIDE = 4.0
"""Margin of the empty list over the largest one of a list of candidates: it costs nothing to be wide, and all iterations of
the step have to stay within it."""
MOST_PASSED_OVER = 32
"""Steps in which it is not tried after tries that were in vain: twice as many every time, up to these."""
WITH_FORCES = 1
"""How bodies start that touch nothing (`abd.backends.reference.start`)."""
ENDLESS = 1e300
"""Margin [m] of an empty list of bodies that can touch nothing."""


@dataclass(slots=True)
class Outcome:
    """What a step came to: its statistics; (n,) bool, bodies on which limits push at its end, None for none; iterations, trials,
    and the largest speed with which islands converged [m/s]."""

    statistics: StepStatistics
    limited: np.ndarray | None
    newton: int
    trials: int
    worst: float


class WholeStep:
    """Recorded steps of one `WarpBackend` with an `Iteration`.

    Attributes:
        taken, left: steps that were taken, and those that were begun and left to the host.
    """

    def __init__(self, backend):
        self.backend, self.device = backend, backend.device
        d = self.device
        self.state = d.zeros(kernels.NUMBERS, wp.int32)
        self.numbers = d.zeros(control.NUMBERS, wp.float64)
        self.no_bodies = d.zeros(max(backend.n, 1), wp.int32)
        self.taken = self.left = 0
        self._goes, self._solved, self._done = (
            self.state[k : k + 1] for k in (kernels.GOES, kernels.SOLVED, kernels.DONE)
        )
        self._wait = self._passed_over = 0
        self._rule: Scheme | None = None
        self._mode: np.ndarray | None = None
        self._asked: tuple | None = None
        self._followed, self._recalls = False, 0
        c = backend.contacts.candidates
        self._wide, self._narrow = c.growth(WIDE * c.margin), c.growth(0.0)
        kind = backend.model.bodies.kind
        self._mobile, self._formed = backend.inactive.mobile.copy(), -1
        self._untouched = np.zeros(backend.n, dtype=np.int32)
        self._prescribed = backend.target_poses.count > 0
        self.kind = d.upload(kind, wp.int32)

    def serves(self) -> bool:
        """Whether the next step may be taken so: nothing asks the host on the way, and nothing touched in vain before."""
        b = self.backend
        system = b.system
        if self._prescribed or system.followers or b.rows.asks_host:
            return False
        if b.contacts.candidates.may_collide:
            if b.n > MOST_BODIES or len(b.pair_law.own):
                return False
            if self._passed_over < self._wait:
                self._passed_over += 1
                return False
        return True

    def run(
        self, rule: Scheme, mode: np.ndarray, eps: float, time: OfBodies, speed: float, tolerance: float,
        friction_tolerance: float, judged: bool,
    ) -> Outcome | None:
        """Take a step whose loads and memory of joints are on the device; None where it is left to the host.

        Args:
            rule, mode (n,), eps [m]: as `Steps.begin` has them; the arrays are not changed afterwards.
            time: its end [s], of all or (n,); speed: below which friction in joints counts as static [m/s]; tolerance: Newton's
                [m/s]; friction_tolerance: that of islands with friction in their joints [m/s].
            judged: whether limits that push on bodies in a smooth step spoil it.
        """
        b = self.backend
        b.linear.begin()
        asked = eps, speed, tolerance, friction_tolerance, judged
        if b.scheme.said is not self or self._rule is not rule or self._mode is not mode or self._asked != asked:
            self._say(rule, mode, *asked)
        b.rows.memory.aim(rule.ch2, time)
        self._list_none()
        b.iteration.follow_rows()
        if b.system.has_friction and tolerance == friction_tolerance:
            b.iteration.forces_off.say(0.0)  # nothing is frozen, whose forces would have to balance
        if not b.iteration.linear.solver.exact:
            return self._leave()
        c = b.contacts.candidates
        c.is_empty = True
        try:
            if self.taken:
                b.iteration.graphs.run(self._key, self._body)
            else:
                self._body()  # what its end allocates has to be there before it is recorded
        finally:
            c.is_empty = not c.may_touch
        totals = b.totals
        totals.leave_empty("contact", "friction")
        found = totals.read()
        told = totals.numbered
        if told[kernels.DONE] == 0.0:
            return self._leave()
        self._wait = self._passed_over = 0
        self.taken += 1
        b.rows.memory.settle()
        limited = self.device.read(b.scratch.marks) != 0 if told[kernels.LIMITED] else None
        newton_, trials = int(told[kernels.NEWTON]), int(told[kernels.TRIED])
        return Outcome(b.readings.statistics_of(found), limited, newton_, trials, told[kernels.NUMBERS])

    def _leave(self) -> None:
        self.left += 1
        self._wait, self._passed_over = min(max(1, 2 * self._wait), MOST_PASSED_OVER), 0

    def _say(
        self, rule: Scheme, mode: np.ndarray, eps: float, speed: float, tolerance: float, friction_tolerance: float, judged: bool
    ) -> None:
        """What the record reads, where it is not there already, and which record it is."""
        b = self.backend
        fresh = b.scheme.said is not self
        if fresh or self._rule is not rule or self._asked[2:4] != (tolerance, friction_tolerance):
            b.scheme.set_rule(rule)
            b.target_poses.launch_pull(rule.pull)
            tightest = b.model.settings.linear_tolerance
            self.device.write(self.numbers, numbers(tolerance, friction_tolerance, rule.h, tightest))
        if fresh or mode is not self._mode:
            b.scheme.set_mode(mode)
        b.steps.set_scales(rule, eps)
        b.scheme.said, self._rule, self._mode, self._asked = self, rule, mode, (eps, speed, tolerance, friction_tolerance, judged)
        self._key = "whole step", rule.chord, speed, judged, b.potential.has_constraints
        self._body = partial(self._launch, speed, judged, b.model.settings.max_newton)
        self._followed = False

    def _list_none(self) -> None:
        """Nothing is listed and nothing is frozen; islands are what joints hold together."""
        b = self.backend
        c = b.contacts.candidates
        if c.pair_count or c.count or b.friction.count or b.friction.pair_count:
            c.clear()
            b.friction.let_go()
        b.potential.contacts_known, b.touch.touched = True, self._untouched
        if self._followed and b.islands.formed == self._formed and b.linear.recalls == self._recalls:
            return
        self._followed, self._recalls = True, b.linear.recalls
        if b.islands.formed != self._formed:
            b.islands.renumber(self._mobile, np.zeros((0, 2), dtype=int))
            self._formed = b.islands.formed
        b.iteration.follow_pairs()

    # recorded -------------------------------------------------------------------------------------------------------

    def _launch(self, speed: float, judged: bool, most: int) -> None:
        b, launch, graphs = self.backend, self.device.launch, self.backend.iteration.graphs
        c, rows = b.iteration.control, b.rows.memory
        launch(kernels.begin_step, 1, c, self.numbers, self.state)
        b.steps.launch_begin()
        self.device.fill(b.islands.done)
        rows.launch_laws(b.scheme.of_rows, speed)
        if b.system.has_barriers:
            rows.launch_closed()
            launch(kernels.stop_at_gaps, 1, rows.closed, b.joints.row_count, self.state)
        launch(newton.begin_islands, b.n, c, self.no_bodies)
        if b.system.has_friction:
            b.iteration.launch_tolerances()
        self.device.fill(b.trial_path.moving, WITH_FORCES)
        b.start.leave()
        self._search()
        graphs.when(self._goes, lambda: self._start())
        graphs.repeat(self._goes, lambda: self._round(most))
        graphs.when(self._solved, lambda: self._end(judged))
        graphs.when(self._done, self._finish)
        launch(kernels.gather, 1, c, self.state, b.totals.numbers)

    def _search(self) -> None:
        """Whether bodies come near one another on the path from the state, and the distance from it within which none does."""
        c = self.backend.contacts.candidates
        if not c.may_collide:
            c.begin_slack(ENDLESS)
            return
        self._find_near(self._wide)
        c.begin_slack(WIDE * c.margin)

    def _find_near(self, grown: wp.array) -> None:
        """Whether a list for the present path would have any pair, with the margin that boxes are `grown` (worlds,) by [m]."""
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
        launch(kernels.begin_rounds, 1, c, self.state)
        launch(control.set_flag, 1, c, control.STALE, 1)

    def _round(self, most: int) -> None:
        self.backend.iteration.iterate()
        self.device.launch(kernels.end_round, 1, self.backend.iteration.control, most, self.state)

    def _end(self, judged: bool) -> None:
        """Whether limits spoil the step, and whether its path is free."""
        b, c, launch, n = self.backend, self.backend.iteration.control, self.device.launch, self.backend.n
        self.device.fill(b.islands.done)
        if b.system.counts_turns:
            self.device.fill(b.scratch.marks)
            b.rows.memory.mark_turned(b.at.current, TURN, b.scratch.marks)
            launch(kernels.refuse_marked, n, b.scratch.marks, self.state)
        if b.rows.memory.has_limits:
            self.device.fill(b.scratch.marks)
            b.rows.memory.mark_limited(b.at.current, b.scratch.marks)
            launch(kernels.find_limited, n, b.scratch.marks, self.kind, b.scheme.mode, int(judged), self.state)
        a, largest = b.scratch.a, b.iteration.path.largest
        b.swept_paths.launch_swept_paths(b.scheme.lengths, True, a)
        b.islands.reduce(a, sums.MAX, c.each)
        b.islands.fold(c.each, sums.MAX, largest)
        if b.contacts.candidates.may_collide:
            self._find_near(self._narrow)
        launch(kernels.end_step, 1, largest, self.state)

    def _finish(self) -> None:
        """The iterate is the new state."""
        b = self.backend
        b.steps.launch_finish()
        b.readings.launch_statistics()
        self.device.fill(b.totals.flags)
        self.device.fill(b.friction.anchors.count)
