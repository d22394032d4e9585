"""Lists of commands do what their launches, copies and fills would do, with loops and branches; nothing is lost silently."""

import numpy as np
import pytest
import warp as wp

import abd
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


def test_what_would_be_lost_is_refused(eager, device):
    """An array that is filled by Warp's own method, past the device."""
    graphs, x = Graphs(device), device.zeros(3, wp.float64)
    graphs.run("body", lambda: x.fill_(1.0))
    with pytest.raises(RuntimeError, match="1 operations were not recorded"):
        graphs.run("body", lambda: x.fill_(1.0))
    assert device.commands is None and not device.recording
    with pytest.raises(TypeError, match="float32"):
        CommandBuffer().fill(wp.zeros(3, dtype=wp.float32, device="cpu"), 1.0)


def test_without_plain_calls_warp_records(eager, device, monkeypatch):
    """Where launches are packed otherwise than today, the same comes of Warp's own record."""
    monkeypatch.setattr("abd.backends.device.command_buffer.Packet.of", lambda _: None)
    graphs, x, factor = Graphs(device), device.upload(np.ones(3), wp.float64), Factor()
    factor.value = 2.0
    for _ in range(4):
        graphs.run("body", lambda: device.launch(scale, 3, factor, x))
    assert (graphs.recorded, graphs.replayed) == (1, 3) and device.read(x).tolist() == [16.0] * 3


def test_a_record_of_a_step_lives_as_long_as_it_is_replayed():
    """What commands point at is kept though nobody else holds it: launches of other kernels are forgotten meanwhile."""
    scene = abd.Scene(solver={"dt": 0.01})
    scene.add_body("top", proxy=True, mass=1.0, inertia=(0.05, 0.05, 0.02), angular_velocity=(1, 0, 30))
    scene.add_spherical("tip", abd.WORLD, "top", anchor=(0, 0, -0.5))
    twins = [abd.Simulation(scene, device="cpu") for _ in range(2)]
    for step in range(60):
        if step > 30:
            twins[1].backend.device._launcher.forget()
        for one in twins:
            one.step()
    assert twins[0].backend.iteration.graphs.replayed > 30
    np.testing.assert_array_equal(twins[1].stepper.q, twins[0].stepper.q)
