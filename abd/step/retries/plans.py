"""What a journey is made of (`abd.step.retries.journey`): ways and plans, and what it asks for and is told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from abd.by_bodies import among
from abd.contact.path import between
from abd.energies import Figures
from abd.errors import StepFailure
from abd.rotations import MANY
from abd.state import State

if TYPE_CHECKING:
    from abd.step.account import Work
    from abd.step.step import Frozen


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


@dataclass(frozen=True)
class Moment:
    """All that a (sub)step starts from, and what it came to."""

    state: State
    work: Work
    figures: Figures | None

    def of(self, who: np.ndarray) -> Moment:
        """The same for bodies (n,) bool alone, of worlds that go by one length and are at one time."""
        state = self.state
        own = replace(state, time=among(state.time, who), previous_h=among(state.previous_h, who))
        return replace(self, state=own)


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


@dataclass(frozen=True)
class Leap:
    """Asks that bodies `who` (n,) take a (sub)step of h [s], while nobody else is there: answered by its `Way`, whose states are
    needed if it is `seen`, or by what `Failed`."""

    who: np.ndarray
    h: float
    seen: bool


@dataclass(frozen=True)
class Failed:
    """A leap that failed, while pairs (k, 2) might touch."""

    failure: StepFailure
    touching: np.ndarray


@dataclass(frozen=True)
class Standing:
    """How bodies begin a frame: the number of the `parts` (n,) that hang together by joints, or touch, and the length of the
    `pieces` (n,) [s] with which they begin, 0 for a whole frame."""

    parts: np.ndarray
    pieces: np.ndarray

    def plans(self, who: np.ndarray) -> list[Plan]:
        """For bodies (n,) of one world: those parts together whose shortest pieces are equally long."""
        shortest = np.full(self.parts.max(initial=0) + 1, np.inf)
        np.minimum.at(shortest, self.parts, np.where(who & (self.pieces > 0.0), self.pieces, np.inf))
        first = np.where(who, shortest[self.parts], np.nan)
        return [Plan(first == length, first=float(length)) for length in np.unique(first[who])]


@dataclass(frozen=True)
class Meetings:
    """Asks which pairs (k, 2) of bodies of different parties (n,) come in one another's way between two times [s] of their ways
    (`abd.backends.protocol.Ways.meetings`)."""

    ways: list[Way]
    begin: float
    end: float
    party: np.ndarray


def passages(asking: list[Meetings], q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States (n, 12) at both times of those that ask, and the turns (n, 3) between them [rad], where they are on their ways;
    bodies of none stand at q (n, 12)."""
    before, after, turn = q.copy(), q.copy(), np.zeros((len(q), 3))
    passing = [
        (way, *(min(max((time - way.begin) / (way.end - way.begin), 0.0), 1.0) for time in (one.begin, one.end)))
        for one in asking
        for way in one.ways
        if way.begin <= 0.5 * (one.begin + one.end) <= way.end
    ]
    sizes = [int(np.count_nonzero(way.who)) for way, *_ in passing]
    at = 0
    while at < len(passing):
        # as many at once as are too few for `abd.rotations.polar` to look at them together
        until = at + 1
        while until < len(passing) and sum(sizes[at : until + 1]) < MANY:
            until += 1
        ways, first, last = zip(*passing[at:until], strict=True)
        first, last = (np.repeat(one, sizes[at:until]) for one in (first, last))
        who = np.concatenate([np.flatnonzero(way.who) for way in ways])
        q0, q1, turned = (
            np.concatenate([getattr(way, name)[way.who] for way in ways]) for name in ("before", "after", "turned")
        )
        path = between(q0, q1, turned, np.zeros(len(who)))
        before[who], after[who], turn[who] = path.states(first), path.states(last), (last - first)[:, None] * path.w
        at = until
    return before, turn, after
