"""What spins flat on the spot is braked by friction however far it turns in a step."""

from __future__ import annotations

import numpy as np
import pytest
from on_device import NAME

import abd
from abd.step.impacts.fast_spins import FastSpins

H = 0.01
LYING = {"axis": (1.0, 0.0, 0.0), "degrees": 90.0}
SHAPES = {
    "box": {"box": (0.04, 0.04, 0.04), "position": (0.0, 0.0, 0.0201)},
    "coin": {"cylinder": {"radius": 0.02, "length": 0.01, "segments": 16}, "position": (0.0, 0.0, 0.0051)},
    "capsule": {"capsule": {"radius": 0.02, "length": 0.06}, "axis_angle": LYING, "position": (0.0, 0.0, 0.0201)},
    "ball": {"sphere": {"radius": 0.02}, "position": (0.0, 0.0, 0.0201)},
}


def spinning(shape: str, turn: float, dt: float = H, floor: str = "plane") -> abd.Scene:
    """On rough ground, with a heap that stands still beside it."""
    scene = abd.Scene(solver={"dt": dt})
    scene.add_material("default", mu=0.5)
    if floor == "plane":
        scene.add_body("floor", half_space={})
    else:
        scene.add_body("floor", box=(2.0, 2.0, 0.1), kind="static", position=(0.0, 0.0, -0.05))
    scene.add_body("body", **SHAPES[shape], angular_velocity=(0.0, 0.0, turn / H))
    scene.add_body("beside", box=(0.1, 0.1, 0.1), position=(0.5, 0.0, 0.0501))
    return scene


@pytest.mark.device
@pytest.mark.parametrize("floor", ["plane", "mesh"])
@pytest.mark.parametrize("shape", ["box", "coin", "capsule"])
@pytest.mark.parametrize("turn", [1.5, 5.0])
def test_spin_falls_as_in_small_steps(shape, turn, floor):
    """By seven eighths of that or more in 80 ms, where chords drive it beyond half a turn per step; energy never grows."""
    left = []
    for dt in (H, H / 16):
        simulation, energies = abd.Simulation(spinning(shape, turn, dt, floor), device=NAME), []
        for _ in range(round(8 * H / dt)):
            energy = simulation.step().energy
            energies.append(energy["kinetic"] + energy["gravity"])
        assert (np.diff(energies) <= 1e-8 * energies[0]).all()  # its strain takes part
        left.append(turn / H - simulation.bodies["body"].angular_velocity[2])
    assert left[0] == pytest.approx(left[1], rel=0.13)


def test_only_what_spins_far_off_its_axis_goes_in_pieces():
    """Boxes by more than 1 rad; balls, whose contact is on their axis, never. What stands beside them stays at rest."""
    taken = []
    for shape, turn in (("box", 2.5), ("box", 0.9), ("ball", 2.5)):
        simulation = abd.Simulation(spinning(shape, turn), device=NAME)
        taken.append([simulation.step().substeps for _ in range(4)])
        assert simulation.bodies["beside"].linear_velocity == pytest.approx(np.zeros(3), abs=1e-9)
    assert min(taken[0]) >= 3 and taken[1:] == [[1] * 4] * 2


def test_slow_bodies_are_not_looked_at():
    scene = spinning("box", 0.9)
    spins, simulation = FastSpins(scene.compile()), abd.Simulation(scene, device=NAME)
    assert spins.possible(None, H)
    simulation.step()
    figures = simulation.stepper.figures
    assert spins.possible(figures, H) and not spins.possible(figures, 0.5 * H)
