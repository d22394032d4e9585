"""Separation of bodies that touch or overlap at the start, by minimal translations.

Bodies connected by joints form a group, which is translated as a whole. Static and kinematic bodies, and groups jointed to them
or to the world, do not move. The translations x of all groups of a cluster solve one linear program,

    minimise sum |x|  -  (large) s,   0 <= s <= 1
    u . (x_a - x_b) >= s gap_k - g                      for touching pairs with the gap g <= 0 along the direction u
    u . (x_a - x_b) >= (1 + s) / 2 min(gap_k, g) - g    for close pairs, which keep at least half of their gap

where gap_k is `FINAL_GAP` times the pair's activation, so that its contact is not much stiffer than others. s is the fraction of
the final gaps that is reached, 1 if the obstacles allow it. Pairs that touch after the translations are added to the program,
until none touches. Overlapping pairs are treated alike along the displacement of `abd.scene.overlaps.escape`, but only to report
the translations: a scene with overlaps is refused.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.errors import Problem
from abd.joint_list import JointList
from abd.joints.closure.link_graph import connected_labels, joined_components, members
from abd.model import WORLD, Kind, Model
from abd.scene.overlaps.intersections import DIGITS, MOST_DEEP, Separation, Survey, Surveyor

MAX_PASSES = 12
FINAL_GAP = 0.01
"""Final gap of touching bodies, relative to the activation of the pair."""
SMALLEST_FRACTION = 5e-3
"""Smallest gap of a solution, relative to the largest overlap of touching bodies."""
LISTED = 10
"""Largest number of listed deep pairs, and of deep pairs that are separated together."""
MOVES_NAMED = 3
"""Largest number of bodies in a remedy."""
_PRINTED = 1.0 + 1e-5
"""Factor of a displacement, so that the printed digits separate the pair."""
PREFERENCE = 1e3
"""Weight of the fraction s in the objective, over the displacement of one group by one gap."""


def separate(surveyor: Surveyor, q: np.ndarray, found: Survey) -> tuple[np.ndarray, list[Separation]]:
    """Return states without touching pairs, and without deep overlaps if there are any at q.

    Args:
        q: (n, 12) states; found: result of the survey of q.

    Returns:
        (n, 12) states, equal to `q` for bodies that do not move, and the pairs that cannot be separated.
    """
    groups = _Groups(surveyor.model, q)
    touching = [*found.touching, *_escapes(surveyor, q, found)]
    x = np.zeros((groups.count, 3))
    for _ in range(MAX_PASSES):
        stuck = [pair for pair in touching if groups.fixed_together(pair)]
        if stuck:
            return q, stuck
        x, near_margin = np.zeros_like(x), 0.0
        near: list[Separation] = []
        while True:
            x, stuck = _solve(surveyor, groups, touching, near, np.abs(q[:, :3]).max(initial=0.0))
            if stuck:
                return q, stuck
            travel = 2.0 * float(np.linalg.norm(x, axis=1).max(initial=0.0))
            if travel <= near_margin:
                break
            near_margin = 4.0 * travel
            moved = groups.moved(np.ones(groups.count, dtype=bool))
            near = surveyor.survey(q, near_margin, moved).near
        moves, apart = groups.of_bodies(x), q.copy()
        apart[:, :3] += moves
        again = surveyor.survey(apart, 0.0, groups.moved(x.any(axis=1)))
        if again.deep and not found.deep:
            return q, touching
        if not again.touching and not again.deep:
            return apart, []
        for pair in again.touching + _escapes(surveyor, apart, again):
            shift = pair.direction @ (moves[pair.first] - moves[pair.second])
            touching.append(replace(pair, gap=pair.gap - float(shift)))
    return q, touching


def overlap_problems(surveyor: Surveyor, q: np.ndarray, found: Survey, when: str) -> list[Problem]:
    """Return the deep pairs at q (n, 12) as problems, the deepest first, at most `LISTED` of them and how many more there are.

    The remedy is one translation of every body that frees it from all others. The value of a problem is the depth [m]; if there
    are more pairs, the value of the last problem is their number.
    """
    if not found.deep:
        return []
    deep = sorted(found.deep, key=lambda one: (-one[2], one[:2]))
    listed = Survey(found.touching, [], deep[:LISTED])
    apart = separate(surveyor, q, listed)[0] if len(deep) <= LISTED else q
    moves = (apart - q)[:, :3]
    others = np.setdiff1d(np.flatnonzero(moves.any(axis=1)), [body for pair in deep for body in pair[:2]])
    problems = [_problem(surveyor, q, when, *pair[:2], moves, others) for pair in listed.deep]
    problems.sort(key=lambda problem: -problem.value)
    more = len(deep) - len(problems)
    if more > 0:
        least = "at least " if len(deep) >= MOST_DEEP else ""
        pairs = "pairs intersect" if more > 1 else "pair intersects"
        problems.append(Problem(f"{least}{more} more {pairs} {when}", value=more, remedy="correct the deepest first"))
    return problems


def _problem(
    surveyor: Surveyor, q: np.ndarray, when: str, i: int, j: int, moves: np.ndarray, others: np.ndarray
) -> Problem:
    """Return the problem of a deep pair.

    Args:
        moves: (n, 3) translations that separate all bodies [m], zero if there are none; others: moved bodies without overlap.
    """
    bodies, step = surveyor.model.bodies, surveyor.escape(q, i, j)
    names, mover = bodies.names, i if bodies.kind[i] == Kind.DYNAMIC else j
    moved = [k for k in (i, j) if moves[k].any()]
    effect = "separates them"
    if moved:
        moved += others.tolist()
        effect = f"and {len(moved) - MOVES_NAMED} more {effect}" if len(moved) > MOVES_NAMED else effect
    else:
        moves, moved = np.zeros_like(moves), [mover]
        moves[mover] = step if mover == i else -step
        effect = f"{effect}, but may not free it from others"
    vectors = [", ".join(f"{x:.6g}" for x in (_PRINTED * moves[k] + 0.0).tolist()) for k in moved[:MOVES_NAMED]]
    listed = " and ".join(f"'{names[k]}' by ({vector}) m" for k, vector in zip(moved, vectors))
    depth = float(np.linalg.norm(step))
    return Problem(
        f"'{names[i]}' {surveyor.relation(q, i, j)} '{names[j]}' {when}, depth {depth:.3g} m",
        key=f"body.{names[mover]}",
        value=depth,
        remedy=f"moving {listed} {effect}; or exclude their contact (contact filter, group, material pair, joint)",
    )


def _escapes(surveyor: Surveyor, q: np.ndarray, found: Survey) -> list[Separation]:
    """Return the deep pairs of a survey of q with the directions of their shortest known escape."""
    steps = [(i, j, surveyor.escape(q, i, j)) for i, j, _ in found.deep]
    lengths = [float(np.linalg.norm(step)) for *_, step in steps]
    return [Separation(i, j, step / length, -length) for (i, j, step), length in zip(steps, lengths, strict=True)]


class _Groups:
    """Groups of bodies that move together.

    Attributes:
        label: (n,) group of every body that may move, -1 for others; count: number of groups.
        free: (count, 3) bool, world axes along which a group may move.
    """

    def __init__(self, model: Model, q: np.ndarray):
        bodies = model.bodies
        parts = joined_components(model)
        free = np.ones((int(parts.max(initial=-1)) + 1, 3), dtype=bool)
        ends = JointList.of(model.joints).bodies
        held = np.zeros(len(q), dtype=bool)
        for mine, other in ((0, 1), (1, 0)):
            supported = ends[:, mine] != WORLD
            still = (ends[:, other] == WORLD) | (bodies.kind[ends[:, other]] != Kind.DYNAMIC)
            held[ends[supported & still, mine]] = True
        held |= bodies.kind != Kind.DYNAMIC
        np.logical_and.at(free, parts, bodies.free_translation & ~held[:, None])
        mobile = free.any(axis=1)
        number = np.cumsum(mobile) - 1
        self.label = np.where(mobile[parts], number[parts], -1)
        self.free, self.count = free[mobile], int(mobile.sum())

    def of_bodies(self, x: np.ndarray) -> np.ndarray:
        """Return (n, 3) translations of all bodies from those of the groups (count, 3)."""
        return np.concatenate([x, np.zeros((1, 3))])[self.label]

    def moved(self, chosen: np.ndarray) -> np.ndarray:
        """Return (n,) bool, bodies of the chosen groups (count,)."""
        return np.append(chosen, False)[self.label]

    def fixed_together(self, pair: Separation) -> bool:
        """Return whether no allowed translation changes the gap of a pair along its direction."""
        a, b = self.label[pair.first], self.label[pair.second]
        able = any(k >= 0 and (self.free[k] & (np.abs(pair.direction) > 1e-9)).any() for k in (a, b))
        return a == b or not able


def _solve(
    surveyor: Surveyor, groups: _Groups, touching: list[Separation], near: list[Separation], extent: float
) -> tuple[np.ndarray, list[Separation]]:
    """Return translations (count, 3) of the groups, cluster by cluster, and the pairs that cannot be separated."""
    pairs = touching + near
    first, second = (np.array([getattr(pair, name) for pair in pairs], dtype=int) for name in ("first", "second"))
    u, gap = np.array([pair.direction for pair in pairs]), np.array([pair.gap for pair in pairs])
    u[np.abs(u) < 1e-9] = 0.0
    rounding = surveyor.rounding(first, second)
    wanted = np.maximum.reduce(
        [rounding, np.full(len(pairs), DIGITS * extent), FINAL_GAP * surveyor.activation(first, second)]
    )
    matrix = _matrix(u, groups.label[first], groups.label[second], groups.free)
    # unknowns that no row couples, such as the axes of a lattice, are solved separately
    rows, columns = matrix.nonzero()
    leading = np.full(len(pairs), -1)
    leading[rows[::-1]] = columns[::-1]
    cluster = connected_labels(matrix.shape[1], np.stack([leading[rows], columns], axis=1))
    of_pair = np.where(leading >= 0, cluster[leading], -1)
    x, stuck = np.zeros(matrix.shape[1]), []
    for some in members(of_pair):
        if some[0] >= len(touching) or of_pair[some[0]] < 0:
            continue  # no touching pairs in this cluster
        mine = np.flatnonzero(cluster == of_pair[some[0]])
        x[mine], fraction = _program(matrix[some][:, mine], gap[some], wanted[some])
        if fraction * wanted[some].min() < SMALLEST_FRACTION * rounding[some].min():
            stuck += [pairs[k] for k in some if k < len(touching)]
    return x.reshape(-1, 3), stuck


def _matrix(u: np.ndarray, a: np.ndarray, b: np.ndarray, free: np.ndarray):
    """Return the sparse matrix (m, 3 count) of ``u . (x_a - x_b)`` for pairs of groups a, b (m,), -1 for none, along u (m, 3)."""
    from scipy.sparse import coo_matrix

    rows, columns, values = [], [], []
    for group, sign in ((a, 1.0), (b, -1.0)):
        for axis in range(3):
            there = np.flatnonzero((group >= 0) & (u[:, axis] != 0.0) & np.append(free[:, axis], False)[group])
            rows.append(there)
            columns.append(3 * group[there] + axis)
            values.append(sign * u[there, axis])
    rows, columns, values = (np.concatenate(part) for part in (rows, columns, values))
    return coo_matrix((values, (rows, columns)), shape=(len(u), 3 * len(free))).tocsr()


def _program(matrix, gap: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, float]:
    """Solve the linear program for translations (v,) and the fraction s, which is 0 if the program is infeasible."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix, hstack

    scale, size = float(wanted.max()), matrix.shape[1]
    gap, wanted = gap / scale, wanted / scale
    touching, half = gap <= 0.0, 0.5 * np.minimum(wanted, gap)
    kept = np.where(touching, wanted, half)
    slack = np.where(touching, gap, gap - half)
    # x = x+ - x-; the last unknown is s
    bounds = np.stack([np.zeros(2 * size + 1), np.append(np.full(2 * size, np.inf), 1.0)], axis=1)
    cost = np.append(np.ones(2 * size), -PREFERENCE * size)
    answer = linprog(
        cost,
        A_ub=hstack([-matrix, matrix, csr_matrix(kept[:, None])]).tocsr(),
        b_ub=slack,
        bounds=bounds,
        method="highs",
    )
    if answer.x is None:
        return np.zeros(size), 0.0
    return scale * (answer.x[:size] - answer.x[size : 2 * size]), float(answer.x[-1])
