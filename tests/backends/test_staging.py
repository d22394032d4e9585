"""Writing to a device by way of a page that it reads by itself."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from on_device import NAME

from abd.backends.device.device import EMULATED, Device
from abd.backends.device.staging import PAGE

pytestmark = pytest.mark.device

KINDS = [
    (wp.float64, (5,)), (wp.int32, (7,)), (wp.int64, (3,)), (wp.vec3d, (4, 3)), (wp.vec2i, (4, 2)), (wp.mat33d, (3, 3, 3)),
    (wp.float64, (5, 12)), (wp.float64, (5, 12, 12)),
]  # fmt: skip


@pytest.fixture(scope="module")
def device() -> Device:
    return Device(EMULATED if NAME == "cpu" else NAME)


@pytest.mark.parametrize(("kind", "shape"), KINDS)
def test_values_of_all_kinds_arrive(device, kind, shape):
    values = 1.0 + np.arange(np.prod(shape)).reshape(shape)
    array = device.zeros(shape[0] if kind not in (wp.float64,) else shape, kind)
    device.write(array, values[:2])
    found = device.read(array)
    np.testing.assert_array_equal(found[:2], values[:2])
    assert not found[2:].any()
    device.write(array, values)
    np.testing.assert_array_equal(device.read(array), values)


def test_a_full_page_begins_anew(device):
    """What was written before stays what it was."""
    count = PAGE // 8 // 3
    arrays, waits = [device.zeros(count, wp.float64) for _ in range(8)], device._host._staging.waits
    for k, array in enumerate(arrays):
        device.write(array, np.full(count, float(k)))
    for k, array in enumerate(arrays):
        assert (device.read(array) == k).all()
    assert device._host._staging.waits >= waits + 2


def test_what_is_larger_than_the_page_arrives(device):
    values = np.arange(PAGE // 8 + 1.0)
    array = device.zeros(len(values), wp.float64)
    device.write(array, values)
    np.testing.assert_array_equal(device.read(array), values)


def test_rows_of_another_length_are_refused(device):
    with pytest.raises(ValueError, match="no rows"):
        device.write(device.zeros((4, 12), wp.float64), np.zeros((3, 11)))


def test_arrays_of_all_sizes_are_read_through_one_page(device):
    """Also of many shapes, and after the page has grown: what was read before is the reader's own."""
    found = []
    for count in [*range(1, 300), 1 << 15, 3]:
        array = device.upload(np.arange(count) + 0.5, wp.float64)
        found.append((device.read(array), np.arange(count) + 0.5))
    for values, expected in found:
        np.testing.assert_array_equal(values, expected)
