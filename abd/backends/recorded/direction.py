"""The direction of a recorded Newton iteration: solution, refinement, stretching, and closing of joints.

Device version of `abd.backends.reference.iteration` and of `abd.backends.reference.dense_solver`.
"""

from __future__ import annotations

import warp as wp

from abd.backends.device.device import ONE_THREAD
from abd.backends.device.graphs import Graphs
from abd.backends.linear.solvers import Solves
from abd.backends.recorded.numbers import flags_of
from abd.backends.recorded.safe_path import SafePath
from abd.joints.rows.system import CLOSED, CLOSINGS
from cuda_kernels.bodies import paths, poses
from cuda_kernels.parallel import sums
from cuda_kernels.step import control, newton


class Direction:
    """Directions of one `WarpBackend`.

    Args:
        numbers: decisions (`cuda_kernels.step.control`); linear: solves; path: set to the direction.
        scratch: (islands,) numbers that are not used elsewhere meanwhile.
    """

    def __init__(
        self, backend, graphs: Graphs, numbers: control.Control, linear: Solves, path: SafePath, scratch: wp.array
    ):
        self.backend, self.device, self.graphs, self.control = backend, backend.device, graphs, numbers
        self.linear, self.path, self.scratch = linear, path, scratch
        self._flag = flags_of(numbers, "SOUND", "REPEAT", "TIGHTEN")

    def launch(self) -> None:
        """Compute the direction from the assembled blocks."""
        b, c, launch, n = self.backend, self.control, self.device.launch, self.backend.n
        potential = b.potential
        couplings = potential.couplings
        potential.project(couplings)
        self.linear.launch_solve(potential.gradient, potential.diagonal, couplings)
        self._aim()
        launch(control.set_flag, 1, c, control.TIGHTEN, 0)
        exact = self.linear.solver.exact
        launch(newton.judge_direction, n, c, int(exact), grain=ONE_THREAD)
        if not exact:
            self.graphs.when(self._flag["TIGHTEN"], self._tighten)
        # a failed solve must not change the forcing
        self.graphs.when(self._flag["SOUND"], self._update_forcing)
        if b.system.has_exact:
            self._close_joints()
        else:
            launch(control.begin_loop, 1, c)
            launch(newton.choose_stretch, n, c)
            self.graphs.when(self._flag["REPEAT"], self._stretch)

    def _update_forcing(self) -> None:
        """Set the tolerance of the next solve, and the predicted ends of law edges."""
        b, c, launch = self.backend, self.control, self.device.launch
        b.islands.fold(c.each, sums.MAX, self.path.largest)
        launch(newton.advance_forcing, 1, c, self.path.largest)
        if b.system.has_friction:
            changes = b.scratch.b
            self.device.fill(changes)
            b.joints.effort_changes(b.linear.direction, b.islands.done, changes)
            b.islands.reduce(changes, sums.MAX, self.scratch)
            launch(newton.judge_efforts, b.n, c, self.scratch)

    def _stretch(self) -> None:
        b, c = self.backend, self.control
        self.device.launch(paths.stretch, b.n, b.islands.island, c.stretch, b.linear.direction)
        self.path.aim(self.scratch, c.limit)

    def _tighten(self) -> None:
        self.linear.launch_tighten()
        self._aim()
        self.device.launch(newton.judge_direction, self.backend.n, self.control, 1, grain=ONE_THREAD)

    def _aim(self) -> None:
        # keep rounding of an ill-conditioned system out of fixed degrees of freedom
        self.backend.potential.project_vectors(self.backend.linear.direction)
        self.path.aim(self.control.moved, self.control.limit)

    def _close_joints(self) -> None:
        """Close joints as `DenseSolver.close_joints`, in islands that may converge with this direction."""
        b, c, launch, n = self.backend, self.control, self.device.launch, self.backend.n
        launch(control.begin_loop, 1, c)
        launch(newton.choose_closing, n, c)
        direction, missing, potential = b.linear.direction, b.scratch.vectors, b.potential

        def close() -> None:
            # missing forces of exact rows at the end of the direction, then added to their multipliers
            self.device.fill(missing)
            b.joints.add_missing(b.scratch.straight, b.scratch.skipped, missing)
            b.joints.update_multipliers(b.scratch.straight, False, b.scratch.skipped)
            potential.project_vectors(missing)
            self.linear.launch_correct(missing)
            potential.project_vectors(direction)
            launch(poses.add_rows, n, missing, potential.gradient)
            check()
            launch(control.count_pass, 1, c, CLOSINGS + 1, 0)

        def check() -> None:
            a = b.scratch.a
            launch(poses.go_straight, n, b.at.current, direction, b.scratch.straight)
            self.device.fill(a)
            b.joints.predicted_errors(b.scratch.straight, direction, a)
            b.islands.reduce(a, sums.MAX, self.scratch)
            launch(newton.judge_closing, n, c, self.scratch, CLOSED)
            launch(newton.mark_skipped, n, c, b.islands.island, b.scratch.skipped)

        def close_all() -> None:
            check()
            launch(control.count_pass, 1, c, CLOSINGS + 1, 0)
            self.graphs.repeat(self._flag["REPEAT"], close)
            b.joints.evaluate(b.at, "current")
            self.path.aim(c.moved, c.limit)

        if b.linear.known and self.linear.solver.sees_joints:
            self.graphs.when(self._flag["REPEAT"], close_all)
