"""Retries: a (sub)step that fails is taken again, shorter, by those alone whom it concerns.

A (sub)step fails where an island does not converge, or where the way to its end is not free (`abd.step.ways`). What hangs
together with such a body, through joints or because it may touch, is a *part*; a failure concerns the parts of the bodies
that failed. They are taken back to the beginning and through it in pieces, every part by itself, while nobody else is
there; all others go through it whole, without them.

    everybody       |------------------------------x---------|   two bodies would pass one another beyond x
    the others      |----------------------------------------|   as if those two were not there
    their part      |------------------------------|--|------|   as if there were nobody else

Worlds never meet: where a (sub)step of several fails, every world goes through it as if it were alone, side by side with the
others (`abd.step.retries.rounds`), or one after the other where prescribed bodies, loads that depend on time, functions of
users in joints, or friction that is to balance know but one length of the step; and so where some begin with a piece. One that
cannot go on is left where it was.

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

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from abd.backends.progress import Progress
from abd.by_bodies import OfBodies, among, of_body
from abd.energies import spin
from abd.errors import StepFailure
from abd.joints.closure.link_graph import connected_labels
from abd.step.account import Work
from abd.step.retries.journey import Journey, movers
from abd.step.retries.places import Aside, Here
from abd.step.retries.plans import Failed, Leap, Meetings, Moment, Plan, Run, Standing, Way, passages
from abd.step.retries.rounds import Rounds, Traveller, concerns
from abd.step.retries.world_groups import Groups
from abd.step.ways import NotFree, next_lengths

if TYPE_CHECKING:
    from abd.step.step import Stepper

Group = tuple[Sequence[int], Failed | Standing | None]
"""Worlds that are taken together, and of one by itself what is known (`Journey.through`)."""


class Retries:
    """Takes a `Stepper` through frames.

    Attributes:
        stopped: worlds that could not go on in the last frame, and why; refused: (n,) bool, bodies of which a way was refused.
    """

    def __init__(self, stepper: Stepper):
        self.stepper, self.linked = stepper, movers(stepper)
        self.worlds = stepper.model.bodies.world
        self.stopped: list[tuple[int, StepFailure]] = []
        self.refused = stepper.linked.nobody
        self.groups = Groups(self)

    def advance(self, h: OfBodies, retries: int, progress: Progress) -> int:
        """Substeps that make a frame of h [s], the largest number that a body took; where they fail, the state is as
        before.

        Raises:
            StepFailure: the shortest substep failed too, of all worlds; where some could go on, `stopped` are the others.
        """
        self.begin: Moment | None = None
        self.first: Journey | None = None
        self.stopped, self.refused = [], self.stepper.linked.nobody
        who = self.linked & ~self.stepper.off
        begun = who & (self.stepper.pieces > 0.0)
        try:
            if groups := self.groups.of(who, h):
                ways = self.groups.take(groups, who, begun, h, retries, progress)
            else:
                ways = self.frame(who, begun, h, retries, progress)
            if self.stopped and not ways:
                raise self.stopped[0][1]
        except StepFailure:
            begin = self.begin or (self.first and self.first.begin)
            if begin is not None:
                Here(self.stepper).return_to(begin)
            raise
        finally:
            self.groups.elsewhere = self.stepper.linked.nobody
            self.stepper.leave_out(self.stepper.off)
        bodies = np.array([way.who for way in ways])
        if len(ways) > 1 or begun.any():
            lengths = np.array([way.end - way.begin for way in ways])
            self.stepper.pieces = next_lengths(h, lengths, bodies, self.refused, begun)
        taken = bodies.sum(axis=0)
        return max(int(taken.max(initial=0)), 1)

    def frame(self, who: np.ndarray, begun: np.ndarray, h: OfBodies, retries: int, progress: Progress) -> list[Way]:
        """Ways of bodies (n,) through a frame of h [s], some of which, `begun` (n,), begin with a piece."""
        if begun.any():
            return self._begin_in_pieces(who, begun, h, retries, progress)
        return self._go(who, h, retries, progress)

    def _go(self, who: np.ndarray, h: OfBodies, retries: int, progress: Progress) -> list[Way]:
        """Ways of some bodies (n,) through a (sub)step of h [s]."""
        there = np.unique(self.worlds[who])
        if len(there) == 1:
            return self._only(who, h, retries, None, progress)
        answer = self._leap(Leap(who, h, False), progress)
        if not isinstance(answer, Failed):
            lengths = np.broadcast_to(h, len(who))
            return [Way(0.0, float(one), who & (lengths == one)) for one in np.unique(lengths[who])]
        return self._by_worlds(who, there, answer, h, retries, progress)

    # one world --------------------------------------------------------------------------------------------------------

    def _only(self, who: np.ndarray, h: OfBodies, retries: int, known: Standing | None, progress: Progress) -> list[Way]:
        """Ways of bodies (n,) of one world, where no other goes through a step."""
        here = Here(self.stepper)
        if isinstance(self.stepper.time, np.ndarray):
            self.begin = self.begin or here.moment()
            return self._together(self.begin, who, [], [(np.unique(self.worlds[who]), known)], h, retries, progress)
        return self._alone(here, who, h, retries, known, progress)

    def _alone(
        self, here: Here, who: np.ndarray, h: float, retries: int, known: Failed | Standing | None, progress: Progress
    ) -> list[Way]:
        """Ways of bodies (n,) of one world through a (sub)step of h [s], in the state of the stepper; what is `known` of it as
        `Journey.through` has it."""
        journey = Journey(self.stepper, here, self.linked, self._dt(who))
        self.first = self.first or journey
        asking, answer = journey.through(who, h, retries, known), None
        while True:
            try:
                asks = asking.send(answer)
            except StopIteration as end:
                self.refused = self.refused | journey.refused
                return end.value
            if isinstance(asks, Meetings):
                stepper = self.stepper
                answer = stepper.backend.ways.meetings(*passages([asks], journey.begin.state.q), asks.party).pairs.astype(int)
                continue
            before = self.stepper.work
            answer = self._leap(asks, progress)
            here.spent = here.spent.plus(self.stepper.work, before)

    def _leap(self, asks: Leap, progress: Progress) -> Way | Failed:
        """One (sub)step; where it fails, the state is as before."""
        stepper, who, h = self.stepper, asks.who, asks.h
        stepper.leave_out((self.linked & ~who) | self.groups.elsewhere | stepper.off)
        begin, states = stepper.time, (stepper.q, stepper.qd) if asks.seen else None
        if (failed := stepper.substeps.attempt(h, progress)) is not None:
            progress.refused_ways += isinstance(failed.failure, NotFree)
            return failed
        if states is None:
            return Way(begin, begin + h, who)
        q, qd = states
        return Way(begin, begin + h, who, q, h * spin(q, qd), stepper.q)

    # several ----------------------------------------------------------------------------------------------------------

    def _by_worlds(
        self, who: np.ndarray, there: np.ndarray, failed: Failed, h: OfBodies, retries: int, progress: Progress
    ) -> list[Way]:
        """Take the bodies of several worlds (w,) through a (sub)step of h [s] that has failed: every world that the failure
        concerns by itself, as if it were alone, and the others too, or together. Where it is not known which ones those are,
        each half of them. A world that cannot go on is left where it began.
        """
        start = Here(self.stepper).moment()
        if self.begin is None:
            self.begin = start
        concerned = concerns(failed.failure)
        known = there[:0] if concerned is None else there[np.isin(there, self.worlds[concerned])]
        if not len(known):
            halves = [(half, None) for half in np.array_split(there, 2)]
            return self._together(start, who, [], halves, h, retries, progress)
        why = {world: Failed(failed.failure.within(self.worlds == world), failed.touching) for world in known}
        return self._world_by_world(start, who, there, why, h, retries, progress)

    def _begin_in_pieces(self, who: np.ndarray, begun: np.ndarray, h: OfBodies, retries: int, progress: Progress) -> list[Way]:
        """Ways of bodies (n,) through a frame of h [s], some of which, `begun` (n,), begin with a piece (`Stepper.pieces`), and
        with them what hangs together with them."""
        here = Here(self.stepper)
        start = here.moment()
        self.begin = self.begin or start
        standing = Standing(self._standing_parts(), self.stepper.pieces)
        here.return_to(start)
        there = np.unique(self.worlds[who])
        if len(there) == 1:
            return self._only(who, h, retries, standing, progress)
        known = dict.fromkeys(np.unique(self.worlds[begun]), standing)
        return self._world_by_world(start, who, there, known, h, retries, progress)

    def _standing_parts(self) -> np.ndarray:
        """(n,) number of the part of every body where a frame begins: what hangs together by joints, or touches."""
        backend = self.stepper.backend
        backend.touch.list_standing()
        pairs, gaps = backend.touch.pair_gaps()
        edges = np.concatenate([backend.islands.ties, pairs[gaps < 1.0]]).astype(int)
        return connected_labels(len(self.linked), edges[self.linked[edges].all(axis=1)])

    def _world_by_world(
        self, start: Moment, who: np.ndarray, there: np.ndarray, known: dict[int, Failed | Standing], h: OfBodies, retries: int,
        progress: Progress,
    ) -> list[Way]:  # fmt: skip
        """Take the bodies of worlds (w,) through a (sub)step of h [s] from a moment, every world of which something is known by
        itself, as if it were alone, and the others too, or together."""
        each, runs = [([world], known.get(world)) for world in there], []
        if self.knows_lengths():
            runs, left = self._side_by_side(start, who, each, h, retries, progress)
        else:
            rest = np.array([world for world in there if world not in known], dtype=int)
            left = [(rest, None), *(one for one in each if one[1] is not None)]
        return self._together(start, who, runs, left, h, retries, progress)

    def _together(
        self, start: Moment, who: np.ndarray, runs: list[Run], left: list[Group], h: OfBodies, retries: int, progress: Progress
    ) -> list[Way]:
        """Ways of runs, and of groups of worlds that are taken one after the other, put together."""
        for worlds, known in left:
            mine = who & np.isin(self.worlds, worlds)
            if mine.any():
                runs.append(self._single(Here(self.stepper), start, worlds, mine, h, retries, known, progress))
        Here(self.stepper).put_together(start, runs, h)
        return [way for run in runs for way in run.ways]

    def _single(
        self, here: Here, start: Moment, worlds, who: np.ndarray, h: OfBodies, retries: int, known: Failed | Standing | None,
        progress: Progress,
    ) -> Run:  # fmt: skip
        """The run of bodies (n,) of some worlds, beside which nobody else is there."""
        start, h = start.of(who), among(h, who)
        here.return_to(start)
        try:
            if len(worlds) > 1:
                ways = self._go(who, h, retries, progress)
            else:
                ways = self._alone(here, who, h, retries, known, progress)
        except StepFailure as hopeless:
            if len(worlds) > 1 or hopeless.reason == "memory":
                raise
            ways = []
            here.return_to(start)
            self.stopped.append((int(worlds[0]), hopeless))
        return Run(Plan(who), ways, here.moment(), self.stepper.rubbing())

    def _dt(self, world: np.ndarray) -> float:
        """Length of a frame of the bodies (n,) bool of one world [s]."""
        return of_body(self.stepper.worlds.lengths, int(world.argmax()))

    def knows_lengths(self) -> bool:
        """Whether all that acts in a step may have lengths by worlds."""
        stepper = self.stepper
        balances = stepper.settings.friction_iterations < 0 and stepper.backend.friction.enabled
        return not (stepper.prescribed.any or balances or stepper.joints.asks_users) and stepper.steady()

    def _side_by_side(
        self, start: Moment, who: np.ndarray, each: list[Group], h: OfBodies, retries: int, progress: Progress
    ) -> tuple[list[Run], list[Group]]:
        """Runs of worlds that go in rounds, and worlds of which nobody knows why they failed there, and have to go by
        themselves."""
        stepper, travellers, journeys = self.stepper, [], []
        for (number,), known in each:
            world = self.worlds == number
            place, mine = Aside(stepper, start.of(world), world), who & world
            journeys.append(Journey(stepper, place, self.linked, self._dt(world)))
            travellers.append(Traveller(number, world, place, journeys[-1].through(mine, among(h, world), retries, known)))
        rounds = Rounds(stepper, travellers, start, self.linked)
        if not rounds.run(progress):
            return [], each
        runs, lost = [], Work()
        for one, journey, (worlds, known) in zip(travellers, journeys, each, strict=True):
            if one.ways is not None:
                self.refused = self.refused | journey.refused
                end = Moment(one.place.now.state, start.work, one.place.now.figures)
                runs.append(Run(Plan(who & one.world), one.ways, end, one.place.rubbing()))
                continue
            # what it has done in the rounds is done once more, by itself, and counts but once
            here = Here(stepper)
            runs.append(self._single(here, start, worlds, who & one.world, h, retries, known, progress))
            lost = lost.plus(here.lost or here.spent, Work())
        done = runs[0].end.work.plus(rounds.work, start.work).plus(Work(), lost)
        return [replace(runs[0], end=replace(runs[0].end, work=done)), *runs[1:]], []
