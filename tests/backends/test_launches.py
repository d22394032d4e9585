"""Launches that are recorded once and run with other numbers."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from on_device import NAME

from abd.backends.device import launcher
from abd.backends.device.device import Device

wp.set_module_options({"enable_backward": False})

pytestmark = pytest.mark.device


@wp.kernel
def fill(first: wp.int32, count: wp.int32, scale: wp.float64, out: wp.array(dtype=wp.float64)):
    """out[k] = scale k below `count`, -1 from there on."""
    k = wp.tid() + first
    out[k] = wp.float64(-1.0)
    if k < count:
        out[k] = scale * wp.float64(k)


def filled(count: int, scale: float) -> np.ndarray:
    k = np.arange(20.0)
    return np.where(k < count, scale * k, -1.0)


def test_a_launch_has_the_numbers_it_was_given(monkeypatch):
    """However many came before it, and in whatever order they come back; no more records than there may be."""
    monkeypatch.setattr(launcher, "VARIANTS", 3)
    device = Device(NAME)
    one, other = device.zeros(20, wp.float64), device.zeros(20, wp.float64)
    numbers = [(k, 0.5 * scale) for k in (3, 7, 12) for scale in range(1, 4)]
    order = np.random.default_rng(0).integers(len(numbers), size=60)
    for k in order.tolist():
        count, scale = numbers[k]
        for out in (one, other):
            device.launch(fill, 20, count, scale, out)
        np.testing.assert_array_equal(device.read(one), filled(count, scale))
        np.testing.assert_array_equal(device.read(other), filled(count, scale))
    assert len(device._launcher._recorded) == 6


def test_records_are_given_up_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr(launcher, "RECORDS", 4)
    device = Device(NAME)
    kept = [device.zeros(20, wp.float64) for _ in range(7)]
    for turn in range(1, 3):
        for k, out in enumerate(kept):
            device.launch(fill, 20, 5 + k, 1.0 * turn, out)
            np.testing.assert_array_equal(device.read(out), filled(5 + k, turn))
    assert len(device._launcher._recorded) <= 4
