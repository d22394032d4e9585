"""abd: an affine-body barrier solver.

The names below are imported at their first use, so that ``import abd`` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from abd.version import __version__

if TYPE_CHECKING:
    from abd import errors as errors
    from abd import gym as gym
    from abd import kinematics as kinematics
    from abd.api.joints.custom_joints import joint_type as joint_type
    from abd.api.simulation import Simulation as Simulation
    from abd.api.simulation import run as run
    from abd.api.tape import Tape as Tape
    from abd.joints.closure.coordinate_setter import CoordinateSetter as CoordinateSetter
    from abd.joints.coordinates.mechanism import Mechanism as Mechanism
    from abd.joints.custom.custom import RowFlags as RowFlags
    from abd.joints.rows.measured_rows import coupling_function as coupling_function
    from abd.model import WORLD as WORLD
    from abd.scene.scene import Scene as Scene
    from abd.scene.scene import load as load
    from abd.scene.schema.keys import BodyKeys as BodyKeys
    from abd.scene.schema.keys import JointKeys as JointKeys
    from abd.sweeps.sweep import sweep as sweep

_HOMES = {
    "WORLD": "abd.model",
    "BodyKeys": "abd.scene.schema.keys",
    "JointKeys": "abd.scene.schema.keys",
    "CoordinateSetter": "abd.joints.closure.coordinate_setter",
    "Mechanism": "abd.joints.coordinates.mechanism",
    "RowFlags": "abd.joints.custom.custom",
    "Scene": "abd.scene.scene",
    "Simulation": "abd.api.simulation",
    "Tape": "abd.api.tape",
    "coupling_function": "abd.joints.rows.measured_rows",
    "errors": "abd.errors",
    "gym": "abd.gym",
    "joint_type": "abd.api.joints.custom_joints",
    "kinematics": "abd.kinematics",
    "load": "abd.scene.scene",
    "run": "abd.api.simulation",
    "sweep": "abd.sweeps.sweep",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'abd' has no attribute '{name}'")
    module = importlib.import_module(_HOMES[name])
    value = module if _HOMES[name] == f"abd.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
