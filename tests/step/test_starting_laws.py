"""Bodies that start within the activation distance: bodies at rest do not move, and friction acts from the start."""

from math import cos, sin, tan

import numpy as np
import pytest
from on_device import NAME, follow

import abd
from abd.backends import create
from abd.contact.pair_law import D_HAT_SHARE
from abd.state import State
from abd.step.step import Stepper

SIZE, G = 0.05, 9.81


def box_on(floor: str, share: float, **solver) -> abd.Scene:
    """A cube at a gap of so many activations above a half-space or the top of a table."""
    scene = abd.Scene(solver=solver)
    if floor == "half-space":
        scene.add_body("floor", half_space={})
    else:
        scene.add_body("floor", box=(2.4, 2.4, 0.1), kind="static", position=(0, 0, -0.05))
    height = 0.5 * SIZE + share * D_HAT_SHARE * SIZE
    scene.add_body("box", box=(SIZE,) * 3, density=1000.0, position=(0.013, 0.017, height))
    return scene


@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
@pytest.mark.parametrize("dt", [1e-2, 1e-4])
@pytest.mark.parametrize("share", [2.5e-4, 0.1, 0.5, 1.0 - 1e-9])
@pytest.mark.parametrize("floor", ["half-space", "table"])
def test_placed_box_stays_in_place(floor, share, dt, integrator):
    simulation = abd.Simulation(box_on(floor, share, dt=dt, integrator=integrator), device=NAME)
    start, mass = simulation.stepper.q[1, 2], simulation.bodies["box"].mass
    before = mass * G * start + simulation.stepper.initial_contacts.energy
    for _ in range(30):
        report = simulation.step()
        energy = sum(report.energy[name] for name in ("kinetic", "gravity", "elastic", "contact"))
        assert abs(simulation.stepper.q[1, 2] - start) < 1e-3 * SIZE
        assert simulation.stepper.qd[1, 2] < 2e-3
        assert energy < before + 1e-3 * mass * G * SIZE


@pytest.mark.parametrize("device", [NAME, "numpy"])
def test_contacts_of_the_initial_state_exert_no_force(device):
    """A pair within its activation distance takes its gap as activation distance."""
    scene = box_on("half-space", 0.25)
    model = scene.compile()
    stepper = Stepper(model, create(model, device), State(q=model.bodies.q.copy(), qd=model.bodies.qd.copy()))
    gap = 0.25 * D_HAT_SHARE * SIZE
    assert stepper.initial_contacts.smallest_gap == pytest.approx(gap, rel=1e-9) and stepper.initial_contacts.energy == 0.0
    assert stepper.backend.pair_law.own.activation == pytest.approx([gap], rel=1e-9)


@pytest.mark.parametrize("neighbour", [False, True])
def test_a_pile_settles_within_a_thousandth_of_its_boxes(neighbour):
    """No body rises faster than 2 cm/s; a box next to it drifts by less than its activation distance."""
    scene = abd.Scene(solver={"dt": 1e-3})
    scene.add_body("floor", half_space={})
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


def test_distant_bodies_do_not_affect_the_start():
    def paths(wall: bool) -> np.ndarray:
        scene = abd.Scene(solver={"dt": 1e-3})
        scene.add_body("floor", half_space={})
        for k in range(3):
            scene.add_body(f"box{k}", box=(0.2,) * 3, position=(0, 0, 0.102 + 0.202 * k))
        if wall:
            scene.add_body("wall", box=(1.0, 40.0, 40.0), kind="static", position=(20.5, 0, 0))
        simulation = abd.run(scene, steps=20, device=NAME)
        return simulation.stepper.qd[1:4]

    np.testing.assert_allclose(paths(True), paths(False), atol=1e-9)


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


SLOPE = 0.5
DOWNHILL = np.array([cos(SLOPE), 0.0, -sin(SLOPE)])
NORMAL = np.array([sin(SLOPE), 0.0, cos(SLOPE)])


def on_slope(mu: float, floor: str = "half-space", **body) -> abd.Scene:
    """A body, 0.4 mm above a slope at the middle of its side of 0.2 m."""
    scene = abd.Scene()
    scene.add_material("rough", mu=mu)
    turn = {"axis": (0.0, 1.0, 0.0), "degrees": float(np.degrees(SLOPE))}
    if floor == "half-space":
        scene.add_body("slope", half_space={"normal": tuple(NORMAL)}, material="rough")
    else:
        place = tuple(-0.5 * NORMAL)
        scene.add_body("slope", box=(4, 4, 1), kind="static", position=place, axis_angle=turn, material="rough")
    shape = body or {"box": (0.2, 0.2, 0.2), "axis_angle": turn}
    scene.add_body("body", **shape, position=tuple(0.1004 * NORMAL), material="rough")
    return scene


@pytest.mark.parametrize("floor", ["half-space", "box"])
@pytest.mark.parametrize("device", [NAME, "numpy"])
def test_a_box_on_a_slope_is_held_from_the_start(device, floor):
    """It settles by 1.2e-5 m until friction springs carry its weight, and stays."""
    simulation = abd.Simulation(on_slope(tan(SLOPE) / 0.95, floor), device=device)
    place = simulation.bodies["body"].position @ DOWNHILL
    moved = follow(simulation, 20, lambda _: float(simulation.bodies["body"].position @ DOWNHILL - place))
    assert max(np.abs(moved)) < 2e-5 and np.ptp(moved[10:]) < 5e-7


def test_a_ball_on_a_slope_rolls_from_the_start():
    simulation = abd.run(on_slope(0.8, sphere={"radius": 0.1}), steps=10, device=NAME)
    speed = float(simulation.bodies["body"].linear_velocity @ DOWNHILL)
    assert speed == pytest.approx(5.0 / 7.0 * G * sin(SLOPE) * 0.1, rel=2e-3)
