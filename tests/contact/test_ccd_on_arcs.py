"""The benchmark of CCD on arcs: what it compares starts in the same direction and is followed on complete lists."""

from __future__ import annotations

import numpy as np
from tool import load_tool

import abd

bench = load_tool("bench/ccd_on_arcs")


def test_straightened_paths_keep_the_direction_and_do_not_bend(device):
    simulation = abd.Simulation(bench.tumbling_boxes(4), device=device)
    follower = bench.Follower(simulation)
    simulation.step()
    arcs = follower.arcs()
    straight = bench.straightened(arcs)
    A = simulation.stepper.q[:, 3:].reshape(-1, 3, 3)
    np.testing.assert_allclose(straight["S"] @ A, arcs["rate"], atol=1e-12)
    assert not straight["w"].any() and not straight["bend"].any() and arcs["bend"].any()
    assert (straight["reach"] <= arcs["reach"] * (1 + 1e-12)).all() and straight["reach"].any()


def test_one_row(device):
    row = bench.measure(bench.tumbling_boxes(8), steps=6, device=device)
    assert row["bodies"] == 9 and row["steps"] >= 1 and row["candidates_arcs"] > 0
    assert 0.0 < row["free_straight"] <= 1.0 and 0.0 < row["free_arcs"] <= 1.0 and row["cost_ratio"] > 0.0
