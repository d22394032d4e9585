"""Resting contacts: starts within the activation distance, forces on bodies, and no rebound."""

import numpy as np
import pytest
from common_scenes import on_ground
from on_device import NAME, follow

import abd
from abd.contact.pair_law import D_HAT_SHARE

pytestmark = pytest.mark.device

G = 9.81


@pytest.mark.parametrize(("size", "dt"), [(5e-5, 1e-3), (5e-4, 1e-2)])
def test_settling_is_no_impact(size: float, dt: float):
    """A box that starts at its activation distance sinks until the barrier carries it, not further in the next step."""
    scene = abd.Scene(solver={"dt": dt, "tolerance": 1e-3 * size / 0.05})
    scene.add_body("floor", half_space={})
    scene.add_body("box", box=(size,) * 3, position=(0, 0, (0.5 + D_HAT_SHARE) * size))
    sim = abd.Simulation(scene, device="cpu")
    start = sim.bodies["box"].position[2]
    sim.run(steps=10)
    assert -0.7e-3 * size < sim.bodies["box"].position[2] - start < -0.6e-3 * size


@pytest.mark.parametrize("speed", [0.02, 0.1, 0.5, 2.0])
def test_impacts_on_a_resting_box_do_not_rebound(speed):
    """An impact below the load leaves at most half of the speed that gravity adds in a step."""
    h = 0.01
    scene = on_ground(0.5, dt=h)
    scene.add_body("box", box=(0.2, 0.2, 0.2), position=(0.0, 0.0, 0.1))
    scene.add_body("other", box=(0.1, 0.1, 0.1), position=(0.0, 0.0, 0.25 + 0.11 * speed), velocity=(0.0, 0.0, -speed))
    simulation = abd.Simulation(scene, device=NAME)
    upward, energies = [], []
    for _ in range(40):
        energy = simulation.step().energy
        energies.append(energy["kinetic"] + energy["gravity"])
        upward.append([simulation.bodies[name].linear_velocity[2] for name in ("box", "other")])
    assert np.max(upward) <= 0.5 * G * h
    assert np.max(energies) <= energies[0] + 1e-6
    assert np.abs(upward[-1]).max() < 1e-3


@pytest.mark.parametrize("speed", [0.02, 0.05, 0.08])
def test_slow_impact_of_boxes_on_the_ground_has_no_rebound(speed):
    """Boxes in resting contact have an impact below the force that ends second order."""
    h = 0.01
    scene = on_ground(0.0, dt=h)
    scene.add_body("box", box=(0.1, 0.1, 0.1), position=(0.5, 0.0, 0.05))
    scene.add_body("other", box=(0.1, 0.1, 0.1), position=(0.4 - 13.0 * speed * h, 0.0, 0.05), velocity=(speed, 0.0, 0.0))
    simulation = abd.Simulation(scene, device=NAME)
    bodies = [simulation.bodies[name] for name in ("other", "box")]
    simulation.run(steps=20)
    speeds = [body.linear_velocity[0] for body in bodies]
    np.testing.assert_allclose(speeds, 0.5 * speed, atol=0.03 * speed)


@pytest.mark.parametrize("speed", [0.01, 0.05])
def test_tightening_rope_has_no_rebound(speed):
    h = 0.01
    scene = on_ground(0.0, dt=h)
    scene.add_body("box", box=(0.1, 0.1, 0.1), position=(0.0, 0.0, 0.0503), velocity=(speed, 0.0, 0.0))
    away = {"parent_anchor": (-0.5, 0.0, 0.0503), "child_anchor": (0.0, 0.0, 0.0)}
    scene.add_rope("rope", abd.WORLD, "box", distance=0.5 + 10.3 * speed * h, **away)
    simulation = abd.Simulation(scene, device=NAME)
    box, slowest = simulation.bodies["box"], speed
    for _ in range(30):
        simulation.step()
        slowest = min(slowest, box.linear_velocity[0])
    assert slowest > -0.05 * speed and box.linear_velocity[0] < 0.05 * speed


BODIES = {
    # what is observed, its keys
    "slides": {"box": (0.2, 0.2, 0.05), "position": (0, 0, 0.025), "velocity": (2, 0, 0)},
    "falls": {"sphere": {"radius": 0.05}, "position": (0.4, -0.4, 0.2)},
    "swings": {"sphere": {"radius": 0.05}, "position": (0.4, -0.4, 0.2)},
    "rests": {"box": (0.2,) * 3, "position": (0, 0, 0.102)},
}
OTHERS = {
    # what is next to it, keys by body
    "falls nearby": [{"box": (0.1,) * 3, "position": (0, 3 + k, 0.3)} for k in range(3)],
    "lies askew, with a near bounding box": [
        {"box": (2, 0.1, 0.3), "position": (0, 0, 0.151), "axis_angle": {"axis": (0, 0, 1), "degrees": 45}},
    ],
    "is large and distant": [{"box": (1, 40, 40), "kind": "static", "position": (20.5, 0, 0)}],
}
NEAR, BEAM, WALL = OTHERS


@pytest.mark.parametrize(
    ("body", "other", "steps", "device"),
    [
        ("slides", NEAR, 40, NAME), ("falls", BEAM, 12, NAME), ("swings", BEAM, 12, NAME), ("rests", WALL, 20, NAME),
        ("swings", BEAM, 7, "numpy"), ("rests", WALL, 7, "numpy"),
    ],
)  # fmt: skip
def test_other_bodies_have_no_effect(body, other, steps, device):
    runs = []
    for others in ([], OTHERS[other]):
        scene = on_ground(0.5, dt=0.01)
        scene.add_body("body", **BODIES[body])
        if body == "swings":
            scene.add_spherical("pin", abd.WORLD, "body", anchor=(0.3, -0.5, 0.25), enforcement="exact")
        for k, keys in enumerate(others):
            scene.add_body(f"other{k}", **keys)
        simulation = abd.Simulation(scene, device=device)
        runs.append(follow(simulation, steps, lambda _, of=simulation: of.bodies["body"].position.copy()))
    np.testing.assert_allclose(runs[1], runs[0], atol=1e-9)


def test_applied_force_acts_from_its_step_on():
    h = 0.01
    scene = on_ground(0.0, dt=h)
    scene.add_body("box", box=(0.2, 0.2, 0.05), position=(0.0, 0.0, 0.025), velocity=(1.0, 0.0, 0.0))
    simulation = abd.Simulation(scene, device=NAME)
    box = simulation.bodies["box"]
    simulation.run(steps=10)
    push = 0.3 * box.mass * G
    box.apply_force((push, 0.0, 0.0))
    simulation.run(steps=10)
    assert box.linear_velocity[0] - 1.0 == pytest.approx(10 * h * push / box.mass, rel=1e-9)


CONSTANT = [({"z": f"0.5*{a}*t*t"}, a, 0.5, None) for a in (5.0, -5.0, 60.0)]
SHAKEN = [({"z": "0.005*sin(10*pi*t)"}, None, mu, gap) for mu in (0.0, 0.5) for gap in (5e-3, 1e-4, 1e-5)]


@pytest.mark.parametrize("dt", [0.01, 0.002])
@pytest.mark.parametrize(("formulas", "acceleration", "mu", "d_hat"), [*CONSTANT, *SHAKEN])
def test_contact_forces_balance_weight_and_inertia_in_each_step(formulas, acceleration, mu, d_hat, dt):
    """The velocity of an accelerated plate is no impact; for a shaken one this holds for any activation."""
    scene = on_ground(mu, dt=dt, **({"d_hat": d_hat} if d_hat else {}))
    scene.add_body("plate", box=(1.0, 1.0, 0.2), position=(0, 0, 2.9), kind="kinematic", motion={"formulas": formulas})
    scene.add_body("box", box=(0.2, 0.2, 0.1), position=(0, 0, 3.05 + (d_hat or 1e-4)), mass=1.0)
    simulation = abd.Simulation(scene, device=NAME)
    box = simulation.bodies["box"]
    steps = 30 if acceleration else 60
    states = np.array(follow(simulation, steps, lambda _: [box.linear_velocity[2], *box.contact_force]))
    np.testing.assert_allclose(states[1:, 3], np.diff(states[:, 0]) / dt + G, atol=0.15 * G)
    if acceleration:
        np.testing.assert_allclose(states[15:, 1:], np.tile([0, 0, acceleration + G], (15, 1)), rtol=0.01, atol=0.01)


SIZE = 0.05


@pytest.mark.parametrize(("integrator", "dt"), [("bdf1", 1e-2), ("generalized_alpha", 1e-4)])
@pytest.mark.parametrize("share", [2.5e-4, 0.1, 0.5, 1.0 - 1e-9])
@pytest.mark.parametrize("floor", ["half-space", "table"])
def test_placed_box_stays_in_place(floor, share, dt, integrator):
    """It starts at a fraction of its activation above a half-space or a table."""
    scene = abd.Scene(solver={"dt": dt, "integrator": integrator})
    table = {"box": (2.4, 2.4, 0.1), "kind": "static", "position": (0, 0, -0.05)}
    scene.add_body("floor", **({"half_space": {}} if floor == "half-space" else table))
    height = 0.5 * SIZE + share * D_HAT_SHARE * SIZE
    scene.add_body("box", box=(SIZE,) * 3, density=1000.0, position=(0.013, 0.017, height))
    simulation = abd.Simulation(scene, device=NAME)
    start, mass = simulation.stepper.q[1, 2], simulation.bodies["box"].mass
    before = mass * G * start + simulation.stepper.initial_contacts.energy
    for _ in range(30):
        report = simulation.step()
        energy = sum(report.energy[name] for name in ("kinetic", "gravity", "elastic", "contact"))
        assert abs(simulation.stepper.q[1, 2] - start) < 1e-3 * SIZE
        assert simulation.stepper.qd[1, 2] < 2e-3
        assert energy < before + 1e-3 * mass * G * SIZE


@pytest.mark.parametrize("neighbour", [False, True])
def test_a_pile_settles_within_a_thousandth_of_its_boxes(neighbour):
    """No body rises faster than 2 cm/s; a box next to it drifts by less than its activation distance."""
    scene = on_ground(body="floor", dt=1e-3)
    gap = 0.3 * D_HAT_SHARE * SIZE
    for k in range(5):
        scene.add_body(f"box{k}", box=(SIZE,) * 3, density=1000.0, position=(0, 0, (k + 0.5) * SIZE + (k + 1) * gap))
    if neighbour:
        beside = SIZE + 1e-2 * D_HAT_SHARE * SIZE
        scene.add_body("beside", box=(SIZE,) * 3, density=1000.0, position=(beside, 0, 0.5 * SIZE + gap))
    simulation = abd.Simulation(scene, device=NAME)
    start = simulation.stepper.q.copy()
    for _ in range(30):
        simulation.step()
        assert simulation.stepper.qd[1:, 2].max() < 2e-2
    moved = simulation.stepper.q[:, :3] - start[:, :3]
    assert np.abs(moved).max() < 1e-3 * 5 * SIZE and np.abs(moved[:, :2]).max() < D_HAT_SHARE * SIZE


@pytest.mark.parametrize("gap", [0.0, 1e-16, 1e-9])
def test_a_box_that_touches_a_slope_slides_as_one_that_is_near(gap):
    """Rounding determines on which side of the slope its corners are."""
    slope, h, steps = 0.5, 0.01, 5
    normal = np.array([np.sin(slope), 0.0, np.cos(slope)])
    scene = abd.Scene(solver={"dt": h, "integrator": "bdf1"})
    scene.add_material("default", mu=0.3)
    scene.add_body("slope", half_space={"normal": normal.tolist()})
    turned = {"order": "xyz", "degrees": [0, np.degrees(slope), 0]}
    scene.add_body("box", box=(0.2, 0.2, 0.2), mass=1.0, position=(0.1 + gap) * normal, euler=turned)
    sim = abd.Simulation(scene, device=NAME)
    assert any("separated" in note for note in sim.model.notes)
    begin = np.array(sim.bodies["box"].position)
    assert np.linalg.norm(begin - 0.1 * normal) < 5e-5
    for _ in range(steps):
        assert sim.step().newton_iterations <= 10
    slid = 9.81 * (np.sin(slope) - 0.3 * np.cos(slope)) * h**2 * steps * (steps + 1) / 2
    assert sim.bodies["box"].position == pytest.approx(begin + slid * np.array([normal[2], 0, -normal[0]]), abs=1e-4)
