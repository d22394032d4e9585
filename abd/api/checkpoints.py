"""Checkpoints of a simulation: what a bitwise continuation needs, as arrays and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abd.api.restarts import set_apart, without_contacts
from abd.model import Model
from abd.state import State
from abd.step.account import Work

if TYPE_CHECKING:
    from abd.api.simulation import Simulation
    from abd.scene.scene import Scene


def saved(sim: Simulation) -> dict[str, Any]:
    """See `Simulation.checkpoint`."""
    state = sim.stepper.state()
    return {
        "q": state.q,
        "qd": state.qd,
        "previous_q": state.previous_q,
        "previous_qd": state.previous_qd,
        "time": state.time,
        "step": state.step,
        "previous_h": state.previous_h,
        "extra": state.extra,
        "coordinates": sim.coordinates.copy(),
        "joints": sim.control.saved(),
        "loads": sim.loads.saved(),
        "switches": sim.switches.saved(),
        "springs": sim.springs.saved(),
        "gravity": sim.gravity,
        "friction": sim.model.materials.mu.copy(),
        "external_work": sim.stepper.work.external,
        "friction_work": sim.stepper.work.friction,
        "drive_work": sim.stepper.work.drive,
        "integration": sim.stepper.work.integration,
        "energy": sim.stepper.account.energy,
    }


def restore(sim: Simulation, saved: dict[str, Any]) -> None:
    """See `Simulation.restore`."""
    arrays = {name: np.asarray(saved[name]) for name in ("q", "qd", "previous_q", "previous_qd")}
    if "switches" in saved:
        sim.switches.restore(saved["switches"])
    apart = set_apart(sim, arrays["q"])
    energy = saved.get("energy") if apart is arrays["q"] else None
    if apart is not arrays["q"]:
        arrays["previous_q"] = arrays["previous_q"] + (apart - arrays["q"])
        arrays["q"] = apart
    if "springs" in saved:
        sim.springs.restore(saved["springs"])
    sim.control.restore(saved["joints"])
    if "gravity" in saved:
        sim.gravity = saved["gravity"]
    if "friction" in saved and not np.array_equal(saved["friction"], sim.model.materials.mu):
        sim.set_friction(np.asarray(saved["friction"]))
    numbers = {name: float(saved[name]) for name in ("time", "previous_h")}
    extra = {name: np.asarray(value) for name, value in saved["extra"].items()}
    sim.stepper.restore(State(step=int(saved["step"]), extra=extra, **arrays, **numbers))
    sim.coordinates = np.asarray(saved["coordinates"]).copy()
    sim.forget_readings()
    works = ("external_work", "drive_work", "friction_work", "integration")
    sim.stepper.work = Work(*(float(saved.get(name, 0.0)) for name in works))
    sim.stepper.account.energy = energy
    if "loads" in saved:
        sim.loads.restore(saved["loads"])


def resumed(
    kind: type[Simulation],
    scene: Scene | None,
    model: Model,
    device: str,
    saved: dict[str, Any],
    began: dict[str, Any] | None,
) -> Simulation:
    """A simulation of a compiled scene that goes on from a checkpoint; `began`: where a reset leads, None for its start."""
    out = kind.__new__(kind)
    out._open(scene, model, device, without_contacts(saved["q"], saved["qd"]))
    out.restore(saved)
    out._began = began
    return out
