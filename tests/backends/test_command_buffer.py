"""Lists of commands do what their launches, copies and fills would do, with loops and branches; nothing is lost silently."""

import numpy as np
import pytest
import warp as wp

from abd.backends.device import graphs as recording
from abd.backends.device.command_buffer import CommandBuffer
from abd.backends.device.device import Device
from abd.backends.device.graphs import Graphs


@wp.struct
class Factor:
    value: wp.float64


@wp.kernel
def scale(first: wp.int32, factor: Factor, x: wp.array(dtype=wp.float64)):
    x[wp.tid() + first] = factor.value * x[wp.tid() + first]


@wp.kernel
def count_down(first: wp.int32, left: wp.array(dtype=wp.int32), done: wp.array(dtype=wp.int32)):
    left[0] = left[0] - 1
    done[0] = done[0] + 1


@pytest.fixture
def eager(monkeypatch):
    """The second run of a body is recorded."""
    monkeypatch.setattr(recording, "PATIENCE", 1)


def recorded(device: Device, body) -> Graphs:
    """Graphs that hold a body under the key "body"."""
    graphs = Graphs(device)
    for _ in range(2):
        graphs.run("body", lambda: body(graphs))
    assert graphs.recorded == 1 and isinstance(graphs._kept["body"], CommandBuffer)
    return graphs


@pytest.fixture
def device():
    return Device("cpu", records=True)


def test_launches_copies_and_fills(eager, device):
    x, y, k = device.upload(np.ones(3), wp.float64), device.zeros(3, wp.float64), device.zeros(5, wp.int32)
    places, factor = device.upload(np.ones((4, 3)), wp.vec3d), Factor()
    factor.value = 3.0

    def body(_):
        device.launch(scale, 2, factor, x, begin=1)
        device.copy(y, x, 2)
        device.fill(k, -7)
        device.fill(places)
        device.fill(y[2:3], 0.1)

    graphs = recorded(device, body)
    assert device.read(x).tolist() == [1.0, 9.0, 9.0], "once launch by launch, once from the record"
    factor.value = 100.0  # a record keeps what structs held
    device.write(x, np.ones(3))
    device.write(k, np.arange(5))
    graphs.run("body", None)
    assert device.read(x).tolist() == [1.0, 3.0, 3.0] and device.read(y).tolist() == [1.0, 3.0, 0.1]
    assert device.read(k).tolist() == [-7] * 5 and not device.read(places).any()


def test_loops_and_branches(eager, device):
    """The body of a loop holds a branch, which runs but in the last round; an empty loop and an untaken branch do nothing."""
    left, done, rest, never = (device.upload([number], wp.int32) for number in (0, 0, 0, 0))

    def round_of(graphs):
        device.launch(count_down, 1, left, done)
        graphs.when(left, lambda: device.launch(count_down, 1, never, rest))

    def body(graphs):
        graphs.repeat(left, lambda: round_of(graphs))
        graphs.when(left, lambda: device.fill(done, -1))
        device.fill(never)

    graphs = recorded(device, body)
    for rounds in (4, 0, 1):
        for array, value in ((left, rounds), (done, 0), (rest, 0)):
            device.write(array, np.array([value]))
        graphs.run("body", None)
        assert device.read(done).tolist() == [rounds] and device.read(rest).tolist() == [max(rounds - 1, 0)]
