"""`SimulationBase`: the parts of a simulation, and its checkpoints."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from abd.api.contact_view import Contacts
from abd.api.coordinates import Coordinates
from abd.api.joint_control import JointControl
from abd.api.loads import Body, Loads, Moves
from abd.api.springs import Springs
from abd.api.step_report import StepReport
from abd.api.switches import Switches
from abd.api.views import ByName, Vector, finite
from abd.backends.protocol import Backend
from abd.by_bodies import PerBody
from abd.energies import InitialContacts, Work
from abd.io.checkpoint import CheckpointError
from abd.joints.coordinates.readings import JointReader, Readings
from abd.model import Model
from abd.scene.schema.attributes import KnownAttributes
from abd.scene.schema.values import LARGEST
from abd.state import BodyHistory, State, read_tables, saved_tables
from abd.step.step import Stepper
from abd.tables import arrays_of

if TYPE_CHECKING:
    from abd.scene.scene import Scene

STATES = "q", "qd", "previous_q", "previous_qd"
"""States in a checkpoint, (n, 12) each."""


class SimulationBase(KnownAttributes):
    """The parts of a simulation, with its changes at run time and its checkpoints; its views use this class."""

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
    _joint_coordinates: Coordinates
    _switches: Switches
    _springs: Springs
    _moves: Moves
    _changes_of_scene: dict[str, Any]
    _reset_checkpoint: dict[str, Any] | None
    __slots__ = tuple(__annotations__)

    @abstractmethod
    def step(self) -> StepReport:
        """Advance by one frame (`Simulation.step`)."""

    # state ------------------------------------------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Time [s]; if the time steps of worlds differ, the longest one counts (`worlds.time` has all times)."""
        return self.stepper.worlds.clock

    @property
    def frame(self) -> int:
        """Number of completed frames."""
        return self.stepper.frame

    @property
    def stopped_worlds(self) -> list[int]:
        """Worlds whose step failed while others continued. Their bodies rest in the state before that step until `reset`.
        `StepReport.stopped` has the reasons."""
        return self.stepper.stopped_worlds

    @property
    def initial_contacts(self) -> InitialContacts:
        """Contacts of the initial state."""
        return self.stepper.initial_contacts

    def host_state(self) -> State:
        """Independent host copy of the state."""
        return self.stepper.state()

    @property
    def reader(self) -> JointReader:
        """Reader of the current joints."""
        return self._joint_coordinates.reader

    @property
    def coordinates(self) -> np.ndarray:
        """(c,) coordinates of all joints; angles are counted over any number of turns."""
        return self._joint_coordinates.values

    @coordinates.setter
    def coordinates(self, coordinates: object) -> None:
        raise AttributeError("set coordinates by set_coordinates({(joint, coordinate): value}), which moves the bodies")

    def joint_readings(self) -> Readings:
        """Return coordinates, rates, residuals, wrenches and energies of all joints in the current state, as arrays."""
        return self._joint_coordinates.readings()

    def contacts(self, body: str | Body | None = None, other: str | Body | None = None) -> Contacts:
        """Return contact points and their forces in the current state; see `abd.api.contact_view`.

        Args:
            body: select contacts of this body, a name or a view; other: select contacts between both.

        Raises:
            UnknownName: a body is unknown.
        """
        contacts = self._joint_coordinates.contacts()
        views = [self.bodies[getattr(one, "name", one)] for one in (body, other) if one is not None]
        return contacts.between(*(view.index for view in views)) if views else contacts

    @property
    def gravity(self) -> np.ndarray:
        """(3,) gravity [m/s^2], a copy; can be set between steps. The change of potential energy does not count as work."""
        return self.model.settings.gravity.copy()

    @gravity.setter
    def gravity(self, gravity: Vector) -> None:
        given = finite(gravity, (3,), "gravity [m/s^2]")
        self.model.settings.gravity.base[:] = given
        self.backend.loads.set_gravity(given)
        self.stepper.energy = None
        self.stepper.modes.jump(np.ones(len(self.model.bodies), dtype=bool))
        self.stepper.sleep.disturb()

    def set_friction(self, mu: np.ndarray) -> None:
        """Set the coefficients of friction (m, m) between materials from the next step on; see also `materials`.

        Raises:
            ValueError: the table is not symmetric, or has another shape or a number that is negative or not finite.
        """
        given = finite(mu, self.model.materials.mu.shape, "the friction between materials")
        if (given < 0.0).any() or (given != given.T).any():
            raise ValueError(f"the friction between materials must be symmetric and not negative, not {given.tolist()}")
        self.model.materials.mu.base[:] = given
        self.backend.loads.set_friction(self.model.materials.mu)
        self.stepper.sleep.disturb()

    # checkpoints --------------------------------------------------------------------------------------------------------

    def checkpoint(self) -> dict[str, Any]:
        """Return arrays and numbers from which a simulation continues bitwise."""
        state, worlds = self.stepper.state(), self.stepper.worlds
        of_worlds = {"dt": worlds.lengths, "time": state.time, "previous_h": state.previous_h}
        return {
            **{name: getattr(state, name) for name in STATES},
            "time": worlds.clock,
            "step": state.step,
            "worlds": {name: worlds.world_values(one) for name, one in of_worlds.items()} | {"number": worlds.numbers},
            "tables": saved_tables(state),
            "coordinates": self.coordinates.copy(),
            **self._changes(),
            "work": asdict(self.stepper.work),
            "energy": self.stepper.energy,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from a checkpoint. It does not contain sensors and function loads; the present ones stay.

        Raises:
            SceneError: bodies overlap there; the state is unchanged. Touching bodies are separated, with a log message.
            CheckpointError: the checkpoint does not match this scene, or contains numbers that are not finite.
        """
        try:
            self._check(saved)
            self._restore(saved)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise CheckpointError(
                f"the checkpoint does not fit this scene, was written by another release, or is damaged ({reason}); "
                "run the scene from its start"
            ) from error

    def _changes(self) -> dict[str, Any]:
        """Return all changes at run time, by names where they belong to single bodies and joints."""
        return {
            "joints": self.control.saved() | {"springs": self._springs.saved()},
            "loads": self.loads.saved(),
            "force": self.loads.force.copy(),
            "torque": self.loads.torque.copy(),
            "moves": self._moves.saved(),
            "switches": self._switches.saved(),
            "gravity": self.gravity,
            "friction": self.model.materials.mu.copy(),
        }

    def _restore_changes(self, saved: dict[str, Any]) -> None:
        """Restore what `_changes` returned, except the switches, before the state."""
        self._moves.restore(saved["moves"])
        self._restore_joints(saved["joints"])
        self.gravity = saved["gravity"]
        if not np.array_equal(saved["friction"], self.model.materials.mu):
            self.set_friction(saved["friction"])
        self.loads.restore(saved["loads"], saved["force"], saved["torque"])

    def _restore_joints(self, saved: dict[str, Any]) -> None:
        """Restore the joints and springs of a checkpoint."""
        self.control.restore(saved, self._springs.restore(saved["springs"]))

    def _check(self, saved: dict[str, Any]) -> None:
        """Raise `ValueError` if shapes do not match the scene, or numbers are not finite or out of range."""
        n = len(self.model.bodies)
        shapes = dict.fromkeys(STATES, (n, 12)) | dict.fromkeys(("force", "torque"), (n, 3))
        # the checkpoint defines the number of coordinates, since its joints are restored later
        shapes |= {"coordinates": np.shape(saved["coordinates"])[:1], "gravity": (3,), "friction": self.model.materials.mu.shape}
        shapes |= dict.fromkeys(("time", "step"), ())
        for name, shape in shapes.items():
            finite(saved[name], shape, name)
        if saved["time"] < 0.0 or saved["step"] < 0:
            raise ValueError(f"time {saved['time']} or step {saved['step']} is negative")
        for table, columns in saved["tables"].items():
            for name, value in columns.items():
                if np.asarray(value).dtype.kind == "f" and not (np.abs(value) <= LARGEST).all():
                    raise ValueError(f"{name} of {table} has numbers that are not finite, or beyond {LARGEST:g}")
        for name, value in arrays_of(BodyHistory.none(n)).items():
            if (found := np.shape(saved["tables"]["bodies"][name])) != value.shape:
                raise ValueError(f"{name} of bodies has the shape {found}, not {value.shape}")

    def _restore(self, saved: dict[str, Any]) -> None:
        arrays, stepper = {name: np.asarray(saved[name]) for name in STATES}, self.stepper
        energy, times = None if saved["energy"] is None else float(saved["energy"]), self._times(saved)
        switches = self._switches.read(saved["switches"])
        q = self._switches.separate(arrays["q"], switches)
        self._switches.assign(switches)
        if q is not arrays["q"]:
            arrays["previous_q"] = arrays["previous_q"] + (q - arrays["q"])
            arrays["q"], energy = q, None
        self._restore_changes(saved)
        stepper.worlds.clock, stepper.worlds.lengths = float(saved["time"]), times.pop("dt")
        stepper.restore(State(step=int(saved["step"]), **read_tables(saved["tables"]), **arrays, **times))
        self._joint_coordinates.values = np.asarray(saved["coordinates"]).copy()
        stepper.work = Work(**{name: float(work) for name, work in saved["work"].items()})
        stepper.energy = energy

    def _times(self, saved: dict[str, Any]) -> dict[str, PerBody]:
        """Return time steps, times and previous substep lengths [s] by body; new worlds get the scene's step and the saved
        clock."""
        worlds, known = self.stepper.worlds, saved["worlds"]
        out = {"dt": worlds.world_values(worlds.lengths), "time": np.full(len(worlds.numbers), float(saved["time"]))}
        out["previous_h"] = np.full(len(worlds.numbers), float(np.max(known["previous_h"])))
        _, mine, theirs = np.intersect1d(worlds.numbers, known["number"], return_indices=True)
        for name, times in out.items():
            times[mine] = np.asarray(known[name])[theirs]
            if not ((times >= 0.0) & (times <= LARGEST)).all() or (name == "dt" and not times.all()):
                raise ValueError(f"{name} of the worlds must be {'positive' if name == 'dt' else 'not negative'}, not {times} s")
        return {name: worlds.of_bodies(times) for name, times in out.items()}
