"""Joint system on a device: linear rows with constant blocks, and measured rows with their laws."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.upload import upload_measures, upload_struct
from abd.backends.warp.iterate import Iterate
from abd.backends.warp.terms.custom_measures import CustomMeasures
from abd.backends.warp.terms.joint_ends import Ends, ends_of, lists_of
from abd.backends.warp.terms.row_tables import RelationTangents
from abd.contact.pair_rows import distinct
from abd.joints.rows.rows import hessian
from abd.joints.rows.system import KEPT, SETTLED, JointSystem
from abd.model import WORLD
from cuda_kernels.bodies import poses
from cuda_kernels.joints import exact_rows, measured_rows, measures, rows
from cuda_kernels.linear.couplings import Coupling
from cuda_kernels.parallel import sums
from cuda_kernels.shared import slots


class Joints:
    """Term of all joints of a scene.

    Attributes:
        count: number of linear and measured rows; pairs: number of body pairs with common rows.
        diagonal: (n, 12, 12) constant diagonal blocks; coupling: off-diagonal blocks.
        energies: of linear and of measured rows by slot; linear_errors: relative residuals and energies of linear rows.
        regularisation: (n,) Hessian regularisation weights (`cuda_kernels.step.newton`).
    """

    def __init__(self, system: JointSystem, bodies: int, device: Device):
        self.system, self.n, self.device = system, bodies, device
        self.regularisation = device.upload(np.ones(bodies), wp.float64)
        self.linear_count, self.row_count = len(system.linear), len(system.rows)
        self.measure_count = len(system.table)
        self.count = self.linear_count + self.row_count
        self.has_exact_measured = bool(system.row_laws.exact.any())
        ends = ends_of(system.rows, system.table, bodies)
        self._upload_linear()
        self.measures = upload_measures(system.table, device)
        self.custom = CustomMeasures(system.table, self.measures, device)
        self._upload_rows(ends)
        self._couple(ends)
        counts = self.linear_count, self.row_count
        self.energies = {slot: [device.zeros(count, wp.float64) for count in counts] for slot in ("current", "trial")}
        self.linear_errors = [device.zeros(self.linear_count, wp.float64) for _ in range(2)]

    # constant data ------------------------------------------------------------------------------------------------

    def _upload_linear(self) -> None:
        d, host = self.device, self.system.linear
        self.linear = upload_struct(rows.Rows, host, d, shift=d.zeros(self.linear_count, wp.vec3d))
        self.held = rows.Rows()
        self.held.assign(self.linear)
        self.held.K = d.upload(host.K * host.exact[:, None], wp.vec3d)
        self.held.shift, self.linear_change = (d.zeros(self.linear_count, wp.vec3d) for _ in range(2))
        inner = host.parent != WORLD
        owners = np.concatenate([host.child, host.parent[inner]])
        codes = np.concatenate([2 * np.arange(self.linear_count), 2 * np.flatnonzero(inner) + 1])
        self.linear_starts, self.linear_entries = self._lists(owners, codes, self.n)

    def _upload_rows(self, ends: Ends) -> None:
        d, host = self.device, self.system.rows
        law, p = d.zeros(self.row_count, wp.int32), d.zeros((self.row_count, slots.COUNT), wp.float64)
        self.rows = upload_struct(measured_rows.MeasuredRows, host, d, law=law, p=p)
        self.relations = RelationTangents(self.system, self.rows, d)
        self.ends, self.end_count = upload_struct(measured_rows.Ends, ends, d), len(ends.row)
        self.body_starts, self.body_ends = self._lists(ends.body, np.arange(self.end_count), self.n)
        owners = self.system.table.child[host.term_measure[host.starts[:-1]]]
        self.owner = d.upload(owners, wp.int32)
        self.owned_starts, self.owned_rows = self._lists(owners, 2 * np.arange(self.row_count), self.n)
        self.values = d.zeros(self.measure_count, wp.float64)
        self.gradients_child, self.gradients_parent = (d.zeros((self.measure_count, 12), wp.float64) for _ in range(2))
        self.u = d.zeros((self.end_count, 12), wp.float64)
        self.lengths, self.length_count = d.upload(ends.lengths, wp.int32), len(ends.lengths)
        self.term_row = d.upload(host.term_row, wp.int32)
        with_sides = self.row_count + 2 * self.length_count
        self.slope, self.curvature, self.missing = (d.zeros(with_sides, wp.float64) for _ in range(3))
        self.x, self.x_ahead, self.gap, self.gap_ahead, self.per_row, self.change = (
            d.zeros(self.row_count, wp.float64) for _ in range(6)
        )
        self.weight = d.zeros(len(host.term_measure), wp.float64)

    def _couple(self, ends: Ends) -> None:
        """Build one coupling for the body pairs of linear and measured rows."""
        d, n = self.device, self.n
        diagonal, linear_pairs, blocks = hessian(self.system.linear, n)
        self.diagonal = d.upload(diagonal, wp.float64)
        keys = [linear_pairs[:, 0].astype(np.int64) * n + linear_pairs[:, 1], ends.pairs[:, 0] * n + ends.pairs[:, 1]]
        union = distinct(*keys)
        pairs, self.pairs = np.stack([union // n, union % n], axis=1), len(union)
        if len(blocks) < self.pairs:
            constant = np.zeros((self.pairs, 12, 12))
            constant[np.searchsorted(union, keys[0])] = blocks
            blocks = constant
        self.constant = d.upload(blocks, wp.float64) if self.row_count else None
        self.coupling = Coupling()
        self.coupling.row, self.coupling.column = d.upload(pairs[:, 0], wp.int32), d.upload(pairs[:, 1], wp.int32)
        self.coupling.blocks = d.upload(blocks, wp.float64)
        self.coupling.count = d.upload(np.array([self.pairs]), wp.int32)
        owners, codes = np.concatenate([pairs[:, 0], pairs[:, 1]]), np.arange(self.pairs)
        self.coupling.starts, self.coupling.entries = self._lists(owners, np.concatenate([2 * codes, 2 * codes + 1]), n)
        counts = np.zeros(self.pairs + 1, dtype=np.int64)
        counts[1 + np.searchsorted(union, keys[1])] = np.diff(ends.pair_starts)
        self.pair_starts = d.upload(np.cumsum(counts), wp.int32)
        self.pair_entries = d.upload(ends.pair_entries, wp.vec2i)

    def _lists(self, owners: np.ndarray, codes: np.ndarray, count: int) -> tuple[wp.array, wp.array]:
        starts, entries = lists_of(owners, codes, count)
        return self.device.upload(starts, wp.int32), self.device.upload(entries, wp.int32)

    # one step -----------------------------------------------------------------------------------------------------

    def evaluate(self, at: Iterate, slot: str) -> None:
        """Evaluate the energies of all rows at the pose of a slot."""
        launch, pose = self.device.launch, at.pose(slot)
        launch(rows.row_energies, self.linear_count, self.linear, pose, self.energies[slot][0])
        if self.row_count:
            self.measure(pose)
            launch(measured_rows.row_energies, self.row_count, self.rows, self.values, self.x, self.energies[slot][1])

    def exchange(self) -> None:
        """Exchange the values of slots "current" and "trial"."""
        for one, other in zip(*self.energies.values(), strict=True):
            self.device.launch(poses.exchange_values, len(one), one, other)

    def add_differences(self, difference: wp.array, size: wp.array) -> None:
        """Add the energy differences between the slots, and the magnitudes of the energies, per body."""
        launch, n = self.device.launch, self.n
        lists = (self.linear_starts, self.linear_entries), (self.owned_starts, self.owned_rows)
        for lists_of_bodies, trial, current in zip(lists, self.energies["trial"], self.energies["current"], strict=True):
            if len(trial):
                launch(sums.listed_differences, n, *lists_of_bodies, trial, current, difference, size)

    def measure(self, pose, with_slopes: bool = False) -> None:
        """Evaluate the measures at a pose, and the relations and given forces that depend on them.

        `with_slopes`: also evaluate the derivatives of measures that users define."""
        self.custom.supply(pose, with_slopes)
        self.device.launch(measures.measure_values, self.measure_count, self.measures, pose, self.values)
        self.relations.set(self.values)

    # Newton -------------------------------------------------------------------------------------------------------

    @property
    def coupled(self) -> tuple[Coupling, int]:
        """Off-diagonal blocks of body pairs with common rows, and the number of pairs."""
        return self.coupling, self.pairs

    def add_to(self, at: Iterate, gradient: wp.array, diagonal: wp.array) -> None:
        """Add the gradient (n, 12) of all rows and the diagonal blocks (n, 12, 12) of measured rows, and set the off-diagonal
        blocks. Entries of bodies that are done do not change."""
        launch, pose, done = self.device.launch, at.current, at.done
        if self.linear_count:
            launch(
                rows.row_gradients, self.n, self.linear, pose, done, self.linear_starts, self.linear_entries, gradient
            )
        if not self.row_count:
            return
        self._linearize(pose, done)
        launch(
            measured_rows.stiffen_sides,
            self.length_count, self.rows, self.measures, pose, self.ends, self.lengths, self.term_row, self.row_count,
            self.slope, self.weight, self.curvature, self.u,
        )  # fmt: skip
        launch(
            measured_rows.add_to_bodies,
            12 * self.n, self.body_starts, self.body_ends, self.ends, self.slope, self.curvature, self.u, done,
            gradient, diagonal,
        )  # fmt: skip
        launch(
            measured_rows.pair_blocks,
            12 * self.pairs, self.pair_starts, self.pair_entries, self.ends, self.curvature, self.u, self.constant,
            self.coupling.blocks,
        )  # fmt: skip

    def _linearize(self, pose, done) -> None:
        """Compute values of the rows, slopes and curvatures of their laws, and gradients on the bodies."""
        launch = self.device.launch
        self.measure(pose, with_slopes=True)
        launch(
            measures.measure_gradients,
            self.measure_count, self.measures, pose, done, self.gradients_child, self.gradients_parent, grain=256,
        )  # fmt: skip
        launch(
            measured_rows.row_slopes,
            self.row_count, self.rows, self.ends, self.values, self.regularisation, self.x, self.slope, self.curvature,
            self.weight,
        )  # fmt: skip
        launch(
            measured_rows.end_gradients,
            12 * self.end_count, self.rows, self.ends, self.weight, self.gradients_child, self.gradients_parent, self.u,
        )  # fmt: skip

    def restore_blocks(self) -> None:
        """Restore constant off-diagonal blocks that `Potential.project` has changed; the first call makes the copy.

        Blocks of systems with measured rows are set in every iteration."""
        if not self.pairs or self.row_count:
            return
        if self.constant is None:
            with self.device.turn:
                self.constant = wp.clone(self.coupling.blocks)
        else:
            self.device.copy(self.coupling.blocks, self.constant)

    # limits -------------------------------------------------------------------------------------------------------

    def measure_gaps(self, pose) -> None:
        """Compute the barrier gaps at the iterate, the reference of `open_fractions`."""
        self.measure(pose)
        self.device.launch(measured_rows.row_gaps, self.row_count, self.rows, self.values, self.gap)

    def open_fractions(self, pose, fractions: wp.array) -> None:
        """Reduce `fractions` (n,) to the fraction of the path to a pose that keeps the barrier gaps of a body open."""
        launch = self.device.launch
        self.measure(pose)
        launch(measured_rows.row_gaps, self.row_count, self.rows, self.values, self.gap_ahead)
        launch(measured_rows.open_fractions, self.row_count, self.rows, self.gap, self.gap_ahead, KEPT, self.per_row)
        self._fold(self.row_count, self.owned_starts, self.owned_rows, self.per_row, sums.MIN, fractions)

    # exact rows ---------------------------------------------------------------------------------------------------

    def errors(self, pose, done, out: wp.array) -> None:
        """Raise `out` (n,) to the largest residual of the exact rows of a body, relative to their tolerances.

        Rows count only with a body that is not done (n,)."""
        launch = self.device.launch
        if self.linear_count:
            each, energies = self.linear_errors
            launch(rows.row_errors, self.linear_count, self.linear, pose, done, each, energies)
            self._fold(self.linear_count, self.linear_starts, self.linear_entries, each, sums.MAX, out)
        if self.row_count:
            self.measure(pose)
            launch(exact_rows.row_errors, self.row_count, self.rows, self.ends, done, self.values, self.per_row)
            self._fold(self.row_count, self.owned_starts, self.owned_rows, self.per_row, sums.MAX, out)

    def _fold(self, count, starts, entries, values, operation, out) -> None:
        if count:
            self.device.launch(measured_rows.fold_into_bodies, self.n, starts, entries, values, operation, out)

    def predicted_errors(self, straight, direction, done, out: wp.array, energy: wp.array) -> None:
        """Raise `out` (n,) to the residuals c, as `errors`, of the linear model at the end of a direction (n, 12), and add
        ``c K c`` to `energy` (n,); `straight` is the pose at the end of the direction.

        Rows with an effort limit have no residual."""
        launch = self.device.launch
        if self.linear_count:
            each, energies = self.linear_errors
            launch(rows.row_errors, self.linear_count, self.linear, straight, done, each, energies)
            for values, operation, total in ((each, sums.MAX, out), (energies, sums.SUM, energy)):
                self._fold(self.linear_count, self.linear_starts, self.linear_entries, values, operation, total)
        if self.has_exact_measured:
            each, energies = self.per_row, self.missing
            self._predict(direction)
            launch(
                exact_rows.predicted_errors,
                self.row_count, self.rows, self.ends, done, self.x_ahead, each, energies,
            )  # fmt: skip
            for values, operation, total in ((each, sums.MAX, out), (energies, sums.SUM, energy)):
                self._fold(self.row_count, self.owned_starts, self.owned_rows, values, operation, total)

    def add_missing(self, straight, skipped, gradient) -> None:
        """Add ``C^T K c`` to gradient (n, 12), where c are the residuals of the exact rows from `predicted_errors`.

        Bodies with `skipped` (n,) = 1 are skipped."""
        launch = self.device.launch
        if self.linear_count:
            launch(
                rows.row_gradients,
                self.n, self.held, straight, skipped, self.linear_starts, self.linear_entries, gradient,
            )  # fmt: skip
        if self.has_exact_measured:
            launch(exact_rows.held_forces, self.row_count, self.rows, self.x_ahead, self.missing)
            launch(
                exact_rows.forces_to_bodies,
                self.n, self.body_starts, self.body_ends, self.ends, self.missing, self.u, skipped, gradient,
            )  # fmt: skip

    def update_multipliers(self, straight, skipped) -> None:
        """Update the multipliers of exact rows: lambda += K c, where c are the residuals at the end of a direction.

        Rows of bodies with `skipped` (n,) = 1 keep their multipliers."""
        self.device.launch(rows.shift_rows, self.linear_count, self.linear, straight, skipped)
        if self.has_exact_measured:
            self.device.launch(
                exact_rows.update_multipliers,
                self.row_count, self.rows, self.owner, skipped, self.x, self.x_ahead,
            )  # fmt: skip

    def step_multipliers(self, straight, *numbers: wp.array) -> None:
        """Update the multipliers of exact rows without an effort limit: s = c + turn s, lambda += weight K s.

        c are the residuals from `predicted_errors`; numbers: island of every body, weight and turn of every island."""
        self.device.launch(rows.step_multipliers, self.linear_count, self.linear, straight, *numbers, self.linear_change)
        if self.has_exact_measured:
            self.device.launch(
                exact_rows.step_multipliers, self.row_count, self.rows, self.owner, self.x_ahead, *numbers, self.change
            )

    def relinearize(self, pose, direction, done) -> None:
        """Linearise the exact measured rows at a pose and predict their values along a direction."""
        if self.has_exact_measured:
            self._linearize(pose, done)
            self._predict(direction)

    def effort_changes(self, direction, skipped, out: wp.array) -> None:
        """Raise `out` (n,) to the force change of joint friction and limited drives along a direction, relative to `SETTLED`
        times their largest force.

        Uses the rows of the last linearisation and updates the predicted friction force. Rows of bodies with `skipped`
        (n,) = 1 are skipped."""
        self._predict(direction)
        self.device.launch(
            measured_rows.effort_changes,
            self.row_count, self.rows, self.owner, skipped, self.x, self.x_ahead, self.curvature, SETTLED, self.per_row,
        )  # fmt: skip
        self._fold(self.row_count, self.owned_starts, self.owned_rows, self.per_row, sums.MAX, out)

    def _predict(self, direction) -> None:
        self.device.launch(
            exact_rows.row_predictions,
            self.row_count, self.ends, self.u, direction, self.x, self.x_ahead,
        )  # fmt: skip
