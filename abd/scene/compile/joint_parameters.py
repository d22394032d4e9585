"""Parameters of joint types as their modules read them, and joints made of them alone."""

from __future__ import annotations

import numpy as np

from abd.joints.coordinates.transform import transform
from abd.joints.measures.measures import Measure
from abd.joints.types import TYPES
from abd.model import WORLD, Joint
from abd.scene.compile.joint_coordinates import law_of
from abd.scene.schema.angles import DEGREES, in_radians
from abd.scene.schema.joint_schema import WORLD_NAME, JointParameters, JointSpec
from abd.scene.schema.joint_types import LAWS, LENGTHS, traits, type_of

SHARED = ("stiffness", "damping")
"""Parameters of springs and bushings whose keys say something about the constraint rows of other types."""
PARAMETERS = tuple(key for key in JointParameters.model_fields if not key.endswith(DEGREES)) + SHARED


def parameters(spec: JointSpec) -> dict[str, object]:
    """What `Joint.parameters` holds: those given, angles in radians."""
    taken = traits(spec.type).parameters
    values = {key: in_radians(spec, key) for key in PARAMETERS if key in taken}
    if set(LAWS) <= set(taken):
        values |= {"law": law_of(spec, LENGTHS), **dict.fromkeys(LAWS)}
    return {key: value for key, value in values.items() if value is not None} | spec.parameters


def unplaced_joint(spec: JointSpec) -> Joint:
    """The joint with both frames at the origin: what rows and coordinates its type has does not depend on where it is."""
    name, parent = type_of(spec.type), WORLD if spec.parent == WORLD_NAME else 1
    return Joint(
        spec.name,
        name,
        TYPES[name].UID,
        parent,
        child=0,
        parent_frame=np.eye(4),
        child_frame=np.eye(4),
        length=1.0,
        enforcement=spec.enforcement,
        parameters=parameters(spec),
    )


def joint_coordinates(spec: JointSpec) -> list[Measure]:
    """Measures of the type's coordinates, in order."""
    joint = unplaced_joint(spec)
    return TYPES[joint.type].coordinates(joint)


def start_transform(joint: Joint, values: dict[str, float]) -> np.ndarray:
    """(4, 4) T_CD of a joint whose coordinates have these values by name, and 0 where none is given; the identity for
    types that their coordinates do not describe."""
    names = [measure.name for measure in TYPES[joint.type].coordinates(joint)]
    start = transform(joint, np.array([values.get(name, 0.0) for name in names]))
    return np.eye(4) if start is None else start
