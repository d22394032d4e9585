"""Where the bodies of a journey are (`abd.step.retries.journey.Place`): in the state of a `Stepper`, or beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from abd.energies import Figures
from abd.joints.coordinates.readings import JointReader, Readings
from abd.joints.rows.system import HISTORY
from abd.state import State
from abd.step.account import Work
from abd.step.impacts.rebounds import before_fall
from abd.step.retries.merge import merged
from abd.step.retries.plans import Moment, Run

if TYPE_CHECKING:
    from abd.step.step import Frozen, Stepper

STRETCHED = 2.01
"""Length of a step over that of the last one beyond which bodies begin anew: the tolerance of that one, over its length, may be
more than its forces are."""


class Here:
    """The state of a stepper.

    Attributes:
        spent: what has been done [J], also where it was given up; lost: how much of that up to the first time, None without.
    """

    def __init__(self, stepper: Stepper):
        self.stepper = stepper
        self.spent, self.lost = Work(), None

    def moment(self) -> Moment:
        stepper = self.stepper
        return Moment(stepper.state(), stepper.work, stepper.figures)

    def return_to(self, moment: Moment) -> None:
        stepper = self.stepper
        stepper.restore(moment.state)
        stepper.work, stepper.figures = moment.work, moment.figures

    def make_even(self, start: State, h: float) -> None:
        stepper, last = self.stepper, self.stepper.previous_h
        if last != h:
            states = stepper.backend.states
            states.set_forces(_stretched(states.read_forces(), h / last))
            stepper.modes.remembers = _known(stepper.modes.remembers, h / last)
        stepper.rebounds.set_previous(start.q, start.qd, h)
        memory = stepper.memory.copy()
        history = start.extra["joint_history"].reshape(HISTORY, -1)
        memory.history[1], memory.history[3] = history[0], history[2]
        stepper.memory = memory
        stepper.time, stepper.previous_h = start.time + h, h

    def put_together(self, start: Moment, runs: list[Run], h: float) -> None:
        stepper = self.stepper
        self.return_to(start)
        last = together(stepper, start.state, [(run.plan.who, run.end.state) for run in runs], h)
        stepper.leave_out(stepper.off)
        stepper.restore(last)
        stepper.left_rubbing = tuple(one for run in runs for one in run.rubbing)
        for run in runs:
            stepper.work = stepper.work.plus(run.end.work, start.work)
        stepper.figures = self._figures(runs)

    def rubbing(self) -> tuple[Frozen, ...]:
        return self.stepper.rubbing()

    def give_up(self) -> None:
        self.lost = self.lost or self.spent

    def _figures(self, runs: list[Run]) -> Figures:
        """Of the merged state; works are in the account already."""
        stepper = self.stepper
        backend, model = stepper.backend, stepper.model
        backend.touch.list_standing(backend.at.ch2)
        found = replace(backend.readings.figures(), external_work=0.0, drive_work=0.0, friction_work=0.0)
        known = [run.end.figures.residual_force for run in runs if run.end.figures is not None]
        left = max(known, default=0.0)
        if not len(model.joints):
            return replace(found, residual_force=left)
        reader = JointReader(model)
        near = reader.coordinates(stepper.q)
        read = Readings(reader, stepper.joints, stepper.q, stepper.qd, near, stepper.memory, stepper.applied)
        return replace(
            found, residual_force=left, joint=float(read.energy.sum()), joint_residual=tuple(read.worst_residual.tolist())
        )


class GivenUp(Exception):
    """What a world came to beside others counts for nothing."""


class Aside:
    """A moment of one world, of bodies (n,) bool; the steps from it are taken together with those of other worlds.

    Attributes:
        rebounded: (n,) bool, bodies to which the last step gave other velocities.
    """

    def __init__(self, stepper: Stepper, start: Moment, world: np.ndarray):
        self.stepper, self.now, self.world = stepper, start, world
        self.rebounded, self._rubbing = stepper.linked.nobody, ()

    def stepped(self, now: Moment, rebounded: np.ndarray, rubbing: tuple[Frozen, ...]) -> None:
        """A step has led to another moment; it gave bodies (n,) bool other velocities, and that is what rubbed in it."""
        self.now, self.rebounded, self._rubbing = now, rebounded, rubbing

    def moment(self) -> Moment:
        return self.now

    def return_to(self, moment: Moment) -> None:
        self.now = moment

    def make_even(self, start: State, h: float) -> None:
        state, settings, extra = self.now.state, self.stepper.settings, dict(self.now.state.extra)
        last = state.previous_h
        if last != h:
            extra["forces"] = _stretched(extra["forces"].reshape(-1, 12), h / last).ravel()
            extra["remembers"] = _known(extra["remembers"], h / last)
        history, began = (one.reshape(HISTORY, -1).copy() for one in (extra["joint_history"], start.extra["joint_history"]))
        history[1], history[3] = began[0], began[2]
        extra["joint_history"] = history.ravel()
        q, qd, some = start.q, start.qd, self.rebounded
        if settings.integrator == "bdf2" and some.any():
            q, qd = q.copy(), qd.copy()
            q[some], qd[some] = before_fall(state.q[some], state.qd[some], settings.gravity, h)
        time = start.time + h
        even = replace(state, previous_q=q, previous_qd=qd, time=time, previous_h=h, extra=extra)
        self.now = replace(self.now, state=even)

    def put_together(self, start: Moment, runs: list[Run], h: float) -> None:
        ends = [(run.plan.who, run.end.state) for run in runs]
        left = max((run.end.figures for run in runs), key=lambda one: one.residual_force)
        self.now = Moment(together(self.stepper, start.state, ends, h), start.work, left)
        self._rubbing = tuple(one for run in runs for one in run.rubbing)

    def rubbing(self) -> tuple[Frozen, ...]:
        return self._rubbing

    def give_up(self) -> None:
        raise GivenUp


def _known(remembers: np.ndarray, ratio: float) -> np.ndarray:
    """(n,) `Modes.remembers` where the next step is `ratio` times as long as the last one."""
    return np.minimum(remembers, 0) if ratio > STRETCHED else remembers


def _stretched(forces: np.ndarray, ratio: float) -> np.ndarray:
    """What generalized alpha remembers of forces (n, 12), after a last step `ratio` times as long; zero where that is nothing."""
    acted, mean = forces[:, :6], forces[:, 6:]
    return np.concatenate([acted, np.where(mean == 0.0, 0.0, acted + ratio * (mean - acted))], axis=1)


def together(stepper: Stepper, start: State, parts: list[tuple[np.ndarray, State]], h: float) -> State:
    """What follows of parts, bodies (n,) with a state of theirs, after a (sub)step of h [s] that began at `start`."""
    last = merged(stepper.model, stepper.joints, start, parts, h)
    last.extra.update(stepper.backend.linear.memory_of_parts([(who, state.extra) for who, state in parts]))
    return last
