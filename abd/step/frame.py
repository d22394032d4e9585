"""One frame: every world advances through it in its own substeps.

    while a world has not reached the end of the frame:
        take one substep of the worlds that can be minimised together
        rejected (`abd.step.verdict`):  restore the state; halve the substeps of the failed worlds
        accepted:  advance; the next substeps may be longer

Each world has the results it would have without the others. A world that fails stays where the frame began.
"""

from __future__ import annotations

import numpy as np

from abd.backends.progress import Progress
from abd.by_bodies import among
from abd.errors import StepFailure
from abd.model import Kind
from abd.state import merged
from abd.step.frame_forces import FrameForces
from abd.step.stepper_state import StepperState
from abd.step.substep import Substeps
from abd.step.verdict import FINAL, PathNotFree

HALVINGS = 20
"""Largest number of halvings of a frame that make all swept paths collision-free."""
GROWTH = 2
"""Largest ratio of a substep to the one before in its frame."""


class SubstepSizes:
    """Lengths of the substeps of one world in a frame of `dt` [s], in ticks of dt / 2^`HALVINGS`.

    Attributes:
        left: remaining ticks; next: ticks of the next substep; taken: number of accepted substeps.
    """

    def __init__(self, dt: float):
        self.left = self.next = 2**HALVINGS
        self.dt, self.taken = dt, 0

    @property
    def length(self) -> float:
        """Length of the next substep [s]."""
        return self.dt * self.fraction

    @property
    def fraction(self) -> float:
        """Length of the next substep over the length of the frame."""
        return self.next / 2**HALVINGS

    def accept(self) -> None:
        self.taken += 1
        self.left -= self.next
        self.next = min(self.left, GROWTH * self.next)

    def halve(self, halvings: int) -> bool:
        """Halve the substep; return False if it has been halved `halvings` times already."""
        if self.next < 2 << (HALVINGS - halvings):
            return False
        self.next //= 2
        return True


class Frame:
    """Advances a `StepperState` by frames.

    Attributes:
        stopped: worlds that failed in the last frame, with their failures.
    """

    def __init__(self, stepper: StepperState):
        self.stepper, self.substeps, self.world_of = stepper, Substeps(stepper), stepper.model.bodies.world
        kind = stepper.model.bodies.kind
        may_lag = stepper.model.settings.kinematic_block == "lag"
        self.movers = (kind == Kind.DYNAMIC) | ((kind == Kind.KINEMATIC) & (stepper.articulations.jointed | may_lag))
        self.stopped: list[tuple[int, StepFailure]] = []

    def advance(self, progress: Progress) -> int:
        """Advance all worlds by a frame; return the largest number of substeps of a world.

        Raises:
            StepFailure: all worlds failed; the state is the one at the beginning.
        """
        stepper, self.stopped, self.begin = self.stepper, [], None
        lengths, failure = stepper.worlds.lengths, None
        whole = isinstance(lengths, float) and stepper.excluded is stepper.none
        if whole and stepper.off is stepper.none and (not isinstance(stepper.time, np.ndarray) or self._lengths_may_differ()):
            failure = self.substeps.attempt(lengths, progress)
            if failure is None:
                stepper.after_substep()
                return 1
        self._start()
        if failure is not None:
            self._reject(failure, list(self.sizes), progress)
        while pending := {number: one for number, one in self.sizes.items() if one.left}:
            group = self._group(pending)
            if (failure := self._take(group, progress)) is not None:
                self._reject(failure, group, progress)
        self._end()
        return max((one.taken for one in self.sizes.values()), default=1)

    def _start(self) -> None:
        stepper = self.stepper
        moving = self.movers & ~stepper.off
        lengths = stepper.worlds.world_values(stepper.worlds.lengths)
        has_movers = np.isin(stepper.worlds.numbers, self.world_of[moving]) if moving.any() else np.ones(len(lengths), dtype=bool)
        each = zip(stepper.worlds.numbers[has_movers].tolist(), lengths[has_movers].tolist(), strict=True)
        self.sizes = {number: SubstepSizes(length) for number, length in each}
        self.times, self.separate, self.forces = stepper.time, False, FrameForces(stepper)

    def _group(self, pending: dict[int, SubstepSizes]) -> list[int]:
        """Return the worlds of the next minimisation: all where loads allow different lengths, else those of equal times and
        lengths; a single one if a failure could not be assigned to a world."""
        stepper = self.stepper
        if self.separate:
            return [next(iter(pending))]
        if len(pending) == 1 or self._lengths_may_differ():
            return list(pending)
        times, previous = (stepper.worlds.world_values(one) for one in (stepper.time, stepper.previous_h))
        place = {int(number): k for k, number in enumerate(stepper.worlds.numbers)}
        kinds = {number: (times[place[number]], previous[place[number]], one.length) for number, one in pending.items()}
        first = next(iter(kinds.values()))
        return [number for number, kind in kinds.items() if kind == first]

    def _lengths_may_differ(self) -> bool:
        """Return whether all loads of a substep allow different lengths by world."""
        stepper = self.stepper
        balances = stepper.settings.friction_iterations < 0 and stepper.backend.friction.enabled
        return not (stepper.prescribed.any or balances or stepper.joints.has_user_functions) and stepper.loads_are_constant()

    def _take(self, group: list[int], progress: Progress) -> StepFailure | None:
        """Take one substep of the worlds of a group, without the others; return why it was rejected."""
        stepper = self.stepper
        mask = np.isin(self.world_of, group)
        included = self.movers & mask & ~stepper.off
        before = stepper.state() if (self.movers & ~included & ~stepper.off).any() else None
        stepper.exclude((self.movers & ~included) | stepper.off)
        time, previous = stepper.time, stepper.previous_h
        stepper.time, stepper.previous_h = among(time, mask), among(previous, mask)
        length = self._by_bodies({number: self.sizes[number].length for number in group}, stepper.settings.dt)
        failure = self.substeps.attempt(among(length, mask), progress)
        if failure is not None:
            stepper.time, stepper.previous_h = time, previous
            return failure
        stepper.after_substep()
        fraction = self._by_bodies({number: self.sizes[number].fraction for number in group}, 0.0)
        if before is not None or (fraction[included] < 1.0).any():
            self.forces.add(stepper.forces, fraction)
        if before is not None:
            stepper.restore(merged(stepper.joints, before, stepper.state(), mask))
        for number in group:
            self.sizes[number].accept()
        if any(one.left for one in self.sizes.values()):
            stepper.path.add_end(stepper.q, stepper.qd, np.where(mask, length, 0.0))
        return None

    def _by_bodies(self, values: dict[int, float], default: float) -> np.ndarray:
        """Return (n,) values of the bodies' worlds, by number of the world."""
        numbers = self.stepper.worlds.numbers
        each = np.array([values.get(int(number), default) for number in numbers])
        return each[np.searchsorted(numbers, self.world_of)]

    def _reject(self, failure: StepFailure, group: list[int], progress: Progress) -> None:
        """Halve the substeps of the failed worlds; stop worlds whose failure is final.

        Raises:
            StepFailure: memory is exhausted, or no world is left.
        """
        if failure.reason == "memory":
            raise failure
        if self.begin is None:
            self.begin = self.stepper.state(), self.stepper.work, self.stepper.statistics
        bodies = failure.concerned
        concerned = group if bodies is None else [number for number in group if bodies[self.world_of == number].any()]
        if (bodies is None or not concerned) and len(group) > 1:
            self.separate = True
            return
        for number in concerned or group:
            size, why = self.sizes[number], failure.within(self.world_of == number)
            progress.rejections[why.reason] = progress.rejections.get(why.reason, 0) + 1
            halvings = HALVINGS if isinstance(failure, PathNotFree) else min(self.stepper.settings.retries, HALVINGS)
            if failure.reason in FINAL or not size.halve(halvings):
                self._stop(number, why)

    def _stop(self, number: int, failure: StepFailure) -> None:
        """Stop a world and restore its state at the start of the frame.

        Raises:
            StepFailure: all worlds are stopped; all have the state at the start of the frame.
        """
        stepper, (state, work, statistics) = self.stepper, self.begin
        self.stopped.append((number, failure))
        del self.sizes[number]
        if not self.sizes:
            stepper.restore(state)
            stepper.work, stepper.statistics = work, statistics
            stepper.exclude(stepper.off)
            raise self.stopped[0][1]
        stepper.restore(merged(stepper.joints, stepper.state(), state, self.world_of == number))
        stepper.path.take_back(self.world_of == number, state.q)

    def _end(self) -> None:
        stepper = self.stepper
        stepper.exclude(stepper.off)
        stopped = stepper.stopped | np.isin(self.world_of, [number for number, _ in self.stopped])
        lengths = stepper.worlds.lengths
        stepper.time = self.times + (np.where(stopped, 0.0, lengths) if stopped.any() else lengths)
        if stepper.statistics is None:
            stepper.statistics = stepper.statistics_without_work()
        if self.forces.recorded:
            stepper.forces = self.forces
