"""The coordinates of all joints of a model side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.joint_list import JointList
from abd.joints.measures.custom_rows import grouped
from abd.joints.measures.measures import Measure
from abd.joints.rows.stacks import PerJoint, Stack, stacks
from abd.joints.rows.table import MeasureTable
from abd.joints.types import TYPES


@dataclass(frozen=True)
class CoordinateTable:
    """c coordinates, joint by joint.

    Attributes:
        table: their measures; names: (c,) of them; starts: (j + 1,) first one of every joint.
        initial: (c,) values near which the angles of the initial state are counted.
    """

    table: MeasureTable
    names: list[str]
    starts: np.ndarray
    initial: np.ndarray


def coordinate_table(joints: JointList) -> CoordinateTable:
    """The coordinates of these joints."""
    found = [(stack, one) for stack in stacks(joints) for one in TYPES[stack.first.type].coordinates(stack.first)]
    each = PerJoint(found)
    parent_frame = each.column(lambda stack, _: stack.stacked.parent_frame, float, 4, 4)
    child_frame = each.column(lambda stack, _: stack.stacked.child_frame, float, 4, 4)
    custom = ()
    if any(one.function is not None for _, one in found):
        custom = grouped(each.column(lambda _, one: one, object).tolist(), each.joint.tolist())
    table = MeasureTable(
        joint=each.joint,
        kind=each.column(lambda _, one: one.kind, np.int32),
        numbers=each.column(lambda _, one: one.numbers, float, 48),
        scale=each.column(lambda _, one: one.scale, float),
        offset=each.column(lambda _, one: one.offset, float),
        rotary=each.column(lambda _, one: one.rotary, bool),
        parent=each.column(lambda stack, _: stack.parent, np.int32),
        child=each.column(lambda stack, _: stack.child, np.int32),
        parent_point=parent_frame[:, :3, 3].copy(),
        child_point=child_frame[:, :3, 3].copy(),
        parent_axes=parent_frame[:, :3, :3].copy(),
        child_axes=child_frame[:, :3, :3].copy(),
        custom=custom,
    )
    return CoordinateTable(
        table=table,
        names=each.column(lambda _, one: one.name, object).tolist(),
        starts=np.searchsorted(each.joint, np.arange(len(joints) + 1)),
        initial=each.column(_initial, float),
    )


def _initial(stack: Stack, measure: Measure) -> float:
    return next((one.initial for one in stack.first.coordinates if one.name == measure.name), 0.0)
