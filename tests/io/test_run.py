"""The driver of a run: end, interruption, failure, and a resumed run that equals one that never stopped."""

import json
import os
import signal
from dataclasses import replace
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from fake_simulation import FakeSimulation
from fake_simulation import two_boxes_over_a_plane as two_boxes

from abd.errors import StepFailure
from abd.io.directory import DirectoryError, RunDirectory, latest_directory, new_directory
from abd.io.fingerprint import model_digest
from abd.io.run import Observer, ResumeError, Status, run
from abd.io.trajectory import Trajectory
from abd.model import CoordinateSettings, Coupling, CouplingTerm, Drive


class FakeScene:
    """What `run` needs of a scene."""

    def __init__(self, every: int = 1):
        self.output = SimpleNamespace(every=every, contacts=False)

    def resolved(self, settings):
        return self

    def save(self, path, explicit):
        path.write_text(f"# explicit = {explicit}\n")


class At(Observer):
    """Calls something after a given step, and remembers the steps."""

    def __init__(self, step: int = -1, call=lambda: None):
        self.at, self.call, self.steps, self.closed = step, call, [], False

    def step(self, report, tally):
        self.steps.append(report.step)
        if report.step == self.at:
            self.call()

    def close(self):
        self.closed = True


def start(directory, steps, *, every=1, fail_at=None, model=None, **options):
    def simulate(model, device):
        return FakeSimulation(model, device, fail_at)

    return run(FakeScene(every), model or two_boxes(), directory, steps=steps, simulate=simulate, **options)


def contents(directory):
    """All series of a trajectory, times of the clock aside, as bytes."""
    with Trajectory(directory) as trajectory:
        names = trajectory._series_names()
        checkpoint = trajectory.checkpoint()["simulation"]
        series = {name: trajectory.series(name).tobytes() for name in names if name != "/solver/wall_seconds"}
        return series, {name: np.asarray(value).tobytes() for name, value in checkpoint.items()}


def test_a_whole_run(tmp_path):
    observer = At()
    outcome = start(tmp_path / "a" / "run", 6, observers=[observer])
    assert outcome.status is Status.DONE and observer.steps == [1, 2, 3, 4, 5, 6] and observer.closed
    names = {path.name for path in outcome.directory.iterdir()}
    assert names == {"trajectory.h5", "report.json", "scene.toml"}
    report = json.loads((outcome.directory / "report.json").read_text())
    assert report == outcome.report and report["steps"] == 6
    with Trajectory(outcome.directory) as trajectory:
        assert trajectory.series("/step").tolist() == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_and_resumed_equals_never_stopped(tmp_path, every, number):
    start(tmp_path / "whole", 11, every=every)
    stop = At(5, lambda: os.kill(os.getpid(), number))
    before = signal.getsignal(number)
    outcome = start(tmp_path / "parts", 11, every=every, observers=[stop])
    assert outcome.status is Status.INTERRUPTED and stop.steps[-1] == 5 and outcome.report["steps"] == 5
    assert signal.getsignal(number) is before
    with Trajectory(tmp_path / "parts") as trajectory:
        assert len(trajectory) == 1 + 5 // every
    again = At()
    outcome = start(tmp_path / "parts", 11, every=every, resume=True, observers=[again])
    assert outcome.status is Status.DONE and again.steps == [6, 7, 8, 9, 10, 11]
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    reports = [json.loads((tmp_path / name / "report.json").read_text()) for name in ("whole", "parts")]
    for report in reports:
        del report["wall_seconds"], report["steps_per_second"]
    assert reports[0] == reports[1]


def test_a_finished_run_can_be_continued(tmp_path):
    start(tmp_path / "whole", 8)
    start(tmp_path / "parts", 4)
    assert start(tmp_path / "parts", 4, resume=True).report["steps"] == 4
    start(tmp_path / "parts", 8, resume=True)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_a_killed_run_is_resumed_from_its_checkpoint(tmp_path):
    """The process dies without closing the file: frames after the last flush are computed again."""
    start(tmp_path / "whole", 9)

    def die():
        raise RuntimeError("killed")

    observer = At(5, die)
    with pytest.raises(RuntimeError, match="killed"):
        start(tmp_path / "parts", 9, observers=[observer])
    assert observer.closed and not (tmp_path / "parts" / "report.json").exists()
    start(tmp_path / "parts", 9, resume=True)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_failure_keeps_what_was_computed(tmp_path):
    outcome = start(tmp_path, 9, fail_at=4)
    assert outcome.status is Status.FAILED and isinstance(outcome.failure, StepFailure)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["failed_step"] == 4 and report["steps"] == 3 and report["failure"]["reason"] == "not_converged"
    with Trajectory(tmp_path) as trajectory:
        assert len(trajectory) == 4


def test_another_scene_is_refused(tmp_path):
    start(tmp_path, 3)
    with pytest.raises(ResumeError, match="another scene"):
        start(tmp_path, 5, resume=True, model=two_boxes(tolerance=1e-5))
    with pytest.raises(ResumeError):
        start(tmp_path, 5, resume=True, every=2)
    assert start(tmp_path, 5, resume=True, model=two_boxes(frames=7)).report["steps"] == 5


def test_digest_sees_every_part_of_the_model():
    model = two_boxes()
    seen = {model_digest(model), model_digest(two_boxes(frames=3))}
    assert len(seen) == 1
    for change in (
        lambda m: m.bodies.kappa.__setitem__(1, 1e8),
        lambda m: m.meshes[0].vertices.__setitem__((0, 0), 7.0),
        lambda m: m.joints[0].child_frame.__setitem__((0, 3), -0.5),
        lambda m: m.materials.mu.__setitem__((0, 0), 0.3),
        lambda m: m.settings.gravity.__setitem__(2, -1.62),
        lambda m: m.motions.__setitem__(0, lambda t: np.eye(4) * t),
    ):
        model = two_boxes()
        change(model)
        seen.add(model_digest(model))
    assert len(seen) == 7


def test_digest_sees_what_acts_on_joints():
    """Drives count by what they do, custom functions by their text: the same scene read twice has one digest."""

    def driven(target, table, **keys):
        model = two_boxes()
        drive = Drive("position", target, rate=None)
        settings = (CoordinateSettings("roll", upper=1.0, drive=drive),)
        joint = replace(model.joints[0], coordinates=settings, drawing={"color": (1.0, 0.0, 0.0)}, **keys)
        term = CouplingTerm(0, "roll", table=table)
        return replace(model, joints=[joint], couplings=[Coupling("gear", 0, "roll", (term,))])

    table = np.array([[0.0, 0.0], [1.0, 2.0]])

    def residual(z):
        return z[0]

    def other(z):
        return z[1]

    first = model_digest(driven(lambda t: 2.0 * t, table, parameters={"f": residual}))
    assert first == model_digest(driven(lambda t: t + t, table.copy(), parameters={"f": residual}))
    others = [
        driven(lambda t: 2.5 * t, table, parameters={"f": residual}),
        driven(lambda t: 2.0 * t, 2.0 * table, parameters={"f": residual}),
        driven(lambda t: 2.0 * t, table, parameters={"f": other}),
        driven(lambda t: 2.0 * t, table, parameters={"f": residual}, active=False),
    ]
    assert len({first, *map(model_digest, others)}) == 5


def test_directories(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(new_directory("four bar/2")) == "runs/four_bar_2-1"
    with pytest.raises(DirectoryError, match="no run of 'chain'"):
        latest_directory("chain")
    for name in ("chain-2", "chain-10", "chain-net-40", "chain-x"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    assert new_directory("chain").name == "chain-11" and latest_directory("chain").name == "chain-10"
    with pytest.raises(DirectoryError, match=r"no trajectory\.h5"):
        RunDirectory("runs/chain-2", resume=True)
    (tmp_path / "runs" / "chain-2" / "trajectory.h5").touch()
    with pytest.raises(DirectoryError, match="--resume"):
        RunDirectory("runs/chain-2", resume=False)
    (tmp_path / "file").touch()
    with pytest.raises(DirectoryError, match="cannot make"):
        RunDirectory("file/run", resume=False)


def test_one_writer_per_directory(tmp_path):
    with RunDirectory(tmp_path, resume=False):
        with pytest.raises(DirectoryError, match="another process"):
            RunDirectory(tmp_path, resume=False)
        with h5py.File(tmp_path / "trajectory.h5", "w") as file:
            file["a"] = 1
        with h5py.File(tmp_path / "trajectory.h5") as file:
            assert file["a"][()] == 1
    RunDirectory(tmp_path, resume=True).release()
