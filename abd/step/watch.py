"""What is looked at between the iterates of a (sub)step's minimisation.

Contacts that act on a body of a smooth step make it another one: it takes implicit Euler. Which bodies these are, iterates
show. A contact that acts under way acts in the end, too, as what it stops does not come back; so the body's inertia becomes
that of implicit Euler at once, and the minimisation goes on from where it is. Its minimum does not depend on where that was.
Joints have laws that follow from the modes of their bodies, and multipliers that iterations change: what is joined is taken
through the step again (`Struck`), so that no others notice. So do bodies that go through a step of second order with contacts
that last, where something strikes them, or what acts on them in the end has jumped (`abd.step.lasting`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abd.potentials.integrators import Mode
from abd.step.ways import looked_at, refuse_unproven

if TYPE_CHECKING:
    from abd.step.step import Stepper


class Struck(Exception):
    """An iterate shows contacts that act on joined bodies of a smooth step, or impacts on bodies that touch something.

    Attributes:
        bodies: (n,) bool, those and what is joined to them, and others of their worlds on which contacts act.
    """

    def __init__(self, bodies: np.ndarray):
        super().__init__()
        self.bodies = bodies


class Watch:
    """Watches one minimisation of a `Stepper` in a step of h [s], of all or (n,).

    Attributes:
        mode: (n,) `abd.potentials.integrators.Mode` of the bodies, a new array where it changes.
    """

    def __init__(self, stepper: Stepper, mode: np.ndarray, h: float | np.ndarray):
        self.stepper, self.backend, self.mode, self.h = stepper, stepper.backend, mode, h
        self._may_be_struck = stepper.modes.may_be_struck(mode)

    def strike(self) -> np.ndarray | None:
        """(islands,) bool, where the inertia of bodies became another one, as contacts act on them; None where nobody's did.

        Raises:
            FastHit: some of them meet others fast.
            Struck: some of them are joined.
        """
        if not self._may_be_struck.any():
            return None
        late = self._may_be_struck & self.stepper.linked.drawn_along(self.backend.touch.touching() != 0)
        if not late.any():
            return None
        islands = self.backend.islands
        changed = np.zeros(islands.count, dtype=bool)
        changed[islands.host[late]] = True
        self.refuse_fast_hits(changed[islands.host])
        self._take_dissipative(late | (changed[islands.host] & (self.mode == Mode.TOUCHING)))
        return changed

    def jump(self) -> np.ndarray | None:
        """(n,) bool, all bodies of islands whose minimum is none of the step: what acts on bodies of second order there has
        jumped, and they take implicit Euler from now on; None without any.

        Raises:
            Struck: some of them are joined.
        """
        late = self.stepper.lasting.jumped(self.mode)
        if not late.any():
            return None
        self._take_dissipative(late)
        return self.stepper.lasting.hang_together(late)

    def _take_dissipative(self, bodies: np.ndarray) -> None:
        """Bodies (n,) bool take implicit Euler from the present iterate on."""
        if (joined := bodies & self.stepper.linked.jointed).any():
            raise Struck(bodies & self.stepper.in_worlds_of(joined))
        self.mode = self.stepper.modes.made_dissipative(self.mode, bodies)
        self._may_be_struck = self._may_be_struck & ~bodies
        self.backend.steps.set_mode(self.mode)
        self.backend.arcs.evaluate()

    def refuse_fast_hits(self, among: np.ndarray | None = None) -> None:
        """Refuse a (sub)step with fast hits (`abd.step.impacts.fast_hits`) of some bodies (n,) bool, of any by default.

        Raises:
            FastHit: there are some.
        """
        stepper = self.stepper
        if stepper.fast_hits.possible(stepper.figures, self.h):
            touched = stepper.touching if among is None else stepper.touching | ~among
            stepper.fast_hits.refuse(self.backend, lambda: (stepper.q, stepper.qd), touched, self.h)

    def look(self, iterates: int) -> None:
        """End a minimisation, after so many iterates, whose last one shows that the step has to be shorter.

        Raises:
            StepFailure: joints have turned too far, or the way is not free (`abd.step.ways.looked_at`).
        """
        self.stepper.rows.refuse_turned(self.stepper.absent)
        if looked_at(iterates):
            refuse_unproven(self.backend.iteration.free_way(self.h), self.stepper.model.bodies.names, self.h)
