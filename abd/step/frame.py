"""One frame: every world goes through it in substeps of its own.

    while a world has not reached the end of the frame:
        take the worlds that can be minimised together, each by its own substep
        rejected:  nothing has changed; the worlds concerned take shorter substeps
        accepted:  they go on, and their next substep may be longer

A substep is rejected where an island does not converge, where its swept path is not proven collision-free, where a new contact
is made at high speed, and where a joint turns too far (`abd.step.verdict`). Worlds do not interact. Each goes through its own
substeps with the results it would have without the others; a world that cannot go on is left where the frame began.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.backends.progress import Progress
from abd.by_bodies import OfBodies, among
from abd.errors import StepFailure
from abd.model import Kind
from abd.state import merged
from abd.step.energy_balance import Work
from abd.step.verdict import FINAL, PathNotFree

HALVINGS = 20
"""How often a frame may be halved so that all swept paths are collision-free."""
CLOSE = 8
"""A collision within the first such part of a substep counts as one at its beginning; no less is left for a last substep."""
SHORTER = 4
"""What a substep that begins with a collision is divided by."""
GROWTH = 8
"""How many times longer than the last accepted substep the next one may be; after a rejection at first 2, then 4."""


class SubstepSizes:
    """Lengths of the substeps of one world in a frame of `dt` [s], in ticks of dt halved `HALVINGS` times.

    Args:
        first: length [s] of the first substep, at most.

    Attributes:
        left: ticks that remain; next: of them those of the next substep; growth: how many times longer the one after it may be;
            taken: accepted substeps; longest: the largest of them [ticks]; path_rejected: whether a swept path was rejected.
    """

    def __init__(self, dt: float, first: float):
        self.left = self.next = 2**HALVINGS
        self.dt, self.tick, self.growth = dt, dt / self.left, GROWTH
        self.taken, self.longest, self.path_rejected = 0, 0, False
        ticks = max(1, round(min(first / self.tick, self.left)))
        self.starts_short = ticks < self.next
        if self.starts_short:
            self.next, self.growth = ticks, 1

    @property
    def length(self) -> float:
        """Of the next substep [s]."""
        return self.dt if self.next == 2**HALVINGS else self.next * self.tick

    def accept(self) -> None:
        """The substep was taken."""
        self.taken, self.longest = self.taken + 1, max(self.longest, self.next)
        self.left -= self.next
        self.next = min(self.left, self.growth * self.next)
        if CLOSE * (self.left - self.next) < self.next:
            self.next = self.left
        self.growth = min(2 * self.growth, GROWTH)

    def shorten(self, fraction: float) -> bool:
        """The swept path is free up to a fraction of the substep; False if it cannot be shorter."""
        if self.next == 1:
            return False
        self.growth = 1
        ahead = min(int(fraction * self.next), self.next - max(1, self.next // CLOSE))
        self.next = ahead if CLOSE * ahead >= self.next else max(1, self.next // SHORTER)
        return True

    def halve(self, retries: int) -> bool:
        """The substep did not converge; False if a frame halved `retries` times did not either."""
        if self.next // 2 < max(1, 2**HALVINGS >> retries):
            return False
        self.growth, self.next = 1, self.next // 2
        return True

    @property
    def next_first(self) -> float:
        """Length [s] of the first substep of the next frame: as the longest of this one where a path was rejected, or twice that;
        infinite for a whole frame."""
        if not (self.path_rejected or self.starts_short):
            return np.inf
        ticks = self.longest if self.path_rejected else 2 * self.longest
        return ticks * self.tick if ticks < 2**HALVINGS else np.inf


@dataclass(frozen=True)
class Moment:
    """What a frame began with."""

    state: object
    work: Work
    statistics: object


class Frame:
    """Takes a `Stepper` through frames.

    Attributes:
        stopped: worlds that could not go on in the last frame, and why.
    """

    def __init__(self, stepper):
        self.stepper, self.worlds = stepper, stepper.model.bodies.world
        kind = stepper.model.bodies.kind
        may_lag = stepper.model.settings.kinematic_block == "lag"
        self.movers = (kind == Kind.DYNAMIC) | ((kind == Kind.KINEMATIC) & (stepper.articulations.jointed | may_lag))
        self.stopped: list[tuple[int, StepFailure]] = []

    def advance(self, progress: Progress) -> int:
        """Take all worlds through a frame; the largest number of substeps that one took.

        Raises:
            StepFailure: no world could go on; the state is the one at the beginning.
        """
        stepper, self.stopped, self.begin = self.stepper, [], None
        lengths, failure = stepper.worlds.lengths, None
        whole = isinstance(lengths, float) and not stepper.starts_short and stepper.excluded is stepper.none
        if whole and stepper.off is stepper.none and not isinstance(stepper.time, np.ndarray):
            failure = stepper.substeps.attempt(lengths, progress)
            if failure is None:
                stepper.after_substep()
                return 1
        self._start()
        running, group = dict(self.sizes), list(self.sizes)
        if failure is not None:
            self._drop(self._rejected(failure, group, progress), running)
        while pending := {number: one for number, one in running.items() if one.left}:
            group = self._group(pending)
            failure = self._take(group, progress)
            if failure is None:
                for number in group:
                    running[number].accept()
                continue
            self._drop(self._rejected(failure, group, progress), running)
        self._end(running)
        return max((one.taken for one in running.values()), default=1)

    def _start(self) -> None:
        """Sizes of the substeps of all worlds that move."""
        stepper = self.stepper
        moving = self.movers & ~stepper.off
        lengths, first = stepper.worlds.of_each(stepper.worlds.lengths), stepper.worlds.of_each(stepper.first_substep)
        there = np.isin(stepper.worlds.numbers, self.worlds[moving]) if moving.any() else np.ones(len(lengths), dtype=bool)
        each = zip(stepper.worlds.numbers[there], lengths[there], first[there], strict=True)
        self.sizes = {int(number): SubstepSizes(float(length), float(one)) for number, length, one in each}
        self.times, self.separate, self.lagged = stepper.time, False, []
        if any(one.starts_short for one in self.sizes.values()):
            self.begin = self._moment()

    def _drop(self, final: list[tuple[int, StepFailure]], running: dict[int, SubstepSizes]) -> None:
        """Worlds that cannot go on."""
        for number, why in final:
            self._stop(number, why)
            del running[number]

    def _group(self, pending: dict[int, SubstepSizes]) -> list[int]:
        """Worlds that are minimised together next: all where loads allow lengths by worlds, else those of equal times and
        lengths; one where it is not known which one a failure concerns."""
        stepper = self.stepper
        if self.separate:
            return [next(iter(pending))]
        if len(pending) == 1 or self._lengths_may_differ():
            return list(pending)
        times, previous = (stepper.worlds.of_each(one) for one in (stepper.time, stepper.previous_h))
        place = {int(number): k for k, number in enumerate(stepper.worlds.numbers)}
        kinds = {number: (times[place[number]], previous[place[number]], one.length) for number, one in pending.items()}
        first = next(iter(kinds.values()))
        return [number for number, kind in kinds.items() if kind == first]

    def _lengths_may_differ(self) -> bool:
        """Whether all loads of a substep may have lengths by worlds."""
        stepper = self.stepper
        balances = stepper.settings.friction_iterations < 0 and stepper.backend.friction.enabled
        return not (stepper.prescribed.any or balances or stepper.joints.asks_users) and stepper.loads_are_constant()

    def _take(self, group: list[int], progress: Progress) -> StepFailure | None:
        """One substep of the worlds of a group, the others left out; why it was rejected."""
        stepper = self.stepper
        mine = np.isin(self.worlds, group) if len(group) < len(stepper.worlds.numbers) else np.ones(len(self.worlds), dtype=bool)
        who = self.movers & mine & ~stepper.off
        others = self.movers & ~who & ~stepper.off
        before = stepper.state() if others.any() else None
        stepper.exclude((self.movers & ~who) | stepper.off)
        time, previous = stepper.time, stepper.previous_h
        if before is not None:
            stepper.time, stepper.previous_h = among(time, mine), among(previous, mine)
        failure = stepper.substeps.attempt(self._lengths(group, mine), progress)
        if failure is not None:
            stepper.time, stepper.previous_h = time, previous
            return failure
        stepper.after_substep()
        if before is not None:
            self.lagged += [(group, *frozen_of(one, mine)) for one in stepper.lagged_friction()]
            self._join(before, mine)
        return None

    def _lengths(self, group: list[int], mine: np.ndarray) -> OfBodies:
        """Lengths of the next substeps [s]."""
        lengths = {self.sizes[number].length for number in group}
        if len(lengths) == 1:
            return lengths.pop()
        out = np.full(len(self.worlds), self.stepper.settings.dt)
        for number in group:
            out[self.worlds == number] = self.sizes[number].length
        return among(out, mine)

    def _join(self, before, mine: np.ndarray) -> None:
        """Go on from what some bodies (n,) bool came to, and the others where they were."""
        stepper = self.stepper
        after = stepper.state()
        state = merged(stepper.joints, before, after, mine)
        state.solver = stepper.backend.linear.memory_of_parts([(~mine, before.solver), (mine, after.solver)])
        stepper.restore(state)

    def _rejected(self, failure: StepFailure, group: list[int], progress: Progress) -> list[tuple[int, StepFailure]]:
        """Shorten the substeps of the worlds that a failure concerns; those of which it is final.

        Raises:
            StepFailure: there is no memory.
        """
        if failure.reason == "memory":
            raise failure
        if self.begin is None:
            self.begin = self._moment()
        bodies = failure.concerned
        concerned = group if bodies is None else [number for number in group if bodies[self.worlds == number].any()]
        if (bodies is None or not concerned) and len(group) > 1:
            self.separate = True
            return []
        final = []
        for number in concerned or group:
            size, why = self.sizes[number], failure.within(self.worlds == number)
            if isinstance(failure, PathNotFree):
                progress.rejected_paths += 1
                size.path_rejected |= not failure.fast
                shorter = size.shorten(float(why.found.share.min(initial=1.0)))
            else:
                shorter = failure.reason not in FINAL and size.halve(self.stepper.settings.retries)
            if not shorter:
                final.append((number, why))
        return final

    def _stop(self, number: int, failure: StepFailure) -> None:
        """A world cannot go on: it stays where the frame began.

        Raises:
            StepFailure: it is the last one.
        """
        self.stopped.append((number, failure))
        if len(self.stopped) == len(self.sizes):
            self._return()
            raise self.stopped[0][1]
        mine, stepper = self.worlds == number, self.stepper
        now, begin = stepper.state(), self.begin.state
        stepper.restore(merged(stepper.joints, now, begin, mine))

    def _moment(self) -> Moment:
        stepper = self.stepper
        return Moment(stepper.state(), stepper.work, stepper.statistics)

    def _return(self) -> None:
        stepper = self.stepper
        stepper.restore(self.begin.state)
        stepper.work, stepper.statistics = self.begin.work, self.begin.statistics
        stepper.exclude(stepper.off)

    def _end(self, running: dict[int, SubstepSizes]) -> None:
        """All worlds are at the end of the frame."""
        stepper = self.stepper
        stepper.exclude(stepper.off)
        if any(one.next_first < np.inf for one in running.values()) or stepper.starts_short:
            first = {number: one.next_first for number, one in running.items()}
            stepper.first_substep = np.array([first.get(int(number), np.inf) for number in self.worlds])
        stepper.time = self.times + stepper.worlds.lengths
        if stepper.statistics is None:
            stepper.left_friction = self._last_friction()
            stepper.statistics = stepper.standing_statistics()

    def _last_friction(self) -> tuple:
        """What was in frictional contact in the last substep of every world."""
        last: dict[int, int] = {}
        for k, (group, *_) in enumerate(self.lagged):
            last.update(dict.fromkeys(group, k))
        out = []
        for k in sorted(set(last.values())):
            mine = np.isin(self.worlds, [number for number, place in last.items() if place == k])
            out.append(frozen_of(tuple(self.lagged[k][1:]), mine))
        return tuple(out)


def frozen_of(frozen: tuple, mine: np.ndarray) -> tuple:
    """Of lagged contacts (`abd.backends.protocol.Readings.frozen_friction`, with eps (n,) [m]) those of bodies (n,) bool."""
    (*rows, rest), eps = frozen
    theirs = mine[rows[0].astype(int)].any(axis=1)
    return (*(row[theirs] for row in rows), rest), eps
