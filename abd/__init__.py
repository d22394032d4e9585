"""abd: an affine-body barrier solver.

The names below are imported at their first use, so that ``import abd`` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from abd.version import __version__

if TYPE_CHECKING:
    from abd import errors, gym, kinematics
    from abd.api.joints.custom_joints import joint_type
    from abd.api.simulation import Simulation, run
    from abd.api.tape import Tape
    from abd.joints.closure.coordinate_setter import CoordinateSetter
    from abd.joints.coordinates.mechanism import Mechanism
    from abd.joints.custom.custom import RowFlags
    from abd.joints.rows.measured_rows import coupling_function
    from abd.model import WORLD
    from abd.scene.scene import Scene, load
    from abd.scene.schema.keys import BodyKeys, JointKeys
    from abd.sweeps.sweep import sweep

__all__ = [
    "WORLD",
    "BodyKeys",
    "CoordinateSetter",
    "JointKeys",
    "Mechanism",
    "RowFlags",
    "Scene",
    "Simulation",
    "Tape",
    "__version__",
    "coupling_function",
    "errors",
    "gym",
    "joint_type",
    "kinematics",
    "load",
    "run",
    "sweep",
]

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'abd' has no attribute '{name}'")
    module = importlib.import_module(_HOMES[name])
    value = module if _HOMES[name] == f"abd.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
