"""One frame: substeps, retries and the bookkeeping between them."""

from __future__ import annotations

import logging
from dataclasses import replace
from time import perf_counter

import numpy as np

from abd.backends.memory import memory_watched
from abd.errors import OutOfMemory, StepFailure
from abd.joint_list import JointList
from abd.joints.forces import Applied, opening_laws, row_work
from abd.joints.laws import SLOTS
from abd.joints.link_graph import joined_components
from abd.joints.redundancy import open_by
from abd.joints.system import JointMemory
from abd.model import Kind, Model
from abd.solver.integrators import scheme
from abd.solver.newton import Progress, solve_step
from abd.solver.prescribed import Prescribed
from abd.solver.sleep import Sleep
from abd.solver.start import start
from abd.solver.stiffness import ContactStiffness
from abd.state import State

_log = logging.getLogger(__name__)


class Stepper:
    """Advances a `State` by frames on a backend.

    A step that fails is halved, at most `settings.retries` times; 2^k substeps make the frame.
    """

    def __init__(self, model: Model, backend, state: State):
        self.model, self.settings, self.backend = model, model.settings, backend
        self.stiffness = ContactStiffness(model)
        self.prescribed, self.sleep = Prescribed(model), Sleep(model)
        self.components = joined_components(model)
        self.friction_work = self.drive_work = 0.0
        self.warned_of_turning = False
        self.restore(state)

    @property
    def joints(self):
        """The joint system at work (`abd.joints.system`)."""
        return self.backend.system

    def restore(self, state: State) -> None:
        """Continue from a state."""
        n = len(self.model.bodies)
        self.time, self.frame = state.time, state.step
        self.previous_h = state.previous_h
        self.contact_stiffness = state.contact_stiffness
        self.touching = state.extra.get("touching", np.zeros(n, dtype=np.int32)).astype(bool)
        self.prescribed.pace = state.extra.get("pace", np.zeros(n)).copy()
        self.sleep.calm = state.extra.get("calm", np.zeros(n)).copy()
        previous_q = state.q if state.previous_q is None else state.previous_q
        previous_qd = state.qd if state.previous_qd is None else state.previous_qd
        self.q, self.qd, self.previous_q, self.previous_qd = state.q, state.qd, previous_q, previous_qd
        self.backend.load_state(self.q, self.qd, previous_q, previous_qd)
        self.backend.recall_solver(state.extra)
        self.joints.face(previous_q)
        self.memory = self._memory(state)
        self.applied = self._applied(state)

    def _memory(self, state: State) -> JointMemory:
        saved = state.extra
        if "joint_reference" not in saved:
            return self.joints.fresh_memory(state.q, state.qd)
        return JointMemory(
            reference=saved["joint_reference"].copy(),
            history=saved["joint_history"].reshape(4, -1).copy(),
            multiplier=saved["joint_multiplier"].copy(),
            linear=saved["joint_linear"].reshape(-1, 3).copy(),
        )

    def _applied(self, state: State) -> Applied:
        """Laws of the last substep; before the first one, those that it would begin with."""
        saved = state.extra
        if "joint_law" not in saved:
            return self.opening_laws()
        return Applied(
            law=saved["joint_law"].copy(),
            p=saved["joint_parameters"].reshape(-1, SLOTS).copy(),
            stiffness=saved["joint_stiffness"].reshape(-1, 3).copy(),
            shift=saved["joint_shift"].reshape(-1, 3).copy(),
            ch2=float(saved["joint_ch2"][0]),
        )

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
            contact_stiffness=self.contact_stiffness,
            extra={
                "touching": self.touching.astype(np.int32),
                "pace": self.prescribed.pace.copy(),
                "calm": self.sleep.calm.copy(),
                "joint_reference": self.memory.reference.copy(),
                "joint_history": self.memory.history.ravel().copy(),
                "joint_multiplier": self.memory.multiplier.copy(),
                "joint_linear": self.memory.linear.ravel().copy(),
                "joint_law": self.applied.law.copy(),
                "joint_parameters": self.applied.p.ravel().copy(),
                "joint_stiffness": self.applied.stiffness.ravel().copy(),
                "joint_shift": self.applied.shift.ravel().copy(),
                "joint_ch2": np.array([self.applied.ch2]),
                **self.backend.solver_memory(),
            },
        )

    def advance(self) -> tuple[Progress, int, float]:
        """One frame; returns its progress, the number of substeps and the wall time [s].

        Raises:
            StepFailure: with the frame and time, when the shortest substep failed too.
        """
        begin = perf_counter()
        progress = Progress()
        saved, work = self.state(), (self.friction_work, self.drive_work)
        try:
            substeps = self._advance(self.settings.dt, self.settings.retries, progress, saved)
        except StepFailure as failure:
            self.restore(saved)
            self.friction_work, self.drive_work = work
            failure.step, failure.time = self.frame + 1, self.time
            raise
        self.frame += 1
        return progress, substeps, perf_counter() - begin

    def _advance(self, h: float, retries: int, progress: Progress, saved: State) -> int:
        """Substeps that make h; `saved` is the present state."""
        work = self.friction_work, self.drive_work
        try:
            with memory_watched(self.backend.device.name):
                self._substep(h, progress)
            return 1
        except OutOfMemory as error:
            raise StepFailure("memory", str(error)) from error
        except StepFailure as failure:
            if retries == 0 or failure.reason in ("blocked", "limits"):
                raise
            self.restore(saved)
            self.friction_work, self.drive_work = work
            first = self._advance(0.5 * h, retries - 1, progress, self.state())
            return first + self._advance(0.5 * h, retries - 1, progress, self.state())

    def _substep(self, h: float, progress: Progress) -> None:
        backend, settings = self.backend, self.settings
        rule = scheme(settings.integrator, h, self.previous_h)
        ch2 = rule.c * h * h
        goals = self.prescribed.goals(self.time + h, self.q)
        kappa = self.stiffness.begin(backend, self.contact_stiffness, ch2)
        with progress.time("start"):
            held = np.zeros(len(self.model.bodies), dtype=np.int32)
            backend.begin(rule.weights, ch2, settings.eps_v * rule.beta * h, goals, held, kappa)
            self._begin_joints(rule.weights, ch2, h)
            start(backend, h, self.touching, self.sleep.ripe(self.joints))
            linearized = self.stiffness.balance(backend) and not self.prescribed.any
        try:
            self.prescribed.minimise(
                backend,
                self.q,
                goals,
                self.prescribed.nominal(self.time, h, self.q),
                settings.tolerance * h,
                lambda: solve_step(backend, settings, h, self.stiffness, progress, linearized),
            )
        except StepFailure as failure:
            if failure.reason == "joints":
                failure.args = (f"{failure}; the widest open is '{self._widest()}'",)
            raise
        touching = backend.touching().astype(bool)
        backend.finish()
        self.friction_work += backend.friction_work() / ch2
        self.time += h
        q = backend.read_positions()
        self._end_joints(q, rule.weights, ch2)
        self.previous_h = h
        self.contact_stiffness = self.stiffness.value
        self.previous_q, self.previous_qd = self.q, self.qd
        self.q, self.qd = q, backend.read_velocities()
        self.sleep.observe(self.qd, h)
        self._warn_of_turning(h)
        mobile = touching & (self.model.bodies.kind == Kind.DYNAMIC)
        self.touching = np.isin(self.components, self.components[mobile])

    def _begin_joints(self, weights: np.ndarray, ch2: float, h: float) -> None:
        """Laws of all joint rows in this substep."""
        memory = self.memory
        self.joints.follow(memory, self.q)
        law, p = self.joints.laws(memory, weights, ch2, self.time + h, self.settings.eps_v)
        row = self.joints.closed_gap(law, p, memory.history[0])
        if row is not None:
            raise StepFailure("limits", self._beyond(row, p[row], memory.history[0][row]))
        shift = self.joints.shifts(memory, ch2)
        self.applied = Applied(law, p, self.joints.linear.K, shift, ch2)
        self.backend.begin_joints(law, p, memory.reference, shift)

    def _widest(self) -> str:
        """Name of the exact joint that is widest open at the iterate."""
        joints = JointList.of(self.model.joints)
        exact = (joints.column("enforcement") == "exact") & joints.column("active")
        return joints[
            int(np.where(exact, open_by(self.model, self.backend.read_positions()).max(axis=1), -1.0).argmax())
        ].name

    def _beyond(self, row: int, p: np.ndarray, x: float) -> str:
        acting = self.joints.acting
        side = "below" if p[2] > 0.0 else "above"
        name = f"joint '{self.model.joints[acting.joint[row]].name}', {acting.name[row]}"
        unit = "rad" if acting.rotary[row] else "m"
        return f"{name} = {x:.6g} {unit} is {side} its limit {p[1]:.6g} {unit}; start inside, or widen the range"

    def _end_joints(self, q: np.ndarray, weights: np.ndarray, ch2: float) -> None:
        """Remember what the rows did in this substep, which ended in q (n, 12)."""
        p, shift = self.backend.read_joints()
        before = self.memory.history[0]
        self.memory = self.joints.remember(self.memory, q, weights, p, shift, ch2)
        self.applied = replace(self.applied, p=p, shift=shift)
        driven, lost = row_work(self.joints, self.applied, before, self.memory.history[0])
        self.drive_work += driven
        self.friction_work += lost

    def _warn_of_turning(self, h: float) -> None:
        """Say once that a body turns by more than 1 rad in a step: it shrinks along the way, and friction sees chords."""
        if self.warned_of_turning or not len(self.q):
            return
        A, Ad = self.q[:, 3:].reshape(-1, 3, 3), self.qd[:, 3:].reshape(-1, 3, 3)
        if h * np.sqrt(np.einsum("nij,nij->n", Ad, Ad).max()) < 1.0:
            return  # |W - W^T| / 2 is at most |Ad| where A is close to a rotation
        W = Ad @ A.transpose(0, 2, 1)
        turn = 0.5 * h * np.linalg.norm(W - W.transpose(0, 2, 1), axis=(1, 2)) / np.sqrt(2.0)
        if turn.max() > 1.0:
            self.warned_of_turning = True
            body = self.model.bodies.names[int(turn.argmax())]
            _log.warning("%s turns by %.2g rad in a step; solver.dt = %.1g would do", body, turn.max(), h / turn.max())
