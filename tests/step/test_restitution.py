"""Restitution: speeds after impacts, conserved quantities, rest."""

import numpy as np
import pytest
from checkpoints import assert_goes_on
from common_scenes import on_ground
from on_device import NAME
from scipy.spatial.transform import Rotation

import abd
from abd.energies import kinetic_energy, momenta

pytestmark = pytest.mark.device

H = 1e-3
SPEED = 2.0
SHAPES = {
    "ball": {"sphere": {"radius": 0.05, "subdivisions": 2}},
    "edge": {"box": (0.1, 0.1, 0.1), "axis_angle": {"axis": (0.0, 1.0, 0.0), "degrees": 45.0}},
}


def falling(kind: str, e: float | None, speed: float = SPEED, mu: float = 0.0, **solver) -> abd.Scene:
    """A ball, or a box on its edge, 6.4 mm above the ground and on its way down."""
    scene = abd.Scene(solver={"dt": H, **solver})
    scene.add_material("default", mu=mu, **({} if e is None else {"restitution": e}))
    scene.add_body("ground", half_space={})
    height = 0.05 if kind == "ball" else 0.05 * 2**0.5
    scene.add_body("body", **SHAPES[kind], position=(0.0, 0.0, height + 6.4e-3), velocity=(0.0, 0.0, -speed))
    return scene


@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1"])
@pytest.mark.parametrize("e", [None, 0.0, 0.3, 0.6, 0.9, 1.0])
@pytest.mark.parametrize("kind", ["ball", "edge"])
def test_the_speed_after_an_impact_is_e_times_that_before(kind, e, integrator):
    """The ratio is within 0.01 of e, which is 0 by default; energy does not grow and the body does not rotate."""
    simulation = abd.Simulation(falling(kind, e, integrator=integrator), device=NAME)
    e = e or 0.0
    speeds, energies = [-SPEED], []
    for _ in range(12):
        report = simulation.step()
        speeds.append(simulation.bodies["body"].velocity[2, 3])
        energies.append(sum(report.energy[name] for name in ("kinetic", "gravity", "elastic")))
    hit = 1 + int(np.argmax(np.diff(speeds) > 0.1))
    assert 1 < hit < 8
    later, fallen = np.array(speeds[hit:]), 9.81 * H * np.arange(len(speeds) - hit)
    np.testing.assert_allclose(later[0], -e * speeds[hit - 1], atol=0.01 * SPEED)
    np.testing.assert_allclose(later, np.maximum(later[0] - fallen, 0.0), atol=0.01 * SPEED, err_msg="no push follows")
    assert max(energies[1:]) < (1.0 + 1e-6) * energies[0]
    assert np.abs(simulation.bodies["body"].velocity[:3, :3]).max() < 1e-3


def test_a_slow_ball_comes_to_rest():
    """Below 2 g h and with e = 1 no speed is left, and no energy is gained."""
    simulation = abd.run(falling("ball", 1.0, speed=0.0, d_hat=1e-4, dt=0.02), steps=30, device=NAME)
    assert np.abs(simulation.stepper.qd).max() < 2e-3


@pytest.mark.parametrize("device", [NAME, "numpy"])
def test_equal_boxes_exchange_their_velocities(device):
    """With e = 1 the last box leaves with the velocity of the first, without loss."""
    scene = abd.Scene(gravity=(0.0, 0.0, 0.0), solver={"dt": H, "d_hat": 1e-5})
    scene.add_material("default", restitution=1.0)
    for k in range(3):
        scene.add_body(f"box{k}", box=(0.1,) * 3, position=(0.103 * k, 0, 0), velocity=(float(k == 0), 0, 0))
    simulation = abd.Simulation(scene, device=device)
    model = simulation.model
    state = simulation.stepper
    energy, momentum = kinetic_energy(model, state.qd), momenta(model, state.q, state.qd)
    simulation.run(steps=12)
    np.testing.assert_allclose(state.qd[:, 0], [0.0, 0.0, 1.0], atol=1e-3)
    assert (1.0 - 1e-3) * energy <= kinetic_energy(model, state.qd) <= (1.0 + 1e-12) * energy
    np.testing.assert_allclose(np.array(momenta(model, state.q, state.qd)), np.array(momentum), atol=1e-9)


def test_friction_acts_in_the_rebound():
    """A ball that slips throughout the impact has the impulse mu (1 + e) of the normal speed, with its torque."""
    e, mu = 0.8, 0.1
    scene = falling("ball", e, mu=mu)
    scene.body("body").velocity = (3.0, 0.0, -SPEED)
    simulation = abd.run(scene, steps=8, device=NAME)
    ball, moment = simulation.bodies["body"], 2.0 * simulation.model.bodies.moment[1, 0]
    lost = mu * (1.0 + e) * (SPEED + 2 * 9.81 * H)
    assert 3.0 - ball.linear_velocity[0] == pytest.approx(lost, rel=0.02)
    assert moment * ball.angular_velocity[1] == pytest.approx(ball.mass * lost * 0.05, rel=0.1)


def test_simultaneous_impacts_with_friction_do_not_depend_on_the_order_of_bodies():
    """Two pinned bars hit the floor together, with different slips: their velocities are equal in both orders."""

    def velocities(order: int) -> np.ndarray:
        scene = abd.Scene(solver={"dt": 0.005})
        scene.add_material("default", mu=0.4, restitution=0.5)
        bodies = [("floor", {"half_space": {}})]
        for k, sideways in enumerate([(1.0, 0.5), (0.3, -1.0)]):
            bodies.append((f"bar{k}", {"box": (0.35, 0.12, 0.08), "position": (0.5 * k, 0, 0.05), "velocity": (*sideways, -1.0)}))
        for name, keys in bodies[::order]:
            scene.add_body(name, **keys)
        scene.add_spherical("pin", "bar0", "bar1", anchor=(0.25, 0, 0.06), enforcement="exact")
        simulation = abd.Simulation(scene, device=NAME)
        simulation.run(steps=10)
        bars = [simulation.bodies[f"bar{k}"] for k in range(2)]
        return np.array([[bar.velocity[:3, 3], bar.angular_velocity] for bar in bars])

    np.testing.assert_allclose(velocities(-1), velocities(1), atol=1e-9)


@pytest.mark.parametrize("target", ["box", "ground"])
def test_friction_of_an_impact_acts_on_both_surfaces(target):
    """A ball sticks where it hits, with its rolling speed on the ground, in both orders of the bodies."""
    dt, radius, runs = 0.005, 0.05, []
    for order in (1, -1):
        scene = abd.Scene(gravity=(0.0, 0.0, 0.0), solver={"dt": dt})
        scene.add_material("default", mu=2.0, restitution=0.5)
        kind = {"kind": "static"} if target == "ground" else {}
        ball = {"sphere": {"radius": radius}, "position": (0.0, 0.0, radius + 0.02), "velocity": (1.0, 0.0, -2.0)}
        bodies = [("target", {"box": (0.4, 0.4, 0.2), "position": (0.0, 0.0, -0.1), **kind}), ("ball", ball)]
        for name, keys in bodies[::order]:
            scene.add_body(name, **keys)
        sim = abd.run(scene, steps=6, device=NAME)
        ball = sim.bodies["ball"]
        runs.append([ball.linear_velocity, ball.angular_velocity])
    np.testing.assert_allclose(runs[1], runs[0], atol=1e-9)
    assert ball.linear_velocity[2] > 0.9
    if target == "ground":
        assert ball.angular_velocity[1] * radius == pytest.approx(ball.linear_velocity[0], rel=1e-3)


@pytest.mark.parametrize(("integrator", "gain"), [("bdf1", 1e-9), ("generalized_alpha", 1e-4)])
def test_joints_stay_closed_in_an_impact(integrator, gain):
    """A hammer on a hinge rebounds from the ground with the same angular velocity at e = 1."""
    scene = on_ground(restitution=1.0, gravity=(0.0, 0.0, 0.0), dt=H, d_hat=1e-4, integrator=integrator)
    motion = {"angular_velocity": (0.0, 4.0, 0.0), "velocity": (0.0, 0.0, -1.0)}
    scene.add_body("hammer", box=(0.4, 0.1, 0.1), position=(0.25, 0.0, 0.053), **motion)
    scene.add_hinge("hinge", abd.WORLD, "hammer", anchor=(0.0, 0.0, 0.053), axis=(0.0, 1.0, 0.0), enforcement="exact")
    simulation = abd.Simulation(scene, device=NAME)
    energies = [simulation.step().energy["kinetic"] for _ in range(12)]
    assert simulation.joints["hinge"].rates[0] == pytest.approx(-4.0, rel=0.01)
    # what is left of the barrier pushes by less than gravity does in half a step
    assert max(energies) <= (1.0 + 1e-5) * energies[0]
    assert np.diff(energies).max() < gain * energies[0]
    assert energies[-1] > 0.98 * energies[0]


@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1"])
def test_a_checkpoint_within_an_impact_continues_bit_for_bit(integrator):
    """The checkpoint is in each step around the impact."""
    scene = falling("edge", 0.5, mu=0.3, integrator=integrator)
    for before in range(6):
        one, other = (abd.Simulation(scene, device=NAME) for _ in range(2))
        one.run(steps=before)
        assert_goes_on(one, other, 6 - before)


def test_flat_plank_hits_two_posts_simultaneously():
    """It rebounds without rotation."""
    scene = abd.Scene(solver={"dt": H})
    scene.add_material("default", restitution=0.8)
    for name, x in (("left", -0.4), ("right", 0.4)):
        scene.add_body(name, kind="static", box=(0.1, 0.1, 0.1), position=(x, 0.0, -0.05))
    scene.add_body("plank", box=(1.0, 0.1, 0.1), position=(0.0, 0.0, 0.052), velocity=(0.0, 0.0, -1.0))
    simulation = abd.run(scene, steps=6, device=NAME)
    plank = simulation.bodies["plank"]
    assert plank.linear_velocity[2] == pytest.approx(0.8, abs=0.05)
    assert np.abs(plank.angular_velocity).max() < 1e-3


@pytest.mark.parametrize(
    ("angle", "dt", "gap"), [(0.4, H, 1e-4), (0.15, H, 1e-4), (0.4, 1e-2, 1e-4), (0.3, 1e-2, 1e-3), (0.8, 1e-2, 1e-3)]
)
def test_a_cradle_keeps_most_of_its_energy(angle, dt, gap):
    """Energy does not grow, and 0.9 remain over ten swings for any step."""
    length, radius = 0.3, 0.025
    scene = abd.Scene(solver={"dt": dt, "tolerance": 1e-4})
    scene.add_material("default", restitution=1.0)
    for k in range(5):
        x, a = (2.0 * radius + gap) * k, angle if k == 0 else 0.0
        turn = {"axis": (0.0, 1.0, 0.0), "degrees": float(np.degrees(a))}
        place = {"position": (x - length * np.sin(a), 0.0, -length * np.cos(a)), "axis_angle": turn}
        scene.add_body(f"ball{k}", sphere={"radius": radius}, density=7800.0, **place)
        ends = {"anchor": (x, 0.0, 0.0), "axis": (0.0, 1.0, 0.0), "enforcement": "exact"}
        scene.add_hinge(f"string{k}", abd.WORLD, f"ball{k}", **ends)
    simulation = abd.Simulation(scene, device=NAME)
    height = -9.81 * length * float(simulation.model.bodies.mass.sum())
    reports = [simulation.step() for _ in range(400)]
    energies = [sum(one.energy[name] for name in ("kinetic", "gravity", "elastic")) - height for one in reports]
    assert any(one.contacts for one in reports) or any(one.substeps > 1 for one in reports)
    assert max(energies) <= (1.0 + 1e-6) * energies[0] and energies[-1] > 0.9 * energies[0]


def in_a_row(starts: list[float], speeds: list[float], dt: float, e: float) -> tuple[np.ndarray, np.ndarray]:
    """Speeds (k,) of balls of 5 cm in a row, without gravity, after 50 steps; energies over the first."""
    scene = abd.Scene(gravity=(0.0, 0.0, 0.0), solver={"dt": dt})
    scene.add_material("default", restitution=e)
    for k, (x, v) in enumerate(zip(starts, speeds, strict=True)):
        scene.add_body(f"ball{k}", sphere={"radius": 0.05}, position=(x, 0.0, 0.0), velocity=(v, 0.0, 0.0))
    simulation = abd.Simulation(scene, device=NAME)
    before = 0.5 * float(simulation.model.bodies.mass @ np.square(speeds))
    energies = [simulation.step().energy["kinetic"] for _ in range(50)]
    return np.array([body.linear_velocity[0] for body in simulation.bodies.values()]), np.array(energies) / before


@pytest.mark.parametrize("dt", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("gap", [1e-4, 1e-5])
@pytest.mark.parametrize("e", [1.0, 0.5])
def test_row_of_balls_transmits_an_impact_at_any_step(dt, gap, e):
    """The last ball leaves with ((1 + e) / 2)^4 of the speed."""
    starts = [-0.1 - 2e-3 - 5.5 * dt, *((0.1 + gap) * np.arange(4))]
    speeds, energies = in_a_row(starts, [1.0, 0.0, 0.0, 0.0, 0.0], dt, e)
    assert speeds[-1] == pytest.approx((0.5 + 0.5 * e) ** 4, abs=0.02)
    assert speeds.sum() == pytest.approx(1.0, abs=1e-6)
    assert energies.max() <= 1.0 + 1e-4


@pytest.mark.parametrize("dt", [1e-2, 1e-3])
@pytest.mark.parametrize("delay", [0, 1, 2, 4])
def test_impact_next_to_an_opening_contact(dt, delay):
    """Balls hit from both sides, one some steps later, while the middle contact opens."""
    starts = [-0.1 - 2.5 * dt, 0.0, 0.1 + 1e-4, 0.2 + 1e-4 + (2.5 + delay) * dt]
    speeds, energies = in_a_row(starts, [1.0, 0.0, 0.0, -1.0], dt, 1.0)
    assert speeds == pytest.approx([-1.0, 0.0, 0.0, 1.0], abs=0.02)
    assert energies.max() <= 1.0 + 1e-4


@pytest.mark.parametrize("dt", [1e-2, 2e-3, 5e-4])
@pytest.mark.parametrize("mass", [1.0, 100.0])
def test_a_heavy_box_behind_a_light_one_does_not_rebound(mass, dt):
    """It pushes a box of 0.1 kg against a wall, without restitution."""
    scene = abd.Scene(gravity=(0.0, 0.0, 0.0), solver={"dt": dt})
    scene.add_body("wall", box=(0.1, 1.0, 1.0), position=(0.3, 0.0, 0.0), kind="static")
    scene.add_body("light", box=(0.1, 0.1, 0.1), mass=0.1, position=(0.15, 0.0, 0.0))
    scene.add_body("heavy", box=(0.1, 0.1, 0.1), mass=mass, velocity=(SPEED, 0.0, 0.0))
    simulation = abd.run(scene, duration=0.1, device=NAME)
    assert simulation.bodies["heavy"].linear_velocity[0] == pytest.approx(0.0, abs=0.01 * SPEED)


@pytest.mark.parametrize("dt", [1e-2, 5e-4])
@pytest.mark.parametrize("slack, enforcement", [(0.0, "exact"), (0.0, "penalty"), (0.01, "exact")])
def test_a_heavy_body_on_a_rope_stops_an_impact_without_rebound(slack, enforcement, dt):
    """A ball of 0.5 kg hits one of 0.02 kg, from which a rope leads back to one of 2 kg: all move together."""
    scene = abd.Scene(gravity=(0.0, 0.0, 0.0), solver={"dt": dt})
    for name, mass, x, v in (("light", 0.02, 0.0, 0.0), ("heavy", 2.0, -0.5, 0.0), ("ball", 0.5, -0.13, SPEED)):
        scene.add_body(name, sphere={"radius": 0.05}, mass=mass, position=(x, 0.0, 0.0), velocity=(v, 0.0, 0.0))
    centres = {"parent_anchor": (0.0, 0.0, 0.0), "child_anchor": (0.0, 0.0, 0.0)}
    scene.add_rope("rope", "light", "heavy", distance=0.5 + slack, enforcement=enforcement, **centres)
    simulation = abd.run(scene, duration=0.03 + 4.0 * dt, device=NAME)
    velocities = [simulation.bodies[name].linear_velocity[0] for name in ("ball", "light", "heavy")]
    assert velocities == pytest.approx([0.5 * SPEED / 2.52] * 3, abs=0.01 * SPEED)


@pytest.mark.parametrize("dt", [1e-2, 1e-4])
@pytest.mark.parametrize("support", ["rope", "planar_connector"])
def test_a_light_plate_on_a_one_sided_support_stops_a_ball(support, dt):
    """A ball of 0.5 kg falls on a plate of 0.1 kg that hangs on a rope or lies on a plane."""
    scene = abd.Scene(solver={"dt": dt})
    scene.add_body("plate", sphere={"radius": 0.05}, mass=0.1)
    scene.add_body("ball", sphere={"radius": 0.05}, mass=0.5, position=(0.0, 0.0, 0.12), velocity=(0.0, 0.0, -SPEED))
    scene.add_slider("guide", abd.WORLD, "plate", anchor=(0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0), enforcement="exact")
    rope = {"distance": 0.5, "parent_anchor": (0.0, 0.0, 0.5), "child_anchor": (0.0, 0.0, 0.0)}
    plane = {"unilateral": True, "anchor": (0.0, 0.0, 0.0), "axis": (0.0, 0.0, 1.0)}
    keys = rope if support == "rope" else plane
    scene.add_joint(support, "support", abd.WORLD, "plate", enforcement="exact", **keys)
    simulation = abd.Simulation(scene, device=NAME)
    rises = []
    while simulation.time < 0.02 + 2.0 * dt:
        simulation.step()
        rises.append(max(simulation.bodies[name].linear_velocity[2] for name in ("plate", "ball")))
    assert max(rises) < 0.01 * SPEED


@pytest.mark.parametrize("dt", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("e, moves", [(0.0, False), (0.5, False), (0.5, True)])
def test_a_moving_obstacle_hits_a_body_at_rest(e, moves, dt):
    """A ball leaves a kinematic box of 1.5 m/s with (1 + e) times its speed, also if the motion is set before every step."""
    scene = abd.Scene(gravity=(0.0, 0.0, 0.0), solver={"dt": dt})
    scene.add_material("default", mu=0.0, restitution=e)
    scene.add_body("box", box=(0.1, 0.3, 0.3), kind="kinematic", position=(-0.06, 0.0, 0.0), motion={"velocity": (1.5, 0.0, 0.0)})
    scene.add_body("ball", sphere={"radius": 0.05}, mass=0.3, position=(0.05, 0.0, 0.0))
    simulation = abd.Simulation(scene, device=NAME)
    for _ in range(round(0.06 / dt)):
        if moves:
            simulation.bodies["box"].move_to(position=(-0.06 + 1.5 * (simulation.time + dt), 0.0, 0.0))
        simulation.step()
    assert simulation.bodies["ball"].linear_velocity[0] == pytest.approx(1.5 * (1.0 + e), rel=0.005)


@pytest.mark.parametrize("dt", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("shape", [{"sphere": {"radius": 0.05}}, {"box": (0.1, 0.1, 0.1)}])
def test_a_welded_pair_bounces_as_one_body(dt, shape):
    """Both contacts of elastic bodies with the ground close and open together."""
    scene = on_ground(restitution=1.0, gravity=(0.0, 0.0, 0.0), dt=dt)
    for k, x in enumerate((-0.06, 0.06)):
        scene.add_body(f"b{k}", **shape, position=(x, 0.0, 0.05 + 5.5 * dt), velocity=(0.0, 0.0, -SPEED))
    scene.add_fixed("weld", "b0", "b1", anchor=(0.0, 0.0, 0.05 + 5.5 * dt), enforcement="exact")
    simulation = abd.Simulation(scene, device=NAME)
    reports = [simulation.step() for _ in range(12)]
    energies = [report.energy["kinetic"] for report in reports]
    for body in ("b0", "b1"):
        assert simulation.bodies[body].linear_velocity[2] == pytest.approx(SPEED, abs=0.01 * SPEED)
    assert max(energies) <= (1.0 + 1e-9) * energies[0]


@pytest.mark.parametrize("dt", [1e-2, 2e-3])
@pytest.mark.parametrize("rotor", [0.0, 1.0, 10.0])
def test_an_elastic_impact_keeps_the_energy_of_rotors(rotor, dt):
    """An arm hits a ball, which leaves with 2 J w r / (J + m r^2)."""
    scene = abd.Scene(gravity=(0.0, 0.0, 0.0), solver={"dt": dt})
    scene.add_material("default", restitution=1.0)
    scene.add_body("arm", box=(1.0, 0.1, 0.1), mass=1.0, position=(0.5, 0.0, 0.0))
    keys = {"enforcement": "exact", "initial_rate": 2.0, "armature": rotor}
    scene.add_hinge("hinge", abd.WORLD, "arm", anchor=(0, 0, 0), axis=(0, 0, 1), **keys)
    scene.add_body("ball", sphere={"radius": 0.1}, mass=1.0, position=(0.9, 0.3, 0.0))
    simulation = abd.Simulation(scene, device=NAME)
    inertia, lever = 1.01 / 12.0 + 0.25 + rotor, np.sqrt(0.9**2 + 0.3**2 - 0.15**2)
    energies = [simulation.step().energy for _ in range(round(0.3 / dt))]
    total = [one["kinetic"] + one["joint"] for one in energies]
    speed = np.linalg.norm(simulation.bodies["ball"].linear_velocity)
    assert speed == pytest.approx(4.0 * inertia * lever / (inertia + lever**2), rel=2e-3)
    assert total == pytest.approx([total[0]] * len(total), rel=1e-3)


@pytest.mark.parametrize("dt", [1e-2, 2e-3])
@pytest.mark.parametrize("by", ["gravity", "force", "spring"])
def test_every_force_acts_before_an_impact(by, dt):
    """A ball under a constant force returns to its height, that on a spring to its amplitude."""
    scene = on_ground(restitution=1.0, gravity=(0.0, 0.0, -9.81 if by == "gravity" else 0.0), dt=dt)
    scene.add_body("ball", sphere={"radius": 0.1}, mass=1.0, position=(0.0, 0.0, 1.1))
    simulation = abd.Simulation(scene, device=NAME)
    ball = simulation.bodies["ball"]
    if by == "force":
        ball.apply_force((0.0, 0.0, -9.81))
    if by == "spring":
        ball.spring_to((0.0, 0.0, -1.0), stiffness=5.0)
    heights = [simulation.step() and ball.position[2] - 0.1 for _ in range(round(3.0 / dt))]
    tops = [b for a, b, c in zip(heights, heights[1:], heights[2:], strict=False) if b > a and b >= c]
    assert len(tops) >= 2 and tops == pytest.approx([1.0] * len(tops), abs=0.01)


@pytest.mark.parametrize("dt", [1e-2, 1e-3])
@pytest.mark.parametrize("kind", ["static", "kinematic"])
@pytest.mark.parametrize("e, belt", [(1.0, 1.5), (0.5, 10.0)])
def test_a_ball_rebounds_from_a_belt_as_from_a_floor(e, belt, kind, dt):
    """The belt accelerates the ball by the smaller one of ``mu (1 + e) v`` and 2/7 of its speed."""
    scene = abd.Scene(gravity=(0.0, 0.0, 0.0), solver={"dt": dt})
    scene.add_material("default", mu=0.5, restitution=e)
    motion = {"motion": {"velocity": (0.0, 0.0, 0.0)}} if kind == "kinematic" else {}
    scene.add_body("belt", box=(4, 4, 0.2), position=(0, 0, -0.1), kind=kind, surface_velocity=(belt, 0, 0), **motion)
    scene.add_body("ball", sphere={"radius": 0.1}, position=(0, 0, 0.1137), velocity=(0, 0, -2))
    velocity = abd.run(scene, duration=0.02, device=NAME).bodies["ball"].linear_velocity
    np.testing.assert_allclose(velocity, [min(0.5 * (1.0 + e) * 2.0, 2.0 / 7.0 * belt), 0.0, 2.0 * e], atol=5e-3)


@pytest.mark.parametrize("after", [0.0, -0.5, 3.0])
def test_a_body_that_stops_or_reverses_in_the_step_of_an_impact(after):
    """A ball of 1 m/s with e = 0.5 against a paddle, whose motion of 1.5 m/s changes at the start of that step."""
    scene = abd.Scene(gravity=(0.0, 0.0, 0.0), solver={"dt": 0.01})
    scene.add_material("default", mu=0.0, restitution=0.5)
    at = {"position": (-0.05, 0, 0), "motion": {"velocity": (0, 0, 0)}}
    scene.add_body("paddle", box=(0.1, 0.3, 0.3), kind="kinematic", **at)
    scene.add_body("ball", sphere={"radius": 0.05}, mass=0.3, position=(0.103, 0, 0), velocity=(-1, 0, 0))
    simulation = abd.Simulation(scene, device=NAME)
    for k in range(4):
        time = 0.01 * (k + 1)
        simulation.bodies["paddle"].move_to(position=(-0.05 + 1.5 * min(time, 0.02) + after * max(0.0, time - 0.02), 0, 0))
        simulation.step()
    assert simulation.bodies["ball"].linear_velocity[0] == pytest.approx(after + 0.5 * (after + 1.0), abs=5e-3)


@pytest.mark.parametrize("mass, e", [(4.19, 1.0), (0.1, 1.0), (4.19, 0.3)])
def test_impacts_of_distant_bodies_exchange_no_energy(mass, e):
    """Newton's law would give the rod energy (Kane's case), which its own impact must not have."""
    scene = abd.Scene(gravity=(0.0, 0.0, 0.0), solver={"dt": 0.01, "d_hat": 5e-4})
    scene.add_material("default", mu=1.0, restitution=1.0)
    scene.add_material("smooth")
    scene.add_material_pair("smooth", "default", mu=0.0, restitution=e)
    scene.add_body("floor", half_space={})
    at = {"position": (0, 0, 0.075 + 0.525 * np.sqrt(0.5)), "axis_angle": {"axis": (0, 1, 0), "degrees": 45.0}}
    scene.add_body("rod", box=(1, 0.05, 0.05), density=1000, velocity=(-0.5, 0, -1), **at)
    ball = {"sphere": {"radius": 0.1}, "mass": mass, "material": "smooth"}
    scene.add_body("ball", position=(3, 0, 0.175), velocity=(0, 0, -1), **ball)
    simulation = abd.run(scene, steps=10, device=NAME)
    rod = simulation.bodies["rod"]
    v, w = rod.linear_velocity, rod.angular_velocity[1]
    assert v @ v + 1.0025 / 12.0 * w * w <= (1.0 + 1e-6) * 1.25
    assert simulation.bodies["ball"].linear_velocity[2] == pytest.approx(e, abs=0.01)


@pytest.mark.parametrize("seed", range(4))
def test_elastic_impacts_of_tumbling_bodies_add_no_energy(seed):
    rng = np.random.default_rng(seed)
    spin, quaternion = rng.normal(size=3), rng.normal(size=4)
    scene = on_ground(0.0, restitution=1.0, body="floor", gravity=(0.0, 0.0, 0.0), dt=0.01)
    spin *= 15.0 / np.linalg.norm(spin)
    at = {"position": (0, 0, 0.25), "quaternion": quaternion / np.linalg.norm(quaternion)}
    scene.add_body("box", box=(0.3, 0.2, 0.1), velocity=(0, 0, -2), angular_velocity=spin, **at)
    simulation = abd.Simulation(scene, device=NAME)
    energies = np.array([simulation.step().energy["kinetic"] for _ in range(15)])
    assert (energies[1:] <= (1.0 + 1e-4) * energies[:-1]).all()


def test_points_with_fixed_rotations_take_part_in_impacts():
    scene = on_ground(dt=0.01)
    scene.add_body("ball", sphere={"radius": 0.1}, position=(0, 0, 0.15))
    point = {"surface": {"vertices": [[0, 0, 0]], "points": [0]}, "mass": 1.0, "fix": ["rx", "ry", "rz"]}
    scene.add_body("point", position=(3, 0, 0.05), **point)
    simulation = abd.run(scene, duration=0.3, device=NAME)
    assert simulation.bodies["ball"].position[2] == pytest.approx(0.1, abs=0.005)
    assert simulation.bodies["point"].position[2] == pytest.approx(0.0, abs=0.005)


@pytest.mark.parametrize("phase", [0.1, 0.4, 0.7, 0.95])
@pytest.mark.parametrize("dt", [0.01, 2e-3, 5e-4])
@pytest.mark.parametrize(("height", "mu"), [(0.1, 1.5), (0.16, 1.0)])
def test_a_box_that_lands_flat_and_is_stopped_by_friction_does_not_tilt(height, mu, dt, phase):
    """Friction times half of the height exceeds half of the width, but the box stops before it tilts. phase: of the contact in a
    step."""
    scene = on_ground(mu, dt=dt)
    start = {"position": (0, 0, 0.5 * height + 0.003 + (3 + phase) * dt), "velocity": (0.5, 0, -1)}
    scene.add_body("box", box=(0.1, 0.1, height), density=1000, **start)
    simulation, mass, work = abd.Simulation(scene, device=NAME), 10.0 * height, 0.0
    for _ in range(round(0.003 / dt) + 12):
        report = simulation.step()
        assert np.linalg.norm(simulation.bodies["box"].angular_velocity) < 1e-2
        work = work or report.energy["friction_work"]
    assert np.abs(simulation.bodies["box"].linear_velocity[:2]).max() < 1e-3
    assert work == pytest.approx(-0.5 * mass * 0.25, rel=1e-3)


@pytest.mark.parametrize("dt", [0.01, 1e-3])
@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("drive", ["brake", "velocity", "position"])
def test_a_drive_without_effort_limit_does_not_yield_to_an_impact(drive, e, dt):
    scene, speed = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt}), 0.0 if drive == "brake" else 1.0
    scene.add_material("default", mu=0, restitution=e)
    scene.add_body("plate", box=(0.02, 0.2, 0.2), mass=1, velocity=(speed, 0, 0))
    scene.add_body("ball", sphere={"radius": 0.05}, mass=1, position=(0.1, 0, 0), velocity=(-1, 0, 0))
    target = {"brake": {}, "velocity": {"target": 1.0}, "position": {"target": "t"}}[drive]
    keys = {"anchor": (0, 0, 0), "axis": (1, 0, 0), "enforcement": "exact", "drive": {"mode": drive, **target}}
    scene.add_slider("slider", abd.WORLD, "plate", **keys)
    simulation, impulse = abd.Simulation(scene, device=NAME), 0.0
    for _ in range(round(0.06 / dt)):
        simulation.step()
        impulse += dt * simulation.bodies["ball"].contact_force[0]
        assert simulation.bodies["plate"].linear_velocity[0] == pytest.approx(speed, abs=1e-3)
    assert simulation.bodies["ball"].linear_velocity[0] == pytest.approx(speed + e * (1.0 + speed), abs=0.01)
    assert impulse == pytest.approx((1.0 + e) * (1.0 + speed), rel=0.01)


@pytest.mark.parametrize("dt", [0.01, 2.5e-3])
@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_an_arm_that_jams_on_a_moving_belt_has_bounded_impulses(direction, dt):
    """With friction above the cotangent of the arm's angle and a prescribed belt, Coulomb's law has no solution."""
    scene, phi = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt}), np.radians(70.0)
    scene.add_material("default", mu=0.5)
    tip = 0.5 * np.array([np.cos(phi), 0, -np.sin(phi)])
    motion = {"angular_velocity": (0, 0.3, 0), "velocity": tuple(np.cross([0, 0.3, 0], tip))}
    scene.add_body("tip", sphere={"radius": 0.02}, mass=1, inertia=(0.01,) * 3, position=tuple(tip), **motion)
    belt = {"kind": "kinematic", "motion": {"velocity": (direction, 0, 0)}}
    scene.add_body("belt", box=(6, 0.4, 0.1), position=(0, 0, tip[2] - 0.075), **belt)
    scene.add_hinge("hinge", abd.WORLD, "tip", anchor=(0, 0, 0), axis=(0, 1, 0), enforcement="exact")
    simulation = abd.Simulation(scene, device=NAME)
    for _ in range(round(0.3 / dt)):
        report = simulation.step()
        assert dt * np.linalg.norm(simulation.bodies["tip"].contact_force) < 2.0
    assert abs(simulation.joints["hinge"].theta.speed) < 0.01
    assert -0.1 < report.energy["friction_work"] <= 1e-6


def test_limits_at_rest_do_not_depend_on_other_mechanisms():
    def arms(other: bool) -> abd.Simulation:
        scene = abd.Scene()
        for name, x, effort in [("a", 0.0, 5.0)] + [("b", 50.0, 0.0)] * other:
            scene.add_body(name, box=(0.6, 0.1, 0.1), position=(x + 0.3, 0, 0))
            keys = {"anchor": (x, 0, 0), "axis": (0, 1, 0), "enforcement": "exact", "range_deg": (-90, 90)}
            scene.add_hinge(f"hinge of {name}", abd.WORLD, name, **keys, drive={"mode": "force", "target": effort})
        return abd.Simulation(scene, device=NAME)

    alone, together = arms(False), arms(True)
    for _ in range(60):
        alone.step()
        together.step()
        np.testing.assert_array_equal(alone.stepper.q[0], together.stepper.q[0])
        np.testing.assert_array_equal(alone.stepper.qd[0], together.stepper.qd[0])


@pytest.mark.parametrize("dt", [1e-3, 1e-4])
def test_a_flush_landing_does_not_depend_on_rounding_at_the_activation_distance(dt):
    """A step ends where the corners reach the activation distance of 1 mm, some of them by rounding."""
    turned = Rotation.from_rotvec([0.3, 0.5, -0.2])
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt})
    scene.add_material("default", mu=0.2, restitution=0.5)
    scene.add_body("floor", half_space={"normal": tuple(turned.apply([0, 0, 1]))})
    place, velocity = turned.apply([[0, 0, 0.03], [3, 0, -1]])
    pose = {"position": tuple(place), "quaternion": tuple(turned.as_quat(scalar_first=True))}
    scene.add_body("box", box=(0.4, 0.4, 0.05), velocity=tuple(velocity), **pose)
    box = abd.run(scene, duration=0.015, device=NAME).bodies["box"]
    assert turned.inv().apply(box.linear_velocity) == pytest.approx([3 - 0.2 * 1.5, 0, 0.5], abs=1e-3)
    assert np.linalg.norm(box.angular_velocity) < 0.01
