"""States through which bodies pass within a frame, for output.

In a frame of one substep the bodies move along the arcs from its first to its last state (`abd.contact.path`), and nothing is
stored. Otherwise the ends of all substeps but the last are stored, and the iterates of Newton's method where they replace the
direct arc (`abd.step.verdict`). The arcs between consecutive states are collision-free. Between iterates they have the shorter
rotation: the path of a substep in which a body turns by more than half a turn is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from abd.backends.protocol import Pending
from abd.energies import spin


@dataclass
class FramePath:
    """Intermediate states of one frame, in order.

    Attributes:
        q: (n, 12) each; spin: (n, 3) angular velocities [rad/s], zero for iterates.
        length: (n,) each, time of the arc to this state [s]: 0 for iterates, and for bodies that the substep excludes; NaN if the
            path is not known.
    """

    q: list[np.ndarray] = field(default_factory=list)
    spin: list[np.ndarray] = field(default_factory=list)
    length: list[np.ndarray] = field(default_factory=list)

    def add_end(self, q: np.ndarray, qd: np.ndarray, length: np.ndarray) -> None:
        """Add the end of a substep; length: (n,) [s]."""
        self.q.append(q.copy())
        self.spin.append(spin(q, qd))
        self.length.append(length)

    def take_back(self, bodies: np.ndarray, q: np.ndarray) -> None:
        """Replace the states of bodies (n,) bool, whose frame has failed, by those at its beginning (n, 12)."""
        for states, spins, length in zip(self.q, self.spin, self.length, strict=True):
            states[bodies], spins[bodies], length[bodies] = q[bodies], 0.0, 0.0

    def add_iterates(self, poses: Sequence[Pending], q: np.ndarray, qd: np.ndarray, h: np.ndarray) -> None:
        """Add all iterates but the last of a substep from the state q, qd (n, 12).

        h: (n,) its length [s], 0 for excluded bodies, which stay."""
        standing, n = np.zeros_like(qd), len(q)
        if (h * np.linalg.norm(spin(q, qd), axis=1)).max() > np.pi:
            self.add_end(q, standing, np.full(n, np.nan))
            return
        for pose in poses[:-1]:
            self.add_end(np.where(h[:, None] > 0.0, pose.wait()[0], q), standing, np.zeros(n))
