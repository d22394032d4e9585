"""Mechanisms with penalty joints: closed forms, orders of convergence, and other simulators run beside ours.

Sources: A01 pendulum and A02 N-four-bar of the IFToMM multibody benchmark library; Exudyn's sphericalJointTest.
"""

from __future__ import annotations

import numpy as np
import pytest
from on_device import NAME
from scipy.integrate import solve_ivp

import abd

pytestmark = pytest.mark.device

G = 9.81


def scene_of(integrator: str, h: float, gravity=(0.0, -G, 0.0), **solver) -> abd.Scene:
    """A scene without bodies."""
    return abd.Scene(gravity=gravity, solver={"dt": h, "integrator": integrator, **solver})


def advance(scene: abd.Scene, duration: float) -> tuple[abd.Simulation, list]:
    """The simulation after `duration` [s] on the processor, and its reports."""
    simulation = abd.Simulation(scene, device=NAME)
    return simulation, [simulation.step() for _ in range(round(duration / scene.solver.dt))]


def angular_velocity(body) -> np.ndarray:
    """(3,) [rad/s] of a body of a simulation."""
    W = body.velocity[:3, :3] @ np.linalg.inv(body.transform[:3, :3])
    return 0.5 * np.array([W[2, 1] - W[1, 2], W[0, 2] - W[2, 0], W[1, 0] - W[0, 1]])


def solution(rate, start, times) -> np.ndarray:
    """(len(times), k) of an ordinary differential equation to 1e-11."""
    result = solve_ivp(rate, (0.0, max(times)), start, method="DOP853", rtol=1e-11, atol=1e-12, t_eval=times)
    return result.y.T


# A01: a point mass on a rod of 1 m, released level ------------------------------------------------------------------

A01 = {
    0.5: (-0.391049, -0.920370),
    1.0: (0.986292, -0.165011),
    2.0: (-0.793566, -0.608484),
    10.0: (-0.275087, -0.961419),
}
"""Published positions [m] at times [s]."""


def pendulum(integrator: str, h: float, joint: str = "spherical") -> abd.Scene:
    """A01; the bob is a proxy of nearly no size, whose own inertia 1e-6 kg m^2 shifts the phase by 1e-6."""
    scene = scene_of(integrator, h)
    bob = {"mass": 1.0, "center_of_mass": (0.0, 0.0, 0.0), "inertia": (1e-6, 1e-6, 1e-6)}
    scene.add_body("bob", box=(0.1, 0.1, 0.1), position=(-1.0, 0.0, 0.0), **bob)
    axis = {"axis": (0.0, 0.0, 1.0)} if joint == "hinge" else {}
    scene.add_joint(joint, "pivot", abd.WORLD, "bob", anchor=(0.0, 0.0, 0.0), **axis)
    return scene


def pendulum_errors(integrator: str, h: float, times, joint: str = "spherical") -> np.ndarray:
    """Distances [m] from the exact motion ``th'' = -g cos th`` at some times."""
    angles = solution(lambda t, y: [y[1], -G * np.cos(y[0])], [np.pi, 0.0], times)[:, 0]
    exact = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    simulation = abd.Simulation(pendulum(integrator, h, joint), device=NAME)
    positions = []
    for _ in range(round(max(times) / h)):
        report = simulation.step()
        if np.isclose(report.time, times).any():
            positions.append(simulation.bodies["bob"].transform[:2, 3])
    return np.linalg.norm(np.array(positions) - exact, axis=1)


@pytest.mark.parametrize(
    ("integrator", "h", "budget"),
    [
        ("bdf1", 1e-2, {0.5: 2.1e-3, 1.0: 1.5e-1, 2.0: 4.0e-2}),
        ("bdf2", 1e-2, {0.5: 1.2e-3, 1.0: 3.1e-3, 2.0: 7.7e-3, 5.0: 6.5e-3, 10.0: 2.0e-2}),
        ("bdf2", 2.5e-3, {0.5: 8.1e-5, 1.0: 1.8e-4, 2.0: 4.9e-4}),
    ],
)
def test_a_pendulum_stays_within_the_budget_of_its_integrator(integrator, h, budget):
    """Twice the errors of the same scheme with an exactly rigid rod, at the default tolerance."""
    errors = pendulum_errors(integrator, h, list(budget))
    assert np.all(errors <= 2.0 * np.array(list(budget.values())))


@pytest.mark.slow
def test_a_bdf2_pendulum_is_within_a_millimetre_after_ten_seconds():
    budget = {1.0: 2.8e-5, 2.0: 7.8e-5, 5.0: 1.1e-4, 10.0: 3.9e-4}
    errors = pendulum_errors("bdf2", 1e-3, list(budget))
    assert np.all(errors <= 2.0 * np.array(list(budget.values())))
    assert errors[-1] <= 1e-3


@pytest.mark.parametrize("joint", ["spherical", "hinge"])
@pytest.mark.parametrize(("integrator", "order"), [("bdf1", 1.0), ("bdf2", 2.0)])
def test_a_pendulum_converges_with_the_order_of_its_integrator(integrator, order, joint):
    """Errors over the first 0.5 s; the joint's opening c h^2 f / K is of second order too."""
    times = [0.25, 0.5]
    coarse, fine = (np.max(pendulum_errors(integrator, h, times, joint)) for h in (0.01, 0.005))
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.15)


# A02: N windows of unit rods ----------------------------------------------------------------------------------------


def windows(count: int, integrator: str, h: float) -> abd.Scene:
    """N vertical and horizontal rods of 1 kg and 1 m, every hinge about z: redundant rows in space."""
    scene = scene_of(integrator, h)
    thin, rod = 1e-3, 1.0 / 12.0
    common = {"proxy": True, "mass": 1.0, "density": 1.0, "center_of_mass": (0.0, 0.0, 0.0)}
    for i in range(count + 1):
        turning = {"velocity": (0.5, 0.0, 0.0), "angular_velocity": (0.0, 0.0, -1.0)}
        scene.add_body(f"post{i}", position=(i, 0.5, 0.0), inertia=(rod, thin, rod), **turning, **common)
        scene.add_hinge(f"foot{i}", abd.WORLD, f"post{i}", anchor=(i, 0.0, 0.0), axis=(0.0, 0.0, 1.0))
    for i in range(count):
        velocity = (1.0, 0.0, 0.0)
        scene.add_body(f"beam{i}", position=(i + 0.5, 1.0, 0.0), inertia=(thin, rod, rod), velocity=velocity, **common)
        scene.add_hinge(f"left{i}", f"post{i}", f"beam{i}", anchor=(i, 1.0, 0.0), axis=(0.0, 0.0, 1.0))
        scene.add_hinge(f"right{i}", f"post{i + 1}", f"beam{i}", anchor=(i + 1, 1.0, 0.0), axis=(0.0, 0.0, 1.0))
    return scene


# a double pendulum beside MuJoCo ------------------------------------------------------------------------------------

DOUBLE_PENDULUM = """
<mujoco>
  <compiler inertiafromgeom="false" angle="radian"/>
  <option timestep="5e-4" integrator="RK4" gravity="0 0 -9.81"><flag contact="disable"/></option>
  <worldbody>
    <body pos="0 0 0">
      <joint type="hinge" axis="0 1 0"/>
      <inertial pos="0.3 0 0" mass="{m1}" diaginertia="{i1}"/>
      <body pos="0.6 0 0">
        <joint type="hinge" axis="0 1 0"/>
        <inertial pos="0.2 0 0" mass="{m2}" diaginertia="{i2}"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def test_a_double_pendulum_converges_to_mujoco():
    """Two box links released level, after 0.5 s: angles to 2e-3 rad, speeds to 0.04 of 4.7 rad/s at h = 2.5 ms."""
    mujoco = pytest.importorskip("mujoco")
    sizes = [np.array([0.6, 0.1, 0.05]), np.array([0.4, 0.05, 0.1])]
    masses = [1000.0 * size.prod() for size in sizes]
    inertias = [m / 12.0 * ((size**2).sum() - size**2) for m, size in zip(masses, sizes)]
    texts = [" ".join(repr(float(value)) for value in inertia) for inertia in inertias]
    model = mujoco.MjModel.from_xml_string(DOUBLE_PENDULUM.format(m1=masses[0], m2=masses[1], i1=texts[0], i2=texts[1]))
    data = mujoco.MjData(model)
    for _ in range(1000):
        mujoco.mj_step(model, data)

    errors = []
    for h in (0.005, 0.0025):
        scene = scene_of("bdf2", h, gravity=(0.0, 0.0, -G))
        scene.add_body("first", box=tuple(sizes[0]), position=(0.3, 0.0, 0.0))
        scene.add_body("second", box=tuple(sizes[1]), position=(0.8, 0.0, 0.0))
        scene.add_hinge("shoulder", abd.WORLD, "first", anchor=(0.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0))
        scene.add_hinge("elbow", "first", "second", anchor=(0.6, 0.0, 0.0), axis=(0.0, 1.0, 0.0))
        simulation, _ = advance(scene, 0.5)
        joints = [simulation.joints[name] for name in ("shoulder", "elbow")]
        angles = np.array([joint.coordinates[0] for joint in joints])
        rates = np.array([joint.rates[0] for joint in joints])
        errors.append([np.abs(angles - data.qpos).max(), np.abs(rates - data.qvel).max()])
    np.testing.assert_allclose(np.log2(np.divide(errors[0], errors[1])), 2.0, atol=0.3)
    assert errors[1][0] < 2e-3 and errors[1][1] < 0.04
