"""Protocol of a backend: the operations that the time step (`abd.step`) and the API (`abd.api`) call.

A backend is a set of parts with at most a dozen operations each. `abd.backends.warp.on_warp` implements them with kernels,
`abd.backends.reference.on_numpy` with the NumPy definitions.

Newton's method (`abd.backends.recorded`) is the same for both. It decides by kernels on arrays per island, and calls stages. They
launch kernels or run NumPy on the same arrays:

    trial_path  launch_start, aim, displacements, advance: arcs along the free motion or a direction
    touch       renew, test_cover, times_of_impact, launch_lag, mark_touching; lists, capacities
    potential   linearize, project, evaluate, evaluate_trial, exchange, launch_mark_done
    rows        launch_gaps, launch_open_fractions (limits); launch_effort_changes; launch_errors, launch_predicted_errors,
                launch_missing, step_multipliers, update_multipliers (exact rows)
    solver      launch_factor, launch_solve, launch_correct (`abd.backends.linear.solver`); `choose_solver` of the backend
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from abd.backends.answers import PairLoads
from abd.by_bodies import PerBody
from abd.contact.forces import Pressing
from abd.contact.pair_law import PairLaw, PairParameters
from abd.energies import StepStatistics
from abd.joints.rows.forces import Applied
from abd.joints.rows.system import JointMemory, JointSystem
from abd.joints.rows.table import MeasureTable
from abd.model import Model
from abd.potentials.integrators import Scheme, Schemes
from abd.potentials.sticking import Anchors

if TYPE_CHECKING:
    from abd.backends.recorded.arcs import Arcs
    from abd.backends.recorded.iteration import Iteration
    from abd.backends.recorded.start import Start


class Pending(Protocol):
    """Copy of arrays to the host."""

    def wait(self) -> list[np.ndarray]:
        """Return the arrays when they are complete."""


class States(Protocol):
    """Positions and velocities of the bodies.

    Attributes:
        velocity: (n, 12) array of the velocities, on the device.
    """

    velocity: Any

    def load_state(
        self, q: np.ndarray, qd: np.ndarray, previous_q: np.ndarray, previous_qd: np.ndarray,
        forces: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """Load positions and velocities (n, 12) of the last two steps from the host.

        `forces` (n, 12) is the acceleration history of the integrator (`abd.potentials.integrators`), zero by default."""

    def abandon(self) -> None:
        """Discard a step that was begun: the iterate becomes the last state."""

    def read_state(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities (n, 12) of the last finished step."""

    def read_previous(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities (n, 12) of the step before the last one."""

    def read_positions(self) -> np.ndarray:
        """(n, 12) positions of the current iterate."""

    def copy_positions(self) -> Pending:
        """Begin to copy the positions (n, 12) of the current iterate to the host; the copy may overlap with later launches."""

    def read_forces(self) -> np.ndarray:
        """(n, 12) acceleration history of the bodies."""

    def set_velocity(self, velocity: np.ndarray) -> None:
        """Set the velocities (n, 12) at the end of the step."""

    def device_positions(self) -> Any:
        """(n, 12) array of the current state, on the device."""


class Steps(Protocol):
    """Beginning and end of a substep."""

    def begin(self, rule: Scheme | Schemes, mode: np.ndarray, eps: float | np.ndarray, target_poses: np.ndarray | None) -> None:
        """Start a step.

        Args:
            rule: its scheme, or the schemes of several worlds; mode: (n,) modes of the bodies.
            eps: slip below which friction is smoothed [m], scalar or (n,).
            target_poses: (k, 12) of prescribed bodies, None without any.
        """

    def mobility(self) -> np.ndarray:
        """(n,) change of velocity per load times c h^2 [1/(kg s)]; 0 for bodies that are not dynamic."""

    def finish(self) -> None:
        """Make the current iterate the new state."""


class SweptPaths(Protocol):
    """Swept paths of the bodies between two states."""

    def unproven(self, h: float | np.ndarray, converged: Any = None) -> np.ndarray:
        """Pairs of bodies (k, 2) whose path from the state to the iterate is not proven collision-free.

        A body whose own path bends too much for a proof is a pair with itself.

        Args:
            h: length of the step [s], scalar or (n,).
            converged: (islands,) 1 or 0 on the device, during a minimisation: bodies of converged islands count as at rest where
                they are, and the candidate list gets a margin for the iterations that follow.
        """


class Inactive(Protocol):
    """Bodies that take no part in a step.

    Attributes:
        excluded: (n,) bool, excluded bodies; sleeping: (n,) bool, bodies that sleep or are excluded.
        mobile: (n,) bool, bodies that may move in this step.
    """

    mobile: np.ndarray
    excluded: np.ndarray
    sleeping: np.ndarray

    def hold(self, held: np.ndarray) -> None:
        """Hold bodies (n,) bool for the rest of this step, in addition to static and excluded ones."""

    def sleep(self, may_sleep: np.ndarray) -> None:
        """Let islands sleep in this step whose mobile bodies are all in `may_sleep` (n,) bool; excluded bodies sleep too."""

    def exclude(self, excluded: np.ndarray) -> None:
        """Exclude bodies (n,) bool from the next substeps: they stay where they are, without contacts."""


class TargetPoses(Protocol):
    """Target poses of prescribed bodies."""

    def read_prescribed(self) -> np.ndarray:
        """(k, 12) states of the prescribed bodies at the current iterate."""

    def set_penalty(self, penalty: float, lp: np.ndarray, lA: np.ndarray) -> None:
        """Set stiffness and multipliers of the penalty towards the target poses."""

    def snap_to_targets(self, chosen: np.ndarray) -> None:
        """Set the chosen prescribed bodies (n,) exactly to their target poses."""


class Rows(Protocol):
    """Joint rows."""

    def set_joints(self, system: JointSystem) -> None:
        """Set the joint system; `load` its memory before the next step."""

    def load(self, memory: JointMemory) -> None:
        """Load the memory of the joints from the host."""

    def begin_joints(self, ch2: PerBody, time: PerBody, speed: float) -> int | None:
        """Set the laws of a substep of c h^2 [s^2] that ends at `time` [s], scalars or (n,) (`JointSystem.laws`).

        Returns:
            the first barrier row whose gap is closed, None without."""

    def take_efforts(self) -> None:
        """Upload efforts of joint rows that were changed on the host."""

    def limited(self) -> np.ndarray:
        """(n,) bool, bodies on which limits or ropes act at the current iterate."""

    def turned(self, limit: float) -> np.ndarray:
        """(n,) bool, bodies of joint angles that have changed by more than `limit` [rad] since the step began."""

    def joint_memory(self) -> JointMemory:
        """Host copy of the memory of the joints after the last step."""

    def applied_laws(self, memory: JointMemory) -> Applied:
        """Laws of the last step, after which the joints have `memory`."""

    def watch_turns(self, table: MeasureTable) -> Any:
        """Counter of the full turns of the angles of a table."""


class Touch(Protocol):
    """Contacts and friction.

    Attributes:
        near: whether the candidate list has contacts; may_collide: whether contact filters and joints permit any two bodies to
            collide.
    """

    near: bool
    may_collide: bool

    def list_contacts(self, scale: float | np.ndarray = 1.0) -> None:
        """List the contacts of the present state and evaluate them, with energies in J times a scale, scalar or (n,).

        The list is valid until `load_state` or `abandon`."""

    def set_pair_parameters(self, own: PairParameters) -> None:
        """Set the contact parameters of single pairs of bodies."""

    def exclude_pairs(self, pairs: np.ndarray) -> None:
        """Set the pairs of bodies (k, 2) that do not collide."""

    def lag_friction(self, chosen: np.ndarray | None = None) -> None:
        """Lag friction at the current iterate.

        `chosen`: (n,) bool, all bodies of the islands concerned; other islands keep their lagged contacts. All by default."""

    def friction_loads(self) -> tuple[PairLoads, PairLoads]:
        """Normal forces times mu by body pair: lagged, and at the current iterate."""

    def touching(self) -> np.ndarray:
        """(n,) 1 for bodies with an active contact at the current iterate."""

    def candidate_pairs(self) -> np.ndarray:
        """(k, 2) pairs of bodies of the candidates and of lagged friction, the owner first."""

    def pair_gaps(self, exact: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """(k, 2) pairs of bodies of the candidates, and their smallest gaps (k,) at the iterate, in activation distances.

        Without `exact`, gaps beyond 1 may be lower bounds."""


class Loads(Protocol):
    """External loads."""

    def set_loads(self, force: np.ndarray, torque: np.ndarray) -> None:
        """Set forces [N] and torques [N m] (n, 3) on the bodies."""

    def set_gravity(self, gravity: np.ndarray) -> None:
        """Set gravity (3,) [m/s^2]."""

    def set_friction(self, mu: np.ndarray) -> None:
        """Set coefficients of friction (m, m) between materials."""


class Readings(Protocol):
    """Results of a step."""

    def statistics(self) -> StepStatistics:
        """Statistics of the state after the last step; those of joints and friction are from `Steps.finish`."""

    def vertex_speeds(self) -> np.ndarray:
        """(n,) upper bounds of the speeds of all surface points [m/s]."""

    def contact_statistics(self) -> tuple[float, int, float]:
        """Energy [J], number of active contacts, and smallest gap [m] of the contacts of `Touch.list_contacts`."""

    def pressing(self) -> Pressing:
        """Active contact points at the current iterate."""

    def frozen_friction(self) -> tuple[np.ndarray, ...]:
        """Lagged contacts (`abd.potentials.friction.Lagged`): bodies (l, 2), kind (l,), normal (l, 3), contact points Y_i, Y_j
        (l, 4), start_stretch (l, 3), load (l,) [N]; then the reference (n, 12) of slips."""


class Linear(Protocol):
    """Linear solver."""

    def describe(self) -> dict:
        """Solver of the last solve, and the reason for its choice."""


class Friction(Protocol):
    """Friction of contacts.

    Attributes:
        enabled: whether any pair has friction; sticks: whether sticking contacts are springs with anchors; count: number of
            lagged contacts.
    """

    enabled: bool
    sticks: bool
    count: int

    def read_anchors(self) -> Anchors:
        """Anchors of the sticking contacts of the last step."""

    def set_anchors(self, anchors: Anchors) -> None:
        """Set the anchors of sticking contacts."""


class Islands(Protocol):
    """Islands: bodies that interact through joints or contacts.

    Attributes:
        host: (n,) island of every body; count: their number; ties: (k, 2) pairs of bodies that always share an island.
    """

    host: np.ndarray
    count: int
    ties: np.ndarray


class IterateData(Protocol):
    """Data of the iterate that energy terms read.

    Attributes:
        step: constants of the step; ch2: (n,) c h^2 [s^2]; eps: (n,) slip below which friction is smoothed [m].
    """

    step: Any
    ch2: np.ndarray
    eps: np.ndarray


class Backend(Protocol):
    """One scene on one device: a set of parts with the same names on every backend.

    Attributes:
        model: the scene; n: number of bodies; device: with a `name`; constants: of the bodies.
        system: present joint system; pair_law: contact law; at: the iterate.
        states, steps, swept_paths, inactive, target_poses, rows, touch, loads, readings, linear: the parts above.
        iteration, start, arcs: Newton's method; whole: steps recorded as a whole (`abd.backends.recorded.whole_step`), None where
            the backend has none.
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
    """Shortcuts to the terms of a backend's `potential`: joint rows, contacts, friction, joint system and contact law."""

    joints = property(lambda self: self.potential.joints)
    contacts = property(lambda self: self.potential.contacts)
    friction = property(lambda self: self.potential.friction)
    system = property(lambda self: self.potential.joints.system)
    pair_law = property(lambda self: self.potential.contacts.pair_law)
