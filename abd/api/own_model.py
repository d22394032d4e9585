"""The model of one simulation, which changes by the simulation's methods alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.joint_list import JointList
from abd.model import Model


def own(model: Model) -> Model:
    """The model with joints, loads, friction and gravity of its own, which a simulation changes by its methods alone: the arrays
    refuse to be written to."""
    bodies = replace(model.bodies, force=_shown(model.bodies.force), torque=_shown(model.bodies.torque))
    settings = replace(model.settings, gravity=_shown(model.settings.gravity))
    materials = replace(model.materials, mu=_shown(model.materials.mu))
    joints = JointList.of(model.joints).copy()
    couplings = list(model.couplings)
    return replace(model, joints=joints, couplings=couplings, bodies=bodies, settings=settings, materials=materials)


def _shown(values: np.ndarray) -> np.ndarray:
    """A view, for reading alone, of a copy, which is its base."""
    view = np.array(values, dtype=float).view()
    view.flags.writeable = False
    return view
