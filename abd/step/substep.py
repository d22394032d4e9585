"""One (sub)step: its loads and laws, its minimum, the proof of its way, and what follows from its end."""

from __future__ import annotations

import logging
from dataclasses import replace
from itertools import chain, repeat
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from abd.backends.device.memory import memory_watched
from abd.backends.progress import Progress
from abd.by_bodies import OfBodies
from abd.errors import OutOfMemory, StepFailure
from abd.potentials.integrators import Scheme, Schemes, longest
from abd.step.newton import solve_step
from abd.step.retries.plans import Failed
from abd.step.start import start
from abd.step.watch import Struck, Watch
from abd.step.ways import NotFree, refuse_unproven

if TYPE_CHECKING:
    from abd.step.step import Stepper

_log = logging.getLogger(__name__)

FEW = 3
"""Times that a step is taken again for the bodies that were struck in it, before it is for all that may touch them."""


class Substeps:
    """Takes the state of a `Stepper` through (sub)steps."""

    def __init__(self, stepper: Stepper):
        self.stepper = stepper
        self.model, self.settings, self.backend = stepper.model, stepper.settings, stepper.backend

    def attempt(self, h: OfBodies, progress: Progress) -> Failed | None:
        """`take` a (sub)step of h [s], of all or (n,); how it failed, with the state as before, None where it did not.

        Raises:
            StepFailure: there is no memory, which nothing mends.
        """
        stepper = self.stepper
        kept = stepper.before_trying()
        try:
            with memory_watched(self.backend.device.name):
                self.take(h, progress)
        except OutOfMemory as error:
            raise StepFailure("memory", str(error)) from error
        except StepFailure as failure:
            touching = self.backend.touch.candidate_pairs()
            stepper.take_back(*kept)
            if failure.reason == "memory":
                raise
            return Failed(failure, touching)
        return None

    def take(self, h: OfBodies, progress: Progress) -> None:
        """One (sub)step of h [s], of all or (n,) by worlds, where there are no prescribed bodies; bodies that meet a contact, a
        limit or a rope in it are taken through it again, without gain.

        Raises:
            StepFailure: it did not converge, or the way to its end is not free; `take_back` has to follow.
        """
        stepper = self.stepper
        begun, stepper.begun = stepper.begun, None
        rule, struck, steady = begun or self.begin(h)
        tries = np.zeros(len(struck), dtype=int)
        for first in chain([True], repeat(False)):
            mode = stepper.modes.of(rule, struck, steady)
            left = begun and first  # by the whole step, before
            if not left and self.take_whole(rule, mode, progress):
                return
            kept = stepper.before_trying()
            late, mode = self._solve(rule, mode, progress)
            if not late.any():
                break
            islands = self.backend.islands.host
            theirs = np.isin(islands, islands[late])
            tries[theirs] += 1
            late = late | np.isin(islands, islands[theirs & (tries >= FEW)])
            stepper.take_back(*kept)
            struck, steady = struck | late, steady & ~late
        with progress.time("way"):
            refuse_unproven(self.backend.ways.free_way(h), self.model.bodies.names, h)
        with progress.time("end"):
            self._finish(h, mode)

    def begin(self, h: OfBodies) -> tuple[Scheme | Schemes, np.ndarray, np.ndarray]:
        """Put on the loads of a (sub)step of h [s]; its scheme, the bodies (n,) bool that are known to be struck in it, and those
        of them on which the same acts as before."""
        stepper = self.stepper
        if stepper.loads is not None:
            length = longest(h)
            if (loads := stepper.loads(stepper.time + length, length)) is not None:
                self.backend.loads.set_loads(*loads)
        struck, whirling = stepper.acting, stepper.modes.whirling(h, stepper.figures, lambda: (stepper.q, stepper.qd))
        for more in (whirling, stepper.absent):
            struck = struck if more is stepper.nobody else struck | more
        steady = stepper.lasting.steady
        if steady is not stepper.nobody and whirling is not stepper.nobody:
            steady = steady & ~whirling
        return stepper.modes.rule(h, stepper.previous_h), struck, steady

    def take_whole(self, rule: Scheme | Schemes, mode: np.ndarray, progress: Progress) -> bool:
        """Take a step in which nothing touches anything in one piece, where the backend can (`abd.backends.recorded.whole_step`);
        whether it was taken."""
        stepper, backend, settings = self.stepper, self.backend, self.settings
        whole, once = backend.whole, settings.friction_iterations == 1 or not backend.friction.enabled
        if whole is None or not once or isinstance(rule, Schemes) or stepper.absent is not stepper.nobody or not whole.serves():
            return False
        sleepy = stepper.sleep.enabled and stepper.sleep.ripe(stepper.joints).any()
        if sleepy or (stepper.touching is not stepper.nobody and stepper.touching.any()):
            return False
        self._prepare_rows(rule.h)
        stepper.copies.give_memory()
        stepper.stiffness.begin()
        tolerances = settings.tolerance, settings.friction_tolerance
        eps, judged = settings.eps_v * rule.beta * rule.h, settings.integrator == "generalized_alpha"
        begin, stages = perf_counter(), progress.stages
        outcome = whole.run(rule, mode, eps, stepper.time + rule.h, settings.eps_v, *tolerances, judged)
        solved = perf_counter()
        stages["whole step"] = stages.get("whole step", 0.0) + solved - begin
        if outcome is None:
            return False
        progress.newton += outcome.newton
        progress.trials += outcome.trials
        progress.tolerance = max(progress.tolerance, outcome.worst)
        stepper.loaded = stepper.nobody
        self._became(mode)
        stepper.figures = outcome.figures
        rebound = None if outcome.limited is None else stepper.rebounds.rebound(rule.h, outcome.limited)
        if rebound is not None:
            stepper.figures = backend.readings.figures()
            self._take_rebound(*rebound[1:], rule.h)
        self._conclude(rule.h, outcome.limited)
        stages["end"] = stages.get("end", 0.0) + perf_counter() - solved
        return True

    def _struck(self, mode: np.ndarray) -> np.ndarray:
        """(n,) bool, bodies of a smooth step on which contacts, limits or ropes act at the iterate, and what is joined."""
        stepper = self.stepper
        smooth = stepper.modes.may_be_struck(mode)
        if not smooth.any():
            return stepper.nobody
        return smooth & stepper.linked.drawn_along((self.backend.touch.touching() != 0) | self.backend.rows.limited())

    def _solve(
        self, rule: Scheme | Schemes, mode: np.ndarray, progress: Progress
    ) -> tuple[np.ndarray, np.ndarray]:
        """Minimise the incremental potential of a (sub)step; returns the bodies (n,) that were struck in it, with which it has
        to be taken again, and the modes (n,) that it was left with, of those that it was not (`abd.step.watch`)."""
        stepper, backend, settings, h = self.stepper, self.backend, self.settings, rule.h
        prescribed = stepper.prescribed
        goals = self._goals(h) if prescribed.any else None
        stepper.stiffness.begin()
        with progress.time("start"):
            stepper.copies.give_memory()
            backend.steps.begin(rule, mode, settings.eps_v * rule.beta * h, goals)
            began = backend.goals.read_prescribed() if prescribed.any else None
            self._prepare_rows(h)
            stepper.rows.begin(rule.c * h * h, stepper.time + h)
            start(backend, stepper.touching, stepper.sleep.ripe(stepper.joints))
            watch, late = Watch(stepper, mode, h), stepper.nobody
            try:
                watch.strike()
                late = self._struck(watch.mode)
            except Struck as struck:
                late = struck.bodies
        watch.refuse_fast_hits()
        if late.any():
            return late, mode

        loaded = stepper.loaded

        def minimise_step() -> None:
            stepper.loaded = solve_step(backend, settings, h, stepper.stiffness, progress, loaded, watch)
            while (jumped := watch.jump()) is not None:
                again = solve_step(backend, settings, h, stepper.stiffness, progress, loaded, watch, jumped)
                stepper.loaded = stepper.loaded | again

        try:
            if prescribed.any:
                nominal = prescribed.nominal(stepper.time, h)
                prescribed.minimise(backend, began, goals, nominal, settings.tolerance * h, rule.pull, minimise_step)
            else:
                minimise_step()
            self._refuse_turned()
        # iterates of other worlds are on their way, and what they touch they may leave again
        except Struck as struck:
            watch.refuse_fast_hits(stepper.in_worlds_of(struck.bodies))
            return struck.bodies, mode
        except NotFree as failure:
            refused = np.isin(np.arange(len(mode)), failure.found.pairs)
            watch.refuse_fast_hits(stepper.in_worlds_of(refused))
            raise
        except StepFailure as failure:
            late = self._struck(watch.mode)
            if failure.islands is not None:
                late = late & stepper.in_worlds_of(failure.islands)
            if late.any():
                return late, mode
            if failure.reason == "joints":
                failure.args = (f"{failure}; the widest open is '{stepper.rows.widest()}'",)
            raise
        watch.refuse_fast_hits()
        return self._struck(watch.mode), watch.mode

    def _goals(self, h: float) -> np.ndarray:
        """(k, 12) states prescribed for the end of a (sub)step; those that take no part stay."""
        stepper = self.stepper
        bodies = stepper.prescribed.bodies
        return np.where(stepper.absent[bodies, None], stepper.q[bodies], stepper.prescribed.goals(stepper.time + h))

    def _finish(self, h: OfBodies, mode: np.ndarray) -> None:
        """Make the iterate the new state."""
        stepper, backend = self.stepper, self.backend
        limited = backend.rows.limited()
        stepper.lasting.look(mode)
        backend.steps.finish()
        self._became(mode)
        rebound = stepper.rebounds.rebound(h, limited)
        if stepper.off.any():
            velocity = stepper.qd.copy()
            velocity[stepper.off] = 0.0
            stepper.copies.set_velocity(velocity)
        stepper.figures = backend.readings.figures()
        if rebound is not None:
            self._take_rebound(*rebound[1:], h)
        self._conclude(h, limited)

    def _became(self, mode: np.ndarray) -> None:
        """The iterate is the new state."""
        stepper = self.stepper
        stepper.modes.became(mode)
        stepper.copies.forget()
        stepper.stepped = True
        stepper.rebounds.forget()

    def _take_rebound(self, struck: np.ndarray, friction: float, h: OfBodies) -> None:
        """Impacts gave bodies (b,) other velocities, and friction in them has done work [J]."""
        stepper = self.stepper
        stepper.lasting.end(stepper.lasting.hang_together(stepper.rebounds.thrown))
        stepper.figures = replace(stepper.figures, friction_work=stepper.figures.friction_work + friction)
        stepper.rebounds.begin_from(struck, h)

    def _prepare_rows(self, h: OfBodies) -> None:
        """Refuse a (sub)step in which joints turn too far, and load what rubs in them."""
        stepper = self.stepper
        fastest = np.inf if stepper.figures is None else stepper.figures.fastest
        stepper.rows.refuse_turns(stepper.time, h, fastest, stepper.absent)
        stepper.rows.load_friction()

    def _refuse_turned(self) -> None:
        """Refuse an iterate in which joints have turned too far."""
        stepper = self.stepper
        stepper.rows.refuse_turned(stepper.absent)

    def _conclude(self, h: OfBodies, limited: np.ndarray | None) -> None:
        """Bookkeeping of a step whose figures are there; limits push on `limited` (n,) bodies at its end, None for nobody."""
        stepper, backend, linked = self.stepper, self.backend, self.stepper.linked
        stepper.work = stepper.work.after(stepper.figures)
        stepper.time = stepper.time + h
        stepper.previous_h = h
        stepper.sleep.observe(backend, h)
        stepper.rows.turning.look(h, stepper.figures.fastest, lambda: (stepper.q, stepper.qd, stepper.previous_q))
        if (said := stepper.strain.look(stepper.figures.orthogonality_error, lambda: stepper.q)) is not None:
            _log.warning("%s", said)
        touching = stepper.figures.contacts > 0
        stepper.touching = linked.drawn_along(backend.touch.touching() != 0) if touching else stepper.nobody
        stepper.lasting.settle(stepper.touching)
        some = limited is not None and limited.any()
        stepper.acting = stepper.touching | linked.drawn_along(limited) if some else stepper.touching
        stepper.stiffness.end(backend, h)
