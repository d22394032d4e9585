"""The path that bodies take next: how it starts, how far it leads, and where a trial lies on it."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.body_data import body_boxes, surface_boxes
from abd.backends.device.device import Device
from abd.backends.device.upload import new_lead, new_path
from abd.backends.warp.islands import Islands
from abd.backends.warp.iterate import Iterate
from abd.model import Model
from cuda_kernels.bodies import affine, paths


class TrialPath:
    """One path of every body, from the iterate.

    Attributes:
        path: arcs of the bodies; lower, upper: boxes of the bodies, surface_box: those of their surfaces.
        lead: where the motion of a step leads; moving: (n,) how bodies start (`abd.backends.answers`).
    """

    def __init__(self, model: Model, device: Device, islands: Islands, at: Iterate):
        self.device, self.islands, self.at, self.n = device, islands, at, len(model.bodies)
        self.lower, self.upper = (device.upload(side, wp.vec3d) for side in body_boxes(model))
        self.surface_box = tuple(device.upload(side, wp.vec3d) for side in surface_boxes(model))
        self.path, self.lead = new_path(device, self.n), new_lead(device, self.n)
        self.moving = device.zeros(self.n, wp.int32)

    def start(self, moving: np.ndarray) -> None:
        """Set the path from q_n to where the motion leads, for bodies that start so (n,)."""
        self.device.write(self.moving, moving.astype(np.int32))
        self.launch_start()

    def launch_start(self) -> None:
        """The same for how bodies are to start already, by launches only."""
        at, box = self.at, (self.lower, self.upper)
        self.device.launch(
            paths.start_paths, self.n, at.body, at.step, *box, at.current, self.lead, self.moving, self.path
        )

    def displacements(self, alpha: wp.array, out: wp.array) -> wp.array:
        """Largest motions [m] of bodies up to alpha (islands,), into `out` (n,)."""
        box = self.lower, self.upper
        self.device.launch(paths.displacements, self.n, *box, self.path, self.islands.island, alpha, out)
        return out

    def advance(self, alpha: wp.array) -> None:
        """The trial is the path at alpha (islands,)."""
        islands = self.islands
        self.device.launch(affine.advance, self.n, self.path, islands.island, islands.done, alpha, self.at.trial)
