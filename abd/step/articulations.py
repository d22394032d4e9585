"""Articulations: bodies that joints connect, directly or through other bodies."""

from __future__ import annotations

import numpy as np

from abd.joint_list import JointList
from abd.joints.closure.link_graph import joined_components
from abd.model import Kind, Model


class Articulations:
    """Bodies of a model and their articulations.

    Attributes:
        dynamic: (n,) bool; none: (n,) bool, the empty mask, one array for all uses.
        jointed: (n,) bool, bodies with joints; tumbling: (n,) bool, jointed dynamic bodies that may turn about any axis.
    """

    def __init__(self, model: Model):
        n = len(model.bodies)
        self.dynamic, self.none = model.bodies.kind == Kind.DYNAMIC, np.zeros(n, dtype=bool)
        self._components = np.unique(joined_components(model), return_inverse=True)[1]
        self._count = int(self._components.max(initial=-1)) + 1
        ends = JointList.of(model.joints).bodies
        self.jointed = np.zeros(n, dtype=bool)
        self.jointed[ends[ends >= 0]] = True
        self.tumbling = self.jointed & self.dynamic & (model.bodies.free_rotation == 3)

    def containing(self, touching: np.ndarray) -> np.ndarray:
        """Return (n,) bool, all bodies of the articulations of the dynamic bodies among `touching` (n,) bool."""
        mobile = touching & self.dynamic
        found = np.zeros(self._count, dtype=bool)
        found[self._components[mobile]] = True
        return found[self._components]
