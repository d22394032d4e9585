"""Friction and resting contact at the default settings of our own scenes: dt 0.01 s, tolerance 1e-3 m/s, 1 lagging."""

from itertools import product
from math import cos, sin, sqrt, tan

import numpy as np
import pytest
from on_device import NAME
from slopes import on_slope

import abd
from abd.potentials.barrier import BARRIERS, barrier

pytestmark = pytest.mark.device

G = 9.81
H = 0.01
SLOPE = 0.5
"""Angle of the incline [rad]."""
INTEGRATORS = ("generalized_alpha", "bdf1")
ON_PLANE = product(["half-space"], [4e-4], INTEGRATORS, [0.01, 0.1, 1.0])
ON_TRIANGLES = [*product(["box"], [2e-4, 4e-3], INTEGRATORS[:2], [0.01])]


def slide(mu: float, *where, **solver) -> tuple[np.ndarray, abd.Simulation, list]:
    """Downhill speeds (100,) [m/s] of a box, the simulation and its reports."""
    scene, downhill = on_slope(SLOPE, mu, *(where or ("half-space", 4e-4)), solver)
    simulation = abd.Simulation(scene, device=NAME)
    speeds, reports = [], []
    for _ in range(100):
        reports.append(simulation.step())
        speeds.append(simulation.bodies["body"].linear_velocity @ downhill)
    assert np.mean([report.newton_iterations for report in reports]) < 4.0
    return np.array(speeds), simulation, reports


@pytest.mark.parametrize(("floor", "drop", "integrator", "below"), [
    *product(["half-space"], [4e-4], INTEGRATORS[:1], [0.01, 0.05, 0.3]), *ON_TRIANGLES,
])  # fmt: skip
def test_a_box_slides_below_the_threshold(floor, drop, integrator, below):
    """The acceleration is g (sin - mu cos) within 1 %; edges of triangles neither brake nor turn the box."""
    mu = tan(SLOPE) - below
    speeds, simulation, _ = slide(mu, floor, drop, integrator=integrator)
    measured = (speeds[-1] - speeds[40]) / ((len(speeds) - 41) * H)
    assert measured == pytest.approx(G * (sin(SLOPE) - mu * cos(SLOPE)), rel=0.01)
    assert abs(simulation.bodies["body"].linear_velocity[1]) < 1e-4


@pytest.mark.parametrize(("floor", "drop", "integrator", "above"), [*ON_PLANE, *ON_TRIANGLES])
def test_a_box_sticks_above_the_threshold(floor, drop, integrator, above):
    """Its springs stretch by at most eps_v dt, and then it does not move."""
    speeds, _, _ = slide(tan(SLOPE) + above, floor, drop, integrator=integrator)
    assert abs(H * speeds[10:].sum()) < 1e-3 * H
    assert np.abs(speeds[-20:]).max() < 1e-12


@pytest.mark.parametrize("above", [0.01, 0.1, 1.0])
def test_viscous_static_friction_creeps(above):
    """The creep follows from f1(y) = tan/mu: y = eps_v (1 - sqrt(1 - tan/mu)) < 1 mm/s."""
    mu = tan(SLOPE) + above
    speeds, simulation, _ = slide(mu, stick="viscous")
    creep = simulation.model.settings.eps_v * (1.0 - sqrt(1.0 - tan(SLOPE) / mu))
    assert speeds[-1] == pytest.approx(creep, rel=0.02)
    assert np.abs(speeds[-50:]).max() < 1e-3


def test_the_work_of_friction_is_its_force_times_the_path():
    """A sliding box loses mu m g cos(slope) per metre; the other energies follow up to the loss of the integrator."""
    mu = tan(SLOPE) - 0.3
    speeds, simulation, reports = slide(mu)
    kinetic, gravity, work = (
        np.array([report.energy[name] for report in reports[20:]]) for name in ("kinetic", "gravity", "friction_work")
    )
    path = H * 0.5 * (speeds[20:-1] + speeds[21:]).sum()
    weight = simulation.bodies["body"].mass * G
    assert np.all(np.diff(work) < 0.0)
    assert work[-1] - work[0] == pytest.approx(-mu * weight * cos(SLOPE) * path, rel=0.02)
    lost = kinetic[0] + gravity[0] - kinetic[-1] - gravity[-1] + work[-1] - work[0]
    assert 0.0 <= lost < 0.02 * (kinetic[-1] - kinetic[0]), "1/2 h a v of implicit Euler, nothing gained"


@pytest.mark.parametrize("kind", BARRIERS)
@pytest.mark.parametrize("integrator", INTEGRATORS[:2])
def test_the_resting_gap_balances_the_weight(integrator, kind):
    """At the reported gap of four corners on a half-space, ``-4 kappa_c dE/dd = m g`` with E = b(d^2)."""
    scene, _ = on_slope(0.0, 0.0, gap=3e-4, solver={"integrator": integrator, "barrier": kind})
    simulation = abd.Simulation(scene, device=NAME)
    gap = simulation.run(steps=100).min_gap
    law, pair = simulation.backend.pair_law, (np.array([0]), np.array([1]))
    a = law.activation(*pair)
    slope = barrier(kind, np.array([gap**2]), a, 0.0)[1][0]
    force = -4.0 * law.stiffness(*pair, a, np.zeros(1))[0] * slope * 2.0 * gap
    assert 0.0 < gap < a[0]
    assert force == pytest.approx(simulation.bodies["body"].mass * G, rel=1e-6)


@pytest.mark.parametrize("speed", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("device", [NAME, "numpy"])
def test_friction_acts_in_the_step_of_an_impact(device, speed):
    """The friction impulse in the step of an impact is mu times the normal one."""
    mu, motion = 0.3, {"velocity": (4.0, 0.0, -speed), "fix": ["rx", "ry", "rz"]}
    scene, _ = on_slope(0.0, mu, gap=0.6 * H * speed, solver={"dt": H}, **motion)
    simulation = abd.Simulation(scene, device=device)
    simulation.step()
    velocity = simulation.bodies["body"].linear_velocity
    normal = velocity[2] + speed + G * H
    assert normal > 0.3 * speed, "it hits in the first step"
    assert 4.0 - velocity[0] == pytest.approx(mu * normal, rel=0.02)
    simulation.run(steps=7)
    lost = 4.0 - simulation.bodies["body"].linear_velocity[0]
    assert lost == pytest.approx(mu * (speed + 8 * G * H), rel=0.05)
