"""Retries: a (sub)step that fails is taken again, shorter, by those alone whom it concerns.

A (sub)step fails where an island does not converge, or where the way to its end is not free (`abd.step.ways`). What hangs
together with such a body, through joints or because it may touch, is a *part*; a failure concerns the parts of the bodies
that failed. They are taken back to the beginning and through it in pieces, every part by itself, while nobody else is
there; all others go through it whole, without them.

    everybody       |------------------------------x---------|   two bodies would pass one another beyond x
    the others      |----------------------------------------|   as if those two were not there
    their part      |------------------------------|--|------|   as if there were nobody else

Worlds never meet: where a (sub)step of several fails, every world goes through it as if it were alone, side by side with the
others (`abd.step.rounds`), or one after the other where joints, prescribed bodies, loads that depend on time, or friction that
is to balance know but one length of the step. One that cannot go on is left where it was.

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

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from abd.backends.device.memory import memory_watched
from abd.backends.progress import Progress
from abd.energies import spin
from abd.errors import OutOfMemory, StepFailure
from abd.step.account import Work
from abd.step.journey import Failed, Journey, Leap, Meetings, Moment, Plan, Run, Way, movers
from abd.step.places import Aside, Here
from abd.step.rounds import Rounds, Traveller, concerns
from abd.step.ways import NotFree

if TYPE_CHECKING:
    from abd.step.step import Stepper


class Retries:
    """Takes a `Stepper` through frames.

    Attributes:
        stopped: worlds that could not go on in the last frame, and why.
    """

    def __init__(self, stepper: Stepper):
        self.stepper, self.linked = stepper, movers(stepper)
        self.worlds = stepper.model.bodies.world
        self.stopped: list[tuple[int, StepFailure]] = []

    def advance(self, h: float, retries: int, progress: Progress) -> int:
        """Substeps that make a frame of h [s], the largest number that a body took; where they fail, the state is as
        before.

        Raises:
            StepFailure: the shortest substep failed too, of all worlds; where some could go on, `stopped` are the others.
        """
        self.begin: Moment | None = None
        self.first: Journey | None = None
        self.stopped = []
        try:
            ways = self._go(self.linked & ~self.stepper.off, h, retries, progress)
            if self.stopped and not ways:
                raise self.stopped[0][1]
        except StepFailure:
            begin = self.begin or (self.first and self.first.begin)
            if begin is not None:
                Here(self.stepper).return_to(begin)
            raise
        finally:
            self.stepper.leave_out(self.stepper.off)
        taken = np.sum([way.who for way in ways], axis=0)
        return max(int(taken.max(initial=0)), 1)

    def _go(self, who: np.ndarray, h: float, retries: int, progress: Progress) -> list[Way]:
        """Ways of some bodies (n,) through a (sub)step of h [s]."""
        there = np.unique(self.worlds[who])
        if len(there) == 1:
            return self._alone(Here(self.stepper), who, h, retries, None, progress)
        answer = self._leap(Leap(who, h, False), progress)
        if not isinstance(answer, Failed):
            return [answer]
        return self._by_worlds(who, there, answer, h, retries, progress)

    # one world --------------------------------------------------------------------------------------------------------

    def _alone(
        self, here: Here, who: np.ndarray, h: float, retries: int, failed: Failed | None, progress: Progress
    ) -> list[Way]:
        """Ways of bodies (n,) of one world through a (sub)step of h [s], in the state of the stepper; they may have failed to go
        through it as a whole."""
        journey = Journey(self.stepper, here, self.linked)
        self.first = self.first or journey
        asking, answer = journey.through(who, h, retries, failed), None
        while True:
            try:
                asks = asking.send(answer)
            except StopIteration as end:
                return end.value
            if isinstance(asks, Meetings):
                ways = self.stepper.backend.ways
                answer = ways.meetings(asks.begin, asks.turn, asks.end, asks.party).pairs.astype(int)
                continue
            before = self.stepper.work
            answer = self._leap(asks, progress)
            here.spent = here.spent.plus(self.stepper.work, before)

    def _leap(self, asks: Leap, progress: Progress) -> Way | Failed:
        """One (sub)step; where it fails, the state is as before."""
        stepper, who, h = self.stepper, asks.who, asks.h
        stepper.leave_out((self.linked & ~who) | stepper.off)
        kept, begin = stepper.before_trying(), stepper.time
        states = (stepper.q, stepper.qd) if asks.seen else None
        try:
            with memory_watched(stepper.backend.device.name):
                stepper.substeps.take(h, progress)
        except OutOfMemory as error:
            raise StepFailure("memory", str(error)) from error
        except StepFailure as failure:
            touching = stepper.backend.touch.touching_pairs()
            stepper.take_back(*kept)
            progress.refused_ways += isinstance(failure, NotFree)
            if failure.reason == "memory":
                raise
            return Failed(failure, touching)
        if states is None:
            return Way(begin, begin + h, who)
        q, qd = states
        return Way(begin, begin + h, who, q, h * spin(q, qd), stepper.q)

    # several ----------------------------------------------------------------------------------------------------------

    def _by_worlds(
        self, who: np.ndarray, there: np.ndarray, failed: Failed, h: float, retries: int, progress: Progress
    ) -> list[Way]:
        """Take the bodies of several worlds (w,) through a (sub)step of h [s] that has failed: every world that the failure
        concerns by itself, as if it were alone, and the others too, or together. Where it is not known which ones those are,
        each half of them. A world that cannot go on is left where it began.
        """
        stepper, here = self.stepper, Here(self.stepper)
        start = here.moment()
        if self.begin is None:
            self.begin = start
        concerned, runs = concerns(failed.failure), []
        known = there[:0] if concerned is None else there[np.isin(there, self.worlds[concerned])]
        if not len(known):
            left = [(half, None) for half in np.array_split(there, 2)]
        else:
            each = [([world], self._part(failed, world) if world in known else None) for world in there]
            if self._knows_lengths():
                runs, left = self._side_by_side(start, who, each, h, retries, progress)
            else:
                left = [(there[~np.isin(there, known)], None), *(one for one in each if one[1] is not None)]
        for worlds, why in left:
            mine = who & np.isin(self.worlds, worlds)
            if mine.any():
                runs.append(self._single(Here(stepper), start, worlds, mine, h, retries, why, progress))
        here.put_together(start, runs, h)
        return [way for run in runs for way in run.ways]

    def _part(self, failed: Failed, world: int) -> Failed:
        return Failed(failed.failure.within(self.worlds == world), failed.touching)

    def _single(
        self, here: Here, start: Moment, worlds, who: np.ndarray, h: float, retries: int, why: Failed | None,
        progress: Progress,
    ) -> Run:  # fmt: skip
        """The run of bodies (n,) of some worlds, beside which nobody else is there."""
        here.return_to(start)
        try:
            if len(worlds) > 1:
                ways = self._go(who, h, retries, progress)
            else:
                ways = self._alone(here, who, h, retries, why, progress)
        except StepFailure as hopeless:
            if len(worlds) > 1 or hopeless.reason == "memory":
                raise
            ways = []
            here.return_to(start)
            self.stopped.append((int(worlds[0]), hopeless))
        return Run(Plan(who, None if why is None else why.failure), ways, here.moment(), self.stepper.rubbing())

    def _knows_lengths(self) -> bool:
        """Whether all that acts in a step may have lengths by worlds."""
        stepper = self.stepper
        balances = stepper.settings.friction_iterations < 0 and stepper.backend.friction.enabled
        return not len(stepper.model.joints) and not stepper.prescribed.any and not balances and stepper.steady()

    def _side_by_side(
        self, start: Moment, who: np.ndarray, each: list[tuple[list[int], Failed | None]], h: float, retries: int,
        progress: Progress,
    ) -> tuple[list[Run], list[tuple[list[int], Failed | None]]]:  # fmt: skip
        """Runs of worlds that go in rounds, and worlds of which nobody knows why they failed there, and have to go by
        themselves."""
        stepper, travellers = self.stepper, []
        for (number,), why in each:
            world = self.worlds == number
            place = Aside(stepper, start, world)
            journey = Journey(stepper, place, self.linked).through(who & world, h, retries, why)
            travellers.append(Traveller(number, world, place, journey))
        rounds = Rounds(stepper, travellers, start, self.linked)
        if not rounds.run(progress):
            return [], each
        runs, lost = [], Work()
        for one, (worlds, why) in zip(travellers, each, strict=True):
            if one.ways is not None:
                end = Moment(one.place.now.state, start.work, one.place.now.figures)
                runs.append(Run(Plan(who & one.world), one.ways, end, one.place.rubbing()))
                continue
            # what it has done in the rounds is done once more, by itself, and counts but once
            here = Here(stepper)
            runs.append(self._single(here, start, worlds, who & one.world, h, retries, why, progress))
            lost = lost.plus(here.lost or here.spent, Work())
        done = runs[0].end.work.plus(rounds.work, start.work).plus(Work(), lost)
        return [replace(runs[0], end=replace(runs[0].end, work=done)), *runs[1:]], []
