"""`Reduced`: a simulation's mechanism in the coordinates of its joints, for control.

    arm = sim.reduced()
    M, c = arm.mass_matrix(), arm.bias()            # M dv/dt + c = tau
    tau = arm.inverse_dynamics(acceleration)
    J = arm.jacobian("hand", point=(0, 0, 0.1))     # (6, nv): velocity and angular velocity of a point, world axes
    A, B = arm.linearize()                          # of one step of the simulation

A breadth-first search from the world finds the joints of a spanning tree, with velocities v (nv,); bodies without joints to the
tree have six. `forward_dynamics` also satisfies the joints in `loops`, which close loops; the other methods use the tree only.
All quantities are those of the rigid bodies in the current state, without rotor inertia, springs, drives, limits, joint friction
and contact. `linearize` includes all of these, because it uses steps of the simulation.
"""

from __future__ import annotations

import copy

import numpy as np

from abd.api.body_view import BodyView
from abd.api.protocol import RunningSimulation
from abd.api.restarts import restore, saved
from abd.joints.coordinates.mechanism import Branch, Mechanism
from abd.potentials.integrators import longest
from abd.state import State


class Reduced:
    """The mechanism of a simulation in its state when this object is created.

    Attributes:
        mechanism: kinematics and dynamics at any state (`abd.joints.coordinates.mechanism`).
        q, v: configuration (nq,) and velocities (nv,) in that state, with angles as the simulation counts them.
        names: (nv,) names of the velocities: "joint.coordinate"; "joint.0", "joint.1", ... if they are not rates of coordinates;
            "body.vx" to "body.wz" of floating bodies, in body axes.
        loops: names of the joints that close loops.
    """

    def __init__(self, simulation: RunningSimulation):
        self._simulation = simulation
        model, stepper = simulation.model, simulation.stepper
        self.mechanism = Mechanism(model)
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
        """Return the acceleration dv/dt (nv,) under efforts tau (nv,), by default zero; loops stay closed.

        Raises:
            ValueError: a joint that closes a loop has no configuration space.
        """
        tau = None if torque is None else self._vector(torque, "a torque")
        return self.mechanism.forward_dynamics(self.q, self.v, tau)

    def jacobian(self, body: str | BodyView, point=(0.0, 0.0, 0.0)) -> np.ndarray:
        """Return the Jacobian (6, nv) of a body: velocity of a point (3,) of its mesh frame and angular velocity, in world axes.

        Raises:
            UnknownName: the body is unknown.
        """
        index = self._simulation.bodies[body].index if isinstance(body, str) else body.index
        frame = self._simulation.model.bodies.body_frame[index]
        at = frame[:3, :3] @ np.asarray(point, dtype=float) + frame[:3, 3]
        return self.mechanism.geometric_jacobian(self.q, index, at)

    def linearize(self, inputs: list[str] | None = None, eps: float = 1e-5) -> tuple[np.ndarray, np.ndarray]:
        """Linearise the next step: return A (2 nv, 2 nv) and B (2 nv, m) of ``(dx', dv') = A (dx, dv) + B du``.

        dx are displacements along v, u efforts on coordinates. The method uses central differences of steps from perturbed
        states (4 nv + 2 m steps), each with a restarted integrator. The simulation does not change.

        Args:
            inputs: coordinates with efforts, as "joint.coordinate"; by default all coordinates.
            eps: perturbation of displacements [m or rad] and velocities [m/s or rad/s]; efforts are perturbed such that they
                cause a displacement of this size.

        Raises:
            ValueError: a coordinate is unknown. StepFailure: a perturbed step does not converge.
        """
        joints = self._simulation.joints
        known = [f"{one}.{name}" for one in joints for name in joints[one].coordinate_names]
        inputs = known if inputs is None else list(inputs)
        for one in inputs:
            if one not in known:
                raise ValueError(f"unknown coordinate '{one}' in inputs; known are {', '.join(known) or 'none'}")
        nv, copied = len(self.v), copy.deepcopy(self._simulation)
        dt, start = longest(copied.stepper.worlds.lengths), saved(copied)
        centre = self._after(copied, start, np.zeros(2 * nv), None)
        # effort that displaces a coordinate by about eps within the step
        scale = np.linalg.norm(self.mass_matrix(), 2) * eps / dt**2 if nv else eps

        def column(dx: np.ndarray, pushed: str | None, step: float) -> np.ndarray:
            ends = [
                self._difference(centre, self._after(copied, start, sign * dx, pushed and (pushed, sign * step)))
                for sign in (1.0, -1.0)
            ]
            return (ends[0] - ends[1]) / (2.0 * step)

        A = [column(eps * unit, None, eps) for unit in np.eye(2 * nv)]
        B = [column(np.zeros(2 * nv), one, scale) for one in inputs]
        return np.array(A).reshape(2 * nv, 2 * nv).T, np.array(B).reshape(len(inputs), 2 * nv).T

    def _after(self, copied: RunningSimulation, start: dict, dx: np.ndarray, push) -> tuple[np.ndarray, np.ndarray]:
        """Return configuration and velocities after a step from the state of this object, perturbed by dx (2 nv,)."""
        nv = len(self.v)
        restore(copied, start)
        q, v = self.mechanism.moved(self.q, dx[:nv]), self.v + dx[nv:]
        anew = State(*self.mechanism.affine_state(q, v), time=copied.stepper.time, step=copied.stepper.frame)
        copied.stepper.restore(anew)
        if push is not None:
            joint, coordinate = push[0].rsplit(".", 1)
            view = copied.joints[joint].coordinate(coordinate)
            view.apply_force(push[1], steps=1)
        copied.step()
        return self.mechanism.state_of(copied.stepper.q, copied.stepper.qd, last=self.q)

    def _difference(self, centre, end) -> np.ndarray:
        """Return (2 nv,) the displacement along v and the change of v from one state to another."""
        dx = np.zeros(len(self.v))
        for b in self.mechanism.branches:
            q0, q1 = centre[0][b.positions], end[0][b.positions]
            dx[b.velocities] = b.space.local(q0, q1, centre[1][b.velocities])[0]
        return np.concatenate([dx, end[1] - centre[1]])

    def _vector(self, value, what: str) -> np.ndarray:
        given = np.asarray(value, dtype=float)
        if given.shape != self.v.shape or not np.isfinite(given).all():
            raise ValueError(f"{what} must be {len(self.v)} finite numbers ({', '.join(self.names)})")
        return given
