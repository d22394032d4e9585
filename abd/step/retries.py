"""Retries: a (sub)step that fails is taken again, shorter, by those alone whom it concerns.

A (sub)step fails where an island does not converge, or where the way to its end is not free (`abd.step.ways`). What hangs
together with such a body, through joints or because it may touch, is a *part*; a failure concerns the parts of the bodies
that failed. They are taken back to the beginning and through it in pieces, every part by itself, while nobody else is
there; all others go through it whole, without them.

    everybody       |------------------------------x---------|   two bodies would pass one another beyond x
    the others      |----------------------------------------|   as if those two were not there
    their part      |------------------------------|--|------|   as if there were nobody else

Worlds never meet: where a (sub)step of several fails, every world that the failure concerns goes through it as if it were
alone, and the others together without it. One that cannot go on is left where it was.

A part that fails again on its way goes on in pieces as a whole: to take it apart once more, and the parts of that, would cost
more than it saves.

When all are at the end the ways of those who went separately are put together, each arc over the time that it took, and
have to be free of one another, with no contact at the ends of the pieces. Where they are not, these parts are one, and go
through it again together. So no island notices that another one retries, and nothing passes.

A frame of several pieces leaves what one of its length would: the state before it is the one at its beginning, and
what generalized alpha remembers is moved to its length (`abd.potentials.integrators`), so that the next frame is of second
order in every part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from abd.backends.device.memory import memory_watched
from abd.backends.progress import Progress
from abd.contact.path import between
from abd.energies import Figures, spin
from abd.errors import OutOfMemory, StepFailure
from abd.joints.closure.link_graph import connected_labels
from abd.joints.coordinates.readings import JointReader, Readings
from abd.joints.rows.system import HISTORY
from abd.model import Kind
from abd.state import State
from abd.step.impacts.fast_hits import FastHit
from abd.step.merge import merged
from abd.step.ways import HALVINGS, NotFree, Pieces, next_lengths

if TYPE_CHECKING:
    from abd.step.account import Work
    from abd.step.step import Frozen

FINAL = ("blocked", "limits", "memory", "passed")
"""Failures that no shorter (sub)step mends."""


@dataclass(frozen=True)
class Way:
    """A (sub)step of the bodies `who` (n,) from `begin` to `end` [s]: from the state `before` to `after` (n, 12), turning by
    `turned` (n, 3) [rad] as their velocities say; without states where nobody asks."""

    begin: float
    end: float
    who: np.ndarray
    before: np.ndarray | None = None
    turned: np.ndarray | None = None
    after: np.ndarray | None = None

    def at(self, begin: float, end: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """States (k, 12) of its k bodies at two times [s] of it, and their turn (k, 3) between them [rad]."""
        who, length = self.who, self.end - self.begin
        nothing = np.zeros(np.count_nonzero(who))
        path = between(self.before[who], self.after[who], self.turned[who], nothing)
        first, last = (min(max((time - self.begin) / length, 0.0), 1.0) for time in (begin, end))
        return path.state(first), path.state(last), (last - first) * path.w


@dataclass(frozen=True)
class Moment:
    """All that a (sub)step starts from, and what it came to."""

    state: State
    work: Work
    figures: Figures | None


@dataclass(frozen=True)
class Plan:
    """How bodies `who` (n,) go through a (sub)step, the others left out: whole, in pieces of which the `first` is no longer than
    that [s], or in pieces after a `failure`; of a way that is not free the first one goes up to the `share` that is."""

    who: np.ndarray
    failure: StepFailure | None = None
    share: float = 1.0
    first: float = np.inf


@dataclass(frozen=True)
class Run:
    """What became of a plan: the ways of its substeps, what they came to, and what rubbed in the last of them."""

    plan: Plan
    ways: list[Way]
    end: Moment
    rubbing: tuple[Frozen, ...]


class Retries:
    """Takes a `Stepper` through frames."""

    def __init__(self, stepper):
        self.stepper, model = stepper, stepper.model
        kind = model.bodies.kind
        may_lag = model.settings.kinematic_block == "lag"
        # other prescribed bodies are where their motions say, whoever else is there
        self.linked = (kind == Kind.DYNAMIC) | ((kind == Kind.KINEMATIC) & (stepper.linked.jointed | may_lag))
        self.separate, self.refused = 0, stepper.linked.nobody
        self.worlds = model.bodies.world
        self.stopped: list[tuple[int, StepFailure]] = []

    def advance(self, h: float, retries: int, progress: Progress) -> int:
        """Substeps that make a frame of h [s], the largest number that a body took; where they fail, the state is as
        before.

        Raises:
            StepFailure: the shortest substep failed too, of all worlds; where some could go on, `stopped` are the others.
        """
        self.begin: Moment | None = None
        self.separate, self.stopped, self.refused = 0, [], self.stepper.linked.nobody
        who = self.linked & ~self.stepper.off
        begun = who & (self.stepper.pieces > 0.0)
        try:
            take = self._begin_in_pieces if begun.any() else self._go
            ways = take(who, h, retries, progress)
            if self.stopped and not ways:
                raise self.stopped[0][1]
            if len(ways) > 1:
                self._make_even(self.begin.state, h)
        except StepFailure:
            if self.begin is not None:
                self._return_to(self.begin)
            raise
        finally:
            self.stepper.leave_out(self.stepper.off)
        taken = np.sum([way.who for way in ways], axis=0)
        if len(ways) > 1 or begun.any():
            lengths, bodies = np.array([way.end - way.begin for way in ways]), np.array([way.who for way in ways])
            self.stepper.pieces = next_lengths(h, lengths, bodies, self.refused, begun)
        return max(int(taken.max(initial=0)), 1)

    def _go(self, who: np.ndarray, h: float, retries: int, progress: Progress, plan: Plan | None = None) -> list[Way]:
        """Ways of the (sub)steps of some bodies that make h; of a plan, whose way is not free, the first one is a piece."""
        pieces, ways = Pieces(h, self.stepper.settings.dt), []
        if plan is not None and plan.failure is not None and not pieces.shorten(plan.share):
            raise plan.failure
        if plan is not None:
            pieces.begin(plan.first)
        while pieces.left:
            ways += self._take(who, pieces, retries, progress)
        return ways

    def _take(self, who: np.ndarray, pieces: Pieces, retries: int, progress: Progress) -> list[Way]:
        """Ways of the next (sub)step, or of those that make it; none where it has to be shorter."""
        stepper, h = self.stepper, pieces.length
        stepper.leave_out((self.linked & ~who) | stepper.off)
        kept = stepper.before_trying()
        try:
            ways = [self._try(who, h, progress)]
        except StepFailure as failure:
            touching = stepper.backend.touch.touching_pairs()
            stepper.take_back(*kept)
            progress.refused_ways += isinstance(failure, NotFree)
            if failure.reason == "memory":
                raise
            there = np.unique(self.worlds[who])
            if len(there) == 1:
                ways = self._again(who, pieces, failure, touching, retries, progress)
                if not ways:
                    return []
            else:
                ways = self._by_worlds(who, there, failure, touching, h, retries, progress)
        pieces.free()
        return ways

    def _again(
        self, who: np.ndarray, pieces: Pieces, failure: StepFailure, touching: np.ndarray, retries: int, progress: Progress
    ) -> list[Way]:
        """Ways that make the next (sub)step of some bodies of one world, which failed while pairs (k, 2) might touch; none where
        it has to be shorter."""
        h, refused = pieces.length, isinstance(failure, NotFree)
        if not refused and (retries == 0 or failure.reason in FINAL):
            raise failure
        start = self._moment()
        if self.begin is None:
            self.begin = start
        parts = self._parts(touching, failure)
        plans = self._plans(who, parts, h, failure)
        if refused and not isinstance(failure, FastHit):
            apart = [plan.who for plan in plans if plan.failure is not None]
            self.refused = self.refused | (who if self.separate else np.any(apart, axis=0))
        if len(plans) > 1 and not self.separate:
            return self._apart(start, parts, plans, h, retries, progress)
        if not refused:
            return self._halves(who, h, retries, progress)
        if not pieces.shorten(min(plan.share for plan in plans)):
            raise failure
        return []

    def _try(self, who: np.ndarray, h: float, progress: Progress) -> Way:
        """One (sub)step."""
        stepper = self.stepper
        begin = stepper.time
        states = (stepper.q, stepper.qd) if self.separate else None
        try:
            with memory_watched(stepper.backend.device.name):
                stepper.substeps.take(h, progress)
        except OutOfMemory as error:
            raise StepFailure("memory", str(error)) from error
        if states is None:
            return Way(begin, begin + h, who)
        q, qd = states
        return Way(begin, begin + h, who, q, h * spin(q, qd), stepper.q)

    def _halves(self, who: np.ndarray, h: float, retries: int, progress: Progress) -> list[Way]:
        return [way for _ in range(2) for way in self._go(who, 0.5 * h, retries - 1, progress)]

    # worlds ---------------------------------------------------------------------------------------------------------

    def _by_worlds(
        self, who: np.ndarray, there: np.ndarray, failure: StepFailure, touching: np.ndarray, h: float, retries: int,
        progress: Progress,
    ) -> list[Way]:  # fmt: skip
        """Take the bodies of several worlds (w,) through a (sub)step of h [s] that has failed: every world that the failure
        concerns by itself, as if it were alone, and the others together. Where it is not known which ones those are, each
        half of them. A world that cannot go on is left where it began.
        """
        start = self._moment()
        if self.begin is None:
            self.begin = start
        failed = self._worlds_of(failure, who, there)

        def resume(world: int) -> Callable[[np.ndarray], list[Way]]:
            why = failure.within(self.worlds == world)
            return lambda mine: self._resume(Plan(mine, why), h, touching, retries, progress)

        def whole(mine: np.ndarray) -> list[Way]:
            return self._go(mine, h, retries, progress)

        groups = [(there[~np.isin(there, failed)], whole), *(([world], resume(world)) for world in failed)]
        if not len(failed):
            groups = [(half, whole) for half in np.array_split(there, 2)]
        return self._group_by_group(start, who, groups, h)

    def _group_by_group(
        self, start: Moment, who: np.ndarray, groups: list[tuple[np.ndarray, Callable[[np.ndarray], list[Way]]]], h: float
    ) -> list[Way]:
        """Take the bodies of groups of worlds through a (sub)step of h [s], every group by itself and in its way, and put them
        together. A world by itself that cannot go on is left where it began."""
        stepper, runs = self.stepper, []
        for worlds, take in groups:
            mine = who & np.isin(self.worlds, worlds)
            if not mine.any():
                continue
            self._return_to(start)
            try:
                ways = take(mine)
            except StepFailure as hopeless:
                if len(worlds) > 1 or hopeless.reason == "memory":
                    raise
                ways = []
                self._return_to(start)
                self.stopped.append((int(worlds[0]), hopeless))
            if len(ways) > 1:
                self._make_even(start.state, h)
            runs.append(Run(Plan(mine), ways, self._moment(), stepper.rubbing()))
        self._put_together(start, runs, h)
        return [way for run in runs for way in run.ways]

    def _resume(self, plan: Plan, h: float, touching: np.ndarray, retries: int, progress: Progress) -> list[Way]:
        """Ways of a world whose (sub)step of h [s] has failed."""
        pieces = Pieces(h, self.stepper.settings.dt)
        if ways := self._again(plan.who, pieces, plan.failure, touching, retries, progress):
            pieces.free()
        while pieces.left:
            ways = [*ways, *self._take(plan.who, pieces, retries, progress)]
        return ways

    def _begin_in_pieces(self, who: np.ndarray, h: float, retries: int, progress: Progress) -> list[Way]:
        """Ways of a frame of h [s] in which some bodies begin with a piece (`Stepper.pieces`), and with them what hangs together
        with them; every world in which there are such by itself."""
        there, chosen = np.unique(self.worlds[who]), who & (self.stepper.pieces > 0.0)
        start = self.begin = self._moment()

        def in_pieces(mine: np.ndarray) -> list[Way]:
            parts = self._standing_parts()
            plans = self._remembered(mine, parts)
            self._return_to(start)
            if len(plans) > 1:
                return self._apart(start, parts, plans, h, retries, progress)
            return self._go(mine, h, retries, progress, plans[0])

        if len(there) == 1:
            return in_pieces(who)
        some = np.unique(self.worlds[chosen])
        others = np.setdiff1d(there, some), lambda mine: self._go(mine, h, retries, progress)
        return self._group_by_group(start, who, [others, *(([world], in_pieces) for world in some)], h)

    def _standing_parts(self) -> np.ndarray:
        """(n,) number of the part of every body where a frame begins: what hangs together by joints, or touches."""
        backend = self.stepper.backend
        backend.touch.list_standing()
        pairs, gaps = backend.touch.pair_gaps()
        edges = np.concatenate([backend.islands.ties, pairs[gaps < 1.0]]).astype(int)
        return connected_labels(len(self.linked), edges[self.linked[edges].all(axis=1)])

    def _remembered(self, who: np.ndarray, parts: np.ndarray) -> list[Plan]:
        """How bodies of one world begin a frame: those parts together whose shortest remembered pieces are equally long."""
        lengths = self.stepper.pieces
        shortest = np.full(parts.max(initial=0) + 1, np.inf)
        np.minimum.at(shortest, parts, np.where(who & (lengths > 0.0), lengths, np.inf))
        first = np.where(who, shortest[parts], np.nan)
        return [Plan(first == length, first=float(length)) for length in np.unique(first[who])]

    def _worlds_of(self, failure: StepFailure, who: np.ndarray, there: np.ndarray) -> np.ndarray:
        """(k,) worlds of those that are there, of `who` (n,), that a failure concerns; none where that is not known."""
        concerned = failure.islands
        if isinstance(failure, NotFree):
            concerned = np.zeros(len(who), dtype=bool)
            concerned[failure.found.pairs.astype(int)] = True
        return there[:0] if concerned is None else there[np.isin(there, self.worlds[concerned])]

    # whom a failure concerns ----------------------------------------------------------------------------------------

    def _parts(self, touching: np.ndarray, failure: StepFailure) -> np.ndarray:
        """(n,) number of the part of every body: what hangs together by joints, or may touch, pairs (k, 2)."""
        pairs = [self.stepper.backend.islands.ties, touching]
        if isinstance(failure, NotFree):
            pairs.append(failure.found.pairs)
        edges = np.concatenate(pairs).astype(int)
        return connected_labels(len(self.linked), edges[self.linked[edges].all(axis=1)])

    def _plans(self, who: np.ndarray, parts: np.ndarray, h: float, failure: StepFailure) -> list[Plan]:
        """How all that go together are to go on: those whom the failure does not concern whole, the parts that it concerns
        in pieces, by themselves or with those whose first piece is as long."""
        if not isinstance(failure, NotFree):
            failed = who if failure.islands is None else failure.islands & who
            chosen = who & np.isin(parts, parts[failed]) if failed.any() else who
            plans = [Plan(chosen, failure)]
        else:
            shares, dt = np.ones(len(who)), self.stepper.settings.dt
            ends = failure.found.pairs.astype(int)
            inside = (self.linked & who)[ends]
            if not inside.any():
                return [Plan(who, failure, float(failure.found.share.min()))]
            np.minimum.at(shares, parts[ends[inside]], np.repeat(failure.found.share[:, None], 2, axis=1)[inside])
            share = np.where(who, shares[parts], 1.0)
            chosen, plans = share < 1.0, []
            length = np.array([_first(h, dt, one) for one in share])
            for ticks in np.unique(length[chosen]):
                mask = chosen & (length == ticks)
                plans.append(Plan(mask, failure, float(share[mask].min())))
        rest = who & ~chosen
        return [Plan(rest), *plans] if rest.any() else plans

    # apart ------------------------------------------------------------------------------------------------------------

    def _apart(
        self, start: Moment, parts: np.ndarray, plans: list[Plan], h: float, retries: int, progress: Progress
    ) -> list[Way]:
        """Take the bodies of every plan through a (sub)step of h [s] by themselves, and together those that meet."""
        self.separate += 1
        runs = [self._run(start, plan, h, retries, progress) for plan in plans]
        while len(runs) > 1 and len(met := self._meetings(start, runs)):
            bent = (met[:, 0] == met[:, 1]).any()  # nothing can be proven of it, but in one run
            together = np.unique(parts if bent else parts[met])
            runs, parts = self._united(start, runs, parts, together, h, retries, progress), parts.copy()
            parts[np.isin(parts, together)] = together[0]
        self.separate -= 1
        self._put_together(start, runs, h)
        return [way for run in runs for way in run.ways]

    def _put_together(self, start: Moment, runs: list[Run], h: float) -> None:
        """Go on from what the bodies of several runs came to by themselves in h [s]."""
        stepper = self.stepper
        self._return_to(start)
        parts = [(run.plan.who, run.end.state) for run in runs]
        last = merged(stepper.model, stepper.joints, start.state, parts, h)
        memories = [(who, state.extra) for who, state in parts]
        last.extra.update(stepper.backend.linear.memory_of_parts(memories))
        stepper.leave_out(stepper.off)
        stepper.restore(last)
        stepper.left_rubbing = tuple(one for run in runs for one in run.rubbing)
        for run in runs:
            stepper.work = stepper.work.plus(run.end.work, start.work)
        stepper.figures = self._figures(runs)

    def _united(
        self, start: Moment, runs: list[Run], parts: np.ndarray, together: np.ndarray, h: float, retries: int,
        progress: Progress,
    ) -> list[Run]:  # fmt: skip
        """The runs once more of those that some parts leave, and the one of these parts."""
        chosen, out, share, failure, first = np.isin(parts, together), [], 1.0, None, np.inf
        everybody = np.any([run.plan.who for run in runs], axis=0)
        for run in runs:
            rest = run.plan.who & ~chosen
            if not (run.plan.who & chosen).any():
                out.append(run)
                continue
            first = min(first, run.plan.first)
            if run.plan.failure is not None:
                share, failure = min(share, run.plan.share), failure or run.plan.failure
            if rest.any():
                out.append(self._run(start, replace(run.plan, who=rest), h, retries, progress))
        return [*out, self._run(start, Plan(everybody & chosen, failure, share, first), h, retries, progress)]

    def _run(self, start: Moment, plan: Plan, h: float, retries: int, progress: Progress) -> Run:
        """Take some bodies through a (sub)step by themselves."""
        self._return_to(start)
        if plan.failure is None or isinstance(plan.failure, NotFree):
            ways = self._go(plan.who, h, retries, progress, plan)
        else:
            ways = self._halves(plan.who, h, retries, progress)
        rubbing = self.stepper.rubbing()
        if len(ways) > 1:
            self._make_even(start.state, h)
        return Run(plan, ways, self._moment(), rubbing)

    def _meetings(self, start: Moment, runs: list[Run]) -> np.ndarray:
        """(k, 2) pairs of bodies of different runs that come in one another's way, in the first piece where any do."""
        backend, ways = self.stepper.backend, [way for run in runs for way in run.ways]
        party = np.zeros(len(self.linked), dtype=int)
        for number, run in enumerate(runs, 1):
            party[run.plan.who] = number
        least = 0.5**HALVINGS * self.stepper.settings.dt
        times = [start.state.time]
        for time in sorted(way.end for way in ways):
            if time > times[-1] + 0.5 * least:
                times.append(time)
        for begin, end in pairwise(times):
            middle, before = 0.5 * (begin + end), start.state.q.copy()
            after, turn = before.copy(), np.zeros((len(party), 3))
            for way in ways:
                if way.begin <= middle <= way.end:
                    before[way.who], after[way.who], turn[way.who] = way.at(begin, end)
            met = backend.ways.meetings(before, turn, after, party)
            if len(met):
                return met.pairs.astype(int)
        return np.zeros((0, 2), dtype=int)

    # the state --------------------------------------------------------------------------------------------------------

    def _moment(self) -> Moment:
        stepper = self.stepper
        return Moment(stepper.state(), stepper.work, stepper.figures)

    def _return_to(self, moment: Moment) -> None:
        stepper = self.stepper
        stepper.restore(moment.state)
        stepper.work, stepper.figures = moment.work, moment.figures

    def _make_even(self, start: State, h: float) -> None:
        """After pieces that make h [s], go on as after one step of that length."""
        stepper, last = self.stepper, self.stepper.previous_h
        if last != h:
            forces = stepper.backend.states.read_forces()
            acted, mean = forces[:, :6], forces[:, 6:]
            stepper.backend.states.set_forces(np.concatenate([acted, acted + h / last * (mean - acted)], axis=1))
        stepper.rebounds.set_previous(start.q, start.qd, h)
        memory = stepper.memory.copy()
        history = start.extra["joint_history"].reshape(HISTORY, -1)
        memory.history[1], memory.history[3] = history[0], history[2]
        stepper.memory = memory
        stepper.time, stepper.previous_h = start.time + h, h

    def _figures(self, runs: list[Run]) -> Figures:
        """Of the merged state; works are in the account already."""
        stepper = self.stepper
        backend, model = stepper.backend, stepper.model
        backend.touch.list_standing(backend.at.ch2)
        found = replace(backend.readings.figures(), external_work=0.0, drive_work=0.0, friction_work=0.0)
        left = max(run.end.figures.residual_force for run in runs if run.end.figures is not None)
        if not len(model.joints):
            return replace(found, residual_force=left)
        reader = JointReader(model)
        near = reader.coordinates(stepper.q)
        read = Readings(reader, stepper.joints, stepper.q, stepper.qd, near, stepper.memory, stepper.applied)
        return replace(
            found, residual_force=left, joint=float(read.energy.sum()), joint_residual=tuple(read.worst_residual.tolist())
        )


def _first(h: float, dt: float, share: float) -> int:
    """Ticks of the first piece of a (sub)step of h [s] of which a share is free."""
    pieces = Pieces(h, dt)
    pieces.shorten(share)
    return pieces.next

