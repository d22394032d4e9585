"""Table of all measures of a scene: values, and gradients by the states of both bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from abd.joint_list import JointList
from abd.joint_model import Joint
from abd.joints.measures.custom_rows import CustomRows, evaluate_custom_rows, group_custom_rows
from abd.joints.measures.measures import NUMBERS, Measure, evaluate, features, is_angle
from abd.model import WORLD, affine_state
from abd.potentials.free_motion import torque
from abd.rotations import polar

COLUMNS = {"kind": (np.int32,), "numbers": (float, NUMBERS), "scale": (float,), "offset": (float,), "rotary": (bool,)}
"""Columns of measures: type and shape of an entry."""


@dataclass(frozen=True)
class MeasureTable:
    """m measures; the kernels read a struct with the same names.

    Attributes:
        joint: (m,) joint of every measure.
        kind (m,), numbers (m, 48), scale (m,), offset (m,): as in `Measure`; rotary (m,) bool.
        parent, child: (m,) bodies, -1 for the world.
        parent_point, child_point: (m, 3) anchors in rest coordinates of the bodies, or in world coordinates.
        parent_axes, child_axes: (m, 3, 3) triads as columns.
        custom: measures of user functions.
    """

    joint: np.ndarray
    kind: np.ndarray
    numbers: np.ndarray
    scale: np.ndarray
    offset: np.ndarray
    rotary: np.ndarray
    parent: np.ndarray
    child: np.ndarray
    parent_point: np.ndarray
    child_point: np.ndarray
    parent_axes: np.ndarray
    child_axes: np.ndarray
    custom: tuple[CustomRows, ...] = ()

    def __len__(self) -> int:
        return len(self.joint)

    def part(self, chosen: slice | np.ndarray) -> MeasureTable:
        """Subset of the measures; the table must not contain custom measures."""
        return MeasureTable(**{e.name: getattr(self, e.name)[chosen] for e in fields(self) if e.name != "custom"})

    def of_bodies(self, bodies: np.ndarray) -> tuple[np.ndarray, MeasureTable]:
        """Indices and table of the measures between bodies (n,) bool; of all measures if some are custom."""
        if self.custom:
            return np.arange(len(self)), self
        ground = np.append(bodies, False)  # the last one stands for the world
        chosen = np.flatnonzero(ground[self.child] | ground[self.parent])
        return chosen, self.part(chosen)

    @cached_property
    def counts_turns(self) -> np.ndarray:
        """(m,) bool: angles that count turns."""
        return is_angle(self.kind)


def tabulate(joints: Sequence[Joint], entries: list[tuple[int, Measure]]) -> MeasureTable:
    """Table of (joint, measure) pairs, in their order."""
    owners, measures = [k for k, _ in entries], [one for _, one in entries]
    columns = {
        name: np.array([getattr(one, name) for one in measures], dtype=dtype).reshape(-1, *shape)
        for name, (dtype, *shape) in COLUMNS.items()
    }
    custom = group_custom_rows(measures, owners)
    return of_joints(JointList.of(joints), joint=np.array(owners, dtype=np.int32), custom=custom, **columns)


def of_joints(joints: JointList, joint: np.ndarray, **columns) -> MeasureTable:
    """Table with the given columns of measures of joints (m,); bodies and frames are those of the joints."""
    ends = {side: joints.column(side)[joint].astype(np.int32) for side in ("parent", "child")}
    for side in ("parent", "child"):
        T = joints.column(f"{side}_frame")[joint]
        ends |= {f"{side}_point": T[:, :3, 3].copy(), f"{side}_axes": T[:, :3, :3].copy()}
    return MeasureTable(joint=joint, **columns, **ends)


def frames(table: MeasureTable, q: np.ndarray, rigid: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """D, C (m, 3, 3) and ``d = o_C - o_D`` (m, 3) of every measure at states q (n, 12).

    If `rigid`, the polar factors replace the maps of the bodies.
    """
    A = q[:, 3:].reshape(-1, 3, 3)
    if rigid and len(A):
        A = polar(A)
    A_C, A_D = A[table.child], A[table.parent]
    C = A_C @ table.child_axes
    o_C = q[table.child, :3] + np.einsum("mij,mj->mi", A_C, table.child_point)
    world = table.parent == WORLD
    D = np.where(world[:, None, None], table.parent_axes, A_D @ table.parent_axes)
    inner = q[table.parent, :3] + np.einsum("mij,mj->mi", A_D, table.parent_point)
    return D, C, o_C - np.where(world[:, None], table.parent_point, inner)


def values(table: MeasureTable, q: np.ndarray, reference: np.ndarray | None = None) -> np.ndarray:
    """(m,) values at states q (n, 12); angles nearest to `reference` (m,) if given."""
    f = _evaluate(table, q, with_slopes=False)[3]
    return nearest(table, table.scale * f + table.offset, reference)


def _evaluate(
    table: MeasureTable, q: np.ndarray, with_slopes: bool, supplied: np.ndarray | None = None
) -> tuple[np.ndarray, ...]:
    """`frames`, and the functions of the measures without scale and offset (`evaluate`)."""
    D, C, d = frames(table, q)
    z = features(D, C, d)
    if supplied is None:
        supplied = evaluate_custom_rows(table.custom, z, with_slopes)
    return D, C, d, *evaluate(table.kind, table.numbers, z, d, supplied, with_slopes)


def nearest(table: MeasureTable, x: np.ndarray, reference: np.ndarray | None) -> np.ndarray:
    """x (m,) with whole turns added to angles so that they are nearest to `reference` (m,)."""
    if reference is None:
        return x
    turns = 2.0 * np.pi * np.round((reference - x) / (2.0 * np.pi))
    return x + np.where(table.counts_turns, turns, 0.0)


def linearize(
    table: MeasureTable, q: np.ndarray, reference: np.ndarray | None = None, supplied: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values (m,) and gradients by the states of the child and of the parent (m, 12); zero for the world.

    With ``G = df/dM``, ``g_r``, ``g_s`` and ``g_d``: ``df/do_C = D g_r + C g_s + g_d = -df/do_D``,
    ``df/dC = D G + d g_s^T``, ``df/dD = C G^T + d g_r^T``; the axes of a frame are ``A`` times its triad.
    """
    D, C, d, f, gz, gd = _evaluate(table, q, True, supplied)
    gz, gd = table.scale[:, None] * gz, table.scale[:, None] * gd
    G, g_r, g_s = gz[:, :9].reshape(-1, 3, 3), gz[:, 9:12], gz[:, 12:15]
    g_o = np.einsum("mij,mj->mi", D, g_r) + np.einsum("mij,mj->mi", C, g_s) + gd
    g_C = D @ G + d[:, :, None] * g_s[:, None, :]
    g_D = C @ G.transpose(0, 2, 1) + d[:, :, None] * g_r[:, None, :]
    child = _by_state(g_o, g_C, table.child_point, table.child_axes)
    parent = _by_state(-g_o, g_D, table.parent_point, table.parent_axes)
    parent[table.parent == WORLD] = 0.0
    return nearest(table, table.scale * f + table.offset, reference), child, parent


def rates(table: MeasureTable, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """(m,) rates of measures at states q and velocities qd (n, 12)."""
    return motion(table, q, qd)[1]


def motion(
    table: MeasureTable, q: np.ndarray, qd: np.ndarray, reference: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Values, nearest to `reference` (m,) if given, and rates (m,) of measures at states q and velocities qd (n, 12)."""
    x, child, parent = linearize(table, q, reference)
    return x, np.sum(child * qd[table.child], axis=1) + np.sum(parent * qd[table.parent], axis=1)


def _by_state(g_o: np.ndarray, g_axes: np.ndarray, point: np.ndarray, axes: np.ndarray) -> np.ndarray:
    g_A = g_o[:, :, None] * point[:, None, :] + g_axes @ axes.transpose(0, 2, 1)
    return np.concatenate([g_o, g_A.reshape(-1, 9)], axis=1)


def by_twists(gradient: np.ndarray, q: np.ndarray, body: np.ndarray) -> np.ndarray:
    """(k, 6) derivatives by twists from derivatives (k, 12) by states of bodies (k,) in q (n, 12)."""
    A = q[body, 3:].reshape(-1, 3, 3)
    return np.concatenate([gradient[:, :3], torque(gradient[:, 3:].reshape(-1, 3, 3), A)], axis=1)


def value_at(measures: list[Measure], T: np.ndarray, last: np.ndarray | None = None) -> np.ndarray:
    """(k,) values of measures at a rigid pose T_CD (4, 4); angles nearest to `last` (k,) if given."""
    return values(*_at_pose(measures, T), None if last is None else np.asarray(last))


def twist_gradient(measures: list[Measure], T: np.ndarray) -> np.ndarray:
    """(k, 6) derivatives of measures at T_CD (4, 4) by a twist (v; w) of C at its origin, axes of D."""
    table, q = _at_pose(measures, T)
    return by_twists(linearize(table, q)[1], q, table.child)


def _at_pose(measures: list[Measure], T: np.ndarray) -> tuple[MeasureTable, np.ndarray]:
    """Table of measures between the world as D and a body with C at T_CD (4, 4), and the state (1, 12) of the body."""
    joint = Joint("", "", 0, WORLD, 0, np.eye(4), np.eye(4))
    return tabulate([joint], [(0, one) for one in measures]), affine_state(T[None])
