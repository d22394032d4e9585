"""Compilation of kernels is reported once; the branches of CUDA on the processor take its steps; devices without memory."""

import numpy as np
import pytest
import warp as wp

import abd
from abd.backends.device import compiling
from abd.backends.device.device import EMULATED, Device
from abd.backends.warp import on_warp as small_scenes
from abd.backends.warp.parts.steps import Steps
from abd.cli import main
from abd.errors import DeviceError, StepFailure
from abd.io.trajectory import Trajectory


@wp.kernel
def double(values: wp.array(dtype=float)):
    values[wp.tid()] *= 2.0


def test_compilation_is_reported_unless_quiet_and_warm_modules_load_silently(tmp_path, monkeypatch, capsys):
    device, module = Device("cpu").warp, wp.get_module(__name__)  # Warp sets its folder before
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    module.unload()
    with monkeypatch.context() as patch:
        patch.setattr(compiling, "PATIENCE", 0.0)
        compiling.load_modules(device, [module], 1)
        first, *_, last = capsys.readouterr().err.splitlines()  # slow machines report more often
        assert first.endswith("0 of 1") and last.startswith("compiled the kernels")
        assert list(tmp_path.rglob("*.o")), "the cache has the compiled module"
        with compiling.without_progress():
            compiling.load_modules(device, [module], 1)
    compiling.load_modules(device, [module], 1)
    assert capsys.readouterr().err == ""
    values = wp.array([1.0, 3.0], dtype=float, device=device)
    wp.launch(double, 2, inputs=[values], device=device)
    assert values.numpy().tolist() == [2.0, 6.0]


@pytest.mark.parametrize(
    "scene", ["falling_box", "box_stack", "card_house", "chain", "ragdoll", "gear_train", "wrecking_ball"]
)
def test_scenes_take_the_same_steps(scene):
    """Sums have another order than on the processor, so that states differ by rounding; the order of threads, in sums or between
    items, changes no bit."""
    one, other, plain = (abd.Simulation(scene, device=name) for name in (EMULATED, f"{EMULATED}:1", "cpu"))
    assert one.backend.device.wide and one.backend.iteration is not None
    if scene == "card_house":
        # cards that land stick or slip by what rounding tips: they are compared once they stand
        plain.run(steps=20)
        one.restore(plain.checkpoint()), other.restore(plain.checkpoint())
    for _ in range(3):
        here, there, known = one.step(), other.step(), plain.step()
        assert here.newton_iterations == there.newton_iterations == known.newton_iterations
        assert here.contacts == known.contacts and here.energy == there.energy
    np.testing.assert_array_equal(one.stepper.q, other.stepper.q)
    np.testing.assert_allclose(one.stepper.q, plain.stepper.q, atol=1e-9)


@pytest.mark.parametrize("name", ["emulated:", "emulated:x", "emulate", "gpu"])
def test_other_names_are_refused(name):
    with pytest.raises(DeviceError, match=r"no device|unknown device|use auto, cpu, cuda, cuda:N or numpy"):
        abd.Simulation("falling_box", device=name)


@pytest.fixture
def by_the_host(monkeypatch):
    """Backends are made as those of large scenes are."""
    monkeypatch.setattr(small_scenes, "SMALL", 0)


def full(*_, **__):
    """An allocation that fails, as Warp says it."""
    raise RuntimeError("Failed to allocate 12884901888 bytes on device 'cuda:0'")


@pytest.mark.usefixtures("by_the_host")
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


@pytest.mark.usefixtures("by_the_host")
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
