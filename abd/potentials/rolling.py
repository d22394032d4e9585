"""Rolling and spinning resistance: torques that contacts resist relative turning with, limited by a length times their load.

A pair of materials may have a coefficient ``rolling`` [m] and one ``spinning`` [m], the lengths of MuJoCo's `condim` 6 and of
LIGGGHTS's rolling friction. A contact with the normal force lambda resists turning about the axes of its tangent plane by
``rolling lambda`` at most, about its normal by ``spinning lambda``.

Each is the friction of a pair of arms (`abd.potentials.friction`). Let both bodies carry an arm of the length l that points the
same way a. In a step in which they turn by theta against one another its ends part by ``u = theta x (l a)``. With a = n,
the normal, u has the turning about the tangent plane, with a tangent a = t the part of u in the tangent plane has that about
n. Friction with the load ``rolling lambda / l`` between the ends, and the negative of it at the beginnings, is the torque.
So an arm is a lagged contact with the homogeneous rest coordinates ``(0, l A^-1 a)``, which the translation of a body does not
move; and resistances are smoothed below the rim speed `eps_v` and stick as friction does. l is the radius of a ball with the
second moments of the smaller of the two bodies, ``l^2 = 5/3 tr(S)/m``: it sets what speed counts as rest, and nothing else.

A ball of radius r that rolls slows down by ``5/7 g rolling / r``; one that spins on its spot by ``5/2 g spinning / r^2``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.model import Kind, Model

SLIDE, ROLL, SPIN = range(3)
"""What a lagged contact resists; the numbering of the kernels."""


@dataclass(frozen=True)
class Resistances:
    """Of all pairs of m materials, and n bodies.

    Attributes:
        mu: (m, m) [-]; rolling, spinning: (m, m) [m].
        material: (n,) of every body; arm: (n,) l [m], infinite for bodies that forces do not move.
    """

    mu: np.ndarray
    rolling: np.ndarray
    spinning: np.ndarray
    material: np.ndarray
    arm: np.ndarray

    @classmethod
    def of(cls, model: Model) -> Resistances:
        """Of a scene."""
        bodies, materials = model.bodies, model.materials
        arm = np.full(len(bodies), np.inf)
        d = bodies.kind == Kind.DYNAMIC
        arm[d] = np.sqrt(5.0 / 3.0 * bodies.moment[d].sum(axis=1) / bodies.mass[d])
        return cls(materials.mu, materials.rolling, materials.spinning, bodies.material, arm)

    @property
    def any(self) -> bool:
        """Whether any pair of materials resists."""
        return any(bool((table > 0.0).any()) for table in (self.mu, self.rolling, self.spinning))

    def arms(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """(l,) lengths of the arms of pairs [m]."""
        return np.minimum(self.arm[first], self.arm[second])

    def shares(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """(l, 3) loads of SLIDE, ROLL and SPIN over the normal force."""
        a, b = self.material[first], self.material[second]
        length = self.arms(first, second)
        return np.stack([self.mu[a, b], self.rolling[a, b] / length, self.spinning[a, b] / length], axis=1)


def tangents(n: np.ndarray) -> np.ndarray:
    """(l, 3) unit vectors at right angles to the normals n (l, 3): with the axis that is the farthest from each."""
    axis = np.eye(3)[np.abs(n).argmin(axis=1)]
    t = np.cross(n, axis)
    return t / np.linalg.norm(t, axis=1)[:, None]
