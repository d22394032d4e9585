"""The sum of step length times force equals the change of momentum, also in impacts; factors of impulses and their conditions."""

import math

import numpy as np
import pytest
import scipy.sparse as sparse
import trimesh
from common_scenes import on_ground

import abd
from abd.backends.warp import impact_sweeps
from abd.potentials import sweeps

GRAVITY = 9.81


@pytest.mark.parametrize(("speed", "rotor", "dt"), [(2.0, 0.0, 0.01), (2.0, 10.0, 0.002), (20.0, 3.0, 0.01), (20.0, 3.0, 0.0005)])
@pytest.mark.parametrize(("restitution", "enforcement"), [(0.0, "exact"), (0.5, "exact"), (0.5, "penalty")])
def test_limit_forces_of_a_fast_slider(enforcement, restitution, speed, rotor, dt, device):
    """The impulse of the limit reverses the momentum of the cart and its rotor, although the limit is tight."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt})
    scene.add_body("cart", box=(0.1, 0.1, 0.1), mass=1.0, velocity=(speed, 0, 0))
    keys = {"armature": rotor, "coordinate": {"z": {"range": (-1, 0.05), "limit_restitution": restitution}}}
    scene.add_slider("j", abd.WORLD, "cart", anchor=(0, 0, 0), axis=(1, 0, 0), enforcement=enforcement, **keys)
    sim = abd.Simulation(scene, device=device)
    z, impulse = sim.joints["j"].z, 0.0
    for _ in range(round(0.05 / speed / dt) + 5):
        sim.step()
        impulse += z.limit_force * dt
    assert impulse == pytest.approx(-(1.0 + rotor) * (1.0 + restitution) * speed, rel=0.01)
    assert z.speed == pytest.approx(-restitution * speed, abs=0.01 * speed)


@pytest.mark.parametrize("enforcement", ["exact", "penalty"])
def test_a_drive_without_effort_limit_hits_a_wall(enforcement: str):
    """The drive holds the block: its impact has no impulse, which would be its speed over a mobility of rounding."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01})
    scene.add_body("wall", box=(0.1, 1, 1), position=(0.25, 0, 0), kind="static")
    scene.add_body("block", box=(0.1, 0.1, 0.1))
    drive = {"mode": "velocity", "target": "0.5"}
    scene.add_slider("s", abd.WORLD, "block", anchor=(0, 0, 0), axis=(1, 0, 0), enforcement=enforcement, drive=drive)
    sim = abd.Simulation(scene, device="cpu")
    while not sim.step().contacts:
        pass
    assert sim.bodies["block"].contact_force[0] > -1e5


@pytest.mark.parametrize("dt", [0.01, 0.002, 0.001])
def test_the_force_of_a_limit_with_a_heavy_body_behind_it_settles(dt: float):
    """The load presses an arm on its end. Only the first contact is an impact: later ones would take its force away again."""
    scene = abd.Scene(solver={"dt": dt})
    scene.add_body("arm", box=(0.4, 0.1, 0.1), mass=1.0, position=(0.2, 0, 0))
    keys = {"coordinate": {"theta": {"range": (0.0, 0.5), "initial": 0.02}}}
    scene.add_hinge("h", abd.WORLD, "arm", anchor=(0, 0, 0), axis=(0, -1, 0), **keys)
    scene.add_body("load", box=(0.2, 0.2, 0.2), mass=1000.0, position=(0.6, 0, 0))
    scene.add_fixed("w", "arm", "load", anchor=(0.6, 0, 0))
    sim, forces = abd.Simulation(scene, device="cpu"), []
    for _ in range(round(0.3 / dt)):
        sim.step()
        forces.append(sim.joints["h"].theta.limit_force)
    np.testing.assert_allclose(forces[round(0.25 / dt) :], GRAVITY * (0.2 + 600.0), rtol=0.02)


@pytest.mark.parametrize("dt", [0.01, 0.002, 5e-4])
@pytest.mark.parametrize("enforcement", ["exact", "penalty", "compliant"])
def test_friction_of_an_impact_with_a_heavy_body_behind_the_contact(enforcement: str, dt: float):
    """A hammer of 20.5 kg in a guide lands at 1 m/s, and slides at 2 m/s. Joints that are stiffer than the step resolves pass the
    impulse on at once."""
    scene = on_ground(0.5, restitution=0.0, body="floor", gravity=(0, 0, 0), dt=dt)
    scene.add_body("head", sphere={"radius": 0.05}, mass=0.5, position=(0, 0, 0.07), velocity=(2, 0, -1))
    scene.add_body("heavy", box=(0.1,) * 3, mass=20.0, position=(0, 0, 0.32), velocity=(2, 0, -1))
    keys = {"linear_compliance": 1e-9, "rotary_compliance": 1e-9} if enforcement == "compliant" else {}
    scene.add_fixed("handle", "head", "heavy", anchor=(0, 0, 0.12), enforcement=enforcement, **keys)
    guide = {"anchor": (0, 0, 0.32), "axis": (0, 1, 0), "enforcement": enforcement, **keys}
    scene.add_joint("planar_translation", "guide", abd.WORLD, "heavy", **guide)
    sim = abd.Simulation(scene, device="cpu")
    head, impulse = sim.bodies["head"], np.zeros(3)
    for _ in range(round(0.03 / dt)):
        energy = sim.step().energy
        impulse += head.contact_force * dt
    np.testing.assert_allclose(impulse, [-10.25, 0.0, 20.5], rtol=2e-3, atol=1e-3)
    np.testing.assert_allclose(head.linear_velocity, [1.5, 0.0, 0.0], atol=2e-3)
    assert energy["integration"] == pytest.approx(-0.5 * 20.5, rel=1e-3)
    assert energy["friction_work"] == pytest.approx(-10.25 * 1.75, rel=1e-3)


@pytest.mark.parametrize("restitution", [0.0, 0.5])
@pytest.mark.parametrize("mu", [0.0, 0.2])
@pytest.mark.parametrize("dt", [0.01, 0.002])
def test_contact_forces_of_a_box_that_hits_the_ground(dt: float, mu: float, restitution: float, device: str):
    scene = on_ground(mu, restitution=restitution, gravity=(0, 0, -GRAVITY), dt=dt, tolerance=1e-5)
    start = np.array([2.0, 0.0, -1.0])
    scene.add_body("box", box=(0.2, 0.2, 0.05), mass=2.0, position=(0, 0, 0.1), velocity=start)
    sim = abd.Simulation(scene, device=device)
    box, impulse, steps = sim.bodies["box"], np.zeros(3), round(0.15 / dt)
    for _ in range(steps):
        sim.step()
        impulse += box.contact_force * dt
    change = 2.0 * (sim.stepper.qd[box.index, :3] - start + [0, 0, GRAVITY * steps * dt])
    np.testing.assert_allclose(impulse, change, atol=0.01 * np.abs(change).max())


@pytest.mark.parametrize(("degrees", "dt"), [(20.0, 0.01), (45.0, 0.01), (70.0, 0.002), (45.0, 0.0005)])
@pytest.mark.parametrize(("mu", "sideways"), [(0.1, 0.0), (2.0, 0.0), (0.7, -2.0), (1.4, -2.0)])
@pytest.mark.parametrize("e", [0.0, 0.6])
def test_a_rod_that_hits_the_ground_aslant_sticks_or_slides(e: float, mu: float, sideways: float, degrees: float, dt: float):
    """The lower end stops sideways if the friction suffices; else the ratio of the impulses is mu (an impact at a point)."""
    scene = on_ground(mu, restitution=e, gravity=(0, 0, 0), dt=dt)
    inertia, half, radius, tilt = 0.02, 0.2, 0.02, np.radians(degrees)
    turn, height = {"axis": (0, 1, 0), "degrees": degrees}, half * np.cos(tilt) + radius + 0.02
    scene.add_body(
        "rod", capsule={"radius": radius, "length": 2 * half}, mass=1.0, inertia=(inertia, inertia, 0.001), axis_angle=turn,
        position=(0, 0, height), velocity=(sideways, 0, -2.0),
    )  # fmt: skip
    sim = abd.Simulation(scene, device="cpu")
    rod = sim.bodies["rod"]
    while rod.linear_velocity[2] < -1.999:
        sim.step()
    x, z = -half * np.sin(tilt), -half * np.cos(tilt) - radius  # of the point of contact
    K = np.array([[1.0 + z * z / inertia, -x * z / inertia], [-x * z / inertia, 1.0 + x * x / inertia]])
    along, normal = np.linalg.solve(K, [-sideways, 2.0 * (1.0 + e)])
    if abs(along) > mu * normal:
        sign = np.sign(along)
        normal = 2.0 * (1.0 + e) / (K[1, 1] + sign * mu * K[1, 0])
        along = sign * mu * normal
    spin = (z * along - x * normal) / inertia
    assert rod.linear_velocity == pytest.approx([sideways + along, 0.0, normal - 2.0], abs=0.04 * (1.0 + e))
    assert rod.angular_velocity[1] == pytest.approx(spin, rel=0.05)


def test_forces_of_a_frame_of_several_substeps(device: str):
    """A box hits the ground at 20 m/s next to a hanging ball; forces are means over the same substeps."""
    scene = on_ground(gravity=(0, 0, -GRAVITY), dt=0.01, tolerance=1e-5)
    scene.add_body("box", box=(0.2, 0.2, 0.05), mass=2.0, position=(0, 0, 0.3), velocity=(0, 0, -20.0))
    scene.add_body("ball", sphere={"radius": 0.05}, mass=1.0, position=(0, 2, 2.0))
    scene.add_spherical("rod", abd.WORLD, "ball", anchor=(0, 2, 3.0), enforcement="exact")
    sim = abd.Simulation(scene, device=device)
    box, impulse, pull, steps, rejections = sim.bodies["box"], 0.0, 0.0, 5, []
    for _ in range(steps):
        rejections.append(sim.step().rejections)
        impulse += box.contact_force[2] * 0.01
        pull += sim.joints["rod"].wrench()[0][2] * 0.01
    assert {"fast_contact": 1} in rejections
    assert impulse == pytest.approx(2.0 * (sim.stepper.qd[box.index, 2] + 20.0 + GRAVITY * 0.05), rel=0.01)
    assert pull == pytest.approx(GRAVITY * 0.05, rel=0.01)


@pytest.mark.parametrize("restitution", [0.0, 0.5])
@pytest.mark.parametrize("parent", [abd.WORLD, "beam"])
def test_joint_forces_of_a_bar_that_hits_a_post(parent: str, restitution: float, device: str):
    """The momentum of the bar changes by its weight, the post and the hinge reaction."""
    dt, steps = 0.0025, 80
    scene = abd.Scene(gravity=(0, 0, -GRAVITY), solver={"dt": dt, "tolerance": 1e-5})
    scene.add_material("default", restitution=restitution)
    scene.add_body("post", box=(0.1, 0.1, 0.1), kind="static", position=(0.3, 0, -0.15))
    scene.add_body("bar", box=(0.4, 0.04, 0.04), mass=1.0, position=(0.22, 0, 0))
    if parent == "beam":
        scene.add_body("beam", box=(0.1, 0.1, 0.1), mass=5.0, position=(0, 0.3, 0))
        scene.add_fixed("bolt", abd.WORLD, "beam", anchor=(0, 0.3, 0), enforcement="exact")
    scene.add_hinge("h", parent, "bar", anchor=(0, 0, 0), axis=(0, 1, 0), enforcement="exact")
    sim = abd.Simulation(scene, device=device)
    bar, hinge, impulse, on_parent = sim.bodies["bar"], sim.joints["h"], np.zeros(3), np.zeros(3)
    for _ in range(steps):
        sim.step()
        impulse += dt * (bar.contact_force + hinge.wrench()[0])
        on_parent += dt * (hinge.wrench(on="parent")[0] + hinge.wrench()[0])
    change = sim.stepper.qd[bar.index, :3] - [0.0, 0.0, -GRAVITY * dt * steps]
    np.testing.assert_allclose(impulse, change, atol=0.005 * np.abs(change).max())
    np.testing.assert_allclose(on_parent, 0.0, atol=1e-4)


@pytest.mark.parametrize("mu", [0.2, 0.8])
@pytest.mark.parametrize("restitution", [0.0, 0.6])
def test_friction_of_an_eccentric_impact_has_the_work_of_its_slip(restitution: float, mu: float, device: str):
    """The normal impulse turns a tilted rod, against friction that stops the slip for mu = 0.8 before the impact ends.

    With the inverse masses g, c of the contact along the slip and with the normal, friction does -m v^2 mu / 2 (g mu - c)."""
    scene = on_ground(mu, restitution=restitution, body="floor", gravity=(0, 0, 0), dt=0.002)
    tilt = {"axis_angle": {"axis": (0, 1, 0), "degrees": -30}, "position": (0, 0, 0.35)}
    capsule = {"capsule": {"radius": 0.02, "length": 0.4}, "mass": 1, "inertia": (0.02, 0.02, 0.001)}
    scene.add_body("rod", velocity=(3, 0, -3), **capsule, **tilt)
    simulation = abd.Simulation(scene, device=device)
    rod = simulation.bodies["rod"]
    while rod.linear_velocity[2] < -3.0 + 1e-6:
        report = simulation.step()
    change = rod.linear_velocity[0] - 3.0
    height, across = 0.2 * np.cos(np.pi / 6) + 0.02, 0.1
    slip = rod.linear_velocity[0] - height * rod.angular_velocity[1]
    stop = -4.5 * mu / ((1.0 + height**2 / 0.02) * mu - height * across / 0.02)
    work = stop if mu == 0.8 else change * 0.5 * (3.0 + slip)
    assert report.energy["friction_work"] == pytest.approx(work, rel=0.01)
    assert report.energy["integration"] == pytest.approx(report.energy["kinetic"] - 9.0 - work, rel=0.01)


@pytest.mark.parametrize("dt, gap", [(4e-3, 8e-3), (2e-3, 0.016), (5e-4, 0.016)])
def test_friction_that_loads_its_own_contact_does_not_jam_an_impact(dt: float, gap: float, device: str):
    """Expected: Routh's integration over the impact. Coulomb's law by the last slip alone gives up to 18 times these impulses."""
    tilts, length = np.radians([58.3, 50.4]), 0.3
    along = np.stack([np.cos(tilts), 0.0 * tilts, -np.sin(tilts)], axis=1)
    tip = length * along.sum(axis=0) - 0.02 * np.array([np.sin(tilts[1]), 0.0, np.cos(tilts[1])])
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt})
    scene.add_material("default", mu=0.5)
    scene.add_body("floor", half_space={"offset": float(tip[2] - gap)})
    parent, start, rates = abd.WORLD, np.zeros(3), (-1.42, 18.8)
    for name, direction, tilt, rate in zip("ab", along, tilts, rates, strict=True):
        turn = {"axis": (0, 1, 0), "degrees": np.degrees(tilt)}
        scene.add_body(name, box=(length, 0.04, 0.04), position=start + 0.5 * length * direction, axis_angle=turn)
        scene.add_hinge(f"h{name}", parent, name, anchor=start, axis=(0, 1, 0), enforcement="exact", initial_rate=rate)
        parent, start = name, start + length * direction
    simulation, work = abd.Simulation(scene, device=device), 0.0
    for _ in range(60):
        report = simulation.step()
        impulse, work = -dt * simulation.bodies["floor"].contact_force, report.energy["friction_work"]
        if impulse[2] > 0.05:
            break
    assert impulse[2] == pytest.approx({8e-3: 0.67, 0.016: 0.9 if dt < 1e-3 else 1.1}[gap], rel=0.1)
    assert 0.1 < impulse[0] / impulse[2] <= 0.5
    assert work == pytest.approx(-0.66 if gap < 0.01 else -0.75, rel=0.04)


@pytest.mark.parametrize("dt", [0.01, 2e-3])
@pytest.mark.parametrize("radius", [2e-3, 0.01])
def test_a_smooth_rod_that_hits_a_peg_gets_no_spin_about_its_axis(radius: float, dt: float, device: str):
    """All normals meet the axis of a tumbling capsule, whose two large moments are equal; no impact adds energy."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt})
    scene.add_material("default", mu=0.0)
    peg = {"capsule": {"radius": 5e-3, "length": 1.0}, "axis_angle": {"axis": (-0.7, 1, 0), "degrees": 90}}
    scene.add_body("peg", kind="static", position=(0.1, 0, -0.05), **peg)
    moments = np.array([0.25 / 12, 0.25 / 12, 0.5 * radius**2])
    rod = {"capsule": {"radius": radius, "length": 0.5}, "axis_angle": {"axis": (0, 1, 0), "degrees": 90}}
    scene.add_body("rod", mass=1, inertia=tuple(moments), velocity=(0, 0, -2), angular_velocity=(0, 40, 40), **rod)
    simulation, energies, spins = abd.Simulation(scene, device=device), [], []
    rod = simulation.bodies["rod"]
    for _ in range(round(0.12 / dt)):
        spin = rod.rotation.T @ rod.angular_velocity
        energies.append(0.5 * (rod.center_velocity @ rod.center_velocity + moments @ spin**2))
        spins.append(spin[2])
        simulation.step()
    assert np.abs(spins).max() < 1.0
    assert max(energies) < 1.001 * energies[0] and energies[-1] < 0.4 * energies[0]


@pytest.mark.parametrize("driven", [False, True])
@pytest.mark.parametrize(("kind", "facets"), [("static", 192), ("static", 96), ("dynamic", 96)])
@pytest.mark.parametrize("dt", [0.01, 0.0025])
def test_a_smooth_disc_turns_in_a_sleeve_with_facets(dt: float, kind: str, facets: int, driven: bool):
    """The facets close at up to some mm/s, but pass each other: their gap stays at nearly 0.2 mm."""
    scene, rate = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt}), 6.28
    scene.add_material("default", mu=0)
    scene.add_body("sleeve", mesh=trimesh.creation.annulus(0.0602, 0.09, 0.01, sections=facets), kind=kind, density=7800)
    scene.add_body("disc", cylinder={"radius": 0.06, "length": 0.01, "segments": facets}, density=7800)
    keys = {"drive": {"mode": "velocity", "target": rate}} if driven else {}
    scene.add_hinge("h", abd.WORLD, "disc", anchor=(0, 0, 0), axis=(0, 0, 1), initial_rate=rate, **keys)
    if kind == "dynamic":
        scene.add_hinge("of_sleeve", abd.WORLD, "sleeve", anchor=(-0.1, 0, 0), axis=(0, 0, 1))
    sim = abd.Simulation(scene, device="cpu")
    for _ in range(round(0.1 / dt)):
        report = sim.step()
        assert sim.joints["h"].theta.speed == pytest.approx(rate, rel=1e-3)
        assert max((abs(contact.normal_force) for contact in sim.contacts()), default=0.0) < 0.1
    assert abs(report.energy["external_work"]) < 1e-4


def test_a_prescribed_disc_turns_in_a_wheel_without_kicks():
    """The mean velocity of an eccentric prescribed body in a step points outwards; its facets do not close."""
    scene, facets = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01}), 96
    scene.add_material("default", mu=0)
    disc, weight = trimesh.creation.cylinder(0.06, 0.01, sections=facets), trimesh.creation.box((0.03, 0.01, 0.02))
    weight.apply_translation((0.04, 0.0, 0.016))
    mesh, rate = trimesh.util.concatenate([disc, weight]), 6.28
    scene.add_body("disc", mesh=mesh, kind="kinematic", motion={"angular_velocity": (0, 0, rate)})
    scene.add_body("wheel", mesh=trimesh.creation.annulus(0.0602, 0.09, 0.01, sections=facets), density=7800)
    scene.add_hinge("h", abd.WORLD, "wheel", anchor=(0.1, 0, 0), axis=(0, 0, 1))
    sim = abd.Simulation(scene, device="cpu")
    for _ in range(30):
        sim.step()
        assert abs(sim.joints["h"].theta.speed) < 2e-3
        assert max((abs(contact.normal_force) for contact in sim.contacts()), default=0.0) < 10.0


@pytest.mark.parametrize("dt", [2e-3, 2e-4])
def test_a_face_that_lands_flat_does_not_tilt_and_stops_its_spin(dt: float, device: str):
    """Friction changes the speed of the cube that slides by mu (1 + e) times the approach speed. It could stop three times the
    spin of the second cube, and nearly twice the slip of the third one."""
    scene, speed, mu, e = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt}), 2.0, 0.3, 0.5
    scene.add_material("default", mu=mu, restitution=e)
    scene.add_body("floor", half_space={})
    scene.add_body("slides", box=(0.1,) * 3, position=(0, 0, 0.056), velocity=(1, 0, -speed))
    scene.add_body("spins", box=(0.1,) * 3, position=(0, 1, 0.056), velocity=(0, 0, -speed), angular_velocity=(0, 0, 10))
    scene.add_body("sticks", box=(0.1,) * 3, position=(0, 2, 0.056), velocity=(0.5, 0, -speed))
    simulation = abd.Simulation(scene, device=device)
    energies = [simulation.step().energy for _ in range(round(8e-3 / dt))]
    bodies = [simulation.bodies[name] for name in ("slides", "spins", "sticks")]
    tangential = [0.5 * one.mass * (one.linear_velocity[:2] @ one.linear_velocity[:2]) for one in bodies]
    before = 0.5 * bodies[0].mass * (1.0 + 0.25 + 0.1**2 / 6.0 * 10.0**2)
    assert energies[-1]["friction_work"] == pytest.approx(sum(tangential) - before, rel=0.03)
    slides, spins, _ = bodies
    assert slides.linear_velocity == pytest.approx([1.0 - mu * (1.0 + e) * speed, 0.0, e * speed], abs=0.02)
    assert spins.linear_velocity == pytest.approx([0.0, 0.0, e * speed], abs=0.02)
    assert np.abs([slides.angular_velocity, spins.angular_velocity]).max() < 0.02


@pytest.mark.parametrize("dt", [2e-3, 5e-4])
def test_a_rocking_block_loses_what_housner_derived(dt: float, device: str):
    """The angular velocity falls by the factor 1 - 1.5 sin^2 a, a the angle between diagonal and side, when the edge changes."""
    width, height, angle = 0.1, 0.3, np.radians(1.5)
    scene = on_ground(1.0, body="floor", dt=dt)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    x, z = np.array([0.0, 6e-4]) - turn @ [0.5 * width, -0.5 * height]
    scene.add_body("block", box=(width, 0.1, height), position=(x, 0, z), axis_angle={"axis": (0, 1, 0), "degrees": 1.5})
    scene.body("block").angular_velocity, scene.body("block").velocity = (0, -1.2, 0), (-1.2 * z, 0, 1.2 * x)
    simulation = abd.Simulation(scene, device=device)
    rates = []
    for _ in range(round(0.04 / dt)):
        simulation.step()
        rates.append(simulation.bodies["block"].angular_velocity[1])
    fastest = int(np.argmin(rates))
    lost = 1.5 * np.sin(np.arctan(width / height)) ** 2
    assert rates[fastest + 1] / rates[fastest] == pytest.approx(1.0 - lost, abs=0.02)


PAIRS, BODIES = 12, 8


def impacts_of(seed: int, frictional: int, slip: float = 1.0):
    """Random pairs of unit bodies in two blocks; the first pairs of each block have friction."""
    rng = np.random.default_rng(seed)
    pair = np.sort(rng.choice(PAIRS, frictional, replace=False))
    rows = np.zeros((PAIRS + 2 * frictional, 2, BODIES, 6))
    block = np.repeat([0, 1], [5, PAIRS - 5])
    for row, k in enumerate(np.concatenate([np.arange(PAIRS), np.repeat(pair, 2)])):
        rows[row, block[k], rng.choice(BODIES, 2, replace=False)] = rng.normal(size=(2, 6))
    rows = rows.reshape(len(rows), -1)
    A = sparse.csr_matrix(rows @ rows.T)
    A.sort_indices()
    spent, before = 0.05 * rng.normal(size=(frictional, 2)), slip * rng.normal(size=(frictional, 2))
    friction = sweeps.ConeRows(pair, rng.uniform(0.1, 0.5, frictional), spent, before, pair // 2)
    power, target = rng.normal(size=len(rows)), rng.uniform(0.0, 0.5, PAIRS)
    low, high = np.zeros(PAIRS), np.where(rng.random(PAIRS) < 0.5, np.inf, target)
    starts, size = np.array([0, 5, PAIRS]), rng.uniform(0.5, 2.0, PAIRS)
    return A, power, low, high, size, np.ones(2), starts, np.arange(PAIRS), friction


@pytest.mark.parametrize("frictional", [0, 1, PAIRS])
@pytest.mark.parametrize("seed", range(4))
def test_the_kernel_finds_the_factors_and_friction_of_the_definition(seed, frictional):
    given = impacts_of(seed, frictional)
    np.testing.assert_allclose(impact_sweeps.swept(*given), sweeps.swept(*given), rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_powers_are_in_their_bounds_and_friction_in_its_cone_opposes_the_slip(seed):
    A, power, low, high, *_, friction = given = impacts_of(seed, 4, slip=0.0)
    x = sweeps.swept(*given)
    p, factor = power + A @ x, x[:PAIRS]
    assert (p[:PAIRS] > low - 1e-7).all() and (p[:PAIRS] < high + 1e-7)[factor > -1.0].all()
    slip, impulse = p[PAIRS:].reshape(-1, 2), friction.spent + x[PAIRS:].reshape(-1, 2)
    limit, size = friction.limit * (1.0 + factor[friction.pair]), np.linalg.norm(impulse, axis=1)
    assert (size <= limit + 1e-9).all()
    assert np.abs(slip[size < limit - 1e-7]).max(initial=0.0) < 1e-6
    assert (np.sum(impulse * slip, axis=1) < 1e-9).all()


@pytest.mark.parametrize("swept", [sweeps.swept, impact_sweeps.swept])
@pytest.mark.parametrize("mu, slip", [(0.5, 3.88), (0.5, 3.5), (0.8, 3.88), (0.2, 3.88), (0.5, -3.88), (0.5, 0.0)])
def test_friction_of_a_pair_is_that_of_its_integrated_impact(swept, mu, slip):
    """Routh's method: friction opposes the slip of the moment, until the normal velocity is zero."""
    G, normal, tangent, P, step = np.array([[2.186, -3.273], [-3.273, 4.909]]), -2.83, slip, [0.0, 0.0], 2e-5
    (a, b), (_, c) = G.tolist()
    while normal < 0.0:
        by = max(-mu, min(mu, -b / c)) if abs(tangent) < 2e-4 else -math.copysign(mu, tangent)
        P = [P[0] + step, P[1] + step * by]
        normal, tangent = normal + step * (a + b * by), tangent + step * (b + c * by)
    # an impulse of 1e-6 N s in the step, scaled by its factor: the impact is 1 + x of it
    first, scale, along = 1e-6 * G[0], np.diag([1e-6, 1.0, 1.0]), np.array([slip, 0.0])
    A = scale @ np.pad(G, (0, 1), constant_values=0.0) @ scale + np.diag([0.0, 0.0, 1.0])
    friction = sweeps.ConeRows(np.array([0]), np.array([1e-6 * mu]), np.zeros((1, 2)), along[None], np.zeros(1, dtype=int))
    power, zero = scale @ [-2.83 + first[0], slip + first[1], 0.0], np.zeros(1)
    x = swept(sparse.csr_matrix(A), power, zero, zero, zero + 1e-6, zero + 3.0, np.array([0, 1]), np.array([0]), friction)
    np.testing.assert_allclose([1e-6 * (1.0 + x[0]), x[1]], P, rtol=1e-3, atol=2e-3)
