"""What mechanisms remember before their first step (`abd.potentials.beginning`)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from abd.backends.progress import Progress
from abd.errors import StepFailure
from abd.joints.closure.link_graph import joined_components
from abd.joints.closure.symmetries import mechanisms
from abd.joints.rows.row_laws import Role
from abd.joints.rows.sizes import turning_arms
from abd.joints.rows.springs import turns
from abd.model import Kind
from abd.potentials.beginning import Start, opening
from abd.potentials.integrators import Mode, Scheme
from abd.state import State
from abd.step.newton import solve_step
from abd.step.start import start

if TYPE_CHECKING:
    from abd.step.step import Stepper

TIGHT = 1e-2
"""Share of the tolerance to which the steps that are tried converge."""
FAR = 0.3
"""Turn of a spring's vibration per step [rad] beyond which its force does not go straight from the begin to the end."""
ONE_WAY = (Role.DRIVE, Role.FORCE, Role.FRICTION, Role.ARMATURE, Role.APPLIED)
"""Roles of rows whose forces depend on more than places, or that remember rates."""


class Beginning:
    """The first step of a `Stepper`.

    Mechanisms (`abd.joints.closure.symmetries.mechanisms`) of bodies that are free to move, whose joints neither damp, rub nor
    drive, and that touch nothing. Others begin with a `Mode.FRESH` step.
    """

    def __init__(self, stepper: Stepper):
        self.stepper, self.model, self.backend = stepper, stepper.model, stepper.backend

    @property
    def ahead(self) -> bool:
        """Whether mechanisms may be about to take their first step."""
        if self.model.settings.integrator != "generalized_alpha" or not len(self.model.joints):
            return False
        before = self.stepper.previous_h
        return bool((before == 0.0).any()) if isinstance(before, np.ndarray) else before == 0.0

    def prepare(self, h: float, progress: Progress) -> State | None:
        """Give what takes its first step in one of h [s] what it needs to remember; mechanisms for which a step that is tried
        fails get nothing. Returns the state as it was, None where nobody got anything; what it costs is the progress's
        `opening`."""
        stepper = self.stepper
        if not self.ahead:
            return None
        rule, struck, _ = stepper.substeps.begin(h)
        who = self._who(struck | stepper.off | stepper.absent)
        if not who.any():
            return None
        found = begin = stepper.state()
        try:
            while who.any():
                try:
                    found = self._found(begin, rule, who, progress)
                    break
                except StepFailure as failure:
                    failed = who if failure.islands is None else failure.islands
                    who = who & ~failed if (who & failed).any() else stepper.nobody
        finally:
            stepper.restore(found)
            stepper.leave_out(stepper.off)
        return None if found is begin else begin

    def _who(self, struck: np.ndarray) -> np.ndarray:
        """(n,) bool, bodies of mechanisms whose motion can be run backward, and none of which is `struck` (n,)."""
        bodies, system, n = self.model.bodies, self.stepper.joints, len(struck)
        chosen, label = mechanisms(self.model, system)
        a = system.row_laws
        one_way = a.active & ((a.damping > 0.0) | np.isin(a.role, ONE_WAY))
        one_way[[*a.target_of, *a.rate_of]] = True
        one_way |= turns(self.model, system) > FAR
        begun = self.stepper.modes.remembers > 0  # a step that failed was the first one too
        spoiled = np.append(struck | begun, False)  # the last one: the world
        for ends in system.row_bodies:
            spoiled[ends[one_way]] = True
        spoiled = spoiled[:-1]
        spoiled |= (bodies.free_rotation != 3) | ~np.asarray(bodies.free_translation, dtype=bool).all(axis=1)
        spoiled |= (bodies.mass <= 0.0) | ~(np.sort(bodies.moment, axis=1)[:, 1] > 0.0)
        some, out = ~np.isin(label, label[spoiled[chosen]]), np.zeros(n, dtype=bool)
        out[chosen[some]] = True
        return out

    def _found(self, begin: State, rule: Scheme, who: np.ndarray, progress: Progress) -> State:
        """The state to begin with."""
        tried = partial(self._tried, progress, begin)
        n, joined = len(who), joined_components(self.model)
        there = Start(self.model, rule, begin.q, begin.qd, joined, turning_arms(self.model))
        forward, clear = tried(begin.qd, None, rule, who)
        backward, clear_too = tried(-begin.qd, None, rule, who)
        force = 0.5 * (forward + backward)
        ahead, late = tried(there.opening_velocities(force), np.hstack([force, force]), opening(rule), who)
        memory = there.memory(force, ahead)
        smooth, later = tried(begin.qd, memory, rule, who, Mode.SMOOTH)
        who = who & clear & clear_too & late & later
        extra = dict(begin.extra)
        forces = extra["forces"].reshape(n, 12)
        extra["forces"] = np.where(who[:, None], memory, forces).ravel()
        extra["remembers"] = np.where(who, 2, extra["remembers"]).astype(np.int32)
        qd = np.where(who[:, None], there.velocities(ahead, smooth), begin.qd)
        # what their loads strain bodies by in the step is for nobody to have back
        chosen, label = mechanisms(self.model, self.stepper.joints)
        roots = chosen[np.unique(label, return_index=True)[1]]
        extra["owed"] = np.where(who & np.isin(np.arange(n), roots), np.inf, extra["owed"])
        return replace(begin, qd=qd, extra=extra)

    def _tried(
        self, progress: Progress, begin: State, qd: np.ndarray, memory: np.ndarray | None, rule: Scheme, who: np.ndarray,
        mode: Mode = Mode.FRESH,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Forces (n, 6) at the end of a step of some bodies `who` (n,) from velocities and memory (n, 12); and which of them
        nothing strikes in it."""
        stepper, backend, settings = self.stepper, self.backend, self.model.settings
        h, ch2 = rule.h, rule.c * rule.h**2
        known = {} if memory is None else {"forces": memory.ravel()}
        stepper.restore(replace(begin, qd=qd, extra=begin.extra | known))
        stepper.leave_out((self.model.bodies.kind != Kind.STATIC) & ~who)
        stepper.copies.give_memory()
        stepper.stiffness.begin()
        modes = np.where(self.stepper.linked.dynamic, np.where(who, mode, Mode.DISSIPATIVE), Mode.SMOOTH)
        backend.steps.begin(rule, modes, settings.eps_v * rule.beta * h, None)
        stepper.rows.begin(ch2, stepper.time + h)
        start(backend, stepper.nobody, stepper.nobody)
        tight = replace(settings, tolerance=TIGHT * settings.tolerance)
        spent = Progress()
        try:
            solve_step(backend, tight, h, stepper.stiffness, spent, stepper.nobody)
        finally:
            progress.opening += spent.newton
        stepper.rows.refuse_turned(~who)
        struck = stepper.linked.drawn_along((backend.touch.touching() != 0) | backend.rows.limited())
        backend.steps.finish()
        return backend.states.read_forces()[:, :6], who & ~struck
