"""`BodyView` and `MaterialView`: pose, velocity, loads and contact of a body of a running simulation; friction of materials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from abd.api.loads import Given, Load, require_dynamic
from abd.api.springs import Spring
from abd.api.state_changes import StateChanges
from abd.api.views import Vector, finite
from abd.by_bodies import of_body
from abd.energies import spin
from abd.joints.rows.placement import rigid_pose
from abd.model import Kind, affine_matrices, affine_state
from abd.rotations import polar, pose, quaternion, quaternion_matrix, skew
from abd.scene.schema.attributes import KnownAttributes
from abd.scene.schema.schema import BodySpec, MaterialSpec


class BodyView(KnownAttributes):
    """One body, described by its mesh frame in the scene.

    Poses and velocities can be set between steps. This does not close joints; `JointView.set_coordinate` does. The integrator
    then restarts as in the first step, and the energy balance does not include the change of energy.
    """

    __slots__ = ("_simulation", "index")
    RELATED = ("scene.body(name)", BodySpec), ("sim.materials[name]", MaterialSpec)

    def __init__(self, simulation: StateChanges, index: int):
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
        return Kind(self._simulation.model.bodies.kind[self.index]).name.lower()

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return float(self._simulation.model.bodies.mass[self.index])

    @property
    def enabled(self) -> bool:
        """Whether the body is simulated; can be set between steps.

        A disabled body rests in its pose. Its joints and springs are inactive, and other bodies pass through it.

        Raises:
            SceneError: the body overlaps others when it is enabled; it stays disabled.
        """
        return not self._simulation._switches.off[self.index]

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        self._simulation._switches.set_body(self.index, bool(enabled))

    # pose -----------------------------------------------------------------------------------------------------------

    @property
    def transform(self) -> np.ndarray:
        """(4, 4) pose of the mesh frame [m], including strain; can be set to a rigid pose.

        Raises:
            ValueError: the pose is not rigid, or the body is not dynamic.
        """
        return affine_matrices(self._simulation.stepper.q[[self.index]])[0] @ self._frame

    @transform.setter
    def transform(self, pose: Sequence[Sequence[float]] | np.ndarray) -> None:
        pose = rigid_pose(self._finite(pose, "pose", 4, 4))
        require_dynamic(self, "poses")
        q = self._simulation.stepper.q.copy()
        q[self.index] = affine_state(pose @ np.linalg.inv(self._frame))
        self._simulation.move_to(q)

    @property
    def position(self) -> np.ndarray:
        """(3,) origin of the mesh frame [m]; can be set."""
        return self.transform[:3, 3]

    @position.setter
    def position(self, position: Vector) -> None:
        self.transform = self._pose(position=position)

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
        self.transform = self._pose(quaternion=value)

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
        sim._moves.add(self.index, self._pose(position, quaternion) @ np.linalg.inv(self._frame), duration)

    @property
    def center(self) -> np.ndarray:
        """(3,) centre of mass [m]; of a static or kinematic body, the origin of its mesh frame."""
        return self._simulation.stepper.q[self.index, :3].copy()

    # velocity -------------------------------------------------------------------------------------------------------

    @property
    def velocity(self) -> np.ndarray:
        """(4, 4) time derivative of `transform`; `linear_velocity` and `angular_velocity` can be set."""
        rate = affine_matrices(self._simulation.stepper.qd[[self.index]])[0]
        rate[3, 3] = 0.0
        return rate @ self._frame

    @velocity.setter
    def velocity(self, velocity: object) -> None:
        raise AttributeError(f"set linear_velocity and angular_velocity of body '{self.name}'; velocity is a 4x4 matrix")

    @property
    def center_velocity(self) -> np.ndarray:
        """(3,) velocity of `center` [m/s], which the key `velocity` of scenes sets."""
        return self._simulation.stepper.qd[self.index, :3].copy()

    @property
    def linear_velocity(self) -> np.ndarray:
        """(3,) velocity of the mesh frame's origin (`position`) [m/s]; can be set, and the angular velocity does not change."""
        return self.velocity[:3, 3]

    @linear_velocity.setter
    def linear_velocity(self, velocity: Vector) -> None:
        self._set_velocity(self._finite(velocity, "linear velocity", 3), self.angular_velocity)

    @property
    def angular_velocity(self) -> np.ndarray:
        """(3,) angular velocity in world axes [rad/s]; can be set, and the velocity of the origin does not change."""
        stepper = self._simulation.stepper
        return spin(stepper.q[[self.index]], stepper.qd[[self.index]])[0]

    @angular_velocity.setter
    def angular_velocity(self, velocity: Vector) -> None:
        self._set_velocity(self.linear_velocity, self._finite(velocity, "angular velocity", 3))

    def _set_velocity(self, linear: np.ndarray, angular: np.ndarray) -> None:
        require_dynamic(self, "velocities")
        rate, qd = np.zeros((4, 4)), self._simulation.stepper.qd.copy()
        rate[:3, :3] = skew(angular[None])[0] @ self.transform[:3, :3]
        rate[:3, 3] = linear
        qd[self.index] = affine_state(rate @ np.linalg.inv(self._frame))
        self._simulation.set_velocities(qd)

    # parts ----------------------------------------------------------------------------------------------------------

    @property
    def _frame(self) -> np.ndarray:
        """(4, 4) map from the mesh frame to the internal frame."""
        return self._simulation.model.bodies.body_frame[self.index]

    def _finite(self, values: Any, what: str, *shape: int) -> np.ndarray:
        return finite(values, shape, f"the {what} of body '{self.name}'")

    def _pose(self, position: Vector | None = None, quaternion: Vector | None = None) -> np.ndarray:
        """Return the (4, 4) pose of the mesh frame at a position [m] and quaternion, by default the current ones."""
        place = self.position if position is None else self._finite(position, "position", 3)
        if quaternion is None:
            return pose(self.rotation, place)
        turn = self._finite(quaternion, "quaternion", 4)
        if not turn.any():
            raise ValueError(f"the quaternion of body '{self.name}' must be (w, x, y, z), not all zero")
        return pose(quaternion_matrix(turn), place)

    # loads ----------------------------------------------------------------------------------------------------------

    def apply_force(
        self, force: Given[BodyView], at: Vector | None = None, frame: str = "world", steps: int | None = None
    ) -> Load:
        """Apply a force from the next step on.

        Args:
            force: (3,) [N], or a function of (time [s], body) that returns it, evaluated at the end of every substep.
            at: (3,) point of the body in its mesh frame [m]; by default the centre of mass.
            frame: axes of the force, "world" or "body" (the mesh frame).
            steps: number of steps, in addition to other loads; None until `Load.remove` or `clear_loads`, or until a force
                without `steps` is applied at the same point in the same axes.

        Raises:
            ValueError: the force is not three finite numbers, the frame is unknown, or the body is not dynamic.
        """
        return self._simulation.loads.add(self, force, False, at, frame, steps)

    def apply_torque(self, torque: Given[BodyView], frame: str = "world", steps: int | None = None) -> Load:
        """Apply a couple [N m] from the next step on; see `apply_force`."""
        return self._simulation.loads.add(self, torque, True, None, frame, steps)

    def spring_to(self, point: Vector, stiffness: float, damping: float = 0.0, at: Vector | None = None) -> Spring:
        """Connect the body to a world point by a spring, from the next step on until `Spring.remove`.

        Args:
            point: (3,) [m], can be set on the spring before every step; stiffness: [N/m].
            damping: damping of the velocity of the body's point [N s/m].
            at: (3,) point of the body in its mesh frame [m]; by default the origin.

        Raises:
            ValueError: the body is not dynamic, stiffness or damping is negative or both are zero, or a point is not three finite
                numbers.
        """
        return self._simulation._springs.add(self, point, stiffness, damping, at)

    def clear_loads(self) -> None:
        """Remove the loads of `apply_force` and `apply_torque`; force and torque of the scene stay."""
        self._simulation.loads.keep(lambda one: one.body != self.index)

    # contact --------------------------------------------------------------------------------------------------------

    @property
    def contact_force(self) -> np.ndarray:
        """(3,) sum of all contact forces on the body [N], including friction."""
        return self.contact_wrench()[0]

    def contact_wrench(self, about: Vector | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return force (3,) [N] and torque (3,) [N m] of all contacts on the body, in world axes.

        Args:
            about: (3,) reference point of the torque in the world [m]; by default the centre of mass.

        Raises:
            ValueError: the point is not three finite numbers.
        """
        force, torque = np.split(self._simulation.contacts().on_bodies[self.index], 2)
        if about is not None:
            arm = self._simulation.stepper.q[self.index, :3] - finite(about, (3,), "the point of a contact wrench")
            torque = torque + np.cross(arm, force)
        return force, torque

    @property
    def touches(self) -> tuple[str, ...]:
        """Names of the bodies in contact with this body."""
        pairs = {name for pair in self._simulation.contacts(self.name).bodies for name in pair}
        return tuple(sorted(pairs - {self.name}))


class MaterialView(KnownAttributes):
    """A material paired with itself, or a pair of two materials."""

    __slots__ = ("_one", "_other", "_simulation")

    def __init__(self, simulation: StateChanges, one: int, other: int | None = None):
        self._simulation, self._one, self._other = simulation, one, other

    def __repr__(self) -> str:
        names = self._simulation.model.materials.names
        pair = names[self._one] if self._other is None else f"{names[self._one]}', '{names[self._other]}"
        return f"<material '{pair}': mu = {self.mu:.6g}>"

    def against(self, other: str) -> MaterialView:
        """Return the pair with another material.

        Raises:
            UnknownName: the material is unknown.
        """
        return MaterialView(self._simulation, self._one, self._simulation.materials[other]._one)

    @property
    def mu(self) -> float:
        """Coefficient of friction between two bodies of the material, or of the pair [-]; can be set between steps.

        Setting it for a single material changes the friction with all materials to ``sqrt(mu_a mu_b)``. This replaces
        coefficients that the scene defines for pairs.

        Raises:
            ValueError: the number is negative or not finite.
        """
        other = self._one if self._other is None else self._other
        return float(self._simulation.model.materials.mu[self._one, other])

    @mu.setter
    def mu(self, mu: float) -> None:
        if not (isinstance(mu, int | float | np.number) and np.isfinite(mu) and mu >= 0.0):
            raise ValueError(f"the friction of {self!r} must be finite and not negative, not {mu!r}")
        table = self._simulation.model.materials.mu.copy()
        if self._other is None:
            own = np.diag(table).copy()
            own[self._one] = mu
            table[self._one] = table[:, self._one] = np.sqrt(mu * own)
            table[self._one, self._one] = mu
        else:
            table[self._one, self._other] = table[self._other, self._one] = mu
        self._simulation.set_friction(table)

    @property
    def restitution(self) -> float:
        """Ratio of the normal speeds after and before an impact [-]; NaN if not defined."""
        other = self._one if self._other is None else self._other
        return float(self._simulation.model.materials.restitution[self._one, other])
