"""A mechanism in rigid poses: joint values, graph of links, exact motions of bridges, and independent rows.

A joint outside loops (a bridge) is placed by moving one side of the graph: the child's side, or the parent's side if
the child's contains the ground.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from abd.joints.closure.link_graph import LinkGraph, connected_labels, link_graph
from abd.joints.coordinates.configurations import transform
from abd.joints.rows.laws import Role
from abd.joints.rows.placement import motion_to, move_bodies, present_transform
from abd.joints.rows.rigid_rows import GROUND, Clusters, RigidRows, clusters_of, rigid_states, single_clusters
from abd.model import Model

TOLERANCE = 1e-12
"""Residual of closed joints [m or rad], unless rounding limits it."""
MISPLACED = 1e-6
"""Deviation of T_CD from the transform at its coordinates that indicates a false position, such as a reversed axis."""
PERTURBATION = 0.3
"""Largest rotation about each axis [rad], and shift as a fraction of the unit of length, of `Linkage.perturbed_states`."""
DENSE_ROWS = 1500
"""Largest number of rows or columns of a Jacobian for a dense analysis."""
RANK = 1e-9
"""Pivots below this fraction of the largest one count as zero."""
INDEPENDENT = 1e-7
"""Fraction of the length of an independent row that must be outside the span of others."""


class Linkage:
    """Rigid poses of a model and the rows of its joints; c coordinates of all joints.

    Attributes:
        q: (n, 12) rigid states; near: (m,) values of the measures near which angles are counted.
        places: (c,) rows of the coordinates; keys: (joint index, name) of each; row_of: key -> row.
        lower, upper: (R,) ranges of the rows; locks are ranges of zero width, gaps start at zero.
        hard: rows of constraints and couplings.
        tolerance: residual of closed rows [m or rad].
        graph: links of the active joints with constraint rows or couplings, and of the joints `linked` (requested, or
            with violated gaps); edge_of: their edges; ties: (k, 2) edges of coupled joints.
        bridges: joints without loop and coupling.
        group: (j,) loop block of every joint in the graph, merged by couplings; -1 for other joints.
    """

    def __init__(
        self, model: Model, rows: RigidRows, q: np.ndarray, reference: np.ndarray | None, linked: Iterable[int]
    ):
        model = self.model = replace(model, joints=list(model.joints))
        self.rows, self.q = rows, rigid_states(q)
        self.places = rows.coordinates()
        self.keys = [(int(rows.joint[r]), rows.name[r]) for r in self.places]
        self.row_of = dict(zip(self.keys, self.places.tolist(), strict=True))
        owner = rows.joint[self.places]
        cuts = np.searchsorted(np.sort(owner), np.arange(1, len(model.joints)))
        self.of_joint = np.split(self.places[np.argsort(owner, kind="stable")], cuts) if model.joints else []
        self.measure = rows.system.rows.term_measure[rows.system.rows.starts[:-1]]
        near = rows.system.initial.copy()
        if reference is not None:
            near[self.measure[self.places]] = reference
        self.near = rows.values(self.q, near)[1]
        extent = np.abs(self.q[:, :3]).max(initial=0.0)
        self.tolerance = max(TOLERANCE, 64.0 * np.finfo(float).eps * extent)
        self.hard = np.flatnonzero(rows.held & (rows.role != Role.GAP))
        self.lower, self.upper = self._ranges()
        coupled = sorted(set(rows.coupling[self.hard].tolist()) - {-1})
        ties = [(model.couplings[k].joint, term.joint) for k in coupled for term in model.couplings[k].terms]
        holding = set(rows.joint[self.hard].tolist()).union(linked, *ties)
        joints = sorted(k for k in holding if model.joints[k].active)
        self.graph, self.edge_of = graph_of(model, rows, joints), {k: edge for edge, k in enumerate(joints)}
        self.bridges = {k for k, edge in self.edge_of.items() if self.graph.bridge[edge]}.difference(*ties)
        self.ties = np.array([(self.edge_of[a], self.edge_of[b]) for a, b in ties], dtype=int).reshape(-1, 2)
        self.group = np.full(len(model.joints), -1)
        self.group[joints] = self.graph.tied(self.ties)[: len(joints)]

    def _ranges(self) -> tuple[np.ndarray, np.ndarray]:
        rows, now = self.rows, self.values()
        lower, upper = np.full(len(rows), -np.inf), np.full(len(rows), np.inf)
        lower[(rows.role == Role.GAP) & rows.held] = 0.0
        for k, joint in enumerate(self.model.joints):
            for settings in joint.coordinates if joint.active else ():
                row = self.row_of[k, settings.name]
                lower[row], upper[row] = settings.lower, settings.upper
                if settings.locked:
                    lower[row] = upper[row] = now[row] if settings.lock_value is None else settings.lock_value
        return lower, upper

    # read-outs ---------------------------------------------------------------------------------------------------

    def values(self) -> np.ndarray:
        """(R,) values of all rows."""
        return self.rows.values(self.q, self.near)[0]

    def deviation(self, k: int, values: np.ndarray) -> float:
        """Largest entry of the difference between T_CD and the transform at the joint's coordinates; 0 without one."""
        joint = self.model.joints[k]
        T = transform(joint, values[self.of_joint[k]])
        return 0.0 if T is None else float(np.abs(present_transform(joint, self.q) - T).max())

    def misplaced(self, values: np.ndarray) -> list[int]:
        """Joints in a false position at values (R,), of those whose closed rows and coordinates determine T_CD."""
        yielding = set(self.rows.joint[self.rows.yields & ~self.rows.held].tolist())
        largest = MISPLACED * max(1.0, self.rows.length)
        return [k for k in sorted(self.edge_of.keys() - yielding) if self.deviation(k, values) > largest]

    def rows_of(self, groups: np.ndarray) -> np.ndarray:
        """Constraint and coupling rows of groups."""
        return self.hard[np.isin(self.group[self.rows.joint[self.hard]], groups)]

    def jacobian(self):
        """Sparse (R, 6 n) derivatives of all rows, dimensionless, by the twists of the movable bodies."""
        spread = single_clusters(self.rows).spread(self.q, self.rows.length)
        return (self.rows.jacobian(self.q, self.near) @ spread).tocsr()

    def violated_gaps(self) -> set[int]:
        """Joints with a violated gap."""
        beyond = (self.rows.role == Role.GAP) & self.rows.held & (self.values() < -2.0 * self.tolerance)
        return set(self.rows.joint[beyond].tolist())

    # exact motions -----------------------------------------------------------------------------------------------

    def place_bridges(self, goals: dict[int, float]) -> set[int]:
        """Place every bridge that has a goal (row -> value), differs from its lock or is open; returns the goal rows that
        were set.
        """
        done: set[int] = set()
        values = self.values()  # placing one bridge does not change the coordinates of the others
        for k in sorted(self.bridges):
            joint_rows = self.of_joint[k].tolist()
            aim = np.clip(values[joint_rows], self.lower[joint_rows], self.upper[joint_rows])
            aim = np.array([goals.get(row, value) for row, value in zip(joint_rows, aim, strict=True)])
            T = transform(self.model.joints[k], aim)
            if T is None or (np.array_equal(aim, values[joint_rows]) and self.deviation(k, values) <= self.tolerance):
                continue
            if self._place(k, T):
                self.near[self.measure[joint_rows]] = aim
                done.update(row for row in joint_rows if row in goals)
        return done

    def _place(self, k: int, T: np.ndarray) -> bool:
        """Give a bridge the transform T by moving its free side; False if there is none."""
        joint, ground, edge = self.model.joints[k], self.graph.ground, self.edge_of[k]
        parent, child = self.graph.ends[edge]
        for start, of_child in ((child, True), (parent, False)):
            side = self.graph.side(edge, start)
            if not side[ground]:
                move_bodies(self.q, motion_to(joint, self.q, T, of_child), side[:-1])
                return True
        return False

    def tree_states(self) -> np.ndarray:
        """(n, 12) states with the joints of a spanning tree closed, from the ground outwards."""
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import breadth_first_order

        q, values = self.q.copy(), self.values()
        ends, size = self.graph.ends, len(self.graph.component)
        links = csr_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(size, size))
        order, before = breadth_first_order(links, self.graph.ground, directed=False)
        between: dict[frozenset[int], int] = {}
        for k, edge in self.edge_of.items():
            between.setdefault(frozenset(ends[edge].tolist()), k)
        for node in order[1:].tolist():
            k = between.get(frozenset((node, int(before[node]))))
            if k is None:
                continue
            joint, joint_rows = self.model.joints[k], self.of_joint[k]
            T = transform(joint, np.clip(values[joint_rows], self.lower[joint_rows], self.upper[joint_rows]))
            if T is not None:
                move_bodies(q, motion_to(joint, q, T, joint.child == node), np.arange(len(q)) == node)
        return q

    def perturbed_states(self) -> np.ndarray:
        """(n, 12) states with a reproducible random motion of the open groups, to leave a saddle of the residual."""
        clusters = self.clusters(self.open_groups())
        twists = np.random.default_rng(0).uniform(-PERTURBATION, PERTURBATION, (clusters.count, 6))
        return clusters.move(self.q, twists, self.rows.length)

    def open_groups(self) -> np.ndarray:
        """Groups with a joint that is open, out of its range or in a false position."""
        rows, values, slack = self.rows, self.values(), 2.0 * self.tolerance
        is_open = worst_residuals(rows, values, len(self.model.joints)).max(axis=1, initial=0.0) > self.tolerance
        is_open[rows.joint[(values < self.lower - slack) | (values > self.upper + slack)]] = True
        is_open[self.misplaced(values)] = True
        return np.unique(self.group[is_open & (self.group >= 0)])

    def clusters(self, groups: np.ndarray) -> Clusters:
        """Clusters of bodies while the joints of groups move."""
        graph = self.graph
        kept = [edge for k, edge in self.edge_of.items() if self.group[k] not in groups]
        label = connected_labels(len(graph.component), graph.ends[kept])
        moves = self.rows.movable & (label[:-1] != label[-1]) & np.isin(np.arange(len(label) - 1), graph.ends)
        return clusters_of(self.rows, np.where(moves, label[:-1], GROUND))


def graph_of(model: Model, rows: RigidRows, linked: Iterable[int]) -> LinkGraph:
    """Graph of the joints `linked`; bodies that lack a freedom have an edge to the ground."""
    tethered = np.flatnonzero(rows.movable & ~rows.free).tolist()
    parent = [model.joints[k].parent for k in linked] + [-1] * len(tethered)
    child = [model.joints[k].child for k in linked] + tethered
    return link_graph(np.array(parent, dtype=int), np.array(child, dtype=int), rows.movable)


def worst_residuals(rows: RigidRows, values: np.ndarray, joints: int) -> np.ndarray:
    """(j, 2) largest residual [m], [rad] of the held rows of each joint, at values (R,) of the rows.

    Gaps count if negative, couplings at the joint of their q0.
    """
    out = np.zeros((joints, 2))
    size = np.where(rows.role == Role.GAP, np.maximum(-values, 0.0), np.abs(values - rows.target))
    for column in (0, 1):
        held = rows.held & (rows.rotary == bool(column))
        np.maximum.at(out[:, column], rows.joint[held], size[held])
    return out


def independence(J) -> tuple[int, np.ndarray, np.ndarray] | None:
    """Rank analysis of a sparse J (r, c); None if it is larger than `DENSE_ROWS`.

    Returns:
        rank; (r - rank,) dependent rows, ascending; (c, c - rank) orthonormal basis of the null space.
    """
    from scipy.linalg import qr

    r, c = J.shape
    if max(r, c) > DENSE_ROWS:
        return None
    if r == 0 or c == 0:
        return 0, np.arange(r), np.eye(c)
    Q, R, order = qr(J.toarray().T, pivoting=True)
    pivots = np.abs(np.diag(R))
    rank = int(np.sum(pivots > RANK * max(pivots[0], 1e-300)))
    return rank, np.sort(order[rank:]), Q[:, rank:]


def independent_in_order(extra: np.ndarray, motions: np.ndarray) -> np.ndarray:
    """(k,) bool: which rows of extra (k, c) change along `motions` (c, f), independently of preceding rows."""
    out = np.zeros(len(extra), dtype=bool)
    basis = np.zeros((0, motions.shape[1]))
    for k, row in enumerate(extra):
        along = row @ motions
        along = along - (basis @ along) @ basis
        size = np.linalg.norm(along)
        if size > INDEPENDENT * max(np.linalg.norm(row), 1e-300):
            out[k] = True
            basis = np.vstack([basis, along / size])
    return out
