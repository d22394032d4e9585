"""abd: an affine-body barrier solver.

The names below are loaded when they are first used, so that ``import abd`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from abd import errors, kinematics
    from abd.custom_joints import joint_type
    from abd.joints.coordinate_setter import CoordinateSetter
    from abd.joints.custom import RowFlags
    from abd.joints.mechanism import Mechanism
    from abd.joints.relations import coupling_function
    from abd.model import WORLD
    from abd.scene.body_keys import BodyKeys
    from abd.scene.joint_keys import JointKeys
    from abd.scene.scene import Scene, load
    from abd.simulation import Simulation, run

__version__ = "0.1.0"
__all__ = [
    "WORLD",
    "BodyKeys",
    "CoordinateSetter",
    "JointKeys",
    "Mechanism",
    "RowFlags",
    "Scene",
    "Simulation",
    "__version__",
    "coupling_function",
    "errors",
    "joint_type",
    "kinematics",
    "load",
    "run",
]

_HOMES = {
    "WORLD": "abd.model",
    "BodyKeys": "abd.scene.body_keys",
    "JointKeys": "abd.scene.joint_keys",
    "CoordinateSetter": "abd.joints.coordinate_setter",
    "Mechanism": "abd.joints.mechanism",
    "RowFlags": "abd.joints.custom",
    "Scene": "abd.scene.scene",
    "Simulation": "abd.simulation",
    "coupling_function": "abd.joints.relations",
    "errors": "abd.errors",
    "joint_type": "abd.custom_joints",
    "kinematics": "abd.kinematics",
    "load": "abd.scene.scene",
    "run": "abd.simulation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'abd' has no attribute '{name}'")
    module = importlib.import_module(_HOMES[name])
    value = module if _HOMES[name] == f"abd.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
