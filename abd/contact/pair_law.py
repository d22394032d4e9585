"""Activation distance and stiffness of the contact of two bodies, from these bodies only.

Contact of bodies i and j is active below a gap of a, the *activation*. Its force follows one law at every scale,

    f = F phi(gap / a),    kappa_c = F / (a (a + 2 xi)^2)    (F / a for the cubic barrier)

where phi, the slope of the barrier, vanishes at 1 and is unbounded at 0. The activation is the smaller one of the two
bodies, each a fixed fraction of the thinnest extent. F accelerates the reduced mass of the two bodies by a multiple of
a reference acceleration. The reference is the largest of gravity, the acceleration by loads, and that which reverses
the velocity of a body within its size. F does not depend on the step length or on other bodies.

``solver.d_hat`` and ``solver.contact_stiffness``, if given, hold for all pairs. A pair has a smaller activation of its own
(`PairParameters`) if it starts closer, or after an impact.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from abd.contact.pair_rows import places
from abd.model import Kind, Model
from abd.potentials.barrier import FORCE_SCALE
from abd.tables import Table
from cuda_kernels.shared.contact import FORCE_SHARE

D_HAT_SHARE = 0.02
"""Activation of a body relative to its thinnest extent."""


@dataclass(frozen=True)
class PairParameters(Table):
    """Contact parameters of single pairs, sorted by key.

    Attributes:
        key: (k,) int64, ``min n + max`` of the bodies of a pair among n bodies.
        activation: (k,) [m]; home: (k,) activation to which it returns [m].
    """

    key: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    activation: np.ndarray = field(default_factory=lambda: np.zeros(0))
    home: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def places(self, key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the keys (m,), and whether they exist (m,)."""
        return places(self.key, key)


class PairLaw:
    """Contact law of all pairs of a model.

    Attributes:
        d_hat: (n,) activation of every body [m].
        acceleration (n,) [m/s^2], lightness (n,) [1/kg]: reference acceleration and inverse mass, for F.
        given: kappa_c of all pairs, 0 if not given.
        own: parameters of single pairs.
    """

    def __init__(self, model: Model):
        bodies, settings = model.bodies, model.settings
        extents = thinnest_extents(model)
        self.n, self.barrier = len(bodies), settings.barrier
        self.d_hat = activations(model, extents)
        self.given = settings.contact_stiffness or 0.0
        dynamic = (bodies.kind == Kind.DYNAMIC) & (bodies.mass > 0.0)
        self.lightness = np.where(dynamic, 1.0 / np.where(dynamic, bodies.mass, 1.0), 0.0)
        gravity, speed = np.linalg.norm(settings.gravity), np.linalg.norm(bodies.qd[:, :3], axis=1)
        loaded = np.linalg.norm(bodies.force, axis=1) * self.lightness
        # lower bound: stop the residual speed of Newton's method within d_hat
        least = settings.tolerance**2 / self.d_hat
        size = np.where(np.isfinite(extents), extents, 1.0)
        wanted = np.maximum.reduce([np.full(self.n, gravity), loaded, speed**2 / size, least])
        self.acceleration = np.where(dynamic, wanted, 0.0)
        self.own = PairParameters()

    def keys(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """(m,) keys of pairs of bodies."""
        return np.minimum(i, j).astype(np.int64) * self.n + np.maximum(i, j)

    def bodies_of(self, key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(m,), (m,) bodies of keys."""
        return np.divmod(key, self.n)

    def regular(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """(m,) activations [m] without parameters of single pairs: upper bounds of those with parameters."""
        return np.minimum(self.d_hat[i], self.d_hat[j])

    def activation(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """(m,) gaps [m] below which contact of bodies i and j is active."""
        at, own = self.own.places(self.keys(i, j))
        usual = self.regular(i, j)
        return np.where(own, self.own.activation[at], usual) if len(self.own) else usual

    def stiffness(self, i: np.ndarray, j: np.ndarray, a: np.ndarray, xi: np.ndarray) -> np.ndarray:
        """(m,) kappa_c of bodies i and j for activations a and separations xi [m]."""
        return self.force(i, j, xi) / FORCE_SCALE[self.barrier](a, xi)

    def force(self, i: np.ndarray, j: np.ndarray, xi: np.ndarray) -> np.ndarray:
        """(m,) F of bodies i and j [N]."""
        if self.given:
            return self.given * FORCE_SCALE[self.barrier](self.regular(i, j), xi)
        acceleration = np.maximum(self.acceleration[i], self.acceleration[j])
        return FORCE_SHARE * acceleration / (self.lightness[i] + self.lightness[j])


def activations(model: Model, extents: np.ndarray) -> np.ndarray:
    """(n,) activation of every body [m]: d_hat, or a fraction of its thinnest extent (n,).

    Bodies without thickness have the largest activation of the dynamic bodies of their world, which also limits the others.
    """
    given = model.settings.d_hat
    if given is not None:
        return np.full(len(extents), float(given))
    own, world = D_HAT_SHARE * extents, model.bodies.world
    most, moving = np.zeros(world.max(initial=0) + 1), np.isfinite(own) & (model.bodies.kind == Kind.DYNAMIC)
    np.maximum.at(most, world[moving], own[moving])
    return np.minimum(own, np.where(most > 0.0, most, 1e-3 * model.settings.diagonal)[world])


def thinnest_extents(model: Model) -> np.ndarray:
    """(n,) thinnest extent of every body [m], infinite for half-spaces and surfaces without thickness.

    Closed meshes: `Mesh.width` plus twice the radius. Shells, rods and points: twice the radius.
    """
    bodies = model.bodies
    solid = np.array([mesh.width for mesh in model.meshes] + [np.inf])[bodies.mesh]
    thickness = 2.0 * bodies.radius
    return np.where(np.isfinite(solid), solid + thickness, np.where(thickness > 0.0, thickness, np.inf))


def widest_activation(model: Model) -> float:
    """Largest activation of any pair of bodies [m]."""
    return float(activations(model, thinnest_extents(model)).max(initial=0.0))
