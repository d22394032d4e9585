"""The worlds of a simulation: each has a time step and a time of its own.

A frame is one step of every world: ``sim.worlds.dt = [0.01, 0.005, 0.01]`` lets the second of three go half as far in each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from abd.api.simulation import Simulation


class Worlds:
    """The w worlds, in the order of their numbers; one where the scene says nothing of worlds."""

    def __init__(self, simulation: Simulation):
        self._simulation = simulation

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
        return worlds.of_each(worlds.lengths)

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
        """(w,) time of each world [s], a copy: since its start, or since `Simulation.reset` took it back there."""
        stepper = self._simulation.stepper
        return stepper.worlds.of_each(stepper.time)
