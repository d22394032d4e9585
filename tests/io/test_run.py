"""The driver of a run: end, interruption, failure; a resumed run equals an uninterrupted one."""

import json
import os
import signal
from dataclasses import replace

import h5py
import numpy as np
import pytest
from two_bodies import Failing, scene

import abd
from abd.cli import main
from abd.errors import StepFailure
from abd.io import run as runs
from abd.io.checkpoint import to_bytes
from abd.io.directory import DirectoryError, latest_directory, new_directory, run_directory
from abd.io.fingerprint import model_digest
from abd.io.run import Observer, ResumeError, Status, run
from abd.io.trajectory import Trajectory
from abd.io.trajectory_writer import FrameQueue
from abd.joint_model import CoordinateSettings, Coupling, CouplingTerm, Drive

SERIES = (
    *("/time", "/step", "/bodies/transform", "/bodies/velocity", "/joints/elbow|left/wrench", "/energy/kinetic"),
    *("/momentum/linear", "/solver/newton_iterations", "/solver/min_gap", "/solver/converged"),
)


class At(Observer):
    """Calls a function after a given step, and stores the steps."""

    def __init__(self, step: int = -1, call=lambda: None):
        self.at, self.call, self.steps, self.closed = step, call, [], False

    def step(self, report, tally):
        self.steps.append(report.step)
        if report.step == self.at:
            self.call()

    def close(self):
        self.closed = True


def start(directory, steps, *, every=1, fail_at=-1, solver=None, frames=10, **options):
    made = scene(every, frames, **(solver or {}))

    def simulate(model, device):
        simulation = Failing(model, device)
        simulation.fail_at = fail_at
        return simulation

    return run(made, made.compile(), directory, device="numpy", steps=steps, simulate=simulate, **options)


def contents(directory):
    """Series of a trajectory and its checkpoint, as bytes."""
    with Trajectory(directory) as trajectory:
        return {name: trajectory.series(name).tobytes() for name in SERIES}, to_bytes(trajectory.checkpoint()["simulation"])


@pytest.fixture(params=[False, True], ids=["", "in a thread"])
def in_thread(request, monkeypatch):
    """Runs write in a thread of their own, or not."""
    monkeypatch.setattr(runs, "FrameQueue", lambda writer, in_thread: FrameQueue(writer, request.param))


def test_a_whole_run(tmp_path, in_thread):
    observer = At()
    outcome = start(tmp_path / "a" / "run", 6, observers=[observer])
    assert outcome.status is Status.DONE and observer.steps == [1, 2, 3, 4, 5, 6] and observer.closed
    names = {path.name for path in outcome.directory.iterdir()}
    assert names == {"trajectory.h5", "report.json", "scene.toml"}
    report = json.loads((outcome.directory / "report.json").read_text())
    assert report == outcome.report and report["steps"] == 6
    simulation = Failing(scene(), "numpy")
    states = [simulation.model.user_transform(simulation.host_state().q)]
    for _ in range(6):
        simulation.step()
        states.append(simulation.model.user_transform(simulation.host_state().q))
    with Trajectory(outcome.directory) as trajectory:
        assert trajectory.series("/step").tolist() == [0, 1, 2, 3, 4, 5, 6]
        np.testing.assert_array_equal(trajectory.series("/bodies/transform"), states)


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_resumed_run_equals_an_uninterrupted_run(tmp_path, every, number, in_thread):
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
        del report["wall_seconds"], report["steps_per_second"], report["stages"]
    assert reports[0] == reports[1]


def test_a_killed_run_is_resumed_from_its_checkpoint(tmp_path):
    """After a kill, the frames after the last flush are computed again."""
    start(tmp_path / "whole", 9)

    def die():
        raise RuntimeError("killed")

    observer = At(5, die)
    with pytest.raises(RuntimeError, match="killed"):
        start(tmp_path / "parts", 9, observers=[observer])
    assert observer.closed and not (tmp_path / "parts" / "report.json").exists()
    start(tmp_path / "parts", 9, resume=True)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_a_run_of_two_worlds_is_resumed(tmp_path):
    made = scene().replicate(2, dt=(0.01, 0.005))
    for folder, steps, resume in (("whole", 6, False), ("parts", 3, False), ("parts", 6, True)):
        run(made, made.compile(), tmp_path / folder, device="numpy", steps=steps, resume=resume, simulate=abd.Simulation)
    whole, parts = Trajectory(tmp_path / "whole"), Trajectory(tmp_path / "parts")
    parts.verify()
    np.testing.assert_array_equal(parts.world_time, whole.world_time)


@pytest.mark.parametrize("place", ["joint", "body"])
def test_a_formula_without_a_value_ends_a_run(tmp_path, place):
    """Frames before it are kept; the message has the place of the formula. A run that ends before it succeeds."""
    made = scene(frames=3)
    if place == "joint":
        keys = {"coordinate": {"theta": {"drive": {"mode": "pd", "target": "sqrt(0.035 - t)", "stiffness": 1.0}}}}
        made.add_hinge("door", "world", "body0", anchor=(0, 0, 2), axis=(0, 0, 1), **keys)
        named = "joint.door.theta.drive.target: 'sqrt(0.035 - t)' has no value at t = 0.04"
    else:
        motion = {"formulas": {"x": "sqrt(0.035 - t)"}}
        made.add_body("plate", box=(1, 1, 0.1), position=(0, 0, 9), kind="kinematic", motion=motion)
        named = "body.plate.motion.formulas.x: 'sqrt(0.035 - t)' has no value at t = 0.04"
    for steps, status in ((3, Status.DONE), (9, Status.FAILED)):
        folder = tmp_path / str(steps)
        outcome = run(made, made.compile(), folder, device="numpy", steps=steps, simulate=abd.Simulation)
        assert outcome.status is status
        with Trajectory(folder) as trajectory:
            assert len(trajectory) == 4
    report = json.loads((folder / "report.json").read_text())
    assert report["failure"]["reason"] == "formula" and report["failure"]["message"].startswith(named)


def test_failure_keeps_the_computed_frames(tmp_path, in_thread):
    outcome = start(tmp_path, 9, fail_at=4)
    assert outcome.status is Status.FAILED and isinstance(outcome.failure, StepFailure)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["failed_step"] == 4 and report["steps"] == 3
    assert report["failure"]["reason"] == "not_converged" and report["failure"]["bodies"] == ["body0"]
    with Trajectory(tmp_path) as trajectory:
        assert len(trajectory) == 4


def test_another_scene_is_refused(tmp_path):
    start(tmp_path, 3)
    with pytest.raises(ResumeError, match="another scene"):
        start(tmp_path, 5, resume=True, solver={"tolerance": 1e-5})
    with pytest.raises(ResumeError):
        start(tmp_path, 5, resume=True, every=2)
    assert start(tmp_path, 5, resume=True, frames=7).report["steps"] == 5


@pytest.mark.parametrize("what, count", [("position", 1), (lambda sim: sim.gravity, 1), ("velocity", 2), ("velocity", 0)])
def test_a_run_with_other_sensors_is_refused(tmp_path, what, count):
    def recorded(what, count, steps, **keys):
        sim = abd.Simulation(scene(), device="numpy")
        for k in range(count):
            sim.add_sensor(f"s{k}", what, "body0", every=steps)
        return sim.run(steps=steps, record=tmp_path, **keys)

    recorded("velocity", 1, 2)
    assert recorded("velocity", 1, 4, resume=True).step == 4
    with pytest.raises(ResumeError, match="sensors"):
        recorded(what, count, 6, resume=True)


CHANGES = {
    "kappa": lambda made: setattr(made.body("body1"), "kappa", 1e8),
    "mesh": lambda made: setattr(made.body("body0"), "scale", (1.0, 1.0, 1.1)),
    "joint": lambda made: setattr(made.joint("elbow/left"), "anchor", (3.6, 0, 2)),
    "material": lambda made: made.add_material("default", mu=0.3),
    "gravity": lambda made: setattr(made, "gravity", (0, 0, -1.62)),
}


def test_the_digest_depends_on_every_part_of_the_model():
    seen = {model_digest(scene().compile()), model_digest(scene(frames=3).compile())}
    assert len(seen) == 1
    for change in CHANGES.values():
        made = scene()
        change(made)
        seen.add(model_digest(made.compile()))
    model = scene().compile()
    model.motions[0] = lambda t: np.eye(4) * t
    assert len({*seen, model_digest(model)}) == 2 + len(CHANGES)


def test_the_digest_depends_on_drives_couplings_and_functions():
    """The digest of a scene is the same in each reading; drives count by effect, custom functions by text."""
    model, table = scene().compile(), np.array([[0.0, 0.0], [1.0, 2.0]])

    def residual(z):
        return z[0]

    def other(z):
        return z[1]

    def driven(target, table=table, function=residual, **keys):
        settings = (CoordinateSettings("roll", upper=1.0, drive=Drive("position", target, rate=None)),)
        keys = {"coordinates": settings, "drawing": {"color": (1.0, 0.0, 0.0)}, "parameters": {"f": function}} | keys
        coupling = Coupling("gear", 0, "roll", (CouplingTerm(0, "roll", table=table),))
        return model_digest(replace(model, joints=[replace(model.joints[0], **keys)], couplings=[coupling]))

    first = driven(lambda t: 2.0 * t)
    assert first == driven(lambda t: t + t, table.copy())
    others = [
        driven(lambda t: 2.5 * t),
        driven(lambda t: 2.0 * t, 2.0 * table),
        driven(lambda t: 2.0 * t, function=other),
        driven(lambda t: 2.0 * t, active=False),
    ]
    assert len({first, *others}) == 5


def test_colors_survive_saving_are_stored_and_do_not_change_the_digest(tmp_path):
    made = abd.Scene(gravity=(0, 0, 0), output={"frames": 1})
    made.add_material("red", color="#ff0000")
    keys = {"box": (0.1, 0.1, 0.1)}
    made.add_body("own", color=(0.25, 0.5, 1.0), material="red", **keys)
    made.add_body("glass", color=(0, 0, 0, 0.5), position=(1, 0, 0), **keys)
    made.add_body("of_material", material="red", position=(2, 0, 0), repeat={"count": (2, 1, 1), "step": (1, 0, 0)}, **keys)
    made.add_body("none", position=(5, 0, 0), **keys)
    made.add_body("named", color="SteelBlue", position=(6, 0, 0), **keys)
    made.save(tmp_path / "colors.toml")
    again = abd.load(tmp_path / "colors.toml")
    assert [body.color for body in again.spec.body] == [body.color for body in made.spec.body]
    assert main(["run", str(tmp_path / "colors.toml"), "--quiet", "--device", "cpu", "--out", str(tmp_path / "run")]) == 0
    stored = [(0.25, 0.5, 1, 1), (0, 0, 0, 0.5), (1, 0, 0, 1), (1, 0, 0, 1), (np.nan,) * 4, (70 / 255, 130 / 255, 180 / 255, 1)]
    with h5py.File(tmp_path / "run" / "trajectory.h5") as file:
        np.testing.assert_allclose(file["/bodies/color"][:], stored, rtol=0, atol=1e-15)
    digest = model_digest(again.compile())
    again.body("own").color = "black"
    assert model_digest(again.compile()) == digest


def test_directories(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(new_directory("four bar/2")) == "runs/four_bar_2-1"
    with pytest.raises(DirectoryError, match="no run of 'chain'"):
        latest_directory("chain")
    for name in ("chain-2", "chain-10", "chain-net-40", "chain-x"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    assert new_directory("chain").name == "chain-11" and latest_directory("chain").name == "chain-10"
    with pytest.raises(DirectoryError, match=r"no trajectory\.h5"), run_directory("runs/chain-2", resume=True):
        pass
    (tmp_path / "runs" / "chain-2" / "trajectory.h5").touch()
    with pytest.raises(DirectoryError, match="--resume"), run_directory("runs/chain-2", resume=False):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(DirectoryError, match="cannot make"), run_directory("file/run", resume=False):
        pass


def test_one_writer_per_directory(tmp_path):
    with run_directory(tmp_path, resume=False):
        with pytest.raises(DirectoryError, match="another process"), run_directory(tmp_path, resume=False):
            pass
        with h5py.File(tmp_path / "trajectory.h5", "w") as file:
            file["a"] = 1
        with h5py.File(tmp_path / "trajectory.h5") as file:
            assert file["a"][()] == 1
    with run_directory(tmp_path, resume=True):
        pass
