"""Messages for a GPU without capacity, simulated by Warp's answers."""

from dataclasses import dataclass

import pytest
import warp as wp

import abd
from abd.backends.device import cuda_support
from abd.backends.recorded import small as small_scenes
from abd.backends.warp.on_warp import WarpBackend
from abd.backends.warp.parts.steps import Steps
from abd.cli import main
from abd.errors import OutOfMemory, StepFailure
from abd.io.trajectory import Trajectory

GIB = 2**30


@pytest.fixture(autouse=True)
def by_the_host(monkeypatch):
    """Backends are made as those of large scenes are."""
    monkeypatch.setattr(small_scenes, "SMALL", 0)


@dataclass
class Gpu:
    """As `wp.get_cuda_devices` lists one."""

    alias: str = "cuda:0"
    name: str = "NVIDIA Imaginary"
    arch: int = 90
    total_memory: int = 80 * GIB
    free_memory: int = 3 * GIB
    is_cuda: bool = True

    def __str__(self) -> str:
        return self.alias


def full(*_, **__):
    """An allocation that fails, as Warp says it."""
    raise RuntimeError("Failed to allocate 12884901888 bytes on device 'cuda:0'")


@pytest.fixture
def small_gpu(monkeypatch):
    """A machine whose GPU has no capacity for a backend."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(cuda_support, "start_warp", lambda: "")
    monkeypatch.setattr(wp, "get_cuda_driver_version", lambda: (13, 0))
    monkeypatch.setattr(wp, "get_cuda_toolkit_version", lambda: (13, 4))
    monkeypatch.setattr(wp, "is_cuda_available", lambda: True)
    monkeypatch.setattr(wp, "get_cuda_devices", lambda: [Gpu()])
    monkeypatch.setattr(wp, "is_conditional_graph_supported", lambda: True)
    make, get_device = WarpBackend.__init__, wp.get_device
    monkeypatch.setattr(
        WarpBackend, "__init__",
        lambda self, model, name="cpu", **keys: full() if name.startswith("cuda") else make(self, model, name, **keys),
    )
    monkeypatch.setattr(wp, "get_device", lambda name: Gpu() if str(name).startswith("cuda") else get_device(name))


def test_scene_beyond_the_memory_is_refused_with_its_size(small_gpu, tmp_path, capsys):
    with pytest.raises(OutOfMemory) as refused:
        abd.Simulation("falling_box", device="cuda")
    said = str(refused.value)
    assert said.startswith("out of memory on cuda (NVIDIA Imaginary): requested 12.0 GiB, free are 3.0 GiB of 80.0 GiB")
    assert "--device cpu" in said and "solver.d_hat" in said
    assert main(["run", "falling_box", "--device", "cuda", "--out", str(tmp_path / "run")]) == 1
    error = capsys.readouterr().err
    assert error.count("error: out of memory on cuda") == 1 and "Traceback" not in error


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
    monkeypatch.setattr(Steps, "finish", lambda self: full() if self.states.now.p.numpy()[0, 2] < 0.0 else finish(self))
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
