"""What the timeline of a device counts."""

from functools import partial

import numpy as np
import pytest
import warp as wp
from on_device import DEVICE, NAME

import abd
from abd.backends.device.device import Device
from abd.backends.device.graphs import Graphs
from abd.backends.device.watching.launches import Launches
from abd.backends.device.watching.timeline import Timeline
from abd.backends.warp import on_warp
from abd.commands import profile
from cuda_kernels.parallel import sums

pytestmark = pytest.mark.device


@wp.kernel(enable_backward=False)
def add_one(first: wp.int32, values: wp.array(dtype=wp.int32)):
    values[first + wp.tid()] += wp.int32(1)


@wp.kernel(enable_backward=False)
def take_one(first: wp.int32, values: wp.array(dtype=wp.int32)):
    values[first + wp.tid()] -= wp.int32(1)


@pytest.fixture
def eager(monkeypatch):
    """The second run of a body is recorded; on CUDA it is the first."""
    monkeypatch.setattr("abd.backends.device.graphs.PATIENCE", 1)


def test_launches_replays_and_reads_are_counted():
    device = Device(NAME)
    x, y, out = (device.zeros((9, 12), wp.float64) for _ in range(3))
    device.launch(sums.dot_rows, 9, x, y, device.zeros(9, wp.float64))
    out, watch = device.zeros(9, wp.float64), Timeline(device)
    with watch:
        device.launch(sums.dot_rows, 9, x, y, out)
        wp.capture_begin(device=device.warp)
        device.launch(sums.dot_rows, 9, x, y, out)
        graph = wp.capture_end(device=device.warp)
        for _ in range(3):
            with device.observer.replay():
                wp.capture_launch(graph)
        device.read(out)
        device.write(out, device.read(out))
    assert device.observer is None and not watch.inside_graphs
    assert (watch.launches, watch.replays, watch.transfers) == (1, 3, {"read": 2, "write": 1})
    assert watch.busy == watch.busy > 0.0


@pytest.mark.parametrize("watching", [Timeline, Launches])
def test_graphs_stay_whole_unless_somebody_wants_to_see_inside(eager, watching):
    device = Device(NAME, records=True)
    graphs, x = Graphs(device), device.upload(np.ones((9, 12)), wp.float64)
    out, watch = device.zeros(9, wp.float64), watching(device)
    with watch:
        for _ in range(5):
            graphs.run("dot", lambda: device.launch(sums.dot_rows, 9, x, x, out))
    assert device.read(out).tolist() == [12.0] * 9
    if watching is Timeline:
        direct = 0 if device.wide else 1
        assert (watch.launches, watch.replays, graphs.recorded, graphs.replayed) == (direct, 5 - direct, 1, 5 - direct)
    else:
        assert graphs.recorded == 0 and watch.works()[0].calls == 5


def test_without_conditions_in_graphs_nothing_is_recorded(eager):
    device = Device(NAME)
    graphs, count, left = Graphs(device), device.zeros(1, wp.int32), device.upload([3], wp.int32)
    graphs.whole = False

    def body():
        device.launch(add_one, 1, count)
        graphs.repeat(left, lambda: device.launch(take_one, 1, left))

    for _ in range(3):
        graphs.run("count", body)
    assert graphs.recorded == 0 and device.read(count).tolist() == [3] and device.read(left).tolist() == [0]


def test_a_recorded_simulation_is_seen_from_outside(eager, monkeypatch):
    monkeypatch.setattr(on_warp, "WarpBackend", partial(on_warp.WarpBackend, records=True))
    simulation = abd.Simulation("box_stack", device=NAME)
    for _ in range(6):
        simulation.step()
    found = profile.timeline_of(simulation, 4)
    assert found["replays"] >= 1.0 and found["reads"] >= found["newton"]


def test_a_step_is_summed_up():
    simulation = abd.Simulation("falling_box", device=NAME)
    found = profile.timeline_of(simulation, 3)
    assert simulation.frame == 3
    assert found["launches"] + found["replays"] > 0 and found["newton"] >= 1
    assert 0.0 <= found["waiting"] < 1.0 and found["busy_ms"] <= found["ms"]
    assert found["reads_per_newton"] == pytest.approx(found["reads"] / found["newton"])
    assert (found["device_MiB"] is None) == DEVICE.is_cpu
    text = "\n".join(profile._timeline_lines(found))
    assert "launches outside of" in text and ("on the device" in text) == (found["device_MiB"] is not None)


def test_bandwidth_leaves_out_the_host():
    kernels = [{"name": "a.b", "bytes": 10.0, "ms": 2.0}, {"name": "host: read", "bytes": 99.0, "ms": 9.0}]
    assert profile.bandwidth(kernels) == (10.0, 0.002)
