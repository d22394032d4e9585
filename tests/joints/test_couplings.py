"""Couplings by functions of several coordinates, and couplings switched in a running simulation."""

import copy

import numpy as np
import pytest
from on_device import DEVICE, NAME

import abd
from abd.errors import DeviceError, SceneError

pytestmark = pytest.mark.device

FORM = {"formula": "0.3 * sin(a) * (1 + b)", "variables": {"a": "j1.theta", "b": "j2"}}
on_host = pytest.mark.skipif(DEVICE.wide, reason="functions of several coordinates run on the processor")


def wheels(device=NAME, count=3, drives=(), torque=0.0, integrator="generalized_alpha", **coupling) -> abd.Simulation:
    """Wheels of one kg m^2 / 6 side by side about z; the first one's angle is that of the coupling's left side."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01, "tolerance": 1e-7, "integrator": integrator})
    for k in range(count):
        scene.add_body(f"wheel{k}", box=(1, 1, 1), mass=1.0, position=(0, 0, 2 * k), torque=(0, 0, torque if k == 0 else 0))
        drive = {"drive": drives[k]} if k < len(drives) and drives[k] else {}
        scene.add_hinge(f"j{k}", abd.WORLD, f"wheel{k}", anchor=(0, 0, 2 * k), axis=(0, 0, 1), enforcement="exact", **drive)
    scene.add_coupling("c", "j0", **coupling)
    return abd.Simulation(scene, device=device)


@on_host
@pytest.mark.parametrize(("device", "enforcement"), [("numpy", "exact"), (NAME, "exact"), (NAME, "penalty")])
def test_a_formula_of_two_coordinates_holds(device, enforcement):
    """The relation q0 = 0.3 sin(q1) (1 + q2) holds while q1 and q2 are driven."""
    drives = [None, {"mode": "position", "target": "2 * t"}, {"mode": "position", "target": "3 * t"}]
    simulation = wheels(device, drives=drives, enforcement=enforcement, **FORM)
    simulation.run(steps=15)
    a, b, c = (simulation.joints[f"j{k}"].coordinates[0] for k in range(3))
    assert (b, c) == pytest.approx((0.3, 0.45), abs=1e-6)
    assert a == pytest.approx(0.3 * np.sin(b) * (1 + c), abs=1e-3 if enforcement == "penalty" else 1e-8)
    assert abs(simulation.couplings["c"].residual) == pytest.approx(abs(a - 0.3 * np.sin(b) * (1 + c)), abs=1e-9)


@on_host
def test_coupling_does_no_work():
    """The reaction of a torque on q0 at the drives of q1 and q2 follows from the derivatives of f (virtual work)."""
    held = [None, {"mode": "position", "target": 0.0}, {"mode": "position", "target": 0.0}]
    simulation = wheels(drives=held, torque=0.5, enforcement="exact", **FORM)
    simulation.run(steps=5)
    efforts = [simulation.joints[f"j{k}"].wrench()[1][2] for k in range(3)]
    assert efforts[0] == pytest.approx(-0.5, abs=1e-6)
    drive = simulation.joints["j1"].coordinate("theta").drive_force
    assert drive == pytest.approx(-0.3 * 0.5, abs=1e-6)
    assert simulation.joints["j2"].coordinate("theta").drive_force == pytest.approx(0.0, abs=1e-6)


@on_host
def test_a_function_of_python_is_named(tmp_path):
    abd.coupling_function("half product", lambda q: 0.5 * q[0] * q[1] + 0.1 * q[0])
    drives = [None, {"mode": "position", "target": "4 * t"}, {"mode": "position", "target": "4 * t"}]
    keys = {"function": "half product", "variables": {"a": "j1", "b": "j2"}, "enforcement": "exact"}
    simulation = wheels(drives=drives, **keys)
    simulation.run(steps=10)
    assert simulation.joints["j0"].coordinates[0] == pytest.approx(0.5 * 0.16 + 0.04, abs=1e-8)
    simulation.scene.save(tmp_path / "scene.toml")
    assert abd.load(tmp_path / "scene.toml") == simulation.scene


@pytest.mark.skipif(not DEVICE.wide, reason="for devices that the host does not share arrays with")
def test_functions_are_refused_on_devices_by_name():
    with pytest.raises(DeviceError, match=r"functions of several coordinates.*use --device cpu or numpy"):
        wheels(**FORM)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "has no terms"),
        ({"formula": "a", "terms": [{"coordinate": "j1"}]}, "one form of f"),
        ({"formula": "a"}, "has no variables"),
        ({"formula": "a + q", "variables": {"a": "j1"}}, "unknown name 'q'.*known are a, pi"),
        ({"formula": "sin", "variables": {"sin": "j1"}}, "is not a valid name of a variable"),
        ({"formula": "a", "variables": {"a": "j1", "if": "j1"}}, "is not a valid name of a variable"),
        ({"function": "nobody", "variables": {"a": "j1"}}, "there is no function 'nobody'"),
        ({"terms": [{"coordinate": "j1"}], "variables": {"a": "j1"}}, "has no effect with terms"),
        ({"formula": "a", "variables": {"a": "j9"}}, "there is no joint 'j9'"),
        ({"formula": "a", "variables": {"a": "j0"}}, "depends on itself"),
    ],
)
def test_errors_in_functions_are_reported(keys, words):
    with pytest.raises(SceneError, match=words):
        wheels(**keys)


def test_coupling_can_be_switched_and_is_part_of_checkpoints():
    spin = [None, {"mode": "velocity", "target": 2.0}]
    gear = {"terms": [{"coordinate": "j1", "factor": 0.5}], "enforcement": "exact"}
    simulation = wheels(count=2, drives=spin, integrator="bdf1", **gear)
    simulation.run(steps=5)
    assert simulation.joints["j0"].rates[0] == pytest.approx(1.0, abs=1e-6)
    coupling = simulation.couplings["c"]
    coupling.active = False
    fresh = copy.deepcopy(simulation)
    assert not fresh.couplings["c"].active
    saved = simulation.checkpoint()
    angles = []
    for one in (simulation, fresh):
        one.joints["j1"].coordinate("theta").set_rate(-2.0)
        one.run(steps=5)
        angles.append(one.joints["j0"].coordinates[0])
    assert angles[0] == angles[1] == pytest.approx(0.05 + 0.05, abs=2e-3), "the wheel spins on"
    simulation.restore(saved)
    assert not coupling.active and simulation.joints["j0"].coordinates[0] == pytest.approx(0.05, abs=2e-3)
    coupling.active = True
    simulation.step()
    assert coupling.residual == pytest.approx(0.0, abs=1e-8)


@on_host
def test_cubic_spring_conserves_energy_and_functions_take_time():
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.005, "spectral_radius": 1.0, "tolerance": 1e-8})
    scene.add_body("a", box=(0.2, 0.2, 0.2), mass=1.0)
    own = {"coordinate": {"z": {"initial": 0.5, "force_formula": "-40 * q**3"}}}
    scene.add_slider("j", abd.WORLD, "a", anchor=(0, 0, 0), axis=(1, 0, 0), enforcement="exact", **own)
    simulation = abd.Simulation(scene, device=NAME)
    energies = []
    for _ in range(150):
        simulation.step()
        q, v = simulation.joints["j"].coordinates[0], simulation.joints["j"].rates[0]
        energies.append(0.5 * v**2 + 10.0 * q**4)
    assert energies == pytest.approx(np.full(150, 10.0 * 0.5**4), rel=1e-2)
    abd.coupling_function("ramp", lambda at: 3.0 * at[1])
    z = scene.joint("j").coordinate["z"]
    z.force_formula, z.force_function = None, "ramp"
    simulation = abd.run(scene, steps=100, device=NAME)
    assert simulation.joints["j"].rates[0] == pytest.approx(1.5 * 0.5**2, rel=1e-2)
