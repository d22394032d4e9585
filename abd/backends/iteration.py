"""A Newton iteration that the device runs by itself: recorded, replayed, and looked at through one small array.

It does what `abd.solver.newton.minimise` does between two looks at the islands, with the decisions in
`cuda_kernels.newton`. The host renews the candidate list where the path leaves it, makes room, and adapts the contact
stiffness; nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from abd.backends.graphs import Graphs
from abd.backends.resident_linear import ResidentLinear
from abd.joints.system import CLOSED, CLOSINGS, LIMIT_CUTS
from cuda_kernels import affine, bodies, integrators, newton, paths, sums
from cuda_kernels.krylov import Coupling

HALVINGS = 40
"""Of the line search, as in `abd.solver.line_search`."""


@dataclass(frozen=True)
class Status:
    """What an iteration came to.

    failure: of `cuda_kernels.newton`, 0 for none; moving: whether an island has not converged; covered: whether the
    candidate list was complete; worst: largest speed with which islands converged, speed: of the last direction [m/s];
    gap: smallest one of the moving islands [m], least: their smallest accepted step; open: see `newton.OPEN`; trials,
    linear: energy evaluations and iterations of pcg; factored: whether every pivot was positive.
    """

    failure: int
    moving: bool
    covered: bool
    worst: float
    speed: float
    gap: float
    least: float
    open: float
    trials: int
    linear: int
    factored: bool


class Iteration:
    """Recorded Newton iterations of one `WarpBackend`.

    Attributes:
        graphs: the records.
        reads: how often the host has looked.
    """

    def __init__(self, backend):
        self.backend, self.device = backend, backend.device
        d, room = self.device, max(backend.n, 1)
        self.graphs = Graphs(d)
        c = self.control = newton.Control()
        for name in newton.Control.vars:
            if name not in ("counts", "at", "flags"):
                setattr(c, name, d.zeros(room, wp.float64))
        c.counts = backend.islands.counts
        c.at, c.flags = d.zeros(newton.NUMBERS, wp.float64), d.zeros(newton.FLAGS, wp.int32)
        self.linear = ResidentLinear(backend.linear, self.graphs, c)
        self.status = d.zeros(newton.NUMBERS + newton.FLAGS + 1, wp.float64)
        self.scratch, self.largest = d.zeros(room, wp.float64), d.zeros(1, wp.float64)
        self.all, self.some, self.settled = (d.zeros(room, wp.float64) for _ in range(3))
        self.reads = 0
        self._flag = {
            name: c.flags[getattr(newton, name) : getattr(newton, name) + 1]
            for name in ("STALE", "SOUND", "COVERED", "AGAIN", "ASKED", "TIGHTEN")
        }

    # from the host --------------------------------------------------------------------------------------------------

    def begin(self, tolerance: float, h: float, tightest: float, loosest: float, correction: float, stale: bool) -> None:
        """Begin a minimisation: tolerances of Newton [m/s] and of the linear solves; `stale` says that the iterate has
        yet to be linearised."""
        b, c, write = self.backend, self.control, self.device.write
        numbers = np.zeros(newton.NUMBERS)
        numbers[[newton.TOLERANCE, newton.H, newton.TIGHTEST, newton.FORCING, newton.CORRECTION]] = (
            tolerance, h, tightest, loosest, correction,
        )  # fmt: skip
        write(c.at, numbers)
        flags = np.zeros(newton.FLAGS, dtype=np.int32)
        flags[newton.STALE] = stale
        write(c.flags, flags)
        write(self.scratch, b.asleep().astype(float))
        self.device.launch(newton.begin_islands, b.n, c, self.scratch)
        self._spread_caution()
        b.settle_resident(c.converged)
        self._follow_pairs()

    def run(self) -> Status:
        """One iteration, or the first part of one that the candidate list does not cover (`Status.covered`)."""
        b = self.backend
        b.know_contacts()
        self.graphs.run(("iteration", *self._key()), self._iterate)
        return self._look()

    def renew(self) -> Status:
        """Renew the candidate list for the path of the last direction, and end the iteration."""
        b, c = self.backend, self.control
        candidates, islands = b.contacts.candidates, b.islands
        reach = float(self.device.read(self.largest)[0])
        candidates.cover(b.path, reach, islands.island, c.limit)
        b.forget_contacts()
        islands.keep_numbering()
        b.renumber()
        self._carry()
        b.settle_resident(c.converged)
        self._follow_pairs()
        b.know_contacts()
        self.graphs.run(("end", *self._key()), self._end_renewed)
        return self._look()

    def repeat_with_room(self) -> None:
        """Make room for the sums of contacts; the iteration has to be run again."""
        b = self.backend
        for reduction in (b.contacts.reduction, b.friction.reduction):
            reduction.make_room()
        self._raise(newton.STALE)

    def restiffen(self) -> None:
        """The contact stiffness has changed: islands that touch anything move on."""
        b = self.backend
        self.device.launch(newton.rouse_paired, b.n, self.control, b.islands.paired_flags)
        self._raise(newton.STALE)

    def _raise(self, flag: int) -> None:
        self.device.launch(newton.set_flag, 1, self.control, flag, 1)

    def _look(self) -> Status:
        values = self.device.read(self.status)
        self.reads += 1
        at, flags = values[: newton.NUMBERS], values[newton.NUMBERS :].astype(int)
        linear = int(flags[newton.LINEAR])
        self.backend.linear.took(linear)
        return Status(
            failure=int(flags[newton.FAILURE]),
            moving=bool(flags[newton.MOVING]),
            covered=bool(flags[newton.COVERED]),
            worst=float(at[newton.WORST]),
            speed=float(at[newton.SPEED]),
            gap=float(at[newton.GAP]),
            least=float(at[newton.LEAST]),
            open=float(at[newton.OPEN]),
            trials=int(flags[newton.TRIALS]),
            linear=linear,
            factored=flags[newton.FLAGS] == 0,
        )

    def _key(self) -> tuple:
        """Plain numbers that are recorded by value, and what decides on the launches."""
        b = self.backend
        choice = b.linear.choice.direct, b.linear.uses_loose_pairs
        return b.step.ch2, b.step.pull, b.eps, b.fixed_stiffness, b.has_loose_pairs, *choice

    def _follow_pairs(self) -> None:
        """Bring the linear solver's choice up to date with the pairs that may touch."""
        b = self.backend
        candidates, friction = b.contacts.candidates, b.friction
        b.has_loose_pairs = candidates.pair_count + friction.pair_count > 0
        b.linear.follow_near(
            b.joints.coupling,
            b.joints.pairs,
            candidates.pair_count + friction.pair_count,
            lambda: [candidates.pair_list(), friction.pair_list()],
        )

    def _carry(self) -> None:
        """Numbers of the islands to those that they have become."""
        b, c = self.backend, self.control
        carry = b.islands.carry_resident
        for values, operation, out in (
            (c.converged, sums.MIN, self.all),
            (c.converged, sums.MAX, self.some),
            (c.settled, sums.MIN, self.settled),
            (c.moved, sums.MAX, c.moved),
            (c.share, sums.MAX, c.share),
            (c.decides, sums.MIN, c.decides),
            (c.speed, sums.MAX, c.speed),
            (c.limit, sums.MIN, c.limit),
        ):
            carry(values, operation, out)
        self.device.launch(newton.merge_flags, b.n, c, self.all, self.some, self.settled)

    # recorded -------------------------------------------------------------------------------------------------------

    def _iterate(self) -> None:
        b, c, launch = self.backend, self.control, self.device.launch
        launch(newton.begin_iteration, 1, c)
        b.settle_resident(c.converged)
        self.graphs.when(self._flag["STALE"], self._assemble)
        self.graphs.when(self._flag["SOUND"], self._find_direction)
        self.graphs.when(self._flag["SOUND"], self._follow)
        self.graphs.when(self._flag["COVERED"], self._search)
        self._gather()

    def _end_renewed(self) -> None:
        """The end of an iteration whose path the candidate list did not cover."""
        self.device.launch(newton.set_flag, 1, self.control, newton.COVERED, 1)
        self._stop_at_contacts()
        self._search()
        self._gather()

    def _gather(self) -> None:
        b = self.backend
        self.device.launch(newton.gather_status, 1, self.control, b.linear.factor.any_failed, self.status)

    def _spread_caution(self) -> None:
        b = self.backend
        self.device.launch(newton.to_bodies, b.n, b.islands.island, self.control.share, b.contacts.law.caution)

    def _assemble(self) -> None:
        b, c, launch = self.backend, self.control, self.device.launch
        self._spread_caution()
        b.linearize()
        launch(newton.set_flag, 1, c, newton.STALE, 0)
        for reduction in (b.contacts.reduction, b.friction.reduction):
            if reduction.pairs:
                launch(newton.check_room, 1, c, reduction.needed, reduction.pairs, reduction.run_count)

    def _couplings(self) -> tuple[list[tuple[Coupling, int]], list]:
        """Blocks off the diagonal with the rooms of their pairs, and the pairs' numbers on the device."""
        b = self.backend
        sums_of_pairs = (b.contacts.reduction, b.friction.reduction)
        couplings = [(b.joints.coupling, b.joints.pairs), *((r.coupling, r.pairs) for r in sums_of_pairs)]
        return couplings, [b.joints.counts, *(r.counts for r in sums_of_pairs)]

    def _find_direction(self) -> None:
        b, c, launch, n = self.backend, self.control, self.device.launch, self.backend.n
        couplings, counts = self._couplings()
        if b.has_constraints:
            b.project(couplings, counts)
        self.linear.launch_solve(b.gradient, b.diagonal, couplings, counts)
        self._take_direction()
        launch(newton.set_flag, 1, c, newton.TIGHTEN, 0)
        launch(newton.judge_direction, n, c, int(b.linear.choice.direct))
        if not b.linear.choice.direct:
            self.graphs.when(self._flag["TIGHTEN"], self._tighten)
        b.islands.fold(c.each, sums.MAX, self.largest)
        launch(newton.advance_forcing, 1, c, self.largest)
        if b.system.has_friction:
            changes = b.values["b"]
            changes.zero_()
            b.joints.effort_changes(b.linear.direction, changes)
            b.islands.reduce(changes, sums.MAX, self.scratch)
            launch(newton.judge_efforts, n, c, self.scratch)
        if b.system.has_exact:
            self._close_joints()

    def _tighten(self) -> None:
        self.linear.launch_tighten()
        self._take_direction()
        self.device.launch(newton.judge_direction, self.backend.n, self.control, 1)

    def _take_direction(self) -> None:
        b = self.backend
        if b.has_constraints:
            # rounding of an ill-conditioned system must not leak into fixed degrees of freedom
            self.device.launch(bodies.project_vectors, b.n, b.body, b.step, b.linear.direction)
        b.launch_direction(self.control.moved, self.control.limit)

    def _close_joints(self) -> None:
        """As `NewtonSystem.close_joints`, for the islands that the direction seems to end."""
        b, c, launch, n = self.backend, self.control, self.device.launch, self.backend.n
        launch(newton.begin_loop, 1, c)
        launch(newton.choose_closing, n, c)
        launch(newton.leave_aside, n, c, b.islands.island, b.aside)
        direction, missing = b.linear.direction, b.before_contacts

        def close() -> None:
            b.launch_missing(missing)
            self.linear.launch_correct(missing)
            if b.has_constraints:
                launch(bodies.project_vectors, n, b.body, b.step, direction)
            launch(integrators.add_rows, n, missing, b.gradient)
            look()
            launch(newton.go_round, 1, c, CLOSINGS, 0)

        def look() -> None:
            a = b.values["a"]
            launch(integrators.go_straight, n, b.pose, direction, b.straight)
            a.zero_()
            b.joints.predicted_errors(b.straight, direction, a)
            b.islands.reduce(a, sums.MAX, self.scratch)
            launch(newton.judge_closing, n, c, self.scratch, CLOSED)

        def close_all() -> None:
            look()
            launch(newton.go_round, 1, c, CLOSINGS + 1, 0)
            self.graphs.repeat(self._flag["AGAIN"], close)
            b.joints.evaluate(b.pose, "current")
            b.launch_direction(c.moved, c.limit)

        if b.linear.has_factors:
            self.graphs.when(self._flag["AGAIN"], close_all)

    def _follow(self) -> None:
        """The path along the direction as far as the listed contacts allow, and whether the list covers that."""
        b, c, launch, n = self.backend, self.control, self.device.launch, self.backend.n
        a = b.values["a"]
        launch(paths.displacements, n, b.lower, b.upper, b.path, b.islands.island, c.limit, a)
        b.islands.reduce(a, sums.MAX, self.scratch)
        launch(newton.measure_path, n, c, self.scratch)
        self._stop_at_contacts()
        b.contacts.candidates.test_cover(b.path, self.largest, b.islands.island, c.limit, self._flag["COVERED"])

    def _stop_at_contacts(self) -> None:
        b, c = self.backend, self.control
        a = b.values["a"]
        b.contacts.times_of_impact(b.path, b.islands.island, c.limit, a)
        b.islands.reduce(a, sums.MIN, self.scratch)
        self.device.launch(newton.shorten, b.n, c, self.scratch)
        b.islands.fold(c.each, sums.MAX, self.largest)

    def _search(self) -> None:
        b, c, launch, n = self.backend, self.control, self.device.launch, self.backend.n
        launch(newton.begin_alpha, n, c)
        if b.system.has_barriers:
            self._keep_limits()
        launch(newton.begin_search, n, c)
        self._measure_slope(c.slope)
        launch(newton.begin_loop, 1, c)
        self._raise(newton.AGAIN)
        self._raise(newton.STALE)
        self.graphs.repeat(self._flag["AGAIN"], self._try)
        self._finish()

    def _keep_limits(self) -> None:
        """As `WarpBackend._within_limits`."""
        b, c, launch, n = self.backend, self.control, self.device.launch, self.backend.n
        shares = b.values["a"]
        b.joints.measure_gaps(b.pose)

        def cut() -> None:
            launch(affine.advance, n, b.path, b.islands.island, b.islands.done, c.alpha, b.trial)
            shares.fill_(1.0)
            b.joints.open_shares(b.trial, shares)
            b.islands.reduce(shares, sums.MIN, self.scratch)
            launch(newton.cut, n, c, self.scratch)
            launch(newton.go_round, 1, c, LIMIT_CUTS, newton.NO_CUT)

        launch(newton.begin_loop, 1, c)
        self._raise(newton.AGAIN)
        self.graphs.repeat(self._flag["AGAIN"], cut)

    def _measure_slope(self, out: wp.array) -> None:
        b = self.backend
        row = b.values["row"]
        self.device.launch(sums.dot_rows, b.n, b.gradient, b.linear.direction, row)
        b.islands.reduce(row, sums.SUM, out)

    def _try(self) -> None:
        """A trial of the line search: taken, halved, or taken to look at its slope."""
        b, c, launch, n = self.backend, self.control, self.device.launch, self.backend.n
        launch(affine.advance, n, b.path, b.islands.island, b.islands.done, c.alpha, b.trial)
        b.launch_trial(c.alpha, c.change, c.size)
        launch(newton.begin_loop, 1, c)
        launch(newton.judge_trial, n, c)
        launch(newton.count_trial, 1, c)
        self.graphs.when(self._flag["ASKED"], self._compare_slopes)
        self.graphs.when(self._flag["AGAIN"], self._halve)

    def _halve(self) -> None:
        b, c, launch = self.backend, self.control, self.device.launch
        launch(newton.halve, b.n, c, HALVINGS)
        launch(newton.end_halvings, 1, c, HALVINGS)

    def _compare_slopes(self) -> None:
        b, c, launch = self.backend, self.control, self.device.launch
        b.exchange()
        b.linearize()
        self._measure_slope(c.steepness)
        launch(newton.judge_slopes, b.n, c)
        launch(newton.take_doubtful, 1, c)
        # `exchange` again takes the trial back; the end of the search then takes it for good
        b.exchange()

    def _finish(self) -> None:
        """Take the last trial, learn from it, and see who has converged."""
        b, c, launch, n = self.backend, self.control, self.device.launch, self.backend.n
        launch(newton.reach_of_trial, n, c)
        b.islands.fold(c.each, sums.MAX, self.largest)
        b.exchange()
        b.contacts.candidates.spend(b.path, self.largest, b.islands.island, c.alpha)
        exact = b.system.has_exact
        if exact:
            errors = b.values["a"]
            errors.zero_()
            b.joints.errors(b.pose, errors)
            b.islands.reduce(errors, sums.MAX, self.scratch)
        launch(newton.end_iteration, n, c, self.scratch, int(exact))
        if exact:
            self.graphs.when(c.flags[newton.MOVING : newton.MOVING + 1], self._update_multipliers)
        if not b.fixed_stiffness:
            b.islands.reduce(b.contacts.body_gaps(), sums.MIN, self.scratch)
            launch(newton.fold_gaps, n, c, self.scratch)

    def _update_multipliers(self) -> None:
        b = self.backend
        b.settle_resident(self.control.converged)
        b.update_multipliers()
        self._raise(newton.STALE)
