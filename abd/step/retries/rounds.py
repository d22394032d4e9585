"""Worlds whose (sub)step has failed go through it side by side: all that need a piece take it in one minimisation, each of the
length that it would take alone. Worlds are islands that never meet, so none notices the others.

    world 0     |---------------x---------|    |---------------|    |---|    |------|
    world 1     |-------------------x-----|    |-------------------|    |--|    |---|
    world 2     |-------------------------|    |-------------------------|
                 together, in one piece         round 1                  2  ...

Every world is on a `Journey` of its own, and beside the state of the stepper (`abd.step.retries.places.Aside`). A round takes
the next leap of every one; where it fails for some, they go on as they would alone, and the round is taken again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from abd.backends.progress import Progress
from abd.energies import spin
from abd.errors import StepFailure
from abd.step.retries.journey import Asks
from abd.step.retries.places import Aside, GivenUp, together
from abd.step.retries.plans import Failed, Leap, Meetings, Moment, Way, passages
from abd.step.ways import NotFree

if TYPE_CHECKING:
    from abd.state import State
    from abd.step.step import Frozen, Stepper


@dataclass
class Traveller:
    """A world on its journey: its bodies `world` (n,) bool, what it `asks` for, None at its end, and its `ways`, None where it
    has to go by itself."""

    number: int
    world: np.ndarray
    place: Aside
    journey: Asks
    asks: Leap | Meetings | None = None
    ways: list[Way] | None = None

    def go_on(self, answer: Way | Failed | np.ndarray | None) -> None:
        """Take an answer."""
        try:
            self.asks = self.journey.send(answer)
        except StopIteration as end:
            self.asks, self.ways = None, end.value
        except (GivenUp, StepFailure):
            self.asks = None


class Rounds:
    """Takes travellers to the end of their journeys, all from the moment `start`.

    Args:
        linked: (n,) bool, bodies that go through steps.
    """

    def __init__(self, stepper: Stepper, travellers: list[Traveller], start: Moment, linked: np.ndarray):
        self.stepper, self.travellers, self.start, self.linked = stepper, travellers, start, linked
        self.backend, self.worlds, self.work = stepper.backend, stepper.model.bodies.world, start.work

    def run(self, progress: Progress) -> bool:
        """Until nobody asks for anything; False where a round failed, and nobody knows for whom. The state is lost.

        Raises:
            StepFailure: there is no memory.
        """
        for one in self.travellers:
            one.go_on(None)
        while asking := [one for one in self.travellers if one.asks is not None]:
            if meeting := [one for one in asking if isinstance(one.asks, Meetings)]:
                self._see(meeting)
            elif not self._leap(asking, progress):
                return False
        return True

    def _see(self, meeting: list[Traveller]) -> None:
        """Tell who met. Who is near at the end is not looked for where others met on the way: those without are asked again."""
        while meeting:
            party = np.zeros(len(self.worlds), dtype=int)
            for one in meeting:
                party[one.world] = one.asks.party[one.world]
            ways = passages([one.asks for one in meeting], self.start.state.q)
            found = self.backend.ways.meetings(*ways, party).pairs.astype(int).reshape(-1, 2)
            left = []
            for one in meeting:
                met = found[one.world[found].any(axis=1)]
                if len(met) or not len(found):
                    one.go_on(met)
                else:
                    left.append(one)
            meeting = left

    def _leap(self, leaping: list[Traveller], progress: Progress) -> bool:
        """A round: the next (sub)steps of all. Where it fails, those whom it concerns are told, and the others not yet; False if
        nobody knows who they are."""
        stepper, worlds = self.stepper, self.worlds
        h, previous = (np.full(len(worlds), stepper.settings.dt) for _ in range(2))
        begins = np.full(len(worlds), self.start.state.time)
        who = np.zeros(len(worlds), dtype=bool)
        for one in leaping:
            mine = worlds == one.number
            h[mine], previous[mine], begins[mine] = one.asks.h, one.place.now.state.previous_h, one.place.now.state.time
            who |= one.asks.who
        stepper.restore(replace(self._gathered(leaping), time=begins, previous_h=previous))
        stepper.work = self.work
        stepper.leave_out((self.linked & ~who) | stepper.off)
        q, qd = stepper.q, stepper.qd
        if (failed := stepper.substeps.attempt(h, progress)) is not None:
            return self._tell(leaping, failed, progress)
        self.work = stepper.work
        shared, turned, figures = stepper.state(), h[:, None] * spin(q, qd), stepper.figures
        (contacts, eps), rebounded = stepper.rubbing()[0], stepper.rebounds.rebounded
        for one in leaping:
            begin = one.place.now.state.time
            asks, end = one.asks, begin + one.asks.h
            now = Moment(replace(shared, time=end, previous_h=asks.h), self.start.work, figures)
            one.place.stepped(now, rebounded & one.world, (_of(contacts, one.world, eps),))
            one.go_on(Way(begin, end, asks.who, q, turned, shared.q))
        return True

    def _tell(self, leaping: list[Traveller], failed: Failed, progress: Progress) -> bool:
        """Tell those whom a failure concerns, if that is known."""
        failure = failed.failure
        concerned = concerns(failure)
        told = [] if concerned is None else [one for one in leaping if (concerned & one.world).any()]
        for one in told:
            progress.refused_ways += isinstance(failure, NotFree)
            one.go_on(Failed(failure.within(one.world), failed.touching))
        return bool(told)

    def _gathered(self, leaping: list[Traveller]) -> State:
        """The state from which the next round begins, each world where it is; but for times and lengths."""
        groups: dict[tuple[int, ...], tuple[State, np.ndarray]] = {}
        for one in leaping:
            state = one.place.now.state
            key = id(state.q), id(state.previous_q), id(state.extra)
            _, mine = groups.setdefault(key, (state, np.zeros(len(self.worlds), dtype=bool)))
            mine |= self.linked & one.world
        parts = [(mine, state) for state, mine in groups.values()]
        if len(parts) == 1:
            return parts[0][1]
        return together(self.stepper, self.start.state, parts, 0.0)


def concerns(failure: StepFailure) -> np.ndarray | None:
    """(n,) bool, bodies that a failure names; None where that is not known."""
    if not isinstance(failure, NotFree):
        return failure.islands
    out = np.zeros(len(failure.names), dtype=bool)
    out[failure.found.pairs.astype(int)] = True
    return out


def _of(contacts: tuple[np.ndarray, ...], world: np.ndarray, eps: np.ndarray) -> Frozen:
    """Of lagged contacts, as `abd.backends.protocol.Readings.frozen_friction` has them, those of the bodies of one world."""
    *rows, rest = contacts
    mine = world[rows[0].astype(int)].any(axis=1)
    return (*(row[mine] for row in rows), rest), eps
