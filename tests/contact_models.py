"""Models of a few bodies for tests of contact, and the scenes of `ipctk_scene` as models."""

from dataclasses import replace

import numpy as np
from ipctk_scene import BOX, BOX_TRIANGLES, TETRAHEDRON, TETRAHEDRON_TRIANGLES, Scene, edges_of, scenes

import abd
from abd.backends.reference.numpy_bodies import Boxes
from abd.contact.candidates import contacts, find_candidates
from abd.contact.pairs import body_pairs
from abd.contact.path import Path, direction_path, standing
from abd.contact.surfaces import Surfaces
from abd.model import Bodies, Kind, Materials, Mesh, Model, Settings
from abd.potentials.contact import closest

D_HAT = 0.02
NO_EDGES, NO_POINTS = np.zeros((0, 2), np.int32), np.zeros(0, np.int32)


def solid(name: str, vertices: np.ndarray, triangles: np.ndarray) -> Mesh:
    return Mesh(name, vertices, triangles.astype(np.int32), edges_of(triangles).astype(np.int32), NO_EDGES, NO_POINTS)


def wire() -> Mesh:
    """Create a mesh of a triangle, an edge and two points."""
    vertices = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0.2], [0.5, 1.4, 0], [0.4, 0.4, 0.3], [1.3, 0.2, 0]])
    triangles = np.array([[0, 1, 2]], np.int32)
    loose = np.array([[3, 4]], np.int32)
    edges = np.concatenate([edges_of(triangles), loose]).astype(np.int32)
    return Mesh("wire", vertices, triangles, edges, loose, np.array([5, 6], np.int32), closed=False)


MESHES = [solid("box", BOX, BOX_TRIANGLES), solid("tetrahedron", TETRAHEDRON, TETRAHEDRON_TRIANGLES), wire()]
BOX_MESH, TETRAHEDRON_MESH, WIRE_MESH, NO_MESH = 0, 1, 2, -1


def scene(mesh: list[int], q: np.ndarray, **changes) -> Model:
    """Create a model of bodies with these meshes and states; `changes` replace fields of the bodies."""
    n = len(mesh)
    ones, zeros = np.ones(n), np.zeros(n, np.int32)
    bodies = Bodies(
        names=[f"body {k}" for k in range(n)], kind=np.full(n, Kind.DYNAMIC, np.int32), mesh=np.array(mesh, np.int32),
        plane=np.full((n, 4), np.nan), mass=ones, moment=np.ones((n, 3)), volume=ones, kappa=1e9 * ones,
        elasticity=zeros, body_frame=np.tile(np.eye(4), (n, 1, 1)), q=q, qd=np.zeros((n, 12)), force=np.zeros((n, 3)),
        torque=np.zeros((n, 3)), free_translation=np.ones((n, 3), bool), rotation_axis=np.zeros((n, 3)),
        free_rotation=np.full(n, 3, np.int32), material=zeros, group=np.full(n, -1, np.int32), world=zeros,
        radius=np.zeros(n), surface_velocity=np.zeros((n, 3)), color=np.full((n, 4), np.nan),
    )
    materials = Materials(
        ["soft", "slick"], mu=np.array([[0.5, 0.2], [0.2, 0.0]]), stiffness=np.array([[1.0, 2.0], [2.0, 3.0]]),
        enabled=np.array([[True, True], [True, False]]), restitution=np.zeros((2, 2)),
        rolling=np.array([[0.01, 0.0], [0.0, 0.02]]), spinning=np.array([[0.0, 0.03], [0.03, 0.01]]),
    )
    return Model("scene", replace(bodies, **changes), MESHES, [], materials, Settings(d_hat=D_HAT, contact_set="ipc"), {})


def states(count: int, seed: int, spread: float) -> np.ndarray:
    """Return (count, 12) states with random rotations and positions in a cube."""
    rng = np.random.default_rng(seed)
    turns = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    return np.concatenate([spread * rng.uniform(-1, 1, size=(count, 3)), turns.reshape(-1, 9)], axis=1)


def as_model(arrangement: Scene) -> Model:
    """Create the model of two bodies, with the states that map their rest positions to their positions."""
    split, meshes, q = arrangement.split, [], []
    for start, stop in ((0, split), (split, len(arrangement.vertices))):
        triangles = _within(arrangement.triangles, start, stop)
        edges = _within(arrangement.edges, start, stop)
        points = _within(arrangement.points, start, stop)
        sides = {tuple(edge) for edge in edges_of(triangles).tolist()}
        loose = np.array([edge for edge in edges.tolist() if tuple(sorted(edge)) not in sides], np.int32).reshape(-1, 2)
        rest, vertices = arrangement.rest[start:stop], arrangement.vertices[start:stop]
        meshes.append(Mesh("part", rest, triangles.astype(np.int32), edges.astype(np.int32), loose, points))
        if np.array_equal(rest, vertices):
            q.append(np.concatenate([np.zeros(3), np.eye(3).ravel()]))
        else:
            fit = np.linalg.lstsq(np.c_[np.ones(len(rest)), rest], vertices, rcond=None)[0]
            q.append(np.concatenate([fit[0], fit[1:].T.ravel()]))
    model = scene([0, 1], np.array(q))
    settings = replace(model.settings, minimum_separation=arrangement.xi)
    return replace(model, meshes=meshes, settings=settings)


def _within(rows: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Return the vertex indices, minus start, of the primitives (k,) or (k, c) in [start, stop)."""
    first = rows if rows.ndim == 1 else rows[:, 0]
    return rows[(first >= start) & (first < stop)] - start


ARRANGEMENTS = scenes(D_HAT)


def bodies_over_a_plane(seed: int, **settings) -> Model:
    """Create a box, a tetrahedron and a wire with thickness, close together above an inclined half-space (body 3)."""
    q = states(4, seed + 10, 0.9)
    q[3] = np.concatenate([np.zeros(3), np.eye(3).ravel()])
    plane = np.full((4, 4), np.nan)
    plane[3] = [0, 0.6, 0.8, -1.2]
    kinds = np.array([Kind.DYNAMIC, Kind.DYNAMIC, Kind.DYNAMIC, Kind.STATIC])
    radius = np.array([0.0, 0.01, 0.02, 0.0])
    model = scene([BOX_MESH, TETRAHEDRON_MESH, WIRE_MESH, NO_MESH], q, kind=kinds, plane=plane, radius=radius)
    return replace(model, settings=replace(model.settings, **settings))


def crossed_edges(inside: float, d_hat: float = 0.01, mu: float = 0.0) -> Model:
    """Create a box on its edge over another one, whose edges cross `inside` activations before an end."""
    scene = abd.Scene(solver={"d_hat": d_hat})
    scene.add_material("default", mu=mu)
    scene.add_body("lower", box=(0.2, 0.1, 0.1), axis_angle={"axis": (1.0, 0.0, 0.0), "degrees": 45.0})
    place = (0.1 - inside * d_hat, 0.0, 0.1 * np.sqrt(2.0) + 0.3 * d_hat)
    scene.add_body("upper", box=(0.1, 0.3, 0.1), position=place, axis_angle={"axis": (0.0, 1.0, 0.0), "degrees": 45.0})
    return abd.Simulation(scene, device="numpy").model


def near_on(model: Model, path: Path, samples: int) -> np.ndarray:
    """Return pair, kind and primitives (k, 4) of all candidates within d_hat in one of the sampled states of a path."""
    surfaces, pairs = Surfaces.of(model), body_pairs(model)
    everything = find_candidates(model, surfaces, pairs, standing(model.bodies.q), 1e6)
    complete = contacts(model, surfaces, pairs, everything)
    near = np.zeros(len(everything), bool)
    for alpha in np.linspace(0.0, 1.0, samples):
        near |= np.sqrt(closest(complete.positions(path.samples(np.array([alpha]))[0]), complete).D) < complete.xi + D_HAT
    return np.column_stack([everything.pair, everything.kind, everything.a, everything.b])[near]


def random_path(model: Model, seed: int, shift: float, turn: float) -> Path:
    """Create arcs of all dynamic bodies in random directions."""
    rng, n = np.random.default_rng(seed), len(model.bodies)
    direction = np.concatenate([shift * rng.normal(size=(n, 3)), turn * rng.normal(size=(n, 9))], axis=1)
    direction[model.bodies.kind != Kind.DYNAMIC] = 0.0
    q = model.bodies.q
    return direction_path(q, direction, np.tile(np.eye(3), (n, 1, 1)), Boxes(model).radii(q))
