"""The worlds of a simulation: time steps and times, and arrays of all worlds of a replicated scene at once.

A frame is one step of every world: ``sim.worlds.dt = [0.01, 0.005, 0.01]`` lets the second of three go half as far in each. The
arrays need worlds of the same kind (`Scene.replicate`): w worlds of b bodies and c joint coordinates, in the order of the scene
that was replicated. They are copies; what can be set is said.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from abd.api.restarts import reset_worlds, worlds_asked
from abd.rotations import axial, polar, quaternions

if TYPE_CHECKING:
    from abd.api.simulation import Simulation


class Worlds:
    """The w worlds, in the order of their numbers; one where the scene does not mention worlds."""

    def __init__(self, simulation: Simulation):
        self._simulation = simulation
        self._known: tuple[int, np.ndarray] = (-1, np.zeros((0, 0), dtype=int))

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        return f"<{len(self)} worlds at {self.time.min():.6g} to {self.time.max():.6g} s>"

    @property
    def numbers(self) -> np.ndarray:
        """(w,) numbers of the worlds, as bodies have them."""
        return self._simulation.stepper.worlds.numbers.copy()

    @property
    def dt(self) -> np.ndarray:
        """(w,) time steps [s], a copy; can be set between steps, to one number or (w,), and `Simulation.reset` takes them back.

        What follows from time steps when a scene is compiled, kappa and tolerances that it does not give, stays what it was.

        Raises:
            ValueError: not one number, or one of each world, or not positive.
        """
        worlds = self._simulation.stepper.worlds
        return worlds.world_values(worlds.lengths)

    @dt.setter
    def dt(self, dt: ArrayLike) -> None:
        given, count = np.asarray(dt, dtype=float), len(self)
        if given.shape not in ((), (count,)):
            raise ValueError(f"worlds.dt has the shape {given.shape}; one number or {count} are needed [s]")
        if not (np.isfinite(given) & (given > 0.0)).all():
            raise ValueError(f"worlds.dt is {dt!r}; positive numbers are needed [s]")
        worlds = self._simulation.stepper.worlds
        worlds.lengths = worlds.of_bodies(np.broadcast_to(given, count))

    @property
    def time(self) -> np.ndarray:
        """(w,) time of each world [s], a copy: since its start, or since `reset` took it back there."""
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
        return tuple(f"{joints[int(reader.table.joint[k])].name}.{reader.names[k]}" for k in self._places[0])

    # arrays ---------------------------------------------------------------------------------------------------------

    @property
    def q(self) -> np.ndarray:
        """(w, b, 12) states: centre of mass [m] and affine map, as rows of `Simulation.state`."""
        return self._simulation.stepper.q[self._bodies]

    @property
    def qd(self) -> np.ndarray:
        """(w, b, 12) time derivatives of `q`."""
        return self._simulation.stepper.qd[self._bodies]

    @property
    def poses(self) -> np.ndarray:
        """(w, b, 7) positions of the mesh frames [m] and unit quaternions (w, x, y, z), w >= 0."""
        A, p = self._frames(self._simulation.stepper.q)
        return np.concatenate([p, quaternions(polar(A))], axis=1)[self._bodies]

    @property
    def velocities(self) -> np.ndarray:
        """(w, b, 6) velocities of the mesh frames' origins [m/s] and angular velocities in world axes [rad/s]."""
        stepper = self._simulation.stepper
        (A, _), (Ad, v) = self._frames(stepper.q), self._frames(stepper.qd)
        return np.concatenate([v, axial(Ad @ np.linalg.inv(A))], axis=1)[self._bodies]

    @property
    def contact_forces(self) -> np.ndarray:
        """(w, b, 3) sums of all contact forces on the bodies [N], friction included."""
        return self._simulation.contacts().on_bodies[:, :3][self._bodies]

    @property
    def coordinates(self) -> np.ndarray:
        """(w, c) coordinates of all joints [m or rad], angles over any number of turns."""
        return self._simulation.coordinates[self._places]

    @property
    def rates(self) -> np.ndarray:
        """(w, c) their rates [m/s or rad/s]."""
        return self._simulation.joint_readings().rates[self._places]

    @property
    def efforts(self) -> np.ndarray:
        """(w, c) constant efforts on the coordinates [N or N m], in addition to their drives (`CoordinateView.apply_force`).

        Can be set, from the next step on, to anything that broadcasts to (w, c). `reset` sets those of its worlds to zero.

        Raises:
            ValueError: another shape, or numbers that are not finite.
        """
        return self._simulation.control.efforts[self._places]

    @efforts.setter
    def efforts(self, efforts: ArrayLike) -> None:
        places, shape = self._places, np.shape(efforts)
        try:
            given = np.broadcast_to(np.asarray(efforts, dtype=float), places.shape)
        except ValueError as error:
            message = f"worlds.efforts has the shape {shape}; it must broadcast to {places.shape} [N or N m]"
            raise ValueError(message) from error
        if not np.isfinite(given).all():
            raise ValueError("worlds.efforts must be finite [N or N m]")
        every = self._simulation.control.efforts
        pushed = np.zeros(len(every), dtype=bool)
        every[places], pushed[places] = given, (given != 0.0).any(axis=0)
        self._simulation.control.set_efforts(every, pushed)

    # resets ---------------------------------------------------------------------------------------------------------

    def reset(self, worlds: int | Iterable[int] | None = None, q: ArrayLike | None = None, qd: ArrayLike | None = None) -> None:
        """Put some worlds back to their start, or to a given state; all others continue unchanged.

        Args:
            worlds: numbers, or a mask (w,) of all; by default all.
            q, qd: (k, b, 12) states of the k worlds and their time derivatives, such as `q` and `qd` of another simulation of
                the scene; by default those of the scene.

        Raises:
            ValueError: there is no such world, one is given twice, another shape, or numbers that are not finite.
            SceneError: bodies overlap there; nothing was changed.
        """
        numbers = worlds_asked(self.numbers if worlds is None else worlds, self.numbers)
        if not len(numbers):
            return
        if len(np.unique(numbers)) < len(numbers):
            raise ValueError(f"worlds to reset are given twice: {numbers.tolist()}")
        chosen = np.searchsorted(self.numbers, numbers)
        given = [None if values is None else self._rows(name, values, chosen) for name, values in (("q", q), ("qd", qd))]
        reset_worlds(self._simulation, numbers, *given)
        efforts = self._simulation.control.efforts
        efforts[self._places[chosen]] = 0.0
        self._simulation.control.set_efforts(efforts)

    # parts ----------------------------------------------------------------------------------------------------------

    def _rows(self, name: str, values: ArrayLike, chosen: np.ndarray) -> np.ndarray:
        """(n, 12) with the values (k, b, 12) of the k chosen worlds in the rows of their bodies."""
        rows, places = np.asarray(values, dtype=float), self._bodies[chosen]
        if rows.shape != (*places.shape, 12):
            raise ValueError(f"{name} has the shape {rows.shape}; {(*places.shape, 12)} is needed")
        if not np.isfinite(rows).all():
            raise ValueError(f"{name} must be finite")
        out = np.zeros((len(self._simulation.model.bodies), 12))
        out[places] = rows
        return out

    @cached_property
    def _bodies(self) -> np.ndarray:
        """(w, b) indices of the bodies."""
        return self._by_world(self._simulation.model.bodies.world, "bodies")

    @property
    def _places(self) -> np.ndarray:
        """(w, c) indices of the coordinates; joints may be appended while a simulation runs."""
        table = self._simulation.reader.table
        if len(table.child) != self._known[0]:
            world = self._simulation.model.bodies.world
            ends = np.where(table.child >= 0, table.child, table.parent)
            self._known = len(ends), self._by_world(world[ends], "joint coordinates")
        return self._known[1]

    def _by_world(self, world: np.ndarray, what: str) -> np.ndarray:
        """(w, k) indices of items by their worlds (m,), of which every world has equally many."""
        counts = np.bincount(np.searchsorted(self.numbers, world), minlength=len(self))
        if (counts != counts[0]).any():
            first, other = self.numbers[0], self.numbers[np.argmax(counts != counts[0])]
            raise ValueError(
                f"worlds differ: world {first} has {counts[0]} {what}, world {other} has {counts[counts != counts[0]][0]}; "
                "arrays of all worlds need a scene that was replicated (Scene.replicate)"
            )
        return np.argsort(world, kind="stable").reshape(len(self), -1)

    def _frames(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Linear maps (n, 3, 3) and origins (n, 3) of the mesh frames in states (n, 12), or their rates."""
        frame = self._simulation.model.bodies.body_frame
        A = states[:, 3:].reshape(-1, 3, 3)
        return A @ frame[:, :3, :3], states[:, :3] + np.einsum("nij,nj->ni", A, frame[:, :3, 3])
