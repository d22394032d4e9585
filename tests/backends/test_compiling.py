"""Kernels that are not in the cache are compiled with progress on standard error, and load silently afterwards."""

import warp as wp

from abd.backends.device import compiling
from abd.backends.device.device import Device


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
