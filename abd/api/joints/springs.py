"""Springs between a point of a body and a point of the world that may be moved: for dragging, tethers, soft fixtures.

    force = stiffness (point - x) - damping v        x, v: place and velocity of the body's point [m, m/s]

They stand in the incremental potential like any joint's spring, so that stiff ones are stable, and their force balances with
all others. In the model each is a joint to the world that holds nothing, with a pd drive on x, y and z; the work that moving
its point does is that of a drive. They come after the scene's joints, are in no trajectory, and are kept by checkpoints.
"""

from __future__ import annotations

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
        """(3,) where it pulls to [m]; can be set before every step.

        Raises:
            ValueError: not three finite numbers.
        """
        return np.array([one.drive.target(0.0) for one in self._joint.coordinates])

    @point.setter
    def point(self, point: Vector) -> None:
        self._springs.move(self._index, three_numbers(point, f"the point that body '{self.body}' is pulled to"))

    @property
    def active(self) -> bool:
        """Whether it pulls; `remove` ends that."""
        return self._joint.active

    @property
    def force(self) -> np.ndarray:
        """(3,) on the body in the last step [N]."""
        return JointView(self._springs.simulation, self._index).wrench()[0]

    def remove(self) -> None:
        """Take it off for good; nothing happens where it is off already."""
        self._springs.simulation.control.set_active(self._index, False)


class Springs:
    """All springs of one simulation, those that were taken off included.

    Attributes:
        given: number of joints before them.
    """

    def __init__(self, simulation: Simulation):
        self.simulation, self.given = simulation, len(simulation.model.joints)

    def add(self, view: BodyView, point: Vector, stiffness: float, damping: float, at: Vector | None) -> Spring:
        """Put a spring on a body.

        Raises:
            ValueError: a body that no force moves, a stiffness or damping that is negative or both zero, a bad point.
        """
        if view.kind != "dynamic":
            raise ValueError(f"body '{view.name}' is {view.kind}: no spring moves it")
        for name, value in (("stiffness", stiffness), ("damping", damping)):
            if not (np.isfinite(value) and value >= 0.0):
                raise ValueError(f"the {name} of a spring is {value!r}; a finite number, not negative, is needed")
        if stiffness == damping == 0.0:
            raise ValueError("a spring needs a stiffness or a damping")
        place = three_numbers((0.0, 0.0, 0.0) if at is None else at, f"the point on body '{view.name}'")
        end = three_numbers(point, f"the point that body '{view.name}' is pulled to")
        index = self._append(view.index, np.concatenate([place, end, [stiffness, damping]]))
        self._rebuild()
        self.simulation.stepper.modes.jump([view.index])
        return Spring(self, index)

    def move(self, index: int, point: np.ndarray) -> None:
        """Pull to another point (3,) [m] from the next step on."""
        sim = self.simulation
        row_laws, joint = sim.backend.system.row_laws, sim.model.joints[index]
        rows = np.flatnonzero((row_laws.joint == index) & (row_laws.role == Role.DRIVE))
        for row in rows.tolist():
            row_laws.target_of[row] = Constant(float(point["xyz".index(row_laws.name[row])]))
        row_laws.revision += 1
        for name, value in zip("xyz", point.tolist(), strict=True):
            joint = with_settings(joint, _pull(settings_of(joint, name), value))
        sim.model.joints[index] = joint
        sim.stepper.sleep.disturb()

    def _append(self, body: int, numbers: np.ndarray) -> int:
        """A spring of (8,) point on the body, point of the world [m], stiffness and damping; its index among the joints."""
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
        sim.control.take_in(joint)
        sim.watch_joints()
        return index

    def _rebuild(self) -> None:
        """The joint system of the present joints; rows that stay keep their memory."""
        self.simulation.control.rebuild([])

    # checkpoints ----------------------------------------------------------------------------------------------------

    def saved(self) -> dict:
        """What they were made with; what was changed since is among the changes of joints."""
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
        """Have the springs of a checkpoint and no others, before the joints are brought to what it tells."""
        body, numbers = np.asarray(saved["body"]), np.reshape(saved["numbers"], (-1, 8))
        now = self.saved()
        if np.array_equal(now["body"], body) and np.array_equal(np.reshape(now["numbers"], (-1, 8)), numbers):
            return
        sim = self.simulation
        for joints in (JointList.of(sim.model.joints), sim.control.start):
            joints.truncate(self.given)
        sim.control.leave(self.given)
        sim.watch_joints()
        for one, row in zip(body.tolist(), numbers, strict=True):
            self._append(one, row)
        sim.backend.rows.set_joints(build_system(sim.model))

    def reset(self) -> None:
        """None, as at the start."""
        self.restore({"body": np.zeros(0, dtype=np.int64), "numbers": np.zeros(0)})


def _pull(settings: CoordinateSettings, target: float) -> CoordinateSettings:
    """The settings of a coordinate that is pulled elsewhere."""
    drive = settings.drive
    pulled = Drive("pd", Constant(target), stiffness=drive.stiffness, damping=drive.damping)
    return CoordinateSettings(settings.name, drive=pulled)
