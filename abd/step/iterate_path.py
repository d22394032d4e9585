"""The path through the iterates of a substep, an alternative to the direct arc.

Continuous collision detection keeps each arc between two iterates collision-free, hence the path through all of them. The path
replaces the direct arc from the state to the last iterate if it is close to it. For each pair of bodies with an unproven direct
arc, every iterate must be close to the arc at a common parameter of both: within `TUBE` of the thinner body's thickness. A path
that leaves this tube may have led around the other body.
"""

from __future__ import annotations

import numpy as np

from abd.contact.pair_law import thinnest_extents
from abd.contact.path import between
from abd.energies import spin
from abd.model import Model

TUBE = 0.25
"""Largest distance of an iterate from the direct arc, over the thickness of the thinner body."""
SAMPLES = 65
"""Number of parameters of the arc at which the distance is computed."""


class IteratePath:
    """Poses of the bodies of one model along the iterates of a substep."""

    def __init__(self, model: Model):
        self._thickness = thinnest_extents(model)
        corners = [np.abs(mesh.vertices).max(axis=0) if len(mesh.vertices) else np.zeros(3) for mesh in model.meshes]
        reach = np.array([*(np.linalg.norm(corner) for corner in corners), 0.0])
        self._radius = reach[model.bodies.mesh] + model.bodies.radius
        self.poses: list[np.ndarray] = []

    def begin(self) -> None:
        self.poses = []

    def add(self, q: np.ndarray) -> None:
        """Add an iterate (n, 12)."""
        self.poses.append(q)

    def follows_arc(self, pairs: np.ndarray, q: np.ndarray, qd: np.ndarray, h: float | np.ndarray) -> np.ndarray:
        """Return (k,) bool, pairs of bodies (k, 2) whose iterates are close to the arc from the state to the last iterate.

        q, qd: (n, 12) state; h: length of the substep [s], scalar or (n,)."""
        i, j = pairs.T
        out = i != j
        if not self.poses or not out.any():
            return out & False
        bodies, place = np.unique(pairs, return_inverse=True)
        place = place.reshape(pairs.shape)
        begin, end = q[bodies], self.poses[-1][bodies]
        turned = np.broadcast_to(np.reshape(h, (-1, 1)), (len(q), 1))[bodies] * spin(begin, qd[bodies])
        arc = between(begin, end, turned, np.zeros(len(bodies)))
        on_arc = arc.samples(np.linspace(0.0, 1.0, SAMPLES))
        limit = TUBE * np.minimum(self._thickness[i], self._thickness[j])
        for pose in self.poses[:-1]:
            offset = on_arc - pose[bodies]
            distance = np.linalg.norm(offset[..., :3], axis=2) + self._radius[bodies] * np.linalg.norm(offset[..., 3:], axis=2)
            out &= distance[:, place].max(axis=2).min(axis=0) <= limit
        return out
