"""`Worlds`: time steps, times and arrays of all worlds of a simulation. `DeviceState`: its state in device memory.

A frame is one step of every world. With ``sim.worlds.dt = [0.01, 0.005, 0.01]``, the second of three worlds advances half as
far per frame. The arrays require replicated worlds (`Scene.replicate`): w worlds of b bodies and c joint coordinates, in the
order of the replicated scene. They are copies; docstrings name the properties that can be set.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from abd.api.state_changes import StateChanges, selected_worlds
from abd.api.views import finite
from abd.backends.answers import OnHost
from abd.backends.device.exchange import fetched
from abd.backends.protocol import Backend
from abd.energies import spin
from abd.model import Model
from abd.rotations import polar, quaternions
from abd.scene.schema.attributes import KnownAttributes
from abd.step.step import Stepper

if TYPE_CHECKING:
    from abd.backends.device.read_back import PendingCopy, ReadBack


class Worlds(KnownAttributes):
    """The w worlds in the order of their numbers; one world if the scene does not define worlds."""

    __slots__ = ("__dict__", "_simulation")

    def __init__(self, simulation: StateChanges):
        self._simulation = simulation

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        return f"<{len(self)} worlds at {self.time.min():.6g} to {self.time.max():.6g} s>"

    @property
    def numbers(self) -> np.ndarray:
        """(w,) numbers of the worlds, as in the bodies' `world`."""
        return self._simulation.stepper.worlds.numbers.copy()

    @property
    def dt(self) -> np.ndarray:
        """(w,) time steps [s], a copy; can be set between steps, to one number or (w,).

        Kappa and tolerances that the compiler derived from the time step do not change. `Simulation.reset` restores the time
        steps of the scene.

        Raises:
            ValueError: the shape is wrong, or a number is not positive.
        """
        worlds = self._simulation.stepper.worlds
        return worlds.world_values(worlds.lengths)

    @dt.setter
    def dt(self, dt: ArrayLike) -> None:
        given, count = np.asarray(dt, dtype=float), len(self)
        if given.shape not in ((), (count,)):
            raise ValueError(f"worlds.dt must be one number or {count} numbers [s], not of shape {given.shape}")
        if not (np.isfinite(given) & (given > 0.0)).all():
            raise ValueError(f"worlds.dt must be positive and finite [s], not {dt!r}")
        worlds = self._simulation.stepper.worlds
        worlds.lengths = worlds.of_bodies(np.broadcast_to(given, count))

    @property
    def time(self) -> np.ndarray:
        """(w,) time of each world since its start or last `reset` [s], a copy."""
        stepper = self._simulation.stepper
        return stepper.worlds.world_values(stepper.time)

    # names ----------------------------------------------------------------------------------------------------------

    @property
    def body_names(self) -> tuple[str, ...]:
        """(b,) names of the bodies of the first world."""
        names = self._simulation.model.bodies.names
        return tuple(names[k] for k in self._bodies[0])

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """(c,) names ``joint.coordinate`` of the coordinates of the first world."""
        reader, joints = self._simulation.reader, self._simulation.model.joints
        return tuple(f"{joints[int(reader.table.joint[k])].name}.{reader.names[k]}" for k in self._coordinates[0])

    # arrays ---------------------------------------------------------------------------------------------------------

    @property
    def q(self) -> np.ndarray:
        """(w, b, 12) states: centre of mass [m] and affine map, as in `Simulation.state`."""
        return self._simulation.stepper.q[self._bodies]

    @property
    def qd(self) -> np.ndarray:
        """(w, b, 12) time derivatives of `q`."""
        return self._simulation.stepper.qd[self._bodies]

    @property
    def poses(self) -> np.ndarray:
        """(w, b, 7) positions of the mesh frames [m] and unit quaternions (w, x, y, z), w >= 0."""
        T = self._simulation.model.user_transform(self._simulation.stepper.q)
        return np.concatenate([T[:, :3, 3], quaternions(polar(T[:, :3, :3]))], axis=1)[self._bodies]

    @property
    def velocities(self) -> np.ndarray:
        """(w, b, 6) velocities of the mesh frames' origins [m/s] and angular velocities in world axes [rad/s]."""
        model, stepper = self._simulation.model, self._simulation.stepper
        linear = model.user_velocity(stepper.qd)[:, :3, 3]
        return np.concatenate([linear, spin(stepper.q, stepper.qd)], axis=1)[self._bodies]

    @property
    def contact_forces(self) -> np.ndarray:
        """(w, b, 3) sums of all contact forces on the bodies [N], including friction."""
        return self._simulation.contacts().on_bodies[:, :3][self._bodies]

    @property
    def coordinates(self) -> np.ndarray:
        """(w, c) coordinates of all joints [m or rad]; angles are counted over any number of turns."""
        return self._simulation.coordinates[self._coordinates]

    @property
    def rates(self) -> np.ndarray:
        """(w, c) rates of the coordinates [m/s or rad/s]."""
        return self._simulation.joint_readings().rates[self._coordinates]

    @property
    def efforts(self) -> np.ndarray:
        """(w, c) constant efforts on the coordinates [N or N m], in addition to drives (`CoordinateView.apply_force`).

        Can be set from the next step on, to any shape that broadcasts to (w, c), also to an array of another library on the host
        or on the device of the simulation.

        Raises:
            ValueError: the shape is wrong, or a number is not finite.
        """
        return self._simulation.control.efforts.constant[self._coordinates]

    @efforts.setter
    def efforts(self, efforts: ArrayLike) -> None:
        places, efforts = self._coordinates, fetched(efforts, "worlds.efforts", self._simulation.device)
        try:
            given = np.broadcast_to(efforts, places.shape)
        except ValueError:
            message = f"worlds.efforts has the shape {np.shape(efforts)}; it must broadcast to {places.shape} [N or N m]"
            raise ValueError(message) from None
        given = finite(given, places.shape, "worlds.efforts [N or N m]")
        all_efforts = self._simulation.control.efforts.constant
        with_row = np.zeros(len(all_efforts), dtype=bool)
        all_efforts[places], with_row[places] = given, True
        self._simulation.control.efforts.set_constant(all_efforts, with_row)

    # resets ---------------------------------------------------------------------------------------------------------

    def reset(self, worlds: int | Iterable[int] | None = None, q: ArrayLike | None = None, qd: ArrayLike | None = None) -> None:
        """Return some worlds to their initial state or to a given state; the other worlds continue unchanged.

        Efforts on the coordinates of these worlds end, also those of a number of steps; loads on bodies stay.

        Args:
            worlds: numbers, or a mask (w,) of all worlds; by default all.
            q, qd: (k, b, 12) states of the k worlds and their time derivatives, for instance `q` and `qd` of another simulation
                of the scene; by default the states of the scene.

        Raises:
            ValueError: a world is unknown or given twice, a shape is wrong, or a number is not finite.
            SceneError: bodies overlap in the new state; the simulation is unchanged.
        """
        numbers = selected_worlds(self.numbers if worlds is None else worlds, self.numbers)
        if not len(numbers):
            return
        if len(np.unique(numbers)) < len(numbers):
            raise ValueError(f"worlds to reset must not repeat: {numbers.tolist()}")
        chosen = np.searchsorted(self.numbers, numbers)
        given = [None if values is None else self._rows(name, values, chosen) for name, values in (("q", q), ("qd", qd))]
        self._simulation._reset_worlds(numbers, *given)
        self._simulation.control.efforts.remove(self._coordinates[chosen])

    # parts ----------------------------------------------------------------------------------------------------------

    def _rows(self, name: str, values: ArrayLike, chosen: np.ndarray) -> np.ndarray:
        """Scatter values (k, b, 12) of the k chosen worlds to the rows of their bodies (n, 12)."""
        places, out = self._bodies[chosen], np.zeros((len(self._simulation.model.bodies), 12))
        out[places] = finite(fetched(values, name, self._simulation.device), (*places.shape, 12), name)
        return out

    @cached_property
    def _bodies(self) -> np.ndarray:
        """(w, b) indices of the bodies."""
        return self._by_world(self._simulation.model.bodies.world, "bodies")

    @cached_property
    def _coordinates(self) -> np.ndarray:
        """(w, c) indices of the coordinates, without those of springs, which follow them."""
        table, world = self._simulation.reader.table, self._simulation.model.bodies.world
        ends = np.where(table.child >= 0, table.child, table.parent)[table.joint < self._simulation._springs.given]
        return self._by_world(world[ends], "joint coordinates")

    def _by_world(self, world: np.ndarray, what: str) -> np.ndarray:
        """Group items by their worlds (m,) to indices (w, k); raise `ValueError` if the worlds differ in number of items."""
        counts = np.bincount(np.searchsorted(self.numbers, world), minlength=len(self))
        if (counts != counts[0]).any():
            first, other = self.numbers[0], self.numbers[np.argmax(counts != counts[0])]
            raise ValueError(
                f"worlds differ: world {first} has {counts[0]} {what}, world {other} has {counts[counts != counts[0]][0]}; "
                "arrays of all worlds require a replicated scene (Scene.replicate)"
            )
        return np.argsort(world, kind="stable").reshape(len(self), -1)


class DeviceState:
    """Arrays of the current state on the device of the simulation: Warp arrays, or NumPy arrays on `numpy`.

    Zero-copy exchange: `numpy.from_dlpack`, `cupy.from_dlpack`, `torch.from_dlpack`, `jax.dlpack.from_dlpack`,
    `__cuda_array_interface__` or `__array_interface__`. An array is valid until the next step, restart or change of the
    state, which may overwrite its memory: read the property again, or copy the array. Do not write to the arrays; use
    `Simulation.set_velocities` and `Simulation.move_to`.
    """

    def __init__(self, model: Model, backend: Backend, stepper: Stepper):
        self._model, self._backend, self._stepper = model, backend, stepper
        self._read_back: ReadBack | None = None

    @property
    def q(self):
        """(n, 12): centre of mass [m] and the three rows of the affine map, in the bodies' internal frames."""
        return self._backend.states.device_positions()

    @property
    def qd(self):
        """(n, 12): time derivative of `q` [m/s, 1/s]."""
        return self._backend.states.velocity

    def to_host(self) -> PendingCopy | OnHost:
        """Start a copy of `q` and `qd` to the host; `wait()` of the result returns independent arrays.

        On CUDA the copy overlaps with the next step; two copies may be in flight.
        """
        if not self._backend.device.name.startswith("cuda"):
            return OnHost(self._stepper.q, self._stepper.qd)
        if self._read_back is None:
            from abd.backends.device.read_back import ReadBack

            self._read_back = ReadBack(self._backend.device)
        return self._read_back.begin(self.q, self.qd)

    @property
    def body_frame(self) -> np.ndarray:
        """(n, 4, 4) constant maps from the mesh frames to the internal frames, on the host."""
        return self._model.bodies.body_frame
