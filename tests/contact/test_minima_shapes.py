"""Local minima of distance on flat, convex and concave surfaces count once and continuously for any triangles."""

from dataclasses import replace

import numpy as np
import pytest
from contact_models import ARRANGEMENTS, D_HAT, NO_EDGES, NO_POINTS, scene, solid
from ipctk_scene import BOX, BOX_TRIANGLES, TETRAHEDRON, TETRAHEDRON_TRIANGLES, edges_of, turned
from test_minima import SCENES, parts_of

from abd.contact.minima import CORNER, CROSSING
from abd.contact.surfaces import Surfaces
from abd.contact.topology import Topology
from abd.model import Kind, Mesh, Model
from abd.potentials import contact
from abd.potentials.barrier import barrier

KAPPA = 1e7
LAW = contact.ContactParameters(KAPPA, D_HAT)


def sheet(x: np.ndarray, y: np.ndarray, height=None, closed: bool = False) -> Mesh:
    """An open grid of triangles over the nodes x and y, at z = height(x, y)."""
    nodes = np.array([(a, b, 0.0 if height is None else height(a, b)) for a in x for b in y])
    i, j = (part.ravel() for part in np.meshgrid(np.arange(len(x) - 1), np.arange(len(y) - 1), indexing="ij"))
    a = i * len(y) + j
    b = a + len(y)
    triangles = np.concatenate([np.column_stack([a, b, b + 1]), np.column_stack([a, b + 1, a + 1])]).astype(np.int32)
    return Mesh("sheet", nodes, triangles, edges_of(triangles).astype(np.int32), NO_EDGES, NO_POINTS, closed)


def two(first: Mesh, second: Mesh, position: np.ndarray, turn: np.ndarray | None = None, whole=None) -> Model:
    """`first` at a position, turned, over `second`; `whole` turns both, so that nothing is exact."""
    turn, whole = (np.eye(3) if one is None else one for one in (turn, whole))
    poses = [(whole @ position, whole @ turn), (np.zeros(3), whole)]
    q = np.array([np.concatenate([p, A.ravel()]) for p, A in poses])
    model = scene([0, 1], q, kind=np.array([Kind.DYNAMIC, Kind.STATIC], np.int32), material=np.zeros(2, np.int32))
    settings = replace(model.settings, contact_set="minima")
    return replace(model, meshes=[first, second], settings=settings)


def energy(model: Model) -> float:
    """Contact energy [J] in barriers of kappa."""
    parts, listed = parts_of(model)
    return float(parts.energy(model.bodies.q, LAW, len(listed)).sum()) if len(listed) else 0.0


def of_gap(gap: float) -> float:
    """Energy of one local minimum at a gap [m]."""
    return KAPPA * float(barrier("log", np.array([gap * gap]), D_HAT)[0][0])


TIP = solid("tip", np.array([[0, 0, 0], [0.3, 0, 1], [-0.2, 0.3, 1], [-0.2, -0.3, 1.0]]), TETRAHEDRON_TRIANGLES)
GRID = np.linspace(-1.0, 1.0, 9)
NODES = [GRID, np.sort(np.r_[-1.0, 1.0, np.random.default_rng(0).uniform(-1, 1, 9)])]


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("nodes", NODES, ids=["even", "uneven"])
def test_vertex_over_a_flat_surface_counts_once(nodes, seed):
    """This holds inside triangles and over edges, corners and midpoints of edges, from above and below."""
    floor = sheet(nodes, nodes)
    whole = None if seed is None else turned(np.eye(3), seed).T
    inner = nodes[1:-1]
    middles = 0.5 * (inner[1:] + inner[:-1])
    gap = 0.3 * D_HAT
    for x in np.r_[inner[2:5], middles[:2], 0.123]:
        for y in np.r_[inner[1:3], middles[:2], -0.217]:
            for side in (1.0, -1.0):
                turn = np.diag([1.0, side, side])
                model = two(TIP, floor, np.array([x, y, side * gap]), turn, whole)
                assert energy(model) == pytest.approx(of_gap(gap), rel=1e-9), (x, y, side)


@pytest.mark.parametrize("turn", [0.0, 0.3, 0.25 * np.pi])
def test_a_box_on_a_flat_surface_counts_its_four_corners(turn):
    c, s = np.cos(turn), np.sin(turn)
    box = solid("box", 0.4 * BOX, BOX_TRIANGLES)
    rotation = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])
    for shift in (0.0, 0.037, 0.125):
        for cells in (2, 9, 17):
            nodes = np.linspace(-1.0, 1.0, cells)
            model = two(box, sheet(nodes, nodes), np.array([shift, 0.5 * shift, 0.2 + 0.3 * D_HAT]), rotation)
            assert energy(model) == pytest.approx(4.0 * of_gap(0.3 * D_HAT), rel=1e-9)


@pytest.mark.parametrize("name", [name for name in ARRANGEMENTS if name != "rods and points"])
def test_vertex_triangle_weights_equal_the_improved_max_operator_of_ipctk(name):
    ipctk = pytest.importorskip("ipctk")
    arrangement, model = ARRANGEMENTS[name], SCENES[name]
    parts, _ = parts_of(model)
    weights = parts.weights(model.bodies.q, LAW)
    mesh, candidates = arrangement.ipctk_mesh(ipctk)
    vertices, only = np.asfortranarray(arrangement.vertices), ipctk.Candidates()
    only.fv_candidates = candidates.fv_candidates
    collisions = ipctk.NormalCollisions()
    collisions.collision_set_type = ipctk.NormalCollisions.CollisionSetType.IMPROVED_MAX_APPROX
    collisions.build(only, mesh, vertices, D_HAT, arrangement.xi)
    potential = ipctk.BarrierPotential(ipctk.ClampedLogBarrier(), D_HAT, KAPPA)
    tips = parts.contacts[parts.role == CORNER]
    near = contact.closest(tips.positions(model.bodies.q), tips)
    # ipctk counts two corners from both sides
    twice = 0.5 * barrier("log", near.D, D_HAT, tips.xi)[0].sum()
    ours = KAPPA * (weights.value[parts.role < CROSSING].sum() + twice)
    assert ours > 0.0 and ours == pytest.approx(potential(collisions, mesh, vertices), rel=1e-6)


def largest_step(model: Model, path, count: int) -> tuple[float, float]:
    """Largest change of energy between neighbours of `count` states of body 0 on a path, and the largest energy."""
    values = []
    for t in np.linspace(0.0, 1.0, count + 1):
        q = model.bodies.q.copy()
        q[0, :3] = path(t)
        values.append(energy(replace(model, bodies=replace(model.bodies, q=q))))
    return np.abs(np.diff(values)).max(), max(values)


def groove(angle: float) -> Mesh:
    """Two halves of a sheet that rise from the line x = 0."""
    return sheet(np.linspace(-1, 1, 5), np.linspace(-1, 1, 4), lambda x, y: abs(x) * np.tan(angle))


OVER = 0.5 + 0.3 * D_HAT
ROUND = np.array([[np.cos(0.4), -np.sin(0.4), 0], [np.sin(0.4), np.cos(0.4), 0], [0, 0, 1.0]])
SMALL = solid("small box", BOX, BOX_TRIANGLES)
WAYS = {
    "corner off an edge": (SMALL, ROUND, SMALL, [0.3, 0.9, 2 * OVER], [0.4, 1.4, 2 * OVER]),
    "edge off a corner": (SMALL, ROUND, SMALL, [0.8, 0.8, 2 * OVER], [1.3, 1.3, 2 * OVER]),
    "corner through an obtuse groove": (TIP, None, groove(0.2), [-0.03, 0.03, 0.009], [0.03, 0.13, 0.009]),
    "corner through a right groove": (TIP, None, groove(0.25 * np.pi), [-0.008, 0, 0.02], [0.008, 0.1, 0.02]),
    "corner over a ridge": (TIP, None, groove(-0.3), [-0.05, 0.03, 0.006], [0.05, 0.13, 0.006]),
    "corner off a sheet": (TIP, None, sheet(GRID, GRID), [0.97, 0.1, 0.006], [1.03, 0.2, 0.006]),
    "ridge along a corner": (solid("t", TETRAHEDRON, TETRAHEDRON_TRIANGLES), ROUND, groove(-0.3), [0, 0, 0.26], [0.6, 0, 0.26]),
}  # fmt: skip


@pytest.mark.parametrize("name", WAYS)
def test_energy_is_continuous_across_features(name):
    first, turn, second, begin, end = WAYS[name]
    begin, end = np.array(begin, float), np.array(end, float)
    model = two(first, second, begin, turn)

    def path(t):
        return (1.0 - t) * begin + t * end

    coarse, largest = largest_step(model, path, 150)
    fine, _ = largest_step(model, path, 600)
    assert largest > 0.05 * of_gap(0.3 * D_HAT)
    assert fine < 0.3 * coarse + 1e-9 * largest


def test_nearest_features_of_convex_bodies_have_full_weight():
    box = solid("box", BOX, BOX_TRIANGLES)
    tetrahedron = solid("tetrahedron", TETRAHEDRON, TETRAHEDRON_TRIANGLES)
    kinds = set()
    for seed in range(20):
        turns = turned(np.eye(3), seed).T, turned(np.eye(3), seed + 100).T
        model = two(box if seed % 2 else tetrahedron, box, np.array([0, 0, 3.0]), turns[0], turns[1])
        _, listed = parts_of(replace(model, settings=replace(model.settings, d_hat=5.0)))

        def at(height, model=model, listed=listed, seed=seed):
            q = model.bodies.q.copy()
            q[0, :3] = 0.02 * seed, 0.0, height
            return q, np.sqrt(contact.closest(listed.positions(q), listed).D)

        # the first height from above at which the gap is below the one that is sought
        height = 2.0
        while at(height)[1].min() > 0.3 * D_HAT:
            height -= 0.9 * max(at(height)[1].min() - 0.25 * D_HAT, 0.01 * D_HAT)
        q, distances = at(height)
        nearest = distances.min()
        kinds.add(int(listed.stencil[np.argmin(distances)]))
        placed = replace(model, bodies=replace(model.bodies, q=q))
        assert energy(placed) >= 0.999 * of_gap(nearest)
    assert kinds == {contact.Stencil.POINT_TRIANGLE, contact.Stencil.EDGE_EDGE}


def weights_of(mesh: Mesh) -> Topology:
    model = replace(two(mesh, mesh, np.zeros(3)), meshes=[mesh])
    model = replace(model, bodies=replace(model.bodies, mesh=np.zeros(2, np.int32)))
    return Topology.of(model, Surfaces.of(model))


def test_weight_is_positive_only_at_convex_edges_and_vertices():
    box = weights_of(solid("box", BOX, BOX_TRIANGLES))
    assert sorted(box.edge_weight) == [0.0] * 6 + [1.0] * 12
    assert np.all(box.vertex_weight == 1.0)
    inward = weights_of(solid("inward", BOX, BOX_TRIANGLES[:, ::-1]))
    np.testing.assert_array_equal(inward.edge_weight, box.edge_weight)

    flat = sheet(np.linspace(0, 1, 4), np.linspace(0, 1, 4))
    found = weights_of(flat)
    border = (np.abs(flat.vertices[:, :2] - 0.5) == 0.5).any(axis=1)
    np.testing.assert_array_equal(found.vertex_weight, border.astype(float))
    middle = flat.vertices[flat.edges].mean(axis=1)[:, :2]
    np.testing.assert_array_equal(found.edge_weight, (np.abs(middle - 0.5) == 0.5).any(axis=1).astype(float))


def test_weight_vanishes_for_concave_and_is_small_for_flat_edges():
    """The shapes are a box with a notch and lids with decreasing bend."""
    profile = np.array([[0, 0], [3, 0], [3, 2], [2, 2], [2, 1], [1, 1], [1, 2], [0, 2.0]])
    vertices = np.concatenate([np.c_[profile, np.zeros(8)], np.c_[profile, np.ones(8)]])
    caps = np.array([[0, 5, 1], [1, 5, 4], [1, 4, 2], [2, 4, 3], [0, 7, 5], [5, 7, 6]])
    sides = [[k, (k + 1) % 8, (k + 1) % 8 + 8] for k in range(8)] + [[k, (k + 1) % 8 + 8, k + 8] for k in range(8)]
    notch = solid("notch", vertices, np.concatenate([caps, caps[:, ::-1] + 8, sides]))
    found = weights_of(notch)
    upright = {tuple(edge): w for edge, w in zip(notch.edges.tolist(), found.edge_weight, strict=True)}
    assert upright[4, 12] == upright[5, 13] == 0.0
    assert all(upright[k, k + 8] == 1.0 for k in (0, 1, 2, 3, 6, 7))
    slight = [weights_of(groove(-angle)).edge_weight for angle in (0.02, 0.01, 0.001)]
    inner = [np.sort(np.unique(np.round(w[w < 1.0], 6)))[-1] for w in slight]
    assert inner[0] > inner[1] > inner[2] > 0.0


def test_coincident_vertices_count_once():
    box = solid("box", BOX, BOX_TRIANGLES)
    loose = solid("loose", BOX[BOX_TRIANGLES.ravel()], np.arange(36).reshape(-1, 3))
    position = np.array([0.3, 0.2, 2 * OVER])
    assert energy(two(loose, loose, position, ROUND)) == pytest.approx(energy(two(box, box, position, ROUND)), rel=1e-9)
