"""Comparisons of simulations that must be bitwise equal."""

import numpy as np

import abd


def assert_same(one: abd.Simulation, other: abd.Simulation) -> None:
    """Assert that the checkpoints of two simulations are bitwise equal."""
    first, second = ({key: value for key, value in sim.checkpoint().items() if key != "joints"} for sim in (one, other))
    np.testing.assert_equal(first, second)


def assert_goes_on(one: abd.Simulation, other: abd.Simulation, steps: int = 3) -> None:
    """Restore the checkpoint of `one` in `other`, and assert bitwise equal steps."""
    other.restore(one.checkpoint())
    for simulation in (one, other):
        simulation.run(steps=steps)
    assert_same(one, other)
