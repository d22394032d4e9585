"""Pairs of bodies with possible impacts, and the impulses of their contacts in a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sparse

from abd.contact.forces import Pressing
from abd.joint_list import JointList
from abd.joints.rows import laws
from abd.joints.rows.forces import Applied
from abd.joints.rows.system import JointMemory, JointSystem
from abd.joints.rows.table import by_twists, linearize
from abd.model import Kind, Model
from abd.tables import Table


@dataclass(frozen=True)
class ImpulseRows(Table):
    """R impulses that a factor each multiplies.

    Attributes:
        bodies: (R, 2); impulses: (R, 2, 6) on them: impulse [N s] and its moment about the centre of mass [N m s], world axes.
    """

    bodies: np.ndarray
    impulses: np.ndarray

    def powers(self, twists: np.ndarray) -> np.ndarray:
        """Return (R,) powers of the impulses [J] with twists (n, 6)."""
        return np.einsum("kbi,kbi->k", self.impulses, twists[self.bodies])

    def totals(self, factors: np.ndarray, n: int) -> np.ndarray:
        """Return (n, 6) sums of the impulses times factors (R,) by body."""
        out = np.zeros((n, 6))
        np.add.at(out, self.bodies, factors[:, None, None] * self.impulses)
        return out

    def matrix(self, n: int) -> sparse.csr_matrix:
        """Return the impulses as rows (R, 6 n)."""
        columns, starts = 6 * self.bodies[:, :, None] + np.arange(6), np.arange(0, 12 * len(self) + 1, 12)
        return sparse.csr_matrix((self.impulses.ravel(), columns.ravel(), starts), shape=(len(self), 6 * n))


@dataclass(frozen=True)
class ImpactPairs(Table):
    """k pairs of bodies with the impulses of their contacts: of single points, or of patches of points.

    Attributes:
        pairs: (k, 2) bodies i, j.
        impulses: (k, 2, 6) on i and j: impulse [N s] and its moment about the centre of mass [N m s], world axes.
        points: (k, 2, 3) means of the contact points on the surfaces of i and j, weighted by the normal impulses [m].
        place: (k, 3) place of a patch [m]; every contact point of two bodies is in the nearest one.
        friction: (k, 3) impulse of friction on i in the step [N s].
        size: (k,) sums of the normal impulses of the points [N s]; a power over its size is a mean speed [m/s].
        restitution, mu: (k,) of the pairs.
        row: (k,) row of a joint limit or rope, -1 for contacts of two bodies.
    """

    pairs: np.ndarray
    impulses: np.ndarray
    points: np.ndarray
    place: np.ndarray
    friction: np.ndarray
    size: np.ndarray
    restitution: np.ndarray
    mu: np.ndarray
    row: np.ndarray

    @property
    def is_contact(self) -> np.ndarray:
        """(k,) bool, contacts of two bodies."""
        return self.row < 0

    @classmethod
    def of_contacts(cls, model: Model, points: Pressing, h: float | np.ndarray) -> ImpactPairs:
        """Create a pair for every contact point at the end of a step of h [s], scalar or (n,). Their friction is 0."""
        wrenches = [np.concatenate(one, axis=1) for one in ((points.force, points.torque_i), (-points.force, points.torque_j))]
        lengths = np.broadcast_to(h, len(model.bodies))[points.pair[:, 0]]
        impulses = lengths[:, None, None] * np.stack(wrenches, axis=1)
        half = 0.5 * (points.gap + model.settings.minimum_separation)[:, None] * points.normal
        places, size = np.stack([points.point + half, points.point - half], axis=1), lengths * points.load
        of, materials = tuple(model.bodies.material[points.pair].T), model.materials
        of_materials = materials.restitution[of], materials.mu[of] * (model.settings.friction_iterations != 0)
        row, zero = np.full(len(size), -1), np.zeros((len(size), 3))
        return cls(points.pair, impulses, places, points.point, zero, size, *of_materials, row)

    def summed(self, patch: np.ndarray, first: np.ndarray) -> ImpactPairs:
        """Return m pairs with the sums of the impulses of patches, by the patch (k,) of every pair; first: (m,) pairs at their
        places."""
        order = np.argsort(patch, kind="stable")
        starts = np.searchsorted(patch[order], np.arange(len(first)))

        def sums(values: np.ndarray) -> np.ndarray:
            return np.add.reduceat(values[order], starts, axis=0) if len(first) else values

        size = sums(self.size)
        points = sums(self.size[:, None, None] * self.points) / size[:, None, None]
        return replace(self[first], impulses=sums(self.impulses), points=points, size=size)

    @classmethod
    def of_limits(
        cls, model: Model, system: JointSystem, memory: JointMemory, applied: Applied, q: np.ndarray, h: float | np.ndarray
    ) -> ImpactPairs:
        """Create pairs from the limits and ropes with a force in the last step, of h [s], scalar or (n,), that led to q (n, 12).

        A limit of a coordinate x with the force f [N or N m] gives the joint's two bodies the impulse ``P = f h dx/dX``, X their
        twists. ``P . v`` is then the rate of x times f h. The joint's length converts rates of angles to speeds."""
        rows, a = system.hard_limits, system.row_laws
        measure = system.rows.term_measure[system.rows.starts[rows]]
        _, slope, _ = laws.evaluate(applied.law[rows], applied.p[rows], memory.reference[measure])
        impulse = -slope / applied.ch2[rows] * system.of_rows(h)[rows]
        parent, child = system.table.parent[measure], system.table.child[measure]
        # a pair with the world is one of the child with itself, without impulse on the second body
        parent = np.where(parent < 0, child, parent)
        mobile = (model.bodies.kind[np.stack([parent, child])] == Kind.DYNAMIC).any(axis=0)
        has_impulse = (a.sign[rows] * impulse > 0.0) & mobile
        rows, measure, impulse, parent, child = (one[has_impulse] for one in (rows, measure, impulse, parent, child))
        _, by_child, by_parent = (one[measure] for one in linearize(system.table, q, memory.reference))
        twists = [by_twists(g, q, body) for g, body in ((by_child, child), (by_parent, parent))]
        length = np.where(a.rotary[rows], JointList.of(model.joints).column("length")[a.joint[rows]], 1.0)
        impulses, zero = impulse[:, None, None] * np.stack(twists, axis=1), np.zeros((len(rows), 3))
        pairs, size = np.stack([child, parent], axis=1), np.abs(impulse) / length
        points, mu = np.zeros((len(rows), 2, 3)), np.zeros(len(rows))
        return cls(pairs, impulses, points, zero, zero, size, a.restitution[rows], mu, rows)

    @property
    def distances(self) -> np.ndarray:
        """(k,) between the contact points on i and j [m]."""
        return np.linalg.norm(self.points[:, 0] - self.points[:, 1], axis=1)

    @property
    def rows(self) -> ImpulseRows:
        """The impulses P_k."""
        return ImpulseRows(self.pairs, self.impulses)

    def power(self, twists: np.ndarray) -> np.ndarray:
        """Return (k,) powers ``P_k . v`` [J] of twists (n, 6)."""
        return self.rows.powers(twists)


@dataclass(frozen=True)
class Reactions(Table):
    """Impulses with which joints react to the impacts of a step.

    Attributes:
        joint: (m,) joints; child: (m, 6) impulse [N s] and its moment about the centre of mass [N m s] on their children.
    """

    joint: np.ndarray
    child: np.ndarray


@dataclass(frozen=True)
class Rebound:
    """Result of the impacts of a step.

    Attributes:
        velocity: (n, 12) after them; friction_work, drive_work: of friction and of drives [J]; rotor_energy: change of the energy
            of rotors [J].
        pairs: k contacts and joint limits, with the added friction; factor: (k,) impulse with the impact over that of the step.
        reactions: functions that compute the impulses of joints, of some worlds each.
    """

    velocity: np.ndarray
    friction_work: float
    drive_work: float
    pairs: ImpactPairs
    factor: np.ndarray
    reactions: list[Callable[[], Reactions]]
    rotor_energy: float = 0.0
