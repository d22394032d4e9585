"""Mechanisms that are hard to hold: high mass ratios, closed loops, nonlinear rows."""

import numpy as np
import reference_cases as cases
from on_device import NAME

import abd

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


def worst_residual(name: str, steps: int) -> np.ndarray:
    """(2,) largest residual of lengths [m] and of angles [rad] over the steps."""
    simulation = abd.Simulation(HELD[name][0](), device=NAME)
    worst = np.zeros(2)
    for _ in range(steps):
        report = simulation.step()
        worst = np.maximum(worst, report.max_joint_residual)
        assert np.isfinite(simulation.stepper.q).all()
    return worst
