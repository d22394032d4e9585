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
from abd.backends.device import device as devices
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
    text = "from abd.backends.device import cuda_support, device; device.Device('cpu'); print(cuda_support.cuda_problem())"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment, check=True)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1
    assert wp.is_cuda_available() or done.stdout.startswith("Warp finds no CUDA device")


@pytest.mark.parametrize(("seconds", "patience", "told"), [(0.2, 0.0, True), (0.0, 5.0, False)])
def test_compiling_is_told_and_loading_is_not(monkeypatch, seconds, patience, told):
    """Warp cannot say beforehand whether it will compile; the clock tells."""
    importlib.import_module("abd.backends.warp.on_warp")
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
    assert where == DEVICE.warp and "cuda_kernels.bodies.bodies" in names
    assert "cuda_kernels.step.newton" in names and ("cuda_kernels.linear.elimination" in names) == DEVICE.is_cpu
    assert observer.notes == (["compiling kernels, this once (a minute on two processors)"] if told else [])


def test_messages_end_with_the_run():
    log, observer = logging.getLogger("abd"), Notes()
    before = log.level, list(log.handlers)
    with Messages([observer]):
        logging.getLogger("abd.backends.device.device").info("heard %d", 1)
    logging.getLogger("abd.backends.device.device").info("not heard")
    assert observer.notes == ["heard 1"]
    assert (log.level, log.handlers) == before


MODULES = {"contact": "contact.narrow_phase", "friction": "friction.friction", "joints": "joints.rows"}
NEEDED = """
import numpy as np, warp as wp, abd
from abd.backends.device.device import Device

launched, launch = set(), Device.launch
def watched(self, kernel, count, *inputs, **keys):
    if count > 0:
        launched.add(kernel.module.name)
    launch(self, kernel, count, *inputs, **keys)
Device.launch = watched

loaded, force_load = set(), wp.force_load
def watched_load(device, modules, **keys):
    loaded.update(module.name for module in modules)
    force_load(device, modules, **keys)
wp.force_load = watched_load

scene = abd.Scene()
scene.add_material("default", mu={mu})
scene.add_body("arm", box=(1, 0.1, 0.1), position=(0.5, 0, 0))
if {floor}:
    scene.add_body("floor", half_space={{"offset": -0.3}})
if {joints}:
    scene.add_hinge("pivot", abd.WORLD, "arm", anchor=(0, 0, 0), axis=(0, 1, 0), enforcement="exact")
simulation = abd.Simulation(scene, device="cpu")
launched.clear()
for _ in range(30):
    simulation.step()
print(*sorted(launched - loaded), "|", *sorted(loaded))
"""


@pytest.mark.parametrize("mu", [0.0, 0.5])
@pytest.mark.parametrize("floor", [False, True])
@pytest.mark.parametrize("joints", [False, True])
def test_what_the_scene_needs_is_loaded_at_once_and_nothing_else(mu, floor, joints):
    text = NEEDED.format(mu=mu, floor=floor, joints=joints)
    environment = {**os.environ, "PYTHONPATH": str(TOOLS.parent)}
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment, check=True)
    late, loaded = done.stdout.splitlines()[-1].split("|")
    assert late.split() == []
    there = {word: f"cuda_kernels.{module}" in loaded.split() for word, module in MODULES.items()}
    assert there == {"contact": floor, "friction": floor and mu > 0.0, "joints": joints}
