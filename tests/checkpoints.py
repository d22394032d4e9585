"""Whether two simulations are in the same state to the last bit."""

import numpy as np

import abd


def assert_same(one: abd.Simulation, other: abd.Simulation) -> None:
    mine, its = ({key: value for key, value in sim.checkpoint().items() if key != "joints"} for sim in (one, other))
    np.testing.assert_equal(mine, its)
