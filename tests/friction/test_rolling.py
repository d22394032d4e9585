"""Rolling and spinning against closed forms, for any rotation per step."""

from math import cos, pi, sin, sqrt

import numpy as np
import pytest
from common_scenes import on_ground
from on_device import NAME, follow

import abd

pytestmark = pytest.mark.device

G, R = 9.81, 0.05


def ball(rolling: float = 0.0, spinning: float = 0.0, mu: float = 0.5, solver: dict | None = None, **motion) -> abd.Scene:
    """On a plane, where it rests."""
    scene = abd.Scene(solver=solver)
    scene.add_material("felt", mu=mu, rolling=rolling, spinning=spinning)
    scene.add_body("ground", half_space={}, material="felt")
    scene.add_body("ball", sphere={"radius": R}, position=(0.0, 0.0, R + 1e-4), material="felt", **motion)
    return scene


@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1"])
def test_a_rolling_ball_slows_down(integrator):
    """The deceleration is 5/7 g c / r within 1 %, and the work of friction is the energy loss."""
    c, v = 2e-3, 1.0
    solver = {"integrator": integrator}
    motion = {"velocity": (v, 0.0, 0.0), "angular_velocity": (0.0, v / R, 0.0)}
    simulation = abd.Simulation(ball(c, solver=solver, **motion), device=NAME)
    speeds, reports = zip(*follow(simulation, 60, lambda report: (simulation.bodies["ball"].linear_velocity[0], report)))
    assert (speeds[10] - speeds[-1]) / 0.49 == pytest.approx(5.0 / 7.0 * G * c / R, rel=0.01)
    kinetic, work = ([report.energy[name] for report in reports[10:]] for name in ("kinetic", "friction_work"))
    assert work[-1] - work[0] == pytest.approx(kinetic[-1] - kinetic[0], rel=0.01)


def test_a_spinning_ball_stops_and_stays():
    """It stops after 2/5 r^2 w / (g c), with 5/2 g c / r^2 within 1 %."""
    c, w = 2e-3, 10.0
    simulation = abd.Simulation(ball(spinning=c, angular_velocity=(0.0, 0.0, w)), device=NAME)
    stop = 0.4 * R * R * w / (G * c)
    speeds = follow(simulation, round(1.2 * stop / 0.01), lambda _: simulation.bodies["ball"].angular_velocity[2])
    k = round(0.7 * stop / 0.01)
    assert (speeds[10] - speeds[k]) / (0.01 * (k - 10)) == pytest.approx(2.5 * G * c / R**2, rel=0.01)
    assert abs(speeds[-1]) < 1e-5


@pytest.mark.parametrize(("device", "share"), [(NAME, 0.9), (NAME, 1.3), ("numpy", 0.9)])
def test_a_ball_rests_on_a_slope_below_the_angle_of_rolling(device, share):
    """With tan < c / r the ball rests; without friction it slides, and c alone does not hold it."""
    c = 5e-3
    angle, scene = np.arctan(share * c / R), ball(c)
    scene.gravity = (G * np.sin(angle), 0.0, -G * np.cos(angle))
    simulation = abd.Simulation(scene, device=device)
    x = follow(simulation, 60 if device == NAME else 30, lambda _: simulation.bodies["ball"].position[0])
    if share < 1.0:
        assert x[-1] - x[20] < 1e-7
    else:
        expected = 5.0 / 7.0 * G * (np.sin(angle) - np.cos(angle) * c / R)
        assert (x[-1] - 2 * x[39] + x[19]) / 0.04 == pytest.approx(expected, rel=0.01)


def test_pair_coefficients_are_given_or_geometric_means():
    scene = abd.Scene()
    scene.add_material("a", rolling=1e-3, spinning=4e-3)
    scene.add_material("b", rolling=4e-3)
    scene.add_material_pair("a", "b", spinning=5e-3)
    scene.add_body("ball", sphere={"radius": R}, material="a")
    table = scene.compile().materials
    a, b = (table.names.index(name) for name in "ab")
    assert table.rolling[a, b] == table.rolling[b, a] == pytest.approx(2e-3)
    assert table.spinning[a, b] == 5e-3 and table.spinning[a, a] == pytest.approx(4e-3)


@pytest.mark.parametrize("facets", [6, 12])
def test_rolling_prism_loses_the_impact_energy_at_each_facet(facets):
    """The momentum about the new edge is conserved: the spin falls by (k + cos(2 pi / n)) / (k + 1), k = I / (m R^2)."""
    tilt, spin = 0.6 * pi / facets, 0.6 * sqrt(G / R)
    scene = abd.Scene(solver={"dt": 5e-4})
    scene.add_material("rough", mu=3.0)
    scene.add_body("ground", half_space={}, material="rough")
    # a corner of the mesh, on its x axis, is turned downwards and the axis into -y
    turn = (pi / 2.0 + tilt) / 2.0
    quaternion = np.array([cos(turn), cos(turn), sin(turn), -sin(turn)]) / sqrt(2.0)
    height = R * cos(tilt)
    scene.add_body(
        "prism", cylinder={"radius": R, "length": 0.1, "segments": facets}, material="rough",
        position=(R * sin(tilt), 0.0, height + 1e-5), quaternion=tuple(quaternion.tolist()),
        velocity=(spin * height, 0.0, -spin * R * sin(tilt)), angular_velocity=(0.0, spin, 0.0),
    )  # fmt: skip
    simulation = abd.Simulation(scene, device=NAME)
    bodies = simulation.model.bodies
    spins = follow(simulation, 60, lambda _: simulation.bodies["prism"].angular_velocity[1])
    hit = int(np.diff(spins).argmin())
    k = bodies.moment[1, :2].sum() / (bodies.mass[1] * R * R)
    assert spins[hit] > 1.02 * spin, "it falls from one edge onto the next"
    assert spins[hit + 2] / spins[hit] == pytest.approx((k + cos(2.0 * pi / facets)) / (k + 1.0), rel=0.05)


def rolling(shape: str, mu: float, angle: float = 0.0, r: float = R, **motion) -> tuple[np.ndarray, float]:
    """Speed, and speed of the rim (100, 2) [m/s] of a body on a plane, and I / (m r^2) about its axis."""
    scene = on_ground(mu, gravity=(G * sin(angle), 0.0, -G * cos(angle)))
    lying = {"axis_angle": {"axis": (1.0, 0.0, 0.0), "degrees": 90.0}, shape: {"radius": r, "length": 3.0 * r}}
    size = {"sphere": {"radius": r}} if shape == "sphere" else lying
    scene.add_body("body", **size, position=(0.0, 0.0, r + 1e-4), **motion)
    simulation = abd.Simulation(scene, device=NAME)
    body, bodies = simulation.bodies["body"], simulation.model.bodies
    speeds = []
    for _ in range(100):
        energy = simulation.step().energy
        speeds.append((body.linear_velocity[0], r * body.angular_velocity[1]))
    assert mu < 0.1 or abs(energy["friction_work"]) < (1e-3 if shape == "sphere" else 4e-3) * energy["kinetic"]
    return np.array(speeds), (bodies.moment[1].sum() - bodies.moment[1].max()) / (bodies.mass[1] * r**2)


@pytest.mark.parametrize("shape", ["sphere", "capsule", "cylinder"])
def test_a_body_that_is_set_down_slides_until_it_rolls(shape):
    """The speed falls by mu g and the rim gains mu g / k, with k = I / (m R^2), until both are v0 / (1 + k)."""
    mu = 0.05
    speeds, k = rolling(shape, mu, velocity=(1.0, 0.0, 0.0))
    assert k == pytest.approx({"sphere": 0.4, "capsule": k, "cylinder": 0.5}[shape], rel=0.01)
    brake, gain = np.diff(speeds[10:55], axis=0).mean(axis=0) / 0.01
    assert brake == pytest.approx(-mu * G, rel=0.005) and gain == pytest.approx(mu * G / k, rel=0.01)
    assert speeds[-1] == pytest.approx([1.0 / (1.0 + k)] * 2, rel=0.005)
    assert np.abs(np.diff(speeds[75:], axis=1)).max() < (2.5e-3 if shape == "cylinder" else 2e-3)


@pytest.mark.parametrize(
    ("shape", "r"), [("cylinder", R), ("capsule", R), ("sphere", R), ("sphere", 0.02), ("sphere", 0.01)]
)
def test_round_bodies_roll_as_smooth_ones(shape, r):
    """They keep their speed (meshes of 32 facets 0.92 of it), and have that of the closed form after 1 s on a slope.

    The smallest balls turn by 0.7 rad in the last step; chords would brake them by 2 %.
    """
    rim, rel = {"cylinder": (8e-3, 5e-3), "capsule": (1e-3, 5e-3), "sphere": (1e-3, 2e-4)}[shape]
    speeds, k = rolling(shape, 0.5, r=r, velocity=(1.0, 0.0, 0.0), angular_velocity=(0.0, 1.0 / r, 0.0))
    assert speeds[-1, 0] == pytest.approx(1.0, rel=0.005) and speeds[-1, 1] == pytest.approx(speeds[-1, 0], rel=rim)
    speeds, k = rolling(shape, 0.5, 0.1, r)
    assert speeds[-1, 0] == pytest.approx(G * sin(0.1) / (1.0 + k), rel=rel)


H, MU = 0.01, 0.3
FLOORS = {
    # keys of the floor, size of the body, distance of the corners in contact
    "plane": ({"half_space": {}}, (0.1, 0.06, 0.02), 0.5 * np.hypot(0.1, 0.06)),
    "mesh": ({"box": (2.0, 2.0, 0.1), "position": (0.01, 0.02, -0.05)}, (0.1, 0.06, 0.02), 0.5 * np.hypot(0.1, 0.06)),
    "foot": ({"box": (0.04,) * 3, "position": (0.0, 0.0, -0.02)}, (0.2, 0.2, 0.01), np.hypot(0.02, 0.02)),
}


@pytest.mark.parametrize("stick", ["viscous", "elastic"])
@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("turn", [0.3, 0.9, 2.5])
def test_spinning_box_is_braked_at_its_corners(turn, floor, stick):
    """It slows by ``mu g h r m / I`` from the second step on; chords give 0.906 of that at 0.9 rad per step.

    On a foot under its face, the corners of the foot have the lever arm of their final position.
    """
    below, size, corner = FLOORS[floor]
    scene = abd.Scene(solver={"dt": H, "stick": stick})
    scene.add_material("default", mu=MU)
    scene.add_body("floor", **({} if floor == "plane" else {"kind": "static"}), **below)
    scene.add_body("body", box=size, position=(0.0, 0.0, 0.5 * size[2] + 1e-5), angular_velocity=(0.0, 0.0, turn / H))
    simulation, spins, energies, newton = abd.Simulation(scene, device=NAME), [], [], 0
    for _ in range(6):
        report = simulation.step()
        newton += report.newton_iterations
        assert report.substeps == 1
        spins.append(simulation.bodies["body"].angular_velocity[2])
        energies.append(report.energy["kinetic"])
    assert (np.diff(energies) <= 0.0).all() and newton <= 18
    assert -np.diff(spins) == pytest.approx(MU * G * H * corner / ((size[0] ** 2 + size[1] ** 2) / 12.0), rel=0.01)


@pytest.mark.parametrize("turn", [0.3, 0.6])
def test_body_on_a_turntable_sticks(turn):
    """From the eighth step on it slips off the axis by at most 2e-6 of its distance per step."""
    scene = abd.Scene(gravity=(0.0, 0.0, -400.0), solver={"dt": H})
    scene.add_material("default", mu=2.0)
    motion = {"angular_velocity": (0.0, 0.0, turn / H)}
    scene.add_body("table", kind="kinematic", box=(0.4, 0.4, 0.02), position=(0.0, 0.0, -0.01), motion=motion)
    scene.add_body("body", box=(0.02,) * 3, position=(0.05, 0.0, 0.01001), velocity=(0.0, 0.05 * turn / H, 0.0),
                   angular_velocity=(0.0, 0.0, turn / H))  # fmt: skip
    simulation, places = abd.Simulation(scene, device=NAME), []
    for _ in range(25):
        simulation.step()
        table, body = (simulation.bodies[name].transform for name in ("table", "body"))
        places.append((table[:3, :3].T @ (body[:3, 3] - table[:3, 3]))[:2])
    assert np.abs(np.array(places[8:]) - places[8]).max() < 20 * 2e-6 * 0.05 * 2
