"""Loads, springs, states and settings between steps, and runs of many steps."""


import numpy as np
import pytest
from common_scenes import on_ground
from on_device import NAME

import abd
from abd.io.trajectory import Trajectory
from abd.rotations import quaternion_matrix

DEVICES = ["numpy", NAME]


def free_box(device=NAME, gravity=(0, 0, 0), **keys):
    scene = abd.Scene(gravity=gravity, solver={"dt": 0.01, "integrator": "bdf1"})
    scene.add_body("box", box=(0.3, 0.2, 0.1), mass=2.0, **keys)
    scene.add_body("wall", box=(0.1, 1, 1), kind="static", position=(5, 0, 0))
    return abd.Simulation(scene, device=device)


@pytest.mark.parametrize("device", DEVICES)
def test_force_at_a_point_equals_force_and_couple_at_the_centre(device):
    sim, other = free_box(device), free_box(device)
    sim.bodies["box"].apply_force((0, 0.01, 0), at=(0.15, 0, 0), steps=1)
    other.bodies["box"].apply_force((0, 0.01, 0), steps=1)
    other.bodies["box"].apply_torque((0, 0, 0.0015), steps=1)
    inertia = 2.0 / 12.0 * (0.3**2 + 0.2**2)
    for one in (sim, other):
        one.step()
        assert one.bodies["box"].angular_velocity == pytest.approx((0, 0, 0.0015 * 0.01 / inertia), abs=1e-9)
    np.testing.assert_allclose(sim.stepper.q, other.stepper.q, atol=1e-13)


@pytest.mark.parametrize("device", DEVICES)
def test_loads_follow_time_and_body_axes_and_can_be_removed(device):
    sim = free_box(device, quaternion=(1, 0, 0, 1))
    box = sim.bodies["box"]
    seen = []

    def push(t, body):
        seen.append((round(t, 6), body.name))
        return (2.0, 0, 0) if t < 0.025 else (0, 0, 0)

    load = box.apply_force(push, frame="body")
    sim.run(steps=4)
    assert [t for t, _ in seen] == [0.01, 0.02, 0.03, 0.04] and seen[0][1] == "box"
    assert box.linear_velocity == pytest.approx((0, 2 * 2.0 * 0.01 / 2.0, 0), abs=1e-9)
    load.remove()
    box.apply_force((1, 0, 0))
    box.clear_loads()
    before = box.linear_velocity
    sim.step()
    assert len(seen) == 4 and box.linear_velocity == pytest.approx(before, abs=1e-12)


def on_a_rail(gravity=(0, 0, 0), **solver) -> abd.Simulation:
    scene = abd.Scene(gravity=gravity, solver={"dt": 0.01, **solver})
    scene.add_body("cart", box=(0.1, 0.1, 0.1), mass=2.0)
    scene.add_slider("rail", abd.WORLD, "cart", anchor=(0, 0, 0), axis=(1, 0, 0))
    return abd.Simulation(scene, device=NAME)


PUSHES = {
    "body": lambda sim, force, **steps: sim.bodies["cart"].apply_force((force, 0, 0), **steps),
    "coordinate": lambda sim, force, **steps: sim.joints["rail"].z.apply_force(force, **steps),
}


@pytest.mark.parametrize("push", PUSHES.values(), ids=PUSHES)
def test_forces_on_bodies_and_coordinates_follow_the_same_rule(push):
    """A force holds until it is set again; with `steps` it is added for these steps."""
    sim, momentum = on_a_rail(), 0.0
    for force in (1.0, 2.0, 3.0):
        push(sim, force)
        sim.step()
        momentum += force * 0.01
    push(sim, 10.0, steps=2)
    push(sim, 100.0, steps=1)
    sim.run(steps=3)
    momentum += (3 * 3.0 + 2 * 10.0 + 100.0) * 0.01
    assert 2.0 * sim.bodies["cart"].linear_velocity[0] == pytest.approx(momentum, rel=1e-9)


ENDS = {
    "last step of a body's force": lambda sim, hold: PUSHES["body"](sim, hold, steps=20),
    "last step of a coordinate's force": lambda sim, hold: PUSHES["coordinate"](sim, hold, steps=20),
    "function of time": lambda sim, hold: sim.bodies["cart"].apply_force(lambda t, _: (hold if t < 0.205 else 0.0, 0, 0)),
    "removed": lambda sim, hold: sim.bodies["cart"].apply_force((hold, 0, 0)).remove,
}


@pytest.mark.device
@pytest.mark.parametrize("hold", ENDS.values(), ids=ENDS)
def test_body_at_rest_falls_at_the_end_of_the_force_that_holds_it(hold):
    sim = on_a_rail((-10, 0, 0), sleep_speed=1e-3, sleep_time=0.05)
    end = hold(sim, 20.0)
    sim.run(steps=20)
    assert abs(sim.bodies["cart"].position[0]) < 1e-6
    if callable(end):
        end()
    sim.run(steps=10)
    assert sim.bodies["cart"].linear_velocity[0] == pytest.approx(-1.0, rel=1e-6)


@pytest.mark.parametrize("key", ["force_formula", "drive"])
def test_body_at_rest_moves_when_the_force_of_its_joint_begins(key):
    law = "100*max(0, t - 0.2)"
    scene = on_a_rail(sleep_speed=1e-3, sleep_time=0.05).scene
    scene.joint("rail").coordinate = {"z": {key: law if key == "force_formula" else {"mode": "force", "target": law}}}
    sim = abd.Simulation(scene, device=NAME)
    sim.run(duration=0.4)
    assert sim.bodies["cart"].linear_velocity[0] == pytest.approx(100 * 0.2**2 / 2 / 2.0, rel=0.06)


@pytest.mark.parametrize("push", PUSHES)
def test_force_in_one_world_wakes_no_body_of_another(push):
    scene = on_a_rail(sleep_speed=1e-3, sleep_time=0.05).scene
    sim = abd.Simulation(scene.replicate(2), device=NAME)
    sim.worlds.efforts = 1e-9  # a coordinate gets a row with its first effort, which changes the joints
    sim.run(steps=10)
    if push == "body":
        sim.bodies["w1_cart"].apply_force((1, 0, 0), steps=5)
    else:
        sim.worlds.efforts = [[1e-9], [1.0]]
    sim.run(steps=5)
    at_rest = sim.checkpoint()["tables"]["bodies"]["time_at_rest"]
    assert at_rest[0] == pytest.approx(0.15) and at_rest[1] == 0.0


@pytest.mark.parametrize("device", DEVICES)
def test_poses_and_velocities_can_be_set_separately(device):
    sim = free_box(device)
    box, turn = sim.bodies["box"], np.array([0.5, -0.5, 0.5, 0.5])
    box.position = (0.1, 0.2, 0.3)
    box.quaternion = 3.0 * turn
    box.angular_velocity = (0, 0, 2.0)
    box.linear_velocity = (1.0, 0, 0)
    assert box.position == pytest.approx((0.1, 0.2, 0.3), abs=1e-14)
    assert box.quaternion == pytest.approx(turn, abs=1e-14)
    assert box.rotation == pytest.approx(quaternion_matrix(turn), abs=1e-14)
    assert box.angular_velocity == pytest.approx((0, 0, 2.0), abs=1e-12)
    sim.step()
    assert box.position == pytest.approx((0.11, 0.2, 0.3), abs=1e-9)


def test_run_stops_after_steps_duration_or_condition(tmp_path, capsys):
    sim = free_box(gravity=(0, 0, -9.81))
    report = sim.run(duration=0.05)
    assert report.step == 5 and sim.time == pytest.approx(0.05)
    assert sim.run(steps=10, on_step=lambda report: report.step < 8).step == 8
    assert capsys.readouterr().err == ""
    assert sim.run(steps=2, progress=True).step == 10
    assert "gap" in capsys.readouterr().err


def test_recorded_run_starts_from_the_current_state(tmp_path):
    sim = free_box(gravity=(0, 0, -9.81))
    sim.run(steps=3)
    sim.run(steps=4, record=tmp_path / "run")
    with Trajectory(tmp_path / "run" / "trajectory.h5") as trajectory:
        assert trajectory.time == pytest.approx(0.01 * np.arange(3, 8))
        np.testing.assert_allclose(trajectory.transform(4)[0], sim.bodies["box"].transform, atol=1e-15)
    assert (tmp_path / "run" / "report.json").is_file() and (tmp_path / "run" / "scene.toml").is_file()


@pytest.mark.parametrize("device", [pytest.param("numpy", marks=pytest.mark.slow), NAME])
def test_friction_can_be_set(device):
    scene = abd.Scene(solver={"dt": 0.01, "integrator": "bdf1"})
    scene.add_material("ice", mu=0.0)
    scene.add_material("steel", mu=0.0)
    scene.add_body("floor", half_space={}, material="steel")
    scene.add_body("box", box=(0.2, 0.2, 0.2), position=(0, 0, 0.1001), velocity=(2, 0, 0), material="ice", mass=1.0)
    sim = abd.run(scene, steps=5, device=device)
    assert sim.bodies["box"].linear_velocity[0] == pytest.approx(2.0, abs=1e-9)
    sim.materials["ice"].against("steel").mu = 0.4
    assert sim.materials["steel"].against("ice").mu == 0.4 and sim.materials["ice"].mu == 0.0
    sim.run(steps=1)  # its load is that of the step before, which was no load of friction yet, and less exact
    sliding = sim.bodies["box"].linear_velocity[0]
    sim.run(steps=9)
    assert sim.bodies["box"].linear_velocity[0] == pytest.approx(sliding - 0.4 * 9.81 * 0.09, abs=2e-3)
    sim.materials["steel"].mu = 0.0
    before = sim.bodies["box"].linear_velocity[0]
    sim.run(steps=5)
    assert sim.bodies["box"].linear_velocity[0] == pytest.approx(before, abs=1e-6)


def test_folder_of_a_run_is_not_replaced_without_overwrite(tmp_path, caplog):
    scene, folder = abd.Scene(gravity=(0, 0, -9.81)), tmp_path / "drop"
    scene.add_body("box", box=(0.1, 0.1, 0.1), position=(0, 0, 1))
    for steps in (2, 3):
        abd.run(scene, steps=steps, device=NAME, record=folder)
    frames = {path.name: len(Trajectory(path)) for path in (folder, tmp_path / "drop-1")}
    assert frames == {"drop": 3, "drop-1": 4}
    assert "drop-1" in caplog.text and "overwrite=True" in caplog.text
    abd.run(scene, steps=5, device=NAME, record=folder, overwrite=True)
    assert len(Trajectory(folder)) == 6


def test_centre_of_mass_has_the_velocity_of_the_scene():
    matter = {"center_of_mass": (0.1, 0, 0), "inertia": (0.1, 0.1, 0.1)}
    sim = free_box(position=(1, 2, 3), velocity=(1, 0, 0), angular_velocity=(0, 0, 2), **matter)
    box = sim.bodies["box"]
    np.testing.assert_allclose(box.center, (1.1, 2, 3))
    np.testing.assert_allclose(box.center_velocity, (1, 0, 0))
    np.testing.assert_allclose(box.linear_velocity, (1, -0.2, 0), atol=1e-12)


LONG = [pytest.param("numpy", marks=pytest.mark.slow), NAME]
"""Those of long runs: the definitions take many times as long."""


def block() -> abd.Scene:
    scene = on_ground(0.4, "block", dt=0.01)
    scene.add_body("block", box=(0.2, 0.2, 0.2), position=(0, 0, 1), density=250)  # 2 kg
    scene.add_body("arm", box=(0.4, 0.1, 0.1), position=(3.2, 0, 2))
    scene.add_hinge("pivot", abd.WORLD, "arm", anchor=(3, 0, 2), axis=(0, 1, 0), enforcement="exact")
    return scene


@pytest.mark.parametrize("device", LONG)
def test_spring_force_balances_the_weight(device):
    """The force of a stiff spring at a corner is the weight, and the block hangs below its corner."""
    sim = abd.Simulation(block(), device=device)
    body = sim.bodies["block"]
    spring = body.spring_to((0, 0, 1.2), stiffness=2e3, damping=60.0, at=(0, 0, 0.1))
    assert list(sim.joints) == ["pivot"] and "block" in repr(spring)
    sim.run(steps=150)
    np.testing.assert_allclose(spring.force, (0, 0, 2.0 * 9.81), atol=0.02)
    hook = (body.transform @ (0, 0, 0.1, 1))[:3]
    np.testing.assert_allclose(hook, (0, 0, 1.2 - 2.0 * 9.81 / 2e3), atol=1e-5)
    spring.remove()
    assert not spring.active
    sim.run(steps=3)
    assert body.linear_velocity[2] < -0.25


@pytest.mark.parametrize("device", LONG)
def test_spring_pulls_a_body_against_friction(device):
    """At constant speed the spring force is the friction, and the work is that of the drive."""
    scene = block()
    scene.body("block").position = (0, 0, 0.1003)
    sim = abd.Simulation(scene, device=device)
    spring = sim.bodies["block"].spring_to((0, 0, 0.1), stiffness=400, damping=40.0)
    for _ in range(120):
        spring.point = spring.point + np.array([0.005, 0, 0])
        report = sim.step()
    assert sim.bodies["block"].linear_velocity[0] == pytest.approx(0.5, rel=0.01)
    assert spring.force[0] == pytest.approx(0.4 * 2.0 * 9.81, rel=0.02)
    assert sim.bodies["block"].contact_force[0] == pytest.approx(-spring.force[0], rel=0.02)
    assert report.energy["external_work"] > 0.0


@pytest.mark.device
def test_springs_are_not_in_trajectories(tmp_path):
    sim = abd.Simulation(block(), device=NAME)
    sim.bodies["block"].spring_to((0, 0, 2), stiffness=50.0)
    sim.run(steps=3, record=tmp_path / "run", on_step=lambda report: None)
    with Trajectory(tmp_path / "run") as trajectory:
        assert trajectory.joint_names() == ["pivot"]
