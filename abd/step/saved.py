"""Entries of `State.extra`: what is saved of pairs of bodies and of joints, and states with the worlds of two others."""

from __future__ import annotations

import numpy as np

from abd.by_bodies import common
from abd.contact.pair_law import PairParameters
from abd.errors import AbdError
from abd.joints.rows import slots
from abd.joints.rows.forces import Applied
from abd.joints.rows.system import HISTORY, JointMemory, JointSystem
from abd.model import Model
from abd.state import State

OF_BODIES = ("touching", "acting", "remembers", "forces", "pace", "calm", "loaded", "first_substep")
OF_ROWS = ("joint_multiplier", "joint_law", "joint_parameters", "joint_ch2")
OF_LINEAR = ("joint_linear", "joint_stiffness", "joint_shift", "joint_linear_ch2")
OF_PAIRS = (
    ("law_key", "law_activation", "law_factor", "law_home"), ("stick_key", "stick_kind", "stick_point", "stick_share"),
)  # fmt: skip
"""Entries of `State.extra` that belong to bodies, to measured rows and to linear rows; tables with a key for pairs of bodies,
``a n + b`` of n, in front."""
_OWN = ("key", "activation", "factor", "home")


def pair_parameters_of(own: PairParameters) -> dict[str, np.ndarray]:
    """What is saved of pairs whose law is their own."""
    return {f"law_{name}": getattr(own, name).copy() for name in _OWN}


def saved_pair_parameters(state: State) -> PairParameters | None:
    """The pairs of a state that a step led to, None of another one."""
    saved = state.extra
    return PairParameters(*(saved[f"law_{name}"].copy() for name in _OWN)) if "law_key" in saved else None


def joints_of(memory: JointMemory, applied: Applied) -> dict[str, np.ndarray]:
    """What is saved of joints: what they remember, and the laws of the last substep."""
    return {
        "joint_reference": memory.reference.copy(),
        "joint_history": memory.history.ravel().copy(),
        "joint_multiplier": memory.multiplier.copy(),
        "joint_linear": memory.linear.ravel().copy(),
        "joint_law": applied.law.copy(),
        "joint_parameters": applied.p.ravel().copy(),
        "joint_stiffness": applied.stiffness.ravel().copy(),
        "joint_shift": applied.shift.ravel().copy(),
        "joint_ch2": applied.ch2.copy(),
        "joint_linear_ch2": applied.linear_ch2.copy(),
    }


def saved_memory(state: State, joints: JointSystem) -> JointMemory:
    """What joints remember in a state; a fresh memory where no step led to it."""
    saved = state.extra
    if "joint_reference" not in saved:
        return joints.fresh_memory(state.q, state.qd)
    if len(saved["joint_history"]) != HISTORY * len(joints.rows):
        raise AbdError(
            f"the state remembers {len(saved['joint_history'])} numbers of joint rows where {HISTORY * len(joints.rows)} are "
            "needed: it was written by another release, or of another scene; run the scene from its start"
        )
    return JointMemory(
        reference=saved["joint_reference"].copy(),
        history=saved["joint_history"].reshape(HISTORY, -1).copy(),
        multiplier=saved["joint_multiplier"].copy(),
        linear=saved["joint_linear"].reshape(-1, 3).copy(),
    )


def saved_laws(state: State) -> Applied | None:
    """Laws of the last substep; None before the first one."""
    saved = state.extra
    if "joint_law" not in saved:
        return None
    return Applied(
        law=saved["joint_law"].copy(),
        p=saved["joint_parameters"].reshape(-1, slots.COUNT).copy(),
        stiffness=saved["joint_stiffness"].reshape(-1, 3).copy(),
        shift=saved["joint_shift"].reshape(-1, 3).copy(),
        ch2=saved["joint_ch2"].copy(),
        linear_ch2=saved["joint_linear_ch2"].copy(),
    )


def merged(model: Model, system: JointSystem, before: State, after: State, mine: np.ndarray) -> State:
    """The state in which bodies (n,) bool of whole worlds are as in `after`, and the others as in `before`."""
    n, part = len(model.bodies), mine.astype(int)
    linear, rows, table = system.linear, system.rows, system.table
    term = rows.term_measure[rows.starts[:-1]] if len(rows) else np.zeros(0, dtype=int)
    measured, straight = _parts_of(table, part), _parts_of(linear, part)
    states = [before, after]
    extra = dict(before.extra)

    def take(name: str, of: np.ndarray) -> None:
        extra[name] = _chosen([one.extra[name] for one in states], of)

    for names, of in ((OF_BODIES, part), (OF_ROWS, measured[term]), (OF_LINEAR, straight)):
        for name in names:
            take(name, of)
    take("joint_reference", measured)
    history = [one.extra["joint_history"].reshape(HISTORY, -1).T for one in states]
    extra["joint_history"] = _chosen(history, measured[term]).T.ravel()
    for names in OF_PAIRS:
        extra |= _of_pairs(n, states, mine, names)
    time, previous_h = (
        common(np.where(mine, theirs, others))
        for others, theirs in ((before.time, after.time), (before.previous_h, after.previous_h))
    )
    return State(
        q=_chosen([one.q for one in states], part),
        qd=_chosen([one.qd for one in states], part),
        time=time,
        step=before.step,
        previous_q=_chosen([one.previous_q for one in states], part),
        previous_qd=_chosen([one.previous_qd for one in states], part),
        previous_h=previous_h,
        extra=extra,
    )


def _chosen(values: list[np.ndarray], of: np.ndarray) -> np.ndarray:
    """Entries of each of the arrays for the items (k,) that are `of` it, each item with as many entries as there are; of the
    shape of the first."""
    out = values[0].copy()
    if not len(of):
        return out
    items = out.reshape(len(of), -1)
    for number, value in enumerate(values):
        items[of == number] = value.reshape(len(of), -1)[of == number]
    return out


def _parts_of(ends, part: np.ndarray) -> np.ndarray:
    """(k,) part of every item between bodies `child` and `parent` (k,): bodies of no part count as of the first one, and
    two of different other parts are never joined."""
    ground = np.append(part, 0)  # the last one stands for the world
    return np.maximum(ground[ends.child], ground[ends.parent])


def _of_pairs(n: int, states: list[State], mine: np.ndarray, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Rows of tables of pairs of bodies, sorted by key; pairs with a body that is `mine` (n,) come from the second state."""
    columns: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for number, state in enumerate(states):
        key = state.extra[names[0]]
        kept = (mine[key // n] | mine[key % n]) == bool(number)
        for name, values in columns.items():
            value = state.extra[name]
            values.append(value[np.repeat(kept, len(value) // max(len(key), 1))])
    table = {name: np.concatenate(values) for name, values in columns.items()}
    order = np.argsort(table[names[0]], kind="stable")
    return {name: values.reshape(len(order), -1)[order].ravel() if len(order) else values for name, values in table.items()}


def frozen_of(frozen: tuple, mine: np.ndarray) -> tuple:
    """Of lagged contacts (`abd.backends.protocol.Readings.frozen_friction`, with eps (n,) [m]) those of bodies (n,) bool."""
    (*rows, rest), eps = frozen
    theirs = mine[rows[0].astype(int)].any(axis=1)
    return (*(row[theirs] for row in rows), rest), eps
