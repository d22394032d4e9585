"""Restitution: what impacts give back, added to the velocities once a step has converged.

A step is inelastic: at its end, bodies with an impact between them move together. For every pair k of bodies in contact, and
every end of a joint's range that gives back (`abd.step.impacts.limit_impacts`), let P_k be its impulse in the step as a pair of
wrenches, ``P_k . v`` is then its normal velocity times the size of the impulse. A pair *strikes* if it closes faster than
``max(2 |g| h, 2 tolerance)``: what is slower rests.

Who strikes whom is found in rounds (Smith, Kaufman, Vouga, Tamstorf and Grinspun 2012, "Reflections on simultaneous impact"),
from the velocities w = v before the step: all pairs that close at the time, and they alone, are reflected together,

    w+ = w + W sum_k r_k P_k,     r_k >= 0,     P_k . w+ + e_k P_k . w >= 0,     one of both zero,

e_k = 0 for pairs at rest, until nothing closes; where all e_k are 0, all pairs are taken at once. W is the inverse of the mass
matrix of the rigid motions that joints and fixed degrees of freedom allow (`abd.step.impacts.mobility`). So an impact runs
through a row of balls in touch pair by pair, and the last one leaves; a plank that falls flat on two posts strikes both at once.
A round adds no energy if the e_k are equal: it is the inelastic solution of the pairs, and the share e beyond.
With u_k the ``P_k . w`` that the rounds end with, the velocities v' at the end of the step become

    v+ = v' + W sum_k s_k P_k,        P_k . v+ = u_k                 for pairs with an impact, s_k >= -1,
                                      P_k . v+ <= max(0, P_k . v)    for others, s_k >= -1,
                                      P_k . v+ >= 0                  for others, s_k >= 0,

so that what else acts in the step stays. An impact ends in the step in which contact first acts, however little of the momentum
it took: what is left of the gap is not closed. The second line takes back what a compressed contact pushes as it opens, the
third keeps the supports of a body with an impact. The impulses are rigid ones, which excite no strain.

Friction takes part in what is added, with ``mu s_k |P_k|`` at most at the centre of the pair's contacts, on the surface of
the first body, against its slip.
Gravity acts on v for the part of the step before the impact. Energy is never given: sums that would, scale what is added.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sparse

from abd.energies import elastic_energies
from abd.joints.rows.laws import Role
from abd.joints.rows.rigid_rows import RigidRows, follows_pose, rigid_rows
from abd.joints.rows.sizes import half_length
from abd.joints.rows.system import JointSystem
from abd.model import Joint, Kind, Model
from abd.potentials import free_motion
from abd.potentials.sweeps import swept
from abd.rotations import axial
from abd.step.impacts.blocks import Blocks
from abd.step.impacts.impact_friction import friction_of
from abd.step.impacts.impact_pairs import ImpactPairs
from abd.step.impacts.mobility import Mobility
from abd.step.impacts.reflections import Sweep, brought, reflected
from abd.tables import Table

_log = logging.getLogger(__name__)

PUSHES = 0.5
"""Speed with which a contact opens that is taken back, over what gravity gives in a step: less is how weights settle."""
MOST_MET = 2e7
"""Joint rows times pairs that meet joints, at most: how they answer each other is dense."""


@dataclass(frozen=True)
class Step:
    """States and velocities (n, 12) before and after a step, and the twists (n, 6) then and now."""

    before: tuple[np.ndarray, np.ndarray]
    after: tuple[np.ndarray, np.ndarray]
    then: np.ndarray
    now: np.ndarray


@dataclass(frozen=True)
class Impacts(Table):
    """k pairs that may strike in a step.

    Attributes:
        impact_pairs: those.
        opens: (k,) ``P_k . v`` with which their contacts may leave them [J]; closing, left: (k,) that at the beginning and at
            the end of the step.
        least: (k,) speed from which a pair strikes [m/s]; h: (k,) length of the step [s].
    """

    impact_pairs: ImpactPairs
    opens: np.ndarray
    closing: np.ndarray
    left: np.ndarray
    least: np.ndarray
    h: np.ndarray


class Restitution:
    """Impacts of one scene."""

    def __init__(self, model: Model):
        self.model, self.settings = model, model.settings
        self.dynamic = model.bodies.kind == Kind.DYNAMIC
        self.kinematic = model.bodies.kind == Kind.KINEMATIC
        self.reach = 2.0 * half_length(model.bodies.mass, model.bodies.moment)
        self._built_for, self._warned = None, False
        self._has_friction = self.settings.friction_iterations != 0

    def stirred(self, touching: np.ndarray, *velocities: np.ndarray) -> np.ndarray:
        """(n,) bool, bodies of worlds in which any of the bodies (n,) bool moves faster, by one of the velocities (n, 12), than
        what counts as resting."""
        moves = np.zeros(len(touching), dtype=bool)
        for qd in velocities:
            speed = np.linalg.norm(qd[:, :3], axis=1) + self.reach * np.linalg.norm(qd[:, 3:], axis=1)
            moves |= touching & (speed > self.settings.tolerance)
        world = self.model.bodies.world
        return np.isin(world, world[moves])

    def _least(self, impact_pairs: ImpactPairs, lengths: np.ndarray, fresh: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(k,) speeds that gravity gives in steps of `lengths` (n,) [s], and those from which the pairs strike [m/s]: slower ones
        rest, unless they are `fresh` (k,) and give nothing back."""
        fall = lengths[impact_pairs.pairs[:, 0]] * float(np.linalg.norm(self.settings.gravity))
        plastic = fresh & (impact_pairs.restitution == 0.0)
        return fall, np.maximum(np.where(plastic, 0.0, 2.0 * fall), 2.0 * self.settings.tolerance)

    def approach(self, impact_pairs: ImpactPairs, before: tuple[np.ndarray, np.ndarray], h: float | np.ndarray) -> np.ndarray:
        """(k,) how far pairs approach each other in a step of h [s], of all or (n,), with the state and velocities (n, 12)
        `before` it [m]; 0 for those slower than twice the tolerance."""
        speed = -impact_pairs.power(self._twists(*before)) / impact_pairs.size
        lengths = np.broadcast_to(h, len(before[0]))[impact_pairs.pairs[:, 0]]
        return np.where(speed > 2.0 * self.settings.tolerance, speed * lengths, 0.0)

    def rebound(
        self,
        impact_pairs: ImpactPairs,
        before: tuple[np.ndarray, np.ndarray],
        after: tuple[np.ndarray, np.ndarray],
        h: float | np.ndarray,
        fresh: np.ndarray,
        system: JointSystem,
        sweep: Sweep = swept,
    ) -> tuple[np.ndarray, np.ndarray, float] | None:
        """Velocities (n, 12) after the impacts of a step, the bodies that they change (b,), and the work of friction [J]; None
        without impacts.

        Args:
            before, after: states and velocities (n, 12) at the beginning and at the end of the step; h: [s], of all or (n,).
            fresh: (k,) bool, pairs that became active in the step.
            system: rows of the joints at present.
            sweep: as `abd.potentials.sweeps.swept`.
        """
        if not len(impact_pairs.pairs):
            return None
        q, qd = after
        then, now = self._twists(*before), self._twists(q, qd)
        size = impact_pairs.size
        closing, left = impact_pairs.power(then), impact_pairs.power(now)
        lengths, resting = np.broadcast_to(h, len(q)), 2.0 * self.settings.tolerance
        fall, least = self._least(impact_pairs, lengths, fresh)
        impacts_now = closing < -least * size
        opens = np.maximum(closing, 0.0)
        opening = np.where(impact_pairs.is_contact, np.maximum(PUSHES * fall, resting), 0.0)
        stirs = impacts_now | (left - opens > opening * size)
        if not stirs.any():
            return None
        worlds = self.model.bodies.world
        of = worlds[impact_pairs.pairs[:, 0]]
        order = np.argsort(of, kind="stable")
        order = order[np.isin(of[order], of[stirs])]
        impacts = Impacts(impact_pairs, opens, closing, left, least, lengths[impact_pairs.pairs[:, 0]])[order]
        of, stirs, step = of[order], stirs[order], Step(before, after, then, now)
        self._know_rows(system, q)
        # the factor of joints takes in all that it is asked about
        groups = [of == world for world in np.unique(of)] if len(self._held) else [np.ones(len(of), dtype=bool)]
        out, changed, work = qd.copy(), [], 0.0
        for group in groups:
            found = self._rebound_of(impacts[group], stirs[group], step, sweep)
            if found is not None:
                twists, friction = found
                moved = np.flatnonzero((twists != 0.0).any(axis=1))
                out[moved, :3] += twists[moved, :3]
                turned = free_motion.rates(q[moved, 3:].reshape(-1, 3, 3), twists[moved, 3:])
                out[moved, 3:] += turned.reshape(-1, 9)
                changed.append(moved)
                work += friction
        return (out, np.sort(np.concatenate(changed)), work) if changed else None

    def fitted(
        self, bodies: np.ndarray, q: np.ndarray, qd: np.ndarray, system: JointSystem, driven: dict[tuple[int, str], float]
    ) -> np.ndarray | None:
        """Velocities (n, 12) of a state q, qd (n, 12) in which those of bodies (n,) bool fit their joints, by the smallest change
        in the norm of the mass matrix; None where they do not change.

        Implicit Euler leaves the velocities of the chords of a step, which do not: a body that turns by w h about a joint moves
        away from it by half of that, of its speed. `driven`: speeds [m/s or rad/s] of coordinates, by joint and name, that
        drives keep; rotors and other coordinates move freely."""
        self._know_rows(system, q)
        rows = self._rows
        place = {(int(rows.joint[row]), rows.name[row]): int(row) for row in rows.coordinates()}
        moved = np.array([place[key] for key in driven], dtype=int)
        held, slack = self._held[~np.isin(self._held, moved)], self._slack[~np.isin(self._held, moved)]
        held, slack = np.concatenate([held, moved]), np.concatenate([slack, np.zeros(len(moved))])
        if not len(held):
            return None
        speeds = np.concatenate([np.zeros(len(held) - len(moved)), rows.scale[moved] * np.array([*driven.values()])])
        twists, changes, J = self._twists(q, qd).ravel(), np.zeros(6 * len(q)), self._jacobian(q, held)
        for world in np.unique(self.model.bodies.world[bodies]):
            chosen = np.flatnonzero(bodies & (self.model.bodies.world == world))
            mobility = self._mobility(q, np.arange(len(chosen)), np.stack([chosen, chosen], axis=1), J, slack)
            if mobility.jointed:
                changes += mobility.fit(twists, speeds[mobility.reached])
        if not changes.any():
            return None
        twists = changes.reshape(-1, 6)
        turned = free_motion.rates(q[:, 3:].reshape(-1, 3, 3), twists[:, 3:])
        return qd + np.concatenate([twists[:, :3], turned.reshape(-1, 9)], axis=1)

    def _rebound_of(
        self, impacts: Impacts, stirs: np.ndarray, step: Step, sweep: Sweep
    ) -> tuple[np.ndarray, float] | None:
        """Twists (n, 6) that impacts in worlds, those of one behind those of another, add, and the work of friction [J]; None
        where there are too many for it. Of the pairs (k,) bool some strike, or were pushed apart: `stirs`."""
        q, now = step.after[0], step.now.ravel()
        mobility = self._mobility(q, np.flatnonzero(stirs), impacts.impact_pairs.pairs)
        impacts = impacts[mobility.chosen]
        part, left, opens, size = impacts.impact_pairs, impacts.left, impacts.opens, impacts.impact_pairs.size
        P = part.rows(len(q))
        if mobility.rows_met(P) > MOST_MET:
            self._say_left_out(mobility, len(part.pairs))
            return None
        blocks, A = Blocks.of(self.model.bodies.world, part.pairs[:, 0]), mobility.between(P)
        met = self._met(impacts, mobility.jointed)
        target, in_impact = reflected(sweep, A, met, part.restitution, impacts.least, size, blocks)
        law = target, opens, in_impact, size, blocks
        s = brought(sweep, A, left, *law)
        added, friction, driven = mobility.apply(P.T @ s), np.zeros(6 * len(q)), np.zeros(blocks.count)
        moving = self._surface_twists(q)
        pull = friction_of(part, s, now + added + moving, mobility, q, self.model.bodies.radius) if self._has_friction else None
        if pull is not None:
            driven = self._work_of_drives(blocks, pull, now, moving)
            friction = mobility.apply(pull)
            s_friction = brought(sweep, A, left + P @ friction, *law)
            with_friction = mobility.apply(P.T @ s_friction) + friction
            less = self._energies(blocks, q, now + with_friction) <= self._energies(blocks, q, now + added) + driven
            taken, s = blocks.entries(less), np.where(blocks.each(less), s_friction, s)
            added = np.where(taken, with_friction, added)
            pull, friction, driven = np.where(taken, pull, 0.0), np.where(taken, friction, 0.0), np.where(less, driven, 0.0)
        share = blocks.entries(self._within_energy(step, added, part, s, blocks, driven))
        work = 0.0 if pull is None else float(pull @ (now + share * (added - 0.5 * friction)))
        return (share * added).reshape(-1, 6), work

    def _surface_twists(self, q: np.ndarray) -> np.ndarray:
        """(6 n,) twists by which the material of surfaces moves against bodies in states q (n, 12)."""
        v = np.einsum("nij,nj->ni", q[:, 3:].reshape(-1, 3, 3), self.model.bodies.surface_velocity)
        return np.pad(v, ((0, 0), (0, 3))).ravel()

    def _work_of_drives(self, blocks: Blocks, pull: np.ndarray, now: np.ndarray, moving: np.ndarray) -> np.ndarray:
        """(w,) work of surfaces that are `moving` (6 n,), and of kinematic bodies, against impulses of friction (6 n,) [J]."""
        twists = np.where(self.kinematic[:, None], now.reshape(-1, 6), 0.0) + moving.reshape(-1, 6)
        some = (blocks.bodies < blocks.count) & twists.any(axis=1)
        return -blocks.sums_of_bodies(some, np.einsum("nk,nk->n", pull.reshape(-1, 6)[some], twists[some]))

    def _say_left_out(self, system: Mobility, pairs: int) -> None:
        if not self._warned:
            self._warned = True
            _log.warning(
                "impacts among %d joined bodies with %d pairs in contact keep what the step leaves: too many for restitution",
                int(system.joined.sum()), pairs,
            )  # fmt: skip

    def _met(self, impacts: Impacts, jointed: bool) -> np.ndarray:
        """Normal powers (k,) where the pairs met: with the part of what gravity gives in a step that it gave until then."""
        part, closing = impacts.impact_pairs, impacts.closing
        speed = np.zeros(len(closing))
        if not jointed:
            for body, impulse in zip(part.pairs.T, part.impulses.transpose(1, 0, 2), strict=True):
                falls = np.sum(impulse[:, :3] * self.settings.gravity, axis=1)
                speed += np.where(self.dynamic[body], falls * impacts.h, 0.0)
        falls = closing + speed
        waits = np.clip(impacts.left / np.where(falls < 0.0, falls, -1.0), 0.0, 1.0)
        return closing + waits * speed

    def _within_energy(
        self, step: Step, added, part: ImpactPairs, s: np.ndarray, blocks: Blocks, driven: np.ndarray
    ) -> np.ndarray:
        """(w,) fractions of the added twists that give the bodies no energy but the work of prescribed bodies, that of their
        friction being `driven` (w,)."""
        before, after, now = step.before, step.after, step.now
        bodies, some = self.model.bodies, self.dynamic & (blocks.bodies < blocks.count)
        fallen = bodies.mass[some, None] * (after[0] - before[0])[some, :3]
        work = driven + blocks.sums_of_bodies(some, np.sum(fallen * self.settings.gravity, axis=1))
        for side in range(2):
            body = part.pairs[:, side]
            power = np.einsum("ki,ki->k", part.impulses[:, side], now[body])
            work -= blocks.sums(np.where(self.kinematic[body], (1.0 + s) * power, 0.0))
        for state, sign in ((before, 1.0), (after, -1.0)):
            work += sign * blocks.sums_of_bodies(some, elastic_energies(self.model, state[0], some))
        start, end = self._energies(blocks, before[0], step.then.ravel()), self._energies(blocks, after[0], now.ravel())
        most = np.maximum(start + work, end)
        full = self._energies(blocks, after[0], now.ravel() + added)
        # T(now + x added) = end + x (b + x c)
        c = self._energies(blocks, after[0], added)
        b = full - end - c
        root = np.sqrt(np.maximum(b * b + 4.0 * c * (most - end), 0.0))
        share = np.clip((root - b) / np.where(c > 0.0, 2.0 * c, 1.0), 0.0, 1.0)
        return np.where(full <= most, 1.0, share)

    def _energies(self, blocks: Blocks, q: np.ndarray, twists: np.ndarray) -> np.ndarray:
        """(w,) kinetic energies of the rigid motion of the dynamic bodies of blocks [J]."""
        some, bodies = self.dynamic & (blocks.bodies < blocks.count), self.model.bodies
        twists = twists.reshape(-1, 6)[some]
        inertia = free_motion.inertia(q[some, 3:].reshape(-1, 3, 3), bodies.moment[some])
        turning = np.einsum("ni,nij,nj->n", twists[:, 3:], inertia, twists[:, 3:])
        moving = bodies.mass[some] * np.sum(twists[:, :3] ** 2, axis=1)
        return 0.5 * blocks.sums_of_bodies(some, moving + turning)

    def _inertia(self, q: np.ndarray) -> np.ndarray:
        """(n, 3, 3) about the centres of mass, world axes [kg m^2]."""
        return free_motion.inertia(q[:, 3:].reshape(-1, 3, 3), self.model.bodies.moment)

    def _twists(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """(n, 6) velocities and angular velocities, world axes: those with the momenta of qd; prescribed ones as they turn."""
        A, Ad = q[:, 3:].reshape(-1, 3, 3), qd[:, 3:].reshape(-1, 3, 3)
        momentum = free_motion.torque(Ad * self.model.bodies.moment[:, None, :], A)
        w = axial(Ad @ np.linalg.inv(A))
        d = self.dynamic
        w[d] = np.linalg.solve(self._inertia(q)[d], momentum[d, :, None])[:, :, 0]
        return np.concatenate([qd[:, :3], w], axis=1)

    def _know_rows(self, system: JointSystem, q: np.ndarray) -> None:
        """Know the joint rows that hold."""
        if self._built_for is system and not follows_pose(self.model):
            return
        joints = list(self.model.joints)
        self._rows = rows = rigid_rows(replace(self.model, joints=joints), q)
        inertia, locked = _rotors_and_locks(joints, rows)
        held = (rows.held & ~rows.yields & (rows.role != Role.GAP)) | locked | (inertia > 0.0)
        self._held, self._built_for = np.flatnonzero(held), system
        slack = np.divide(rows.scale**2, inertia, out=np.zeros(len(rows)), where=inertia > 0.0)
        self._slack = np.where(locked, 0.0, slack)[self._held]

    def _mobility(
        self, q: np.ndarray, seeds: np.ndarray, pairs: np.ndarray, J: sparse.csr_matrix | None = None,
        slack: np.ndarray | None = None,
    ) -> Mobility:  # fmt: skip
        """Mobility of all bodies connected with the pairs `seeds` by contacts and joints; with other rows J (R, 6 n)
        than those that hold, with their slack (R,), where they are given."""
        J, slack = (self._jacobian(q, self._held), self._slack) if J is None else (J, slack)
        return Mobility.of(self.model.bodies.mass, self._inertia(q), self._rows, J, slack, pairs, seeds)

    def _jacobian(self, q: np.ndarray, rows: np.ndarray) -> sparse.csr_matrix:
        """(R, 6 n) of joint rows (R,) by twists (v; w)."""
        if not len(rows):
            return sparse.csr_matrix((0, 6 * len(q)))
        units = np.tile([1.0 / self._rows.length] * 3 + [1.0] * 3, len(q))
        return (self._rows.jacobian(q)[rows] @ sparse.diags(units)).tocsr()


def _rotors_and_locks(joints: list[Joint], rows: RigidRows) -> tuple[np.ndarray, np.ndarray]:
    """(R,) inertias [kg or kg m^2] of rotors that turn with coordinate rows, and whether (R,) rows are locked coordinates."""
    inertia, locked = np.zeros(len(rows)), np.zeros(len(rows), dtype=bool)
    for row in rows.coordinates():
        joint = joints[rows.joint[row]]
        for one in joint.coordinates if joint.active else ():
            if one.name == rows.name[row]:
                inertia[row], locked[row] = one.armature, one.locked
    return inertia, locked
