"""Joints: known loads give the violations and reactions of docs/theory.md, "Joints".

A load f opens a penalty joint by ``c h^2 f / K`` (spherical, fixed) or ``c h^2 f / (2 K)`` (hinge at mid-axis), with
``K = gamma (m_i + m_j)``, the world counting nothing, c = 1 (bdf1) or 4/9 (bdf2).
"""

import numpy as np
import pytest
from on_device import NAME

import abd

pytestmark = pytest.mark.device

C = {"bdf1": 1.0, "bdf2": 4.0 / 9.0}
GAMMA = 100.0
G = 9.81
H = 0.01
INTEGRATORS = ("bdf1", "bdf2")
TYPES = ("spherical", "fixed", "hinge")
SETTLE = 60


def empty(integrator: str, gravity=(0.0, 0.0, -G), h: float = H, **solver) -> abd.Scene:
    """A scene without bodies."""
    return abd.Scene(gravity=gravity, solver={"dt": h, "integrator": integrator, **solver})


def run(scene: abd.Scene, steps: int) -> abd.Simulation:
    """The simulation after `steps` frames on the processor."""
    simulation = abd.Simulation(scene, device=NAME)
    simulation.run(steps=steps)
    return simulation


def axis_of(type: str, *keys: str) -> dict:
    """Arguments that only a hinge takes: the axis y under the names `keys`."""
    return dict.fromkeys(keys, (0.0, 1.0, 0.0)) if type == "hinge" else {}


def opening(type: str, integrator: str, load: float, stiffness: float) -> float:
    """Violation [m] under a force through the joint's point."""
    return C[integrator] * H * H * load / (stiffness * (2.0 if type == "hinge" else 1.0))


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("type", TYPES)
def test_hanging_weights_open_joints_by_the_formula(type, integrator):
    """The upper of two joints carries both bodies, the lower one the last."""
    scene = empty(integrator)
    scene.add_body("upper", box=(0.2, 0.3, 0.4), position=(0.0, 0.0, -0.3))
    scene.add_body("lower", box=(0.1, 0.1, 0.3), position=(0.0, 0.0, -0.8))
    scene.add_joint(type, "roof", abd.WORLD, "upper", anchor=(0.0, 0.0, 0.0), **axis_of(type, "axis"))
    scene.add_joint(type, "link", "upper", "lower", anchor=(0.0, 0.0, -0.55), **axis_of(type, "axis"))
    simulation = run(scene, SETTLE)
    upper, lower = simulation.model.bodies.mass
    for name, load, masses in (("roof", (upper + lower) * G, upper), ("link", lower * G, upper + lower)):
        joint = simulation.joints[name]
        assert joint.residual[0] == pytest.approx(opening(type, integrator, load, GAMMA * masses), rel=1e-6)
        force, torque = joint.wrench()
        np.testing.assert_allclose(force, (0.0, 0.0, load), rtol=1e-6, atol=1e-6 * load)
        np.testing.assert_allclose(torque, 0.0, atol=1e-6 * load)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_spherical_joint_follows_its_linear_recursion(integrator):
    """A body held at its centre of mass is a mass on a spring: (m + K) x' = m xt + c h^2 m g, from rest."""
    scene = empty(integrator)
    scene.add_body("weight", box=(0.2, 0.3, 0.4))
    scene.add_spherical("joint", abd.WORLD, "weight", anchor=(0.0, 0.0, 0.0))
    simulation = abd.Simulation(scene, device=NAME)
    m = simulation.bodies["weight"].mass
    stiffness = GAMMA * m
    x, v = [0.0], [0.0]
    for n in range(5):
        simulation.step()
        if integrator == "bdf1" or n == 0:
            c, target = 1.0, x[n] + H * v[n]
        else:
            c, target = 4.0 / 9.0, (4.0 * x[n] - x[n - 1]) / 3.0 + 2.0 * H / 9.0 * (4.0 * v[n] - v[n - 1])
        x.append(m * (target - c * H * H * G) / (m + stiffness))
        first_order = integrator == "bdf1" or n == 0
        v.append((x[n + 1] - x[n]) / H if first_order else (3.0 * x[n + 1] - 4.0 * x[n] + x[n - 1]) / (2.0 * H))
        assert simulation.bodies["weight"].transform[2, 3] == pytest.approx(x[-1], rel=1e-6)
        force, _ = simulation.joints["joint"].wrench()
        assert force[2] == pytest.approx(-stiffness * x[-1] / (c * H * H), rel=1e-6)


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("length", [0.1, 0.3])
def test_a_couple_across_a_hinge_tilts_it_by_the_formula(length, integrator):
    """Points at +- L carry tau / (2 L) and open by c h^2 tau / (2 K L)."""
    tau = 5.0
    scene = empty(integrator, gravity=(0.0, 0.0, 0.0))
    scene.add_body("weight", box=(0.2, 0.3, 0.4), torque=(0.0, 0.0, tau), kappa=1e11)
    scene.add_hinge("hinge", abd.WORLD, "weight", anchor=(0.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0), length=length)
    simulation = run(scene, SETTLE)
    expected = opening("hinge", integrator, tau / length, GAMMA * simulation.bodies["weight"].mass)
    hinge = simulation.joints["hinge"]
    assert hinge.residual[0] == pytest.approx(expected, rel=1e-6)
    A = simulation.bodies["weight"].transform[:3, :3]
    assert np.arctan2(A[1, 0] - A[0, 1], A[0, 0] + A[1, 1]) == pytest.approx(expected / length, rel=1e-3)
    force, torque = hinge.wrench()
    np.testing.assert_allclose(torque, (0.0, 0.0, -tau), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(force, 0.0, atol=1e-6)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_couple_on_a_fixed_joint_turns_it_by_the_formula(integrator):
    """With three unit directions of weight K, 2 K sin(theta) = c h^2 tau; a transverse one moves by 2 sin(theta/2)."""
    tau = np.array([0.0, 7.0, 0.0])
    scene = empty(integrator, gravity=(0.0, 0.0, 0.0))
    scene.add_body("weight", box=(0.2, 0.3, 0.4), torque=tuple(tau))
    scene.add_fixed("weld", abd.WORLD, "weight", anchor=(0.1, 0.0, 0.0))
    simulation = run(scene, SETTLE)
    stiffness = GAMMA * simulation.bodies["weight"].mass
    theta = np.arcsin(C[integrator] * H * H * 7.0 / (2.0 * stiffness))
    weld = simulation.joints["weld"]
    assert weld.residual[1] == pytest.approx(2.0 * np.sin(theta / 2.0), rel=1e-6)
    force, torque = weld.wrench()
    np.testing.assert_allclose(torque, -tau, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(force, 0.0, atol=1e-6)


@pytest.mark.parametrize("collide", [False, True])
def test_connected_bodies_have_contact_only_with_collide(collide):
    """A flap that falls on the table of its hinge rests there with `collide`, and passes through it otherwise."""
    scene = empty("bdf1")
    scene.add_body("table", kind="static", box=(0.6, 0.4, 0.1), position=(0.3, 0.0, -0.05))
    scene.add_body("flap", box=(0.4, 0.2, 0.02), position=(0.25, 0.0, 0.2), euler={"order": "xyz", "degrees": (0, -30, 0)})
    scene.add_hinge("hinge", "table", "flap", anchor=(0.03, 0.0, 0.07), axis=(0.0, 1.0, 0.0), collide=collide, length=0.1)
    simulation = abd.Simulation(scene, device=NAME)
    contacts, heights = 0, []
    for _ in range(60):
        contacts += simulation.step().contacts
        heights.append((simulation.bodies["flap"].transform @ [0.2, 0.0, -0.01, 1.0])[2])
    if collide:
        assert contacts > 0 and min(heights) > 0.0
    else:
        assert contacts == 0 and min(heights) < -0.1
