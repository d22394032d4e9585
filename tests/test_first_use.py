"""The first use on a machine: no noise from below, a sign of life while kernels are compiled."""

import importlib
import logging
import os
import subprocess
import sys
import time

import pytest
import warp as wp
from tool import TOOLS

import cuda_kernels
from abd.backends import device as devices
from abd.io.run import Messages, Observer

DEVICE = devices.Device("cpu")


class Notes(Observer):
    """Keeps the notes."""

    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


def test_starting_warp_leaves_the_terminal_alone():
    environment = {**os.environ, "PYTHONPATH": str(TOOLS.parent)}
    text = "from abd.backends import cuda_support, device; device.Device('cpu'); print(cuda_support.cuda_problem())"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment, check=True)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1
    assert wp.is_cuda_available() or done.stdout.startswith("Warp finds no CUDA device")


@pytest.mark.parametrize(("seconds", "patience", "told"), [(0.2, 0.0, True), (0.0, 5.0, False)])
def test_compiling_is_told_and_loading_is_not(monkeypatch, seconds, patience, told):
    """Warp cannot say beforehand whether it will compile; the clock tells."""
    importlib.import_module("abd.backends.on_warp")
    loaded = []

    def force_load(device, modules, **_):
        time.sleep(seconds)
        loaded.append((device, {module.name for module in modules}))

    monkeypatch.setattr(wp, "force_load", force_load)
    monkeypatch.setattr(devices, "_PATIENCE", patience)
    observer = Notes()
    with Messages([observer]):
        DEVICE.load(cuda_kernels)
    ((where, names),) = loaded
    assert where == DEVICE.warp and "cuda_kernels.bodies" in names
    assert ("cuda_kernels.newton" in names) == (not DEVICE.is_cpu) == ("cuda_kernels.elimination" not in names)
    assert observer.notes == (["compiling kernels, this once (10 to 30 s)"] if told else [])


def test_messages_end_with_the_run():
    log, observer = logging.getLogger("abd"), Notes()
    before = log.level, list(log.handlers)
    with Messages([observer]):
        logging.getLogger("abd.backends.device").info("heard %d", 1)
    logging.getLogger("abd.backends.device").info("not heard")
    assert observer.notes == ["heard 1"]
    assert (log.level, log.handlers) == before
