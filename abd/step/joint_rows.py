"""Joint rows in a step: their laws at its beginning, and when it has to be a shorter one for their sake."""

from __future__ import annotations

import logging

import numpy as np

from abd.backends.protocol import Backend
from abd.by_bodies import OfBodies
from abd.errors import StepFailure
from abd.joint_list import JointList
from abd.joints.closure.redundancy import open_by
from abd.joints.coordinates.readings import JointReader, Readings
from abd.joints.rows.laws import Law, Role
from abd.joints.rows.system import TURN, JointMemory
from abd.model import Model
from abd.step.articulations import Articulations
from abd.step.host_copies import HostCopies
from abd.step.turning import Turning

_log = logging.getLogger(__name__)

OPEN = 1e-6
"""Residual of a coupling at the start [m or rad], beyond which it is reported."""


class JointRows:
    """The joint rows of one scene; turning: how far angles turn in a step."""

    def __init__(self, model: Model, backend: Backend, articulations: Articulations, copies: HostCopies):
        self.model, self.backend, self.articulations, self.copies = model, backend, articulations, copies
        self.turning = Turning(model)

    def begin(self, ch2: OfBodies, time: OfBodies) -> StepFailure | None:
        """Set the laws of all joint rows in a substep of c h^2 [s^2] that ends at `time` [s], of all bodies or (n,); the verdict
        on a range that was left."""
        row = self.backend.rows.begin_joints(ch2, time, self.model.settings.eps_v)
        if row is None:
            return None
        return StepFailure("limits", self._beyond(row, float(self.backend.rows.joint_memory().history[0][row])))

    def open_couplings(self, memory: JointMemory) -> np.ndarray:
        """(n,) bool, bodies of couplings that a state with this memory does not fulfil, and that the first step closes: all but
        compliant ones."""
        system, laws = self.backend.system, self.backend.system.row_laws
        out, rows = np.zeros(len(self.model.bodies) + 1, dtype=bool), system.rows  # the last one stands for the world
        coupled = laws.active & (laws.role == Role.COUPLING) & (laws.law == Law.QUADRATIC)
        if not coupled.any():
            return out[:-1]
        open_by = np.abs(memory.history[0] - laws.target)
        coupled[[*laws.target_of]] = False
        coupled &= ~np.isin(laws.coupling, [k for k, one in enumerate(self.model.couplings) if one.enforcement == "compliant"])
        for row in np.flatnonzero(coupled & (open_by > OPEN)):
            measures = rows.term_measure[rows.starts[row] : rows.starts[row + 1]]
            out[system.table.parent[measures]] = out[system.table.child[measures]] = True
            _log.warning(
                "coupling '%s' is open by %.3g %s at the start: the first step closes it; start where it holds",
                laws.name[row], open_by[row], "rad" if laws.rotary[row] else "m",
            )  # fmt: skip
        return out[:-1]

    def load_friction(self) -> None:
        """Friction in joints that grows with what their constraints carried in the last step."""
        joints, copies = self.backend.system, self.copies
        if not joints.loads:
            return
        reader = JointReader(self.model)
        q, qd = copies.state
        carried = Readings(reader, joints, q, qd, reader.coordinates(q), copies.memory, copies.applied).constraint_wrench
        joints.load(np.linalg.norm(carried[:, :3], axis=1))
        self.backend.rows.take_efforts()

    def turns_ahead(self, time: OfBodies, h: OfBodies, fastest: float, excluded: np.ndarray) -> StepFailure | None:
        """The verdict on a substep of h [s] from `time` [s], of all or (n,), in which angles of joint rows would turn too far by
        their speeds, at most `fastest` [1/s], or by their drives; of bodies that are not `excluded` (n,)."""
        joints, copies = self.backend.system, self.copies
        if not joints.counts_turns:
            return None

        def state() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            return *copies.state, copies.memory.reference

        return self._turn_verdict(self.turning.ahead(joints, time, h, fastest, state), excluded)

    def turned(self, excluded: np.ndarray) -> StepFailure | None:
        """The verdict on an iterate in which angles of joint rows have turned too far."""
        if not self.backend.system.counts_turns:
            return None
        return self._turn_verdict(self.backend.rows.turned(TURN), excluded)

    def _turn_verdict(self, turned: np.ndarray, excluded: np.ndarray) -> StepFailure | None:
        turned = turned & ~excluded
        return self.turning.failure(turned, self.articulations.containing(turned)) if turned.any() else None

    def widest(self) -> str:
        """Name of the exact joint that is widest open at the iterate."""
        joints = JointList.of(self.model.joints)
        exact = (joints.column("enforcement") == "exact") & joints.column("active")
        return joints[
            int(np.where(exact, open_by(self.model, self.backend.states.read_positions()).max(axis=1), -1.0).argmax())
        ].name

    def _beyond(self, row: int, x: float) -> str:
        row_laws = self.backend.system.row_laws
        side = "below" if row_laws.sign[row] > 0.0 else "above"
        name = f"joint '{self.model.joints[row_laws.joint[row]].name}', {row_laws.name[row]}"
        unit, bound = "rad" if row_laws.rotary[row] else "m", row_laws.bound[row]
        return f"{name} = {x:.6g} {unit} is {side} its limit {bound:.6g} {unit}; start inside, or widen the range"
