"""What the timeline of a device counts."""

import pytest
import warp as wp
from on_device import NAME

import abd
from abd import profile
from abd.backends.device import Device
from abd.backends.timeline import Timeline
from cuda_kernels import sums

pytestmark = pytest.mark.device


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


def test_a_step_is_summed_up():
    simulation = abd.Simulation("falling_box", device=NAME)
    found = profile.timeline_of(simulation, 3)
    assert simulation.frame == 3
    assert found["launches"] + found["replays"] > 0 and found["newton"] >= 1
    assert 0.0 <= found["waiting"] < 1.0 and found["busy_ms"] <= found["ms"]
    assert found["reads_per_newton"] == pytest.approx(found["reads"] / found["newton"])
    assert (found["device_MiB"] is None) == NAME.startswith("cpu")
    text = "\n".join(profile._timeline_lines(found))
    assert "launches outside of" in text and ("on the device" in text) == (found["device_MiB"] is not None)


def test_bandwidth_leaves_out_the_host():
    kernels = [{"name": "a.b", "bytes": 10.0, "ms": 2.0}, {"name": "host: read", "bytes": 99.0, "ms": 9.0}]
    assert profile.bandwidth(kernels) == (10.0, 0.002)
