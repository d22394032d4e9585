"""Going on from a state to which no step led: bodies put elsewhere, or given other velocities."""

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


def reset(sim: Simulation) -> None:
    """See `Simulation.reset`."""
    bodies, given = sim.model.bodies, sim.compiled
    if sim._began is not None:
        sim.loads.clear()
        sim.restore(sim._began)
    else:
        sim.gravity = given.settings.gravity
        sim.springs.reset()
        sim.moves.restore({})
        sim.control.reset()
        sim.loads.clear()
        sim.set_friction(given.materials.mu)
        sim.switches.reset()
        sim.stepper.reset(State(q=bodies.q.copy(), qd=bodies.qd.copy()))
        sim.coordinates = sim.reader.coordinates(bodies.q)
        sim.forget_readings()
    for one in sim.sensors.values():
        one.begin_anew()


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
    """See `Simulation.reset`, and `Worlds.reset` for states (n, 12) in place of the scene's."""
    bodies, stepper = sim.model.bodies, sim.stepper
    if sim._began is not None:
        raise ValueError("worlds of a simulation that was recompiled do not go back alone: reset() takes all of them")
    chosen = np.isin(bodies.world, worlds_asked(worlds, np.unique(bodies.world)))
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
    again, table = sim.reader.table.of_bodies(chosen)
    coordinates = coordinates.copy()
    coordinates[again] = values(table, stepper.q, sim.reader.initial[again])
    sim.coordinates = coordinates
    sim.forget_readings()


def worlds_asked(worlds: int | Iterable[int], known: np.ndarray) -> np.ndarray:
    """Numbers of worlds, of the `known` ones, from numbers or a mask of all.

    Raises:
        ValueError: no such world.
    """
    asked = np.atleast_1d(np.asarray(worlds if np.ndim(worlds) == 0 else list(worlds)))
    if asked.dtype == bool and asked.shape == known.shape:
        return known[asked]
    if len(asked) and asked.dtype.kind not in "iu":
        raise ValueError(f"worlds are numbers, or a mask of all {len(known)}, not {asked.dtype} {asked.shape}")
    if unknown := sorted(set(asked.tolist()) - set(known.tolist())):
        raise ValueError(f"no body is of world {unknown[0]}: there are {len(known)} worlds")
    return asked


def separate(sim: Simulation, q: np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
    """The states (n, 12), or with bodies that touch set apart; `among` (n,) bool, those that are looked at, by default all.

    Raises:
        SceneError: bodies overlap.
    """
    model = sim.switches.present(sim.model)
    if among is not None:
        mesh, plane = np.where(among, model.bodies.mesh, -1), np.where(among[:, None], model.bodies.plane, np.nan)
        model = replace(model, bodies=replace(model.bodies, mesh=mesh, plane=plane))
    apart, notes = free_states(model, q, "in the state given")
    for note in notes:
        _log.warning(note)
    return apart


def restart(sim: Simulation, state: State, q: np.ndarray, qd: np.ndarray) -> None:
    """Go on from q, qd (n, 12), to which no step led."""
    kept = {name: getattr(state.bodies, name) for name in ("touching", "constrained", "stopped", "stride")}
    changed = State(q=q, qd=qd, time=state.time, step=state.step, bodies=replace(BodyHistory.none(len(q)), **kept))
    if np.array_equal(q, state.q):
        changed.pairs, changed.anchors = state.pairs, state.anchors
    sim.stepper.restore(changed)
    sim.control.recount()
    sim.forget_readings()


def without_contacts(q: np.ndarray, qd: np.ndarray) -> State:
    """A state (n, 12) whose contacts are not searched for."""
    return State(q=q.copy(), qd=qd.copy(), pairs=PairParameters())
