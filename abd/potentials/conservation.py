"""Energy and momenta of conservative mechanisms over smooth steps.

Generalized alpha damps what alternates from step to step, and with it slow motions a little: amplitudes decay as
``((1 - rho)/(1 + rho))^3 (w h)^3`` per radian. What a smooth step (`abd.potentials.integrators.Mode`) of a mechanism takes or
gives is known where its forces have a potential V, since joints do no work: ``D = (T + V)_{n+1} - (T + V)_n``. Of all velocities
with the right energy and momenta those are taken that are nearest to the ones of generalized alpha, in the metric of the kinetic
energy (Hughes, Caughey and Liu 1978; Kuhl and Ramm 1996): with u the rigid motions of the mechanism as a whole under which
neither its joints nor V change (`abd.joints.closure.symmetries`), and P the momenta along them,

    v = u + r,    P(u) = M v along u,    r the rest, orthogonal to all u,
    v <- u' + s r,    P(u') = P_n + h (gravity along u),    T(u') + s^2 T(r) + V_{n+1} = (T + V)_n .

The step itself is the minimum that it was: positions, forces and what is remembered of them stay. D is of third order in h, so
that s - 1 is, and the order of the step. Whatever joints hold, rates of joints included, s r and u' keep.

A mechanism that is nearly at rest cannot give back what it got there: s is between ``1/(1 + MOST)`` and ``1 + MOST``, and what
is left of D is `owed`. Where that is more than ``1/FEW`` of the kinetic energy of its relative motion, every step forgets some of
it. With ``1 + MOST <= 1/KEPT`` what stiff parts lose in a mechanism at rest is forgotten long before it could set rounding in
motion: where both meet, 1e-15 of it has grown to 1e-5, and no more is left. What moves forgets nothing, as where it turns round,
and what it owes itself is never forgotten.

A `Mode.FRESH` step, whose momenta go by the forces at its end, takes ``1/2 dq H dq`` of a potential. Of springs, and of how a
joint's forces turn with the bodies, as a pendulum's do, bodies get it back. What stores the strain x by which loads strain bodies
at rest, and their penalties, counts as ``V'(x) dx`` there, x that at the end: its ``1/2 dx V'' dx`` no rigid body has back.

So a first step for which forces are found before (`abd.potentials.beginning`) gives nothing back either, as one that is owed inf.

Spins of single bodies that nothing turns (`abd.joints.closure.own_spins`), as that of a rod about itself between two balls, stay
what they are: with the momenta P_s along them that the step ends with, all of the above is that of the bodies without inertia
about these axes, ``P(u') = P_n - P_s + h (gravity along u)``.

A mechanism, which is all that joints and couplings tie together, gives nothing back, and forgets what it is owed, in a step in
which a contact, limit or rope acts on it, a load, or a row whose forces have no potential (`abd.joints.rows.gains`): what those
take or give is theirs. Nor does it where only some of its bodies begin anew, as on one side of a gear. Mechanisms that vibrate
faster than a step resolves take no part: what fades there, one factor would give to their slow motions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.potentials.free_motion import inertia, rates
from abd.rotations import axial

MOST = 0.05
"""Most that velocities grow in a step beyond what they are."""
KEPT = 0.95
"""Share of what a mechanism nearly at rest is owed that is left after a step."""
FEW = 1e-3
"""Kinetic energy of its relative motion, over what it is owed, below which it is nearly at rest."""
LEAST = 1e-14
"""Share of the kinetic energy below which that of relative motion is rounding."""
NOBODY, ALL = -1, 3
"""No spin of a body is its own; all are."""
SINGULAR = 1e-12
"""Share of a motion's inertia below which what others leave of it is rounding."""
FLAT = 1e-6
"""Share of the largest inertia below which that of a motion is none, in mechanisms with bodies that are left without theirs: such
points may stand on a line."""


@dataclass(frozen=True)
class Moving:
    """Positions p, maps A, velocities v (k, 3) and rates D (k, 3, 3) of the bodies of a mechanism."""

    p: np.ndarray
    A: np.ndarray
    v: np.ndarray
    D: np.ndarray

    def kinetic(self, mass: np.ndarray, moment: np.ndarray) -> float:
        """T [J]."""
        return float(0.5 * np.sum(mass * np.sum(self.v**2, axis=1)) + 0.5 * np.einsum("nk,nik,nik->", moment, self.D, self.D))

    def momenta(self, mass: np.ndarray, moment: np.ndarray, place: np.ndarray) -> np.ndarray:
        """(6,) linear and angular momentum about a place (3,)."""
        P = mass[:, None] * self.v
        spin = np.cross(self.A.transpose(0, 2, 1), self.D.transpose(0, 2, 1))  # of columns
        return np.concatenate([P.sum(axis=0), np.einsum("nk,nki->i", moment, spin) + np.cross(self.p - place, P).sum(axis=0)])

    def centre(self, mass: np.ndarray) -> np.ndarray:
        """(3,) of all masses."""
        return mass @ self.p / mass.sum()

    def inertia(self, mass: np.ndarray, moment: np.ndarray, place: np.ndarray) -> np.ndarray:
        """(6, 6) of the mechanism as a rigid body about a place (3,), by twists (v, w)."""
        x = self.p - place
        I, m, c = np.zeros((6, 6)), mass.sum(), mass @ x
        I[:3, :3] = m * np.eye(3)
        I[3:, :3] = np.cross(np.eye(3), c)
        I[:3, 3:] = I[3:, :3].T
        I[3:, 3:] = inertia(self.A, moment).sum(axis=0)
        I[3:, 3:] += np.einsum("n,ij->ij", mass * np.sum(x * x, axis=1), np.eye(3)) - np.einsum("n,ni,nj->ij", mass, x, x)
        return I


@dataclass(frozen=True)
class Balance:
    """What becomes of a mechanism's velocities: s, and the twist (v, w) about `place` (3,) that is added; what it is owed [J]."""

    factor: float
    twist: np.ndarray
    place: np.ndarray
    owed: float

    def velocities(self, moving: Moving, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """v (k, 3) and D (k, 3, 3) as they become; `own`: (k,) spins that stay."""
        w = self.twist[3:]
        v = self.factor * moving.v + self.twist[:3] + np.cross(w, moving.p - self.place)
        D = self.factor * moving.D + np.cross(w, moving.A.transpose(0, 2, 1)).transpose(0, 2, 1)
        some = np.flatnonzero((own >= 0) & (own < ALL))
        A = moving.A[some]
        e = A[np.arange(len(some)), :, own[some]]
        e = e / np.linalg.norm(e, axis=1, keepdims=True)
        missing = np.sum(e * ((1.0 - self.factor) * axial(moving.D[some] @ np.linalg.inv(A)) - w), axis=1)
        D[some] += rates(A, missing[:, None] * e)
        return v, np.where((own == ALL)[:, None, None], moving.D, D)


def balance(
    mass: np.ndarray, moment: np.ndarray, own: np.ndarray, before: Moving, after: Moving, gained: float, twists: np.ndarray,
    free: bool, gravity: np.ndarray, h: float, owed: float | None,
) -> Balance:  # fmt: skip
    """What a step of h [s] from one state to another leaves to correct.

    Args:
        mass: (k,) [kg]; moment: (k, 3) [kg m^2] of its bodies; own: (k,) their spins that nothing turns.
        gained: D [J].
        twists: (s, 6) motions (v, w) about the origin under which nothing changes; `free`: all, about the centre of mass.
        gravity: (3,) [m/s^2]; owed: from steps before [J], None after a `Mode.FRESH` step, whose momenta stay.
    """
    place, then = before.p[0], before.p[0]
    if free:
        place, then = after.centre(mass), before.centre(mass)
    else:
        twists = np.concatenate([twists[:, :3] + np.cross(twists[:, 3:], place), twists[:, 3:]], axis=1)
    whole, moment = moment, apart(moment, own)
    spins = twists @ after.momenta(np.zeros_like(mass), whole - moment, place)
    had = twists @ before.momenta(mass, whole, then) - spins + h * mass.sum() * twists[:, :3] @ gravity
    has = twists @ after.momenta(mass, moment, place)
    if owed is None:
        had, owed = has, 0.0
    K = twists @ after.inertia(mass, moment, place) @ twists.T
    turns = twists[:, 3:].any(axis=1)
    largest = np.array([K.diagonal()[turns == one].max() for one in turns])
    inverse = _inverse(K, FLAT * largest if (own == ALL).any() else np.zeros(len(K)))
    y, wanted = inverse @ has, inverse @ had
    kinetic, whole = after.kinetic(mass, moment), 0.5 * has @ y
    rest = kinetic - whole
    missing = whole - 0.5 * had @ wanted - gained + owed
    factor = 1.0
    if rest > LEAST * kinetic:
        factor = np.clip(np.sqrt(max(1.0 + missing / rest, 0.0)), 1.0 / (1.0 + MOST), 1.0 + MOST)
    left = missing - (factor**2 - 1.0) * rest
    kept = KEPT if left * FEW > rest else 1.0
    return Balance(float(factor), (wanted - factor * y) @ twists, place, float(kept * left))


def apart(moment: np.ndarray, own: np.ndarray) -> np.ndarray:
    """(k, 3) moments s of bodies (k, 3) without their own spins (k,): about such an axis their inertia is nothing, about the
    others what it is."""
    out, some = moment.copy(), np.flatnonzero((own >= 0) & (own < ALL))
    k = own[some]
    i, j = (k + 1) % 3, (k + 2) % 3
    s_i, s_j = moment[some, i], moment[some, j]
    out[some, k] += 0.5 * (s_i + s_j)
    out[some, i], out[some, j] = 0.5 * (s_i - s_j), 0.5 * (s_j - s_i)
    out[own == ALL] = 0.0
    return out


def _inverse(K: np.ndarray, least: np.ndarray) -> np.ndarray:
    """(s, s) inverse of the inertia of motions, by a Cholesky factor; without those that others leave nothing of, or less than
    `least` (s,)."""
    s = len(K)
    L, kept = np.zeros((s, s)), np.zeros(s, dtype=bool)
    for i in range(s):
        for j in range(i):
            L[i, j] = (K[i, j] - L[i, :j] @ L[j, :j]) / L[j, j] if kept[j] else 0.0
        pivot = K[i, i] - L[i, :i] @ L[i, :i]
        kept[i] = pivot > max(SINGULAR * K[i, i], least[i])
        L[i, i] = np.sqrt(pivot) if kept[i] else 1.0
        if not kept[i]:
            L[i, :i] = 0.0
    half = np.linalg.inv(L)
    half[~kept] = 0.0
    half[:, ~kept] = 0.0
    return half.T @ half
