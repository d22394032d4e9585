"""Joint forces are accurate from the first step on and after sudden changes."""

from itertools import product

import mechanisms
import numpy as np
import pytest
import reference_cases as cases
from common_scenes import hinged_bars
from on_device import NAME, follow

import abd

pytestmark = pytest.mark.device

H = 0.01


@pytest.mark.parametrize("before", [1, 5])
def test_without_gravity_the_velocity_is_constant(before):
    """This holds after the first step too."""
    scene = abd.Scene(gravity=(0, 0, -9.81), solver={"dt": H})
    scene.add_body("box", box=(0.1, 0.2, 0.3))
    simulation = abd.run(scene, steps=before, device=NAME)
    simulation.gravity = (0, 0, 0)
    simulation.run(steps=5)
    assert simulation.bodies["box"].linear_velocity[2] == pytest.approx(-9.81 * before * H, rel=1e-9)


@pytest.mark.parametrize(
    ("make", "h"),
    [
        (mechanisms.slider_crank, 5e-3), (cases.four_bar, 5e-3), (mechanisms.seven_bodies, 1e-4),
        (cases.spherical_chain, 0.01), (mechanisms.governor, 5e-3), (mechanisms.top, 4e-3),
    ],
)  # fmt: skip
@pytest.mark.parametrize("share", [1.0, 0.125])
def test_joint_forces_are_correct_from_the_first_step(make, h, share):
    """The first eight steps agree within 10 % with steps eight times shorter."""

    def forces(step: float, every: int) -> np.ndarray:
        simulation = abd.Simulation(make(step, tolerance=1e-6, integrator="generalized_alpha"), device=NAME)
        rows = []
        for _ in range(8):
            simulation.run(steps=every)
            rows.append(np.concatenate([joint.wrench()[0] for joint in simulation.joints.values()]))
        return np.array(rows)

    found, known = forces(share * h, 1), forces(0.125 * share * h, 8)
    assert np.abs(found - known).max() < 0.1 * np.abs(known).max()


def elbow(dt: float, integrator: str, enforcement: str) -> np.ndarray:
    """(k, 4): lock force of the elbow and force at the shoulder of two falling bars, in the 0.2 s after the elbow is locked."""
    scene = hinged_bars(2, enforcement, {"dt": dt, "integrator": integrator})
    simulation = abd.run(scene, duration=0.4, device=NAME)
    theta, rows = simulation.joints["hinge1"].coordinate("theta"), []
    theta.lock()
    for _ in range(round(0.2 / dt)):
        simulation.step()
        rows.append([theta.lock_force, *simulation.joints["hinge0"].wrench()[0]])
    return np.array(rows)


def test_a_lock_of_a_falling_mechanism_does_not_ring():
    """The force is steady from the second step on; at 10 ms the arm rotates by 0.05 rad per step."""
    known = elbow(2.5e-4, "bdf1", "exact")
    for (dt, within), enforcement in product([(1e-2, 0.02), (2e-3, 0.01)], ["exact", "penalty"]):
        every = round(dt / 2.5e-4)
        off = np.abs(elbow(dt, "generalized_alpha", enforcement) - known[every - 1 :: every])[1:]
        assert off[:, 0].max() < within * np.abs(known[1:, 0]).max(), (dt, enforcement)
        assert off[:, 1:].max() < within * np.abs(known[1:, 1:]).max(), (dt, enforcement)


def arm(dt: float, enforcement: str, drive: str, stop: str) -> np.ndarray:
    """(k, 2): torques of two falling hinges after the second one is stopped; the first one follows a swing, set by a function of
    time, or in every step by position or rate, or is free."""
    scene, swing = hinged_bars(2, enforcement, {"dt": dt}), lambda t: 0.5 * np.sin(3.0 * t)
    scene.joint("hinge0").initial_rate, scene.joint("hinge1").initial_rate = 1.5, -1.0
    simulation, rows = abd.Simulation(scene, device=NAME), []
    shoulder, elbow = simulation.joints["hinge0"].theta, simulation.joints["hinge1"].theta
    if drive == "function":
        shoulder.set_target(swing)
    for step in range(1, round(0.2 / dt)):
        if step == round(0.1 / dt):
            elbow.lock() if stop == "lock" else elbow.set_target(elbow.value)
        if drive == "position":
            shoulder.set_target(swing(step * dt))
        if drive == "rate":
            shoulder.set_rate((swing(step * dt) - swing((step - 1) * dt)) / dt)
        simulation.step()
        rows.append([joint.wrench()[1][1] for joint in simulation.joints.values()])
    return np.array(rows[round(0.1 / dt) :])


@pytest.mark.parametrize(("drive", "dt", "within"), [("position", 1e-2, 0.02), ("position", 1e-3, 2e-3), ("rate", 1e-3, 0.02)])
def test_a_drive_that_is_set_in_every_step_does_not_ring_when_another_joint_stops(drive, dt, within):
    known, found = arm(dt, "exact", "function", "lock"), arm(dt, "exact", drive, "lock")
    assert np.abs(found - known).max() < within * np.abs(known).max()


def test_a_target_at_the_value_stops_a_penalty_joint_like_a_lock():
    known, found = arm(2e-3, "penalty", "none", "lock"), arm(2e-3, "penalty", "none", "target")
    assert np.abs(found - known).max() < 5e-3 * np.abs(known).max()


@pytest.mark.parametrize(("dt", "step"), [(2e-3, 1e-6), (1e-4, 1e-8)])
def test_a_target_next_to_the_value_is_reached_in_one_step(dt, step):
    """The speeds of this motion jump twice; from the third step on, the drive carries the weight."""
    scene = abd.Scene(solver={"dt": dt})
    scene.add_body("sled", box=(0.1, 0.1, 0.1), mass=2.0)
    rail = {"anchor": (0, 0, 0), "axis": (0, 0, 1), "initial_rate": 2.0}
    scene.add_slider("rail", abd.WORLD, "sled", enforcement="exact", **rail)
    sim = abd.run(scene, duration=0.05, device=NAME)
    rail = sim.joints["rail"]
    rail.z.set_target(rail.z.value + step)
    sim.run(steps=2)
    assert follow(sim, 12, lambda _: rail.wrench()[0][2]) == pytest.approx(np.full(12, 2.0 * 9.81), rel=1e-3)


@pytest.mark.parametrize("dt", [1e-2, 2e-3])
@pytest.mark.parametrize("enforcement", ["exact", "penalty"])
@pytest.mark.parametrize("how", ["rate", "target", "starts with a speed"])
def test_a_drive_whose_speed_jumps_does_not_ring(how, enforcement, dt):
    """It exerts the impulse of the jump of a bar of 1 kg m^2, and no force afterwards."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt})
    scene.add_body("bar", box=(1, 0.1, 0.1), mass=3 / 1.01, inertia=(0.01, 0.25743, 0.25743), position=(0.5, 0, 0))
    drive = {"rate": {"mode": "velocity", "target": 0.0}, "target": {"mode": "position", "target": 0.0}}
    drive = drive.get(how, {"mode": "position", "target": "0.5*t"})
    scene.add_hinge("pivot", abd.WORLD, "bar", anchor=(0, 0, 0), axis=(0, 0, 1), enforcement=enforcement, drive=drive)
    simulation = abd.Simulation(scene, device=NAME)
    theta = simulation.joints["pivot"].coordinate("theta")
    if how != "starts with a speed":
        simulation.run(steps=5)
        theta.set_rate(0.5) if how == "rate" else theta.set_target(0.5 * dt)
    torques = follow(simulation, 40, lambda _: simulation.joints["pivot"].wrench()[1][2])
    impulse, torques = 0.5 / dt, np.array(torques)
    assert torques[0] == pytest.approx(impulse, rel=0.02)
    assert torques[1] == pytest.approx(-impulse if how == "target" else 0.0, abs=0.02 * impulse)
    assert np.abs(torques[2:]).max() < 0.02 * impulse


@pytest.mark.parametrize("dt", [1e-2, 2e-3, 5e-4, 1e-4])
@pytest.mark.parametrize("enforcement", ["exact", "penalty"])
@pytest.mark.parametrize("how", ["lock", "target"])
def test_a_lock_takes_the_momentum_of_a_swinging_bar_in_one_step(how, enforcement, dt):
    """The impulse is about 200 to 20,000 times as large as the impulse of the load in a step; then the hinge carries the load."""
    scene = abd.Scene(solver={"dt": dt})
    scene.add_body("bar", box=(0.05, 0.05, 0.5), mass=1.0, position=(0, 0, -0.25))
    scene.add_hinge(
        "hinge", abd.WORLD, "bar", anchor=(0, 0, 0), axis=(0, 1, 0), enforcement=enforcement, initial_rate=2.0,
    )  # fmt: skip
    sim = abd.run(scene, duration=0.05, device=NAME)
    hinge, bar = sim.joints["hinge"], sim.bodies["bar"]
    momentum = (0.5**2 / 3 + 0.05**2 / 12) * hinge.theta.speed
    hinge.theta.lock() if how == "lock" else hinge.theta.set_target(hinge.theta.value)
    sim.step()
    load = 9.81 * bar.position[0]
    assert hinge.wrench()[1][1] * dt == pytest.approx(-momentum - load * dt, rel=1e-3)
    for _ in range(10):
        sim.step()
        force, torque = hinge.wrench()
        np.testing.assert_allclose(force, [0.0, 0.0, 9.81], atol=0.01 * 9.81)
        assert torque[1] == pytest.approx(-load, rel=0.01)


EXACT, PENALTY = {"enforcement": "exact"}, {"enforcement": "penalty"}
COMPLIANT = {"enforcement": "compliant", "linear_compliance": 1e-9, "rotary_compliance": 1e-9}
"""Stiffer than the steps resolve."""


@pytest.mark.parametrize(
    ("joint", "dt", "first"),
    [*product([EXACT], [1e-2, 2e-3, 1e-4], [0]), *product([PENALTY], [1e-2, 2e-3, 1e-4], [1]),
     *product([COMPLIANT], [1e-2, 2e-3, 5e-4], [3])],
)  # fmt: skip
def test_a_joint_that_is_enabled_on_a_turning_body_carries_the_centripetal_force(joint, dt, first):
    """From a first step on, also when generalized alpha follows the steps of implicit Euler."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt})
    scene.add_body("bar", box=(0.4, 0.1, 0.1), mass=1.0, position=(0.2, 0, 0), velocity=(0, 0, -0.6), angular_velocity=(0, 3, 0))
    scene.add_hinge("hinge", abd.WORLD, "bar", anchor=(0, 0, 0), axis=(0, 1, 0), active=False, **joint)
    sim = abd.Simulation(scene, device=NAME)
    sim.joints["hinge"].active = True
    forces = follow(sim, 15, lambda _: np.linalg.norm(sim.joints["hinge"].wrench()[0]))
    assert forces[first:] == pytest.approx([0.2 * 3.0**2] * (15 - first), rel=0.02)


@pytest.mark.parametrize("dt", [1e-2, 5e-4])
def test_a_lock_does_not_excite_a_compliant_joint_of_its_mechanism(dt):
    """Two bars turn as one at 2 rad/s when the first one is locked; the second one goes on."""

    def forces(**elbow) -> np.ndarray:
        scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt})
        for k, name in enumerate(("upper", "lower")):
            motion = {"velocity": (0, 0, -2.0 * (0.5 + k)), "angular_velocity": (0, 2, 0)}
            scene.add_body(name, box=(1, 0.1, 0.1), mass=1, position=(0.5 + k, 0, 0), **motion)
        scene.add_hinge("shoulder", abd.WORLD, "upper", anchor=(0, 0, 0), axis=(0, 1, 0), enforcement="exact")
        scene.add_hinge("elbow", "upper", "lower", anchor=(1, 0, 0), axis=(0, 1, 0), **elbow)
        sim = abd.run(scene, duration=0.02, device=NAME)
        sim.joints["shoulder"].theta.lock()
        return np.array(follow(sim, 20, lambda _: [sim.joints[one].wrench()[0] for one in ("shoulder", "elbow")]))

    known, found = forces(**EXACT), forces(**COMPLIANT)
    assert np.abs(found - known)[1:].max() < 0.02 * np.abs(known[1:]).max()


@pytest.mark.parametrize("how", ["lock", "target", "rate"])
@pytest.mark.parametrize(
    ("joints", "dt", "within"),
    [(EXACT, 1e-2, 0.01), (PENALTY, 1e-2, 0.07), (COMPLIANT, 1e-2, 0.01),
     (COMPLIANT, 2e-3, 0.01), (COMPLIANT, 5e-4, 0.05)],
)  # fmt: skip
def test_the_crank_of_a_closed_loop_carries_the_load_when_it_is_stopped(joints, dt, within, how):
    """A parallelogram of two cranks of 1 kg and 1 m, which turn at 2 rad/s, and a coupler of 2 kg."""
    scene, angle, rate = abd.Scene(solver={"dt": dt}), 0.6, 2.0
    along, across = np.array([np.cos(angle), 0, np.sin(angle)]), np.array([np.sin(angle), 0, -np.cos(angle)])
    turned = {"quaternion": (np.cos(angle / 2), 0, -np.sin(angle / 2), 0), "angular_velocity": (0, rate, 0), "mass": 1}
    for name, x in (("crank", 0.0), ("rocker", 1.5)):
        place = {"position": np.add(0.5 * along, (x, 0, 0)), "velocity": 0.5 * rate * across}
        scene.add_body(name, box=(1, 0.05, 0.05), **turned, **place)
    scene.add_body("coupler", box=(1.5, 0.05, 0.05), mass=2, position=np.add(along, (0.75, 0, 0)), velocity=rate * across)
    ends = {"motor": (abd.WORLD, "crank", 0 * along), "pin": ("crank", "coupler", along)}
    ends |= {"joint": ("coupler", "rocker", np.add(along, (1.5, 0, 0))), "pivot": (abd.WORLD, "rocker", (1.5, 0, 0))}
    for name, (parent, child, anchor) in ends.items():
        scene.add_hinge(name, parent, child, anchor=anchor, axis=(0, 1, 0), **joints)
    sim = abd.run(scene, duration=0.05, device=NAME)
    motor = sim.joints["motor"]
    {"lock": motor.theta.lock, "target": lambda: motor.theta.set_target(motor.theta.value),
     "rate": lambda: motor.theta.set_rate(0.0)}[how]()  # fmt: skip
    sim.step()
    load = 9.81 * 6.0 * sim.bodies["crank"].position[0]
    assert follow(sim, 12, lambda _: -motor.wrench()[1][1]) == pytest.approx([load] * 12, rel=within)


@pytest.mark.parametrize("dt", [0.01, 0.002])
@pytest.mark.parametrize("enforcement", ["exact", "penalty"])
def test_a_lock_on_an_accelerated_body_carries_weight_and_inertia(enforcement, dt):
    """The velocity of the prescribed body is of second order, so that the return to generalized alpha changes no force."""
    scene = abd.Scene(solver={"dt": dt})
    scene.add_body("hand", box=(0.1, 0.1, 0.1), kind="kinematic", motion={"formulas": {"x": "2.5*t*t"}})
    scene.add_body("bar", box=(0.1, 0.1, 0.4), position=(0, 0, -0.3), mass=2.0)
    scene.add_hinge("pivot", "hand", "bar", anchor=(0, 0, -0.1), axis=(0, 1, 0), enforcement=enforcement)
    sim = abd.run(scene, duration=0.2, device=NAME)
    sim.joints["pivot"].theta.lock()
    sim.run(steps=3)
    for _ in range(20):
        sim.step()
        np.testing.assert_allclose(sim.joints["pivot"].wrench()[0], [2.0 * 5.0, 0.0, 2.0 * 9.81], atol=0.05)


@pytest.mark.parametrize("dt", [0.01, 0.002])
@pytest.mark.parametrize("enforcement", ["exact", "penalty"])
@pytest.mark.parametrize("event", ["gravity ends", "force ends", "rebound from a limit", "rebound from a post"])
def test_a_turning_bar_does_not_ring(event, enforcement, dt):
    """From the second step after the event on, the hinge carries the centripetal force."""
    rebounds, weight = "rebound" in event, (0, 0, -9.81)
    scene = abd.Scene(gravity=weight if event == "gravity ends" else (0, 0, 0), solver={"dt": dt})
    scene.add_material("default", mu=0.0, restitution=1.0)
    scene.add_body("bar", box=(0.4, 0.1, 0.1), mass=1.0, position=(0.2, 0, 0))
    keys = {"anchor": (0, 0, 0), "axis": (0, 1, 0), "enforcement": enforcement}
    if rebounds:
        keys["initial_rate"] = 5.0
    if event == "rebound from a limit":
        keys["coordinate"] = {"theta": {"range": (-9, 0.2), "limit_restitution": 1.0}}
    if event == "rebound from a post":
        scene.add_body("post", box=(0.1, 0.1, 0.1), kind="static", position=(0.3, 0, -0.15))
    scene.add_hinge("hinge", abd.WORLD, "bar", **keys)
    sim = abd.Simulation(scene, device=NAME)
    bar, hinge = sim.bodies["bar"], sim.joints["hinge"]
    bar.apply_force(weight if event == "force ends" else (0, 0, 0))
    if rebounds:
        while hinge.theta.speed > 0.0:
            sim.step()
    else:
        sim.run(duration=0.1)
    bar.clear_loads()
    sim.gravity = (0, 0, 0)
    sim.step()
    for _ in range(20):
        sim.step()
        within = 0.04 if rebounds and dt > 5e-3 else 0.02
        assert np.linalg.norm(hinge.wrench()[0]) == pytest.approx(0.2 * hinge.theta.speed**2, rel=within)


@pytest.mark.parametrize("dt", [0.01, 0.002])
@pytest.mark.parametrize("joint", [EXACT, PENALTY, COMPLIANT])
@pytest.mark.parametrize("how", ["velocity", "coordinate", "pose"])
def test_a_motion_that_violates_a_joint_does_not_ring(how, joint, dt):
    """After the impulses of two steps, the hinge of a falling bar carries its weight and the centripetal force, at most 5 m g."""
    scene = abd.Scene(solver={"dt": dt})
    scene.add_body("bar", box=(0.4, 0.1, 0.1), mass=1.0, position=(0.2, 0, 0))
    scene.add_hinge("hinge", abd.WORLD, "bar", anchor=(0, 0, 0), axis=(0, 1, 0), **joint)
    simulation = abd.run(scene, duration=0.08, device=NAME)
    bar, hinge = simulation.bodies["bar"], simulation.joints["hinge"]
    if how == "velocity":
        bar.linear_velocity = (0, 0, -1)
    elif how == "coordinate":
        hinge.set_coordinate("theta", 0.5)
    else:
        bar.position = np.add(bar.position, (0, 0, 1e-3))
    forces = []
    for _ in range(40):
        simulation.step()
        forces.append(np.linalg.norm(hinge.wrench()[0]))
    assert max(forces[2:]) < 50.0


def geared(dt: float, enforcement: str) -> abd.Simulation:
    """Two hinges to the world that turn at 1 and 2 rad/s, with inertias of 0.02 and 0.03 kg m^2, geared 1 : 2."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt})
    for name, y, inertia, rate in (("a", 0.0, 0.01, 1.0), ("b", 1.0, 0.02, 2.0)):
        scene.add_body(name, proxy=True, mass=1, inertia=(inertia,) * 3, position=(0.1, y, 0))
        ends = {"anchor": (0, y, 0), "axis": (0, 0, 1), "enforcement": "exact", "initial_rate": rate}
        scene.add_hinge(f"j{name}", abd.WORLD, name, **ends)
    scene.add_coupling("gear", "jb.theta", [{"coordinate": "ja.theta", "factor": 2}], enforcement=enforcement)
    return abd.run(scene, steps=5, device=NAME)


@pytest.mark.parametrize("dt", [0.01, 5e-4])
@pytest.mark.parametrize("enforcement", ["exact", "penalty"])
@pytest.mark.parametrize("name", ["ja", "jb"])
def test_a_lock_of_a_geared_body_stops_both_at_once(name, enforcement, dt):
    simulation = geared(dt, enforcement)
    one = simulation.joints[name]
    one.theta.lock()
    torques = [one.wrench()[1][2] for _ in range(20) if simulation.step()]
    impulse = -0.14 if name == "ja" else -0.07  # (0.02 + 4 * 0.03) * 1 rad/s, half of it at twice the speed
    assert torques[0] * dt == pytest.approx(impulse, rel=5e-3)
    assert np.abs(torques[1:]).max() < 5e-3 * abs(torques[0])
    assert np.abs([simulation.joints[other].theta.speed for other in ("ja", "jb")]).max() < 1e-4


def guided(motion: dict, velocity=(0, 0, 0), dt: float = 0.01) -> abd.Simulation:
    """A box of 2 kg that is fixed to a prescribed body."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt})
    scene.add_body("guide", box=(0.1,) * 3, kind="kinematic", motion=motion)
    scene.add_body("box", box=(0.1,) * 3, mass=2, position=(0.3, 0, 0), velocity=velocity)
    scene.add_fixed("joint", "guide", "box", anchor=(0.15, 0, 0), enforcement="exact")
    return abd.Simulation(scene, device=NAME)


@pytest.mark.parametrize("dt", [0.01, 5e-4])
@pytest.mark.parametrize("speed", [0.0, 2.0])
def test_a_prescribed_body_whose_speed_jumps_pulls_its_joints_once(speed, dt):
    """The speed changes to 1 m/s."""
    simulation = guided({"velocity": (speed, 0, 0)}, (speed, 0, 0), dt)
    simulation.run(steps=5)
    forces, x = [], simulation.bodies["guide"].position[0]
    for k in range(20):
        simulation.bodies["guide"].move_to(position=(x + (k + 1) * dt, 0, 0))
        simulation.step()
        forces.append(simulation.joints["joint"].wrench()[0][0])
    assert forces[0] * dt == pytest.approx(2.0 * (1.0 - speed), rel=1e-3)
    assert np.abs(forces[1:]).max() < 1e-3 * abs(forces[0])


def test_a_body_at_rest_starts_with_the_velocity_of_its_prescribed_body(caplog):
    simulation = guided({"velocity": (1, 0, 0)})
    assert "'box' changed by 1 m/s" in caplog.text
    forces = [simulation.joints["joint"].wrench()[0][0] for _ in range(8) if simulation.step()]
    assert np.abs(forces).max() < 1e-6


@pytest.mark.parametrize("dt", [0.01, 2e-3])
def test_a_prescribed_body_that_starts_smoothly_pulls_with_the_force_of_its_acceleration(dt):
    simulation = guided({"formulas": {"x": "0.1*(1-cos(10*t))"}}, dt=dt)
    forces = np.array([simulation.joints["joint"].wrench()[0][0] for _ in range(20) if simulation.step()])
    expected = 20.0 * np.cos(10.0 * dt * (np.arange(20) + 0.5))
    assert np.abs(forces - expected).max() < 150.0 * dt


@pytest.mark.parametrize("dt", [0.01, 5e-4])
@pytest.mark.parametrize("rotor", [0.2, 20.0])
def test_a_rotor_has_its_inertia_from_the_first_step_on(rotor, dt):
    scene = abd.Scene(solver={"dt": dt})
    scene.add_body("box", box=(0.1,) * 3, mass=2)
    scene.add_slider("slider", abd.WORLD, "box", anchor=(0, 0, 0), axis=(0, 0, 1), enforcement="exact", armature=rotor)
    simulation, speeds = abd.Simulation(scene, device=NAME), [0.0]
    for _ in range(8):
        simulation.step()
        speeds.append(simulation.bodies["box"].linear_velocity[2])
    assert np.diff(speeds) / dt == pytest.approx(-9.81 * 2.0 / (2.0 + rotor), rel=1e-6)


@pytest.mark.parametrize("dt", [2e-3, 5e-4, 1e-4])
@pytest.mark.parametrize("force", [0.1, 1.0, 10.0])
def test_a_taut_rope_carries_a_sudden_load_from_the_first_step(force, dt):
    """Also if the load moves the body by less than the tolerance in a step."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt})
    scene.add_body("box", box=(0.1, 0.1, 0.1), mass=1.0)
    ends = {"parent_anchor": (0, 0, 0.5), "child_anchor": (0, 0, 0)}
    scene.add_rope("rope", abd.WORLD, "box", distance=0.5, enforcement="exact", **ends)
    simulation = abd.run(scene, steps=3, device=NAME)
    simulation.bodies["box"].apply_force((0, 0, -force))
    for _ in range(4):
        simulation.step()
        assert simulation.joints["rope"].wrench()[0][2] == pytest.approx(force, rel=5e-3)


@pytest.mark.parametrize("dt", [1e-2, 2e-3, 5e-4])
@pytest.mark.parametrize("enforcement", ["exact", "penalty"])
def test_a_taut_rope_releases_its_body_when_the_load_reverses(enforcement, dt):
    """The rope's stretch is far below the tolerance of a step; its force is not."""
    scene = abd.Scene(solver={"dt": dt})
    scene.add_body("bob", box=(0.1, 0.1, 0.1), mass=1.0, position=(0, 0, -0.5))
    ends = {"parent_anchor": (0, 0, 0), "child_anchor": (0, 0, 0)}
    scene.add_rope("rope", abd.WORLD, "bob", distance=0.5005, enforcement=enforcement, **ends)
    sim = abd.run(scene, duration=0.2, device=NAME)
    bob = sim.bodies["bob"]
    bob.apply_force((0, 0, 2.0 * 9.81))
    speeds = follow(sim, 6, lambda _: bob.linear_velocity[2])
    np.testing.assert_allclose(speeds, 9.81 * dt * np.arange(1, 7), rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("dt", [0.01, 5e-4])
@pytest.mark.parametrize("start", [0, 5])
def test_a_velocity_drive_with_constant_acceleration_needs_a_constant_force(start, dt):
    """At the start, and from a later step on."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt})
    scene.add_body("box", box=(0.1,) * 3, mass=2)
    drive = {"mode": "velocity", "target": 0.0}
    scene.add_slider("slider", abd.WORLD, "box", anchor=(0, 0, 0), axis=(1, 0, 0), enforcement="exact", drive=drive)
    simulation = abd.run(scene, steps=start, device=NAME) if start else abd.Simulation(scene, device=NAME)
    begin, slider = simulation.time, simulation.joints["slider"].coordinate()
    slider.set_rate(lambda t: 10.0 * (t - begin))
    forces = [slider.drive_force for _ in range(40) if simulation.step()]
    assert forces == pytest.approx([20.0] * 40, rel=1e-3)
    assert slider.speed == pytest.approx(400.0 * dt, rel=1e-6)


@pytest.mark.parametrize("enforcement", ["exact", "penalty"])
def test_a_lock_overrides_drives_without_effort_limit_and_their_work_is_the_energy(enforcement):
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.002})
    scene.add_body("bar", box=(0.5, 0.05, 0.05), mass=1.0, position=(0.25, 0, 0))
    scene.add_hinge("hinge", abd.WORLD, "bar", anchor=(0, 0, 0), axis=(0, 0, 1), enforcement=enforcement)
    sim = abd.run(scene, steps=5, device=NAME)
    theta, inertia = sim.joints["hinge"].theta, 0.5**2 / 3 + 0.05**2 / 12
    for rate in (2.0, -1.0):
        theta.set_rate(rate)
        energy = sim.step().energy
        assert energy["kinetic"] == pytest.approx(0.5 * inertia * rate**2, rel=1e-3)
        assert energy["external_work"] == pytest.approx(energy["kinetic"], abs=1e-4)
    theta.lock()
    energy = sim.step().energy
    assert energy["kinetic"] < 1e-6 and energy["integration"] == pytest.approx(-0.5 * inertia, rel=1e-2)
    theta.unlock()
    sim.run(steps=3)
    assert theta.speed == pytest.approx(-1.0, abs=1e-3)
