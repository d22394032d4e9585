"""A state in which some worlds are further than others: rows of bodies, joints and pairs from two states."""

from __future__ import annotations

import numpy as np

from abd.by_bodies import common
from abd.joints.rows.system import HISTORY, JointSystem
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
