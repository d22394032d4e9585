"""How hand-written CUDA kernels are asked for, compiled and launched; and that nothing imports CuPy without a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp
from cuda_on_cpu import COMPILER, run
from on_device import NAME
from tool import TOOLS

from abd.backends.device import raw_kernels
from abd.backends.device.device import Device
from abd.backends.device.raw_kernels import FOLDER, TWINS, RawKernels
from cuda_kernels.bodies.vector12 import vec12
from cuda_kernels.linear import krylov

GPU = SimpleNamespace(is_cuda=True, ordinal=0)
"""Says that it is one."""


class CuPy:
    """Stands in for CuPy: compiles and runs on the processor, and keeps what it was asked for."""

    __version__ = "14.2.0"

    def __init__(self, error: Exception | None = None):
        self.error, self.calls, self.modules = error, [], []
        errors = SimpleNamespace(CompileException=type("CompileException", (Exception,), {}))
        self.cuda = SimpleNamespace(Device=self.device, Stream=self, compiler=errors)

    def device(self, ordinal: int):
        self.calls.append(f"device {ordinal}")
        return nullcontext()

    def from_external(self, stream):
        self.calls.append(stream)
        return nullcontext()

    def RawModule(self, *, code: str, options: tuple[str, ...]):
        self.modules.append(options)
        source = next(path for path in FOLDER.glob("*.cu") if path.read_text() == code)

        def get_function(name: str):
            if self.error:
                raise self.error

            def call(grid, block, arguments):
                self.calls.append((name, grid, block))
                assert all(isinstance(value, np.ndarray) and value.size == 1 for value in arguments)
                assert run(source, name, arguments, *grid, *block) == ""

            return call

        return SimpleNamespace(get_function=get_function)


@pytest.fixture
def cupy(monkeypatch) -> CuPy:
    """A stand-in, and a stream of Warp's."""
    found = CuPy()
    monkeypatch.setitem(sys.modules, "cupy", found)
    monkeypatch.setattr(wp, "get_stream", lambda device: "stream of Warp")
    return found


def turn_arguments(device: Device, n: int) -> tuple[list, np.ndarray]:
    """Arguments of `krylov.turn` for p = 1 + 0.5 * 2, and p before."""
    integers, ones = device.zeros(n, wp.int32), device.upload(np.ones((n, 12)), vec12)
    p = device.upload(np.full((n, 12), 2.0), vec12)
    fresh, stale = device.upload([1.0], wp.float64), device.upload([2.0], wp.float64)
    return [integers, integers, fresh, stale, ones, p], p


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler is there to emulate CUDA with")
def test_a_device_launches_twins_through_cupy_in_the_stream_of_warp(cupy):
    """All of it but the GPU: every source is compiled before the first launch; kernels without a twin stay Warp's."""
    device = Device("cpu")
    device.raw = RawKernels(GPU)
    assert len(cupy.modules) == len({twin.source for twin in TWINS.values()})
    assert all(options == raw_kernels.options() for options in cupy.modules)
    cupy.calls.clear()
    inputs, p = turn_arguments(device, 50)
    device.launch(krylov.turn, 50, *inputs)
    assert cupy.calls == ["device 0", "stream of Warp", ("turn", (3,), (128,))]
    np.testing.assert_array_equal(p.numpy(), 2.0)
    device.launch(krylov.aim, 50, inputs[0], device.upload(np.full((50, 12), 5.0), vec12), p)
    np.testing.assert_array_equal(p.numpy(), 5.0)
    assert len(cupy.calls) == 3


def test_options_change_with_the_headers(monkeypatch, tmp_path):
    """CuPy would take a compiled module out of its cache that has an older header in it."""
    monkeypatch.setattr(raw_kernels, "FOLDER", tmp_path)
    found = set()
    for text in ("// one", "// two"):
        (tmp_path / "tile.cuh").write_text(text)
        found.add(raw_kernels.options())
    assert len(found) == 2


def test_cuda_has_them_unless_they_are_left_out(monkeypatch, cupy):
    monkeypatch.delenv(raw_kernels.SWITCH, raising=False)
    device = Device("cpu")
    assert device.raw is None and device.why_not_raw == "hand-written kernels need a CUDA device"
    found, why = raw_kernels.raw_kernels(GPU)
    assert isinstance(found, raw_kernels.RawKernels) and why == ""
    monkeypatch.setenv(raw_kernels.SWITCH, "0")
    assert raw_kernels.raw_kernels(GPU) == (None, "hand-written kernels are left out, as ABD_RAW=0 says")


@pytest.mark.parametrize(
    ("stand_in", "reason"),
    [
        (None, "CuPy cannot be imported"),
        (CuPy(OSError("no libnvrtc.so")), "CuPy cannot compile or load them: no libnvrtc.so"),
        (CuPy(RuntimeError("the driver is too old\nmore")), "CuPy cannot compile or load them: the driver is too old"),
    ],
)
def test_the_reason_is_given_where_they_cannot_be_had(monkeypatch, caplog, stand_in, reason):
    monkeypatch.delenv(raw_kernels.SWITCH, raising=False)
    monkeypatch.setitem(sys.modules, "cupy", stand_in)
    found, why = raw_kernels.raw_kernels(GPU)
    assert found is None and why.startswith(reason) and "\n" not in why
    assert "Warp's are used" in caplog.text


def test_an_old_cupy_and_a_source_that_does_not_compile_are_named(monkeypatch, cupy):
    monkeypatch.delenv(raw_kernels.SWITCH, raising=False)
    cupy.error = cupy.cuda.compiler.CompileException("line 3: what is this")
    assert raw_kernels.raw_kernels(GPU)[1].endswith("line 3: what is this")
    monkeypatch.setattr(CuPy, "__version__", "13.6.0")
    assert "version 14 or later is needed, this is 13.6.0" in raw_kernels.raw_kernels(GPU)[1]


@pytest.mark.device
@pytest.mark.skipif(not NAME.startswith("cuda"), reason="needs a GPU")
def test_what_is_recorded_gives_the_bits_of_a_launch(monkeypatch):
    """A launch through CuPy is part of the graph that Warp records; its replay gives the same bits."""
    monkeypatch.setenv(raw_kernels.SWITCH, "1")
    device = Device(NAME)
    assert device.raw is not None, device.why_not_raw
    inputs, p = turn_arguments(device, 50)
    start = wp.clone(p)
    device.launch(krylov.turn, 50, *inputs)
    direct = p.numpy()
    wp.copy(p, start)
    with wp.ScopedCapture(device.warp) as capture:
        device.launch(krylov.turn, 50, *inputs)
    wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(p.numpy(), direct)


def test_a_run_without_a_gpu_does_not_import_cupy(tmp_path):
    text = (
        "import sys; from abd.cli import main; "
        "status = main(['run', 'double_pendulum', '--steps', '2', '--quiet', '--device', 'cpu', '--out', sys.argv[1]]); "
        "print(status, 'cupy' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(TOOLS.parent), raw_kernels.SWITCH: "1"}
    done = subprocess.run(
        [sys.executable, "-c", text, str(tmp_path / "run")],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "0 False"
