"""The direction of a Newton iteration: solution, refinement, stretching, and closing of joints."""

from __future__ import annotations

import warp as wp

from abd.backends.device.device import ONE_THREAD
from abd.backends.recorded.numbers import flags_of
from abd.backends.recorded.search import Search
from abd.joints.rows.system import CLOSED, CLOSINGS, IMMOBILE
from cuda_kernels.bodies import paths, poses
from cuda_kernels.parallel import sums
from cuda_kernels.step import control, newton


class Direction:
    """Directions of one backend.

    Args:
        decisions: `cuda_kernels.step.control.Control`; search: its path is set to the direction.
        scratch: (islands,) numbers that are not used elsewhere meanwhile.
    """

    def __init__(self, backend, decisions: control.Control, search: Search, scratch: wp.array):
        self.backend, self.device, self.control = backend, backend.device, decisions
        self.search, self.scratch = search, scratch
        self._flag = flags_of(decisions, "SOUND", "REPEAT", "TIGHTEN")
        self.energy, self.previous, self.turn, self.weight = (
            self.device.zeros(max(backend.n, 1), wp.float64) for _ in range(4)
        )

    def launch(self) -> None:
        """Compute the direction from the assembled blocks."""
        b, c, launch, n = self.backend, self.control, self.device.launch, self.backend.n
        potential = b.potential
        couplings = potential.couplings
        potential.project(couplings)
        solver = b.iteration.solver
        if len(b.linear.bodies):
            solver.launch_factor(potential.diagonal, couplings)
            solver.launch_solve(potential.gradient, b.linear.direction)
        self._aim()
        exact = solver.exact
        launch(newton.judge_direction, n, c, int(exact), grain=ONE_THREAD)
        if not exact:
            self.device.when(self._flag["TIGHTEN"], self._tighten)
        # a failed solve must not change the forcing
        self.device.when(self._flag["SOUND"], self._update_forcing)
        if b.system.has_exact:
            self._close_joints()
        launch(control.begin_loop, 1, c, 0)
        launch(newton.choose_stretch, n, c)
        self.device.when(self._flag["REPEAT"], self._stretch)

    def _update_forcing(self) -> None:
        """Set the tolerance of the next solve, and the predicted ends of law edges."""
        b, c, launch = self.backend, self.control, self.device.launch
        b.islands.fold(c.each, sums.MAX, self.search.largest)
        launch(newton.advance_forcing, 1, c, self.search.largest)
        if b.system.has_uneven_forces:
            changes = b.scratch.b
            b.rows.launch_effort_changes(b.linear.direction, changes)
            b.islands.reduce(changes, sums.MAX, self.scratch)
            launch(newton.judge_efforts, b.n, c, self.scratch)

    def _stretch(self) -> None:
        b, c = self.backend, self.control
        self.device.launch(paths.stretch, b.n, b.islands.island, c.stretch, b.linear.direction)
        self.search.aim(self.scratch, c.limit)

    def _tighten(self) -> None:
        self.backend.iteration.solver.launch_tighten(self.backend.linear.direction)
        self._aim()
        self.device.launch(newton.judge_direction, self.backend.n, self.control, 1, grain=ONE_THREAD)

    def _aim(self) -> None:
        # keep rounding of an ill-conditioned system out of fixed degrees of freedom
        self.backend.potential.project_vectors(self.backend.linear.direction)
        self.search.aim(self.control.moved, self.control.limit)

    def _close_joints(self) -> None:
        """Correct the direction with the present factor until the linear model closes all exact rows.

        A change ``K s`` of the multipliers changes the residuals c by ``-C H^-1 C^T K s``. Conjugate gradients with the
        preconditioner K solve ``c = 0``. If solves are not exact, only islands that may converge are closed."""
        b, c, launch, n = self.backend, self.control, self.device.launch, self.backend.n
        launch(control.begin_loop, 1, c, 0)
        launch(newton.choose_closing, n, c, int(b.iteration.solver.exact))
        direction, forces, potential = b.linear.direction, b.scratch.vectors, b.potential
        island, row, energies = b.islands.island, b.scratch.a, b.scratch.b

        def close() -> None:
            # change of the forces of exact rows, conjugate to the previous change
            launch(paths.stretch, n, island, self.turn, forces)
            b.rows.launch_missing(forces)
            potential.project_vectors(forces)
            step = b.linear.step
            b.iteration.solver.launch_correct(forces, step)
            potential.project_vectors(step)
            launch(sums.dot_rows, n, forces, step, row)
            b.islands.reduce(row, sums.SUM, self.scratch)
            launch(newton.weigh_correction, n, c, self.energy, self.scratch, IMMOBILE, self.weight)
            b.rows.step_multipliers(self.weight, self.turn)
            launch(poses.add_rows, n, island, self.weight, step, direction)
            launch(poses.add_rows, n, island, self.weight, forces, potential.gradient)
            check()

        def check() -> None:
            b.rows.launch_predicted_errors(direction, row, energies)
            b.islands.reduce(row, sums.MAX, self.scratch)
            b.islands.reduce(energies, sums.SUM, self.energy)
            launch(newton.judge_closing, n, c, self.scratch, CLOSED, self.energy, self.previous, self.turn)
            launch(control.count_pass, 1, c, CLOSINGS + 1, 0)

        def close_all() -> None:
            self.device.fill(forces)
            self.device.fill(self.previous)
            check()
            self.device.repeat(self._flag["REPEAT"], close)
            b.rows.evaluate()
            self.search.aim(c.moved, c.limit)

        if b.linear.known and b.iteration.solver.sees_joints:
            self.device.when(self._flag["REPEAT"], close_all)
