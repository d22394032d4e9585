"""Configuration spaces of joints: positions q, velocities v, and their relation to T_CD and the twist of C in D.

A space defines the transform, the motion subspace S (6, k) in axes of C with ``twist = S v``, its rate along a motion,
and the linear maps between v and dq/dt. This module has the base class, the spaces of coordinates, and the reversed
joint; `abd.joints.coordinates.configurations` has the spaces of rotations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property

import numpy as np

from abd.joints.measures.measures import Measure
from abd.joints.measures.motions import product
from abd.joints.measures.slopes import AGREEMENT, COMPLEX_STEP, STENCIL, STEP, is_analytic
from abd.joints.rows.table import value_at
from abd.rotations import adjoint, cross, exp, inverse

WHOLE_TURN = 2.0 * np.pi


class Space(ABC):
    """Positions q (nq,) and velocities v (nv,) of one joint; v is dq/dt by default.

    Attributes:
        num_positions, num_velocities: nq and nv.
        fixed: S in axes of C does not depend on q.
        commuting: S in axes of D does not depend on q either, because the motions commute.
        measures: of the positions, if these are coordinates.
    """

    measures: list[Measure]
    num_positions: int
    num_velocities: int
    fixed: bool = True
    commuting: bool = False

    @abstractmethod
    def transform(self, q: np.ndarray) -> np.ndarray:
        """T_CD (4, 4), the map from coordinates in C to coordinates in D."""

    @abstractmethod
    def subspace(self, q: np.ndarray) -> np.ndarray:
        """S (6, nv) in axes of C."""

    def at(self, T: np.ndarray, last: np.ndarray | None = None) -> np.ndarray:
        """(nq,) configuration of an admissible T_CD from the measures; angles nearest to those of `last`."""
        return value_at(self.measures, T, last)

    @abstractmethod
    def random(self, rng: np.random.Generator) -> np.ndarray:
        """(nq,) random configuration."""

    def bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """dS/dt v (6,) in axes of C, by differences of fourth order unless S is constant."""
        rate = self.to_rate(q) @ v
        speed = np.abs(rate).max(initial=0.0)
        if self.fixed or speed == 0.0:
            return np.zeros(6)
        step = STEP / speed
        return sum(weight * self.subspace(q + place * step * rate) @ v for place, weight in STENCIL) / step

    def to_velocity(self, q: np.ndarray) -> np.ndarray:
        """(nv, nq) Jacobian of v by dq/dt."""
        return np.eye(self.num_positions)

    def to_rate(self, q: np.ndarray) -> np.ndarray:
        """(nq, nv) Jacobian of dq/dt by v."""
        return np.eye(self.num_positions)

    def zero(self) -> np.ndarray:
        """(nq,) configuration of the joint's zero pose, T_CD = 1 except for ellipsoids."""
        return np.zeros(self.num_positions)

    def normalised(self, q: np.ndarray) -> np.ndarray:
        """(nq,) nearest configuration that satisfies the constraint on redundant positions."""
        return q

    def principal(self, q: np.ndarray) -> np.ndarray:
        """(nq,) the preferred configuration with the transform of q."""
        return q

    def local(self, q0: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Exponential coordinates phi (nv,) of q about q0, zero only at q0, and their rates (nv,)."""
        return q - q0, self.to_rate(q) @ v

    def from_local(self, q0: np.ndarray, phi: np.ndarray) -> np.ndarray:
        """(nq,) configuration with coordinates phi (nv,) about q0."""
        return q0 + phi


class Coordinates(Space):
    """Product of elementary motions, ``T_CD = exp(X_1 q_1) exp(X_2 q_2) ...``."""

    def __init__(self, motions: list[np.ndarray], measures: list[Measure]):
        self.motions, self.measures = motions, measures
        self.num_positions = self.num_velocities = len(motions)
        self.rotary = np.array([twist[3:].any() for twist in motions], dtype=bool)
        # The column of a motion is constant if it commutes with all later motions.
        self.fixed = not any((cross(one) @ later).any() for k, one in enumerate(motions) for later in motions[k + 1 :])
        self.commuting = self.fixed

    def transform(self, q: np.ndarray) -> np.ndarray:
        return product(self.motions, q)

    def subspace(self, q: np.ndarray) -> np.ndarray:
        S, tail = np.empty((6, self.num_velocities)), np.eye(6)
        for k in reversed(range(len(self.motions))):
            S[:, k] = tail @ self.motions[k]
            tail = tail @ adjoint(exp(-self.motions[k] * q[k]))
        return S

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Single coordinates and all angles are standard normal, other lengths uniform in [-1/2, 1/2] m."""
        q = rng.standard_normal(self.num_positions)
        if len(q) > 1:
            q[~self.rotary] = rng.random(len(q))[~self.rotary] - 0.5
        return q

    def principal(self, q: np.ndarray) -> np.ndarray:
        """Angles in (-pi, pi], except those of screws."""
        turns = self.rotary & ~np.array([twist[:3].any() for twist in self.motions], dtype=bool)
        return np.where(turns, wrapped(q), q)


class Planar(Coordinates):
    """x, y, theta with velocities in axes of C as in RigidBodyDynamics.jl; S is constant."""

    def __init__(self, motions: list[np.ndarray], measures: list[Measure]):
        super().__init__(motions, measures)
        self.fixed, self.commuting = True, False

    def subspace(self, q: np.ndarray) -> np.ndarray:
        return np.eye(6)[:, [0, 1, 5]]

    def to_velocity(self, q: np.ndarray) -> np.ndarray:
        return self.to_rate(q).T

    def to_rate(self, q: np.ndarray) -> np.ndarray:
        return exp(np.array([0.0, 0.0, 0.0, 0.0, 0.0, q[2]]))[:3, :3]


class Analytic(Space):
    """General smooth transform of coordinates, such as that of an ellipsoid.

    If the transform accepts complex coordinates, S is exact to rounding, by complex steps; otherwise by differences.
    """

    fixed = False

    def __init__(self, function: Callable[[np.ndarray], np.ndarray], measures: list[Measure]):
        self.function, self.measures = function, measures
        self.rotary = np.array([measure.rotary for measure in measures], dtype=bool)
        self.num_positions = self.num_velocities = len(measures)

    def transform(self, q: np.ndarray) -> np.ndarray:
        return np.real(self.function(np.asarray(q, dtype=float)))

    def subspace(self, q: np.ndarray) -> np.ndarray:
        back, directions = inverse(self.transform(q)), np.eye(len(q))
        slope = self._complex_slope if self.takes_complex else self._slope
        return np.array([_vee(back @ slope(q, direction)) for direction in directions]).T

    @cached_property
    def takes_complex(self) -> bool:
        """Whether complex-step derivatives agree with differences."""
        q, direction = np.full(self.num_positions, 0.1), np.ones(self.num_positions)
        return is_analytic(
            lambda: self._complex_slope(q, direction),
            lambda found: np.allclose(found, self._slope(q, direction), rtol=AGREEMENT, atol=AGREEMENT),
        )

    def _complex_slope(self, q: np.ndarray, direction: np.ndarray) -> np.ndarray:
        return np.imag(self.function(q + 1j * COMPLEX_STEP * direction)) / COMPLEX_STEP

    def _slope(self, q: np.ndarray, direction: np.ndarray) -> np.ndarray:
        return sum(weight * self.transform(q + place * STEP * direction) for place, weight in STENCIL) / STEP

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Uniform in [-1, 1], away from the singularities of surfaces."""
        return 2.0 * rng.random(self.num_positions) - 1.0

    def principal(self, q: np.ndarray) -> np.ndarray:
        return np.where(self.rotary, wrapped(q), q)


class Reversed(Space):
    """The joint from child to parent: the same positions and velocities, the inverse transform."""

    def __init__(self, space: Space):
        self.space = space
        self.num_positions, self.num_velocities = space.num_positions, space.num_velocities
        self.fixed = self.commuting = space.commuting
        for name in ("to_velocity", "to_rate", "zero", "normalised", "principal", "local", "from_local"):
            setattr(self, name, getattr(space, name))

    def transform(self, q: np.ndarray) -> np.ndarray:
        return inverse(self.space.transform(q))

    def subspace(self, q: np.ndarray) -> np.ndarray:
        return -adjoint(self.space.transform(q)) @ self.space.subspace(q)

    def at(self, T: np.ndarray, last: np.ndarray | None = None) -> np.ndarray:
        return self.space.at(inverse(T), last)

    def random(self, rng: np.random.Generator) -> np.ndarray:
        return self.space.random(rng)


def wrapped(q: np.ndarray) -> np.ndarray:
    """Angles in (-pi, pi] [rad]."""
    return q - WHOLE_TURN * np.ceil((q - np.pi) / WHOLE_TURN)


def _vee(X: np.ndarray) -> np.ndarray:
    """(6,) twist of a generator (4, 4)."""
    return np.concatenate([X[:3, 3], X[[2, 0, 1], [1, 2, 0]]])
