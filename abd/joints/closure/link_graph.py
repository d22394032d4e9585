"""Graph of links: bodies and one ground as nodes, joints as edges; loops and bridges.

The ground is the world and every body that does not move. An edge outside loops is a *bridge*: removing it separates
the graph into two sides, and its coordinates can be set independently of other joints.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.joint_list import JointList
from abd.model import Kind, Model


@dataclass(frozen=True)
class LinkGraph:
    """n bodies and the ground (node n), e edges.

    Attributes:
        ends: (e, 2) nodes of the edges.
        block: (e,) loop block (biconnected component) of every edge; edges of a common loop have the same block.
        bridge: (e,) bool.
        component: (n + 1,) connected component of every node without the ground.
    """

    ends: np.ndarray
    block: np.ndarray
    bridge: np.ndarray
    component: np.ndarray

    @property
    def ground(self) -> int:
        """Node of the ground."""
        return len(self.component) - 1

    def tied(self, pairs: np.ndarray) -> np.ndarray:
        """(e,) block of every edge, with the blocks of coupled pairs of edges (k, 2) merged."""
        return connected_labels(int(self.block.max(initial=-1)) + 1, self.block[pairs])[self.block]

    def side(self, edge: int, start: int) -> np.ndarray:
        """(n + 1,) bool, the nodes connected to `start` without `edge`."""
        label = connected_labels(len(self.component), np.delete(self.ends, edge, axis=0))
        return label == label[start]


def link_graph(parent: np.ndarray, child: np.ndarray, movable: np.ndarray) -> LinkGraph:
    """Graph of edges between bodies parent and child (e,), -1 for the world; `movable` (n,) bool."""
    n = len(movable)
    node = np.append(np.where(movable, np.arange(n), n), n)  # the world's -1 picks the last entry
    ends = np.stack([node[parent], node[child]], axis=1)
    block = _blocks(ends, n + 1)
    bridge = (np.bincount(block)[block] == 1) & (ends[:, 0] != ends[:, 1])
    inner = ends[(ends < n).all(axis=1)]
    return LinkGraph(ends, block, bridge, connected_labels(n + 1, inner))


def connected_labels(size: int, pairs: np.ndarray) -> np.ndarray:
    """(size,) connected component of every node of a graph with edges pairs (k, 2)."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    if not size:
        return np.zeros(0, dtype=int)
    links = coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(size, size))
    return connected_components(links, directed=False)[1]


def members(labels: np.ndarray) -> list[np.ndarray]:
    """Ascending indices of every label in labels (k,), the smallest label first."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if len(labels) else []


def joined_components(model: Model) -> np.ndarray:
    """(n,) connected component of every body, by joints between dynamic bodies."""
    ends = JointList.of(model.joints).bodies
    dynamic = np.append(model.bodies.kind == Kind.DYNAMIC, False)  # the last entry is the world
    return connected_labels(len(model.bodies), ends[dynamic[ends].all(axis=1)])


def _blocks(ends: np.ndarray, size: int) -> np.ndarray:
    """(e,) biconnected component of every edge: two edges share one if a chain of loops with common edges connects them.

    Every edge outside a spanning tree closes one loop with the tree. An edge from the ground to itself is its own block.
    """
    neighbours: list[list[tuple[int, int]]] = [[] for _ in range(size)]
    for edge, (a, b) in enumerate(ends.tolist()):
        neighbours[a].append((b, edge))
        neighbours[b].append((a, edge))
    depth, above = [-1] * size, [(-1, -1)] * size  # node and edge towards the root
    for root in range(size):
        if depth[root] >= 0:
            continue
        depth[root], found = 0, [root]
        for node in found:
            for other, edge in neighbours[node]:
                if depth[other] < 0:
                    depth[other], above[other] = depth[node] + 1, (node, edge)
                    found.append(other)
    loops, of_tree = [], {edge for _, edge in above}
    for edge, (a, b) in enumerate(ends.tolist()):
        while edge not in of_tree and a != b:
            a, b = (a, b) if depth[a] >= depth[b] else (b, a)
            a, along = above[a]
            loops.append((edge, along))
    return connected_labels(len(ends), np.array(loops, dtype=int).reshape(-1, 2))
