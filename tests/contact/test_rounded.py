"""Exact spheres and capsules, and rounded meshes: distances, forces, starts, mass, and motion against closed forms."""

from itertools import combinations_with_replacement

import h5py
import numpy as np
import pytest
import trimesh
from common_scenes import on_ground, overlaps
from on_device import NAME

import abd
from abd.api.simulation import Simulation
from abd.backends.reference.numpy_bodies import Boxes
from abd.certificate.certificate import certify
from abd.contact import ccd
from abd.contact.candidates import contacts, find_candidates
from abd.contact.pair_law import widest_activation
from abd.contact.pairs import body_pairs
from abd.contact.path import direction_path, standing
from abd.contact.surfaces import Surfaces
from abd.io.run import run
from abd.pictures.shapes import skin
from abd.potentials import contact
from abd.potentials.contact import ContactParameters
from abd.scene.compile.compile import compile_scene
from abd.scene.schema.schema import SceneSpec

G = 9.81
PARTS = {
    "sphere": ({"sphere": {"radius": 0.2}}, 0.2),
    "capsule": ({"capsule": {"radius": 0.15, "length": 0.5}}, 0.4),
    "box": ({"box": (0.3, 0.3, 0.3)}, 0.15),
    "rounded box": ({"box": (0.2, 0.2, 0.2), "rounding": 0.05}, 0.15),
}
"""Bodies and how far they reach along their own z axis from the origin [m]."""
D_HAT = 1e-3
PAIRS = list(combinations_with_replacement(PARTS, 2))
LYING = {"sphere": 0.2, "capsule": 0.15, "box": 0.15, "rounded box": 0.15}
"""How far they reach along their x axis."""


def stacked(lower: str, upper: str, gap: float, lying: bool = False, **settings):
    """The compiled scene of one body above another, or a half-space, at a gap [m]; both stand on end, or lie parallel."""
    reach, turn = (LYING if lying else {name: part[1] for name, part in PARTS.items()}), {}
    if lying:
        turn = {"axis_angle": {"axis": (0.0, 1.0, 0.0), "degrees": 90.0}}
    below = {"half_space": {}} if lower == "half-space" else PARTS[lower][0] | turn
    height = reach.get(lower, 0.0) + reach[upper] + gap
    # away from the diagonals of the faces
    shift = (0.06, 0.0) if "box" in (lower[-3:], upper[-3:]) else (0.0, 0.0)
    bodies = [{"name": "lower", **below}, {"name": "upper", **PARTS[upper][0], **turn, "position": (*shift, height)}]
    return compile_scene(SceneSpec(body=bodies, solver={"d_hat": D_HAT, **settings}))


def near(model, q: np.ndarray):
    """All contacts of the two bodies within reach of their barrier, and their gaps [m]."""
    surfaces, pairs = Surfaces.of(model), body_pairs(model)
    found = find_candidates(model, surfaces, pairs, standing(q), widest_activation(model))
    listed = contacts(model, surfaces, pairs, found)
    return listed, np.sqrt(contact.closest(listed.positions(q), listed).D) - listed.xi


@pytest.mark.parametrize("lying", [False, True])
@pytest.mark.parametrize(("lower", "upper"), PAIRS)
def test_round_pairs_repel_at_their_surfaces(lower, upper, lying):
    """The gap is that of the ideal shapes, and the force acts along their connecting line, also for parallel capsules."""
    gap = 2e-4
    model = stacked(lower, upper, gap, lying)
    q = model.bodies.q
    listed, gaps = near(model, q)
    assert gaps.min() == pytest.approx(gap, rel=1e-9)
    elements = contact.contact_elements(listed.positions(q), listed, ContactParameters(1.0, D_HAT))
    i, j = (part.sum(axis=0)[:3] for part in elements.gradients())
    push = -i if listed.first[0] == 1 ^ int(listed.flipped[0]) else -j
    np.testing.assert_allclose(i, -j, atol=1e-9 * abs(i[2]))
    # the sum over all pairs of two meshes is not straight where edges of flat faces are near
    straight = 0.2 if lower[-3:] == upper[-3:] == "box" else 1e-6
    assert abs(push[2]) > 0.0 and np.abs(push[:2]).max() < straight * abs(push[2])
    lifted = q.copy()
    lifted[1, 2] += 1e-8
    energy = [contact.energy(listed.positions(x), listed, ContactParameters(1.0, D_HAT)).sum() for x in (q, lifted)]
    assert energy[1] < energy[0]


@pytest.mark.parametrize("lying", [False, True])
@pytest.mark.parametrize(("lower", "upper"), [*PAIRS, *(("half-space", name) for name in PARTS)])
def test_initial_gaps_and_overlaps_are_those_of_the_ideal_shapes(lower, upper, lying):
    apart, meeting = (stacked(lower, upper, gap, lying) for gap in (1e-6, -1e-3))
    assert overlaps(apart) == []
    assert near(apart, apart.bodies.q)[1].min() == pytest.approx(1e-6, abs=1e-12)
    (problem,) = overlaps(meeting)
    assert problem.value == pytest.approx(1e-3, rel=0.05)


def test_a_body_inside_a_ball_is_found():
    bodies = [{"name": "ball", "sphere": {"radius": 1.0}}, {"name": "box", "box": (0.1, 0.1, 0.1), "position": (0.7, 0, 0)}]
    (problem,) = overlaps(compile_scene(SceneSpec(body=bodies)))
    assert "box" in problem.message and problem.value > 0.3


def test_mass_and_inertia_are_those_of_the_solids():
    """They equal those of fine meshes and 2/5 m r^2 of the sphere; an explicit mass scales both."""
    spheres = [{"name": "a", "sphere": {"radius": 0.3}}, {"name": "b", "sphere": {"radius": 0.3}, "mass": 2.0}]
    capsules = [
        {"name": f"capsule {segments}", "capsule": {"radius": 0.3, "length": 0.8, "segments": segments}}
        for segments in (None, 256)
    ]
    bodies = compile_scene(SceneSpec(body=[{**b, "position": (k, 0, 0)} for k, b in enumerate(spheres + capsules)])).bodies
    assert bodies.mass[0] == pytest.approx(1000.0 * 4.0 / 3.0 * np.pi * 0.3**3, rel=1e-12)
    np.testing.assert_allclose(bodies.moment[0], bodies.mass[0] * 0.3**2 / 5.0, rtol=1e-12)
    np.testing.assert_allclose(bodies.moment[1], 2.0 * 0.3**2 / 5.0, rtol=1e-12)
    assert bodies.volume[1] == pytest.approx(bodies.volume[0], rel=1e-12)
    np.testing.assert_allclose(bodies.mass[2], bodies.mass[3], rtol=1e-3)
    np.testing.assert_allclose(np.sort(bodies.moment[2]), np.sort(bodies.moment[3]), rtol=2e-3)


def test_a_scaled_ball_has_its_radius_and_mass():
    grown = compile_scene(SceneSpec(body=[{"name": "a", "sphere": {"radius": 0.3}, "scale": 2.0}])).bodies
    assert grown.radius[0] == 0.6 and grown.mass[0] == pytest.approx(1000.0 * 4.0 / 3.0 * np.pi * 0.6**3)


@pytest.mark.parametrize("other", ["sphere", "capsule", "box"])
@pytest.mark.parametrize("spin", [0.0, 1.0])
def test_conservative_advancement_approaches_the_surface(other, spin):
    """At a radius of 0.5 m the march ends within a fifth of a gap of 1e-5 m, and tangential motion is not limited."""
    parts = {"sphere": {"sphere": {"radius": 0.5}}, "capsule": {"capsule": {"radius": 0.5, "length": 1.0}}}
    top = {"sphere": 0.5, "capsule": 1.0, "box": 0.5}[other]
    bodies = [
        {"name": "other", **parts.get(other, {"box": (3.0, 3.0, 1.0)})},
        {"name": "ball", "sphere": {"radius": 0.5}, "position": (0, 0, top + 0.5 + 1e-5)},
    ]
    model = compile_scene(SceneSpec(body=bodies, solver={"d_hat": 1e-3}))
    q, surfaces, pairs = model.bodies.q, Surfaces.of(model), body_pairs(model)

    def share(velocity) -> tuple[float, float]:
        """How far the ball gets on its way, and the gap that is left there."""
        direction = np.zeros_like(q)
        direction[1, :3] = velocity
        direction[1, 3:] = spin * np.array([[0, 0, 1], [0, 0, 0], [-1, 0, 0]], dtype=float).ravel()
        path = direction_path(q, direction, np.tile(np.eye(3), (2, 1, 1)), Boxes(model).radii(q))
        listed = contacts(model, surfaces, pairs, find_candidates(model, surfaces, pairs, path, 1e-3))
        toi = ccd.time_of_impact(path, listed).min()
        x = listed.positions(path.samples(np.array([toi]))[0])
        return toi, (np.sqrt(contact.closest(x, listed).D) - listed.xi).min()

    toi, left = share((0.0, 0.0, -0.1))
    assert 0.8 * 1e-4 <= toi < 1e-4 and 0.0 < left <= 0.2 * 1e-5 * (1.0 + 1e-6)
    toi, left = share((1e-3, 0.0, 0.0))
    assert toi == 1.0 and left > 0.5e-5


def test_skins_surround_the_ideal_shapes():
    model = compile_scene(
        SceneSpec(body=[{"name": k, **v[0], "position": (3 * n, 0, 0)} for n, (k, v) in enumerate(PARTS.items())])
    )
    for mesh, radius in zip(model.meshes, model.bodies.radius, strict=True):
        if radius > 0.0:
            vertices, triangles = skin(mesh.vertices, mesh.triangles, mesh.codim_edges, mesh.points, radius)
            assert triangles.min() == 0 and triangles.max() == len(vertices) - 1
            np.testing.assert_allclose(np.ptp(vertices, axis=0), np.ptp(mesh.vertices, axis=0) + 2 * radius, rtol=0.02)
            assert (np.ptp(vertices, axis=0) <= np.ptp(mesh.vertices, axis=0) + 2 * radius + 1e-12).all()


def test_skins_of_smooth_meshes_are_watertight():
    mesh = trimesh.creation.torus(0.1, 0.03)
    parts = skin(mesh.vertices, mesh.faces, np.zeros((0, 2), dtype=int), np.zeros(0, dtype=int), 0.01)
    assert trimesh.Trimesh(*parts).is_watertight


def test_parallel_capsules_support_each_other():
    """The ends of parallel capsules carry the load that their edge pairs lose."""
    scene = abd.Scene(solver={"d_hat": 1e-3})
    side = {"axis_angle": {"axis": (0.0, 1.0, 0.0), "degrees": 90.0}}
    scene.add_body("lower", kind="static", capsule={"radius": 0.1, "length": 0.6}, **side)
    upper = {"capsule": {"radius": 0.05, "length": 0.4}, "fix": ["y", "rx", "ry", "rz"], **side}
    scene.add_body("upper", position=(0, 0, 0.152), velocity=(0, 0, -1.0), **upper)
    simulation = abd.Simulation(scene, device=NAME)
    report = simulation.run(steps=100)
    assert report.converged and 0.0 < report.min_gap < 1e-3
    assert simulation.bodies["upper"].transform[2, 3] == pytest.approx(0.15 + report.min_gap, abs=1e-6)


POINT = {"surface": {"vertices": [(0.0, 0.0, 0.0)], "points": [0]}}


@pytest.mark.parametrize(
    "point", [{"sphere": {"radius": 0.1}}, {**POINT, "radius": 0.1}, {**POINT, "mass": 1.0, "inertia": (0.01,) * 3}]
)
def test_a_scene_of_one_point_runs(point):
    """Its size is that of the ball around the point, or of the scene if there is no ball."""
    scene = on_ground()
    scene.add_body("ball", **point, position=(0, 0, 0.0002 if "mass" in point else 0.1002))
    simulation = abd.Simulation(scene, device=NAME)
    report = simulation.run(steps=20)
    assert report.converged and 0.0 < report.min_gap < widest_activation(simulation.model)


def pile(**solver) -> abd.Scene:
    """A ball, a capsule, a box and a rounded box fall onto one another and a plate, turning, with friction."""
    scene = abd.Scene(solver={"d_hat": 1e-3, **solver})
    scene.add_material("rough", mu=0.4)
    scene.add_body("plate", kind="static", box=(2.0, 2.0, 0.1), position=(0, 0, -0.05), material="rough")
    for k, (name, (shape, _)) in enumerate(PARTS.items()):
        turn = {"axis_angle": {"axis": (1.0, 0.3 * k, 0.2), "degrees": 70.0}}
        place, spin = (0.05 * k, 0.03, 0.22 + 0.42 * k), (2.0, 1.0, 3.0 - k)
        scene.add_body(name, **shape, **turn, position=place, angular_velocity=spin, velocity=(0, 0, -1.0), material="rough")
    return scene


def test_processor_and_definitions_agree_on_round_bodies():
    both = [abd.Simulation(pile(), device=device) for device in ("numpy", "cpu")]
    for _ in range(12):
        for simulation in both:
            assert simulation.step().converged
    difference = np.abs(both[0].host_state().q - both[1].host_state().q).max()
    assert difference < 1e-3 * 0.01, "the tolerance, 1e-3 m/s, over one step"


def test_a_pile_of_round_bodies_is_certified(tmp_path):
    """All states are free for ipctk with the radii; after enlarging a ball the run is rejected."""
    run(pile(), compile_scene(pile().spec), tmp_path / "run", device=NAME, steps=40, simulate=Simulation)
    found = certify(tmp_path / "run", every=5)
    assert found.ok and 0.0 < found.smallest_gap < 1e-3
    with h5py.File(tmp_path / "run" / "trajectory.h5", "r+") as file:
        radius = file["bodies/radius"][...]
        file["bodies/radius"][...] = radius * np.where(radius == 0.2, 1.02, 1.0)
    assert not certify(tmp_path / "run", every=5).ok
