"""One frame: substeps, retries and the bookkeeping between them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from time import perf_counter

import numpy as np

from abd.backends.device.memory import memory_watched
from abd.backends.progress import Progress
from abd.backends.protocol import Backend
from abd.contact.pair_law import OwnLaws
from abd.errors import OutOfMemory, StepFailure
from abd.joint_list import JointList
from abd.joints.closure.link_graph import joined_components
from abd.joints.closure.redundancy import open_by
from abd.joints.coordinates.readings import JointReader, Readings
from abd.joints.rows.forces import Applied, opening_laws
from abd.joints.rows.system import TURN, JointMemory
from abd.model import Kind, Model
from abd.potentials import free_motion
from abd.potentials.integrators import Mode, Scheme, scheme
from abd.potentials.sticking import Anchors
from abd.rotations import axial
from abd.state import State
from abd.step.account import Opening, Work
from abd.step.impacts.fast_hits import FastHits
from abd.step.impacts.limit_impacts import limit_strikes
from abd.step.impacts.restitution import Restitution, Strikes
from abd.step.newton import solve_step
from abd.step.prescribed import Prescribed
from abd.step.retries import Retries
from abd.step.saved import joints_of, own_laws_of, saved_laws, saved_memory, saved_own_laws
from abd.step.sleep import Sleep
from abd.step.start import start
from abd.step.starts import starting_laws
from abd.step.stiffness import ContactStiffness
from abd.step.strain import StrainWatch
from abd.step.turning import Turning
from abd.step.ways import NotFree

_log = logging.getLogger(__name__)

STEADY = 0.5
"""Largest turn h |L| / J_mid [rad] of a jointed body in a step, up to which the step is smooth (`abd.potentials.integrators`)."""


FEW = 3
"""Times that a step is taken again for the bodies that were struck in it, before it is for all that may touch them."""

STRAINED = 10.0
"""By how many times its strain the moments of inertia of a body differ from those at rest, at most."""

Frozen = tuple[tuple[np.ndarray, ...], float]


class Struck(Exception):
    """An iterate shows contacts that act on bodies of a smooth step.

    Attributes:
        bodies: (n,) bool, those and what is joined to them.
    """

    def __init__(self, bodies: np.ndarray):
        super().__init__()
        self.bodies = bodies


class Stepper:
    """Advances a `State` by frames on a backend, where the state lives.

    A step that fails is halved, at most `settings.retries` times, and one whose way is not free is taken in pieces
    (`abd.step.ways`), by the islands that failed (`abd.step.retries`). What the host is asked for is read when it is
    asked for, and kept until the next step.

    Attributes:
        opening: contacts of the state that no step led to, before the first step.
        loads: forces and torques (n, 3) of a (sub)step, from its end [s] and its length [s]; None for those of the last one.
        work: done so far; figures: of the last (sub)step, None before the first.
        touching, acting: (n,) bool, dynamic bodies on which contacts, or contacts, joint limits or ropes, acted at the end of
            the last step, and all that are joined to them.
        stepped: the present state is what a step led to, whose contacts are still listed.
        left_rubbing: what rubbed in the last (sub)steps that led to the present state, where bodies went through them by
            themselves (`Retries`); empty in any other state.
        remembers: (n,) for how many steps, 2 at most, the integrator has gone on from the forces on every body; a new array
            where it changes.
        absent: (n,) bool, bodies that take no part in the present (sub)step; off: those that take part in none.
    """

    def __init__(self, model: Model, backend: Backend, state: State):
        self.model, self.settings, self.backend = model, model.settings, backend
        self.stiffness = ContactStiffness(model)
        self.prescribed, self.sleep, self.restitution = Prescribed(model), Sleep(model), Restitution(model)
        self.components = np.unique(joined_components(model), return_inverse=True)[1]
        self.component_count = int(self.components.max(initial=-1)) + 1
        self.dynamic = model.bodies.kind == Kind.DYNAMIC
        self.fast_hits = FastHits(model)
        self.jointed = np.zeros(len(model.bodies), dtype=bool)
        ends = JointList.of(model.joints).bodies
        self.jointed[ends[ends >= 0]] = True
        self.strain, self.turning = StrainWatch(model, self.jointed), Turning(model)
        self.jointed = self.jointed & self.dynamic & (model.bodies.free_rotation == 3)
        self.nobody = np.zeros(len(model.bodies), dtype=bool)
        self._may_whirl = model.settings.integrator == "generalized_alpha" and bool(self.jointed.any())
        self.off = self.absent = self.nobody
        self._schemes = self._modes = self._last_mode = self._left_by_mode = None  # the last ones that were asked for
        self.retries = Retries(self)
        self.loads: Callable[[float, float], tuple[np.ndarray, np.ndarray] | None] | None = None
        self.reset(state)

    @property
    def joints(self):
        """The joint system at work (`abd.joints.rows.system`)."""
        return self.backend.system

    def reset(self, state: State) -> None:
        """Begin in a state, as one that was made of it does."""
        self.work, self.figures, self.opening = Work(), None, Opening()
        self.rebounded = self.nobody
        self._begun = None
        self.leave_out(self.off)
        self.turning.reset()
        self.strain.reset()
        self.restore(state)

    def restore(self, state: State) -> None:
        """Continue from a state; what a step before it found says nothing of this one."""
        n = len(self.model.bodies)
        self.figures = None
        self.time, self.frame = state.time, state.step
        self.previous_h = state.previous_h
        self.touching = state.extra.get("touching", np.zeros(n, dtype=np.int32)).astype(bool)
        self.loaded = bool(state.extra.get("loaded", np.zeros(1))[0])
        self.acting = state.extra.get("acting", np.zeros(n, dtype=np.int32)).astype(bool)
        self.remembers = state.extra.get("remembers", np.zeros(n, dtype=np.int32)).astype(np.int32)
        self.prescribed.pace = state.extra.get("pace", np.zeros(n)).copy()
        self.sleep.calm = state.extra.get("calm", np.zeros(n)).copy()
        previous_q = state.q if state.previous_q is None else state.previous_q
        previous_qd = state.qd if state.previous_qd is None else state.previous_qd
        forces = state.extra["forces"].reshape(n, 12) if "forces" in state.extra else None
        self.backend.load_state(state.q, state.qd, previous_q, previous_qd, forces)
        self.backend.friction.set_anchors(Anchors.of(state.extra))
        self._restore_laws(state)
        self.backend.recall_solver(state.extra)
        self.joints.face(previous_q)
        self._forget()
        self.stepped, self.left_rubbing = False, ()
        self.memory = saved_memory(state, self.joints)
        self.applied = saved_laws(state) or self.opening_laws()

    def _restore_laws(self, state: State) -> None:
        """The own laws of pairs; found from the positions where no step led there."""
        backend, own = self.backend, saved_own_laws(state)
        if own is not None:
            backend.set_own_laws(own)
            return
        backend.set_own_laws(OwnLaws())
        backend.list_standing()
        laws, held = starting_laws(self.model, backend.pair_law, backend.near_contacts(state.q), state.q, state.qd)
        if len(laws):
            backend.set_own_laws(laws)
            backend.list_standing()
        self.opening = Opening(*backend.contact_figures())
        if self.opening.contacts:
            self.touching = self._drawn_along(backend.touching() != 0)
        backend.friction.set_anchors(held)
        backend.abandon()

    def meet(self, bodies: list[int]) -> None:
        """Pairs of some bodies begin to collide: where they are near, their laws are found as at the start of a scene."""
        backend, law = self.backend, self.backend.pair_law
        backend.list_standing()
        found, _ = starting_laws(self.model, law, backend.near_contacts(self.q), self.q, self.qd)
        own, theirs = law.own, [np.isin(law.bodies_of(one.key), bodies).any(axis=0) for one in (found, law.own)]
        parts = own[~theirs[1]], found[theirs[0]]
        columns = (np.concatenate([getattr(one, name) for one in parts]) for name in ("key", "activation", "factor"))
        key, activation, factor = columns
        order = np.argsort(key, kind="stable")
        backend.set_own_laws(OwnLaws(key[order], activation[order], factor[order]))
        backend.list_standing()
        self.touching = self.touching | self._drawn_along(backend.touching() != 0)
        backend.abandon()

    def _forget(self) -> None:
        """What the host holds of the state is not so any more."""
        self._state = self._previous = self._memory = self._applied = None
        self._memory_is_new = False

    @property
    def q(self) -> np.ndarray:
        """(n, 12) positions after the last (sub)step."""
        return self._read_state()[0]

    @property
    def qd(self) -> np.ndarray:
        """(n, 12) velocities after the last (sub)step."""
        return self._read_state()[1]

    @contextmanager
    def listed(self) -> Iterator[bool]:
        """While the contacts of the present state are listed: by the last step, or, where no step led to it, for the time
        being; tells whether it was a step."""
        if self.stepped:
            yield True
            return
        self.backend.list_standing()
        try:
            yield False
        finally:
            self.backend.abandon()

    def rubbing(self) -> tuple[Frozen, ...]:
        """What rubbed in the last (sub)steps that led to the present state: lagged contacts, as `frozen_friction` of a backend
        has them, and eps [m] of their step."""
        return ((self.backend.frozen_friction(), self.backend.eps),) if self.stepped else self.left_rubbing

    def _read_state(self) -> tuple[np.ndarray, np.ndarray]:
        if self._state is None:
            self._state = self.backend.read_state()
        return self._state

    @property
    def previous_q(self) -> np.ndarray:
        """(n, 12) positions before it."""
        return self._read_previous()[0]

    @property
    def previous_qd(self) -> np.ndarray:
        """(n, 12) velocities before it."""
        return self._read_previous()[1]

    def _read_previous(self) -> tuple[np.ndarray, np.ndarray]:
        if self._previous is None:
            self._previous = self.backend.read_previous()
        return self._previous

    def set_previous(self, q: np.ndarray, qd: np.ndarray, h: float) -> None:
        """Other states and velocities (n, 12) before the last step, now one of h [s]; those that impacts have given other
        velocities come from free fall."""
        if self.settings.integrator == "bdf2" and self.rebounded.any():
            q, qd = q.copy(), qd.copy()
            self._fall_back(q, qd, self.rebounded, h)
        self.backend.set_previous(q, qd)
        self._previous = None

    @property
    def memory(self) -> JointMemory:
        """What the joints remember; the next step goes on from what is set here."""
        if self._memory is None:
            self._memory = self.backend.joint_memory()
        return self._memory

    @memory.setter
    def memory(self, memory: JointMemory) -> None:
        self._memory, self._memory_is_new = memory, True

    @property
    def applied(self) -> Applied:
        """Laws of the joint rows in the last (sub)step."""
        if self._applied is None:
            self._applied = self.backend.applied_laws(self.memory)
        return self._applied

    @applied.setter
    def applied(self, applied: Applied) -> None:
        self._applied = applied

    def opening_laws(self) -> Applied:
        """Laws of the joint rows in the present state, if no step led to it."""
        return opening_laws(self.joints, self.memory, self.settings, self.time)

    def state(self) -> State:
        """Host copy of everything a continued run needs."""
        return State(
            q=self.q.copy(),
            qd=self.qd.copy(),
            time=self.time,
            step=self.frame,
            previous_q=self.previous_q.copy(),
            previous_qd=self.previous_qd.copy(),
            previous_h=self.previous_h,
            extra={
                "touching": self.touching.astype(np.int32),
                "loaded": np.array([self.loaded], dtype=np.int32),
                "acting": self.acting.astype(np.int32),
                "remembers": self.remembers.copy(),
                "forces": self.backend.read_forces().ravel(),
                "pace": self.prescribed.pace.copy(),
                "calm": self.sleep.calm.copy(),
                **self.backend.friction.read_anchors().saved(),
                **own_laws_of(self.backend.pair_law.own),
                **joints_of(self.memory, self.applied),
                **self.backend.solver_memory(),
            },
        )

    def advance(self) -> tuple[Progress, int, float]:
        """One frame; returns its progress, the number of substeps and the wall time [s].

        Raises:
            StepFailure: with the frame and time, when the shortest substep failed too.
        """
        begin = perf_counter()
        progress, h = Progress(), self.settings.dt
        try:
            substeps = 1 if self._take_frame(h, progress) else self.retries.advance(h, self.settings.retries, progress)
        except StepFailure as failure:
            failure.step, failure.time = self.frame + 1, self.time
            raise
        self.frame += 1
        return progress, substeps, perf_counter() - begin

    def _take_frame(self, h: float, progress: Progress) -> bool:
        """Take a frame of h [s] in one piece (`_take_whole`) without what `Retries` keeps for one that fails, where the backend
        has taken such steps; whether it was taken. One that was not is left as it was, begun."""
        self._begun, whole = None, self.backend.whole
        if whole is None or not whole.taken or self.absent is not self.nobody:
            return False
        if self.off is not self.nobody and self.off.any():
            return False
        try:
            with memory_watched(self.backend.device.name):
                rule, struck = self._begin_substep(h)
                if self._take_whole(rule, self.modes(rule, struck), progress):
                    return True
        except OutOfMemory as error:
            raise StepFailure("memory", str(error)) from error
        except StepFailure:
            return False  # who takes it again finds the reason, and mends it
        self._begun = rule, struck
        return False

    def before_trying(self) -> tuple[dict, np.ndarray, bool, JointMemory | None, OwnLaws]:
        """What a (sub)step changes even if it fails, for `take_back`: none of it is as large as the state."""
        memory = self.memory.copy() if self.joints.followers else None
        return self.backend.solver_memory(), self.prescribed.pace, self.loaded, memory, self.backend.pair_law.own

    def take_back(
        self, solver: dict, pace: np.ndarray, loaded: bool, memory: JointMemory | None, own: OwnLaws
    ) -> None:
        """Give up a (sub)step that failed."""
        self.stepped = False
        self.backend.abandon()
        self.backend.set_own_laws(own)
        self.backend.recall_solver(solver)
        self.prescribed.pace, self.loaded = pace, loaded
        if memory is not None:
            self.joints.face(self.previous_q)
            self.memory = memory

    def leave_out(self, absent: np.ndarray) -> None:
        """Bodies (n,) bool that take no part in the next (sub)steps; what becomes of them there means nothing."""
        absent = absent if absent.any() else self.nobody
        if absent is not self.absent:
            self.absent = absent
            self.backend.leave_out(absent)

    def substep(self, h: float, progress: Progress) -> None:
        """One (sub)step; bodies that meet a contact, a limit or a rope in it are taken through it again, without gain.

        Raises:
            StepFailure: it did not converge, or the way to its end is not free; `take_back` has to follow.
        """
        begun, self._begun = self._begun, None
        rule, struck = begun or self._begin_substep(h)
        for tries in count(1):
            mode = self.modes(rule, struck)
            if begun and tries == 1:
                pass  # it was tried, and left
            elif self._take_whole(rule, mode, progress):
                return
            kept = self.before_trying()
            late = self._solve(rule, mode, progress)
            if not late.any():
                break
            if tries >= FEW:
                islands = self.backend.islands.host
                late = np.isin(islands, islands[late])
            self.take_back(*kept)
            struck = struck | late
        with progress.time("way"):
            found = self.backend.free_way(h)
        if len(found):
            raise NotFree(found, self.model.bodies.names, h)
        with progress.time("end"):
            self._finish(h, mode)

    def _begin_substep(self, h: float) -> tuple[Scheme, np.ndarray]:
        """Put on the loads of a (sub)step of h [s]; its scheme, and the bodies (n,) bool that are known to be struck in it."""
        if self.loads is not None and (loads := self.loads(self.time + h, h)) is not None:
            self.backend.set_loads(*loads)
        struck, whirling = self.acting, self._whirling(h)
        for more in (whirling, self.absent):
            struck = struck if more is self.nobody else struck | more
        return self._rule(h), struck

    def _rule(self, h: float) -> Scheme:
        """The scheme of a step of h [s]; the same object as long as it is the same."""
        asked, settings = (h, self.previous_h), self.settings
        if self._schemes is None or self._schemes[0] != asked:
            self._schemes = asked, scheme(settings.integrator, *asked, settings.spectral_radius)
        return self._schemes[1]

    def _take_whole(self, rule: Scheme, mode: np.ndarray, progress: Progress) -> bool:
        """Take a step in which nothing touches anything in one piece, where the backend can (`abd.backends.recorded.whole_step`);
        whether it was taken."""
        backend, settings = self.backend, self.settings
        whole, once = backend.whole, settings.friction_iterations == 1 or not backend.friction.enabled
        if whole is None or not once or self.absent is not self.nobody or not whole.serves():
            return False
        sleepy = self.sleep.enabled and self.sleep.ripe(self.joints).any()
        if sleepy or (self.touching is not self.nobody and self.touching.any()):
            return False
        self._refuse_turns(rule.h)
        self._load_friction()
        if self._memory_is_new:
            backend.row_memory.load(self.memory)
            self._memory_is_new = False
        self.stiffness.begin()
        tolerance = settings.friction_tolerance if backend.system.has_friction else settings.tolerance
        eps, judged = settings.eps_v * rule.beta * rule.h, settings.integrator == "generalized_alpha"
        begin, stages = perf_counter(), progress.stages
        outcome = whole.run(rule, mode, eps, self.time + rule.h, settings.eps_v, tolerance, judged)
        solved = perf_counter()
        stages["whole step"] = stages.get("whole step", 0.0) + solved - begin
        if outcome is None:
            return False
        progress.newton += outcome.newton
        progress.trials += outcome.trials
        progress.tolerance = max(progress.tolerance, outcome.worst)
        self.loaded = False
        self._became(mode)
        self.figures = outcome.figures
        rebound = None if outcome.limited is None else self._rebound(rule.h, outcome.limited)
        if rebound is not None:
            self.figures = backend.figures()
            self._begin_from(*rebound, rule.h)
        self._conclude(rule.h, outcome.limited)
        stages["end"] = stages.get("end", 0.0) + perf_counter() - solved
        return True

    def _whirling(self, h: float) -> np.ndarray:
        """(n,) bool, jointed bodies that turn by more than `STEADY` in a step of h, which take implicit Euler
        (`abd.potentials.integrators`), and what is joined to them."""
        known = self.figures
        if not self._may_whirl or (
            known is not None and h * known.whirl < STEADY * (1.0 - STRAINED * known.orthogonality_error - 1e-9)
        ):
            return self.nobody
        A, Ad = (one[self.jointed, 3:].reshape(-1, 3, 3) for one in (self.q, self.qd))
        inertia = free_motion.inertia(A, self.model.bodies.moment[self.jointed])
        L = np.einsum("nij,nj->ni", inertia, axial(Ad @ np.linalg.inv(A)))
        middle = np.linalg.eigvalsh(inertia)[:, 1]
        whirling = self.nobody.copy()
        whirling[self.jointed] = h * np.linalg.norm(L, axis=1) > STEADY * middle
        return self._drawn_along(whirling)

    def modes(self, rule: Scheme, struck: np.ndarray) -> np.ndarray:
        """(n,) `Mode` of every body; those that are not dynamic count as smooth. The same object as long as it is the same."""
        known = self._modes
        if known and known[0] is struck and known[1] is self.remembers and known[2][0] == rule.chord:
            return known[3]
        asked = rule.chord, struck.tobytes(), self.remembers.tobytes()
        mode = known[3] if known and known[2] == asked else self._find_modes(rule, struck)
        self._modes = struck, self.remembers, asked, mode
        return mode

    def _find_modes(self, rule: Scheme, struck: np.ndarray) -> np.ndarray:
        if rule.chord:
            return np.full(len(struck), Mode.SMOOTH)
        smooth = np.where(self.remembers > 0, Mode.SMOOTH, Mode.FRESH)
        dissipative = struck | (self.settings.integrator == "bdf1")
        return np.where(self.dynamic, np.where(dissipative, Mode.DISSIPATIVE, smooth), Mode.SMOOTH)

    def jump(self, bodies: np.ndarray) -> None:
        """What acts on bodies (indices, or (n,) bool) changes at once: the integrator finds the forces on them, and on all
        that are joined to them, anew, and not in two steps one after the other, which nothing would damp."""
        jumping = np.zeros(len(self.dynamic), dtype=bool)
        jumping[bodies] = True
        self.remembers = np.where(self._drawn_along(jumping) & (self.remembers > 1), 0, self.remembers).astype(np.int32)

    def _struck(self, mode: np.ndarray) -> np.ndarray:
        """(n,) bool, bodies of a smooth step on which contacts, limits or ropes act at the iterate, and what is joined."""
        smooth = self._smooth(mode)
        if not smooth.any():
            return self.nobody
        return smooth & self._drawn_along((self.backend.touching() != 0) | self.backend.limited())

    def _smooth(self, mode: np.ndarray) -> np.ndarray:
        """(n,) bool, bodies whose step a contact makes another one."""
        if self.settings.integrator != "generalized_alpha":
            return self.nobody
        return self.dynamic & (mode != Mode.DISSIPATIVE)

    def _watch(self, mode: np.ndarray) -> Callable[[], None] | None:
        """Ends a minimisation whose iterate shows that it has to be begun again with other modes, by contacts alone, which
        act in the end where they act on the way, or in a shorter step (`_refuse_turned`)."""
        smooth = self._smooth(mode)
        if not smooth.any():
            return self._refuse_turned if self.joints.counts_turns else None

        def watch() -> None:
            self._refuse_turned()
            late = smooth & self._drawn_along(self.backend.touching() != 0)
            if late.any():
                raise Struck(late)

        return watch

    def _solve(self, rule: Scheme, mode: np.ndarray, progress: Progress) -> np.ndarray:
        """Minimise the incremental potential of a (sub)step; returns the bodies (n,) that were struck in it, without which
        it has to be taken again. Those that the way to Newton's start or its iterates show are found before its end."""
        backend, settings, h = self.backend, self.settings, rule.h
        ch2 = rule.c * h * h
        prescribed = self.prescribed
        goals = self._goals(h) if prescribed.any else None
        self.stiffness.begin()
        with progress.time("start"):
            backend.begin(rule, mode, settings.eps_v * rule.beta * h, goals)
            began = backend.read_prescribed() if prescribed.any else None
            self._begin_joints(ch2, h)
            start(backend, self.touching, self.sleep.ripe(self.joints))
            late = self._struck(mode)
        self._find_fast_hits(h)
        if late.any():
            return late

        loaded, watch = self.loaded, self._watch(mode)

        def minimise_step() -> None:
            self.loaded = solve_step(backend, settings, h, self.stiffness, progress, loaded, watch)

        try:
            if prescribed.any:
                nominal = prescribed.nominal(self.time, h)
                prescribed.minimise(backend, began, goals, nominal, settings.tolerance * h, rule.pull, minimise_step)
            else:
                minimise_step()
            self._refuse_turned()
        except Struck as struck:
            self._find_fast_hits(h)
            return struck.bodies
        except StepFailure as failure:
            late = self._struck(mode)
            if late.any():
                return late
            if failure.reason == "joints":
                failure.args = (f"{failure}; the widest open is '{self._widest()}'",)
            raise
        self._find_fast_hits(h)
        return self._struck(mode)

    def _find_fast_hits(self, h: float) -> None:
        """Refuse a (sub)step of h [s] with fast hits (`abd.step.impacts.fast_hits`)."""
        if self.fast_hits.possible(self.figures, h):
            self.fast_hits.refuse(self.backend, lambda: (self.q, self.qd), self.touching, h)

    def _goals(self, h: float) -> np.ndarray:
        """(k, 12) states prescribed for the end of a (sub)step; those that take no part stay."""
        bodies = self.prescribed.bodies
        return np.where(self.absent[bodies, None], self.q[bodies], self.prescribed.goals(self.time + h))

    def _finish(self, h: float, mode: np.ndarray) -> None:
        """Make the iterate the new state."""
        backend = self.backend
        limited = backend.limited()
        backend.finish()
        self._became(mode)
        rebound = self._rebound(h, limited)
        if self.off.any():
            velocity = backend.read_state()[1]
            velocity[self.off] = 0.0
            backend.set_velocity(velocity)
        self.figures = backend.figures()
        if rebound is not None:
            self._begin_from(*rebound, h)
        self._conclude(h, limited)

    def _became(self, mode: np.ndarray) -> None:
        """The iterate is the new state."""
        if mode is not self._last_mode:
            smooth = self.dynamic & (mode != Mode.DISSIPATIVE)
            self._last_mode = mode
            self._left_by_mode = np.where(smooth, np.where(mode == Mode.FRESH, 1, 2), 0).astype(np.int32)
        self.remembers = self._left_by_mode
        self._forget()
        self.stepped = True
        self.rebounded = self.nobody

    def _conclude(self, h: float, limited: np.ndarray | None) -> None:
        """Bookkeeping of a step whose figures are there; limits push on `limited` (n,) bodies at its end, None for nobody."""
        backend = self.backend
        self.work = self.work.after(self.figures)
        self.time += h
        self.previous_h = h
        self.sleep.observe(backend, h)
        self.turning.look(h, self.figures.fastest, lambda: (self.q, self.qd, self.previous_q))
        self._warn_of_strain()
        self.touching = self._drawn_along(backend.touching() != 0) if self.figures.contacts else self.nobody
        some = limited is not None and limited.any()
        self.acting = self.touching | self._drawn_along(limited) if some else self.touching
        self.stiffness.end(backend, h)

    def _rebound(self, h: float, limited: np.ndarray) -> tuple[np.ndarray, np.ndarray, float] | None:
        """Give the velocities what impacts give back (`Restitution.rebound`); limits push on `limited` (n,) bodies."""
        backend, model = self.backend, self.model
        touching = self.dynamic & (backend.touching() != 0)
        ends = self.joints.ends if self.settings.integrator == "bdf2" else self.joints.bouncing
        met = touching | limited if len(ends) else touching
        if not met.any():
            return None
        before, after = backend.read_previous(), backend.read_state()
        if not self.restitution.stirred(met, before[1], after[1]):
            return None
        strikes = Strikes.of_contacts(model, *backend.contact_impulses(), after[0])
        if len(ends) and limited.any():
            strikes = strikes.beside(limit_strikes(model, self.joints, ends, self.memory, self.applied, after[0], h))
        rebound = self.restitution.rebound(strikes, before, after, h, self.joints, backend.sweep)
        if rebound is not None:
            backend.set_velocity(rebound[0])
            if self.joints.has_rotors:
                self.memory = self.joints.struck(self.memory, after[0], rebound[0] - after[1])
        return rebound

    def _begin_from(self, velocity: np.ndarray, struck: np.ndarray, friction: float, h: float) -> None:
        """What bodies (b,) that impacts gave other velocities (n, 12) remember, and the work of friction in the impacts [J].

        bdf2 goes on from two states: the one before is where the new velocity would have come from in free fall.
        """
        self.figures = replace(self.figures, friction_work=self.figures.friction_work + friction)
        self.rebounded = self.nobody.copy()
        self.rebounded[struck] = True
        if self.settings.integrator == "bdf2":
            q, qd = self.backend.read_previous()
            self._fall_back(q, qd, self.rebounded, h)
            self.backend.set_previous(q, qd)

    def _fall_back(self, q: np.ndarray, qd: np.ndarray, chosen: np.ndarray, h: float) -> None:
        """Set the rows (n, 12) of the chosen bodies to where, h [s] ago, free fall would have led to their present state."""
        now, velocity = self.backend.read_state()
        gravity = self.settings.gravity
        q[chosen], qd[chosen] = now[chosen] - h * velocity[chosen], velocity[chosen]
        q[chosen, :3], qd[chosen, :3] = q[chosen, :3] + 0.5 * h * h * gravity, qd[chosen, :3] - h * gravity

    def _drawn_along(self, touching: np.ndarray) -> np.ndarray:
        """(n,) bool, dynamic bodies that touch something, and all that are joined to one."""
        mobile = touching & self.dynamic
        drawn = np.zeros(self.component_count, dtype=bool)
        drawn[self.components[mobile]] = True
        return drawn[self.components]

    def _begin_joints(self, ch2: float, h: float) -> None:
        """Laws of all joint rows in this substep."""
        self._refuse_turns(h)
        self._load_friction()
        memory, self._memory_is_new = self.memory if self._memory_is_new else None, False
        row = self.backend.begin_joints(memory, ch2, self.time + h, self.settings.eps_v)
        if row is not None:
            raise StepFailure("limits", self._beyond(row, float(self.backend.joint_memory().history[0][row])))

    def _load_friction(self) -> None:
        """Friction in joints that grows with what their constraints carried in the last step."""
        if not self.joints.loads:
            return
        reader = JointReader(self.model)
        state = (self.q, self.qd, reader.coordinates(self.q))
        carried = Readings(reader, self.joints, *state, self.memory, self.applied).constraint_wrench
        self.joints.load(np.linalg.norm(carried[:, :3], axis=1))
        self.backend.take_efforts()

    def _refuse_turns(self, h: float) -> None:
        """Refuse a (sub)step in which angles of joint rows turn too far by their speeds, or by their drives."""
        if self.joints.counts_turns:
            fastest = np.inf if self.figures is None else self.figures.fastest
            state = lambda: (self.q, self.qd, self.memory.reference)  # noqa: E731 - read only where it is asked for
            self._turn_in_pieces(self.turning.ahead(self.joints, self.time, h, fastest, state))

    def _refuse_turned(self) -> None:
        """Refuse an iterate in which angles of joint rows have turned that far."""
        if self.joints.counts_turns:
            self._turn_in_pieces(self.backend.turned(TURN))

    def _turn_in_pieces(self, turned: np.ndarray) -> None:
        """`StepFailure` of the islands of bodies (n,) that turn too far about a joint."""
        turned = turned & ~self.absent
        if turned.any():
            raise self.turning.failure(turned, self._drawn_along(turned))

    def _widest(self) -> str:
        """Name of the exact joint that is widest open at the iterate."""
        joints = JointList.of(self.model.joints)
        exact = (joints.column("enforcement") == "exact") & joints.column("active")
        return joints[
            int(np.where(exact, open_by(self.model, self.backend.read_positions()).max(axis=1), -1.0).argmax())
        ].name

    def _beyond(self, row: int, x: float) -> str:
        acting = self.joints.acting
        side = "below" if acting.sign[row] > 0.0 else "above"
        name = f"joint '{self.model.joints[acting.joint[row]].name}', {acting.name[row]}"
        unit, bound = "rad" if acting.rotary[row] else "m", acting.bound[row]
        return f"{name} = {x:.6g} {unit} is {side} its limit {bound:.6g} {unit}; start inside, or widen the range"

    def _warn_of_strain(self) -> None:
        """Say that a body is not rigid, and again where the strain has grown much since."""
        if (said := self.strain.look(self.figures.orthogonality_error, lambda: self.q)) is not None:
            _log.warning("%s", said)
