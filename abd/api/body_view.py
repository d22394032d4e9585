"""`BodyView`: pose, velocity, loads and contact of one body of a running simulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from abd.api.loads import Given, Load, Vector, three_numbers
from abd.by_bodies import of_body
from abd.model import Kind, affine_state
from abd.rotations import axial, polar, quaternion, quaternion_matrix, skew
from abd.scene.schema.values import LARGEST

if TYPE_CHECKING:
    from abd.api.joints.springs import Spring
    from abd.api.simulation import Simulation

CLOSE_TO_RIGID = 1e-6
"""Largest departure of a given pose from a rotation."""


class BodyView:
    """One body, described by its mesh frame in the scene.

    Poses and velocities can be set between steps. This does not close joints; `JointView.set_coordinate` does. The integrator
    then restarts as in the first step, and the energy balance does not include the change of energy.
    """

    def __init__(self, simulation: Simulation, index: int):
        self._simulation, self.index = simulation, index

    def __repr__(self) -> str:
        x, y, z = self.position
        return f"<body '{self.name}' ({self.kind}, {self.mass:.6g} kg) at ({x:.6g}, {y:.6g}, {z:.6g}) m>"

    @property
    def name(self) -> str:
        """Name of the body."""
        return self._simulation.model.bodies.names[self.index]

    @property
    def kind(self) -> str:
        """ "dynamic", "kinematic" or "static"."""
        return Kind(int(self._simulation.model.bodies.kind[self.index])).name.lower()

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return float(self._simulation.model.bodies.mass[self.index])

    @property
    def enabled(self) -> bool:
        """Whether the body is simulated; can be set between steps.

        A disabled body rests in its pose. Its joints are inactive, and other bodies pass through it.

        Raises:
            SceneError: the body overlaps others when it is enabled; it stays disabled.
        """
        return not self._simulation.switches.off[self.index]

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        self._simulation.switches.set_body(self.index, bool(enabled))

    # pose -----------------------------------------------------------------------------------------------------------

    @property
    def transform(self) -> np.ndarray:
        """(4, 4) pose of the mesh frame [m], including strain; can be set to a rigid pose.

        Raises:
            ValueError: the pose is not rigid, or the body is not dynamic.
        """
        return self._matrix(self._simulation.stepper.q, 1.0)

    @transform.setter
    def transform(self, pose: Sequence[Sequence[float]] | np.ndarray) -> None:
        pose = np.array(pose, dtype=float)
        if pose.shape != (4, 4) or not (np.abs(pose) <= LARGEST).all() or (pose[3] != (0.0, 0.0, 0.0, 1.0)).any():
            raise ValueError(f"the pose of body '{self.name}' must be a (4, 4) matrix with last row 0 0 0 1, not {pose}")
        R = pose[:3, :3]
        if np.abs(R @ R.T - np.eye(3)).max() > CLOSE_TO_RIGID or np.linalg.det(R) < 0.0:
            raise ValueError(f"the pose of body '{self.name}' must contain a rotation matrix, not {R.tolist()}")
        self._require_dynamic("pose")
        q = self._simulation.stepper.q.copy()
        q[self.index] = affine_state(pose @ np.linalg.inv(self._simulation.model.bodies.body_frame[self.index]))
        self._simulation.move_to(q)

    @property
    def position(self) -> np.ndarray:
        """(3,) origin of the mesh frame [m]; can be set."""
        return self._origin(self._simulation.stepper.q)

    @position.setter
    def position(self, position: Vector) -> None:
        self.transform = self._pose(three_numbers(position, f"the position of body '{self.name}'"), None)

    @property
    def rotation(self) -> np.ndarray:
        """(3, 3) rotation nearest to the strained map of the mesh frame."""
        return polar(self.transform[None, :3, :3])[0]

    @property
    def quaternion(self) -> np.ndarray:
        """(4,) unit quaternion (w, x, y, z) of `rotation`, w >= 0; can be set with any norm except zero."""
        return quaternion(self.rotation)

    @quaternion.setter
    def quaternion(self, value: Vector) -> None:
        self.transform = self._pose(None, quaternion_matrix(self._quaternion(value)))

    def _pose(self, position: np.ndarray | None, rotation: np.ndarray | None) -> np.ndarray:
        """Return the (4, 4) pose of the mesh frame at a position [m] and rotation, by default the current ones."""
        pose = np.eye(4)
        pose[:3, 3] = self.position if position is None else position
        pose[:3, :3] = self.rotation if rotation is None else rotation
        return pose

    def move_to(
        self, position: Vector | None = None, quaternion: Vector | None = None, duration: float | None = None
    ) -> None:
        """Move a kinematic body to a pose from the next step on, and keep it there.

        The move replaces the scene's motion. Velocity and angular velocity are constant during the move. Call it before every
        step to follow an input device or another program.

        Args:
            position: (3,) final origin of the mesh frame [m]; quaternion: (4,) final (w, x, y, z). By default the current ones.
            duration: duration of the move [s]; by default the time step.

        Raises:
            ValueError: the body is not kinematic, a number is not finite, or the duration is not positive.
        """
        if self.kind != "kinematic":
            raise ValueError(f"move_to needs a kinematic body; body '{self.name}' is {self.kind}: set its `position`")
        sim = self._simulation
        duration = float(of_body(sim.stepper.worlds.lengths, self.index)) if duration is None else duration
        if not 0.0 < duration < np.inf:
            raise ValueError(f"duration must be a positive time in seconds, not {duration!r}")
        end = self._pose(
            None if position is None else three_numbers(position, f"the position of body '{self.name}'"),
            None if quaternion is None else quaternion_matrix(self._quaternion(quaternion)),
        )
        sim.moves.add(self.index, end @ np.linalg.inv(sim.model.bodies.body_frame[self.index]), duration)

    def _quaternion(self, value: Vector) -> np.ndarray:
        q = np.array(value, dtype=float)
        if q.shape != (4,) or not np.isfinite(q).all() or not q.any():
            raise ValueError(f"the quaternion of body '{self.name}' must be (w, x, y, z), not all zero; it is {value!r}")
        return q

    # velocity -------------------------------------------------------------------------------------------------------

    @property
    def velocity(self) -> np.ndarray:
        """(4, 4) time derivative of `transform`."""
        return self._matrix(self._simulation.stepper.qd, 0.0)

    def _origin(self, state: np.ndarray) -> np.ndarray:
        """Return position or velocity (3,) of the mesh frame's origin from states or velocities (n, 12)."""
        row = state[self.index]
        return row[:3] + row[3:].reshape(3, 3) @ self._simulation.model.bodies.body_frame[self.index, :3, 3]

    def _matrix(self, state: np.ndarray, corner: float) -> np.ndarray:
        """Return the (4, 4) mesh frame of states or velocities (n, 12); `corner` is the last element, 1 or 0."""
        row, out = state[self.index], np.zeros((4, 4))
        out[:3, :3], out[:3, 3], out[3, 3] = row[3:].reshape(3, 3), row[:3], corner
        out = out @ self._simulation.model.bodies.body_frame[self.index]
        out[3, 3] = corner
        return out

    @property
    def linear_velocity(self) -> np.ndarray:
        """(3,) velocity of the mesh frame's origin [m/s]; can be set, and the angular velocity does not change."""
        return self._origin(self._simulation.stepper.qd)

    @linear_velocity.setter
    def linear_velocity(self, velocity: Vector) -> None:
        self._set_velocity(three_numbers(velocity, f"the linear velocity of body '{self.name}'"), self.angular_velocity)

    @property
    def angular_velocity(self) -> np.ndarray:
        """(3,) angular velocity in world axes [rad/s]; can be set, and the velocity of the origin does not change."""
        return axial((self.velocity[:3, :3] @ np.linalg.inv(self.transform[:3, :3]))[None])[0]

    @angular_velocity.setter
    def angular_velocity(self, velocity: Vector) -> None:
        self._set_velocity(self.linear_velocity, three_numbers(velocity, f"the angular velocity of body '{self.name}'"))

    def _set_velocity(self, linear: np.ndarray, angular: np.ndarray) -> None:
        self._require_dynamic("velocity")
        model, qd = self._simulation.model, self._simulation.stepper.qd.copy()
        rate = np.zeros((4, 4))
        rate[:3, :3] = skew(angular[None])[0] @ self.transform[:3, :3]
        rate[:3, 3] = linear
        internal = rate @ np.linalg.inv(model.bodies.body_frame[self.index])
        qd[self.index] = np.concatenate([internal[:3, 3], internal[:3, :3].ravel()])
        self._simulation.set_velocities(qd)

    # loads ----------------------------------------------------------------------------------------------------------

    def apply_force(self, force: Given, at: Vector | None = None, frame: str = "world", steps: int | None = None) -> Load:
        """Apply a force from the next step on.

        Args:
            force: (3,) [N], or a function of (time [s], body) that returns it, evaluated at the end of every substep.
            at: (3,) point of the body in its mesh frame [m]; by default the centre of mass.
            frame: axes of the force, "world" or "body" (the mesh frame).
            steps: number of steps; None until `Load.remove` or `clear_loads`.

        Raises:
            ValueError: the force is not three finite numbers, the frame is unknown, or the body is not dynamic.
        """
        return self._simulation.loads.add(self, force, False, at, frame, steps)

    def apply_torque(self, torque: Given, frame: str = "world", steps: int | None = None) -> Load:
        """Apply a couple [N m] from the next step on; see `apply_force`."""
        return self._simulation.loads.add(self, torque, True, None, frame, steps)

    def spring_to(self, point: Vector, stiffness: float, damping: float = 0.0, at: Vector | None = None) -> Spring:
        """Connect the body to a world point by a spring, from the next step on until `Spring.remove`.

        Args:
            point: (3,) [m], can be set on the spring before every step; stiffness: [N/m].
            damping: damping of the velocity of the body's point [N s/m].
            at: (3,) point of the body in its mesh frame [m]; by default the origin.

        Raises:
            ValueError: the body is not dynamic, stiffness or damping is negative, or a point is not three finite numbers.
        """
        return self._simulation.springs.add(self, point, stiffness, damping, at)

    def clear_loads(self) -> None:
        """Remove the loads of `apply_force` and `apply_torque`; force and torque of the scene stay."""
        self._simulation.loads.keep(lambda one: one.body != self.index)

    # contact --------------------------------------------------------------------------------------------------------

    @property
    def contact_force(self) -> np.ndarray:
        """(3,) sum of all contact forces on the body [N], including friction."""
        return self._simulation.contacts().on(self.index)[:3]

    def contact_wrench(self, about: Vector | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return force (3,) [N] and torque (3,) [N m] of all contacts on the body, in world axes.

        Args:
            about: (3,) reference point of the torque in the world [m]; by default the centre of mass.

        Raises:
            ValueError: the point is not three finite numbers.
        """
        wrench = self._simulation.contacts().on(self.index)
        force, torque = wrench[:3], wrench[3:]
        if about is not None:
            arm = self._simulation.stepper.q[self.index, :3] - three_numbers(about, "the point of a contact wrench")
            torque = torque + np.cross(arm, force)
        return force, torque

    @property
    def touches(self) -> tuple[str, ...]:
        """Names of the bodies in contact with this body."""
        pairs = {name for pair in self._simulation.contacts(self).bodies for name in pair}
        return tuple(sorted(pairs - {self.name}))

    def _require_dynamic(self, what: str) -> None:
        if self.kind != "dynamic":
            remedy = "; use move_to" if self.kind == "kinematic" else ""
            raise ValueError(f"the {what} of body '{self.name}' cannot be set: it is {self.kind}{remedy}")
