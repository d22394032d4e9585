"""Resting contacts: forces on bodies, and no rebound."""

from math import cos, radians, sin

import numpy as np
import pytest
from checkpoints import assert_goes_on
from on_device import NAME, follow

import abd

G = 9.81
pytestmark = pytest.mark.device


def ground(dt: float, mu: float, **solver) -> abd.Scene:
    scene = abd.Scene(solver={"dt": dt, **solver})
    scene.add_material("default", mu=mu)
    scene.add_body("ground", half_space={})
    return scene


def rocking() -> abd.Simulation:
    """A box that was let go on one of its edges."""
    turn, (width, height) = radians(10.0), (0.1, 0.3)
    scene = ground(0.01, 0.8)
    scene.add_body(
        "box", box=(width, 0.2, height), axis_angle={"axis": (0.0, 1.0, 0.0), "degrees": 10.0},
        position=(0.0, 0.0, 0.5 * (width * sin(turn) + height * cos(turn))),
    )  # fmt: skip
    return abd.Simulation(scene, device=NAME)


@pytest.mark.parametrize("speed", [0.02, 0.1, 0.5, 2.0])
def test_impacts_on_a_resting_box_do_not_rebound(speed):
    """An impact below the load leaves at most half of the speed that gravity adds in a step."""
    h = 0.01
    scene = ground(h, 0.5)
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
    scene = ground(h, 0.0)
    scene.add_body("box", box=(0.1, 0.1, 0.1), position=(0.5, 0.0, 0.05))
    scene.add_body("other", box=(0.1, 0.1, 0.1), position=(0.4 - 13.0 * speed * h, 0.0, 0.05), velocity=(speed, 0.0, 0.0))
    simulation = abd.Simulation(scene, device=NAME)
    bodies = [simulation.bodies[name] for name in ("other", "box")]
    simulation.run(steps=20)
    speeds = [body.linear_velocity[0] for body in bodies]
    np.testing.assert_allclose(speeds, 0.5 * speed, atol=0.03 * speed)


@pytest.mark.parametrize("speed", [0.01, 0.05])
def test_tightening_rope_has_no_rebound(speed):
    """The rope pulls a box that slides on the ground without friction."""
    h = 0.01
    scene = ground(h, 0.0)
    scene.add_body("box", box=(0.1, 0.1, 0.1), position=(0.0, 0.0, 0.0503), velocity=(speed, 0.0, 0.0))
    away = {"parent_anchor": (-0.5, 0.0, 0.0503), "child_anchor": (0.0, 0.0, 0.0)}
    scene.add_rope("rope", abd.WORLD, "box", distance=0.5 + 10.3 * speed * h, **away)
    simulation = abd.Simulation(scene, device=NAME)
    box, slowest = simulation.bodies["box"], speed
    for _ in range(30):
        simulation.step()
        slowest = min(slowest, box.linear_velocity[0])
    assert slowest > -0.05 * speed and box.linear_velocity[0] < 0.05 * speed


def test_impact_of_other_bodies_has_no_effect():
    """A sliding box has the same motion with and without bodies that fall next to it."""
    def run(others: int) -> np.ndarray:
        scene = ground(0.01, 0.5)
        scene.add_body("box", box=(0.2, 0.2, 0.05), position=(0.0, 0.0, 0.025), velocity=(2.0, 0.0, 0.0))
        for k in range(others):
            scene.add_body(f"other{k}", box=(0.1, 0.1, 0.1), position=(0.0, 3.0 + k, 0.3))
        simulation = abd.Simulation(scene, device=NAME)
        return np.array(follow(simulation, 40, lambda _: simulation.bodies["box"].position.copy()))

    alone, beside = run(0), run(3)
    np.testing.assert_allclose(beside, alone, atol=1e-9)


@pytest.mark.parametrize("device", ["numpy", NAME])
@pytest.mark.parametrize("kind", ["ball", "pendulum"])
def test_resting_bodies_with_near_bounding_boxes_have_no_effect(kind, device):
    """A ball falls freely, and a pendulum swings, next to a beam that lies askew on the ground."""
    runs = []
    for beam in (False, True):
        scene = ground(0.01, 0.5)
        if beam:
            turn = {"axis": (0.0, 0.0, 1.0), "degrees": 45.0}
            scene.add_body("beam", box=(2.0, 0.1, 0.3), position=(0.0, 0.0, 0.151), axis_angle=turn)
        scene.add_body("body", sphere={"radius": 0.05}, position=(0.4, -0.4, 0.2))
        if kind == "pendulum":
            scene.add_spherical("pin", abd.WORLD, "body", anchor=(0.3, -0.5, 0.25), enforcement="exact")
        simulation = abd.Simulation(scene, device=device)
        runs.append(follow(simulation, 12, lambda _, of=simulation: of.bodies["body"].position.copy()))
    np.testing.assert_allclose(runs[1], runs[0], atol=1e-9)


def test_applied_force_acts_from_its_step_on():
    """The full force acts in its step on a box that slides without friction."""
    h = 0.01
    scene = ground(h, 0.0)
    scene.add_body("box", box=(0.2, 0.2, 0.05), position=(0.0, 0.0, 0.025), velocity=(1.0, 0.0, 0.0))
    simulation = abd.Simulation(scene, device=NAME)
    box = simulation.bodies["box"]
    simulation.run(steps=10)
    push = 0.3 * box.mass * G
    box.apply_force((push, 0.0, 0.0))
    simulation.run(steps=10)
    assert box.linear_velocity[0] - 1.0 == pytest.approx(10 * h * push / box.mass, rel=1e-9)


def test_a_restored_run_continues_bit_for_bit():
    one = rocking()
    one.run(steps=10)
    assert_goes_on(one, rocking(), 20)


@pytest.mark.parametrize("dt", [0.01, 0.002])
@pytest.mark.parametrize("acceleration", [(0.0, 0.0, 5.0), (0.0, 0.0, -5.0), (0.0, 0.0, 60.0)])
def test_the_force_of_an_accelerated_plate_is_steady(acceleration, dt):
    """The velocity of the plate is not mistaken for an impact, and the box follows without a jump."""
    scene = ground(dt, 0.5)
    along = {axis: f"0.5*{a}*t*t" for axis, a in zip("xyz", acceleration, strict=True)}
    scene.add_body("plate", box=(1.0, 1.0, 0.2), position=(0, 0, 2.9), kind="kinematic", motion={"formulas": along})
    scene.add_body("box", box=(0.2, 0.2, 0.1), position=(0, 0, 3.0501), mass=1.0)
    simulation = abd.Simulation(scene, device=NAME)
    forces = follow(simulation, 30, lambda _: simulation.bodies["box"].contact_force)
    np.testing.assert_allclose(forces[15:], np.tile(np.add(acceleration, (0, 0, G)), (15, 1)), rtol=0.01, atol=0.01)


@pytest.mark.parametrize("dt", [0.01, 0.002])
@pytest.mark.parametrize("gap", [5e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_contact_forces_balance_weight_and_inertia_in_each_step(mu, gap, dt):
    """This holds on a shaken plate, with and without friction, for any activation."""
    scene = ground(dt, mu, d_hat=gap)
    shaken = {"formulas": {"z": "0.005*sin(10*pi*t)"}}
    scene.add_body("plate", box=(1.0, 1.0, 0.2), position=(0, 0, 1.0), kind="kinematic", motion=shaken)
    scene.add_body("box", box=(0.2, 0.2, 0.1), position=(0, 0, 1.15 + gap), mass=1.0)
    simulation = abd.Simulation(scene, device=NAME)
    box = simulation.bodies["box"]
    states = np.array(follow(simulation, 60, lambda _: [box.linear_velocity[2], box.contact_force[2]]))
    needed = np.diff(states[:, 0]) / dt + G
    np.testing.assert_allclose(states[1:, 1], needed, atol=0.1 * G)
