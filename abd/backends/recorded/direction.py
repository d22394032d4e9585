"""The direction of a recorded Newton iteration: solved, made more exact where that decides, stretched, and bent to close joints.

Device version of `abd.backends.reference.iteration` and of `abd.backends.reference.dense_solver`.
"""

from __future__ import annotations

import warp as wp

from abd.backends.device.device import ALONE
from abd.backends.device.graphs import Graphs
from abd.backends.linear.solvers import Solves
from abd.backends.recorded.numbers import flags_of
from abd.backends.recorded.reach import Reach
from abd.joints.rows.system import CLOSED, CLOSINGS
from cuda_kernels.bodies import paths, poses
from cuda_kernels.parallel import sums
from cuda_kernels.step import control, newton


class Direction:
    """Directions of one `WarpBackend`.

    Args:
        numbers: what decides (`cuda_kernels.step.control`); linear: solves; path: is aimed along the direction.
        scratch: (islands,) numbers that are not used elsewhere meanwhile.
    """

    def __init__(
        self, backend, graphs: Graphs, numbers: control.Control, linear: Solves, path: Reach, scratch: wp.array
    ):
        self.backend, self.device, self.graphs, self.control = backend, backend.device, graphs, numbers
        self.linear, self.path, self.scratch = linear, path, scratch
        self._flag = flags_of(numbers, "SOUND", "AGAIN", "TIGHTEN")

    def launch(self) -> None:
        """From the blocks that were assembled."""
        b, c, launch, n = self.backend, self.control, self.device.launch, self.backend.n
        potential = b.potential
        couplings = potential.couplings
        potential.project(couplings)
        self.linear.launch_solve(potential.gradient, potential.diagonal, couplings)
        self._take()
        launch(control.set_flag, 1, c, control.TIGHTEN, 0)
        exact = self.linear.solver.exact
        launch(newton.judge_direction, n, c, int(exact), grain=ALONE)
        if not exact:
            self.graphs.when(self._flag["TIGHTEN"], self._tighten)
        # what could not be solved teaches nothing
        self.graphs.when(self._flag["SOUND"], self._learn)
        if b.system.has_exact:
            self._close_joints()
        else:
            launch(control.begin_loop, 1, c)
            launch(newton.choose_stretch, n, c)
            self.graphs.when(self._flag["AGAIN"], self._stretch)

    def _learn(self) -> None:
        """How exact the next direction has to be, and where edges of laws are expected to end."""
        b, c, launch = self.backend, self.control, self.device.launch
        b.islands.fold(c.each, sums.MAX, self.path.largest)
        launch(newton.advance_forcing, 1, c, self.path.largest)
        if b.system.has_edges:
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
        self._take()
        self.device.launch(newton.judge_direction, self.backend.n, self.control, 1, grain=ALONE)

    def _take(self) -> None:
        # rounding of an ill-conditioned system must not leak into fixed degrees of freedom
        self.backend.potential.hold_back(self.backend.linear.direction)
        self.path.aim(self.control.moved, self.control.limit)

    def _close_joints(self) -> None:
        """As `DenseSolver.close_joints`, for the islands that the direction seems to end."""
        b, c, launch, n = self.backend, self.control, self.device.launch, self.backend.n
        launch(control.begin_loop, 1, c)
        launch(newton.choose_closing, n, c)
        direction, missing, potential = b.linear.direction, b.scratch.vectors, b.potential

        def close() -> None:
            # forces that the exact rows lack at the end of the direction; their multipliers take them over
            self.device.fill(missing)
            b.joints.add_missing(b.scratch.straight, b.scratch.aside, missing)
            b.joints.take_over(b.scratch.straight, False, b.scratch.aside)
            potential.hold_back(missing)
            self.linear.launch_correct(missing)
            potential.hold_back(direction)
            launch(poses.add_rows, n, missing, potential.gradient)
            look()
            launch(control.go_round, 1, c, CLOSINGS + 1, 0)

        def look() -> None:
            a = b.scratch.a
            launch(poses.go_straight, n, b.at.current, direction, b.scratch.straight)
            self.device.fill(a)
            b.joints.predicted_errors(b.scratch.straight, direction, a)
            b.islands.reduce(a, sums.MAX, self.scratch)
            launch(newton.judge_closing, n, c, self.scratch, CLOSED)
            launch(newton.leave_aside, n, c, b.islands.island, b.scratch.aside)

        def close_all() -> None:
            look()
            launch(control.go_round, 1, c, CLOSINGS + 1, 0)
            self.graphs.repeat(self._flag["AGAIN"], close)
            b.joints.evaluate(b.at, "current")
            self.path.aim(c.moved, c.limit)

        if b.linear.known and self.linear.solver.sees_joints:
            self.graphs.when(self._flag["AGAIN"], close_all)
