"""A Newton iteration, whose status the host reads as one small array.

    g, H = gradient and projected Hessian at q, regularised where the last model was too soft
    H d = -g
    alpha = largest collision-free, strain-limited fraction of the arc along d
    halve alpha until E decreases
    lambda += K C for the exact joint rows C

All bodies of an island share alpha and the convergence test. Converged and sleeping islands do not move. The decisions are
kernels (`cuda_kernels.step`). Everything else is a stage of the backend, computed by kernels or by the NumPy definitions. Devices
may record the launches (`abd.backends.device.graphs`). The host renews the candidate list where the path leaves it, and
increases capacities.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import warp as wp

from abd.backends.answers import Status
from abd.backends.device.device import ONE_THREAD
from abd.backends.device.graphs import Graphs
from abd.backends.progress import no_decrease
from abd.backends.recorded.direction import Direction
from abd.backends.recorded.numbers import FAILURES, flags_of, new_control, numbers
from abd.backends.recorded.search import Search
from abd.errors import StepFailure
from abd.potentials.integrators import longest
from cuda_kernels.parallel import islands, sums
from cuda_kernels.shared.step import HALVINGS
from cuda_kernels.step import control, newton


class Iteration:
    """Newton iterations of one backend.

    Attributes:
        graphs: the records; solver: chosen linear solver.
    """

    def __init__(self, backend):
        self.backend, self.device = backend, backend.device
        d, capacity = self.device, max(backend.n, 1)
        self.graphs: Graphs = backend.graphs
        c = self.control = new_control(d, capacity, backend.islands.counts)
        self.search = Search(backend, c)
        # the host reads the status, and the bodies in contact, as one array
        self._memory = d.zeros(control.STATUS + (capacity + 1) // 2, wp.float64)
        self.status = self._memory[: control.STATUS]
        flags = self._memory.ptr + 8 * control.STATUS
        self._touching = wp.array(ptr=flags, dtype=wp.int32, shape=capacity, device=d.warp, copy=False)
        self._reads_touching = False
        self.scratch = d.zeros(capacity, wp.float64)
        self._of_bodies, self._of_islands = (d.zeros(capacity, sums.vec13) for _ in range(2))
        self.direction = Direction(backend, c, self.search, self.scratch)
        self.sleeping, self.frictional = (d.zeros(capacity, wp.int32) for _ in range(2))
        self._friction_of = None
        self.loose_tolerances, self.residual_bounds, self._has_lengths = *(d.zeros(capacity, wp.float64) for _ in range(2)), False
        self._flag = flags_of(c, "STALE", "SOUND", "COVERED", "ALL_BODIES", "RESTART", "MOVING")

    # from the host --------------------------------------------------------------------------------------------------

    def begin(
        self, tolerance: float, friction_tolerance: float, h: float | np.ndarray, tightest: float,
        moving: np.ndarray | None = None,
        loose: float | np.ndarray = 0.0, residual_bound: float | np.ndarray = 0.0,
    ) -> bool:  # fmt: skip
        """Begin a minimisation; return whether a body is awake.

        Args:
            tolerance: vertex speed of a full step at which an island has converged [m/s]; friction_tolerance: the same of islands
                with friction.
            h: length of the step [s], scalar or (n,).
            tightest: relative tolerance of linear solves that decide on convergence.
            moving: (n,) bool, bodies whose islands take part; all by default.
            loose: islands with friction have also converged where the full step and the residual forces change all velocities
                by at most this [m/s], scalar or (n,).
            residual_bound: islands with listed pairs of bodies converge only where the residual before the last direction was at
                most this [m/s], scalar or (n,), or the direction is next to zero; 0 for no such bound.
        """
        b, c, write = self.backend, self.control, self.device.write
        self._reads_touching = not b.touch.is_empty
        flags = np.zeros(control.FLAGS, dtype=np.int32)
        write(c.at, numbers(tolerance, friction_tolerance, longest(h), tightest))
        self.device.fill(self.sleeping)
        flags[control.STALE] = 1
        if moving is not None or b.inactive.sleeping.any():
            asleep = b.inactive.asleep(moving)
            if asleep.all():
                self.device.fill(c.reached)
                return False
            write(self.sleeping, asleep.astype(np.int32))
            # one assembly with all bodies: bodies at rest need blocks that can be factorised
            flags[control.ALL_BODIES] = 1
        write(c.flags, flags)
        self.follow_rows()
        by_island = bool(np.any(residual_bound) or b.friction.count or b.system.has_friction)
        has_lengths = not isinstance(h, float)
        if by_island:
            self.device.assign(self.loose_tolerances, loose)
            self.device.assign(self.residual_bounds, residual_bound)
        self._has_lengths = has_lengths
        key = "begin", by_island, has_lengths, b.touch.lists[1].ptr
        self.graphs.run(key, lambda: self._begin(by_island, has_lengths))
        self.follow_pairs()
        return True

    def _begin(self, by_island: bool, has_lengths: bool) -> None:
        """Start all islands except inactive ones; launches only.

        by_island: with tolerances by island; has_lengths: with lengths of the step by island."""
        self.device.launch(newton.begin_islands, self.backend.n, self.control, self.sleeping)
        if has_lengths:
            self._reduce_lengths()
        if by_island:
            self.launch_tolerances()

    def _reduce_lengths(self) -> None:
        self.backend.islands.reduce(self.backend.scheme.lengths, sums.MAX, self.control.length)

    def follow_rows(self) -> None:
        """Write the mask of bodies with friction in their joints."""
        b = self.backend
        if self._friction_of is b.system:
            return
        self._friction_of, frictional = b.system, np.zeros(b.n, dtype=np.int32)
        frictional[b.system.friction_bodies] = 1
        self.device.write(self.frictional, frictional)

    def launch_tolerances(self) -> None:
        """Set the tolerances of the islands, depending on friction; launches only."""
        b, c = self.backend, self.control
        given = self.frictional, *b.touch.lists, self.loose_tolerances, self.residual_bounds
        self.device.launch(newton.body_tolerances, b.n, c, *given, b.scratch.a, b.scratch.b, b.scratch.row)
        b.islands.reduce(b.scratch.a, sums.MIN, c.tolerance)
        b.islands.reduce(b.scratch.b, sums.MAX, c.loose)
        b.islands.reduce(b.scratch.row, sums.MAX, c.residual_bound)

    def run(self, progress) -> Status:
        """Run one iteration and count it in `progress` (`abd.backends.progress`).

        Raises:
            StepFailure: the iteration failed.
        """
        with progress.time("iterations"):
            return self._run(progress)

    def _run(self, progress) -> Status:
        b = self.backend
        b.potential.evaluate_contacts()
        status = self._run_part("iteration", self.iterate)
        progress.newton += 1
        progress.linear += status.linear
        if not (status.failure or status.covered):
            b.touch.renew(status.motion, self.control.limit)
            self._follow_islands()
            status = self._run_part("end", self._end_renewed)
        while status.failure == control.NO_CAPACITY:
            b.touch.grow(*status.needed)
            status = self._run_part("search", self._repeat_search)
        if status.failure == control.NOT_POSITIVE:
            b.linear.check()
        if status.failure == control.NO_DECREASE:
            c, count = self.control, b.islands.count
            halvings, small, slope = self.device.read_all((c.halvings, count), (c.small, count), (c.slope, count))
            # only islands with all halvings used have failed
            raise no_decrease(b, HALVINGS, (halvings >= HALVINGS) & (small == 0.0), slope)
        if status.failure:
            raise StepFailure(*FAILURES[status.failure])
        progress.trials += status.trials
        progress.tolerance = max(progress.tolerance, status.worst)
        if not status.moving:
            b.islands.clear_done()
        return status

    def _run_part(self, name: str, body: Callable[[], None]) -> Status:
        """Run a part of the iteration as a record; its key has all parameters that are recorded by value or select launches."""
        b, reads_touching = self.backend, self._reads_touching
        key = name, b.potential.has_constraints, reads_touching, *self._choice
        return self.run_record(key, body, reads_touching)

    def run_record(self, key: tuple, body: Callable[[], None], reads_touching: bool = False) -> Status:
        """Run launches as a record and read their status, and the bodies in contact if `reads_touching`.

        If the first linearisation lacks capacity, its arrays grow, and the launches run again."""
        b = self.backend

        def gathered() -> None:
            body()
            if reads_touching:
                b.touch.mark_touching(self._touching)
            contacts, _, _, friction, _, _, frozen, _ = b.touch.capacities
            needed = contacts, friction, frozen
            self.device.launch(control.gather_status, 1, self.control, self.search.largest, *needed, self.status)

        while True:
            self.graphs.run(key, gathered)
            b.touch.clear_touching()
            status = self._read_status(reads_touching)
            if status.failure != control.NO_CAPACITY or status.covered:
                return status
            b.touch.grow(*status.needed)
            self.set_flag(control.STALE)

    def reached(self) -> np.ndarray:
        """Return (islands,) vertex speeds of the full steps with which islands converged [m/s], 0 for those that slept."""
        return self.device.read(self.control.reached, self.backend.islands.count)

    def speeds(self) -> np.ndarray:
        """Return (islands,) vertex speeds of the last full steps [m/s], -1 for converged islands."""
        c, count = self.control, self.backend.islands.count
        moved, length, converged = self.device.read_all((c.moved, count), (c.length, count), (c.converged, count))
        return np.where(converged == 0, moved / length, -1.0)

    def tolerances(self) -> np.ndarray:
        """Return (islands,) tolerances [m/s]."""
        return self.device.read(self.control.tolerance, self.backend.islands.count)

    def _follow_islands(self, stale: bool = False) -> None:
        """Follow the islands and pairs of a new candidate list; `stale`: outside an iteration, so that the last assembly is
        outdated."""
        self.graphs.run(("carry", self._has_lengths, stale), lambda: self._carry(stale))
        self.follow_pairs()

    def unproven(self, h: float | np.ndarray) -> np.ndarray:
        """Return `SweptPaths.unproven` during the minimisation."""
        b, builds = self.backend, self.backend.touch.builds
        found = b.swept_paths.unproven(h, self.control.converged)
        if b.touch.builds != builds:
            b.islands.keep_numbering()
            b.touch.launch_renumber()
            self._follow_islands(stale=True)
        return found

    def evaluate(self) -> None:
        """Evaluate all energies except contact at the iterate, those of settled islands included."""
        self.backend.islands.clear_done()
        self.backend.potential.evaluate()

    def set_flag(self, flag: int) -> None:
        """Set a flag of the decisions; launches only."""
        self.device.launch(control.set_flag, 1, self.control, flag)

    def _read_status(self, reads_touching: bool) -> Status:
        values = self.device.read(self._memory, None if reads_touching else control.STATUS)
        if reads_touching:
            self.backend.touch.touched = values[control.STATUS :].view(np.int32)[: self.backend.n]
        found = values[: control.STATUS].tolist()
        at, flags, rest = found[: control.NUMBERS], found[control.NUMBERS :], found[control.NUMBERS + control.FLAGS :]
        return Status(
            failure=int(flags[control.FAILURE]),
            covered=flags[control.COVERED] != 0.0,
            motion=rest[0],
            moving=flags[control.MOVING] != 0.0,
            worst=at[control.WORST],
            open=at[control.OPEN],
            trials=int(flags[control.TRIALS]),
            linear=int(flags[control.LINEAR]),
            needed=[int(one) for one in rest[1:]],
        )

    def follow_pairs(self) -> None:
        """Choose the linear solver for the pairs of bodies with candidates or lagged friction."""
        self.solver, *self._choice = self.backend.choose_solver(self.control)

    def _carry(self, stale: bool) -> None:
        """Transfer the numbers of islands to their new numbering; launches only."""
        b, c = self.backend, self.control
        self.carry_numbers()
        if self._has_lengths:
            self._reduce_lengths()
        b.potential.launch_mark_done(c.converged)
        if stale:
            self.set_flag(control.STALE)

    def carry_numbers(self) -> None:
        """Transfer the decisions of the islands to their new numbering."""
        launch, islands, c = self.device.launch, self.backend.islands, self.control
        launch(newton.gather_numbers, self.backend.n, c, islands.before, self._of_bodies)
        islands.reduce(self._of_bodies, sums.MAX, self._of_islands)
        launch(newton.set_numbers, self.backend.n, c, self._of_islands)

    # recorded -------------------------------------------------------------------------------------------------------

    def iterate(self) -> None:
        """Run an iteration on the present list."""
        b, c, launch = self.backend, self.control, self.device.launch
        launch(control.begin_iteration, 1, c)
        b.potential.launch_mark_done(c.converged)
        self.device.repeat(self._flag["RESTART"], self._direct)
        self.device.when(self._flag["SOUND"], self.search.shorten)
        self.device.when(self._flag["COVERED"], self._search)

    def _direct(self) -> None:
        """Compute a direction; if the model is not convex, repeat it with full regularisation."""
        c, launch, linear = self.control, self.device.launch, self.backend.linear
        self.device.when(self._flag["STALE"], self._assemble)
        self.device.when(self._flag["SOUND"], self.direction.launch)
        launch(control.judge_model, 1, c)

        def regularise() -> None:
            known, body, failed = self.backend.failed_rows
            rows = known, body, self.backend.islands.island, failed
            launch(control.set_full_regularisation, self.backend.n, c, *rows)
            launch(control.request_linearisation, 1, c)

        if linear.known and len(linear.bodies):
            self.device.when(self._flag["RESTART"], regularise)

    def _end_renewed(self) -> None:
        """Complete an iteration whose path the candidate list did not cover."""
        self.set_flag(control.COVERED)
        self.search.stop_at_contacts(proven=True)
        self._search()

    def _spread_regularisation(self) -> None:
        b, weight = self.backend, self.control.regularisation
        of_contacts, of_joints = b.potential.regularisations
        self.device.launch(islands.to_bodies[wp.float64], b.n, b.islands.island, weight, of_contacts)
        if b.system.has_friction:
            self.device.launch(control.most_to_bodies, b.n, b.islands.island, weight, of_joints)

    def _assemble(self) -> None:
        b, c = self.backend, self.control
        self._spread_regularisation()
        self.device.when(self._flag["ALL_BODIES"], b.islands.clear_done)
        b.potential.linearize()
        self.search.check_capacity()
        self.device.when(self._flag["ALL_BODIES"], lambda: b.islands.launch_mark_done(c.converged))
        self.device.launch(control.end_assembly, 1, c)

    def _search(self) -> None:
        self.search.launch()
        self.device.when(self._flag["SOUND"], self._finish)

    def _repeat_search(self) -> None:
        """Repeat a search that lacked the capacity to compare slopes."""
        self.search.launch_again()
        self.device.when(self._flag["SOUND"], self._finish)

    def _finish(self) -> None:
        """Accept the last trial, update stiffness and multipliers, and test convergence."""
        b, c, launch, n = self.backend, self.control, self.device.launch, self.backend.n
        b.potential.exchange()
        self.search.subtract_motion()
        exact = b.system.has_exact
        if exact:
            b.rows.launch_errors(self.scratch)
        launch(newton.end_iteration, n, c, self.scratch, int(exact), grain=ONE_THREAD)
        if exact:
            self.device.when(self._flag["MOVING"], self._update_multipliers)

    def _update_multipliers(self) -> None:
        b = self.backend
        b.potential.launch_mark_done(self.control.converged)
        b.rows.update_multipliers(b.linear.direction)
        self.set_flag(control.STALE)
