"""The energy balance of a run (`abd.step.step.Stepper`), including losses and gains of the integration."""

import numpy as np
import pytest
from on_device import NAME

import abd
from abd.io.frame import initial_report
from abd.io.report import total_energy

pytestmark = pytest.mark.device

H = 0.01
G = 9.81


def free(**keys) -> abd.Scene:
    """A body on its own."""
    solver, gravity = keys.pop("solver", {}), keys.pop("gravity", (0.0, 0.0, -G))
    scene = abd.Scene(gravity=gravity, solver={"dt": H, **solver})
    scene.add_body("body", proxy=True, mass=2.0, inertia=(0.1,) * 3, **keys)
    return scene


def pendulum(**keys) -> abd.Scene:
    """A body on a hinge half a metre away, released level; keys of the coordinate."""
    scene = abd.Scene(gravity=(0.0, 0.0, -G), solver={"dt": H, **keys.pop("solver", {})})
    scene.add_body("body", proxy=True, mass=1.0, inertia=(0.01,) * 3, position=(0.5, 0.0, 0.0))
    coordinate = {"coordinate": {"theta": keys}} if keys else {}
    scene.add_hinge("hinge", abd.WORLD, "body", anchor=(0, 0, 0), axis=(0, 1, 0), enforcement="exact", **coordinate)
    return scene


def dropped() -> abd.Scene:
    """A box that falls on rough ground, and slides."""
    scene = abd.Scene(solver={"dt": H})
    scene.add_material("m", mu=0.4)
    scene.add_body("ground", half_space={}, material="m")
    scene.add_body("box", box=(0.2,) * 3, density=1000.0, position=(0, 0, 0.15), velocity=(1.0, 0, 0), material="m")
    return scene


def runs(scene: abd.Scene, steps: int) -> tuple[abd.Simulation, np.ndarray, np.ndarray, float]:
    """Simulation, residual of the balance at every frame, energy of the integration, and the largest energy that moved [J]."""
    simulation = abd.Simulation(scene, device=NAME)
    start = initial_report(simulation.model, simulation.host_state(), simulation.initial_contacts).energy
    reports = [simulation.step().energy for _ in range(steps)]
    works = np.array([[one[name] for name in ("external_work", "friction_work", "integration")] for one in reports])
    totals = np.array([total_energy(one) for one in reports]) - total_energy(start)
    kinetic = np.array([one["kinetic"] for one in reports])
    moved = max(kinetic.max(), np.abs(totals - kinetic + start["kinetic"]).max())
    return simulation, totals - works.sum(axis=1), works[:, 2], moved


PD = {"drive": {"mode": "pd", "target": 1.0, "stiffness": 100.0, "damping": 5.0}}


@pytest.mark.parametrize(
    ("make", "steps"),
    [(pendulum, 60), (lambda: pendulum(solver={"integrator": "bdf1"}), 60), (lambda: pendulum(damping=0.5, **PD), 60),
     (dropped, 40), (lambda: free(torque=(0.0, 3.0, 0.0), force=(1.0, 2.0, 0.0)), 30)],
    ids=["pendulum", "bdf1", "driven", "dropped", "pushed"],
)  # fmt: skip
def test_the_energy_balance_closes_at_every_frame(make, steps):
    _, open_by, _, moved = runs(make(), steps)
    assert np.abs(open_by).max() < 1e-12 * moved


def test_implicit_euler_loses_the_energy_of_its_closed_form():
    """In a fall with bdf1 each step is ``h^2 g`` too deep, and ``1/2 m (g h)^2`` is lost."""
    _, _, gave, _ = runs(free(solver={"integrator": "bdf1"}), 50)
    np.testing.assert_allclose(gave, -0.5 * 2.0 * (G * H) ** 2 * np.arange(1, 51), rtol=1e-9)


def test_losses_of_an_impact_are_part_of_the_balance():
    """Without friction and restitution an impact dissipates the energy of the fall."""
    _, _, gave, moved = runs(dropped(), 60)
    assert gave[-1] < -0.4 * moved and np.abs(gave[:5]).max() < 1e-9 * moved, "the fall itself is free"


def test_work_of_a_torque_is_exact_for_any_rotation():
    """100 N m act on 0.1 kg m^2 for a second, up to 10 rad per step."""
    simulation, _, gave, _ = runs(free(torque=(0.0, 0.0, 100.0), gravity=(0.0, 0.0, 0.0)), 100)
    assert simulation.step().energy["external_work"] == pytest.approx(0.5 * 0.1 * 1010.0**2, rel=1e-6)
    assert abs(gave[-1]) < 1e-6 * 5e4


def test_work_of_drives_and_dampers_is_of_second_order():
    """Forces at step ends alone would put a third of the energy into `integration`."""
    found = []
    for h in (0.01, 0.005):
        _, _, gave, moved = runs(pendulum(damping=0.5, solver={"dt": h}, **PD), round(1.0 / h))
        found.append(abs(gave[-1]) / moved)
    assert found[0] < 2e-2 and found[1] < 0.2 * found[0]  # mostly of the second step


@pytest.mark.parametrize("load", ["force", "torque"])
def test_work_of_loads_that_depend_on_time_is_of_second_order(load):
    """The load 20 + 30 t [N or 0.1 N m] acts for a second on 2 kg or 0.1 kg m^2. Loads at step ends alone would do 0.4 % too
    much work in steps of 10 ms, and half of that in steps of 5 ms."""
    found = []
    for h in (0.01, 0.005):
        simulation = abd.Simulation(free(gravity=(0, 0, 0), solver={"dt": h}), device=NAME)
        body, scale = simulation.bodies["body"], {"force": 2.0, "torque": 0.1}[load]
        getattr(body, f"apply_{load}")(lambda t, _, scale=scale: (0, 0, scale * (20 + 30 * t)))
        energy = simulation.run(steps=round(1.0 / h)).energy
        found.append(abs(energy["external_work"] / (0.5 * scale * 35.0**2) - 1.0))
        assert abs(energy["integration"]) < 1e-3 * energy["kinetic"]
    assert found[0] < 1e-3 and found[1] < 0.3 * found[0]


def test_changes_by_the_user_are_not_part_of_the_balance():
    simulation, _, _, moved = runs(free(velocity=(1.0, 0.0, 0.0)), 5)
    simulation.set_velocities(3.0 * simulation.stepper.qd)
    assert abs(simulation.run(steps=5).energy["integration"]) < 1e-9 * moved
    simulation.gravity = (0.0, 0.0, -20.0)
    assert abs(simulation.run(steps=5).energy["integration"]) < 1e-9 * moved


def test_energy_of_an_inactive_joint_is_not_part_of_the_balance():
    """A spring is stretched by 0.2 m with 20 J."""
    scene = free(gravity=(0.0, 0.0, 0.0), position=(0.2, 0.0, 0.0))
    spring = {"coordinate": {"z": {"stiffness": 1000.0, "rest": -0.2}}, "enforcement": "exact"}
    scene.add_joint("slider", "rail", abd.WORLD, "body", anchor=(0.2, 0, 0), axis=(1, 0, 0), **spring)
    simulation = abd.Simulation(scene, device=NAME)
    held = [simulation.step().energy["joint"] for _ in range(3)]
    simulation.joints["rail"].active = False
    report = simulation.step()
    assert held[-1] > 10.0 and report.energy["joint"] == 0.0 and abs(report.energy["integration"]) < 1e-3


@pytest.mark.parametrize("dt", [0.01, 0.001])
@pytest.mark.parametrize("enforcement", ["exact", "penalty"])
def test_a_coupling_that_is_switched_on_loses_the_energy_of_a_plastic_impact(enforcement, dt):
    """Wheels of 0.1 kg m^2 at 1 rad/s and 0.3 kg m^2 at rest engage with the ratio -2, while the coupling is open."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt})
    for k, (name, inertia, rate) in enumerate((("a", 0.1, 1.0), ("b", 0.3, 0.0))):
        scene.add_body(name, proxy=True, mass=1, inertia=(inertia,) * 3, position=(k, 0, 0))
        hinge = {"anchor": (k, 0, 0), "axis": (0, 0, 1), "enforcement": enforcement, "initial_rate": rate}
        scene.add_hinge(f"on {name}", abd.WORLD, name, **hinge)
    terms = [{"coordinate": "on a.theta", "factor": -2}]
    scene.add_coupling("gear", "on b.theta", terms, enforcement=enforcement, active=False)
    simulation = abd.Simulation(scene, device=NAME)
    simulation.run(duration=0.1)
    simulation.couplings["gear"].active = True
    assert simulation.run(duration=0.2).energy["integration"] == pytest.approx(0.05 * (1.0 / 13.0 - 1.0), rel=1e-4)


@pytest.mark.parametrize("device", [NAME, "numpy"])
def test_restoring_a_state_keeps_the_balance_of_an_impact(device):
    """The impact changes the contact parameters, and with them the contact energy."""
    found = []
    for restores in (False, True):
        simulation = abd.Simulation(dropped(), device=device)
        for _ in range(40):
            if restores:
                simulation.set_velocities(simulation.stepper.qd)
            energy = simulation.step().energy
        found.append(energy["integration"])
    assert found[0] == pytest.approx(found[1], rel=1e-6)


@pytest.mark.parametrize("device", [NAME, "numpy"])
def test_work_of_torques_counts_once_with_substeps_of_others(device):
    """The torque acts on a distant body that takes no part in the substeps of an impact."""
    scene = abd.Scene(solver={"dt": H})
    ends = {"position": (50.0, 0.0, 0.0), "torque": (0.0, 0.0, 100.0), "angular_velocity": (0.0, 0.0, 20.0)}
    scene.add_body("rotor", proxy=True, mass=2.0, inertia=(0.1,) * 3, **ends)
    scene.add_body("ground", box=(4.0, 4.0, 0.02), kind="static", position=(0.0, 0.0, -0.01))
    scene.add_body("box", box=(0.05,) * 3, position=(0.0, 0.0, 0.4), velocity=(0.0, 0.0, -30.0), angular_velocity=(3.0, 2.0, 1.0))
    simulation = abd.Simulation(scene, device=device)
    reports = [simulation.step() for _ in range(3)]
    w = simulation.bodies["rotor"].angular_velocity[2]
    assert max(report.substeps for report in reports) > 1
    assert reports[-1].energy["external_work"] == pytest.approx(0.05 * (w * w - 400.0), rel=1e-6)


def test_energy_of_a_rotor_includes_the_impact_of_its_step():
    scene = abd.Scene(gravity=(0.0, 0.0, 0.0), solver={"dt": H})
    scene.add_body("arm", box=(1.0, 0.1, 0.1), density=100.0, position=(0.5, 0.0, 0.0))
    theta = {"initial_rate": 2.0, "armature": 10.0, "range": (-3, 0.5), "limit_restitution": 0.5}
    scene.add_hinge("h", abd.WORLD, "arm", anchor=(0, 0, 0), axis=(0, 0, 1), enforcement="exact", coordinate={"theta": theta})
    simulation = abd.Simulation(scene, device=NAME)
    while simulation.joints["h"].rates[0] > 0.0:
        report = simulation.step()
    assert report.energy["joint"] == pytest.approx(5.0, abs=1.0)  # with the energy of the end's barrier
    assert report.energy["integration"] == pytest.approx(-15.5, abs=1.0)


@pytest.mark.parametrize("dt", [0.01, 2e-3, 5e-4])
@pytest.mark.parametrize("restitution", [0.0, 1.0])
def test_the_balance_of_an_impact_on_an_end_of_a_range_has_only_its_loss(restitution, dt):
    scene = abd.Scene(gravity=(0.0, 0.0, 0.0), solver={"dt": dt})
    scene.add_body("arm", box=(0.4, 0.1, 0.1), mass=1.0, position=(0.2, 0.0, 0.0))
    theta = {"initial_rate": 5.0, "range": (-3, 0.2), "limit_restitution": restitution}
    scene.add_hinge("h", abd.WORLD, "arm", anchor=(0, 0, 0), axis=(0, 1, 0), enforcement="exact", coordinate={"theta": theta})
    simulation = abd.Simulation(scene, device=NAME)
    joint = simulation.joints["h"]
    while joint.rates[0] > 1.0:
        energy = simulation.step().energy
    start = 0.5 * 25.0 * (0.4**2 / 3.0 + 0.1**2 / 12.0)
    assert energy["joint"] == pytest.approx(0.0, abs=1e-6 * start) and joint.energy == pytest.approx(0.0, abs=1e-6 * start)
    assert energy["integration"] == pytest.approx((restitution**2 - 1.0) * start, abs=0.01 * start)


@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1"])
def test_setting_the_same_gravity_keeps_the_balance(integrator):
    """The joint is a penalty, whose energy contains c h^2."""
    scene = abd.Scene(gravity=(0.0, 0.0, -G), solver={"dt": H, "integrator": integrator})
    scene.add_body("block", box=(0.2, 0.2, 0.2), density=5000.0, position=(0.0, 0.0, -0.3))
    scene.add_hinge("pivot", abd.WORLD, "block", anchor=(0, 0, 0), axis=(0, 1, 0), enforcement="penalty")
    simulation = abd.Simulation(scene, device=NAME)
    before = [simulation.step() for _ in range(40)][-1].energy["integration"]
    for _ in range(10):
        simulation.gravity = (0.0, 0.0, -G)
        report = simulation.step()
    assert report.energy["joint"] > 1e-4 and abs(report.energy["integration"] - before) < 1e-5
