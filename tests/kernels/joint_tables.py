"""Measures of every kind between random bodies, and rows over them, for tests of the joint kernels."""

from types import SimpleNamespace

import numpy as np
from on_device import random_states

from abd.backends.reference.numpy_bodies import maps
from abd.joint_model import Joint
from abd.joints.measures.measures import Measure, MeasureKind
from abd.joints.rows.measured_rows import MeasuredRows
from abd.joints.rows.rows import Rows, compile_rows
from abd.joints.rows.system import JointSystem
from abd.joints.rows.table import MeasureTable, tabulate
from abd.model import WORLD

N = 40
PER_KIND = 2 * N
KINDS = list(MeasureKind)


def some_measure(kind: MeasureKind, rng: np.random.Generator) -> Measure:
    """A measure of a kind with arbitrary numbers, away from the points where it has no derivative."""
    numbers = rng.normal(size=48)
    if kind in (MeasureKind.SURFACE_DOT, MeasureKind.SURFACE_ROLL, MeasureKind.SURFACE_TILT):
        numbers[:3], numbers[3] = rng.uniform(0.4, 1.5, 3), float(rng.random() < 0.5)
    if kind == MeasureKind.ROTATION:
        numbers[:3] = rng.uniform(0.5, 2.0, 3)
        numbers[3:6] *= float(rng.random() < 0.5)  # without them it is a gap, with them a component of the rotation vector
    return Measure("x", True, kind, numbers, scale=float(rng.normal()), offset=float(rng.normal()))


def some_table(seed: int) -> MeasureTable:
    """Measures of every kind between bodies and to the world, in no particular order."""
    rng = np.random.default_rng(seed)
    count = PER_KIND * len(KINDS)
    joint_frames = np.tile(np.eye(4), (count, 2, 1, 1))
    for side in range(2):
        joint_frames[:, side, :3, :3] = maps(random_states(count, seed + 1 + side, strain=0.0))
    joint_frames[:, :, :3, 3] = rng.normal(size=(count, 2, 3))
    joints, entries = [], []
    for k, kind in enumerate(rng.permutation(np.repeat(KINDS, PER_KIND))):
        parent, child = (int(b) for b in rng.choice(N, 2, replace=False))
        parent = WORLD if k % 4 == 0 else parent
        joints.append(Joint(f"joint {k}", "hinge", 0, parent, child, *joint_frames[k]))
        entries.append((k, some_measure(MeasureKind(kind), rng)))
    return tabulate(joints, entries)


def system_of(table: MeasureTable, rows: MeasuredRows, linear: Rows | None = None) -> JointSystem:
    """Measured rows, exact where their parameters say so, next to linear ones."""
    row_laws = SimpleNamespace(exact=np.ones(len(rows), dtype=bool))
    linear = compile_rows([], np.zeros(0), np.zeros(0)) if linear is None else linear
    return JointSystem(linear, table, rows, row_laws, np.zeros(len(table)))
