"""What a user without a usable GPU, or without room on it, is told; by fakes of what Warp answers."""

import logging
from dataclasses import dataclass

import numpy as np
import pytest
import warp as wp

import abd
from abd import backends
from abd.api.joints.coordinates import Coordinates
from abd.backends.device import cuda_support, memory
from abd.backends.device.device import Device
from abd.backends.warp.on_warp import WarpBackend
from abd.backends.warp.parts.steps import Steps
from abd.cli import main
from abd.commands import doctor
from abd.errors import DeviceError, OutOfMemory, StepFailure
from abd.io.trajectory import Trajectory

GIB = 2**30


@pytest.fixture(autouse=True)
def by_the_host(monkeypatch):
    """Backends are made as those of large scenes are."""
    monkeypatch.setattr(backends, "SMALL", 0)


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


@pytest.fixture
def machine(monkeypatch):
    """Makes Warp answer as on a machine with this driver and these devices."""

    def make(driver, devices=(), toolkit=(13, 4), said=""):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        monkeypatch.setattr(cuda_support, "start_warp", lambda: said)
        monkeypatch.setattr(wp, "get_cuda_driver_version", lambda: driver)
        monkeypatch.setattr(wp, "get_cuda_toolkit_version", lambda: toolkit)
        monkeypatch.setattr(wp, "is_cuda_available", lambda: bool(devices))
        monkeypatch.setattr(wp, "get_cuda_devices", lambda: list(devices))
        conditional = driver is not None and toolkit is not None and min(driver, toolkit) >= (12, 4)
        monkeypatch.setattr(wp, "is_conditional_graph_supported", lambda: conditional)

    return make


def without(monkeypatch, *packages):
    """Make packages look as if they were not installed, and all others of this kind as if they were."""
    monkeypatch.setattr(cuda_support, "version_of", lambda name: "" if name in packages else "1.0")


CASES = {
    "no driver": (
        {"driver": None, "said": "Could not find or load the NVIDIA CUDA driver"},
        "there is no NVIDIA driver (Could not find or load the NVIDIA CUDA driver)",
        "install NVIDIA's driver (its `nvidia-smi` must list the GPU), then pip install 'abd-solver[gpu]', "
        "or pip install -e '.[gpu]'",
    ),
    "no device": ({"driver": (13, 0)}, "the driver, for CUDA 13.0, lists none", "see what `nvidia-smi` lists"),
    "old driver": (
        {"driver": (12, 2)},
        "the driver serves CUDA up to 12.2, and Warp, built with CUDA 13.4, needs one for 13.0 or later",
        "update NVIDIA's driver, at least to one for CUDA 13.0",
    ),
    "Warp without CUDA": (
        {"driver": None, "toolkit": None},
        "this build of it knows no CUDA",
        "install a build of Warp with CUDA: pip install 'abd-solver[gpu]'",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_cuda_stops_with_the_reason_and_what_to_install(machine, case):
    answers, reason, remedy = CASES[case]
    machine(**answers)
    assert cuda_support.cuda_problem().startswith(f"Warp finds no CUDA device: {reason}")
    with pytest.raises(DeviceError) as refused:
        backends.create(abd.load("falling_box").compile(), "cuda")
    assert str(refused.value).startswith(f"no device 'cuda': Warp finds no CUDA device: {reason}")
    assert remedy in str(refused.value) and "`abd doctor` shows more" in str(refused.value)


@pytest.mark.parametrize("case", CASES)
def test_auto_says_in_one_line_what_is_missing(machine, case, caplog):
    answers, reason, _ = CASES[case]
    machine(**answers)
    with caplog.at_level(logging.INFO, "abd"):
        assert abd.Simulation("falling_box").device == "cpu"
    (line,) = [one for one in caplog.messages if one.startswith("running on")]
    assert line.startswith(f"running on the processor: Warp finds no CUDA device: {reason}") and "\n" not in line


@pytest.mark.parametrize("case", CASES)
def test_the_doctor_says_the_same(machine, case):
    answers, reason, remedy = CASES[case]
    machine(**answers)
    found = dict(doctor.findings())
    assert found["--device auto"].startswith(f"cpu: Warp finds no CUDA device: {reason}")
    assert remedy in found["for a GPU"]
    assert all(topic in doctor.text() for topic in ("CUDA driver", "CUDA toolkit of Warp", "graphs", "NVRTC"))


def test_hidden_devices_are_named(machine, monkeypatch):
    machine((13, 0))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert cuda_support.cuda_problem().endswith("(CUDA_VISIBLE_DEVICES is '-1')")


def test_the_doctor_on_a_machine_with_everything(machine, monkeypatch):
    machine((13, 0), [Gpu(), Gpu("cuda:1", free_memory=79 * GIB)])
    without(monkeypatch, "cupy", "cupy-cuda12x")
    found = dict(doctor.findings())
    assert found["cuda:0"] == "NVIDIA Imaginary, sm_90, 80.0 GiB, 3.0 GiB free"
    assert found["cuda:1"].endswith("79.0 GiB free")
    assert found["CUDA driver"] == "serves CUDA up to 13.0" and found["CUDA toolkit of Warp"] == "13.4"
    assert found["graphs"] == "loops and branches run on the device"
    assert found["--device auto"] == "cuda: a usable CUDA device is there"
    assert found["cupy"] == "cupy-cuda13x 1.0" and "without cupy" not in found
    assert found["for a GPU"] == "everything is there"


def test_without_cupy_what_is_lost_is_said(machine, monkeypatch):
    machine((13, 0), [Gpu()])
    without(monkeypatch, *cuda_support.CUPY)
    found = dict(doctor.findings())
    assert found["cupy"] == "not installed" and "CuPy cannot be imported" in found["hand-written kernels"]
    assert "hand-written kernels are out of reach" in found["without cupy"]
    assert found["for a GPU"] == cuda_support.INSTALL


def test_a_driver_without_conditional_nodes_is_slower_not_refused(machine):
    machine((12, 2), [Gpu()], toolkit=(12, 9))
    assert cuda_support.cuda_problem() == ""
    said = dict(doctor.findings())["graphs"]
    assert said.startswith("loops and branches in CUDA graphs need CUDA 12.4 (driver 12.2)")
    assert "the host decides" in said and "more slowly" in said


def test_a_run_says_that_graphs_are_slower(machine, monkeypatch, caplog):
    monkeypatch.setattr("abd.backends.warp.on_warp.WarpBackend", lambda model, name, records: name)
    for driver, told in (((12, 2), 1), ((12, 4), 0)):
        machine(driver, [Gpu()], toolkit=(12, 9))
        with caplog.at_level(logging.INFO, "abd"):
            assert backends.create(abd.load("falling_box").compile(), "cuda:0") == "cuda:0"
        assert sum("loops and branches in CUDA graphs need CUDA 12.4" in one for one in caplog.messages) == told
        caplog.clear()


def test_a_device_that_is_not_there_is_refused_with_those_that_are(machine, monkeypatch):
    machine((13, 0), [Gpu()])
    with pytest.raises(DeviceError, match=r"no device 'cuda:7'.*there are cpu, cuda:0"):
        Device("cuda:7")


# out of memory --------------------------------------------------------------------------------------------------------


def full(*_, **__):
    """An allocation that fails, as Warp says it."""
    raise RuntimeError("Failed to allocate 12884901888 bytes on device 'cuda:0'")


@pytest.fixture
def small_gpu(machine, monkeypatch):
    """A machine whose GPU has no room for a backend."""
    machine((13, 0), [Gpu()])
    make, get_device = WarpBackend.__init__, wp.get_device
    monkeypatch.setattr(
        WarpBackend,
        "__init__",
        lambda self, model, name="cpu", **keys: full() if name.startswith("cuda") else make(self, model, name, **keys),
    )
    monkeypatch.setattr(wp, "get_device", lambda name: Gpu() if str(name).startswith("cuda") else get_device(name))


def test_a_scene_that_does_not_fit_is_refused_with_numbers(small_gpu):
    with pytest.raises(OutOfMemory) as refused:
        abd.Simulation("falling_box", device="cuda")
    said = str(refused.value)
    assert said.startswith("out of memory on cuda (NVIDIA Imaginary): asked for 12.0 GiB, free are 3.0 GiB of 80.0 GiB")
    assert "--device cpu" in said and "solver.d_hat" in said


def test_auto_takes_the_processor_for_a_scene_that_does_not_fit(small_gpu, caplog):
    with caplog.at_level(logging.INFO, "abd"):
        assert abd.Simulation("falling_box").device == "cpu"
    (line,) = [one for one in caplog.messages if one.startswith("running on")]
    assert line.startswith("running on the processor: out of memory on cuda (NVIDIA Imaginary): asked for 12.0 GiB")


def test_the_command_line_says_it_without_a_traceback(small_gpu, tmp_path, capsys):
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
    with pytest.raises(StepFailure, match=r"out of memory on the processor: asked for 12\.0 GiB") as failed:
        simulation.step()
    assert failed.value.reason == "memory" and failed.value.step == 2
    assert len(calls) == 1, "shorter substeps ask for as much"
    assert simulation.frame == 1 and simulation.stepper.q.tobytes() == before["q"].tobytes()
    monkeypatch.setattr(simulation.backend.steps, "finish", finish)
    assert simulation.step().step == 2


def test_read_outs_that_run_out_of_memory_end_the_run_and_keep_what_was_done(tmp_path, monkeypatch, capsys):
    after_step = Coordinates.after_step
    monkeypatch.setattr(Coordinates, "after_step", lambda self: full() if self.stepper.frame == 4 else after_step(self))
    out = tmp_path / "run"
    assert main(["run", "falling_box", "--device", "cpu", "--steps", "9", "--out", str(out)]) == 1
    assert "step 4 failed" in (error := capsys.readouterr().err) and "asked for 12.0 GiB" in error
    with Trajectory(out) as trajectory:
        assert trajectory.checkpoint()["simulation"]["step"] == 4


def test_benchmarks_say_why_they_run_on_the_processor(machine, capsys):
    machine(None)
    assert main(["bench", "falling_box", "--steps", "1"]) == 0
    assert "note: running on the processor: Warp finds no CUDA device" in capsys.readouterr().err


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
    assert "memory" in error and "asked for 12.0 GiB" in error and "Traceback" not in error
    with Trajectory(out) as trajectory:
        heights = trajectory.transform(-1)[:, 2, 3]
        assert 1 < len(trajectory) < 10 and heights[0] < 0.0


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Failed to allocate 1024 bytes on device 'cuda:1'", 1024),
        ("Out of memory allocating 1,048,576 bytes (allocated so far: 0 bytes).", 2**20),
        ("Unable to allocate 4.50 GiB for an array with shape (5, 3) and data type float64", int(4.5 * GIB)),
        ("cudaErrorMemoryAllocation: out of memory", 0),
    ],
)
def test_what_was_asked_for_is_read_from_what_libraries_say(said, asked):
    assert memory.asked_bytes(said) == asked
    for kind in (RuntimeError, MemoryError):
        with pytest.raises(OutOfMemory), memory.memory_watched("cpu"):
            raise kind(said)


def test_other_errors_pass():
    with pytest.raises(RuntimeError, match="passed 8 arguments"), memory.memory_watched("cuda:0"):
        raise RuntimeError("Error launching kernel, passed 8 arguments")
    with pytest.raises(OutOfMemory, match="it said: nothing"), memory.memory_watched("numpy"):
        raise MemoryError
    assert [memory.in_units(count) for count in (12, 2048, 3 * 2**20)] == ["12 bytes", "2.0 KiB", "3.0 MiB"]
    assert np.isfinite(memory.asked_bytes(""))
