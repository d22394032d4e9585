"""Bodies slide and fall on triangles as on a half-space, for any triangulation."""

import numpy as np
import pytest

import abd
from abd.contact.pair_law import thinnest_extents

pytestmark = pytest.mark.device


def slide(cells: int, direction: float, contact_set: str = "minima") -> tuple[float, float, float]:
    """Slide a frictionless box of 0.1 m for 0.3 s with 0.4 m/s over 2 cells^2 triangles, or over a half-space for 0 cells.

    Returns:
        largest relative change of its speed, largest yaw rate [rad/s], gap at the end [m].
    """
    scene = abd.Scene(solver={"contact_set": contact_set, "d_hat": 1e-3})
    if cells:
        nodes = np.linspace(-1.0, 1.0, cells + 1).tolist()
        corners = [[x, y, 0.0] for x in nodes for y in nodes]
        starts = [i * (cells + 1) + j for i in range(cells) for j in range(cells)]
        triangles = [t for a in starts for b in (a + cells + 1,) for t in ([a, b, b + 1], [a, b + 1, a + 1])]
        scene.add_body("floor", surface={"vertices": corners, "triangles": triangles}, kind="static")
    else:
        scene.add_body("floor", half_space={})
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
        corners = [[x, y, 0.0] for x in (-2.0, 0.0, 2.0) for y in (-2.0, 0.0, 2.0)]
        triangles = [t for k in (0, 1, 3, 4) for t in ([k, k + 3, k + 4], [k, k + 4, k + 1])]
        scene.add_body("floor", surface={"vertices": corners, "triangles": triangles}, kind="static")
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
