"""`Simulation`: a scene on a device, advanced frame by frame. What the command line and user code share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from abd import backends
from abd.energies import Budget, kinetic_energy, momenta
from abd.joints.readings import JointReader, Readings
from abd.joints.rows import energy as row_energy
from abd.model import Joint, Model
from abd.solver.step import Stepper
from abd.state import State


@dataclass
class StepReport:
    """What one frame did: the numbers of formulation.md section 5, SI units."""

    step: int
    time: float
    dt: float
    converged: bool
    substeps: int
    newton_iterations: int
    linear_iterations: int
    line_search_trials: int
    min_gap: float
    max_joint_residual: tuple[float, float]
    max_orthogonality_error: float
    residual_force: float
    tolerance_achieved: float
    contacts: int
    energy: dict[str, float]
    momentum: dict[str, np.ndarray]
    stages: dict[str, float] = field(default_factory=dict)
    wall_seconds: float = 0.0


class BodyView:
    """One body of a running simulation."""

    def __init__(self, simulation: Simulation, index: int):
        self._simulation, self.index = simulation, index

    @property
    def name(self) -> str:
        """Its name."""
        return self._simulation.model.bodies.names[self.index]

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return float(self._simulation.model.bodies.mass[self.index])

    @property
    def transform(self) -> np.ndarray:
        """(4, 4) pose of the user's mesh frame [m]."""
        return self._simulation.model.user_transform(self._simulation.stepper.q)[self.index]

    @property
    def velocity(self) -> np.ndarray:
        """(4, 4) time derivative of `transform`."""
        return self._simulation.model.user_velocity(self._simulation.stepper.qd)[self.index]


class JointView:
    """One joint of a running simulation."""

    def __init__(self, simulation: Simulation, index: int):
        self._simulation, self.index = simulation, index

    @property
    def joint(self) -> Joint:
        """Its definition."""
        return self._simulation.model.joints[self.index]

    @property
    def residual(self) -> tuple[float, float]:
        """Largest violation of its point rows [m] and of its direction rows [rad]."""
        point, turn = self._simulation.joint_readings().residual[self.index]
        return float(point), float(turn)

    @property
    def coordinates(self) -> np.ndarray:
        """(1,) angle of a hinge [rad], over any number of turns; (0,) for joints without coordinates."""
        return self._of_hinge(self._simulation.joint_readings().angle)

    @property
    def rates(self) -> np.ndarray:
        """Their rates [rad/s]."""
        return self._of_hinge(self._simulation.joint_readings().rate)

    def _of_hinge(self, values: np.ndarray) -> np.ndarray:
        return values[self._simulation.reader.hinges == self.index]

    def wrench(self) -> tuple[np.ndarray, np.ndarray]:
        """Force [N] and torque [N m] on the child at the joint's point, world axes; the parent gets the negative."""
        both = self._simulation.joint_readings().wrench[self.index]
        return both[:3], both[3:]


class Simulation:
    """A scene on a device.

    Args:
        scene: a `Scene`, a path, the name of a shipped scene, or a compiled `Model`.
        device: "auto", "cpu", "cuda", "cuda:N" or "numpy".

    Raises:
        SceneError: the scene has problems. DeviceError: the device is not there.
    """

    def __init__(self, scene, device: str = "auto"):
        self.model = scene if isinstance(scene, Model) else _compiled(scene)
        self.backend = backends.create(self.model, device)
        self.device = self.backend.device.name
        bodies = self.model.bodies
        self.stepper = Stepper(self.model, self.backend, State(q=bodies.q.copy(), qd=bodies.qd.copy()))
        self.reader = JointReader(self.model)
        self.budget = Budget(self.model)
        self.ch2 = self.model.settings.dt**2
        self.angles = self.reader.read(bodies.q, bodies.qd, self.ch2).angle
        self._readings: Readings | None = None
        self.bodies = {name: BodyView(self, k) for k, name in enumerate(bodies.names)}
        self.joints = {joint.name: JointView(self, k) for k, joint in enumerate(self.model.joints)}

    @property
    def time(self) -> float:
        """[s]."""
        return self.stepper.time

    @property
    def frame(self) -> int:
        """Frames done."""
        return self.stepper.frame

    @property
    def state(self):
        """Backend's state: `q` (n, 12) as a device array, `body_frame` (n, 4, 4) from the user's to internal frames."""
        return DeviceState(self)

    def step(self) -> StepReport:
        """Advance by one frame.

        Raises:
            StepFailure: the frame did not converge, even with the shortest substeps; the state is the last good one.
        """
        before = self.stepper.q
        progress, substeps, wall = self.stepper.advance()
        self.ch2 = self.backend.step.ch2
        q, qd = self.stepper.q, self.stepper.qd
        self._readings = None
        self.angles = self.joint_readings().angle
        self.budget.account(before, q)
        linear, angular = momenta(self.model, q, qd)
        point, turn = self.joint_readings().residual.max(axis=0, initial=0.0).tolist()
        return StepReport(
            step=self.frame,
            time=self.time,
            dt=self.model.settings.dt,
            converged=True,
            substeps=substeps,
            newton_iterations=progress.newton,
            linear_iterations=progress.linear,
            line_search_trials=progress.trials,
            min_gap=self.backend.smallest_gap(),
            max_joint_residual=(point, turn),
            max_orthogonality_error=self.backend.strain(),
            residual_force=self.backend.residual_force(),
            tolerance_achieved=progress.tolerance,
            contacts=self.backend.contact_count(),
            energy={
                "kinetic": kinetic_energy(self.model, qd),
                **self.budget.potential(self.model, q),
                "contact": self.backend.contact_energy(),
                "joint": float(row_energy(self.reader.rows, q).sum() / self.ch2),
                "external_work": self.budget.external_work,
                "friction_work": self.stepper.friction_work,
            },
            momentum={"linear": linear, "angular": angular},
            stages=progress.stages,
            wall_seconds=wall,
        )

    def joint_readings(self) -> Readings:
        """Residuals, wrenches, angles and rates of all joints in the present state, as arrays."""
        if self._readings is None:
            self._readings = self.reader.read(self.stepper.q, self.stepper.qd, self.ch2, self.angles)
        return self._readings

    def host_state(self) -> State:
        """Independent host copy of the state; ``extra["angles"]`` are the hinges' angles over their turns [rad]."""
        state = self.stepper.state()
        state.extra["angles"] = self.angles.copy()
        return state

    def checkpoint(self) -> dict:
        """Everything a bitwise continuation needs, as arrays and numbers."""
        state = self.stepper.state()
        return {
            "q": state.q,
            "qd": state.qd,
            "previous_q": state.previous_q,
            "previous_qd": state.previous_qd,
            "time": state.time,
            "step": state.step,
            "previous_h": state.previous_h,
            "contact_stiffness": state.contact_stiffness,
            "touching": state.extra["touching"],
            "pace": state.extra["pace"],
            "angles": self.angles.copy(),
            "external_work": self.budget.external_work,
            "friction_work": self.stepper.friction_work,
            "ch2": self.ch2,
        }

    def restore(self, saved: dict) -> None:
        """Continue from a checkpoint."""
        self.stepper.restore(
            State(
                q=np.asarray(saved["q"]),
                qd=np.asarray(saved["qd"]),
                time=float(saved["time"]),
                step=int(saved["step"]),
                previous_q=np.asarray(saved["previous_q"]),
                previous_qd=np.asarray(saved["previous_qd"]),
                previous_h=float(saved["previous_h"]),
                contact_stiffness=float(saved["contact_stiffness"]),
                extra={"touching": np.asarray(saved["touching"]), "pace": np.asarray(saved["pace"])},
            )
        )
        self.angles, self._readings = np.asarray(saved["angles"]), None
        self.budget.external_work = float(saved["external_work"])
        self.stepper.friction_work = float(saved["friction_work"])
        self.ch2 = float(saved["ch2"])


@dataclass
class DeviceState:
    """Device arrays of a simulation; they follow it as it advances."""

    simulation: Simulation

    @property
    def q(self):
        """(n, 12) device array of the current state."""
        return self.simulation.backend.device_positions()

    @property
    def body_frame(self) -> np.ndarray:
        """(n, 4, 4) maps from the user's mesh frames to the internal frames."""
        return self.simulation.model.bodies.body_frame


def _compiled(scene) -> Model:
    from abd.scene.scene import Scene, load

    if isinstance(scene, str | Path):
        scene = load(scene)
    return scene.compile() if isinstance(scene, Scene) else Scene.from_spec(scene).compile()
