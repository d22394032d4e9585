"""What a backend answers: all that the step (`abd.step`) and what users hold (`abd.api`) ask of one.

A backend is a set of parts, each with at most a dozen calls. Those of `abd.backends.warp.on_warp` answer by kernels, those of
`abd.backends.reference.on_numpy` by the definitions; a test holds both to this page, and those who ask.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from abd.backends.answers import PairLoads, Status, UnprovenPaths
from abd.backends.progress import Progress
from abd.by_bodies import OfBodies
from abd.contact.forces import Pressing
from abd.contact.pair_law import PairLaw, PairParameters
from abd.energies import StepStatistics
from abd.joints.rows.forces import Applied
from abd.joints.rows.system import JointMemory, JointSystem
from abd.joints.rows.table import MeasureTable
from abd.model import Model
from abd.potentials.integrators import Scheme, Schemes
from abd.potentials.sticking import Anchors


class States(Protocol):
    """Positions and velocities of the bodies; velocity: the array (n, 12) of the latter, where it lives."""

    velocity: Any

    def load_state(
        self, q: np.ndarray, qd: np.ndarray, previous_q: np.ndarray, previous_qd: np.ndarray,
        forces: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """Positions and velocities (n, 12) of the last two steps, from the host, what is remembered of the forces on the bodies
        (n, 12) (`abd.potentials.integrators`); nothing without."""

    def abandon(self) -> None:
        """Give up a step that was begun: the iterate is the state before it."""

    def read_state(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities (n, 12) of the last finished step."""

    def read_previous(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities (n, 12) of the step before it."""

    def read_positions(self) -> np.ndarray:
        """(n, 12) of the current iterate."""

    def read_forces(self) -> np.ndarray:
        """(n, 12) what is remembered of the forces on the bodies."""

    def set_velocity(self, velocity: np.ndarray) -> None:
        """Other velocities (n, 12) at the end of the step."""

    def set_previous(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Another state and velocities (n, 12) before the last step."""

    def device_positions(self) -> Any:
        """The array (n, 12) of the current state, where it lives."""


class Steps(Protocol):
    """A substep, from its beginning to its end."""

    def begin(self, rule: Scheme | Schemes, mode: np.ndarray, eps: float | np.ndarray, target_poses: np.ndarray | None) -> None:
        """Start a step: its scheme, or those of several worlds, the modes of the bodies (n,), friction's eps [m], of all or (n,),
        target poses (k, 12) of prescribed bodies if there are any."""

    def mobility(self) -> np.ndarray:
        """(n,) change of velocity per load times c h^2 [1/(kg s)]; 0 for bodies that forces do not move."""

    def finish(self) -> None:
        """Make the current iterate the new state."""


class Arcs(Protocol):
    """Steps along arcs: how far a path leads, and energies at trials on it."""

    def follow_velocity(self, moving: np.ndarray) -> np.ndarray:
        """Set the path from q_n to where the motion leads; returns the largest alpha per island.

        Prescribed bodies go to their target poses. `moving` (n,) is how every body starts (`abd.backends.answers`)."""

    def try_step(self, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Energies at path(alpha): their change against the current ones and the sum of their sizes, per island."""

    def accept(self) -> None:
        """The trial becomes the current iterate."""

    def evaluate(self) -> None:
        """Energies at the current iterate, those of settled islands too; contacts only if they are not known already."""


class SweptPaths(Protocol):
    """Ways of the bodies between two states."""

    def unproven(self, h: float | np.ndarray, converged: Any = None) -> UnprovenPaths:
        """Pairs of bodies whose path from the state to the iterate, in a step of h [s], of all or (n,), is not proven free of
        collisions. Where iterations are going on from there, bodies of islands that have `converged` (islands,), 1 or 0 where
        the arrays live, count where they are, and what is found serves longer."""


class Inactive(Protocol):
    """Who takes no part in a step.

    Attributes:
        excluded: (n,) bool, bodies that are left out; sleeping: (n,) bool, those that sleep, and who is left out.
        mobile: (n,) bool, those that may move in this step.
    """

    mobile: np.ndarray
    excluded: np.ndarray
    sleeping: np.ndarray

    def hold(self, held: np.ndarray) -> None:
        """Bodies (n,) that do not move any more in this step, besides the static ones and those that are left out."""

    def sleep(self, may_sleep: np.ndarray) -> None:
        """Put to sleep for this step those islands whose bodies that may move are all in (n,), and bodies that are left out."""

    def exclude(self, excluded: np.ndarray) -> None:
        """Bodies (n,) bool that take no part in the next substeps: they stay where they are, and nothing meets them."""


class TargetPoses(Protocol):
    """Where prescribed bodies go."""

    def read_prescribed(self) -> np.ndarray:
        """(k, 12) of the prescribed bodies at the current iterate."""

    def set_pull(self, pull: float, lp: np.ndarray, lA: np.ndarray) -> None:
        """Stiffness and multipliers of the prescribed bodies' pull."""

    def snap_to_targets(self, chosen: np.ndarray) -> None:
        """Set the chosen prescribed bodies (n,) exactly to their target poses."""


class Rows(Protocol):
    """Joint rows."""

    def set_joints(self, system: JointSystem) -> None:
        """Take over a joint system; the next step needs its memory."""

    def load(self, memory: JointMemory) -> None:
        """Go on from a memory of the host's."""

    def begin_joints(self, ch2: OfBodies, time: OfBodies, speed: float) -> int | None:
        """Laws of a substep of c h^2 [s^2] that was begun and ends at `time` [s], of all or (n,) (`JointSystem.laws`).

        Returns:
            the first barrier row whose gap is closed, None without."""

    def take_efforts(self) -> None:
        """Efforts of joint rows that the host has changed."""

    def limited(self) -> np.ndarray:
        """(n,) bool, bodies on which joint limits or ropes push at the current iterate."""

    def turned(self, limit: float) -> np.ndarray:
        """(n,) bool, bodies of angles of joint rows that are more than `limit` [rad] from where the step began."""

    def joint_memory(self) -> JointMemory:
        """Host copy of what the joints remember of the last step."""

    def applied_laws(self, memory: JointMemory) -> Applied:
        """Laws of the last step, which left `memory`."""

    def watch_turns(self, table: MeasureTable) -> Any:
        """Who counts the turns of the angles of a table."""


class Touch(Protocol):
    """Contacts and friction.

    Attributes:
        near: whether contacts are listed, active or not; may_collide: whether contact filters and joints let any two bodies
            collide at present.
    """

    near: bool
    may_collide: bool

    def list_standing(self, scale: float | np.ndarray = 1.0) -> None:
        """List the contacts of the present state, and evaluate them with energies in J times a scale, of all bodies or (n,);
        `load_state` or `abandon` forgets them again."""

    def set_pair_parameters(self, own: PairParameters) -> None:
        """Pairs of bodies whose law is their own."""

    def set_apart(self, pairs: np.ndarray) -> None:
        """Bodies (k, 2), and no others, that do not collide from now on."""

    def lag_at_begin(self) -> None:
        """Freeze friction's contacts where the step begins; bodies are led to their inertial targets and target poses."""

    def lag_friction(self, chosen: np.ndarray | None = None) -> None:
        """Freeze friction's contacts at the current iterate, to which bodies have got: of the islands of `chosen` bodies (n,)
        bool, who are whole islands; the others keep theirs. All without."""

    def weigh_friction(self, share: PairLoads) -> None:
        """Multiply what is frozen of body pairs with a share, `PairLoads.load`; of other pairs it stays."""

    def friction_loads(self) -> tuple[PairLoads, PairLoads]:
        """Normal forces times mu by body pair: as frozen, and as they act at the current iterate."""

    def touching(self) -> np.ndarray:
        """(n,) 1 for bodies with an active contact at the current iterate."""

    def candidate_pairs(self) -> np.ndarray:
        """(k, 2) pairs of bodies that may act, the owner first: those of the candidates, and of what is frozen of friction. Those
        that do are `Readings.acting_pairs`."""

    def pair_gaps(self, exact: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """(k, 2) pairs of bodies that may touch, and their smallest gaps (k,) at the current iterate in activations.

        Without `exact`, gaps beyond 1 may be lower bounds."""

    def island_gaps(self) -> np.ndarray:
        """(islands,) smallest gaps at the current iterate, in activations, infinite without any; beyond 1 lower bounds."""


class Loads(Protocol):
    """External loads."""

    def set_loads(self, force: np.ndarray, torque: np.ndarray) -> None:
        """Forces [N] and torques [N m] (n, 3) on the bodies from now on."""

    def set_gravity(self, gravity: np.ndarray) -> None:
        """(3,) [m/s^2] from now on."""

    def set_friction(self, mu: np.ndarray) -> None:
        """Coefficients (m, m) between materials from now on."""


class Readings(Protocol):
    """What is read of a step.

    Attributes:
        friction_points: reads friction point by point (`abd.contact.sharing`).
    """

    friction_points: Any

    def statistics(self) -> StepStatistics:
        """Of the state that the last step led to; joints and friction left theirs in `finish`."""

    def vertex_speeds(self) -> np.ndarray:
        """(n,) bounds of the speed of every point of a surface in the state [m/s]."""

    def smallest_gap(self, exact: bool = True) -> float:
        """Smallest gap among the listed candidates at the current iterate [m], infinite if there are none.

        Without `exact`, the gap of a contact that does not act may be a lower bound."""

    def acting_pairs(self) -> np.ndarray:
        """(k, 2) pairs of bodies with an active contact at the current iterate, which may come more than once."""

    def contact_statistics(self) -> tuple[float, int, float]:
        """Energy [J] of the contacts of `list_standing`, how many act, and the smallest gap [m]."""

    def contact_impulses(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Body pairs (k, 2) in contact at the end of the step, and the affine impulses (k, 12) of their contacts on both."""

    def pressing(self) -> Pressing:
        """Points at which bodies press on one another at the current iterate."""

    def frozen_friction(self) -> tuple[np.ndarray, ...]:
        """Of every lagged contact the bodies (l, 2), kind (l,), normal (l, 3), contact points Y_i, Y_j (l, 4), share (l, 3) and
        load (l,) [N], as `abd.potentials.friction.Lagged` has them; and the reference (n, 12) of slips."""


class Linear(Protocol):
    """What linear systems are solved with."""

    def describe(self) -> dict:
        """Which solver the last solve took, and why."""

    def memory(self) -> dict[str, np.ndarray]:
        """What it remembers from step to step, part of the state."""

    def memory_of_parts(self, parts: list[tuple[np.ndarray, dict[str, np.ndarray]]]) -> dict[str, np.ndarray]:
        """What it remembers after bodies (n,) bool went on by themselves, each with a memory."""

    def recall(self, memory: dict[str, np.ndarray]) -> None:
        """Go on with what a saved state says it remembered; without it as in the beginning."""


class Iteration(Protocol):
    """Newton iterations of a minimisation."""

    def begin(
        self, tolerance: float, friction_tolerance: float, h: float | np.ndarray, tightest: float,
        moving: np.ndarray | None = None,
        loose: float | np.ndarray = 0.0, balanced: float | np.ndarray = 0.0,
    ) -> bool:  # fmt: skip
        """Begin a minimisation; returns whether a body is awake. Newton's tolerance, and that of islands with friction [m/s], the
        step [s], of all or (n,), the relative tolerance of the linear solves that decide, and the bodies (n,) bool whose
        islands take part, all without. Islands with friction have also converged where the direction, and the residual forces on
        every body, change velocities by no more than `loose` [m/s], of all or (n,). With `balanced`, likewise, they converge only
        where the residual before the direction was no more than that, or the direction is next to zero."""

    def run(self, progress: Progress) -> Status:
        """One iteration, counted in `progress`.

        Raises:
            StepFailure: it could not be done.
        """

    def unproven(self, h: float | np.ndarray) -> UnprovenPaths:
        """`SweptPaths.unproven` of an iterate from which another one follows."""

    def wake(self, islands: np.ndarray) -> None:
        """The potential has changed in islands (islands,) bool, by the stiffness of contacts or modes of bodies: they move on."""

    def smallest_gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """Of every island its smallest gap in activations and its last safe step; infinite and 1 where it has converged."""

    def speeds(self) -> np.ndarray:
        """(islands,) vertex speeds [m/s] that the last directions would give, -1 for islands that have converged."""

    def reached(self) -> np.ndarray:
        """(islands,) vertex speeds [m/s] that the directions would give with which islands converged, 0 for those that slept."""


class Start(Protocol):
    """Starts of steps."""

    def run(self, moving: np.ndarray, touching: bool, may_sleep: np.ndarray) -> None:
        """Move the iterate from q_n to the start: how bodies (n,) start (`abd.backends.answers`), whether some are in contact,
        and bodies (n,) that sleep if their whole island does."""


class Friction(Protocol):
    """Friction of contacts.

    Attributes:
        enabled: whether anything may; sticks: whether contacts remember how far they are stretched; count: those that are
            frozen.
    """

    enabled: bool
    sticks: bool
    count: int

    def read_anchors(self) -> Anchors:
        """What the contacts of the last step remember."""

    def set_anchors(self, anchors: Anchors) -> None:
        """What they remember from now on."""


class Islands(Protocol):
    """What moves together.

    Attributes:
        host: (n,) island of every body; count: how many there are; ties: (k, 2) pairs that are always in one.
    """

    host: np.ndarray
    count: int
    ties: np.ndarray


class IterateData(Protocol):
    """What terms read of the iterate.

    Attributes:
        step: what the step holds fixed; ch2: (n,) c h^2 of it [s^2]; eps: (n,) friction's [m].
    """

    step: Any
    ch2: np.ndarray
    eps: np.ndarray


class Backend(Protocol):
    """One scene, where its arrays live: a set of parts, of the same names on every backend.

    Attributes:
        model: the scene; n: its bodies; device: where, with a `name`; constants: of the bodies.
        system: the joint system at work; pair_law: the law of contact; at: the iterate.
        states, steps, arcs, swept_paths, inactive, target_poses, rows, touch, loads, readings, linear: what is asked of it.
        iteration, start: Newton's parts; whole: steps in one piece (`abd.backends.recorded.whole_step`), None where there are
            none.
        friction, islands: friction of contacts, and islands of bodies; sweep: `abd.potentials.sweeps.swept`.
    """

    model: Model
    n: int
    device: Any
    constants: Any
    system: JointSystem
    pair_law: PairLaw
    at: IterateData
    states: States
    steps: Steps
    arcs: Arcs
    swept_paths: SweptPaths
    inactive: Inactive
    target_poses: TargetPoses
    rows: Rows
    touch: Touch
    loads: Loads
    readings: Readings
    linear: Linear
    iteration: Iteration
    start: Start
    whole: Any
    sweep: Any
    friction: Friction
    islands: Islands


class OfPotential:
    """Terms of a backend's `potential`, by names of their own: joint rows, contacts, friction, joint system and contact law."""

    joints = property(lambda self: self.potential.joints)
    contacts = property(lambda self: self.potential.contacts)
    friction = property(lambda self: self.potential.friction)
    system = property(lambda self: self.potential.joints.system)
    pair_law = property(lambda self: self.potential.contacts.pair_law)
