"""State of a simulation: everything that a run needs to continue with bitwise equal results."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np

from abd.by_bodies import common
from abd.contact.pair_law import PairParameters
from abd.joints.rows.forces import Applied
from abd.joints.rows.system import JointMemory, JointSystem
from abd.potentials.sticking import Anchors
from abd.tables import Table, arrays_of


@dataclass(frozen=True)
class BodyHistory(Table):
    """History of the bodies for the time integration.

    Attributes, all (n, ...):
        constrained: bool, bodies with active contacts, joint limits or ropes, and all that are joined to them.
        stopped: bool, bodies of worlds that could not continue.
        history: int32, state of the acceleration history (`abd.step.integrators.Modes`); forces: (n, 12) that history.
        stride: largest distance that a prescribed motion covered in a step so far.
        time_at_rest: [s].
    """

    constrained: np.ndarray
    stopped: np.ndarray
    history: np.ndarray
    forces: np.ndarray
    stride: np.ndarray
    time_at_rest: np.ndarray

    @classmethod
    def none(cls, n: int) -> BodyHistory:
        """Return the history of n bodies before the first step."""
        mask, zero = np.zeros(n, dtype=bool), np.zeros(n)
        return cls(mask, mask.copy(), np.zeros(n, dtype=np.int32), np.zeros((n, 12)), zero, zero.copy())


@dataclass
class State:
    """Positions and velocities of all bodies at one time, and the history for the integrators.

    ``q (n, 12)``: position of the centre of mass [m] and the three rows of the affine map; ``qd (n, 12)`` [1/s]
    likewise. The ``previous_*`` fields belong to the step before. `time` and `previous_h` [s] are of all bodies, or
    (n,) where worlds have some of their own.

    Attributes:
        bodies, joints, laws: None before the first step.
        pairs: parameters of single pairs of bodies; None where they follow from the positions.
        anchors: of sticking contacts.
    """

    q: np.ndarray
    qd: np.ndarray
    time: float | np.ndarray = 0.0
    step: int = 0
    previous_q: np.ndarray | None = None
    previous_qd: np.ndarray | None = None
    previous_h: float | np.ndarray = 0.0
    bodies: BodyHistory | None = None
    pairs: PairParameters | None = None
    anchors: Anchors = field(default_factory=Anchors)
    joints: JointMemory | None = None
    laws: Applied | None = None


TABLES = {"bodies": BodyHistory, "pairs": PairParameters, "anchors": Anchors, "joints": JointMemory, "laws": Applied}


def saved_tables(state: State) -> dict[str, dict[str, np.ndarray]]:
    """Return the tables of a state after a step, by name and column."""
    return {name: arrays_of(getattr(state, name)) for name in TABLES}


def read_tables(saved: dict[str, dict[str, np.ndarray]]) -> dict[str, object]:
    """Return the fields of a `State` from the result of `saved_tables`."""
    return {name: kind(**{key: np.asarray(value) for key, value in saved[name].items()}) for name, kind in TABLES.items()}


def merged(system: JointSystem, before: State, after: State, mine: np.ndarray) -> State:
    """Return the state with bodies (n,) bool of whole articulations from `after`, and the others from `before`."""
    term = system.rows.term_measure[system.rows.starts[:-1]] if len(system.rows) else np.zeros(0, dtype=int)
    measured, linear = (_joins(ends, mine) for ends in (system.table, system.linear))
    rows = measured[term]
    joints, laws = (before.joints, after.joints), (before.laws, after.laws)
    columns = [one.name for one in fields(BodyHistory) if one.name != "stopped"]
    times = {name: common(np.where(mine, getattr(after, name), getattr(before, name))) for name in ("time", "previous_h")}
    return replace(
        before,
        **_chosen(mine, before, after, "q", "qd", "previous_q", "previous_qd"),
        **times,
        bodies=replace(before.bodies, **_chosen(mine, before.bodies, after.bodies, *columns)),
        pairs=_of_pairs(before.pairs, after.pairs, mine),
        anchors=_of_pairs(before.anchors, after.anchors, mine),
        joints=JointMemory(
            history=np.where(rows, after.joints.history, before.joints.history),
            **_chosen(measured, *joints, "reference"), **_chosen(rows, *joints, "multiplier"),
            **_chosen(linear, *joints, "linear"),
        ),
        laws=Applied(
            **_chosen(rows, *laws, "law", "p", "ch2"), **_chosen(linear, *laws, "stiffness", "shift", "linear_ch2")
        ),
    )  # fmt: skip


def _chosen(rows: np.ndarray, before, after, *names: str) -> dict[str, np.ndarray]:
    """Arrays (k, ...) by name, with the rows (k,) bool from `after` and the others from `before`."""
    out = {}
    for name in names:
        old, new = getattr(before, name), getattr(after, name)
        out[name] = np.where(rows.reshape(-1, *[1] * (old.ndim - 1)), new, old)
    return out


def _joins(ends, mine: np.ndarray) -> np.ndarray:
    """Return (k,) bool, items between bodies `child` and `parent` (k,), of which one is `mine` (n,)."""
    bodies = np.append(mine, False)  # the last one stands for the world
    return bodies[ends.child] | bodies[ends.parent]


def without(table: Table, bodies: np.ndarray) -> Table:
    """Return a table of pairs of bodies without those of some bodies (n,) bool."""
    n = len(bodies)
    return table[~(bodies[table.key // n] | bodies[table.key % n])]


def _of_pairs(before: Table, after: Table, mine: np.ndarray) -> Table:
    """Rows of tables of pairs of bodies, sorted by key; pairs with a body that is `mine` (n,) come from `after`."""
    n = len(mine)
    taken = mine[after.key // n] | mine[after.key % n]
    both = type(before).joined(without(before, mine), after[taken])
    return both[np.argsort(both.key, kind="stable")]
