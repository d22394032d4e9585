"""Rolling and spinning resistance: contact torques against relative rotation, limited by a length times the load.

A pair of materials may have a coefficient ``rolling`` [m] and one ``spinning`` [m], the lengths of MuJoCo's `condim` 6
and of LIGGGHTS's rolling friction. A contact with the normal force lambda resists rotation about tangential axes by at
most ``rolling lambda``, and about its normal by at most ``spinning lambda``.

Each resistance is the friction between a pair of arms (`abd.potentials.friction`). Both bodies carry an arm of length l
with the same direction a. Under the relative rotation theta of a step its ends are displaced by ``u = theta x (l a)``.
With a = n, the normal, u contains the rolling; with a tangent a = t, the tangential part of u contains the spinning.
Friction with the load ``rolling lambda / l`` between the ends, and its negative at the starts of the arms, form the
torque. An arm is a lagged contact with the homogeneous rest coordinates ``(0, l A^-1 a)``, independent of translation.
Resistances are smoothed below the rim speed `eps_v` and stick like friction. l is the radius of a ball with the second
moments of the smaller body, ``l^2 = 5/3 tr(S)/m``; it only determines which speed is static.

A rolling ball of radius r decelerates by ``5/7 g rolling / r``; a spinning ball by ``5/2 g spinning / r^2``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.model import Kind, Model


@dataclass(frozen=True)
class Resistances:
    """Coefficients of all pairs of m materials, and properties of n bodies.

    Attributes:
        mu: (m, m) [-]; rolling, spinning: (m, m) [m].
        material: (n,) of every body; arm: (n,) l [m], infinite for bodies that are not dynamic.
    """

    mu: np.ndarray
    rolling: np.ndarray
    spinning: np.ndarray
    material: np.ndarray
    arm: np.ndarray

    @classmethod
    def of(cls, model: Model) -> Resistances:
        """Resistances of a scene."""
        bodies, materials = model.bodies, model.materials
        arm = np.full(len(bodies), np.inf)
        d = bodies.kind == Kind.DYNAMIC
        arm[d] = np.sqrt(5.0 / 3.0 * bodies.moment[d].sum(axis=1) / bodies.mass[d])
        return cls(materials.mu, materials.rolling, materials.spinning, bodies.material, arm)

    @property
    def any(self) -> bool:
        """Whether any coefficient is positive."""
        return any(bool((table > 0.0).any()) for table in (self.mu, self.rolling, self.spinning))

    def arms(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """(l,) lengths of the arms of pairs [m]."""
        return np.minimum(self.arm[first], self.arm[second])

    def ratios(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """(l, 3) loads of SLIDE, ROLL and SPIN relative to the normal force."""
        a, b = self.material[first], self.material[second]
        length = self.arms(first, second)
        return np.stack([self.mu[a, b], self.rolling[a, b] / length, self.spinning[a, b] / length], axis=1)


def tangents(n: np.ndarray) -> np.ndarray:
    """(l, 3) unit tangents of normals n (l, 3): cross products with the axis of their smallest component."""
    axis = np.eye(3)[np.abs(n).argmin(axis=1)]
    t = np.cross(n, axis)
    return t / np.linalg.norm(t, axis=1)[:, None]
