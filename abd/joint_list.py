"""The joints of a model: single joints, and up to millions of copies of a joint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from abd.joint_model import Joint
from abd.model import WORLD, Model
from abd.names import CopyNames, Names, Parts


@dataclass(frozen=True)
class JointCopies:
    """k joints that differ only in their names, bodies and, if the world is their parent, positions.

    Attributes:
        first: the original joint, which is the first one.
        names: of all; parent, child: (k,) int32 bodies; all parents are the world, or none is.
        shift: (k, 3) [m] from the first joint's frame in the world to the others; zero if the parents are bodies.
    """

    first: Joint
    names: CopyNames
    parent: np.ndarray
    child: np.ndarray
    shift: np.ndarray

    def __len__(self) -> int:
        return len(self.child)

    def __getitem__(self, k: int) -> Joint:
        frame = self.first.parent_frame.copy()
        frame[:3, 3] += self.shift[k]
        bodies = {"parent": int(self.parent[k]), "child": int(self.child[k])}
        return replace(self.first, name=self.names[k], parent_frame=frame, **bodies)

    def column(self, name: str) -> np.ndarray:
        """Return one attribute of all joints (k, ...), as `JointList.column`."""
        if name in ("parent", "child"):
            return getattr(self, name)
        value = np.asarray(getattr(self.first, name))
        if name != "parent_frame" or self.first.parent != WORLD:
            return np.broadcast_to(value, (len(self), *value.shape))
        frames = np.tile(value, (len(self), 1, 1))
        frames[:, :3, 3] += self.shift
        return frames


class JointList(Parts):
    """The joints of a model in order, single ones and `JointCopies`; single joints can be replaced.

    permanent: parts of the scene; others are temporary (`append`).
    """

    SINGLE = Joint

    def __init__(self, parts: Iterable[Joint | JointCopies] = ()):
        super().__init__(parts)
        self.replaced: dict[int, Joint] = {}
        self.permanent = self.parts

    def copy(self) -> JointList:
        """Return an independent list of the same joints."""
        out = JointList(self.permanent)
        for joint in self.parts[len(self.permanent) :]:
            out.append(joint)
        out.replaced = dict(self.replaced)
        return out

    def item(self, k: int) -> Joint:
        return self.replaced[k] if k in self.replaced else super().item(k)

    def __setitem__(self, k: int, joint: Joint) -> None:
        """Replace a joint by one of the same name."""
        self.replaced[int(k) % len(self)] = joint

    def append(self, joint: Joint) -> None:
        """Add a joint at the end, until `truncate`."""
        self.parts = (*self.parts, joint)
        self.starts.append(self.starts[-1] + 1)

    def truncate(self, count: int) -> None:
        """Remove appended joints until `count` joints remain."""
        while len(self) > count and len(self.parts) > len(self.permanent):
            self.parts = self.parts[:-1]
            self.starts.pop()
            self.replaced.pop(len(self), None)

    @property
    def names(self) -> Names:
        """Names of all joints."""
        return Names([part.name if isinstance(part, Joint) else part.names for part in self.parts])

    def column(self, name: str) -> np.ndarray:
        """Return (j, ...) one attribute of all joints: a number, a text or a frame."""
        columns = []
        for is_single, parts in groupby(self.parts, lambda part: isinstance(part, Joint)):
            if is_single:
                columns.append(np.array([getattr(part, name) for part in parts]))
            else:
                columns.extend(part.column(name) for part in parts)
        if not columns:
            return np.zeros((0, 4, 4)) if name.endswith("frame") else np.zeros(0, dtype=int)
        out = np.concatenate(columns)
        if self.replaced and out.dtype.kind == "U":
            out = out.astype(object)  # texts of any length
        for k, joint in self.replaced.items():
            out[k] = getattr(joint, name)
        return out

    @property
    def bodies(self) -> np.ndarray:
        """(j, 2) parent and child of every joint, -1 for the world."""
        return np.stack([self.column("parent"), self.column("child")], axis=1)

    @property
    def excluded_pairs(self) -> np.ndarray:
        """Return pairs of bodies (k, 2) without contact because a joint connects them."""
        bodies, collide = self.bodies, self.column("collide").astype(bool)
        return bodies[~collide & (bodies[:, 0] != WORLD)]

    def assign(self, other: JointList) -> None:
        """Set the joints to those of a copy or of the original of this list; further joints are not changed."""
        further = {k: joint for k, joint in self.replaced.items() if k >= len(other)}
        self.replaced = {**other.replaced, **further}

    def changed_since(self, start: JointList) -> list[int]:
        """Return the indices of joints that can differ from those of the original of this copy; without further joints."""
        return sorted(k for k in self.replaced.keys() | start.replaced.keys() if k < len(start))


def excluded_pairs(model: Model) -> np.ndarray:
    """Return pairs of bodies (k, 2) without contact because a joint connects them, a contact filter has them, or it is
    disabled."""
    if model.excluded_pairs is not None:
        return model.excluded_pairs
    return np.concatenate([JointList.of(model.joints).excluded_pairs.astype(np.int64), model.filtered])
