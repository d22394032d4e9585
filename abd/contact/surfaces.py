"""Rest surfaces of all meshes, concatenated, with the primitives that may touch.

The *targets* of a mesh, against which vertices are tested, are its triangles, then its codimensional edges as
degenerate triangles (a, b, b), then its points as (a, a, a). A codimensional edge is a target of points and of the ends
of other codimensional edges. Edge-edge pairs cover these too, but the mollifier removes nearly parallel pairs; the
targets keep parallel rods apart. A point is a target of points only, because the targets of the other body cover the
rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.contact.flat_edges import within_faces
from abd.model import Mesh, Model


def targets(mesh: Mesh) -> np.ndarray:
    """(f + c + p, 3) vertex indices of the targets of a mesh."""
    edges, points = mesh.codim_edges.reshape(-1, 2), mesh.points.reshape(-1, 1)
    return np.concatenate([mesh.triangles.reshape(-1, 3), edges[:, [0, 1, 1]], points[:, [0, 0, 0]]]).astype(np.int64)


def least_dimension(mesh: Mesh) -> np.ndarray:
    """(v,) smallest dimension of the targets of every vertex (`Surfaces`)."""
    least = np.full(len(mesh.vertices), 2)
    least[mesh.codim_edges.ravel()] = 1
    least[mesh.triangles.ravel()] = 2
    least[mesh.points] = 0
    return least


def edges_that_meet(model: Model, mesh: Mesh) -> np.ndarray:
    """(e,) bool, edges of a mesh in the edge-edge search (`Surfaces`)."""
    return np.ones(len(mesh.edges), dtype=bool) if model.settings.contact_set == "ipc" else ~within_faces(mesh)


@dataclass(frozen=True)
class Surfaces:
    """Concatenated meshes; `*_start` (meshes + 1,) are their offsets, indices of vertices are global.

    Attributes:
        mesh: (n,) mesh of every body, -1 without one.
        vertices: (V, 3) rest coordinates [m]; least: (V,) smallest dimension of the targets of a vertex: 0 for isolated
            vertices, 1 for vertices of codimensional edges only, 2 for vertices of triangles.
        targets: (T, 3); edges: (E, 2); edge_meets: (E,) bool, whether an edge is in the edge-edge search; edges within
            flat faces are not, unless all pairs count (`abd.contact.flat_edges`).
        target_dimension: (T,) 2 for triangles, 1 for edges, 0 for points.
    """

    mesh: np.ndarray
    vertices: np.ndarray
    least: np.ndarray
    targets: np.ndarray
    target_dimension: np.ndarray
    edges: np.ndarray
    edge_meets: np.ndarray
    vertex_start: np.ndarray
    target_start: np.ndarray
    edge_start: np.ndarray

    @classmethod
    def of(cls, model: Model) -> Surfaces:
        """Surfaces of a compiled scene."""
        meshes = model.meshes
        vertex_start = _starts([len(mesh.vertices) for mesh in meshes])
        parts = [targets(mesh) for mesh in meshes]
        dimension = [
            np.repeat([2, 1, 0], [len(mesh.triangles), len(mesh.codim_edges), len(mesh.points)]) for mesh in meshes
        ]
        edges = [mesh.edges.reshape(-1, 2).astype(np.int64) for mesh in meshes]
        return cls(
            mesh=np.asarray(model.bodies.mesh, dtype=np.int64),
            vertices=np.concatenate([mesh.vertices for mesh in meshes] + [np.zeros((0, 3))]),
            least=np.concatenate([*(least_dimension(mesh) for mesh in meshes), np.zeros(0, dtype=np.int64)]),
            targets=_stacked(parts, vertex_start, 3),
            target_dimension=np.concatenate([*dimension, np.zeros(0, dtype=np.int64)]),
            edges=_stacked(edges, vertex_start, 2),
            edge_meets=np.concatenate([*(edges_that_meet(model, mesh) for mesh in meshes), np.zeros(0, dtype=bool)]),
            vertex_start=vertex_start,
            target_start=_starts([len(part) for part in parts]),
            edge_start=_starts([len(part) for part in edges]),
        )

    def vertex_range(self, body: int) -> slice:
        """Slice of the vertices of a body's mesh; empty without one."""
        return self._range(self.vertex_start, body)

    def target_range(self, body: int) -> slice:
        """Slice of the targets of a body's mesh; empty without one."""
        return self._range(self.target_start, body)

    def edge_range(self, body: int) -> slice:
        """Slice of the edges of a body's mesh; empty without one."""
        return self._range(self.edge_start, body)

    def _range(self, start: np.ndarray, body: int) -> slice:
        mesh = self.mesh[body]
        return slice(start[mesh], start[mesh + 1]) if mesh >= 0 else slice(0, 0)


def _starts(sizes: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _stacked(parts: list[np.ndarray], vertex_start: np.ndarray, width: int) -> np.ndarray:
    shifted = [part + start for part, start in zip(parts, vertex_start, strict=False)]
    return np.concatenate([*shifted, np.zeros((0, width), dtype=np.int64)])
