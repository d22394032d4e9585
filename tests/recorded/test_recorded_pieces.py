"""Scenes that are launched kernel by kernel record what a few of their bodies do while the others are left out."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

import abd
from abd import backends
from abd.backends.device import graphs

BOXES = 4


def thrown(worlds: int) -> abd.Scene:
    """Two pairs of boxes that fly at one another and at the ground, in every world at other speeds."""
    scene = abd.Scene(solver={"dt": 0.01})
    scene.add_material("default", mu=0.4, restitution=0.2)
    scene.add_body("ground", half_space={})
    for k in range(BOXES):
        scene.add_body(f"box{k}", box=(0.1,) * 3, density=1000, position=(k // 2 + 0.02 * k, 0.01 * k, 0.1 + 0.16 * (k % 2)))
    scene = scene.replicate(worlds)
    random = np.random.default_rng(3)
    for world in range(worlds):
        for k in range(BOXES):
            scene.body(f"w{world}_box{k}").velocity = tuple((3.0 * random.uniform(-1, 1, 3)).tolist())
    return scene


def run(worlds: int, few: int) -> tuple[abd.Simulation, int, int]:
    """After fifteen steps, in which as many bodies as `few` are recorded; substeps, and records that were replayed."""
    with patch.object(backends, "SMALL", few), patch.object(graphs, "PATIENCE", 1):
        simulation = abd.Simulation(thrown(worlds), device="cpu")
        substeps = sum(simulation.step().substeps for _ in range(15))
    return simulation, substeps, simulation.backend.graphs.replayed


@pytest.mark.parametrize("worlds", [1, 3])
def test_pieces_of_a_few_bodies_are_recorded(worlds):
    plain, substeps, nothing = run(worlds, 0)
    recorded, _, replayed = run(worlds, BOXES if worlds > 1 else 2)
    assert substeps > 15 and nothing == 0 < replayed
    for ours, theirs in ((plain.stepper.q, recorded.stepper.q), (plain.stepper.qd, recorded.stepper.qd)):
        np.testing.assert_array_equal(ours, theirs)
    assert not recorded.backend.device.records, "all of them together are launched"
