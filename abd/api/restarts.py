"""Going on from a state to which no step led: bodies put elsewhere, or given other velocities."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abd.backends.device.exchange import host_rows
from abd.model import Kind
from abd.scene.overlaps.starts import free_states
from abd.state import State

if TYPE_CHECKING:
    from abd.api.simulation import Simulation

_log = logging.getLogger(__name__)


def move_to(sim: Simulation, q: np.ndarray, coordinates: np.ndarray | None) -> None:
    """See `Simulation.move_to`."""
    q = set_apart(sim, q)
    state = sim.stepper.state()
    old, new = (one[:, 3:].reshape(-1, 3, 3) for one in (state.q, q))
    turning = state.qd[:, 3:].reshape(-1, 3, 3) @ np.linalg.inv(old)
    qd = np.concatenate([state.qd[:, :3], (turning @ new).reshape(-1, 9)], axis=1)
    sim.coordinates = sim.reader.coordinates(q, sim.coordinates if coordinates is None else coordinates)
    begin_anew(sim, state, q.copy(), qd)


def set_velocities(sim: Simulation, qd: Any) -> None:
    """See `Simulation.set_velocities`."""
    state = sim.stepper.state()
    given = host_rows(qd, state.qd.shape, "velocities", sim.device)
    dynamic = sim.model.bodies.kind == Kind.DYNAMIC
    begin_anew(sim, state, state.q, np.where(dynamic[:, None], given, state.qd))


def set_apart(sim: Simulation, q: np.ndarray) -> np.ndarray:
    """The states (n, 12), or with bodies that touch set apart.

    Raises:
        SceneError: bodies overlap.
    """
    apart, notes = free_states(sim.switches.present(sim.model), q, "in the state given")
    for note in notes:
        _log.warning(note)
    return apart


def begin_anew(sim: Simulation, state: State, q: np.ndarray, qd: np.ndarray) -> None:
    """Go on from q, qd (n, 12), to which no step led."""
    kept = {name: state.extra[name] for name in ("touching", "acting", "pace")}
    if np.array_equal(q, state.q):
        kept |= {name: state.extra[name] for name in state.extra if name.startswith(("law_", "stick_"))}
    changed = State(q=q, qd=qd, time=state.time, step=state.step)
    sim.stepper.restore(replace(changed, extra=kept))
    sim.control.recount()
    sim.forget_readings()


def without_contacts(q: np.ndarray, qd: np.ndarray) -> State:
    """A state (n, 12) of which nothing is asked yet: contacts are not looked for."""
    nothing = {"law_key": np.zeros(0, dtype=np.int64), "law_activation": np.zeros(0), "law_factor": np.zeros(0)}
    return State(q=q.copy(), qd=qd.copy(), extra=nothing)
