"""Fast hits: (sub)steps in which bodies that touched nothing meet others, and come far relative to them in it.

An impact acts from the end of its (sub)step on, and with the attitudes that the bodies have there, so the one in which it
happens has to be short: where bodies come by more than `SHORT` of the smaller one's size, it is taken in pieces, as where a
way is not free (`abd.step.ways`).

Of joined bodies that give everything back it has to be shorter still: what their joints do in it is known to first order only,
and what lies in touch behind the struck one is pushed along until its end.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from abd.backends.answers import NotProven
from abd.energies import Figures
from abd.joints.rows.sizes import half_length
from abd.model import Kind, Model
from abd.potentials.integrators import longest
from abd.step.impacts.restitution import ELASTIC
from abd.step.ways import NotFree

SHORT = 0.2
"""Way of bodies relative to one another in a (sub)step, in sizes of the smaller one, beyond which they meet in a shorter one."""
BRIEF = 0.02
"""The same for elastic pairs (`abd.step.impacts.restitution.ELASTIC`) with a joined body."""


class FastHit(NotFree):
    """A (sub)step in which bodies meet that come far in it: pairs, and the share of it before the piece in which they do."""


class FastHits:
    """Finds them in the scene of a model."""

    def __init__(self, model: Model, jointed: np.ndarray):
        bodies = model.bodies
        self.names, self.dynamic = bodies.names, bodies.kind == Kind.DYNAMIC
        self.sizes = 2.0 * half_length(bodies.mass, bodies.moment)
        self.sizes[~self.dynamic | (self.sizes == 0.0)] = np.inf
        sized = np.isfinite(self.sizes)
        self._smallest, self._largest = self.sizes[sized].min(initial=np.inf), self.sizes[sized].max(initial=0.0)
        self._lightest = bodies.mass[sized].min(initial=np.inf)
        self._prescribed = bool((bodies.kind == Kind.KINEMATIC).any())
        self.material, self.jointed, self.elastic = bodies.material, jointed, model.materials.restitution >= ELASTIC
        some = self.elastic[bodies.material[jointed]].any()
        self._shortest = BRIEF if some else SHORT

    def refuse(
        self, backend, state: Callable[[], tuple[np.ndarray, np.ndarray]], touched: np.ndarray,
        h: float | np.ndarray,
    ) -> None:  # fmt: skip
        """Refuse a (sub)step of h [s], of all or (n,), whose iterate shows some.

        Args:
            state: its beginning, q and qd (n, 12), asked for where they are needed.
            touched: (n,) bool, bodies that touched something in it.

        Raises:
            FastHit: there are some.
        """
        touching = backend.touch.touching() != 0
        met = touching & self.dynamic & ~touched
        if not met.any():
            return
        pairs = np.asarray(backend.touch.candidate_pairs(), dtype=int).reshape(-1, 2)
        i, j = pairs[touching[pairs].all(axis=1) & met[pairs].any(axis=1)].T
        q, qd = state()
        v = qd[:, :3]
        turning = backend.readings.vertex_speeds() - np.linalg.norm(v, axis=1)
        length = np.broadcast_to(h, len(q))[i]
        whole = length * np.linalg.norm(v[i] - v[j], axis=1)
        brief = self.elastic[self.material[i], self.material[j]] & (self.jointed[i] | self.jointed[j])
        share = np.where(brief, BRIEF, SHORT)
        way, short = whole + length * (turning[i] + turning[j]), share * np.minimum(self.sizes[i], self.sizes[j])
        far = way > short
        if not far.any():
            return
        i, j, whole, share = i[far], j[far], whole[far], short[far] / way[far]
        moved = (backend.states.read_positions() - q)[:, :3]
        came = np.minimum(np.linalg.norm(moved[i] - moved[j], axis=1) / np.where(whole > 0.0, whole, np.inf), 1.0)
        raise FastHit(NotProven(np.maximum(came - share, share), np.stack([i, j], axis=1)), self.names, h)

    def possible(self, figures: Figures | None, h: float | np.ndarray) -> bool:
        """Whether bodies may come far relative to one another in a (sub)step of h [s], of all or (n,): by the energy of the
        state, which is known, so that nothing is read where all is slow; `figures` None where it is not."""
        if figures is None or self._prescribed:
            return True
        speed = np.sqrt(2.0 * figures.kinetic / self._lightest) + figures.fastest * self._largest
        return bool(2.0 * longest(h) * speed > self._shortest * self._smallest)
