"""`Simulation`: a scene on a device, advanced frame by frame."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from abd import backends
from abd.api.body_view import BodyView, MaterialView
from abd.api.causes import explained
from abd.api.coordinates import Coordinates
from abd.api.joint_control import JointControl
from abd.api.joints.joint_view import CouplingView, JointView
from abd.api.loads import Loads, Moves
from abd.api.recompiled import start_of, transfer, without_contacts
from abd.api.run_loop import Runs
from abd.api.sensors import Observed, Sensor, sensor
from abd.api.springs import Springs
from abd.api.step_report import StepReport
from abd.api.switches import PairView, Switches
from abd.api.views import ByName
from abd.api.worlds import DeviceState, Worlds
from abd.backends.device.memory import memory_watched
from abd.errors import SceneError, StepFailure
from abd.joint_list import JointList
from abd.model import Model
from abd.scene.overlaps.starts import free_start
from abd.scene.schema.schema import OutputSpec, SolverSpec
from abd.state import State
from abd.step.step import Stepper

if TYPE_CHECKING:
    from abd.api.reduced import Reduced
    from abd.scene.scene import Scene
    from abd.scene.schema.schema import SceneSpec

_log = logging.getLogger(__name__)
INTERNAL = ("backend", "compiled", "control", "loads", "reader", "stepper")
"""Attributes that `dir` does not list: parts of the implementation."""


class Simulation(Runs):
    """Simulate a scene on a device.

    Args:
        scene: a `Scene`, a path, the name of a shipped scene, or a compiled `Model`.
        device: "auto", "cpu", "cuda", "cuda:N" or "numpy".

    Raises:
        SceneError: the scene has problems, or bodies overlap at the start. Touching bodies are separated, with an
            entry in `model.notes`. Notes are logged. DeviceError: the device is not available.

    Attributes:
        scene: the scene, None for a compiled `Model`; compiled: the compiled scene; model: a copy of it with the current
            joints, loads, friction and gravity.
        bodies, joints, couplings, materials, sensors: views by name; control: changes joints; loads: loads on bodies;
            worlds: time steps and times of the worlds.
        state: the current state as device arrays, without a copy: `q` and `qd` (n, 12), valid until the next step.
    """

    bodies: ByName[BodyView]
    joints: ByName[JointView]
    materials: ByName[MaterialView]
    couplings: ByName[CouplingView]
    state: DeviceState
    worlds: Worlds
    __slots__ = ("__weakref__", "_stepping", "couplings", "state", "worlds")
    RELATED = (
        ("sim.worlds", Worlds),
        ("sim.scene.solver", SolverSpec),
        ("sim.scene.output", OutputSpec),
        ("sim.bodies[name]", BodyView),
        ("sim.joints[name]", JointView),
        ("sim.materials[name]", MaterialView),
        ("sim.model", Model),
    )

    def __init__(
        self, scene: Scene | SceneSpec | Model | str | Path, device: str = "auto", source: Scene | None = None
    ):
        """See the class.

        Args:
            source: scene of a compiled model that is passed as `scene`; without it the simulation has no sensors of the scene.
        """
        given, model = (source, free_start(scene)) if isinstance(scene, Model) else _started(scene)
        if not isinstance(scene, Model):
            for note in model.shown_notes:
                _log.warning("%s: %s", model.name, note)
        self._open(given, model, device, State(q=model.bodies.q.copy(), qd=model.bodies.qd.copy()))

    def _open(self, scene: Scene | None, model: Model, device: str, state: State) -> Simulation:
        """Initialise the simulation in a state, and return it; `scene` defines the sensors, None for no scene."""
        self.scene, self.compiled, self.model = scene, model, _own(model)
        self._stepping = threading.Lock()  # one thread steps at a time
        self._reset_checkpoint = None  # target of `reset`; None for the start of the scene
        self.backend = backends.create(self.model, device)
        self.device = self.backend.device.name
        self.stepper = Stepper(self.model, self.backend, state)
        parts = self.model, self.backend, self.stepper
        self.state = DeviceState(*parts)
        self._joint_coordinates = Coordinates(*parts)
        self.sensors = {}
        self.control = JointControl(*parts, self._joint_coordinates)
        self.bodies = ByName("body", self.model.bodies.names, partial(BodyView, self))
        self.worlds = Worlds(self)
        self.joints = ByName("joint", self.model.joints.names, partial(JointView, self))
        self.couplings = ByName("coupling", [one.name for one in self.model.couplings], partial(CouplingView, self))
        self.materials = ByName("material", self.model.materials.names, partial(MaterialView, self))
        changes = self.model, self.stepper, self.control, self._joint_coordinates
        self._switches = Switches(*changes)
        self._springs = Springs(*changes, self._switches)
        self.loads, self._moves = Loads(self.model, self.stepper, self.bodies), Moves(self.model, self.stepper)
        self.stepper.loads, self.stepper.loads_are_constant = self.loads.of_substep, lambda: self.loads.loads_are_constant
        self._changes_of_scene = self._changes()
        for one in self.scene.spec.sensor if self.scene is not None else []:
            try:
                self.add_sensor(*one.definition, one.every)
            except ValueError as error:
                raise SceneError.of(str(error), f"sensor.{one.name}") from None
        return self

    def __dir__(self) -> list[str]:
        """Names for users' programs."""
        return [name for name in super().__dir__() if name not in INTERNAL]

    def __repr__(self) -> str:
        m = self.model
        counts = f"{len(m.bodies)} bodies, {len(m.joints)} joints"
        return f"<simulation of '{m.name}' on {self.device}: {counts}, t = {self.time:.6g} s, frame {self.frame}>"

    @property
    def linear_solver(self) -> dict:
        """Linear solver of the last solve with the reason of its choice and its size; empty before the first solve."""
        return self.backend.linear.describe()

    def step(self) -> StepReport:
        """Advance by one frame.

        Raises:
            StepFailure: the frame did not converge with the shortest substeps; the state is the last converged one.
            OutOfMemory: the frame is complete, but its results could not be read.
        """
        with self._stepping, memory_watched(self.device):
            try:
                return self._step()
            except StepFailure as failure:
                failure.args = (explained(self, failure),)
                raise

    def _step(self) -> StepReport:
        self._switches.before_step()
        self.control.before_step()
        progress, substeps, wall = self.stepper.advance()
        self._joint_coordinates.after_step()
        if broken := self.control.after_step():
            self._switches.part(broken)
        names = tuple(self.model.joints[k].name for k in broken)
        report = StepReport.of(self.stepper, progress, substeps, names, wall)
        self.loads.after_step()
        for one in self.sensors.values():
            one.after_step()
        return report

    def pair(self, first: str, second: str) -> PairView:
        """Return a pair of bodies; ``sim.pair("crate", "shelf").enabled = False`` disables contact between them.

        Raises:
            UnknownName: a body is unknown.
        """
        return PairView(self.model, self._switches, self.bodies[first].index, self.bodies[second].index)

    def reduced(self) -> Reduced:
        """Return the mechanism in joint coordinates in the current state: mass matrix, Jacobians, dynamics, linearised step."""
        from abd.api.reduced import Reduced

        return Reduced(self)

    def add_sensor(
        self, name: str, what: str | Callable[[Simulation], Any], of: Observed = None, every: int = 1
    ) -> Sensor:
        """Record a quantity at every `every`-th step from now on; `abd.api.sensors` lists the quantities.

        Raises:
            ValueError: the name is in use, or the quantity or object is unknown.
        """
        if name in self.sensors:
            raise ValueError(f"sensor '{name}' already exists")
        self.sensors[name] = sensor(self, name, what, of, every)
        return self.sensors[name]

    def recompiled(self, scene: Scene | None = None) -> Simulation:
        """Return a simulation of a changed scene that continues from the current state.

        Bodies, joints and materials of the same name keep their state and history; time and work continue. New bodies start
        in their pose of the scene (`abd.api.recompiled`). Sensors must be added again. This simulation does not change.

        Args:
            scene: the changed scene; by default the scene of this simulation, including later changes to it.

        Raises:
            SceneError: the scene has problems, or bodies overlap in the resulting state.
        """
        scene = self.scene if scene is None else scene
        if scene is None:
            raise ValueError("a simulation created from a compiled model cannot be recompiled without a scene; pass one")
        model, start = start_of(self, scene)
        out = type(self).__new__(type(self))._open(scene, model, self.device, start)
        transfer(self, out)
        out._reset_checkpoint = out.checkpoint()
        return out

    @classmethod
    def _resumed(cls, scene: Scene | None, model: Model, device: str, saved: dict, reset_checkpoint: dict | None) -> Simulation:
        """Return a simulation that continues from a checkpoint; `reset` returns to `reset_checkpoint`, None for the start."""
        out = cls.__new__(cls)._open(scene, model, device, without_contacts(saved["q"], saved["qd"]))
        out.restore(saved)
        out._reset_checkpoint = reset_checkpoint
        return out

    def __deepcopy__(self, memo) -> Simulation:
        """Return a copy in the same state on the same device, without sensors and function loads."""
        resume, arguments = self.__reduce__()
        return resume(*arguments)

    def __reduce__(self):
        """Pickle the compiled scene, the name of the device and a checkpoint, as for a deep copy."""
        return self._resumed, (self.scene, self.compiled, self.device, self.checkpoint(), self._reset_checkpoint)


def run(
    scene: Scene | SceneSpec | Model | str | Path,
    duration: float | None = None,
    steps: int | None = None,
    device: str = "auto",
    record: str | Path | None = None,
    progress: bool = False,
    on_step: Callable[[StepReport], bool | None] | None = None,
    overwrite: bool = False,
    resume: bool = False,
) -> Simulation:
    """Create a simulation and run it, as `abd run` does; see `Simulation` and `Simulation.run` for the arguments.

    Returns:
        the simulation after its last step.
    """
    simulation = Simulation(scene, device)
    simulation.run(duration, steps, record, progress, on_step, overwrite, resume)
    return simulation


def _started(scene: Scene | SceneSpec | str | Path) -> tuple[Scene, Model]:
    """Return the scene, and its compiled model with an intersection-free initial state."""
    from abd.scene.scene import Scene, load

    if isinstance(scene, str | Path):
        scene = load(scene)
    if not isinstance(scene, Scene):
        scene = Scene.from_spec(scene)
    return scene, scene.started()


def _own(model: Model) -> Model:
    """Return the model with copies of joints, loads, friction and gravity.

    The arrays are read-only; methods of the simulation write to their bases.
    """
    bodies = replace(model.bodies, force=_read_only(model.bodies.force), torque=_read_only(model.bodies.torque))
    settings = replace(model.settings, gravity=_read_only(model.settings.gravity))
    materials = replace(model.materials, mu=_read_only(model.materials.mu))
    joints = JointList.of(model.joints).copy()
    own_parts = {"joints": joints, "couplings": list(model.couplings), "motions": dict(model.motions)}
    return replace(model, bodies=bodies, settings=settings, materials=materials, **own_parts)


def _read_only(values: np.ndarray) -> np.ndarray:
    """Return a read-only view of a copy; the copy is its base."""
    view = np.array(values, dtype=float).view()
    view.flags.writeable = False
    return view
