"""Restitution of impacts, added to the velocities once a step has converged (docs/theory.md).

A step is inelastic: at its end, bodies with an impact between them move together. For every patch k of the contact of two bodies
(`abd.step.impacts.patches`), every joint limit and taut rope (`ImpactPairs.of_limits`), P_k is its impulse in the step as a pair
of wrenches; ``P_k . v`` is its normal velocity times the size of the impulse. A pair has an *impact* if it closes faster than
``max(2 |g| h, 2 tolerance)``, without restitution and active since this step than ``2 tolerance``; slower pairs are at rest.

Passes of reflections find the impacts (Smith, Kaufman, Vouga, Tamstorf and Grinspun 2012, "Reflections on simultaneous impact").
They start from the velocities w = v before the step. Each pass reflects the closing pairs together,

    w+ = w + W sum_k r_k P_k,     r_k >= 0,     P_k . w+ + e_k P_k . w >= 0,     one of both zero,

until none closes; pairs at rest may close as before, ``P_k . w+ >= min(0, P_k . v)``. Where all e_k are 0, one pass takes all
pairs. W is the inverse mass matrix of the rigid motions that joints, and drives and brakes without effort limit, allow
(`abd.step.impacts.mobility`). Compliant rows are constraints if the step does not resolve their vibration. With u_k the
``P_k . w`` after the last pass, the velocities v' at the end of the step become

    v+ = v' + W sum_k s_k P_k,        P_k . v+ = u_k                 for pairs with an impact, s_k >= -1,
                                      P_k . v+ <= max(0, P_k . v)    for others, s_k >= -1,
                                      P_k . v+ >= min(0, P_k . v)    for others, s_k >= 0.

The second line removes the velocity with which a compressed contact opens, the third keeps the supports of a body with an impact,
but permits the slow closing of facets of a body that rolls. Contacts that graze, and those that joints and drives hold, have no
impact (`abd.step.impacts.grazing`).

Friction with the added impulses is at most ``mu (1 + s_k) |P_k|`` with that of the step. Other forces act on v for the part of
the step before the impact: they change the velocities by ``v' - v - W I``, with the impulses I of contacts and their friction in
the step. The added twists of connected bodies are scaled where they would increase their energy by more than the work of drives.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sparse

from abd.energies import elastic_energies
from abd.joint_list import JointList
from abd.joints.rows.laws import Role
from abd.joints.rows.rigid_rows import follows_pose, rigid_rows
from abd.joints.rows.sizes import half_length
from abd.joints.rows.springs import resolved
from abd.joints.rows.system import JointSystem
from abd.model import Kind, Model
from abd.potentials import free_motion
from abd.rotations import axial
from abd.step.impacts.grazing import grazing
from abd.step.impacts.impact_friction import ImpactFriction
from abd.step.impacts.impact_pairs import ImpactPairs, ImpulseRows, Reactions, Rebound
from abd.step.impacts.mobility import Mobility
from abd.step.impacts.reflections import Blocks, Sweep, reflect, solve_factors
from abd.tables import Table

_log = logging.getLogger(__name__)

JUMP = 4.0
"""Change of a prescribed velocity, over that in half of the step before, above which it jumps; constant accelerations have 2."""
OPENING = 0.5
"""Opening speed above which it is removed, over the speed that gravity gives in a step: weights settle with less."""
NEGLIGIBLE = 1e-3
"""Largest change of a closing speed by other forces, relative to it, without effect: Newton's method leaves such residuals."""
HELD = 1e-9
"""Mobility of a contact in its direction, over that without joints, below which joints and drives hold it."""
LARGEST_COUPLING = 2e7
"""Largest number of entries of a dense matrix of impulses on joined bodies."""


@dataclass(frozen=True)
class Step:
    """States and velocities (n, 12) before and after a step of lengths (n,) [s]; then, now: (n, 6) twists before and after it.

    changes: (n, 6) those of prescribed bodies whose velocity jumps in the step: new contacts meet these with their final twists.
    """

    before: tuple[np.ndarray, np.ndarray]
    after: tuple[np.ndarray, np.ndarray]
    then: np.ndarray
    now: np.ndarray
    changes: np.ndarray
    length: np.ndarray


@dataclass(frozen=True)
class Impacts(Table):
    """k pairs with possible impacts in a step.

    Attributes:
        opens: (k,) largest ``P_k . v`` with which contacts may open [J]; closing, left: (k,) ``P_k . v`` at the beginning and at
            the end of the step.
        least: (k,) smallest closing speed of an impact [m/s]; fresh: (k,) bool, pairs that became active in the step.
        is_seed: (k,) bool, pairs with an impact or pushed apart.
    """

    impact_pairs: ImpactPairs
    opens: np.ndarray
    closing: np.ndarray
    left: np.ndarray
    least: np.ndarray
    fresh: np.ndarray
    is_seed: np.ndarray


class Restitution:
    """Impacts of one scene."""

    def __init__(self, model: Model):
        self.model, self.settings = model, model.settings
        self.dynamic = model.bodies.kind == Kind.DYNAMIC
        self.kinematic = model.bodies.kind == Kind.KINEMATIC
        self.turns = np.sort(model.bodies.moment, axis=1)[:, 1] > 0.0  # not points and rods, whose rotations are fixed
        self.reach = 2.0 * half_length(model.bodies.mass, model.bodies.moment)
        self._built_for, self._warned = None, False

    def speeds(self, qd: np.ndarray) -> np.ndarray:
        """Return (n,) the largest speed of a point of each body [m/s] with velocities (n, 12)."""
        return np.linalg.norm(qd[:, :3], axis=1) + self.reach * np.linalg.norm(qd[:, 3:], axis=1)

    def step(
        self, before: tuple[np.ndarray, np.ndarray], after: tuple[np.ndarray, np.ndarray], usual: np.ndarray,
        h: float | np.ndarray,
    ) -> Step:  # fmt: skip
        """Return the step of h [s], scalar or (n,), between states and velocities (n, 12) `before` and `after`.

        usual: (n, 12) change of the velocities of kinematic bodies in half of the step before."""
        least = np.maximum(JUMP * self.speeds(usual), 2.0 * h * float(np.linalg.norm(self.settings.gravity)))
        jumps = self.kinematic & (self.speeds(after[1] - before[1]) > least)
        then, now = self.twists(*before), self.twists(*after)
        changes = np.where(jumps[:, None], now - then, 0.0)
        return Step(before, after, then, now, changes, np.broadcast_to(h, len(jumps)))

    def impacts(self, impact_pairs: ImpactPairs, step: Step, h: float | np.ndarray, fresh: np.ndarray) -> Impacts:
        """Return the possible impacts of a step of h [s], scalar or (n,); fresh: (k,) bool, pairs that became active in it."""
        size, fall, least = impact_pairs.size, self._fall(impact_pairs, h), self.least(impact_pairs, h, fresh)
        closing, left = impact_pairs.power(step.then), impact_pairs.power(step.now)
        closing += np.where(fresh, impact_pairs.power(step.changes), 0.0)
        opening = np.where(impact_pairs.is_contact, np.maximum(OPENING * fall, 2.0 * self.settings.tolerance), 0.0)
        opens = np.maximum(closing, 0.0)
        speeds = np.maximum(self.speeds(step.before[1]), self.speeds(step.after[1]))[impact_pairs.pairs].max(axis=1)
        is_seed = (speeds > self.settings.tolerance) & ((closing < -least * size) | (left - opens > opening * size))
        return Impacts(impact_pairs, opens, closing, left, least, fresh, is_seed)

    def least(self, pairs: ImpactPairs, h: float | np.ndarray, fresh: np.ndarray) -> np.ndarray:
        """Return (k,) smallest closing speeds of an impact [m/s] in a step of h [s], scalar or (n,); fresh: as in `Impacts`."""
        plastic = fresh & (pairs.restitution == 0.0)
        return np.maximum(np.where(plastic, 0.0, 2.0 * self._fall(pairs, h)), 2.0 * self.settings.tolerance)

    def _fall(self, pairs: ImpactPairs, h: float | np.ndarray) -> np.ndarray:
        """Return (k,) the speed that gravity gives to pairs in a step of h [s], scalar or (n,)."""
        lengths = np.broadcast_to(h, len(self.dynamic))[pairs.pairs[:, 0]]
        return lengths * float(np.linalg.norm(self.settings.gravity))

    def rebound(self, impacts: Impacts, step: Step, system: JointSystem, sweep: Sweep) -> Rebound | None:
        """Return the velocities after the impacts of a step, and their impulses; None if joints are too many for impacts.

        sweep: as `abd.potentials.sweeps.swept`."""
        q, qd = step.after
        of = self.model.bodies.world[impacts.impact_pairs.pairs[:, 0]]
        order = np.argsort(of, kind="stable")
        order = order[np.isin(of[order], of[impacts.is_seed])]
        impacts, of = impacts[order], of[order]
        self._update_rows(system, q)
        # the factor of joints must cover all connected pairs, hence one world at a time with joints
        groups = [of == world for world in np.unique(of)] if len(self._constraints) else [np.ones(len(of), dtype=bool)]
        J = self._jacobian(q, self._constraints)
        found = [one for group in groups if (one := self._rebound_of(impacts[group], step, sweep, J)) is not None]
        if not found:
            return None
        twists, work, pairs, factor, reactions = zip(*found, strict=True)
        velocity, work = qd + _rates(q, sum(twists)), np.sum(work, axis=0).tolist()
        return Rebound(velocity, *work, ImpactPairs.joined(*pairs), np.concatenate(factor), list(reactions))

    def fitted(
        self, bodies: np.ndarray, q: np.ndarray, qd: np.ndarray, system: JointSystem, driven: dict[tuple[int, str], float],
        compliant: np.ndarray, rates: np.ndarray,
    ) -> tuple[np.ndarray, float, list[Callable[[], Reactions]]]:  # fmt: skip
        """Return velocities (n, 12) with those of bodies (n,) bool fitted to their joints, the work of drives [J], and functions
        that compute the reactions of joints.

        The change is the smallest one in the norm of the mass matrix. `driven`: speeds [m/s or rad/s] of driven coordinates, by
        joint and name; `compliant`: (R,) bool, compliant rows with the speeds `rates` (R,). Other coordinates and compliant rows
        move freely, and so do rotors."""
        self._update_rows(system, q)
        rows = self._rows
        place = {(int(rows.joint[row]), rows.name[row]): int(row) for row in rows.coordinates()}
        moved = np.array([place[key] for key in driven], dtype=int)
        keep = compliant[system.compliant]
        given = np.append(np.flatnonzero(rows.held & rows.yields)[keep], moved)
        others = ~(self._driven | np.isin(self._constraints, given))
        held, slack = np.append(self._constraints[others], given), np.append(self._slack[others], np.zeros(len(given)))
        if not len(held):
            return qd, 0.0, []
        known = rows.scale[given] * np.array([*rates[system.compliant][keep], *driven.values()])
        speeds = np.append(np.zeros(len(held) - len(given)), known)
        twists, changes, J = self.twists(q, qd), np.zeros((len(q), 6)), self._jacobian(q, held)
        work, reactions = 0.0, []
        for world in np.unique(self.model.bodies.world[bodies]):
            chosen = np.flatnonzero(bodies & (self.model.bodies.world == world))
            pairs, seeds = np.stack([chosen, chosen], axis=1), np.arange(len(chosen))
            mobility = Mobility.of(self.model.bodies, q, rows, J, slack, pairs, seeds)
            if mobility.factor is not None:
                impulses = mobility.fit(twists, speeds[mobility.reached])
                change = mobility.by_joints(impulses)
                is_driven = np.isin(held[mobility.reached], moved)
                work += float(impulses[is_driven] @ mobility.rates(twists + 0.5 * change)[is_driven])
                changes += change
                reactions.append(functools.partial(self._reactions, mobility, held[mobility.reached], impulses))
        return qd + _rates(q, changes), work, reactions

    def _rebound_of(
        self, impacts: Impacts, step: Step, sweep: Sweep, J: sparse.csr_matrix
    ) -> tuple[np.ndarray, tuple[float, float], ImpactPairs, np.ndarray, Callable[[], Reactions]] | None:
        """Return the twists (n, 6) that impacts of sorted worlds add, the work of friction and of drives [J], and pairs,
        factors and joint impulses as in `Rebound`; None if they are too many. J: (R, 6 n) of the constraints."""
        q, now, n = step.after[0], step.now, len(step.now)
        pairs, seeds = impacts.impact_pairs.pairs, np.flatnonzero(impacts.is_seed)
        mobility = Mobility.of(self.model.bodies, q, self._rows, J, self._slack, pairs, seeds)
        impacts = impacts[mobility.chosen]
        part, opens, size, count = impacts.impact_pairs, impacts.opens, impacts.impact_pairs.size, len(impacts)
        surface = np.einsum("nij,nj->ni", q[:, 3:].reshape(-1, 3, 3), self.model.bodies.surface_velocity)
        normals, moving = part.rows, np.pad(surface, ((0, 0), (0, 3)))  # twists of the surfaces relative to the bodies
        friction = ImpactFriction.of(part, q, step.then + moving, step.changes, impacts.fresh)
        rows = ImpulseRows.joined(normals, friction.rows)
        if mobility.coupling_size(rows) > LARGEST_COUPLING:
            if not self._warned:
                self._warned = True
                _log.warning(
                    "impacts of %d jointed bodies with %d contact pairs are inelastic: the system is too large for restitution",
                    int(mobility.joined.sum()), count,
                )  # fmt: skip
            return None
        blocks, A_all = Blocks.of(mobility.of_pairs), mobility.pair_matrix(rows)
        of_step = rows.totals(np.append(np.ones(count), friction.cones.spent), n)
        if (ineffective := self._ineffective(impacts, mobility, A_all.diagonal()[:count], step)).any():
            effective = np.where(ineffective, 0.0, 1.0)
            impacts = replace(impacts, closing=effective * impacts.closing, left=effective * impacts.left)
            normals = replace(normals, impulses=effective[:, None, None] * normals.impulses)
            rows = ImpulseRows.joined(normals, friction.rows)
            A_all = mobility.pair_matrix(rows)
        A, left = A_all[:count, :count], impacts.left
        others = np.where(self.dynamic[:, None], now - step.then - mobility.apply(of_step), 0.0)
        powers = self._impact_powers(impacts, normals.powers(others))
        slow = np.where(powers < -impacts.least * size, 0.0, np.minimum(powers, 0.0))
        target, in_impact = reflect(sweep, A, powers, slow, part.restitution, impacts.least, size, blocks)
        law = target, slow, opens, in_impact, size, blocks
        moved = np.where(self.kinematic[:, None], now, 0.0)
        powers = np.concatenate([left, friction.rows.powers(now + moving)])
        driven = self._driven[mobility.reached]
        drives = blocks.places(mobility.of_rows[driven])
        prescribed = moved + moving
        moves = (prescribed != 0.0).any(axis=1)
        may_jam = blocks.any(moves[part.pairs].any(axis=1)) | np.isin(np.arange(blocks.count), drives)
        factors = solve_factors(sweep, A_all, powers, *law, friction.cones, may_jam)
        s, impulses = np.split(factors, [count])
        by_pair = friction.on_first(impulses, count)
        lost = left + s * normals.powers(moved) + friction.power(now + moving, prescribed, impulses, count)
        impulse = rows.totals(factors, n)
        added = mobility.apply(impulse)
        of_drives = blocks.sums(drives, (mobility.reactions(impulse) * mobility.rates(now))[driven])
        fraction = self._within_energy(step, mobility, blocks, of_drives - blocks.sums(blocks.number, lost), added)
        scale, of_pair = np.append(fraction, 0.0)[blocks.places(mobility.of_bodies), None], blocks.each(fraction)
        pair, slips = friction.cones.pair, [friction.rows.powers(one + moving) for one in (now + scale * added, now)]
        limit = friction.cones.limit * (1.0 + (of_pair * s)[pair])
        work = friction.work(A_all, limit, np.repeat(of_pair[pair], 2) * impulses, *slips, blocks.number[pair])
        drive_work = float(fraction @ of_drives)
        part, rows = replace(part, friction=of_pair[:, None] * by_pair), self._constraints[mobility.reached]
        return (
            scale * added, (work, drive_work), part, 1.0 + of_pair * s,
            lambda: self._reactions(mobility, rows, mobility.reactions(scale * impulse)),
        )  # fmt: skip

    def _ineffective(self, impacts: Impacts, mobility: Mobility, mobile: np.ndarray, step: Step) -> np.ndarray:
        """Return (k,) bool, contacts that impacts do not treat: those that joints and drives hold, and those of mechanisms that
        graze. mobile: (k,) powers of the impulses with the twists that they cause [J]."""
        part, closing, left = impacts.impact_pairs, impacts.closing, impacts.left
        guided = mobility.joined | self.kinematic
        is_guided = part.is_contact & guided[part.pairs].any(axis=1)
        if not is_guided.any():
            return is_guided
        out = is_guided & (mobile <= HELD * mobility.free_powers(part.rows))
        # what has lost half of its speed in the step has touched; what closes within another step is not tested
        time = part.distances * part.size / np.where(left < 0.0, -left, np.inf)
        steps = time / step.length[part.pairs[:, 0]]
        some = is_guided & ~out & (left < 0.5 * np.minimum(closing, 0.0)) & (steps > 1.0)
        out[some] = grazing(self.model, part.pairs[some], part.place[some], steps[some], step.before[0], step.after[0], guided)
        return out

    def _reactions(self, mobility: Mobility, rows: np.ndarray, impulses: np.ndarray) -> Reactions:
        """Return the reactions of joints by the impulses (R,) of joint rows (R,), without those of couplings and rotors."""
        held = (self._rows.coupling[rows] < 0) & (mobility.slack == 0.0)
        each = (sparse.diags(impulses[held]) @ mobility.J[held]).tocoo()
        joint, place = np.unique(self._rows.joint[rows[held]], return_inverse=True)
        child, out = JointList.of(self.model.joints).column("child")[joint].astype(int), np.zeros((len(joint), 6))
        on_child = each.col // 6 == child[place[each.row]]
        np.add.at(out, (place[each.row[on_child]], each.col[on_child] % 6), each.data[on_child])
        return Reactions(joint, out)

    def _impact_powers(self, impacts: Impacts, change: np.ndarray) -> np.ndarray:
        """Return normal powers (k,) at the impact; other forces act until it, and change them by `change` (k,) in a step."""
        change = np.where(np.abs(change) > NEGLIGIBLE * np.abs(impacts.closing), change, 0.0)
        falls = impacts.closing + change
        waits = np.clip(impacts.left / np.where(falls < 0.0, falls, -1.0), 0.0, 1.0)
        return impacts.closing + waits * change

    def _within_energy(
        self, step: Step, mobility: Mobility, blocks: Blocks, given: np.ndarray, added: np.ndarray
    ) -> np.ndarray:
        """Return (w,) fractions of the added twists that add no energy beyond the work of prescribed motions.

        Without contacts the bodies would have the energy ``T(v) + (p' - p) . v' + given`` at the end of the step, with the
        momenta p, less the strain energy of the impact.

        Args:
            given: (w,) work of drives by the impact, less that of contact and friction in the step, and of the added impulses on
                prescribed bodies and moving surfaces [J]; added: (n, 6) twists."""
        then, now, bodies = step.then, step.now, blocks.places(mobility.of_bodies)
        some = self.dynamic & (bodies < blocks.count)
        rotors = mobility.slack > 0.0
        of_rotors, places = blocks.places(mobility.of_rows[rotors]), bodies[some]

        def product(twists: np.ndarray, before: tuple[np.ndarray, ...], after: tuple[np.ndarray, ...]) -> np.ndarray:
            """Return (w,) products of twists and changes of momenta of bodies and rotors."""
            change = self._momenta(*after, some) - self._momenta(*before, some)
            out = blocks.sums(places, np.sum(twists[some] * change, axis=1))
            if rotors.any():
                rates = [mobility.rates(v)[rotors] for v in (twists, after[1] - before[1])]
                out += blocks.sums(of_rotors, rates[0] * rates[1] / mobility.slack[rotors])
            return out

        (q_0, _), (q_1, _), still = step.before, step.after, np.zeros_like(now)
        start, end, c = (0.5 * product(v, (q, still), (q, v)) for q, v in ((q_0, then), (q_1, now), (q_1, added)))
        most = start + product(now, (q_0, then), (q_1, now)) + given
        for q, sign in ((q_0, 1.0), (q_1, -1.0)):
            most += sign * blocks.sums(places, elastic_energies(self.model, q, some))
        # T(now + x added) = end + x (b + x c)
        b, most = product(added, (q_1, still), (q_1, now)), np.maximum(most, end)
        root = np.sqrt(np.maximum(b * b + 4.0 * c * (most - end), 0.0))
        fraction = np.clip((root - b) / np.where(c > 0.0, 2.0 * c, 1.0), 0.0, 1.0)
        return np.where(end + b + c <= most, 1.0, fraction)

    def _momenta(self, q: np.ndarray, twists: np.ndarray, some: np.ndarray) -> np.ndarray:
        """Return the momenta (m, 6) of the rigid motion of some bodies (n,) bool with twists (n, 6)."""
        v, w = np.split(twists[some], 2, axis=1)
        inertia = free_motion.inertia(q[some, 3:].reshape(-1, 3, 3), self.model.bodies.moment[some])
        return np.concatenate([self.model.bodies.mass[some, None] * v, np.einsum("nij,nj->ni", inertia, w)], axis=1)

    def twists(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return (n, 6) twists in world axes, those with the momenta of qd for dynamic bodies."""
        A, Ad, moment = q[:, 3:].reshape(-1, 3, 3), qd[:, 3:].reshape(-1, 3, 3), self.model.bodies.moment
        d, k, w = self.dynamic & self.turns, self.kinematic, np.zeros((len(q), 3))
        momentum = free_motion.torque(Ad[d] * moment[d, None, :], A[d])
        w[d] = np.linalg.solve(free_motion.inertia(A[d], moment[d]), momentum[:, :, None])[:, :, 0]
        w[k] = axial(Ad[k] @ np.linalg.inv(A[k]))
        return np.concatenate([qd[:, :3], w], axis=1)

    def _update_rows(self, system: JointSystem, q: np.ndarray) -> None:
        """Select the joint rows that are constraints or rotors, for a changed system or pose."""
        if self._built_for is system and not follows_pose(self.model):
            return
        self._rows = rows = rigid_rows(replace(self.model, joints=list(self.model.joints)), q)
        inertia, roles, held = np.zeros(len(rows)), rows.role.copy(), rows.held & (rows.role != Role.GAP)
        if system.compliant.any():
            held[held & rows.yields] = ~resolved(self.model, system)[system.compliant]
        for row in rows.coordinates():
            coordinate = int(rows.joint[row]), rows.name[row]
            inertia[row] = system.rotors.get(coordinate, 0.0)
            if coordinate in system.held_coordinates:
                roles[row], held[row] = system.held_coordinates[coordinate], True
        slack = np.divide(rows.scale**2, inertia, out=np.zeros(len(rows)), where=(inertia > 0.0) & ~held)
        chosen = self._constraints = np.flatnonzero(held | (inertia > 0.0))
        self._slack, self._driven, self._built_for = slack[chosen], roles[chosen] == Role.DRIVE, system

    def _jacobian(self, q: np.ndarray, rows: np.ndarray) -> sparse.csr_matrix:
        """Return (R, 6 n) Jacobian of joint rows (R,) by twists (v; w)."""
        if not len(rows):
            return sparse.csr_matrix((0, 6 * len(q)))
        units = np.tile([1.0 / self._rows.length] * 3 + [1.0] * 3, len(q))
        return (self._rows.jacobian(q)[rows] @ sparse.diags(units)).tocsr()


def _rates(q: np.ndarray, twists: np.ndarray) -> np.ndarray:
    """Return (n, 12) velocities of the rigid motions with twists (n, 6) in states q (n, 12)."""
    return np.concatenate([twists[:, :3], free_motion.rates(q[:, 3:].reshape(-1, 3, 3), twists[:, 3:]).reshape(-1, 9)], axis=1)
