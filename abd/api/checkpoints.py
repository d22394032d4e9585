"""Checkpoints of a simulation: arrays and numbers for a bitwise continuation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abd.api.restarts import separate, without_contacts
from abd.by_bodies import PerBody
from abd.io.checkpoint import CheckpointError
from abd.model import Model
from abd.scene.schema.values import LARGEST
from abd.state import BodyHistory, State, read_tables, saved_tables
from abd.step.energy_balance import Work
from abd.tables import arrays_of

if TYPE_CHECKING:
    from abd.api.simulation import Simulation
    from abd.scene.scene import Scene


def saved(sim: Simulation) -> dict[str, Any]:
    """See `Simulation.checkpoint`."""
    state, worlds = sim.stepper.state(), sim.stepper.worlds
    of_worlds = {"dt": worlds.lengths, "time": state.time, "previous_h": state.previous_h}
    return {
        "q": state.q,
        "qd": state.qd,
        "previous_q": state.previous_q,
        "previous_qd": state.previous_qd,
        "time": worlds.clock,
        "step": state.step,
        "worlds": {name: worlds.world_values(one) for name, one in of_worlds.items()} | {"number": worlds.numbers},
        "tables": saved_tables(state),
        "coordinates": sim.coordinates.copy(),
        **changes_of(sim),
        "external_work": sim.stepper.work.external,
        "friction_work": sim.stepper.work.friction,
        "drive_work": sim.stepper.work.drive,
        "integration": sim.stepper.work.integration,
        "energy": sim.stepper.energy_balance.energy,
    }


def changes_of(sim: Simulation) -> dict[str, Any]:
    """Return all changes of a running simulation, by names where they belong to single bodies and joints."""
    return {
        "joints": sim.control.saved(),
        "loads": sim.loads.saved(),
        "force": sim.loads.force.copy(),
        "torque": sim.loads.torque.copy(),
        "moves": sim.moves.saved(),
        "switches": sim.switches.saved(),
        "gravity": sim.gravity,
        "friction": sim.model.materials.mu.copy(),
    }


def restore_changes(sim: Simulation, saved: dict[str, Any]) -> None:
    """Restore what `changes_of` returned, except the switches, before the state."""
    sim.moves.restore(saved["moves"])
    sim.control.restore(saved["joints"])
    sim.gravity = saved["gravity"]
    if not np.array_equal(saved["friction"], sim.model.materials.mu):
        sim.set_friction(saved["friction"])
    sim.loads.restore(saved["loads"], saved["force"], saved["torque"])


def restore(sim: Simulation, saved: dict[str, Any]) -> None:
    """See `Simulation.restore`."""
    try:
        _check(sim, saved)
        _restore(sim, saved)
    except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise CheckpointError(f"the checkpoint does not fit this scene, or is damaged ({reason})") from error


def _check(sim: Simulation, saved: dict[str, Any]) -> None:
    """Raise `ValueError` if shapes do not match the scene, or numbers are not finite or out of range."""
    if "tables" not in saved:
        raise ValueError("it was written by another release: run the scene from its start")
    n = len(sim.model.bodies)
    shapes = dict.fromkeys(("q", "qd", "previous_q", "previous_qd"), (n, 12)) | dict.fromkeys(("force", "torque"), (n, 3))
    # the checkpoint defines the number of coordinates, since its joints are restored later
    shapes |= {"coordinates": np.shape(saved["coordinates"])[:1], "gravity": (3,), "friction": sim.model.materials.mu.shape}
    shapes |= dict.fromkeys(("time", "step"), ())
    for name, shape in shapes.items():
        found = np.asarray(saved[name])
        if found.shape != shape:
            raise ValueError(f"{name} has the shape {found.shape}, not {shape}")
        if not (np.abs(found) <= LARGEST).all():
            raise ValueError(f"{name} has numbers that are not finite, or beyond {LARGEST:g}")
    if saved["time"] < 0.0 or saved["step"] < 0:
        raise ValueError(f"time {saved['time']} or step {saved['step']} is negative")
    for table, columns in saved["tables"].items():
        for name, value in columns.items():
            bound = np.inf if name == "first_substep" else LARGEST  # infinite without a substep
            if np.asarray(value).dtype.kind == "f" and not (np.abs(value) <= bound).all():
                raise ValueError(f"{name} of {table} has numbers that are not finite, or beyond {LARGEST:g}")
    for name, value in arrays_of(BodyHistory.none(n)).items():
        if (found := np.shape(saved["tables"]["bodies"][name])) != value.shape:
            raise ValueError(f"{name} of bodies has the shape {found}, not {value.shape}")


def _restore(sim: Simulation, saved: dict[str, Any]) -> None:
    arrays = {name: np.asarray(saved[name]) for name in ("q", "qd", "previous_q", "previous_qd")}
    sim.switches.restore(saved["switches"])
    free_q = separate(sim, arrays["q"])
    energy = saved["energy"] if free_q is arrays["q"] else None
    energy = None if energy is None else float(energy)
    if free_q is not arrays["q"]:
        arrays["previous_q"] = arrays["previous_q"] + (free_q - arrays["q"])
        arrays["q"] = free_q
    restore_changes(sim, saved)
    clock, worlds, numbers = float(saved["time"]), sim.stepper.worlds, _times(sim, saved)
    worlds.clock, worlds.lengths = clock, numbers.pop("dt")
    sim.stepper.restore(State(step=int(saved["step"]), **read_tables(saved["tables"]), **arrays, **numbers))
    sim.coordinates = np.asarray(saved["coordinates"]).copy()
    sim.forget_readings()
    works = ("external_work", "drive_work", "friction_work", "integration")
    sim.stepper.work = Work(*(float(saved[name]) for name in works))
    sim.stepper.energy_balance.energy = energy


def reset(sim: Simulation) -> None:
    """See `Simulation.reset`."""
    sim.loads.keep(lambda load: False)
    if sim._reset_checkpoint is not None:
        sim.restore(sim._reset_checkpoint)
    else:
        sim.switches.restore(sim._changes_of_scene["switches"])
        restore_changes(sim, sim._changes_of_scene)
        start = sim.model.bodies
        sim.stepper.reset(State(q=start.q.copy(), qd=start.qd.copy()))
        sim.coordinates = sim.reader.coordinates(start.q)
        sim.forget_readings()
    for one in sim.sensors.values():
        one.begin_anew()


def _times(sim: Simulation, saved: dict[str, Any]) -> dict[str, PerBody]:
    """Return time steps, times and previous substep lengths [s] by body; new worlds get the scene's step and the saved clock."""
    worlds, clock = sim.stepper.worlds, float(saved["time"])
    out = {"dt": worlds.world_values(worlds.lengths), "time": np.full(len(worlds.numbers), clock)}
    known = saved["worlds"]
    out["previous_h"] = np.full(len(worlds.numbers), float(np.max(known["previous_h"])))
    _, mine, theirs = np.intersect1d(worlds.numbers, known["number"], return_indices=True)
    for name, values in out.items():
        values[mine] = np.asarray(known[name])[theirs]
        if not ((values >= 0.0) & (values <= LARGEST)).all() or (name == "dt" and not values.all()):
            raise ValueError(f"{name} of the worlds must be {'positive' if name == 'dt' else 'not negative'}, not {values} s")
    return {name: worlds.of_bodies(values) for name, values in out.items()}


def resumed(
    kind: type[Simulation],
    scene: Scene | None,
    model: Model,
    device: str,
    saved: dict[str, Any],
    reset_checkpoint: dict[str, Any] | None,
) -> Simulation:
    """Return a simulation of a compiled scene that continues from a checkpoint.

    Args:
        reset_checkpoint: target of `Simulation.reset`; None for the start of the scene.
    """
    out = kind.__new__(kind)
    out._open(scene, model, device, without_contacts(saved["q"], saved["qd"]))
    out.restore(saved)
    out._reset_checkpoint = reset_checkpoint
    return out
