"""The backend that runs the kernels: on the processor and on CUDA.

Arrays live on the device. What the Newton loop sees is a handful of numbers per island.
"""

from __future__ import annotations

import numpy as np
import warp as wp

import cuda_kernels
from abd.backends.answers import PairLoads
from abd.backends.device.device import Device
from abd.backends.device.upload import new_lead, new_path, new_pose, upload_bodies
from abd.backends.linear.linear import LinearSolver
from abd.backends.recorded.iteration import Iteration
from abd.backends.recorded.start import Start
from abd.backends.recorded.whole_step import WholeStep
from abd.backends.warp.body_data import BodyData, body_boxes, inverse_masses, surface_boxes
from abd.backends.warp.islands import Islands
from abd.backends.warp.iterate import Iterate
from abd.backends.warp.path_steps import PathSteps
from abd.backends.warp.potential import Potential
from abd.backends.warp.read_outs import ReadOuts
from abd.backends.warp.sweeps import swept
from abd.backends.warp.terms.contacts import Contacts
from abd.backends.warp.terms.friction import Friction
from abd.backends.warp.terms.joints import Joints
from abd.backends.warp.terms.row_memory import RowMemory
from abd.backends.warp.turns import CountedTurns, Turns
from abd.backends.warp.ways import Ways
from abd.contact.pair_law import OwnLaws, PairLaw
from abd.joint_list import JointList
from abd.joints.rows.build import build_system
from abd.joints.rows.forces import Applied
from abd.joints.rows.system import JointMemory, JointSystem
from abd.joints.rows.table import MeasureTable
from abd.model import Kind, Model
from abd.potentials.contact import Contacts as DefinedContacts
from abd.potentials.integrators import COLUMNS, Scheme
from cuda_kernels.bodies import bodies, figures, integrators, paths
from cuda_kernels.parallel import sums


class WarpBackend(PathSteps, Ways, ReadOuts):
    """Kernels of one scene on one device; see `abd.backends` for what each call means."""

    def __init__(self, model: Model, device: str = "cpu", records: bool = False):
        self.model, self.device = model, Device(device, records)
        d, n = self.device, len(model.bodies)
        self.n = n
        self.islands = Islands(d, n)
        self.constants = BodyData.of(model)
        self.body = upload_bodies(self.constants, d)
        self.pose, self.trial, self.straight, self.now, self.before, self.rest = (new_pose(d, n) for _ in range(6))
        self.step = bodies.StepData()
        self.at = Iterate(self.pose, self.trial, self.rest, self.body, self.step, self.islands.done)
        self.iteration = None
        system = build_system(model)
        self.potential = Potential(model, d, self.islands, self.at, system)
        self._load(system)
        self._take_joints(system)
        lower, upper = body_boxes(model)
        self.lower, self.upper = d.upload(lower, wp.vec3d), d.upload(upper, wp.vec3d)
        self.surface_box = tuple(d.upload(side, wp.vec3d) for side in surface_boxes(model))
        self.path = new_path(d, n)
        self.velocity, self.earlier, self.q, self.vectors = (d.zeros((n, 12), wp.float64) for _ in range(4))
        self.weights, self.motion = d.zeros((2, 9), wp.float64), d.zeros((3, len(COLUMNS)), wp.float64)
        self.mode, self.lead = d.zeros(n, wp.int32), new_lead(d, n)
        self.forces = d.zeros((n, 12), wp.float64)
        self.rule: Scheme | None = None
        self._open_read_outs()
        target, goal = new_pose(d, n), new_pose(d, n)
        self.target, self.goal = target, goal
        self.step.pt, self.step.At, self.step.pk, self.step.Ak = target.p, target.A, goal.p, goal.A
        self.step.scale = d.zeros(n, wp.float64)
        self.step.lp, self.step.lA, self.step.pull = d.zeros(n, wp.vec3d), d.zeros(n, wp.mat33d), d.zeros(1, wp.float64)
        prescribed = np.flatnonzero(model.bodies.kind == Kind.KINEMATIC)
        self.prescribed_count, self.prescribed = len(prescribed), d.upload(prescribed, wp.int32)
        self.prescribed_q = d.zeros((len(prescribed), 12), wp.float64)
        self.immobile = (model.bodies.kind == Kind.STATIC).astype(np.int32)
        self.mobile, self.absent = self.immobile == 0, np.zeros(n, dtype=bool)
        self.sleeping = np.zeros(n, dtype=bool)
        self.aside, self.marks = d.zeros(n, wp.int32), d.zeros(n, wp.int32)
        self.step.held = d.upload(self.immobile, wp.int32)
        self.step.gravity = wp.vec3d(*model.settings.gravity)
        self.moving = d.zeros(n, wp.int32)
        self.values = {name: d.zeros(n, wp.float64) for name in ("a", "b", "row")}
        fixed = (model.bodies.free_rotation != 3) | ~model.bodies.free_translation.all(axis=1)
        self.has_fixed = self.potential.has_constraints = bool((fixed | (model.bodies.kind != Kind.DYNAMIC)).any())
        self.linear = LinearSolver(
            d,
            model.settings.linear_solver,
            self.mobile,
            model.bodies.names,
            self.islands,
            model.settings.linear_tolerance,
            len(self.potential.couplings),
        )
        self.inverse_mass = inverse_masses(model)
        self.fixed_stiffness = model.settings.contact_stiffness is not None
        self.iteration = Iteration(self)
        self._follow_functions()
        self.start = Start(self)
        self.whole = WholeStep(self)

    def _load(self, system: JointSystem) -> None:
        """Kernels that the scene needs."""
        there = {
            "contact": self.contacts.candidates.may_touch,
            "friction": self.friction.enabled,
            "joints": len(system.linear) + len(system.rows) > 0,
        }
        self.device.load(cuda_kernels, *(word for word, needed in there.items() if needed))

    # joints ------------------------------------------------------------------------------------------------------

    def set_joints(self, system: JointSystem) -> None:
        """Take over a joint system; the next step needs its memory."""
        self.potential.set_joints(system)
        self._take_joints(system)

    def _take_joints(self, system: JointSystem) -> None:
        self.system, self.said = system, None
        active = JointList.of(self.model.joints).column("active").astype(bool)
        self.row_memory = RowMemory(self.joints, active, self.device)
        self.islands.tie(system, self.potential.ties)
        self._follow_functions()
        self.islands.renumber(self.model.bodies.kind != Kind.STATIC, np.zeros((0, 2), dtype=int))

    def _follow_functions(self) -> None:
        """Whether joints have functions of users, which the host evaluates between the launches."""
        relations = self.joints.relations
        self.asks_host = bool(self.system.table.custom or relations.given or len(relations.chosen))
        if self.iteration is not None:
            self.iteration.graphs.asks_host = self.asks_host

    def begin_joints(self, memory: JointMemory | None, ch2: float, time: float, speed: float) -> int | None:
        """Laws of a (sub)step that was begun and ends at `time` [s] (`JointSystem.laws`); a memory if the host changed it.

        Returns:
            the first barrier row whose gap is closed, None without.
        """
        if memory is not None:
            self.row_memory.load(memory)
        return self.row_memory.begin(
            (self.weights, self.mode), ch2, time, speed, self.now, lambda: self.read_state()[0]
        )

    def take_efforts(self) -> None:
        """Efforts of joint rows that the host has changed."""
        self.row_memory.take_efforts()

    def limited(self) -> np.ndarray:
        """(n,) bool, bodies on which joint limits or ropes push at the current iterate."""
        if not self.row_memory.has_limits:
            return np.zeros(self.n, dtype=bool)
        self.device.fill(self.marks)
        self.row_memory.mark_limited(self.pose, self.marks)
        return self.device.read(self.marks) != 0

    def turned(self, limit: float) -> np.ndarray:
        """(n,) bool, bodies of angles of joint rows that are more than `limit` [rad] from where the step began."""
        if not self.system.counts_turns:
            return np.zeros(self.n, dtype=bool)
        self.device.fill(self.marks)
        self.row_memory.mark_turned(self.pose, limit, self.marks)
        return self.device.read(self.marks) != 0

    def joint_memory(self) -> JointMemory:
        """Host copy of what the joints remember of the last step."""
        return self.row_memory.read()

    def applied_laws(self, memory: JointMemory) -> Applied:
        """Laws of the last step, which left `memory`."""
        return self.row_memory.applied(memory)

    def watch_turns(self, table: MeasureTable) -> Turns:
        """Who counts the turns of the angles of a table."""
        return CountedTurns(table, self)

    def launch_joint_errors(self, out: wp.array) -> None:
        """Largest residual of the exact rows over its tolerance, at the current iterate, into `out` (islands,); launches only."""
        a = self.values["a"]
        self.device.fill(a)
        self.joints.errors(self.pose, a)
        self.islands.reduce(a, sums.MAX, out)

    # the incremental potential -----------------------------------------------------------------------------------

    @property
    def joints(self) -> Joints:
        """The joint rows at work."""
        return self.potential.joints

    @property
    def contacts(self) -> Contacts:
        """What may touch."""
        return self.potential.contacts

    @property
    def friction(self) -> Friction:
        """What rubs."""
        return self.potential.friction

    @property
    def eps(self) -> float:
        """Friction's, in displacements of the present step [m]."""
        return self.at.eps

    def evaluate(self) -> None:
        """Energies at the current iterate, those of settled islands too; contacts only if they are not known already."""
        self.islands.unsettle()
        self.potential.evaluate()

    def exchange(self) -> None:
        """The trial becomes the current iterate and the current one the trial: a record holds the arrays, which exchange what
        they hold."""
        self.device.launch(integrators.exchange_poses, self.n, self.pose, self.trial)
        self.potential.exchange()

    def forget_contacts(self) -> None:
        """The contacts of the current iterate have to be evaluated again, those of resting islands too."""
        self.potential.contacts_known, self.touched = False, None
        self.islands.unsettle()

    def carry_contacts(self, before: tuple[wp.array, ...]) -> None:
        """As `Potential.carry_contacts`; who touches has to be looked at again."""
        self.touched = None
        self.potential.carry_contacts(before)

    def touching_pairs(self) -> np.ndarray:
        """(k, 2) pairs of bodies that may touch or rub, the owner first."""
        return np.concatenate([self.contacts.candidates.pair_list(), self.friction.pair_list()])

    def launch_renumber(self) -> None:
        """Form the islands anew, for the present lists, by launches only."""
        c, f = self.contacts.candidates, self.friction
        self.islands.follow_joined(self.mobile)
        rubbing = f.pairs, f.lagged.counts, f.pair_count
        self.islands.launch_renumber(self.step.held, (c.pairs, c.counts, c.pair_count), rubbing)

    def lag_friction(self) -> None:
        """Freeze friction's contacts at the current iterate."""
        self.potential.know_contacts()
        self.friction.lag(self.pose, self.step.At)
        self.friction.evaluate(self.at, "current")

    def friction_loads(self) -> tuple[PairLoads, PairLoads]:
        """Normal forces times mu by body pair: as frozen, and as they act at the current iterate."""
        self.potential.know_contacts()
        return self.friction.loads(self.pose)

    def mobility(self) -> np.ndarray:
        """(n,) change of velocity per load times c h^2 [1/(kg s)]; 0 for bodies that forces do not move."""
        return self.inverse_mass * self.rule.impulse

    def linear_solver(self) -> dict:
        """Which solver the last solve took, and why."""
        return self.linear.describe()

    def solver_memory(self) -> dict[str, np.ndarray]:
        """What the linear solver remembers from step to step, part of the state."""
        return self.linear.memory()

    def recall_solver(self, saved: dict[str, np.ndarray]) -> None:
        """Go on with what a saved state says the linear solver remembered; without it as in the beginning."""
        self.linear.recall(saved)
        self.said = None

    def update_multipliers(self) -> None:
        """Let the multipliers of the exact rows take over what their stiffness carries at the end of the direction.

        To be called after `accept`, when the iterate before it is still there.
        """
        direction = self.linear.direction
        self.device.launch(integrators.go_straight, self.n, self.trial, direction, self.straight)
        self.joints.relinearize(self.trial, direction, self.islands.done)
        self.joints.take_over(self.straight, True, self.islands.done)
        self.joints.evaluate(self.at, "current")

    # state -------------------------------------------------------------------------------------------------------

    def load_state(self, q, qd, previous_q, previous_qd, forces=None) -> None:
        """Positions and velocities (n, 12) of the last two steps, from the host, and what is remembered of the forces on the
        bodies (n, 12) (`abd.potentials.integrators`); nothing without."""
        launch, n = self.device.launch, self.n
        for values, pose in ((previous_q, self.before), (q, self.now), (q, self.pose)):
            self.device.write(self.q, values)
            launch(integrators.unpack, n, self.q, pose)
        self.device.write(self.velocity, qd)
        self.device.write(self.earlier, previous_qd)
        self.device.write(self.forces, np.zeros((n, 12)) if forces is None else forces)
        self._forget_candidates()

    def list_standing(self, scale: float = 1.0) -> None:
        """List the contacts of the present state, and evaluate them with energies in J times a scale; `load_state` or
        `abandon` forgets them again."""
        islands, alpha = self.islands, self.islands.scalars("limit")
        self.device.fill(self.moving)
        self.device.launch(
            paths.start_paths,
            self.n, self.body, self.step, self.lower, self.upper, self.pose, self.lead, self.moving, self.path,
        )  # fmt: skip
        self.device.write(alpha, np.ones(islands.count))
        self.contacts.set_scale(scale)
        self.contacts.candidates.renew(self.path, 0.0, islands.island, alpha)
        self.forget_contacts()
        self.potential.know_contacts()

    def near_contacts(self, q: np.ndarray) -> DefinedContacts:
        """What counts in the present state q (n, 12) of the pairs within their reach, as the definitions take it."""
        return self.contacts.defined(self.model, q)

    def contact_figures(self) -> tuple[float, int, float]:
        """Energy [J] of the contacts of `list_standing`, how many act, and the smallest gap [m]."""
        energy, gap = (self.device.read(one, self.contacts.candidates.count) for one in self.contacts.arrays("current")[:2])
        return float(energy.sum()), int(np.count_nonzero(gap < 1.0)), self.contacts.smallest_gap()[0]

    def abandon(self) -> None:
        """Give up a step that was begun: the state is as it was before it."""
        self.device.launch(integrators.copy_pose, self.n, self.now, self.pose)
        self._forget_candidates()

    def _forget_candidates(self) -> None:
        self.contacts.candidates.clear()
        self.forget_contacts()

    def read_positions(self) -> np.ndarray:
        """(n, 12) of the current iterate."""
        return self.device.read(self._packed(self.pose, self.q))

    def read_prescribed(self) -> np.ndarray:
        """(k, 12) of the prescribed bodies at the current iterate."""
        self.device.launch(integrators.pack_some, self.prescribed_count, self.prescribed, self.pose, self.prescribed_q)
        return self.device.read(self.prescribed_q)

    def read_state(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities (n, 12) of the last finished step."""
        return self.device.read(self._packed(self.now, self.q)), self.device.read(self.velocity)

    def read_forces(self) -> np.ndarray:
        """(n, 12) what is remembered of the forces on the bodies."""
        return self.device.read(self.forces)

    def read_previous(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities (n, 12) of the step before it."""
        aside = self.vectors  # others may look at `q`
        return self.device.read(self._packed(self.before, aside)), self.device.read(self.earlier)

    def _packed(self, pose, out: wp.array) -> wp.array:
        """States (n, 12) of a pose."""
        self.device.launch(integrators.pack, self.n, pose, out)
        return out

    def begin(self, rule: Scheme, mode: np.ndarray, eps: float, goals: np.ndarray | None) -> None:
        """Start a step: its scheme, the modes of the bodies (n,), friction's eps [m], goals (k, 12) of prescribed bodies if
        there are any."""
        launch, self.rule = self.device.launch, rule
        self.device.write(self.weights, rule.weights)
        self.device.write(self.motion, rule.motion)
        self.device.write(self.mode, mode.astype(np.int32))
        if goals is not None:
            self.device.write(self.prescribed_q, goals)
            launch(integrators.unpack_some, self.prescribed_count, self.prescribed, self.prescribed_q, self.goal)
            self.hold(self.immobile)
        self.step.ch2, self.at.eps, self.said = rule.c * rule.h**2, float(eps), None
        self.device.fill(self.step.pull, rule.pull)
        self.iteration.graphs.run(("begin", rule.chord, rule.chord and self.step.ch2), self.launch_begin)
        self.contacts.set_scale(self.step.ch2)
        self.forget_contacts()
        self.linear.begin()
        self.contacts.candidates.forget()

    def launch_begin(self) -> None:
        """Targets of the step, by launches only."""
        launch, n = self.device.launch, self.n
        out = self.target, self.step.scale, self.lead, self.rest
        if self.rule.chord:
            states = self.now, self.before, self.velocity, self.earlier
            launch(integrators.predict, n, self.body, *states, self.weights, self.step.ch2, *out)
        else:
            known = self.now, self.velocity, self.forces
            launch(integrators.coast, n, self.body, self.mode, self.motion, *known, *out)
        launch(integrators.copy_pose, n, self.now, self.pose)
        self.device.fill(self.step.lp)
        self.device.fill(self.step.lA)
        self.device.fill(self.contacts.law.caution)
        if self.system.has_friction:
            self.device.fill(self.joints.caution)

    def finish(self) -> None:
        """Make the current iterate the new state."""
        self.totals.launch(
            "friction",
            figures.value_figures,
            self.friction.count,
            self.friction.works(self.pose, self.rest, self.now, self.eps),
        )
        self.friction.keep_anchors(self.pose, self.rest, self.now, self.eps)
        self.launch_finish()
        self.row_memory.settle()

    def launch_finish(self) -> None:
        """The same without friction, by launches only; `RowMemory.settle` has to follow."""
        launch, n = self.device.launch, self.n
        self.device.copy(self.earlier, self.velocity)
        poses = self.pose, self.now, self.before
        if self.rule.chord:
            launch(integrators.differentiate, n, *poses, self.weights, self.velocity)
        else:
            known = self.target, self.step.scale, self.earlier, self.forces, self.velocity
            launch(integrators.keep_momentum, n, self.body, self.mode, self.motion, self.weights, *poses, *known)
        launch(integrators.copy_pose, n, self.now, self.before)
        launch(integrators.copy_pose, n, self.pose, self.now)
        self.row_memory.launch_finish((self.weights, self.mode), self.pose, self.totals)

    def contact_impulses(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Body pairs (k, 2) in contact at the end of the step, and the affine impulses (k, 12) of their contacts on both."""
        self.potential.know_contacts()
        self.islands.unsettle()
        pairs, *gradients = self.contacts.pair_gradients(self.pose)
        return pairs, *(-self.rule.impulse * gradient for gradient in gradients)

    sweep = staticmethod(swept)

    def set_velocity(self, velocity: np.ndarray) -> None:
        """Other velocities (n, 12) at the end of the step."""
        self.device.write(self.velocity, velocity)

    def set_forces(self, forces: np.ndarray) -> None:
        """Other values (n, 12) of what is remembered of the forces on the bodies."""
        self.device.write(self.forces, forces)

    def set_previous(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Another state and velocities (n, 12) before the last step."""
        self.device.write(self.q, q)
        self.device.launch(integrators.unpack, self.n, self.q, self.before)
        self.device.write(self.earlier, qd)

    def hold(self, held: np.ndarray) -> None:
        """Bodies (n,) that do not move any more in this step, besides the static ones and those that are left out."""
        held = np.maximum(self.immobile | self.absent, held).astype(np.int32)
        self.mobile = held == 0
        self.device.write(self.step.held, held)

    def sleep(self, ripe: np.ndarray) -> None:
        """Put to sleep for this step those islands that may move by ripe bodies (n,) alone, and who is left out."""
        self.sleeping = self.islands.sleepers(ripe, self.mobile) | self.absent

    def asleep(self) -> np.ndarray:
        """(islands,) bool, whether all its bodies that may move are asleep; nothing wakes up within the present list."""
        return self.islands.asleep(self.sleeping, self.mobile)

    def launch_settle(self, converged: wp.array) -> None:
        """Leave the bodies of the islands marked (count,), 1 or 0, and no others, where they are until the islands change or
        everything is evaluated again; kernels may skip them. Launches only."""
        self.islands.launch_settle(converged)
        # kernels pass over what is settled: it has to be the same in the iterate and in the trial
        self.device.launch(integrators.snap, self.n, self.pose, self.islands.done, self.trial)
        self.potential.keep_settled()

    def snap_to_goals(self, chosen: np.ndarray) -> None:
        """Set the chosen prescribed bodies exactly to their goals."""
        self.device.write(self.moving, chosen.astype(np.int32))
        self.device.launch(integrators.snap, self.n, self.goal, self.moving, self.pose)
        self.forget_contacts()

    def set_pull(self, pull: float, lp: np.ndarray, lA: np.ndarray) -> None:
        """Stiffness and multipliers of the prescribed bodies' pull."""
        self.device.fill(self.step.pull, float(pull))
        self.device.write(self.step.lp, lp)
        self.device.write(self.step.lA, lA)

    def set_loads(self, force: np.ndarray, torque: np.ndarray) -> None:
        """Forces [N] and torques [N m] (n, 3) on the bodies from now on."""
        self.device.write(self.body.force, force)
        self.device.write(self.body.torque, torque)

    def set_gravity(self, gravity: np.ndarray) -> None:
        """(3,) [m/s^2] from now on; what was recorded holds the old one."""
        self.step.gravity = wp.vec3d(*gravity)
        self.device.generation += 1

    def set_friction(self, mu: np.ndarray) -> None:
        """Coefficients (m, m) between materials from now on."""
        before = self.friction.enabled
        self.friction.set_coefficients(mu)
        if self.friction.enabled and not before:
            self._load(self.system)
        self.device.generation += 1

    @property
    def pair_law(self) -> PairLaw:
        """The law of contact by pairs of bodies."""
        return self.contacts.pair_law

    def set_own_laws(self, own: OwnLaws) -> None:
        """Pairs of bodies whose law is their own."""
        self.contacts.set_own_laws(own)
        self.forget_contacts()
