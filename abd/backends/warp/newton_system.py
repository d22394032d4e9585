"""The linear system of a Newton iteration: gradient and blocks of the current iterate, and its direction."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.step.lagging import PairLoads
from cuda_kernels.bodies import bodies, paths
from cuda_kernels.linear.krylov import Coupling
from cuda_kernels.parallel import sums


class NewtonSystem:
    """The part of `WarpBackend` between an iterate and the path along its direction."""

    def lag_friction(self) -> None:
        """Freeze friction's contacts at the current iterate."""
        self.know_contacts()
        self.friction.lag(self.pose, self.step.At)
        self.friction.evaluate(self.pose, self.rest, self.eps, "current")

    def friction_loads(self) -> tuple[PairLoads, PairLoads]:
        """Normal forces times mu by body pair: as frozen, and as they act at the current iterate."""
        self.know_contacts()
        return self.friction.loads(self.pose)

    def mobility(self) -> np.ndarray:
        """(n,) change of velocity per load times c h^2 [1/(kg s)]; 0 for bodies that forces do not move."""
        return self.inverse_mass * self.rule.impulse

    def launch_lag(self) -> None:
        """The same, and energies at the current iterate, by launches only; those of contacts are there. `Friction.take` has
        to follow."""
        self.friction.launch_lag(self.pose, self.step.At)
        self._evaluate(self.pose, "current")

    def linearize(self) -> None:
        """Gradient and blocks at the current iterate; its energies were evaluated before."""
        self._assemble_other()
        self._assemble_contacts()

    def _assemble_other(self) -> None:
        launch, n = self.device.launch, self.n
        launch(
            bodies.linearize_bodies,
            n, self.body, self.step, self.pose, self.islands.done, self.joints.diagonal, self.gradient, self.diagonal,
            grain=128,
        )  # fmt: skip
        self.joints.add_to(self.pose, self.gradient, self.diagonal, self.islands.done)
        self.friction.linearize(self.pose, self.rest, self.eps)
        self.friction.reduce(self.gradient, self.diagonal)

    def _assemble_contacts(self) -> None:
        self.know_contacts()
        self.device.copy(self.before_contacts, self.gradient)
        self.contacts.linearize(self.pose)
        self.contacts.reduce(self.gradient, self.diagonal)
        self.device.launch(
            bodies.stiffen_rotations,
            self.n, self.body, self.step, self.pose, self.islands.done, self.before_contacts, self.gradient, self.diagonal,
            grain=256,
        )  # fmt: skip
        if self.has_constraints:
            self.device.launch(bodies.project_vectors, self.n, self.body, self.step, self.gradient)

    def couplings(self) -> list[tuple[Coupling, int]]:
        """Blocks off the diagonal of joints, contacts and friction, with the numbers of their pairs, or the rooms for them
        where launches are recorded."""
        reductions = self.contacts.reduction, self.friction.reduction
        joints = self.joints.coupling, self.joints.pairs
        nobody = self.contacts.candidates.nobody
        return [joints, *((r.coupling, 0 if nobody else r.pair_room) for r in reductions)]

    def linear_solver(self) -> dict:
        """Which solver the last solve took, and why."""
        return self.linear.describe()

    def solver_memory(self) -> dict[str, np.ndarray]:
        """What the linear solver remembers from step to step, part of the state."""
        return self.linear.memory()

    def recall_solver(self, saved: dict[str, np.ndarray]) -> None:
        """Go on with what a saved state says the linear solver remembered; without it as in the beginning."""
        self.linear.recall(saved)
        self.said = None

    def launch_direction(self, moved: wp.array, limit: wp.array) -> None:
        """Path along the direction; per island the largest displacement of a surface in the full step [m], and the largest
        alpha that strains no body too much."""
        direction, a, b = self.linear.direction, self.values["a"], self.values["b"]
        self.device.launch(
            paths.direction_paths,
            self.n, self.body, self.lower, self.upper, *self.surface_box, self.pose, self.islands.done, direction, self.path,
            a, b,
        )  # fmt: skip
        self.islands.reduce(a, sums.MAX, moved)
        self.islands.reduce(b, sums.MIN, limit)

    def launch_missing(self, missing: wp.array) -> None:
        """Forces (n, 12) that the exact rows lack at the end of the direction; their multipliers take them over."""
        self.device.fill(missing)
        self.joints.add_missing(self.straight, self.aside, missing)
        self.joints.take_over(self.straight, False, self.aside)
        if self.has_constraints:
            self.device.launch(bodies.project_vectors, self.n, self.body, self.step, missing)

    def project(self, couplings: list[tuple[Coupling, int]]) -> None:
        """Take fixed degrees of freedom out of the blocks of the bodies and of couplings."""
        self.joints.restore_blocks()
        jobs = [(self.n, self.count, self.everybody, self.everybody, self.diagonal, 1)]
        jobs += [(pairs, c.count, c.row, c.column, c.blocks, 0) for c, pairs in couplings]
        most = max(room for room, *_ in jobs)
        if self.scratch is None or self.scratch.shape[0] < most:
            self.scratch = self.device.empty((most + most // 2, 12, 12), wp.float64)
        for room, count, row, column, blocks, is_diagonal in jobs:
            self.device.launch(
                bodies.project_blocks,
                room, count, self.body, self.step, row, column, self.scratch, blocks, is_diagonal, grain=128,
            )  # fmt: skip
