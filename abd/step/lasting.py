"""Contacts that last: bodies on which they act as they did in the steps before go through a step of second order
(`abd.potentials.integrators.Mode.TOUCHING`), which would give back what an impact brings.

Impacts are known by pairs that act on one another and did not at the end of the last step, and by forces that jump
(`abd.potentials.integrators.jumps`), by more than `JUMP` of the weight or one and a quarter of themselves. A body is *steady*
once what acts on it has lasted for `WAIT` steps of implicit Euler, and stays so until it jumps, or nothing touches it any more:
that step it takes by implicit Euler after all (`abd.step.watch`), and waits again. An impact that is not noticed, of less than an
eighth of what gravity gives in a step, may be given back. Islands are steady as a whole, as impacts run through them, and so is
what is joined; bodies without weight are not, unless nothing changes, nor are bodies of an elastic material, whose contacts
give back whenever they open.
"""

from __future__ import annotations

import numpy as np

from abd.backends.protocol import Backend
from abd.model import Model
from abd.potentials.integrators import Mode
from abd.step.impacts.restitution import ELASTIC
from abd.step.linked import Linked
from abd.step.newton import islands_of

WAIT = 3
"""Steps for which what acts on a body has to last."""
JUMP = 0.25
"""Largest change in a step in which it does."""
_NO_PAIRS = np.zeros(0, dtype=np.int64)


class Lasting:
    """For how long what acts on the bodies of one scene has lasted.

    Attributes:
        steps: (n,) number of steps, at most `WAIT`, 0 where nothing touches; steady: (n,) bool, a new array where it changes.
        acting: (k,) keys of the pairs that acted on one another at the end of the last step (`abd.contact.pair_law`), sorted;
            bodies on which joint limits or ropes act are pairs with themselves.
    """

    def __init__(self, model: Model, backend: Backend, linked: Linked):
        self.model, self.backend, self.linked = model, backend, linked
        self.serves = model.settings.integrator == "generalized_alpha"
        elastic = (model.materials.restitution >= ELASTIC).any(axis=1)
        self.inelastic = linked.dynamic & ~linked.drawn_along(elastic[model.bodies.material])
        self._none = np.zeros(len(model.bodies), dtype=np.int32)
        self._held = self._jumping = self.steady = linked.nobody  # the first two at the end of the last step
        self._found = _NO_PAIRS  # there
        self.acting = _NO_PAIRS
        self.set_steps(self._none)

    def set_steps(self, steps: np.ndarray) -> None:
        """Go on from known numbers of steps (n,)."""
        self.steps = steps if steps.any() else self._none
        steady = self.steps >= WAIT
        if not steady.any():
            self.steady = self.linked.nobody
        elif not np.array_equal(steady, self.steady):
            self.steady = steady

    def look(self, mode: np.ndarray) -> None:
        """Look at the iterate with which a (sub)step in these modes (n,) ends; `settle` has to follow."""
        self._held, self._found = self.linked.nobody, _NO_PAIRS
        if self.serves and (held := self.linked.dynamic & (mode <= Mode.TOUCHING)).any():
            self._held, self._found = held, self._keys()
            self._jumping = self._jumps(self._found)

    def settle(self, touching: np.ndarray) -> None:
        """A (sub)step has ended in which contacts act on bodies (n,) bool, and what is joined to them."""
        if not self.serves or touching is self.linked.nobody or not touching.any():
            self.forget()
            return
        mobile, bodies_of = self.backend.idle.mobile, self.backend.pair_law.bodies_of
        idle = np.logical_and(*(~mobile[ends] for ends in bodies_of(self.acting)))
        held = np.logical_or(*((touching & self.linked.dynamic)[ends] for ends in bodies_of(self._found)))
        self.acting = np.union1d(self.acting[idle], self._found[held])
        touching = touching & self._held & mobile
        jumping = touching & (self._jumping | ~self.inelastic)
        lasts = touching & ~self.hang_together(jumping)
        islands = self.backend.islands
        least = np.full(islands.count, WAIT, dtype=np.int32)
        np.minimum.at(least, islands.host[lasts], self.steps[lasts] + 1)
        self.set_steps(np.where(lasts, least[islands.host], np.where(mobile, 0, self.steps)).astype(np.int32))

    def forget(self) -> None:
        """Nothing has lasted."""
        self.acting = _NO_PAIRS
        if self.steps is not self._none:
            self.set_steps(self._none)

    def end(self, bodies: np.ndarray) -> None:
        """What acts on bodies (n,) bool has changed. Before a step nobody knows what hangs together with them, as islands are
        those of the step before, which may be one of other worlds; `settle` sees to that at its end."""
        if bodies.any() and self.steps is not self._none:
            self.set_steps(np.where(bodies, 0, self.steps).astype(np.int32))

    def jumped(self, mode: np.ndarray) -> np.ndarray:
        """(n,) bool, bodies of a step of second order which does not serve them: something jumps, or has let go, in what hangs
        together."""
        touching = self.linked.dynamic & (mode == Mode.TOUCHING)
        if not touching.any():
            return self.linked.nobody
        touched = self.linked.drawn_along(self.backend.touch.touching() != 0)
        jumping = touching & (~touched | self._jumps(self._keys()))
        return touching & self.hang_together(jumping) if jumping.any() else self.linked.nobody

    def _keys(self) -> np.ndarray:
        """(k,) of `acting` at the iterate."""
        limited = np.flatnonzero(self.backend.rows.limited())
        pairs = np.concatenate([self.backend.readings.acting_pairs(), np.stack([limited, limited], axis=1)])
        return np.unique(self.backend.pair_law.keys(*pairs.T))

    def _jumps(self, acting: np.ndarray) -> np.ndarray:
        """(n,) bool, bodies with forces that jump, or on which others act at the iterate, keys (k,), than in the last step."""
        jumping = self.backend.steps.jumps() > JUMP
        new = np.setdiff1d(acting, self.acting, assume_unique=True)
        for met in self.backend.pair_law.bodies_of(new):
            jumping[met] = True
        return jumping

    def hang_together(self, bodies: np.ndarray) -> np.ndarray:
        """(n,) bool, all that may move of the islands of bodies (n,) bool, and of what is joined to them."""
        return islands_of(self.backend, np.flatnonzero(self.linked.drawn_along(bodies)))
