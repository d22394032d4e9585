"""`RunningSimulation`: interface of a simulation for its views and for the modules that implement it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from abd.api.contact_view import Contacts
from abd.api.coordinates import Coordinates
from abd.api.joint_control import JointControl
from abd.api.loads import Loads, Moves
from abd.api.springs import Springs
from abd.api.step_report import StepReport
from abd.api.switches import Switches
from abd.api.views import ByName
from abd.backends.protocol import Backend
from abd.joints.closure.assembly import Assembly
from abd.joints.coordinates.readings import JointReader, Readings
from abd.model import Model
from abd.step.step import Stepper

if TYPE_CHECKING:
    from abd.scene.scene import Scene


class RunningSimulation(Protocol):
    """A running scene on a device; `abd.api.simulation.Simulation` implements and documents it."""

    scene: Scene | None
    compiled: Model
    model: Model
    device: str
    backend: Backend
    stepper: Stepper
    control: JointControl
    loads: Loads
    bodies: ByName
    joints: ByName
    materials: ByName
    gravity: np.ndarray
    _joint_coordinates: Coordinates
    _switches: Switches
    _springs: Springs
    _moves: Moves
    _changes_of_scene: dict[str, Any]
    _reset_checkpoint: dict[str, Any] | None

    @property
    def time(self) -> float: ...
    @property
    def frame(self) -> int: ...
    @property
    def coordinates(self) -> np.ndarray: ...
    @property
    def reader(self) -> JointReader: ...
    def step(self) -> StepReport: ...
    def joint_readings(self) -> Readings: ...
    def contacts(self, body: str | None = None, other: str | None = None) -> Contacts: ...
    def set_friction(self, mu: np.ndarray) -> None: ...
    def set_coordinates(self, values: Mapping[tuple[int | str, int | str], float]) -> Assembly: ...
    def move_to(self, q: np.ndarray, coordinates: np.ndarray | None = None) -> None: ...
    def set_velocities(self, qd: np.ndarray) -> None: ...
    def checkpoint(self) -> dict[str, Any]: ...
    def restore(self, saved: dict[str, Any]) -> None: ...
