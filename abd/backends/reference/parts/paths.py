"""Paths along arcs: the trial path, and the check of the swept paths of a step."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.reference.numpy_bodies import maps, positions, state, turning
from abd.contact.path import Path, between, direction_path, standing
from abd.model import Kind
from abd.rotations import axial, rotation_vectors, rotations
from cuda_kernels.shared.step import WITH_FORCES, WITHOUT_FORCES

STRAIN = 0.5
"""Largest strain |alpha S| of a step."""


class TrialPath:
    """Trial path of the bodies, with the methods of `abd.backends.warp.parts.paths.TrialPath`.

    Attributes:
        path: the arcs; moving: (n,) start code of every body (`cuda_kernels.shared.step`).
    """

    def __init__(self, backend):
        self.constants, self.at, self.islands = backend.constants, backend.at, backend.islands
        self.scheme, self.boxes, self.turning = backend.scheme, backend.boxes, turning(backend.constants)
        self.moving, self.path = backend.device.zeros(backend.n, wp.int32), standing(self.at.q)

    def launch_start(self) -> None:
        """Set the path from q_n along the predicted motion (`numpy_motion.Target`) for the start codes in `moving`.

        Prescribed bodies move to their target poses, with strain if contact strained them."""
        data, step, target, moving = self.constants, self.at.step, self.scheme.target, self.moving.numpy()
        p, A = positions(self.at.q), maps(self.at.q)
        inverse = np.linalg.inv(A)
        pushed = ((data.mass > 0.0) & (moving == WITH_FORCES))[:, None]
        push = target.load[:, None] * (step.gravity + data.force / np.where(pushed, data.mass[:, None], 1.0))
        touching = (moving == WITHOUT_FORCES)[:, None]
        push = np.where(pushed, push, np.where(touching, target.push, 0.0))
        fall = data.translation * (target.dp + push)
        turn = target.w + np.where(touching, target.twist, 0.0)
        dynamic = (data.kind == Kind.DYNAMIC)[:, None]
        dp = np.where(dynamic, fall, step.pk - p)
        to_target = step.Ak @ inverse
        w = np.where(dynamic, turn, rotation_vectors(to_target))
        S = np.where(dynamic[:, :, None], 0.0, rotations(-w) @ to_target - np.eye(3))
        is_moving = ((moving != 0) & ~step.held)[:, None]
        moves = np.where(is_moving, dp, 0.0), np.where(is_moving, w, 0.0), np.where(is_moving[:, :, None], S, 0.0)
        self.path = Path(p, A, *moves, self.boxes.radii(self.at.q))

    def aim(self, direction: wp.array, moved: wp.array, limit: wp.array) -> None:
        d, is_finite = direction.numpy(), np.isfinite(direction.numpy()).all(axis=1)
        d[self.islands.done.numpy() != 0] = 0.0
        d = np.where(is_finite[:, None], d, 0.0)
        self.path = direction_path(self.at.q, d, self.turning, self.boxes.radii(self.at.q))
        corners = positions(d)[:, None] + self.boxes.surface_corners @ maps(d).transpose(0, 2, 1)
        moved.numpy()[:] = np.where(is_finite, np.linalg.norm(corners, axis=2).max(axis=1), np.inf)
        limit.numpy()[:] = STRAIN / np.maximum(self.path.strain, STRAIN)

    def displacements(self, alpha: wp.array, out: wp.array) -> wp.array:
        out.numpy()[:] = self._of_bodies(alpha) * (np.linalg.norm(self.path.dp, axis=1) + self.path.affine_speed)
        return out

    def advance(self, alpha: wp.array) -> None:
        at, bodies = self._of_bodies(alpha), np.arange(len(self.at.q))
        self.at.trial = state(self.path.origins(bodies, at), self.path.maps(bodies, at))

    def _of_bodies(self, alpha: wp.array) -> np.ndarray:
        """Return (n,) values of the bodies' islands."""
        return alpha.numpy()[self.islands.host]


class SweptPaths:
    """Implementation of `abd.backends.protocol.SweptPaths`."""

    def __init__(self, backend):
        self.backend = backend

    def unproven(self, h: float | np.ndarray, converged: wp.array | None = None) -> np.ndarray:
        b, states = self.backend, self.backend.states
        begin, turned = states.now, np.reshape(h, (-1, 1)) * axial(maps(states.velocity) @ np.linalg.inv(maps(states.now)))
        if converged is not None:
            # a held body may have reached its target already; its swept path is still checked
            is_stationary = (converged.numpy()[b.islands.host] != 0) & b.inactive.mobile
            begin, turned = (
                np.where(is_stationary[:, None], stationary, one) for stationary, one in ((states.at.q, begin), (0.0, turned))
            )
        return b.contacts.unproven(between(begin, states.at.q, turned, b.boxes.radii(begin)))
