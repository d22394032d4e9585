"""Checkpoints as flat tables, and whether two simulations are in the same state to the last bit."""

from __future__ import annotations

import numpy as np

import abd


def flat(saved: dict) -> dict[str, np.ndarray]:
    """Arrays and numbers of a checkpoint."""
    tables = {name: value for name, value in saved.items() if isinstance(value, dict) and name not in ("extra", "joints")}
    numbers = {name: np.asarray(value) for name, value in saved.items() if not isinstance(value, dict)}
    inner = {f"{table}, {name}": value for table, values in tables.items() for name, value in values.items()}
    return numbers | saved["extra"] | inner


def assert_same(one: abd.Simulation, other: abd.Simulation) -> None:
    mine, its = flat(one.checkpoint()), flat(other.checkpoint())
    assert mine.keys() == its.keys()
    for name, value in mine.items():
        np.testing.assert_equal(value, its[name], err_msg=name)
