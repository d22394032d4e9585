"""Springs between a point of a body and a movable point of the world: dragging, tethers, soft fixtures.

    force = stiffness (point - x) - damping v        x, v: position and velocity of the body's point [m, m/s]

Springs are terms of the incremental potential, so that stiff springs are stable. In the model, a spring is a joint to the
world without constraints and with a pd drive on x, y and z. Moving its point counts as drive work. Springs follow the joints
of the scene. Checkpoints contain springs, trajectories do not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from abd.api.joints.joint_view import JointView
from abd.api.loads import Vector, three_numbers
from abd.joint_list import JointList
from abd.joints.rows.build import build_system
from abd.joints.rows.change import Constant, settings_of, with_settings
from abd.joints.rows.laws import Role
from abd.model import WORLD, CoordinateSettings, Drive, Joint

if TYPE_CHECKING:
    from abd.api.body_view import BodyView
    from abd.api.simulation import Simulation


class Spring:
    """A spring from a body to a point of the world."""

    def __init__(self, springs: Springs, index: int):
        self._springs, self._index = springs, index

    def __repr__(self) -> str:
        x, y, z = self.point
        return f"<spring of '{self.body}' to ({x:.6g}, {y:.6g}, {z:.6g}) m, {self.stiffness:.6g} N/m>"

    @property
    def _joint(self) -> Joint:
        return self._springs.simulation.model.joints[self._index]

    @property
    def body(self) -> str:
        """Name of the body."""
        return self._springs.simulation.model.bodies.names[self._joint.child]

    @property
    def stiffness(self) -> float:
        """[N/m]."""
        return self._joint.coordinates[0].drive.stiffness

    @property
    def damping(self) -> float:
        """[N s/m]."""
        return self._joint.coordinates[0].drive.damping

    @property
    def point(self) -> np.ndarray:
        """(3,) attachment point in the world [m]; can be set before every step.

        Raises:
            ValueError: the point is not three finite numbers.
        """
        return np.array([one.drive.target(0.0) for one in self._joint.coordinates])

    @point.setter
    def point(self, point: Vector) -> None:
        self._springs.move(self._index, three_numbers(point, f"the world point of the spring of body '{self.body}'"))

    @property
    def active(self) -> bool:
        """Whether the spring acts; False after `remove`."""
        return self._joint.active

    @property
    def force(self) -> np.ndarray:
        """(3,) force on the body in the last step [N]."""
        return JointView(self._springs.simulation, self._index).wrench()[0]

    def remove(self) -> None:
        """Deactivate the spring permanently; a second call has no effect."""
        self._springs.simulation.control.set_active(self._index, False)


class Springs:
    """All springs of one simulation, including removed ones.

    Attributes:
        given: number of joints of the scene.
    """

    def __init__(self, simulation: Simulation):
        self.simulation, self.given = simulation, len(simulation.model.joints)

    def add(self, view: BodyView, point: Vector, stiffness: float, damping: float, at: Vector | None) -> Spring:
        """Add a spring to a body.

        Raises:
            ValueError: the body is not dynamic, stiffness or damping is negative or both are zero, or a point is invalid.
        """
        if view.kind != "dynamic":
            raise ValueError(f"springs need a dynamic body; body '{view.name}' is {view.kind}")
        for name, value in (("stiffness", stiffness), ("damping", damping)):
            if not (np.isfinite(value) and value >= 0.0):
                raise ValueError(f"the {name} of a spring must be finite and not negative, not {value!r}")
        if stiffness == damping == 0.0:
            raise ValueError("a spring needs a stiffness or a damping above zero")
        place = three_numbers((0.0, 0.0, 0.0) if at is None else at, f"the point on body '{view.name}'")
        end = three_numbers(point, f"the world point of the spring of body '{view.name}'")
        index = self._append(view.index, np.concatenate([place, end, [stiffness, damping]]))
        self.simulation.control.rebuild([])
        self.simulation.stepper.modes.jump([view.index])
        return Spring(self, index)

    def move(self, index: int, point: np.ndarray) -> None:
        """Set the attachment point (3,) [m] from the next step on."""
        sim = self.simulation
        row_laws, joint = sim.backend.system.row_laws, sim.model.joints[index]
        rows = np.flatnonzero((row_laws.joint == index) & (row_laws.role == Role.DRIVE))
        for row in rows.tolist():
            row_laws.target_of[row] = Constant(float(point["xyz".index(row_laws.name[row])]))
        row_laws.revision += 1
        for name, value in zip("xyz", point.tolist(), strict=True):
            joint = with_settings(joint, _with_target(settings_of(joint, name), value))
        sim.model.joints[index] = joint
        sim.stepper.sleep.disturb()

    def _append(self, body: int, numbers: np.ndarray) -> int:
        """Append a spring and return its joint index.

        Args:
            numbers: (8,) point on the body and point in the world [m], stiffness [N/m] and damping [N s/m].
        """
        sim = self.simulation
        frame = sim.model.bodies.body_frame[body]
        child = np.eye(4)
        child[:3, 3] = frame[:3, :3] @ numbers[:3] + frame[:3, 3]
        index = len(sim.model.joints)
        drives = (Drive("pd", Constant(float(x)), stiffness=float(numbers[6]), damping=float(numbers[7])) for x in numbers[3:6])
        joint = Joint(
            name=f"spring {index - self.given} of {sim.model.bodies.names[body]}",
            type="general",
            uid=0,
            parent=WORLD,
            child=body,
            parent_frame=np.eye(4),
            child_frame=child,
            stiffness_mass=float(sim.model.bodies.mass[body]),
            parameters={"constrained": ()},
            coordinates=tuple(CoordinateSettings(name, drive=drive) for name, drive in zip("xyz", drives, strict=True)),
        )
        sim.model.joints.append(joint)
        sim.control.append(joint)
        sim.watch_joints()
        return index


    # checkpoints ----------------------------------------------------------------------------------------------------

    def saved(self) -> dict:
        """Return the initial parameters of the springs; `JointControl.saved` contains later changes."""
        start = self.simulation.control.start
        rows = [start[k] for k in range(self.given, len(start))]
        frames = self.simulation.model.bodies.body_frame
        numbers = np.zeros((len(rows), 8))
        for row, one in zip(numbers, rows, strict=True):
            row[:3] = (np.linalg.inv(frames[one.child]) @ one.child_frame)[:3, 3]
            row[3:6] = [given.drive.target(0.0) for given in one.coordinates]
            row[6:] = one.coordinates[0].drive.stiffness, one.coordinates[0].drive.damping
        return {"body": np.array([one.child for one in rows], dtype=np.int64), "numbers": numbers.ravel()}

    def restore(self, saved: dict) -> None:
        """Replace all springs by those of a checkpoint; call this before `JointControl.restore`."""
        body, numbers = np.asarray(saved["body"]), np.reshape(saved["numbers"], (-1, 8))
        now = self.saved()
        if np.array_equal(now["body"], body) and np.array_equal(np.reshape(now["numbers"], (-1, 8)), numbers):
            return
        sim = self.simulation
        for joints in (JointList.of(sim.model.joints), sim.control.start):
            joints.truncate(self.given)
        sim.control.truncate(self.given)
        sim.watch_joints()
        for one, row in zip(body.tolist(), numbers, strict=True):
            self._append(one, row)
        sim.backend.rows.set_joints(build_system(sim.model))

    def reset(self) -> None:
        """Remove all springs."""
        self.restore({"body": np.zeros(0, dtype=np.int64), "numbers": np.zeros(0)})


def _with_target(settings: CoordinateSettings, target: float) -> CoordinateSettings:
    """Return the settings with another target of the drive."""
    return CoordinateSettings(settings.name, drive=replace(settings.drive, target=Constant(target)))
