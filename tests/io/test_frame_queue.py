"""Frames that are written while the simulation goes on: nothing is lost, mixed up or written twice."""

import signal
from functools import partial
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from fake_simulation import FakeSimulation, two_boxes_over_a_plane

from abd.errors import StepFailure
from abd.io import run as runs
from abd.io.frame_queue import FrameQueue
from abd.io.trajectory import Trajectory

# whole runs -----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[False, True])
def in_thread(request, monkeypatch):
    """Runs write in a thread of their own, or not."""
    monkeypatch.setattr(runs, "FrameQueue", lambda writer, in_thread: FrameQueue(writer, request.param))
    return request.param


def played(path, steps, simulate, **options):
    """Outcome of a run and the frames in its file, as they were made."""
    scene = SimpleNamespace(
        output=SimpleNamespace(every=1, contacts=False), resolved=lambda _: SimpleNamespace(save=lambda *_, **__: 0)
    )
    model = two_boxes_over_a_plane()
    outcome = runs.run(scene, model, path, steps=steps, simulate=simulate, **options)
    with Trajectory(path) as trajectory:
        return outcome, trajectory.series("/bodies/transform"), trajectory.series("/step"), trajectory.checkpoint()


def transforms(steps):
    """What the frames should hold."""
    sim = FakeSimulation(two_boxes_over_a_plane())
    found = [sim.model.user_transform(sim.host_state().q)]
    for _ in range(steps):
        sim.step()
        found.append(sim.model.user_transform(sim.host_state().q))
    return np.array(found)


def test_a_run_writes_every_frame(tmp_path, in_thread):
    outcome, found, steps, checkpoint = played(tmp_path / "run", 12, FakeSimulation)
    assert outcome.status is runs.Status.DONE and steps.tolist() == list(range(13))
    assert found.tobytes() == transforms(12).tobytes() and checkpoint["frames"] == 13


def test_a_failure_keeps_every_frame_before_it(tmp_path, in_thread):
    outcome, found, _, _ = played(tmp_path / "run", 12, lambda model, device: FakeSimulation(model, device, fail_at=6))
    assert outcome.status is runs.Status.FAILED and isinstance(outcome.failure, StepFailure)
    assert found.tobytes() == transforms(5).tobytes()


def test_control_c_keeps_every_frame_and_the_run_goes_on(tmp_path, in_thread):
    class Impatient(runs.Observer):
        def step(self, report, tally):
            if report.step == 4:
                signal.raise_signal(signal.SIGINT)

    outcome, found, _, checkpoint = played(tmp_path / "run", 9, FakeSimulation, observers=[Impatient()])
    assert outcome.status is runs.Status.INTERRUPTED and checkpoint["frames"] == 5
    assert found.tobytes() == transforms(4).tobytes()
    outcome, found, _, _ = played(tmp_path / "run", 9, FakeSimulation, resume=True)
    assert outcome.status is runs.Status.DONE and found.tobytes() == transforms(9).tobytes()


def test_both_ways_write_the_same_file(tmp_path, monkeypatch):
    files = []
    for in_thread in (False, True):
        made = partial(FrameQueue, in_thread=in_thread)
        monkeypatch.setattr(runs, "FrameQueue", lambda writer, in_thread, made=made: made(writer))
        played(tmp_path / str(in_thread), 6, FakeSimulation)
        with h5py.File(tmp_path / str(in_thread) / "trajectory.h5") as file:
            files.append({name: file[name][...].tobytes() for name in ("bodies/transform", "bodies/velocity", "time")})
    assert files[0] == files[1]
