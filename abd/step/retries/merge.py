"""One state out of several that different bodies came to by themselves, in a (sub)step of the same length."""

from __future__ import annotations

import numpy as np

from abd.joints.rows.system import HISTORY, JointSystem
from abd.model import Model
from abd.state import State

OF_BODIES = ("touching", "acting", "remembers", "forces", "owed", "pace", "calm", "loaded", "pieces", "lasted")
OF_ROWS = ("joint_multiplier", "joint_law", "joint_parameters", "joint_ch2")
OF_LINEAR = ("joint_linear", "joint_stiffness", "joint_shift", "joint_linear_ch2")
OF_PAIRS = (
    ("law_key", "law_activation", "law_factor"), ("stick_key", "stick_kind", "stick_point", "stick_share"), ("lasted_key",),
)  # fmt: skip
"""Entries of `State.extra` that belong to bodies, to measured rows and to linear rows; tables with a key for pairs of bodies,
``a n + b`` of n, in front."""


def merged(model: Model, system: JointSystem, start: State, parts: list[tuple[np.ndarray, State]], h: float) -> State:
    """What follows of the parts, bodies (n,) with a state of theirs, after a (sub)step of h [s] that began at `start`.

    Bodies that are of no part, those that do not move or are where their motions say, come with the first one, and so does
    what the linear solver remembers of the whole scene.
    """
    n = len(model.bodies)
    part = np.zeros(n, dtype=int)
    for number, (who, _) in enumerate(parts):
        part[who] = number
    linear, rows, table = system.linear, system.rows, system.table
    term = rows.term_measure[rows.starts[:-1]] if len(rows) else np.zeros(0, dtype=int)
    measured, straight = _parts_of(table, part), _parts_of(linear, part)
    states = [state for _, state in parts]
    extra = dict(states[0].extra)

    def take(name: str, of: np.ndarray) -> None:
        extra[name] = _chosen([one.extra[name] for one in states], of)

    for names, of in ((OF_BODIES, part), (OF_ROWS, measured[term]), (OF_LINEAR, straight)):
        for name in names:
            take(name, of)
    take("joint_reference", measured)
    history = [one.extra["joint_history"].reshape(HISTORY, -1).T for one in states]
    extra["joint_history"] = _chosen(history, measured[term]).T.ravel()
    for names in OF_PAIRS:
        extra |= _of_pairs(n, parts, names)
    return State(
        q=_chosen([one.q for one in states], part),
        qd=_chosen([one.qd for one in states], part),
        time=start.time + h,
        step=start.step,
        previous_q=_chosen([one.previous_q for one in states], part),
        previous_qd=_chosen([one.previous_qd for one in states], part),
        previous_h=h,
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


def _of_pairs(n: int, parts: list[tuple[np.ndarray, State]], names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Rows of tables of pairs of bodies, sorted by key, without pairs of different parts: those have separated."""
    columns: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for number, (who, state) in enumerate(parts):
        key = state.extra[names[0]]
        others = np.any([np.zeros(n, dtype=bool), *(other for other, _ in parts if other is not who)], axis=0)
        mine, apart = (chosen[key // n] | chosen[key % n] for chosen in (who, others))
        kept = ~apart & (mine | (number == 0))
        for name, values in columns.items():
            value = state.extra[name]
            values.append(value[np.repeat(kept, len(value) // max(len(key), 1))])
    table = {name: np.concatenate(values) for name, values in columns.items()}
    order = np.argsort(table[names[0]], kind="stable")
    return {name: values.reshape(len(order), -1)[order].ravel() if len(order) else values for name, values in table.items()}
