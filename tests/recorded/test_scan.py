"""Exclusive sums on a device."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from on_device import DEVICE, NAME

from abd.backends.device.device import Device
from abd.backends.device.scan import Scan, chunk_length

pytestmark = pytest.mark.device

RECORDING = Device(NAME, records=True)
"""Where launches are recorded."""


@pytest.mark.parametrize(
    ("count", "room"), [(0, 1), (1, 1), (31, 40), (32, 32), (33, 64), (5000, 5000), (70001, 90000)]
)
def test_sums_of_all_counts_before(count, room):
    rng = np.random.default_rng(count)
    counts = rng.integers(0, 9, room).astype(np.int32)
    sizes = DEVICE.upload(np.array([7, count]), wp.int32)
    offsets = DEVICE.upload(np.full(room + 1, -1), wp.int32)
    Scan(RECORDING).run(DEVICE.upload(counts, wp.int32), offsets, sizes, 1, room)
    expected = np.concatenate([[0], np.cumsum(counts[:count])])
    np.testing.assert_array_equal(DEVICE.read(offsets, count + 1), expected)


def test_where_the_host_counts_the_sums_are_the_same():
    counts, offsets = DEVICE.upload(np.arange(100), wp.int32), DEVICE.zeros(101, wp.int32)
    Scan(DEVICE).run(counts, offsets, DEVICE.upload(np.array([100]), wp.int32), 0, 100)
    np.testing.assert_array_equal(DEVICE.read(offsets), np.cumsum(np.arange(101)) - np.arange(101))


def test_a_record_follows_the_count():
    rng = np.random.default_rng(1)
    scan, room = Scan(RECORDING), 3000
    counts, sizes = DEVICE.zeros(room, wp.int32), DEVICE.zeros(1, wp.int32)
    offsets = DEVICE.zeros(room + 1, wp.int32)
    scan.run(counts, offsets, sizes, 0, room)
    with wp.ScopedCapture(device=DEVICE.warp) as capture:
        scan.run(counts, offsets, sizes, 0, room)
    for count in (3000, 17, 0, 2048):
        values = rng.integers(0, 5, room).astype(np.int32)
        DEVICE.write(counts, values)
        DEVICE.write(sizes, np.array([count]))
        wp.capture_launch(capture.graph)
        assert DEVICE.read(offsets)[count] == values[:count].sum()


def test_chunks_are_balanced():
    assert chunk_length(1) == chunk_length(2000) == 32
    assert [chunk_length(room) for room in (10**4, 10**6, 10**8)] == [64, 512, 8192]
