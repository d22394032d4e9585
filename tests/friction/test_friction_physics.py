"""Friction and resting contact at the default settings of our own scenes: dt 0.01 s, tolerance 1e-3 m/s, 1 lagging."""

from math import cos, sin, sqrt, tan

import numpy as np
import pytest
from on_device import NAME, follow

import abd
from abd.potentials.barrier import BARRIERS, barrier

pytestmark = pytest.mark.device

G = 9.81
H = 0.01
SLOPE = 0.5
"""Angle of the incline [rad]."""


def on_incline(
    angle: float, mu: float, half_height: float, solver: dict | None = None, **body
) -> tuple[abd.Simulation, np.ndarray]:
    """A body just above a half-space that falls towards +x, and the downhill direction (3,)."""
    scene = abd.Scene(solver=solver)
    scene.add_material("rough", mu=mu)
    normal = np.array([sin(angle), 0.0, cos(angle)])
    scene.add_body("slope", half_space={"normal": tuple(normal), "offset": 0.0}, material="rough")
    position = tuple((half_height + 4e-4) * normal)
    turn = {"axis": (0.0, 1.0, 0.0), "degrees": np.degrees(angle)}
    scene.add_body("body", position=position, axis_angle=turn, material="rough", **body)
    return abd.Simulation(scene, device=NAME), np.array([cos(angle), 0.0, -sin(angle)])


def slide(mu: float, steps: int = 100, **solver) -> tuple[np.ndarray, abd.Simulation, list]:
    """Downhill speeds (steps,) [m/s] of a box of 0.2 m, the simulation and its reports."""
    simulation, downhill = on_incline(SLOPE, mu, 0.1, solver, box=(0.2, 0.2, 0.2))
    speeds, reports = [], []
    for _ in range(steps):
        reports.append(simulation.step())
        speeds.append(simulation.bodies["body"].velocity[:3, 3] @ downhill)
    return np.array(speeds), simulation, reports


@pytest.mark.parametrize("below", [0.01, 0.05, 0.3])
def test_a_box_slides_below_the_threshold(below):
    """The acceleration is g (sin - mu cos) within 1 %; at 0.01 below the threshold 0.086 m/s^2."""
    mu = tan(SLOPE) - below
    speeds, _, reports = slide(mu)
    expected = G * (sin(SLOPE) - mu * cos(SLOPE))
    measured = (speeds[-1] - speeds[20]) / ((len(speeds) - 21) * H)
    assert measured == pytest.approx(expected, rel=0.01)
    assert np.mean([report.newton_iterations for report in reports]) < 4.0


@pytest.mark.parametrize("off", [-0.01, 0.01])
@pytest.mark.parametrize("drop", [2e-4, 4e-3])
@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1"])
def test_sliding_on_triangles_equals_sliding_on_a_half_space(integrator, drop, off):
    """Edges of a plate neither brake nor turn a box, and a sticking box comes to rest."""
    mu = tan(SLOPE) + off
    scene = abd.Scene(solver={"integrator": integrator})
    scene.add_material("rough", mu=mu)
    normal, downhill = np.array([sin(SLOPE), 0.0, cos(SLOPE)]), np.array([cos(SLOPE), 0.0, -sin(SLOPE)])
    common = {"axis_angle": {"axis": (0.0, 1.0, 0.0), "degrees": np.degrees(SLOPE)}, "material": "rough"}
    scene.add_body("plate", kind="static", box=(4.0, 1.0, 0.2), position=tuple(-0.1 * normal), **common)
    above = (0.1 + drop) * normal - 1.5 * downhill + (0.0, 0.03, 0.0)
    scene.add_body("box", box=(0.2, 0.2, 0.2), position=tuple(above), **common)
    simulation = abd.Simulation(scene, device=NAME)
    speeds = follow(simulation, 80, lambda _: simulation.bodies["box"].velocity[:3, 3] @ downhill)
    if off > 0.0:
        assert abs(speeds[-1]) < 1e-3
    else:
        measured = (speeds[-1] - speeds[40]) / ((len(speeds) - 41) * H)
        assert measured == pytest.approx(G * (sin(SLOPE) - mu * cos(SLOPE)), rel=0.01)
    assert abs(simulation.bodies["box"].velocity[1, 3]) < 1e-4


@pytest.mark.parametrize("above", [0.01, 0.1, 1.0])
def test_viscous_static_friction_creeps(above, record_property):
    """The creep follows from f1(y) = tan/mu: y = eps_v (1 - sqrt(1 - tan/mu)) < 1 mm/s."""
    mu = tan(SLOPE) + above
    speeds, simulation, _ = slide(mu, stick="viscous")
    creep = simulation.model.settings.eps_v * (1.0 - sqrt(1.0 - tan(SLOPE) / mu))
    record_property("creep [mm/s]", 1e3 * float(speeds[-1]))
    assert speeds[-1] == pytest.approx(creep, rel=0.02)
    assert np.abs(speeds[-50:]).max() < 1e-3


@pytest.mark.parametrize("above", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1", "bdf2"])
def test_a_box_sticks_above_the_threshold(integrator, above):
    """Its springs stretch by at most eps_v dt, and then it does not move."""
    speeds, _, reports = slide(tan(SLOPE) + above, integrator=integrator)
    assert abs(H * speeds[10:].sum()) < 1e-3 * H
    assert np.abs(speeds[-20:]).max() < 1e-12
    assert np.mean([report.newton_iterations for report in reports]) < 4.0


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
@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1"])
def test_the_resting_gap_balances_the_weight(integrator, kind):
    """At the reported gap of four corners on a half-space, ``-4 kappa_c dE/dd = m g`` with E = b(d^2)."""
    scene = abd.Scene(solver={"integrator": integrator, "barrier": kind})
    scene.add_body("ground", half_space={"normal": (0.0, 0.0, 1.0), "offset": 0.0})
    scene.add_body("box", box=(0.2, 0.2, 0.2), position=(0.0, 0.0, 0.1 + 3e-4))
    simulation = abd.Simulation(scene, device=NAME)
    report = simulation.run(steps=100)
    gap = report.min_gap
    law, pair = simulation.backend.pair_law, (np.array([0]), np.array([1]))
    a = law.activation(*pair)
    slope = barrier(kind, np.array([gap**2]), a, 0.0)[1][0]
    force = -4.0 * law.stiffness(*pair, a, np.zeros(1))[0] * slope * 2.0 * gap
    assert 0.0 < gap < a[0]
    assert force == pytest.approx(simulation.bodies["box"].mass * G, rel=1e-6)


@pytest.mark.parametrize("speed", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("device", [NAME, "numpy"])
def test_friction_acts_in_the_step_of_an_impact(device, speed):
    """The friction impulse in the step of an impact is mu times the normal one."""
    mu = 0.3
    scene = abd.Scene(solver={"dt": H})
    scene.add_material("rough", mu=mu)
    scene.add_body("ground", half_space={}, material="rough")
    axes = {"fix": ["rx", "ry", "rz"], "material": "rough"}
    start = (0.0, 0.0, 0.1 + 0.6 * H * speed)
    scene.add_body("box", box=(0.2, 0.2, 0.2), position=start, velocity=(4.0, 0.0, -speed), **axes)
    simulation = abd.Simulation(scene, device=device)
    simulation.step()
    velocity = simulation.bodies["box"].velocity[:3, 3]
    normal = velocity[2] + speed + G * H
    assert normal > 0.3 * speed, "it strikes in the first step"
    assert 4.0 - velocity[0] == pytest.approx(mu * normal, rel=0.02)
    simulation.run(steps=7)
    taken = 4.0 - simulation.bodies["box"].velocity[0, 3]
    assert taken == pytest.approx(mu * (speed + 8 * G * H), rel=0.05)
