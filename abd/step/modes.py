"""By which scheme a step goes, and in which mode every body takes it (`abd.potentials.integrators`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from abd.energies import Figures
from abd.model import Model
from abd.potentials import free_motion
from abd.potentials.integrators import Mode, Scheme, Schemes, longest, scheme
from abd.rotations import axial
from abd.step.lasting import Lasting
from abd.step.linked import Linked

FAST_TURN = 0.5
"""Largest turn h |L| / J_mid [rad] of a jointed body in a step, up to which the step is smooth (`abd.potentials.integrators`)."""
STRAINED = 10.0
"""By how many times its strain the moments of inertia of a body differ from those at rest, at most."""


class Modes:
    """Schemes and modes of the steps of one scene.

    Attributes:
        remembers: (n,) whether the integrator goes on from the forces on every body: 2; 1 where it found them anew in the last
            step, after a jump; 0 where there are none; -1 where they jump. A new array where it changes.
    """

    def __init__(self, model: Model, linked: Linked, lasting: Lasting):
        self.model, self.settings, self.linked, self.lasting = model, model.settings, linked, lasting
        self.remembers = np.zeros(len(model.bodies), dtype=np.int32)
        self._may_whirl = self.settings.integrator == "generalized_alpha" and bool(linked.tumbling.any())
        self._schemes = self._modes = self._last_mode = self._left_by_mode = None  # the last ones

    def rule(self, h: float | np.ndarray, previous_h: float | np.ndarray) -> Scheme | Schemes:
        """The scheme of a step of h [s] after one of `previous_h`, of all or (n,); the same object as long as it is the same."""
        asked, settings = (h, previous_h), self.settings
        if isinstance(h, np.ndarray) or isinstance(previous_h, np.ndarray):
            n = len(self.remembers)
            lengths = np.stack([np.broadcast_to(one, n) for one in asked], axis=1)
            each, of = np.unique(lengths, axis=0, return_inverse=True)
            radius = settings.spectral_radius
            return Schemes(tuple(scheme(settings.integrator, *map(float, one), radius) for one in each), of.ravel())
        if self._schemes is None or self._schemes[0] != asked:
            self._schemes = asked, scheme(settings.integrator, *asked, settings.spectral_radius)
        return self._schemes[1]

    def whirling(
        self, h: float | np.ndarray, known: Figures | None, state: Callable[[], tuple[np.ndarray, np.ndarray]]
    ) -> np.ndarray:
        """(n,) bool, jointed bodies that turn by more than `FAST_TURN` in a step of h [s], of all or (n,), and what is joined to
        them, which take implicit Euler: from the state (places, velocities) (n, 12), whose figures may be known."""
        if not self._may_whirl or (
            known is not None and longest(h) * known.whirl < FAST_TURN * (1.0 - STRAINED * known.orthogonality_error - 1e-9)
        ):
            return self.linked.nobody
        tumbling = self.linked.tumbling
        A, Ad = (one[tumbling, 3:].reshape(-1, 3, 3) for one in state())
        inertia = free_motion.inertia(A, self.model.bodies.moment[tumbling])
        L = np.einsum("nij,nj->ni", inertia, axial(Ad @ np.linalg.inv(A)))
        middle = np.linalg.eigvalsh(inertia)[:, 1]
        whirling = self.linked.nobody.copy()
        whirling[tumbling] = np.broadcast_to(h, len(whirling))[tumbling] * np.linalg.norm(L, axis=1) > FAST_TURN * middle
        return self.linked.drawn_along(whirling)

    def of(self, rule: Scheme | Schemes, struck: np.ndarray, steady: np.ndarray) -> np.ndarray:
        """(n,) `Mode` of every body, `steady` (n,) bool those of the struck ones on which the same acts as before; those that are
        not dynamic count as smooth. The same object as long as it is the same."""
        known, by = self._modes, (struck, steady, self.remembers)
        if known:
            (was_struck, was_steady, remembered), was_asked, mode = known
            if was_struck is struck and was_steady is steady and remembered is self.remembers and was_asked[0] == rule.chord:
                return mode
        asked = rule.chord, *(one.tobytes() for one in by)
        mode = known[2] if known and known[1] == asked else self._find_modes(rule, struck, steady)
        self._modes = by, asked, mode
        return mode

    def _find_modes(self, rule: Scheme | Schemes, struck: np.ndarray, steady: np.ndarray) -> np.ndarray:
        if rule.chord:
            return np.full(len(struck), Mode.SMOOTH)
        smooth = np.where(self.remembers > 0, Mode.SMOOTH, Mode.FRESH)
        dissipative = struck | (self.settings.integrator == "bdf1")
        contact = np.where(steady, Mode.TOUCHING, Mode.DISSIPATIVE)
        return np.where(self.linked.dynamic, np.where(dissipative, contact, smooth), Mode.SMOOTH)

    def made_dissipative(self, mode: np.ndarray, bodies: np.ndarray) -> np.ndarray:
        """(n,) `Mode` of every body where contacts act on some more of them (n,) bool."""
        return np.where(bodies & self.linked.dynamic, Mode.DISSIPATIVE, mode)

    def may_be_struck(self, mode: np.ndarray) -> np.ndarray:
        """(n,) bool, bodies of a smooth step, which a contact that acts on them makes another one."""
        if self.settings.integrator != "generalized_alpha":
            return self.linked.nobody
        return self.linked.dynamic & (mode > Mode.TOUCHING)

    def jump(self, bodies: np.ndarray) -> None:
        """What acts on bodies (indices, or (n,) bool) changes at once: contacts on them do not act as before, and the integrator
        finds the forces on them, and on all that are joined to them, anew; where joints are not for two jumps in steps one after
        the other, which nothing would damp."""
        jumping = np.zeros(len(self.remembers), dtype=bool)
        jumping[bodies] = True
        self.lasting.end(self.linked.drawn_along(jumping))
        known = self.remembers > np.where(self.linked.jointed, 1, 0)
        self.remembers = np.where(self.linked.drawn_along(jumping) & known, -1, self.remembers).astype(np.int32)

    def became(self, mode: np.ndarray) -> None:
        """A step in these modes (n,) has led to a new state."""
        if mode is not self._last_mode or self.remembers is not self._left_by_mode:
            smooth, jumped = self.linked.dynamic & (mode > Mode.TOUCHING), (mode == Mode.FRESH) & (self.remembers < 0)
            left = np.where(smooth, np.where(jumped, 1, 2), 0).astype(np.int32)
            self._last_mode, self._left_by_mode = mode, self.remembers if np.array_equal(left, self.remembers) else left
        self.remembers = self._left_by_mode
