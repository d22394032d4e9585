"""Worlds that go through a frame by different lengths, or after steps of different lengths, where what acts there knows but one:
prescribed bodies, functions of users in joints, loads that depend on lengths, friction that is to balance; and mechanisms that
take their first step, before which others are tried (`abd.step.beginning`). Those of one length are a group; groups go one after
the other, each while nobody else is there, and what they came to is put together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abd.backends.progress import Progress
from abd.by_bodies import OfBodies, among
from abd.errors import StepFailure
from abd.model import Kind
from abd.step.retries.places import Here
from abd.step.retries.plans import Plan, Run, Way

if TYPE_CHECKING:
    from abd.step.retries.retries import Retries


class Groups:
    """The groups of what `Retries` takes through frames.

    Attributes:
        elsewhere: (n,) bool, bodies of groups that are not at work.
    """

    def __init__(self, retries: Retries):
        self.retries, self.stepper = retries, retries.stepper
        self._nobody = self.elsewhere = self.stepper.linked.nobody

    def of(self, who: np.ndarray, h: OfBodies) -> list[np.ndarray]:
        """(n,) bool, all bodies of the worlds of each group in which bodies `who` (n,) go through a frame of h [s]; none where
        all of them go together."""
        stepper, worlds = self.stepper, self.retries.worlds
        together = self.retries.knows_lengths() and not stepper.beginning.ahead
        if stepper.even or (together and len(np.unique(worlds[who])) > 1):
            return []
        kinds = np.stack([np.broadcast_to(one, len(who)) for one in (h, stepper.previous_h)], axis=1)
        group = np.unique(kinds, axis=0, return_inverse=True)[1].ravel()
        return [group == number for number in np.unique(group[who])]

    def take(
        self, groups: list[np.ndarray], who: np.ndarray, begun: np.ndarray, h: OfBodies, tries: int, progress: Progress
    ) -> list[Way]:
        """Ways of bodies `who` (n,) of some groups through a frame of h [s] (`Retries.advance`).

        Raises:
            StepFailure: there is no memory.
        """
        stepper, retries, here, runs = self.stepper, self.retries, Here(self.stepper), []
        start = retries.begin = here.moment()
        for group in groups:
            mine, own, length = who & group, start.of(group), among(h, group)
            self.elsewhere = (stepper.model.bodies.kind != Kind.STATIC) & ~group
            here.return_to(own)
            stepper.leave_out(self.elsewhere | stepper.off)
            try:
                stepper.beginning.prepare(length, progress)
                ways = retries.frame(mine, begun & group, length, tries, progress)
            except StepFailure as hopeless:
                worlds = np.unique(retries.worlds[mine])
                if len(worlds) > 1 or hopeless.reason == "memory":
                    raise
                ways = []
                here.return_to(own)
                retries.stopped.append((int(worlds[0]), hopeless))
            runs.append(Run(Plan(group), ways, here.moment(), stepper.rubbing()))
        self.elsewhere = self._nobody
        here.put_together(start, runs, h)
        return [way for run in runs for way in run.ways]
