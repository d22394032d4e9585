"""Derivatives of the forces of joint rows by values, history and parameters of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from abd.derivatives.equations import Equations, body_columns, jacobian
from abd.joints.rows import laws, springs, table
from abd.joints.rows.laws import Law
from abd.joints.rows.measured_rows import evaluate
from abd.joints.rows.rows import by_states
from abd.joints.rows.system import JointSystem
from abd.joints.rows.table import MeasureTable, by_twists
from abd.model import WORLD
from abd.potentials.integrators import Mode, row_stiffness_weights, row_weights
from abd.tables import arrays_of
from cuda_kernels.shared import slots
from cuda_kernels.shared.bodies import RATE_NEW, RATE_OLD, REST_RATE

STEP = 1e-5
"""Change of states and values in central differences of gradients of measures and of forces."""
FINE, SMALLEST = 1e-3, 1e-12
"""The same relative to the slip of static friction, to gaps, and to parameters; smallest change of a value."""
CLOSED = 1e-9
"""Compliance of exact rows, over that of their stiffness, so that redundant rows have a unique force."""
PARAMETERS = ("target", "stiffness", "damping", "effort")


class JointDerivatives:
    """Rows of a joint system in one substep (`abd.derivatives.step.StepRecord`).

    Args:
        resolved: (R,) bool, springs with the trapezoidal rule.

    Attributes:
        springs: whether springs have the trapezoidal rule (`abd.joints.rows.springs`).
    """

    def __init__(self, system: JointSystem, resolved: np.ndarray, record, eps_v: float):
        self.system, self.record, self.eps_v = system, record, eps_v
        rule, mode = record.rule, record.mode
        self.w = row_weights(rule, mode, *system.row_bodies)
        self.reference = record.memory.reference
        self.weight = np.where(resolved, row_stiffness_weights(rule, mode, *system.row_bodies), 1.0)
        modes = np.append(mode, Mode.DISSIPATIVE)
        self.resolved = np.flatnonzero(resolved & (modes[np.stack(system.row_bodies)] != Mode.DISSIPATIVE).any(axis=0))
        self.springs = len(self.resolved) > 0
        self.ends = [self._sides(q) for q in (record.start[0], record.end[0])]

    def _sides(self, q: np.ndarray):
        """Return values (R,) of rows, slopes (T,) of their terms, (row, body, gradient) of all sides of terms, and measures."""
        t, rows = self.system.table, self.system.rows
        measured, *gradients = table.linearize(t, q, self.reference)
        x, slope = evaluate(rows, measured)
        m, sides = rows.term_measure, []
        for body, gradient in zip((t.child, t.parent), gradients, strict=True):
            inner = body[m] != WORLD
            sides.append((rows.term_row[inner], body[m][inner], (slope[:, None] * gradient[m])[inner]))
        return x, slope, tuple(np.concatenate(one) for one in zip(*sides, strict=True)), measured

    def pulls(self, q: np.ndarray) -> np.ndarray:
        """Return (n, 12) forces of springs in the states q (n, 12) (`abd.backends.reference.parts.rows.Rows.pulls`)."""
        found = springs.pulls(self.system, self.resolved, self.weight, q, self.reference)
        return np.where((self.record.mode == Mode.DISSIPATIVE)[:, None], 0.0, found)

    def add_to(self, equations: Equations, coordinates: MeasureTable, active: np.ndarray) -> None:
        """Add the equations of all rows, their forces on the bodies, and those of efforts on coordinates, of joints that are
        active (c,)."""
        self._add_linear(equations)
        if len(self.system.rows):
            self._add_values(equations)
            self._add_forces(equations)
        if self.springs:
            self._add_pulls(equations)
        _, *gradients = table.linearize(coordinates, self.record.end[0])
        for body, gradient in zip((coordinates.child, coordinates.parent), gradients, strict=True):
            inner = np.flatnonzero((body != WORLD) & active)
            by_effort = -self.record.rule.ch2 * gradient[inner, :, None]
            equations.add("q", "efforts", body_columns(body[inner]), inner[:, None], by_effort)

    def _add_linear(self, equations: Equations) -> None:
        """Add ``F - lambda / K = 0`` for linear rows, without 1 / K for exact ones, and their forces lambda."""
        linear = self.system.linear
        index = np.arange(3 * len(linear))
        K = linear.K.ravel()
        for body, gradient in by_states(linear, index // 3, index % 3):
            inner = np.flatnonzero((body != WORLD) & (K > 0.0))
            columns, gradient = body_columns(body[inner]), gradient[inner]
            equations.add("q", "linear", columns, index[inner, None], gradient[:, :, None])
            equations.add("linear", "q", index[inner, None], columns, -gradient[:, None, :])
        compliance = np.where(np.repeat(linear.exact, 3), CLOSED, 1.0) / np.where(K > 0.0, K, 1.0)
        equations.add_diagonal("linear", "linear", compliance)

    def _add_values(self, equations: Equations) -> None:
        """Add values x at both ends and the history:

        ``before' = x_n, rate' = w_2 (x' - x_n - w_5 rate) + w_4 (x_{n-1} - x_n), earlier' = rate``; in the first step
        ``before = x_n, rate = earlier = J qd`` (`JointSystem.fresh_memory`)."""
        w = self.w
        for (_, _, (row, body, gradient), _), name, q in zip(self.ends, ("now", "value"), ("start q", "q"), strict=True):
            equations.add_diagonal(name, name, 1.0)
            equations.add(name, q, row[:, None], body_columns(body), -gradient[:, None, :])
        R, one = len(self.system.rows), np.ones(len(self.system.rows))
        equations.add_diagonal("rows", "rows", 1.0)
        equations.add_diagonal("rows", "now", -one)
        equations.add_diagonal("rows", "value", -w[RATE_NEW], R)
        equations.add_diagonal("rows", "now", w[RATE_NEW] + w[RATE_OLD], R)
        equations.add_diagonal("rows", "start rows", -w[RATE_OLD], R)
        equations.add_diagonal("rows", "start rows", w[RATE_NEW] * w[REST_RATE], R, R)
        equations.add_diagonal("rows", "start rows", -one, 2 * R, R)
        if not self.record.is_first.any():
            return
        first = np.append(self.record.is_first, True)[np.stack(self.system.row_bodies)].all(axis=0).astype(float)
        equations.add_diagonal("start rows", "start rows", 1.0)
        equations.add_diagonal("start rows", "now", -first)
        q, qd = self.record.start
        _, slopes, (row, body, gradient), _ = self.ends[0]
        rows = self.system.rows
        columns, H = self._hessians(rows.term_measure, q, first[rows.term_row] * slopes)
        by_q = np.einsum("kij,kj->ki", H, qd.ravel()[columns])
        gradient = first[row, None] * gradient
        for place in (R, 2 * R):
            equations.add("start rows", "start qd", place + row[:, None], body_columns(body), -gradient[:, None, :])
            equations.add("start rows", "start q", place + rows.term_row[:, None], columns, -by_q[:, None, :])

    def _add_forces(self, equations: Equations) -> None:
        """Add ``s - F(x', x_n, history; parameters) = 0`` for forces s of the rows, ``x' - target = 0`` of exact ones."""
        system, record, w, (x, *_) = self.system, self.record, self.w, self.ends[1]
        a, ch2 = system.row_laws, record.rule.ch2
        memory = replace(record.memory, multiplier=record.end_memory.multiplier)
        target, rate = system.targets(system.of_rows(record.time), memory.history[slots.VALUE])
        law, p = system.laws(memory, w, ch2, record.time, self.eps_v, self.weight)
        slope = laws.evaluate(law, p, x)[1] * (law != Law.OFF)
        e, is_limit = x - p[:, slots.CENTRE], np.isin(law, laws.LIMITS)
        exact = (p[:, slots.TOLERANCE] > 0.0) & np.isin(law, (Law.QUADRATIC, Law.SATURATED, Law.ONE_SIDED)) & (slope != 0.0)
        exact &= (law != Law.SATURATED) | (np.abs(slope) < p[:, slots.EFFORT])
        by_speed = np.zeros(len(x), dtype=bool)
        by_speed[[*(a.rate_of.keys() - a.target_of.keys())]] = True
        arrays = {name: one for name, one in arrays_of(a).items() if isinstance(one, np.ndarray)} | {"rate": rate}

        def forces(given: np.ndarray) -> np.ndarray:
            copies = len(given) // len(x)

            def tiled(one: np.ndarray) -> np.ndarray:
                return np.tile(one, copies)

            value, history, changed = given[:, 0], given.T[1:5], given.T[5:]
            table = {name: tiled(one) for name, one in arrays.items()} | dict(zip(PARAMETERS, changed, strict=True))
            table |= {"rate": np.where(tiled(by_speed), table["target"], table["rate"]), "target_of": {}, "rate_of": {}}
            past = np.concatenate([history, tiled(memory.history[4:])])
            known = replace(memory, history=past, multiplier=tiled(memory.multiplier))
            rows = replace(system.rows, starts=np.arange(copies * len(x) + 1))
            of_copies = replace(system, row_laws=replace(a, **table), rows=rows, given={})
            kind, parameters = of_copies.laws(known, tiled(w), ch2, 0.0, self.eps_v, tiled(self.weight))
            end = parameters[np.arange(len(kind)), np.where(kind == Law.ONE_SIDED, slots.BOUND, slots.TARGET)]
            return np.where(tiled(exact), value - end, laws.evaluate(kind, parameters, value)[1])[:, None]

        size = np.select(
            [law == Law.FRICTION, is_limit, law == Law.SATURATED],
            [p[:, slots.SMOOTHING], np.abs(e), p[:, slots.EFFORT] / np.maximum(p[:, slots.STRENGTH], 1e-300)], 1.0,
        )  # fmt: skip
        step = np.clip(FINE * size, SMALLEST, STEP)
        values = np.where(by_speed, rate, target), a.stiffness, a.damping, a.effort
        of_values = np.where(by_speed, step * w[RATE_NEW], step)
        steps = [FINE * np.where(np.isfinite(one) & (one > 0.0), one, 1.0) for one in values[1:]]
        steps = [step, step, step, step * w[RATE_NEW], step * w[RATE_NEW], of_values, *steps]
        _, J = jacobian(forces, [np.stack([x, *memory.history[:4], *values], axis=1)], [np.stack(steps, axis=1)])
        J = np.where((law != Law.OFF)[:, None] & np.isfinite(J[:, 0]), J[:, 0], 0.0)
        equations.add_diagonal("measured", "measured", np.where(exact, CLOSED / np.where(exact, p[:, slots.STRENGTH], 1.0), 1.0))
        for name, place in zip(("value", "now", *PARAMETERS), (0, 1, 5, 6, 7, 8), strict=True):
            equations.add_diagonal("measured", name, -J[:, place])
        for k in range(3):
            equations.add_diagonal("measured", "start rows", -J[:, 2 + k], 0, k * len(x))
        row, body, gradient = self.ends[1][2]
        equations.add("q", "measured", body_columns(body), row[:, None], gradient[:, :, None])
        self._add_curvature(equations, slope)

    def _add_curvature(self, equations: Equations, slope: np.ndarray) -> None:
        """Add the second derivatives of the values of rows, times their forces `slope` (R,)."""
        rows, q, (_, slopes, _, measured) = self.system.rows, self.record.end[0], self.ends[1]
        ends = [evaluate(rows, measured + sign * STEP)[1] for sign in (1.0, -1.0)]
        of_terms = slope[rows.term_row]
        second = of_terms * (ends[0] - ends[1]) / (2.0 * STEP)
        loaded = np.flatnonzero(of_terms)
        m = rows.term_measure[loaded]
        columns, H = self._hessians(m, q, (of_terms * slopes)[loaded])
        gradients = np.concatenate(table.linearize(self.system.table, q, self.reference)[1:], axis=1)[m]
        H += second[loaded, None, None] * gradients[:, :, None] * gradients[:, None, :]
        equations.add("q", "q", columns, columns, H)

    def _hessians(self, measures: np.ndarray, q: np.ndarray, factor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns (k, 24) of measures (k,), and second derivatives (k, 24, 24) in the state q times factors (k,)."""
        return self._by_states(measures, q, lambda of, gradients, _: factor[of, None] * np.concatenate(gradients, axis=1))

    def _by_states(self, measures: np.ndarray, q: np.ndarray, function: Callable[..., np.ndarray]):
        """Return the columns (k, 24) of the states of child and parent, and derivatives (k, o, 24) of a function of measures.

        function: of indices (c k,) of the measures (k,), gradients by child and parent (c k, 12), and states (2 c k, 12).
            Derivatives by the world are zero."""
        t, count = self.system.table.part(measures), len(measures)
        bodies = np.stack([t.child, t.parent], axis=1)

        def ends(x: np.ndarray) -> np.ndarray:
            of, k, states = np.tile(np.arange(count), len(x) // count), np.arange(len(x)), x.reshape(-1, 12)
            copied = t.part(of)
            copied = replace(copied, child=2 * k, parent=np.where(copied.parent == WORLD, WORLD, 2 * k + 1))
            return function(of, table.linearize(copied, states, self.reference[measures][of])[1:], states)

        columns = body_columns(np.maximum(bodies, 0).ravel()).reshape(-1, 24)
        if not count:
            return columns, np.zeros((0, 24, 24))
        J = jacobian(ends, [q.ravel()[columns]], [STEP])[1]
        return columns, J * np.repeat(bodies != WORLD, 12, axis=1)[:, None, :]

    def _add_pulls(self, equations: Equations) -> None:
        """Add the forces of springs at the start and at the end (`abd.joints.rows.springs.pulls`)."""
        a, rows, t = self.system.row_laws, self.system.rows, self.system.table
        terms = np.flatnonzero(np.isin(rows.term_row, self.resolved))
        row, m = rows.term_row[terms], rows.term_measure[terms]
        modes = np.append(self.record.mode, Mode.DISSIPATIVE)[np.stack([t.child[m], t.parent[m]], axis=1)]
        counts = np.repeat(modes != Mode.DISSIPATIVE, 12, axis=1)
        for k, (name, of, value) in enumerate((("pulls", "start q", "now"), ("end pulls", "q", "value"))):
            q, (x, slope, _, _) = (self.record.start[0], self.record.end[0])[k], self.ends[k]

            def wrenches(of: np.ndarray, gradients, states: np.ndarray, slope=slope) -> np.ndarray:
                """(k, 24): wrenches of unit forces on child and parent, each also weighted."""
                factor = slope[terms][of, None]
                sides = (by_twists(factor * g, states, np.arange(side, len(states), 2)) for side, g in enumerate(gradients))
                return np.concatenate([w * one for one in sides for w in (1.0, self.weight[row][of, None])], axis=1)

            columns, J = self._by_states(m, q, wrenches)
            _, *gradients = table.linearize(t, q, self.reference)
            own = counts * wrenches(np.arange(len(m)), [one[m] for one in gradients], q.ravel()[columns].reshape(-1, 12))
            force = -a.stiffness[row] * (x[row] - a.target[row])
            equations.add(name, of, columns, columns, -force[:, None, None] * counts[:, :, None] * J)
            for source, by in ((value, -a.stiffness), ("target", a.stiffness), ("stiffness", a.target - x)):
                equations.add(name, source, columns, row[:, None], -(by[row, None] * own)[:, :, None])
