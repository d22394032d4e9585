"""A Newton iteration as a record on the device, whose status the host reads as one small array.

It follows `abd.backends.reference.iteration`; its decisions are in `cuda_kernels.step.control`. The host only renews the
candidate list where the path leaves it, increases capacities, and adapts the contact stiffness.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import warp as wp

from abd.backends.answers import Status, UnprovenPaths
from abd.backends.device.device import ONE_THREAD
from abd.backends.device.graphs import Graphs
from abd.backends.linear.solver import SOLVERS, Solver
from abd.backends.progress import no_decrease
from abd.backends.recorded.direction import Direction
from abd.backends.recorded.numbers import FAILURES, flags_of, new_control, numbers
from abd.backends.recorded.safe_path import SafePath
from abd.backends.recorded.search import Search
from abd.errors import StepFailure
from abd.potentials.integrators import longest
from cuda_kernels.parallel import islands, sums
from cuda_kernels.shared.step import HALVINGS
from cuda_kernels.step import control, newton


class Iteration:
    """Recorded Newton iterations of one `WarpBackend`.

    Attributes:
        graphs: the records; reads: number of status reads; solver: chosen linear solver.
    """

    def __init__(self, backend):
        self.backend, self.device = backend, backend.device
        d, capacity = self.device, max(backend.n, 1)
        self.graphs: Graphs = backend.graphs
        c = self.control = new_control(d, capacity, backend.islands.counts)
        self._solvers: dict[str, Solver] = {}
        self.search, self.path = Search(backend, c), SafePath(backend, c)
        # the host reads the status, and the bodies in contact if it needs them, as one array
        self._memory = d.zeros(control.STATUS + (capacity + 1) // 2, wp.float64)
        self.status = self._memory[: control.STATUS]
        flags = self._memory.ptr + 8 * control.STATUS
        self._touching = wp.array(ptr=flags, dtype=wp.int32, shape=capacity, device=d.warp, copy=False)
        self._reads_touching = False
        self.scratch = d.zeros(capacity, wp.float64)
        self._of_bodies, self._of_islands = (d.zeros(capacity, sums.vec13) for _ in range(2))
        self.direction = Direction(backend, c, self.path, self.scratch)
        self.all, self.some = (d.zeros(capacity, wp.int32) for _ in range(2))
        self.reads = 0
        self.has_loose_pairs = False
        self.frictional, self._friction_of = d.zeros(capacity, wp.int32), None
        self.loose_tolerances, self.residual_bounds, self._has_lengths = *(d.zeros(capacity, wp.float64) for _ in range(2)), False
        self._flag = flags_of(c, "STALE", "SOUND", "COVERED", "ALL_BODIES", "RESTART")

    # from the host --------------------------------------------------------------------------------------------------

    def begin(
        self, tolerance: float, friction_tolerance: float, h: float | np.ndarray, tightest: float,
        moving: np.ndarray | None = None,
        loose: float | np.ndarray = 0.0, balanced: float | np.ndarray = 0.0, touching: bool = False,
    ) -> bool:  # fmt: skip
        """See `abd.backends.protocol.Iteration`."""
        b, c, write = self.backend, self.control, self.device.write
        self._reads_touching = touching and not b.contacts.candidates.is_empty
        flags = np.zeros(control.FLAGS, dtype=np.int32)
        write(c.at, numbers(tolerance, friction_tolerance, longest(h), tightest))
        self.device.fill(self.all)
        flags[control.STALE] = 1
        if moving is not None or b.inactive.sleeping.any():
            asleep = b.inactive.asleep(moving)
            if asleep.all():
                self.device.fill(c.reached)
                return False
            write(self.all, asleep.astype(np.int32))
            # one assembly with all bodies: bodies at rest need blocks that can be factorised
            flags[control.ALL_BODIES] = 1
        write(c.flags, flags)
        self.follow_rows()
        by_island = bool(np.any(balanced) or b.friction.count or b.system.has_friction)
        has_lengths = not isinstance(h, float)
        if by_island:
            # immobile bodies belong to an island of another world
            balanced = np.where(b.inactive.mobile, balanced, 0.0) if isinstance(balanced, np.ndarray) else balanced
            self.device.assign(self.loose_tolerances, loose)
            self.device.assign(self.residual_bounds, balanced)
        self._has_lengths = has_lengths
        self.graphs.run(("begin", by_island, has_lengths, b.friction.segment.ptr), lambda: self._begin(by_island, has_lengths))
        self.follow_pairs()
        return True

    def _begin(self, by_island: bool, has_lengths: bool) -> None:
        """Start all islands except inactive ones; launches only.

        by_island: with tolerances by island; has_lengths: with lengths of the step by island."""
        self.device.launch(newton.begin_islands, self.backend.n, self.control, self.all)
        if has_lengths:
            self._launch_lengths()
        if by_island:
            self.launch_tolerances()

    def _launch_lengths(self) -> None:
        b = self.backend
        self.device.launch(newton.body_lengths, b.n, b.inactive.held, b.scheme.lengths, b.scratch.a)
        b.islands.reduce(b.scratch.a, sums.MAX, self.control.length)

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
        b, c, friction = self.backend, self.control, self.backend.friction
        pairs = friction.group, friction.segment, b.contacts.candidates.group
        given = b.inactive.held, self.frictional, *pairs, self.loose_tolerances, self.residual_bounds
        self.device.launch(newton.body_tolerances, b.n, c, *given, b.scratch.a, b.scratch.b, b.scratch.row)
        b.islands.reduce(b.scratch.a, sums.MIN, c.tolerance)
        b.islands.reduce(b.scratch.b, sums.MAX, c.loose)
        b.islands.reduce(b.scratch.row, sums.MAX, c.balanced)

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
        status = self._run_record("iteration", self._iterate)
        while status.failure == control.NO_CAPACITY and not status.covered:
            self._grow()
            self._set_flag(control.STALE)
            status = self._run_record("iteration", self._iterate)
        progress.newton += 1
        progress.linear += status.linear
        if not (status.failure or status.covered):
            self._renew(status.motion)
            status = self._run_record("end", self._end_renewed)
        while status.failure == control.NO_CAPACITY:
            self._grow()
            status = self._run_record("search", self._repeat_search)
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

    def _run_record(self, name: str, body: Callable[[], None]) -> Status:
        """Run the record of this name and read its status."""
        self.graphs.run((name, *self._key()), body)
        self.backend.touch.clear_touching()
        return self._read_status()

    def reached(self) -> np.ndarray:
        return self.device.read(self.control.reached, self.backend.islands.count)

    def _grow(self) -> None:
        """Increase the capacities for sums of contacts to those that the last record needed."""
        needed = self._needed.astype(int).tolist()
        self.backend.contacts.reduction.grow(*needed[:2])
        self.backend.friction.reduction.grow(*needed[2:])

    def speeds(self) -> np.ndarray:
        c, count = self.control, self.backend.islands.count
        moved, length, converged = self.device.read_all((c.moved, count), (c.length, count), (c.converged, count))
        return np.where(converged == 0, moved / length, -1.0)

    def _renew(self, motion: float) -> None:
        """Renew the candidate list for the path of the last direction; motion: its largest motion of a vertex [m]."""
        b, c = self.backend, self.control
        contacts = b.contacts.arrays("current")
        b.contacts.candidates.renew(b.trial_path.path, motion, b.islands.island, c.limit)
        b.touch.carry(contacts)
        self._follow_list()

    def _follow_list(self, stale: bool = False) -> None:
        """Update islands and pairs after a renewal of the candidate list; `stale`: outside an iteration, so that the last
        assembly is outdated."""
        b = self.backend
        b.islands.keep_numbering()
        b.touch.launch_renumber()
        self.graphs.run(("carry", self._has_lengths, stale), lambda: self._carry(stale))
        self.follow_pairs()

    def unproven(self, h: float | np.ndarray) -> UnprovenPaths:
        b, builds = self.backend, self.backend.contacts.candidates.builds
        found = b.swept_paths.unproven(h, self.control.converged)
        if self.backend.contacts.candidates.builds != builds:
            self._follow_list(stale=True)
        return found

    def wake(self, islands: np.ndarray) -> None:
        self.device.write(self.some, islands.astype(np.int32))
        self.device.launch(newton.wake, self.backend.n, self.control, self.some)
        self._set_flag(control.STALE)

    def smallest_gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest gap [activations] and the last safe step of every island; infinite and 1 if converged."""
        c, count, gaps = self.control, self.backend.islands.count, self.backend.touch.island_gaps()
        converged, limit = self.device.read_all((c.converged, count), (c.limit, count))
        return np.where(converged == 0, gaps, np.inf), np.where(converged == 0, limit, 1.0)

    def _set_flag(self, flag: int) -> None:
        self.device.launch(control.set_flag, 1, self.control, flag, 1)

    def _read_status(self) -> Status:
        reads_all = self._reads_touching
        values = self.device.read(self._memory, None if reads_all else control.STATUS)
        self.reads += 1
        at, flags, rest, touching = np.split(values, (control.NUMBERS, control.NUMBERS + control.FLAGS, control.STATUS))
        if reads_all:
            self.backend.touch.touched = touching.view(np.int32)[: self.backend.n]
        flags, self._needed = flags.astype(int), rest[1:]
        return Status(
            failure=int(flags[control.FAILURE]),
            covered=bool(flags[control.COVERED]),
            motion=float(rest[0]),
            moving=bool(flags[control.MOVING]),
            worst=float(at[control.WORST]),
            gap=float(at[control.GAP]),
            least=float(at[control.LEAST]),
            open=float(at[control.OPEN]),
            trials=int(flags[control.TRIALS]),
            linear=int(flags[control.LINEAR]),
        )

    def _key(self) -> tuple:
        """Return the parameters that are recorded by value or select launches."""
        b = self.backend
        choice = b.linear.choice.solver, self.has_loose_pairs
        return b.fixed_stiffness, b.potential.has_constraints, self._reads_touching, *choice

    def follow_pairs(self) -> None:
        """Update the pattern of the linear solver to the pairs of bodies with candidates or lagged friction.

        Bodies with permanently overlapping boxes, such as linked rings, would fill a factor of all listed pairs."""
        b, contacts, friction = self.backend, self.backend.contacts, self.backend.friction
        contacts.follow_list()
        candidates, near, linear = contacts.candidates, [b.potential.ties], b.linear
        has_own_list = friction.pair_count > 0 and not friction.follows_list
        self.has_loose_pairs = candidates.pair_count > 0 or has_own_list or len(near[0]) > 0
        linear.follow_joints(b.joints.coupling, b.joints.pairs)
        if self.has_loose_pairs:
            if candidates.pair_count and not linear.is_refused:
                near.append(candidates.coupled_pairs())
            if has_own_list and not linear.is_refused:
                near.append(friction.coupled_pairs())
            linear.follow_near(np.concatenate(near).astype(int))
        # its arrays must exist before launches are recorded
        name = linear.choice.solver
        if name not in self._solvers:
            self._solvers[name] = SOLVERS[name](linear, self.control)
        self.solver = self._solvers[name]

    def _carry(self, stale: bool) -> None:
        """Transfer the numbers of islands to their new numbering; launches only."""
        b, c = self.backend, self.control
        self.carry_numbers()
        if self._has_lengths:
            self._launch_lengths()
        b.potential.launch_mark_done(c.converged)
        if stale:
            self._set_flag(control.STALE)

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
        self.device.when(self._flag["SOUND"], self.path.shorten)
        self.device.when(self._flag["COVERED"], self._search)

    def _direct(self) -> None:
        """Compute a direction; if the model is not convex, repeat it with full regularisation."""
        c, launch, linear = self.control, self.device.launch, self.backend.linear
        self.device.when(self._flag["STALE"], self._assemble)
        self.device.when(self._flag["SOUND"], self.direction.launch)
        launch(control.judge_model, 1, c)

        def regularise() -> None:
            known, factor = (len(linear.bodies), linear.factor) if linear.choice.direct else (0, linear.static)
            rows = factor.pattern.body, self.backend.islands.island, factor.factor.failed
            launch(control.set_full_regularisation, self.backend.n, c, known, *rows)
            launch(control.request_linearisation, 1, c)

        if linear.known and len(linear.bodies):
            self.device.when(self._flag["RESTART"], regularise)

    def _iterate(self) -> None:
        self.iterate()
        self._gather()

    def _end_renewed(self) -> None:
        """Complete an iteration whose path the candidate list did not cover."""
        self.device.launch(control.set_flag, 1, self.control, control.COVERED, 1)
        self.path.stop_at_contacts(proven=True)
        self._search()
        self._gather()

    def _gather(self) -> None:
        if self._reads_touching:
            self.backend.touch.mark_touching(self._touching)
        needed = self.backend.contacts.reduction.needed, self.backend.friction.reduction.needed
        self.device.launch(control.gather_status, 1, self.control, self.path.largest, *needed, self.status)

    def _spread_regularisation(self) -> None:
        b, weight = self.backend, self.control.regularisation
        self.device.launch(islands.to_bodies[wp.float64], b.n, b.islands.island, weight, b.contacts.law.regularisation)
        if b.system.has_friction:
            self.device.launch(control.most_to_bodies, b.n, b.islands.island, weight, b.joints.regularisation)

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
        self._gather()

    def _finish(self) -> None:
        """Accept the last trial, update stiffness and multipliers, and test convergence."""
        b, c, launch, n = self.backend, self.control, self.device.launch, self.backend.n
        b.potential.exchange()
        self.path.subtract_motion()
        exact = b.system.has_exact
        if exact:
            b.rows.launch_errors(self.scratch)
        launch(newton.end_iteration, n, c, self.scratch, int(exact), grain=ONE_THREAD)
        if exact:
            self.device.when(c.flags[control.MOVING : control.MOVING + 1], self._update_multipliers)
        if not (b.fixed_stiffness or b.contacts.candidates.is_empty):
            b.islands.reduce(b.contacts.body_gaps(), sums.MIN, self.scratch)
            launch(newton.fold_gaps, n, c, self.scratch, grain=ONE_THREAD)

    def _update_multipliers(self) -> None:
        b = self.backend
        b.potential.launch_mark_done(self.control.converged)
        b.rows.update_multipliers(b.linear.direction)
        self._set_flag(control.STALE)
