"""The backend that runs the definitions of `abd.potentials`, `abd.joints` and `abd.contact`: the reference.

It does what the kernels do and in the same order, with whole arrays and one dense matrix; scenes of a few dozen bodies
are what it is for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from abd.backends.answers import NotProven, PairLoads
from abd.backends.reference.iteration import Iteration
from abd.backends.reference.numpy_bodies import StepData, maps, positions, projectors, state, turning
from abd.backends.reference.numpy_contacts import NumpyContacts, NumpyFriction
from abd.backends.reference.numpy_islands import Islands
from abd.backends.reference.numpy_joints import NumpyJoints
from abd.backends.reference.numpy_motion import Motion, difference
from abd.backends.reference.numpy_read_outs import ReadOuts
from abd.backends.reference.numpy_row_memory import NumpyRowMemory
from abd.backends.reference.potential import Iterate, Potential
from abd.backends.reference.start import Start
from abd.backends.warp.body_data import BodyData, body_boxes, inverse_masses, surface_boxes
from abd.contact.forces import Pressing, pressing
from abd.contact.pair_law import OwnLaws, PairLaw
from abd.contact.pairs import body_pairs
from abd.contact.path import Path, between, follow, standing
from abd.errors import StepFailure
from abd.joints.coordinates.readings import JointReader
from abd.joints.rows.build import build_system
from abd.joints.rows.system import CLOSED, CLOSINGS, LIMIT_CUTS, JointSystem
from abd.model import Kind, Model
from abd.potentials.contact import Contacts
from abd.potentials.integrators import Scheme
from abd.potentials.sweeps import swept
from abd.rotations import axial, rotation_vectors, rotations

STRAIN = 0.5
"""Largest strain |alpha S| of a step."""


@dataclass(frozen=True)
class Host:
    """Where the arrays live."""

    name: str = "numpy"


class NumpyBackend(NumpyRowMemory, ReadOuts):
    """The definitions of one scene; see `abd.backends` for what each call means.

    Attributes:
        q: (n, 12) current iterate; trial: the state tried last.
        now, before: states of the last two steps; velocity, earlier: their rates; rest: friction's reference xh.
    """

    def __init__(self, model: Model):
        self.model, self.device = model, Host()
        self.n = n = len(model.bodies)
        self.islands = Islands(n)
        self.constants = BodyData.of(model)
        self.motion = Motion(self.constants)
        self.turning = turning(self.constants)
        system = build_system(model)
        self.potential = Potential(model, self.constants, system)
        self._take_joints(system)
        self.reader = JointReader(model)
        self.corners, self.surface_corners = _corners(*body_boxes(model)), _corners(*surface_boxes(model))
        self.everybody = np.arange(n)
        self.immobile, self.absent = model.bodies.kind == Kind.STATIC, np.zeros(n, dtype=bool)
        self.prescribed = np.flatnonzero(model.bodies.kind == Kind.KINEMATIC)
        self.settled, self.sleeping = np.zeros(self.islands.count, dtype=bool), np.zeros(n, dtype=bool)
        self.eps = 0.0
        self.iteration, self.start, self.whole = Iteration(self), Start(self), None
        self.inverse_mass = inverse_masses(model)
        bodies = model.bodies
        self.load_state(bodies.q, bodies.qd, bodies.q, bodies.qd)

    # joints ------------------------------------------------------------------------------------------------------

    def set_joints(self, system: JointSystem) -> None:
        """Take over a joint system; the next step needs its memory."""
        self.potential.set_joints(system)
        self._take_joints(system)

    def _take_joints(self, system: JointSystem) -> None:
        self.system = system
        self.islands.tie(system, self.potential.ties)

    @property
    def joints(self) -> NumpyJoints:
        """The joint rows at work."""
        return self.potential.joints

    @property
    def contacts(self) -> NumpyContacts:
        """What may touch."""
        return self.potential.contacts

    @property
    def friction(self) -> NumpyFriction:
        """What rubs."""
        return self.potential.friction

    @property
    def at(self) -> Iterate:
        """What terms read of the iterate."""
        return Iterate(self.q, self.rest, self.step, self.eps)

    def joint_errors(self) -> np.ndarray:
        """(islands,) largest residual of the exact rows over its tolerance at the current iterate."""
        return -self.islands.minima(-self.joints.errors(self.q), self.joints.owners, np.zeros(self.islands.count))

    def update_multipliers(self) -> None:
        """Let the multipliers of the exact rows take over what their stiffness carries at the end of the direction.

        To be called after `accept`, when the iterate before it is still there.
        """
        linear, measured, _ = self.joints.predicted(self.trial, self.direction)
        self.joints.take_over(linear, measured, whole=True, aside=self.settled[self.islands.host])
        self.evaluate()

    # state -------------------------------------------------------------------------------------------------------

    def load_state(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        previous_q: np.ndarray,
        previous_qd: np.ndarray,
        forces: np.ndarray | None = None,
    ) -> None:
        """Positions and velocities (n, 12) of the last two steps, and what is remembered of the forces on the bodies (n, 12)
        (`abd.potentials.integrators`); nothing without."""
        self.forces = np.zeros((self.n, 12)) if forces is None else forces.copy()
        self.q, self.trial, self.now, self.before = q.copy(), q.copy(), q.copy(), previous_q.copy()
        self.velocity, self.earlier = qd.copy(), previous_qd.copy()

    def read_positions(self) -> np.ndarray:
        """(n, 12) of the current iterate."""
        return self.q.copy()

    def read_prescribed(self) -> np.ndarray:
        """(k, 12) of the prescribed bodies at the current iterate."""
        return self.q[self.prescribed]

    def list_standing(self, scale: float = 1.0) -> None:
        """List the contacts of the present state, with energies in J times a scale."""
        self.contacts.set_scale(scale)
        self.contacts.search(standing(self.q))

    def near_contacts(self, q: np.ndarray) -> Contacts:
        """What counts of the listed contacts in the present state q (n, 12)."""
        return self.contacts.counting(q)

    def contact_figures(self) -> tuple[float, int, float]:
        """Energy [J] of the contacts of `list_standing`, how many act, and the smallest gap [m]."""
        return float(self.contacts.energy(self.q).sum()), self.contact_count(), self.smallest_gap()

    def abandon(self) -> None:
        """Give up a step that was begun: the state is as it was before it."""
        self.q, self.trial = self.now.copy(), self.now.copy()

    def read_state(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities (n, 12) of the last finished step."""
        return self.now.copy(), self.velocity.copy()

    def read_previous(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities (n, 12) of the step before it."""
        return self.before.copy(), self.earlier.copy()

    def read_forces(self) -> np.ndarray:
        """(n, 12) what is remembered of the forces on the bodies."""
        return self.forces.copy()

    def device_positions(self) -> np.ndarray:
        """The array (n, 12) of the current state."""
        return self.q

    def begin(self, rule: Scheme, mode: np.ndarray, eps: float, goals: np.ndarray | None) -> None:
        """Start a step: its scheme, the modes of the bodies (n,), friction's eps [m], goals (k, 12) of prescribed bodies if
        there are any."""
        prescribed = self.now.copy()
        prescribed[self.prescribed] = self.now[self.prescribed] if goals is None else goals
        if rule.chord:
            self.target = self.motion.chord(rule, self.now, self.before, self.velocity, self.earlier)
        else:
            self.target = self.motion.coast(rule, mode, self.now, self.velocity, self.forces)
        self.rest, self.rule, self.mode, target = self.target.rest, rule, mode, self.target.q
        self.eps, self.q = float(eps), self.now.copy()
        self.step = StepData(
            pt=positions(target),
            At=maps(target),
            scale=self.target.scale,
            pk=positions(prescribed),
            Ak=maps(prescribed),
            lp=np.zeros((self.n, 3)),
            lA=np.zeros((self.n, 3, 3)),
            held=self.immobile,
            gravity=self.model.settings.gravity,
            pull=rule.pull,
            ch2=rule.c * rule.h**2,
        )
        self.hold(self.immobile)
        self.contacts.set_scale(self.step.ch2)
        self.joints.caution = np.zeros(self.n)
        self.set_caution(np.zeros(self.islands.count))
        self.friction.forget()

    def finish(self) -> None:
        """Make the current iterate the new state."""
        self._friction_work = self.friction.work(self.q - self.rest, self.q - self.now, self.eps)
        self.friction.keep_anchors(self.q - self.rest, self.q, self.now, self.eps)
        states = self.q, self.now, self.before
        if self.rule.chord:
            velocity = difference(self.rule, *states)
        else:
            velocity, self.forces = self.motion.keep(
                self.rule, self.mode, self.target, *states, self.velocity, self.forces
            )
        self.velocity, self.earlier = velocity, self.velocity
        self.now, self.before = self.q.copy(), self.now
        self.end_joints()

    def pressing(self) -> Pressing:
        """Points at which bodies press on one another at the current iterate."""
        return pressing(self.model, self.contacts.surfaces, self.contacts.topology, self.pair_law, self.contacts.pairs,
                        self.contacts.found, self.q)  # fmt: skip

    def frozen_friction(self) -> tuple[np.ndarray, ...]:
        """Of every lagged contact the bodies (l, 2), kind (l,), normal (l, 3), contact points Y_i, Y_j (l, 4), share (l, 3) and
        load (l,) [N], as `abd.potentials.friction.Lagged` has them; and the reference (n, 12) of slips."""
        return *self.friction.frozen(), self.friction.lagged.load / self.step.ch2, self.rest.copy()

    def contact_impulses(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Body pairs (k, 2) in contact at the end of the step, and the affine impulses (k, 12) of their contacts on both."""
        pairs, *gradients = self.contacts.pair_gradients(self.q)
        return pairs, *(-self.rule.impulse * gradient for gradient in gradients)

    sweep = staticmethod(swept)

    def set_velocity(self, velocity: np.ndarray) -> None:
        """Other velocities (n, 12) at the end of the step."""
        self.velocity = velocity.copy()

    def set_forces(self, forces: np.ndarray) -> None:
        """Other values (n, 12) of what is remembered of the forces on the bodies."""
        self.forces = forces.copy()

    def set_previous(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Another state and velocities (n, 12) before the last step."""
        self.before, self.earlier = q.copy(), qd.copy()

    def hold(self, held: np.ndarray) -> None:
        """Bodies (n,) that do not move any more in this step, besides the static ones and those that are left out."""
        self.step.held = self.immobile | self.absent | (np.asarray(held) != 0)
        self.mobile = ~self.step.held
        self.projectors = projectors(self.constants, self.step.held)

    def sleep(self, ripe: np.ndarray) -> None:
        """Put to sleep for this step those islands that may move by ripe bodies (n,) alone, and who is left out."""
        self.sleeping = self.islands.sleepers(ripe, self.mobile) | self.absent

    def asleep(self) -> np.ndarray:
        """(islands,) bool, whether all its bodies that may move are asleep; nothing wakes up within the present list."""
        return self.islands.asleep(self.sleeping, self.mobile)

    def settle(self, islands: np.ndarray) -> None:
        """Leave the bodies of these islands (count,) bool, and no others, where they are until the islands change."""
        self.settled = islands.copy()

    def snap_to_goals(self, chosen: np.ndarray) -> None:
        """Set the chosen prescribed bodies (n,) exactly to their goals."""
        self.q = np.where(chosen[:, None], state(self.step.pk, self.step.Ak), self.q)
        self._follow(standing(self.q))

    def set_pull(self, pull: float, lp: np.ndarray, lA: np.ndarray) -> None:
        """Stiffness and multipliers of the prescribed bodies' pull."""
        self.step.pull, self.step.lp, self.step.lA = float(pull), lp.copy(), lA.copy()

    def set_loads(self, force: np.ndarray, torque: np.ndarray) -> None:
        """Forces [N] and torques [N m] (n, 3) on the bodies from now on: the model's own arrays, which have them."""

    def set_gravity(self, gravity: np.ndarray) -> None:
        """(3,) [m/s^2] from now on: the model's own array, which has it."""

    def set_friction(self, mu: np.ndarray) -> None:
        """Coefficients (m, m) between materials from now on: the model's own array, which has them."""
        self.contacts.follow_materials()
        self.friction.follow_materials()

    @property
    def pair_law(self) -> PairLaw:
        """The law of contact by pairs of bodies."""
        return self.contacts.pair_law

    def set_own_laws(self, own: OwnLaws) -> None:
        """Pairs of bodies whose law is their own."""
        self.contacts.set_own_laws(own)

    def set_caution(self, share: np.ndarray) -> None:
        """Shares (islands,) of the bounds of curvature in the next linearisations (`abd.backends.reference.caution`)."""
        self.contacts.caution = share[self.islands.host]
        self.joints.caution = np.maximum(self.joints.caution, self.contacts.caution)

    # steps along arcs --------------------------------------------------------------------------------------------

    def follow_velocity(self, moving: np.ndarray) -> np.ndarray:
        """Set the path from q_n to where the motion leads (`numpy_motion.Target`); returns the largest alpha per island.

        Prescribed bodies go exactly to their goals, with a strain where contact strained them. `moving` (n,): 0 stays, 1
        moves, 2 is in contact: it moves without the force term, and on as the forces of the last step push it.
        """
        data, step, p, A = self.constants, self.step, positions(self.q), maps(self.q)
        inverse = np.linalg.inv(A)
        pushed = ((data.mass > 0.0) & (moving == 1))[:, None]
        push = self.target.load[:, None] * (step.gravity + data.force / np.where(pushed, data.mass[:, None], 1.0))
        touching = (moving == 2)[:, None]
        push = np.where(pushed, push, np.where(touching, self.target.push, 0.0))
        fall = data.translation * (self.target.dp + push)
        turn = self.target.w + np.where(touching, self.target.twist, 0.0)
        dynamic = (data.kind == Kind.DYNAMIC)[:, None]
        dp = np.where(dynamic, fall, step.pk - p)
        to_goal = step.Ak @ inverse
        w = np.where(dynamic, turn, rotation_vectors(to_goal))
        S = np.where(dynamic[:, :, None], 0.0, rotations(-w) @ to_goal - np.eye(3))
        goes = ((moving != 0) & ~step.held)[:, None]
        moves = np.where(goes, dp, 0.0), np.where(goes, w, 0.0), np.where(goes[:, :, None], S, 0.0)
        path = Path(p, A, *moves, self._radii())
        return self._collision_free(path, np.ones(self.islands.count))

    def follow_direction(self) -> np.ndarray:
        """Set the path along the last direction; returns the largest safe alpha per island, at most 1.

        Settled islands stand still. The islands may change on the way (`Numbering.host`); the result is theirs.
        """
        self.direction = np.where(self.settled[self.islands.host, None], 0.0, self.direction)
        path = follow(self.q, self.direction, self.turning, self._radii())
        strain = path.strain
        limits = np.where(strain > STRAIN, STRAIN / np.maximum(strain, STRAIN), 1.0)
        return self._collision_free(path, self.islands.minima(limits, self.everybody, np.ones(self.islands.count)))

    def _radii(self) -> np.ndarray:
        """(n,) largest deformed radii |A X| over the bodies' boxes [m]."""
        return np.linalg.norm(self.corners @ maps(self.q).transpose(0, 2, 1), axis=2).max(axis=1)

    def _collision_free(self, path: Path, limit: np.ndarray) -> np.ndarray:
        self._follow(path)
        before = self.islands.host
        if self.islands.renumber(self.mobile, self.touching_pairs()):
            limit = self.islands.carry(before, limit, np.minimum)
            self.settled = self.islands.carry(before, self.settled, np.logical_and)
        times = self.contacts.times_of_impact(path, limit[self.islands.host])
        return self._within_limits(self.islands.minima(times, self.contacts.owners, limit))

    def free_way(self, h: float) -> NotProven:
        """Pairs of bodies whose way from the state to the iterate, in a step of h [s], is not proven free of collisions."""
        turned = h * axial(maps(self.velocity) @ np.linalg.inv(maps(self.now)))
        return self._way(self.now, turned, self.q)

    def _way(self, begin: np.ndarray, turn: np.ndarray, end: np.ndarray) -> NotProven:
        """The same between two states (n, 12), turning by `turn` (n, 3) [rad]."""
        radii = np.linalg.norm(self.corners @ maps(begin).transpose(0, 2, 1), axis=2).max(axis=1)
        return self.contacts.free_way(between(begin, end, turn, radii))

    def meetings(self, begin: np.ndarray, turn: np.ndarray, end: np.ndarray, party: np.ndarray) -> NotProven:
        """Pairs of bodies of different parties (n,), 0 for those that count with nobody, that come in one another's way
        between two states (n, 12), turning by `turn` (n, 3) [rad], or within their activation at the end.

        The state is lost: another has to be loaded.
        """
        contacts = self.contacts
        contacts.party = np.where(party > 0, party, -1)
        met, self.q = self._way(begin, turn, end), end
        if not len(met):
            contacts.search(standing(end))
            pairs, gaps = self.pair_gaps()
            near = np.unique(pairs[gaps < 1.0], axis=0)
            met = NotProven(np.ones(len(near)), near)
        contacts.party = -self.absent.astype(int)
        return met

    def leave_out(self, absent: np.ndarray) -> None:
        """Bodies (n,) bool that take no part in the next (sub)steps: they stay where they are, and nothing meets them."""
        self.absent = absent.copy()
        self.contacts.party = -absent.astype(int)

    def set_apart(self, pairs: np.ndarray) -> None:
        """Bodies (k, 2), and no others, that do not collide from now on."""
        self.contacts.pairs = body_pairs(replace(self.model, apart=pairs))
        self.contacts.search(standing(self.q))
        self.friction.forget()

    def touching_pairs(self) -> np.ndarray:
        """(k, 2) distinct pairs of bodies that may touch or rub, the owner first."""
        pairs = [
            np.stack([part.owners, part.candidates.first + part.candidates.second - part.owners], axis=1)
            for part in (self.contacts, self.friction)
        ]
        return np.unique(np.concatenate(pairs).astype(int), axis=0)

    def _within_limits(self, alpha: np.ndarray) -> np.ndarray:
        """The largest fractions per island that keep the gaps of all joint limits open, found by secants."""
        if not self.system.has_barriers:
            return alpha
        before = self.joints.gaps(self.q)
        for _ in range(LIMIT_CUTS):
            share = self.joints.shares(before, self.joints.gaps(self._along_path(alpha)))
            shares = self.islands.minima(share, self.joints.owners, np.ones(self.islands.count))
            alpha = alpha * shares
            if (shares == 1.0).all():
                return alpha
        raise StepFailure("limits", f"no step keeps the joint limits after {LIMIT_CUTS} cuts")

    def _along_path(self, alpha: np.ndarray) -> np.ndarray:
        """(n, 12) states at path(alpha)."""
        at = alpha[self.islands.host]
        return state(self.path.origins(self.everybody, at), self.path.maps(self.everybody, at))

    def _follow(self, path: Path) -> None:
        """Go on along a path: its candidates, and the energies of the iterate with them."""
        self.path = path
        self.contacts.search(path)
        self.evaluate()

    def try_step(self, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Energies at path(alpha): their change against the current ones and the sum of their sizes, per island."""
        self.trial = self._along_path(alpha)
        change, size = self.potential.changes(self.at, self.trial)
        return self.islands.sums(change, self.potential.owners), self.islands.sums(size, self.potential.owners)

    def accept(self) -> None:
        """The trial becomes the current iterate."""
        self.q, self.trial = self.trial, self.q
        self.evaluate()

    def evaluate(self) -> None:
        """Energies at the current iterate."""
        self.potential.evaluate(self.at)

    # linear system -----------------------------------------------------------------------------------------------

    def lag_friction(self) -> None:
        """Freeze friction's contacts at the current iterate."""
        self.friction.lag(self.q, self.step.At)
        self.evaluate()

    def friction_loads(self) -> tuple[PairLoads, PairLoads]:
        """Normal forces times mu by body pair: as frozen, and as they act at the current iterate."""
        return self.friction.loads(self.q)

    def mobility(self) -> np.ndarray:
        """(n,) change of velocity per load times c h^2 [1/(kg s)]; 0 for bodies that forces do not move."""
        return self.inverse_mass * self.rule.impulse

    def linearize(self) -> None:
        """Gradient and blocks of the potential at the iterate, fixed degrees of freedom projected out."""
        self.potential.linearize(self.at, self.projectors)

    def linear_solver(self) -> dict:
        """Which solver there is."""
        return {"name": "dense Cholesky", "why": "the only one of this backend"}

    def solve(self, forcing: float | None = None) -> tuple[np.ndarray, int]:
        """Newton direction; the largest vertex displacement of the full step per island [m], linear iterations (0).

        The solution is exact, whatever `forcing` says.

        Raises:
            StepFailure: the matrix is not positive definite or not finite.
        """
        H = self.potential.blocks.transpose(0, 2, 1, 3).reshape(12 * self.n, 12 * self.n)
        try:
            self.factor = scipy.linalg.cho_factor(H, lower=True)
            self.direction = self._solved(self.potential.gradient)
        except (scipy.linalg.LinAlgError, ValueError) as error:
            raise StepFailure("not_positive_definite", f"the linear system could not be factorised: {error}") from error
        return self._farthest(), 0

    def tighten(self) -> tuple[np.ndarray, int]:
        """The same as the last `solve`, which was exact."""
        return self._farthest(), 0

    def solver_memory(self) -> dict[str, np.ndarray]:
        """Nothing: every matrix is factored by itself."""
        return {}

    def recall_solver(self, saved: dict[str, np.ndarray]) -> None:
        """Nothing to go on with."""

    def _solved(self, gradient: np.ndarray) -> np.ndarray:
        """(n, 12) solution of H d = -gradient by the factor; rounding must not leak into fixed degrees of freedom."""
        step = scipy.linalg.cho_solve(self.factor, -gradient.ravel()).reshape(self.n, 12)
        return np.einsum("nij,nj->ni", self.projectors, step)

    def _farthest(self) -> np.ndarray:
        """(islands,) largest displacement of a surface in the full step [m]."""
        dp, dA = positions(self.direction), maps(self.direction)
        farthest = np.linalg.norm(dp[:, None] + self.surface_corners @ dA.transpose(0, 2, 1), axis=2).max(axis=1)
        return -self.islands.minima(-farthest, self.everybody, np.zeros(self.islands.count))

    def stretch_direction(self, factors: np.ndarray) -> None:
        """Stretch the direction by a factor per island (count,)."""
        self.direction = factors[self.islands.host, None] * self.direction

    def effort_changes(self) -> np.ndarray:
        """(islands,) how much the direction changes the forces of friction in joints and of drives with an effort limit,
        over `abd.joints.rows.system.SETTLED` of their largest."""
        changes = self.joints.effort_changes(self.q, self.direction)
        return -self.islands.minima(-changes, self.joints.owners, np.zeros(self.islands.count))

    def close_joints(self, chosen: np.ndarray) -> np.ndarray:
        """Bend the direction until the linear model closes all exact rows of the chosen islands (count,), by solves with
        the factor that is there.

        The multipliers take over what closed them. Returns the largest vertex displacement per island [m].
        """
        joints, aside = self.joints, ~chosen[self.islands.host]
        for _ in range(CLOSINGS):
            linear, measured, J = joints.predicted(self.q, self.direction)
            worst = joints.worst(linear, measured, aside)
            if worst <= CLOSED:
                break
            missing = np.einsum("nij,nj->ni", self.projectors, joints.missing(linear, measured, J))
            missing[aside] = 0.0
            joints.take_over(linear, measured, whole=False, aside=aside)
            self.direction += self._solved(missing)
            self.potential.gradient += missing
        self.evaluate()
        return self._farthest()

    def descent(self) -> np.ndarray:
        """g . d per island."""
        return self.islands.sums(np.sum(self.potential.gradient * self.direction, axis=1), self.everybody)


def _corners(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """(n, 8, 3) corners of boxes (n, 3)."""
    choice = np.array([[k & 1, k >> 1 & 1, k >> 2 & 1] for k in range(8)])
    return np.where(choice, upper[:, None], lower[:, None])
