"""Local minima of distance count once and continuously for any triangles, on which bodies slide as on a half-space."""

from dataclasses import replace

import numpy as np
import pytest
from common_scenes import squares
from contact_models import ARRANGEMENTS, D_HAT, NO_EDGES, NO_POINTS, scene, solid
from ipctk_scene import BOX, BOX_TRIANGLES, TETRAHEDRON, TETRAHEDRON_TRIANGLES, edges_of, turned
from test_minima import SCENES, parts_of

import abd
from abd.contact.minima import CORNER, CROSSING
from abd.contact.pair_law import thinnest_extents
from abd.model import Kind, Mesh, Model
from abd.potentials import contact
from abd.potentials.barrier import barrier

pytestmark = pytest.mark.device

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


@pytest.mark.usefixtures("without_core")
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
    model, energies = two(first, second, np.array(begin, float), turn), []
    for position in np.linspace(begin, end, 321):
        q = model.bodies.q.copy()
        q[0, :3] = position
        energies.append(energy(replace(model, bodies=replace(model.bodies, q=q))))
    coarse, fine = np.abs(np.diff(energies[::4])).max(), np.abs(np.diff(energies)).max()
    assert max(energies) > 0.05 * of_gap(0.3 * D_HAT)
    assert fine < 0.4 * coarse + 1e-9 * max(energies)


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


def test_coincident_vertices_count_once():
    box = solid("box", BOX, BOX_TRIANGLES)
    loose = solid("loose", BOX[BOX_TRIANGLES.ravel()], np.arange(36).reshape(-1, 3))
    position = np.array([0.3, 0.2, 2 * OVER])
    assert energy(two(loose, loose, position, ROUND)) == pytest.approx(energy(two(box, box, position, ROUND)), rel=1e-9)


def slide(cells: int, direction: float, contact_set: str = "minima") -> tuple[float, float, float]:
    """Slide a frictionless box of 0.1 m for 0.3 s with 0.4 m/s over 2 cells^2 triangles, or over a half-space for 0 cells.

    Returns:
        largest relative change of its speed, largest yaw rate [rad/s], gap at the end [m].
    """
    scene = abd.Scene(solver={"contact_set": contact_set, "d_hat": 1e-3})
    scene.add_body("floor", **({"surface": squares(cells, 2.0), "kind": "static"} if cells else {"half_space": {}}))
    along = np.array([np.cos(np.radians(direction)), np.sin(np.radians(direction))])
    start = -0.31 * along + (0.0123, 0.0071)
    motion = {"position": (*start.tolist(), 0.0502), "velocity": (*(0.4 * along).tolist(), 0.0)}
    scene.add_body("box", box=(0.1, 0.1, 0.1), **motion)
    simulation = abd.Simulation(scene, device="cpu")
    box, speeds, rates = simulation.bodies["box"], [], []
    for _ in range(30):
        simulation.step()
        speeds.append(np.linalg.norm(box.linear_velocity[:2]))
        rates.append(abs(box.angular_velocity[2]))
    return np.abs(np.array(speeds) / 0.4 - 1.0).max(), max(rates), box.position[2] - 0.05


@pytest.mark.parametrize("direction", [0.0, 17.0, 45.0])
@pytest.mark.parametrize("cells", [1, 20, pytest.param(100, marks=pytest.mark.slow)])
def test_sliding_over_triangles_equals_sliding_over_a_half_space(cells, direction):
    speed_change, yaw_rate, gap = slide(cells, direction)
    assert speed_change < 1e-6 and yaw_rate < 1e-6
    assert gap == pytest.approx(slide(0, direction)[2], rel=0.01)


def test_a_cube_that_falls_flat_on_triangles_does_not_spin_on_any_device():
    """The symmetric points of a square are its diagonal and corners, where the plain sum of pairs causes a spin."""
    states = {}
    for device in ("cpu", "numpy"):
        scene = abd.Scene()
        scene.add_body("floor", surface=squares(2, 4.0), kind="static")
        scene.add_body("cube", box=(0.5, 0.5, 0.5), position=(0.1, 0.1, 0.3))
        simulation = abd.Simulation(scene, device=device)
        spin = 0.0
        for _ in range(25):
            simulation.step()
            qd = np.asarray(simulation.bodies["cube"].velocity)[:3, :3]
            spin = max(spin, np.abs(qd - qd.T).max())
        assert spin < 1e-6
        states[device] = np.asarray(simulation.bodies["cube"].transform)
    np.testing.assert_allclose(states["cpu"], states["numpy"], rtol=0, atol=1e-7)


def test_the_activation_of_a_cube_depends_on_neither_frame_nor_triangulation():
    """The thinnest extent of a cube is its edge, for any axes of its mesh."""
    import trimesh

    cube, turned = trimesh.creation.box((0.2, 0.2, 0.2)), trimesh.transformations.rotation_matrix(0.7, (1.0, 2.0, 3.0))
    scene = abd.Scene(gravity=(0, 0, 0))
    scene.add_body("box", box=(0.2, 0.2, 0.2))
    meshes = {"mesh": cube, "turned": cube.copy().apply_transform(turned), "fine": cube.subdivide().subdivide()}
    for k, (name, mesh) in enumerate(meshes.items(), start=1):
        scene.add_body(name, mesh=mesh, position=(k, 0, 0))
    assert thinnest_extents(scene.compile()) == pytest.approx(0.2, rel=1e-9)


@pytest.mark.parametrize("name", ["cpu", "numpy"])
def test_corner_over_a_triangle_fan_has_the_force_of_a_face(name: str):
    """24 slivers meet at the centre; the corner is up to 1e-8 m from it."""
    angles = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
    rim = np.stack([0.18 * np.cos(angles), 0.18 * np.sin(angles), np.zeros(24)], axis=1)
    triangles = [[0, k + 1, (k + 1) % 24 + 1] for k in range(24)]
    scene = abd.Scene(solver={"d_hat": 1e-3, "contact_stiffness": 1e5})
    scene.add_body("fan", surface={"vertices": [[0.0, 0.0, 0.0], *rim.tolist()], "triangles": triangles}, kind="static")
    corners = [[0.0, 0.0, 0.0], [0.05, 0.0, 0.08], [-0.03, 0.04, 0.08], [-0.03, -0.04, 0.08]]
    faces = [[0, 2, 1], [0, 3, 2], [0, 1, 3], [1, 2, 3]]
    scene.add_body("top", mesh=(np.array(corners), faces), position=(0.0, 0.0, 3e-4))
    sim = abd.Simulation(scene, device=name)
    start, random, forces = sim.checkpoint(), np.random.default_rng(0), []
    top = sim.bodies["top"].index
    for size in np.geomspace(1e-16, 1e-8, 60):
        q, angle = np.array(start["q"]), random.uniform(0.0, 2.0 * np.pi)
        q[top, :3] += [size * np.cos(angle), size * np.sin(angle), -1e-4]
        sim.restore(start | {"q": q, "previous_q": q})
        forces.append(sim.bodies["top"].contact_force)
    assert forces[-1][2] > 1e-5
    np.testing.assert_allclose(forces, np.tile([0.0, 0.0, forces[-1][2]], (60, 1)), atol=1e-4 * forces[-1][2])
