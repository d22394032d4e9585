"""Restart from a state without a previous step: resets, poses and velocities that were set."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abd.backends.device.exchange import host_rows
from abd.contact.pair_law import PairParameters
from abd.joints.rows.table import values
from abd.model import Kind
from abd.scene.overlaps.starts import free_states
from abd.state import BodyHistory, State, merged

if TYPE_CHECKING:
    from abd.api.simulation import Simulation

_log = logging.getLogger(__name__)


def move_to(sim: Simulation, q: np.ndarray, coordinates: np.ndarray | None) -> None:
    """See `Simulation.move_to`."""
    q = separate(sim, q)
    state = sim.stepper.state()
    old, new = (one[:, 3:].reshape(-1, 3, 3) for one in (state.q, q))
    turning = state.qd[:, 3:].reshape(-1, 3, 3) @ np.linalg.inv(old)
    qd = np.concatenate([state.qd[:, :3], (turning @ new).reshape(-1, 9)], axis=1)
    sim.coordinates = sim.reader.coordinates(q, sim.coordinates if coordinates is None else coordinates)
    restart(sim, state, q.copy(), qd)


def set_velocities(sim: Simulation, qd: Any) -> None:
    """See `Simulation.set_velocities`."""
    state = sim.stepper.state()
    given = host_rows(qd, state.qd.shape, "velocities", sim.device)
    dynamic = sim.model.bodies.kind == Kind.DYNAMIC
    restart(sim, state, state.q, np.where(dynamic[:, None], given, state.qd))


def reset_worlds(
    sim: Simulation, worlds: int | Iterable[int], start_q: np.ndarray | None = None, start_qd: np.ndarray | None = None
) -> None:
    """See `Simulation.reset`, and `Worlds.reset` for given states (n, 12)."""
    bodies, stepper = sim.model.bodies, sim.stepper
    if sim._reset_checkpoint is not None:
        raise ValueError("single worlds of a recompiled simulation cannot be reset: call reset() for all worlds")
    chosen = np.isin(bodies.world, selected_worlds(worlds, np.unique(bodies.world)))
    now, coordinates, kept = stepper.state(), sim.coordinates, (stepper.work, stepper.initial_contacts)
    start_q, start_qd = (own if one is None else one for own, one in ((bodies.q, start_q), (bodies.qd, start_qd)))
    q, qd = (np.where(chosen[:, None], first, last) for first, last in ((start_q, now.q), (start_qd, now.qd)))
    collides = sim.backend.touch.may_collide
    if collides and (start_q is not bodies.q or sim.switches.present(sim.model) is not sim.model):
        q = separate(sim, q, chosen)
    fresh = stepper.fresh(q, qd, chosen)
    sim.moves.remove(chosen)
    both = merged(stepper.joints, now, fresh, chosen)
    time, previous_h = (np.where(chosen, 0.0, one) for one in (now.time, now.previous_h))
    both = replace(both, time=time, previous_h=previous_h)
    stepper.stop(stepper.stopped & ~chosen)
    stepper.restore(replace(both, bodies=replace(both.bodies, stopped=stepper.stopped)))
    if collides:
        stepper.start_contacts(np.flatnonzero(chosen))
    stepper.work, stepper.initial_contacts = kept
    is_reset, table = sim.reader.table.of_bodies(chosen)
    coordinates = coordinates.copy()
    coordinates[is_reset] = values(table, stepper.q, sim.reader.initial[is_reset])
    sim.coordinates = coordinates
    sim.forget_readings()


def selected_worlds(worlds: int | Iterable[int], known: np.ndarray) -> np.ndarray:
    """Return the numbers of worlds that are given as numbers or as a mask of the `known` worlds.

    Raises:
        ValueError: a world is unknown.
    """
    selected = np.atleast_1d(np.asarray(worlds if np.ndim(worlds) == 0 else list(worlds)))
    if selected.dtype == bool and selected.shape == known.shape:
        return known[selected]
    if len(selected) and selected.dtype.kind not in "iu":
        raise ValueError(f"worlds must be numbers, or a mask of all {len(known)}, not {selected.dtype} {selected.shape}")
    if unknown := sorted(set(selected.tolist()) - set(known.tolist())):
        raise ValueError(f"world {unknown[0]} has no bodies: there are {len(known)} worlds")
    return selected


def separate(sim: Simulation, q: np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
    """Return the states (n, 12) with touching bodies separated; without touching bodies, return `q` itself.

    Args:
        among: (n,) bool, bodies to check; by default all.

    Raises:
        SceneError: bodies overlap.
    """
    model = sim.switches.present(sim.model)
    if among is not None:
        mesh, plane = np.where(among, model.bodies.mesh, -1), np.where(among[:, None], model.bodies.plane, np.nan)
        model = replace(model, bodies=replace(model.bodies, mesh=mesh, plane=plane))
    free_q, notes = free_states(model, q, "in the state given")
    for note in notes:
        _log.warning(note)
    return free_q


def restart(sim: Simulation, state: State, q: np.ndarray, qd: np.ndarray) -> None:
    """Restart the integrator from q, qd (n, 12); time and flags of `state` stay."""
    kept = {name: getattr(state.bodies, name) for name in ("touching", "constrained", "stopped", "stride")}
    changed = State(q=q, qd=qd, time=state.time, step=state.step, bodies=replace(BodyHistory.none(len(q)), **kept))
    if np.array_equal(q, state.q):
        changed.pairs, changed.anchors = state.pairs, state.anchors
    sim.stepper.restore(changed)
    sim.control.restart()
    sim.forget_readings()


def without_contacts(q: np.ndarray, qd: np.ndarray) -> State:
    """Return a state (n, 12) with an empty list of contact pairs, so that contacts are not searched."""
    return State(q=q.copy(), qd=qd.copy(), pairs=PairParameters())
