"""`Tape`: records steps of a simulation, and differentiates functions of the states after them.

    tape = abd.Tape(sim)
    for _ in range(100):
        tape.step()
    by_end = np.zeros(sim.state.q.shape)
    by_end[sim.bodies["puck"].index, 0] = 1.0           # of the final x of the puck's centre of mass
    gradient = tape.gradient(q=by_end)
    gradient.friction, gradient.efforts, gradient.qd    # by friction coefficients, efforts in every step, initial velocities

Every step costs one factorisation when it is recorded, and one transposed solve per gradient (`abd.derivatives.step`).
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import is_

import numpy as np

from abd.api.coordinates import places_of_rows
from abd.api.simulation_base import SimulationBase
from abd.api.step_report import StepReport
from abd.derivatives.step import STATE, Constants, StepDerivatives, StepRecord
from abd.errors import NotDifferentiable
from abd.joints.rows import table
from abd.joints.rows.laws import Role
from abd.model import WORLD, Kind
from abd.potentials.integrators import Scheme, Schemes
from abd.tables import copied

COORDINATES = {
    "rest": (Role.SPRING, "target"),
    "stiffness": (Role.SPRING, "stiffness"),
    "damping": (Role.SPRING, "damping"),
    "friction": (Role.FRICTION, "effort"),
    "target": ((Role.DRIVE, Role.FORCE), "target"),
    "drive_stiffness": (Role.DRIVE, "stiffness"),
    "drive_damping": (Role.DRIVE, "damping"),
}
"""Parameters of coordinates: roles of their rows, and name there."""


@dataclass(frozen=True)
class Gradient:
    """Derivatives of a function of the states that a `Tape` of k steps has recorded.

    Attributes:
        q, qd: (n, 12) by the state before the first step, in the order of `Simulation.state`.
        force, torque: (k, n, 3) by forces [N] at the centres of mass and torques [N m] on the bodies in every step.
        efforts: (k, c) by efforts on the coordinates in every step, in the order of `Simulation.coordinates`.
        friction: (m, m) by the coefficients of friction of pairs of materials; 0 for coefficients of 0.
        coordinates: (c,) each, by parameters of the coordinates: "rest", "stiffness" and "damping" of springs, "friction"
            (effort), "target" of drives (speed or effort of velocity and force drives), "drive_stiffness" and "drive_damping".
    """

    q: np.ndarray
    qd: np.ndarray
    force: np.ndarray
    torque: np.ndarray
    efforts: np.ndarray
    friction: np.ndarray
    coordinates: dict[str, np.ndarray]


class Tape:
    """Records steps of a simulation.

    Attributes:
        steps: derivatives of the recorded steps.

    Raises:
        TypeError: the argument is a scene, or another object without steps.
    """

    def __init__(self, simulation: SimulationBase):
        if not hasattr(simulation, "stepper"):
            given = type(simulation).__name__
            raise TypeError(f"Tape takes a simulation, not a {given}: sim = abd.Simulation(scene), then abd.Tape(sim)")
        self._simulation = simulation
        self.steps: list[StepDerivatives] = []
        self._constants: Constants | None = None

    def step(self) -> StepReport:
        """Advance the simulation by one step, and record it.

        Raises:
            NotDifferentiable: the step has no derivative; it is complete, but not recorded.
        """
        sim, stepper, backend = self._simulation, self._simulation.stepper, self._simulation.backend
        sim.control.efforts.before_step()
        start, previous_h, rows = (stepper.q.copy(), stepper.qd.copy()), stepper.previous_h, len(backend.system.rows)
        if self.steps and not (all(map(np.array_equal, start, self.steps[-1].record.end)) and np.all(previous_h)):
            raise NotDifferentiable("the state has changed since the last recorded step: begin a new tape")
        if self.steps and rows != len(self.steps[-1].system.rows):
            raise NotDifferentiable("joints have changed since the last recorded step, or got a first effort: begin a new tape")
        forces, memory = backend.states.read_forces(), copied(stepper.memory)
        own, anchors = backend.pair_law.own, copied(backend.friction.read_anchors())
        # a reset, a restart and new velocities set the previous state to the present one
        is_first = (start[0] == stepper.previous_q).all(axis=1) & (start[1] == stepper.previous_qd).all(axis=1)
        is_first = (is_first | (sim.model.bodies.kind != Kind.DYNAMIC)) & (not self.steps)
        report = sim.step()
        h = stepper.previous_h
        rule = stepper.modes.rule(h)
        self._check(report, start, rule)
        record = StepRecord(
            rule=rule, mode=stepper.modes.last, time=stepper.time,
            start=start, end=(stepper.q.copy(), stepper.qd.copy()), forces=forces, memory=memory, end_memory=stepper.memory,
            own=(own, stepper.forces.own), anchors=anchors, mobile=backend.inactive.mobile & ~backend.inactive.sleeping,
            is_first=is_first,
        )  # fmt: skip
        given, known = (sim.model, sim._switches.present(), backend.system), self._constants
        if known is None or not all(map(is_, given, (known.model, known.touching.model, known.system))):
            self._constants = Constants.of(*given)
        self.steps.append(StepDerivatives(self._constants, sim.reader.table, record))
        return report

    def _check(self, report: StepReport, start: tuple[np.ndarray, np.ndarray], rule: Scheme | Schemes) -> None:
        """Raise `NotDifferentiable` with the reason if the last step, by `rule`, has no derivative here."""
        sim, stepper, system = self._simulation, self._simulation.stepper, self._simulation.backend.system
        reasons = {
            f"it had {report.substeps} substeps: reduce solver.dt": report.substeps > 1,
            "an impact changed velocities: begin a tape after it": stepper.forces.rebound is not None,
            "friction was lagged at an iterate: use solver.friction_iterations = -1, or begin a tape when loads are constant":
                stepper.lagged_again,
            "worlds have different time steps": not isinstance(rule, Scheme),
            "a joint broke: begin a tape after it": bool(report.broken),
            "a joint has a formula, a function of Python, or rows that follow the pose: use constants":
                system.has_user_functions or bool(system.followers),
            "velocities were fitted to joints: begin a tape after one was locked, enabled or set, and use solver.integrator = "
            "'bdf1' for mechanisms that return to generalized_alpha":
                report.substeps == 1 and not all(map(np.array_equal, start, (stepper.previous_q, stepper.previous_qd))),
        }  # fmt: skip
        if found := [reason for reason, applies in reasons.items() if applies]:
            raise NotDifferentiable(f"step {sim.frame} has no derivative: {'; '.join(found)}")

    def gradient(
        self, q: np.ndarray | None = None, qd: np.ndarray | None = None, coordinates: np.ndarray | None = None
    ) -> Gradient:
        """Return the derivatives of a function f of the recorded states.

        Args:
            q, qd: derivatives of f by positions and velocities of the bodies after the last step, (n, 12), or after every step,
                (k, n, 12); zero by default.
            coordinates: derivatives of f by the coordinates of the joints, (c,) or (k, c), in the order of
                `Simulation.coordinates`; zero by default.

        Raises:
            ValueError: no step was recorded, or another shape.
        """
        if not self.steps:
            raise ValueError("record a step before `gradient`")
        sim, count = self._simulation, len(self.steps)
        n, m = len(sim.model.bodies), len(sim.model.materials.mu)
        given = {"q": self._by_step(q, "q", n, 12), "qd": self._by_step(qd, "qd", n, 12)}
        if coordinates is not None:
            by_coordinates = self._by_step(coordinates, "coordinates", len(sim.reader.names))
            for of_states, weights, step in zip(given["q"], by_coordinates, self.steps, strict=True):
                _, *gradients = table.linearize(sim.reader.table, step.record.end[0])
                for body, gradient in zip((sim.reader.table.child, sim.reader.table.parent), gradients, strict=True):
                    np.add.at(of_states, body[body != WORLD], (weights[:, None] * gradient)[body != WORLD])
        out, state, after = [], {}, None
        for k, step in reversed(list(enumerate(self.steps))):
            equations = step.equations
            by_end = np.zeros(equations.sizes[0])
            for name in STATE:
                part = by_end[equations.unknowns[name]]
                if name in given:
                    part += given[name][k].ravel()
                if after is not None:
                    part += after.anchors_back(step, state[name]) if name == "anchors" else state[name]
            x = equations.adjoint(by_end)
            inputs = {name: x[span] for name, span in equations.inputs.items()}
            state, after = {name: inputs.get(f"start {name}") for name in STATE}, step
            out.insert(0, inputs)
        wrench = np.stack([one["wrench"] for one in out]).reshape(count, n, 6)
        upper = sum(one["mu"] for one in out).reshape(m, m)
        return Gradient(
            state["q"].reshape(n, 12), state["qd"].reshape(n, 12), wrench[:, :, :3], wrench[:, :, 3:],
            np.stack([one["efforts"] for one in out]), upper + np.triu(upper, 1).T, self._by_coordinate(out),
        )  # fmt: skip

    def _by_step(self, given: np.ndarray | None, name: str, *sizes: int) -> np.ndarray:
        """Return derivatives (k, *sizes) by quantities after all steps."""
        out = np.zeros((len(self.steps), *sizes))
        if given is not None:
            given = np.asarray(given, dtype=float)
            if given.shape not in (out.shape, sizes):
                raise ValueError(f"{name} must have the shape {sizes} or {out.shape}, not {given.shape}")
            out[-1 if given.shape == sizes else slice(None)] = given
        return out

    def _by_coordinate(self, out: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        """Return sums over the steps by parameters of the coordinates."""
        reader, laws = self._simulation.reader, self.steps[-1].system.row_laws
        of, found = places_of_rows(reader, laws), {}
        for name, (role, parameter) in COORDINATES.items():
            rows = np.flatnonzero(np.isin(laws.role, role) & (laws.coupling < 0) & (of >= 0))
            found[name] = np.zeros(len(reader.names))
            np.add.at(found[name], of[rows], sum(one[parameter] for one in out)[rows])
        return found
