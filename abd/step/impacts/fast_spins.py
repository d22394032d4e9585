"""Fast spins: (sub)steps in which bodies turn far on the spot about what they rub on.

Friction acts against the chord of a step (`abd.potentials.friction`). A point of the material that stays in contact while its
body turns by the angle w about the normal moves along an arc, and its chord lies w/2 off the velocity with which the step ends:
friction brakes the spin by cos(w/2) of what it should, and drives it beyond half a turn. (Surfaces that are round roll over
their contacts, which is measured along arcs: `abd.potentials.arc_slip`.) Bodies that turn by more than `FAR` so are taken through
the step in pieces in which they do not, as where a way is not free (`abd.step.ways`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from abd.backends.answers import NotProven
from abd.energies import Figures, spin
from abd.joints.rows.sizes import half_length
from abd.model import Kind, Model
from abd.potentials.integrators import longest
from abd.potentials.rolling import RUB
from abd.step.ways import NotFree

FAR = 1.0
"""Turn in a (sub)step about the normal of a contact [rad] beyond which it is taken in pieces: 0.88 of the brake is left."""
MOST = 16.0
"""Turn in a (sub)step beyond which it would take too many pieces: it is taken as it is, and the turn is told."""
OFF = 1e-3
"""Distance of a contact from the axis, in half lengths of the body, below which it holds no torque worth a piece."""


class FastSpin(NotFree):
    """A (sub)step in which bodies turn far about what they rub on: pairs, and the share of it in which they do not."""


class FastSpins:
    """Finds them in the scene of a model."""

    def __init__(self, model: Model):
        bodies = model.bodies
        self.names, self.dynamic = bodies.names, bodies.kind == Kind.DYNAMIC
        self.least = OFF * half_length(bodies.mass, bodies.moment)

    def refuse(self, backend, state: Callable[[], tuple[np.ndarray, np.ndarray]], h: float | np.ndarray) -> None:
        """Refuse a (sub)step of h [s], of all or (n,), some of whose bodies turn too far about the normals of contacts that are
        frozen.

        Args:
            state: its beginning, q and qd (n, 12), asked for where they are needed.

        Raises:
            FastSpin: there are some.
        """
        touching = self.dynamic & (backend.touch.touching() != 0)
        if not touching.any():
            return
        q, qd = state()
        w = np.broadcast_to(h, len(q))[:, None] * spin(q, qd)
        turned = np.linalg.norm(w, axis=1)
        fast = touching & (turned > FAR) & (turned <= MOST)
        if not fast.any():
            return
        pairs, kind, n, *points, _, _, _ = backend.readings.frozen_friction()
        turn = np.zeros(len(pairs))
        for body, Y in zip(pairs.T, points, strict=True):
            arm = np.einsum("lij,lj->li", q[body, 3:].reshape(-1, 3, 3), Y[:, 1:])
            off = np.linalg.norm(arm - np.sum(arm * n, axis=1)[:, None] * n, axis=1)
            about = np.abs(np.sum(w[body] * n, axis=1))
            turn = np.maximum(turn, np.where((kind == RUB) & fast[body] & (off > self.least[body]), about, 0.0))
        far = turn > FAR
        if far.any():
            raise FastSpin(NotProven(FAR / turn[far], pairs[far]), self.names, h)

    def possible(self, figures: Figures | None, h: float | np.ndarray) -> bool:
        """Whether bodies may turn so far in a (sub)step of h [s], of all or (n,); `figures` of its beginning, None where they are
        not known."""
        return figures is None or longest(h) * figures.fastest > FAR
