"""Random scenes that are hard on a barrier: parallel lattices with small gaps, and clutter."""

from __future__ import annotations

import numpy as np
import pytest

import abd

pytestmark = pytest.mark.slow


def body(rng, size: float) -> dict:
    """Return a random box, plate or crumb that fits into a cube of this size [m]."""
    kind = rng.choice(["box", "plate", "crumb"])
    small = 10.0 ** rng.uniform(-2.0, -1.0)
    extents = {"box": rng.choice([0.5, 1.0], size=3), "plate": rng.permutation([1.0, 1.0, small]), "crumb": np.full(3, small)}
    return {"box": (extents[kind] * size).tolist()}


def scene_of(rng) -> abd.Scene:
    """Return a frictional floor with a step between 0.3 and 50 ms."""
    scene = abd.Scene(solver={"dt": float(10.0 ** rng.uniform(np.log10(3e-4), np.log10(5e-2)))})
    scene.add_material("default", mu=float(rng.choice([0.0, 0.3, 0.6])))
    scene.add_body("floor", half_space={})
    return scene


def lattice(seed: int) -> abd.Scene:
    """Return parallel bodies in the cells of a lattice, with gaps of 1e-6 to 1e-2 m between its layers."""
    rng = np.random.default_rng([seed, 0])
    scene, size = scene_of(rng), 10.0 ** rng.uniform(-1.5, 0.0)
    gap = 10.0 ** rng.uniform(-6.0, -2.0, size=3)
    speed = float(rng.choice([0.0, 0.1, 1.0, 10.0]))
    for k, cell in enumerate(np.ndindex(*rng.integers(2, 4, size=3))):
        shape = body(rng, size)
        place = np.array(cell) * (size + gap) + [0.0, 0.0, gap[2]] + 0.5 * np.array(shape["box"])
        motion = {"velocity": (speed * rng.normal(size=3)).tolist(), "density": float(10.0 ** rng.uniform(2.0, 4.0))}
        scene.add_body(f"b{k}", **shape, position=place.tolist(), **motion)
    return scene


def clutter(seed: int) -> abd.Scene:
    """Return bodies turned at random in the cells of a loose lattice, thrown at one another."""
    rng = np.random.default_rng([seed, 1])
    scene, size = scene_of(rng), 10.0 ** rng.uniform(-1.5, 0.0)
    for k, cell in enumerate(np.ndindex(*rng.integers(2, 4, size=3))):
        shape = {"sphere": {"radius": size / 2}} if rng.random() < 0.2 else body(rng, size)
        place = 1.02 * np.sqrt(3.0) * size * (np.array(cell) + 0.5)
        motion = {"velocity": (3.0 * np.sqrt(size) * rng.normal(size=3)).tolist()}
        motion["angular_velocity"] = (5.0 * rng.normal(size=3)).tolist()
        turn = {"order": "xyz", "degrees": rng.uniform(0.0, 360.0, 3).tolist()}
        scene.add_body(f"b{k}", **shape, position=place.tolist(), euler=turn, **motion)
    return scene


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("make", [lattice, clutter])
def test_every_step_converges(make, seed):
    sim = abd.Simulation(make(seed), device="cpu")
    reports = [sim.step() for _ in range(50)]
    assert all(report.converged for report in reports) and min(report.min_gap for report in reports) > 0.0
