"""Springs that a step resolves follow the trapezoidal rule (`abd.joints.rows.springs`)."""

import numpy as np
import pytest
from on_device import NAME

import abd

pytestmark = pytest.mark.device

H = 0.01
MASS, AWAY = 2.0, 0.05


def oscillator(turn: float, h: float = H, device: str = NAME, damping: float = 0.0, **keys) -> abd.Simulation:
    """A body on a level rail and a spring along it, released `AWAY` from rest, that turns by so much in a step of `H`."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": h})
    scene.add_body("body", proxy=True, mass=MASS, inertia=(0.01,) * 3, position=(AWAY, 0, 0))
    spring = {"stiffness": MASS * (turn / H) ** 2, "damping": damping, "rest": -AWAY, **keys}
    line = {"anchor": (AWAY, 0, 0), "axis": (1, 0, 0), "coordinate": {"z": spring}}
    scene.add_joint("slider", "rail", abd.WORLD, "body", enforcement="exact", **line)
    return abd.Simulation(scene, device=device)


def run(simulation: abd.Simulation, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of the body, and energies."""
    places, energies = [], []
    for _ in range(steps):
        report = simulation.step()
        places.append(simulation.bodies["body"].position[0])
        energies.append(sum(report.energy[name] for name in ("kinetic", "elastic", "joint")))
    return np.array(places), np.array(energies)


@pytest.mark.parametrize("turn", [0.3, 1.0, 3.0])
def test_a_vibration_keeps_its_energy_and_follows_the_rule(turn):
    simulation = oscillator(turn)
    places, energies = run(simulation, 2000)
    np.testing.assert_allclose(energies, 0.5 * MASS * (turn / H * AWAY) ** 2, rtol=1e-9)
    expected = AWAY * np.cos(2.0 * np.arctan(0.5 * turn) * np.arange(1, 2001))
    np.testing.assert_allclose(places, expected, atol=1e-6 * AWAY)


def test_vibrations_that_steps_do_not_resolve_decay():
    simulation = oscillator(4.0)
    _, energies = run(simulation, 200)
    assert energies[-1] < 1e-3 * energies[0]


@pytest.mark.parametrize(("kind", "rest"), [("hinge", 1.0), ("universal", 1.0), ("universal", 0.4)])
def test_a_torsion_spring_released_far_from_rest_gains_no_energy(kind, rest):
    """It would turn its bodies by 1 to 3 rad in the first step."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": H})
    for name, mass, x in (("a", 1.0, 0.0), ("b", 0.3, 0.5)):
        scene.add_body(name, proxy=True, mass=mass, inertia=(0.002 * mass, 0.02 * mass, 0.02 * mass), position=(x, 0, 0))
    spring = {"theta" if kind == "hinge" else "roll": {"stiffness": 300.0, "rest": rest}}
    place = {"anchor": (0.25, 0, 0), "axis": (0.3, 1, 0.2), "coordinate": spring}
    scene.add_joint(kind, "joint", "a", "b", enforcement="exact", **place)
    simulation = abd.Simulation(scene, device=NAME)
    reports = [simulation.step() for _ in range(50)]
    assert max(one.energy["kinetic"] + one.energy["joint"] for one in reports) < 1.01 * 0.5 * 300.0 * rest**2


def test_a_damped_spring_is_of_second_order_and_its_work_is_reported():
    w, d = 20.0, 8.0
    z = d / (2.0 * MASS)
    fast = np.sqrt(w**2 - z**2)
    t = 0.4
    exact = AWAY * np.exp(-z * t) * (np.cos(fast * t) + z / fast * np.sin(fast * t))
    errors = []
    for h in (0.01, 0.005, 0.0025):
        simulation = oscillator(w * H, h, damping=d)
        places, energies = run(simulation, round(t / h))
        errors.append(abs(places[-1] - exact))
    assert np.log2(errors[0] / errors[1]) > 1.7 and np.log2(errors[1] / errors[2]) > 1.7
    lost = energies[-1] - 0.5 * MASS * (w * AWAY) ** 2
    assert simulation.step().energy["friction_work"] == pytest.approx(lost, rel=0.1)


def test_a_limit_dissipates_the_impact_while_a_spring_pulls():
    """Steps with an active limit are of implicit Euler, also for the spring: energy does not grow."""
    simulation = oscillator(0.5, range=(-1.5 * AWAY, 1.0))
    _, energies = run(simulation, 60)
    assert np.diff(energies).max() < 1e-9 * energies[0] and energies[-1] < 0.7 * energies[0]
