"""Exclusive sums on a device."""

import numpy as np
import pytest
import warp as wp
from on_device import DEVICE, NAME

from abd.backends.device.device import Device
from abd.backends.device.scan import Scan

pytestmark = pytest.mark.device

RECORDING = Device(NAME, records=True)
"""Where launches are recorded."""


@pytest.mark.parametrize(
    ("count", "capacity"), [(0, 1), (1, 1), (31, 40), (32, 32), (33, 64), (5000, 5000), (70001, 90000)]
)
def test_sums_of_all_counts_before(count, capacity):
    rng = np.random.default_rng(count)
    counts = rng.integers(0, 9, capacity).astype(np.int32)
    sizes = DEVICE.upload(np.array([7, count]), wp.int32)
    offsets = DEVICE.upload(np.full(capacity + 1, -1), wp.int32)
    Scan(RECORDING).run(DEVICE.upload(counts, wp.int32), offsets, sizes, 1, capacity)
    expected = np.concatenate([[0], np.cumsum(counts[:count])])
    np.testing.assert_array_equal(DEVICE.read(offsets, count + 1), expected)
