"""Springs between a point of a body and a movable point of the world: dragging, tethers, soft fixtures.

    force = stiffness (point - x) - damping v        x, v: position and velocity of the body's point [m, m/s]

Springs are terms of the incremental potential, so that stiff springs are stable. In the model, a spring is a joint to the
world without constraints and with a pd drive on x, y and z. Moving its point counts as drive work. Checkpoints contain
springs, trajectories do not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.api.coordinates import Coordinates
from abd.api.joint_control import JointControl
from abd.api.loads import Body, require_dynamic
from abd.api.switches import Switches
from abd.api.views import Vector, finite
from abd.joint_model import CoordinateSettings, Drive, Joint
from abd.joints.rows.change import Constant
from abd.model import WORLD, Model
from abd.rotations import pose
from abd.step.step import Stepper


class Spring:
    """A spring from a body to a point of the world."""

    __slots__ = ("_index", "_springs")

    def __init__(self, springs: Springs, index: int):
        self._springs, self._index = springs, index

    def __repr__(self) -> str:
        x, y, z = self.point
        return f"<spring of '{self.body}' to ({x:.6g}, {y:.6g}, {z:.6g}) m, {self.stiffness:.6g} N/m>"

    @property
    def _joint(self) -> Joint:
        return self._springs.model.joints[self._index]

    @property
    def body(self) -> str:
        """Name of the body."""
        return self._springs.model.bodies.names[self._joint.child]

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
        given = finite(point, (3,), f"the world point of the spring of body '{self.body}'").tolist()
        for settings, value in zip(self._joint.coordinates, given, strict=True):
            drive = replace(settings.drive, target=Constant(value))
            self._springs.control.set_functions(self._index, settings, drive, may_jump=False)

    @property
    def active(self) -> bool:
        """Whether the spring acts; False while its body is disabled, and after `remove`."""
        return self._joint.active

    @property
    def force(self) -> np.ndarray:
        """(3,) force on the body in the last step [N]."""
        return self._springs.coordinates.readings().wrenches("child", None)[self._index, :3]

    def remove(self) -> None:
        """Deactivate the spring permanently; a second call has no effect."""
        self._springs.switches.set_joint(self._index, False)


class Springs:
    """All springs of one simulation, including removed ones; they follow the joints of the scene.

    Attributes:
        given: number of joints of the scene.
    """

    def __init__(self, model: Model, stepper: Stepper, control: JointControl, coordinates: Coordinates, switches: Switches):
        self.model, self.stepper, self.control, self.coordinates = model, stepper, control, coordinates
        self.switches = switches
        self.given = len(model.joints)

    def add(self, view: Body, point: Vector, stiffness: float, damping: float, at: Vector | None) -> Spring:
        """Add a spring to a body; see `BodyView.spring_to`."""
        require_dynamic(view, "springs")
        for name, value in (("stiffness", stiffness), ("damping", damping)):
            if not (np.isfinite(value) and value >= 0.0):
                raise ValueError(f"the {name} of a spring must be finite and not negative, not {value!r}")
        if stiffness == damping == 0.0:
            raise ValueError("a spring needs a stiffness or a damping above zero")
        place = finite((0.0, 0.0, 0.0) if at is None else at, (3,), f"the point on body '{view.name}'")
        end = finite(point, (3,), f"the world point of the spring of body '{view.name}'")
        index = len(self.model.joints)
        self._append(view.index, np.array([*place, *end, stiffness, damping, True]))
        self.coordinates.watch(self.coordinates.values)
        self.control.rebuild([])
        self.switches.switch_joints([view.index])
        self.stepper.modes.jump([view.index])
        return Spring(self, index)

    def _append(self, body: int, numbers: np.ndarray) -> None:
        """Append the joint of a spring to the model.

        Args:
            numbers: (9,) point on the body and point in the world [m], stiffness [N/m], damping [N s/m], whether it acts.
        """
        model = self.model
        frame = model.bodies.body_frame[body]
        number = sum(model.joints[k].child == body for k in range(self.given, len(model.joints)))
        *end, stiffness, damping, active = numbers[3:].tolist()
        drives = (Drive("pd", Constant(x), stiffness=stiffness, damping=damping) for x in end)
        joint = Joint(
            name=f"spring {number} of {model.bodies.names[body]}",
            type="general",
            uid=0,
            parent=WORLD,
            child=body,
            parent_frame=np.eye(4),
            child_frame=pose(np.eye(3), frame[:3, :3] @ numbers[:3] + frame[:3, 3]),
            stiffness_mass=float(model.bodies.mass[body]),
            parameters={"constrained": ()},
            coordinates=tuple(CoordinateSettings(name, drive=drive) for name, drive in zip("xyz", drives, strict=True)),
            active=bool(active),
        )
        model.joints.append(joint)

    def saved(self) -> dict:
        """Return the springs for a checkpoint: names of their bodies, and the numbers of `_append`."""
        model = self.model
        springs = [Spring(self, k) for k in range(self.given, len(model.joints))]
        bodies, inverse = [one._joint.child for one in springs], np.linalg.inv(model.bodies.body_frame)
        points = [(inverse[body] @ one._joint.child_frame)[:3, 3] for body, one in zip(bodies, springs, strict=True)]
        numbers = [[*at, *s.point, s.stiffness, s.damping, s.active] for at, s in zip(points, springs, strict=True)]
        return {"body": np.array([one.body for one in springs], dtype=str), "numbers": np.array(numbers).reshape(-1, 9)}

    def restore(self, saved: dict) -> bool:
        """Replace all springs by those of a checkpoint, and return whether they differ; `JointControl` rebuilds the system."""
        now = self.saved()
        if all(np.array_equal(now[key], saved[key]) for key in now):
            return False
        self.model.joints.truncate(self.given)
        for name, numbers in zip(saved["body"].tolist(), saved["numbers"], strict=True):
            self._append(self.model.bodies.names.index(name), numbers)
        self.coordinates.watch(self.coordinates.values)
        return True
