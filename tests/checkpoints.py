"""Comparison of two simulations that must be and stay bitwise equal."""

import numpy as np

import abd


def assert_same(one: abd.Simulation, other: abd.Simulation) -> None:
    mine, its = ({key: value for key, value in sim.checkpoint().items() if key != "joints"} for sim in (one, other))
    np.testing.assert_equal(mine, its)


def assert_goes_on(one: abd.Simulation, other: abd.Simulation, steps: int = 3, through=lambda saved: saved) -> None:
    """From the checkpoint of one the other takes the same steps, bit by bit; `through` is what the checkpoint goes through."""
    other.restore(through(one.checkpoint()))
    for simulation in (one, other):
        simulation.run(steps=steps)
    assert_same(one, other)
