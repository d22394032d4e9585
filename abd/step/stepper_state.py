"""`StepperState`: the state on a backend, and the parts of a step that belong to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from abd.backends.protocol import Backend
from abd.by_bodies import PerBody, common
from abd.contact.pair_law import PairParameters
from abd.energies import InitialContacts, StepStatistics, Work
from abd.errors import AbdError
from abd.joints.coordinates.readings import JointReader, Readings
from abd.joints.rows.forces import initial_laws
from abd.joints.rows.system import HISTORY, JointMemory
from abd.model import Model
from abd.potentials.integrators import longest
from abd.state import BodyHistory, State
from abd.step.contact_parameters import find_parameters
from abd.step.frame_forces import FrameForces
from abd.step.frame_path import FramePath
from abd.step.host_copies import HostCopies
from abd.step.impacts.rebounds import Rebounds
from abd.step.integrators import AFTER_JUMP, Articulations, Modes
from abd.step.joint_rows import JointRows
from abd.step.prescribed import Prescribed
from abd.step.sleep import Sleep
from abd.step.warnings import Warnings
from abd.tables import copied


class StepperState(HostCopies):
    """State of a scene between substeps, stored by a backend.

    Attributes:
        initial_contacts: contacts of the initial state.
        loads: function of the end [s], scalar or (n,), and the length [s] of a substep; returns its forces and torques (n, 3), or
            None to keep those of the last one; loads_are_constant: whether it depends on neither.
        start_loads: (2, n, 3) forces and torques at the end of the last substep, None in a restored state until the next one.
        worlds: frame lengths by world; time, previous_h: present time, and length of the last substep [s], scalars or (n,).
        work: since the start; statistics: of the last substep, None before the first.
        constrained: (n,) bool, bodies of articulations with active contacts, joint limits or ropes at the end of the last step.
        lagged_again: that of the last substep (`abd.step.newton.Minimisation`).
        stepped: whether a step led to the present state, so that its contacts are listed.
        forces: of contacts and joint rows in the last frame.
        excluded: (n,) bool, inactive bodies of the present substep.
        stopped: (n,) bool, bodies of worlds that failed.
        after_substep: called after every accepted substep.
    """

    def __init__(self, model: Model, backend: Backend):
        super().__init__(backend)
        self.model, self.settings = model, model.settings
        articulations = self.articulations = Articulations(model)
        self.prescribed, self.sleep = Prescribed(model), Sleep(model)
        self.modes, self.warnings = Modes(model, articulations), Warnings(model, articulations.jointed)
        self.rows = JointRows(model, articulations, self)
        self.rebounds, self.forces = Rebounds(model, articulations, self), FrameForces(self)
        self.path = FramePath()
        self.none = self.excluded = self._off = self._switched = articulations.none
        self.stopped = articulations.none
        self.worlds, self.lagged_again = WorldTimes(model), False
        self.loads: Callable[[float, float], tuple[np.ndarray, np.ndarray] | None] | None = None
        self.loads_are_constant: Callable[[], bool] = lambda: self.loads is None
        self.after_substep: Callable[[], None] = lambda: None

    @property
    def joints(self):
        """The present joint system (`abd.joints.rows.system`)."""
        return self.backend.system

    @property
    def off(self) -> np.ndarray:
        """(n,) bool, inactive bodies of all substeps: switched off, or in stopped worlds."""
        return self._off

    @off.setter
    def off(self, switched: np.ndarray) -> None:
        self._switched = switched
        self._off = switched | self.stopped if self.stopped.any() else switched

    def stop(self, bodies: np.ndarray) -> None:
        """Stop bodies (n,) bool, those of failed worlds, and step all others."""
        self.stopped = bodies if bodies.any() else self.none
        self.off = self._switched
        self.exclude(self.off)

    def in_worlds_of(self, some: np.ndarray) -> np.ndarray:
        """Return (n,) bool, all bodies of the worlds of some (n,) bool."""
        world = self.model.bodies.world
        return np.isin(world, world[some])

    @property
    def stopped_worlds(self) -> list[int]:
        return np.unique(self.model.bodies.world[self.stopped]).tolist()

    def reset(self, state: State) -> None:
        """Start in a state with empty statistics."""
        self.work, self.statistics, self.initial_contacts = Work(), None, InitialContacts()
        self.rebounds.forget()
        self.stop(self.none)
        self.rows.reset()
        self.warnings.reset()
        self.prescribed.late = self.prescribed.late[:0]
        self.restore(state)
        self.worlds.begin(longest(self.time))

    def restore(self, state: State) -> None:
        """Continue from a state; drop results of steps before it."""
        n = len(self.model.bodies)
        self.statistics = self.start_loads = None
        self.time, self.previous_h, self.frame = common(state.time), common(state.previous_h), state.step
        bodies = copied(replace(BodyHistory.none(n), stopped=self.stopped) if state.bodies is None else state.bodies)
        self.constrained, self.modes.history = bodies.constrained, bodies.history
        self.prescribed.stride, self.sleep.time_at_rest = bodies.stride, bodies.time_at_rest
        if not np.array_equal(bodies.stopped, self.stopped):
            self.stop(bodies.stopped)
        previous_q = state.q if state.previous_q is None else state.previous_q
        previous_qd = state.qd if state.previous_qd is None else state.previous_qd
        self.backend.states.load_state(state.q, state.qd, previous_q, previous_qd, bodies.forces)
        self.backend.friction.set_anchors(copied(state.anchors))
        if state.pairs is not None:
            self.backend.touch.set_pair_parameters(copied(state.pairs))
        else:  # they follow from the positions
            self.initial_contacts, touching = find_parameters(self.backend)
            if touching.any():
                self.constrained = self.articulations.containing(touching != 0)
        self.joints.follow_poses(previous_q)
        self.forget_copies()
        self.forces.forget()
        self.stepped = False
        fresh = state.joints is None
        self.memory = self.joints.fresh_memory(state.q, state.qd) if fresh else self._check_memory(copied(state.joints))
        initial = initial_laws(self.joints, self.memory, self.settings, self.time) if state.laws is None else None
        self.applied = initial or copied(state.laws)
        if initial and (violated := self._violated(state.qd, self.memory)).any():
            self.modes.history = np.where(violated, -AFTER_JUMP, self.modes.history).astype(np.int32)

    def _violated(self, qd: np.ndarray, memory: JointMemory) -> np.ndarray:
        """Return (n,) bool, bodies of articulations with open couplings, or with velocities qd (n, 12) that violate compliant
        joints whose vibration steps do not resolve; implicit Euler closes them."""
        stiff = self.modes.stiff_compliances(self.joints)
        return self.articulations.containing(
            self.rows.open_couplings(memory) | self.rows.violated_rows(qd, memory, stiff)
        )

    def _check_memory(self, memory: JointMemory) -> JointMemory:
        """Return a joint memory of this scene.

        Raises:
            AbdError: it has a different number of rows or measures.
        """
        found, needed = (*memory.history.shape, len(memory.reference)), (HISTORY, len(self.joints.rows), len(self.joints.table))
        if found != needed:
            raise AbdError(
                f"the joint rows and measures of the state must have the sizes {needed}, not {found}: it was written by another "
                "release, or for another scene; run the scene from its start"
            )
        return memory

    def start_contacts(self, bodies: np.ndarray) -> None:
        """Start collisions of pairs with some bodies (indices): set the contact parameters of close pairs."""
        _, touching = find_parameters(self.backend, bodies)
        in_worlds = np.isin(self.model.bodies.world, self.model.bodies.world[bodies])
        self.constrained = self.constrained | self.articulations.containing((touching != 0) & in_worlds)

    def fresh(self, q: np.ndarray, qd: np.ndarray, memory: JointMemory, time: PerBody = 0.0) -> State:
        """Return an initial state q, qd (n, 12) at a time [s], without parameters of its contacts (`start_contacts`)."""
        history = np.where(self._violated(qd, memory), -AFTER_JUMP, 0).astype(np.int32)
        laws = initial_laws(self.joints, memory, self.settings, time)
        stored = replace(BodyHistory.none(len(q)), history=history)
        return State(
            q=q, qd=qd, time=time, previous_q=q, previous_qd=qd, bodies=stored, pairs=PairParameters(), joints=memory, laws=laws,
        )  # fmt: skip

    @property
    def fastest(self) -> float:
        """Largest |dA/dt|_F of a body [1/s]."""
        if self.statistics is None:
            return float(np.linalg.norm(self.qd[:, 3:], axis=1).max(initial=0.0))
        return self.statistics.fastest

    @contextmanager
    def listed(self) -> Iterator[bool]:
        """List the contacts of the present state, in an initial state for the duration of the context; yield `stepped`."""
        if self.stepped:
            yield True
            return
        self.backend.touch.list_contacts()
        try:
            yield False
        finally:
            self.backend.states.abandon()

    def state(self) -> State:
        """Return a host copy of all that a continued run needs."""
        backend = self.backend
        bodies = BodyHistory(
            self.constrained, self.stopped, self.modes.history, backend.states.read_forces(), self.prescribed.stride,
            self.sleep.time_at_rest,
        )  # fmt: skip
        return State(
            q=self.q.copy(),
            qd=self.qd.copy(),
            time=self.time,
            step=self.frame,
            previous_q=self.previous_q.copy(),
            previous_qd=self.previous_qd.copy(),
            previous_h=self.previous_h,
            bodies=copied(bodies),
            pairs=copied(backend.pair_law.own),
            anchors=copied(backend.friction.read_anchors()),
            joints=copied(self.memory),
            laws=copied(self.applied),
        )

    def statistics_without_work(self) -> StepStatistics:
        """Return statistics of a state that worlds have reached in separate substeps; their work is already counted."""
        backend, model = self.backend, self.model
        backend.touch.list_contacts(backend.at.ch2)
        statistics = replace(backend.readings.statistics(), external_work=0.0, drive_work=0.0, friction_work=0.0)
        if not len(model.joints):
            return statistics
        reader = JointReader(model)
        read = Readings(reader, self.joints, self.q, self.qd, reader.coordinates(self.q), self.memory, self.applied)
        return replace(statistics, joint=float(read.energy.sum()), joint_residual=tuple(read.worst_residual.tolist()))

    def exclude(self, excluded: np.ndarray) -> None:
        """Exclude bodies (n,) bool from the next substeps; their results are undefined."""
        excluded = excluded if excluded.any() else self.none
        if excluded is not self.excluded:
            self.excluded = excluded
            self.backend.inactive.exclude(excluded)


class WorldTimes:
    """Times and frame lengths of the w worlds of a model; a frame is one step of every world with its own dt.

    Attributes:
        numbers: (w,) world numbers; lengths: of the next frame [s]; clock: sum of the longest frames since the start [s].
    """

    def __init__(self, model: Model):
        self.model = model
        self.numbers, self._first, self._place = np.unique(model.bodies.world, return_index=True, return_inverse=True)
        self.begin(0.0)

    def begin(self, clock: float) -> None:
        """Start at a time [s] with the frame lengths of the scene."""
        self.lengths, self.clock = common(self.model.step_lengths), clock

    def advance(self) -> None:
        self.clock += longest(self.lengths)

    def world_values(self, values: PerBody) -> np.ndarray:
        """Return (w,) values of the worlds."""
        return values[self._first] if isinstance(values, np.ndarray) else np.array([values] * len(self.numbers))

    def of_bodies(self, values: np.ndarray) -> PerBody:
        """Return the values (w,) of worlds by bodies."""
        return common(np.asarray(values, dtype=float)[self._place])
