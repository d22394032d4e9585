"""Assembly: rigid poses at which all joints are closed and requested coordinates have their values.

A coordinate of a joint outside loops is set exactly, by moving one side of the joint. Loops are closed by projection,
along a path of small steps from the present to the requested values, so that they stay on their branch. Meanwhile
joints outside loops keep their coordinates. Dynamic bodies move; kinematic and static bodies do not. The result is
rigid, without strain.

Each requested coordinate has one of these states (the terms of ArtiSynth's CoordinateSetter):

    "free"       it has its value
    "limited"    the value was outside its range, or a range, a lock or the reach of a loop limited it
    "dependent"  other joints and earlier requests determine it

Coordinates out of their range, such as those that barriers still move back, stay there unless requested.
Other coordinates are "dependent" (on requests or constant), "limited" (at an end of their range) or "free". They are
"unknown" on loops that are open or too large for an analysis, and in inactive joints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from abd.joints.closure.linkage import INDEPENDENT, Linkage, independence, independent_in_order, worst_residuals
from abd.joints.closure.projection import Projected, project
from abd.joints.rows.rigid_rows import follows_pose, rigid_rows, rigid_states
from abd.model import Model

PATH_TURN = np.radians(15.0)
"""Change of a requested angle per step along the path; lengths change by the same fraction of the unit of length."""
LARGEST_JUMP = 1.0
"""Change of any angle per step [rad] beyond which the step is halved: a loop may have left its branch."""
PASSES = 4
"""Largest number of passes, for ropes that become taut and profiles whose nearest segment changes."""
SHORTEST = 1e-6
"""Fraction of the path below which steps are not halved."""


@dataclass(frozen=True)
class Assembly:
    """Result of `assemble`; c coordinates of all joints, j joints.

    Attributes:
        q: (n, 12) rigid states.
        coordinates: (joint index, name) of every coordinate.
        values: (c,) [m or rad], angles counted from the requested or reference values.
        status: "free", "limited", "dependent" or "unknown" of every coordinate.
        requested: (c,) bool.
        residual: (j, 2) largest residual of the constraint rows of every joint [m], [rad]; of couplings at the joint of
            q0.
        converged: all joints are closed.
        iterations: linear systems solved; 0 without loops.
    """

    q: np.ndarray
    coordinates: list[tuple[int, str]]
    values: np.ndarray
    status: list[str]
    requested: np.ndarray
    residual: np.ndarray
    converged: bool
    iterations: int


def assemble(
    model: Model,
    q: np.ndarray,
    requests: Mapping[tuple[int, str], float] | None = None,
    reference: np.ndarray | None = None,
    compliant: bool = True,
) -> Assembly:
    """Close all active joints and set coordinates.

    Args:
        q: (n, 12) initial states.
        requests: (joint index, coordinate name) -> value [m or rad]; earlier requests take precedence in conflicts.
        reference: (c,) values near which angles are counted, in the order of `Assembly.coordinates`; default: the
            initial values of the scene.
        compliant: whether rows with a compliance are also closed.

    Raises:
        KeyError: there is no such coordinate.
    """
    requests = dict(requests or {})
    linked, at = {joint for joint, _ in requests}, rigid_states(q)
    for _ in range(PASSES):
        rows = rigid_rows(model, at)
        if not compliant:
            rows = replace(rows, held=rows.held & ~rows.yields)
        assembler = _Assembler(model, rows, q, reference, linked)
        result = assembler.solve({assembler.row_of[key]: float(value) for key, value in requests.items()})
        # Ropes are ignored until they are too short; profiles are evaluated at the pose that was found.
        short = assembler.violated_gaps() - linked
        result = replace(result, converged=result.converged and not short)
        if not short:
            after = rigid_rows(model, result.q) if follows_pose(model) else rows
            if np.array_equal(*(one.values(result.q)[0][rows.held] for one in (rows, after))):
                break
        linked, at = linked | short, result.q
    return result


class _Assembler(Linkage):
    """Solver of one assembly.

    Attributes:
        active: rows of coordinates and gaps that are at the end of their range.
        iterations: linear systems solved.
    """

    active = np.zeros(0, dtype=int)
    iterations = 0

    def solve(self, wanted: dict[int, float]) -> Assembly:
        """Set the coordinates of bridges, close the loops, then follow the remaining requests."""
        rest = np.setdiff1d(self.places, list(wanted))
        rest = rest[self.lower[rest] < self.upper[rest]]
        now = self.values()[rest]
        self.lower[rest], self.upper[rest] = np.minimum(self.lower[rest], now), np.maximum(self.upper[rest], now)
        goals = {row: float(np.clip(value, self.lower[row], self.upper[row])) for row, value in wanted.items()}
        status = {row: "free" if goals[row] == wanted[row] else "limited" for row in wanted}
        placed = self.place_bridges(goals)
        converged = self._close()
        group = {row: int(self.group[self.rows.joint[row]]) for row in goals if row not in placed}
        followed: list[int] = []
        for number in sorted(set(group.values())):
            own_goals = {row: goals[row] for row in group if group[row] == number}
            if converged and number >= 0:
                followed += self._follow_path(number, own_goals, status)
            else:
                status.update(dict.fromkeys(own_goals, "unknown"))
        self._set_remaining_status(status, followed)
        values = self.values()
        return Assembly(
            q=self.q,
            coordinates=self.keys,
            values=values[self.places],
            status=[status[row] for row in self.places.tolist()],
            requested=np.isin(self.places, list(wanted)),
            residual=worst_residuals(self.rows, values, len(self.model.joints)),
            converged=converged,
            iterations=self.iterations,
        )

    def _close(self) -> bool:
        """Close open groups from the present poses, from those of a spanning tree, and from perturbed poses."""
        best = np.inf
        start = found = self.q, self.near
        for states in (None, self.tree_states, self.perturbed_states):
            self.q, self.near = start
            self.q = self.q if states is None else states()
            result, active = self._project(self.open_groups(), [], np.zeros(0))
            self.q, self.near = result.q, result.reference
            values = self.values()
            if result.converged and not self.misplaced(values):
                self.active = active
                return True
            size = worst_residuals(self.rows, values, len(self.model.joints)).max(initial=0.0)
            if size < best:
                best, found = size, (self.q, self.near)
        self.q, self.near = found
        return False

    def _project(self, groups, goals, target: np.ndarray) -> tuple[Projected, np.ndarray]:
        """Move groups of joints onto their rows and the goals (rows), and activate violated ends of ranges.

        Also returns the rows at active ends.
        """
        rows = self.rows
        slack = 2.0 * self.tolerance
        hard, clusters = self.rows_of(groups), self.clusters(groups)
        moving = np.isin(self.group[rows.joint], groups)
        active = np.setdiff1d(np.flatnonzero(moving & (self.lower == self.upper)), goals)
        while True:
            now, lower, upper = self.values()[active], self.lower[active], self.upper[active]
            ends = np.where(np.abs(now - lower) <= np.abs(now - upper), lower, upper)
            chosen = np.concatenate([hard, active, goals]).astype(int)
            aim = np.concatenate([rows.target[hard], ends, target])
            result = project(rows, self.q, chosen, aim, clusters, self.tolerance, self.near)
            self.iterations += result.iterations
            values = rows.values(result.q, result.reference)[0]
            beyond = np.flatnonzero(moving & ((values < self.lower - slack) | (values > self.upper + slack)))
            beyond = np.setdiff1d(beyond, chosen)
            if not result.converged or not len(beyond):
                return result, active
            active = np.union1d(active, beyond)

    def _follow_path(self, group: int, goals: dict[int, float], status: dict[int, str]) -> list[int]:
        """Move the goals (row -> value) of one group to their values in small steps; returns the independent goals.

        Joints outside the group keep their coordinates.
        """
        rows = self.rows
        index = np.array(list(goals), dtype=int)
        independent = self._independent(group, index)
        status.update(dict.fromkeys(index[~independent].tolist(), "dependent"))
        index = index[independent]
        if not len(index):
            return []
        start, end = self.values()[index], np.array([goals[row] for row in index.tolist()])
        unit = np.where(rows.rotary[index], 1.0, rows.length)
        longest = 1.0 / max(1, int(np.ceil(np.max(np.abs(end - start) / unit) / PATH_TURN)))
        turning = self.places[rows.rotary[self.places]]
        done, stride, ends = 0.0, longest, np.zeros(0, dtype=int)
        while done < 1.0:
            fraction = min(1.0, done + stride)
            target = start + fraction * (end - start) if fraction < 1.0 else end
            result, active = self._project([group], index, target)
            turned = rows.values(result.q, result.reference)[0][turning] - self.values()[turning]
            if result.converged and np.abs(turned).max(initial=0.0) <= LARGEST_JUMP:
                self.q, self.near, ends, done = result.q, result.reference, active, fraction
                stride = min(2.0 * stride, longest)
            elif stride < SHORTEST:
                status.update(dict.fromkeys(index.tolist(), "limited"))
                break
            else:
                stride /= 2.0
        self.active = np.union1d(self.active[self.group[rows.joint[self.active]] != group], ends)
        return index.tolist()

    def _free_motions(self, J, group: int, held: np.ndarray, index: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Motions (c, f) that the joints of a group and further rows `held` permit, and derivatives (k, c) of the rows
        `index`.

        None if the group is too large.
        """
        J = J[np.concatenate([self.rows_of([group]), held, index])]
        J = J[:, np.unique(J.indices)]
        split = J.shape[0] - len(index)
        found = independence(J[:split])
        return None if found is None else (found[2], J[split:].toarray())

    def _independent(self, group: int, index: np.ndarray) -> np.ndarray:
        """(k,) bool, which coordinates (rows) are independent of joints, locks and preceding coordinates."""
        locks = np.flatnonzero((self.lower == self.upper) & (self.group[self.rows.joint] == group))
        found = self._free_motions(self.jacobian(), group, np.setdiff1d(locks, index), index)
        return np.ones(len(index), dtype=bool) if found is None else independent_in_order(found[1], found[0])

    def _set_remaining_status(self, status: dict[int, str], followed: list[int]) -> None:
        """Set the status of the coordinates without request; `followed` are the independent requests on loops."""
        rest = np.array([row for row in self.places.tolist() if row not in status], dtype=int)
        at_end = np.isin(rest, self.active) | (self.lower[rest] == self.upper[rest])
        status.update((row, "limited" if end else "free") for row, end in zip(rest.tolist(), at_end, strict=True))
        # A bridge without coupling is free; the status of other joints depends on their group.
        owner = self.rows.joint[rest]
        undecided = ~at_end & (self.group[owner] >= 0) & ~np.isin(owner, list(self.bridges))
        held = np.union1d(np.array(followed, dtype=int), self.active)
        J = self.jacobian() if undecided.any() else None
        for number in np.unique(self.group[owner[undecided]]):
            undecided_rows = rest[undecided & (self.group[owner] == number)]
            found = self._free_motions(J, number, held[self.group[self.rows.joint[held]] == number], undecided_rows)
            if found is None:
                status.update(dict.fromkeys(undecided_rows.tolist(), "unknown"))
                continue
            motions, along = found
            free = np.linalg.norm(along @ motions, axis=1) > INDEPENDENT * np.linalg.norm(along, axis=1)
            status.update((row, "free" if f else "dependent") for row, f in zip(undecided_rows.tolist(), free, strict=True))
