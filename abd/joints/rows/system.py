"""Joint system of a scene: all rows, their laws, and the parameters of the laws in one step.

`JointSystem.laws` computes the laws of all rows from SI numbers for every substep. The stiffness K [kg] of stiff rows
(rotary: kg m^2) enters the incremental potential directly; SI stiffness, damping and effort enter with the factor c
h^2. Exact rows have a multiplier, the constraint force [N or N m].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from abd.by_bodies import PerBody
from abd.joints.measures.measures import Measure
from abd.joints.rows.laws import LIMITS, SPRINGS, Law, Role, RowLaws
from abd.joints.rows.measured_rows import ForceLaw, MeasuredRows
from abd.joints.rows.measured_rows import evaluate as row_values
from abd.joints.rows.rows import Rows
from abd.joints.rows.table import MeasureTable, frames, linearize, motion, values
from abd.rotations import pose
from cuda_kernels.shared import slots
from cuda_kernels.shared.bodies import PER_H, RATE_NEW, RATE_OLD, REST_BEFORE, REST_NOW, REST_RATE, WEIGHTS
from cuda_kernels.shared.joints import REACH, SMALLEST_WIDTH

KEPT = 0.1
"""Fraction of a limit's gap, or of its barrier's width, that remains after one Newton step."""
LIMIT_CUTS = 60
"""Largest number of cuts of a step towards a joint limit."""
CLOSINGS = 200
"""Largest number of solves in which a direction closes the exact rows."""
IMMOBILE = 1e-8
"""Smallest part of their residual that forces K c of exact rows close; less is rounding, as of redundant rows."""
CLOSED = 0.3
"""Residual, relative to the tolerance, at which the exact rows count as closed."""
TURN = 2.5
"""Largest rotation per step [rad] of an angle that counts turns; beyond half a turn its direction is ambiguous."""
SETTLED = 1e-2
"""Fraction of the largest friction or drive force by which a last Newton step may change it; fraction of a limit's force by which
its linear model may err there."""
HISTORY = slots.BARRIER_WIDTH + 1
"""Number of rows of `JointMemory.history`."""


def next_widths(width: np.ndarray, distance: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """(R,) widths of barriers after a step in which the gap (R,) changes from `before` to `after`.

    In an impact the gap falls below the width and becomes the width. It stays so, under load too, until the gap exceeds the
    distance (R,) of the row.
    """
    in_impact = (after < width) & (before > width)
    return np.where(after >= distance, distance, np.where(in_impact, np.maximum(after, SMALLEST_WIDTH * distance), width))


@dataclass
class JointMemory:
    """State of a joint system between steps.

    Attributes:
        reference: (m,) values of the measures after the last step; angles are counted from them.
        history: (6, R): values of the rows after the last two steps, then their rates by the integrator, the
            non-conservative forces after the last step (`abd.joints.rows.forces.working_forces`), and the widths of
            barriers.
        multiplier: (R,) forces [N or N m] of the exact measured rows; linear: (l, 3) of the exact linear rows.
    """

    reference: np.ndarray
    history: np.ndarray
    multiplier: np.ndarray
    linear: np.ndarray


@dataclass
class JointSystem:
    """All rows of a scene.

    Attributes:
        linear: vector rows with a constant Hessian (`abd.joints.rows.rows`).
        table: measures; rows: measured rows over them; row_laws: their laws.
        initial: (m,) values near which the angles of the initial state are counted.
        followers: first index of some measures -> function of T_CD (4, 4) that recomputes them at the start of every
            step.
        given: row -> force along it as a function of value, time and speed.
        loads: friction row -> effort without load, and increase per newton that its joint carried in the last step.
    """

    linear: Rows
    table: MeasureTable
    rows: MeasuredRows
    row_laws: RowLaws
    initial: np.ndarray
    followers: dict[int, Callable[[np.ndarray], list[Measure]]] = field(default_factory=dict)
    loads: dict[int, tuple[float, float]] = field(default_factory=dict)
    given: dict[int, ForceLaw] = field(default_factory=dict)

    def load(self, force: np.ndarray) -> None:
        """Set the efforts of load-dependent friction for joint forces (j,) [N]."""
        for row, (unloaded, ratio) in self.loads.items():
            self.row_laws.effort[row] = unloaded + ratio * force[self.row_laws.joint[row]]

    @cached_property
    def row_bodies(self) -> tuple[np.ndarray, np.ndarray]:
        """Parent and child (R,) of the first measure of every row, -1 for the world."""
        measure = self.rows.term_measure[self.rows.starts[:-1]]
        return self.table.parent[measure], self.table.child[measure]

    @cached_property
    def has_user_functions(self) -> bool:
        """Whether user functions of several values, or of custom joint types, determine rows."""
        return bool(self.given or self.rows.relations or self.table.custom)

    @cached_property
    def has_exact(self) -> bool:
        """Whether any row is exact."""
        return bool(self.linear.exact.any() or self.row_laws.exact.any())

    @cached_property
    def has_barriers(self) -> bool:
        """Whether any row is a barrier."""
        return bool((self.row_laws.law == Law.BARRIER).any())

    @cached_property
    def hard_limits(self) -> np.ndarray:
        """Rows (b,) of active barriers of coordinates that are not held, and of ropes and other gaps as stiff as their joint."""
        a = self.row_laws
        stiff_gaps = (a.law == Law.ONE_SIDED) & (a.mass_stiffness > 0.0)
        rows = np.flatnonzero(a.active & ((a.law == Law.BARRIER) | stiff_gaps))
        return np.array([row for row in rows if (int(a.joint[row]), a.name[row]) not in self.held_coordinates], dtype=int)

    @cached_property
    def held_coordinates(self) -> dict[tuple[int, str], Role]:
        """`Role.LOCK` or `Role.DRIVE` of rows without effort limit that hold coordinates as stiffly as their joint, by joint and
        name of the coordinate."""
        a = self.row_laws
        is_held = a.active & np.isin(a.role, (Role.LOCK, Role.DRIVE)) & (a.law == Law.QUADRATIC) & (a.mass_stiffness > 0.0)
        return {(int(a.joint[row]), a.name[row]): Role(a.role[row]) for row in np.flatnonzero(is_held)}

    @cached_property
    def compliant(self) -> np.ndarray:
        """(R,) bool, active rows of compliant joints and couplings, in the order of `abd.joints.rows.rigid_rows`."""
        a = self.row_laws
        return a.active & (a.stiffness > 0.0) & np.isin(a.role, (Role.CONSTRAINT, Role.COUPLING))

    @cached_property
    def rotors(self) -> dict[tuple[int, str], float]:
        """Inertias of rotors [kg or kg m^2], by joints and names of their coordinates."""
        a = self.row_laws
        rows = np.flatnonzero(a.active & (a.role == Role.ARMATURE))
        return {(int(a.joint[row]), a.name[row]): float(a.mass_stiffness[row]) for row in rows}

    @cached_property
    def stiff_drives(self) -> list[int]:
        """Rows of active drives that keep a position or a speed as stiffly as their joint."""
        return np.flatnonzero(self.row_laws.active & self._stiff_drives).tolist()

    @cached_property
    def _stiff_drives(self) -> np.ndarray:
        """(R,) bool, drives without a gain, active or not."""
        a = self.row_laws
        return np.isin(a.law, (Law.QUADRATIC, Law.SATURATED)) & (a.mass_stiffness > 0.0) & (a.role == Role.DRIVE)

    @cached_property
    def friction_bodies(self) -> np.ndarray:
        """(b,) bodies of rows that are stiff at small speeds only: friction, and drives with an effort limit."""
        a = self.row_laws
        stiff = a.active & ((a.law == Law.FRICTION) | (a.law == Law.SATURATED))
        bodies = np.concatenate([ends[stiff] for ends in self.row_bodies]).astype(int)
        return np.unique(bodies[bodies >= 0])

    @property
    def has_friction(self) -> bool:
        """Whether the force of any row has kinks: `friction_bodies` is not empty."""
        return len(self.friction_bodies) > 0

    @cached_property
    def has_uneven_forces(self) -> bool:
        """Whether the force of any row may change within Newton's tolerance: `friction_bodies`, barriers, ropes that yield."""
        a = self.row_laws
        ropes = a.active & (a.law == Law.ONE_SIDED) & ~a.exact
        return self.has_friction or self.has_barriers or bool(ropes.any())

    @cached_property
    def turning(self) -> np.ndarray:
        """(R,) bool, angles whose target a drive without a gain prescribes."""
        return self._stiff_drives & self.row_laws.rotary & ~self.row_laws.follows

    @cached_property
    def limits(self) -> np.ndarray:
        """(R,) bool, range ends and gaps."""
        return np.isin(self.row_laws.law, LIMITS)

    @cached_property
    def springs(self) -> np.ndarray:
        """(R,) bool, rows that store spring energy; the effect of a drive counts as work."""
        a = self.row_laws
        return np.isin(a.role, SPRINGS) & (a.law == Law.QUADRATIC) & ~a.exact & ~a.follows

    @cached_property
    def counts_turns(self) -> bool:
        """Whether any measure is an angle that counts turns."""
        return bool(self.table.counts_turns.any())

    def requested_turns(self, time: PerBody, h: PerBody) -> np.ndarray:
        """(R,) absolute rotation [rad] that drives without a gain, and couplings, request in a substep.

        It is the speed of a velocity drive times h, or the change of the target of a position drive unless the target
        jumps; 0 for other rows.

        Args:
            time: start of the substep [s]; h: its length [s]; both scalar or (n,).
        """
        a = self.row_laws
        out, begins, lengths = np.zeros(len(self.rows)), self.of_rows(time), self.of_rows(h)
        for row in np.flatnonzero(a.active & a.rotary & a.follows & self._stiff_drives):
            rate, end = a.rate_of.get(int(row)), float(begins[row] + lengths[row])
            out[row] = lengths[row] * (a.rate[row] if rate is None else rate(end))
        for row in np.flatnonzero(a.active & self.turning):
            target, begin, length = a.target_of.get(int(row)), float(begins[row]), float(lengths[row])
            if target is not None:
                turn, half = target(begin + length) - target(begin), target(begin + 0.5 * length) - target(begin)
                out[row] = turn if 0.1 * abs(turn) < abs(half) < 0.9 * abs(turn) else 0.0
        return np.maximum(np.abs(out), self._coupled_turns(out)) if out.any() else out

    def _coupled_turns(self, requested: np.ndarray) -> np.ndarray:
        """(R,) largest rotation [rad] in couplings, propagated from the rotations (R,) that drives request."""
        rows, out = self.rows, np.zeros(len(self.rows))
        slope = rows.coefficients[rows.piece_starts[:-1], 1]
        turn = np.full(len(self.table), np.nan)
        for row in np.flatnonzero(requested):
            turn[rows.term_measure[rows.starts[row]]] = requested[row]
        for row in np.flatnonzero(self.row_laws.active & (self.row_laws.role == Role.COUPLING)):
            terms = np.arange(rows.starts[row], rows.starts[row + 1])
            measures = rows.term_measure[terms]
            unknown = np.isnan(turn[measures])
            if unknown.sum() != 1 or len(terms) < 2 or slope[terms[unknown]][0] == 0.0:
                continue
            turn[measures[unknown]] = -(slope[terms] * turn[measures])[~unknown].sum() / slope[terms[unknown]]
            out[row] = np.abs(np.where(self.table.counts_turns[measures], turn[measures], 0.0)).max()
        return out

    def fresh_memory(
        self, q: np.ndarray, qd: np.ndarray, present: JointMemory | None = None, bodies: np.ndarray | None = None
    ) -> JointMemory:
        """Memory of an initial state q, qd (n, 12).

        Args:
            present, bodies: where the state is initial for some bodies only, (n,) bool of whole worlds, the present memory; the
                result is of use for their rows.
        """
        chosen, table = (slice(None), self.table) if present is None else self.table.of_bodies(bodies)
        reference, speeds = (self.initial if present is None else present.reference).copy(), np.zeros(len(self.table))
        reference[chosen], speeds[chosen] = motion(table, q, qd, self.initial[chosen])
        x, rate = self._along_rows(reference, speeds)
        a = self.row_laws
        gap = a.sign * (x - a.bound)
        returns = a.follows & (a.restitution == 0.0)  # barriers that push a value back into its range
        width = np.where((gap > 0.0) & ~returns, np.minimum(a.distance, gap), a.distance)
        history = np.stack([x, x, rate, rate, np.zeros(len(x)), width])
        return JointMemory(reference, history, np.zeros(len(self.rows)), np.zeros((len(self.linear), 3)))

    def update_measures(self, memory: JointMemory, q: np.ndarray) -> None:
        """Update the pose-dependent measures, and the values of their rows, for a step that starts at q (n, 12)."""
        if not self.followers:
            return
        self.follow_poses(q)
        memory.history[slots.VALUE], _ = row_values(self.rows, values(self.table, q, memory.reference))

    def follow_poses(self, q: np.ndarray) -> None:
        """Update the pose-dependent measures for a step that starts at q (n, 12)."""
        if not self.followers:
            return
        D, C, d = frames(self.table, q, rigid=True)
        for first, function in self.followers.items():
            T = pose(D[first].T @ C[first], D[first].T @ d[first])
            for k, measure in enumerate(function(T), first):
                self.table.numbers[k] = measure.numbers

    def closed_gap(self, law: np.ndarray, p: np.ndarray, x: np.ndarray) -> int | None:
        """First barrier row whose gap is not positive at values x (R,)."""
        closed = np.flatnonzero((law == Law.BARRIER) & (p[:, slots.SIGN] * (x - p[:, slots.CENTRE]) <= 0.0))
        return int(closed[0]) if len(closed) else None

    def of_rows(self, values: PerBody) -> np.ndarray:
        """(R,) values per measured row from values per body, scalar or (n,); both bodies of a row have the same value.
        """
        return np.full(len(self.rows), values) if np.ndim(values) == 0 else values[self.row_bodies[1]]

    def of_linear(self, values: PerBody) -> np.ndarray:
        """(l,) values per linear row from values per body, scalar or (n,)."""
        return np.full(len(self.linear), values) if np.ndim(values) == 0 else values[self.linear.child]

    def shifts(self, memory: JointMemory, ch2: PerBody) -> np.ndarray:
        """(l, 3) shifts a = -lambda / K of the linear rows in a step of c h^2 [s^2], scalar or (n,)."""
        K, exact = self.linear.K, self.linear.exact
        out = np.zeros(K.shape)
        if exact.any():
            np.divide(-self.of_linear(ch2)[:, None] * memory.linear, K, out=out, where=exact[:, None] & (K > 0.0))
        return out

    def laws(
        self,
        memory: JointMemory,
        weights: np.ndarray,
        ch2: PerBody,
        time: PerBody,
        speed: float,
        stiffness_weight: np.ndarray | float = 1.0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Laws (R,) and their parameters (R, 8) in one substep.

        Args:
            weights: weights of the integrator (`abd.potentials.integrators`), (6,) or (6, R).
            ch2: c h^2 [s^2]; time: end of the substep [s]; both scalar or (n,).
            speed: speed below which friction is static [m/s or rad/s].
            stiffness_weight: weight of the SI stiffness, scalar or (R,) (`abd.joints.rows.springs`).
        """
        a, count = self.row_laws, len(self.rows)
        w = np.broadcast_to(weights.reshape(WEIGHTS, -1), (WEIGHTS, count))
        p = np.zeros((count, slots.COUNT))
        if not count:
            return np.zeros(0, dtype=np.int32), p
        now, before, rate, earlier_rate, _, width = memory.history
        ch2, time = self.of_rows(ch2), self.of_rows(time)
        per_step = w[RATE_NEW]  # d(velocity)/dx: 1 / (beta h)
        last = w[REST_NOW] * now + w[REST_BEFORE] * before + w[REST_RATE] * rate
        target, speed_of_target = self.targets(time, now)
        moving = a.follows & (a.role == Role.DRIVE)
        target = np.where(moving, last + speed_of_target / per_step, target)
        target = np.where(self.turning, np.clip(target, now - REACH, now + REACH), target)

        damped = ch2 * a.damping * per_step
        elastic = a.mass_stiffness + ch2 * stiffness_weight * a.stiffness
        K = elastic + damped
        pull = elastic * target + damped * (last + speed_of_target / per_step)
        centre = np.divide(pull, K, out=target.copy(), where=K > 0.0)
        p[:, slots.STRENGTH], p[:, slots.CENTRE], p[:, slots.TARGET] = K, centre, centre
        held = a.exact & (K > 0.0)
        p[held, slots.CENTRE] -= (ch2 * memory.multiplier)[held] / K[held]
        p[:, slots.EFFORT] = np.where(a.law == Law.SATURATED, ch2 * np.where(np.isfinite(a.effort), a.effort, 1e300), 0.0)

        limit = self.limits
        p[limit, slots.STRENGTH] = (a.mass_stiffness + ch2 * a.stiffness)[limit]
        p[limit, slots.CENTRE], p[limit, slots.SIGN], p[limit, slots.WIDTH] = a.bound[limit], a.sign[limit], a.distance[limit]
        # damping acts on the displacement since the last state, whose rate is 1 / h
        p[limit, slots.DAMPING] = (ch2 * a.damping * w[PER_H])[limit]
        p[limit, slots.LAST_GAP], p[limit, slots.BOUND] = (a.sign * (now - a.bound))[limit], a.bound[limit]
        pulled = limit & held
        p[pulled, slots.CENTRE] += (a.sign * ch2 * memory.multiplier)[pulled] / p[pulled, slots.STRENGTH]

        frictional = a.law == Law.FRICTION
        p[frictional, slots.STRENGTH], p[frictional, slots.CENTRE] = (ch2 * a.effort)[frictional], last[frictional]
        p[frictional, slots.SMOOTHING] = speed / per_step[frictional]
        p[frictional, slots.AIM] = (last + rate / per_step)[frictional]
        pushing = a.law == Law.LINEAR
        p[pushing, slots.STRENGTH] = (ch2 * np.clip(target, -a.effort, a.effort))[pushing]
        turning = a.role == Role.ARMATURE
        # inertia times the acceleration, by the same differences
        inertial = last + (w[REST_NOW] * rate + w[REST_BEFORE] * earlier_rate) / per_step
        p[turning, slots.CENTRE] = p[turning, slots.TARGET] = inertial[turning]
        per_rate = np.where(w[REST_RATE] > 0.0, w[PER_H], per_step)  # a step without history has one acceleration
        p[turning, slots.STRENGTH] *= (ch2 * per_step * per_rate)[turning]
        law = np.where(a.active, a.law, Law.OFF).astype(np.int32)
        p[:, slots.TOLERANCE] = np.where(a.exact, a.tolerance, 0.0)
        for row, force in self.given.items():
            p[row] = 0.0
            p[row, slots.PER_STEP], p[row, slots.LAST], p[row, slots.BEGIN] = per_step[row], last[row], now[row]
            force.set(p[row], now[row], float(ch2[row]), float(time[row]))
        wall = a.law == Law.BARRIER
        p[wall, slots.WIDTH] = width[wall]
        p[wall, slots.STRENGTH] *= (a.distance / width)[wall]  # the force at a given fraction of the width is constant
        return law, p

    def remember(
        self, memory: JointMemory, q: np.ndarray, weights: np.ndarray, p: np.ndarray, shifts: np.ndarray,
        ch2: PerBody,
    ) -> JointMemory:
        """Memory after a step that ends in q; the non-conservative forces are 0.

        Args:
            weights: weights of the integrator, (6,) or (6, R).
            p: (R, 8) parameters of the laws; shifts: (l, 3) of the linear rows.
            ch2: c h^2 [s^2], scalar or (n,).
        """
        linear = np.zeros(shifts.shape)
        if self.linear.exact.any():
            linear = np.where(self.linear.exact[:, None], -self.linear.K * shifts / self.of_linear(ch2)[:, None], 0.0)
        if not len(self.table):
            return JointMemory(memory.reference, memory.history, memory.multiplier, linear)
        a = self.row_laws
        centre = p[:, slots.CENTRE]
        carried = np.where(a.law == Law.ONE_SIDED, a.sign * (centre - p[:, slots.BOUND]), p[:, slots.TARGET] - centre)
        multiplier = np.where(a.exact & a.active, p[:, slots.STRENGTH] * carried / self.of_rows(ch2), 0.0)
        reference = values(self.table, q, memory.reference)
        x, _ = row_values(self.rows, reference)
        now, before, rate, _, _, width = memory.history
        fresh = weights[RATE_NEW] * (x - now - weights[REST_RATE] * rate) + weights[RATE_OLD] * (before - now)
        width = next_widths(width, a.distance, a.sign * (now - a.bound), a.sign * (x - a.bound))
        return JointMemory(reference, np.stack([x, now, fresh, rate, np.zeros(len(x)), width]), multiplier, linear)

    def after_impacts(self, memory: JointMemory, q: np.ndarray, change: np.ndarray) -> JointMemory:
        """Memory in the state q (n, 12) after impacts that change the velocities by `change` (n, 12)."""
        history = memory.history.copy()
        history[slots.RATE] += self.rates(q, change, memory.reference)
        return replace(memory, history=history)

    def rotor_energy(self, memory: JointMemory) -> float:
        """Kinetic energy of all rotors [J]."""
        a = self.row_laws
        rotors = a.active & (a.role == Role.ARMATURE)
        return float(0.5 * (a.mass_stiffness * memory.history[slots.RATE] ** 2)[rotors].sum())

    def rates(self, q: np.ndarray, qd: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Rates (R,) of the rows in a state q, qd (n, 12), with angles counted from values `reference` (m,) of measures."""
        return self._along_rows(*motion(self.table, q, qd, reference))[1]

    def linearize(self, q: np.ndarray, reference: np.ndarray | None = None) -> tuple[np.ndarray, list[tuple]]:
        """Values (R,) of the rows in q (n, 12); for the children and the parents: bodies (T,), and derivatives (T, 12) of the
        terms by their states."""
        measured, *gradients = linearize(self.table, q, reference)
        x, slope = row_values(self.rows, measured)
        m, bodies = self.rows.term_measure, (self.table.child, self.table.parent)
        return x, [(body[m], slope[:, None] * one[m]) for body, one in zip(bodies, gradients, strict=True)]

    def _along_rows(self, measured: np.ndarray, speeds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and rates (R,) of the rows from those of the measures (m,)."""
        x, slope = row_values(self.rows, measured)
        rate = np.zeros(len(x))
        np.add.at(rate, self.rows.term_row, slope * speeds[self.rows.term_measure])
        return x, rate

    def targets(self, time: np.ndarray, now: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        a = self.row_laws
        target, rate = a.target.copy(), a.rate.copy()
        for row, function in a.target_of.items():
            target[row] = function(float(time[row]))
        for row, function in a.rate_of.items():
            rate[row] = function(float(time[row]))
        return np.where(a.follows, now, target), rate
