"""Parameters of joint types as their modules read them, and joints made of them alone."""

from __future__ import annotations

import numpy as np

from abd.joints import TYPES
from abd.joints.measures import Measure
from abd.joints.placement import joint_transform
from abd.model import WORLD, Joint
from abd.scene.angles import DEGREES, in_radians
from abd.scene.joint_schema import JointParameters, JointSpec
from abd.scene.joint_types import traits, type_of

SHARED = ("stiffness", "damping")
"""Parameters of springs and bushings whose keys say something about the constraint rows of other types."""
PARAMETERS = tuple(key for key in JointParameters.model_fields if not key.endswith(DEGREES)) + SHARED


def parameters(spec: JointSpec) -> dict[str, object]:
    """What `Joint.parameters` holds: those given, angles in radians."""
    values = {key: in_radians(spec, key) for key in PARAMETERS if key in traits(spec.type).parameters}
    return {key: value for key, value in values.items() if value is not None}


def unplaced_joint(spec: JointSpec) -> Joint:
    """The joint with both frames at the origin: its type's rows and coordinates do not depend on where it is."""
    name = type_of(spec.type)
    return Joint(
        spec.name, name, TYPES[name].UID, WORLD, 0, np.eye(4), np.eye(4), length=1.0, parameters=parameters(spec)
    )


def joint_coordinates(spec: JointSpec) -> list[Measure]:
    """Measures of the type's coordinates, in order."""
    return of_type(unplaced_joint(spec), "coordinates")


def of_type(joint: Joint, function: str) -> list[Measure]:
    """Measures that a function of the joint's type gives."""
    module = TYPES[joint.type]
    return getattr(module, function)(joint) if hasattr(module, function) else []


def start_transform(joint: Joint, values: dict[str, float]) -> np.ndarray:
    """(4, 4) T_CD of a joint whose coordinates have these values by name, and 0 where none is given; the identity for
    types that their coordinates do not describe."""
    names = [measure.name for measure in of_type(joint, "coordinates")]
    if not names:
        return np.eye(4)
    transform = joint_transform(joint, np.array([values.get(name, 0.0) for name in names]))
    return np.eye(4) if transform is None else transform
