"""Batches of joints with equal rows, so that their common properties are computed once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from abd.joint_list import JointList
from abd.joint_model import Joint
from abd.model import WORLD


class Batch(NamedTuple):
    """k joints with the same type, enforcement, activity, parameters and coordinate settings.

    Attributes:
        index: (k,) indices in the list of joints, ascending.
        first: one of the joints; it represents all except for frames, bodies, lengths and masses.
        merged: all joints in one for `rows` of their type: frames (k, 4, 4) and length (k, 1), or common ones.
    """

    index: np.ndarray
    first: Joint
    merged: Joint


def batches(joints: JointList) -> list[Batch]:
    """Batches of a list of joints, ordered by their first joints; every joint is in one batch."""
    found: list[Batch] = []
    alike: dict[Hashable, list[tuple[int, Joint]]] = {}
    changed = sorted(joints.replaced)
    for start, part in zip(joints.starts, joints.parts, strict=False):
        if isinstance(part, Joint):
            joint = joints.replaced.get(start, part)
            alike.setdefault(_kind(joint), []).append((start, joint))
            continue
        own = changed[bisect_left(changed, start) : bisect_left(changed, start + len(part))]
        for k in own:
            alike.setdefault(_kind(joints.replaced[k]), []).append((k, joints.replaced[k]))
        unchanged = np.delete(np.arange(len(part)), np.array(own, dtype=int) - start)
        if len(unchanged):
            first = merged = part[int(unchanged[0])]
            if first.parent == WORLD and len(unchanged) > 1:
                merged = replace(first, parent_frame=part.column("parent_frame")[unchanged])
            found.append(Batch(start + unchanged, first, merged))
    for members in alike.values():
        first = merged = members[0][1]
        if len(members) > 1:
            names = ("parent_frame", "child_frame", "length")
            frames, others, length = (np.array([getattr(joint, name) for _, joint in members]) for name in names)
            merged = replace(first, parent_frame=frames, child_frame=others, length=length[:, None])
        found.append(Batch(np.array([k for k, _ in members]), first, merged))
    return sorted(found, key=lambda batch: batch.index[0])


def _kind(joint: Joint) -> Hashable:
    """Key of the batch of a joint; joints with parameters or coordinate settings are in one batch if they share the objects."""
    shared = [id(one) if one else None for one in (joint.parameters, joint.coordinates)]
    return joint.type, joint.uid, joint.enforcement, joint.active, joint.parent == WORLD, *shared


class PerJoint:
    """Items (rows or measures) that types derive from their joints, in the order of the joints.

    Args:
        found: items with their batch; items of one batch are in the order that they have in every joint.

    Attributes:
        joint: (m,) int32 joint of each item.
    """

    def __init__(self, found: list[tuple[Batch, Any]]):
        self.found = found
        self._order = slice(None)
        joint = self.column(lambda batch, _: batch.index, np.int32)
        if (np.diff(joint) < 0).any():
            self._order = np.argsort(joint, kind="stable")
        self.joint = joint[self._order]

    def column(self, value: Callable[[Batch, Any], Any], dtype, *shape: int) -> np.ndarray:
        """(m, *shape) values of the items; a value is common to all joints of a batch, or (k, *shape)."""
        parts = [np.broadcast_to(np.asarray(value(*one)), (len(one[0].index), *shape)) for one in self.found]
        return np.concatenate(parts, dtype=dtype)[self._order] if parts else np.zeros((0, *shape), dtype=dtype)
