"""Trial path of the bodies: its start, its displacements, and the trial pose on it."""

from __future__ import annotations

import warp as wp

from abd.backends.body_data import body_boxes, surface_boxes
from abd.backends.device.device import Device
from abd.backends.device.upload import allocate_struct
from abd.backends.islands import Islands
from abd.backends.warp.iterate import Iterate
from abd.model import Model
from cuda_kernels.bodies import affine, paths
from cuda_kernels.bodies.affine import Path
from cuda_kernels.bodies.integrators import Lead


class TrialPath:
    """Trial paths of all bodies, starting from the iterate.

    Attributes:
        path: arcs of the bodies; lower, upper: bounding boxes of the bodies; surface_box: bounding boxes of their surfaces.
        lead: predicted motion of the step; moving: (n,) start code of every body (`cuda_kernels.shared.step`).
    """

    def __init__(self, model: Model, device: Device, islands: Islands, at: Iterate):
        self.device, self.islands, self.at, self.n = device, islands, at, len(model.bodies)
        self.lower, self.upper = (device.upload(side, wp.vec3d) for side in body_boxes(model))
        self.surface_box = tuple(device.upload(side, wp.vec3d) for side in surface_boxes(model))
        self.path, self.lead = allocate_struct(Path, self.n, device), allocate_struct(Lead, self.n, device)
        self.moving = device.zeros(self.n, wp.int32)

    def launch_start(self) -> None:
        """Set the path from q_n along the predicted motion, for the start codes in `moving`; launches only."""
        at, box = self.at, (self.lower, self.upper)
        self.device.launch(
            paths.start_paths, self.n, at.body, at.step, *box, at.current, self.lead, self.moving, self.path
        )

    def aim(self, direction: wp.array, moved: wp.array, limit: wp.array) -> None:
        """Set the path along a direction (n, 12), without motion of bodies that are done; launches only.

        Computes the largest displacement of every surface in a full step, `moved` (n,) [m], and the largest alpha by the strain
        limit, `limit` (n,)."""
        at, boxes = self.at, (self.lower, self.upper, *self.surface_box)
        outputs = direction, self.path, moved, limit
        self.device.launch(paths.direction_paths, self.n, at.body, *boxes, at.current, self.islands.done, *outputs)

    def displacements(self, alpha: wp.array, out: wp.array) -> wp.array:
        """Compute the largest displacement [m] of every body up to alpha (islands,), `out` (n,)."""
        self.device.launch(paths.displacements, self.n, self.path, self.islands.island, alpha, out)
        return out

    def advance(self, alpha: wp.array) -> None:
        """Set the trial pose to the path at alpha (islands,)."""
        islands = self.islands
        self.device.launch(affine.advance, self.n, self.path, islands.island, islands.done, alpha, self.at.trial)
