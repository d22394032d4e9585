"""`Reduced`: a simulation's mechanism in the coordinates of its joints, for control.

    arm = sim.reduced()
    M, c = arm.mass_matrix(), arm.bias()            # M dv/dt + c = tau
    tau = arm.inverse_dynamics(acceleration)
    J = arm.jacobian("hand", point=(0, 0, 0.1))     # (6, nv): velocity and angular velocity of a point, world axes
    A, B = arm.linearize()                          # of one step of the simulation

A breadth-first search from the world finds the joints of a spanning tree, with velocities v (nv,); bodies without joints to the
tree have six, disabled bodies none. `forward_dynamics` also satisfies the joints in `loops`, which close loops, locks, brakes
without an effort limit, and couplings without a compliance; the other methods use the tree only.
All quantities are those of the rigid bodies in the current state, with prescribed bodies at constant velocity, without rotor
inertia, springs, other drives, compliant couplings, limits, joint friction and contact. `linearize` includes all of these: it
differentiates a step of the simulation.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np

from abd.api.body_view import BodyView
from abd.api.simulation_base import SimulationBase
from abd.api.tape import Tape
from abd.api.views import finite
from abd.joints.coordinates.mechanism import Branch, Mechanism
from abd.joints.rows.laws import Role
from abd.model import Kind
from abd.state import State

TANGENT = 1e-5
"""Change of coordinates and velocities in central differences of the kinematics."""


class Reduced:
    """The mechanism of a simulation in its state when this object is created.

    Attributes:
        mechanism: kinematics and dynamics at any state (`abd.joints.coordinates.mechanism`).
        q, v: configuration (nq,) and velocities (nv,) in that state, with angles as the simulation counts them.
        names: (nv,) names of the velocities: "joint.coordinate"; "joint.0", "joint.1", ... if they are not rates of coordinates;
            "body.vx" to "body.wz" of floating bodies, in body axes.
        loops: names of the joints that close loops.
    """

    def __init__(self, simulation: SimulationBase):
        self._simulation, self._system = simulation, simulation.backend.system
        self._reference = simulation.stepper.memory.reference.copy()
        model, stepper = simulation.model, simulation.stepper
        kind = np.where(simulation._switches.off, Kind.STATIC, model.bodies.kind)
        bodies = replace(model.bodies, q=stepper.q, qd=stepper.qd, kind=kind)  # with the present poses of prescribed bodies
        self.mechanism = Mechanism(replace(model, bodies=bodies, joints=list(model.joints)[: simulation._springs.given]))
        self.q, self.v = self.mechanism.state_of(stepper.q, stepper.qd)
        self.names = tuple(name for branch in self.mechanism.branches for name in self._names(branch))
        self.loops = tuple(model.joints[k].name for k in self.mechanism.loops)

    def _names(self, branch: Branch) -> list[str]:
        count = branch.velocities.stop - branch.velocities.start
        if branch.joint < 0:
            body = self._simulation.model.bodies.names[branch.outer]
            return [f"{body}.{axis}" for axis in ("vx", "vy", "vz", "wx", "wy", "wz")]
        name = self._simulation.model.joints[branch.joint].name
        coordinates = self._simulation.joints[name].coordinate_names
        parts = coordinates if len(coordinates) == count else range(count)
        return [f"{name}.{part}" for part in parts]

    def __repr__(self) -> str:
        closed = f", {len(self.loops)} joints close loops" if self.loops else ""
        return f"<mechanism of {len(self.v)} velocities{closed}>"

    def mass_matrix(self) -> np.ndarray:
        """Return the mass matrix M (nv, nv)."""
        return self.mechanism.mass_matrix(self.q)

    def bias(self) -> np.ndarray:
        """Return c (nv,) of ``M dv/dt + c = tau``: gravity, centrifugal and Coriolis forces."""
        return self.mechanism.dynamics_bias(self.q, self.v)

    def gravity_forces(self) -> np.ndarray:
        """Return the efforts (nv,) that balance gravity at rest."""
        return self.mechanism.gravity_term(self.q)

    def inverse_dynamics(self, acceleration) -> np.ndarray:
        """Return the efforts tau (nv,) for an acceleration dv/dt (nv,)."""
        return self.mechanism.inverse_dynamics(self.q, self.v, self._vector(acceleration, "an acceleration"))

    def forward_dynamics(self, torque=None) -> np.ndarray:
        """Return the acceleration dv/dt (nv,) under efforts tau (nv,), by default zero; loops, locks and couplings stay closed.

        Raises:
            ValueError: a joint that closes a loop has no configuration space.
        """
        tau = None if torque is None else self._vector(torque, "a torque")
        return self.mechanism.forward_dynamics(self.q, self.v, tau, constraints=self._constraints())

    def _constraints(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return G (k, nv) and b (k,) of ``G dv/dt + b = 0`` for locks and couplings, if any."""
        a = self._system.row_laws
        rows = np.flatnonzero(a.active & np.isin(a.role, (Role.LOCK, Role.COUPLING)) & (a.mass_stiffness > 0.0))
        if not len(rows):
            return None

        def rates(q: np.ndarray, v: np.ndarray) -> np.ndarray:
            return self._system.rates(*self.mechanism.affine_state(q, v), self._reference)[rows]

        G = np.array([rates(self.q, v) for v in np.eye(len(self.v))]).T - rates(self.q, 0.0 * self.v)[:, None]
        step = TANGENT / (1.0 + np.linalg.norm(self.v))
        ends = [rates(self.mechanism.moved(self.q, sign * step * self.v), self.v) for sign in (1.0, -1.0)]
        return G, (ends[0] - ends[1]) / (2.0 * step)

    def jacobian(self, body: str | BodyView, point=(0.0, 0.0, 0.0)) -> np.ndarray:
        """Return the Jacobian (6, nv) of a body: velocity of a point (3,) of its mesh frame and angular velocity, in world axes.

        Raises:
            UnknownName: the body is unknown. ValueError: the point is not three finite numbers.
        """
        index = self._simulation.bodies[body].index if isinstance(body, str) else body.index
        frame = self._simulation.model.bodies.body_frame[index]
        at = frame[:3, :3] @ finite(point, (3,), "the point of a Jacobian") + frame[:3, 3]
        return self.mechanism.geometric_jacobian(self.q, index, at)

    def linearize(self, inputs: list[str] | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Linearise the next step: return A (2 nv, 2 nv) and B (2 nv, m) of ``(dx', dv') = A (dx, dv) + B du``.

        dx are displacements along v, u efforts on coordinates. The step starts with a restarted integrator; its converged state
        is differentiated with the contacts fixed (`abd.Tape`). The simulation does not change.

        Args:
            inputs: coordinates with efforts, as "joint.coordinate"; by default all coordinates.

        Raises:
            TypeError: `inputs` is a text. ValueError: a coordinate is unknown.
            StepFailure: the step does not converge. NotDifferentiable: it has no derivative.
        """
        copied, reader = copy.deepcopy(self._simulation), self._simulation.reader
        joints = self.mechanism.joints  # the joints of springs follow them
        known = [f"{joints[k].name}.{name}" for k, name in zip(reader.table.joint, reader.names) if k < len(joints)]
        if isinstance(inputs, str):
            raise TypeError(f"inputs must be a list of coordinates: ['{inputs}'], not a text")
        inputs = known if inputs is None else list(inputs)
        for one in inputs:
            if one not in known:
                raise ValueError(f"unknown coordinate '{one}' in inputs; known are {', '.join(known) or 'none'}")
        stepper, state, nv = copied.stepper, copied.stepper.state(), len(self.v)
        q, qd = self.mechanism.affine_state(self.q, self.v)
        stepper.restore(State(q=q, qd=qd, time=state.time, step=state.step, pairs=state.pairs, anchors=state.anchors))
        tape = Tape(copied)
        tape.step()
        equations, width = tape.steps[0].equations, 2 * nv
        du = np.zeros((equations.sizes[1], width + len(inputs)))
        for name, by in zip(("start q", "start qd"), self._tangents(self.q, self.v), strict=True):
            du[equations.inputs[name], :width] = by
        efforts = [equations.inputs["efforts"].start + known.index(one) for one in inputs]
        du[efforts, width + np.arange(len(inputs))] = 1.0
        dy = equations.forward(du)
        changes = np.stack([dy[equations.unknowns[name]] for name in ("q", "qd")]).transpose(2, 0, 1).reshape(-1, 2, *q.shape)
        end, AB = np.array([stepper.q, stepper.qd]), []
        for change in TANGENT * changes:
            high, low = (self.mechanism.state_of(*(end + sign * change), last=self.q) for sign in (1.0, -1.0))
            branches = [(b.space, b.positions, b.velocities) for b in self.mechanism.branches]
            dx = [space.local(low[0][at], high[0][at], low[1][rates])[0] for space, at, rates in branches]
            AB.append(np.concatenate([*dx, high[1] - low[1]]) / (2.0 * TANGENT))
        AB = np.array(AB).reshape(-1, width).T
        return AB[:, :width], AB[:, width:]

    def _tangents(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return derivatives (2, 12 n, 2 nv) of the bodies' states and velocities by displacements along v, and by v."""
        nv, out = len(v), []
        for step in TANGENT * np.eye(2 * nv):
            ends = [self.mechanism.affine_state(self.mechanism.moved(q, d[:nv]), v + d[nv:]) for d in (step, -step)]
            out.append((np.array(ends[0]) - np.array(ends[1])).reshape(2, -1) / (2.0 * TANGENT))
        return np.array(out).reshape(2 * nv, 2, -1).transpose(1, 2, 0)

    def _vector(self, value, what: str) -> np.ndarray:
        return finite(value, self.v.shape, f"{what} ({', '.join(self.names)})")
