"""Motion and joint forces of exact joints, against known numbers at a stated step, with the order."""

import numpy as np
import pytest
import reference_cases as cases
import reference_runs as runs
from on_device import NAME, follow

import abd
from abd.potentials.integrators import scheme

pytestmark = pytest.mark.device


@pytest.mark.parametrize(
    ("name", "h", "until", "position", "velocity", "force"),
    [
        ("spherical chain", 0.005, 0.5, 1e-4, 1e-4, 1e-4),
        ("A01 pendulum", 0.0025, 0.5, 1e-4, 0.0, 1e-3),
        ("four-bar", 0.005, 0.5, 3e-6, 0.0, 3e-6),
        ("capsule on a hinge, damping 0", 0.0025, 0.25, 1e-4, 0.0, 0.0),
        ("capsule on a hinge, damping 29", 0.0025, 0.25, 1e-4, 0.0, 0.0),
        ("linkage", 0.0025, 0.25, 1e-4, 4e-4, 0.0),
        ("double pendulum (0.1, 0.2)", 0.0025, 0.5, 1e-4, 4e-4, 0.0),
    ],
)
def test_exact_joints_follow_the_reference_with_second_order(name, h, until, position, velocity, force):
    """The table has the largest errors [m, rad], [m/s, rad/s] and of forces; 0 without a reference."""
    case = cases.CASES[name]
    fine, coarse = (runs.run(case, step, until, NAME) for step in (h, 2.0 * h))
    for kind, bound in zip(runs.KINDS, (position, velocity, force)):
        error = runs.worst(fine.errors, kind)
        assert error <= bound
        if bound:
            assert np.log2(runs.worst(coarse.errors, kind) / error) == pytest.approx(2.0, abs=0.25)
    assert fine.residual[0] < 1e-9 and fine.residual[1] < 1e-8
    assert fine.newton <= 3.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "h", "until", "position"),
    [
        ("spherical chain", 0.0025, 1.0, 1e-4),
        ("A01 pendulum", 0.0005, 10.0, 2e-4),
        ("A02, N = 2", 0.0005, 10.0, 1.5e-3),
        ("A02, N = 40", 0.0004, 10.0, 1e-3),
        ("four-bar", 0.001, 2.0, 1e-4),
        ("double pendulum (0.1, 0.2)", 0.001, 5.0, 1e-4),
        ("double pendulum (1.0, -0.5)", 0.001, 2.0, 1e-4),
        ("capsule on a hinge, damping 0", 0.0005, 2.0, 1e-4),
        ("capsule on a hinge, damping 29", 0.0005, 2.0, 1e-4),
    ],
)
def test_mechanisms_follow_their_reference_for_seconds(name, h, until, position):
    """Errors of positions [m, rad] are bounded, those of forces by 1e-3 of the largest."""
    outcome = runs.run(cases.CASES[name], h, until)
    assert runs.worst(outcome.errors, "position") <= position
    assert runs.worst(outcome.errors, "force") <= 1e-3
    assert outcome.residual[0] < 1e-9 and outcome.residual[1] < 1e-8


@pytest.mark.parametrize(("name", "until", "position"), [("A02, N = 2", 1.0, 1e-3), ("A02, N = 40", 0.5, 2e-4)])
def test_windows_with_redundant_rows_follow_their_closed_form(name, until, position):
    """The 81 bars and 121 hinges have redundant rows, a third of all."""
    outcome = runs.run(cases.CASES[name], 0.0025, until)
    assert runs.worst(outcome.errors, "position") < position
    assert outcome.residual[0] < 1e-9 and outcome.newton < 5.0


def test_a_compliant_linkage_stays_close_to_the_rigid_one():
    """With ArtiSynth's compliance of 1e-6 m/N, hinges open by less than 1 mm."""
    outcome = runs.run(cases.CASES["linkage, compliant"], 0.0025, 0.25)
    assert 1e-4 < outcome.residual[0] < 1e-3
    assert runs.worst(outcome.errors, "position") < 2e-3


def test_forces_are_second_order_after_the_start():
    """The force of the first step is that at a third of it; this error is of first order."""
    errors = {h: pivot_force_errors(np.full(round(0.4 / h), h)) for h in (0.01, 0.005, 0.0025)}
    assert [error.max() for error in errors.values()] == pytest.approx([0.40, 0.20, 0.10], abs=0.01)
    assert errors[0.01][-1] < 0.04
    assert np.log2(errors[0.005][-1] / errors[0.0025][-1]) == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize(
    ("lengths", "error"),
    [([0.01] * 40, 0.05), ([0.01] * 6 + [0.002] * 20, 0.1), ([0.002] * 6 + [0.01] * 20, 0.05)],
)
def test_joint_forces_do_not_oscillate_after_starts_and_changes_of_the_step_length(lengths, error):
    """The force of the first step, and of the first one of another length, is that at a third of it."""
    assert np.delete(pivot_force_errors(np.array(lengths)), [0, 6]).max() < error


CYCLES = (1.0, 0.5), (1.0, 0.1), (1.0, 1.0, 1.0, 0.25, 0.25, 0.25), (1.0, 0.5, 0.25, 0.125), (1.0,) * 9 + (0.3,)


@pytest.mark.parametrize("cycle", CYCLES)
def test_joint_forces_do_not_grow_with_lengths_that_change_for_ever(cycle):
    """Errors are those of the force that the state requires; energy is lost."""
    simulation, errors, energies = thrown(0.01), [], []
    for length in np.resize(0.01 * np.array(cycle), 400):
        simulation.worlds.dt = length
        energy = simulation.step().energy
        energies.append(energy["kinetic"] + energy["gravity"])
        u, rate = simulation.bodies["bob"].position[:2], simulation.bodies["bob"].angular_velocity[2]
        errors.append(np.abs(simulation.joints["pivot"].wrench()[0][:2] + (rate**2 - cases.G * u[1]) * u).max())
    assert max(errors) < 0.6 and max(energies) < energies[0] + 1e-3


def thrown(h: float) -> abd.Simulation:
    """A mass of 1 kg at 1 m from its pivot, level, thrown downwards with 2 m/s."""
    scene = cases.empty(h, tolerance=1e-7)
    cases.link(scene, "bob", 1.0, (1e-9,) * 3, (-1, 0, 0), velocity=(0, -2, 0), angular_velocity=(0, 0, 2))
    scene.add_spherical("pivot", abd.WORLD, "bob", anchor=(0, 0, 0), enforcement="exact")
    return abd.Simulation(scene, device=NAME)


def pivot_force_errors(lengths: np.ndarray) -> np.ndarray:
    """(steps,) of `thrown` in steps of these lengths [N]."""
    simulation = thrown(lengths[0])
    motion = cases.solution(lambda t, y: [y[1], -cases.G * np.cos(y[0])], [np.pi, 2.0], np.cumsum(lengths))
    errors = []
    for length, (angle, rate) in zip(lengths, motion, strict=True):
        simulation.worlds.dt = length
        simulation.step()
        u = np.array([np.cos(angle), np.sin(angle)])
        expected = -(rate**2 - cases.G * np.sin(angle)) * u
        errors.append(np.abs(simulation.joints["pivot"].wrench()[0][:2] - expected).max())
    return np.array(errors)


STEP = 0.005


def heavy_chain() -> abd.Scene:
    """Five links of 1 kg on hinges of two axes, the last one of 1e6 kg; 30 degrees to either side, so that they stay taut."""
    down = np.radians(30.0)
    scene = cases.empty(STEP, gravity=(cases.G * np.cos(down), -cases.G * np.sin(down), 0.0))
    parent: str | int = abd.WORLD
    for k in range(5):
        mass = 1e6 if k == 4 else 1.0
        inertia = (0.02 * mass, 0.1 * mass, 0.1 * mass)
        cases.link(scene, f"link{k}", mass, inertia, (k + 0.5, 0.0, 0.0))
        axis = (0, 0, 1) if k % 2 == 0 else (0, 1, 0.2)
        scene.add_hinge(f"joint{k}", parent, f"link{k}", anchor=(k, 0, 0), axis=axis, enforcement="exact")
        parent = f"link{k}"
    return scene


def heavy_four_bar() -> abd.Scene:
    """A parallelogram that turns over and over, its coupler of 1e6 kg on cranks of 1 kg."""
    scene = cases.empty(STEP)
    for k in range(2):
        turning = {"velocity": (1.0, 0, 0), "angular_velocity": (0, 0, -2.0)}
        cases.link(scene, f"crank{k}", 1.0, (0.1, 0.05, 0.1), (2.0 * k, 0.5, 0.0), **turning)
    cases.link(scene, "coupler", 1e6, (1e5, 4e5, 4e5), (1.0, 1.0, 0.0), velocity=(2.0, 0, 0))
    for k in range(2):
        hinge = {"axis": (0, 0, 1), "enforcement": "exact"}
        scene.add_hinge(f"foot{k}", abd.WORLD, f"crank{k}", anchor=(2.0 * k, 0, 0), **hinge)
        scene.add_hinge(f"head{k}", f"crank{k}", "coupler", anchor=(2.0 * k, 1, 0), **hinge)
    return scene


def slider_crank() -> abd.Scene:
    """Crank, rod and a slider of 1e6 times the rod's mass, whose slide closes the loop by rows that are not linear."""
    scene = cases.empty(STEP)
    hinge = {"axis": (0, 0, 1), "enforcement": "exact"}
    cases.link(scene, "crank", 10.0, (0.1, 0.2, 0.2), (0, 0.25, 0), angular_velocity=(0, 0, -3), velocity=(0.75, 0, 0))
    rod = np.array([np.sqrt(4.0 - 0.25), -0.5, 0.0])
    cases.link(scene, "rod", 1e-3, (4e-4, 4e-4, 4e-4), np.array([0, 0.5, 0]) + 0.5 * rod, velocity=(1.5, 0, 0))
    cases.link(scene, "slider", 1e3, (100.0, 100.0, 100.0), (rod[0], 0, 0), velocity=(1.5, 0, 0))
    scene.add_hinge("main", abd.WORLD, "crank", anchor=(0, 0, 0), **hinge)
    scene.add_hinge("pin", "crank", "rod", anchor=(0, 0.5, 0), **hinge)
    scene.add_hinge("wrist", "rod", "slider", anchor=(rod[0], 0, 0), **hinge)
    scene.add_slider("slide", abd.WORLD, "slider", anchor=(rod[0], 0, 0), axis=(1, 0, 0), enforcement="exact")
    return scene


HELD = {"heavy chain": (heavy_chain, 1e-9), "heavy four-bar": (heavy_four_bar, 1e-9), "slider crank": (slider_crank, 1e-8)}
"""Scenes of exact joints, and what their rows must hold to: lengths [m] and angles [rad]."""


@pytest.mark.parametrize("steps", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", HELD)
def test_exact_rows_hold_at_high_mass_ratios_and_in_loops(name, steps):
    make, tolerance = HELD[name]
    simulation = abd.Simulation(make(), device=NAME)
    for _ in range(steps):
        assert max(simulation.step().max_joint_residual) < tolerance
        assert np.isfinite(simulation.stepper.q).all()


def test_moving_penalty_joints_open_as_the_known_forces_predict():
    """The spherical chain with K = 100 (2 + 2) kg opens as predicted within 1 % after 0.25 s at h = 5 ms."""
    h = 0.005
    simulation = abd.run(cases.spherical_chain(h, "penalty", tolerance=1e-7), steps=50, device=NAME)
    known = cases.CASES["spherical chain"].expected[0.25]
    for i, K in enumerate((200.0, 400.0, 400.0, 400.0)):
        force = np.linalg.norm(known[f"force {i}"])
        opening = simulation.joints[f"joint{i}"].residual[0]
        assert opening == pytest.approx(scheme("generalized_alpha", h).c * h * h * force / K, rel=1e-2)


def pendulum_errors(integrator: str, h: float, times, joint: str = "spherical") -> np.ndarray:
    """Distances [m] at some times from the exact motion ``th'' = -g cos th`` of A01 on a penalty joint."""
    scene = cases.empty(h, integrator=integrator)
    cases.link(scene, "bob", 1.0, (1e-6,) * 3, (-1, 0, 0))
    scene.add_joint(joint, "pivot", abd.WORLD, "bob", anchor=(0, 0, 0), **({"axis": (0, 0, 1)} if joint == "hinge" else {}))
    simulation = abd.Simulation(scene, device=NAME)
    angles = cases.solution(lambda t, y: [y[1], -cases.G * np.cos(y[0])], [np.pi, 0.0], times)[:, 0]
    places = np.array(follow(simulation, round(max(times) / h), lambda _: simulation.bodies["bob"].position[:2].copy()))
    found = places[[round(time / h) - 1 for time in times]]
    return np.linalg.norm(found - np.stack([np.cos(angles), np.sin(angles)], axis=1), axis=1)


@pytest.mark.parametrize("joint", ["spherical", "hinge"])
@pytest.mark.parametrize(("integrator", "order"), [("bdf1", 1.0), ("generalized_alpha", 2.0)])
def test_a_pendulum_converges_with_the_order_of_its_integrator(integrator, order, joint):
    """Errors over the first 0.5 s have that order; the opening c h^2 f / K of the joint has order two."""
    times = [0.25, 0.5]
    coarse, fine = (np.max(pendulum_errors(integrator, h, times, joint)) for h in (0.01, 0.005))
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.15)
