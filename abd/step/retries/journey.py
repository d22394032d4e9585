"""How bodies go through a (sub)step: whole, in pieces where that fails, and in parts that do not notice one another.

A `Journey` decides, and asks for what it needs: that bodies take a step (`Leap`), or whether they met (`Meetings`). It is a
generator of those, which is sent the answers; who answers decides what goes together (`abd.step.retries.retries`,
`abd.step.retries.rounds`).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from abd.errors import StepFailure
from abd.joints.closure.link_graph import connected_labels
from abd.model import Kind
from abd.state import State
from abd.step.impacts.fast_hits import FastHit
from abd.step.retries.plans import Failed, Leap, Meetings, Moment, Plan, Run, Standing, Way
from abd.step.ways import HALVINGS, NotFree, Pieces

if TYPE_CHECKING:
    from abd.step.step import Frozen, Stepper

FINAL = ("blocked", "limits", "memory", "passed")
"""Failures that no shorter (sub)step mends."""
SPARING = 2
"""Times that only the parts that meet first are taken again, together: then all that meet at any time are, and after as many
times more all parts."""

Asks = Generator[Leap | Meetings, Any, list[Way]]


class Place(Protocol):
    """Where the bodies of a journey are, in time and in space."""

    def moment(self) -> Moment:
        """Now."""

    def return_to(self, moment: Moment) -> None:
        """Go on from another one."""

    def make_even(self, start: State, h: float) -> None:
        """After pieces that make h [s], go on as after one step of that length."""

    def put_together(self, start: Moment, runs: list[Run], h: float) -> None:
        """Go on from what the bodies of several runs came to by themselves in h [s]."""

    def rubbing(self) -> tuple[Frozen, ...]:
        """What rubbed in the last (sub)step."""

    def give_up(self) -> None:
        """What runs came to counts for nothing: they are taken again, otherwise."""


def movers(stepper: Stepper) -> np.ndarray:
    """(n,) bool, bodies that go through a step: other prescribed ones are where their motions say, whoever else is there."""
    kind = stepper.model.bodies.kind
    may_lag = stepper.model.settings.kinematic_block == "lag"
    return (kind == Kind.DYNAMIC) | ((kind == Kind.KINEMATIC) & (stepper.linked.jointed | may_lag))


class Journey:
    """One of bodies of one world, whose frames are `dt` [s] long.

    Attributes:
        begin: where the first step that failed began, None before.
        refused: (n,) bool, bodies of parts of which a way was refused.
    """

    def __init__(self, stepper: Stepper, place: Place, linked: np.ndarray, dt: float):
        self.stepper, self.place, self.linked, self.dt = stepper, place, linked, dt
        self.begin: Moment | None = None
        self.separate, self.refused = 0, stepper.linked.nobody

    def through(self, who: np.ndarray, h: float, retries: int, known: Failed | Standing | None = None) -> Asks:
        """Ways of bodies through a (sub)step of h [s]; it leaves what one step of that length would.

        Args:
            known: how it has failed as a whole before, or with which pieces it begins.

        Raises:
            StepFailure: the shortest substep failed too.
        """
        if isinstance(known, Standing):
            ways = yield from self._begin(who, h, retries, known)
        else:
            pieces, ways = Pieces(h, self.dt), []
            if known is not None and (ways := (yield from self._again(who, pieces, known, retries))):
                pieces.free()
            ways += yield from self._rest(who, pieces, retries)
        if len(ways) > 1:
            self.place.make_even(self.begin.state, h)
        return ways

    def _begin(self, who: np.ndarray, h: float, retries: int, standing: Standing) -> Asks:
        """Ways of a frame that begins with pieces."""
        start = self.begin = self.place.moment()
        plans = standing.plans(who)
        if len(plans) > 1:
            return (yield from self._apart(start, standing.parts, plans, h, retries))
        return (yield from self._go(who, h, retries, plans[0]))

    def _go(self, who: np.ndarray, h: float, retries: int, plan: Plan | None = None) -> Asks:
        """Ways of the (sub)steps of some bodies that make h; of a plan, whose way is not free, the first one is a piece."""
        pieces = Pieces(h, self.dt)
        if plan is not None and plan.failure is not None and not pieces.shorten(plan.share):
            raise plan.failure
        if plan is not None:
            pieces.begin(plan.first)
        return (yield from self._rest(who, pieces, retries))

    def _rest(self, who: np.ndarray, pieces: Pieces, retries: int) -> Asks:
        """Ways of the pieces that are left."""
        ways: list[Way] = []
        while pieces.left:
            ways += yield from self._take(who, pieces, retries)
        return ways

    def _take(self, who: np.ndarray, pieces: Pieces, retries: int) -> Asks:
        """Ways of the next (sub)step, or of those that make it; none where it has to be shorter."""
        answer = yield Leap(who, pieces.length, self.separate > 0)
        if isinstance(answer, Failed):
            ways = yield from self._again(who, pieces, answer, retries)
            if not ways:
                return []
        else:
            ways = [answer]
        pieces.free()
        return ways

    def _again(self, who: np.ndarray, pieces: Pieces, failed: Failed, retries: int) -> Asks:
        """Ways that make the next (sub)step of some bodies, which failed; none where it has to be shorter."""
        failure, h = failed.failure, pieces.length
        refused = isinstance(failure, NotFree)
        if not refused and (retries == 0 or failure.reason in FINAL):
            raise failure
        start = self.place.moment()
        if self.begin is None:
            self.begin = start
        parts = self._parts(failed)
        plans = self._plans(who, parts, h, failure)
        if refused and not isinstance(failure, FastHit):
            apart = [plan.who for plan in plans if plan.failure is not None]
            self.refused = self.refused | (who if self.separate else np.any(apart, axis=0))
        if len(plans) > 1 and not self.separate:
            return (yield from self._apart(start, parts, plans, h, retries))
        if not refused:
            return (yield from self._halves(who, h, retries))
        if not pieces.shorten(min(plan.share for plan in plans)):
            raise failure
        return []

    def _halves(self, who: np.ndarray, h: float, retries: int) -> Asks:
        ways: list[Way] = []
        for _ in range(2):
            ways += yield from self._go(who, 0.5 * h, retries - 1)
        return ways

    # whom a failure concerns ----------------------------------------------------------------------------------------

    def _parts(self, failed: Failed) -> np.ndarray:
        """(n,) number of the part of every body: what hangs together by joints, or may touch."""
        pairs = [self.stepper.backend.islands.ties, failed.touching]
        if isinstance(failed.failure, NotFree):
            pairs.append(failed.failure.found.pairs)
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
            shares, dt = np.ones(len(who)), self.dt
            ends = failure.found.pairs.astype(int)
            inside = (self.linked & who)[ends]
            if not inside.any():
                return [Plan(who, failure, float(failure.found.share.min()))]
            np.minimum.at(shares, parts[ends[inside]], np.repeat(failure.found.share[:, None], 2, axis=1)[inside])
            share = np.where(who, shares[parts], 1.0)
            chosen, plans = share < 1.0, []
            length = np.zeros(len(share), dtype=int)
            for one in np.unique(share[chosen]):
                length[share == one] = _first(h, dt, one)
            for ticks in np.unique(length[chosen]):
                mask = chosen & (length == ticks)
                plans.append(Plan(mask, failure, float(share[mask].min())))
        rest = who & ~chosen
        return [Plan(rest), *plans] if rest.any() else plans

    # apart ------------------------------------------------------------------------------------------------------------

    def _apart(self, start: Moment, parts: np.ndarray, plans: list[Plan], h: float, retries: int) -> Asks:
        """Take the bodies of every plan through a (sub)step of h [s] by themselves, and together those that meet."""
        self.separate += 1
        runs, times = [], 0
        for plan in plans:
            runs.append((yield from self._run(start, plan, h, retries)))
        while len(runs) > 1 and len(met := (yield from self._meetings(start, runs, SPARING <= times < 2 * SPARING))):
            self.place.give_up()
            times += 1
            bent = (met[:, 0] == met[:, 1]).any()  # nothing can be proven of it, but in one run
            together = np.unique(parts if bent or times > 2 * SPARING else parts[met])
            runs, parts = (yield from self._united(start, runs, parts, together, h, retries)), parts.copy()
            parts[np.isin(parts, together)] = together[0]
        self.separate -= 1
        self.place.put_together(start, runs, h)
        return [way for run in runs for way in run.ways]

    def _united(
        self, start: Moment, runs: list[Run], parts: np.ndarray, together: np.ndarray, h: float, retries: int
    ) -> Generator[Leap | Meetings, Any, list[Run]]:
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
                out.append((yield from self._run(start, replace(run.plan, who=rest), h, retries)))
        return [*out, (yield from self._run(start, Plan(everybody & chosen, failure, share, first), h, retries))]

    def _run(self, start: Moment, plan: Plan, h: float, retries: int) -> Generator[Leap | Meetings, Any, Run]:
        """Take some bodies through a (sub)step by themselves."""
        self.place.return_to(start)
        if plan.failure is None or isinstance(plan.failure, NotFree):
            ways = yield from self._go(plan.who, h, retries, plan)
        else:
            ways = yield from self._halves(plan.who, h, retries)
        rubbing = self.place.rubbing()
        if len(ways) > 1:
            self.place.make_even(start.state, h)
        return Run(plan, ways, self.place.moment(), rubbing)

    def _meetings(self, start: Moment, runs: list[Run], every: bool) -> Generator[Meetings, Any, np.ndarray]:
        """(k, 2) pairs of bodies of different runs that come in one another's way, in every piece or the first where any do."""
        ways = [way for run in runs for way in run.ways]
        party = np.zeros(len(self.linked), dtype=int)
        for number, run in enumerate(runs, 1):
            party[run.plan.who] = number
        least = 0.5**HALVINGS * self.dt
        times = [start.state.time]
        for time in sorted(way.end for way in ways):
            if time > times[-1] + 0.5 * least:
                times.append(time)
        found = np.zeros((0, 2), dtype=int)
        for begin, end in pairwise(times):
            found = np.concatenate([found, (yield Meetings(ways, begin, end, party)).reshape(-1, 2)])
            if len(found) and not every:
                break
        return found


def _first(h: float, dt: float, share: float) -> int:
    """Ticks of the first piece of a (sub)step of h [s] of which a share is free."""
    pieces = Pieces(h, dt)
    pieces.shorten(share)
    return pieces.next
