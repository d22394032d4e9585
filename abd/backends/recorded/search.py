"""The trial path: its largest collision-free part, and the line search along it, separate for every island
(`cuda_kernels.step.line_search`)."""

from __future__ import annotations

import warp as wp

from abd.backends.device.device import ONE_THREAD
from abd.backends.recorded.numbers import flags_of
from abd.joints.rows.system import LIMIT_CUTS
from cuda_kernels.parallel import sums
from cuda_kernels.shared.step import HALVINGS
from cuda_kernels.step import control, line_search, newton


class Search:
    """Paths of one backend up to `Control.limit` of every island, and searches along them; the caller accepts the last trial.

    Args:
        decisions: `cuda_kernels.step.control.Control`, inputs moved, limit and converged, outputs alpha, change and small.

    Attributes:
        largest: (1,) motion [m] up to the limits.
    """

    def __init__(self, backend, decisions: control.Control):
        self.backend, self.device, self.control = backend, backend.device, decisions
        self.scratch, self.largest = (self.device.zeros(count, wp.float64) for count in (max(backend.n, 1), 1))
        self._flag = flags_of(decisions, "SOUND", "REPEAT", "PENDING", "COVERED")

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
        b.islands.reduce(b.trial_path.displacements(c.limit, b.scratch.a), sums.MAX, self.scratch)
        self.device.launch(newton.measure_path, b.n, c, self.scratch)

    @property
    def motion(self) -> float:
        """Largest motion up to the limits [m]; waits for the device."""
        return float(self.device.read(self.largest)[0])

    def covers(self) -> bool:
        """Return whether the list covers the whole path, whose speeds have been measured; waits for the device."""
        self.backend.islands.fold(self.control.speed, sums.MAX, self.largest)
        self.backend.touch.test_cover(self.control.speed, self.control.limit, self._flag["COVERED"])
        return bool(self.device.read(self._flag["COVERED"])[0])

    def shorten(self) -> None:
        """Shorten the path to the first contacts of the list; set `COVERED` if the list covers it."""
        b, c = self.backend, self.control
        self.measure()
        self.stop_at_contacts()
        b.touch.test_cover(c.each, c.limit, self._flag["COVERED"])

    def stop_at_contacts(self, proven: bool = False) -> None:
        """Set limits to the first impacts of the listed contacts; `proven`: present limits hold for the previous list."""
        b, c = self.backend, self.control
        a = b.scratch.a
        b.touch.times_of_impact(c.limit, a, proven)
        b.islands.reduce(a, sums.MIN, self.scratch)
        self.device.launch(newton.shorten, b.n, c, self.scratch)
        b.islands.fold(c.each, sums.MAX, self.largest)

    def subtract_motion(self) -> None:
        """Subtract the accepted path, up to `alpha`, from the motion that the list covers."""
        b, c = self.backend, self.control
        self.device.launch(line_search.reach_of_trial, b.n, c)
        b.touch.subtract_motion(c.each, c.alpha)

    def launch(self) -> None:
        """Search an accepted step on the path."""
        b, c, launch, n = self.backend, self.control, self.device.launch, self.backend.n
        self.keep_limits()
        if not b.touch.is_empty:
            launch(newton.body_residuals, n, b.weight, b.scheme.lengths, b.potential.gradient, b.scratch.a)
            b.islands.reduce(b.scratch.a, sums.MAX, c.residual)
        launch(line_search.begin_search, n, c)
        self.measure_slope(c.slope)
        self.device.when(self._flag["SOUND"], self._try_all)

    def launch_again(self) -> None:
        """Repeat the search from the first trial after a lack of capacity to compare slopes."""
        self.device.launch(line_search.reset_search_flags, 1, self.control)
        self.device.launch(line_search.begin_search, self.backend.n, self.control)
        self._try_all()

    def keep_limits(self) -> None:
        """Cut `alpha` and `limit` until the gaps of all joint limits stay open."""
        b, c, launch, n = self.backend, self.control, self.device.launch, self.backend.n
        if not b.system.has_barriers:
            return
        fractions = b.scratch.a
        b.rows.launch_gaps()

        def cut() -> None:
            b.trial_path.advance(c.alpha)
            b.rows.launch_open_fractions(fractions)
            b.islands.reduce(fractions, sums.MIN, self.scratch)
            launch(line_search.cut, n, c, self.scratch)
            launch(control.count_pass, 1, c, LIMIT_CUTS, control.NO_CUT)

        launch(control.begin_loop, 1, c, 1)
        self.device.repeat(self._flag["REPEAT"], cut)

    def check_capacity(self) -> None:
        """Fail if the last linearisation lacked capacity for its sums."""
        touch = self.backend.touch
        if not touch.is_empty:
            self.device.launch(control.check_capacity, 1, self.control, *touch.capacities)

    def measure_slope(self, out: wp.array) -> None:
        b = self.backend
        row = b.scratch.row
        self.device.launch(sums.dot_rows, b.n, b.potential.gradient, b.linear.direction, row)
        b.islands.reduce(row, sums.SUM, out)

    def evaluate_trial(self) -> None:
        """Set the trial to the path at `alpha`; compute the `change` of the energies per island and the sum of their `size`."""
        b, c = self.backend, self.control
        b.trial_path.advance(c.alpha)
        b.potential.evaluate_trial(c.alpha, c.change, c.size)

    def _try_all(self) -> None:
        self.device.launch(control.begin_loop, 1, self.control, 1)
        self.device.repeat(self._flag["REPEAT"], self._try)

    def _try(self) -> None:
        """Evaluate a trial; accept or halve it, or accept it to compare slopes."""
        c, launch, n = self.control, self.device.launch, self.backend.n
        self.evaluate_trial()
        launch(line_search.judge_trial, n, c)
        launch(line_search.count_trial, 1, c)
        self.device.when(self._flag["REPEAT"], lambda: launch(line_search.halve, n, c, HALVINGS, 0, grain=ONE_THREAD))
        self.device.when(self._flag["PENDING"], self._compare_slopes)

    def _compare_slopes(self) -> None:
        b, c, launch = self.backend, self.control, self.device.launch
        exact = b.system.has_exact
        if exact:
            b.rows.launch_errors(self.scratch)
        b.potential.exchange()
        b.potential.linearize()
        self.check_capacity()
        self.measure_slope(c.steepness)
        launch(line_search.judge_slopes, b.n, c, self.scratch, int(exact))
        launch(line_search.end_comparison, 1, c)
        launch(line_search.halve, b.n, c, HALVINGS, 1, grain=ONE_THREAD)
        # undo the trial; the caller repeats `exchange` to accept it
        b.potential.exchange()
