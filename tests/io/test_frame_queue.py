"""Frames that are written while the simulation goes on: nothing is lost, mixed up or written twice."""

import signal
import threading
from functools import partial
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from fake_simulation import FakeSimulation, two_boxes_over_a_plane
from on_device import NAME

import abd
from abd.errors import StepFailure
from abd.io import run as runs
from abd.io.frame_queue import FrameQueue
from abd.io.trajectory import Trajectory

# copies to the host ---------------------------------------------------------------------------------------------------


@pytest.mark.device
def test_the_state_arrives_on_the_host():
    simulation = abd.Simulation("falling_box", device=NAME)
    simulation.step()
    arriving, q, qd = simulation.state.to_host(), simulation.stepper.q.copy(), simulation.stepper.qd.copy()
    simulation.step()
    found = arriving.wait()
    assert found[0].tobytes() == q.tobytes() and found[1].tobytes() == qd.tobytes()


# the queue ------------------------------------------------------------------------------------------------------------


class Writer:
    """Notes what it is told, and by which thread; fails or waits on demand."""

    due = True

    def __init__(self):
        self.told, self.threads, self.gate = [], set(), threading.Event()
        self.gate.set()
        self.broken = False

    def __len__(self):
        return 1

    def append(self, values):
        self.gate.wait(10.0)
        if self.broken:
            raise OSError("no space left on device")
        self.told.append(values["k"])
        self.threads.add(threading.current_thread().name)

    def flush(self, checkpoint):
        self.told.append(checkpoint)


def frame(k, arrived):
    """Frame k; notes when it was waited for."""
    return SimpleNamespace(arrive=lambda: arrived.append(k), values=lambda: {"k": k})


@pytest.mark.parametrize("beside", [False, True])
def test_order_is_kept(beside):
    writer, arrived = Writer(), []
    with FrameQueue(writer, beside) as queue:
        for k in range(10):
            queue.add(frame(k, arrived))
            assert arrived == list(range(k + (not beside))), "beside, a frame has a step's time to arrive"
            if k in (4, 7):
                queue.flush(f"checkpoint {k}")
        assert queue.count == 11
        queue.flush("end")
        queue.close()
        assert writer.told == [*range(5), "checkpoint 4", *range(5, 8), "checkpoint 7", 8, 9, "end"]
    assert arrived == list(range(10))
    assert all(name.startswith("abd-writer") == beside for name in writer.threads)


def test_what_fails_in_the_thread_is_raised():
    writer = Writer()
    writer.broken = True
    with FrameQueue(writer, beside=True) as queue:
        queue.add(frame(0, []))
        queue.add(frame(1, []))
        with pytest.raises(OSError, match="no space left"):
            queue.close()


def test_what_was_not_flushed_is_dropped_when_something_else_fails():
    writer = Writer()
    with pytest.raises(ZeroDivisionError), FrameQueue(writer, beside=True) as queue:
        queue.add(frame(0, []))
        raise ZeroDivisionError
    assert writer.told == [] and not any(one.name.startswith("abd-writer") for one in threading.enumerate())


# whole runs -----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[False, True])
def beside(request, monkeypatch):
    """Runs write beside the simulation, or not."""
    monkeypatch.setattr(runs, "FrameQueue", lambda writer, beside: FrameQueue(writer, request.param))
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


def test_a_run_writes_every_frame(tmp_path, beside):
    outcome, found, steps, checkpoint = played(tmp_path / "run", 12, FakeSimulation)
    assert outcome.status is runs.Status.DONE and steps.tolist() == list(range(13))
    assert found.tobytes() == transforms(12).tobytes() and checkpoint["frames"] == 13


def test_a_failure_keeps_every_frame_before_it(tmp_path, beside):
    outcome, found, _, _ = played(tmp_path / "run", 12, lambda model, device: FakeSimulation(model, device, fail_at=6))
    assert outcome.status is runs.Status.FAILED and isinstance(outcome.failure, StepFailure)
    assert found.tobytes() == transforms(5).tobytes()


def test_control_c_keeps_every_frame_and_the_run_goes_on(tmp_path, beside):
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
    for beside in (False, True):
        made = partial(FrameQueue, beside=beside)
        monkeypatch.setattr(runs, "FrameQueue", lambda writer, beside, made=made: made(writer))
        played(tmp_path / str(beside), 6, FakeSimulation)
        with h5py.File(tmp_path / str(beside) / "trajectory.h5") as file:
            files.append({name: file[name][...].tobytes() for name in ("bodies/transform", "bodies/velocity", "time")})
    assert files[0] == files[1]
