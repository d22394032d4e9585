"""What must hold in the parameters of a joint's type and in its enforcement."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from abd.errors import SceneError
from abd.joints.rows.build import yielding
from abd.joints.types import TYPES
from abd.scene.checks.coordinate_checks import check_law
from abd.scene.compile.joint_parameters import unplaced_joint
from abd.scene.schema.angles import DEGREES
from abd.scene.schema.findings import Finding
from abd.scene.schema.joint_schema import JointParameters, JointSpec
from abd.scene.schema.joint_types import LAWS, LENGTHS, traits, type_of, types_with
from abd.scene.schema.suggestions import enumerated

UNIFORM = ("linear_compliance", "rotary_compliance")
COMPLIANT = ("compliance", *UNIFORM, "stiffness", "damping", "critical_damping")
"""Keys that say how a compliant joint gives way."""


def check_parameters(joint: JointSpec) -> Iterator[Finding]:
    """Findings about the parameters of the type, with paths relative to the joint."""
    demands = traits(joint.type)
    own = getattr(TYPES[type_of(joint.type)], "PARAMETERS", {})
    for key in joint.parameters.keys() - own.keys():
        remedy = f"it has {enumerated(list(own), 'and')}" if own else "drop it: only types defined in Python have any"
        message = f"a {joint.type} joint has no parameter {key}"
        yield Finding(("parameters", key), message, joint.parameters[key], remedy)
    for key in JointParameters.model_fields:
        own = key.removesuffix(DEGREES)
        if getattr(joint, key) is not None and own not in demands.parameters:
            message = f"a {joint.type} joint has no {own}"
            owners = types_with(own)
            remedy = f"drop it; it belongs to {enumerated(owners, 'and')}" if owners else "drop it"
            remedy += ", or to [joint.coordinate.NAME]" if key in LAWS else ""
            yield Finding((key,), message, getattr(joint, key), remedy)
    for key in demands.needs:
        if all(getattr(joint, in_degrees, None) is None for in_degrees in (key, f"{key}{DEGREES}", *demands.instead)):
            other = f", or {enumerated(demands.instead, 'or')}" if demands.instead else ""
            meaning = JointSpec.model_fields[key].description
            yield Finding((), f"has no {key}", remedy=f"a {joint.type} joint needs it{other}: {meaning}", is_absence=True)
    for key in ("max_rotation", "max_rotation_deg"):
        if getattr(joint, key) is not None and min(getattr(joint, key)) <= 0.0:
            yield Finding((key,), "should be three numbers greater than 0", getattr(joint, key))
    rotations = ("max_tilt", "max_tilt_deg", "max_rotation", "max_rotation_deg")
    if joint.limit_compliance is not None and all(getattr(joint, key) is None for key in rotations):
        remedy = "give max_tilt or max_rotation, or drop it"
        yield Finding(("limit_compliance",), "there is no limit that could be soft", joint.limit_compliance, remedy)
    if joint.limit_damping is not None and joint.limit_compliance is None:
        remedy = "give limit_compliance, or drop it"
        yield Finding(("limit_damping",), "has no effect on barriers", joint.limit_damping, remedy)
    if joint.lead == 0.0:
        yield Finding(("lead",), "is zero: the screw does not advance", 0.0, "use a hinge")
    if joint.frame is not None and joint.constrained is None:
        yield Finding(("frame",), "says nothing without constrained", joint.frame, "drop it, or give constrained")
    if type_of(joint.type) == "spring":
        for key in ("stiffness", "damping"):
            value = getattr(joint, key)
            if value is not None and (np.ndim(value) > 0 or value < 0.0):
                yield Finding((key,), "should be a number of at least 0", value)
        yield from check_law(joint, LENGTHS)


def check_type(joint: JointSpec) -> Iterator[Finding]:
    """What the type itself has to say about parameters that passed `check_parameters`."""
    unplaced = unplaced_joint(joint)
    module = TYPES[unplaced.type]
    functions = [module.rows, module.measured, module.coordinates]
    functions += [module.combined] if hasattr(module, "combined") else []
    functions += [module.constraints] if joint.enforcement == "compliant" else []
    for function in functions:
        try:
            function(unplaced)
        except SceneError as error:
            for problem in error.problems:
                key = problem.key.rpartition(", ")[2]
                given = f"{key}{DEGREES}" if getattr(joint, f"{key}{DEGREES}", None) is not None else key
                yield Finding((given,), problem.message, problem.value, problem.remedy)
            return


def check_enforcement(joint: JointSpec) -> Iterator[Finding]:
    """Findings about compliance and damping of constraint rows, with paths relative to the joint."""
    owned = traits(joint.type).parameters
    given = [key for key in COMPLIANT if getattr(joint, key) is not None and key not in owned]
    if joint.enforcement != "compliant":
        for key in given:
            message = f"has no effect on a joint that is enforced by {joint.enforcement}"
            yield Finding((key,), message, getattr(joint, key), 'set enforcement = "compliant", or drop it')
        return
    forms = [key for key in ("compliance", "stiffness") if key in given]
    forms += [key for key in UNIFORM if key in given][:1]
    if not forms and not owned:
        message = "a compliant joint has no compliance"
        remedy = "give compliance, linear_compliance and rotary_compliance, or stiffness"
        yield Finding(("enforcement",), message, joint.enforcement, remedy, is_absence=True)
    if len(forms) > 1:
        message = f"{enumerated(forms, 'and')} are given, but they say the same"
        yield Finding((forms[1],), message, getattr(joint, forms[1]), "keep one of them")
    if "damping" in given and joint.critical_damping is not None:
        message = "damping is given as well"
        yield Finding(("critical_damping",), message, joint.critical_damping, "keep one of them")
    if joint.critical_damping is not None and joint.critical_damping < 0.0:
        yield Finding(("critical_damping",), "should be true or a number of at least 0", joint.critical_damping)
    for key in ("compliance", "stiffness", "damping"):
        if key in given:
            yield from _check_rows(joint, key)


def _check_rows(joint: JointSpec, key: str) -> Iterator[Finding]:
    """A number for every row at most, none of them negative."""
    values = getattr(joint, key)
    if np.ndim(values) > 1:
        yield Finding((key,), f"a {joint.type} joint has no matrix", values, "give one number per row")
        return
    if np.min(values) < 0.0:
        yield Finding((key,), "should not be negative", values)
    if np.ndim(values) == 1 and not list(check_parameters(joint)) and not list(check_type(joint)):
        rows = [measure.name for measure in yielding(unplaced_joint(joint))]
        if len(values) > len(rows):
            message = f"has {len(values)} numbers, but the joint has {len(rows)} rows"
            yield Finding((key,), message, values, f"they are {', '.join(rows)}" if rows else "drop it")
