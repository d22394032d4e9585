"""Steps and runs whose device runs out of memory, by an allocation that fails."""

import pytest

import abd
from abd.backends.recorded import small as small_scenes
from abd.backends.warp.parts.steps import Steps
from abd.cli import main
from abd.errors import StepFailure
from abd.io.trajectory import Trajectory


@pytest.fixture(autouse=True)
def by_the_host(monkeypatch):
    """Backends are made as those of large scenes are."""
    monkeypatch.setattr(small_scenes, "SMALL", 0)


def full(*_, **__):
    """An allocation that fails, as Warp says it."""
    raise RuntimeError("Failed to allocate 12884901888 bytes on device 'cuda:0'")


def test_a_step_that_runs_out_of_memory_leaves_the_last_good_state(monkeypatch):
    simulation = abd.Simulation("falling_box", device="cpu")
    simulation.backend.whole = None  # whole steps finish by themselves
    simulation.step()
    before = simulation.checkpoint()
    finish, calls = simulation.backend.steps.finish, []
    monkeypatch.setattr(simulation.backend.steps, "finish", lambda: (calls.append(1), full()))
    with pytest.raises(StepFailure, match=r"out of memory on the CPU: requested 12\.0 GiB") as failed:
        simulation.step()
    assert failed.value.reason == "memory" and failed.value.step == 2
    assert len(calls) == 1, "shorter substeps ask for as much"
    assert simulation.frame == 1 and simulation.stepper.q.tobytes() == before["q"].tobytes()
    monkeypatch.setattr(simulation.backend.steps, "finish", finish)
    assert simulation.step().step == 2


def test_a_run_that_runs_out_of_memory_keeps_its_frames(tmp_path, monkeypatch, capsys):
    finish = Steps.finish
    monkeypatch.setattr(Steps, "finish", lambda self: full() if self.backend.states.now.p.numpy()[0, 2] < 0.0 else finish(self))
    monkeypatch.setattr("abd.backends.warp.on_warp.WholeStep", lambda backend: None)  # whole steps finish by themselves
    scene = abd.Scene()
    scene.add_body("box", box=(0.1, 0.1, 0.1), position=(0.0, 0.0, 0.001))
    scene.save(tmp_path / "fall.toml")
    out = tmp_path / "run"
    assert main(["run", str(tmp_path / "fall.toml"), "--device", "cpu", "--steps", "10", "--out", str(out)]) == 1
    error = capsys.readouterr().err
    assert "memory" in error and "requested 12.0 GiB" in error and "Traceback" not in error
    with Trajectory(out) as trajectory:
        heights = trajectory.transform(-1)[:, 2, 3]
        assert 1 < len(trajectory) < 10 and heights[0] < 0.0
