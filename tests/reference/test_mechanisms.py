"""A pendulum on a penalty joint: budgets and orders of its integrators.

Source: A01 of the IFToMM multibody benchmark library.
"""

import numpy as np
import pytest
from on_device import NAME
from scipy.integrate import solve_ivp

import abd

pytestmark = pytest.mark.device

G = 9.81


def scene_of(integrator: str, h: float, gravity=(0.0, -G, 0.0), **solver) -> abd.Scene:
    """A scene without bodies."""
    return abd.Scene(gravity=gravity, solver={"dt": h, "integrator": integrator, **solver})


def solution(rate, start, times) -> np.ndarray:
    """(len(times), k) of an ordinary differential equation to 1e-11."""
    result = solve_ivp(rate, (0.0, max(times)), start, method="DOP853", rtol=1e-11, atol=1e-12, t_eval=times)
    return result.y.T


def pendulum(integrator: str, h: float, joint: str = "spherical") -> abd.Scene:
    """A01; the bob is a proxy of nearly no size, whose own inertia 1e-6 kg m^2 shifts the phase by 1e-6."""
    scene = scene_of(integrator, h)
    bob = {"mass": 1.0, "center_of_mass": (0.0, 0.0, 0.0), "inertia": (1e-6, 1e-6, 1e-6)}
    scene.add_body("bob", box=(0.1, 0.1, 0.1), position=(-1.0, 0.0, 0.0), **bob)
    axis = {"axis": (0.0, 0.0, 1.0)} if joint == "hinge" else {}
    scene.add_joint(joint, "pivot", abd.WORLD, "bob", anchor=(0.0, 0.0, 0.0), **axis)
    return scene


def pendulum_errors(integrator: str, h: float, times, joint: str = "spherical") -> np.ndarray:
    """Distances [m] from the exact motion ``th'' = -g cos th`` at some times."""
    angles = solution(lambda t, y: [y[1], -G * np.cos(y[0])], [np.pi, 0.0], times)[:, 0]
    exact = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    simulation = abd.Simulation(pendulum(integrator, h, joint), device=NAME)
    positions = []
    for _ in range(round(max(times) / h)):
        report = simulation.step()
        if np.isclose(report.time, times).any():
            positions.append(simulation.bodies["bob"].transform[:2, 3])
    return np.linalg.norm(np.array(positions) - exact, axis=1)


@pytest.mark.parametrize(
    ("integrator", "h", "budget"),
    [
        ("bdf1", 1e-2, {0.5: 2.1e-3, 1.0: 1.5e-1, 2.0: 4.0e-2}),
        ("bdf2", 1e-2, {0.5: 1.2e-3, 1.0: 3.1e-3, 2.0: 7.7e-3, 5.0: 6.5e-3, 10.0: 2.0e-2}),
        ("bdf2", 2.5e-3, {0.5: 8.1e-5, 1.0: 1.8e-4, 2.0: 4.9e-4}),
    ],
)
def test_a_pendulum_stays_within_the_budget_of_its_integrator(integrator, h, budget):
    """Twice the errors of the same scheme with an exactly rigid rod, at the default tolerance."""
    errors = pendulum_errors(integrator, h, list(budget))
    assert np.all(errors <= 2.0 * np.array(list(budget.values())))


@pytest.mark.parametrize("joint", ["spherical", "hinge"])
@pytest.mark.parametrize(("integrator", "order"), [("bdf1", 1.0), ("bdf2", 2.0)])
def test_a_pendulum_converges_with_the_order_of_its_integrator(integrator, order, joint):
    """Errors over the first 0.5 s; the joint's opening c h^2 f / K is of second order too."""
    times = [0.25, 0.5]
    coarse, fine = (np.max(pendulum_errors(integrator, h, times, joint)) for h in (0.01, 0.005))
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.15)
