"""Small contact scenes, as contacts of abd and candidates of ipctk."""

from dataclasses import dataclass

import numpy as np

from abd.potentials.contact import Contacts, Stencil

BOX = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
BOX_QUADS = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
BOX_TRIANGLES = BOX_QUADS[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3)
TETRAHEDRON = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]]) - 0.25
TETRAHEDRON_TRIANGLES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def edges_of(triangles: np.ndarray) -> np.ndarray:
    """Return the unique edges (e, 2) of triangles (f, 3)."""
    sides = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    return np.unique(np.sort(sides, axis=1), axis=0)


def turned(vertices: np.ndarray, seed: int) -> np.ndarray:
    """Apply a random rotation to vertices."""
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    return vertices @ (turn * np.sign(np.linalg.det(turn))).T


@dataclass
class Scene:
    """Two bodies in one vertex array; all primitive pairs between them are candidates.

    Attributes:
        rest, vertices: (v, 3) rest and deformed positions [m]; the first `split` vertices are body 0.
        edges, triangles, points: of both bodies; `points` are the vertices without edges.
        xi: separation [m].
    """

    rest: np.ndarray
    vertices: np.ndarray
    split: int
    edges: np.ndarray
    triangles: np.ndarray
    points: np.ndarray
    xi: float = 0.0

    def candidates(self) -> dict[str, np.ndarray]:
        """Return lists "fv", "ee", "ev", "vv" of primitive pairs of different bodies, numbered as in ipctk."""
        side = np.arange(len(self.rest)) >= self.split
        used = np.unique(np.concatenate([self.edges.ravel(), self.points]))
        codimensional = np.array([i for i, e in enumerate(self.edges) if not self._in_triangle(e)], dtype=int)
        ends = np.setdiff1d(self.edges[codimensional].ravel(), self.triangles.ravel())
        loose = np.unique(np.concatenate([self.points, ends])).astype(int)
        return {
            "fv": _pairs(range(len(self.triangles)), used, lambda f, v: side[self.triangles[f, 0]] != side[v]),
            "ee": _pairs(range(len(self.edges)), range(len(self.edges)), self._are_edges_of_both(side)),
            "ev": _pairs(codimensional, loose, lambda e, v: side[self.edges[e, 0]] != side[v]),
            "vv": _pairs(self.points, self.points, lambda v, w: v < w and side[v] != side[w]),
        }

    def _are_edges_of_both(self, side):
        return lambda e, f: e < f and side[self.edges[e, 0]] != side[self.edges[f, 0]]

    def _in_triangle(self, edge: np.ndarray) -> bool:
        return bool(np.any(np.sum(np.isin(self.triangles, edge), axis=1) == 2))

    def stencils(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the stencil types (m,) and vertex indices (m, 4) of all candidates."""
        lists = self.candidates()
        fv, ee, ev, vv = (lists[key] for key in ("fv", "ee", "ev", "vv"))
        rows = [
            np.column_stack([fv[:, 1], self.triangles[fv[:, 0]]]),
            np.column_stack([ev[:, 1], self.edges[ev[:, 0]][:, [0, 1, 1]]]),
            np.column_stack([vv[:, 0], vv[:, [1, 1, 1]]]),
            np.column_stack([self.edges[ee[:, 0]], self.edges[ee[:, 1]]]),
        ]
        kinds = np.full(sum(map(len, rows)), Stencil.POINT_TRIANGLE)
        kinds[len(kinds) - len(ee) :] = Stencil.EDGE_EDGE
        return kinds, np.concatenate(rows).astype(int)

    def contacts(self, mu: float = 0.0) -> tuple[Contacts, np.ndarray]:
        """Return all candidates as contacts between bodies 0 and 1, and their vertex indices (m, 4)."""
        kinds, index = self.stencils()
        m = len(kinds)
        first = (index[:, 0] >= self.split).astype(int)
        return (
            Contacts(
                stencil=kinds, first=first, second=1 - first, rest=self.rest[index], plane=np.zeros((m, 4)),
                xi=np.full(m, self.xi), stiffness=np.ones(m), mu=np.full(m, mu), flipped=first == 1,
            ),
            index,
        )

    def ipctk_mesh(self, ipctk):
        """Return the mesh and the candidates of ipctk."""
        mesh = ipctk.CollisionMesh(
            np.asfortranarray(self.rest), np.asfortranarray(self.edges.reshape(-1, 2), dtype=np.int32),
            np.asfortranarray(self.triangles.reshape(-1, 3), dtype=np.int32),
        )
        lists = self.candidates()
        candidates = ipctk.Candidates()
        candidates.fv_candidates = [ipctk.FaceVertexCandidate(int(f), int(v)) for f, v in lists["fv"]]
        candidates.ee_candidates = [ipctk.EdgeEdgeCandidate(int(e), int(f)) for e, f in lists["ee"]]
        candidates.ev_candidates = [ipctk.EdgeVertexCandidate(int(e), int(v)) for e, v in lists["ev"]]
        candidates.vv_candidates = [ipctk.VertexVertexCandidate(int(v), int(w)) for v, w in lists["vv"]]
        return mesh, candidates


def _pairs(a, b, accept) -> np.ndarray:
    return np.array([(i, j) for i in a for j in b if accept(i, j)], dtype=int).reshape(-1, 2)


def two_bodies(a: np.ndarray, b: np.ndarray, triangles_a: np.ndarray, triangles_b: np.ndarray, **kwargs) -> Scene:
    """Create a scene of two triangle meshes with vertices a and b, which are also the rest positions."""
    vertices = np.concatenate([a, b])
    triangles = np.concatenate([triangles_a, triangles_b + len(a)])
    return Scene(vertices, vertices, len(a), edges_of(triangles), triangles, np.zeros(0, int), **kwargs)


def scatter_gradient(local: np.ndarray, index: np.ndarray, count: int) -> np.ndarray:
    """Add local gradients (m, 12) at vertices (m, 4); return (3 count,)."""
    total = np.zeros((count, 3))
    np.add.at(total, index, local.reshape(-1, 4, 3))
    return total.ravel()


def scatter_hessian(local: np.ndarray, index: np.ndarray, count: int) -> np.ndarray:
    """Add local Hessians (m, 12, 12) at vertices (m, 4); return (3 count, 3 count)."""
    rows = (3 * index[:, :, None] + np.arange(3)).reshape(-1, 12)
    total = np.zeros((3 * count, 3 * count))
    np.add.at(total, (rows[:, :, None], rows[:, None, :]), local)
    return total


def scenes(d_hat: float) -> dict[str, Scene]:
    """Create random and degenerate scenes with gaps below d_hat."""
    gap = 0.3 * d_hat
    up = np.array([0, 0, 1.0])
    over = (1 + gap) * up

    def boxes(shift: np.ndarray, **kwargs) -> Scene:
        return two_bodies(BOX, BOX + shift, BOX_TRIANGLES, BOX_TRIANGLES, **kwargs)

    result = {
        "boxes face to face": boxes(over),
        "boxes shifted along an edge": boxes(over + np.array([0.3, 0, 0])),
        "boxes shifted both ways": boxes(over + np.array([0.3, 0.4, 0])),
        "boxes corner on corner": boxes(np.ones(3) + 0.5 * gap),
        "boxes edge on edge, collinear": boxes(np.array([1 + gap, 0, 1 + 0.5 * gap])),
        "boxes with separation": boxes(over + 2e-3 * up, xi=2e-3),
        "far from the origin": two_bodies(BOX + 100.0, BOX + 100.0 + over, BOX_TRIANGLES, BOX_TRIANGLES),
    }
    for angle in (1e-2, 1e-4, 1e-7):
        turn = np.array([[1, -angle, 0], [angle, 1, 0], [0, 0, 1]])
        b = BOX @ turn.T + over + np.array([0.3, 0, 0])
        result[f"boxes turned by {angle:g}"] = two_bodies(BOX, b, BOX_TRIANGLES, BOX_TRIANGLES)
    for name in ("boxes shifted along an edge", "boxes turned by 0.01"):
        a, b = np.split(turned(result[name].vertices, 5), 2)
        result[f"{name}, slanted"] = two_bodies(a, b, BOX_TRIANGLES, BOX_TRIANGLES)
    for seed in range(6):
        a, b = turned(TETRAHEDRON, seed), turned(TETRAHEDRON, seed + 50)
        b = b + (a[:, 2].max() - b[:, 2].min() + gap) * up
        b[:, :2] += a[np.argmax(a[:, 2]), :2] - b[np.argmin(b[:, 2]), :2]
        if seed % 2:
            b[:, :2] += 0.2 * d_hat
        result[f"tetrahedra {seed}"] = two_bodies(a, b, TETRAHEDRON_TRIANGLES, TETRAHEDRON_TRIANGLES)
    result["deformed tetrahedra"] = _deformed(result["tetrahedra 1"])
    result["rods and points"] = _codimensional(gap)
    return result


def _deformed(scene: Scene) -> Scene:
    """Return the scene with different rest shapes, so that the threshold of the mollifier differs from that of the state."""
    rest = scene.rest @ np.diag([1.3, 0.8, 1.1])
    return Scene(rest, scene.vertices, scene.split, scene.edges, scene.triangles, scene.points)


def _codimensional(gap: float) -> Scene:
    """Create two bodies of a triangle, an edge and points each, with all primitives within the activation distance."""
    below = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [2, 0, 0], [3, 0, 0], [4, 0, 0], [2.5, 0.5, 0], [0.2, 0.2, 0]])
    above = below + gap * np.array([0.0, 0.0, 1.0])
    above[3:5, 0] += 0.25
    above[5, :2] = [2.2, 0.1 * gap]
    above[6, :2] = [4.0 + 0.2 * gap, 0.1 * gap]
    above[7, :2] = [0.3, 0.2]
    vertices = np.concatenate([below, above])
    triangles = np.array([[0, 1, 2], [8, 9, 10]])
    edges = np.concatenate([edges_of(triangles), [[3, 4], [11, 12]]])
    return Scene(vertices, vertices, 8, edges, triangles, np.array([5, 6, 7, 13, 14, 15]))


HALF_SPACE_REACH = 1e-2
"""Largest height of the points above half-spaces [m]."""


def half_space_contacts(seed: int, count: int) -> tuple[Contacts, np.ndarray]:
    """Create contacts of points slightly above inclined half-spaces; return them and positions (m, 4, 3)."""
    rng = np.random.default_rng(seed)
    normals = rng.normal(size=(count, 3))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    offsets = rng.normal(size=count)
    height = rng.uniform(0.1, 0.9, size=count) * HALF_SPACE_REACH + 1e-3
    tangential = np.cross(normals, rng.normal(size=(count, 3)))
    points = (offsets + height)[:, None] * normals + tangential
    ones = np.ones(count)
    contacts = Contacts(
        stencil=np.full(count, Stencil.POINT_PLANE), first=np.zeros(count, int), second=np.ones(count, int),
        rest=np.repeat(rng.normal(size=(count, 1, 3)), 4, axis=1), plane=np.column_stack([normals, offsets]),
        xi=1e-3 * ones, stiffness=ones, mu=0.5 * ones, flipped=np.zeros(count, bool),
    )
    return contacts, np.repeat(points[:, None], 4, axis=1)
