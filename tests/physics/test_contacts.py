"""Long runs of contact: bodies at rest stay at any step and size, fast ones do not pass through others, a ball rolls."""

from math import cos, pi, sin, sqrt

import numpy as np
import pytest
import trimesh
from common_scenes import on_ground
from projectiles import PAIRS, has_passed, run

import abd
from abd.contact.pair_law import D_HAT_SHARE

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("integrator", ["bdf1", "generalized_alpha"])
@pytest.mark.parametrize("dt", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("size", [5e-5, 0.05, 50.0])
def test_a_box_that_starts_close_is_not_thrown_and_hardly_settles(size, dt, integrator):
    for ratio in (1e-6 / D_HAT_SHARE, 0.01, 0.1, 0.5, 1.0 - 1e-9):
        scene = on_ground(body="floor", dt=dt, integrator=integrator, tolerance=1e-3 * min(size / 0.05, 1.0))
        scene.add_body("box", box=(size,) * 3, position=(0, 0, (0.5 + ratio * D_HAT_SHARE) * size))
        sim = abd.Simulation(scene, device="cpu")
        start, height = sim.bodies["box"].position[2], []
        for _ in range(min(int(0.1 / dt) + 1, 100)):
            sim.step()
            height.append(sim.bodies["box"].position[2] - start)
        assert max(height) <= 0.0 and min(height) > -1e-3 * size, ratio


@pytest.mark.parametrize("name", ["box_stack", "masonry_arch"])
def test_settling_of_stacks_and_arches_does_not_depend_on_the_step(name):
    settled = []
    for dt in (1e-2, 2e-3):
        sim = abd.Simulation(abd.load(name, [f"solver.dt={dt}"]), device="cpu")
        start = np.array(sim.state.q)[:, :3]
        sim.run(duration=0.15)
        settled.append(np.abs(np.array(sim.state.q)[:, :3] - start).max())
    assert settled[0] == pytest.approx(settled[1], rel=0.1)


def test_a_tower_of_twenty_boxes_stands_for_ten_seconds():
    scene = on_ground(body="floor")
    for k in range(20):
        scene.add_body(f"box{k}", box=(0.1,) * 3, position=(0, 0, 0.05 + 0.1002 * k + 2e-4))
    sim = abd.Simulation(scene, device="cpu")
    start = np.array(sim.state.q)[:, :3]
    sim.run(duration=10.0)
    assert np.abs(np.array(sim.state.q)[:, :3] - start).max() < 5e-3


def thrown_boxes() -> abd.Scene:
    """Sixty boxes that fly in all directions at 4 m/s, and collide."""
    scene, random = abd.Scene(), np.random.default_rng(2)
    scene.add_material("default", mu=0.4)
    scene.add_body("ground", half_space={})
    for k in range(60):
        place, (direction, spin) = (0.25 * (k % 4), 0.25 * (k // 4 % 4), 0.2 + 0.25 * (k // 16)), random.normal(size=(2, 3))
        velocity = 4.0 * direction / np.linalg.norm(direction)
        scene.add_body(f"box{k}", box=(0.1,) * 3, position=place, velocity=velocity, angular_velocity=5.0 * spin)
    return scene


def bowl(boxes: int = 200) -> abd.Scene:
    """Boxes that fall into a hemisphere of triangles."""
    sphere = trimesh.creation.icosphere(subdivisions=3, radius=0.6)
    lower = sphere.faces[(sphere.vertices[sphere.faces][..., 2] < 1e-9).all(axis=1)]
    used, triangles = np.unique(lower, return_inverse=True)
    surface = {"vertices": sphere.vertices[used].tolist(), "triangles": triangles.reshape(-1, 3)[:, ::-1].tolist()}
    scene, random = abd.Scene(), np.random.default_rng(3)
    scene.add_material("default", mu=0.3)
    scene.add_body("bowl", kind="static", surface=surface)
    for k in range(boxes):
        place = 0.13 * (k % 5 - 2), 0.13 * (k // 5 % 5 - 2), -0.15 + 0.15 * (k // 25)
        turn = {"axis": random.normal(size=3), "degrees": float(random.uniform(0.0, 180.0))}
        scene.add_body(f"box{k}", box=(0.08,) * 3, position=place, axis_angle=turn)
    return scene


@pytest.mark.parametrize(
    ("make", "steps", "total", "most"),
    [
        (thrown_boxes, 100, 3500, 100),
        (bowl, 150, 6500, 200),
        (lambda: abd.load("wrecking_ball"), 250, 3500, 60),
    ],
    ids=["thrown boxes", "bowl", "wrecking ball"],
)
def test_impacts_of_many_bodies_converge_in_every_step(make, steps, total, most):
    sim = abd.Simulation(make(), device="cpu")
    reports = [sim.step() for _ in range(steps)]
    iterations = [report.newton_iterations for report in reports]
    assert all(report.converged for report in reports)
    assert sum(iterations) <= total and max(iterations) <= most, (sum(iterations), max(iterations))


def front_speed(dt: float, count: int = 40) -> float:
    """Return the speed [m/s] of the front in a row of dominoes, 25 mm apart."""
    scene = abd.Scene(solver={"dt": dt})
    scene.add_material("wood", mu=0.3)
    scene.add_body("table", box=(3, 1, 0.1), kind="static", position=(0.5, 0, -0.05), material="wood")
    for k in range(count):
        push = {"angular_velocity": (0, 5.0, 0), "velocity": (0.125, 0, 0)} if k == 0 else {}
        place = (0.025 * k, 0, 0.025 + 2e-5)
        scene.add_body(f"d{k}", box=(0.008, 0.024, 0.05), density=600.0, position=place, material="wood", **push)
    sim, fell = abd.Simulation(scene, device="cpu"), np.full(count, np.inf)
    while not np.isfinite(fell).all():
        sim.step()
        fell[(np.array(sim.state.q)[1:, 11] < 0.9) & np.isinf(fell)] = sim.time
        assert sim.time < 0.05 * count, "the row stops"
    first, last = count // 5, 4 * count // 5
    return 0.025 * (last - first) / (fell[last] - fell[first])


def test_the_front_of_dominoes_does_not_depend_on_the_step():
    assert front_speed(5e-3) == pytest.approx(front_speed(1e-3), rel=0.05)


@pytest.mark.parametrize("spin", [0.0, 1.0])
@pytest.mark.parametrize("sizes", [0.5, 20, 100])
@pytest.mark.parametrize("name", PAIRS)
def test_bodies_do_not_pass_each_other(name, sizes, spin):
    assert not any(has_passed(PAIRS[name], sizes, spin, 1000 * trial, "cpu") for trial in range(3))


@pytest.mark.parametrize("sizes", [1, 5])
@pytest.mark.parametrize("name", ["box at box", "ball at ball", "box at fixed plate"])
def test_impacts_match_those_of_a_hundredth_of_the_step(name, sizes):
    """Momentum agrees within 30 % and energy within 20 % in most of six trials; bodies move by half a size in a substep."""
    momentum = energy = 0
    for seed in range(0, 6000, 1000):
        end, fine = (run(PAIRS[name], sizes, 0.0, seed, "cpu", finer) for finer in (1, 100))
        momentum += np.linalg.norm(end.impulse - fine.impulse) <= 0.3 * np.linalg.norm(fine.impulse)
        energy += abs(end.energy - fine.energy) <= 0.2 * fine.available_energy
    assert momentum >= 4 and energy >= 4, (momentum, energy)


@pytest.mark.parametrize("facets", [90, 180])
def test_a_ball_rolls_in_a_trough_of_facets_as_in_a_cylinder(facets):
    """Half a period is pi sqrt(7 (R - r) / (5 g)) (1 + a^2 / 16)."""
    R, r, a, width = 0.5, 0.1, 0.3, 0.2
    angle = np.linspace(-pi / 2, pi / 2, facets + 1)
    ring = np.stack([R * np.sin(angle), -R * np.cos(angle)], axis=1).tolist()
    vertices = [(x, y, z) for y in (-width, width) for x, z in ring]
    triangles = [t for k in range(facets) for t in ((k, k + 1, facets + 2 + k), (k, facets + 2 + k, facets + 1 + k))]
    scene = abd.Scene()
    scene.add_material("default", mu=0.8)
    scene.add_body("trough", kind="static", surface={"vertices": vertices, "triangles": triangles})
    away = R - r - 6e-4
    scene.add_body("ball", sphere={"radius": r}, position=(away * sin(a), 0.03, -away * cos(a)))
    sim, x = abd.Simulation(scene, device="cpu"), [away * sin(a)]
    for _ in range(200):
        sim.step()
        x.append(sim.bodies["ball"].position[0])
    passages = [0.01 * (k + x[k] / (x[k] - x[k + 1])) for k in range(200) if x[k] * x[k + 1] < 0.0]
    assert np.diff(passages)[0] == pytest.approx(pi * sqrt(7.0 * (R - r) / (5.0 * 9.81)) * (1.0 + a * a / 16.0), rel=0.02)
