"""Paths along arcs on a device: the trial path, and the check of the swept paths of a step."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.answers import NO_PAIRS
from abd.backends.body_data import body_boxes, surface_boxes
from abd.backends.device.device import Device
from abd.backends.device.upload import allocate_struct
from abd.backends.islands import Islands
from abd.backends.warp.iterate import Iterate
from abd.model import Model
from cuda_kernels.bodies import affine, paths, swept_paths
from cuda_kernels.bodies.affine import Path
from cuda_kernels.bodies.integrators import Lead
from cuda_kernels.parallel import sums
from cuda_kernels.parallel.islands import to_bodies


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


class SweptPaths:
    """Implementation of `abd.backends.protocol.SweptPaths`.

    Attributes:
        length: (n,) step length [s]; stationary: (n,) 1 for bodies that stay at the iterate.
        largest: (1,) largest motion along the paths [m]; covered: (1,) whether the list is complete for them.
        proven: (1,) smallest proven collision-free fraction.
    """

    def __init__(self, backend):
        self.backend, self.device, self.islands = backend, backend.device, backend.islands
        self.contacts, self.trial_path, self.scratch = backend.contacts, backend.trial_path, backend.scratch
        self.length = self.device.zeros(backend.n, wp.float64)
        self.stationary = self.device.zeros(max(backend.n, 1), wp.int32)
        self.largest, self.proven = (self.device.zeros(1, wp.float64) for _ in range(2))
        self.covered = self.device.zeros(1, wp.int32)

    def unproven(self, h: float | np.ndarray, converged: wp.array | None = None) -> np.ndarray:
        """See `abd.backends.protocol.SweptPaths.unproven`.

        The path is traversed backward from the iterate, whose gaps are known. If the current candidate list does not cover the
        path, it is rebuilt, with a margin if iterations continue.
        """
        islands, path = self.islands, self.trial_path.path
        contacts, candidates = self.contacts.arrays("current"), self.contacts.candidates
        self.backend.potential.evaluate_contacts()
        self.device.assign(self.length, h)
        key = 0 if converged is None else converged.ptr
        self.backend.graphs.run(("swept paths", key), lambda: self._launch_back(converged))
        (motion,), (covered,) = self.device.read_all((self.largest, None), (self.covered, None))
        if not np.isfinite(motion):
            is_strained = np.flatnonzero(~np.isfinite(self.device.read(self.scratch.a)))
            return np.stack([is_strained, is_strained], axis=1)
        if not covered:
            renew = candidates.renew_last if converged is None else candidates.renew
            renew(path, motion, islands.island, islands.ones)
            self.backend.touch.carry(contacts)
        has_stationary = converged is not None
        if candidates.count == 0 or self._fraction(True, has_stationary) == 1.0 or self._fraction(False, has_stationary) == 1.0:
            return NO_PAIRS
        pairs, smallest = self.contacts.smallest(self.contacts.fractions, 1.0)
        return pairs[smallest < 1.0].astype(int)

    def _fraction(self, back: bool, has_stationary: bool) -> float:
        """Return the proven fraction of the paths, traversed backward or forward."""
        self.backend.graphs.run(("fractions", back, has_stationary), lambda: self._launch_fractions(back, has_stationary))
        return float(self.device.read(self.proven)[0])

    def _launch_back(self, converged: wp.array | None) -> None:
        """Set the backward paths and compute their largest motion and whether the list covers them."""
        islands, path, each = self.islands, self.trial_path.path, self.islands.each
        islands.clear_done()
        if converged is not None:
            self.device.launch(to_bodies[wp.int32], self.trial_path.n, islands.island, converged, self.stationary)
        self._set_paths(True, converged is not None)
        islands.reduce(self.scratch.a, sums.MAX, each)
        islands.fold(each, sums.MAX, self.largest)
        self.contacts.candidates.test_cover(path, each, islands.island, islands.ones, self.covered)

    def _launch_fractions(self, back: bool, has_stationary: bool) -> None:
        """Compute the proven fractions of the candidates and their minimum."""
        a, islands = self.scratch.a, self.islands
        if not back:
            self._set_paths(False, has_stationary)
        self.contacts.proven_fractions(self.trial_path.path, back, a)
        islands.fold(islands.reduce(a, sums.MIN, islands.each), sums.MIN, self.proven)

    def _set_paths(self, back: bool, has_stationary: bool) -> None:
        """Set the paths backward or forward; with `has_stationary`, stationary bodies stay at the iterate."""
        self.launch_swept_paths(self.length, back, self.scratch.a)
        if has_stationary:
            b, path = self.backend, self.trial_path.path
            stationary = self.stationary, b.inactive.held, b.at.current, path, self.scratch.a
            self.device.launch(swept_paths.set_stationary, b.n, *stationary)

    def launch_swept_paths(self, h: wp.array, back: bool, out: wp.array) -> None:
        """Set the paths for step lengths h (n,) [s] and the displacement of every body, `out` (n,) [m]; launches only."""
        states, trial_path = self.backend.states, self.trial_path
        between = states.now, self.backend.at.current, states.velocity
        self.device.launch(
            swept_paths.swept_path_boxes,
            trial_path.n, trial_path.lower, trial_path.upper, *between, h, int(back), trial_path.path, out,
        )  # fmt: skip
