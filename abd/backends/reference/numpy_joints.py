"""Joints of the reference backend: the definitions of `abd.joints` on arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.backends.reference.iterate import Iterate
from abd.by_bodies import PerBody
from abd.joints.measures.measures import MeasureKind
from abd.joints.rows import laws, measured_rows, rows, table
from abd.joints.rows.laws import LIMITS, Law
from abd.joints.rows.system import KEPT, SETTLED, JointSystem
from abd.model import WORLD
from abd.potentials.elements import body_block
from cuda_kernels.shared import slots


@dataclass(frozen=True)
class Jacobian:
    """Derivatives J (k, 12) of measured rows `row` (k,) by bodies `body` (k,), one entry per row and body.

    Sums run in the order of the entries, so that rows of other worlds have no effect; that of BLAS depends on shapes."""

    row: np.ndarray
    body: np.ndarray
    J: np.ndarray

    def along(self, direction: np.ndarray, rows: int) -> np.ndarray:
        """Return (rows,) changes of the rows along a direction (n, 12)."""
        return np.bincount(self.row, np.sum(self.J * direction[self.body], axis=1), rows)

    def pull_back(self, f: np.ndarray, bodies: int) -> np.ndarray:
        """Return (bodies, 12) the gradient of an energy with derivatives f (R,) by the rows."""
        out = np.zeros((bodies, 12))
        np.add.at(out, self.body, f[self.row, None] * self.J)
        return out

    def add_squares(self, weight: np.ndarray, blocks: np.ndarray) -> None:
        """Add ``J^T diag(weight) J`` with weights (R,) to blocks (n, n, 12, 12)."""
        a, b = np.nonzero(self.row[:, None] == self.row)
        weighted = weight[self.row[a], None] * self.J[a]
        np.add.at(blocks, (self.body[a], self.body[b]), weighted[:, :, None] * self.J[b][:, None, :])


class NumpyJoints:
    """The present joint system.

    Attributes:
        owners: (l + R,) body of every row's energy: linear rows, then measured ones.
        law, p: laws (R,) and parameters (R, 8) of this step; shift: (l, 3) of the linear rows.
        regularisation: (n,) weights of the bodies' bounds of curvature (`cuda_kernels.step.newton`).
    """

    def __init__(self, system: JointSystem, bodies: int):
        self.system, self.n = system, bodies
        self.linear_blocks = rows.hessian(system.linear, bodies)
        first = system.rows.term_measure[system.rows.starts[:-1]] if len(system.rows) else np.zeros(0, dtype=int)
        self.owners = np.concatenate([system.linear.child, system.table.child[first]]).astype(int)
        count = len(system.rows)
        self.law, self.p = np.zeros(count, dtype=np.int32), np.zeros((count, slots.COUNT))
        self.reference, self.shift = np.zeros(len(system.table)), np.zeros((len(system.linear), 3))
        self.regularisation = np.ones(bodies)
        self.ch2, self.time = system.of_rows(1.0), system.of_rows(0.0)

    def begin(
        self, law: np.ndarray, p: np.ndarray, reference: np.ndarray, shift: np.ndarray, ch2: PerBody = 1.0, time: PerBody = 0.0
    ) -> None:
        """Set laws and parameters of a substep of c h^2 [s^2] that ends at `time` [s], scalars or (n,)."""
        self.law, self.p, self.reference, self.shift = law, p.copy(), reference, shift.copy()
        self.ch2, self.time = self.system.of_rows(ch2), self.system.of_rows(time)

    def energy(self, q: np.ndarray) -> np.ndarray:
        """Return (l + R,) energies of the rows in the state q."""
        x = self.values(q)
        self._set_user_laws(x)
        energies, _, _ = laws.evaluate(self.law, self.p, x)
        return np.concatenate([rows.energy(self.system.linear, q, self.shift), energies])

    def energies(self, at: Iterate, q: np.ndarray) -> np.ndarray:
        return self.energy(q)

    def add_to(self, at: Iterate, gradient: np.ndarray, blocks: np.ndarray) -> None:
        own = self.linearize(at.q)
        gradient += own[0]
        blocks += own[1]

    def limits_at_work(self, q: np.ndarray) -> np.ndarray:
        """Return (R,) bool, rows with active limits in the state q."""
        limits = np.isin(self.law, LIMITS)
        return limits & (laws.evaluate(self.law, self.p, self.values(q))[1] != 0.0) if limits.any() else limits

    def linearize(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient (n, 12) and blocks (n, n, 12, 12)."""
        n, s = self.n, self.system
        gradient = rows.gradient(s.linear, q, self.shift)
        blocks = np.zeros((n, n, 12, 12))
        diagonal, pairs, coupled = self.linear_blocks
        blocks[np.arange(n), np.arange(n)] = diagonal
        blocks[pairs[:, 0], pairs[:, 1]] += coupled
        blocks[pairs[:, 1], pairs[:, 0]] += coupled.transpose(0, 2, 1)
        if len(s.rows):
            J, x = self._jacobian(q)
            self._set_user_laws(x)
            _, slope, curvature = laws.evaluate(self.law, self.p, x, self._regularisations())
            gradient += J.pull_back(slope, n)
            J.add_squares(curvature, blocks)
            self._stiffen_sides(q, slope, blocks)
        return gradient, blocks

    def give(self, q: np.ndarray) -> None:
        """Evaluate users' laws in the state q."""
        if self.system.given:
            self._set_user_laws(self.values(q))

    def _set_user_laws(self, x: np.ndarray) -> None:
        for row, force in self.system.given.items():
            force.set(self.p[row], x[row], float(self.ch2[row]), float(self.time[row]))

    def _regularisations(self) -> np.ndarray:
        """Return (R,) the larger weight of the bodies of every row."""
        weights = np.append(self.regularisation, 0.0)  # the last entry is the world
        return weights[np.stack(self.system.row_bodies)].max(axis=0)

    def _stiffen_sides(self, q: np.ndarray, slope: np.ndarray, blocks: np.ndarray) -> None:
        """Add the transverse stiffness of lengths with tension t, ``t/|d| (1 - n n^T)``, to blocks (n, n, 12, 12)."""
        s = self.system
        terms = np.flatnonzero(s.table.kind[s.rows.term_measure] == MeasureKind.LENGTH)
        if not len(terms):
            return
        m = s.rows.term_measure[terms]
        measured = table.values(s.table, q, self.reference)
        _, weight = measured_rows.evaluate(s.rows, measured)
        tension = np.maximum(slope[s.rows.term_row[terms]] * weight[terms] * s.table.scale[m], 0.0)
        d = table.frames(s.table, q)[2][m]
        size = np.linalg.norm(d, axis=1)
        n = d / size[:, None]
        K = (tension / size)[:, None, None] * (np.eye(3) - n[:, :, None] * n[:, None, :])
        one = np.ones((len(m), 1))
        Y_c, Y_p = np.hstack([one, s.table.child_point[m]]), np.hstack([one, s.table.parent_point[m]])
        child, parent = s.table.child[m], s.table.parent[m]
        np.add.at(blocks, (child, child), body_block(K, Y_c, Y_c))
        k = parent != WORLD
        np.add.at(blocks, (parent[k], parent[k]), body_block(K[k], Y_p[k], Y_p[k]))
        np.subtract.at(blocks, (parent[k], child[k]), body_block(K[k], Y_p[k], Y_c[k]))
        np.subtract.at(blocks, (child[k], parent[k]), body_block(K[k], Y_c[k], Y_p[k]))

    def _jacobian(self, q: np.ndarray) -> tuple[Jacobian, np.ndarray]:
        """Return derivatives and values (R,) of the rows."""
        s, n = self.system, self.n
        x, sides = s.linearize(q, self.reference)
        J = np.zeros((len(s.rows), n + 1, 12))  # the last body is the world
        for body, gradient in sides:
            np.add.at(J, (s.rows.term_row, body), gradient)
        row, body = np.nonzero(J[:, :n].any(axis=2))
        return Jacobian(row, body, J[row, body]), x

    def values(self, q: np.ndarray) -> np.ndarray:
        """Return (R,) values of the measured rows."""
        s = self.system
        if not len(s.rows):
            return np.zeros(0)
        return measured_rows.evaluate(s.rows, table.values(s.table, q, self.reference))[0]

    def gaps(self, q: np.ndarray) -> np.ndarray:
        """Return (R,) gaps of the barriers, infinite for all other rows."""
        g = self.p[:, slots.SIGN] * (self.values(q) - self.p[:, slots.CENTRE])
        return np.where(self.law == Law.BARRIER, g, np.inf)

    def open_fractions(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Return (l + R,) fractions of a step that keep every gap open, from the gaps (R,) before and after it."""
        least = KEPT * np.minimum(before, self.p[:, slots.WIDTH])
        fraction = np.ones(len(before))
        closing = after < least
        start = before[closing]
        fraction[closing] = 0.9 * (start - least[closing]) / (start - after[closing])
        return np.concatenate([np.ones(len(self.system.linear)), fraction])

    def with_bodies(self, chosen: np.ndarray) -> np.ndarray:
        """Return (l + R,) bool, rows with a body among the chosen ones (n,) bool."""
        s, chosen = self.system, np.append(chosen, False)  # the world is not chosen
        measures = chosen[s.table.child] | chosen[s.table.parent]
        rows = np.zeros(len(s.rows), dtype=bool)
        np.logical_or.at(rows, s.rows.term_row, measures[s.rows.term_measure])
        return np.concatenate([chosen[s.linear.child] | chosen[s.linear.parent], rows])

    def errors(self, q: np.ndarray) -> np.ndarray:
        """Return (l + R,) residuals of the exact rows over their tolerances, 0 for a drive at its effort limit, -1 for others."""
        s = self.system
        F = np.where(s.linear.K > 0.0, rows.residual(s.linear, q), 0.0)
        linear = np.where(s.linear.exact, np.linalg.norm(F, axis=1) / s.linear.tolerance, -1.0)
        x, p = self.values(q), self.p
        held = self._active_exact()
        capped = (self.law == Law.SATURATED) & (p[:, slots.STRENGTH] * np.abs(x - p[:, slots.CENTRE]) >= p[:, slots.EFFORT])
        measured = np.divide(np.abs(self._residuals(x)), p[:, slots.TOLERANCE], out=held - 1.0, where=held & ~capped)
        return np.concatenate([linear, measured])

    def predicted(self, q: np.ndarray, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray, Jacobian]:
        """Return residuals of the exact rows by the linear model at the end of a direction (n, 12) from q.

        The residual at the end of the arc would add the distance between arc and chord to the multipliers.

        Returns:
            linear rows (l, 3), measured rows (R,), zero for all others; derivatives of the measured ones.
        """
        s, p = self.system, self.p
        exact = s.linear.exact[:, None] & (s.linear.K > 0.0)
        linear = np.where(exact, rows.residual(s.linear, q + direction), 0.0)
        J, x = self._jacobian(q)
        residuals = self._residuals(x + J.along(direction, len(x)))
        slack = (self.law == Law.ONE_SIDED) & (p[:, slots.SIGN] * (x - p[:, slots.CENTRE]) >= 0.0)
        # one-sided rows without force in the model
        residuals = np.where(slack, p[:, slots.CENTRE] - p[:, slots.BOUND], residuals)
        return linear, np.where(self._active_exact(), residuals, 0.0), J

    def _active_exact(self) -> np.ndarray:
        """Return (R,) mask of active exact rows."""
        return (self.p[:, slots.TOLERANCE] > 0.0) & np.isin(self.law, (Law.QUADRATIC, Law.SATURATED, Law.ONE_SIDED))

    def _residuals(self, x: np.ndarray) -> np.ndarray:
        """Return (R,) residuals x - target, for one-sided rows the smaller of the gap and lambda / K, along x."""
        p = self.p
        sign, bound = p[:, slots.SIGN], p[:, slots.BOUND]
        one_sided = sign * np.minimum(sign * (x - bound), sign * (p[:, slots.CENTRE] - bound))
        return np.where(self.law == Law.ONE_SIDED, one_sided, x - p[:, slots.TARGET])

    def closable(self, q: np.ndarray, direction: np.ndarray) -> tuple[np.ndarray, Jacobian]:
        """Return the residuals (l + R, 3) of `predicted` of the rows that a direction can close, 0 for others, and J.

        One-sided rows and rows with an effort limit are not closed. Measured rows have their residual in the first column."""
        linear, measured, J = self.predicted(q, direction)
        return np.concatenate([linear, _in_first_column(np.where(self.law == Law.QUADRATIC, measured, 0.0))]), J

    @property
    def strengths(self) -> np.ndarray:
        """(l + R, 3) stiffness K of the rows, in the columns of their residuals."""
        return np.concatenate([self.system.linear.K, _in_first_column(self.p[:, slots.STRENGTH])])

    def left_open(self, residuals: np.ndarray) -> np.ndarray:
        """Return (l + R,) residuals (l + R, 3) of `closable` over their tolerances."""
        size = np.linalg.norm(residuals, axis=1)
        tolerance = np.concatenate([self.system.linear.tolerance, self.p[:, slots.TOLERANCE]])
        return np.divide(size, tolerance, out=np.zeros(len(size)), where=tolerance > 0.0)

    def pull_back(self, residuals: np.ndarray, J: Jacobian) -> np.ndarray:
        """Return (n, 12) ``C^T K c`` of residuals c (l + R, 3)."""
        s, f = self.system, self.strengths * residuals
        count = len(s.linear)
        return rows.pull_back(s.linear, f[:count], self.n) + J.pull_back(f[count:, 0], self.n)

    def step_multipliers(self, change: np.ndarray) -> None:
        """Update the multipliers of the rows of `closable`: lambda += K change, (l + R, 3)."""
        self.shift -= change[: len(self.shift)]
        self.p[:, slots.CENTRE] -= change[len(self.shift) :, 0]

    def effort_changes(self, q: np.ndarray, direction: np.ndarray, skipped: np.ndarray) -> np.ndarray:
        """Return (l + R,) changes of friction and of drives with an effort limit along a direction (n, 12) from q, and errors of
        the linear model of barriers, and of ropes that become slack and are not exact.

        They are relative to `SETTLED` of the largest force, 0 for other rows. Friction's aim is updated, except for inactive
        bodies (n,)."""
        J, x = self._jacobian(q)
        end = x + J.along(direction, len(x))
        (_, slope, curvature), (_, ahead, _) = (laws.evaluate(self.law, self.p, at, self._regularisations()) for at in (x, end))
        is_included = ~skipped[self.owners[len(self.system.linear) :]]
        friction, limited = (self.law == Law.FRICTION) & is_included, (self.law == Law.SATURATED) & is_included
        largest = np.where(friction, self.p[:, slots.STRENGTH], np.where(limited, self.p[:, slots.EFFORT], 0.0))
        self.p[friction, slots.AIM] = laws.aimed(self.p[friction], x[friction], end[friction], curvature[friction])
        stiff = (self.law == Law.BARRIER) | ((self.law == Law.ONE_SIDED) & (self.p[:, slots.TOLERANCE] == 0.0))
        stiff &= is_included
        largest = np.where(stiff, np.maximum(np.abs(slope), np.abs(ahead)), largest)
        slope = np.where(stiff, slope + curvature * (end - x), slope)
        slope = np.where((self.law == Law.ONE_SIDED) & (ahead != 0.0), ahead, slope)  # without a release
        change = np.divide(np.abs(ahead - slope), SETTLED * largest, out=np.zeros(len(x)), where=largest > 0.0)
        return np.concatenate([np.zeros(len(self.system.linear)), change])

    def update_multipliers(self, linear: np.ndarray, measured: np.ndarray, skipped: np.ndarray) -> None:
        """Update the multipliers of the exact rows, lambda += K c within effort limits, except those of inactive bodies (n,)."""
        p = self.p
        is_skipped = skipped[self.owners]
        self.shift -= np.where(is_skipped[: len(linear), None], 0.0, linear)
        held = self._active_exact() & ~is_skipped[len(linear) :]
        reach = np.where(self.law == Law.SATURATED, p[:, slots.EFFORT] / np.where(held, p[:, slots.STRENGTH], 1.0), np.inf)
        centre, target = p[:, slots.CENTRE] - measured, p[:, slots.TARGET]
        centre = np.where(self.law == Law.SATURATED, np.clip(centre, target - reach, target + reach), centre)
        p[:, slots.CENTRE] = np.where(held, centre, p[:, slots.CENTRE])


def _in_first_column(values: np.ndarray) -> np.ndarray:
    """(k, 3) values (k,) and two columns of zeros."""
    return values[:, None] * np.array([1.0, 0.0, 0.0])
