"""Which bodies joints hold together: a load on one acts on all of them at once."""

from __future__ import annotations

import numpy as np

from abd.joint_list import JointList
from abd.joints.closure.link_graph import joined_components
from abd.model import Kind, Model


class Articulations:
    """Bodies of a model and what is joined to them.

    Attributes:
        dynamic: (n,) bool; none: (n,) bool, no body, one array for all uses.
        jointed: (n,) bool, bodies at joints; tumbling: (n,) bool, dynamic ones of them that may turn about any axis.
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
        """(n,) bool, dynamic bodies that touch something, and all that are joined to one."""
        mobile = touching & self.dynamic
        drawn = np.zeros(self._count, dtype=bool)
        drawn[self._components[mobile]] = True
        return drawn[self._components]
