"""The path between the state and the iterate on a device; `abd.step.substep` says what it is for."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.answers import STRAINED, UnprovenPaths
from abd.backends.device.graphs import Graphs
from abd.backends.warp.parts.inactive import Inactive
from abd.backends.warp.parts.states import States
from abd.backends.warp.parts.touch import Touch
from abd.backends.warp.potential import Potential
from abd.backends.warp.scratch import Scratch
from abd.backends.warp.terms.candidates import LAST
from abd.backends.warp.trial_path import TrialPath
from cuda_kernels.bodies import swept_paths
from cuda_kernels.parallel import sums
from cuda_kernels.parallel.islands import to_bodies


class SweptPaths:
    """`abd.backends.protocol.SweptPaths` says what each call does.

    Attributes:
        length: (n,) of the present step [s]; standing: (n,) whether bodies stay where they are; largest: (1,) motion along the
            path [m]; covered: (1,) whether the list is complete for it; found: (2,) both; least: (1,) up to which fraction the
            path is proven free.
    """

    def __init__(
        self, potential: Potential, states: States, trial_path: TrialPath, touch: Touch, inactive: Inactive, scratch: Scratch,
        graphs: Graphs,
    ):  # fmt: skip
        self.potential, self.states, self.trial_path = potential, states, trial_path
        self.touch, self.inactive, self.scratch, self.graphs = touch, inactive, scratch, graphs
        self.device, self.islands, self.contacts = potential.device, potential.islands, potential.contacts
        self.length = self.device.zeros(potential.n, wp.float64)
        self.standing = self.device.zeros(max(potential.n, 1), wp.int32)
        self.largest, self.least = (self.device.zeros(1, wp.float64) for _ in range(2))
        self.covered, self.found = self.device.zeros(1, wp.int32), self.device.zeros(2, wp.float64)
        self._said, self._each = None, self.islands.scalars("read")

    def unproven(self, h: float | np.ndarray, converged: wp.array | None = None) -> UnprovenPaths:
        """As the protocol says.

        The path is followed back from the iterate, whose gaps are known, with the list of candidates that led there where
        it covers the path; otherwise the list is renewed, with a margin where iterations are going on.
        """
        islands, path = self.islands, self.trial_path.path
        contacts, candidates = self.contacts.arrays("current"), self.contacts.candidates
        self.potential.know_contacts()
        if not isinstance(h, float) or self._said != h:
            self._said = None  # not valid until all is written
            self.device.write(self.length, np.full(len(self.length), h))
            self._said = h if isinstance(h, float) else None
        key = 0 if converged is None else converged.ptr
        self.graphs.run(("way", key), lambda: self._launch_back(converged))
        motion, covered = self.device.read(self.found).tolist()
        if not np.isfinite(motion):
            bent = np.flatnonzero(~np.isfinite(self.device.read(self.scratch.a)))
            return UnprovenPaths(np.full(len(bent), STRAINED), np.stack([bent, bent], axis=1))
        if not covered:
            alpha = islands.scalars("limit")
            if converged is not None:
                candidates.renew(path, motion, islands.island, alpha)
            else:
                candidates.travel += motion
                candidates.build(path, islands.island, alpha, 0.0, LAST)
            self.touch.carry(contacts)
        some = converged is not None
        if candidates.count == 0 or self._share(True, some) == 1.0:
            return UnprovenPaths.none()
        if self._share(False, some) == 1.0:
            return UnprovenPaths.none()
        smallest = self.contacts.smallest(self.contacts.shares, 1.0)
        closed = smallest < 1.0
        return UnprovenPaths(smallest[closed], candidates.pair_list()[closed])

    def _share(self, back: bool, some: bool) -> float:
        """How far the path is proven free, followed back as it lies there, or forth; `some` may stand."""
        self.graphs.run(("shares", back, some), lambda: self._launch_shares(back, some))
        return float(self.device.read(self.least)[0])

    def _launch_back(self, converged: wp.array | None) -> None:
        """The path back, how far it leads, and whether the list covers it."""
        islands, path, each, alpha = self.islands, self.trial_path.path, self._each, self.islands.scalars("limit")
        islands.unsettle()
        if converged is not None:
            self.device.launch(to_bodies[wp.int32], self.trial_path.n, islands.island, converged, self.standing)
        self._set_way(True, converged is not None)
        islands.reduce(self.scratch.a, sums.MAX, each)
        islands.fold(each, sums.MAX, self.largest)
        self.device.fill(alpha, 1.0)
        self.contacts.candidates.test_cover(path, self.largest, each, islands.island, alpha, self.covered)
        self.device.launch(swept_paths.tell, 1, self.largest, self.covered, self.found)

    def _launch_shares(self, back: bool, some: bool) -> None:
        """Shares of the candidates, and the smallest of all."""
        a, islands = self.scratch.a, self.islands
        if not back:
            self._set_way(False, some)
        self.contacts.proven_fractions(self.trial_path.path, back, a)
        islands.reduce(a, sums.MIN, self._each)
        islands.fold(self._each, sums.MIN, self.least)

    def _set_way(self, back: bool, some: bool) -> None:
        """The path leads from the iterate back to the state or the other way round, but for `some` that stand."""
        self.launch_swept_paths(self.length, back, self.scratch.a)
        if some:
            trial_path, pose = self.trial_path, self.potential.at.current
            standing = self.standing, self.inactive.held, pose, trial_path.path, self.scratch.a
            self.device.launch(swept_paths.stand, trial_path.n, *standing)

    def launch_swept_paths(self, h: wp.array, back: bool, out: wp.array) -> None:
        """The same in a step of h (n,) [s], how far bodies (n,) move on it into `out`, by launches only."""
        states, trial_path = self.states, self.trial_path
        between = states.now, self.potential.at.current, states.velocity
        self.device.launch(
            swept_paths.swept_path_boxes,
            trial_path.n, trial_path.lower, trial_path.upper, *between, h, int(back), trial_path.path, out,
        )  # fmt: skip
